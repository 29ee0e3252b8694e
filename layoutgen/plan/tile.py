"""Compose the levels of the C tile: block -> warps -> warp tile -> lanes -> values, one mode (m, then n) at a time.

Each mode is divided the same way. With W the warp tile's positions in the block extent, V the values' positions in the
warp tile, and R = complement(V, |W|) what V leaves over, lane l starts at W(R(l)) and value v lies W(V(v)) beyond it;
what of R no lane takes repeats as further values, and so does what the warps leave of the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from layoutgen.algebra import Layout, coalesce, complement, composition, first_collision, make_layout, right_inverse
from layoutgen.algebra.int_tuple import unflatten
from layoutgen.errors import LayoutError, PlanError, Where
from layoutgen.plan.model import CTile, ThreadMap
from layoutgen.spec import Spec


@contextmanager
def composing(rule: str, where: Where, got: str, fix: str) -> Iterator[None]:
    """Raise a LayoutError from inside as a PlanError in the words of the spec: which levels must compose, and where."""
    try:
        yield
    except LayoutError as error:
        raise PlanError(rule, got=got, allowed="extents that divide each other", fix=fix, where=where) from error


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


def renumbered(layout: Layout) -> Layout:
    """The same shape with strides in the same order, made to number 0, 1, .. without holes or repeats."""
    strides, reached = [0] * len(layout.flat_shape), 1
    for index in sorted(range(len(strides)), key=lambda i: (layout.flat_stride[i], i)):
        strides[index] = reached
        reached *= layout.flat_shape[index]
    return Layout(layout.shape, unflatten(iter(strides), layout.shape))


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


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the spec as messages name it: "the values in m", and the key it stands at."""

    name: str
    where: Where

    def require_inside(self, layout: Layout, tile: str, extent: int) -> None:
        """Raise PlanError unless `layout` stays within [0, extent) and has no more indices than that."""
        if max(layout.cosize, layout.size) > extent:
            raise PlanError(
                f"{self.name} must lie within the {tile}",
                got=f"{layout}: {layout.size} positions up to {layout.cosize - 1}",
                allowed=f"{extent} positions up to {extent - 1}",
                fix=f"reach at most {extent - 1} with at most {extent} positions, or make the {tile} larger",
                where=self.where,
            )


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor of `number` that is at most `limit`; both are at least 1."""
    return next(d for d in range(min(number, limit), 0, -1) if number % d == 0)


def divide(tile: Layout, extent: int, count: int, inner: Level, outer: Level) -> tuple[Layout, Layout]:
    """Split what `tile` leaves over of [0, extent) into the first `count` positions and the repetitions of them.

    inner: the level that `tile` is; outer: the level of which `count` stand side by side.
    Raises PlanError where `count` does not divide the positions left over, or splits a mode of them.
    """
    rest = leftover(tile, extent)
    if rest.size % count:
        if not numbers(make_layout(tile, rest), extent):
            twice = first_collision(tile)
            raise PlanError(
                f"{inner.name} must tile {extent} positions",
                got=f"{tile}, which does not repeat to {extent}"
                if twice is None
                else f"{tile}: {twice[0]} and {twice[1]} are both at {tile(twice[0])}",
                allowed="a layout whose repetitions hold each position once",
                fix=f"use a divisor of {extent}, or strides that step over what smaller strides fill, as (4,2):(1,16)",
                where=inner.where,
            )
        fewer = largest_divisor(rest.size, count)
        raise PlanError(
            f"{outer.name} must divide the positions left over by {inner.name}",
            got=f"{count} over {rest.size}",
            allowed=f"a divisor of {rest.size}",
            fix=f"let {outer.name} be {fewer}" + ("" if fewer == rest.size else f", or another divisor of {rest.size}"),
            where=outer.where,
        )
    rule = f"{outer.name} must take whole modes of the positions left over by {inner.name}"
    with composing(rule, outer.where, f"{count} of {rest}", "use a count that divides its modes, the first one first"):
        return composition(rest, Layout(count, 1)), composition(rest, Layout(rest.size // count, count))


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
    extent = spec.tiling.block[mode]
    tile, values = warp_tile(spec, mode), spec.tiling.values[mode]

    def level(name: str, key: str) -> Level:
        return Level(f"the {name} in {'mn'[mode]}", spec.where(f"tiling.{key}"))

    warp_level, value_level = level("warp tile", "warp"), level("values of a thread", "values")
    warp_level.require_inside(tile, "block tile", extent)
    value_level.require_inside(values, "warp tile", tile.size)
    warp, warp_repeat = divide(tile, extent, spec.tiling.warps[mode].size, warp_level, level("warps", "warps"))
    lane, lane_repeat = divide(values, tile.size, spec.tiling.lanes[mode].size, value_level, level("lanes", "lanes"))
    rule = f"{value_level.name} must walk whole modes of the warp tile"
    got, fix = f"{values} in {tile}", "use extents and strides that divide the modes of the warp tile"
    with composing(rule, value_level.where, got, fix):
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


def mend_cover(spec: Spec) -> tuple[str, list[int]]:
    """For a tile that does not cover C once: the key of the level at fault, and runs per mode that would tile.

    The lanes and warps are taken to be numbered well, so that it is the warp tile or else the values.
    """
    tiling, warp = spec.tiling, (warp_tile(spec, 0), warp_tile(spec, 1))
    if all(numbers(make_layout(warp[i], leftover(warp[i], tiling.block[i])), tiling.block[i]) for i in (0, 1)):
        key, level, around, count = "tiling.values", tiling.values, (warp[0].size, warp[1].size), tiling.lanes
    else:
        key, level, around, count = "tiling.warp", warp, tiling.block[:2], tiling.warps
    return key, [largest_divisor(max(1, around[i] // count[i].size), level[i].size) for i in (0, 1)]


def map_threads(spec: Spec, tile: CTile) -> ThreadMap:
    """CTile -> thread -> (m, n).

    Raises PlanError where lanes or warps do not number their positions 0, 1, .. once each, or not mode by mode.
    """
    for key, ids, count in (("lanes", tile.lanes, spec.warp_size), ("warps", tile.warps, tile.warps.size)):
        if not numbers(ids, count):
            raise PlanError(
                f"the {key} must number their positions 0 .. {count - 1}, each once",
                got=ids,
                allowed=f"{count} positions with offsets 0 .. {count - 1}",
                fix=f"write tiling.{key}: {renumbered(ids)}",
                where=spec.where(f"tiling.{key}"),
            )

    def along(mode: int) -> Layout:
        def level(key: str, ids: Layout, positions: Layout) -> Layout:
            still = Layout(ids[1 - mode].size, 0)
            rule = f"the {key} must walk whole modes of the positions they take in {'mn'[mode]}"
            got, fix = f"{ids[mode]} over {positions}", f"split {'mn'[mode]} of tiling.{key} as {positions} is split"
            with composing(rule, spec.where(f"tiling.{key}"), got, fix):
                by_position = make_layout(*((positions, still) if mode == 0 else (still, positions)))
                return composition(by_position, right_inverse(ids))

        return make_layout(
            level("lanes", tile.lanes, tile.lane_mode[mode]), level("warps", tile.warps, tile.warp_mode[mode])
        )

    return ThreadMap(tile.lanes.size * tile.warps.size, along(0), along(1))
