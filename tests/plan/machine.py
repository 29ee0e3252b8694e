"""A reference machine that runs a plan's program for one thread among others and refuses every hazard.

It follows which k-tile each element of a thread's copies holds and who may see it, and knows nothing of addresses. A
copy lands as late as the waits allow; what one thread wrote, others see after a barrier; what was read may be
overwritten after a barrier. All threads do the same, so what one of them has done to a stage, all have.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutgen.plan.model import (
    Advance,
    Barrier,
    Commit,
    CopyTile,
    Fetch,
    LoadFragment,
    LoadTile,
    Mma,
    OperandName,
    Plan,
    Promote,
    SharedOperand,
    Step,
    StoreTile,
    Wait,
)

JUNK = -1  # a tile that does not exist: what lies in memory and registers before anything was written
Element = tuple[int, int]  # (i, j) of a thread's elements along x and k


class Hazard(Exception):
    """The program read, wrote or multiplied something that it must not."""


@dataclass
class Word:
    """An element of a stage: the tile that it is of, and how far its writing has come."""

    tile: int = JUNK
    state: str = "visible"  # or "flying", then "landed" (seen by the thread that wrote), then "visible"


def pieces(copy: Fetch, width: int, mode: str) -> list[list[Element]]:
    """The elements of each access, `width` along `mode`; accesses along x are fastest."""
    width_x, width_k = (width, 1) if mode == "x" else (1, width)
    return [
        [(i + di, j + dj) for dj in range(width_k) for di in range(width_x)]
        for j in range(0, copy.element_k.size, width_k)
        for i in range(0, copy.element_x.size, width_x)
    ]


class Machine:
    """One thread of a plan's kernel on a problem of so many k-tiles."""

    def __init__(self, plan: Plan, k_tiles: int) -> None:
        self.plan, self.k_tiles = plan, k_tiles
        self.read = self.write = self.barriers = 0
        self.fetch: dict[OperandName, int] = {"a": 0, "b": 0}
        self.reads = {o.name: pieces(o.copy, o.copy.read_vector, o.copy.read_mode) for o in plan.operands}
        self.fetched = {name: [0] * len(every) for name, every in self.reads.items()}
        self.registers: dict[OperandName, dict[Element, int]] = {
            name: {element: JUNK for piece in every for element in piece} for name, every in self.reads.items()
        }
        self.memory = {
            (name, stage): {element: Word() for element in elements}
            for name, elements in self.registers.items()
            for stage in range(plan.stages)
        }
        self.read_at = dict.fromkeys(self.memory, -1)  # when a stage was last read, in barriers passed
        self.open_group: list[Word] = []
        self.groups: list[list[Word]] = []
        self.slots: dict[int, tuple[tuple[int, int] | None, ...]] = {}
        self.multiplied: list[tuple[int, int]] = []

    def run(self) -> list[tuple[int, int]]:
        """-> the (k-tile, k) in the order they were multiplied. Raises Hazard."""
        program = self.plan.program
        for step in program.prologue:
            self.step(step)
        for _ in range(self.k_tiles):
            for step in program.steady:
                self.step(step)
        flying = any(word.state == "flying" for stage in self.memory.values() for word in stage.values())
        self._require(not flying, "a copy is in flight at the end")
        return self.multiplied

    def step(self, step: Step) -> None:
        match step:
            case CopyTile():
                for elements in self._arriving(step):
                    self.open_group += [self._overwrite(step.operand, each, "flying") for each in elements]
            case LoadTile():
                for elements in self._arriving(step):
                    self.registers[step.operand].update(dict.fromkeys(elements, self.fetch[step.operand]))
            case StoreTile():
                copy = self._stored(step.operand).copy
                every = pieces(copy, copy.write_vector, copy.write_mode)
                for element in (each for piece in self._part(every, step) for each in piece):
                    self._overwrite(step.operand, element, "landed")
            case Commit():
                self.groups.append(self.open_group)
                self.open_group = []
            case Wait():
                if step.pending == 0:  # cp.async.wait_all waits for what is not committed, too (PTX ISA)
                    self.step(Commit())
                for group in self.groups[: len(self.groups) - step.pending]:
                    self._all(group, "flying", "landed")
            case Barrier():
                self.barriers += 1
                self._all([word for stage in self.memory.values() for word in stage.values()], "landed", "visible")
            case Advance() if step.operands:
                for name in step.operands:
                    self.fetch[name] += 1
            case Advance("read"):
                self.read = (self.read + 1) % self.plan.stages
            case Advance("write"):
                self.write = (self.write + 1) % self.plan.stages
            case LoadFragment():
                for each in range(step.count):
                    self.slots[step.slot + each] = tuple(
                        self._load(self._stored(operand.name), step.k + each) for operand in self.plan.operands
                    )
            case Mma():
                a, b = self._fragments(step.slot)
                self._require(a is not None and a == b, f"slot {step.slot} holds {a} of A and {b} of B")
                if a is not None:
                    self.multiplied.append(a)
            case Promote():
                self.promoted = len(self.multiplied)
            case _:
                raise Hazard(f"an unknown step: {step}")

    def _require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Hazard(otherwise)

    def _all(self, words: list[Word], before: str, after: str) -> None:
        for word in words:
            word.state = after if word.state == before else word.state

    def _stored(self, name: OperandName) -> SharedOperand:
        operand = self.plan.operand(name)
        self._require(isinstance(operand, SharedOperand), f"{name} has no shared memory")
        assert isinstance(operand, SharedOperand)
        return operand

    def _part(self, every: list[list[Element]], step: CopyTile | LoadTile | StoreTile) -> list[list[Element]]:
        self._require(0 <= step.first < step.last <= len(every), f"{step} of {len(every)} pieces")
        return every[step.first : step.last]

    def _arriving(self, step: CopyTile | LoadTile) -> list[list[Element]]:
        """The pieces that a fetch brings; none past the last tile. Each fetches every tile once, in order."""
        name, tile = step.operand, self.fetch[step.operand]
        self._require({"x", "tile"} <= step.guards, "a fetch is not bounded by rows, or by tiles")
        self._require(("k" in step.guards) == (tile == 0), "the first tile, and no other, is bounded in k")
        self._require(
            self.plan.operand(name).copy.atom.through_registers == isinstance(step, LoadTile),
            f"{name} goes another way",
        )
        found = self._part(self.reads[name], step)
        if tile >= self.k_tiles:
            return []
        for piece in range(step.first, step.last):
            self._require(self.fetched[name][piece] == tile, f"piece {piece} of {name} fetches tile {tile} out of turn")
            self.fetched[name][piece] += 1
        return found

    def _overwrite(self, name: OperandName, element: Element, state: str) -> Word:
        """Write an element of the write stage: what is fetched, or what its register holds."""
        word, stage = self.memory[name, self.write][element], f"stage {self.write} of {name}"
        self._require(word.state != "flying", f"{stage} is written while a copy is in flight")
        self._require(self.read_at[name, self.write] < self.barriers, f"{stage} is written while it is read")
        word.tile = self.fetch[name] if state == "flying" else self.registers[name][element]
        word.state = state
        return word

    def _load(self, operand: SharedOperand, k: int) -> tuple[int, int] | None:
        """Fragment k of the read stage, for which other threads wrote any of its elements; None of no one tile, which
        is harmless unless it is multiplied."""
        self._require(0 <= k < self.plan.k_blocks, f"there is no k = {k}")
        name = operand.name
        self.read_at[name, self.read] = self.barriers
        words = self.memory[name, self.read].values()
        for word in words:
            self._require(word.state == "visible", f"tile {word.tile} of {name} is read while it is {word.state}")
        return self._of_one({word.tile for word in words}, k)

    def _fragments(self, slot: int) -> tuple[tuple[int, int] | None, ...]:
        """What a slot holds of A and B. The registers of an operand that is not shared are its fragments, by k."""
        if self.plan.shared_operands:
            return self.slots.get(slot, (None, None))
        self._require(0 <= slot < self.plan.tile.block[2], f"there is no slot {slot}")
        return tuple(
            self._of_one({tile for (_, j), tile in self.registers[operand.name].items() if j == slot}, slot)
            for operand in self.plan.operands
        )

    def _of_one(self, tiles: set[int], k: int) -> tuple[int, int] | None:
        (tile, *others) = tiles
        return None if others or tile == JUNK else (tile, k)
