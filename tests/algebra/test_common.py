"""Nullspaces, common layouts, surjective and bijective, and inverses of swizzled layouts, all by evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.algebra import (
    ComposedLayout,
    Layout,
    Swizzle,
    complement,
    first_gap,
    is_bijective,
    is_surjective,
    left_inverse,
    max_common_layout,
    max_common_vector,
    nullspace,
    right_inverse,
)
from layoutgen.errors import LayoutError
from tests.algebra.reference import STRIDES, compact_layouts, layouts, leaves, value, values


@given(layouts(strides=(0, 0, 1, 2, 4, 12)))
def test_the_nullspace_is_what_stride_0_repeats(layout: Layout) -> None:
    result = nullspace(layout)
    assert {value(layout, index) for index in values(result)} == {0}
    assert len(set(values(result))) == result.size
    moving = 1
    for n, d in leaves(layout.shape, layout.stride):
        moving *= n if d else 1
    assert result.size * moving == layout.size


def run_in_common(a: Layout, b: Layout) -> int:
    """How far some index has the offset i in both layouts, by search."""
    n = 0
    first, second = values(a), values(b)
    shared = {x for x, y in zip(first, second, strict=False) if x == y}
    while n in shared:
        n += 1
    return n


@given(compact_layouts(extents=(1, 2, 3, 4)), st.data())
def test_a_common_layout_is_contiguous_in_both(a: Layout, data: st.DataObject) -> None:
    b = data.draw(compact_layouts(extents=(1, 2, 3, 4)) | st.just(a))
    common = max_common_layout(a, b)
    assert [value(a, i) for i in values(common)] == [value(b, i) for i in values(common)] == list(range(common.size))
    assert max_common_vector(a, b) == common.size <= max(1, run_in_common(a, b))
    if a == b:
        assert common.size == a.size


@given(layouts(strides=STRIDES), layouts(strides=STRIDES))
def test_a_common_layout_never_claims_too_much(a: Layout, b: Layout) -> None:
    common = max_common_layout(a, b)
    assert [value(a, i) for i in values(common)] == [value(b, i) for i in values(common)] == list(range(common.size))


def test_a_common_layout_of_padded_rows_stops_at_the_padding() -> None:
    a, b = Layout((8, 4), (1, 12)), Layout((8, 4), (1, 8))
    assert max_common_vector(a, b) == max_common_vector(b, a) == 8
    # The inverse of B runs across modes of A that don't merge, of which the first still agree.
    a, b = Layout((6, 4), (1, 100)), Layout((2, 4, 3), (4, 1, 8))
    assert max_common_vector(a, b) == 1


@pytest.mark.parametrize(("base", "offset", "expected"), [(3, 0, 8), (4, 0, 16), (3, 4, 4), (6, 0, 64)])
def test_a_swizzle_bounds_the_common_vector(base: int, offset: int, expected: int) -> None:
    plain = Layout((8, 64), (64, 1))
    swizzled = ComposedLayout(Swizzle(1, base, 3), offset, plain)
    assert max_common_vector(swizzled, plain) == max_common_vector(plain, swizzled) == expected
    assert max_common_vector(ComposedLayout(Swizzle(0, base, 3), 0, plain), plain) == 512
    with pytest.raises(LayoutError, match="only swizzled"):
        max_common_vector(ComposedLayout(plain, 0, plain), plain)


@given(layouts(strides=(0, 1, 2, 3, 4, 8, -1)), st.sampled_from([None, 1, 4, 16, 600]))
def test_surjective_and_bijective_with_the_first_gap(layout: Layout, size: int | None) -> None:
    offsets = values(layout)
    codomain = range(max(offsets) - min(offsets) + 1 if size is None else size)
    gap = next((x for x in codomain if x not in set(offsets)), None)
    assert first_gap(layout, size) == gap
    assert is_surjective(layout, size) is (gap is None)
    assert is_bijective(layout, size) is (sorted(offsets) == list(codomain))


@st.composite
def swizzled_layouts(draw: st.DrawFn) -> ComposedLayout:
    bits = draw(st.integers(0, 2))
    shift = draw(st.integers(bits, 3)) * draw(st.sampled_from([1, -1]))
    strides = draw(st.sampled_from([(1, 8, 64), (64, 1, 8), (8, 64, 1), (1, 16, 128), (2, 16, 128)]))
    swizzle = Swizzle(bits, draw(st.integers(0, 2)), shift)
    return ComposedLayout(swizzle, draw(st.sampled_from([0, 0, 1, 8])), Layout((8, 8, 4), strides))


@given(swizzled_layouts())
def test_inverses_of_swizzled_layouts_undo_them(layout: ComposedLayout) -> None:
    left = left_inverse(layout)
    assert [left(offset) for offset in layout.offsets().tolist()] == list(range(layout.size))
    try:
        right = right_inverse(layout)
    except LayoutError as error:
        assert error.got
        return
    assert layout.at(right.offsets()).tolist() == [layout(right(i)) for i in range(right.size)]
    assert layout.at(right.offsets()).tolist() == list(range(right.size))


@given(swizzled_layouts(), st.sampled_from([256, 512, 1024]))
def test_the_complement_of_a_swizzled_layout_is_disjoint_from_it(layout: ComposedLayout, cotarget: int) -> None:
    try:
        rest = complement(layout, cotarget)
    except LayoutError as error:
        assert error.got
        return
    sums = np.add.outer(layout.offsets(), rest.offsets())
    assert len(np.unique(sums)) == layout.size * rest.size


ROWS = Layout((8, 64), (64, 1))


@pytest.mark.parametrize(
    ("operation", "rule"),
    [
        (lambda: right_inverse(ComposedLayout(Swizzle(3, 3, 3), 8, ROWS)), "permutes the contiguous offsets"),
        (lambda: right_inverse(ComposedLayout(Swizzle(1, 0, 3), 0, Layout((3, 3)))), "permutes the contiguous offsets"),
        (lambda: complement(ComposedLayout(Swizzle(1, 0, 2), 0, Layout(2, 4)), 16), "leaves out"),
        (lambda: left_inverse(ComposedLayout(Layout(8), 0, Layout(8))), "one swizzle and one layout"),
        (lambda: right_inverse(ComposedLayout(Swizzle(1, 0, 3), 0, Layout((1 << 14, 1 << 14)))), "bounded size"),
    ],
)
def test_what_has_no_inverse_says_so(operation: Any, rule: str) -> None:
    with pytest.raises(LayoutError, match=rule) as raised:
        operation()
    assert raised.value.got


def test_a_swizzled_tile_has_both_inverses_and_a_complement() -> None:
    tile = ComposedLayout(Swizzle(3, 3, 3), 0, ROWS)
    assert [tile(right_inverse(tile)(i)) for i in range(512)] == list(range(512))
    assert str(complement(tile, 2048)) == "4:512"
