"""The plan's program, walked: what each step does to which stage, for as many turns as it takes to see the pattern."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

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

State = Literal["empty", "arriving", "landed", "ready"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What a stage of shared memory holds; without those, what a thread's registers for A or B do. arriving: copies are
    in flight; landed: this thread's have arrived, others' perhaps not; ready: every thread may read it."""

    state: State = "empty"
    tile: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One executed step. part: "prologue" or "turn 0", ..; text: what it does, in words.

    writes, reads: the stages it touches. stages: what each holds after it.
    """

    part: str
    text: str
    stages: tuple[Stage, ...]
    writes: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    multiplies: bool = False


def stage_names(plan: Plan) -> tuple[str, ...]:
    """What each of a moment's stages is."""
    if not plan.stages:
        return tuple(f"{operand.name.upper()} in registers" for operand in plan.operands)
    return tuple(f"stage {stage}" for stage in range(plan.stages))


def timeline(plan: Plan, turns: int | None = None) -> tuple[Moment, ...]:
    """Prologue, then `turns` of the steady loop (default: until every stage has been read, and one more)."""
    walk = _Walk(plan)
    count = max(plan.stages, 1) + 1 if turns is None else turns
    moments = [walk.step(step, "prologue") for step in plan.program.prologue]
    for turn in range(count):
        moments += [walk.step(step, f"turn {turn}") for step in plan.program.steady]
    return tuple(moments)


class _Walk:
    """The cursors of the kernel: next k-tile to fetch, stages to write and read, groups in flight, registers."""

    def __init__(self, plan: Plan) -> None:
        self.shared = plan.stages > 0
        self.pieces = {operand.name: operand.copy.reads for operand in plan.operands}
        self.rows = [operand.name for operand in plan.operands]  # of the stages, where they are registers
        self.stages = [Stage() for _ in stage_names(plan)]
        self.fetch = self.write = self.read = 0
        self.read_since: set[int] = set()  # stages that were read since all threads met
        self.pending: set[int] = set()  # stages with copies since the last commit
        self.groups: list[set[int]] = []  # committed, oldest first
        self.staged: dict[str, int] = {}  # operand -> k-tile in its staging registers
        self.slots: dict[int, tuple[int | None, int]] = {}  # fragment slot -> (k-tile, k)

    def step(self, step: Step, part: str) -> Moment:
        text, writes, reads = self._apply(step)
        self.read_since |= set(reads)
        return Moment(part, text, tuple(self.stages), writes, reads, isinstance(step, Mma))

    def _apply(self, step: Step) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """What a step does: in words, to which stages it writes, and which it reads."""
        match step:
            case CopyTile(operand, _, first, last):
                self.stages[self.write] = Stage("arriving", self.fetch)
                self.pending.add(self.write)
                part = (
                    "" if last - first == self.pieces[operand] else f", {_span(first, last)} of {self.pieces[operand]}"
                )
                return f"copy {operand.upper()}, tile {self.fetch}{part}, into stage {self.write}", (self.write,), ()
            case LoadTile(operand) if not self.shared:
                row = self.rows.index(operand)
                self.stages[row] = Stage("arriving", self.fetch)
                return f"load {operand.upper()}, tile {self.fetch}, into registers", (row,), ()
            case LoadTile(operand):
                self.staged[operand] = self.fetch
                return f"load {operand.upper()}, tile {self.fetch}, into registers", (), ()
            case StoreTile(operand):
                stored = self.staged[operand]
                flying = self.write in self.pending or any(self.write in group for group in self.groups)
                self.stages[self.write] = Stage("arriving" if flying else "landed", stored)
                return f"store {operand.upper()}, tile {stored}, into stage {self.write}", (self.write,), ()
            case Commit():
                self.groups.append(self.pending)
                self.pending = set()
                return "close the group of copies", (), ()
            case Wait(pending):
                return self._wait(pending), (), ()
            case Barrier():
                return self._meet(), (), ()
            case Advance(cursor):
                return self._advance(cursor), (), ()
            case LoadFragment(k, slot, count):
                self.slots.update({slot + i: (self.stages[self.read].tile, k + i) for i in range(count)})
                many = "s" * (count > 1)
                which, where = _span(k, k + count), _span(slot, slot + count)
                text = f"load fragment{many} k = {which} of stage {self.read} into slot{many} {where}"
                return text, (), (self.read,)
            case Mma(slot) if not self.shared:
                self.stages = [replace(stage, state="ready") for stage in self.stages]  # it waits for its operands
                tiles = {stage.tile for stage in self.stages}
                held = next(iter(tiles)) if len(tiles) == 1 else None
                return f"multiply slot {slot}: tile {held}, k = {slot}", (), tuple(range(len(self.stages)))
            case Mma(slot):
                tile, k = self.slots[slot]
                return f"multiply slot {slot}: tile {tile}, k = {k}", (), ()

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
        landed = set().union(*done)
        if pending == 0:
            landed |= self.pending
            self.pending = set()
        for stage in landed:
            self.stages[stage] = replace(self.stages[stage], state="landed")
        flying = "1 group of copies is" if pending == 1 else f"{pending} groups of copies are"
        return "wait for all copies" if pending == 0 else f"wait until at most {flying} in flight"

    def _advance(self, cursor: str) -> str:
        count = len(self.stages)
        if cursor == "fetch":
            self.fetch += 1
            return f"next to fetch: tile {self.fetch}"
        if cursor == "write":
            self.write = (self.write + 1) % count
            return f"write stage {self.write} from now on"
        self.read = (self.read + 1) % count
        return f"read stage {self.read} from now on"


def _span(first: int, end: int) -> str:
    """first .. end - 1, or the one that it is."""
    return str(first) if end == first + 1 else f"{first} .. {end - 1}"
