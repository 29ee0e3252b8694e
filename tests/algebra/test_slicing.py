"""Slices, tiles and partitions against the definition: fill the open places in, and evaluate the whole layout there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as cartesian
from typing import Any

import pycute
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layoutgen.algebra import (
    ComposedLayout,
    IntTuple,
    Layout,
    Swizzle,
    View,
    coordinate_of,
    dice,
    local_partition,
    local_tile,
    parse_coordinate,
    slice,
    slice_and_offset,
)
from layoutgen.algebra.slicing import coordinate_text
from layoutgen.errors import LayoutError
from tests.algebra.reference import SIGNED, compact_layouts, count, layouts, leaves
from tests.algebra.test_swizzle import swizzled_by_definition, swizzles


def at(layout: Layout, coordinate: Any) -> int:
    """The offset of a coordinate, which may stop nesting before the shape does."""

    def walk(point: Any, shape: IntTuple, stride: IntTuple) -> int:
        if isinstance(point, tuple):
            assert isinstance(shape, tuple) and isinstance(stride, tuple)
            return sum(map(walk, point, shape, stride))
        offset = 0
        pairs = leaves(shape, stride)
        for position, (n, d) in enumerate(pairs):
            last = position == len(pairs) - 1
            offset += (point if last else point % n) * d
            point //= n
        return offset

    return walk(coordinate, layout.shape, layout.stride)


def open_sizes(coordinate: Any, shape: IntTuple) -> list[int]:
    """The size of each open place."""
    if isinstance(coordinate, tuple):
        assert isinstance(shape, tuple)
        return [n for c, part in zip(coordinate, shape, strict=True) for n in open_sizes(c, part)]
    return [count(shape)] if coordinate is None else []


def filled(coordinate: Any, values: Iterator[int]) -> Any:
    if isinstance(coordinate, tuple):
        return tuple(filled(c, values) for c in coordinate)
    return next(values) if coordinate is None else coordinate


def fillings(coordinate: Any, shape: IntTuple) -> Iterator[tuple[Any, Any]]:
    """(coordinate of the slice, coordinate of the whole) for all values of the open places."""
    for values in cartesian(*map(range, open_sizes(coordinate, shape))):
        rest = values if isinstance(coordinate, tuple) else values[0] if values else 0
        yield rest, filled(coordinate, iter(values))


@st.composite
def coordinates(draw: st.DrawFn, shape: IntTuple) -> Any:
    """A coordinate of ``shape`` with some places open; it may stop nesting early."""
    if isinstance(shape, tuple) and draw(st.integers(0, 3)):
        return tuple(draw(coordinates(part)) for part in shape)
    return draw(st.none() | st.integers(0, count(shape) - 1))


@given(st.data(), layouts(strides=SIGNED))
def test_a_slice_is_the_layout_with_the_fixed_coordinates_filled_in(data: st.DataObject, layout: Layout) -> None:
    coordinate = data.draw(coordinates(layout.shape))
    view = slice_and_offset(layout, coordinate)
    assert isinstance(view.layout, Layout) and slice(layout, coordinate) == view.layout
    assert view.layout.size == count(tuple(open_sizes(coordinate, layout.shape)))
    for rest, whole in fillings(coordinate, layout.shape):
        assert view.offset + at(view.layout, rest) == at(layout, whole)
    assert parse_coordinate(coordinate_text(coordinate)) == coordinate


@given(st.data(), layouts())
def test_slices_agree_with_pycute(data: st.DataObject, layout: Layout) -> None:
    coordinate = data.draw(coordinates(layout.shape))
    assume(isinstance(coordinate, tuple))  # slice(_, x) is x in C++, and (x) in pycute
    kept, offset = pycute.slice_and_offset(coordinate, pycute.Layout(layout.shape, layout.stride))
    assert slice_and_offset(layout, coordinate) == (Layout(kept.shape, kept.stride), offset)


@given(st.data(), layouts(strides=SIGNED))
def test_dice_is_what_slice_leaves_out(data: st.DataObject, layout: Layout) -> None:
    coordinate = data.draw(coordinates(layout.shape))
    diced = dice(layout, coordinate)
    kept = slice(layout, coordinate)
    assert isinstance(kept, Layout)
    assert diced.size * kept.size == layout.size
    assert sorted(leaves(diced.shape, diced.stride) + leaves(kept.shape, kept.stride)) == sorted(
        leaves(layout.shape, layout.stride)
    )
    assert dice(layout, opposite(coordinate)) == kept
    swizzled = ComposedLayout(Swizzle(1, 0, 1), 3, layout)
    assert dice(swizzled, coordinate) == ComposedLayout(Swizzle(1, 0, 1), 3, diced)


def opposite(coordinate: Any) -> Any:
    if isinstance(coordinate, tuple):
        return tuple(map(opposite, coordinate))
    return 0 if coordinate is None else None


@settings(max_examples=40)
@given(st.data(), swizzles(), st.sampled_from([0, 1, 8, 40]), st.permutations([1, 4, 32]))
def test_a_slice_of_a_swizzled_layout_is_right_plain_or_not(
    data: st.DataObject, swizzle: Swizzle, offset: int, stride: list[int]
) -> None:
    inner = Layout((4, 8, 4), tuple(stride))
    coordinate = tuple(data.draw(st.none() | st.integers(0, n - 1)) for n in (4, 8, 4))
    for layout in (ComposedLayout(swizzle, offset, inner), ComposedLayout(Layout(1, 3), offset, inner)):
        view = slice_and_offset(layout, coordinate)
        outer = swizzle if layout.layout_a is swizzle else None
        for rest, whole in fillings(coordinate, inner.shape):
            place = offset + at(inner, whole)
            assert view.offset + view.layout(rest) == (
                3 * place if outer is None else swizzled_by_definition(swizzle, place)
            )


@pytest.mark.parametrize(
    ("layout", "coordinate", "expected"),
    [
        # The swizzle reads what the slice holds fixed: the steps are signed, or whole.
        ("Sw<2,0,2> o 0 o (4,4):(4,1)", "(1,_)", "((2,2)):((-1,2))+5"),
        ("Sw<2,0,2> o 0 o (4,4):(4,1)", "(0,_)", "(4):(1)+0"),
        # It changes only what the slice holds fixed: each step takes its xor along.
        ("Sw<2,0,2> o 0 o (4,4):(4,1)", "(_,0)", "(4):(5)+0"),
        # It reads and changes within the slice; far bits move out, near ones stay.
        ("Sw<2,0,2> o 0 o (4,4,2):(4,1,16)", "(_,_,1)", "Sw<2,0,2> o 0 o (4,4):(4,1)+16"),
        ("Sw<2,0,2> o 0 o (4,2,2):(4,1,2)", "(_,_,1)", "Sw<2,0,2> o 2 o (4,2):(4,1)+0"),
        ("Sw<2,0,2> o 0 o (4,2,2,2):(4,1,2,16)", "(_,_,1,1)", "Sw<2,0,2> o 2 o (4,2):(4,1)+16"),
        ("Sw<2,0,2> o 0 o (4,4):(4,1)", "_", "Sw<2,0,2> o 0 o (4,4):(4,1)+0"),
    ],
)
def test_swizzled_slices_are_plain_where_they_can_be(layout: str, coordinate: str, expected: str) -> None:
    assert str(slice_and_offset(ComposedLayout.parse(layout), parse_coordinate(coordinate))) == expected


def matrices(most: int = 24) -> st.SearchStrategy[Layout]:
    return layouts(strides=SIGNED, extents=(4, 8, 12), most=2).filter(lambda x: x.rank == 2 and x.size <= most * most)


@settings(max_examples=40)
@given(st.data(), matrices())
def test_a_tile_holds_the_elements_of_its_rows_and_columns(data: st.DataObject, layout: Layout) -> None:
    m, n = (data.draw(st.sampled_from([1, 2, 4])) for _ in range(2))
    rows, columns = layout[0].size // m, layout[1].size // n
    i, j = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    try:
        view = local_tile(layout, (m, n), (i, j))
        whole_row = local_tile(layout, (m, n), (i,))
        stages = local_tile(layout, (m, 5, n), (i, 9, None), (1, None, 1))
    except LayoutError as error:
        assert error.rule and error.got
        return
    for r, c in cartesian(range(m), range(n)):
        expected = at(layout, (i * m + r, j * n + c))
        assert expected == offset_at(view, r, c) == offset_at(whole_row, r, c, j) == offset_at(stages, r, c, j)


def offset_at(view: View, *coordinate: int) -> int:
    return view.offset + view.layout(coordinate)


@settings(max_examples=40)
@given(st.data(), matrices(), st.permutations([0, 1]))
def test_a_partition_holds_what_the_repeated_threads_fall_on(
    data: st.DataObject, layout: Layout, order: list[int]
) -> None:
    shape = tuple(data.draw(st.sampled_from([1, 2, 4])) for _ in range(2))
    stride = (1, shape[0]) if order == [0, 1] else (shape[1], 1)
    threads = Layout(shape, stride)
    x, y = (data.draw(st.integers(0, n - 1)) for n in shape)
    index = x * stride[0] + y * stride[1]
    try:
        view = local_partition(layout, threads, index)
        along_rows = local_partition(layout, threads, index, (1, None))
    except LayoutError as error:
        assert error.rule and error.got
        return
    for r, c in cartesian(range(layout[0].size // shape[0]), range(layout[1].size // shape[1])):
        assert offset_at(view, r, c) == at(layout, (x + r * shape[0], y + c * shape[1]))
        assert offset_at(along_rows, r, c) == at(layout, (x + r * shape[0], c))


@settings(max_examples=40)
@given(compact_layouts())
def test_every_thread_of_a_layout_has_its_coordinate(threads: Layout) -> None:
    for index in range(threads.size):
        assert threads(coordinate_of(threads, index)) == index
    for index in (-1, threads.size):
        with pytest.raises(LayoutError, match="hands out"):
            coordinate_of(threads, index)


@pytest.mark.parametrize(
    ("operation", "rule"),
    [
        (lambda: slice(Layout((4, 8)), (1, None, 2)), "a coordinate has the modes"),
        (lambda: slice(Layout((4, 8)), ((1, None), 2)), "a coordinate has the modes"),
        (lambda: dice(Layout((4, 8)), (None,)), "a coordinate has the modes"),
        (lambda: local_tile(Layout((4, 8)), (2, 2), (0, 0, 0)), "at most as many entries"),
        (lambda: local_partition(Layout((4, 8)), Layout((2, 2)), 4), "hands out"),
        (lambda: local_partition(Layout((4, 8)), Layout(4, 2), 3), "hands out"),
        (lambda: parse_coordinate("(1,_"), "a coordinate reads"),
        (lambda: parse_coordinate("(1,x)"), "a coordinate reads"),
    ],
)
def test_what_cannot_be_sliced_is_refused(operation: Any, rule: str) -> None:
    with pytest.raises(LayoutError, match=rule) as raised:
        operation()
    assert raised.value.got
