"""Divides and products: cutting a layout into tiles, and laying copies of a tile out.

Source: CUTLASS ``media/docs/cpp/cute/02_layout_algebra.md``; ``include/cute/layout.hpp``.
"""

from __future__ import annotations

from layoutgen.algebra.layout import Layout, make_layout
from layoutgen.algebra.operations import Tiler, by_mode, coalesce, complement, composition
from layoutgen.errors import LayoutError


def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """Cut into (tile, rest): composition(layout, (tiler, complement(tiler, shape of coalesced layout))).

    Domain: (coordinate in the tile, which tile). Codomain: that of ``layout``. With a tuple of tilers each mode is cut,
    giving ((tile0,rest0),(tile1,rest1),..); None leaves its mode alone, and so do modes past the tuple. A tile that
    doesn't divide makes the last one overhang (predicate it).

    Post: R(t, r) == layout(tiler(t) + complement(r)).

    Raises:
        LayoutError: as for composition and complement, such as a tile that runs across modes that don't merge.

    >>> print(logical_divide(Layout.parse("(4,2,3):(2,1,8)"), Layout.parse("4:2")))
    ((2,2),(2,3)):((4,1),(2,8))
    >>> print(logical_divide(Layout.parse("(10,6):(6,1)"), (4, 4)))
    ((4,3),(4,2)):((6,24),(1,4))
    """
    if isinstance(tiler, tuple):
        return make_layout(*by_mode(logical_divide, layout, tiler), *list(layout)[len(tiler) :])
    if tiler is None:
        return layout
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    return composition(layout, make_layout(tile, complement(tile, coalesce(layout).shape)))


def zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    """logical_divide regrouped as ((tile0,tile1,..),(rest0,rest1,..)).

    Domain: (coordinate in the tile, coordinate among the tiles). Codomain: that of ``layout``.

    Post: size(R[0]) is the size of a tile; R((t0,t1),(r0,r1)) == logical_divide(..)((t0,r0),(t1,r1)).

    Raises:
        LayoutError: as for logical_divide, or None in the tiler: an uncut mode has no tile to gather.

    >>> print(zipped_divide(Layout.parse("(12,32):(1,12)"), (4, 8)))
    ((4,8),(3,4)):((1,12),(4,96))
    """
    return make_layout(*_unzip(logical_divide(layout, tiler), tiler))


def _unzip(pairs: Layout, tiler: Tiler) -> tuple[Layout, Layout]:
    """Gather the first and second halves of the pairs that stand where ``tiler`` has its leaves."""
    if isinstance(tiler, tuple):
        halves = [_unzip(pairs[mode], entry) for mode, entry in enumerate(tiler)]
        firsts = make_layout(*(first for first, _ in halves))
        return firsts, make_layout(*(second for _, second in halves), *list(pairs)[len(tiler) :])
    if tiler is None:
        raise LayoutError(
            "a zipped result gathers tile and rest of every mode the tiler names",
            got="None, which leaves its mode whole",
            allowed="a layout or an int for each mode",
            fix="use the logical form, or give 1 to tile that mode by single elements",
        )
    return pairs[0], pairs[1]
