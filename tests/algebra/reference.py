"""Layouts by their definition, written for reading and not for speed, and strategies that draw them.

Nothing here calls the code under test, except to build a Layout from the shape and stride it has drawn.
"""

from __future__ import annotations

from itertools import product as cartesian

from hypothesis import strategies as st

from layoutgen.algebra import IntTuple, Layout

Leaves = list[tuple[int, int]]


def leaves(shape: IntTuple, stride: IntTuple) -> Leaves:
    """(extent, stride) of every leaf, left to right."""
    if isinstance(shape, tuple):
        assert isinstance(stride, tuple)
        return [leaf for n, d in zip(shape, stride, strict=True) for leaf in leaves(n, d)]
    assert isinstance(stride, int)
    return [(shape, stride)]


def values(layout: Layout) -> list[int]:
    """Offsets of all indices: coordinates in colexicographic order, each times its strides."""
    pairs = leaves(layout.shape, layout.stride)
    coordinates = cartesian(*(range(n) for n, _ in reversed(pairs)))
    return [sum(c * d for c, (_, d) in zip(reversed(point), pairs, strict=True)) for point in coordinates]


def value(layout: Layout, index: int) -> int:
    """Offset of one index, which may lie past the end: the last mode takes what is left. f(-i) is -f(i)."""
    if index < 0:
        return -value(layout, -index)
    pairs = leaves(layout.shape, layout.stride)
    offset = 0
    for n, d in pairs[:-1]:
        offset += index % n * d
        index //= n
    return offset + (index * pairs[-1][1] if pairs else 0)


EXTENTS = (1, 2, 3, 4, 6, 8)
STRIDES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24)
SIGNED = (-4, -2, -1, 0, 1, 2, 3, 4, 8)


def profiles(extents: tuple[int, ...] = EXTENTS, most: int = 3) -> st.SearchStrategy[IntTuple]:
    """Shapes: an int, or nested tuples of at most ``most`` modes each."""
    extent = st.sampled_from(extents)
    flat = st.lists(extent, min_size=1, max_size=most).map(tuple)
    return extent | flat | st.lists(extent | flat, min_size=1, max_size=2).map(tuple)


@st.composite
def layouts(
    draw: st.DrawFn,
    strides: tuple[int, ...] = STRIDES,
    extents: tuple[int, ...] = EXTENTS,
    most: int = 3,
) -> Layout:
    """Layouts of at most 512 elements with strides from a short list, so that they often nest and often overlap."""

    def strided(shape: IntTuple) -> IntTuple:
        return tuple(map(strided, shape)) if isinstance(shape, tuple) else draw(st.sampled_from(strides))

    shape = draw(profiles(extents, most).filter(lambda shape: count(shape) <= 512))
    return Layout(shape, strided(shape))


@st.composite
def compact_layouts(draw: st.DrawFn, extents: tuple[int, ...] = EXTENTS) -> Layout:
    """Bijections onto 0 .. size - 1: a shape whose leaves are contiguous in a random order."""
    shape = draw(profiles(extents).filter(lambda shape: count(shape) <= 512))
    flat = [n for n, _ in leaves(shape, shape)]
    steps = [0] * len(flat)
    place = 1
    for position in draw(st.permutations(range(len(flat)))):
        steps[position] = place
        place *= flat[position]
    stream = iter(steps)

    def strided(shape: IntTuple) -> IntTuple:
        return tuple(map(strided, shape)) if isinstance(shape, tuple) else next(stream)

    return Layout(shape, strided(shape))


def count(shape: IntTuple) -> int:
    """The number of coordinates."""
    result = 1
    for n, _ in leaves(shape, shape):
        result *= n
    return result


def refines(shape: IntTuple, other: IntTuple) -> bool:
    """Whether ``other`` splits the modes of ``shape`` further and has the same sizes."""
    if isinstance(shape, tuple):
        return isinstance(other, tuple) and len(shape) == len(other) and all(map(refines, shape, other))
    return shape == count(other) and other != ()
