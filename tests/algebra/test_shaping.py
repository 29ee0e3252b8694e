"""Ordered layouts and repeated blocks, by evaluation; shared-memory pointers, by the byte addresses they permute."""

from __future__ import annotations

from itertools import product as cartesian
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutgen.algebra import (
    ComposedLayout,
    IntTuple,
    Layout,
    SmemLayout,
    Swizzle,
    as_position_independent,
    domain_distribute,
    make_fragment_like,
    make_layout_like,
    make_ordered_layout,
    product_each,
    tile_to_shape,
)
from layoutgen.algebra.shaping import compact_order
from layoutgen.errors import LayoutError
from tests.algebra.reference import SIGNED, compact_layouts, count, layouts, leaves, profiles, values
from tests.algebra.test_swizzle import swizzled_by_definition


@given(st.data(), profiles())
def test_an_order_of_distinct_ints_gives_a_bijection_with_strides_in_that_order(
    data: st.DataObject, shape: IntTuple
) -> None:
    flat = [n for n, _ in leaves(shape, shape)]
    ranks = iter(data.draw(st.permutations(range(-1, len(flat) - 1))))

    def order_of(part: IntTuple) -> IntTuple:
        return tuple(map(order_of, part)) if isinstance(part, tuple) else next(ranks)

    order = order_of(shape)
    layout = make_ordered_layout(shape, order)
    assert layout.shape == shape
    assert sorted(values(layout)) == list(range(count(shape)))
    by_order = sorted(
        (place, stride)
        for (n, place), (_, stride) in zip(leaves(shape, order), leaves(shape, layout.stride), strict=True)
        if n > 1
    )
    assert [stride for _, stride in by_order] == sorted(stride for _, stride in by_order)


def test_an_order_may_stop_nesting_before_its_shape() -> None:
    assert compact_order(((2, 3), (4, 5)), (1, 0)) == ((20, 40), (1, 4))
    assert compact_order((2, 3), 7) == (1, 2)


@given(layouts(strides=SIGNED))
def test_a_layout_like_another_keeps_its_order_and_its_broadcasts(layout: Layout) -> None:
    result = make_layout_like(layout)
    assert result == make_layout_like(ComposedLayout(Swizzle(1, 0, 1), 0, layout))
    assert result.shape == layout.shape
    pairs = [
        (old, new)
        for (n, old), (_, new) in zip(
            leaves(layout.shape, layout.stride), leaves(result.shape, result.stride), strict=True
        )
        if n > 1
    ]
    assert all((old == 0) == (new == 0) for old, new in pairs)
    moving = sorted(pair for pair in pairs if pair[0])
    assert [new for _, new in moving] == sorted(new for _, new in moving)
    if len({old for old, _ in moving}) == len(moving):
        assert sorted(set(values(result))) == list(range(max(values(result)) + 1))
        assert max(values(result)) + 1 == count(tuple(n for n, d in leaves(layout.shape, layout.stride) if d))


@settings(max_examples=40)
@given(layouts(strides=(1, 2, 3, 4, 6, 8, 16)), layouts(strides=(1, 2, 4, 8, 16)))
def test_a_fragment_gives_each_element_a_register_first_mode_first(first: Layout, rest: Layout) -> None:
    if len({d for n, d in leaves(rest.shape, rest.stride) if n > 1}) < len(
        [n for n, _ in leaves(rest.shape, rest.stride) if n > 1]
    ):
        return
    part = Layout((first.shape, rest.shape), (first.stride, rest.stride))
    fragment = make_fragment_like(part)
    assert product_each(fragment.shape) == product_each(part.shape)
    assert sorted(values(fragment)) == list(range(part.size))
    assert values(fragment[0]) == list(range(first.size))
    assert make_fragment_like(ComposedLayout(Swizzle(1, 0, 1), 0, part)) == fragment


@settings(max_examples=40)
@given(st.data(), compact_layouts(extents=(1, 2, 3, 4)))
def test_a_tiled_block_repeats_itself_in_order(data: st.DataObject, block: Layout) -> None:
    sizes = product_each(block.shape)
    extra = data.draw(st.integers(0, 1))
    repetitions = tuple(data.draw(st.integers(1, 3)) for _ in range(len(sizes) + extra))
    target = tuple(n * r for n, r in zip((*sizes, *[1] * extra), repetitions, strict=True))
    order = tuple(data.draw(st.permutations(range(len(target)))))
    place, strides = 1, [0] * len(target)
    for mode in sorted(range(len(target)), key=order.__getitem__):
        strides[mode] = place
        place *= repetitions[mode]
    result = tile_to_shape(block, target, order)
    assert product_each(result.shape) == target
    for inner, outer in cartesian(cartesian(*map(range, sizes)), cartesian(*map(range, repetitions))):
        whole = tuple(o * n + i for i, o, n in zip((*inner, *[0] * extra), outer, (*sizes, *[1] * extra), strict=True))
        expected = block(inner if len(inner) > 1 or isinstance(block.shape, tuple) else inner[0])
        expected += block.size * sum(o * d for o, d in zip(outer, strides, strict=True))
        assert result(whole) == expected
    if order == tuple(range(len(target))):
        assert result == tile_to_shape(block, target)


@given(profiles(), st.integers(1, 96))
def test_distributed_indices_are_distinct_and_stay_inside(shape: IntTuple, among: int) -> None:
    result = domain_distribute(shape, among)
    assert result == domain_distribute(Layout(shape), among)
    drawn = values(result)
    assert len(set(drawn)) == len(drawn) and drawn == sorted(drawn)
    assert among % len(drawn) == 0 and count(shape) % len(drawn) == 0
    assert max(drawn) < count(shape)
    if count(shape) % among == 0 and not isinstance(shape, tuple):
        assert len(drawn) == among


@given(
    st.sampled_from([8, 16, 32, 64]),
    st.integers(0, 3),
    st.sampled_from([(8, 16), (16, 8)]),
    st.sampled_from([False, True]),
)
def test_a_swizzled_pointer_permutes_byte_addresses(bits: int, swizzle_bits: int, shape: Any, row_major: bool) -> None:
    layout = Layout(shape, (shape[1], 1) if row_major else (1, shape[0]))
    smem = SmemLayout(Swizzle(swizzle_bits, 4, 3), bits, layout)
    independent = as_position_independent(smem)
    base = 3 * smem.alignment
    for index in range(layout.size):
        assert smem(index) == layout(index)
        address = swizzled_by_definition(smem.swizzle, base + layout(index) * bits // 8)
        assert base + independent(index) * bits // 8 == address
    assert smem.recast(2 * bits).recast(bits).layout.size == layout.size
    assert (smem.shape, smem.size, smem.rank, smem.depth, smem.cosize) == (shape, 128, 2, 1, 128)
    assert smem.offsets().tolist() == values(layout)


@pytest.mark.parametrize(
    ("operation", "rule"),
    [
        (lambda: make_ordered_layout((4, 8), (1, 2, 3)), "an order has the modes"),
        (lambda: make_ordered_layout((4, 8), (1, (2, 3))), "an order has the modes"),
        (lambda: tile_to_shape(Layout((8, 8)), (16, 12)), "divides"),
        (lambda: tile_to_shape(Layout((8, 8, 2)), (16, 16)), "divides"),
        (lambda: domain_distribute((4, 8), 0), "shared among"),
        (lambda: SmemLayout(Swizzle(3, 4, 3), 0, Layout(8)), "at least one bit"),
        (lambda: SmemLayout(Swizzle(3, 4, 3), 256, Layout(8)).as_position_independent(), "whole elements"),
        (lambda: SmemLayout(Swizzle(3, 4, 3), 24, Layout(8)).as_position_independent(), "power of two"),
    ],
)
def test_what_cannot_be_shaped_is_refused(operation: Any, rule: str) -> None:
    with pytest.raises(LayoutError, match=rule) as raised:
        operation()
    assert raised.value.got is not None
