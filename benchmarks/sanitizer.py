"""Run every spec on ragged problems under compute-sanitizer, on the GPU here.

    python benchmarks/sanitizer.py specs/*.yaml -o benchmarks/results/sanitizer-h200.json

memcheck looks for stray and misaligned accesses, racecheck for hazards in shared memory, initcheck for reads of global
memory that nothing wrote, synccheck for barriers in divergent code. With --calls the script is the program under test.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SHAPE = (333, 258, 131)  # more than one tile of every spec in m and n, ragged in all three


def calls(specs: list[str]) -> None:
    """One call of each variant that a contiguous pair of operands reaches, compared with float64."""
    import torch

    import layoutgen

    m, n, k = SHAPE
    for path in specs:
        op = layoutgen.load(path)
        seen = set()
        for pad in (0, 4 - k % 4):  # an odd pitch, then rows on 16-byte boundaries
            for turned_a in (False, True):
                for turned_b in (False, True):
                    rows, depth, columns = (m, k, n) if pad == 0 else (m + 3, k + pad, n + 2)
                    a = (
                        torch.randn(depth, rows, device="cuda").t()
                        if turned_a
                        else torch.randn(rows, depth, device="cuda")
                    )
                    b = (
                        torch.randn(columns, depth, device="cuda").t()
                        if turned_b
                        else torch.randn(depth, columns, device="cuda")
                    )
                    c = torch.randn(rows, columns, device="cuda")
                    d = op(a, b, c, 1.5, -0.5)
                    seen.add(op.variant_for(a, b, c, -0.5).variant)
                    exact = 1.5 * (a.double() @ b.double()) - 0.5 * c.double()
                    error = (d.double() - exact).abs().max().item()
                    if not error < 1e-3:
                        raise SystemExit(f"{op.name} is wrong: {error}")
        print("called", op.name, " ".join(sorted(seen)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.calls:
        calls(options.specs)
        return
    subprocess.run(
        [sys.executable, __file__, "--calls", *options.specs], check=True
    )  # builds, so that the tools do not wait
    results = []
    for tool in TOOLS:
        # The kernels' names keep torch's own kernels (random numbers, float64) out of the report.
        names = [f"kernel_substring={Path(spec).stem}" for spec in options.specs]
        run = subprocess.run(
            ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9",
             *(part for name in names for part in ("--kernel-name", name)),
             sys.executable, __file__, "--calls", *options.specs],
            capture_output=True, text=True,
        )  # fmt: skip
        text = run.stdout + run.stderr
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: .*", text)
        called = re.findall(r"called (.*)", text)
        results.append({"tool": tool, "exit": run.returncode, "summary": summary, "called": called})
        print(tool, run.returncode, *summary, sep="  ", flush=True)
        if run.returncode:
            print(text[-3000:])
    report = {"script": "benchmarks/sanitizer.py", "shape": SHAPE, "gpu": _gpu(), "results": results}
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=1) + "\n")


def _gpu() -> str:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
