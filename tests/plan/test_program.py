"""Programs, run by a reference machine: every k-tile is multiplied once, and nothing is read or written too early."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from layoutgen.emitted import emitted_specs
from layoutgen.plan import Plan, plan, plan_primary
from layoutgen.plan.model import CopyTile, LoadTile, Mma, Step, StoreTile, Wait
from layoutgen.plan.pipeline import plan_program
from layoutgen.spec import load
from tests.plan.drafts import Draft
from tests.plan.machine import Hazard, Machine

SPECS = sorted(emitted_specs().values())
ATOMS = ("cp.async", "ldg.sts")
BY_K = {"shared_a": "({x},{k}):({k},1)", "shared_b": "({x},{k}):({k},1)"}  # fragments of several k at a time


def small(atoms: tuple[str, str] | None, stages: int, block_k: int, **fields: Any) -> Plan:
    """The primary plan of a small block tile, whose copies have a few pieces a thread."""
    fields = {
        name: each.format(x=64, k=block_k) if name.startswith("shared") else each for name, each in fields.items()
    }
    copies = {f"copy_{name}": f"{{atom: {atom}}}" for name, atom in zip("ab", atoms or (), strict=False)}
    draft = {"block": (64, 64, block_k), "warps": "1:0", "values": ("4", "4"), "stages": stages}
    return plan_primary(Draft(**(draft | copies | fields)).spec())


def expected(each: Plan, k_tiles: int) -> list[tuple[int, int]]:
    return [(tile, k) for tile in range(k_tiles) for k in range(each.k_blocks)]


def survives(each: Plan) -> bool:
    """Whether the machine finds nothing wrong with a plan's program, for any number of k-tiles."""
    try:
        return all(Machine(each, k_tiles).run() == expected(each, k_tiles) for k_tiles in (0, 1, 2, 3, 4, 6))
    except Hazard:
        return False


@pytest.mark.parametrize("atoms", list(product(ATOMS, ATOMS)), ids="-".join)
@pytest.mark.parametrize("block_k", [1, 2, 3, 4, 7, 8])
def test_every_k_is_multiplied_once_and_in_order(atoms: tuple[str, str], block_k: int) -> None:
    for stages in range(1, 9):
        each = small(atoms, stages, block_k)
        for k_tiles in range(7):
            assert Machine(each, k_tiles).run() == expected(each, k_tiles)


@pytest.mark.parametrize("block_k", [1, 2, 3, 8])
def test_every_k_is_multiplied_without_shared_memory(block_k: int) -> None:
    each = small(None, 0, block_k)
    for k_tiles in range(5):
        assert Machine(each, k_tiles).run() == expected(each, k_tiles)


@pytest.mark.parametrize("atoms", list(product(ATOMS, ATOMS)), ids="-".join)
@pytest.mark.parametrize(("stages", "block_k"), [(1, 8), (2, 4), (2, 6), (2, 8), (3, 8), (3, 12), (4, 16)])
def test_fragments_of_several_k(atoms: tuple[str, str], stages: int, block_k: int) -> None:
    """Four k at a time where BLK_K has them in fours, else two: in two sets of slots, or one where turns are odd."""
    each = small(atoms, stages, block_k, **BY_K)
    depth = 2 if block_k == 6 else 4
    assert [operand.fragment.depth for operand in each.shared_operands] == [depth, depth]
    assert each.program.slots == (2 * depth if stages > 1 and block_k // depth % 2 == 0 else depth)
    assert survives(each)
    mixed = small(atoms, stages, block_k, shared_a=BY_K["shared_a"])
    assert [operand.fragment.depth for operand in mixed.shared_operands] == [depth, 1] and survives(mixed)


def spreads(block_k: int, most: int) -> list[tuple[int, int]]:
    return [(first, last) for first in range(most) for last in range(first + 1, most + 1) if last <= block_k]


@pytest.mark.parametrize("atoms", list(product(ATOMS, ATOMS)), ids="-".join)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize(
    ("block_k", "layouts", "most"), [(5, {}, 4), (8, {}, 7), (8, BY_K, 4)], ids=["5", "8", "8 by k"]
)
def test_copies_are_dealt_out_over_any_k(
    atoms: tuple[str, str], stages: int, block_k: int, layouts: dict[str, str], most: int
) -> None:
    for spread in spreads(block_k, most):
        each = small(atoms, stages, block_k, spread=spread, **layouts)
        assert survives(each), spread
        assert beside(each) == set(range(*spread))  # there are more pieces than k, so that every one has some


def beside(each: Plan) -> set[int]:
    """The k of a turn beside whose multiply-adds something is moved."""
    found, k = set(), 0
    for step in each.program.steady:
        if isinstance(step, CopyTile | LoadTile | StoreTile):
            found.add(k)
        k += isinstance(step, Mma)
    return found


@pytest.mark.parametrize("atoms", list(product(ATOMS, ATOMS)), ids="-".join)
def test_pieces_are_dealt_out_evenly_and_in_order(atoms: tuple[str, str]) -> None:
    each = small(atoms, 3, 8, spread=(1, 6))
    moved, k = dict.fromkeys(range(8), 0), 0
    parts: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for step in each.program.steady:
        if isinstance(step, CopyTile | LoadTile | StoreTile):
            moved[k] += step.last - step.first
            parts.setdefault((type(step).__name__, step.operand), []).append((step.first, step.last))
        k += isinstance(step, Mma)
    assert {*moved.values()} - {0} <= {min(moved[k] for k in range(1, 6)), min(moved[k] for k in range(1, 6)) + 1}
    for (kind, name), bounds in parts.items():
        copy = each.in_shared(name).copy  # type: ignore[arg-type]
        ends = [0, *(last for _, last in bounds)]
        assert ends[:-1] == [first for first, _ in bounds] and ends[-1] == (
            copy.writes if kind == "StoreTile" else copy.reads
        )


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_variant_of_a_spec_that_comes_with_layoutgen(path: Path) -> None:
    assert all(survives(each) for each in plan(load(path)))


def mutants(each: Plan) -> Iterator[tuple[str, Plan]]:
    """The plan without one of its steps, or with one that is off by one, and what that is."""
    for part in ("prologue", "steady"):
        steps = getattr(each.program, part)
        for index, step in enumerate(steps):
            for what, instead in (("without", ()), *changed(step)):
                other = replace(each.program, **{part: (*steps[:index], *instead, *steps[index + 1 :])})
                yield f"{part} {index} {what}: {step}", replace(each, program=other)


def changed(step: Step) -> Iterator[tuple[str, tuple[Step, ...]]]:
    if isinstance(step, Wait):
        yield "too short", (replace(step, pending=step.pending + 1),)
    if isinstance(step, CopyTile | LoadTile | StoreTile):
        yield "a piece less", (replace(step, first=step.first + 1),) if step.last - step.first > 1 else ()
    if isinstance(step, CopyTile | LoadTile):
        for guard in sorted(step.guards):
            yield f"no guard {guard}", (replace(step, guards=step.guards - {guard}),)


@pytest.mark.parametrize("atoms", list(product(ATOMS, ATOMS)), ids="-".join)
@pytest.mark.parametrize(
    ("stages", "block_k", "fields"),
    [
        (1, 2, {}), (1, 4, BY_K), (2, 2, {}), (3, 3, {}), (4, 4, {}), (3, 8, BY_K), (2, 8, {"spread": (1, 7)}),
        (3, 8, {"spread": (0, 4), **BY_K}), (3, 8, {"spread": (3, 4)}), (2, 1, {}),
        (2, 4, {"contiguous": ("m", "k"), "spread": (0, 3)}),
    ],
)  # fmt: skip
def test_the_machine_notices_whatever_is_left_out(
    atoms: tuple[str, str], stages: int, block_k: int, fields: dict[str, Any]
) -> None:
    each = small(atoms, stages, block_k, **fields)
    assert survives(each)
    for what, mutant in mutants(each):
        assert not survives(mutant), what


@pytest.mark.parametrize("fields", [{}, {"contiguous": ("m", "k")}, {"copy_a": "{atom: ldg, values: [1, 1]}"}])
def test_the_machine_notices_whatever_is_left_out_without_shared_memory(fields: dict[str, Any]) -> None:
    each = small(None, 0, 4, **fields)
    assert survives(each)
    for what, mutant in mutants(each):
        assert not survives(mutant), what


@pytest.mark.parametrize(
    "name", ["ladder_01_naive", "ladder_06_vectorised", "ladder_11_double_buffer", "sgemm_128x256x16"]
)
def test_the_machine_notices_whatever_a_spec_leaves_out(name: str) -> None:
    each = plan(load(next(path for path in SPECS if path.stem == name)))[0]
    for what, mutant in mutants(each):
        assert not survives(mutant), what


def test_the_machine_notices_a_step_that_is_out_of_place() -> None:
    """Neighbours of one operand may not change places: a store before its load, a barrier before its wait."""
    each = small(("ldg.sts", "cp.async"), 3, 4, spread=(0, 2))
    steady = each.program.steady
    kinds = [type(step).__name__ for step in steady]
    wait, barrier = kinds.index("Wait"), kinds.index("Barrier")
    early = [*steady[:wait], steady[barrier], steady[wait], *steady[barrier + 1 :]]
    assert barrier == wait + 1 and not survives(replace(each, program=replace(each.program, steady=tuple(early))))
    store, load = kinds.index("StoreTile"), kinds.index("LoadTile")
    swapped = list(steady)
    swapped[store], swapped[load] = swapped[load], swapped[store]
    assert store < load and not survives(replace(each, program=replace(each.program, steady=tuple(swapped))))


def test_a_program_depends_only_on_copies_stages_depth_and_spread() -> None:
    for each in plan(Draft(spread=(1, 3)).spec()):
        assert each.program == plan_program({"a": each.a.copy, "b": each.b.copy}, 2, 8, 1, (1, 3))
