"""Spec -> findings: is this tiling legal on a device, and if not, what is wrong where, and which edit mends it.

Rules come in rounds, each safe only after the one before: sizes, for which nothing is computed and which bound the work
of what follows; levels that must compose and cover C; and the plans that result.
"""

from __future__ import annotations

from layoutgen.check.advice import advice
from layoutgen.check.findings import Finding, IllegalSpecError, Report
from layoutgen.check.levels import architecture, levels, sizes
from layoutgen.check.plans import copies, residency, storage
from layoutgen.check.problem import for_problem
from layoutgen.errors import PlanError
from layoutgen.facts import Facts, facts, registers
from layoutgen.hw.devices import Device
from layoutgen.plan import Plan, plan
from layoutgen.problem import fits, packed
from layoutgen.spec import Spec

Extents = tuple[int, int, int]


def require_legal(spec: Spec, device: Device) -> Report:
    """The report of a spec that is legal on the device. Raises IllegalSpecError for any other."""
    report = check(spec, device)
    if not report.legal:
        raise IllegalSpecError(report)
    return report


def check(spec: Spec, device: Device, shape: Extents | None = None) -> Report:
    """Spec and device -> Report. Never raises for a spec that loaded: what is wrong with it is a finding.

    shape: M, N and K of a problem, dense and in the spec's contiguous modes, that facts and hints are about.
    """
    findings = list(architecture(spec, device))
    plans: tuple[Plan, ...] = ()
    found: Facts | None = None
    try:
        blocking = list(sizes(spec, device)) or list(levels(spec, device))
        findings += blocking
        plans = () if blocking else plan(spec)
    except PlanError as failure:
        findings.append(_refused(spec, failure))
    if plans:
        primary = plans[0]
        findings += [*copies(spec, plans), *storage(spec, primary, device)]
        findings += residency(spec, primary, registers(primary, device), device)
        always = found = facts(primary, device)
        if shape is not None:
            found = _facts_for(plans, device, shape)
        # What is wrong comes first; that no code can be emitted for the device says nothing against the layouts.
        if all(finding.severity != "error" or finding.rule in ("arch", "wavefront") for finding in findings):
            findings += [*advice(spec, primary, always), *for_problem(spec, plans, found)]
    findings.sort(key=lambda finding: finding.where.line or 0)
    return Report(spec.name, device.name, tuple(findings), plans, found)


def _facts_for(plans: tuple[Plan, ...], device: Device, shape: Extents) -> Facts:
    """Facts of the variant that takes a dense problem of the spec's modes: its rows decide."""
    problem = packed(plans[0], *shape, beta=0.0)
    return facts(next(each for each in plans if fits(each, problem)), device, problem)


def _refused(spec: Spec, failure: PlanError) -> Finding:
    return Finding(
        "compose", "error", failure.rule, failure.got or "", failure.allowed or "levels that compose",
        failure.fix or "change one of the levels", failure.where or spec.where("tiling"),
    )  # fmt: skip
