"""The pipeline program in words, turn by turn, and the order in which blocks take the tiles of C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from layoutgen.explain.model import Entry, Section, Text
from layoutgen.explain.words import plural, runs
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
    program, depth = plan.program, _depth(plan)
    ahead = sum(step == Advance("fetch") for step in program.prologue)
    entries: list[Entry] = [Text(f"Before: {_sentence(_prologue(plan))}.")]
    turns = list(_turns(plan, depth))
    held = {} if plan.shared_operands else {k: k for k in range(program.slots)}
    for step in program.prologue:
        held.update(_loaded(step) if isinstance(step, LoadFragment) else {})
    said = [_sentence(_steady(plan, turn, k, ahead, held)) for k, turn in turns]
    first = 0
    for last in range(len(turns)):
        if last + 1 == len(turns) or said[last + 1] != said[first]:
            entries.append(Text(f"{_when([k for k, _ in turns[first : last + 1]])}: {said[first]}."))
            first = last + 1
    if _dealt(plan):
        entries.append(Text(_copies(plan, turns, ahead)))
    entries.append(Text(_multiply(plan)))
    entries.append(Text(_raster(plan)))
    slots = program.slots
    where = f"fragment k lies in slot k % {slots}" if slots > 1 else "fragments have one slot"
    stages = plural(plan.stages, "stage") if plan.stages else "no shared memory"
    return Section(f"The pipeline: {stages}; a turn multiplies one k-tile; {where}", tuple(entries))


def _depth(plan: Plan) -> int:
    """For how many k fragments are loaded together."""
    return max((step.count for step in plan.program.steady if isinstance(step, LoadFragment)), default=1)


def _multiply(plan: Plan) -> str:
    """What a thread multiplies for each k, and the loads that this takes, which may bring several."""
    m, n = (layout.size for layout in plan.tile.value_mode)
    order = f"{plan.order.outer} outer, {'nm'[plan.order.outer == 'n']} inner" + ", serpentine" * plan.order.serpentine
    if plan.shared_operands:
        space, loads = "shared", sum(each.fragment.vectors / each.fragment.depth for each in plan.shared_operands)
    else:
        space, loads = "global", sum(each.copy.reads / each.tile[1] for each in plan.operands)
    return f"Multiply, each k: {m} x {n} = {m * n} FFMA for {loads:g} {space} load{'s' * (loads != 1)}; {order}."


def _dealt(plan: Plan) -> bool:
    """Whether copies are dealt out over a turn."""
    copies = [step for step in plan.program.steady if isinstance(step, CopyTile)]
    return any(step.last - step.first < plan.operand(step.operand).copy.reads for step in copies)


def _copies(plan: Plan, turns: Sequence[tuple[int | None, Sequence[Step]]], ahead: int) -> str:
    """How copies are dealt out over a turn."""
    told = []
    for operand in plan.operands:
        copies = [(k, s) for k, turn in turns for s in turn if isinstance(s, CopyTile) and s.operand == operand.name]
        if copies:
            counts = ", ".join(str(step.last - step.first) for _, step in copies)
            ks = runs([k for k, _ in copies if k is not None])
            told.append(f"{operand.name.upper()}'s {operand.copy.reads} cp.async a thread, {counts} at k {ks}")
    return f"Between, copies of k-tile + {ahead} to the write stage: {'; '.join(told)}."


def _raster(plan: Plan) -> str:
    """Which block computes which tile of C."""
    schedule, (block_m, block_n, _) = plan.schedule, plan.tile.block
    ranges = list(work(schedule, plan.tile, SAMPLE_TILES * block_m, SAMPLE_TILES * block_n, 1))
    group = schedule.group
    blocks = sorted({0, 1, group, group * SAMPLE_TILES} & set(range(len(ranges))))
    tiles = [f"{block} ({ranges[block].m // block_m},{ranges[block].n // block_n})" for block in blocks]
    words = raster_words(schedule)
    return f"{words[0].upper()}{words[1:]}: of {SAMPLE_TILES} x {SAMPLE_TILES} tiles, block {', '.join(tiles)}."


def _turns(plan: Plan, depth: int) -> Iterator[tuple[int | None, list[Step]]]:
    """The steady loop, cut behind every `depth` multiplications, with the first k; None: what follows the last."""
    found: list[Step] = []
    k = 0
    for step in plan.program.steady:
        found.append(step)
        if isinstance(step, Mma):
            k += 1
            if k % depth == 0:
                yield k - depth, found
                found = []
    if found:
        yield None, found


def _when(ks: Sequence[int | None]) -> str:
    """The turn's parts that begin at these k."""
    first, last = ks[0], ks[-1]
    if first is None or last is None:
        return "Then"
    apart = (ks[1] or 0) - first if len(ks) > 1 else 1
    every = f"{first}, {first + apart} .. {last}" if apart > 1 and len(ks) > 2 else f"{first} .. {last}"
    return f"k = {first}" if first == last else f"k = {first}, {last}" if len(ks) == 2 else f"k = {every}"


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
            words.append(f"store {step.operand.upper()} to {f'stage {stage}' if plan.stages > 1 else 'shared memory'}")
        else:
            words.append(_common(step))
    return words


def _steady(plan: Plan, turn: Sequence[Step], k: int | None, ahead: int, held: dict[int, int]) -> list[str]:
    """The steps of a turn's part, told relative to its k, so that parts that do the same read the same.

    held: slot -> the fragment in it; it is kept up to date.
    """
    words = []
    into = "the write stage" if plan.stages > 1 else "shared memory"
    silent = [Advance("fetch"), Advance("write")]
    said = [step for step in turn if step not in silent and not (isinstance(step, CopyTile) and _dealt(plan))]
    for kind, steps in groupby(said, type):
        if kind is Mma:
            words += _fragments("multiply", [held.get(step.slot) for step in steps if isinstance(step, Mma)], k)
            continue
        for step in steps:
            if isinstance(step, CopyTile):
                whole = step.last - step.first == plan.operand(step.operand).copy.reads
                words.append(
                    f"cp.async {step.operand.upper()} of k-tile + {ahead} to {into}" if whole else "some copies"
                )
            elif isinstance(step, LoadTile):
                words.append(f"load {step.operand.upper()} of k-tile + {ahead} from global")
            elif isinstance(step, StoreTile):
                words.append(f"store {step.operand.upper()} to {into}")
            elif isinstance(step, LoadFragment):
                held.update(_loaded(step))
                words += _fragments("load", list(_loaded(step).values()), k)
            elif isinstance(step, Advance):
                words.append("next stage")
            else:
                words.append(_common(step))
    return words


def _loaded(step: LoadFragment) -> dict[int, int]:
    """Slot -> the fragment that it gets."""
    return {step.slot + i: step.k + i for i in range(step.count)}


def _fragments(verb: str, every: Sequence[int | None], k: int | None) -> list[str]:
    """What is done to some fragments, told relative to k: at once where they follow one another."""
    known = [each for each in every if each is not None]
    if len(known) == len(every) > 1 and known == list(range(known[0], known[0] + len(known))):
        return [f"{verb} fragments {_relative(known[0], k)} .. {_relative(known[-1], k)}"]
    return [f"{verb} fragment {'that was never loaded' if each is None else _relative(each, k)}" for each in every]


def _relative(fragment: int, k: int | None) -> str:
    """A fragment as k, k + 1, ..; one of the next tile's first as it is."""
    if k is None or fragment < k:
        return str(fragment)
    return "k" if fragment == k else f"k + {fragment - k}"


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
        return _fragments("load", list(_loaded(step).values()), None)[0]
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
