"""Run every spec on ragged problems under compute-sanitizer, on the GPU here.

    python benchmarks/sanitizer.py specs/*.yaml -o benchmarks/results/sanitizer-h200.json

memcheck looks for stray and misaligned accesses, racecheck for hazards in shared memory, synccheck for barriers in
divergent code. Each tool then runs on a control, a kernel with a bound on rows or a barrier left out of its program, to
show that it does look at these kernels. With --calls or --control the script is the program under test.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

TOOLS = ("memcheck", "racecheck", "synccheck")
CONTROLLED = ("memcheck", "racecheck")
SHAPE = (333, 258, 131)  # more than one tile of every spec in m and n, ragged in all three


def calls(specs: list[str]) -> None:
    """One call of each variant that a contiguous pair of operands reaches, compared with float64."""
    import torch

    import layoutgen

    def matrix(rows: int, columns: int, turned: bool) -> torch.Tensor:
        return torch.randn(columns, rows, device="cuda").t() if turned else torch.randn(rows, columns, device="cuda")

    for path in specs:
        op = layoutgen.load(path)
        seen = set()
        for m, n, k in (SHAPE, tuple(-(-extent // 4) * 4 for extent in SHAPE)):  # odd pitches, then 16-byte rows
            for turned_a, turned_b in ((False, False), (False, True), (True, False), (True, True)):
                a, b, c = matrix(m, k, turned_a), matrix(k, n, turned_b), matrix(m, n, False)
                d = op(a, b, c, 1.5, -0.5)
                seen.add(op.variant_for(a, b, c, -0.5).variant)
                exact = 1.5 * (a.double() @ b.double()) - 0.5 * c.double()
                error = (d.double() - exact).abs().max().item()
                if not error < 1e-3:
                    raise SystemExit(f"{op.name} is wrong: {error}")
        print("called", op.name, " ".join(sorted(seen)))


def control(spec_path: str, tool: str) -> None:
    """Launch a kernel that the tool must object to: without its barriers, or without the bound on the rows of D."""
    import torch

    from layoutgen import run, spec
    from layoutgen.plan import plan
    from layoutgen.plan.model import Barrier
    from layoutgen.problem import Problem, View

    base = plan(spec.load(spec_path))[0]
    if tool == "racecheck":
        kept = {
            part: tuple(step for step in getattr(base.program, part) if not isinstance(step, Barrier))
            for part in ("prologue", "steady")
        }
        broken = replace(base, program=replace(base.program, **kept))
    else:
        broken = replace(base, epilogue=replace(base.epilogue, guards=frozenset({"n"})))
    m, n, k = (-(-extent // 4) * 4 for extent in SHAPE)
    a, b, d = (torch.randn(rows, columns, device="cuda") for rows, columns in ((m, k), (k, n), (m, n)))
    problem = Problem(
        m, n, k,
        View(a.data_ptr(), (m, k), (k, 1)), View(b.data_ptr(), (n, k), (1, n)),
        View(d.data_ptr(), (m, n), (n, 1)), View(d.data_ptr(), (m, n), (n, 1)), 1.0, 0.0,
    )  # fmt: skip
    run.CompiledForGpu(broken, 0)(problem, torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()


def sanitize(tool: str, specs: list[str], *mode: str) -> dict[str, object]:
    """Run this script under one tool; the kernels' names keep torch's own kernels out of the report."""
    kernels = [part for path in specs for part in ("--kernel-name", f"kernel_substring={Path(path).stem}")]
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", *kernels]
    done = subprocess.run([*command, sys.executable, __file__, *mode, *specs], capture_output=True, text=True)
    text = done.stdout + done.stderr
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", text)
    result = {"tool": tool, "program": mode[0], "exit": done.returncode, "summary": summary}
    print(*result.values(), flush=True)
    return {**result, "called": re.findall(r"called (.*)", text)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--control", choices=CONTROLLED)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.calls or options.control:
        calls(options.specs) if options.calls else control(options.specs[0], options.control)
        return
    subprocess.run([sys.executable, __file__, "--calls", *options.specs], check=True)  # builds outside the tools
    results = [sanitize(tool, options.specs, "--calls") for tool in TOOLS]
    results += [sanitize(tool, options.specs[:1], f"--control={tool}") for tool in CONTROLLED]
    report = {"script": "benchmarks/sanitizer.py", "shape": SHAPE, "gpu": _gpu(), "results": results}
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    clean = all((result["exit"] == 0) == (result["program"] == "--calls") for result in results)
    sys.exit(0 if clean else 1)


def _gpu() -> str:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
