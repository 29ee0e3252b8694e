"""Specs that check refuses are told as far as they compose, and then what it finds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from layoutgen.algebra import Layout, evaluate
from layoutgen.check import check
from layoutgen.errors import SpecError
from layoutgen.explain import explain
from layoutgen.facts import NOBODY
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import plan
from tests.check.mutate import mutate
from tests.plan.drafts import Draft, draft


def test_an_illegal_spec_is_told_as_far_as_it_composes() -> None:
    for change, stop in (
        ({"warps": "(3,2):(2,1)", "warp": ("32", "32")}, "3 warps in m do not divide these 2 places"),
        ({"values": ("3", "4")}, "complement(3:1, 32)"),
        ({"values": ("(4,2):(1,2)", "4")}, "complement((4,2):(1,2), 32) has no result"),
        ({"values": ("64", "4")}, "V has 64 positions up to 63, the warp tile 32"),
        ({"lanes": "(8,4):(4,2)"}, "does not give each place a lane of its own"),
    ):
        spec = Draft(**change).spec()  # type: ignore[arg-type]
        report = check(spec, DEVICES["h200"])
        assert not report.legal
        findings = tuple(map(str, report.findings))
        told = explain(spec, report.plans, findings=findings, legal=False)
        page = str(told)
        assert stop in page, page
        assert findings[0] in page and page.index(stop) < page.index(findings[0])
        for step in told.steps:
            assert evaluate(step.call or str(step.result)) == step.result


def test_a_whole_tile_that_covers_badly_is_told_to_its_end() -> None:
    spec = Draft(values=("(2,2):(1,8)", "4"), block=(64, 64, 8)).spec()
    report = check(spec, DEVICES["h200"])
    told = explain(spec, report.plans, findings=tuple(map(str, report.findings)), legal=report.legal)
    assert report.legal == bool(told.variant)
    assert any(step.label == "thread -> n" for step in told.steps)


def test_a_copy_that_leaves_the_tile_is_followed_where_it_goes() -> None:
    """Runs of 2 k do not repeat to 3: thread 0 copies A(0,3), and its words are still those of its accesses."""
    spec = Draft(block=(64, 64, 3), copy_a='{atom: cp.async, threads: "(64,1):(1,64)", values: [1, 2]}').spec()
    report = check(spec, DEVICES["h200"])
    assert [f.rule for f in report.findings if f.severity == "error"] == ["coverage-a"]
    told = explain(spec, report.plans, thread=0, legal=False).followed["thread"]["a"]["copies"]
    assert [access["elements"] for access in told] == [[[0, k]] for k in range(4)]
    assert [access["word"][0] for access in told] == [68 * k for k in range(4)]


def test_what_nobody_copies_is_said_to_be_nobodys() -> None:
    spec = Draft().spec()
    each = plan(spec)[0]
    copy = each.b.copy
    nowhere = Layout(copy.participants, 0)
    for missing, left in (({"thread_k": nowhere, "element_k": Layout(1, 0)}, {0}), ({"thread_x": nowhere}, set())):
        holes = replace(each, b=replace(each.b, copy=replace(copy, **missing)))
        told = explain(spec, [holes], thread=0)
        source = told.followed["coordinate"]["b"]
        assert {k for k, thread in enumerate(source["copier"]) if thread != NOBODY} == left
        assert {k for k, access in enumerate(source["write"]) if access} == left
        assert ("is copied by nobody" in str(told)) == (not left)
        page = [line for line in str(told).splitlines() if "copied by thread" in line]
        assert page[1].split()[-7:] == ["-"] * 7


def test_whatever_loads_is_told() -> None:
    """Mutants of random specs: each is told, with a call for each layout, or is told why not."""
    told = 0
    for seed in range(400, 480):
        choose = Random(seed).choice
        try:
            spec = mutate(choose, draft(choose)).spec()
        except SpecError:
            continue
        report = check(spec, DEVICES["h200"])
        findings = tuple(map(str, report.findings))
        page = explain(spec, report.plans, thread=0 if report.plans else None, findings=findings, legal=report.legal)
        assert all(finding in str(page) for finding in findings)
        assert all(evaluate(step.call or str(step.result)) == step.result for step in page.steps)
        told += 1
    assert told > 60
