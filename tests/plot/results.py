"""Results to draw: one that an H200 gave, and a made-up ladder."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from layoutgen.bench import Conditions, Kernel, Machine, Reading, Result, Roofs, Row, read
from layoutgen.facts import Loop

ROOT = Path(__file__).resolve().parents[2]
MACHINE = Machine("NVIDIA H200", "580.159.04", "2.11.0+cu130", "13.0", "3.12.3", "0.1.0", "3.6.0")
H200 = Roofs("h200", 66.9, 4800.0)
CLOCKS = {"sm_mhz": Reading(1980.0, 1965.0, 1980.0), "watts": Reading(655.0, 600.0, 690.0)}
# Spread of the samples around their median, in interquartile ranges.
STEPS = (0.0, -0.5, 0.5, -0.6, 0.6, -0.2, 0.2, -0.4, 0.4, 0.9, -0.9)


@cache
def measured() -> Result:
    """benchmarks/results/sgemm-h200.json: three specs and cuBLAS at five sizes, in four pairs of modes."""
    return read(ROOT / "benchmarks" / "results" / "sgemm-h200.json")


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
