"""The program: what one block does in which order, as data. Templates print it and tests delete from it.

A turn of the steady loop multiplies one k-tile. With two stages or more, fragments are loaded one k ahead of the multiply-adds, and the last k
crosses into the next stage:

    k = 0 ..        fetch tile + stages - 1 into the write stage, a few pieces of cp.async a k
    k               load fragment k + 1, multiply fragment k
    k = BLK_K - 1   make the next tile readable, move to its stage, load its fragment 0

One barrier a tile serves both hazards: what was copied before it is readable after it, and a stage is written again
only after the barrier that follows its last read.

With one stage nothing overlaps: a turn multiplies the tile that is there, k by k; threads meet; the next tile is
fetched; they meet again. With none there is nothing to share and nobody to meet: a thread multiplies the fragments that
it holds and loads those of the next tile.

Copies are dealt out over the turn, since fragment loads that stand behind all of them at once wait for their turn in the
memory pipe. With two stages the first half of a turn has them all: the rest is for them to arrive.

Fetches are guarded, not branched around: past a branch the compiler
moves a whole tile's multiply-adds above the loads and leaves nothing to hide their latency.
"""

from __future__ import annotations

from layoutgen.plan.model import (
    Advance,
    Barrier,
    Commit,
    CopyTile,
    Fetch,
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


def fragment_slots(stages: int, block_k: int, depth: int) -> int:
    """Slots for `depth` fragments that are loaded together, twice, unless an odd number of loads would end a tile on
    the wrong slot, or nothing is to overlap."""
    return 2 * depth if stages > 1 and block_k // depth % 2 == 0 else depth


def copy_steps(stages: int, block_k: int) -> int:
    """Over how many k of a turn copies are dealt out; the last k is the next tile's."""
    return max(1, block_k // 2 if stages == 2 else block_k - 1)


def deal(moves: list[Step], steps: int) -> list[list[Step]]:
    """Moves in their order, the pieces of copies evenly over so many steps; loads into registers come first, at once."""
    dealt: list[list[Step]] = [[move for move in moves if not isinstance(move, CopyTile)]]
    dealt += [[] for _ in range(steps - 1)]
    copies = [move for move in moves if isinstance(move, CopyTile)]
    total, passed = sum(move.last for move in copies), 0
    for move in copies:
        for step in range(steps):
            first, last = (min(max(total * bound // steps - passed, 0), move.last) for bound in (step, step + 1))
            if first < last:
                dealt[step].append(CopyTile(move.operand, move.guards, first, last))
        passed += move.last
    return dealt


def plan_program(copies: dict[OperandName, Fetch], stages: int, block_k: int, depth: int) -> Program:
    """copies by operand, stages and k-tile depth -> Program.

    depth: how many k fragments are loaded for together; it divides block_k.
    """
    asynchronous = any(not copy.atom.through_registers for copy in copies.values())
    grouped = asynchronous and stages > 2  # with two stages every copy is waited for, and groups tell nothing apart
    staged = [name for name, copy in copies.items() if copy.atom.through_registers]
    slots = fragment_slots(stages, block_k, depth)

    def moves(first: bool) -> list[Step]:
        guards: frozenset[Guard] = frozenset({"x", "tile", "k"}) if first else frozenset({"x", "tile"})
        return [
            LoadTile(name, guards) if copy.atom.through_registers else CopyTile(name, guards, 0, copy.reads)
            for name, copy in copies.items()
        ]

    fetched: list[Step] = [Advance("fetch"), *([Commit()] if grouped else [])]

    def fetch(first: bool) -> list[Step]:
        return [*moves(first), *fetched]

    def arrive() -> list[Step]:
        """Make the next tile's stage readable by every thread."""
        return [*([Wait(max(0, stages - 2))] if asynchronous else []), Barrier()]

    if stages == 0:
        multiply: list[Step] = [Mma(k) for k in range(block_k)]
        return Program(tuple(fetch(first=True)), (*multiply, *fetch(first=False)))

    store: list[Step] = [StoreTile(name) for name in staged]
    if stages == 1:
        turn: list[Step] = []
        for k in range(0, block_k, depth):
            turn += [LoadFragment(k, 0, depth), *(Mma(slot) for slot in range(depth))]
        return Program(
            (*fetch(first=True), *store, *arrive()), (*turn, Barrier(), *fetch(first=False), *store, *arrive())
        )

    store.append(Advance("write"))

    prologue: list[Step] = []
    for tile in range(stages - 1):
        prologue += [*fetch(first=tile == 0), *store]
    prologue += [*arrive(), LoadFragment(0, 0, depth)]

    # A stage that is stored to from registers is written at the end of a turn, else from its beginning.
    begin = deal(moves(first=False), copy_steps(stages, block_k))
    begin[-1] += fetched + ([] if staged else store)
    cross = (store if staged else []) + [*arrive(), Advance("read")]
    steady: list[Step] = []
    for k in range(0, block_k, depth):
        after = k + depth
        ahead: list[Step] = [LoadFragment(after % block_k, after % slots, depth)]
        if after == block_k:
            ahead = cross + ahead
        here = [step for each in range(k, after) for step in (*(begin[each:][:1] or [[]])[0], Mma(each % slots))]
        steady += ahead + here if slots > depth else here + ahead
    return Program(tuple(prologue), tuple(steady))
