"""Measure how many wavefronts a warp's shared-memory access takes, instruction by instruction, beside the model.

    python -m benchmarks.wavefronts -o benchmarks/results/wavefronts-h200.json

For each kind of access one kernel holds one instruction per pattern of addresses; ncu counts the wavefronts of each
instruction (memory_l1_wavefronts_shared), and `layoutgen.facts.banks` says how many it expects. Patterns are lines,
broadcasts, pairs of lanes that agree, swizzles and random draws; for cp.async, runs from and to shifted places, whose
global sectors are counted too. With --launch the script is the program under ncu.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from benchmarks.ncu import gpu, instructions, ncu
from layoutgen.facts.banks import copy_wavefronts, wavefronts

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


def copies() -> dict[str, list[tuple[int, int]]]:
    """Name -> for each lane the unit of global and that of shared memory between which cp.async copies."""
    r = Random(5)
    lanes = list(LANES)
    found = {f"from {u} to {v}": [(u + i, v + i) for i in lanes] for u in range(8) for v in range(8)}
    for u in range(4):
        for v in range(4):
            rows = [(u + i % 8 + i // 8 * 65, v + i % 8 + i // 8 * 9) for i in lanes]
            found[f"4 rows of 8, from {u} to {v}"] = rows
    for n in (2, 4, 16):
        for u in range(2):
            for v in range(2):
                runs = [(u + i % n + i // n * 64, v + i % n + i // n * n * 2) for i in lanes]
                found[f"runs of {n}, from {u} to {v}"] = runs
    found["reversed"] = [(31 - i, 31 - i) for i in lanes]
    found["from swapped pairs"] = [(i ^ 1, i) for i in lanes]
    found["to swapped pairs"] = [(i, i ^ 1) for i in lanes]
    found["a permutation of lanes"] = [(p, p) for p in r.sample(range(32), 32)]
    found["from anywhere"] = [(p, i) for i, p in enumerate(r.sample(range(32), 32))]
    found["all from one"] = [(0, i) for i in lanes]
    found["pairs from one"] = [(i // 2, i) for i in lanes]
    for n in range(6):
        found[f"random, {n}"] = list(zip(r.sample(range(64), 32), r.sample(range(64), 32), strict=True))
    return found


def units(kind: str) -> dict[str, list[tuple[int, int]]]:
    """Pattern -> for each lane its unit of global memory, which only cp.async reads, and of shared memory."""
    if kind.startswith("cp.async"):
        return copies()
    return {name: [(0, unit) for unit in pattern] for name, pattern in patterns().items()}


def text(kind: str) -> str:
    """CUDA source of a kernel with one instruction of a kind per pattern; barriers keep them in order."""
    unit, ptx, outputs = KINDS[kind]
    lines = []
    for p in range(len(units(kind))):
        lines.append("  __syncthreads();")
        address = f'"r"(base + at[{p} * 32 + threadIdx.x].y * {unit})'
        if outputs > 0:
            results = ", ".join(f'"=r"(v{i})' for i in range(outputs))
            lines.append(f'  asm volatile("{ptx}" : {results} : {address} : "memory");')
            lines.append("  x ^= " + " ^ ".join(f"v{i}" for i in range(outputs)) + ";")
        elif outputs < 0:
            source = f'"l"(source + at[{p} * 32 + threadIdx.x].x * {unit})'
            lines.append(f'  asm volatile("{ptx}" :: {address}, {source} : "memory");')
        else:
            lines.append(f'  asm volatile("{ptx}" :: {address}, "r"(x) : "memory");')
    body = "\n".join(lines)
    return f"""extern "C" __global__ void probe(const int2* at, const char* source, int* out) {{
  extern __shared__ __align__(128) int shared[];
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

    source = torch.zeros(1 << 16, dtype=torch.int32, device="cuda")
    out = torch.zeros(32, dtype=torch.int32, device="cuda")
    arch = build.Device().arch
    for kind in KINDS:
        at = torch.tensor([pair for own in units(kind).values() for pair in own], dtype=torch.int32, device="cuda")
        function = build.load(build.build(text(kind), "probe", arch))
        params = build.ParamBlock(["ptr"] * 3)
        packed = params.pack(at.data_ptr(), source.data_ptr(), out.data_ptr())
        function.launch((1, 1, 1), (32, 1, 1), SHARED_BYTES, torch.cuda.current_stream().cuda_stream, packed)
        torch.cuda.synchronize()


def profile() -> str:
    """What ncu prints of every instruction of the kernels."""
    return ncu(
        "--clock-control", "none", "--kernel-name", "probe", "--section", "SourceCounters",
        "--page", "source", "--csv", "--print-units", "base", sys.executable, "-m",
        "benchmarks.wavefronts", "--launch",
    )  # fmt: skip


def measured(table: str) -> dict[str, dict[str, dict[str, int]]]:
    """ncu's table of SASS instructions -> "wavefronts" and "sectors" -> kind -> pattern -> count."""
    found: dict[str, dict[str, dict[str, int]]] = {"wavefronts": {}, "sectors": {}}
    for (kind, (_, _, outputs)), kernel in zip(KINDS.items(), instructions(table), strict=True):
        wanted = ("LDGSTS",) if outputs < 0 else ("LDS", "LDSM") if outputs else ("STS", "STSM")
        # Predicates stand in front of other instructions; the last LDS of a kernel is not of a pattern.
        own = [each for each in kernel if each["Source"].split()[0].split(".")[0] in wanted]
        for what, column in (("wavefronts", "L1 Wavefronts Shared"), ("sectors", "L2 Theoretical Sectors Global")):
            if what == "wavefronts" or outputs < 0:
                found[what][kind] = {name: int(each[column]) for name, each in zip(units(kind), own, strict=False)}
    return found


def predicted(kind: str, pattern: list[tuple[int, int]]) -> int:
    """The wavefronts that the model gives."""
    unit, _, outputs = KINDS[kind]
    sources, addresses = ([number * unit for number in end] for end in zip(*pattern, strict=True))
    if outputs < 0:
        return copy_wavefronts(sources, addresses, unit)
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
    for kind, of_pattern in counts["wavefronts"].items():
        expected = {name: predicted(kind, pattern) for name, pattern in units(kind).items()}
        differ = [f"{name}: {n}, not {expected[name]}" for name, n in of_pattern.items() if n != expected[name]]
        wrong += len(differ) * (not kind.startswith("cp.async"))  # an estimate
        print(f"{kind:20} {len(of_pattern)} patterns, the model differs on {len(differ)}", *differ, sep="\n  ")
    if options.output:
        report = {
            "script": "benchmarks/wavefronts.py",
            "gpu": gpu(),
            "patterns": patterns(),
            "copies": copies(),
            **counts,
        }
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(_lines(report))
    sys.exit(1 if wrong else 0)


def _lines(report: dict[str, object]) -> str:
    """JSON with each pattern on a line of its own."""
    text = json.dumps(report, indent=2)
    flat = re.sub(r"\[\s*([^\[\]]*?)\s*\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text)
    return (
        re.sub(r"\[\s*(\[[^\]]*\](?:,\s*\[[^\]]*\])*)\s*\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", flat)
        + "\n"
    )


if __name__ == "__main__":
    main()
