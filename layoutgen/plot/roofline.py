"""A roofline (Williams, Waterman, Patterson, CACM 52(4), 2009): what was reached, at each block tile's intensity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import atan2, degrees, log10

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from layoutgen.bench import Result, Roofs
from layoutgen.plot.style import (
    LINE,
    RIVAL_DASHES,
    SMALL,
    SOFT,
    STRONG,
    Label,
    by,
    colour,
    figure_text,
    framed,
    halo,
    label_right,
    marker,
    styled,
    title,
)
from layoutgen.problem import Extents

_BESIDE = 9.0  # points


def roofline(result: Result, shape: Extents, modes: str) -> Figure:
    """One case's specs: filled, what was measured; hollow above it, what the plan allows."""
    rows = result.at(shape, modes)
    specs = [(row, row.kernel) for row in rows if row.kernel is not None]
    rivals = [row for row in rows if row.kind == "rival" and row.samples_ms]
    device = result.device
    intensities = [made.intensity for _, made in specs]
    speeds = [row.tflops for row in rows if row.tflops] + [k.ceiling_tflops for _, k in specs if k.ceiling_tflops]
    left, right = min([device.ridge, *intensities]) / 1.8, max([device.ridge, *intensities]) * 1.8
    bottom, top = min([device.peak, *speeds]) / 1.6, device.peak * 1.25
    labels = [Label(f"{row.name}  {row.tflops:.1f}", row.tflops, STRONG) for row in rivals if row.tflops]
    points = []
    for index, (row, made) in enumerate(specs):
        if row.tflops is not None:
            of = "" if made.ceiling_tflops is None else f" of {figure_text(made.ceiling_tflops)}"
            text = f"{row.name}  {figure_text(row.tflops)}{of}"
            points.append((index, made, Label(text, row.tflops, colour(index), made.intensity)))
    with styled():
        figure = Figure(figsize=(7.6, 4.4))
        axes = framed(figure, [*labels, *(label for *_, label in points)])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(left, right)
        axes.set_ylim(bottom, top)
        _ticks(axes.xaxis, right / left)
        _ticks(axes.yaxis, top / bottom)
        axes.grid()
        axes.set_xlabel("FLOP per byte of the block tile; those of one tile stand side by side")
        axes.set_ylabel("TFLOP/s")
        _roofs(axes, device)
        for rank, label in enumerate(labels):
            axes.axhline(label.y, color=STRONG, lw=1.0, dashes=RIVAL_DASHES[rank % 2], zorder=2)
        beside = _beside(axes, [made.intensity for _, made, _ in points])
        for x, (index, made, label) in zip(beside, points, strict=True):
            if made.ceiling_tflops is not None:
                axes.plot([x] * 2, [label.y, made.ceiling_tflops], color=label.colour, lw=0.8, zorder=3)
                axes.plot(x, made.ceiling_tflops, marker(index), mfc="white", mec=label.colour, ms=5, zorder=4)
            (point,) = axes.plot(x, label.y, marker(index), color=label.colour, ms=6, zorder=5)
            point.set_gid(specs[index][0].name)
            labels.append(replace(label, x=x))
        conditions = [each for each in result.conditions if (each.shape, each.modes) == (shape, modes)]
        title(axes, f"Roofline at {by(shape)}; hollow: what the plan allows", result, modes, conditions)
        label_right(axes, labels)
    return figure


def _beside(axes: Axes, intensities: Sequence[float]) -> list[float]:
    """Where points stand: at their intensity, those of one intensity a few points apart around it."""
    figure = axes.get_figure()
    assert figure is not None  # axes that are drawn in have one
    seen: dict[float, int] = {}
    places = []
    low, high = axes.get_xlim()
    apart = _BESIDE * figure.dpi / 72.0 / axes.get_window_extent().width * log10(high / low)  # in decades
    for each in intensities:
        rank = seen[each] = seen.get(each, -1) + 1
        places.append(each * 10 ** (apart * (rank - (intensities.count(each) - 1) / 2)))
    return places


def _roofs(axes: Axes, device: Roofs) -> None:
    """What memory feeds, if L2 answered nothing, up to the ridge; then the peak. Named where they start."""
    left, right = axes.get_xlim()
    bottom, _ = axes.get_ylim()
    start = max(left, bottom * 1e3 / device.memory_gbs)
    feeds = start * device.memory_gbs / 1e3
    axes.plot([start, device.ridge, right], [feeds, device.peak, device.peak], color=STRONG, lw=1.8)
    axes.annotate(
        f"{device.name}: {device.peak_name} {device.peak:g} TFLOP/s", (right, device.peak), (0, 4),
        textcoords="offset points", fontsize=SMALL, color=SOFT, ha="right",
    )  # fmt: skip
    box = axes.get_window_extent()
    x, y = (log10(hi / lo) for lo, hi in (axes.get_xlim(), axes.get_ylim()))
    near = start * (device.ridge / start) ** 0.42
    axes.annotate(
        f"memory {device.memory_gbs:g} GB/s", (near, near * device.memory_gbs / 1e3), (-4, 4),
        textcoords="offset points", fontsize=SMALL, color=SOFT, ha="center", va="bottom", zorder=6, path_effects=halo(),
        rotation=degrees(atan2(box.height / y, box.width / x)), rotation_mode="anchor",
    )  # fmt: skip
    axes.axvline(device.ridge, color=LINE, lw=0.8, ls=(0, (1, 2)), zorder=1)


def _ticks(axis: Axis, ratio: float) -> None:
    """Plain numbers; the fewer decades, the more of them."""
    steps = (1, 2, 5) if ratio > 12 else (1, 1.5, 2, 3, 4, 5, 6, 8)
    axis.set_major_locator(FixedLocator([step * 10.0**power for power in range(-4, 6) for step in steps]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
