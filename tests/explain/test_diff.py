"""What diff says differs, differs; what it is silent about is the same."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layoutgen import paths, report
from layoutgen.algebra import Layout
from layoutgen.diff import Change, Difference, Side, diff
from layoutgen.emitted import emitted_specs
from layoutgen.plan import plan
from layoutgen.plan.model import Advance, LoadFragment, Program, SharedOperand
from layoutgen.report import diff_specs
from layoutgen.spec import Spec, loads
from tests.plan.drafts import Draft


def found(a: Draft, b: Draft) -> Difference:
    return diff_specs(a.spec(), b.spec())


def changed(changes: tuple[Change, ...]) -> dict[str, tuple[str | None, str | None]]:
    return {f"{each.level}/{each.what}" if each.level else each.what: (each.a, each.b) for each in changes}


def test_a_tiling_is_the_same_as_itself_whatever_it_is_called() -> None:
    text = Draft().text()
    other = text.replace("name: draft", "name: other").replace("a spec for tests", "the same again")
    same = diff_specs(loads(text), loads(other))
    assert same.same and (same.a, same.b) == ("draft", "other")
    assert (same.spec, same.plan, same.facts, same.variants) == ((), (), (), ())


def test_a_default_that_is_spelled_out_is_another_line_but_no_other_tiling() -> None:
    spelled = found(Draft(), Draft(warp=("32", "32"), shared_a="(64,8):(1,68)"))
    assert spelled.same and not spelled.plan and not spelled.facts
    assert changed(spelled.spec) == {"tiling.warp": (None, "[32, 32]"), "shared.a": (None, "(64,8):(1,68)")}


def test_keys_differ_with_their_places() -> None:
    lines = {name: Draft(**fields).text() for name, fields in (("a", {}), ("b", {"copy_a": "{atom: ldg.sts}"}))}  # type: ignore[arg-type]
    lines["b"] = lines["b"].replace("stages: 2", "stages: 3")
    apart = diff_specs(loads(lines["a"], "a.yaml"), loads(lines["b"], "b.yaml"))
    assert not apart.same
    by_key = {change.what: change for change in apart.spec}
    assert set(by_key) == {"shared.stages", "copies.a.atom"}

    def line(name: str, words: str) -> str:
        (number,) = (i for i, text in enumerate(lines[name].splitlines(), 1) if words in text)
        return f"{name}.yaml:{number}"

    stages = by_key["shared.stages"]
    assert (stages.a, stages.b) == ("2", "3")
    assert (stages.where_a, stages.where_b) == (line("a", "stages: 2"), line("b", "stages: 3"))
    atom = by_key["copies.a.atom"]
    assert (atom.a, atom.b, atom.where_a, atom.where_b) == (None, "ldg.sts", "", line("b", "atom"))


def test_what_a_file_leaves_out_is_a_default() -> None:
    text = Draft().text()
    less = re.sub("(?m)^schedule:.*\n", "", text)
    more = less + "schedule: {raster: along_n, group: 3}\n"
    by_key = {change.what: change for change in diff_specs(loads(less, "a.yaml"), loads(more, "b.yaml")).spec}
    group = by_key["schedule.group"]
    assert group.a is not None and group.b == "3"
    assert (group.where_a, group.where_b) == ("default", f"b.yaml:{more.count(chr(10))}")


def test_layouts_differ_by_level_as_the_plans_have_them() -> None:
    one, two = Draft(), Draft(lanes="(4,8):(8,1)", values=("4", "4"))
    apart = found(one, two)
    a, b = plan(one.spec())[0], plan(two.spec())[0]
    said = changed(apart.plan)
    assert said["lanes/(lane_m,lane_n) -> lane"] == (str(a.tile.lanes), str(b.tile.lanes))
    assert said["values/value -> m"] == (str(a.tile.value_mode[0]), str(b.tile.value_mode[0]))
    assert said["threads/thread -> n"] == (str(a.threads.n), str(b.threads.n))
    assert said["A's fragment/thread -> word"] == (str(a.a.fragment.load.base), str(b.a.fragment.load.base))
    assert not any(level.startswith(("A's copy/", "B in shared", "program/")) for level in said)
    levels = [change.level for change in apart.plan]
    assert levels == sorted(levels, key=levels.index) and len(set(levels)) < len(levels)  # each in one piece
    assert apart.variants == tuple(each.variant for each in plan(one.spec()))


def test_every_value_of_a_plan_is_compared() -> None:
    """Whichever field of a plan changes, one change is found; and the label names the operand's own mode."""
    spec = Draft().spec()
    each = plan(spec)[0]
    assert (
        each.a.copy.read_mode == "k"
        and each.a.copy.write_mode == "x"
        and not each.order.serpentine
        and each.epilogue.vector == 4
    )
    changes: list[tuple[Any, str]] = [
        (replace(each, schedule=replace(each.schedule, group=3)), "schedule.group"),
        (replace(each, order=replace(each.order, serpentine=True)), "FFMA order, serpentine"),
        (replace(each, order=replace(each.order, layout=Layout(128, 1))), "FFMA order, step -> value"),
        (replace(each, epilogue=replace(each.epilogue, vector=1)), "epilogue.vector"),
        (replace(each, arch="sm_90"), "arch"),
        (replace(each, cost=7), "cost"),
        (replace(each, b=replace(each.b, copy=replace(each.b.copy, element_x=Layout(2, 7)))), "i -> n"),
        (replace(each, a=replace(each.a, copy=replace(each.a.copy, read_mode="x"))), "reads run along"),
        (replace(each, a=replace(each.a, copy=replace(each.a.copy, write_mode="k"))), "writes run along"),
        (replace(each, requirements=replace(each.requirements, c=each.requirements.a)), "requirements.c.contiguous"),
    ]
    for changed_plan, what in changes:
        apart = diff(Side(spec, (each,), {}), Side(spec, (changed_plan,), {}))
        assert not apart.same and what in [change.what for change in apart.plan], what
        assert apart.variants == (each.variant,)


def test_epilogues_differ_by_their_steps_and_by_what_a_call_says() -> None:
    atom = {"atom": "SM80_16x8x16_F32BF16BF16F32_TN", "dtypes": ("bf16", "bf16", "f32"), "block": (32, 64, 32)}
    one, two = (
        Draft(warps="(1,2):(0,1)", epilogue=steps, **atom)  # type: ignore[arg-type]
        for steps in (("bias", "gelu", "amax"), ("bias: {dtype: f32}", "gelu", "amax: {name: most}"))
    )
    apart = found(one, two)
    assert {change.what for change in apart.spec} >= {"epilogue.0.bias.dtype", "epilogue.2.amax.name"}
    said = changed(apart.plan)
    assert said["epilogue/step 1's tensor"] == ("bias in bf16, 16 bytes at once", "bias in f32, 16 bytes at once")
    assert said["epilogue/step 3"] == ("amax: the largest of each row (f32)", "most: the largest of each row (f32)")
    assert not any("step 2" in what for what in said)


def test_programs_differ_by_their_kinds_of_step_or_by_the_first_step() -> None:
    deep = found(Draft(), Draft(stages=3))
    said = changed(deep.plan)
    assert said["program/prologue: CopyTile"] == ("2", "4") and said["program/steady: Commit"] == (None, "1")
    spec = Draft().spec()
    each = plan(spec)[0]
    steady = list(each.program.steady)
    where = next(i for i, step in enumerate(steady) if isinstance(step, LoadFragment))
    steady[where] = LoadFragment(5, 0, 1)
    other = replace(each, program=Program(each.program.prologue, tuple(steady)))
    (change,) = diff(Side(spec, (each,), {}), Side(spec, (other,), {})).plan
    assert change.what == f"steady: step {where}" and change.b == "LoadFragment(k=5, slot=0, count=1)"
    longer = replace(each, program=Program((*each.program.prologue, Advance("read")), each.program.steady))
    (change,) = diff(Side(spec, (each,), {}), Side(spec, (longer,), {})).plan
    assert change.what == "prologue: Advance"


def test_with_and_without_shared_memory() -> None:
    """What only one of them has is there, on its side alone; what both have is compared."""
    own = Draft(stages=0, copy_a="{atom: ldg}", copy_b="{atom: ldg}")
    shared = Draft(stages=1, copy_a="{atom: ldg.sts}", copy_b="{atom: ldg.sts}", shared_a="(64,8):(8,1)")
    apart = found(own, shared)
    said = changed(apart.plan)
    each = plan(shared.spec())[0].a
    assert isinstance(each, SharedOperand)
    assert said["A in shared memory/(m,k,stage) -> word"] == (None, str(each.shared.layout))
    assert said["A's fragment/a load runs along"] == (None, "k")
    assert said["A's fragment/loads, for as many k as one brings"] == (None, "4")
    assert said["A's copy/atom"] == ("ldg", "ldg.sts")
    assert said["kernel/stages"] == ("0", "1")
    assert said["program/register slots"] == ("8", "4")
    assert said["program/steady: Barrier"] == (None, "2") and said["program/steady: LoadFragment"] == (None, "2")
    back = changed(found(shared, own).plan)
    assert back == {what: (b, a) for what, (a, b) in said.items()}
    assert not any("." in what for what in said if what.startswith(("A", "B")))  # all in the words of the spec
    facts = changed(apart.facts)
    assert facts["facts.shared.bytes"][0] == "0" and facts["facts.accesses.fragment_a.opcode"] == (None, "ld.shared")
    assert not [what for what, sides in facts.items() if set(sides) == {None, "0"}]


def test_findings_of_one_rule_are_all_compared() -> None:
    """Two accesses with conflicts, told in whatever order; one less is a difference."""
    # A's rows of 128 words, and B's of 64: what eight lanes of a warp store of either lies in one bank.
    both = Draft(
        block=(128, 64, 8),
        warp=("64", "32"),
        contiguous=("k", "k"),
        shared_a="(128,8):(1,128)",
        shared_b="(64,8):(1,64)",
    )
    rules = [each.rule for each in report.check_spec(both.spec()).findings]
    twice = [rule for rule in rules if rules.count(rule) > 1]
    assert twice == ["bank-conflicts"] * 2
    said = changed(found(both, Draft()).facts)[f"findings.{twice[0]}"][0]
    assert said is not None and said.count("warning: ") == rules.count(twice[0])


def test_any_fact_is_compared() -> None:
    spec = Draft().spec()
    plans = plan(spec)
    a = {
        "name": "x",
        "where": "x:1",
        "waves": 3.05,
        "legal": True,
        "deep": {"list": [{"ways": 2}, {"ways": 4}], "same": 1},
    }
    b = {
        "name": "y",
        "where": "y:2",
        "waves": 2.0,
        "legal": False,
        "deep": {"list": [{"ways": 2}, {"ways": 1}], "same": 1},
    }
    apart = diff(Side(spec, plans, a), Side(spec, plans, {**b, "new": ["p", "q"], "count": 16384}))
    assert not apart.same and not apart.plan
    assert changed(apart.facts) == {
        "waves": ("3.05", "2"), "legal": ("yes", "no"), "deep.list.1.ways": ("4", "1"), "new": (None, "[p, q]"),
        "count": (None, "16,384"),
    }  # fmt: skip


def test_facts_of_two_specs_are_those_of_their_reports() -> None:
    one, two = Draft(), Draft(block=(64, 64, 4), stages=4)
    said = changed(found(one, two).facts)
    reports = [report.check_spec(each.spec()).to_json() for each in (one, two)]
    assert said["facts.shared.bytes"] == tuple(f"{each['facts']['shared']['bytes']:,}" for each in reports)
    each_k = plan(one.spec())[0].a.fragment.vectors
    assert said["facts.accesses.fragment_a.instructions"] == (str(8 * each_k), str(4 * each_k))


def test_a_side_that_does_not_compose_is_compared_by_its_spec_and_facts() -> None:
    apart = found(Draft(), Draft(warps="(3,2):(2,1)", warp=("32", "32")))
    assert apart.composes == (True, False) and not apart.same and not apart.plan
    assert changed(apart.facts)["legal"] == ("yes", "no")
    assert any(key.startswith("findings.compose") for key in changed(apart.facts))
    bad = Draft(warps="(3,2):(2,1)", warp=("32", "32"))
    assert found(bad, bad).same
    assert not found(bad, replace(bad, group=2)).same


def test_json_has_it_all() -> None:
    shipped = paths.shipped_specs()
    apart = diff_specs(shipped["warptile_128x128"], shipped["salykov_128x128x8"])
    data = json.loads(json.dumps(apart.to_json()))
    assert data["same"] is False and data["composes"] == [True, True]
    for part in ("spec", "plan", "facts"):
        assert [(each["what"], each["a"], each["b"]) for each in data[part]] == [
            (each.what, each.a, each.b) for each in getattr(apart, part)
        ]
    path = str(shipped["warptile_128x128"])
    assert all(
        each["where_a"].startswith(path) or each["a"] is None for each in data["spec"] if each["where_a"] != "default"
    )
    assert [each["what"] for each in data["spec"] if each["where_a"] == "default"] == ["copies.spread"]


@pytest.mark.parametrize("path", emitted_specs().values(), ids=lambda path: path.stem)
def test_a_spec_and_what_it_writes_of_itself_are_the_same(path: Path) -> None:
    spec = report.read_spec(path)
    again: Spec = loads(spec.to_yaml())
    assert diff_specs(spec, again).same
