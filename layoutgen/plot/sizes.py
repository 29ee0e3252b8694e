"""Speed by problem size: a line for each spec and rival, with the middle half of its calls as a band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layoutgen.bench import Result, Row
from layoutgen.plot.style import (
    RIVAL_DASHES,
    SMALL,
    STRONG,
    Label,
    by,
    colour,
    figure_text,
    framed,
    label_right,
    marker,
    names,
    styled,
    text_width,
    title,
)
from layoutgen.problem import Extents

_ROOM = 340.0  # points that labels along the axis may take side by side
MOST_SPACED = 12  # so many sizes stand evenly spaced, so that 4092 and 4096 are two; more of them stand to scale


def sizes(result: Result, modes: str) -> Figure:
    """TFLOP/s over M N K, for the result's rows of these modes."""
    rows = [row for row in result.rows if row.modes == modes]
    shapes = sorted({row.shape for row in rows}, key=lambda shape: (shape[0] * shape[1] * shape[2], shape))
    cubes = all(m == n == k for m, n, k in shapes)
    spaced = len(shapes) <= MOST_SPACED
    place: dict[Extents, float] = {
        shape: float(index) if spaced else (shape[0] * shape[1] * shape[2]) ** (1 / 3)
        for index, shape in enumerate(shapes)
    }
    curves = []
    for kind in ("rival", "spec"):
        for rank, name in enumerate(names(rows, kind)):
            mine = sorted(
                (row for row in rows if row.name == name and row.samples_ms), key=lambda row: place[row.shape]
            )
            if mine and mine[-1].tflops:
                paint, last = STRONG if kind == "rival" else colour(rank), mine[-1].tflops
                curves.append((rank, mine, Label(f"{name}  {figure_text(last)}", last, paint, place[mine[-1].shape])))
    labels = [label for *_, label in curves]
    ticks = [str(shape[0]) if cubes else by(shape) for shape in shapes] if spaced else []
    turned = max(map(text_width, ticks), default=0.0) * len(ticks) > _ROOM
    with styled():
        figure = Figure(figsize=(7.6, 4.4))
        first, longest = (0.0, 28.0) if not turned else (text_width(ticks[0]), max(map(text_width, ticks)))
        axes = framed(figure, labels, left=max(42.0, 0.91 * first - 10.0), bottom=26.0 + 0.5 * longest)
        axes.grid(axis="y")
        if spaced:
            axes.set_xticks(list(place.values()), ticks, fontsize=SMALL)
            axes.set_xlim(-0.25, len(shapes) - 0.75)
            if turned:
                for text in axes.get_xticklabels():
                    text.set(rotation=25, ha="right", rotation_mode="anchor")
        even = ", evenly spaced" if spaced else ""
        axes.set_xlabel(f"M = N = K{even}" if cubes else f"M × N × K{even}" if spaced else "cube root of M N K")
        axes.set_ylabel("TFLOP/s")
        for rank, mine, label in curves:
            _curve(axes, mine, place, rank, label.colour, joined=cubes or not spaced)
        axes.set_ylim(0, None)
        title(axes, "Speed by size", result, modes, [each for each in result.conditions if each.modes == modes])
        label_right(axes, labels)
    return figure


def _curve(
    axes: Axes, rows: Sequence[Row], place: Mapping[Extents, float], rank: int, paint: str, *, joined: bool
) -> None:
    """A rival is dashed and has no markers. Shapes between which nothing lies are not joined, and a rival is a bar."""
    x = [place[row.shape] for row in rows]
    y, low, high = ([row.tflops_at(part) or 0.0 for row in rows] for part in (0.5, 0.25, 0.75))
    rival = rows[0].kind == "rival"
    if not joined:
        spread = [
            [mid - least for mid, least in zip(y, low, strict=True)],
            [h - m for h, m in zip(high, y, strict=True)],
        ]
        (points, *_) = axes.errorbar(x, y, spread, fmt="_" if rival else marker(rank), color=paint, elinewidth=1.0)
        points.set(gid=rows[0].name, markersize=16 + 8 * (rank % 2) if rival else 5, zorder=3)
        return
    axes.fill_between(x, low, high, color=paint, alpha=0.2, lw=0)
    (line,) = axes.plot(x, y, color=paint, lw=1.4, ms=4.5, zorder=3)
    line.set_gid(rows[0].name)
    if rival:
        line.set_dashes(RIVAL_DASHES[rank % 2])
    else:
        line.set_marker(marker(rank))
