"""The pipeline program in words, turn by turn, and the order in which blocks take the tiles of C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutgen.explain.model import Entry, Section, Text
from layoutgen.explain.words import plural
from layoutgen.plan.model import (
    Advance,
    Barrier,
    Commit,
    CopyTile,
    LoadFragment,
    LoadTile,
    Mma,
    Plan,
    Step,
    StoreTile,
    Wait,
)
from layoutgen.plan.schedule import raster_words, work

SAMPLE_TILES = 32  # the tiles a side of the problem that the raster is shown on


def program_section(plan: Plan) -> Section:
    """What a block does, in order: the prologue once, then a turn for each k-tile."""
    ahead = sum(step == Advance("fetch") for step in plan.program.prologue)
    entries: list[Entry] = [Text(f"Before: {_sentence(_prologue(plan))}.")]
    turns = list(_turns(plan))
    held = {step.slot: step.k for step in plan.program.prologue if isinstance(step, LoadFragment)}
    said = [_sentence(_steady(turn, k, ahead, held)) for k, turn in turns]
    first = 0
    for last in range(len(turns)):
        if last + 1 == len(turns) or said[last + 1] != said[first]:
            entries.append(Text(f"{_when(turns[first][0], turns[last][0], len(turns))}: {said[first]}."))
            first = last + 1
    m, n = (layout.size for layout in plan.tile.value_mode)
    loads = sum(operand.fragment.vectors for operand in plan.operands)
    order = f"{plan.order.outer} outer, {'nm'[plan.order.outer == 'n']} inner" + ", serpentine" * plan.order.serpentine
    entries.append(Text(f"Multiply: {m} x {n} = {m * n} FFMA for {plural(loads, 'shared load')}; {order}."))
    entries.append(Text(_raster(plan)))
    slots = plan.a.fragment.slots
    where = f"fragment k lies in slot k % {slots}" if slots > 1 else "fragments have one slot"
    title = f"The pipeline: {plural(plan.stages, 'stage')}; a turn multiplies one k-tile; {where}"
    return Section(title, tuple(entries))


def _raster(plan: Plan) -> str:
    """Which block computes which tile of C."""
    schedule, (block_m, block_n, _) = plan.schedule, plan.tile.block
    ranges = list(work(schedule, plan.tile, SAMPLE_TILES * block_m, SAMPLE_TILES * block_n, 1))
    group = schedule.group
    blocks = sorted({0, 1, group, group * SAMPLE_TILES} & set(range(len(ranges))))
    tiles = [f"{block} ({ranges[block].m // block_m},{ranges[block].n // block_n})" for block in blocks]
    words = raster_words(schedule)
    return f"{words[0].upper()}{words[1:]}: of {SAMPLE_TILES} x {SAMPLE_TILES} tiles, block {', '.join(tiles)}."


def _turns(plan: Plan) -> Iterator[tuple[int | None, list[Step]]]:
    """The steady loop, cut behind each multiplication; None: what follows the last one."""
    found: list[Step] = []
    k = 0
    for step in plan.program.steady:
        found.append(step)
        if isinstance(step, Mma):
            yield k, found
            found, k = [], k + 1
    if found:
        yield None, found


def _when(first: int | None, last: int | None, turns: int) -> str:
    if first is None or last is None:
        return "Then"
    return f"k = {first}" if first == last else f"k = {first} .. {last}"


def _prologue(plan: Plan) -> list[str]:
    tile = stage = 0
    words = []
    for step in plan.program.prologue:
        if isinstance(step, Advance):
            tile += step.cursor == "fetch"
            stage += step.cursor == "write"
        elif isinstance(step, CopyTile):
            words.append(f"cp.async {step.operand.upper()} of k-tile {tile} into stage {stage}")
        elif isinstance(step, LoadTile):
            words.append(f"load {step.operand.upper()} of k-tile {tile} from global")
        elif isinstance(step, StoreTile):
            words.append(f"store {step.operand.upper()} to stage {stage}")
        else:
            words.append(_common(step))
    return words


def _steady(turn: Sequence[Step], k: int | None, ahead: int, held: dict[int, int]) -> list[str]:
    """The steps of a turn's part, told relative to its k, so that parts that do the same read the same.

    held: slot -> the fragment in it; it is kept up to date.
    """
    words = []
    for step in turn:
        if isinstance(step, CopyTile):
            words.append(f"cp.async {step.operand.upper()} of k-tile + {ahead} to the write stage")
        elif isinstance(step, LoadTile):
            words.append(f"load {step.operand.upper()} of k-tile + {ahead} from global")
        elif isinstance(step, StoreTile):
            words.append(f"store {step.operand.upper()} to the write stage")
        elif isinstance(step, LoadFragment):
            held[step.slot] = step.k
            words.append(f"load fragment {_relative(step.k, k)}")
        elif isinstance(step, Advance):
            if step.cursor == "read":
                words.append("next stage")
        elif isinstance(step, Mma):
            words.append(f"multiply fragment {_relative(held.get(step.slot), k)}")
        else:
            words.append(_common(step))
    return words


def _relative(fragment: int | None, k: int | None) -> str:
    if fragment is None:
        return "that was never loaded"
    return {None: str(fragment), 0: "k", 1: "k + 1"}.get(None if k is None else fragment - k, str(fragment))


def _common(step: Step) -> str:
    if isinstance(step, Commit):
        return "commit the group"
    if isinstance(step, Barrier):
        return "barrier"
    if isinstance(step, Wait):
        if step.pending == 0:
            return "wait for all copies"
        return f"wait until at most {plural(step.pending, 'group')} of copies fly"
    if isinstance(step, LoadFragment):
        return f"load fragment {step.k}"
    return type(step).__name__


def _sentence(words: Sequence[str]) -> str:
    """Steps in order, those of A and B that say the same as one."""
    merged: list[str] = []
    for each in words:
        if merged and each.replace(" B ", " A ", 1) == merged[-1]:
            merged[-1] = each.replace(" B ", " A, B ", 1)
        else:
            merged.append(each)
    return "; ".join(merged)
