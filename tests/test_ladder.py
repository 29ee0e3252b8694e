"""docs/ladder.md is what docs/ladder.py writes, and what its words and the specs' comments claim is in the facts."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from docs import ladder
from docs.ladder import Rung
from docs.pictures import RESULTS
from layoutgen.bench import Conditions, Kernel, Reading, Result, Row, compare, read
from layoutgen.bench.result import write
from layoutgen.facts import Loop
from layoutgen.paths import shipped_specs
from tests.plot.results import H200, MACHINE

ROOT = Path(__file__).resolve().parents[1]


@cache
def found() -> dict[str, Rung]:
    every = ladder.rungs(None, {})
    return {each.name.removeprefix("ladder_")[:2] if "ladder" in each.name else each.name: each for each in every}


def test_the_page_is_what_is_written_now() -> None:
    """LAYOUTGEN_UPDATE_DOCS=1 writes it anew."""
    now = ladder.page()
    if os.environ.get("LAYOUTGEN_UPDATE_DOCS"):
        ladder.PAGE.write_text(now)
    assert now == ladder.PAGE.read_text()


def test_every_rung_is_told_in_order_with_its_picture() -> None:
    text = ladder.PAGE.read_text()
    assert tuple(re.findall(r"^## (\w+)$", text, re.M)) == ladder.NAMES
    shown = re.findall(r"\(pictures/ladder/(\w+)\.svg\)", text)
    assert tuple(name for name in shown if name not in ("speeds", "dealt_out", "order")) == ladder.NAMES
    assert [name for name in shipped_specs() if name.startswith("ladder_")] == list(ladder.NAMES[:12])
    assert "](docs/ladder.md)" in (ROOT / "README.md").read_text()


def test_a_change_is_the_lines_that_differ_but_for_comments() -> None:
    assert found()["02"].change.splitlines()[1:-3] == [
        " tiling:", "-  block: [32, 4, 8]", "-  warps: (1,4):(0,1)", "-  lanes: (32,1):(1,0)", "+  block: [32, 32, 8]",
        "+  warps: (32,1):(1,0)                    # 32 warps, a row of C each",
        "+  lanes: (1,32):(0,1)                    # lane -> column",
    ]  # fmt: skip
    for each in list(found().values())[1:]:  # taking the change back gives the rung before
        assert each.before is not None
        old, new = ({line.split(" #")[0].rstrip() for line in text.splitlines()} for text in (each.before, each.text))
        lines = each.change.splitlines()[1:-1]
        told = {sign: {line[1:].split(" #")[0].rstrip() for line in lines if line[0] == sign} for sign in "+-"}
        kept = {"name:", "about:", ""}
        assert {line for line in old - new if not line.startswith(("#", "name:", "about:"))} <= told["-"], kept
        assert {line for line in new - old if not line.startswith(("#", "name:", "about:"))} <= told["+"]
        assert told["-"] <= old and told["+"] <= new


def limiter(key: str) -> str:
    return found()[key].facts.bound.limiter


def wavefronts(key: str, access: str) -> tuple[float, float]:
    """What each request takes, and would without conflicts."""
    cost = found()[key].cost(access)
    return cost.wavefronts, cost.free


def test_the_first_two_rungs_differ_in_their_sectors() -> None:
    r01, r02 = found()["01"], found()["02"]
    assert (r01.cost("load_a").sectors, r01.cost("load_a").least, limiter("01")) == (32, 4, "L1")
    assert (r02.cost("load_a").sectors, r02.cost("load_b").sectors, r02.cost("load_b").least) == (1, 4, 4)
    assert sum(r02.cost(name).of.requests for name in ("load_a", "load_b")) * 32 == r02.facts.bound.flop  # two an FFMA
    assert limiter("02") == "L1" and r02.clocks["L1"] > 5 * r02.clocks["compute"]
    assert 30 * r01.facts.ceiling > r02.facts.ceiling > 10 * r01.facts.ceiling


def test_tiles_in_shared_memory_move_a_twentieth_of_the_sectors() -> None:
    r02, r03 = found()["02"], found()["03"]
    assert r02.sectors == 20 * r03.sectors
    assert r03.facts.conflicts == 0 and limiter("03") == "shared memory" and r03.plan.stages == 1


def test_what_a_thread_keeps_in_registers_saves_loads() -> None:
    r03, r04, r05 = (found()[key] for key in ("03", "04", "05"))
    assert (r03.loads(), r04.loads(), r05.loads()) == (10 / 8, 3 / 8, 1 / 16)
    assert r04.plan.in_shared("a").fragment.depth == r05.plan.in_shared("a").fragment.depth == 4  # k at a time
    assert r04.facts.conflicts == 0 and limiter("04") == limiter("05") == "shared memory"
    assert wavefronts("05", "fragment_b") == (8, 4) and r05.facts.occupancy.blocks == 1
    assert r05.cost("write_d").sectors == 2 * r05.cost("write_d").least


def test_wide_accesses_leave_the_conflict_and_add_one() -> None:
    r05, r06 = found()["05"], found()["06"]
    assert wavefronts("06", "fragment_b") == (8, 4) and wavefronts("06", "store_a") == (2, 1)
    assert limiter("06") == "shared memory" and r06.facts.ceiling <= r05.facts.ceiling
    assert r06.warps > r05.warps and r06.plan.in_shared("a").fragment.depth == 1
    assert {r06.cost(name).of.bytes for name in ("load_a", "load_b", "fragment_a", "fragment_b")} == {16}


def test_dealing_b_out_trades_wavefronts_for_instructions() -> None:
    r06, r07 = found()["06"], found()["07"]
    assert wavefronts("07", "fragment_b") == (1, 1) and r07.cost("fragment_b").of.bytes == 4
    assert r07.cost("fragment_b").of.requests == 4 * r06.cost("fragment_b").of.requests
    assert 2 * r07.cost("fragment_b").of.wavefronts == r06.cost("fragment_b").of.wavefronts
    assert r07.cost("store_b").of.bytes == 4
    assert limiter("07") == "issue slots" and r07.facts.ceiling > r06.facts.ceiling


def test_padding_rows_does_not_part_what_collides_within_one() -> None:
    r06, r08 = found()["06"], found()["08"]
    assert wavefronts("08", "fragment_b") == (4, 1) and r08.cost("fragment_b").of.bytes == 4
    assert r08.cost("store_b").of.bytes == 4 and r08.facts.shared.padding > 0
    assert r08.cost("fragment_b").of.wavefronts == 2 * r06.cost("fragment_b").of.wavefronts
    assert limiter("08") == "shared memory" and r08.facts.ceiling < r06.facts.ceiling


def test_a_deeper_tile_halves_the_barriers_and_hurts_the_stores() -> None:
    r06, r09 = found()["06"], found()["09"]
    assert r09.barriers == r06.barriers / 2
    assert wavefronts("09", "store_a") == (4, 1) and wavefronts("09", "fragment_b") == (8, 4)
    assert r09.facts.ceiling < r06.facts.ceiling and r09.facts.occupancy.blocks == 2 and r09.plan.stages == 1


def test_warp_tiles_free_b_of_conflicts() -> None:
    r09, r10 = found()["09"], found()["10"]
    assert wavefronts("10", "fragment_b") == (4, 4) and r10.cost("fragment_b").of.bytes == 16
    assert wavefronts("10", "store_a") == (4, 1) and limiter("10") == "issue slots"
    assert r10.facts.intensity.warp > 2 * r09.facts.intensity.warp and r10.plan.stages == 1


def test_two_stages_change_waiting_and_not_the_ceiling() -> None:
    r10, r11 = found()["10"], found()["11"]
    assert r11.facts.ceiling == pytest.approx(r10.facts.ceiling) and r11.plan.stages == 2
    assert r11.barriers == r10.barriers / 2 and wavefronts("11", "store_a") == (2, 1)
    assert r11.facts.registers.minimum > r10.facts.registers.minimum and r10.facts.occupancy.blocks == 2


def test_cp_async_saves_registers_and_turns_a_word_by_word() -> None:
    r11, r12 = found()["11"], found()["12"]
    assert r12.plan.stages == 3 and r12.facts.registers.minimum < r11.facts.registers.minimum
    cost = r12.cost("copy_a")
    assert (cost.of.bytes, cost.wavefronts, ladder.rows(r12, 32)) == (4, 4, 4)


def test_salykovs_lanes_agree_in_pairs() -> None:
    small, large, r12 = found()["salykov_128x128x8"], found()["salykov_128x256x8"], found()["12"]
    assert (
        {small.cost(name).wavefronts for name in ("fragment_a", "fragment_b")}
        == {2}
        != {wavefronts("12", "fragment_b")[0]}
    )
    assert small.warps == 2 * r12.warps and small.loads() == 1 / 16 and small.cost("load_a").of.bytes == 16
    assert large.loads() < small.loads() and large.facts.occupancy.blocks == 1
    assert (large.cost("copy_a").of.bytes, large.cost("copy_a").wavefronts) == (4, 4)


def test_patches_are_turned_and_copies_dealt_out() -> None:
    last = found()["sgemm_128x256x16"]
    shared = last.plan.in_shared("a")
    assert (shared.copy.read_mode, shared.copy.write_mode, last.cost("load_a").of.bytes) == ("k", "x", 16)
    assert ladder.patch(shared)[0] > 1 and last.cost("store_a").of.bytes > 4
    assert ladder.rows(last, 8) == 2
    turned, words = last.cost("store_a").of, ladder.by_cp_async(last)["copy_a"].of
    assert 2 * turned.wavefronts <= words.wavefronts and turned.requests < words.requests
    assert "spread: [3, 14]" in last.text and last.order == "serpentine_m"
    assert last.facts.bound.limiter == "issue slots"


def test_the_last_rung_shares_its_tiles_and_nothing_else_changes() -> None:
    whole, last = found()["sgemm_128x256x16"], found()["sgemm_stream_128x256x16"]
    assert last.change.splitlines()[1:-1] == [
        "-schedule: {raster: along_m, group: 8}", "+schedule: {kind: stream_k, raster: along_m, group: 8}",
    ]  # fmt: skip
    assert whole.facts.problem is not None and last.facts.problem is not None
    before, after = whole.facts.problem.waves, last.facts.problem.waves
    assert before.shared.tiles == 0 < after.shared.tiles and after.time < before.time == 4
    assert (after.tiles - after.shared.tiles) % after.slots == 0  # whole ones in full waves


def test_the_limiters_go_from_memory_to_instructions() -> None:
    told = [each.facts.bound.limiter for each in found().values()]
    assert told[:2] == ["L1", "L1"] and set(told[2:6]) == {"shared memory"}
    assert set(told[9:]) == {"issue slots"}


# ---- with a measurement that is made up ----


def made_up(tmp_path: Path) -> tuple[Path, Path]:
    """(a result, originals): rung i takes 30 / i ms, one failed, and cuBLAS is slower than the last."""
    rows = [Row("cublas", "rival", ladder.SHAPE, ladder.MODES, (2.0625,) * 8, 1e-7, 4e-6)]
    for index, each in enumerate(found().values(), 1):
        samples = (30.0 / index,) * 8
        ratio = compare(samples, rows[0].samples_ms)
        kernel = Kernel(
            "ak_bn_16B", each.plan.tile.block, each.facts.threads, 128, 0, 0, Loop(2000, 60, 40),
            each.facts.intensity.block, each.facts.roof, each.facts.ceiling, each.facts.bound.limiter, 1.0, 1.0,
        )  # fmt: skip
        rows.append(
            Row(each.name, "spec", ladder.SHAPE, ladder.MODES, samples, 1e-7, 4e-6, None, kernel,
                {"cublas": ratio} if ratio else {})
        )  # fmt: skip
    failed = replace(rows[3], samples_ms=(), failure="wrong: 1e-3", ratios={})
    rows[3] = failed
    measured = tmp_path / "ladder.json"
    conditions = (Conditions(ladder.SHAPE, ladder.MODES, 9, Reading(1980.0, 1965.0, 1980.0)),)
    write(Result("layoutgen bench made-up", MACHINE, H200, 8, tuple(rows), conditions, True), measured)
    peers = tmp_path / "originals.json"
    kernels = {
        "ladder_01_naive": {"kernel": "Boehm's kernel 1", "tflops": 9.0},
        "ladder_02_coalesced": {"kernel": "Boehm's kernel 2", "tflops": 4.5},
    }
    peers.write_text(json.dumps({"method": "made up for a test", "kernels": kernels}))
    return measured, peers


def test_measured_figures_come_from_the_result(tmp_path: Path) -> None:
    text = ladder.page(*made_up(tmp_path))
    first, second = (2 * 4096**3 / (30.0 / index) / 1e9 for index in (1, 2))
    assert f"measured **{first:.3g}**, {first / 9.0:.3g} of Boehm's kernel 1 (9)." in text
    assert f"| {second:.3g} | Boehm's kernel 2: 4.5 | {second / 4.5:.3g} |" in text
    assert "As measured, rung 2 has 2 times the speed of rung 1. Boehm's kernel 2 has 0.5 times" in text
    assert "when measured it failed: wrong: 1e-3." in text and "| failed |" in text
    assert "the speed of rung 3" not in text and "made up for a test" in text
    assert "Beside cuBLAS in the same run: **1.1** (1.1 .. 1.1)." in text
    assert f"**Other instructions**: {100 / 2100:.0%} of what the loop issues" in text
    assert "(pictures/ladder/speeds.svg)" in text and ladder.NOT_YET not in text
    assert "SM 1980 MHz (1965 .. 1980)" in text


def test_without_a_measurement_the_page_says_so(tmp_path: Path) -> None:
    text = ladder.page(tmp_path / "none.json", tmp_path / "none.json")
    assert text.count(ladder.NOT_YET) == len(ladder.NAMES)
    assert "speeds.svg" not in text and "As measured" not in text and "Beside cuBLAS" not in text
    assert not re.search(r" $|\n\n\n|None", text, re.M)


def test_the_fastest_order_is_slower_where_a_is_contiguous_in_m() -> None:
    rows = json.loads((RESULTS / "order-layouts-h200.json").read_text())["rows"]
    own = found()["sgemm_128x256x16"].order
    speeds = {
        (row["order"] == own, row["modes"], row["size"]): row["tflops"]
        for row in rows
        if row["spec"] == "sgemm_128x256x16"
    }
    for modes in ("mn", "mk"):
        for size in (4092, 8192):
            assert speeds[True, modes, size] > 1.01 * speeds[False, modes, size]
    assert speeds[False, "kn", 4092] > speeds[True, "kn", 4092]


def test_whole_tiles_win_where_nothing_is_shared() -> None:
    result = read(RESULTS / "sgemm-h200.json")
    for modes in ("kn", "kk", "mk"):
        speeds = {row.name: row.tflops for row in result.at((2048, 2048, 2048), modes)}
        whole, shared = speeds["sgemm_128x256x16"], speeds["sgemm_stream_128x256x16"]
        assert whole is not None and shared is not None and whole > shared
