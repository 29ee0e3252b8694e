"""Print Markdown tables of a result of `layoutgen bench`, for the README:

python -m benchmarks.table benchmarks/results/sgemm-h200.json
"""

from __future__ import annotations

import sys
from pathlib import Path

from layoutgen.bench import Result, Row, read

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


if __name__ == "__main__":
    print(table(read(Path(sys.argv[1]))))
