"""Spec -> Plans: the levels of a tiling composed to per-thread layouts, copies, a program and a schedule."""

from __future__ import annotations

from layoutgen.plan.model import Plan
from layoutgen.plan.variants import plan_variants
from layoutgen.spec import Spec


def plan(spec: Spec) -> tuple[Plan, ...]:
    """Spec -> its variants, cheapest first; the first is the primary one.

    Raises PlanError, with the place in the spec, only where layouts do not compose; whether a plan is legal on a device
    is for `layoutgen.check` to say.
    """
    return tuple(plan_variants(spec))


def plan_primary(spec: Spec) -> Plan:
    """The first of `plan`'s variants alone, for who tries many specs. Raises PlanError."""
    return next(plan_variants(spec))


__all__ = ["Plan", "plan", "plan_primary"]
