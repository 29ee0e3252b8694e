"""Coordinate layouts: those whose strides are scaled basis vectors, and what they cover of a tile.

Source: CUTLASS ``media/docs/cpp/cute/0z_tma_tensors.md``; ``include/cute/layout.hpp``, make_identity_layout.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

from layoutgen.algebra.basis import Path, ScaledBasis
from layoutgen.algebra.compose import composition
from layoutgen.algebra.int_tuple import IntTuple, to_text
from layoutgen.algebra.layout import Layout, Offsets, get, trusted
from layoutgen.errors import LayoutError


def make_identity_layout(shape: IntTuple) -> Layout:
    """The layout that maps each coordinate of ``shape`` to itself.

    Domain and codomain: the coordinates of ``shape``; of an int shape, its indices.

    Post: R(c) == c for every coordinate c that nests like ``shape``.

    Raises:
        LayoutError: ``shape`` is no shape.

    >>> layout = make_identity_layout((4, (2, 3)))
    >>> print(layout, layout(1, (0, 2)), layout(9))
    (4,(2,3)):(1@0,(1@0@1,1@1@1)) (1, (0, 2)) (1, (0, 1))
    """
    return Layout(shape, _units(shape, ()))


def _units(shape: IntTuple, path: Path) -> Any:
    if isinstance(shape, tuple):
        return tuple([_units(mode, (*path, axis)) for axis, mode in enumerate(shape)])
    return ScaledBasis(1, *path) if path else 1


def is_coordinate_layout(layout: Layout) -> bool:
    """Whether some stride is a scaled basis vector, so that offsets are coordinates.

    >>> is_coordinate_layout(Layout.parse("(4,4):(1@0,1@1)")), is_coordinate_layout(Layout.parse("(4,4):(1,4)"))
    (True, False)
    """
    return any(isinstance(d, ScaledBasis) for d in layout.flat_stride)


def index_layout(layout: Layout, tile: IntTuple) -> Layout:
    """A coordinate layout into ``tile`` as the layout of colexicographic indices of the same elements.

    Domain: that of ``layout``. Codomain: 0 .. size(tile) - 1.

    Post: R(i) is the index in ``tile`` of the coordinate layout(i).

    Raises:
        LayoutError: the layout leaves the tile along some axis, or has an axis that the tile lacks.

    >>> print(index_layout(Layout.parse("(2,(4,2)):(2@1,(1@0,1@1))"), (4, 4)))
    (2,(4,2)):(8,(1,4))
    """
    for path, steps in _by_axis(layout).items():
        reach = [(n - 1) * d for n, d in zip(layout.flat_shape, steps, strict=True)]
        low, high = sum(d for d in reach if d < 0), sum(d for d in reach if d > 0)
        extent = _extent(tile, path)
        if low < 0 or high >= extent:
            raise LayoutError(
                "a coordinate layout stays inside its tile along every axis",
                got=f"{low if low < 0 else high} along {ScaledBasis(1, *path)} of {to_text(tile)} in {layout}",
                allowed=f"0 .. {extent - 1}",
            )
    return composition(Layout(tile), layout)


def tile_indices(layout: Layout, tile: IntTuple) -> Offsets:
    """For each index of a coordinate layout, the index in ``tile`` of its coordinate, as int64 of shape (size,).

    A coordinate outside the tile has a negative number, which it shares with no other coordinate.

    Raises:
        LayoutError: the layout has an axis that the tile lacks, or more than MOST_OFFSETS elements.

    >>> tile_indices(Layout.parse("(3,2):(1@1,2@0)"), (4, 2)).tolist()
    [0, 4, -3, 2, 6, -9]
    """
    indices = np.zeros(1, dtype=np.int64)
    inside = np.ones(1, dtype=np.bool_)
    for path, steps in _by_axis(layout).items():
        extent = _extent(tile, path)
        moved = trusted(layout.shape, layout.flat_shape, steps).offsets()
        inside = inside & (moved >= 0) & (moved < extent)
        indices = indices + get(Layout(tile), *path).at(moved)
    if not inside.all():
        box = in_a_box(layout).offsets()
        indices = np.where(inside, indices, box.min() - 1 - box)
    return indices


def coordinate_in(tile: IntTuple, coordinate: IntTuple) -> IntTuple:
    """The coordinate with 0 along the last axes of ``tile``, which it may leave out.

    >>> coordinate_in((4, (2, 3), 5), (7, (1,)))
    (7, (1, 0), 0)
    """
    if not isinstance(tile, tuple) or not isinstance(coordinate, tuple):
        return coordinate
    return tuple(map(coordinate_in, tile, coordinate + (0,) * (len(tile) - len(coordinate))))


def _by_axis(layout: Layout) -> dict[Path, tuple[int, ...]]:
    """For each axis how far each leaf moves along it."""
    terms = list(map(dict, _terms(layout)))
    paths = [path for vector in terms for path in vector]
    ScaledBasis.of((path, 0) for path in paths)  # no axis inside another, for a number along both is no coordinate
    if any(not vector and d != 0 for vector, d in zip(terms, layout.flat_stride, strict=True)):
        raise LayoutError("the strides of a coordinate layout are all coordinates", got=str(layout))
    return {path: tuple([vector.get(path, 0) for vector in terms]) for path in dict.fromkeys(paths)}


def _terms(layout: Layout) -> list[tuple[tuple[Path, int], ...]]:
    flat_stride: tuple[Any, ...] = layout.flat_stride
    return [d.terms if isinstance(d, ScaledBasis) else () for d in flat_stride]


def _extent(tile: IntTuple, path: Path) -> int:
    mode: IntTuple = tile
    for axis in path:
        if not isinstance(mode, tuple) or axis >= len(mode):
            raise LayoutError(
                "every axis of a coordinate layout is one of its tile",
                got=f"{ScaledBasis(1, *path)} for the tile {to_text(tile)}",
            )
        mode = mode[axis]
    return Layout(mode).size


def in_a_box(layout: Layout) -> Layout:
    """A layout with the same collisions and integer strides, each axis at a place of its own.

    A layout that has integer strides stays as it is.

    >>> print(in_a_box(Layout.parse("(4,4,2):(1@0,1@1,1@0)")))
    (4,4,2):(1,5,1)
    """
    if not is_coordinate_layout(layout):
        return layout
    terms = _terms(layout)
    spans: dict[Path, int] = {}
    for n, vector in zip(layout.flat_shape, terms):
        for path, step in vector:
            spans[path] = spans.get(path, 0) + (n - 1) * abs(step)
    places = dict(zip(spans, accumulate([span + 1 for span in spans.values()], mul, initial=1)))
    strides = [sum([step * places[path] for path, step in vector]) for vector in terms]
    return trusted(layout.shape, layout.flat_shape, tuple(strides))
