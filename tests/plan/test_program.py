"""Programs, run by an abstract machine: every k-tile is multiplied once, and nothing is read or written too early."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from layoutgen.plan import plan
from layoutgen.plan.model import Program
from layoutgen.plan.pipeline import plan_program
from tests.plan.drafts import Draft
from tests.plan.machine import Hazard, Machine

ATOMS = ("cp.async", "ldg.sts")


def program(atoms: tuple[str, str], stages: int, block_k: int) -> Program:
    """A plan's own program, of the smallest block tile."""
    text = Draft(
        block=(8, 16, block_k), warps="1:0", lanes="(8,4):(4,1)", values=("1", "4"), stages=stages,
        copy_a=f"{{atom: {atoms[0]}}}", copy_b=f"{{atom: {atoms[1]}}}",
    )  # fmt: skip
    return plan(text.spec())[0].program


@pytest.mark.parametrize("atoms", list(product(ATOMS, ATOMS)), ids="-".join)
@pytest.mark.parametrize("block_k", [1, 2, 3, 4, 7, 8])
def test_every_k_is_multiplied_once_and_in_order(atoms: tuple[str, str], block_k: int) -> None:
    for stages in range(2, 9):
        whole = program(atoms, stages, block_k)
        for k_tiles in range(7):
            assert Machine(stages, k_tiles).run(whole) == [(tile, k) for tile in range(k_tiles) for k in range(block_k)]


def survives(mutant: Program, stages: int, block_k: int) -> bool:
    """Whether the machine finds nothing wrong with a program, for any number of k-tiles."""
    try:
        return all(
            Machine(stages, k_tiles).run(mutant) == [(t, k) for t in range(k_tiles) for k in range(block_k)]
            for k_tiles in range(7)
        )
    except Hazard:
        return False


@pytest.mark.parametrize("atoms", list(product(ATOMS, ATOMS)), ids="-".join)
@pytest.mark.parametrize(("stages", "block_k"), [(2, 2), (3, 3), (4, 4)])
def test_the_machine_notices_every_step_that_is_left_out(atoms: tuple[str, str], stages: int, block_k: int) -> None:
    whole = program(atoms, stages, block_k)
    assert survives(whole, stages, block_k)
    for part in ("prologue", "steady"):
        steps = getattr(whole, part)
        for index, step in enumerate(steps):
            mutant = replace(whole, **{part: steps[:index] + steps[index + 1 :]})
            assert not survives(mutant, stages, block_k), f"{part} {index}: {step}"


@pytest.mark.parametrize("atoms", list(product(ATOMS, ATOMS)), ids="-".join)
def test_the_machine_notices_a_wait_that_is_too_short(atoms: tuple[str, str]) -> None:
    whole = program(atoms, 3, 2)
    for part in ("prologue", "steady"):
        steps = getattr(whole, part)
        for index, step in enumerate(steps):
            if type(step).__name__ == "Wait":
                looser = replace(step, pending=step.pending + 1)
                assert not survives(replace(whole, **{part: (*steps[:index], looser, *steps[index + 1 :])}), 3, 2)


def test_a_program_depends_only_on_atoms_stages_and_depth() -> None:
    for each in plan(Draft().spec()):
        assert each.program == plan_program({"a": each.a.copy, "b": each.b.copy}, 2, 8)
        assert each.program == program(("cp.async", "cp.async"), 2, 8)
