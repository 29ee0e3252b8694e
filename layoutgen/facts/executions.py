"""A shared-memory access as a warp executes it: the address of each lane, and the phases that serve them."""

from __future__ import annotations

from dataclasses import dataclass

from layoutgen.facts.banks import Phase, phases
from layoutgen.facts.traffic import Opcode, Sites, by_warp, fragment_sites, write_sites
from layoutgen.plan.model import Plan, SharedOperand


@dataclass(frozen=True, slots=True)
class Execution:
    """One instruction of one warp, with the first stage.

    Attributes:
        name: of the access, as in the emitted source. bytes: of each lane.
        k: of a fragment's load, None for a copy. instruction: of a thread's for this k, or k-tile. warp: of the block.
        addresses: bytes of the block's shared memory, which starts at bank 0; None for a lane that takes no part.
        phases: for cp.async as if a warp's data arrived at once: the fewest wavefronts that it takes.
    """

    name: str
    opcode: Opcode
    bytes: int
    k: int | None
    instruction: int
    warp: int
    addresses: tuple[int | None, ...]
    phases: tuple[Phase, ...]

    @property
    def wavefronts(self) -> int:
        return sum(phase.wavefronts for phase in self.phases)

    @property
    def conflict_free(self) -> int:
        """What it would take if no two words shared a bank."""
        return len(self.phases)


def fragment_executions(plan: Plan, operand: SharedOperand) -> list[Execution]:
    """Every execution of an operand's fragment loads in a k-tile: by k, then instruction, then warp."""
    depth = operand.fragment.depth
    return [
        each for k in range(0, plan.k_blocks, depth) for each in _executions(fragment_sites(plan, operand, k, depth), k)
    ]


def write_executions(plan: Plan, operand: SharedOperand) -> list[Execution]:
    """Every execution of an operand's writes to shared memory in a k-tile, by cp.async or stores: by instruction, then
    warp; warps that copy nothing have none."""
    return _executions(write_sites(plan, operand), None)


def _executions(sites: Sites, k: int | None) -> list[Execution]:
    assert sites.shared is not None
    address, active = by_warp(sites.shared, 0), by_warp(sites.active, False)
    warps = len(address) // len(sites.shared)
    found = []
    for row, (at, takes_part) in enumerate(zip(address.tolist(), active.tolist(), strict=True)):
        lanes = tuple(byte if on else None for byte, on in zip(at, takes_part, strict=True))
        served = phases(lanes, sites.bytes, sites.kind)
        found.append(Execution(sites.name, sites.opcode, sites.bytes, k, *divmod(row, warps), lanes, served))
    return found
