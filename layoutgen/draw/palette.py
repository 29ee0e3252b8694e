"""Colours that colour-blind people can tell apart, for light and dark paper, and the CSS that applies them.

Eight tones, found by a search that kept them apart for normal sight and for the three kinds of dichromacy (Machado,
Oliveira and Fernandes 2009) and dark or light enough for text on top; `tests/draw/test_palette.py` measures both. A
picture never relies on them alone: what a tone says, a label or a hatching says too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Theme = Literal["auto", "light", "dark"]

TONES = 8


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of one theme. paper: the background; ink, soft: text; line: thin lines; strong: heavy ones.

    mark: what the picture is about, under mark_ink; hatch: lines over what holds nothing; tones: labelled with ink.
    """

    paper: str
    panel: str
    ink: str
    soft: str
    line: str
    strong: str
    mark: str
    mark_ink: str
    hatch: str
    tones: tuple[str, ...]


LIGHT = Palette(
    paper="#ffffff",
    panel="#f1f3f5",
    ink="#1b1f24",
    soft="#57606a",
    line="#c4cad1",
    strong="#30363d",
    mark="#b3124e",
    mark_ink="#ffffff",
    hatch="#8a939c",
    tones=("#9fd3fb", "#e0ba76", "#82e6b6", "#fadcee", "#a6a8f6", "#d68f7d", "#e2f594", "#bab4b8"),
)
DARK = Palette(
    paper="#14171b",
    panel="#1f242a",
    ink="#f2f4f7",
    soft="#a4adb7",
    line="#3d454e",
    strong="#c9d1d9",
    mark="#ffd43b",
    mark_ink="#14171b",
    hatch="#6b757f",
    tones=("#2662aa", "#9a4f10", "#175a44", "#8b5574", "#4534b8", "#7d1f14", "#655f34", "#494266"),
)
FONT = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',Verdana,sans-serif"


def tone(index: int) -> str:
    """The look of the index-th of many: tones repeat."""
    return f"t{index % TONES}"


def alike(index: int, count: int) -> str:
    """Which of `count` have the tone of the index-th, at most two of them by number.

    >>> alike(1, 8), alike(1, 10), alike(1, 32)
    ('1', '1, 9', '1, 9, ..')
    """
    every = range(index, count, TONES)
    return ", ".join(map(str, every[:2])) + (", .." if len(every) > 2 else "")


def rules(palette: Palette) -> str:
    """CSS of every look: t0 .. t7, panel, pad, mark; and of text and lines."""
    p = palette
    fills = {
        **{tone(i): colour for i, colour in enumerate(p.tones)},
        "paper": p.paper,
        "panel": p.panel,
        "mark": p.mark,
    }
    # A look is a fill; as the stroke of a run (see `svg`) its name begins with s-.
    looks = "".join(f".{look}{{fill:{colour}}}.s-{look}{{stroke:{colour}}}" for look, colour in fills.items())
    return (
        f"{looks}.hatch{{stroke:{p.hatch}}}"
        f".box{{stroke:{p.paper}}}.line{{stroke:{p.line}}}.strong{{stroke:{p.strong}}}.order{{stroke:{p.strong}}}"
        f"text{{fill:{p.ink}}}.soft,.soft text{{fill:{p.soft}}}.on text{{fill:{p.mark_ink}}}"
    )


def style(theme: Theme) -> str:
    """The style sheet of a picture that stands alone; "auto" follows the reader's choice of light or dark."""
    plain = (
        f"text{{font-family:{FONT}}}.line,.strong,.order{{fill:none}}.box{{stroke-width:.75}}.line{{stroke-width:.5}}"
        ".strong{stroke-width:1.5}.order{stroke-width:1.25;opacity:.55}.pad{fill:url(#hatch)}"
        ".box.pad{stroke:none}"
    )
    if theme != "auto":
        return plain + rules(DARK if theme == "dark" else LIGHT)
    return f"{plain}{rules(LIGHT)}@media(prefers-color-scheme:dark){{{rules(DARK)}}}"


def variables(palette: Palette) -> str:
    """The same colours as CSS custom properties, for a page: --paper, --ink, .., --t0 .. --t7."""
    names = ("paper", "panel", "ink", "soft", "line", "strong", "mark", "mark_ink", "hatch")
    plain = "".join(f"--{name.replace('_', '-')}:{getattr(palette, name)};" for name in names)
    return plain + "".join(f"--t{index}:{colour};" for index, colour in enumerate(palette.tones))
