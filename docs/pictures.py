"""Draw the pictures of the README and the guides again.

    python docs/pictures.py

A test holds each file to what this draws. The README's screenshot is docs/screenshot.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from layoutgen import draw
from layoutgen.algebra import Layout

DOCS = Path(__file__).parent
SPEC = "warptile_128x128"


def layout(text: str, *, banks: bool = False, picks: str | None = None) -> str:
    """A layout of the algebra's guide."""
    picked = None if picks is None else Layout.parse(picks)
    return draw.to_svg(draw.layout_drawing(draw.read_layout(text), banks=banks, picks=picked))


def values(thread: int) -> str:
    """What a thread of the README's spec owns."""
    return draw.to_svg(draw.level_drawing(draw.find_plan(SPEC), "value", thread=thread))


PICTURES: dict[Path, Callable[[], str]] = {
    DOCS / f"{SPEC}.svg": lambda: values(45),
    DOCS / "pictures" / "layout.svg": lambda: layout("(4,8):(8,1)"),
    DOCS / "pictures" / "composition.svg": lambda: layout("(4,8):(8,1)", picks="8:1"),
    DOCS / "pictures" / "divide.svg": lambda: layout("logical_divide((8,6):(6,1), <4,2>)"),
    DOCS / "pictures" / "thread_value.svg": lambda: layout("((4,2),(2,2)):((1,8),(4,16))"),
    DOCS / "pictures" / "swizzle.svg": lambda: layout("Sw<3,2,3> o 0 o (8,32):(32,1)", banks=True),
    DOCS / "pictures" / "values.svg": lambda: values(35),
}


if __name__ == "__main__":
    for file, draws in PICTURES.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(draws())
