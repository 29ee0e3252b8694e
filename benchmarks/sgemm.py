"""Measure specs against torch.mm in fp32 ("highest") on the GPU here: correctness first, then interleaved timed calls.

    python benchmarks/sgemm.py specs/*.yaml --shape 4096 --shape 4092,4092,4092 -o benchmarks/results/sgemm-h200.json

Each timed call starts with a cold L2 (a buffer larger than it is written first). Both sides alternate within one loop,
so that clocks and temperature are the same for both. Figures are medians; the spread is the interquartile range.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

import layoutgen
from layoutgen import run


def matrix(rows: int, k: int, contiguous_k: bool) -> torch.Tensor:
    """(rows, k), uniform on (-1, 1), contiguous in k or in its rows."""
    values = torch.rand((rows, k) if contiguous_k else (k, rows), device="cuda") * 2 - 1
    return values if contiguous_k else values.t()


def operands(m: int, n: int, k: int, modes: str) -> tuple[torch.Tensor, torch.Tensor]:
    """a (M, K) and b (K, N), contiguous in the named modes: "kn" is a row-major a and a row-major b."""
    return matrix(m, k, modes[0] == "k"), matrix(n, k, modes[1] == "k").t()


def largest_error(d: torch.Tensor, a: torch.Tensor, b: torch.Tensor, rows: int = 256) -> float:
    """max |d - a b| / (|a| |b|) against float64, over the first and the last rows."""
    worst = 0.0
    for part in (slice(0, rows), slice(max(0, a.shape[0] - rows), None)):
        exact = a[part].double() @ b.double()
        scale = a[part].abs().double() @ b.abs().double()
        worst = max(worst, ((d[part].double() - exact).abs() / scale).max().item())
    return worst


def timed(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """name -> milliseconds of each call, the calls alternating."""
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(3):
            call()
    for _ in range(repeats):
        for name, call in calls.items():
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end))
    return times


def clocks() -> str:
    query = "name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu"
    return subprocess.run(
        ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True
    ).stdout.strip()


Shape = tuple[int, int, int]


def measure(specs: list[Path], shapes: list[Shape], modes: list[str], repeats: int) -> list[dict[str, object]]:
    """One row for torch.mm and for each spec, at each shape and pair of contiguous modes."""
    rows: list[dict[str, object]] = []
    loaded = {op.name: op for op in map(layoutgen.load, specs)}
    for m, n, k in shapes:
        for pair in modes:
            a, b = operands(m, n, k, pair)
            calls: dict[str, Callable[[], object]] = {"torch.mm": partial(torch.mm, a, b)}
            errors = {"torch.mm": largest_error(torch.mm(a, b), a, b)}
            for name, op in loaded.items():
                out = torch.full((m, n), float("nan"), device="cuda")
                op(a, b, out=out)
                errors[name] = largest_error(out, a, b)
                if not errors[name] < 1e-5:
                    raise SystemExit(f"{name} is wrong at {m}x{n}x{k} ({pair}): error {errors[name]:.1e}")
                calls[name] = partial(op, a, b)
            times = timed(calls, repeats)
            base = statistics.median(times["torch.mm"])
            for name, samples in times.items():
                low, middle, high = statistics.quantiles(samples, n=4)
                row: dict[str, object] = {
                    "name": name, "shape": [m, n, k], "contiguous": f"a:{pair[0]} b:{pair[1]}",
                    "ms": middle, "iqr_ms": high - low, "tflops": 2 * m * n * k / middle / 1e9,
                    "ratio": base / middle, "max_error": errors[name],
                }  # fmt: skip
                if name in loaded:
                    plan = loaded[name].variant_for(a, b)
                    resources = run.artifact(plan, run.target_arch(plan)).resources
                    spills = resources.spill_stores + resources.spill_loads
                    row |= {"variant": plan.variant, "registers": resources.registers, "spill_bytes": spills}
                rows.append(row)
                print(
                    f"{m}x{n}x{k} {row['contiguous']} {name:20} {row['tflops']:6.1f} TFLOP/s"
                    f" {row['ratio']:.3f} of torch.mm"
                    f" +-{100 * (high - low) / middle:.1f}% error {errors[name]:.1e}",
                    *(f"{key} {row[key]}" for key in ("variant", "registers", "spill_bytes") if key in row),
                    flush=True,
                )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="+", type=Path)
    parser.add_argument("--shape", action="append", help="M,N,K or one number for a cube", default=None)
    parser.add_argument("--modes", action="append", help="contiguous modes of a and b: kn, kk, mn or mk", default=None)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(0)
    shapes = []
    for text in options.shape or ["4096"]:
        numbers = [int(part) for part in text.split(",")]
        shapes.append(tuple(numbers * 3 if len(numbers) == 1 else numbers))
    before = clocks()
    rows = measure(options.specs, shapes, options.modes or ["kn"], options.repeats)
    result = {
        "script": "benchmarks/sgemm.py", "gpu_before": before, "gpu_after": clocks(), "torch": torch.__version__,
        "cuda": torch.version.cuda, "python": platform.python_version(), "repeats": options.repeats,
        "l2": "flushed before each call", "inputs": "uniform(-1, 1)", "rows": rows,
    }  # fmt: skip
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
