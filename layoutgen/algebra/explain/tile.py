"""How divides and products come about, and what they show a block or a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from layoutgen.algebra.compose import Tiler
from layoutgen.algebra.explain.claims import Disjoint, Same, SameOffsets, SideBySide, Slice
from layoutgen.algebra.explain.steps import Derivation, Step, by_mode, derives, explain, inside
from layoutgen.algebra.int_tuple import product, to_text
from layoutgen.algebra.layout import Layout, make_layout
from layoutgen.algebra.simplify import coalesce
from layoutgen.algebra.slicing import (
    Coordinate,
    all_open,
    coordinate_of,
    coordinate_text,
    dice_tuple,
    filled_up,
    local_partition,
    local_tile,
    slice_and_offset,
)
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.algebra.tiling import (
    GATHERED,
    blocked_product,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from layoutgen.errors import LayoutError


@derives(logical_divide)
def _logical_divide(result: Any, layout: Any, tiler: Tiler) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        yield from inside("logical_divide", result, layout, tiler)
    elif tiler is None:
        yield Step("_ leaves the layout whole", result, Same((layout,)))
    elif isinstance(tiler, tuple):
        yield from by_mode("logical_divide", result, layout, tiler)
    else:
        tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
        rest = explain("complement", tile, coalesce(layout).shape)
        yield Step("where the tiles start: what the tile leaves out", rest.result, Disjoint(tile), rest)
        assert isinstance(rest.result, Layout)
        both = make_layout(tile, rest.result)
        inner = explain("composition", layout, both)
        yield Step("read the layout through (tile, rest)", result, Same((layout, both)), inner)


@derives(logical_product)
def _logical_product(result: Any, block: Any, tiler: Tiler) -> Iterator[Step]:
    if isinstance(block, ComposedLayout):
        yield from inside("logical_product", result, block, tiler)
    elif tiler is None:
        yield Step("_ leaves the block alone", result, Same((block,)))
    elif isinstance(tiler, tuple):
        yield from by_mode("logical_product", result, block, tiler)
    else:
        tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
        room = block.size * tile.cosize
        gaps = explain("complement", block, room)
        text = (
            f"where copies can start, for as many as the tiler reaches: {block.size} * {tile.cosize} == {room} offsets"
        )
        yield Step(text, gaps.result, Disjoint(block), gaps)
        assert isinstance(gaps.result, Layout)
        copies = explain("composition", gaps.result, tile)
        yield Step("which of these places a copy takes, and when: the tiler says", copies.result, None, copies)
        assert isinstance(copies.result, Layout)
        yield Step("the block, and its copies", result, SideBySide((block, copies.result)))


def _regrouped(zip_up: Callable[..., Any], logical: str, first: str, how: str) -> Derivation:
    """A divide or product as its logical form, its modes grouped anew; ``zip_up`` refuses what none of them takes."""

    def derivation(result: Any, layout: Any, tiler: Tiler) -> Iterator[Step]:
        if result is None and _rule(zip_up, layout, tiler) == GATHERED:
            yield Step(f"{how}, though _ cuts no pair to take apart", None)
            return
        inner = explain(logical, layout, tiler)
        yield Step(first, inner.result, None, inner)
        assert isinstance(inner.result, (Layout, ComposedLayout))
        yield Step(how, result, SameOffsets(inner.result))

    return derivation


def _rule(operation: Callable[..., Any], *arguments: Any) -> str | None:
    """The rule by which the operation refuses its arguments."""
    try:
        operation(*arguments)
    except LayoutError as error:
        return error.rule
    return None


_CUT = zipped_divide, "logical_divide", "cut each mode into (tile, rest)"
derives(zipped_divide)(_regrouped(*_CUT, "tiles first, rests second: ((tile0,tile1,..),(rest0,rest1,..))"))
derives(tiled_divide)(_regrouped(*_CUT, "tiles first, then each rest as a mode: ((tile0,tile1,..),rest0,rest1,..)"))
derives(flat_divide)(_regrouped(*_CUT, "tiles and rests as modes of their own: (tile0,tile1,..,rest0,rest1,..)"))
_COPIED = zipped_product, "logical_product", "give each mode its copies: (block, copies)"
derives(zipped_product)(_regrouped(*_COPIED, "blocks first, copies second: ((block0,block1,..),(copies0,copies1,..))"))
derives(tiled_product)(
    _regrouped(*_COPIED, "the block, then its copies as modes: ((block0,block1,..),copies0,copies1,..)")
)
derives(flat_product)(
    _regrouped(*_COPIED, "blocks and copies as modes of their own: (block0,block1,..,copies0,copies1,..)")
)


def _paired(name: str, how: str, raked: bool) -> Derivation:
    """A product that pairs mode k of the block with mode k of the tiler."""

    def derivation(result: Any, block: Any, tiler: Layout) -> Iterator[Step]:
        if isinstance(block, ComposedLayout):
            yield from inside(name, result, block, tiler)
            return
        rank = max(block.rank, tiler.rank)
        padded = []
        for what, layout in (("block", block), ("tiler", tiler)):
            whole = layout if layout.rank == rank else make_layout(*layout, *[Layout(1)] * (rank - layout.rank))
            padded.append(whole)
            if whole is not layout:
                yield Step(f"modes of one element, so that the {what} has {rank} modes", whole, Same((layout,)))
        inner = explain("logical_product", *padded)
        yield Step("the block, and its copies", inner.result, None, inner)
        assert isinstance(inner.result, Layout)
        first, copies = inner.result
        pairs = zip(first, copies if isinstance(padded[1].shape, tuple) else [copies], strict=True)
        yield Step(how, result, SideBySide(tuple(make_layout(*(pair[::-1] if raked else pair)) for pair in pairs)))

    return derivation


derives(blocked_product)(
    _paired("blocked_product", "mode k: that of the block runs faster, its copies follow", raked=False)
)
derives(raked_product)(_paired("raked_product", "mode k: the copies run faster, so that blocks interleave", raked=True))


# Slices of divides


@derives(slice_and_offset)
def _slice_and_offset(result: Any, layout: Any, coordinate: Coordinate) -> Iterator[Step]:
    text = f"start at {coordinate_text(coordinate)}, with 0 for each _, and keep the modes at _"
    yield Step(text, result, Slice(layout, coordinate))


@derives(local_tile)
def _local_tile(
    result: Any, layout: Any, tiler: Any, coordinate: Any, projection: tuple[Coordinate, ...] | None = None
) -> Iterator[Step]:
    text = "cut into the tile and the rest"
    if projection is not None:
        tiler, coordinate = dice_tuple(tiler, projection), dice_tuple(coordinate, projection)
        text += f", for the modes at which {coordinate_text(projection)} isn't _"
    inner = explain("zipped_divide", layout, tiler)
    yield Step(text, inner.result, None, inner)
    divided = inner.result
    assert isinstance(divided, (Layout, ComposedLayout))
    told = f"keep all of a tile, at {coordinate_text(coordinate)} of the rest"
    try:
        point = (all_open(divided, 0), filled_up(coordinate, divided, 1))
    except LayoutError:
        yield Step(told, None)
        return
    yield Step(told, result, Slice(divided, point))


@derives(local_partition)
def _local_partition(
    result: Any, layout: Any, threads: Layout, index: int, projection: tuple[Coordinate, ...] | None = None
) -> Iterator[Step]:
    try:
        found = coordinate_of(threads, index)
    except LayoutError:
        yield Step(f"find thread {index} in {threads}", None)
        return
    shape = threads.shape if isinstance(threads.shape, tuple) else (threads.shape,)
    tiler: Any = tuple(map(product, shape))
    text = "cut into tiles with one element per thread, and the rest"
    if projection is not None:
        tiler = dice_tuple(tiler, projection)
        text += f", for the modes at which {coordinate_text(projection)} isn't _"
    inner = explain("zipped_divide", layout, tiler)
    yield Step(text, inner.result, None, inner)
    divided = inner.result
    assert isinstance(divided, (Layout, ComposedLayout))
    coordinate: Any = found if isinstance(found, tuple) else (found,)
    if projection is not None:
        coordinate = dice_tuple(coordinate, projection)
    point = (filled_up(coordinate, divided, 0), all_open(divided, 1))
    told = f"thread {index} is at {to_text(found)} of {threads}: its element of each tile, {coordinate_text(point)}"
    yield Step(told, result, Slice(divided, point))
