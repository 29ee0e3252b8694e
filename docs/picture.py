"""Draw the picture in the README again: what one thread owns of the block tile of C, and what it reads of A and B.

python docs/picture.py          # docs/warptile_128x128.svg
"""

from __future__ import annotations

from pathlib import Path

from layoutgen import draw

NAME, THREAD = "warptile_128x128", 45
FILE = Path(__file__).parent / f"{NAME}.svg"


def picture() -> str:
    """The picture as it should be."""
    return draw.to_svg(draw.level_drawing(draw.find_plan(NAME), "value", thread=THREAD))


if __name__ == "__main__":
    FILE.write_text(picture())
