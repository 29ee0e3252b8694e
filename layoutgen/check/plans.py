"""Rules on the plans that a spec's levels compose to: what is copied, where it is stored, what is resident."""

from __future__ import annotations

from collections.abc import Iterator

from layoutgen.check.findings import Finding, error, warning
from layoutgen.check.levels import capability, fits_block
from layoutgen.check.wavefronts import waves
from layoutgen.errors import counted
from layoutgen.facts import Registers, cover_copy, register_cap, resident_blocks, shared_collision
from layoutgen.hw.devices import Device
from layoutgen.plan import Plan
from layoutgen.plan.model import SharedOperand
from layoutgen.plan.storage import default_shared, write_default
from layoutgen.spec import Spec

SPARE_REGISTERS = 18  # kernels of this family with fewer beside those of `Registers` spill (ptxas 13.0, sm_90a)


def copies(spec: Spec, plans: tuple[Plan, ...]) -> Iterator[Finding]:
    for each in plans:
        for operand in each.shared_operands:
            extent, block_k = operand.tile
            landed = cover_copy(operand.copy, (extent, block_k))
            if not landed.ok:
                yield error(
                    spec, f"coverage-{operand.name}", f"copies.{operand.name}",
                    f"each ({operand.x},k) of {operand.name.upper()}'s k-tile is copied once (variant {each.variant})",
                    f"{operand.name.upper()}{landed}", f"every ({operand.x},k) of {extent} x {block_k} once",
                    f"use values that repeat to {extent} x {block_k} exactly, such as [1, 1]",
                )  # fmt: skip
    for operand in plans[0].shared_operands:
        atom, key = operand.copy.atom, f"copies.{operand.name}.atom"
        if spec.amd:
            lacks, allowed, fix = not atom.through_registers, "ldg.sts", f"write {key}: ldg.sts, or leave it out"
        else:
            lacks = capability(atom.arch) > capability(spec.arch)
            allowed, fix = f"{atom.arch} or newer", f"write arch: {atom.arch}"
        if lacks:
            yield error(
                spec, "atom", key, "the spec's architecture has the copy's instruction",
                f"{atom.name} with arch: {spec.arch}", allowed, fix,
            )  # fmt: skip


def storage(spec: Spec, primary: Plan, device: Device) -> Iterator[Finding]:
    if not primary.shared_operands:
        return
    for operand in primary.shared_operands:
        pair = shared_collision(operand.shared)
        if pair is not None:
            first, second = (f"{operand.name.upper()}({x},{k})" for x, k in pair)
            yield error(
                spec, "shared-overlap", f"shared.{operand.name}",
                f"each ({operand.x},k) of {operand.name.upper()}'s k-tile has its own word of a stage",
                f"{first} and {second} share one", "offsets without repetition", write_default_of(spec, operand),
            )  # fmt: skip
    widest = max(primary.shared_operands, key=_excess)
    key, fix = f"shared.{widest.name}", write_default_of(spec, widest)
    if _excess(widest) <= 0:
        key, fix = "tiling.block", "use a smaller block tile"
    yield from fits_block(spec, device, primary.shared_bytes // primary.stages, key, fix)


def _excess(operand: SharedOperand) -> int:
    """Words of a stage beyond those of the planner's own layout."""
    one = operand.shared.layout[:2]
    return one.cosize - default_shared(one[0].size, one[1].size, operand.contiguous).cosize


def write_default_of(spec: Spec, operand: SharedOperand) -> str:
    """The edit that gives an operand the planner's own shared layout."""
    return write_default(spec, operand.name, operand.tile[0])


def residency(spec: Spec, primary: Plan, bounds: Registers, device: Device) -> Iterator[Finding]:
    """Registers of a thread, and how many blocks an SM has room for."""
    threads, blocks = primary.threads.threads, primary.schedule.min_blocks
    live = ", ".join(
        f"{count} {what}" for count, what in (
            (bounds.accumulators, "accumulators"), (bounds.fragments, "of fragments"), (bounds.staging, "staged"),
            (bounds.addresses, "of addresses"),
        )
    )  # fmt: skip
    alone = register_cap(threads, 1, device)
    if bounds.minimum > alone:
        yield error(
            spec, "registers", "tiling.block", "one thread's live values fit its registers",
            f"{bounds.minimum}: {live}", f"{alone} for {threads} threads on {device.name}",
            "use a smaller block tile, or other warps",
        )  # fmt: skip
        return
    if spec.amd:
        yield from waves(spec, primary, bounds, device)
        return
    if spec.schedule.waves_per_eu is not None:
        yield error(
            spec, "waves-per-eu", "schedule.waves_per_eu", "waves_per_eu is asked of an AMD device's SIMDs",
            f"waves_per_eu: {spec.schedule.waves_per_eu} with arch: {spec.arch}", "min_blocks, for a multiprocessor",
            "leave schedule.waves_per_eu out, or write schedule.min_blocks",
        )  # fmt: skip
    fit = resident_blocks(primary, bounds.minimum, device)
    spare = SPARE_REGISTERS if device.cc else 0  # what ptxas needs says nothing about AMD
    easy = resident_blocks(primary, bounds.minimum + spare, device)
    if blocks > fit > 0:
        yield error(
            spec, "min-blocks", "schedule.min_blocks", "min_blocks blocks fit on one multiprocessor",
            f"{blocks} blocks of {threads} threads, {bounds.minimum} registers each, and {primary.shared_bytes} bytes "
            "of shared memory",
            f"{fit} on {device.name}" + (f", {easy} with registers to spare" if 0 < easy < fit else ""),
            f"write schedule.min_blocks: {easy or fit}",
        )  # fmt: skip
    elif bounds.minimum + spare > bounds.cap:
        lower = 0 < easy < blocks
        yield warning(
            spec, "spills", "schedule.min_blocks" if lower else "tiling.block",
            "beside a thread's live values, registers are left for cursors and predicates",
            f"{bounds.cap - bounds.minimum} of {bounds.cap} ({live})",
            f"{SPARE_REGISTERS}, or it may spill: a build tells",
            f"write schedule.min_blocks: {easy}" if lower else "use a smaller block tile",
        )  # fmt: skip


def spilled(spec: Spec, built: Plan, registers: int, spill_bytes: int, device: Device) -> Iterator[Finding]:
    """What a build found: ptxas kept values of a thread in local memory. spill_bytes: of its loads and stores."""
    if not spill_bytes:
        return
    threads, blocks = built.threads.threads, built.schedule.min_blocks
    wanted = registers + -(-spill_bytes // 8)  # a spilled register is stored and loaded at least once, 4 bytes each
    fewer = [each for each in range(blocks - 1, 0, -1) if register_cap(threads, each, device) >= wanted]
    yield warning(
        spec, "spilled", "schedule.min_blocks" if fewer else "tiling.block",
        "ptxas keeps the values of a thread in registers",
        f"{spill_bytes} bytes of spill loads and stores in variant {built.variant}, beside {registers} registers",
        f"none; {register_cap(threads, blocks, device)} registers for {counted(blocks, 'block')} of {threads} threads",
        f"write schedule.min_blocks: {fewer[0]}" if fewer else "use a smaller block tile, or more warps",
    )  # fmt: skip
