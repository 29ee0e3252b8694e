"""Plan (+ device) -> facts: coverage, registers, shared memory and the static count of memory instructions.

Everything here is evaluated from the plan's layouts; check, build reports and tests read it and compute none of it again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from layoutgen.plan.model import (
    Copy,
    CopyTile,
    CTile,
    LoadFragment,
    LoadTile,
    Operand,
    Plan,
    StoreTile,
)

WARP_SIZE = 32


@dataclass(frozen=True, slots=True)
class Coverage:
    """Whether every coordinate of a tile has exactly one owner; else the first coordinate that has not, and its owners."""

    ok: bool
    coordinate: tuple[int, ...] = ()
    owners: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.ok:
            return "every coordinate has one owner"
        place = "(" + ",".join(map(str, self.coordinate)) + ")"
        return f"{place} is owned by " + ("nobody" if not self.owners else " and ".join(self.owners))


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers of one thread. minimum: accumulators, fragments and staged elements, all alive in the main loop.

    cap: what ptxas may use at most, given threads and min_blocks. What it does use is known only once it is built.
    """

    accumulators: int
    fragments: int
    staging: int
    cap: int

    @property
    def minimum(self) -> int:
        return self.accumulators + self.fragments + self.staging


def cover_c(tile: CTile) -> Coverage:
    """CTile -> does each (m, n) of the block tile belong to exactly one value of one thread, numbered within the block?"""
    block_m, block_n, _ = tile.block
    positions = tile.positions.offsets()
    lanes, warps = tile.lanes.offsets(), tile.warps.offsets()
    values = positions.size // (lanes.size * warps.size)
    lane = np.tile(lanes, warps.size * values)
    warp = np.tile(np.repeat(warps, lanes.size), values)
    value = np.repeat(np.arange(values), lanes.size * warps.size)

    def owner(i: int) -> str:
        return f"warp {warp[i]} lane {lane[i]} value {value[i]}"

    def coordinate(offset: int) -> tuple[int, int]:
        return offset % block_m, offset // block_m

    inside = positions < block_m * block_n
    counts = np.bincount(positions[inside], minlength=block_m * block_n)
    wrong = np.flatnonzero(counts != 1)
    if wrong.size:
        first = int(wrong[0])
        return Coverage(False, coordinate(first), tuple(owner(i) for i in np.flatnonzero(positions == first)[:4]))
    if not inside.all():
        i = int(np.flatnonzero(~inside)[0])
        return Coverage(False, coordinate(int(positions[i])), (f"{owner(i)}, outside the tile",))
    # Each coordinate has one position. Now each register must hold one coordinate, and each thread must exist.
    register = (lane + WARP_SIZE * warp) * values + value
    order = np.argsort(positions)
    threads = warps.size * WARP_SIZE
    missing = (lane[order] >= WARP_SIZE) | (warp[order] >= warps.size)
    if missing.any():
        i = int(order[np.flatnonzero(missing)[0]])
        return Coverage(False, coordinate(int(positions[i])), (f"{owner(i)}, which is not one of {threads} threads",))
    _, first_use, inverse = np.unique(register[order], return_index=True, return_inverse=True)
    repeated = first_use[inverse] != np.arange(order.size)
    if repeated.any():
        at = int(np.flatnonzero(repeated)[0])
        i, other = int(order[at]), int(order[first_use[inverse[at]]])
        held = ",".join(map(str, coordinate(int(positions[other]))))
        return Coverage(False, coordinate(int(positions[i])), (f"{owner(i)}, which holds ({held}) already",))
    return Coverage(True)


def cover_copy(copy: Copy, extent: int, block_k: int) -> Coverage:
    """Copy -> does each (x, k) of the operand's tile land exactly once?"""
    x = copy.thread_x.offsets()[:, None, None] + copy.element_x.offsets()[None, :, None]
    k = copy.thread_k.offsets()[:, None, None] + copy.element_k.offsets()[None, None, :]
    inside = (x < extent) & (k < block_k)
    offsets = np.where(inside, x + extent * k, -1).reshape(-1)
    per_thread = copy.element_x.size * copy.element_k.size
    counts = np.bincount(offsets[offsets >= 0], minlength=extent * block_k)
    wrong = np.flatnonzero(counts != 1)
    if not wrong.size and inside.all():
        return Coverage(True)
    first = int(wrong[0]) if wrong.size else extent * block_k
    owners = [f"thread {i // per_thread}" for i in np.flatnonzero(offsets == first)[:4]]
    return Coverage(False, (first % extent, first // extent), tuple(owners))


def cover_shared(operand: Operand) -> Coverage:
    """Operand -> does each (x, k, stage) have a word of shared memory of its own?"""
    layout = operand.shared.layout
    offsets = layout.offsets()
    order = np.argsort(offsets, kind="stable")
    same = np.flatnonzero(np.diff(offsets[order]) == 0)
    if not same.size:
        return Coverage(True)
    later = int(order[same + 1].min())
    earlier = int(np.flatnonzero(offsets == offsets[later])[0])
    extent, block_k = layout[0].size, layout[1].size

    def coordinate(i: int) -> tuple[int, int, int]:
        return i % extent, i // extent % block_k, i // (extent * block_k)

    return Coverage(False, coordinate(later), (f"the word of {coordinate(earlier)}",))


def registers(plan: Plan, registers_per_sm: int, registers_per_thread: int) -> Registers:
    """Plan and a device's register file -> bounds on the registers of one thread."""
    a, b = plan.a.fragment, plan.b.fragment
    fragments = sum(f.slots * f.vectors * f.vector for f in (a, b))
    staging = sum(
        o.copy.element_x.size * o.copy.element_k.size for o in plan.operands if o.copy.atom.through_registers
    )
    # ptxas allocates a thread's registers in units of 8 (CUDA programming guide, register allocation granularity).
    per_thread = registers_per_sm // (plan.threads.threads * plan.schedule.min_blocks) // 8 * 8
    return Registers(
        accumulators=plan.tile.value_mode[0].size * plan.tile.value_mode[1].size,
        fragments=fragments,
        staging=staging,
        cap=min(registers_per_thread, per_thread),
    )


def static_accesses(plan: Plan) -> Counter[tuple[str, int]]:
    """(opcode, bytes per thread) -> how often the instruction stands in the kernel's text.

    Loops over pieces are unrolled and the loop over k-tiles is not, so a step counts as often as the program names it.
    """
    counts: Counter[tuple[str, int]] = Counter()
    for step in plan.program.steps:
        if isinstance(step, LoadFragment):
            for operand in plan.operands:
                load = operand.fragment.load
                counts[load.opcode, load.bytes] += operand.fragment.vectors
        elif isinstance(step, CopyTile | LoadTile | StoreTile):
            copy = (plan.a if step.operand == "a" else plan.b).copy
            elements = copy.element_x.size * copy.element_k.size
            if isinstance(step, LoadTile):
                counts["ld.global", 4 * copy.read_vector] += elements // copy.read_vector
            else:
                counts[copy.write.opcode, copy.write.bytes] += elements // copy.write_vector
    stores = plan.tile.value_mode[0].size * plan.tile.value_mode[1].size // plan.epilogue.vector
    paths = 2 if plan.epilogue.read_c_if_beta else 1  # with and without C
    counts["st.global", plan.epilogue.store.bytes] += paths * stores
    counts["ld.global", plan.epilogue.load.bytes] += stores
    return counts
