"""Compare what the facts predict of every memory access with the hardware counters, access by access, on the GPU here.

    python -m benchmarks.counters specs/*.yaml -o benchmarks/results/counters-h200.json
    python -m benchmarks.counters --table benchmarks/results/counters-h200.json

Each spec's primary variant runs under ncu on each problem, twice. ncu counts by instruction, and source lines say which
access an instruction is: its threads (so its bytes), its shared-memory wavefronts and its global sectors. All must be
as predicted, but for the wavefronts of cp.async, which writes shared memory as its data arrives, a little differently
from run to run; those must be within a tenth.
With --launch the script is the program under ncu.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.ncu import Row, gpu, instructions, ncu
from layoutgen import build, run, spec
from layoutgen.bench import allowed_error
from layoutgen.facts import launch_traffic, occupancy, registers
from layoutgen.operands import TORCH
from layoutgen.plan import Plan, plan
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.problem import Problem, View
from layoutgen.rounding import Types

# M, N, K, beta: whole tiles; and edges in all three modes, with C read.
PROBLEMS = ((256, 512, 64, 0.0), (300, 260, 76, 0.5))
RUNS = 2
TOLERANCE = 0.1  # of the wavefronts of cp.async
LIMITS = {"registers": "registers", "warps": "threads", "blocks": "block_slots"}  # ncu's word -> the facts' field


@dataclass(frozen=True, slots=True)
class Case:
    """One plan and one problem, whose addresses are 256-byte aligned, as torch's are."""

    plan: Plan
    problem: Problem


def cases(specs: list[str]) -> list[Case]:
    """Every spec's primary variant with every problem, on dense operands at made-up addresses."""
    found = []
    for path in specs:
        primary = plan(spec.load(path))[0]
        unit = 16 // min(ITEMSIZE[dtype] for dtype in (primary.a.dtype, primary.b.dtype, primary.dtype))
        for m, n, k, beta in ((m, -(-n // unit) * unit, -(-k // unit) * unit, beta) for m, n, k, beta in PROBLEMS):
            a = View(1 << 40, (m, k), (k, 1) if primary.a.contiguous == "k" else (1, m))
            b = View(2 << 40, (n, k), (k, 1) if primary.b.contiguous == "k" else (1, n))
            c, d = (View(i << 40, (m, n), (n, 1)) for i in (3, 4))
            found.append(Case(primary, Problem(m, n, k, a, b, c, d, 1.0, beta)))
    return found


def launch(specs: list[str]) -> None:
    """Launch every case RUNS times, and compare its result with float64."""
    import torch

    for case in cases(specs):
        m, n, k, beta = case.problem.m, case.problem.n, case.problem.k, case.problem.beta
        types = (case.plan.a.dtype, case.plan.b.dtype, case.plan.dtype)
        a, b, c = (
            (torch.randn(shape, device="cuda") * (1 if TORCH[dtype].is_floating_point else 9)).to(TORCH[dtype])
            for shape, dtype in zip(((m, k), (k, n), (m, n)), types, strict=True)
        )
        if case.plan.a.contiguous == "m":
            a = a.t().contiguous().t()
        if case.plan.b.contiguous == "k":
            b = b.t().contiguous().t()
        d = torch.zeros((m, n), device="cuda", dtype=c.dtype)
        views = [View(t.data_ptr(), v.extents, v.strides) for t, v in zip((a, b, c, d), _views(case), strict=True)]
        kernel = run.CompiledForGpu(case.plan, 0)
        for _ in range(RUNS):
            kernel(Problem(m, n, k, *views, 1.0, beta), torch.cuda.current_stream().cuda_stream)
            torch.cuda.synchronize()
        scaled = int(beta) if case.plan.scalar == "i32" else beta
        exact, scale = (
            a.double() @ b.double() + scaled * c.double(),
            a.double().abs() @ b.double().abs() + c.double().abs(),
        )
        error = ((d.double() - exact).abs() / scale).max().item()
        if not error <= 2 * allowed_error(k, Types.of(case.plan)):
            raise SystemExit(f"{case.plan.name} is wrong: {error}")


def _views(case: Case) -> tuple[View, View, View, View]:
    return case.problem.a, case.problem.b, case.problem.c, case.problem.d


def profile(specs: list[str]) -> tuple[list[list[Row]], list[Row]]:
    """(for each launch the rows of its instructions, for each launch its metrics), as ncu prints them."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/profile"
        names = "|".join(sorted({case.plan.name for case in cases(specs)}))
        ncu("--clock-control", "none", "--section", "SourceCounters", "--section", "Occupancy", "--section",
            "LaunchStats", "--kernel-name", f"regex:^({names})$", "-o", file,
            sys.executable, "-m", "benchmarks.counters", "--launch", *specs)  # fmt: skip
        common = ("--import", f"{file}.ncu-rep", "--csv", "--print-units", "base")
        source, raw = ncu(*common, "--page", "source"), ncu(*common, "--page", "raw")
    metrics = [row for row in csv.DictReader(io.StringIO(raw[raw.index('"ID"') :])) if row["ID"]]
    return instructions(source), metrics


def measured(case: Case, rows: list[Row], arch: str) -> dict[str, dict[str, int]]:
    """Access -> bytes, wavefronts and sectors of one launch."""
    cubin = run.artifact(case.plan, arch).cubin
    first = int(rows[0]["Address"], 16)
    by_offset = {int(row["Address"], 16) - first: row for row in rows}
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"bytes": 0, "wavefronts": 0, "sectors": 0})
    for instruction in build.sass_instructions(cubin, case.plan.name):
        if instruction.opcode not in ("lds", "ldsm", "sts", "ldg", "stg", "ldgsts"):
            continue
        name = run.access_of(case.plan, instruction.lines)
        row = by_offset[instruction.offset]
        counts = found[str(name)]
        counts["bytes"] += int(row["Predicated-On Thread Instructions Executed"]) * instruction.bytes
        counts["wavefronts"] += int(row["L1 Wavefronts Shared"])
        counts["sectors"] += int(row["L2 Theoretical Sectors Global"])
    return {name: counts for name, counts in found.items() if any(counts.values())}


def predicted(case: Case) -> dict[str, dict[str, int]]:
    """The same, from the plan's layouts."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"bytes": 0, "wavefronts": 0, "sectors": 0})
    for name, traffic in launch_traffic(case.plan, case.problem).items():
        counts = found[name]
        counts["bytes"] += traffic.bytes
        counts["wavefronts"] += traffic.wavefronts
        counts["sectors"] += traffic.sectors
    return {name: counts for name, counts in found.items() if any(counts.values())}


def compare(specs: list[str]) -> list[dict[str, Any]]:
    """One row for each spec and problem."""
    arch = build.Device().arch
    on = run.default_device()
    launches, metrics = profile(specs)
    rows = []
    for index, case in enumerate(cases(specs)):
        own = slice(index * RUNS, (index + 1) * RUNS)
        expected = predicted(case)
        counted = [measured(case, launch, arch) for launch in launches[own]]
        metric = metrics[own][0]
        built = run.artifact(case.plan, arch).resources
        fits = occupancy(case.plan, built.registers, on)
        accesses = {}
        for name in sorted(expected | counted[0]):
            want = expected.get(name, {})
            got = [each.get(name, {}) for each in counted]
            exact = ("bytes", "sectors") if name.startswith("copy") else ("bytes", "sectors", "wavefronts")
            right = all(each.get(what) == want.get(what) for each in got for what in exact)
            near = all(
                abs(each.get("wavefronts", 0) / max(1, want.get("wavefronts", 0)) - 1) < TOLERANCE for each in got
            )
            ok = right and (near or not name.startswith("copy"))
            accesses[name] = {"predicted": want, "measured": got, "as_predicted": ok}
        bounds = registers(case.plan, on)
        rows.append(
            {
                "spec": case.plan.name, "variant": case.plan.variant,
                "problem": [case.problem.m, case.problem.n, case.problem.k], "beta": case.problem.beta,
                "accesses": accesses,
                "registers": {"minimum": bounds.minimum, "ptxas": built.registers, "cap": bounds.cap,
                              "ncu": _number(metric["launch__registers_per_thread"])},
                "blocks_by": {word: {"predicted": getattr(fits, field),
                                     "ncu": _number(metric[f"launch__occupancy_limit_{word}"])}
                              for word, field in LIMITS.items()},
                "blocks": {"predicted": fits.blocks,
                           "ncu": min(_number(value) for key, value in metric.items()
                                      if key.startswith("launch__occupancy_limit_") and value)},
            }
        )  # fmt: skip
    return rows


def _number(text: str) -> int:
    return int(float(text.replace(",", "")))


def agrees(row: dict[str, Any]) -> bool:
    """Whether everything that should be as predicted is."""
    bounds = row["registers"]
    return (
        all(each["as_predicted"] for each in row["accesses"].values())
        and bounds["minimum"] <= bounds["ptxas"] == bounds["ncu"] <= bounds["cap"]
        and all(each["predicted"] == each["ncu"] for each in [*row["blocks_by"].values(), row["blocks"]])
    )


def table(report: dict[str, Any]) -> str:
    """The comparison as Markdown: for each access, predicted and measured."""
    lines = [
        "| spec, problem | access | bytes | wavefronts | sectors |",
        "|---|---|---|---|---|",
    ]
    for row in report["rows"]:
        for name, each in row["accesses"].items():
            cells = []
            for what in ("bytes", "wavefronts", "sectors"):
                want = each["predicted"].get(what, 0)
                got = [counted.get(what, 0) for counted in each["measured"]]
                if set(got) == {want}:
                    cells.append(f"{want:,}" if want else "")
                else:
                    least, most = min(got), max(got)
                    span = f"{least:,}" if least == most else f"{least:,} to {most:,}"
                    cells.append(
                        f"{span}, estimated {want:,}" if name.startswith("copy") else f"**{span}, not {want:,}**"
                    )
            problem = " x ".join(map(str, row["problem"]))
            lines.append(f"| {row['spec']}, {problem} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*")
    parser.add_argument("--launch", action="store_true")
    parser.add_argument("--table", type=Path, metavar="JSON")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.table.read_text())), end="")
        return
    if options.launch:
        launch(options.specs)
        return
    launch(options.specs)  # builds outside ncu
    report = {"script": "benchmarks/counters.py", "gpu": gpu(), "rows": compare(options.specs)}
    print(table(report))
    for row in report["rows"]:
        print(
            row["spec"],
            row["problem"],
            "agrees" if agrees(row) else "DIFFERS",
            row["registers"],
            row["blocks_by"],
            row["blocks"],
        )
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    sys.exit(0 if all(map(agrees, report["rows"])) else 1)


if __name__ == "__main__":
    main()
