"""Every memory access of a plan's kernel: how often it stands in the text, and what its executions cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal

from layoutgen.facts.banks import ROW_BYTES
from layoutgen.facts.resources import REGISTER
from layoutgen.facts.traffic import (
    Opcode,
    Sites,
    conflict_free_wavefronts,
    count,
    epilogue_sites,
    fetch_sites,
    fragment_sites,
    global_lines,
    ideal_sectors,
    together,
    write_sites,
)
from layoutgen.hw.devices import Device
from layoutgen.hw.warp_atoms import WARP
from layoutgen.plan.model import AtomFragment, CopyTile, LoadFragment, LoadTile, Plan, StoreTile
from layoutgen.plan.schedule import WorkRange
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.problem import Problem, packed


@dataclass(frozen=True, slots=True)
class AccessFacts:
    """One access of a block inside the problem: once per k-tile, or once per block tile of C.

    Attributes:
        name: as the emitted source names it: fragment_a, copy_b, load_a, store_a, read_c, write_d.
        opcode: PTX's instruction and space. bytes: what one thread moves at once.
        per: "k-tile", or "block" for the epilogue.
        instructions: of one thread. requests: of all warps.
        wavefronts: passes of shared memory, those of cp.async an estimate; conflict_free: what they would be if no two
            words shared a bank of shared memory.
        sectors: 32-byte pieces of global memory that are moved; ideal_sectors: the fewest that hold what is asked for.
        lines: 128-byte lines of global memory that requests touch.
    """

    name: str
    opcode: Opcode
    bytes: int
    per: Literal["k-tile", "block"]
    instructions: int
    requests: int
    wavefronts: int
    conflict_free: int
    sectors: int
    ideal_sectors: int
    lines: int

    @property
    def apart(self) -> bool:
        """Whether loads of shared memory are served by parts of a warp, as two by two are not where lanes agree in
        pairs (see `banks.phases`): conflict_free would be half, then."""
        parts = WARP * self.bytes // ROW_BYTES
        return self.opcode == "ld.shared" and parts > 1 and self.conflict_free == parts * self.requests


def are_known(plan: Plan, device: Device) -> bool:
    """Whether it is known what a plan's accesses cost on a device: banks, sectors and warps of 32 are NVIDIA's. Which
    lanes of a wavefront CDNA serves together is documented for some widths alone, and was not measured here."""
    return device.cc is not None and not plan.amd


def access_facts(plan: Plan, problem: Problem | None = None) -> tuple[AccessFacts, ...]:
    """Every access, from shared memory's fragments to D, in the program's order.

    problem: whose strides and addresses count; by default a dense one whose rows start on 256-byte boundaries. The
    block is its first and is taken to be whole; the k-tile is one of the middle.
    """
    block_m, block_n, block_k = plan.tile.block
    if problem is None:
        problem = packed(plan, 64 * block_m, 64 * block_n, 64 * block_k, beta=1.0)
    whole = replace(problem, m=block_m, n=block_n, k=4 * block_k)
    block = WorkRange(0, 0, 0, 4 * block_k)
    of_tile: list[Sites] = []
    for step in plan.program.steady:
        if isinstance(step, LoadFragment):
            of_tile += [fragment_sites(plan, operand, step.k, step.count) for operand in plan.shared_operands]
        elif isinstance(step, CopyTile | LoadTile):
            of_tile.append(fetch_sites(plan, whole, block, step, 1))
        elif isinstance(step, StoreTile):
            of_tile.append(write_sites(plan, plan.in_shared(step.operand), slice(step.first, step.last)))
    of_block = list(epilogue_sites(plan, whole, block))
    return (*_gathered(of_tile, "k-tile"), *_gathered(of_block, "block"))


def _gathered(every: list[Sites], per: Literal["k-tile", "block"]) -> list[AccessFacts]:
    """One AccessFacts for all sites of a name."""
    found = []
    for name in dict.fromkeys(sites.name for sites in every):
        sites = together([each for each in every if each.name == name])
        total = count(sites)
        found.append(
            AccessFacts(
                name=name,
                opcode=sites.opcode,
                bytes=sites.bytes,
                per=per,
                instructions=sites.active.shape[0],
                requests=total.requests,
                wavefronts=total.wavefronts,
                conflict_free=conflict_free_wavefronts(sites, total.wavefronts),
                sectors=total.sectors,
                ideal_sectors=ideal_sectors(sites),
                lines=global_lines(sites),
            )
        )
    return found


def static_accesses(plan: Plan) -> Counter[tuple[str, int]]:
    """(opcode, bytes per thread) -> how often the instruction stands in the kernel's text.

    Loops over pieces are unrolled and the loop over k-tiles is not, so a step counts as often as the program names it.
    """
    counts: Counter[tuple[str, int]] = Counter()
    passes = 1 if plan.products == 1 else 2  # with guards and without
    for step in plan.program.steps * passes:
        if isinstance(step, LoadFragment):
            for operand in plan.shared_operands:
                fragment = operand.fragment
                opcode, size = fragment.load.opcode, fragment.load.bytes
                if isinstance(fragment, AtomFragment) and opcode != "ld.shared":
                    opcode, size = "ldmatrix", REGISTER * fragment.registers
                counts[opcode, size] += fragment.vectors * step.count // fragment.depth
        elif isinstance(step, LoadTile):
            fetched = plan.operand(step.operand)
            counts["ld.global", ITEMSIZE[fetched.dtype] * fetched.copy.read_vector] += step.last - step.first
        elif isinstance(step, CopyTile | StoreTile):
            write = plan.in_shared(step.operand).copy.write
            counts[write.opcode, write.bytes] += step.last - step.first
    values = plan.tile.value_mode[0].size * plan.tile.value_mode[1].size
    stores = values // plan.epilogue.vector // plan.epilogue.turns
    reads_c = plan.epilogue.reads_c
    paths = 2 if plan.epilogue.read_c_if_beta and reads_c else 1  # with and without C
    counts["st.global", plan.epilogue.bytes] += paths * stores
    counts["ld.global", plan.epilogue.bytes] += stores * reads_c
    for link in plan.epilogue.linked:
        assert link.tensor is not None
        if not link.tensor.written:
            pieces = plan.epilogue.vector * ITEMSIZE[link.tensor.dtype] // link.bytes
            rows = plan.tile.value_mode[0].size // plan.epilogue.turns
            times = {"": 1, "m": paths * rows, "n": stores // rows * pieces, "mn": paths * stores * pieces}
            counts["ld.global", link.bytes] += times[link.tensor.modes]
    if plan.schedule.kind == "stream_k":  # partial sums, word by word, and the flag that says they are there
        counts["st.global", ITEMSIZE[plan.accumulate]] += values + 1
        counts["ld.global", ITEMSIZE[plan.accumulate]] += values + 1
    return counts
