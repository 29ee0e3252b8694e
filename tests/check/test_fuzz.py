"""Whatever loads is checked without an exception, and what is called legal is proved and emitted."""

from __future__ import annotations

from random import Random
from time import process_time

from hypothesis import event, given, settings
from hypothesis import strategies as st

from layoutgen.check import Report, check
from layoutgen.emit import emit
from layoutgen.errors import SpecError
from layoutgen.hw.devices import DEVICES
from tests.check.mutate import mutate
from tests.plan.drafts import Choose, Draft, draft
from tests.plan.naive import owned
from tests.plan.proofs import prove


def nearly(choose: Choose) -> Draft:
    return mutate(choose, draft(choose))


def verify(text: Draft, device: str) -> Report | None:
    """Check a spec, if it is one, and its report; and prove what is legal."""
    try:
        spec = text.spec()
    except SpecError:
        return None
    report = check(spec, DEVICES[device])
    lines = text.text().splitlines()
    for finding in report.findings:
        assert finding.where.path == "draft.yaml" and 1 <= (finding.where.line or 0) <= len(lines)
        assert finding.message and finding.got and finding.allowed and finding.fix and finding.rule in str(finding)
    if not report.legal:
        return report
    owner = owned(text)
    for each in report.plans:
        prove(each, text, owner)
        source = emit(each)
        assert each.variant in source.text and source.launch.shared_bytes == each.shared_bytes
    assert report.registers is not None and report.registers.minimum <= report.registers.cap
    return report


@settings(max_examples=150)
@given(st.data(), st.sampled_from(["h200", "rtx4090"]))
def test_a_mutant_is_refused_or_right(data: st.DataObject, device: str) -> None:
    report = verify(nearly(lambda options: data.draw(st.sampled_from(options))), device)
    event("no spec" if report is None else "legal" if report.legal else report.findings[-1].rule)


def test_mutants_meet_every_rule_and_none_takes_long() -> None:
    """The same over plain random numbers, which spread better than shrinkable ones; the sums keep the fuzz honest."""
    rules: dict[str, int] = {}
    slowest = 0.0
    for seed in range(400):
        text = nearly(Random(seed).choice)
        before = process_time()
        try:
            spec = text.spec()
        except SpecError:
            continue
        report = check(spec, DEVICES["h200"])
        slowest = max(slowest, process_time() - before)
        for rule in {finding.rule for finding in report.findings} or {"legal"}:
            rules[rule] = rules.get(rule, 0) + 1
    assert rules["legal"] > 40
    assert set(rules) >= {
        "arch", "lanes", "warps", "threads", "compose", "coverage-c", "registers", "shared-memory", "shared-overlap",
        "min-blocks", "odd-k", "narrow-loads", "narrow-copy",
    }  # fmt: skip
    assert slowest < 0.5
