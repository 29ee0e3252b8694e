"""Compose the levels of the C tile: block -> warps -> warp tile -> lanes -> values, one mode (m, then n) at a time.

Each mode is divided the same way. With W the warp tile's positions in the block extent, V the values' positions in the
warp tile, and R = complement(V, |W|) what V leaves over, lane l starts at W(R(l)) and value v lies W(V(v)) beyond it;
what of R no lane takes repeats as further values, and so does what the warps leave of the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from layoutgen.algebra import Layout, coalesce, complement, composition, make_layout, right_inverse
from layoutgen.errors import LayoutError, PlanError, Where
from layoutgen.plan.model import CTile, ThreadMap
from layoutgen.spec import Spec

WARP_SIZE = 32


@contextmanager
def composing(rule: str, where: Where) -> Iterator[None]:
    """Raise a LayoutError from inside as a PlanError: `rule` says which levels of the spec must compose, and where."""
    try:
        yield
    except LayoutError as error:
        got = f"{error.got} ({error.rule})"
        raise PlanError(rule, got=got, allowed=error.allowed, fix=error.fix, where=where) from error


@dataclass(frozen=True, slots=True)
class _ModeTiling:
    """One mode of C: index -> coordinate in the block extent, for warps, lanes and values."""

    warp: Layout
    lane: Layout
    value: Layout


def numbers(layout: Layout, count: int) -> bool:
    """Whether the layout is one-to-one onto 0 .. count - 1.

    A right inverse of full size says so; and a layout that is one-to-one onto a range has one, since its strides,
    sorted, must each be the product of the extents before.
    """
    return right_inverse(layout).size == layout.size == count


def join(*layouts: Layout) -> Layout:
    """One-dimensional layouts -> (i, j, ..) -> the sum of their offsets, coalesced; i runs fastest."""
    return coalesce(make_layout(*layouts))


def leftover(tile: Layout, extent: int) -> Layout:
    """What `tile` leaves of [0, extent): position of repetition -> coordinate, increasing.

    A tile that overlaps itself has no complement; it repeats at its own cosize then, so that the coverage check
    can name the coordinate that is owned twice.
    """
    try:
        return coalesce(complement(tile, extent))
    except LayoutError:
        return Layout(max(1, extent // tile.cosize), tile.cosize)


def _take(layout: Layout, count: int, what: str, where: Where) -> tuple[Layout, Layout]:
    """Split a one-dimensional layout into its first `count` positions and the repetitions of them."""
    total = layout.size
    if total % count:
        raise PlanError(
            f"the {what} must divide the positions that the levels inside leave over",
            got=f"{count} over {total} positions",
            allowed=f"a divisor of {total}",
            fix=f"use a divisor of {total} {what}, or change the tile that they repeat",
            where=where,
        )
    with composing(f"the {what} must fall on whole modes of the positions left over ({layout})", where):
        return composition(layout, Layout(count, 1)), composition(layout, Layout(total // count, count))


def require_inside(what: str, layout: Layout, tile: str, extent: int, where: Where) -> None:
    """Raise PlanError unless `layout` stays within [0, extent) and has no more indices than that."""
    if max(layout.cosize, layout.size) > extent:
        raise PlanError(
            f"{what} must lie within the {tile}",
            got=f"{layout}: {layout.size} positions up to {layout.cosize - 1}",
            allowed=f"{extent} positions up to {extent - 1}",
            fix="use smaller extents or strides here, or a larger tile around it",
            where=where,
        )


def warp_tile(spec: Spec, mode: int) -> Layout:
    """Spec -> one mode of the warp tile: index -> coordinate in the block extent; by default a run of its share.

    Raises PlanError where warps do not divide the block extent.
    """
    if spec.tiling.warp is not None:
        return spec.tiling.warp[mode]
    extent, warps = spec.tiling.block[mode], spec.tiling.warps[mode].size
    if extent % warps:
        raise PlanError(
            f"the warps must divide the block tile in {'mn'[mode]}",
            got=f"{warps} warps over {extent}",
            allowed=f"a divisor of {extent}",
            fix=f"use a divisor of {extent} warps in {'mn'[mode]}, or change tiling.block",
            where=spec.where("tiling.warps"),
        )
    return Layout(extent // warps, 1)


def _divide(spec: Spec, mode: int) -> _ModeTiling:
    letter, extent = "mn"[mode], spec.tiling.block[mode]
    tile, values = warp_tile(spec, mode), spec.tiling.values[mode]
    require_inside(f"the warp tile in {letter}", tile, "block tile", extent, spec.where("tiling.warp"))
    require_inside(f"a thread's values in {letter}", values, "warp tile", tile.size, spec.where("tiling.values"))
    warps, lanes = spec.tiling.warps[mode].size, spec.tiling.lanes[mode].size
    warp, warp_repeat = _take(leftover(tile, extent), warps, f"warps in {letter}", spec.where("tiling.warps"))
    lane, lane_repeat = _take(leftover(values, tile.size), lanes, f"lanes in {letter}", spec.where("tiling.lanes"))
    with composing(f"the values must compose with the warp tile in {letter}", spec.where("tiling.values")):
        return _ModeTiling(
            warp=warp,
            lane=join(composition(tile, lane)),
            value=join(composition(tile, values), composition(tile, lane_repeat), warp_repeat),
        )


def compose_tile(spec: Spec) -> CTile:
    """Spec -> CTile.

    Raises PlanError, with the place in the spec, where a level does not fit the one around it.
    """
    m, n = _divide(spec, 0), _divide(spec, 1)
    return CTile(
        block=spec.tiling.block,
        lanes=spec.tiling.lanes,
        warps=spec.tiling.warps,
        lane_mode=(m.lane, n.lane),
        warp_mode=(m.warp, n.warp),
        value_mode=(m.value, n.value),
    )


def map_threads(spec: Spec, tile: CTile) -> ThreadMap:
    """CTile -> thread -> (m, n).

    Raises PlanError where lanes or warps do not number their positions 0, 1, .. once each, or not mode by mode.
    """
    for key, ids, count in (("lanes", tile.lanes, WARP_SIZE), ("warps", tile.warps, tile.warps.size)):
        if not numbers(ids, count):
            raise PlanError(
                f"the {key} must number their positions 0 .. {count - 1}, each once",
                got=ids,
                allowed=f"{count} positions with offsets 0 .. {count - 1}",
                fix="give each mode the stride that the modes inside it fill, as in (8,4):(4,1)",
                where=spec.where(f"tiling.{key}"),
            )

    def along(mode: int) -> Layout:
        def level(key: str, ids: Layout, positions: Layout) -> Layout:
            still = Layout(ids[1 - mode].size, 0)
            rule = f"the {key} must walk whole modes of the positions they take in {'mn'[mode]}"
            with composing(rule, spec.where(f"tiling.{key}")):
                by_position = make_layout(*((positions, still) if mode == 0 else (still, positions)))
                return composition(by_position, right_inverse(ids))

        return make_layout(
            level("lanes", tile.lanes, tile.lane_mode[mode]), level("warps", tile.warps, tile.warp_mode[mode])
        )

    return ThreadMap(tile.lanes.size * tile.warps.size, along(0), along(1))
