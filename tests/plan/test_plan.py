"""Plans of the specs that come with layoutgen and of random ones, proved by brute force; and that a plan is a value."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings

from layoutgen.algebra import Layout
from layoutgen.emitted import emitted_specs
from layoutgen.errors import PlanError
from layoutgen.plan import Plan, plan
from layoutgen.spec import load
from tests.plan.drafts import Draft, draft, drafts, of_spec
from tests.plan.naive import owned, repetitions
from tests.plan.proofs import prove, prove_of_atoms

SPECS = sorted(emitted_specs().values())
VARIANTS = [f"a{a}_b{b}_{n}B" for n in (16, 4) for a in "km" for b in "nk"]


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_plans_of_a_spec_that_comes_with_layoutgen(path: Path) -> None:
    text = of_spec(load(path))
    owner = owned(text)
    for each in plan(load(path)):
        if each.uses_atoms:
            prove_of_atoms(each, owner)
        else:
            prove(each, text, owner)


@settings(max_examples=120)
@given(drafts())
def test_plans_of_random_specs_are_right_or_refused(text: Draft) -> None:
    spec = text.spec()
    try:
        plans = plan(spec)
    except PlanError as error:
        event(f"refused: {error.rule}")
        assert error.where is not None and error.where.line is not None and error.got and error.fix
        return
    owner = owned(text)
    for each in plans:
        prove(each, text, owner)


def test_plans_of_wilder_specs_are_right_and_few_are_refused() -> None:
    """Plain random numbers spread better than shrinkable ones."""
    planned = vectors = direct = by_k = patches = 0
    for seed in range(150):
        text = draft(Random(seed).choice)
        try:
            plans = plan(text.spec())
        except PlanError:
            continue
        owner = owned(text)
        for each in (plans[0], plans[1 + seed % (len(plans) - 1)]):
            prove(each, text, owner)
        planned += 1
        vectors += any(o.copy.read_vector > 1 and o.fragment.vector > 1 for o in plans[0].shared_operands)
        direct += not plans[0].shared_operands
        by_k += any(o.fragment.depth > 1 for o in plans[0].shared_operands)
        patches += any(
            min(o.copy.read_vector, o.copy.write_vector) > 1 and o.copy.read_mode != o.copy.write_mode
            for each in plans
            for o in each.shared_operands
        )
    assert planned > 100 and min(vectors, direct, by_k) > 10 and patches > 3


@pytest.mark.parametrize(
    "fields",
    [
        {"shared_a": "((4,16),8):((1,33),4)"},  # a thread's base is on an odd word, all its steps on multiples of four
        {"shared_a": "((4,16),8):((1,34),4)"},
        {"shared_a": "(64,8):(1,65)", "contiguous": ("m", "n")},  # odd rows
        {"shared_a": "(64,8):(1,66)", "contiguous": ("m", "n"), "copy_a": "{atom: ldg.sts}"},
        {"shared_a": "(64,(4,2)):(4,(1,257))", "contiguous": ("k", "n"), "copy_a": "{atom: ldg.sts}"},
        {"shared_b": "(64,(4,2)):(4,(1,256))", "contiguous": ("k", "k")},
        {"copy_b": "{atom: cp.async, threads: (4,2):(1,4), values: <(4,2):(1,16), (2,2):(1,4)>}"},
        {"copy_b": "{atom: cp.async, threads: ((2,2),(2,4)):((1,16),(8,2)), values: <8:4, 1>}"},
        {"copy_b": "{atom: cp.async, values: <2:1, 1>}", "shared_b": "((2,32),8):((1,3),96)"},
        {"copy_a": "{atom: ldg.sts, threads: (8,2):(1,8), values: [4, 4]}", "contiguous": ("m", "n")},
        {"copy_a": "{atom: ldg.sts, threads: (8,2):(1,8), values: [4, 4]}", "contiguous": ("k", "n")},
        {"warp": ("(4,8):(1,8)", "(2,16):(1,4)"), "values": ("4", "4")},
    ],
)  # fmt: skip
def test_plans_at_the_edge_of_alignment(fields: dict[str, Any]) -> None:
    text = Draft(**fields)
    owner = owned(text)
    for each in plan(text.spec()):
        prove(each, text, owner)


def test_values_that_are_left_out_and_values_without_threads() -> None:
    text = Draft(contiguous=("k", "n"), shared_a="(64,8):(12,1)", copy_a="{atom: cp.async, values: [1, 4]}")
    a = plan(text.spec())[0].a.copy
    assert (a.element_x.size, a.element_k.size, a.participants, a.read_vector) == (1, 4, 128, 4)
    text = Draft(copy_b="{atom: cp.async, threads: (16,8):(1,16)}")
    b = plan(text.spec())[0].b.copy
    assert (b.participants, b.element_x.size, b.element_k.size, b.write_vector) == (128, 4, 1, 4)
    text = Draft(copy_b="{atom: cp.async, threads: (32,4):(1,32)}")  # which leave two of n to each
    assert plan(text.spec())[0].b.copy.write_vector == 2


def test_only_the_primary_variant_takes_the_copies_as_given() -> None:
    text = Draft(copy_a="{atom: ldg.sts, threads: (32,4):(4,1), values: [2, 1]}")
    plans = plan(text.spec())
    assert plans[0].a.copy.thread_x.offsets()[:8].tolist() == [0, 0, 0, 0, 2, 2, 2, 2]
    assert all(each.a.copy.atom.name == "ldg.sts" and each.b.copy.atom.name == "cp.async" for each in plans)
    assert all(each.a.copy != plans[0].a.copy for each in plans[1:])


@pytest.mark.parametrize("own", ["kn", "kk", "mn", "mk"])
def test_variants(own: str) -> None:
    plans = plan(Draft(contiguous=(own[0], own[1])).spec())
    assert plans[0].variant == f"a{own[0]}_b{own[1]}_16B"
    assert sorted(p.variant for p in plans) == sorted([*VARIANTS, "any"])
    assert [p.cost for p in plans] == list(range(9)) and plans[-1].variant == "any"
    assert [p.variant.split("_")[-1] for p in plans[:-1]] == ["16B"] * 4 + ["4B"] * 4
    for each in plans:
        needs = (each.requirements.a, each.requirements.b)
        if each.variant == "any":
            assert all((need.contiguous, need.align) == (None, 4) for need in needs)
        else:
            assert [need.contiguous for need in needs] == [each.variant[1], each.variant[4]]


def test_neighbouring_threads_copy_what_neighbours_in_global_memory() -> None:
    plans = {each.variant: each for each in plan(Draft(shared_b="(64,8):(12,1)").spec())}
    wide, narrow = plans["am_bk_16B"], plans["am_bk_4B"]
    assert wide.a.copy.thread_x.offsets()[:16].tolist() == [4 * thread for thread in range(16)]
    assert narrow.a.copy.thread_x.offsets()[:64].tolist() == list(range(64))
    assert wide.b.copy.thread_k.offsets()[:4].tolist() == [0, 4, 0, 4]
    assert narrow.b.copy.thread_k.offsets()[:9].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    turned = plans["ak_bn_16B"].b.copy  # n in global memory, k in shared
    assert turned.thread_x.offsets()[:64].tolist() == list(range(64)) and turned.write_vector == 1


def test_a_transposing_copy_reads_whole_sectors() -> None:
    """k-contiguous A into m-contiguous shared memory: eight neighbouring threads read eight neighbouring words."""
    copy = plan(Draft(block=(64, 64, 16)).spec())[0].a.copy
    assert copy.thread_k.offsets()[:8].tolist() == list(range(8)) and not copy.thread_x.offsets()[:8].any()
    banks = (copy.write.base.offsets()[:32]) % 32
    assert np.unique(banks).size == 32


@pytest.mark.parametrize("values", [("1", "4"), ("4", "4"), ("2", "8"), ("4", "(4,2):(1,16)")])
def test_accesses_are_as_wide_as_their_own_mode_allows(values: tuple[str, str]) -> None:
    """A run of n is moved four at a time whatever the runs of m are, and the other way round."""
    text = Draft(contiguous=("m", "n"), values=values, copy_a="{atom: ldg.sts}")
    first = plan(text.spec())[0]
    run_m = min(4, int(values[0]))
    assert (first.epilogue.vector, first.b.fragment.vector, first.a.fragment.vector) == (4, 4, run_m)
    assert all((o.copy.read_vector, o.copy.write_vector) == (4, 4) for o in first.operands)
    assert [o.copy.read_vector for o in plan(text.spec())[4].operands] == [1, 1]
    turned = plan(replace(text, contiguous=("k", "k"), shared_b="(64,8):(12,1)", copy_b="{atom: ldg.sts}").spec())[0]
    assert (turned.a.copy.read_vector, turned.a.copy.write_vector) == (4, 1)
    assert (turned.b.copy.read_vector, turned.b.copy.write_vector, turned.b.fragment.vector) == (4, 4, 4)


def test_rows_of_the_default_shared_memory_start_on_boundaries() -> None:
    """Of 16 bytes where copies transpose, as for A here; of 32 where they don't."""
    text = Draft(block=(6, 128, 8), warps="1:0", lanes="(1,32):(0,1)", values=("2", "4"))
    first = plan(text.spec())[0]
    assert [str(o.shared.layout[:2]) for o in first.operands] == ["(6,8):(1,12)", "(128,8):(1,136)"]
    assert first.a.fragment.vector == 2
    prove(first, text, owned(text))


def test_a_staged_copy_is_as_wide_as_its_values_on_each_side() -> None:
    """Four k of A are loaded at once and stored one by one; four m are stored at once and loaded one by one; a patch of
    4 x 4 is turned in registers, by loads along k and stores along m."""

    def of(values: str, variant: int = 0) -> tuple[int, str, int, str]:
        copy = plan(Draft(copy_a=f"{{atom: ldg.sts, values: {values}}}").spec())[variant].in_shared("a").copy
        return copy.read_vector, copy.read_mode, copy.write_vector, copy.write_mode

    assert of("[1, 4]") == (4, "k", 1, "x")
    assert of("[4, 1]") == (1, "k", 4, "x")
    assert of("[4, 4]") == (4, "k", 4, "x") and of("[2, 4]") == (4, "k", 2, "x")


def turned(block: tuple[int, int, int], stored: tuple[str, str] = ("x", "x"), **fields: Any) -> dict[str, Plan]:
    """The variants of a spec whose A and B go through registers, each to rows of x or of k."""
    rows = {
        f"shared_{name}": f"({extent},{block[2]}):" + (f"(1,{extent + 8})" if mode == "x" else f"({block[2]},1)")
        for name, extent, mode in zip("ab", block[:2], stored, strict=True)
    }
    text = Draft(block=block, copy_a="{atom: ldg.sts}", copy_b="{atom: ldg.sts}", **rows, **fields)
    owner, plans = owned(text), plan(text.spec())
    for each in plans:
        prove(each, text, owner)
    return {each.variant: each for each in plans}


@pytest.mark.parametrize(
    ("block_k", "patch"), [(4, (1, 4)), (8, (1, 4)), (16, (2, 4)), (32, (4, 4)), (64, (4, 4)), (3, (1, 1))]
)
def test_the_planner_turns_patches_that_leave_no_thread_idle(block_k: int, patch: tuple[int, int]) -> None:
    """128 threads for 64 x BLK_K elements: an access is as wide as they leave it on the shared side."""
    copy = turned((64, 64, block_k))["ak_bn_16B"].in_shared("a").copy
    assert tuple(each.size for each in copy.values) == patch
    assert (copy.read_mode, copy.read_vector, copy.write_mode, copy.write_vector) == ("k", patch[1], "x", patch[0])
    assert copy.participants == {3: 96, 4: 64}.get(block_k, 128)


def test_patches_of_every_variant() -> None:
    """What lies along k in global memory is turned to rows of x, and the other way; words are turned one by one."""
    plans = turned((64, 64, 32), ("x", "k"))
    widths = {
        variant: [
            (copy.read_vector, copy.read_mode, copy.write_vector, copy.write_mode)
            for copy in (operand.copy for operand in each.shared_operands)
        ]
        for variant, each in plans.items()
    }
    assert widths["ak_bn_16B"] == [(4, "k", 4, "x"), (4, "x", 4, "k")]
    assert widths["am_bk_16B"] == [(4, "x", 4, "x"), (4, "k", 4, "k")]
    assert widths["ak_bn_4B"] == [(1, "k", 1, "x"), (1, "x", 1, "k")]
    assert all(read == 1 for read, *_ in widths["any"])


def test_runs_of_an_odd_extent_are_as_wide_as_an_access() -> None:
    """Of six k two at a time, not three of which each is an access of its own."""
    six: dict[str, Any] = {"block": (64, 64, 6), "shared_a": "(64,6):(6,1)"}
    for atom in ("ldg.sts", "cp.async"):
        copy = plan(Draft(**{**six, "copy_a": f"{{atom: {atom}}}"}).spec())[0].in_shared("a").copy
        assert (copy.read_vector, copy.write_vector, copy.element_k.size % 2) == (2, 2, 0)


def test_cp_async_turns_nothing() -> None:
    """It moves what lies together on both sides: a word at a time, where the sides run along other modes."""
    for each in plan(Draft(block=(64, 64, 32)).spec()):
        for operand in each.shared_operands:
            copy = operand.copy
            assert copy.read_vector == copy.write_vector
            assert copy.read_mode == copy.write_mode or copy.read_vector == 1


@pytest.mark.parametrize(
    ("contiguous", "reads"), [(("k", "n"), [(4, "k"), (4, "x")]), (("m", "k"), [(2, "x"), (4, "k")])]
)
def test_without_shared_memory_each_thread_loads_what_it_multiplies(
    contiguous: tuple[str, str], reads: list[tuple[int, str]]
) -> None:
    """As wide as its runs of k, or of its 2 x 4 values."""
    text = Draft(block=(32, 64, 8), values=("2", "4"), stages=0, contiguous=contiguous)
    owner, plans = owned(text), plan(text.spec())
    for each in plans:
        prove(each, text, owner)
        assert each.shared_operands == () and each.shared_bytes == 0 and each.program.slots == 8
    assert [(o.copy.read_vector, o.copy.read_mode) for o in plans[0].operands] == reads
    assert sorted(p.variant for p in plans) == sorted([*VARIANTS, "any"])
    single = replace(text, copy_a="{atom: ldg, values: [1, 1]}", copy_b="{atom: ldg, values: [2, 2]}")
    first = plan(single.spec())[0]
    assert [o.copy.read_vector for o in first.operands] == [1, 2]
    assert [o.copy.read_vector for o in plan(single.spec())[1].operands] != [1, 2]  # values are the primary variant's
    prove(first, single, owner)


def test_fragments_have_one_slot_for_an_odd_number_of_k_or_for_one_stage() -> None:
    def slots(stages: int, **fields: Any) -> list[int]:
        return [plan(Draft(block=(64, 64, k), stages=stages, **fields).spec())[0].program.slots for k in (1, 2, 7, 8)]

    assert slots(2) == slots(8) == [1, 2, 1, 2]
    assert slots(1) == [1, 1, 1, 1] and slots(0) == [1, 2, 7, 8]


@pytest.mark.parametrize(("block_k", "vector"), [(4, 4), (6, 2), (8, 4), (7, 1)])
def test_fragments_of_rows_along_k_bring_several_k(block_k: int, vector: int) -> None:
    text = Draft(block=(64, 64, block_k), shared_a=f"(64,{block_k}):({block_k},1)", contiguous=("k", "n"))
    first = plan(text.spec())[0]
    a, b = (operand.fragment for operand in first.shared_operands)
    assert (a.vector, a.mode, a.depth) == (vector, "k" if vector > 1 else "x", vector)
    assert (b.vector, b.mode, b.depth) == (4, "x", 1)
    prove(first, text, owned(text))


def test_plans_are_deterministic_values() -> None:
    for path in SPECS:
        first, second = plan(load(path)), plan(load(path))
        assert first == second and first is not second
        assert [hash(each) for each in first] == [hash(each) for each in second]
        assert len({hash(each) for each in first}) == len(first)


def test_a_plan_is_frozen_to_its_leaves() -> None:
    def walk(value: Any) -> None:
        if is_dataclass(value):
            for field in fields(value):
                with pytest.raises(FrozenInstanceError):
                    setattr(value, field.name, None)
                walk(getattr(value, field.name))
        elif isinstance(value, (tuple, frozenset)):
            for item in value:
                walk(item)
        else:
            assert value is None or isinstance(value, (str, int, Layout)), type(value)

    plans: tuple[Plan, ...] = plan(load(SPECS[0]))
    walk(plans)


def test_the_naive_repetitions() -> None:
    assert repetitions([0, 1, 4, 5], 16) == [0, 2, 8, 10]
    assert repetitions([0, 3], 7) == [0, 1, 2]  # 6 is left alone


@pytest.mark.parametrize(
    ("change", "key", "rule"),
    [
        ({"lanes": "(8,4):(4,2)"}, "lanes:", "number their positions 0 .. 31"),
        ({"lanes": "(8,8):(8,1)"}, "lanes:", "number their positions 0 .. 31"),
        ({"warps": "(2,2):(1,1)"}, "warps:", "number their positions 0 .. 3"),
        ({"warps": "(3,1):(1,3)"}, "warps:", "the warps must divide the block tile in m"),
        ({"lanes": "(1,32):(32,1)"}, "lanes:", "the lanes in n must divide"),
        ({"values": ("128", "4")}, "values:", "must lie within the warp tile"),
        ({"values": ("2:40", "4")}, "values:", "must lie within the warp tile"),
        ({"values": ("(4,4):(1,0)", "4"), "block": (16, 64, 8)}, "values:", "must lie within the warp tile"),
        ({"warp": ("128", "32")}, "warp:", "the warp tile in m must lie within the block tile"),
        ({"shared_a": "(64,4):(1,64)"}, "  a: (64", "shared.a must be a layout of the (m, k) tile"),
        ({"shared_a": "(32,16):(1,32)"}, "  a: (32", "shared.a must be a layout of the (m, k) tile"),
        ({"shared_b": "((6,11),8):((1,8),88)"}, "  b: (", "shared.b must be a layout of the (n, k) tile"),
        ({"shared_a": "((2,32),8):((300,1),32)"}, "  a: (", None),
        ({"stages": 9}, "stages:", "at most 8 stages"),
        ({"stages": 0, "shared_b": "(64,8):(1,64)"}, "  b: (64", "without stages, there is no shared memory"),
        ({"stages": 0, "copy_a": "{atom: cp.async}"}, "  a: {", "without stages of shared memory, threads load what"),
        ({"stages": 0, "copy_b": "{atom: ldg.sts}"}, "  b: {", "without stages of shared memory, threads load what"),
        ({"stages": 1, "copy_a": "{atom: ldg}"}, "  a: {", "what stages of shared memory hold is copied there"),
        ({"copy_b": "{atom: ldg}"}, "  b: {", "what stages of shared memory hold is copied there"),
        (
            {"stages": 0, "copy_a": "{atom: ldg, threads: (32,4):(4,1)}"},
            "  a: {",
            "ldg loads what its thread multiplies",
        ),
        (
            {"stages": 0, "copy_a": "{atom: ldg, values: [3, 1]}"},
            "  a: {",
            "must be runs that divide a thread's values",
        ),
        (
            {"stages": 0, "copy_b": "{atom: ldg, values: [1, 3]}"},
            "  b: {",
            "must be runs that divide a thread's values",
        ),
        ({"stages": 0, "copy_a": "{atom: ldg, values: <(2,2):(1,4), 1>}"}, "  a: {", "must be runs that divide"),
        ({"spread": (0, 8)}, "  spread:", "copies are dealt out over k of a turn before its last fragments"),
        ({"spread": (2, 7), "shared_a": "(64,8):(8,1)"}, "  spread:", "copies are dealt out over k of a turn"),
        ({"spread": (1, 2), "stages": 1}, "  spread:", "copies are dealt out over k of a turn"),
        ({"spread": (0, 2), "stages": 0}, "  spread:", "copies are dealt out over k of a turn"),
        ({"spread": (0, 2), "block": (64, 64, 1)}, "  spread:", "copies are dealt out over k of a turn"),
        ({"copy_a": "{atom: cp.async, threads: (256,1):(1,0)}"}, "  a: {", "be threads of the block"),
        ({"copy_a": "{atom: cp.async, threads: (8,8):(8,2)}"}, "  a: {", "number their positions"),
        ({"copy_a": "{atom: cp.async, threads: ((2,2),2):((1,1),5)}"}, "  a: {", "number their positions"),
        ({"copy_a": "{atom: cp.async, threads: (3,1):(1,0)}"}, "  a: {", "must divide the positions"),
        ({"copy_a": "{atom: cp.async, values: [1, 16]}"}, "  a: {", "must lie within the tile"),
        ({"copy_a": "{atom: cp.async, values: <(4,2):(1,2), 1>}"}, "  a: {", "copies.a.values in m must differ"),
        ({"copy_a": "{atom: cp.async, values: <4:0, 1>}"}, "  a: {", "copies.a.values in m must differ"),
    ],
)
def test_what_does_not_compose_is_refused_where_it_stands(change: dict[str, Any], key: str, rule: str | None) -> None:
    text = Draft(**change)
    if rule is None:  # legal, if odd
        prove(plan(text.spec())[0], text, owned(text))
        return
    with pytest.raises(PlanError, match=rule.replace("(", r"\(").replace(")", r"\)")) as caught:
        plan(text.spec())
    line = next(i for i, each in enumerate(text.text().splitlines(), 1) if key in each)
    assert caught.value.where is not None and caught.value.where.line == line
    assert caught.value.got and caught.value.fix
