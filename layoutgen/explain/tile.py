"""The tile of C: block -> warps -> warp tile -> lanes -> values, as layoutgen.plan.tile composes it, call by call."""

from __future__ import annotations

from collections.abc import Callable

from layoutgen.algebra import Layout, named
from layoutgen.errors import LayoutgenError
from layoutgen.explain.atoms import atom_line
from layoutgen.explain.model import Entry, Section, Step, Text
from layoutgen.explain.words import call, coalesced, is_identity, layout_at, plural, runs, shortened
from layoutgen.plan.model import Plan
from layoutgen.plan.tile import numbers, warp_tile
from layoutgen.spec import Spec

TITLE = "The tile of C: block -> warps -> warp tile -> lanes -> values"


class _Stop(Exception):
    """A level does not fit the one around it: the rest cannot be told."""


class _Levels:
    """The steps so far, each evaluated as it is written down; where it makes a layout of the plan, that is shown."""

    def __init__(self, plan: Plan | None) -> None:
        self.plan = plan
        self.entries: list[Entry] = []

    def make(
        self, label: str, expression: str, says: str = "", of: str | None = None, modes: tuple[str, ...] = ()
    ) -> Layout:
        result = call(expression)
        given = expression == str(result)
        if self.plan is not None and of is not None:
            result = layout_at(self.plan, of)
        shown = named(result, *modes) if modes else result
        self.entries.append(Step(label, None if given else expression, shown, says, of))
        return result

    def chain(self, label: str, chain: list[tuple[str, str]], of: str) -> Layout:
        """Calls of which each gives what the next starts from; the last one gives the plan's layout."""
        result = Layout(1, 0)
        for number, (expression, says) in enumerate(chain, start=1):
            result = self.make(label if number == 1 else "", expression, says, of if number == len(chain) else None)
        return result


def tile_section(spec: Spec, plan: Plan | None) -> Section:
    """Spec -> its levels. plan: one of its plans, or None where they do not compose: then as far as they do."""
    block_m, block_n, block_k = spec.tiling.block
    warps, threads = spec.tiling.warps.size, spec.tiling.warps.size * spec.tiling.lanes.size
    levels = _Levels(plan)
    levels.entries.append(
        Text(
            f"A block of {plural(warps, 'warp')} x {spec.tiling.lanes.size} lanes = {threads} threads computes "
            f"{block_m} x {block_n} of C, {block_k} of k at a time."
        )
    )
    if plan is not None and plan.uses_atoms:
        levels.entries.append(atom_line(plan))
    try:
        modes = [_mode(levels, spec, mode) for mode in (0, 1)]
        _threads(levels, spec, modes)
    except (LayoutgenError, _Stop) as stopped:
        levels.entries.append(Text(f"Here it stops: {getattr(stopped, 'rule', stopped)}."))
    return Section(TITLE, tuple(levels.entries))


def _mode(levels: _Levels, spec: Spec, mode: int) -> tuple[Layout, Layout]:
    """One mode of C, divided; -> (position of the lane -> coordinate, position of the warp -> coordinate)."""
    x, extent = "mn"[mode], spec.tiling.block[mode]
    tile, values = warp_tile(spec, mode), spec.tiling.values[mode]
    warps, lanes = spec.tiling.warps[mode].size, spec.tiling.lanes[mode].size

    levels.entries.append(Text(_intent(x, extent, tile, values)))
    for name, inner, outer, around in (("W", tile, "block", extent), ("V", values, "warp tile", tile.size)):
        if max(inner.cosize, inner.size) > around:
            raise _Stop(f"{name} has {inner.size} positions up to {inner.cosize - 1}, the {outer} {around}")
    repeat = coalesced(f"complement({tile}, {extent})")
    warp, warp_left = _share(levels, f"warps in {x}", repeat, warps, f"tile.warp_mode.{mode}", "W", lambda each: each)

    repeat = coalesced(f"complement({values}, {tile.size})")

    def through(expression: str) -> str:
        return coalesced(expression if is_identity(tile) else f"composition({tile}, {expression})")

    lane, lane_left = _share(levels, f"lanes in {x}", repeat, lanes, f"tile.lane_mode.{mode}", "V", through)

    parts = [str(call(through(str(values)))), *filter(None, (lane_left, warp_left))]
    joined = f"make_layout({', '.join(parts)})" if len(parts) > 1 else through(str(values))
    count = call(joined).size
    levels.make(
        f"value -> {x}", coalesced(joined), f"{plural(count, 'value')}: {runs(call(joined).offsets().tolist())}",
        f"tile.value_mode.{mode}",
    )  # fmt: skip
    return lane, warp


def _intent(x: str, extent: int, tile: Layout, values: Layout) -> str:
    return f"{x}, 0 .. {extent - 1}: a warp takes the tile W = {tile}; in W, a thread's values are V = {values}."


def _share(
    levels: _Levels, label: str, repeat: str, count: int, of: str, tile: str, through: Callable[[str], str]
) -> tuple[Layout, str | None]:
    """Of the places where a tile repeats, the first `count` and, as text, those that are left (None: none are)."""
    rest = call(repeat)
    where = f"{tile} starts at {shortened(rest.offsets().tolist(), 4)}"
    if rest.size % count:
        levels.make(label, repeat, where)
        raise _Stop(f"{count} {label} do not divide these {rest.size} places")
    first = f"composition({rest}, {count}:1)"
    chain = [(repeat, where)]
    if str(call(first)) != str(rest):
        chain.append((first, f"the first {count} of these are theirs" if count < rest.size else ""))
    taken = through(str(call(first)))
    if taken != str(call(first)):
        chain.append((taken, "the same in the block's coordinates"))
    result = levels.chain(label, chain, of)
    if rest.size == count:
        return result, None
    over = f"composition({rest}, {rest.size // count}:{count})"
    again = levels.make("", over, "what is left: further values")
    return result, str(call(through(str(again))))


def _threads(levels: _Levels, spec: Spec, modes: list[tuple[Layout, Layout]]) -> None:
    """thread -> (m, n), from where lanes and warps stand and how they are numbered."""
    lanes, warps = spec.tiling.lanes, spec.tiling.warps
    for ids, noun in ((lanes, "lane"), (warps, "warp")):
        if not numbers(ids, ids.size):
            raise _Stop(f"{ids} does not give each place a {noun} of its own")
    levels.entries.append(
        Text(
            f"thread = lane + {lanes.size} warp: number -> place (lane_m + {lanes[0].size} lane_n, warp_m + "
            f"{warps[0].size} warp_n) -> m and n."
        )
    )
    of_lane = levels.make("lane -> place", f"right_inverse({lanes})")
    of_warp = levels.make("warp -> place", f"right_inverse({warps})")
    for mode, x in enumerate("mn"):
        parts = []
        for ids, positions, inverse, noun in (
            (lanes, modes[mode][0], of_lane, "lane"), (warps, modes[mode][1], of_warp, "warp")
        ):  # fmt: skip
            still = f"{ids[1 - mode].size}:0"
            both = f"{positions}, {still}" if mode == 0 else f"{still}, {positions}"
            parts.append(levels.make(f"{noun} -> {x}", f"composition(make_layout({both}), {inverse})"))
        together = f"make_layout({parts[0]}, {parts[1]})"
        levels.make(f"thread -> {x}", together, of=f"threads.{x}", modes=("lane", "warp"))


def owned(plan: Plan, thread: int) -> str:
    """The rows and columns of one thread, in words."""
    m = plan.threads.m(thread) + plan.tile.value_mode[0].offsets()
    n = plan.threads.n(thread) + plan.tile.value_mode[1].offsets()
    return f"rows m {runs(m.tolist())} and columns n {runs(n.tolist())}"
