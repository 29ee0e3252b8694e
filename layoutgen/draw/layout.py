"""A bare layout or swizzle as a grid of offsets: mode 0 runs down, mode 1 to the right."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from layoutgen.algebra import ComposedLayout, Layout, Offsets, View, evaluate
from layoutgen.algebra.expression import show
from layoutgen.algebra.int_tuple import IntTuple, flatten
from layoutgen.draw.cells import merge
from layoutgen.draw.model import Box, Drawing, Key, Panel, Tick, beside
from layoutgen.draw.palette import TONES, tone
from layoutgen.errors import DrawError
from layoutgen.facts import BANKS

MOST_LABELLED = 2048  # cells with a number each: 64 x 32
CLOSEST_LINES = 12.0  # pixels
MOST_CELLS = 1 << 15  # 256 x 128: with more the file would grow past any use


def read_layout(text: str) -> Layout | ComposedLayout:
    """Text of the algebra, also a call such as zipped_divide(..), -> its layout.

    Raises:
        LayoutError: it is no expression.
        DrawError: its value is no layout.
    """
    value = evaluate(text)
    if isinstance(value, View) and isinstance(value.layout, (Layout, ComposedLayout)) and value.offset == 0:
        value = value.layout
    if isinstance(value, tuple):  # a shape alone is the compact layout, as for parse
        value = Layout(value)
    if not isinstance(value, (Layout, ComposedLayout)):
        raise DrawError(
            "a picture shows the offsets of a layout",
            got=show(value),
            fix="write a layout such as (8,4):(4,1), or compose a swizzle with one: Sw<3,0,3> o 0 o (8,8):(8,1)",
        )
    return value


def layout_drawing(layout: Layout | ComposedLayout, *, banks: bool = False, picks: Layout | None = None) -> Drawing:
    """A layout of one or two modes, each nested as deep as it likes, as a grid of its offsets.

    Heavier lines stand where an outer mode of a nested one advances. Colours tell offsets modulo 8, or with `banks` the
    bank of 4-byte words, four banks a colour. From 2048 cells the numbers are left out, and colours tell eighths of
    the offsets instead. `picks` marks the indices that another layout gives: the composition of this layout with it.

    Raises:
        DrawError: the layout has more than two modes or 32768 elements, or extents of the run time; `picks` reaches
            outside of it, or it has too many elements for numbers.
        LayoutError: its offsets are no integers.
    """
    if layout.rank > 2:
        raise DrawError(
            "a picture has rows and columns, so it shows a layout of one or two modes",
            got=f"{layout.rank} modes in {layout}",
            fix="group modes, as in ((4,2),8):((1,4),8), or draw one of them with get(layout, k)",
        )
    if type(layout.size) is not int:
        raise DrawError("a layout that is drawn has extents known now", got=layout)
    if layout.size > MOST_CELLS:
        raise DrawError(
            "a picture has a bounded number of cells",
            got=f"{layout.size} in {layout}",
            allowed=f"at most {MOST_CELLS}",
            fix="draw a part of it, such as composition(layout, <64,32>)",
        )
    offsets = _grid(layout)
    rows, columns = offsets.shape
    heavy = [_boundaries(layout, mode) for mode in range(2)] if layout.rank == 2 else [(), _boundaries(layout, None)]
    labelled = offsets.size <= MOST_LABELLED
    tones, meaning = _tones(offsets, banks, labelled)
    panel = _labelled(offsets, tones, banks) if labelled else _flat(tones)
    picked = [] if picks is None else [int(index) for index in picks.offsets()]
    if picked and not (labelled and 0 <= min(picked) and max(picked) < offsets.size):
        raise DrawError("what is marked are cells of a small layout", got=picks, allowed=f"0 .. {offsets.size - 1}")
    panel = replace(panel, boxes=tuple(_mark(box, box.row + rows * box.column in picked) for box in panel.boxes))
    step = 1 if labelled else max(8, 2 ** int(math.log2(max(rows, columns) / 8)))
    marked = Panel(
        **{name: getattr(panel, name) for name in ("id", "title", "rows", "columns", "unit", "boxes", "flat")},
        top=tuple(Tick(c, str(c)) for c in range(0, columns, step)),
        left=tuple(Tick(r, str(r)) for r in range(0, rows, step)) if layout.rank == 2 else (),
        heavy_rows=_apart(heavy[0], panel.unit[1]),
        heavy_columns=_apart(heavy[1], panel.unit[0]),
    )
    cosize = int(offsets.max()) + 1
    order = [int(offsets[index % rows, index // rows]) for index in picked]
    domain = f"{rows} × {columns} coordinates" if layout.rank == 2 else f"{columns} coordinates"
    nested = " Heavier lines: an outer mode advances." if any(heavy) else ""
    return Drawing(
        str(layout) if picks is None else f"{layout} o {picks}",
        f"{domain} → offsets {int(offsets.min())} .. {cosize - 1}. "
        + ("Each cell is the offset of its coordinate" if labelled else "Colours tell the offset of each coordinate")
        + (", below it the bank" if banks and labelled else "")
        + ("; mode 0 runs down, mode 1 to the right." if layout.rank == 2 else ".")
        + nested
        + (f" {picks} picks the marked ones, in this order: {', '.join(map(str, order))}." if picked else ""),
        beside([marked]),
        (
            *(Key(tone(index), text) for index, text in enumerate(meaning)),
            *([Key("mark", f"picked by {picks}")] if picked else []),
        ),
    )


def _mark(box: Box, picked: bool) -> Box:
    return replace(box, look="mark") if picked else box


def _grid(layout: Layout | ComposedLayout) -> Offsets:
    """Offsets in an array (rows, columns); a layout of one mode is one row."""
    offsets = np.asarray(layout.offsets())
    rows = _size(layout, 0) if layout.rank == 2 else 1
    return offsets.reshape(-1, rows).T  # the first mode runs fastest


def _size(layout: Layout | ComposedLayout, mode: int) -> int:
    return int(layout[mode].size)


def _boundaries(layout: Layout | ComposedLayout, mode: int | None) -> tuple[int, ...]:
    """Edges between elements of a mode (None: of the whole) where its outer modes advance."""
    extents = flatten(_shape(layout if mode is None else layout[mode]))
    inner, total = extents[0], math.prod(extents)
    return tuple(range(inner, total, inner)) if 1 < inner < total else ()


def _apart(edges: tuple[int, ...], pixels: float) -> tuple[int, ...]:
    """The edges, unless their lines would lie so close that they hide the cells."""
    return edges if not edges or edges[0] * pixels >= CLOSEST_LINES else ()


def _shape(layout: Layout | ComposedLayout) -> IntTuple:
    while isinstance(layout, ComposedLayout):  # its coordinates are those of the innermost layout
        layout = layout.layout_b
    return layout.shape


def _tones(offsets: Offsets, banks: bool, labelled: bool) -> tuple[Offsets, list[str]]:
    """Tone of each cell, and what each tone means."""
    if banks:
        return offsets % BANKS // 4, [f"banks {4 * t} .. {4 * t + 3}" for t in range(TONES)]
    if labelled:
        return offsets % TONES, [f"offset mod {TONES} = {t}" for t in range(TONES)] if offsets.size > 1 else []
    low, extent = int(offsets.min()), int(offsets.max() - offsets.min()) + 1
    edges = [low + -(-t * extent // TONES) for t in range(TONES + 1)]
    return (offsets - low) * TONES // extent, [f"offset {edges[t]} .. {edges[t + 1] - 1}" for t in range(TONES)]


def _labelled(offsets: Offsets, tones: Offsets, banks: bool) -> Panel:
    rows, columns = offsets.shape
    boxes = tuple(
        Box(r, c, 1, 1, tone(int(tones[r, c])), str(offsets[r, c]), f"bank {offsets[r, c] % BANKS}" if banks else "")
        for r in range(rows)
        for c in range(columns)
    )
    side = 44.0 if max(rows, columns) <= 16 else 32.0
    return Panel("layout", "", rows, columns, (side, side * (0.9 if banks else 0.75)), boxes)


def _flat(tones: Offsets) -> Panel:
    rows, columns = tones.shape
    side = min(6.0, 1024 / max(rows, columns))
    boxes = tuple(Box(r.row, r.column, r.rows, r.columns, tone(r.value)) for r in merge(tones))
    return Panel("layout", "", rows, columns, (side, side), boxes, flat=True)
