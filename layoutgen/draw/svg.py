"""Drawing -> SVG: small, sharp, readable by screen readers, in the reader's light or dark.

Text stays text. Each panel is a group ``<g id=.. data-unit="W H" transform="translate(X Y)">`` in pixels, so that
element (row, column) lies at (column W, row H) within it.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from html import escape

import numpy as np

from layoutgen.draw.cells import runs
from layoutgen.draw.model import TICK, Box, Drawing, Key, Panel
from layoutgen.draw.palette import Theme, style

MARGIN, HEAD, LINE, KEY = 24.0, 24.0, 17.0, 20.0
LEAST_WIDTH = 560.0
ADVANCE = 0.62  # widest average advance of a digit or letter, in font sizes (DejaVu Sans; the others are narrower)
NOTE = 0.78  # the size of a note beside its label's
ORDER = 0.94  # where in an element the line of its panel's order runs down, or across
CLEAR = 0.86  # the part of an element with such a line that its label may take
SMALLEST = 5.0  # font size in a cell; what needs a smaller one is left out


def to_svg(drawing: Drawing, theme: Theme = "auto") -> str:
    """The picture as one SVG document. The same Drawing gives the same text."""
    across, down = drawing.extent
    width = max(LEAST_WIDTH, across + 2 * MARGIN, len(drawing.title) * 17 * ADVANCE + 2 * MARGIN)
    about = textwrap.wrap(drawing.about, max(20, int((width - 2 * MARGIN) / (12.5 * 0.54))))
    above = MARGIN + HEAD + LINE * len(about) + 10
    left = (width - across) / 2 if across < width - 2 * MARGIN else MARGIN
    keys, keys_height = _legend(drawing.legend, width - 2 * MARGIN)
    height = above + down + (16 + keys_height if keys else 0) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{_t(drawing.title)}</title>',
        f'<desc id="desc">{_t(drawing.about)}</desc>',
        f"<style>{style(theme)}</style>",
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path d="M1 0v6" class="hatch" stroke-width="1.5"/></pattern></defs>',
        '<rect class="paper" width="100%" height="100%"/>',
        f'<text x="{_n(MARGIN)}" y="{_n(MARGIN + 14)}" font-size="17" font-weight="bold">{_t(drawing.title)}</text>',
    ]
    for index, line in enumerate(about):
        y = MARGIN + HEAD + LINE * index + 12
        parts.append(f'<text class="soft" x="{_n(MARGIN)}" y="{_n(y)}" font-size="12.5">{_t(line)}</text>')
    for panel in drawing.panels:
        parts += _panel(panel, left, above)
    if keys:
        parts.append(f'<g id="legend" transform="translate({_n(MARGIN)} {_n(above + down + 16)})" font-size="12">')
        parts += [*keys, "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def panel_svg(panel: Panel) -> str:
    """One panel's group alone, its grid's corner at (0, 0): what a page shows inside an SVG of its own."""
    return "\n".join(_panel(panel.at(0, 0), 0, 0))


def _panel(panel: Panel, left: float, above: float) -> Iterator[str]:
    width, height = panel.unit
    yield (
        f'<g id="{_t(panel.id)}" data-unit="{_n(width)} {_n(height)}" data-extent="{panel.columns} {panel.rows}" '
        f'transform="translate({_n(left + panel.x)} {_n(above + panel.y)})">'
    )
    if panel.title:
        y = -(TICK if panel.top else 0) - 8
        yield f'<text x="0" y="{_n(y)}" font-size="12.5" font-weight="bold">{_t(panel.title)}</text>'
    if panel.flat:
        yield from _flat(panel)
    else:
        yield from _boxes(panel)
    yield from _lines(panel)
    yield from _labels(panel, [*panel.boxes, *panel.labels] if not panel.flat else panel.labels)
    yield from _ticks(panel)
    yield "</g>"


def _boxes(panel: Panel) -> Iterator[str]:
    """One rect a box, grouped by look so that it is written once."""
    width, height = panel.unit
    looks: dict[str, list[Box]] = defaultdict(list)
    for box in panel.boxes:
        looks[box.look].append(box)
    for look, boxes in looks.items():
        yield f'<g class="box {look}">'
        for box in boxes:
            place = f'x="{_n(box.column * width)}" y="{_n(box.row * height)}"'
            yield f'<rect {place} width="{_n(box.columns * width)}" height="{_n(box.rows * height)}"/>'
        yield "</g>"


def _flat(panel: Panel) -> Iterator[str]:
    """Runs as strokes one element thick, in units of elements: six or seven bytes a run, whatever the pattern."""
    looks = list(dict.fromkeys(box.look for box in panel.boxes))
    grid = np.full((panel.rows, panel.columns), -1, dtype=np.int64)
    for box in panel.boxes:
        grid[box.row : box.row + box.rows, box.column : box.column + box.columns] = looks.index(box.look)
    paths: list[list[str]] = [[] for _ in looks]
    for row in range(panel.rows):
        pens = [0] * len(looks)
        for start, length, look in runs(grid[row]):
            if look < 0:
                continue
            move = f"m{start - pens[look]} 0" if pens[look] else f"M{start} {row}.5"
            paths[look].append(f"{move}h{length}")
            pens[look] = start + length
    width, height = panel.unit
    yield f'<g transform="scale({_n(width)} {_n(height)})" shape-rendering="crispEdges" fill="none">'
    for name, path in zip(looks, paths, strict=True):
        yield f'<path class="s-{name}" d="{"".join(path)}"/>'
    yield "</g>"


def _lines(panel: Panel) -> Iterator[str]:
    width, height = panel.unit
    if panel.grid:
        thin = "".join(f"M0 {_n(row * height)}h{_n(panel.width)}" for row in range(1, panel.rows))
        thin += "".join(f"M{_n(column * width)} 0v{_n(panel.height)}" for column in range(1, panel.columns))
        yield f'<path class="line" d="{thin}"/>'
    if panel.order:
        path = ""
        for a, b in zip(panel.order, panel.order[1:], strict=False):
            by_rows, by_columns = b[0] - a[0], b[1] - a[1]
            if abs(by_rows) + abs(by_columns) == 1:
                x, y = (a[1] + (ORDER if by_rows else 0.5)) * width, (a[0] + (0.5 if by_rows else ORDER)) * height
                path += f"M{_n(x)} {_n(y)}" + (f"v{_n(by_rows * height)}" if by_rows else f"h{_n(by_columns * width)}")
        yield f'<path class="order" d="{path}"/>'
    heavy = "".join(f"M0 {_n(row * height)}h{_n(panel.width)}" for row in panel.heavy_rows)
    heavy += "".join(f"M{_n(column * width)} 0v{_n(panel.height)}" for column in panel.heavy_columns)
    for box in panel.outlines:
        across, down = _n(box.columns * width), _n(box.rows * height)
        heavy += f"M{_n(box.column * width)} {_n(box.row * height)}h{across}v{down}h-{across}z"
    heavy += f"M0 0h{_n(panel.width)}v{_n(panel.height)}h{_n(-panel.width)}z"
    yield f'<path class="strong" d="{heavy}"/>'


def _labels(panel: Panel, boxes: Iterable[Box]) -> Iterator[str]:
    """Texts in the middle of their boxes, grouped by size and look; what does not fit is left out.

    Boxes of one extent share a size, that of the longest text among them.
    """
    width, height = panel.unit
    every = list(boxes)
    longest: dict[tuple[int, int, bool], tuple[int, int]] = defaultdict(lambda: (1, 1))
    for box in every:
        label, note = longest[box.rows, box.columns, bool(box.note)]
        longest[box.rows, box.columns, bool(box.note)] = max(label, len(box.label)), max(note, len(box.note))
    groups: dict[tuple[float, str], list[str]] = defaultdict(list)
    for box in every:
        across, down = box.columns * width, box.rows * height
        x, y = box.column * width + across / 2, box.row * height + down / 2
        if panel.order:
            across, down = across * CLEAR, down * CLEAR
        look = "on" if box.look == "mark" else "soft" if box.look == "panel" else ""
        lengths = longest[box.rows, box.columns, bool(box.note)]
        tall = 1.85 if box.note else 0.95  # capitals, their distance and a little air
        for index, text in enumerate((box.label, box.note)):
            scale = NOTE if index else 1.0
            size = scale * min(panel.biggest, (down - 3) / tall, (across - 2) / (ADVANCE * lengths[index] * scale))
            size = int(size * 2) / 2
            if text and size >= SMALLEST:
                shift = 0.36 * size if not box.note else (1.05 * size if index else -0.07 * size)
                groups[size, look].append(f'<text x="{_n(x)}" y="{_n(y + shift)}">{_t(text)}</text>')
    for (size, look), texts in groups.items():
        looks = f'class="{look}" ' if look else ""
        yield f'<g {looks}font-size="{_n(size)}" text-anchor="middle">'
        yield from texts
        yield "</g>"


def _ticks(panel: Panel) -> Iterator[str]:
    width, height = panel.unit
    if panel.top:
        yield '<g class="soft" font-size="9.5" text-anchor="middle">'
        for tick in panel.top:
            yield f'<text x="{_n((tick.at + 0.5) * width)}" y="-4">{_t(tick.text)}</text>'
        yield "</g>"
    if panel.left:
        yield '<g class="soft" font-size="9.5" text-anchor="end">'
        for tick in panel.left:
            yield f'<text x="-5" y="{_n((tick.at + 0.5) * height + 3.4)}">{_t(tick.text)}</text>'
        yield "</g>"


def _legend(keys: Iterable[Key], width: float) -> tuple[list[str], float]:
    """The legend's lines, and the height that it takes when it flows within `width`."""
    parts, x, y = [], 0.0, 0.0
    for key in keys:
        wide = 26 + len(key.text) * 12 * 0.56 + 18
        if x and x + wide > width:
            x, y = 0.0, y + KEY
        parts.append(f'<rect class="{key.look}" x="{_n(x)}" y="{_n(y)}" width="18" height="13" rx="2"/>')
        parts.append(f'<rect class="line" x="{_n(x)}" y="{_n(y)}" width="18" height="13" rx="2"/>')
        parts.append(f'<text x="{_n(x + 25)}" y="{_n(y + 10.6)}">{_t(key.text)}</text>')
        x += wide
    return parts, y + KEY if parts else 0.0


def _n(number: float) -> str:
    """A coordinate with at most two digits after the point."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _t(text: str) -> str:
    """Escaped, for text and attributes alike; XML has no control characters."""
    return escape("".join(c if c.isprintable() else " " for c in text))
