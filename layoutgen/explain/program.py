"""The pipeline program in words, turn by turn, and the order in which blocks take the tiles of C."""

from __future__ import annotations

from collections import Counter
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
    Promote,
    Step,
    StoreTile,
    Wait,
)
from layoutgen.plan.order import order_words
from layoutgen.plan.schedule import raster_words, work

Move = CopyTile | LoadTile | StoreTile
_MOVES = (CopyTile, LoadTile, StoreTile)
_VERBS = {CopyTile: "cp.async", LoadTile: "load", StoreTile: "store"}
_MOVED = {CopyTile: ("copied", "cp.async"), LoadTile: ("loaded", "ld.global"), StoreTile: ("stored", "st.shared")}
SAMPLE_TILES = 32  # the tiles a side of the problem that the raster is shown on


def program_section(plan: Plan) -> Section:
    """What a block does, in order: the prologue once, then a turn for each k-tile."""
    program, depth = plan.program, _depth(plan)
    steps = _with_tiles(program.steps)
    steady = steps[len(program.prologue) :]
    entries: list[Entry] = [Text(f"Before: {_sentence(_prologue(plan, steps[: len(program.prologue)]))}.")]
    turns = list(_turns(steady, depth))
    held = {} if plan.shared_operands else {k: k for k in range(program.slots)}
    for step in program.prologue:
        held.update(_loaded(step) if isinstance(step, LoadFragment) else {})
    said = [_sentence(_steady(plan, turn, k, held)) for k, turn in turns]
    first = 0
    for last in range(len(turns)):
        if last + 1 == len(turns) or said[last + 1] != said[first]:
            entries.append(Text(f"{_when([k for k, _ in turns[first : last + 1]])}: {said[first]}."))
            first = last + 1
    if _dealt(plan):
        entries.append(Text(_between(plan, steady)))
    entries.append(Text(_multiply(plan)))
    entries.append(Text(_raster(plan)))
    if plan.epilogue.chain:
        entries.append(Text(_chain(plan)))
    slots = program.slots
    where = f"fragment k lies in slot k % {slots}" if slots > 1 else "fragments have one slot"
    stages = plural(plan.stages, "stage") if plan.stages else "no shared memory"
    return Section(f"The pipeline: {stages}; a turn multiplies one k-tile; {where}", tuple(entries))


def _depth(plan: Plan) -> int:
    """For how many k fragments are loaded together."""
    return max((step.count for step in plan.program.steady if isinstance(step, LoadFragment)), default=1)


def _multiply(plan: Plan) -> str:
    """What a thread multiplies for each k, and the loads that this takes, which may bring several."""
    m, n = plan.order.extents
    order = order_words(plan.order)
    if plan.uses_atoms:
        brought = sum(each.fragment.vectors for each in plan.shared_operands)
        k = plan.atom.layouts.shape_mnk[2]
        products = f", {plan.products} products of each" if plan.products > 1 else ""
        return f"Multiply, every {k} k: {m} x {n} = {m * n} atoms a warp{products} for {brought} shared loads; {order}."
    if plan.shared_operands:
        space, loads = "shared", sum(each.fragment.vectors / each.fragment.depth for each in plan.shared_operands)
    else:
        space, loads = "global", sum(each.copy.reads / each.tile[1] for each in plan.operands)
    return f"Multiply, each k: {m} x {n} = {m * n} FFMA for {loads:g} {space} load{'s' * (loads != 1)}; {order}."


def _chain(plan: Plan) -> str:
    """What happens to a sum before it is stored."""
    steps = "; ".join(map(str, plan.epilogue.chain))
    return f"After the sums, {plural(plan.epilogue.vector, 'column')} of a row at a time: {steps}."


def _with_tiles(steps: Sequence[Step]) -> list[tuple[Step, int | None]]:
    """Each step of the prologue and of one turn, with the k-tile that it moves, where it moves one: in the turn counted
    from the tile that this multiplies. None too for a store of registers that nothing was loaded into.
    """
    following: Counter[str] = Counter()  # operand -> k-tile to fetch next
    staged: dict[str, int] = {}  # operand -> k-tile in its registers
    found: list[tuple[Step, int | None]] = []
    for step in steps:
        if isinstance(step, Advance):
            following.update(step.operands)
        elif isinstance(step, LoadTile):
            staged[step.operand] = following[step.operand]
        tile = None
        if isinstance(step, _MOVES):
            tile = staged.get(step.operand) if isinstance(step, StoreTile) else following[step.operand]
        found.append((step, tile))
    return found


def _pieces(plan: Plan, move: Move) -> int:
    """How many accesses of a thread all of a move is."""
    return (
        plan.in_shared(move.operand).copy.writes
        if isinstance(move, StoreTile)
        else plan.operand(move.operand).copy.reads
    )


def _dealt(plan: Plan) -> bool:
    """Whether moves are dealt out over a turn."""
    moves = [step for step in plan.program.steady if isinstance(step, _MOVES)]
    return any(step.last - step.first < _pieces(plan, step) for step in moves)


def _between(plan: Plan, steady: Sequence[tuple[Step, int | None]]) -> str:
    """How moves are dealt out over a turn: which access of which k-tile stands before the multiplication of which k."""
    at: dict[str, dict[str, list[tuple[int, int]]]] = {}  # what is done -> whose accesses -> (k, how many)
    k = 0
    for step, tile in steady:
        k += isinstance(step, Mma)
        if isinstance(step, _MOVES):
            verb, opcode = _MOVED[type(step)]
            done = f"{_tile(tile, turn=True)} {verb}" + ("" if isinstance(step, LoadTile) else f" {_way(plan, step)}")
            accesses = f"{step.operand.upper()} by {_pieces(plan, step)} {opcode}"
            at.setdefault(done, {}).setdefault(accesses, []).append((k, step.last - step.first))
    told = [f"{done}: {', '.join(whose + _shares(ks) for whose, ks in each.items())}" for done, each in at.items()]
    return f"Between, {'; '.join(told)}."


def _shares(dealt: Sequence[tuple[int, int]]) -> str:
    """At which k, and how many at each where that is not one."""
    counts = [count for _, count in dealt]
    many = f", {counts[0]} each" if len(set(counts)) == 1 else f", {' + '.join(map(str, counts))}"
    return f"{many if max(counts) > 1 and len(counts) > 1 else ''} at k {runs([k for k, _ in dealt])}"


def _tile(tile: int | None, *, turn: bool) -> str:
    """A k-tile, in a turn counted from the one it multiplies."""
    if tile is None:
        return "a k-tile that was never loaded"
    return f"k-tile + {tile}" if turn else f"k-tile {tile}"


def _way(plan: Plan, move: Move, stage: int | None = None) -> str:
    """Whence or whereto; stage: its number, where it is known."""
    if isinstance(move, LoadTile):
        return "from global"
    into = "into" if isinstance(move, CopyTile) and stage is not None else "to"
    if plan.stages == 1:
        return f"{into} shared memory"
    return f"{into} the write stage" if stage is None else f"{into} stage {stage}"


def _raster(plan: Plan) -> str:
    """Which block computes which tile of C."""
    schedule, (block_m, block_n, _) = plan.schedule, plan.tile.block
    ranges = list(work(schedule, plan.tile, SAMPLE_TILES * block_m, SAMPLE_TILES * block_n, 1))
    group = schedule.group
    blocks = sorted({0, 1, group, group * SAMPLE_TILES} & set(range(len(ranges))))
    tiles = [f"{block} ({ranges[block].m // block_m},{ranges[block].n // block_n})" for block in blocks]
    words = raster_words(schedule)
    shared = " To fill the last wave, blocks share tiles." if schedule.kind == "stream_k" else ""
    if schedule.waves_per_eu is not None:
        shared += f" At least {plural(schedule.waves_per_eu, 'wavefront')} are to fit on each SIMD (waves_per_eu)."
    return f"{words[0].upper()}{words[1:]}: of {SAMPLE_TILES} x {SAMPLE_TILES} tiles, block {', '.join(tiles)}.{shared}"


def _turns(
    steady: Sequence[tuple[Step, int | None]], depth: int
) -> Iterator[tuple[int | None, list[tuple[Step, int | None]]]]:
    """The steady loop, cut behind every `depth` multiplications, with the first k; None: what follows the last."""
    found: list[tuple[Step, int | None]] = []
    k = 0
    for step, tile in steady:
        found.append((step, tile))
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


def _prologue(plan: Plan, steps: Sequence[tuple[Step, int | None]]) -> list[str]:
    stage = 0
    words = []
    for step, tile in steps:
        if isinstance(step, Advance):
            stage += step.cursor == "write"
        elif isinstance(step, _MOVES):
            what = f"{_VERBS[type(step)]} {step.operand.upper()} of {_tile(tile, turn=False)}"
            words.append(f"{what} {_way(plan, step, stage)}")
        else:
            words.append(_common(step))
    return _stages(words)


def _stages(words: Sequence[str]) -> list[str]:
    """More than two stages that are filled alike, by cp.async and a group each, as one clause."""
    filling = [f"cp.async {name} of k-tile {{0}} into stage {{0}}" for name in "AB"] + ["commit the group"]
    count = 0
    while [each.format(count) for each in filling] == list(words[3 * count : 3 * count + 3]):
        count += 1
    if count < 3:
        return list(words)
    several = f"cp.async A, B of k-tiles 0 .. {count - 1} into stages 0 .. {count - 1}, a group each"
    return [several, *words[3 * count :]]


def _silent(step: Step) -> bool:
    """Whether a step only says where the next ones go, which they tell themselves."""
    return isinstance(step, Advance) and (step.cursor == "write" or bool(step.operands))


def _steady(plan: Plan, turn: Sequence[tuple[Step, int | None]], k: int | None, held: dict[int, int]) -> list[str]:
    """The steps of a turn's part, told relative to its k, so that parts that do the same read the same.

    held: slot -> the fragment in it; it is kept up to date.
    """
    words = []
    dealt = _dealt(plan)
    said = [(step, tile) for step, tile in turn if not _silent(step) and not (dealt and isinstance(step, _MOVES))]
    for kind, steps in groupby(said, lambda each: type(each[0])):
        if kind is Mma:
            words += _fragments("multiply", [held.get(step.slot) for step, _ in steps if isinstance(step, Mma)], k)
            continue
        for step, tile in steps:
            if isinstance(step, _MOVES):
                what = f"{_VERBS[type(step)]} {step.operand.upper()} of {_tile(tile, turn=True)}"
                words.append(f"{what} {_way(plan, step)}")
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
    if isinstance(step, Promote):
        return "promote what the atoms have summed"
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
