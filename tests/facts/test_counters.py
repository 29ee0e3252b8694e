"""What ncu counted on an H200 is what the facts say today, access by access; the table in the docs shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.counters import PROBLEMS, agrees, cases, predicted, table
from layoutgen.facts import occupancy, registers
from layoutgen.hw.devices import DEVICES

ROOT = Path(__file__).parents[2]
REPORT: dict[str, Any] = json.loads((ROOT / "benchmarks/results/counters-h200.json").read_text())
SPECS = sorted(map(str, (ROOT / "specs").glob("*.yaml")))
H200 = DEVICES["h200"]
# Where ncu counted fewer sectors of 16-byte cp.async than are predicted, and on whole tiles fewer than its bytes fill.
SHORT = {
    "salykov_128x256x8": {"copy_b"},
    "sgemm_64x128x16": {"copy_b"},
    "sgemm_mn_128x256x16": {"copy_b"},
}


def test_every_spec_was_measured_on_every_problem() -> None:
    measured = {(row["spec"], *row["problem"]) for row in REPORT["rows"]}
    assert measured == {(Path(path).stem, *problem[:3]) for path in SPECS for problem in PROBLEMS}


@pytest.mark.parametrize("index", range(len(REPORT["rows"])))
def test_the_counters_agree_with_the_facts_of_today(index: int) -> None:
    row, case = REPORT["rows"][index], cases(SPECS)[index]
    assert (row["spec"], row["variant"]) == (case.plan.name, case.plan.variant)
    assert {name: each["predicted"] for name, each in row["accesses"].items()} == predicted(case)
    bounds = registers(case.plan, H200)
    assert (row["registers"]["minimum"], row["registers"]["cap"]) == (bounds.minimum, bounds.cap)
    fits = occupancy(case.plan, row["registers"]["ptxas"], H200)
    assert row["blocks"]["predicted"] == fits.blocks
    short = {name for name, each in row["accesses"].items() if not each["as_predicted"]}
    assert short == SHORT.get(row["spec"], set()) and agrees(row) == (not short)


def test_sectors_that_ncu_lost_are_lost_by_ncu() -> None:
    """Fewer than the 32-byte pieces that the copied bytes fill: no cache can bring that to a block."""
    whole = [row for row in REPORT["rows"] if tuple(row["problem"]) == PROBLEMS[0][:3] and row["spec"] in SHORT]
    for row in whole:
        for name in SHORT[row["spec"]]:
            each = row["accesses"][name]
            least = each["predicted"]["bytes"] // 32
            counted = [got["sectors"] for got in each["measured"]]
            assert each["predicted"]["sectors"] == least > min(counted) > 0.98 * least
            assert {got["bytes"] for got in each["measured"]} == {each["predicted"]["bytes"]}
    assert len(whole) == len(SHORT)


def test_the_page_shows_the_measurement() -> None:
    assert table(REPORT) in (ROOT / "docs/measured.md").read_text()
