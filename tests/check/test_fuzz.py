"""Whatever loads is checked without an exception and in time, and what is called legal is proved, emitted and run."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count, islice
from random import Random
from time import process_time
from types import FrameType

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from layoutgen.check import Report, check
from layoutgen.check.rules import RULES
from layoutgen.emit import emit
from layoutgen.emitted import emitted_specs
from layoutgen.errors import SpecError
from layoutgen.hw.devices import DEVICES
from layoutgen.plan.model import Copy, SharedOperand
from layoutgen.spec import load, loads
from tests.check.edits import applied
from tests.check.mutate import mutate
from tests.kernels.harness import SCHEDULES, Case, failure, kernel
from tests.plan.drafts import Choose, Draft, draft, of_spec
from tests.plan.naive import owned, words
from tests.plan.proofs import prove, prove_copy, prove_fetch, prove_tile

MUTANTS, SHARDS = 11_000, 10
MEND_EVERY, PROVE_EVERY, SHIPPED_EVERY = 10, 25, 9
HUNG = 20  # seconds by the clock, on a machine that others use, too
SLOW, SLOW_TO_MEND = 0.25, 1.5  # CPU seconds
BUILT = 6


def nearly(choose: Choose) -> Draft:
    return mutate(choose, draft(choose))


def mutant(seed: int) -> Draft:
    """A draft at random, or now and then a spec that ships, with some of its fields changed."""
    choose = Random(seed).choice
    if seed % SHIPPED_EVERY:
        return nearly(choose)
    return mutate(choose, choose(shipped()))


@cache
def shipped() -> list[Draft]:
    return [of_spec(load(path)) for path in emitted_specs().values()]


@contextmanager
def no_longer_than(seconds: float, text: Draft) -> Iterator[None]:
    """Fails, even in an endless loop, after so many seconds by the clock."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"hung:\n{text.text()}")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def checked(text: Draft, device: str, *, mend: bool = True) -> Report | None:
    """Check a spec, if it is one: whatever is found has a place and words."""
    try:
        spec = text.spec()
    except SpecError:
        return None
    for _ in range(2):  # a pause to collect the garbage of thousands of tests falls on one of two runs, not on both
        before = process_time()
        report = check(spec, DEVICES[device], mend=mend)
        seconds = process_time() - before
        if seconds < (SLOW_TO_MEND if mend else SLOW):
            break
    else:
        pytest.fail(f"took {seconds:.2f} s:\n{text.text()}")
    lines = text.text().splitlines()
    for finding in report.findings:
        assert finding.where.path == "draft.yaml" and 1 <= (finding.where.line or 0) <= len(lines)
        assert finding.message and finding.got and finding.allowed and finding.fix
        assert RULES[finding.rule].severity == finding.severity and RULES[finding.rule].stage == "check"
    return report


def prove_legal(text: Draft, report: Report) -> None:
    """Everything that can be proved about every variant; and it is emitted."""
    owner = owned(text)
    for each in report.plans:
        prove(each, text, owner)
        source = emit(each)
        assert each.variant in source.text and source.launch.shared_bytes == each.shared_bytes
    assert report.registers is not None and report.registers.minimum <= report.registers.cap


def mend(text: Draft, report: Report) -> int:
    """Makes each edit that findings propose: that one is gone, and nothing new is found. How many it made."""
    said = {(each.rule, each.message) for each in report.findings}
    edits = 0
    for finding in report.findings:
        mended = applied(text.text(), finding.fix)
        if mended is not None:
            left = {(each.rule, each.message) for each in check(loads(mended), DEVICES["h200"], mend=False).findings}
            assert left < said and (finding.rule, finding.message) not in left, f"{finding.fix}\n{text.text()}"
            edits += 1
    return edits


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["h200", "rtx4090"]))
def test_a_mutant_is_refused_or_right(data: st.DataObject, device: str) -> None:
    text = nearly(lambda options: data.draw(st.sampled_from(options)))
    report = checked(text, device)
    if report is not None and report.legal:
        prove_legal(text, report)
    event("no spec" if report is None else "legal" if report.legal else report.findings[-1].rule)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_thousands_of_mutants(shard: int) -> None:
    """No exception, no hang; and C and both copies of whatever is legal are covered once, by brute force.

    Plain random numbers spread better than shrinkable ones; the counts keep the fuzz honest.
    """
    rules: Counter[str] = Counter()
    edits = 0
    for seed in range(shard, MUTANTS, SHARDS):
        text = mutant(seed)
        to_mend = seed // SHARDS % MEND_EVERY == 0
        with no_longer_than(HUNG, text):
            report = checked(text, "h200", mend=to_mend)
        if report is None:
            continue
        rules.update({finding.rule for finding in report.findings})
        rules["legal"] += report.legal
        if report.legal:
            primary, owner = report.plans[0], owned(text)
            prove_tile(primary, owner)
            for operand, mine in zip(primary.operands, (owner.m, owner.n), strict=True):
                if isinstance(operand, SharedOperand):
                    prove_copy(operand, 16, words(text, operand.name))
                else:
                    prove_fetch(operand, 16, mine)
            rules[f"legal with {min(primary.stages, 2)} stages"] += 1
            if seed // SHARDS % PROVE_EVERY == 0:
                prove_legal(text, report)
            if to_mend:
                edits += mend(text, report)
    assert rules["legal"] > 200 and edits > 10
    assert all(rules[f"legal with {stages} stages"] > 10 for stages in (0, 1, 2))
    assert set(rules) >= {
        "arch", "lanes", "warps", "threads", "stages", "compose", "coverage-c", "registers", "shared-memory",
        "shared-overlap", "min-blocks", "odd-k", "narrow-loads", "narrow-copy", "bank-conflicts", "uncoalesced",
        "shared-bound", "spills", "no-overlap", "l1-bound",
    }  # fmt: skip


def small_legal_mutants() -> Iterator[tuple[Draft, Report]]:
    """Legal mutants of at most 64 x 64 x 8 by at most 128 threads, each with another way of copying or another tile."""
    seen = set()
    for seed in count():
        text = mutant(seed)
        m, n, k = text.block
        if m * n > 4096 or k > 8:
            continue
        report = checked(text, "h200", mend=False)
        if report is None or not report.legal or report.plans[0].threads.threads > 128:
            continue
        copies = [each.copy for each in report.plans[0].operands]
        kind = tuple(
            (copy.atom.name, copy.read_vector, copy.write_vector if isinstance(copy, Copy) else 0) for copy in copies
        )
        if kind not in seen:
            seen.add(kind)
            yield text, report


@cache
def small() -> list[tuple[Draft, Report]]:
    return list(islice(small_legal_mutants(), BUILT))


@pytest.mark.parametrize("index", range(BUILT))
def test_a_legal_mutant_builds_and_multiplies(index: int) -> None:
    """Compiled, and run in the simulator with copies landing late and early, in two orders of warps, against numpy."""
    text, report = small()[index]
    plan = report.plans[0]
    code = kernel(plan)
    block_m, block_n, block_k = (-(-extent // 4) * 4 for extent in plan.tile.block)
    ragged = Case(block_m + 4, 2 * block_n - 4, (plan.stages + 1) * block_k + 4, alpha=1.5, beta=-0.5)
    for case in (ragged, Case(4, 8, 4, placed="poisoned")):
        for schedule in (SCHEDULES[0], SCHEDULES[-1]):
            assert failure(plan, code, case, schedule) is None, (case, schedule, text.text())


def test_the_guard_against_hangs_stops_one() -> None:
    with pytest.raises(TimeoutError, match="hung"), no_longer_than(0.05, Draft()):
        while True:
            pass
