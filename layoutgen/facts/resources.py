"""What a plan takes of a multiprocessor: registers, shared memory, threads; and how many blocks it has room for."""

from __future__ import annotations

from dataclasses import dataclass

from layoutgen.hw.devices import Device
from layoutgen.plan.model import AtomFragment, Plan, SharedOperand
from layoutgen.plan.storage import ITEMSIZE

REGISTER = 4  # bytes
GLOBAL_ADDRESS, SHARED_ADDRESS = 2, 1  # registers: 64 bits, and 32


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers of one thread. minimum: what is alive throughout the main loop.

    Attributes:
        accumulators, fragments, staging: elements of C, of A and B to multiply, and of A and B on their way.
        addresses: where it reads shared memory, and the next k-tile in global memory.
        cap: what the compiler may use at most, given threads and `wanted_blocks`. What it does, only a build tells.
    """

    accumulators: int
    fragments: int
    staging: int
    addresses: int
    cap: int

    @property
    def minimum(self) -> int:
        return self.accumulators + self.fragments + self.staging + self.addresses


def register_cap(threads: int, blocks: int, device: Device) -> int:
    """The most registers a thread may have, so that so many blocks of so many threads are resident on one SM.

    The registers of a warp are allocated in units, all from one of the SM's equal parts (cuda_occupancy.h); so does
    ptxas count, which caps a kernel of __launch_bounds__(288, 2) at 96.
    """
    warps_of_part = -(-threads // device.warp_size * blocks // device.partitions)
    of_block = -(-threads // device.warp_size)
    per_warp = min(
        device.registers_per_sm // device.partitions // warps_of_part, device.registers_per_block // of_block
    )
    per_warp -= per_warp % device.register_unit
    return min(device.registers_per_thread, per_warp // device.warp_size)


def wanted_blocks(plan: Plan, device: Device) -> int:
    """Blocks that must be resident on one SM: NVIDIA's min_blocks, or those that have waves_per_eu wavefronts of AMD's
    for each of its SIMDs."""
    if plan.schedule.waves_per_eu is None:
        return plan.schedule.min_blocks
    return -(-plan.schedule.waves_per_eu * device.partitions // plan.tile.warps.size)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks that one SM has room for, by what is used up: registers, shared memory, threads, and blocks themselves.

    warps: of a block. max_warps: that the SM can hold.
    """

    registers: int
    shared_memory: int
    threads: int
    block_slots: int
    warps: int
    max_warps: int

    @property
    def limits(self) -> dict[str, int]:
        """Resource, in words -> blocks."""
        names = ("registers", "shared memory", "threads", "block slots")
        return dict(zip(names, (self.registers, self.shared_memory, self.threads, self.block_slots), strict=True))

    @property
    def blocks(self) -> int:
        """Blocks that are resident at once."""
        return min(self.limits.values())

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that run out first."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    @property
    def fraction(self) -> float:
        """Resident warps, of those that the SM can hold."""
        return self.blocks * self.warps / self.max_warps


def occupancy(plan: Plan, registers_per_thread: int, device: Device) -> Occupancy:
    """How many blocks of the plan one SM has room for, if each thread has so many registers (cuda_occupancy.h)."""
    of_block = -(-plan.threads.threads // device.warp_size)
    per_warp = -(-registers_per_thread * device.warp_size // device.register_unit) * device.register_unit
    warps = device.registers_per_sm // device.partitions // per_warp * device.partitions
    per_block = -(-plan.shared_bytes // device.shared_unit) * device.shared_unit + device.shared_reserved_per_block
    return Occupancy(
        registers=warps // of_block,
        shared_memory=device.shared_per_sm // max(1, per_block),  # of a block that has none, as many as one likes
        threads=device.max_warps_per_sm // of_block,
        block_slots=device.max_blocks_per_sm,
        warps=of_block,
        max_warps=device.max_warps_per_sm,
    )


def resident_blocks(plan: Plan, registers_per_thread: int, device: Device) -> int:
    """`occupancy`'s blocks."""
    return occupancy(plan, registers_per_thread, device).blocks


def _atom_registers(operand: SharedOperand) -> int:
    """Registers of a slot of an operand's fragments, 32 bits each."""
    fragment = operand.fragment
    assert isinstance(fragment, AtomFragment)
    return fragment.of_atom * fragment.atoms * max(ITEMSIZE[operand.dtype] // REGISTER, 1)


def registers(plan: Plan, device: Device) -> Registers:
    """Plan and a device's register file -> bounds on the registers of one thread."""
    values_m, values_n = (layout.size for layout in plan.tile.value_mode)
    staging = sum(
        -(-each.copy.element_x.size * each.copy.element_k.size * ITEMSIZE[each.dtype] // REGISTER)
        for each in plan.shared_operands
        if each.copy.atom.through_registers
    )
    of_slot = values_m + values_n
    if plan.uses_atoms:
        of_slot = sum(_atom_registers(each) for each in plan.shared_operands)
    return Registers(
        # What atoms sum until it is promoted has registers of its own.
        accumulators=(1 + (plan.products > 1)) * values_m * values_n * ITEMSIZE[plan.accumulate] // REGISTER,
        fragments=of_slot * plan.program.slots,
        staging=staging,
        addresses=GLOBAL_ADDRESS * len(plan.operands) + SHARED_ADDRESS * len(plan.shared_operands),
        cap=register_cap(plan.threads.threads, wanted_blocks(plan, device), device),
    )
