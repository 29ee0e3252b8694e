"""Time a spec with the raster group that it has and with a group of one tile, interleaved, on the GPU here.

    python -m benchmarks.raster specs/*.yaml -o benchmarks/results/raster-h200.json

The L2 is flushed before each call. Figures are medians; the spread is the interquartile range.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

import torch

from layoutgen import run, spec
from layoutgen.bench import allowed_error, median, quantile, rounds, warm_up
from layoutgen.bench.gpu import Gpu
from layoutgen.facts import occupancy, raster_traffic
from layoutgen.plan import plan
from layoutgen.problem import Problem, View
from layoutgen.rounding import Types

GROUPS = (1, 4, 8, 16)


def measure(gpu: Gpu, path: str, size: int, repeats: int) -> dict[str, object]:
    """One spec at one cube: TFLOP/s and predicted L2 hits by group."""
    base = spec.load(path)
    types = Types.of(plan(base)[0])
    a, b, out = operands = gpu.operands((size,) * 3, "kn", types)
    views = (View(a.data_ptr(), (size, size), (size, 1)), View(b.data_ptr(), (size, size), (1, size)))
    d = View(out.data_ptr(), (size, size), (size, 1))
    problem = Problem(size, size, size, *views, d, d, 1.0, 0.0)
    calls, hits = {}, {}
    for group in GROUPS:
        each = plan(base.model_copy(update={"schedule": base.schedule.model_copy(update={"group": group})}))[0]
        kernel = run.CompiledForGpu(each, 0)
        call = partial(kernel, problem, torch.cuda.current_stream().cuda_stream)
        if not gpu.error(base.name, lambda a, b, out, call=call: call(), operands) <= allowed_error(size, types):
            raise SystemExit(f"{base.name} is wrong with group {group}")
        calls[str(group)] = call
        registers = run.artifact(each, gpu.arch).resources.registers
        slots = occupancy(each, registers, gpu.device).blocks * gpu.device.sms
        hits[str(group)] = raster_traffic(each, size, size, size, slots).l2_hits
    warm_up(calls, gpu)
    taken = list(rounds(calls, gpu, repeats))
    rows = {}
    for group in calls:
        samples = [each[group] for each in taken]
        middle, spread = median(samples), quantile(samples, 0.75) - quantile(samples, 0.25)
        rows[group] = {
            "ms": middle, "iqr_ms": spread, "tflops": 2 * size**3 / middle / 1e9, "predicted_l2_hits": hits[group],
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
    sizes = options.size or (4096, 8192)
    with Gpu() as gpu:
        began = gpu.seconds()
        rows = [measure(gpu, path, size, options.repeats) for path in options.specs for size in sizes]
        conditions = str(gpu.conditions((sizes[-1],) * 3, "kn", began))
        report = {"script": "benchmarks/raster.py", "gpu": str(gpu.machine()), "conditions": conditions, "rows": rows}
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
