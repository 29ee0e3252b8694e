"""What check says: findings, and the report that holds them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from layoutgen.errors import PlanError, Where
from layoutgen.facts import Facts, Registers, static_accesses
from layoutgen.plan import Plan
from layoutgen.spec import Spec

Severity = Literal["error", "warning", "hint"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that a spec breaks. `rule` is its id; the message states it."""

    rule: str
    severity: Severity
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
    """What check found about one spec on one device; plans is empty where the levels do not compose.

    facts: of the primary plan on the device; None where there is none.
    """

    name: str
    device: str
    findings: tuple[Finding, ...]
    plans: tuple[Plan, ...]
    facts: Facts | None

    @property
    def legal(self) -> bool:
        return not self.of("error")

    @property
    def registers(self) -> Registers | None:
        """Bounds on the registers of a thread; None where there is no plan."""
        return self.facts.registers if self.facts else None

    def of(self, *severities: Severity) -> tuple[Finding, ...]:
        """The findings of these severities."""
        return tuple(finding for finding in self.findings if finding.severity in severities)

    def to_json(self) -> dict[str, Any]:
        """The report as plain data, for --json."""
        primary = self.plans[0] if self.plans else None
        return {
            "name": self.name,
            "device": self.device,
            "legal": self.legal,
            "findings": [{**asdict(f), "where": str(f.where)} for f in self.findings],
            "variants": [p.variant for p in self.plans],
            "instructions": {f"{op}.{n}B": c for (op, n), c in sorted(static_accesses(primary).items())}
            if primary
            else None,
            "facts": self.facts.to_json() if self.facts else None,
        }


class IllegalSpecError(PlanError):
    """A spec that check finds illegal, with every error; `report` holds all findings."""

    def __init__(self, report: Report) -> None:
        self.report = report
        findings = "\n".join(map(str, report.of("error")))
        super().__init__(f"{report.name} is not legal on {report.device}:\n{findings}")


def error(spec: Spec, rule: str, key: str, message: str, got: object, allowed: object, fix: str) -> Finding:
    """What makes a spec illegal, at the line of `key`."""
    return Finding(rule, "error", message, str(got), str(allowed), fix, spec.where(key))


def warning(spec: Spec, rule: str, key: str, message: str, got: object, allowed: object, fix: str) -> Finding:
    """What makes a legal spec poor whatever the problem."""
    return Finding(rule, "warning", message, str(got), str(allowed), fix, spec.where(key))


def hint(spec: Spec, rule: str, key: str, message: str, got: object, allowed: object, fix: str) -> Finding:
    """What makes a spec a poor match for the problem at hand."""
    return Finding(rule, "hint", message, str(got), str(allowed), fix, spec.where(key))
