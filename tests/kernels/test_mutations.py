"""Nothing in the program is there for show: without any one barrier, wait, commit, cursor or predicate, a test fails.

Each mutant lacks one thing of a spec's primary plan, is emitted and compiled, and must give a wrong result, touch
memory that isn't its own, or race, under some schedule of test_schedules. So those tests do notice every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from layoutgen import paths, spec
from layoutgen.plan import Plan, plan
from layoutgen.plan.model import Advance, Barrier, Commit, CopyTile, LoadTile, StoreTile, Wait
from tests.kernels.harness import SCHEDULES, cases, compile_only, failure

REMOVABLE = Barrier | Wait | Commit | Advance | StoreTile | CopyTile | LoadTile


def shown(step: object) -> str:
    """A step as text; guards sorted, so that every test process gives the mutant the same name."""
    guards = getattr(step, "guards", None)
    return f"{type(step).__name__}({step.operand}, {sorted(guards)})" if guards is not None else str(step)  # type: ignore[attr-defined]


def mutants(base: Plan) -> Iterator[tuple[str, Plan]]:
    """(what is missing, the plan without it) for each removable step and each guard."""
    program = base.program
    for part in ("prologue", "steady"):
        steps = getattr(program, part)
        for i, step in enumerate(steps):
            if isinstance(step, REMOVABLE):
                rest = steps[:i] + steps[i + 1 :]
                yield f"{part}[{i}] {shown(step)}", replace(base, program=replace(program, **{part: rest}))
            if isinstance(step, CopyTile | LoadTile):
                for guard in sorted(step.guards):
                    changed = replace(step, guards=step.guards - {guard})
                    rest = (*steps[:i], changed, *steps[i + 1 :])
                    yield (
                        f"{part}[{i}] guard {guard} of {shown(step)}",
                        replace(base, program=replace(program, **{part: rest})),
                    )
    for guard in sorted(base.epilogue.guards):
        epilogue = replace(base.epilogue, guards=base.epilogue.guards - {guard})
        yield f"epilogue guard {guard}", replace(base, epilogue=epilogue)
    yield "beta guard of C", replace(base, epilogue=replace(base.epilogue, read_c_if_beta=False))


def all_mutants() -> list[tuple[str, str, Plan]]:
    specs = [spec.load(path) for path in sorted(paths.specs().rglob("*.yaml"))]
    # With three stages copies overlap in groups, which two stages do not need.
    two = next(each for each in specs if each.name == "salykov_128x256x8")
    specs.append(spec.loads(two.to_yaml().replace("stages: 2", "stages: 3").replace(two.name, "three_stages")))
    primaries = [plan(each)[0] for each in specs]
    return [(base.name, what, mutant) for base in primaries for what, mutant in mutants(base)]


@pytest.mark.parametrize(
    ("name", "what", "mutant"), all_mutants(), ids=lambda value: str(value) if isinstance(value, str) else ""
)
def test_a_missing_step_or_guard_is_noticed(name: str, what: str, mutant: Plan) -> None:
    code = compile_only(mutant)
    assert any(failure(mutant, code, case, schedule) for case in cases(mutant) for schedule in SCHEDULES), (
        f"{name} without {what} passes every test: it does nothing, or a test is missing"
    )
