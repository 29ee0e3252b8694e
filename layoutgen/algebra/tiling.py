"""Divides and products: cutting a layout into tiles, and laying copies of a tile out.

Source: CUTLASS ``media/docs/cpp/cute/02_layout_algebra.md``; ``include/cute/layout.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from layoutgen.algebra import runtime
from layoutgen.algebra.compose import Tiler, composition
from layoutgen.algebra.int_tuple import IntTuple, flatten
from layoutgen.algebra.inverse import complement
from layoutgen.algebra.layout import Layout, make_layout, trusted
from layoutgen.algebra.named import with_names_of
from layoutgen.algebra.simplify import AnyLayout, by_mode, coalesce
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.algebra.walk import open_ended, walk
from layoutgen.errors import LayoutError

GATHERED = "a zipped result gathers tile and rest of every mode the tiler names"
Split: TypeAlias = Callable[[Layout, "Layout | int"], Layout]


def logical_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
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
    if isinstance(layout, ComposedLayout):
        return layout.map_inner(lambda inner: logical_divide(inner, tiler))
    return _by_leaf(_divide, layout, tiler)


def _divide(layout: Layout, tiler: Layout | int) -> Layout:
    """(tile, rest) by one tiler."""
    if type(tiler) is not int or tiler < 1 or not layout.flat_shape or layout.flat_shape[-1] == 1:
        tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
        rest = complement(tile, coalesce(layout).shape)
        return composition(layout, make_layout(tile, rest))
    # Runs of ``tiler`` elements, which is what most divides cut: the same with nothing to look up.
    if len(layout.flat_shape) == 1:
        n, d = layout.flat_shape[0], layout.flat_stride[0]
        cut = tiler, runtime.ceil_div(n, tiler)
        return trusted(cut, cut, (d if tiler != 1 else 0, d * tiler if cut[1] != 1 else 0))
    modes = open_ended(layout)
    count, left = 1, tiler
    for extent in modes[0]:
        count *= runtime.ceil_div(extent, left)
        left = runtime.ceil_div(left, extent)
    cut = tiler, count
    return walk(layout, modes, cut, cut, (1 if tiler != 1 else 0, tiler if count != 1 else 0))


def zipped_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """logical_divide regrouped as ((tile0,tile1,..),(rest0,rest1,..)).

    Domain: (coordinate in the tile, coordinate among the tiles). Codomain: that of ``layout``.

    Post: size(R[0]) is the size of a tile; R((t0,t1),(r0,r1)) == logical_divide(..)((t0,r0),(t1,r1)).

    Raises:
        LayoutError: as for logical_divide, or None in the tiler: an uncut mode has no tile to gather.

    >>> print(zipped_divide(Layout.parse("(12,32):(1,12)"), (4, 8)))
    ((4,8),(3,4)):((1,12),(4,96))
    """
    if isinstance(layout, ComposedLayout):
        return layout.map_inner(lambda inner: zipped_divide(inner, tiler))
    return _zipped(_divide, layout, tiler)


def tiled_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """zipped_divide with the rest unpacked: ((tile0,tile1,..),rest0,rest1,..).

    Raises:
        LayoutError: as for zipped_divide.

    >>> print(tiled_divide(Layout.parse("(12,32):(1,12)"), (4, 8)))
    ((4,8),3,4):((1,12),4,96)
    """
    if isinstance(layout, ComposedLayout):
        return layout.map_inner(lambda inner: tiled_divide(inner, tiler))
    tile, rest = zipped_divide(layout, tiler)
    return make_layout(tile, *_unpacked(rest))


def flat_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """zipped_divide with tile and rest unpacked: (tile0,tile1,..,rest0,rest1,..).

    Raises:
        LayoutError: as for zipped_divide.

    >>> print(flat_divide(Layout.parse("(12,32):(1,12)"), (4, 8)))
    (4,8,3,4):(1,12,4,96)
    """
    if isinstance(layout, ComposedLayout):
        return layout.map_inner(lambda inner: flat_divide(inner, tiler))
    tile, rest = zipped_divide(layout, tiler)
    return make_layout(*_unpacked(tile), *_unpacked(rest))


def logical_product(block: AnyLayout, tiler: Tiler) -> AnyLayout:
    """Repeat ``block`` as ``tiler`` says: (block, composition(complement(block, size * cosize(tiler)), tiler)).

    Domain: (coordinate in the block, which repetition). Codomain: offsets. With a tuple of tilers each mode is
    repeated; None leaves its mode alone, and so do modes past the tuple.

    Post: R[0] == block; each repetition is disjoint from the others if block and tiler are injective.

    Raises:
        LayoutError: as for composition and complement, such as a block whose gaps the repetitions don't fill evenly.

    >>> print(logical_product(Layout.parse("(2,2):(4,1)"), Layout.parse("6:1")))
    ((2,2),(2,3)):((4,1),(2,8))
    """
    if isinstance(block, ComposedLayout):
        return block.map_inner(lambda inner: logical_product(inner, tiler))
    return _by_leaf(_repeat, block, tiler)


def _repeat(block: Layout, tiler: Layout | int) -> Layout:
    """(block, repetition) by one tiler."""
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    return make_layout(block, composition(complement(block, block.size * tile.cosize), tile))


def zipped_product(block: AnyLayout, tiler: Tiler) -> AnyLayout:
    """logical_product regrouped as ((block0,block1,..),(repetition0,repetition1,..)).

    Raises:
        LayoutError: as for logical_product, or None in the tiler.

    >>> print(zipped_product(Layout.parse("(2,5):(5,1)"), (3, 4)))
    ((2,5),(3,4)):((5,1),(1,5))
    """
    if isinstance(block, ComposedLayout):
        return block.map_inner(lambda inner: zipped_product(inner, tiler))
    return _zipped(_repeat, block, tiler)


def tiled_product(block: AnyLayout, tiler: Tiler) -> AnyLayout:
    """zipped_product with the repetitions unpacked: (block,repetition0,repetition1,..).

    Raises:
        LayoutError: as for zipped_product.

    >>> print(tiled_product(Layout.parse("(2,5):(5,1)"), Layout.parse("(3,4):(1,3)")))
    ((2,5),3,4):((5,1),10,30)
    """
    if isinstance(block, ComposedLayout):
        return block.map_inner(lambda inner: tiled_product(inner, tiler))
    tile, repetitions = zipped_product(block, tiler)
    return make_layout(tile, *_unpacked(repetitions))


def flat_product(block: AnyLayout, tiler: Tiler) -> AnyLayout:
    """zipped_product with both halves unpacked: (block0,block1,..,repetition0,repetition1,..).

    Raises:
        LayoutError: as for zipped_product.

    >>> print(flat_product(Layout.parse("(2,5):(5,1)"), Layout.parse("(3,4):(1,3)")))
    (2,5,3,4):(5,1,10,30)
    """
    if isinstance(block, ComposedLayout):
        return block.map_inner(lambda inner: flat_product(inner, tiler))
    tile, repetitions = zipped_product(block, tiler)
    return make_layout(*_unpacked(tile), *_unpacked(repetitions))


def blocked_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    """Lay whole blocks side by side: mode k is (block mode k, tiler mode k), the block running fastest.

    Domain: mode k counts the block's mode k, then its repetitions. Codomain: offsets.

    Post: rank(R) == max of the ranks (the lower one gets modes 1:0); offsets as of logical_product.

    Raises:
        LayoutError: as for logical_product.

    >>> print(blocked_product(Layout.parse("(2,5):(5,1)"), Layout.parse("(3,4):(1,3)")))
    ((2,3),(5,4)):((5,10),(1,30))
    """
    if isinstance(block, ComposedLayout):
        return block.map_inner(lambda inner: blocked_product(inner, tiler))
    return make_layout(*(make_layout(inner, outer) for inner, outer in _paired(block, tiler)))


def raked_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    """Interleave the blocks: mode k is (tiler mode k, block mode k), the repetitions running fastest.

    Domain: mode k counts the repetitions, then the block's mode k. Codomain: offsets.

    Post: rank(R) == max of the ranks (the lower one gets modes 1:0); offsets as of logical_product.

    Raises:
        LayoutError: as for logical_product.

    >>> print(raked_product(Layout.parse("(2,5):(5,1)"), Layout.parse("(3,4):(1,3)")))
    ((3,2),(4,5)):((10,5),(30,1))
    """
    if isinstance(block, ComposedLayout):
        return block.map_inner(lambda inner: raked_product(inner, tiler))
    return make_layout(*(make_layout(outer, inner) for inner, outer in _paired(block, tiler)))


def _paired(block: Layout, tiler: Layout) -> list[tuple[Layout, Layout]]:
    """(mode of the block, its repetition), mode by mode."""
    rank = max(block.rank, tiler.rank)
    inner, outer = logical_product(_padded(block, rank), _padded(tiler, rank))
    # The one mode of an int may have come out as several.
    return list(zip(inner, outer if isinstance(tiler.shape, tuple) or rank > 1 else [outer], strict=True))


def _padded(layout: Layout, rank: int) -> Layout:
    """With modes 1:0 appended up to ``rank``."""
    if layout.rank == rank:
        return layout
    return make_layout(*layout, *[Layout(1)] * (rank - layout.rank))


def _unpacked(layout: Layout) -> list[Layout]:
    """Its modes; a single mode stays as it is, as in CuTe."""
    return [layout] if layout.rank == 1 else list(layout)


def _by_leaf(split: Split, layout: Layout, tiler: Tiler) -> Layout:
    """What ``split`` gives for each leaf of ``tiler``, where that leaf stands; None leaves its mode whole."""
    if tiler is None:
        return layout
    if not isinstance(tiler, tuple):
        return split(layout, tiler)
    modes = by_mode(lambda mode, entry: _by_leaf(split, mode, entry), layout, tiler)
    return with_names_of(layout, make_layout(*modes))


def _zipped(split: Split, layout: Layout, tiler: Tiler) -> Layout:
    """The pairs that ``split`` gives for each leaf of ``tiler``, gathered as (firsts, seconds and uncut modes)."""
    if tiler is None:
        raise LayoutError(
            GATHERED,
            got="None, which leaves its mode whole",
            allowed="a layout or an int for each mode",
            fix="use the logical form, or give 1 to tile that mode by single elements",
        )
    if not isinstance(tiler, tuple):
        return split(layout, tiler)
    modes = by_mode(lambda mode, entry: _zipped(split, mode, entry), layout, tiler)
    firsts: list[IntTuple] = []
    seconds: list[IntTuple] = []
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    rest_shape: tuple[int, ...] = ()
    rest_stride: tuple[int, ...] = ()
    for pair in modes[: len(tiler)]:
        first, second = pair.shape  # type: ignore[misc]
        firsts.append(first)
        seconds.append(second)
        cut = len(flatten(first)) if isinstance(first, tuple) else 1
        shape += pair.flat_shape[:cut]
        stride += pair.flat_stride[:cut]
        rest_shape += pair.flat_shape[cut:]
        rest_stride += pair.flat_stride[cut:]
    for mode in modes[len(tiler) :]:
        seconds.append(mode.shape)
        rest_shape += mode.flat_shape
        rest_stride += mode.flat_stride
    return trusted((tuple(firsts), tuple(seconds)), shape + rest_shape, stride + rest_stride)
