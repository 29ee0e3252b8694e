"""Results to draw: one with the medians and spreads that an H200 gave in an earlier format, and a made-up ladder."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from layoutgen import spec
from layoutgen.bench import Conditions, Kernel, Machine, Reading, Result, Roofs, Row, compare
from layoutgen.facts import Loop, facts
from layoutgen.hw.devices import DEVICES
from layoutgen.paths import find_spec
from layoutgen.plan import plan
from layoutgen.problem import dense
from layoutgen.run import choose

ROOT = Path(__file__).resolve().parents[2]
MACHINE = Machine("NVIDIA H200", "580.159.04", "2.11.0+cu130", "13.0", "3.12.3", "0.1.0", "3.6.0")
H200 = Roofs("h200", 66.9, 4800.0)
CLOCKS = {"sm_mhz": Reading(1980.0, 1965.0, 1980.0), "watts": Reading(655.0, 600.0, 690.0)}
# Spread of the samples around their median, in interquartile ranges.
STEPS = (0.0, -0.5, 0.5, -0.6, 0.6, -0.2, 0.2, -0.4, 0.4, 0.9, -0.9)


@cache
def measured() -> Result:
    """benchmarks/results/sgemm-h200.json: three specs and cuBLAS at five sizes, in four pairs of modes."""
    old = json.loads((ROOT / "benchmarks" / "results" / "sgemm-h200.json").read_text())
    rows: list[Row] = []
    for each in old["rows"]:
        rows.append(_row(each, {row.name: row for row in rows if row.shape == tuple(each["shape"])}))
    cases = dict.fromkeys((row.shape, row.modes) for row in rows)
    conditions = tuple(Conditions(shape, modes, 9, **CLOCKS) for shape, modes in cases)
    return Result("layoutgen bench ...", MACHINE, H200, len(STEPS), tuple(rows), conditions, True)


def _row(old: dict[str, Any], others: dict[str, Row]) -> Row:
    m, n, k = old["shape"]
    modes = old["contiguous"].replace("a:", "").replace(" b:", "")
    samples = tuple(old["ms"] + step * old["iqr_ms"] for step in STEPS)
    if old["name"] == "torch.mm":
        return Row("cublas", "rival", (m, n, k), modes, samples, old["max_error"], 4e-6)
    ratio = compare(samples, others["cublas"].samples_ms)
    ratios = {"cublas": ratio} if ratio else {}
    made = _kernel(old["name"], (m, n, k), modes, old["registers"])
    return Row(old["name"], "spec", (m, n, k), modes, samples, old["max_error"], 4e-6, None, made, ratios)


@cache
def _kernel(name: str, shape: tuple[int, int, int], modes: str, registers: int) -> Kernel:
    problem = dense(*shape, modes)
    chosen = choose(plan(spec.load(find_spec(name))), problem)
    found = facts(chosen, DEVICES["h200"], problem, built=registers)
    assert found.problem is not None
    return Kernel(
        chosen.variant, chosen.tile.block, found.threads, registers, 0, found.shared.bytes, Loop(2048, 90, 120),
        found.intensity.block, found.roof, found.ceiling, found.bound.limiter, found.problem.waves.waves,
        found.problem.waves.efficiency,
    )  # fmt: skip


LADDER = (
    # name, TFLOP/s, ceiling, FLOP per byte
    ("01_naive", 0.52, 0.6, 8.0), ("02_coalesced", 6.3, 8.4, 8.0), ("03_shared", 9.2, 12.9, 8.0),
    ("04_thread_1d", 17.1, 25.5, 16.0), ("05_thread_2d", 26.4, 37.0, 32.0), ("06_vectorised", 31.9, 44.1, 32.0),
    ("07_banks_linear", 28.4, 47.3, 32.0), ("08_banks_padded", 23.6, 46.8, 32.0), ("09_searched", 31.4, 45.9, 32.0),
    ("10_warp_tiling", 36.9, 54.0, 32.0), ("11_double_buffering", 44.8, 57.1, 32.0), ("12_cp_async", 49.6, 60.8, 42.7),
)  # fmt: skip


def ladder(*, wrong: str | None = None) -> Result:
    """Twelve specs and both rivals at one size; one of them wrong."""
    shape = (4096, 4096, 4096)

    def row(name: str, speed: float, kernel: Kernel | None = None) -> Row:
        ms = 2 * 4096**3 / speed / 1e9
        samples = tuple(ms * (1 + 0.02 * step) for step in STEPS)
        if name == wrong:
            return Row(name, "spec", shape, "kn", (), 0.1, 4e-6, "wrong: off by 0.1", kernel)
        return Row(name, "spec" if kernel else "rival", shape, "kn", samples, 2e-7, 4e-6, None, kernel)

    rows = [row("cublas", 50.9), row("triton", 41.2)]
    for name, speed, ceiling, intensity in LADDER:
        kernel = Kernel(
            "ak_bn_16B", (128, 128, 8), 256, 128, 0, 32768, Loop(512, 60, 40), intensity, min(66.9, 4.8 * intensity),
            ceiling, "issue slots", 3.9, 0.97,
        )  # fmt: skip
        rows.append(row(name, speed, kernel))
    return Result(
        "layoutgen bench ...", MACHINE, H200, len(STEPS), tuple(rows), (Conditions(shape, "kn", 9, **CLOCKS),), True
    )
