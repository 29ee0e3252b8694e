"""Search over the order of a spec's multiply-adds: what the compiler makes of each, and how fast it is on the GPU here.

    python -m benchmarks.order specs/sgemm_128x256x16.yaml --time -o benchmarks/results/order-h200.json

An order interleaves the factors of a thread's rows with those of its columns, first to last, with and without turning
back. Of each the main loop's FFMAs are counted, and those that read two registers of one bank at once. With --time
all of them, and cuBLAS, are checked and timed in one run of `layoutgen bench`; without, no GPU is needed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations, groupby
from math import prod
from pathlib import Path

from layoutgen import build, spec
from layoutgen.algebra import Layout
from layoutgen.algebra.int_tuple import prime_factors
from layoutgen.bench import bench
from layoutgen.emit import emit
from layoutgen.plan import plan
from layoutgen.spec import Spec
from layoutgen.spec_fields import Order

BANKS = 2  # of registers, by their number
_REGISTER = re.compile(r"\bR(\d+)(\.reuse)?")


@dataclass(frozen=True, slots=True)
class Counts:
    """The FFMAs of one turn of the main loop.

    ffma: all; instructions: all of the turn. reused: operands that the instruction before had kept. conflicts: FFMAs
    that read two registers or more of one bank.
    """

    instructions: int
    ffma: int
    reused: int
    conflicts: int


def orders(rows: int, columns: int) -> Iterator[Order]:
    """Every interleaving of the factors of `rows` and of `columns`, each from the least stride up.

    >>> [str(order) for order in orders(2, 2)]
    ['(2,2):(1,2)', 'serpentine (2,2):(1,2)', '(2,2):(2,1)', 'serpentine (2,2):(2,1)']
    """
    factors = {"m": prime_factors(rows), "n": prime_factors(columns)}
    count = sum(map(len, factors.values()))
    for of_m in combinations(range(count), len(factors["m"])):
        extents, stride = {mode: iter(each) for mode, each in factors.items()}, {"m": 1, "n": rows}
        shape, strides = [], []
        for mode, run in groupby("m" if place in of_m else "n" for place in range(count)):
            shape.append(prod(next(extents[mode]) for _ in run))  # factors that follow one another are one loop
            strides.append(stride[mode])
            stride[mode] *= shape[-1]
        layout = Layout(tuple(shape), tuple(strides))
        yield Order(layout, serpentine=False)
        yield Order(layout, serpentine=True)


def count(loop: tuple[tuple[str, str], ...]) -> Counts:
    """The FFMAs of a loop and the banks of their registers.

    An operand is read from its bank unless the instruction before had the same register in the same place and kept it
    (`.reuse`). Source for two banks and the kept operands: Jia, Maggioni, Staiger and Scarpazza, "Dissecting the NVIDIA
    Volta GPU Architecture via Microbenchmarking", 2018. There an FFMA takes two cycles, in which a bank hands out two
    registers, and only three of one bank conflict: by that count no order of sgemm_128x256x16 has any. That an FFMA
    issued each cycle, as since sm_86 and sm_90, finds the second register of a bank late is an assumption; as measured
    on an H200 (order-h200.json), orders with fewer such FFMAs tend to be faster, no more.

    >>> count((("FFMA", "R9, R2.reuse, R4, R7"), ("FFMA", "R11, R2, R8, R11"), ("LDS.128", "R4, [R1]")))
    Counts(instructions=3, ffma=2, reused=1, conflicts=1)
    """
    ffma = reused = conflicts = 0
    kept: dict[int, str] = {}
    for mnemonic, text in loop:
        sources = {place: match for place, each in enumerate(text.split(",")[1:]) if (match := _REGISTER.search(each))}
        if mnemonic == "FFMA":
            held = {place for place, match in sources.items() if kept.get(place) == match[1]}
            banks = Counter(number % BANKS for number in {int(sources[place][1]) for place in sources.keys() - held})
            ffma, reused = ffma + 1, reused + len(held)
            conflicts += max(banks.values(), default=0) > 1
        kept = {place: match[1] for place, match in sources.items() if match[2]}
    return Counts(len(loop), ffma, reused, conflicts)


def candidates(base: Spec) -> dict[str, Spec]:
    """The order as a spec writes it -> the spec with it, under a name of its own; the spec's own order and the four
    words come first."""
    rows, columns = (layout.size for layout in plan(base)[0].tile.value_mode)
    found: dict[tuple[int, ...], tuple[str, Spec]] = {}
    words = (Order(mode, serpentine) for mode in ("m", "n") for serpentine in (False, True))
    for order in (base.tiling.order, *words, *orders(rows, columns)):
        tiling = base.tiling.model_copy(update={"order": order})
        each = base.model_copy(update={"tiling": tiling, "name": f"order_{len(found)}"})
        found.setdefault(plan(each)[0].order.values(), (str(order), each))
    return dict(found.values())


def static(specs: dict[str, Spec], arch: str) -> Iterator[dict[str, object]]:
    """Each order, compiled: its counts, registers and spills."""
    plans = [plan(each)[0] for each in specs.values()]
    jobs = [build.Job(emit(each).text, each.name, arch) for each in plans]
    built = build.build_many(jobs, done=lambda job: print(".", end="", file=sys.stderr, flush=True))
    for order, each, artifact in zip(specs, plans, built, strict=True):
        used = artifact.resources
        yield {
            "order": order,
            "registers": used.registers,
            "spill_bytes": used.spill_stores + used.spill_loads,
            **asdict(count(build.loop_instructions(artifact.cubin, each.name))),
        }


def timed(specs: dict[str, Spec], size: int, repeats: int) -> tuple[dict[str, dict[str, object]], dict[str, object]]:
    """Each order's speed beside cuBLAS, in one run; and on what machine."""
    orders = {each.name: order for order, each in specs.items()}
    base = next(iter(specs.values()))
    modes = base.operands.a.contiguous + base.operands.b.contiguous
    result = bench(list(specs.values()), shapes=[(size,) * 3], modes=[modes], repeats=repeats)
    rows: dict[str, dict[str, object]] = {
        orders[row.name]: {
            "tflops": row.tflops,
            "quartiles": [row.tflops_at(0.25), row.tflops_at(0.75)],
            "ratio": asdict(row.ratios["cublas"]) if "cublas" in row.ratios else None,
            "failure": row.failure,
        }
        for row in result.rows
        if row.name in orders
    }
    (rival,) = [row for row in result.rows if row.kind == "rival"]
    how = {
        "machine": asdict(result.machine), "size": size, "modes": modes, "repeats": repeats, "cublas": rival.tflops,
        "conditions": [asdict(each) for each in result.conditions],
    }  # fmt: skip
    return rows, how


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="+")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    report: list[dict[str, object]] = []
    for path in options.specs:
        base = spec.load(path)
        specs = candidates(base)
        rows = list(static(specs, options.arch))
        speeds, how = timed(specs, options.size, options.repeats) if options.time else ({}, {})
        rows = [row | speeds.get(str(row["order"]), {}) for row in rows]
        report.append({"spec": base.name, "arch": options.arch, **how, "orders": rows})
        if options.output:  # after each spec, so that what was measured is kept
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps({"script": "benchmarks/order.py", "specs": report}, indent=1) + "\n")
        print(f"\n{base.name}: its own order first")
        for row in rows:
            speed = f"{row['tflops']:6.2f} TFLOP/s  " if row.get("tflops") else ""
            print(
                f"  {speed}{row['conflicts']:>5} conflicts  {row['reused']:>5} reused  {row['ffma']} of "
                f"{row['instructions']} FFMA  {row['registers']} registers  {row['spill_bytes']} spilled",
                row["order"], sep="  ",
            )  # fmt: skip


if __name__ == "__main__":
    main()
