"""Compose the levels of the C tile: block -> warps -> warp tile -> lanes -> values, one mode (m, then n) at a time.

Each mode is divided the same way. With W the warp tile's positions in the block extent, V the values' positions in the
warp tile, and R = complement(V, W.size) what V leaves over, lane l starts at W(R(l)) and value v lies W(V(v)) beyond it;
what of R no lane takes repeats as further values, and so does what the warps leave of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutgen.algebra import (
    Layout,
    coalesce,
    complement,
    composition,
    flatten,
    make_layout,
    right_inverse,
)
from layoutgen.errors import LayoutError, PlanError
from layoutgen.plan.model import CTile, ThreadMap
from layoutgen.spec import Spec

WARP_SIZE = 32
UNIT = Layout(1, 0)


@dataclass(frozen=True, slots=True)
class ModeTiling:
    """One mode of C: index -> coordinate in the block extent, for warps, lanes and values."""

    warp: Layout
    lane: Layout
    value: Layout


def _join(*layouts: Layout) -> Layout:
    """Concatenate the non-trivial modes of one-dimensional layouts: (i, j, ..) -> sum, as one flat layout."""
    modes = [mode for layout in layouts for mode in _modes(flatten(layout)) if mode.size > 1]
    if not modes:
        return UNIT
    return coalesce(make_layout(*modes)) if len(modes) > 1 else modes[0]


def _modes(layout: Layout) -> Sequence[Layout]:
    return [layout[i] for i in range(len(layout))] if isinstance(layout.shape, tuple) else [layout]


def _leftover(tile: Layout, extent: int) -> Layout:
    """What `tile` leaves of [0, extent): position of repetition -> coordinate.

    A tile that overlaps itself has no complement; it repeats at its own cosize then, so that the coverage check
    can name the coordinate that is owned twice.
    """
    try:
        return coalesce(complement(tile, extent))
    except LayoutError:
        span = tile.cosize
        return Layout(max(1, extent // span), span)


def _take(layout: Layout, count: int, what: str, spec: Spec, key: str) -> tuple[Layout, Layout]:
    """Split a one-dimensional layout into its first `count` positions and the repetitions of them."""
    total = layout.size
    if count > total or total % count:
        raise PlanError(
            f"{what} must divide the positions that the levels inside leave over",
            got=f"{count} over {total} positions",
            allowed=f"a divisor of {total}",
            fix=f"change {key}, or the tile around it, so that {count} divides the positions left",
            where=spec.where(key),
        )
    try:
        return composition(layout, Layout(count, 1)), composition(layout, Layout(total // count, count))
    except LayoutError as error:
        raise PlanError(
            f"{what} do not fall on whole modes of the positions left over ({layout})",
            got=error.got,
            allowed=error.allowed,
            fix=error.fix,
            where=spec.where(key),
        ) from error


def _divide(spec: Spec, mode: int, extent: int, warps: int, lanes: int) -> ModeTiling:
    letter = "mn"[mode]
    if spec.tiling.warp is not None:
        warp_tile = spec.tiling.warp[mode]
    else:
        if extent % warps:
            raise PlanError(
                f"warps must divide the block tile in {letter}",
                got=f"{warps} warps over {extent}",
                allowed=f"a divisor of {extent}",
                fix="change tiling.warps or tiling.block",
                where=spec.where("tiling.warps"),
            )
        warp_tile = Layout(extent // warps, 1)
    if warp_tile.cosize > extent:
        raise PlanError(
            f"the warp tile must lie within the block tile in {letter}",
            got=f"{warp_tile} reaches {warp_tile.cosize}",
            allowed=f"at most {extent}",
            fix="shrink tiling.warp or grow tiling.block",
            where=spec.where("tiling.warp"),
        )
    values = spec.tiling.values[mode]
    if values.cosize > warp_tile.size:
        raise PlanError(
            f"one thread's values must lie within the warp tile in {letter}",
            got=f"{values} reaches {values.cosize}",
            allowed=f"at most {warp_tile.size}",
            fix="shrink tiling.values or grow the warp tile",
            where=spec.where("tiling.values"),
        )
    warp, warp_repeat = _take(_leftover(warp_tile, extent), warps, f"warps in {letter}", spec, "tiling.warps")
    lane, lane_repeat = _take(
        _leftover(values, warp_tile.size), lanes, f"lanes in {letter}", spec, "tiling.lanes"
    )
    try:
        return ModeTiling(
            warp=_join(warp),
            lane=_join(composition(warp_tile, lane)),
            value=_join(composition(warp_tile, values), composition(warp_tile, lane_repeat), warp_repeat),
        )
    except LayoutError as error:
        raise PlanError(
            f"the values do not compose with the warp tile in {letter}",
            got=error.got,
            allowed=error.allowed,
            fix=error.fix,
            where=spec.where("tiling.values"),
        ) from error


def two_modes(layout: Layout) -> Layout:
    """A layout of (m, n); a rank-1 one runs along m alone."""
    if not isinstance(layout.shape, tuple) or len(layout) == 1:
        return make_layout(layout, UNIT)
    if len(layout) == 2:
        return layout
    raise LayoutError(
        "a level of C has two modes, (m, n)",
        got=str(layout),
        allowed="rank 1 or 2",
        fix="group its modes, as in ((2,2),4):((1,8),2)",
    )


def compose_tile(spec: Spec) -> CTile:
    """Spec -> CTile.

    Raises PlanError, with the place in the spec, where a level does not fit the one around it.
    """
    block_m, block_n, _ = spec.tiling.block
    lanes, warps = _level(spec, "lanes"), _level(spec, "warps")
    m = _divide(spec, 0, block_m, warps[0].size, lanes[0].size)
    n = _divide(spec, 1, block_n, warps[1].size, lanes[1].size)

    def scaled(layout: Layout) -> Layout:
        return composition(Layout(block_n, block_m), layout)

    return CTile(
        block=spec.tiling.block,
        lanes=lanes,
        warps=warps,
        lane_mode=(m.lane, n.lane),
        warp_mode=(m.warp, n.warp),
        value_mode=(m.value, n.value),
        positions=make_layout(
            make_layout(m.lane, scaled(n.lane)),
            make_layout(m.warp, scaled(n.warp)),
            make_layout(m.value, scaled(n.value)),
        ),
    )


def _level(spec: Spec, level: str) -> Layout:
    try:
        return two_modes(getattr(spec.tiling, level))
    except LayoutError as error:
        raise PlanError(
            error.rule, got=error.got, allowed=error.allowed, fix=error.fix, where=spec.where(f"tiling.{level}")
        ) from error


def map_threads(tile: CTile) -> ThreadMap:
    """CTile -> thread -> (m, n). Expects lanes and warps that coverage has shown to be one to one."""
    lane_inverse, warp_inverse = right_inverse(tile.lanes), right_inverse(tile.warps)

    def along(mode: int) -> Layout:
        def level(positions: Layout, ids: Layout, inverse: Layout) -> Layout:
            other = Layout(ids[1 - mode].size, 0)
            return composition(make_layout(*((positions, other) if mode == 0 else (other, positions))), inverse)

        return make_layout(
            level(tile.lane_mode[mode], tile.lanes, lane_inverse), level(tile.warp_mode[mode], tile.warps, warp_inverse)
        )

    return ThreadMap(tile.lanes.size * tile.warps.size, along(0), along(1))
