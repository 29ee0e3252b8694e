"""Spec -> findings: is this tiling legal on a device, and if not, what is wrong where, and which edit mends it.

Rules come in rounds, each safe only after the one before: sizes, for which nothing is computed and which bound the work
of what follows; levels that must compose and cover C; and the plans that result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from layoutgen.check.advice import advice
from layoutgen.check.findings import Finding, IllegalSpecError, Report
from layoutgen.check.levels import architecture, levels, sizes
from layoutgen.check.mend import Edit, Said, corrected, mended
from layoutgen.check.plans import copies, residency, storage
from layoutgen.check.problem import for_problem
from layoutgen.errors import EpilogueError, PlanError
from layoutgen.facts import Facts, facts, registers
from layoutgen.hw.devices import Device
from layoutgen.plan import Plan, plan, plan_primary
from layoutgen.problem import Extents, fits, packed
from layoutgen.spec import Spec


def require_legal(spec: Spec, device: Device) -> Report:
    """The report of a spec that is legal on the device. Raises IllegalSpecError for any other."""
    report = check(spec, device)
    if not report.legal:
        raise IllegalSpecError(report)
    return report


def check(spec: Spec, device: Device, shape: Extents | None = None, *, mend: bool = True) -> Report:
    """Spec and device -> Report. Never raises for a spec that loaded: what is wrong with it is a finding.

    Args:
        shape: M, N and K of a problem, dense and in the spec's contiguous modes, that facts and hints are about.
        mend: look for an edit that mends each warning, which takes some tens of milliseconds; else fixes are in words.
    """
    seen = _see(spec, device, shape, plan)
    findings = [*(_mended(spec, seen, device, shape) if mend else seen.findings), *architecture(spec, device)]
    findings.sort(key=lambda finding: finding.where.line or 0)
    return Report(spec.name, device.name, tuple(findings), seen.plans, seen.facts)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What there is to say about a spec, but for its architecture, and what it was read off."""

    findings: tuple[Finding, ...]
    plans: tuple[Plan, ...] = ()
    facts: Facts | None = None

    @property
    def said(self) -> Said:
        return frozenset((each.rule, each.message) for each in self.findings)

    @property
    def errors(self) -> Said:
        return frozenset((each.rule, each.message) for each in self.findings if each.severity == "error")

    @property
    def sound(self) -> bool:
        """What is wrong comes first: of an illegal spec nothing else is said."""
        return not self.errors


def _see(spec: Spec, device: Device, shape: Extents | None, planned: Callable[[Spec], tuple[Plan, ...]]) -> _Seen:
    """That no code can be emitted for the device says nothing against the layouts: they are judged all the same; but
    for those of AMD's architectures on a device of NVIDIA's."""
    try:
        blocking = (*sizes(spec, device),) or (*levels(spec, device),)
        if blocking:
            return _Seen(blocking)
        plans = planned(spec)
    except PlanError as failure:
        return _Seen((_refused(spec, failure),))
    if spec.amd and device.cc is not None:
        return _Seen((), plans)  # the device's limits are on other registers and other lanes
    primary = plans[0]
    found = facts(primary, device) if shape is None else _facts_for(plans, device, shape)
    bounds = registers(primary, device)
    wrong = (*copies(spec, plans), *storage(spec, primary, device), *residency(spec, primary, bounds, device))
    seen = _Seen(wrong, plans, found)
    if not seen.sound:
        return seen
    # What is said whatever the problem must not depend on its strides.
    always = found if shape is None else facts(primary, device)
    return replace(seen, findings=(*wrong, *advice(spec, primary, always), *for_problem(spec, plans, found)))


def _mended(spec: Spec, seen: _Seen, device: Device, shape: Extents | None) -> Iterator[Finding]:
    """Each finding, with the edit that mends it, if there is one."""

    @cache
    def see(edit: Edit) -> _Seen:
        # The primary variant is what is judged, but a problem may need another.
        return _see(edit.apply(spec), device, shape, plan if shape else lambda given: (plan_primary(given),))

    for each in seen.findings:
        if each.severity == "error":
            yield replace(each, fix=corrected(spec, each, seen.errors, lambda edit: see(edit).errors))
        else:
            edit = mended(spec, seen.plans[0], each, seen.said, lambda edit: see(edit).said)
            yield each if edit is None else replace(each, fix=str(edit))


def _facts_for(plans: tuple[Plan, ...], device: Device, shape: Extents) -> Facts:
    """Facts of the variant that takes a dense problem of the spec's modes: its rows decide."""
    problem = packed(plans[0], *shape, beta=0.0)
    return facts(next(each for each in plans if fits(each, problem)), device, problem)


def _refused(spec: Spec, failure: PlanError) -> Finding:
    if isinstance(failure, EpilogueError):
        return Finding(
            "epilogue", "error", failure.rule, failure.got or "", failure.allowed or "", failure.fix or "",
            failure.where or spec.where("epilogue"),
        )  # fmt: skip
    return Finding(
        "compose", "error", failure.rule, failure.got or "", failure.allowed or "levels that compose",
        failure.fix or "change one of the levels", failure.where or spec.where("tiling"),
    )  # fmt: skip
