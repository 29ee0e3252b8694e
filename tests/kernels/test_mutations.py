"""Nothing in the program is there for show: without any one barrier, wait, commit, cursor or predicate, a test fails.

Each mutant lacks one thing of a spec's plan, is emitted and compiled, and must give a wrong result, touch memory that
isn't its own, or race, under some schedule of test_schedules. So those tests do notice every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from layoutgen import paths, spec
from layoutgen.plan import Plan, plan
from layoutgen.plan.model import Advance, Barrier, Commit, CopyTile, LoadFragment, LoadTile, StoreTile, Wait
from tests.kernels.harness import cases, compile_together, failure, schedules
from tests.kernels.small import small

REMOVABLE = Barrier | Wait | Commit | Advance | StoreTile | CopyTile | LoadTile | LoadFragment
TOGETHER = 8
SPECS = ("warptile_128x128", "salykov_128x128x8", "salykov_128x256x8")
# No stages; one, for both kinds of copy; parts that are dealt out, with an odd BLK_K, and beside several k at once; MMA
# atoms.
OF_SMALL = ("direct", "one_stage_mixed", "odd_k_spread", "by_k_of_a_alone", "bf16")


def shown(step: object) -> str:
    """A step as text; guards sorted, so that every test process gives the mutant the same name."""
    if not isinstance(step, CopyTile | LoadTile):
        return str(step)
    return f"{type(step).__name__}({step.operand}, {sorted(step.guards)}, {step.first}, {step.last})"


def mutants(base: Plan) -> Iterator[tuple[str, Plan]]:
    """(what is missing, the plan without it) for each removable step, and each guard of the first of a move's parts."""
    program = base.program
    for part in ("prologue", "steady"):
        steps, seen = getattr(program, part), set()
        for i, step in enumerate(steps):
            if isinstance(step, REMOVABLE):
                rest = steps[:i] + steps[i + 1 :]
                yield f"{part}[{i}] {shown(step)}", replace(base, program=replace(program, **{part: rest}))
            if isinstance(step, CopyTile | LoadTile) and (step.operand, step.guards) not in seen:
                seen.add((step.operand, step.guards))
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


def groups() -> list[tuple[str, list[tuple[str, Plan]]]]:
    """(name of a spec, a few of its mutants), which are compiled together."""
    bases = [*(plan(spec.load(paths.find_spec(name)))[0] for name in SPECS), *(small(name)[0] for name in OF_SMALL)]
    return [
        (base.name, every[first : first + TOGETHER])
        for base in bases
        for every in [list(mutants(base))]
        for first in range(0, len(every), TOGETHER)
    ]


@pytest.mark.parametrize(("name", "group"), groups(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_missing_step_or_guard_is_noticed(name: str, group: list[tuple[str, Plan]]) -> None:
    codes = compile_together([mutant for _, mutant in group])
    passed = [
        what
        for (what, mutant), code in zip(group, codes, strict=True)
        if not any(failure(mutant, code, case, schedule) for case in cases(mutant) for schedule in schedules(mutant))
    ]
    assert passed == [], f"{name} passes every test without these: they do nothing, or a test is missing"


def test_what_is_compiled_together_runs_alone() -> None:
    """Kernels of other steps and threads, each under its own name, and each right."""
    plans = [small("direct")[0], small("by_k_of_a_alone")[0], small("direct")[1]]
    for each, code in zip(plans, compile_together(plans), strict=True):
        assert all(failure(each, code, case, schedules(each)[0]) is None for case in cases(each))
