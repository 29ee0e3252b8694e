"""How the plots look: colours, a label beside each line, and the same bytes for the same data.

Colours are the tones of `layoutgen.draw.palette`, which colour-blind people can tell apart: on light paper the dark
ones draw lines and points. None is told by its colour alone: each has its marker, and its name beside it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.textpath import TextPath

from layoutgen.bench import Conditions, Result, Row
from layoutgen.draw.palette import DARK, LIGHT
from layoutgen.problem import Extents

Format = Literal["svg", "png"]

INK, SOFT, LINE, STRONG, MARK = LIGHT.ink, LIGHT.soft, LIGHT.line, LIGHT.strong, LIGHT.mark
MARKERS = "osD^vPX*"
RIVAL_DASHES = ((5, 2), (1.5, 1.5))
SMALL = 8.0  # points
LABEL_GAP = 10.5  # points between the baselines of labels
_LEADER, _TITLE = 16.0, 46.0  # points of the line to a label; of the title and what stands under it

_STYLE: Any = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same letters everywhere
    "font.size": 9.0,
    "svg.fonttype": "path",
    "svg.hashsalt": "layoutgen",  # else the names of clip paths are random
    "text.color": INK,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": LIGHT.hatch,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "grid.color": LIGHT.panel,
    "grid.linewidth": 1.0,
    "figure.facecolor": LIGHT.paper,
    "axes.facecolor": LIGHT.paper,
    "path.simplify": False,
}  # fmt: skip


def styled() -> AbstractContextManager[None]:
    """matplotlib with this look and nobody's own matplotlibrc; what was set before is set again."""
    return matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE})


def render(figure: Figure, format: Format) -> bytes:
    """The picture, without dates and versions: the same figure gives the same bytes."""
    data = io.BytesIO()
    about = {"Date": None, "Creator": "layoutgen"} if format == "svg" else {"Software": None}
    with styled():
        figure.savefig(data, format=format, dpi=160, metadata=about)
    return data.getvalue()


def colour(index: int) -> str:
    """The look of the index-th spec; tones repeat, with another marker."""
    return DARK.tones[index % len(DARK.tones)]


def marker(index: int) -> str:
    return MARKERS[(index + index // len(MARKERS)) % len(MARKERS)]


def names(rows: Iterable[Row], kind: Literal["spec", "rival"]) -> list[str]:
    """The names of one kind, in the order in which they were measured."""
    return list(dict.fromkeys(row.name for row in rows if row.kind == kind))


def by(shape: Extents) -> str:
    """
    >>> by((4096, 4096, 4096)), by((64, 4096, 1000))
    ('4096³', '64 × 4096 × 1000')
    """
    m, n, k = shape
    return f"{m}³" if m == n == k else f"{m} × {n} × {k}"


def title(axes: Axes, head: str, result: Result, modes: str, conditions: Sequence[Conditions]) -> None:
    """What is shown, then where and under which clocks it was measured."""
    told = [f"{result.machine.gpu}, fp32, a:{modes[0]} b:{modes[1]}"]
    clocks = [each.sm_mhz for each in conditions if each.sm_mhz]
    power = [each.watts for each in conditions if each.watts]
    if clocks:
        told.append(_range([each.median for each in clocks]) + " MHz")
    if power:
        told.append(_range([each.median for each in power]) + " W")
    told.append("cold L2, median" if result.complete else "cold L2, median, interrupted")
    axes.annotate(head, (0, 1), (0, 24), "axes fraction", "offset points", fontsize=11, fontweight="bold")
    axes.annotate(", ".join(told), (0, 1), (0, 10), "axes fraction", "offset points", fontsize=SMALL, color=SOFT)


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class Label:
    """Text for the right margin, beside the point (x, y) that it names; x None for a line that ends there."""

    text: str
    y: float
    colour: str
    x: float | None = None


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places nearest to the wanted ones (ascending), at least a gap apart, within low .. high as far as they fit.

    Neighbours that are too close form a group that is centred on what its members want.

    >>> apart([10.0, 11.0, 50.0], 10.0, 0.0, 100.0), apart([98.0, 99.0], 10.0, 0.0, 100.0)
    ([5.5, 15.5, 50.0], [90.0, 100.0])
    """
    groups: list[list[float]] = []  # of what each wants, less its rank in the group times the gap

    def start(group: list[float]) -> float:
        top = high - (len(group) - 1) * gap
        return max(low, min(top, sum(group) / len(group)))

    for each in wanted:
        groups.append([each])
        while len(groups) > 1 and start(groups[-1]) < start(groups[-2]) + len(groups[-2]) * gap:
            last, before = groups.pop(), groups.pop()
            groups.append(before + [value - len(before) * gap for value in last])
    return [start(group) + rank * gap for group in groups for rank in range(len(group))]


def text_width(text: str, size: float = SMALL) -> float:
    """Of one line, in points."""
    return float(TextPath((0, 0), text, size=size).get_extents().x1) if text.strip() else 0.0


def framed(figure: Figure, labels: Sequence[Label], left: float = 42.0, bottom: float = 40.0) -> Axes:
    """Axes that leave so many points at the left and below, room for a title above, and for the labels at the right."""
    width, height = (72.0 * inches for inches in figure.get_size_inches())
    right = _LEADER + max([text_width(each.text) for each in labels], default=0.0) + 8.0
    return figure.add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - bottom - _TITLE) / height)
    )


def label_right(axes: Axes, labels: Sequence[Label]) -> None:
    """Names points and lines in the right margin, one above the other, each with a thin line to its point."""
    figure = axes.get_figure()
    assert figure is not None  # axes that are drawn in have one
    box, point = axes.get_window_extent(), figure.dpi / 72.0
    ordered = sorted(labels, key=lambda each: each.y)
    wanted = [(axes.transData.transform((1.0, each.y))[1] - box.y0) / point for each in ordered]
    places = apart(wanted, LABEL_GAP, 0.0, box.height / point)
    for each, want, place in zip(ordered, wanted, places, strict=True):
        axes.annotate(
            each.text, (1, 0), (_LEADER, place), "axes fraction", "offset points",
            fontsize=SMALL, color=each.colour, va="center_baseline", annotation_clip=False,
        )  # fmt: skip
        y = want * point / box.height
        xs, ys = [1.0, 1.0 + (_LEADER - 4) * point / box.width], [y, place * point / box.height]
        if each.x is not None:
            xs.insert(0, (axes.transData.transform((each.x, each.y))[0] - box.x0) / box.width)
            ys.insert(0, y)
        axes.plot(xs, ys, transform=axes.transAxes, color=each.colour, lw=0.6, alpha=0.6, clip_on=False, zorder=1)


def halo(paper: str = LIGHT.paper) -> list[AbstractPathEffect]:
    """Letters that a line runs behind: a rim of the paper's colour."""
    return [withStroke(linewidth=2.0, foreground=paper)]


def figure_text(value: float) -> str:
    """
    >>> figure_text(54.0), figure_text(0.518)
    ('54.0', '0.52')
    """
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"
