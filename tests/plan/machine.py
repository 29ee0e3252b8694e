"""An abstract machine that runs a plan's program for one thread among others and refuses every hazard.

It follows which k-tile lies where and who may see it, and knows nothing of layouts. A copy lands as late as the waits
allow; what one thread wrote, others see after a barrier; what was read may be overwritten after a barrier.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from layoutgen.plan.model import (
    Advance,
    Barrier,
    Commit,
    CopyTile,
    LoadFragment,
    LoadTile,
    Mma,
    OperandName,
    Program,
    Step,
    StoreTile,
    Wait,
)

OPERANDS: tuple[OperandName, OperandName] = ("a", "b")
JUNK = -1  # a tile that does not exist: what is stored after the last, or read before anything was written


class Hazard(Exception):
    """The program read, wrote or multiplied something that it must not."""


@dataclass
class Stage:
    """One operand's part of one stage: the tile in it, how far its writing has come, and when it was last read."""

    tile: int = JUNK
    state: str = "visible"  # or "flying", then "landed" (seen by the thread that wrote), then "visible"
    read_at: int = -1  # in barriers passed


@dataclass
class Machine:
    stages: int
    k_tiles: int
    fetch: int = 0
    read: int = 0
    write: int = 0
    barriers: int = 0
    memory: dict[tuple[OperandName, int], Stage] = field(default_factory=dict)
    staged: dict[OperandName, int] = field(default_factory=dict)
    fetched: dict[OperandName, int] = field(default_factory=lambda: dict.fromkeys(OPERANDS, 0))
    open_group: list[Stage] = field(default_factory=list)
    groups: list[list[Stage]] = field(default_factory=list)
    slots: dict[int, tuple[tuple[int, int] | None, ...]] = field(default_factory=dict)
    multiplied: list[tuple[int, int]] = field(default_factory=list)

    def run(self, program: Program) -> list[tuple[int, int]]:
        """-> the (k-tile, k) in the order they were multiplied. Raises Hazard."""
        for operand in OPERANDS:
            for stage in range(self.stages):
                self.memory[operand, stage] = Stage()
        for step in program.prologue:
            self.step(step)
        for _ in range(self.k_tiles):
            for step in program.steady:
                self.step(step)
        flying = [part for group in [*self.groups, self.open_group] for part in group if part.state == "flying"]
        self._require(not flying, "a copy is in flight at the end")
        return self.multiplied

    def step(self, step: Step) -> None:
        match step:
            case CopyTile():
                self._guards(step.guards)
                if self._fetches(step.operand):
                    self.open_group.append(self._overwrite(step.operand, self.fetch, "flying"))
            case LoadTile():
                self._guards(step.guards)
                if self._fetches(step.operand):
                    self.staged[step.operand] = self.fetch
            case StoreTile():
                self._overwrite(step.operand, self.staged.pop(step.operand, JUNK), "landed")
            case Commit():
                self.groups.append(self.open_group)
                self.open_group = []
            case Wait():
                if step.pending == 0:  # cp.async.wait_all waits for what is not committed, too (PTX ISA)
                    self.step(Commit())
                for group in self.groups[: len(self.groups) - step.pending]:
                    for part in group:
                        part.state = "landed" if part.state == "flying" else part.state
            case Barrier():
                self.barriers += 1
                for part in self.memory.values():
                    part.state = "visible" if part.state == "landed" else part.state
            case Advance("fetch"):
                self.fetch += 1
            case Advance("read"):
                self.read = (self.read + 1) % self.stages
            case Advance("write"):
                self.write = (self.write + 1) % self.stages
            case LoadFragment():
                self.slots[step.slot] = tuple(self._load(operand, step.k) for operand in OPERANDS)
            case Mma():
                a, b = self.slots.get(step.slot, (None, None))
                self._require(a is not None and a == b, f"slot {step.slot} holds {a} of A and {b} of B")
                if a is not None:
                    self.multiplied.append(a)
            case _:
                raise Hazard(f"an unknown step: {step}")

    def _require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Hazard(otherwise)

    def _guards(self, guards: frozenset[str]) -> None:
        self._require({"x", "tile"} <= guards, "a fetch is not bounded by rows, or by tiles")
        self._require(("k" in guards) == (self.fetch == 0), "the first tile, and no other, is bounded in k")

    def _fetches(self, operand: OperandName) -> bool:
        """Whether a tile is left; each operand fetches every tile once, in order."""
        if self.fetch < self.k_tiles:
            self._require(self.fetched[operand] == self.fetch, f"{operand} fetches tile {self.fetch} out of turn")
            self.fetched[operand] += 1
        return self.fetch < self.k_tiles

    def _overwrite(self, operand: OperandName, tile: int, state: str) -> Stage:
        part = self.memory[operand, self.write]
        self._require(part.state != "flying", f"stage {self.write} of {operand} is written while a copy is in flight")
        self._require(part.read_at < self.barriers, f"stage {self.write} of {operand} is written while it is read")
        part.tile, part.state = tile, state
        return part

    def _load(self, operand: OperandName, k: int) -> tuple[int, int] | None:
        part = self.memory[operand, self.read]
        part.read_at = self.barriers
        if part.tile == JUNK:
            return None  # harmless unless it is multiplied
        self._require(part.state == "visible", f"tile {part.tile} of {operand} is read while it is {part.state}")
        return part.tile, k
