"""Print a Markdown table of a result from before `layoutgen bench`, for the README:

python benchmarks/table.py benchmarks/results/sgemm-h200.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def table(result: dict[str, object], contiguous: str = "a:k b:n", sizes: tuple[int, ...] = (4092, 4096, 8192)) -> str:
    """TFLOP/s of each kernel at cubes of these sizes, and in brackets its ratio to torch.mm in the same run."""
    rows: list[dict] = result["rows"]  # type: ignore[assignment]
    cells = {(row["name"], row["shape"][0]): row for row in rows if row["contiguous"] == contiguous}
    names = list(dict.fromkeys(row["name"] for row in rows))
    lines = ["| TFLOP/s | " + " | ".join(map(str, sizes)) + " |", "|---|" + "---|" * len(sizes)]
    for name in names:
        shown = []
        for size in sizes:
            row = cells[name, size]
            ratio = "" if name == "torch.mm" else f" ({row['ratio']:.2f})"
            shown.append(f"{row['tflops']:.1f}{ratio}")
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text())))
