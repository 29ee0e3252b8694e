"""Time a spec with the raster group that it has and with a group of one tile, interleaved, on the GPU here.

    python -m benchmarks.raster specs/*.yaml -o benchmarks/results/raster-h200.json

The L2 is flushed before each call. Figures are medians; the spread is the interquartile range.
"""

from __future__ import annotations

import argparse
import json
import statistics
from functools import partial
from pathlib import Path

import torch

from benchmarks.sgemm import clocks, largest_error, operands, timed
from layoutgen import run, spec
from layoutgen.facts import occupancy, raster_traffic
from layoutgen.plan import plan
from layoutgen.problem import Problem, View

GROUPS = (1, 4, 8, 16)


def measure(path: str, size: int, repeats: int) -> dict[str, object]:
    """One spec at one cube: TFLOP/s and predicted L2 hits by group."""
    base = spec.load(path)
    a, b = operands(size, size, size, "kn")
    out = torch.empty(size, size, device="cuda")
    views = (View(a.data_ptr(), (size, size), (size, 1)), View(b.data_ptr(), (size, size), (1, size)))
    d = View(out.data_ptr(), (size, size), (size, 1))
    problem = Problem(size, size, size, *views, d, d, 1.0, 0.0)
    calls, hits = {}, {}
    for group in GROUPS:
        each = plan(base.model_copy(update={"schedule": base.schedule.model_copy(update={"group": group})}))[0]
        kernel = run.CompiledForGpu(each, 0)
        stream = torch.cuda.current_stream().cuda_stream
        kernel(problem, stream)
        if not largest_error(out, a, b) < 1e-5:
            raise SystemExit(f"{base.name} is wrong with group {group}")
        calls[str(group)] = partial(kernel, problem, stream)
        on = run.default_device()
        registers = run.artifact(each, run.target_arch(each)).resources.registers
        slots = occupancy(each, registers, on).blocks * on.sms
        hits[str(group)] = raster_traffic(each, size, size, size, slots).l2_hits
    rows = {}
    for group, samples in timed(calls, repeats).items():
        low, middle, high = statistics.quantiles(samples, n=4)
        rows[group] = {
            "ms": middle, "iqr_ms": high - low, "tflops": 2 * size**3 / middle / 1e9, "predicted_l2_hits": hits[group],
        }  # fmt: skip
        print(
            f"{base.name} {size} group {group:>2} {rows[group]['tflops']:6.1f} TFLOP/s, L2 {hits[group]:.0%}",
            flush=True,
        )
    return {"spec": base.name, "size": size, "raster": base.schedule.raster, "groups": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--size", type=int, action="append")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    before = clocks()
    rows = [measure(path, size, options.repeats) for path in options.specs for size in options.size or (4096, 8192)]
    report = {"script": "benchmarks/raster.py", "gpu_before": before, "gpu_after": clocks(), "rows": rows}
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
