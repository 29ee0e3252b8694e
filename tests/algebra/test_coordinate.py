"""Scaled-basis strides against coordinates worked out by hand, through every operation that takes them."""

from __future__ import annotations

from itertools import product as cartesian
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.algebra import (
    ComposedLayout,
    Layout,
    ScaledBasis,
    Swizzle,
    coalesce,
    complement,
    composition,
    covers_exactly_once,
    cute_type,
    first_collision,
    flat_divide,
    idx2crd,
    index_layout,
    is_coordinate_layout,
    is_injective,
    left_inverse,
    logical_divide,
    logical_product,
    make_identity_layout,
    max_vector,
    parse,
    right_inverse,
    tiled_divide,
    upcast,
    with_shape,
    zipped_divide,
    zipped_product,
)
from layoutgen.errors import LayoutError
from tests.algebra.reference import profiles


def moved(layout: Layout) -> list[dict[tuple[int, ...], int]]:
    """For each index, how far along each axis, from the printed strides alone."""
    pairs = leaves_of(layout.shape, layout.stride)
    points = cartesian(*(range(n) for n, _ in reversed(pairs)))
    result = []
    for point in points:
        total: dict[tuple[int, ...], int] = {}
        for c, (_, d) in zip(reversed(point), pairs, strict=True):
            if str(d) == "0":
                continue
            value, *axes = str(d).split("@")
            path = tuple(map(int, reversed(axes)))
            total[path] = total.get(path, 0) + c * int(value)
        result.append({path: value for path, value in total.items() if value})
    return result


def leaves_of(shape: Any, stride: Any) -> list[tuple[int, Any]]:
    if isinstance(shape, tuple):
        return [leaf for n, d in zip(shape, stride, strict=True) for leaf in leaves_of(n, d)]
    return [(shape, stride)]


def along(coordinate: Any, path: tuple[int, ...] = ()) -> dict[tuple[int, ...], int]:
    """A coordinate as distances along axes."""
    if isinstance(coordinate, tuple):
        return {p: v for axis, c in enumerate(coordinate) for p, v in along(c, (*path, axis)).items()}
    return {path: coordinate} if coordinate else {}


@given(profiles((1, 2, 3, 4)).filter(lambda shape: isinstance(shape, tuple)))
def test_the_identity_maps_each_coordinate_to_itself(shape: Any) -> None:
    identity = make_identity_layout(shape)
    for index in range(identity.size):
        coordinate = idx2crd(index, shape)
        assert identity(coordinate) == identity(index) == coordinate
    assert is_coordinate_layout(identity)
    assert Layout.parse(str(identity)) == identity
    assert is_injective(identity) and covers_exactly_once(identity, shape)


def test_the_identity_of_an_int_is_its_indices() -> None:
    assert str(make_identity_layout(4)) == "4:1"


@pytest.mark.parametrize(
    "result",
    [
        lambda x: zipped_divide(x, (4, 2)),
        lambda x: tiled_divide(x, (4, Layout(3, 2))),
        lambda x: flat_divide(x, (2, 3)),
        lambda x: logical_divide(x, (Layout((2, 2), (1, 4)), None)),
        lambda x: with_shape(x, (4, 12)),
        lambda x: composition(x, Layout((2, 8, 3), (24, 1, 8))),
        lambda x: coalesce(x),
    ],
)
def test_an_operation_on_the_identity_names_the_elements_of_the_same_on_a_tensor(result: Any) -> None:
    tensor = Layout((8, 6), (7, 100))
    coordinates, offsets = result(make_identity_layout((8, 6))), result(tensor)
    assert coordinates.shape == offsets.shape
    assert [tensor(coordinates(i)) for i in range(offsets.size)] == offsets.offsets().tolist()
    assert moved(coordinates) == [along(coordinates(i)) for i in range(coordinates.size)]
    assert composition(tensor, coordinates).offsets().tolist() == offsets.offsets().tolist()


def test_products_repeat_along_the_axis_of_their_mode() -> None:
    block = Layout.parse("(4,4):(1@0,1@1)")
    assert str(logical_product(block, (2, 3))) == "((4,2),(4,3)):((1@0,4@0),(1@1,4@1))"
    assert str(zipped_product(block, (2, Layout(3, 2)))) == "((4,4),(2,3)):((1@0,1@1),(4@0,8@1))"
    assert str(complement(Layout.parse("4:2@1"), 24)) == "(2,3):(1@1,8@1)"


def test_a_step_along_several_axes_prints_as_a_sum() -> None:
    diagonal = composition(make_identity_layout((4, 4)), Layout(4, 5))
    assert str(diagonal) == "4:1@0+1@1"
    assert [diagonal(i) for i in range(4)] == [(0, 0), (1, 1), (2, 2), (3, 3)]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 3), st.sampled_from([(0,), (1, 0), (1, 1)])), min_size=1))
def test_collisions_are_those_of_the_coordinates(modes: list[tuple[int, int, tuple[int, ...]]]) -> None:
    modes = modes[:4]
    layout = Layout(tuple(n for n, _, _ in modes), tuple(ScaledBasis(d, *path) for _, d, path in modes))
    where = moved(layout)
    first = next((i for i in range(layout.size) if where[i] in where[:i]), None)
    assert first_collision(layout) == (None if first is None else (where.index(where[first]), first))
    assert is_injective(layout) is (first is None)


def test_covers_of_a_tile() -> None:
    half = Layout.parse("(4,2):(1@0,1@1)")
    assert str(covers_exactly_once(half, (4, 4))) == "coordinate (0,2) of (4,4) is owned by nobody"
    assert str(index_layout(half, (4, 4))) == "(4,2):(1,4)"
    for tile, what in (((8,), "1@1 for the tile"), (8, "1@0 for the tile")):
        with pytest.raises(LayoutError) as raised:
            covers_exactly_once(half, tile)
        assert what in str(raised.value.got)
    with pytest.raises(LayoutError, match="stays inside") as raised:
        index_layout(half, (3, 4))
    assert "3 along 1@0" in str(raised.value.got)
    with pytest.raises(LayoutError, match="stays inside"):
        index_layout(Layout.parse("4:-1@0"), (4, 4))


def test_a_cover_names_the_first_coordinate_outside_its_tile() -> None:
    cover = covers_exactly_once(Layout.parse("((4,2),2):((1@0,1@1),2@1)"), (4, 3))
    assert not cover.ok and cover.coordinate is None and cover.outside == (0, 3)
    assert str(cover) == "coordinate (0,3), outside (4,3), is owned 1 time(s), by ((0,1),1)"
    backward = covers_exactly_once(Layout.parse("(5,2):(-1@0,0)"), (1, 1, 1))
    assert backward.outside == (-1, 0, 0) and backward.coordinate == (0, 0, 0)
    assert str(backward) == "coordinate (0,0,0) of (1,1,1) is owned 2 time(s), by (0,0) and (0,1)"
    assert covers_exactly_once(Layout.parse("(2,(2,3)):(1@0,(1@0@1,1@1@1))"), (2, (2, 2))).outside == (0, (0, 2))


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(-1, 4), st.sampled_from([(0,), (1, 0), (1, 1)])), min_size=1),
    st.tuples(st.integers(1, 4), st.tuples(st.integers(1, 3), st.integers(1, 3))),
)
def test_a_cover_by_a_coordinate_layout_is_counted_by_hand(
    modes: list[tuple[int, int, tuple[int, ...]]], tile: tuple[int, tuple[int, int]]
) -> None:
    modes = modes[:4]
    layout = Layout(tuple(n for n, _, _ in modes), tuple(ScaledBasis(d, *path) for _, d, path in modes))
    where = moved(layout)
    elements = [along(idx2crd(i, tile)) for i in range(Layout(tile).size)]
    bad = next((i for i, element in enumerate(elements) if where.count(element) != 1), None)
    stray = next((i for i, point in enumerate(where) if point not in elements), None)
    cover = covers_exactly_once(layout, tile)
    assert cover.ok is (bad is None and stray is None)
    assert cover.coordinate == (None if bad is None else idx2crd(bad, tile))
    assert (None if cover.outside is None else along(cover.outside)) == (None if stray is None else where[stray])
    if cover.outside is not None:
        assert isinstance(cover.outside, tuple) and len(cover.outside) == 2
    if bad is not None or stray is not None:
        blamed = elements[bad] if bad is not None else where[stray or 0]
        owners = [i for i, point in enumerate(where) if point == blamed]
        assert cover.count == len(owners) and list(cover.owners) == owners[:4]
        assert [idx2crd(i, layout.shape) for i in owners[:4]] == list(cover.owner_coordinates)


def test_a_step_along_several_axes_covers_too() -> None:
    diagonal = composition(make_identity_layout((4, 4)), Layout(4, 5))
    assert str(covers_exactly_once(diagonal, (4, 4))) == "coordinate (1,0) of (4,4) is owned by nobody"


IDENTITY = make_identity_layout((4, 4))


@pytest.mark.parametrize(
    "operation",
    [
        lambda: right_inverse(IDENTITY),
        lambda: right_inverse(Layout.parse("4:1@0")),
        lambda: left_inverse(IDENTITY),
        lambda: complement(IDENTITY, 32),
        lambda: IDENTITY.offsets(),
        lambda: IDENTITY.cosize,
        lambda: upcast(IDENTITY, 2),
        lambda: ComposedLayout(Swizzle(1, 0, 2), 0, IDENTITY)(3),
        lambda: ComposedLayout(Layout((4, 4)), 1, IDENTITY)(3),
        lambda: composition(Layout((4, 4)), Layout.parse("(2,2):(1@0,1)")),
        lambda: covers_exactly_once(Layout.parse("(2,2):(1@0,1)"), (2, 2)),
        lambda: covers_exactly_once(Layout.parse("(2,2):(1@0,1@0@0)"), ((2, 2), 2)),
        lambda: composition(Layout((4, 4)), Layout.parse("2:1@2")),
        lambda: composition(Layout((4, 4)), Layout.parse("2:1@0@0")),
        lambda: Layout((4, 4), (ScaledBasis(1, 0), ScaledBasis(1, 0, 1)))(5),
        lambda: ScaledBasis(1),
        lambda: ScaledBasis(1, -1),
        lambda: ScaledBasis(1, 0) + 3,
        lambda: ScaledBasis(1, 0) * ScaledBasis(1, 0),
        lambda: Layout.parse("4@0:1"),
        lambda: cute_type(Layout(4, ScaledBasis(1, 0) + ScaledBasis(1, 1))),
    ],
)
def test_what_needs_integers_or_makes_no_coordinate_is_refused(operation: Any) -> None:
    with pytest.raises(LayoutError) as raised:
        operation()
    assert raised.value.rule and raised.value.got


def test_a_swizzle_or_a_layout_after_a_coordinate_layout() -> None:
    tensor = Layout((4, 4), (1, 100))
    assert [ComposedLayout(tensor, 0, IDENTITY)(i) for i in range(16)] == tensor.offsets().tolist()
    assert max_vector(IDENTITY) == 1


def test_vectors_add_scale_and_compare() -> None:
    x, y = ScaledBasis(2, 0), ScaledBasis(3, 1, 1)
    assert (x + y * 2).coordinate() == (2, (0, 6))
    assert x + x == ScaledBasis(4, 0) and -x == ScaledBasis(-2, 0) and x + 0 is x
    assert x * 0 == 0 and x != 2 and x != y and hash(x * 0 + y) == hash(y)
    assert str(parse("(2,2):(-1@0,2@1@0)")) == "(2,2):(-1@0,2@1@0)"
