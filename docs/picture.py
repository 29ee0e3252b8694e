"""Draw who owns what of the block tile of C: colours are warps, numbers lanes, and one thread's values stand out.

    python docs/picture.py warptile_128x128 docs/warptile_128x128.svg

Everything drawn is read from the plan; nothing is computed here but where to put it on the page.
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402

from layoutgen import paths, spec  # noqa: E402
from layoutgen.plan import plan  # noqa: E402

# Okabe and Ito's colours, which colour-blind people can tell apart, lightened for text on top.
COLOURS = ["#9fd3f0", "#f7d59b", "#9fdcc5", "#f0b8d4", "#c9c9f0", "#f2b8a2", "#d8e5a0", "#cfcfcf"]
INK, MARK = "#22262b", "#d1420f"


def draw(name: str, out: str, thread: int = 45) -> None:
    tile = (p := plan(spec.load(paths.specs() / f"{name}.yaml"))[0]).tile
    block_m, block_n, block_k = tile.block
    first_m, first_n = p.threads.m.offsets(), p.threads.n.offsets()
    value_m, value_n = tile.value_mode[0].offsets(), tile.value_mode[1].offsets()

    plt.rcParams.update({"font.family": "DejaVu Sans", "svg.hashsalt": name, "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(9.2, 7.6))
    gap, strip = 5, block_k
    for t in range(p.threads.threads):
        colour = COLOURS[t // 32 % len(COLOURS)]
        for m0, rows in runs(first_m[t] + value_m):
            for n0, columns in runs(first_n[t] + value_n):
                mine = t == thread
                axes.add_patch(
                    Rectangle(
                        (n0, m0), columns, rows, facecolor=MARK if mine else colour, edgecolor="white", linewidth=0.4
                    )
                )
                if rows * columns >= 16:
                    axes.text(
                        n0 + columns / 2, m0 + rows / 2, str(t % 32), ha="center", va="center", fontsize=5.4,
                        color="white" if mine else INK,
                    )  # fmt: skip
    for x, y, width, height, label in (
        (-gap - strip, 0, strip, block_m, f"A  {block_m}x{block_k}"),
        (0, -gap - strip, block_n, strip, f"B  {block_k}x{block_n}"),
    ):
        axes.add_patch(Rectangle((x, y), width, height, facecolor="#eceff2", edgecolor="#b4bcc4", linewidth=0.6))
        axes.text(x + width / 2, y - 1.5, label, ha="center", va="bottom", fontsize=9, color=INK)
    for m0, rows in runs(first_m[thread] + value_m):
        axes.add_patch(Rectangle((-gap - strip, m0), strip, rows, facecolor=MARK, alpha=0.85))
    for n0, columns in runs(first_n[thread] + value_n):
        axes.add_patch(Rectangle((n0, -gap - strip), columns, strip, facecolor=MARK, alpha=0.85))
    lanes = f"{value_m.size} x {value_n.size} values"
    axes.text(
        block_n / 2, block_m + 3,
        f"C  {block_m}x{block_n}:  colours are warps, numbers are lanes;  in red, warp {thread // 32} lane"
        f" {thread % 32} with its {lanes} and what it reads of A and B",
        ha="center", va="top", fontsize=8.6, color=INK,
    )  # fmt: skip
    axes.set_xlim(-gap - strip - 1, block_n + 1)
    axes.set_ylim(block_m + 8, -gap - strip - 6)
    axes.set_aspect("equal")
    axes.axis("off")
    figure.savefig(
        out, bbox_inches="tight", facecolor="white", metadata={"Date": None} if out.endswith("svg") else None
    )


def runs(coordinates: np.ndarray) -> list[tuple[int, int]]:
    """Sorted coordinates -> (start, length) of each contiguous run."""
    ordered = np.sort(coordinates)
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 2) != 1)
    return [(int(ordered[s]), int(e - s)) for s, e in zip(starts, [*starts[1:], ordered.size], strict=True)]


if __name__ == "__main__":
    draw(sys.argv[1], sys.argv[2])
