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
    """What a stage of shared memory holds. arriving: copies are in flight; landed: this thread's have arrived, others'
    perhaps not; ready: every thread may read it."""

    state: State = "empty"
    tile: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One executed step. part: "prologue" or "turn 0", ..; text: what it does, in words.

    writes, reads: the stage it touches, if any. stages: what each holds after it.
    """

    part: str
    text: str
    stages: tuple[Stage, ...]
    writes: int | None = None
    reads: int | None = None
    multiplies: bool = False


def timeline(plan: Plan, turns: int | None = None) -> tuple[Moment, ...]:
    """Prologue, then `turns` of the steady loop (default: until every stage has been read, and one more)."""
    walk = _Walk(plan)
    count = plan.stages + 1 if turns is None else turns
    moments = [walk.step(step, "prologue") for step in plan.program.prologue]
    for turn in range(count):
        moments += [walk.step(step, f"turn {turn}") for step in plan.program.steady]
    return tuple(moments)


class _Walk:
    """The cursors of the kernel: next k-tile to fetch, stages to write and read, groups in flight, registers."""

    def __init__(self, plan: Plan) -> None:
        self.stages = [Stage() for _ in range(plan.stages)]
        self.fetch = self.write = self.read = 0
        self.pending: set[int] = set()  # stages with copies since the last commit
        self.groups: list[set[int]] = []  # committed, oldest first
        self.staged: dict[str, int] = {}  # operand -> k-tile in its staging registers
        self.slots: dict[int, tuple[int | None, int]] = {}  # fragment slot -> (k-tile, k)

    def step(self, step: Step, part: str) -> Moment:
        text, writes, reads = self._apply(step)
        return Moment(part, text, tuple(self.stages), writes, reads, isinstance(step, Mma))

    def _apply(self, step: Step) -> tuple[str, int | None, int | None]:
        match step:
            case CopyTile(operand):
                self.stages[self.write] = Stage("arriving", self.fetch)
                self.pending.add(self.write)
                return f"copy {operand.upper()}, tile {self.fetch}, into stage {self.write}", self.write, None
            case LoadTile(operand):
                self.staged[operand] = self.fetch
                return f"load {operand.upper()}, tile {self.fetch}, into registers", None, None
            case StoreTile(operand):
                stored = self.staged[operand]
                flying = self.write in self.pending or any(self.write in group for group in self.groups)
                self.stages[self.write] = Stage("arriving" if flying else "landed", stored)
                return f"store {operand.upper()}, tile {stored}, into stage {self.write}", self.write, None
            case Commit():
                self.groups.append(self.pending)
                self.pending = set()
                return "close the group of copies", None, None
            case Wait(pending):
                return self._wait(pending), None, None
            case Barrier():
                self.stages = [replace(s, state="ready") if s.state == "landed" else s for s in self.stages]
                return "all threads meet", None, None
            case Advance(cursor):
                return self._advance(cursor), None, None
            case LoadFragment(k, slot):
                self.slots[slot] = (self.stages[self.read].tile, k)
                return f"load fragment k = {k} of stage {self.read} into slot {slot}", None, self.read
            case Mma(slot):
                tile, k = self.slots[slot]
                return f"multiply slot {slot}: tile {tile}, k = {k}", None, None

    def _wait(self, pending: int) -> str:
        done = self.groups[: max(0, len(self.groups) - pending)]
        self.groups = self.groups[len(done) :]
        landed = set().union(*done)
        if pending == 0:
            landed |= self.pending
            self.pending = set()
        for stage in landed:
            self.stages[stage] = replace(self.stages[stage], state="landed")
        return "wait for all copies" if pending == 0 else f"wait until {pending} groups of copies are in flight"

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
