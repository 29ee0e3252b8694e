"""The program: what one block does in which order, as data. Templates print it and tests delete from it.

A turn of the steady loop multiplies one k-tile. Fragments are loaded one k ahead of the multiply-adds, and the last k
crosses into the next stage:

    k = 0           fetch tile + stages - 1 into the write stage
    k               load fragment k + 1, multiply fragment k
    k = BLK_K - 1   make the next tile readable, move to its stage, load its fragment 0

One barrier a tile serves both hazards: what was copied before it is readable after it, and a stage is written again
only after the barrier that follows its last read. Fetches are guarded, not branched around: past a branch the compiler
moves a whole tile's multiply-adds above the loads and leaves nothing to hide their latency.
"""

from __future__ import annotations

from layoutgen.plan.model import (
    Advance,
    Barrier,
    Commit,
    Copy,
    CopyTile,
    Guard,
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
    grouped = asynchronous and stages > 2  # with two stages every copy is waited for, and groups tell nothing apart
    staged = [name for name, copy in copies.items() if copy.atom.through_registers]
    slots = fragment_slots(block_k)

    def fetch(first: bool) -> list[Step]:
        guards: frozenset[Guard] = frozenset({"x", "tile", "k"}) if first else frozenset({"x", "tile"})
        moves: list[Step] = [
            LoadTile(name, guards) if copy.atom.through_registers else CopyTile(name, guards)
            for name, copy in copies.items()
        ]
        return [*moves, Advance("fetch"), *([Commit()] if grouped else [])]

    def arrive() -> list[Step]:
        """Make the next tile's stage readable by every thread."""
        return [*([Wait(stages - 2)] if asynchronous else []), Barrier()]

    store: list[Step] = [*(StoreTile(name) for name in staged), Advance("write")]

    prologue: list[Step] = []
    for tile in range(stages - 1):
        prologue += [*fetch(first=tile == 0), *store]
    prologue += [*arrive(), LoadFragment(0, 0)]

    # A stage that is stored to from registers is written at the end of a turn, else from its beginning.
    begin = fetch(first=False) + ([] if staged else store)
    cross = (store if staged else []) + [*arrive(), Advance("read")]
    steady: list[Step] = []
    for k in range(block_k):
        ahead: list[Step] = [LoadFragment((k + 1) % block_k, (k + 1) % slots)]
        if k == block_k - 1:
            ahead = cross + ahead
        here = [*(begin if k == 0 else []), Mma(k % slots)]
        steady += ahead + here if slots == 2 else here + ahead
    return Program(tuple(prologue), tuple(steady))
