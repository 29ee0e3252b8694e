"""The plan's program, walked: what each step does to which stage, for as many turns as it takes to see the pattern."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from layoutgen.facts import Piece, fetch_pieces
from layoutgen.plan.model import (
    Advance,
    Barrier,
    Commit,
    CopyTile,
    LoadFragment,
    LoadTile,
    Mma,
    Operand,
    OperandName,
    Plan,
    Promote,
    Step,
    StoreTile,
    Wait,
)

State = Literal["empty", "arriving", "landed", "ready"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What a stage of shared memory holds, or a thread's registers for A or B.

    tile: the one that was last begun. arriving: copies or loads are in flight, or not all are stored; landed: this
    thread's have arrived, others' perhaps not; ready: every thread may read it; of registers, the loads have been
    waited for.
    """

    state: State = "empty"
    tile: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One executed step. part: "prologue" or "turn 0", ..; text: what it does, in words.

    writes, reads: the stages it touches, counted as stage_names does. stages: what each holds after it.
    """

    part: str
    text: str
    stages: tuple[Stage, ...]
    writes: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    multiplies: bool = False


def stage_names(plan: Plan) -> tuple[str, ...]:
    """What each of a moment's stages is: those of shared memory, then the registers that loads arrive in."""
    registers = (f"{operand.name.upper()} in registers" for operand in _loaded(plan))
    return (*(f"stage {stage}" for stage in range(plan.stages)), *registers)


def _loaded(plan: Plan) -> list[Operand]:
    """The operands that are loaded into registers: to be stored from there, or to be multiplied where nothing is
    shared."""
    return [each for each in plan.operands if not plan.stages or each.copy.atom.through_registers]


def timeline(plan: Plan, turns: int | None = None) -> tuple[Moment, ...]:
    """Prologue, then `turns` of the steady loop (default: until every stage has been read, and one more)."""
    walk = _Walk(plan)
    count = max(plan.stages, 1) + 1 if turns is None else turns
    moments = [walk.step(step, "prologue") for step in plan.program.prologue]
    for turn in range(count):
        moments += [walk.step(step, f"turn {turn}") for step in plan.program.steady]
    return tuple(moments)


class _Walk:
    """The cursors of the kernel: next k-tiles to fetch, stages to write and read, groups in flight, registers.

    Threads copy alike, so that one thread's elements (i, j) of an operand stand for all of a stage.
    """

    def __init__(self, plan: Plan) -> None:
        self.count = plan.stages
        self.stages = [Stage() for _ in stage_names(plan)]
        self.rows = {each.name: plan.stages + index for index, each in enumerate(_loaded(plan))}  # of registers
        self.reads = {each.name: fetch_pieces(each.copy, "read") for each in plan.operands}
        self.writes = {each.name: fetch_pieces(each.copy, "write") for each in plan.shared_operands}
        self.held = [
            {
                each.name: _nothing(each)
                for each in plan.operands
                if row < plan.stages or self.rows.get(each.name) == row
            }
            for row in range(len(self.stages))
        ]  # by row: operand -> k-tile of each element (i, j)
        self.fetch: Counter[str] = Counter()
        self.write = self.read = 0
        self.read_since: set[int] = set()  # stages that were read since all threads met
        self.pending: set[int] = set()  # stages with copies since the last commit
        self.groups: list[set[int]] = []  # committed, oldest first
        self.slots: dict[int, tuple[int | None, int]] = {}  # fragment slot -> (k-tile, k)

    def step(self, step: Step, part: str) -> Moment:
        text, writes, reads = self._apply(step)
        self.read_since |= {stage for stage in reads if stage < self.count}
        return Moment(part, text, tuple(self.stages), writes, reads, isinstance(step, Mma))

    def _apply(self, step: Step) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """What a step does: in words, to which stages it writes, and which it reads."""
        match step:
            case CopyTile(operand, _, first, last):
                pieces, tile = self.writes[operand], self.fetch[operand]
                self._put(self.write, operand, pieces[first:last], dict.fromkeys(_elements(pieces), tile))
                self.stages[self.write] = Stage("arriving", tile)
                self.pending.add(self.write)
                return f"copy {_part(step, len(pieces), tile)}, into stage {self.write}", (self.write,), ()
            case LoadTile(operand, _, first, last):
                pieces, tile, row = self.reads[operand], self.fetch[operand], self.rows[operand]
                self._put(row, operand, pieces[first:last], dict.fromkeys(_elements(pieces), tile))
                self.stages[row] = Stage("arriving", tile)
                return f"load {_part(step, len(pieces), tile)}, into registers", (row,), ()
            case StoreTile(operand, first, last):
                pieces, row = self.writes[operand], self.rows[operand]
                self._put(self.write, operand, pieces[first:last], self.held[row][operand])
                stored = {self.held[row][operand][each] for each in _elements(pieces[first:last])}
                of = next(iter(stored)) if len(stored) == 1 else None
                self.stages[row] = replace(self.stages[row], state="ready")  # it waits for what it stores
                flying = self.write in self.pending or any(self.write in group for group in self.groups)
                whole = not flying and self._tile(self.write) is not None
                self.stages[self.write] = Stage("landed" if whole else "arriving", of)
                return f"store {_part(step, len(pieces), of)}, into stage {self.write}", (self.write,), (row,)
            case Commit():
                self.groups.append(self.pending)
                self.pending = set()
                return "close the group of copies", (), ()
            case Wait(pending):
                return self._wait(pending), (), ()
            case Barrier():
                return self._meet(), (), ()
            case Advance() as step:
                return self._advance(step), (), ()
            case LoadFragment(k, slot, count):
                self.slots.update({slot + i: (self._tile(self.read), k + i) for i in range(count)})
                many = "s" * (count > 1)
                which, where = _span(k, k + count), _span(slot, slot + count)
                text = f"load fragment{many} k = {which} of stage {self.read} into slot{many} {where}"
                return text, (), (self.read,)
            case Mma(slot) if not self.count:
                self.stages = [replace(stage, state="ready") for stage in self.stages]  # it waits for its operands
                each = {self._tile(row) for row in self.rows.values()}
                of = next(iter(each)) if len(each) == 1 else None
                return f"multiply slot {slot}: tile {of}, k = {slot}", (), tuple(range(len(self.stages)))
            case Mma(slot):
                of, k = self.slots[slot]
                return f"multiply slot {slot}: tile {of}, k = {k}", (), ()
            case Promote():
                return "add what the atoms have summed to the accumulators", (), ()

    def _put(
        self, row: int, operand: OperandName, pieces: Sequence[Piece], tiles: Mapping[tuple[int, int], int | None]
    ) -> None:
        """Let some accesses bring their elements, of these k-tiles, into a stage or registers."""
        self.held[row][operand].update((each, tiles[each]) for each in _elements(pieces))

    def _tile(self, row: int) -> int | None:
        """The k-tile that a stage or registers hold all of; None where they hold parts of several."""
        tiles = {tile for elements in self.held[row].values() for tile in elements.values()}
        return next(iter(tiles)) if len(tiles) == 1 else None

    def _meet(self) -> str:
        """What a barrier brings: what has landed may be read, what was read may be written again."""
        landed = [index for index, stage in enumerate(self.stages) if stage.state == "landed"]
        done = sorted(self.read_since - set(landed))
        self.stages = [replace(s, state="ready") if s.state == "landed" else s for s in self.stages]
        self.read_since = set()
        gains = [f"stage {index} may be read" for index in landed] + [
            f"nobody still reads stage {index}" for index in done
        ]
        return ": ".join(["all threads meet", *([", ".join(gains)] if gains else [])])

    def _wait(self, pending: int) -> str:
        done = self.groups[: max(0, len(self.groups) - pending)]
        self.groups = self.groups[len(done) :]
        landed: set[int] = set().union(*done)
        if pending == 0:
            landed |= self.pending
            self.pending = set()
        for stage in landed:
            if self._tile(stage) is not None:
                self.stages[stage] = replace(self.stages[stage], state="landed")
        flying = "1 group of copies is" if pending == 1 else f"{pending} groups of copies are"
        return "wait for all copies" if pending == 0 else f"wait until at most {flying} in flight"

    def _advance(self, step: Advance) -> str:
        for name in step.operands:
            self.fetch[name] += 1
        if step.operands:
            of = " and ".join(name.upper() for name in step.operands)
            return f"next to fetch of {of}: tile {self.fetch[step.operands[0]]}"
        if step.cursor == "write":
            self.write = (self.write + 1) % self.count
            return f"write stage {self.write} from now on"
        self.read = (self.read + 1) % self.count
        return f"read stage {self.read} from now on"


def _nothing(operand: Operand) -> dict[tuple[int, int], int | None]:
    """A thread's elements (i, j), of no k-tile yet."""
    return dict.fromkeys(_elements(fetch_pieces(operand.copy, "read")))


def _elements(pieces: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """All that some accesses move."""
    return (element for piece in pieces for element in piece.elements)


def _part(step: CopyTile | LoadTile | StoreTile, pieces: int, tile: int | None) -> str:
    """What is moved: the operand, its k-tile, and which of so many accesses of a thread, unless they are all."""
    part = "" if step.last - step.first == pieces else f", {_access(step.first, step.last)} of {pieces}"
    return f"{step.operand.upper()}, tile {tile}{part}"


def _access(first: int, end: int) -> str:
    return f"access{'es' * (end > first + 1)} {_span(first, end)}"


def _span(first: int, end: int) -> str:
    """first .. end - 1, or the one that it is."""
    return str(first) if end == first + 1 else f"{first} .. {end - 1}"
