"""Drawing -> PNG through resvg, with the font that layoutgen carries: the same bytes on every machine."""

from __future__ import annotations

from pathlib import Path

from layoutgen.draw.model import Drawing
from layoutgen.draw.palette import Theme
from layoutgen.draw.svg import to_svg
from layoutgen.errors import DrawError

FONTS = Path(__file__).parent / "fonts"
COVERED = frozenset(
    map(chr, [*range(0x20, 0x7F), 0x0A, 0xA0, 0xB7, 0xD7, 0x2013, 0x2014, 0x2026, *range(0x2190, 0x2194)])
)
SCALE = 2.0  # pixels of the image per pixel of the SVG: sharp on screens and in slides
MOST_PIXELS = 1 << 26


def to_png(drawing: Drawing, theme: Theme = "light", scale: float = SCALE) -> bytes:
    """The picture as a PNG of `scale` times the SVG's size; a PNG has one theme, "auto" is light.

    Raises:
        DrawError: resvg can't render it.
    """
    import resvg_py  # here, since a library of 3 MB is not needed to write an SVG

    svg = to_svg(drawing, "dark" if theme == "dark" else "light")
    # System fonts are looked through only for letters that ours lack: a spec's `about` may be in any language.
    ours = COVERED.issuperset(svg)
    try:
        data = resvg_py.svg_to_bytes(
            svg_string=svg,
            skip_system_fonts=ours,
            font_files=[str(FONTS / "DejaVuSans.ttf"), str(FONTS / "DejaVuSans-Bold.ttf")],
            font_family="DejaVu Sans",
            sans_serif_family="DejaVu Sans",
            zoom=scale,
        )
    except ValueError as error:
        raise DrawError("a PNG can be rendered", got=error, fix="write an .svg, which every browser shows") from error
    return bytes(data)
