"""Spec -> findings: is this tiling legal on a device, and if not, what is wrong where, and which edit mends it.

Rules come in rounds, each safe only after the one before: sizes, for which nothing is computed and which bound the work
of what follows; levels that must compose and cover C; and the plans that result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import gcd
from typing import Any, Literal

from layoutgen.algebra import Layout, covers_exactly_once, max_vector
from layoutgen.algebra.int_tuple import to_text
from layoutgen.errors import PlanError, Where
from layoutgen.facts import (
    Registers,
    cover_c,
    cover_copy,
    register_cap,
    registers,
    resident_blocks,
    shared_collision,
    static_accesses,
)
from layoutgen.hw.devices import Device
from layoutgen.plan import Plan, plan
from layoutgen.plan.model import Operand
from layoutgen.plan.simt import MAX_STAGES
from layoutgen.plan.storage import ITEMSIZE, VECTOR_BYTES, contiguous_mode, default_shared, vector_width, write_default
from layoutgen.plan.tile import WARP_SIZE, compose_tile, map_threads, mend_cover, numbers, renumbered
from layoutgen.spec import Spec

ADDRESS_REGISTERS = 24  # kernels of this family with fewer beside their live values spill (ptxas 13.0, sm_90a)


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that a spec breaks. `rule` is its id; the message states it."""

    rule: str
    severity: Literal["error", "warning"]
    message: str
    got: str
    allowed: str
    fix: str
    where: Where

    def __str__(self) -> str:
        return (
            f"{self.where}: {self.severity} [{self.rule}]: {self.message}\n"
            f"  got: {self.got}\n  allowed: {self.allowed}\n  fix: {self.fix}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What check found about one spec on one device; plans is empty where the levels do not compose."""

    name: str
    device: str
    findings: tuple[Finding, ...]
    plans: tuple[Plan, ...]
    registers: Registers | None

    @property
    def legal(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The report as plain data, for --json."""
        primary = self.plans[0] if self.plans else None
        return {
            "name": self.name,
            "device": self.device,
            "legal": self.legal,
            "findings": [{**asdict(f), "where": str(f.where)} for f in self.findings],
            "threads": primary.threads.threads if primary else None,
            "shared_bytes": primary.shared_bytes if primary else None,
            "registers": {**asdict(self.registers), "minimum": self.registers.minimum} if self.registers else None,
            "variants": [p.variant for p in self.plans],
            "instructions": {f"{op}.{n}B": c for (op, n), c in sorted(static_accesses(primary).items())}
            if primary
            else None,
        }


class IllegalSpecError(PlanError):
    """A spec that check finds illegal, with every finding; `report` holds them."""

    def __init__(self, report: Report) -> None:
        self.report = report
        findings = "\n".join(map(str, report.findings))
        super().__init__(f"{report.name} is not legal on {report.device}:\n{findings}")


def require_legal(spec: Spec, device: Device) -> Report:
    """The report of a spec that is legal on the device. Raises IllegalSpecError for any other."""
    report = check(spec, device)
    if not report.legal:
        raise IllegalSpecError(report)
    return report


def check(spec: Spec, device: Device) -> Report:
    """Spec and device -> Report. Never raises for a spec that loaded: what is wrong with it is a finding."""
    findings = list(_architecture(spec, device))
    plans: tuple[Plan, ...] = ()
    bounds: Registers | None = None
    try:
        blocking = list(_sizes(spec, device)) or list(_levels(spec, device))
        findings += blocking
        plans = () if blocking else plan(spec)
    except PlanError as failure:
        findings.append(_refused(spec, failure))
    if plans:
        primary, bounds = plans[0], registers(plans[0], device)
        findings += [*_copies(spec, plans), *_storage(spec, primary, device)]
        findings += [*_residency(spec, primary, bounds, device), *_advice(spec, primary)]
    findings.sort(key=lambda finding: finding.where.line or 0)
    return Report(spec.name, device.name, tuple(findings), plans, bounds)


def _error(spec: Spec, rule: str, key: str, message: str, got: object, allowed: object, fix: str) -> Finding:
    return Finding(rule, "error", message, str(got), str(allowed), fix, spec.where(key))


def _warning(spec: Spec, rule: str, key: str, message: str, got: object, allowed: object, fix: str) -> Finding:
    return Finding(rule, "warning", message, str(got), str(allowed), fix, spec.where(key))


def _refused(spec: Spec, failure: PlanError) -> Finding:
    return Finding(
        "compose", "error", failure.rule, failure.got or "", failure.allowed or "levels that compose",
        failure.fix or "change one of the levels", failure.where or spec.where("tiling"),
    )  # fmt: skip


# ---- before anything is composed ----


def _architecture(spec: Spec, device: Device) -> Iterator[Finding]:
    """The device runs what the spec asks for; what ends in `a` runs on that architecture alone (PTX ISA, .target)."""
    runs = "the device must be able to run the spec's architecture"
    if device.cc is None:
        yield _error(
            spec, "arch", "arch", f"{runs}: layoutgen emits CUDA, and no code for AMD",
            f"{spec.arch} on {device.name}, which is {device.arch}",
            "an NVIDIA device; on this one the layouts are judged alone",
            "check and build for an NVIDIA device, such as h200",
        )  # fmt: skip
    else:
        least, has = _capability(spec.arch), 10 * device.cc[0] + device.cc[1]
        if least > has or (spec.arch.endswith("a") and spec.arch != device.arch):
            yield _error(
                spec, "arch", "arch", runs, f"{spec.arch} on {device.name}, which is {device.arch}",
                f"sm_{has} or older, or {device.arch} itself", f"write arch: sm_{has}, or check against another device",
            )  # fmt: skip
    if device.warp_size != WARP_SIZE and spec.tiling.lanes.size == WARP_SIZE:
        yield _error(
            spec, "wavefront", "tiling.lanes", "the lanes of a spec are those of the device's wavefront",
            f"{WARP_SIZE} lanes in {spec.tiling.lanes}; {device.name} has wavefronts of {device.warp_size}",
            f"{device.warp_size} lanes, which layoutgen does not plan yet",
            f"check against a device with warps of {WARP_SIZE}, such as h200",
        )  # fmt: skip


def _capability(arch: str) -> int:
    """sm_90a -> 90."""
    return int(arch.removeprefix("sm_").removesuffix("a"))


def _sizes(spec: Spec, device: Device) -> Iterator[Finding]:
    """Lanes, warps and the least shared memory: what bounds every other size."""
    lanes, warps = spec.tiling.lanes, spec.tiling.warps
    if lanes.size != WARP_SIZE:
        yield _error(
            spec, "lanes", "tiling.lanes",
            f"a warp has {WARP_SIZE} lanes"
            + (f", the only size that layoutgen plans: not {device.warp_size}, as on {device.name}"
               if device.warp_size != WARP_SIZE else ""),
            f"{lanes.size} lanes in {lanes}",
            f"{WARP_SIZE} lanes", f"give it {WARP_SIZE} positions, such as (8,4):(4,1)",
        )  # fmt: skip
    elif not numbers(lanes, WARP_SIZE):
        yield _misnumbered(spec, "lanes", lanes)
    if warps.size * WARP_SIZE > device.max_threads_per_block:
        most = device.max_threads_per_block // WARP_SIZE
        yield _error(
            spec, "threads", "tiling.warps", "a block has no more threads than the device allows",
            f"{warps.size} warps, {warps.size * WARP_SIZE} threads", f"{device.max_threads_per_block} threads",
            f"use at most {most} warps, each with a larger tile",
        )  # fmt: skip
    elif not numbers(warps, warps.size):
        yield _misnumbered(spec, "warps", warps)
    block_m, block_n, block_k = spec.tiling.block
    dense = (block_m + block_n) * block_k * ITEMSIZE[spec.operands.a.dtype]
    yield from _fits_block(spec, device, dense, "tiling.block", "use a smaller block tile")


def _misnumbered(spec: Spec, level: Literal["lanes", "warps"], ids: Layout) -> Finding:
    noun, cover = level[:-1], covers_exactly_once(ids, ids.size)
    number = cover.outside if cover.coordinate is None else cover.coordinate
    owners = " and ".join(map(to_text, cover.owner_coordinates))
    return _error(
        spec, level, f"tiling.{level}", f"the {level} number their positions 0 .. {ids.size - 1}, each once",
        f"{ids}: {noun} {number} is at {owners or 'no position'}{_in_c(spec, level, ids)}", "one position each",
        f"write tiling.{level}: {renumbered(ids)}",
    )  # fmt: skip


def _in_c(spec: Spec, level: Literal["lanes", "warps"], ids: Layout) -> str:
    """What wrong numbers do to C: its first coordinate that two positions claim as one value, or that nobody owns."""
    try:
        tile = compose_tile(spec)
    except PlanError:
        return ""  # another finding says why C has no coordinates yet
    mode_m, mode_n = tile.lane_mode if level == "lanes" else tile.warp_mode
    first: dict[int, str] = {}
    for index, number in enumerate(ids.offsets().tolist()):
        here = f"C({mode_m(index % mode_m.size)},{mode_n(index // mode_m.size)})"
        if not 0 <= number < ids.size:
            return f"; {here} is owned by nobody: there is no {level[:-1]} {number}"
        if number in first:
            return f"; {first[number]} and {here} are owned by one value of {level[:-1]} {number}"
        first[number] = here
    return ""


def _fits_block(spec: Spec, device: Device, stage_bytes: int, key: str, fix: str) -> Iterator[Finding]:
    """key, fix: what to change where fewer stages do not help."""
    stages, limit = spec.shared.stages, device.shared_per_block
    if stages * stage_bytes <= limit:
        return
    fewer = min(limit // stage_bytes, MAX_STAGES)
    if fewer >= 2:
        key, fix = "shared.stages", f"write shared.stages: {fewer}"
    yield _error(
        spec, "shared-memory", key, "all stages of A and B fit the shared memory of one block",
        f"{stages * stage_bytes} bytes: {stages} stages of {stage_bytes}", f"{limit} bytes on {device.name}", fix,
    )  # fmt: skip


# ---- the levels of C ----


def _levels(spec: Spec, device: Device) -> Iterator[Finding]:
    """Raises PlanError where the levels of C do not compose."""
    tile = compose_tile(spec)
    each_m, each_n = (layout.size for layout in tile.value_mode)
    if each_m * each_n > device.registers_per_thread:
        yield _error(
            spec, "registers", "tiling.block", "one thread's accumulators fit its registers",
            f"{each_m} x {each_n} values of C in each of {tile.lanes.size * tile.warps.size} threads",
            f"fewer than {device.registers_per_thread} in all", "use a smaller block tile, or more warps",
        )  # fmt: skip
        return
    coverage = cover_c(tile, map_threads(spec, tile))
    if not coverage.ok:
        key, runs = mend_cover(spec)
        yield _error(
            spec, "coverage-c", key, "each (m,n) of the block tile belongs to one value of one thread", f"C{coverage}",
            f"every (m,n) of {tile.block[0]} x {tile.block[1]} once",
            f"write {key}: {runs}, or strides that step over what smaller strides fill, as in (4,2):(1,16)",
        )  # fmt: skip


# ---- the plans ----


def _copies(spec: Spec, plans: tuple[Plan, ...]) -> Iterator[Finding]:
    for each in plans:
        for index, operand in enumerate(each.operands):
            extent, block_k = each.tile.block[index], each.tile.block[2]
            landed = cover_copy(operand.copy, (extent, block_k))
            if not landed.ok:
                yield _error(
                    spec, f"coverage-{operand.name}", f"copies.{operand.name}",
                    f"each ({operand.x},k) of {operand.name.upper()}'s k-tile is copied once (variant {each.variant})",
                    f"{operand.name.upper()}{landed}", f"every ({operand.x},k) of {extent} x {block_k} once",
                    f"use values that repeat to {extent} x {block_k} exactly, such as [1, 1]",
                )  # fmt: skip
    for operand in plans[0].operands:
        if _capability(operand.copy.atom.arch) > _capability(spec.arch):
            yield _error(
                spec, "atom", f"copies.{operand.name}.atom", "the spec's architecture has the copy's instruction",
                f"{operand.copy.atom.name} with arch: {spec.arch}", f"{operand.copy.atom.arch} or newer",
                f"write arch: {operand.copy.atom.arch}",
            )  # fmt: skip


def _storage(spec: Spec, primary: Plan, device: Device) -> Iterator[Finding]:
    for operand in primary.operands:
        pair = shared_collision(operand.shared)
        if pair is not None:
            first, second = (f"{operand.name.upper()}({x},{k})" for x, k in pair)
            yield _error(
                spec, "shared-overlap", f"shared.{operand.name}",
                f"each ({operand.x},k) of {operand.name.upper()}'s k-tile has its own word of a stage",
                f"{first} and {second} share one", "offsets without repetition", _write_default(operand),
            )  # fmt: skip
    widest = max(primary.operands, key=_excess)
    key, fix = f"shared.{widest.name}", _write_default(widest)
    if _excess(widest) <= 0:
        key, fix = "tiling.block", "use a smaller block tile"
    yield from _fits_block(spec, device, primary.shared_bytes // primary.stages, key, fix)


def _excess(operand: Operand) -> int:
    """Words of a stage beyond those of the planner's own layout."""
    one = operand.shared.layout[:2]
    return one.cosize - default_shared(one[0].size, one[1].size).cosize


def _write_default(operand: Operand) -> str:
    """The edit that gives an operand the planner's own shared layout."""
    x, k, _ = operand.shared.layout
    return write_default(operand.name, x.size, k.size)


def _residency(spec: Spec, primary: Plan, bounds: Registers, device: Device) -> Iterator[Finding]:
    """Registers of a thread, and how many blocks an SM has room for."""
    threads, blocks = primary.threads.threads, primary.schedule.min_blocks
    live = f"{bounds.accumulators} accumulators, {bounds.fragments} of fragments, {bounds.staging} staged"
    alone = register_cap(threads, 1, device)
    if bounds.minimum > alone:
        yield _error(
            spec, "registers", "tiling.block", "one thread's live values fit its registers",
            f"{bounds.minimum}: {live}", f"{alone} for {threads} threads on {device.name}",
            "use a smaller block tile, or other warps",
        )  # fmt: skip
        return
    fit = resident_blocks(primary, bounds.minimum, device)
    if blocks > fit > 0:
        yield _error(
            spec, "min-blocks", "schedule.min_blocks", "min_blocks blocks fit on one multiprocessor",
            f"{blocks} blocks of {threads} threads, {bounds.minimum} registers each, and {primary.shared_bytes} bytes "
            "of shared memory", f"{fit} on {device.name}", f"write schedule.min_blocks: {fit}",
        )  # fmt: skip
    elif device.cc and bounds.minimum + ADDRESS_REGISTERS > bounds.cap:  # what ptxas needs says nothing about AMD
        easy = resident_blocks(primary, bounds.minimum + ADDRESS_REGISTERS, device)
        lower = 0 < easy < blocks
        yield _warning(
            spec, "spills", "schedule.min_blocks" if lower else "tiling.block",
            "beside a thread's live values, registers are left for addresses and cursors",
            f"{bounds.cap - bounds.minimum} of {bounds.cap} ({live})", f"{ADDRESS_REGISTERS}, or it will spill",
            f"write schedule.min_blocks: {easy}" if lower else "use a smaller block tile",
        )  # fmt: skip


# ---- legal, but poor ----


def _advice(spec: Spec, primary: Plan) -> Iterator[Finding]:
    if primary.tile.block[2] % 2:
        yield _warning(
            spec, "odd-k", "tiling.block", "fragments are double-buffered only for an even number of k",
            f"BLK_K = {primary.tile.block[2]}, so each load is waited for", "an even BLK_K",
            f"write tiling.block: {[*primary.tile.block[:2], primary.tile.block[2] + 1]}",
        )  # fmt: skip
    for index, operand in enumerate(primary.operands):
        yield from _narrow(spec, primary, index, operand)


def _narrow(spec: Spec, primary: Plan, index: int, operand: Operand) -> Iterator[Finding]:
    """Accesses that are narrower than what the spec's values ask for."""
    name, upper = operand.name, operand.name.upper()
    itemsize = ITEMSIZE[operand.dtype]
    widest = VECTOR_BYTES // itemsize
    thread = (primary.threads.m, primary.threads.n)[index]
    run = vector_width(primary.tile.value_mode[index], (thread,), widest)
    loaded = operand.fragment.vector
    if loaded < run:
        yield _warning(
            spec, "narrow-loads", f"shared.{name}", f"a thread's runs of values of {upper} are loaded in one access",
            f"{loaded * itemsize}-byte loads through {operand.shared.layout[:2]}", f"{run * itemsize} bytes",
            _write_default(operand),
        )  # fmt: skip
    copy, given = operand.copy, getattr(spec.copies, name)
    if given is None or given.values is None:
        return
    asked = gcd(widest, max_vector(given.values[1 if operand.contiguous == "k" else 0]))
    moved = max(copy.read_vector, copy.write_vector)
    if moved < asked:
        shared = {"x": operand.x, "k": "k"}[contiguous_mode(operand.shared)]
        turned = shared != operand.contiguous and not copy.atom.through_registers
        yield _warning(
            spec, "narrow-copy", f"copies.{name}.values", f"a copy moves a thread's run of {upper} in one access",
            f"{copy.atom.name} moves {moved * itemsize} bytes at a time" + (
                f": {upper} is contiguous in {operand.contiguous}, its shared memory in {shared}" if turned
                else f": threads or shared.{name} do not keep runs on {asked * itemsize}-byte boundaries"
            ),
            f"{asked * itemsize} bytes",
            f"write copies.{name}.values: [1, 1]" if turned
            else f"align copies.{name}.threads and shared.{name} to {asked * itemsize} bytes",
        )  # fmt: skip
