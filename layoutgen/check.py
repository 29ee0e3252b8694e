"""Spec -> findings: is this tiling legal on a device, and if not, what is wrong where, and which edit mends it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from layoutgen.errors import LayoutgenError, PlanError, Where
from layoutgen.facts import (
    Coverage,
    Registers,
    cover_c,
    cover_copy,
    cover_shared,
    registers,
    static_accesses,
)
from layoutgen.hw.devices import Device
from layoutgen.plan import Plan, plan
from layoutgen.plan.tile import WARP_SIZE, compose_tile
from layoutgen.spec import Spec


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
    findings: list[Finding] = []

    def error(rule: str, key: str, message: str, got: object, allowed: object, fix: str) -> None:
        findings.append(Finding(rule, "error", message, str(got), str(allowed), fix, spec.where(key)))

    def broken(failure: LayoutgenError) -> None:
        findings.append(
            Finding(
                "compose", "error", failure.rule, failure.got or "", failure.allowed or "levels that compose",
                failure.fix or "change one of the levels", failure.where or spec.where("tiling"),
            )
        )  # fmt: skip

    def result(plans: tuple[Plan, ...], bounds: Registers | None) -> Report:
        return Report(spec.name, device.name, tuple(findings), plans, bounds)

    _check_dtypes(spec, error)
    _check_arch(spec, device, error)
    try:
        tile = compose_tile(spec)
    except PlanError as failure:
        broken(failure)
        return result((), None)
    if tile.lanes.size != WARP_SIZE:
        error(
            "lanes", "tiling.lanes", "the lanes of a warp number 32", f"{tile.lanes.size} lanes in {tile.lanes}", 32,
            "give tiling.lanes a shape of 32 positions, such as (8,4):(4,1)",
        )  # fmt: skip
    coverage = cover_c(tile)
    if not coverage.ok:
        error(
            "coverage-c", "tiling.lanes" if _lanes_are_wrong(spec, coverage) else "tiling.values",
            "each coordinate of C's block tile belongs to exactly one value of one thread", f"C{coverage}",
            "every coordinate once", "make lanes and warps number their positions 0, 1, .. once each, "
            "and values without overlap",
        )  # fmt: skip
    if findings and any(f.rule in ("lanes", "coverage-c") for f in findings):
        return result((), None)
    try:
        plans = plan(spec)
    except PlanError as failure:
        broken(failure)
        return result((), None)
    for each in plans:
        _check_copies(each, error)
    primary = plans[0]
    bounds = registers(primary, device.registers_per_sm, device.registers_per_thread)
    _check_limits(primary, device, bounds, error)
    return result(plans, bounds)


def _lanes_are_wrong(spec: Spec, coverage: Coverage) -> bool:
    return any("holds" in owner or "not one of" in owner for owner in coverage.owners)


def _check_dtypes(spec: Spec, error: Any) -> None:
    operands = spec.operands
    for key, dtype in (
        ("operands.a", operands.a.dtype), ("operands.b", operands.b.dtype), ("operands.c", operands.c.dtype),
        ("operands.accumulate", operands.accumulate),
    ):  # fmt: skip
        if dtype != "f32":
            error("dtype", key, "the SIMT family multiplies and accumulates in f32", dtype, "f32", f"write f32 in {key}")


def _check_arch(spec: Spec, device: Device, error: Any) -> None:
    def number(arch: str) -> int:
        return int("".join(c for c in arch if c.isdigit()))

    if number(spec.arch) > number(device.arch):
        error(
            "arch", "arch", "the device must be at least the spec's architecture", f"{device.name} is {device.arch}",
            f"{spec.arch} or newer", f"write arch: {device.arch}, or check against a newer device",
        )  # fmt: skip


def _check_copies(plan: Plan, error: Any) -> None:
    block_k = plan.tile.block[2]
    for index, operand in enumerate(plan.operands):
        letter = operand.name
        landed = cover_copy(operand.copy, plan.tile.block[index], block_k)
        if not landed.ok:
            error(
                f"coverage-{letter}", f"copies.{letter}",
                f"each element of {letter.upper()}'s k-tile is copied exactly once ({plan.variant})",
                f"({operand.x},k) = {landed}", "every element once",
                f"let threads times values of copies.{letter} tile the block tile",
            )  # fmt: skip
        alone = cover_shared(operand)
        if not alone.ok and plan.cost == 0:
            error(
                "shared-overlap", f"shared.{letter}", f"each element of {letter.upper()}'s stages has its own word",
                f"({operand.x},k,stage) = {alone}", "offsets without repetition",
                f"widen a stride of shared.{letter}",
            )  # fmt: skip


def _check_limits(plan: Plan, device: Device, bounds: Registers, error: Any) -> None:
    threads, blocks = plan.threads.threads, plan.schedule.min_blocks
    if threads > device.max_threads_per_block:
        error(
            "threads", "tiling.warps", "a block has no more threads than the device allows", threads,
            f"at most {device.max_threads_per_block}", "use fewer warps with a larger tile each",
        )  # fmt: skip
    if bounds.minimum > device.registers_per_thread:
        error(
            "registers", "tiling.values", "one thread's accumulators, fragments and staged elements fit its registers",
            f"{bounds.minimum} ({bounds.accumulators} accumulators, {bounds.fragments} fragments, {bounds.staging} staged)",
            f"at most {device.registers_per_thread}", "use more threads, or a smaller tile",
        )  # fmt: skip
    elif bounds.minimum > bounds.cap:
        error(
            "registers", "schedule.min_blocks", "one thread's live registers fit what min_blocks leaves it",
            f"{bounds.minimum} live, {bounds.cap} left by {threads} threads x {blocks} blocks",
            f"at most {bounds.cap}", "lower schedule.min_blocks or the values of a thread",
        )  # fmt: skip
    limit = device.shared_per_sm - device.shared_reserved_per_block
    if plan.shared_bytes > limit:
        error(
            "shared-memory", "shared.stages", "all stages of A and B fit the shared memory of one block",
            f"{plan.shared_bytes} bytes", f"at most {limit} on {device.name}", "use fewer stages or a smaller block tile",
        )  # fmt: skip
    elif blocks * (plan.shared_bytes + device.shared_reserved_per_block) > device.shared_per_sm:
        error(
            "shared-memory", "schedule.min_blocks", "min_blocks blocks fit the shared memory of one multiprocessor",
            f"{blocks} x {plan.shared_bytes} bytes", f"{device.shared_per_sm} bytes, {device.shared_reserved_per_block} "
            f"of each block reserved, on {device.name}", "lower schedule.min_blocks or shared.stages",
        )  # fmt: skip
