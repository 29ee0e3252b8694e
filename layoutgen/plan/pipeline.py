"""The program: what one block does in which order, as data. Templates print it and tests delete from it.

The steady loop runs once per k-tile. Its first step starts fetching the tile that is `stages - 1` ahead; fragments are
loaded one k ahead of the multiply-adds, and the last k crosses into the next stage:

    k = 0           fetch tile + stages - 1 into the write stage
    k               load fragment k + 1, multiply fragment k
    k = BLK_K - 1   wait for the next tile, meet, move to its stage, load its fragment 0

One barrier a tile serves both hazards: what was copied before it is readable after it, and a stage is written again
only after the barrier that follows its last read.
"""

from __future__ import annotations

from layoutgen.plan.model import (
    Advance,
    Barrier,
    Commit,
    Copy,
    CopyTile,
    Guard,
    IfTilesLeft,
    LoadFragment,
    LoadTile,
    Mma,
    OperandName,
    Program,
    Step,
    StoreTile,
    Wait,
)


def fragment_slots(block_k: int) -> int:
    """Two register slots a fragment, unless an odd number of k would end a tile on the wrong slot."""
    return 2 if block_k % 2 == 0 else 1


def plan_program(copies: dict[OperandName, Copy], stages: int, block_k: int) -> Program:
    """copies by operand, stages and k-tile depth -> Program."""
    asynchronous = any(not copy.atom.through_registers for copy in copies.values())
    staged = [name for name, copy in copies.items() if copy.atom.through_registers]
    slots = fragment_slots(block_k)

    def fetch(first: bool) -> IfTilesLeft:
        guards: frozenset[Guard] = frozenset({"x", "k"}) if first else frozenset({"x"})
        moves: list[Step] = [
            LoadTile(name, guards) if copy.atom.through_registers else CopyTile(name, guards)
            for name, copy in copies.items()
        ]
        return IfTilesLeft((*moves, Advance("fetch")))

    def fill(first: bool) -> list[Step]:
        """Prologue: one tile, all the way into the write stage."""
        steps: list[Step] = [fetch(first), *(StoreTile(name) for name in staged)]
        return [*steps, *([Commit()] if asynchronous else []), Advance("write")]

    def arrive() -> list[Step]:
        """Make the next tile's stage readable by every thread."""
        return [*([Wait(stages - 2)] if asynchronous else []), Barrier()]

    prologue: list[Step] = []
    for tile in range(stages - 1):
        prologue += fill(first=tile == 0)
    prologue += [*arrive(), LoadFragment(0, 0)]

    steady: list[Step] = []
    for k in range(block_k):
        last = k == block_k - 1
        cross: list[Step] = []
        if last:
            cross = [*(StoreTile(name) for name in staged), *([Advance("write")] if staged else [])]
            cross += [*arrive(), Advance("read")]
        begin: list[Step] = []
        if k == 0:
            begin = [fetch(first=False), *([Commit()] if asynchronous else [])]
            begin += [] if staged else [Advance("write")]
        ahead: list[Step] = [*cross, LoadFragment((k + 1) % block_k, (k + 1) % slots)]
        here: list[Step] = [Mma(k % slots)]
        if slots == 2:
            steady += [*ahead, *begin, *here] if not last else [*ahead, *here]
        else:
            steady += [*begin, *here, *ahead]
    return Program(tuple(prologue), tuple(steady), ())
