"""A Drawing as data: panels of boxes in units of elements. Builders make it, the SVG writer places and prints it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

TITLE, TICK, TICK_WIDTH = 22.0, 15.0, 46.0  # pixels that a panel's title, ticks above and ticks at its left take
LETTER = 7.8  # pixels of a title's letter


MOST_BOXES = 2100  # of a drawing that outlines and labels each; a file of so many stays under 300 KB


@dataclass(frozen=True, slots=True)
class Box:
    """Rows row .. row + rows and columns column .. column + columns of a panel, in one look.

    look: a class of `palette.rules`: t0 .. t7, panel (what the picture is not about), pad, mark or paper.
    label: shown where it fits; note: a second, smaller line.
    """

    row: int
    column: int
    rows: int
    columns: int
    look: str
    label: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Text at the edge of a panel, centred on element `at` (of row or column) counted from its first edge."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A grid of elements.

    id: unique in its drawing. rows, columns: its extent in elements. unit: (width, height) of one element in pixels.
    labels: boxes of look "" that only carry text, drawn over the others. grid: whether thin lines part the elements.
    heavy_rows, heavy_columns: element edges with a heavy line; outlines: boxes with one around. order: (row, column)
    of elements; a line connects those that are neighbours, beside their labels.
    biggest: font size of labels where they have room.
    flat: too many boxes to outline and label (MOST_BOXES): printed as one path for each look.
    """

    id: str
    title: str
    rows: int
    columns: int
    unit: tuple[float, float]
    boxes: tuple[Box, ...] = ()
    labels: tuple[Box, ...] = ()
    top: tuple[Tick, ...] = ()
    left: tuple[Tick, ...] = ()
    grid: bool = False
    heavy_rows: tuple[int, ...] = ()
    heavy_columns: tuple[int, ...] = ()
    outlines: tuple[Box, ...] = ()
    order: tuple[tuple[int, int], ...] = ()
    flat: bool = False
    biggest: float = 12.0
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """Pixels of the grid alone."""
        return self.columns * self.unit[0]

    @property
    def height(self) -> float:
        return self.rows * self.unit[1]

    @property
    def margin(self) -> tuple[float, float]:
        """Pixels at the left of and above the grid, for ticks and title."""
        above = (TITLE if self.title else 0.0) + (TICK if self.top else 0.0)
        return (TICK_WIDTH if self.left else 0.0, above)

    def at(self, x: float, y: float) -> Panel:
        """The panel with its grid's corner at (x, y) of the drawing."""
        return replace(self, x=x, y=y)


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend: a look and what it means."""

    look: str
    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """title: one line. about: a sentence or two below it, which screen readers get as the description."""

    title: str
    about: str
    panels: tuple[Panel, ...]
    legend: tuple[Key, ...] = field(default=())

    @property
    def extent(self) -> tuple[float, float]:
        """(width, height) in pixels that the panels and their titles take, from (0, 0)."""
        across = max(p.x + max(p.width, LETTER * len(p.title)) for p in self.panels)
        return across, max(p.y + p.height for p in self.panels)


def beside(panels: Iterable[Panel], gap: float = 28.0) -> tuple[Panel, ...]:
    """Panels from left to right, their grids on one line."""
    placed: list[Panel] = []
    every = list(panels)
    y = max(panel.margin[1] for panel in every)
    x = 0.0
    for panel in every:
        x += panel.margin[0]
        placed.append(panel.at(x, y))
        x += panel.width + gap
    return tuple(placed)


def stacked(panels: Iterable[Panel], gap: float = 18.0) -> tuple[Panel, ...]:
    """Panels from top to bottom, their grids under one another."""
    placed: list[Panel] = []
    every = list(panels)
    x = max(panel.margin[0] for panel in every)
    y = 0.0
    for panel in every:
        y += panel.margin[1]
        placed.append(panel.at(x, y))
        y += panel.height + gap
    return tuple(placed)


def rows(groups: Iterable[tuple[Panel, ...]], gap: float = 24.0) -> tuple[Panel, ...]:
    """Groups of panels that are placed already, under one another."""
    placed: list[Panel] = []
    y = 0.0
    for group in groups:
        placed += (panel.at(panel.x, y + panel.y) for panel in group)
        y = max(panel.y + panel.height for panel in placed) + gap
    return tuple(placed)
