"""Plan (+ device) -> facts: coverage, registers and the static count of memory instructions.

Everything here is evaluated from the layouts that the emitted kernel carries; check, build reports and tests read it
and compute none of it again. Coverage is brute force: a tile that fits a block has at most a few hundred thousand
elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from layoutgen.algebra import Offsets, first_collision
from layoutgen.hw.devices import Device
from layoutgen.plan.model import Copy, CopyTile, CTile, LoadFragment, LoadTile, Plan, Shared, StoreTile, ThreadMap
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.plan.tile import WARP_SIZE

MOST_OWNERS = 4


@dataclass(frozen=True, slots=True)
class Coverage:
    """Whether every coordinate of a tile has exactly one owner.

    Attributes:
        coordinate: else the first, in colexicographic order, that has not, or one outside the tile if all inside do.
        owners: its first few owners, in words. count: how many there are in all.
    """

    coordinate: tuple[int, int] | None = None
    outside: bool = False
    owners: tuple[str, ...] = ()
    count: int = 0

    @property
    def ok(self) -> bool:
        return self.coordinate is None

    def __str__(self) -> str:
        if self.coordinate is None:
            return "every coordinate has one owner"
        place = f"({self.coordinate[0]},{self.coordinate[1]})" + (", outside the tile," if self.outside else "")
        more = f" and {self.count - len(self.owners)} more" if self.count > len(self.owners) else ""
        return f"{place} is owned by {' and '.join(self.owners) or 'nobody'}{more}"


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


def _cover(first: Offsets, second: Offsets, extents: tuple[int, int], owner: Callable[[int], str]) -> Coverage:
    """Is each (i, j) of a tile of `extents` among the pairs (first, second) exactly once, and no other pair?

    owner: index of a pair -> whose it is.
    """
    inside = (first >= 0) & (first < extents[0]) & (second >= 0) & (second < extents[1])
    counts = np.bincount((first + extents[0] * second)[inside], minlength=extents[0] * extents[1])
    wrong = np.flatnonzero(counts != 1)
    if wrong.size:
        j, i = divmod(int(wrong[0]), extents[0])
    elif not inside.all():
        outside = np.flatnonzero(~inside)[0]
        i, j = int(first[outside]), int(second[outside])
    else:
        return Coverage()
    owners = np.flatnonzero((first == i) & (second == j))
    few = tuple(owner(int(index)) for index in owners[:MOST_OWNERS])
    return Coverage((i, j), not wrong.size, few, owners.size)


def cover_c(tile: CTile, threads: ThreadMap) -> Coverage:
    """Does each (m, n) of the block tile belong to exactly one value of one thread?"""
    value_m, value_n = (layout.offsets() for layout in tile.value_mode)
    thread_m, thread_n = threads.m.offsets(), threads.n.offsets()
    shape = (threads.threads, value_m.size, value_n.size)  # (thread, i, j), the last fastest
    m = np.broadcast_to(thread_m[:, None, None] + value_m[None, :, None], shape).reshape(-1)
    n = np.broadcast_to(thread_n[:, None, None] + value_n[None, None, :], shape).reshape(-1)

    def owner(index: int) -> str:
        thread, i, j = (int(part) for part in np.unravel_index(index, shape))
        warp, lane = divmod(thread, WARP_SIZE)
        return f"thread {thread} (warp {warp} lane {lane}) value ({i},{j})"

    return _cover(m, n, tile.block[:2], owner)


def cover_copy(copy: Copy, tile: tuple[int, int]) -> Coverage:
    """Does each (x, k) of an operand's tile land exactly once?"""
    shape = (copy.participants, copy.element_x.size, copy.element_k.size)
    thread_x, thread_k = copy.thread_x.offsets(), copy.thread_k.offsets()
    x = np.broadcast_to(thread_x[:, None, None] + copy.element_x.offsets()[None, :, None], shape).reshape(-1)
    k = np.broadcast_to(thread_k[:, None, None] + copy.element_k.offsets()[None, None, :], shape).reshape(-1)

    def owner(index: int) -> str:
        thread, i, j = (int(part) for part in np.unravel_index(index, shape))
        return f"thread {thread} element ({i},{j})"

    return _cover(x, k, tile, owner)


def shared_collision(shared: Shared) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Two (x, k) of a stage that lie in the same word of shared memory, or None; stages never overlap."""
    pair = first_collision(shared.layout[:2])
    if pair is None:
        return None
    (first_k, first_x), (second_k, second_x) = (divmod(index, shared.layout[0].size) for index in pair)
    return (first_x, first_k), (second_x, second_k)


def register_cap(threads: int, blocks: int, device: Device) -> int:
    """The most registers a thread may have, so that so many blocks of so many threads are resident on one SM.

    The registers of a warp are allocated in units, all from one of the SM's equal parts (cuda_occupancy.h); so does
    ptxas count, which caps a kernel of __launch_bounds__(288, 2) at 96.
    """
    warps_of_part = -(-threads // WARP_SIZE * blocks // device.partitions)
    per_warp = device.registers_per_sm // device.partitions // warps_of_part
    per_warp -= per_warp % device.register_unit
    return min(device.registers_per_thread, per_warp // WARP_SIZE)


def resident_blocks(plan: Plan, registers_per_thread: int, device: Device) -> int:
    """How many blocks of the plan one SM has room for, if each thread has so many registers (cuda_occupancy.h)."""
    threads = plan.threads.threads
    per_warp = -(-registers_per_thread * WARP_SIZE // device.register_unit) * device.register_unit
    warps = device.registers_per_sm // device.partitions // per_warp * device.partitions
    per_block = -(-plan.shared_bytes // device.shared_unit) * device.shared_unit + device.shared_reserved_per_block
    return min(
        device.max_blocks_per_sm,
        device.max_threads_per_sm // threads,
        warps * WARP_SIZE // threads,
        device.shared_per_sm // per_block,
    )


def registers(plan: Plan, device: Device) -> Registers:
    """Plan and a device's register file -> bounds on the registers of one thread."""
    fragments = sum(each.fragment.slots * each.fragment.vectors * each.fragment.vector for each in plan.operands)
    staging = sum(
        each.copy.element_x.size * each.copy.element_k.size
        for each in plan.operands
        if each.copy.atom.through_registers
    )
    return Registers(
        accumulators=plan.tile.value_mode[0].size * plan.tile.value_mode[1].size,
        fragments=fragments,
        staging=staging,
        cap=register_cap(plan.threads.threads, plan.schedule.min_blocks, device),
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
            operand = plan.a if step.operand == "a" else plan.b
            copy = operand.copy
            elements = copy.element_x.size * copy.element_k.size
            if isinstance(step, LoadTile):
                counts["ld.global", ITEMSIZE[operand.dtype] * copy.read_vector] += elements // copy.read_vector
            else:
                counts[copy.write.opcode, copy.write.bytes] += elements // copy.write_vector
    stores = plan.tile.value_mode[0].size * plan.tile.value_mode[1].size // plan.epilogue.vector
    paths = 2 if plan.epilogue.read_c_if_beta else 1  # with and without C
    counts["st.global", plan.epilogue.bytes] += paths * stores
    counts["ld.global", plan.epilogue.bytes] += stores
    return counts
