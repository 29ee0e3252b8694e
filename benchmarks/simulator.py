"""Measure what the simulator needs for problems of several sizes, beside run.estimate_seconds, and fit its constants.

    python benchmarks/simulator.py -o benchmarks/results/simulator.json

Each figure is the least of three runs in seconds of this process on one core, kernels built and decoded before. The
model is launch + batches * steps * (step + lanes of a batch * lane), where `steps` is run.estimate_steps; the fit takes
the constants that make the squares of the relative errors least.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch

import layoutgen
from layoutgen import run, sim
from layoutgen.emitted import emitted_specs

SHAPES = (
    (1, 1, 1), (128, 128, 0), (2048, 2048, 0), (128, 128, 64), (128, 128, 1024), (256, 256, 128), (256, 256, 1024),
    (512, 512, 128), (512, 512, 512), (1024, 1024, 64), (1024, 1024, 512), (4096, 128, 64), (100, 3000, 100),
    (2048, 2048, 64),
)  # fmt: skip


def cpu_model() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def seconds(op: layoutgen.ops.Operator, a: torch.Tensor, b: torch.Tensor) -> float:
    """The least CPU seconds of three calls."""
    op.eager(a[:1], b)  # built and decoded, and neither counts
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        op.eager(a, b)
        best = min(best, time.process_time() - start)
    return best


def measure(names: list[str]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name in names:
        op = layoutgen.load(name)
        for m, n, k in SHAPES:
            a, b = torch.rand(m, k), torch.rand(k, n)
            plan = op.variant_for(a, b)
            predicted, measured = run.estimate_seconds(plan, m, n, k), seconds(op, a, b)
            blocks, threads = run.grid(plan, m, n), plan.threads.threads
            together = max(1, min(blocks, sim.Options().batch_lanes // threads))
            rows.append({
                "spec": name, "variant": plan.variant, "shape": [m, n, k], "batches": blocks / together,
                "lanes": together * threads, "steps": run.estimate_steps(plan, k), "measured": measured,
                "predicted": predicted,
            })  # fmt: skip
            print(
                f"{name:20} {plan.variant:10} {m:5} x {n:4} x {k:4}  measured {measured:7.3f} s  "
                f"predicted {predicted:7.3f} s  ratio {predicted / measured:.2f}",
                flush=True,
            )
    return rows


def fit(rows: list[dict[str, object]]) -> dict[str, float]:
    """The three constants that suit the measurements best."""
    values = {key: np.array([row[key] for row in rows], float) for key in ("batches", "lanes", "steps", "measured")}
    executed = values["batches"] * values["steps"]
    terms = np.stack([np.ones(len(rows)), executed, executed * values["lanes"]], 1) / values["measured"][:, None]
    constants = np.linalg.lstsq(terms, np.ones(len(rows)), rcond=None)[0]
    return dict(zip(("launch", "step", "lane"), constants.tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", default=list(emitted_specs()))
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure(options.specs)
    fitted = fit(rows)
    used = {"launch": run.LAUNCH_SECONDS, "step": run.STEP_SECONDS, "lane": run.LANE_SECONDS}
    ratios = sorted(float(row["predicted"]) / float(row["measured"]) for row in rows)  # type: ignore[arg-type]
    print("fitted:", fitted, "\nused:  ", used, f"\npredicted / measured: {ratios[0]:.2f} .. {ratios[-1]:.2f}")
    if options.output:
        result = {
            "script": "benchmarks/simulator.py", "cpu": cpu_model(), "python": platform.python_version(),
            "numpy": np.__version__, "fitted": fitted, "used": used, "rows": rows,
        }  # fmt: skip
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
