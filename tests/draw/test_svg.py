"""The SVG and PNG as files: text that screen readers get, both themes, nothing from elsewhere, the same bytes twice."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from layoutgen.draw import layout_drawing, level_drawing, read_layout, to_png, to_svg
from layoutgen.draw.model import Box, Drawing, Key, Panel, beside, stacked
from layoutgen.draw.palette import DARK, LIGHT
from layoutgen.draw.png import COVERED
from layoutgen.plan import Plan
from tests.draw.conftest import levels_of
from tests.draw.picture import SVG

NASTY = 'a<b & "c" </svg><script>'


def test_title_and_description_are_there_for_screen_readers(drawn: Plan) -> None:
    for level in levels_of(drawn):
        drawing = level_drawing(drawn, level)
        root = ElementTree.fromstring(to_svg(drawing))
        assert root.get("role") == "img"
        named = {each.get("id"): each for each in root}
        title, about = (named[key] for key in root.attrib["aria-labelledby"].split())
        assert (title.tag, title.text) == (f"{SVG}title", drawing.title)
        assert (about.tag, about.text) == (f"{SVG}desc", drawing.about)
        shown = {text.text for text in root.iter(f"{SVG}text")}
        assert {key.text for key in drawing.legend} <= shown


def test_every_text_is_escaped() -> None:
    drawing = Drawing(
        NASTY, NASTY, (Panel("p", NASTY, 1, 1, (900.0, 40.0), (Box(0, 0, 1, 1, "t0", NASTY),)),), (Key("t0", NASTY),)
    )
    root = ElementTree.fromstring(to_svg(drawing))
    assert [text.text for text in root.iter(f"{SVG}text")].count(NASTY) >= 4
    assert not list(root.iter(f"{SVG}script"))


def test_control_characters_leave_the_file_well_formed() -> None:
    drawing = layout_drawing(read_layout("4:1"))
    ElementTree.fromstring(to_svg(replace(drawing, title="a\x00b\x1bc")))


def test_auto_follows_the_reader_and_a_theme_does_not() -> None:
    drawing = layout_drawing(read_layout("4:1"))
    auto, light, dark = (to_svg(drawing, theme) for theme in ("auto", "light", "dark"))
    query = auto.index("prefers-color-scheme:dark")
    assert LIGHT.tones[0] in auto[:query] and DARK.tones[0] in auto[query:]
    assert "prefers" not in light + dark
    assert DARK.tones[0] not in light and LIGHT.tones[0] not in dark


def test_nothing_is_loaded_from_elsewhere(drawn: Plan) -> None:
    svg = to_svg(level_drawing(drawn, "copy_a"))
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert re.findall(r"url\(([^)]*)\)", svg) == ["#hatch"]


def test_panels_do_not_overlap(drawn: Plan) -> None:
    for level in levels_of(drawn):
        panels = level_drawing(drawn, level).panels
        for i, a in enumerate(panels):
            for b in panels[:i]:
                apart_x = a.x - a.margin[0] >= b.x + b.width or b.x - b.margin[0] >= a.x + a.width
                apart_y = a.y - a.margin[1] >= b.y + b.height or b.y - b.margin[1] >= a.y + a.height
                assert apart_x or apart_y, (level, a.id, b.id)
            assert a.x >= a.margin[0] and a.y >= a.margin[1]


def test_rows_and_columns_of_panels() -> None:
    panel = Panel("p", "title", 2, 3, (10.0, 10.0))
    assert [(p.x, p.y) for p in beside([panel, panel], gap=5)] == [(0, 22), (35, 22)]
    assert [(p.x, p.y) for p in stacked([panel, panel], gap=5)] == [(0, 22), (0, 69)]


def test_a_title_that_is_longer_than_its_panel_has_room() -> None:
    """Letters of 12.5 pixels, which are at most 0.65 of that wide on average."""
    title = "accumulators of thread 1023"
    last = Panel("p", title, 1, 1, (31.0, 22.0)).at(900, 40)
    root = ElementTree.fromstring(to_svg(Drawing("x", "y", (last,))))
    assert float(root.attrib["width"]) >= 900 + 0.6 * 12.5 * len(title)


def test_labels_that_do_not_fit_are_left_out() -> None:
    wide = Box(0, 0, 1, 1, "t0", "12345678")
    drawing = Drawing("x", "y", (Panel("p", "", 1, 1, (20.0, 20.0), (wide,)),))
    assert "12345678" not in to_svg(drawing)
    assert "12345678" in to_svg(Drawing("x", "y", (Panel("p", "", 1, 1, (60.0, 20.0), (wide,)),)))


def pixels(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_png_is_the_picture_at_twice_its_size(theme: str) -> None:
    drawing = layout_drawing(read_layout("(8,4):(4,1)"))
    root = ElementTree.fromstring(to_svg(drawing))
    png = to_png(drawing, theme)  # type: ignore[arg-type]
    assert pixels(png) == (2 * float(root.attrib["width"]), 2 * float(root.attrib["height"]))
    assert png == to_png(drawing, theme)  # type: ignore[arg-type]


def test_a_png_shows_its_theme_and_its_text() -> None:
    drawing = layout_drawing(read_layout("(8,4):(4,1)"))
    light, dark = to_png(drawing, "light"), to_png(drawing, "dark")
    assert light != dark
    assert to_png(drawing, "auto") == light
    assert to_png(replace(drawing, title="another"), "light") != light  # the font is found: text leaves marks


def test_our_font_covers_what_pictures_say(drawn: Plan) -> None:
    for level in levels_of(drawn):
        assert COVERED >= set(to_svg(level_drawing(drawn, level)))


def test_a_title_in_any_script_is_rendered() -> None:
    drawing = replace(layout_drawing(read_layout("4:1")), title="タイル")
    assert pixels(to_png(drawing))[0] > 0
