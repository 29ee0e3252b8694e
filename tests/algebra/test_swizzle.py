"""Swizzles and composed layouts against their definition, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.algebra import (
    ComposedLayout,
    Layout,
    Swizzle,
    blocked_product,
    coalesce,
    composition,
    cosize,
    downcast,
    filter,
    first_collision,
    flat_divide,
    flat_product,
    is_injective,
    logical_divide,
    logical_product,
    offsets,
    parse,
    raked_product,
    tiled_divide,
    tiled_product,
    upcast,
    with_shape,
    zipped_divide,
    zipped_product,
)
from layoutgen.errors import LayoutError


@st.composite
def swizzles(draw: st.DrawFn) -> Swizzle:
    bits = draw(st.integers(0, 3))
    shift = draw(st.integers(bits, 4)) * draw(st.sampled_from([1, -1]))
    return Swizzle(bits, draw(st.integers(0, 3)), shift)


def swizzled_by_definition(swizzle: Swizzle, offset: int) -> int:
    """Bit by bit, from the picture in CuTe's swizzle.hpp: ZZZ ^= YYY."""
    low = swizzle.base + max(0, -swizzle.shift)
    for bit in range(swizzle.bits):
        source = low + bit + swizzle.shift
        offset ^= ((offset >> source) & 1) << (low + bit)
    return offset


@given(swizzles())
def test_a_swizzle_permutes_offsets_as_defined_and_undoes_itself(swizzle: Swizzle) -> None:
    everything = np.arange(1 << 12)
    expected = [swizzled_by_definition(swizzle, offset) for offset in everything.tolist()]
    assert swizzle.at(everything).tolist() == expected == [swizzle(offset) for offset in range(1 << 12)]
    assert swizzle.at(swizzle.at(everything)).tolist() == everything.tolist()
    assert Swizzle.parse(str(swizzle)) == swizzle
    changes = everything ^ swizzle.at(everything)
    assert swizzle.target_mask == np.bitwise_or.reduce(changes)
    assert swizzle.source_mask == sum(1 << bit for bit in range(12) if swizzle(1 << bit) != 1 << bit)


@given(swizzles(), st.sampled_from([0, 1, 8, 64]), st.permutations([1, 4, 32]))
def test_a_composed_layout_is_its_parts_one_after_the_other(swizzle: Swizzle, offset: int, stride: list[int]) -> None:
    inner = Layout((4, 8, 4), tuple(stride))
    layout = ComposedLayout(swizzle, offset, inner)
    expected = [swizzled_by_definition(swizzle, offset + inner(i)) for i in range(inner.size)]
    assert offsets(layout).tolist() == expected == [layout(i) for i in range(layout.size)]
    assert layout.at(np.arange(layout.size)).tolist() == expected
    assert [layout(i, j, k) for k in range(4) for j in range(8) for i in range(4)] == expected
    assert cosize(layout) == max(expected) + 1
    assert is_injective(layout) is (len(set(expected)) == len(expected))
    assert ComposedLayout.parse(str(layout)) == parse(str(layout)) == layout


TILER = (2, Layout(4, 2))
ON_INNER = [
    coalesce,
    filter,
    lambda x: with_shape(x, (16, 8)),
    lambda x: composition(x, TILER),
    lambda x: logical_divide(x, TILER),
    lambda x: zipped_divide(x, TILER),
    lambda x: tiled_divide(x, TILER),
    lambda x: flat_divide(x, TILER),
    lambda x: logical_product(x, Layout(2)),
    lambda x: zipped_product(x, Layout(2)),
    lambda x: tiled_product(x, Layout((2, 2))),
    lambda x: flat_product(x, Layout((2, 2))),
    lambda x: blocked_product(x, Layout((2, 2))),
    lambda x: raked_product(x, Layout((2, 2))),
]


@pytest.mark.parametrize("operation", ON_INNER)
def test_operations_reach_into_the_inner_layout(operation: object) -> None:
    inner = Layout((8, 16), (16, 1))
    swizzle = Swizzle(2, 1, 3)
    for layout in (ComposedLayout(swizzle, 4, inner), ComposedLayout(swizzle, 4, ComposedLayout(swizzle, 0, inner))):
        result = operation(layout)  # type: ignore[operator]
        plain = operation(inner)  # type: ignore[operator]
        innermost = result.layout_b if isinstance(result.layout_b, Layout) else result.layout_b.layout_b
        assert innermost == plain
        assert (result.layout_a, result.offset, result.shape) == (swizzle, 4, plain.shape)


@given(swizzles(), swizzles())
def test_two_swizzles_compose_to_one_or_raise(outer: Swizzle, inner: Swizzle) -> None:
    try:
        merged = composition(outer, inner)
    except LayoutError as error:
        assert error.rule
        return
    everything = np.arange(1 << 12)
    assert merged.at(everything).tolist() == outer.at(inner.at(everything)).tolist()


@given(swizzles(), st.permutations([4, 8, 4]), st.permutations([1, 4, 32]))
def test_a_layout_after_a_swizzle_swizzles_its_indices_or_raises(
    swizzle: Swizzle, shape: list[int], stride: list[int]
) -> None:
    layout = Layout(tuple(shape), tuple(stride))
    try:
        result = composition(layout, swizzle)
    except LayoutError as error:
        assert error.rule
        return
    assert offsets(result).tolist() == [layout(swizzle(i)) for i in range(layout.size)]


def test_composing_keeps_the_function() -> None:
    swizzle, inner = Swizzle(3, 0, 3), Layout((8, 8), (8, 1))
    layout = composition(swizzle, inner)
    assert offsets(layout).tolist() == swizzle.at(inner.offsets()).tolist()
    assert composition(Swizzle(0, 4, 3), inner) is inner
    twice = composition(Swizzle(1, 0, 3), layout)
    assert offsets(twice).tolist() == Swizzle(1, 0, 3).at(offsets(layout)).tolist()
    transposed = composition(Layout((8, 8), (8, 1)), composition(Swizzle(2, 0, 3), Layout(64)))
    assert offsets(transposed).tolist() == [Layout((8, 8), (8, 1))(Swizzle(2, 0, 3)(i)) for i in range(64)]


@given(swizzles(), st.sampled_from([1, 2, 4]))
def test_recasting_a_swizzle_moves_whole_units(swizzle: Swizzle, n: int) -> None:
    fine = downcast(swizzle, n)
    assert [fine(n * offset + n - 1) for offset in range(512)] == [n * swizzle(offset) + n - 1 for offset in range(512)]
    try:
        coarse = upcast(swizzle, n)
    except LayoutError:
        return
    assert [coarse(offset // n) for offset in range(2048)] == [swizzle(offset) // n for offset in range(2048)]


@given(swizzles(), st.sampled_from([0, 8, 64]))
def test_recasting_a_swizzled_layout_keeps_the_memory(swizzle: Swizzle, offset: int) -> None:
    layout = ComposedLayout(swizzle, offset, Layout((8, 16), (16, 1)))
    fine = downcast(layout, 4)
    assert set(offsets(fine).tolist()) == {4 * at + part for at in offsets(layout).tolist() for part in range(4)}
    try:
        coarse = upcast(layout, 4)
    except LayoutError:
        return
    assert set(offsets(coarse).tolist()) == {at // 4 for at in offsets(layout).tolist()}


def test_a_swizzled_broadcast_collides() -> None:
    assert first_collision(ComposedLayout(Swizzle(1, 0, 1), 0, Layout((2, 2), (0, 1)))) == (0, 1)
