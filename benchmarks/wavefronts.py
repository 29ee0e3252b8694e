"""Measure how many wavefronts a warp's shared-memory access takes, instruction by instruction, and compare the model.

    python benchmarks/wavefronts.py -o benchmarks/results/wavefronts-h200.json

For each kind of access one kernel holds one instruction per pattern of addresses; ncu counts the wavefronts of each
instruction (memory_l1_wavefronts_shared), and `layoutgen.facts.banks` says how many it expects. Patterns are lines,
broadcasts, pairs of lanes that agree, swizzles and random draws. With --launch the script is the program under ncu.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from layoutgen.facts.banks import wavefronts

LANES = range(32)
SHARED_BYTES = 32768
SEED = 2603

# kind -> (bytes of the unit that an address is a multiple of, PTX, outputs)
KINDS: dict[str, tuple[int, str, int]] = {
    "ld.shared.b32": (4, "ld.shared.b32 %0, [%1];", 1),
    "ld.shared.v2.b32": (8, "ld.shared.v2.b32 {%0,%1}, [%2];", 2),
    "ld.shared.v4.b32": (16, "ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];", 4),
    "st.shared.b32": (4, "st.shared.b32 [%0], %1;", 0),
    "st.shared.v2.b32": (8, "st.shared.v2.b32 [%0], {%1,%1};", 0),
    "st.shared.v4.b32": (16, "st.shared.v4.b32 [%0], {%1,%1,%1,%1};", 0),
    "ldmatrix.x1": (16, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];", 1),
    "ldmatrix.x2": (16, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];", 2),
    "ldmatrix.x4": (16, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];", 4),
    "ldmatrix.x4.trans": (16, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];", 4),
    "stmatrix.x1": (16, "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};", 0),
    "stmatrix.x2": (16, "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%1};", 0),
    "stmatrix.x4": (16, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%1,%1,%1};", 0),
    "cp.async.4": (4, "cp.async.ca.shared.global [%0], [%1], 4;", -1),
    "cp.async.8": (8, "cp.async.ca.shared.global [%0], [%1], 8;", -1),
    "cp.async.16": (16, "cp.async.cg.shared.global [%0], [%1], 16;", -1),
}


def patterns() -> dict[str, list[int]]:
    """Name -> the unit that each of the 32 lanes addresses; the same for every kind, whatever its unit."""
    r = Random(SEED)

    def each(unit: Callable[[int], int]) -> list[int]:
        return [unit(lane) for lane in LANES]

    found = {f"stride {s}": each(lambda i, s=s: i * s) for s in (1, 2, 3, 4, 5, 8, 16, 32, 33)}  # type: ignore[misc]
    found |= {"all alike": each(lambda i: 5)}
    found |= {f"i / {d}": each(lambda i, d=d: i // d) for d in (2, 4, 8, 16)}  # type: ignore[misc]
    found |= {f"i % {d}": each(lambda i, d=d: i % d) for d in (2, 4, 8, 16)}  # type: ignore[misc]
    found |= {
        "alike over i ^ 2": each(lambda i: (i & 1) | (i >> 2 << 1)),
        "alike over i ^ 4": each(lambda i: (i & 3) | (i >> 3 << 2)),
        "pairs, scattered by 8": each(lambda i: i // 2 * 8),
        "pairs over i ^ 2, scattered by 8": each(lambda i: ((i & 1) | (i >> 2 << 1)) * 8),
        "half pairs over i ^ 1, half over i ^ 2": each(lambda i: i // 2 if i < 16 else (i & 1) | (i >> 2 << 1)),
        "pairs but for one lane": each(lambda i: i // 2 if i != 31 else 40),
        "reversed": each(lambda i: 31 - i),
        "swizzled 3": each(lambda i: i * 8 + ((i ^ i >> 3) & 7)),
        "rows of 8 units, column 0": each(lambda i: i * 8),
        "8 rows of 8, then the next 8": each(lambda i: i % 8 * 8 + i // 8),
        "8 rows of 8 swizzled, then the next 8": each(lambda i: i % 8 * 8 + (i // 8 ^ i % 8)),
        "8 x 4 lanes on 8-unit rows": each(lambda i: i // 4 * 8 + i % 4),
        "4 x 8 lanes": each(lambda i: i // 8 + i % 8 * 4),
    }
    for n in range(6):
        found[f"a permutation, {n}"] = r.sample(range(32), 32)
        found[f"random of 64, {n}"] = [r.randrange(64) for _ in LANES]
        found[f"random of 1024, {n}"] = [r.randrange(1024) for _ in LANES]
        pairs = [r.randrange(256) for _ in range(16)]
        found[f"random pairs over i ^ 1, {n}"] = [pairs[i // 2] for i in LANES]
        found[f"random pairs over i ^ 2, {n}"] = [pairs[(i & 1) | (i >> 2 << 1)] for i in LANES]
    return found


def text(kind: str) -> str:
    """CUDA source of a kernel with one instruction of a kind per pattern; barriers keep them in order."""
    unit, ptx, outputs = KINDS[kind]
    lines = []
    for p in range(len(patterns())):
        lines.append("  __syncthreads();")
        address = f'"r"(base + at[{p} * 32 + threadIdx.x] * {unit})'
        if outputs > 0:
            results = ", ".join(f'"=r"(v{i})' for i in range(outputs))
            lines.append(f'  asm volatile("{ptx}" : {results} : {address} : "memory");')
            lines.append("  x ^= " + " ^ ".join(f"v{i}" for i in range(outputs)) + ";")
        elif outputs < 0:
            lines.append(f'  asm volatile("{ptx}" :: {address}, "l"(source + threadIdx.x * 4) : "memory");')
        else:
            lines.append(f'  asm volatile("{ptx}" :: {address}, "r"(x) : "memory");')
    body = "\n".join(lines)
    return f"""extern "C" __global__ void probe(const int* at, const int* source, int* out) {{
  extern __shared__ __align__(16) int shared[];
  unsigned base = (unsigned)__cvta_generic_to_shared(shared);
  unsigned x = threadIdx.x, v0, v1, v2, v3;
{body}
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[threadIdx.x] = x + shared[threadIdx.x];
}}
"""


def launch() -> None:
    """Launch each kind's kernel once, in the order of KINDS."""
    import torch

    from layoutgen import build

    at = torch.tensor([unit for pattern in patterns().values() for unit in pattern], dtype=torch.int32, device="cuda")
    source = torch.zeros(128, dtype=torch.int32, device="cuda")
    out = torch.zeros(32, dtype=torch.int32, device="cuda")
    arch = build.Device().arch
    for kind in KINDS:
        function = build.load(build.build(text(kind), "probe", arch))
        params = build.ParamBlock(["ptr"] * 3)
        packed = params.pack(at.data_ptr(), source.data_ptr(), out.data_ptr())
        function.launch((1, 1, 1), (32, 1, 1), SHARED_BYTES, torch.cuda.current_stream().cuda_stream, packed)
        torch.cuda.synchronize()


def profile() -> str:
    """What ncu prints of every instruction of the kernels."""
    command = [
        "ncu", "--clock-control", "none", "--kernel-name", "probe", "--section", "SourceCounters",
        "--page", "source", "--csv", "--print-units", "base", sys.executable, __file__, "--launch",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def measured(table: str) -> dict[str, dict[str, int]]:
    """ncu's table of SASS instructions -> kind -> pattern -> wavefronts."""
    kernels: list[list[dict[str, str]]] = []
    header: list[str] = []
    for row in csv.reader(io.StringIO(table)):
        if row[:1] == ["Kernel Name"]:
            kernels.append([])
        elif row[:1] == ["Address"]:
            header = row
        elif kernels and len(row) == len(header):
            kernels[-1].append(dict(zip(header, row, strict=True)))
    found = {}
    for (kind, (_, _, outputs)), instructions in zip(KINDS.items(), kernels, strict=True):
        wanted = ("LDGSTS",) if outputs < 0 else ("LDS", "LDSM") if outputs else ("STS", "STSM")
        counts = [
            int(each["L1 Wavefronts Shared"])
            for each in instructions
            if each["Source"].split()[0].split(".")[0] in wanted  # predicates stand in front of others
        ]
        found[kind] = dict(zip(patterns(), counts, strict=False))  # the last LDS of a kernel is not of a pattern
    return found


def predicted(kind: str, pattern: list[int]) -> int | None:
    """What the model says; None for cp.async, whose order of arrival it doesn't know."""
    unit, _, outputs = KINDS[kind]
    addresses = [number * unit for number in pattern]
    if outputs < 0:
        return None
    if "matrix" in kind:
        return wavefronts(addresses[: 8 * int(kind.split(".x")[1][0])], unit, "matrix")
    return wavefronts(addresses, unit, "load" if outputs else "store")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launch", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.launch:
        launch()
        return
    launch()  # builds outside ncu
    counts = measured(profile())
    wrong = 0
    for kind, of_pattern in counts.items():
        differ = [
            f"{name}: {count}, not {expected}"
            for name, count in of_pattern.items()
            if (expected := predicted(kind, patterns()[name])) is not None and expected != count
        ]
        wrong += len(differ)
        print(f"{kind:20} {len(of_pattern)} patterns, the model differs on {len(differ)}", *differ, sep="\n  ")
    if options.output:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        gpu = subprocess.run(query, capture_output=True, text=True).stdout.strip()
        report = {"script": "benchmarks/wavefronts.py", "gpu": gpu, "patterns": patterns(), "wavefronts": counts}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(_lines(report))
    sys.exit(1 if wrong else 0)


def _lines(report: dict[str, object]) -> str:
    """JSON with each pattern and each kind on a line of its own."""
    text = json.dumps(report, indent=2)
    return re.sub(r"\[\s*([^\[\]]*?)\s*\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text) + "\n"


if __name__ == "__main__":
    main()
