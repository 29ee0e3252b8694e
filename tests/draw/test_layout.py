"""Bare layouts and swizzles as grids."""

from __future__ import annotations

import numpy as np
import pytest

from layoutgen.algebra import Layout, evaluate
from layoutgen.draw import layout_drawing, read_layout, to_svg
from layoutgen.errors import DrawError, LayoutError
from tests.draw.picture import Read, read

LAYOUTS = [
    "(8,4):(4,1)",
    "8:2",
    "1:0",
    "(8,4)",
    "((4,8),(2,2)):((32,1),(16,8))",
    "Sw<3,0,3> o 0 o (8,8):(8,1)",
    "Sw<2,1,3> o 4 o ((2,4),8):((1,16),2)",
    "composition((8,4):(4,1), <4:2,2:1>)",
    "(4,4):(0,0)",
]


def shown(text: str, **options: bool) -> Read:
    return read(to_svg(layout_drawing(read_layout(text), **options)))["layout"]


def offsets(text: str) -> np.ndarray:
    layout = read_layout(text)
    if layout.rank == 1:
        return np.array([[layout(i) for i in range(layout.size)]])
    return np.array([[layout(i, j) for j in range(layout[1].size)] for i in range(layout[0].size)])


@pytest.mark.parametrize("text", LAYOUTS)
def test_each_cell_is_the_offset_of_its_coordinate(text: str) -> None:
    panel, expected = shown(text), offsets(text)
    assert panel.label.tolist() == [[str(offset) for offset in row] for row in expected.tolist()]
    assert panel.look.tolist() == [[f"t{offset % 8}" for offset in row] for row in expected.tolist()]


@pytest.mark.parametrize("text", LAYOUTS)
def test_each_cell_is_the_bank_of_its_word(text: str) -> None:
    panel, expected = shown(text, banks=True), offsets(text)
    assert panel.label.tolist() == [[f"{offset} bank {offset % 32}" for offset in row] for row in expected.tolist()]
    assert panel.look.tolist() == [[f"t{offset % 32 // 4}" for offset in row] for row in expected.tolist()]


def edges(panel: Read) -> tuple[set[float], set[float]]:
    """(y of horizontal, x of vertical) heavy lines, but for the frame."""
    moves = [line for line in panel.heavy.split("M")[1:] if not line.startswith("0 0h")]
    across = {float(line.split()[1].split("h")[0]) for line in moves if "h" in line}
    down = {float(line.split()[0]) for line in moves if "v" in line}
    return across, down


def test_heavy_lines_stand_where_an_outer_mode_advances() -> None:
    across, down = edges(shown("((4,8),(2,2)):((32,1),(16,8))"))
    assert across == {24.0 * 4 * i for i in range(1, 8)}
    assert down == {32.0 * 2}
    assert edges(shown("(8,4):(4,1)")) == (set(), set())


@pytest.mark.parametrize(
    "text",
    [
        "(256,128):(1,256)",
        "(256,128):(128,1)",
        "Sw<3,0,3> o 0 o (256,128):(128,1)",
        "((2,128),(64,2)):((1,256),(2,128))",
    ],
)
@pytest.mark.parametrize("banks", [False, True])
def test_a_large_layout_is_small_and_right(text: str, banks: bool) -> None:
    svg = to_svg(layout_drawing(read_layout(text), banks=banks))
    assert len(svg.encode()) < 300_000
    panel, expected = read(svg)["layout"], offsets(text)
    tone = expected % 32 // 4 if banks else expected * 8 // (expected.max() + 1)
    assert (panel.covered == 1).all()
    assert (panel.look == np.vectorize("t{}".format)(tone)).all()


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("(8,4,2):(1,2,3)", DrawError, "3 modes"),
        ("(512,512)", DrawError, "at most 32768"),
        ("Sw<3,0,3>", DrawError, "offsets of a layout"),
        ("size((8,4))", DrawError, "offsets of a layout"),
        ("(8,4):(4", LayoutError, "notation|reads|there"),
        ("(2,2):(1@0,1@1)", LayoutError, "ints"),
    ],
)
def test_what_is_no_picture(text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        layout_drawing(read_layout(text))


def test_negative_offsets_are_refused_or_shown_as_they_are() -> None:
    layout = evaluate("4:-1")
    assert read(to_svg(layout_drawing(layout)))["layout"].label.tolist() == [["0", "-1", "-2", "-3"]]


def test_what_another_layout_picks_is_marked() -> None:
    layout, picks = Layout.parse("(4,8):(8,1)"), Layout.parse("(2,3):(1,9)")
    drawing = layout_drawing(layout, picks=picks)
    panel = read(to_svg(drawing))["layout"]
    offsets = [layout(picks(index)) for index in range(picks.size)]
    assert {int(label) for label in panel.label[panel.look == "mark"]} == set(offsets)
    assert f"in this order: {', '.join(map(str, offsets))}." in drawing.about
    assert drawing.title == "(4,8):(8,1) o (2,3):(1,9)"
    for outside in ("33:1", "2:-1"):
        with pytest.raises(DrawError, match=r"0 \.\. 31"):
            layout_drawing(layout, picks=Layout.parse(outside))
    with pytest.raises(DrawError, match="small layout"):
        layout_drawing(Layout.parse("(128,64):(1,128)"), picks=picks)
