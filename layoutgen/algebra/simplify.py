"""Coalesce and filter: the same offsets with fewer modes.

Source: CUTLASS ``media/docs/cpp/cute/02_layout_algebra.md`` and ``include/cute/layout.hpp``; Cecka, arXiv 2603.02298.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from layoutgen.algebra.int_tuple import IntTuple
from layoutgen.algebra.layout import Layout, flat_layout, make_layout
from layoutgen.algebra.named import with_names_of
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.errors import LayoutError

AnyLayout = TypeVar("AnyLayout", Layout, ComposedLayout)
T = TypeVar("T")


def by_mode(operation: Callable[[Layout, T], Layout], layout: Layout, entries: tuple[T, ...]) -> list[Layout]:
    """The modes, ``operation`` applied to each that has an entry, with that entry; the others as they are."""
    modes = list(layout)
    if len(entries) > len(modes):
        raise LayoutError(
            "a tuple works mode by mode, so it has at most as many entries as the layout has modes",
            got=f"{len(entries)} entries for {layout}, which has {layout.rank} mode(s)",
        )
    for mode, entry in enumerate(entries):
        modes[mode] = operation(modes[mode], entry)
    return modes


def coalesce(layout: AnyLayout, profile: IntTuple | None = None) -> AnyLayout:
    """Merge neighbouring modes and drop modes of extent 1.

    Domain -> codomain: those of ``layout``. With a tuple ``profile``, each of its leaves coalesces the mode it stands
    for and keeps it a mode; modes past the profile stay as they are.

    Post: size(R) == size(layout); R(i) == layout(i) for every index; without a profile depth(R) <= 1.

    Raises:
        LayoutError: the profile has more modes than the layout.

    >>> print(coalesce(Layout.parse("(2,(1,6)):(1,(6,2))")))
    12:1
    >>> print(coalesce(Layout.parse("(2,(1,6)):(1,(6,2))"), (1, 1)))
    (2,6):(1,2)
    """
    if isinstance(layout, ComposedLayout):
        return layout.map_inner(lambda inner: coalesce(inner, profile))
    if profile is None or not isinstance(profile, tuple):
        return flat_layout(*merged(layout.flat_shape, layout.flat_stride))
    return with_names_of(layout, make_layout(*by_mode(coalesce, layout, profile)))


def merged(flat_shape: tuple[int, ...], flat_stride: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Extents and strides of the coalesced modes; no modes at all if every extent is 1."""
    shape: list[int] = []
    stride: list[int] = []
    leaves = zip(flat_shape, flat_stride)
    extent = step = 1
    while extent == 1:
        extent, step = next(leaves, (0, 0))
    if not extent:
        return shape, stride
    end = extent * step  # the stride that would continue the mode
    for n, d in leaves:
        if d == end:
            extent *= n
            end *= n
        elif n != 1:
            shape.append(extent)
            stride.append(step)
            extent, step, end = n, d, n * d
    shape.append(extent)
    stride.append(step)
    return shape, stride


def filter_zeros(layout: AnyLayout) -> AnyLayout:
    """Set the extent of every stride-0 mode to 1; the profile stays.

    Post: R has the offsets of ``layout``, each as often as its other modes reach it.

    >>> print(filter_zeros(Layout.parse("(4,(2,3)):(0,(1,2))")))
    (1,(2,3)):(0,(1,2))
    """
    if isinstance(layout, ComposedLayout):
        return layout.map_inner(filter_zeros)

    def kept(n: IntTuple, d: IntTuple) -> IntTuple:
        if isinstance(n, tuple) and isinstance(d, tuple):
            return tuple(map(kept, n, d))
        return n if d else 1

    return Layout(kept(layout.shape, layout.stride), layout.stride)


def filter(layout: AnyLayout) -> AnyLayout:
    """Drop modes of stride 0 and of extent 1, then coalesce.

    Post: the offsets of R are those of ``layout`` as a set; depth(R) <= 1.

    >>> print(filter(Layout.parse("(4,(2,3)):(0,(1,2))")))
    6:1
    """
    return coalesce(filter_zeros(layout))
