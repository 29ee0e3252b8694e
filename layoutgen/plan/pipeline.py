"""The program: what one block does in which order, as data. Templates print it and tests delete from it.

A turn multiplies one k-tile. Fragments are loaded one k ahead of the multiply-adds, and the last k crosses into the next
stage:

    k = 0           (steady only) fetch tile + stages - 1 into the write stage
    k               load fragment k + 1, multiply fragment k
    k = BLK_K - 1   make the next tile readable, move to its stage, load its fragment 0

The steady turns fetch without a condition, since a branch there lets the compiler move a whole tile's multiply-adds above
the loads and leaves nothing to hide their latency; the last stages - 1 tiles, fetched by then, are drained.
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

    def fetch(first: bool) -> list[Step]:
        guards: frozenset[Guard] = frozenset({"x", "k"}) if first else frozenset({"x"})
        moves: list[Step] = [
            LoadTile(name, guards) if copy.atom.through_registers else CopyTile(name, guards)
            for name, copy in copies.items()
        ]
        return [*moves, Advance("fetch")]

    def fill(first: bool) -> list[Step]:
        """Prologue: one tile, if there is one, all the way into the write stage."""
        steps: list[Step] = [IfTilesLeft(tuple(fetch(first))), *(StoreTile(name) for name in staged)]
        return [*steps, *([Commit()] if asynchronous else []), Advance("write")]

    def arrive(pending: int) -> list[Step]:
        """Make the next tile's stage readable by every thread."""
        return [*([Wait(pending)] if asynchronous else []), Barrier()]

    def turn(fetching: bool) -> tuple[Step, ...]:
        """One k-tile. Without a fetch nothing is committed, so whatever is in flight is waited for."""
        begin: list[Step] = []
        cross: list[Step] = []
        if fetching:
            begin = [*fetch(first=False), *([Commit()] if asynchronous else [])]
            # A stage that is stored to from registers is written at the end of the turn, else from its beginning.
            begin += [] if staged else [Advance("write")]
            cross = [*(StoreTile(name) for name in staged), *([Advance("write")] if staged else [])]
        cross += [*arrive(stages - 2 if fetching else 0), Advance("read")]
        steps: list[Step] = []
        for k in range(block_k):
            ahead: list[Step] = [LoadFragment((k + 1) % block_k, (k + 1) % slots)]
            if k == block_k - 1:
                ahead = [*cross, *ahead]
            first, multiply = (begin if k == 0 else []), Mma(k % slots)
            steps += [*ahead, *first, multiply] if slots == 2 and block_k > 1 else [*first, multiply, *ahead]
        return tuple(steps)

    prologue: list[Step] = []
    for tile in range(stages - 1):
        prologue += fill(first=tile == 0)
    prologue += [*arrive(stages - 2), LoadFragment(0, 0)]
    return Program(tuple(prologue), turn(fetching=True), turn(fetching=False))
