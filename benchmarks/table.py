"""Print Markdown tables of a result of `layoutgen bench`, for the README:

python -m benchmarks.table benchmarks/results/sgemm-h200.json
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from layoutgen.bench import Result, Row, read
from layoutgen.bench.statistic import median

NAMES = {
    "kn": "a:k b:n (both row-major)",
    "kk": "a:k b:k (b transposed)",
    "mn": "a:m b:n (a transposed)",
    "mk": "a:m b:k",
}


def table(result: Result, rival: str = "cublas") -> str:
    """TFLOP/s of the rival and of the fastest spec at each cube, by contiguous modes; in brackets the ratio."""
    cubes = sorted({row.shape for row in result.rows if len(set(row.shape)) == 1})
    lines = ["| TFLOP/s | " + " | ".join(str(cube[0]) for cube in cubes) + " |", "|---|" + "---|" * len(cubes)]
    for modes, name in NAMES.items():
        rows = [[row for row in result.rows if (row.shape, row.modes) == (cube, modes)] for cube in cubes]
        if not all(rows):
            continue
        beside = [next(row for row in case if row.name == rival) for case in rows]
        fastest = [max((row for row in case if row.kind == "spec"), key=_speed) for case in rows]
        lines.append(f"| {name}: {rival} | " + " | ".join(f"{_speed(row):.1f}" for row in beside) + " |")
        lines.append(
            "| layoutgen | " + " | ".join(f"{_speed(row):.1f} ({_ratio(row, rival)})" for row in fastest) + " |"
        )
    return "\n".join(lines)


def _speed(row: Row) -> float:
    return row.tflops or 0.0


def _ratio(row: Row, rival: str) -> str:
    return f"{row.ratios[rival].ratio:.3f}" if rival in row.ratios else "no difference"


def times(result: Result) -> str:
    """Every side of a result by shape, in milliseconds."""
    shapes = list(dict.fromkeys(row.shape for row in result.rows))
    found = {(row.name, row.shape): median(row.samples_ms) for row in result.rows}
    lines = [
        "| ms | " + " | ".join(" x ".join(map(str, shape)) for shape in shapes) + " |",
        "|---|" + "---|" * len(shapes),
    ]
    for name in dict.fromkeys(row.name for row in result.rows):
        lines.append(f"| {name} | " + " | ".join(f"{found[name, shape]:.4f}" for shape in shapes) + " |")
    return "\n".join(lines)


def errors(rows: list[dict[str, Any]]) -> str:
    """What benchmarks.split_errors measured, in 2^-24 of |a| |b|."""
    lines = ["| k | numbers | layoutgen | cublas | ratio |", "|---|---|---|---|---|"]
    for row in rows:
        own, theirs = (row[side] * 2**24 for side in ("error", "cublas"))
        lines.append(f"| {row['k']} | {row['numbers']} | {own:.2f} | {theirs:.2f} | {row['ratio']:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(read(Path(sys.argv[1]))))
