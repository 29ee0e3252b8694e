"""The program: what one block does in which order, as data. Templates print it and tests delete from it.

A turn of the steady loop multiplies one k-tile. With two stages or more, fragments are loaded one k ahead of the
multiply-adds, and the last k crosses into the next stage:

    k in the spread  write the stage of tile + stages - 1: by cp.async, or by stores of what came through registers,
                     which then take the tile after that
    k                load fragment k + 1, multiply fragment k
    k = BLK_K - 1    make the next tile readable, move to its stage, load its fragment 0

One barrier a tile serves both hazards: what was copied before it is readable after it, and a stage is written again
only after the barrier that follows its last read. What goes through registers is loaded a whole turn before it is
stored, so that the multiply-adds of a turn hide its way.

With one stage nothing overlaps: a turn multiplies the tile that is there, k by k; threads meet; the next tile is
fetched; they meet again. On AMD's, which have no cp.async, that tile waits in registers: it is stored between the two
meetings, and the one after it is loaded then, to arrive while this one is multiplied (Triton's pipeline there with
num_stages=2). With none there is nothing to share and nobody to meet: a thread multiplies the fragments that it holds
and loads those of the next tile.

A spec may deal copies out over the k of a turn, since fragment loads that stand behind all of them at once wait in the
memory pipe. Fetches are guarded, not branched around: past a branch the compiler moves a whole tile's multiply-adds
above the loads and leaves nothing to hide their latency.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from layoutgen.plan.model import (
    Advance,
    Barrier,
    Commit,
    Copy,
    CopyTile,
    Fetch,
    Guard,
    LoadFragment,
    LoadTile,
    Mma,
    OperandName,
    Program,
    Promote,
    Step,
    StoreTile,
    Wait,
)

Move = CopyTile | LoadTile | StoreTile
Cursor = Literal["fetch", "fetch_a", "fetch_b"]


def fragment_slots(stages: int, block_k: int, depth: int) -> int:
    """Slots for `depth` fragments that are loaded together, twice, unless an odd number of loads would end a tile on
    the wrong slot, or nothing is to overlap."""
    return 2 * depth if stages > 1 and block_k // depth % 2 == 0 else depth


def deal(moves: list[Move], steps: int) -> list[list[Step]]:
    """The pieces of moves, in their order, evenly over so many steps, of which there is at least one."""
    dealt: list[list[Step]] = [[] for _ in range(steps)]
    total, passed = sum(move.last for move in moves), 0
    for move in moves:
        for step in range(steps):
            first, last = (min(max(total * bound // steps - passed, 0), move.last) for bound in (step, step + 1))
            if first < last:
                dealt[step].append(replace(move, first=first, last=last))
        passed += move.last
    return dealt


def plan_program(
    copies: dict[OperandName, Fetch],
    stages: int,
    block_k: int,
    depth: int,
    spread: tuple[int, int],
    *,
    held: bool = False,
    promote: bool = False,
) -> Program:
    """copies by operand, stages and k-tile depth -> Program.

    depth: how many k fragments are loaded for together; it divides block_k. spread: the k of a turn, from the first up
    to the last, over which copies are dealt out where there are stages to copy ahead; at most block_k - depth, since
    the last fragments of a turn are the next tile's. held: with one stage, whose copies all go through registers, the
    next tile waits there. promote: what atoms have summed is promoted at the end of each tile.
    """
    promoted: list[Step] = [Promote()] * promote
    staged = [name for name, copy in copies.items() if copy.atom.through_registers]
    asynchronous = [name for name in copies if name not in staged]
    slots = fragment_slots(stages, block_k, depth)

    def move(name: OperandName, *, first: bool = False) -> Move:
        guards: frozenset[Guard] = frozenset({"x", "tile", "k"}) if first else frozenset({"x", "tile"})
        return (LoadTile if name in staged else CopyTile)(name, guards, 0, copies[name].reads)

    # Where one operand goes through registers and the other does not, they are not fetched equally far ahead.
    mixed = stages > 1 and staged and asynchronous
    own: dict[OperandName, Cursor] = {"a": "fetch_a", "b": "fetch_b"}

    def on(names: Collection[OperandName]) -> list[Step]:
        return [Advance(own[name]) for name in names] if mixed or not names else [Advance("fetch")]

    def fetch(*, first: bool = False) -> list[Step]:
        return [*(move(name, first=first) for name in copies), *on(copies)]

    if stages == 0:
        multiply: list[Step] = [Mma(k) for k in range(block_k)]
        return Program(tuple(fetch(first=True)), (*multiply, *fetch()))

    def arrive() -> list[Step]:
        """Make the next tile's stage readable by every thread."""
        return [*([Wait(max(0, stages - 2))] if asynchronous else []), Barrier()]

    store: list[Move] = [
        StoreTile(name, 0, copy.writes) for name, copy in copies.items() if isinstance(copy, Copy) and name in staged
    ]
    if stages == 1:
        turn: list[Step] = []
        for k in range(0, block_k, depth):
            turn += [LoadFragment(k, 0, depth), *(Mma(slot) for slot in range(depth))]
        turn += promoted
        if held:
            meet = [*store, *fetch(), *arrive()]
            return Program((*fetch(first=True), *meet), (*turn, Barrier(), *meet))
        return Program((*fetch(first=True), *store, *arrive()), (*turn, Barrier(), *fetch(), *store, *arrive()))

    # With two stages every copy is waited for, and groups tell nothing apart.
    written: list[Step] = [*([Commit()] if asynchronous and stages > 2 else []), Advance("write")]
    prologue: list[Step] = []
    for tile in range(stages - 1):
        prologue += [*fetch(first=tile == 0), *store, *written]
    prologue += [*(move(name) for name in staged), *on(staged), *arrive(), LoadFragment(0, 0, depth)]

    first, last = spread
    beside: list[list[Step]] = [[] for _ in range(first)]
    beside += deal([*store, *(move(name) for name in (*asynchronous, *staged))], last - first)
    wrote = max(k for k, steps in enumerate(beside) if any(isinstance(step, StoreTile | CopyTile) for step in steps))
    beside[wrote] += written
    beside[-1] += on(copies)
    steady: list[Step] = []
    for k in range(0, block_k, depth):
        after = k + depth
        ahead: list[Step] = [LoadFragment(after % block_k, after % slots, depth)]
        if after == block_k:
            ahead = [*arrive(), Advance("read"), *ahead]
        here: list[Step] = []
        for each in range(k, after):
            here += [*(beside[each] if each < last else []), Mma(each % slots)]
        steady += ahead + here if slots > depth else here + ahead
    return Program(tuple(prologue), (*steady, *promoted))
