"""Many specs at one size: a bar each, in the outline of what its plan allows, and a line for each rival."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from layoutgen.bench import Result, Row
from layoutgen.draw.palette import LIGHT
from layoutgen.plot.style import (
    INK,
    MARK,
    RIVAL_DASHES,
    SMALL,
    SOFT,
    STRONG,
    Label,
    by,
    figure_text,
    framed,
    halo,
    label_right,
    styled,
    text_width,
    title,
)
from layoutgen.problem import Extents

_BAR = 0.64  # of the room of one spec
_SEEN = 0.012  # of the axis: a spread that is seen
_INSIDE = 0.09  # a bar of at least this part of the axis holds its figure


def bars(result: Result, shape: Extents, modes: str) -> Figure:
    """TFLOP/s of one case's specs in the order in which they were named; whiskers: the middle half of the calls."""
    rows = result.at(shape, modes)
    specs = [row for row in rows if row.kind == "spec"]
    rivals = [row for row in rows if row.kind == "rival" and row.samples_ms]
    ceilings = [row.kernel.ceiling_tflops if row.kernel else None for row in specs]
    top = 1.08 * max([row.tflops or 0.0 for row in rows] + [each or 0.0 for each in ceilings] + [1e-3])
    labels = [
        Label(f"{row.name}  {figure_text(row.tflops)}", row.tflops, STRONG) for row in rivals if row.tflops is not None
    ]
    inches = max(5.6, 0.62 * len(specs) + 1.7)
    widths = [max(map(text_width, _folded(row.name).split("\n"))) for row in specs]
    turned = max(widths, default=0.0) > 0.9 * 72.0 * (inches - 1.7) / max(1, len(specs))
    longest = max((text_width(row.name) for row in specs), default=0.0)
    with styled():
        figure = Figure(figsize=(inches, 4.4 + (max(0.0, 0.62 * longest - 60.0) / 72.0 if turned else 0.0)))
        first = 0.8 * text_width(specs[0].name) - 15.0 if turned else 0.0  # how far its turned name reaches left
        axes = framed(figure, labels, left=max(42.0, first), bottom=16.0 + 0.62 * longest if turned else 40.0)
        axes.grid(axis="y")
        axes.set_ylim(0, top)
        axes.set_xlim(-0.6, len(specs) - 0.4)
        axes.set_ylabel("TFLOP/s")
        axes.tick_params("x", length=0, labelcolor=INK, labelsize=SMALL)
        axes.set_xticks(range(len(specs)), [row.name if turned else _folded(row.name) for row in specs])
        if turned:
            for text in axes.get_xticklabels():
                text.set(rotation=35, ha="right", rotation_mode="anchor")
        for index, (row, ceiling) in enumerate(zip(specs, ceilings, strict=True)):
            _bar(axes, index, row, ceiling)
        for rank, label in enumerate(labels):
            axes.axhline(label.y, color=STRONG, lw=1.2, dashes=RIVAL_DASHES[rank % 2], zorder=4)
        conditions = [each for each in result.conditions if (each.shape, each.modes) == (shape, modes)]
        title(axes, f"{by(shape)}, outlined: what the plan allows", result, modes, conditions)
        label_right(axes, labels)
    return figure


def _bar(axes: Axes, index: int, row: Row, ceiling: float | None) -> None:
    top = axes.get_ylim()[1]
    about: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "zorder": 6}
    if ceiling is not None:
        axes.bar(index, ceiling, _BAR, fill=False, ec=LIGHT.hatch, lw=0.9, ls=(0, (3, 2)), zorder=2)
        axes.annotate(figure_text(ceiling), (index, ceiling), (0, 2), fontsize=7, color=SOFT,
                      path_effects=halo(), **about)  # fmt: skip
    speed = row.tflops
    if speed is None:
        said = "wrong" if row.wrong else "failed"
        axes.annotate(said, (index, 0), (0, 5), rotation=90, va="bottom", fontsize=SMALL, fontweight="bold", color=MARK,
                      **about)  # fmt: skip
        return
    (bar,) = axes.bar(index, speed, _BAR, color=LIGHT.tones[0], ec=STRONG, lw=0.8, zorder=3)
    bar.set_gid(row.name)
    low, high = (row.tflops_at(part) or speed for part in (0.25, 0.75))
    if high - low > _SEEN * top:  # else its whisker is a speck on the bar's edge
        axes.errorbar(
            index + 0.38 * _BAR, speed, [[speed - low], [high - speed]], color=INK, lw=1.0, capsize=2.5, zorder=5
        )
    inside = speed > _INSIDE * top
    at, up = (speed, -11) if inside else (max(speed, ceiling or 0.0), 11 if ceiling else 3)
    axes.annotate(figure_text(speed), (index, at), (0, up), fontsize=SMALL, fontweight="bold",
                  path_effects=halo(LIGHT.tones[0] if inside else LIGHT.paper), **about)  # fmt: skip


def _folded(name: str) -> str:
    """A name on several lines, so that neighbours have room.

    >>> _folded("salykov_128x128x8")
    'salykov\\n128x128x8'
    """
    return name.replace("_", "\n")
