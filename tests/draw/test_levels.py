"""A picture agrees with the facts: it is read back from the SVG, element by element."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from layoutgen import spec
from layoutgen.draw import LEVELS, level_drawing, to_svg
from layoutgen.draw.levels import MOST_TILES
from layoutgen.draw.palette import TONES
from layoutgen.errors import DrawError, RequestError
from layoutgen.facts import c_owners
from layoutgen.plan import Plan
from layoutgen.plan import plan as plans_from
from layoutgen.plan.schedule import work
from tests.draw.conftest import NAMES, levels_of, plans_of
from tests.draw.picture import ends, shown, text, tones
from tests.plan.drafts import Draft

MOST_BYTES = 300_000


def scheduled(raster: str, group: int) -> Plan:
    return plans_from(spec.loads(Draft(raster=raster, group=group).text()))[0]


def test_the_warp_of_each_element(drawn: Plan) -> None:
    warp = c_owners(drawn.tile, drawn.threads).warp
    panel = shown(drawn, "warp")["warp"]
    assert (panel.covered == 1).all()
    assert (panel.look == tones(warp)).all()
    for number in range(drawn.tile.warps.size):
        assert {label.removeprefix("warp ").split(" ")[0] for label in panel.label[warp == number]} == {str(number)}
    narrow = not panel.label[0, 0].startswith("warp")
    assert ("Numbers are warps" in level_drawing(drawn, "warp").about) == narrow == (drawn.name == "ladder_01_naive")


def test_the_lane_of_each_element_of_warp_0(drawn: Plan) -> None:
    owners = c_owners(drawn.tile, drawn.threads)
    panels, about = shown(drawn, "lane"), level_drawing(drawn, "lane").about
    panel = panels["lane"]
    first = owners.warp == 0
    assert ("atom" in panels) == ("first atom" in about) == drawn.uses_atoms
    if drawn.uses_atoms:
        atom_m, atom_n, _ = drawn.atom.layouts.shape_mnk
        assert (panels["atom"].label == text(owners.lane)[:atom_m, :atom_n]).all()
        assert (panels["atom"].look == tones(owners.lane)[:atom_m, :atom_n]).all()
    assert (panel.covered == 1).all()
    assert (panel.look == np.where(first, tones(owners.lane), "panel")).all()
    assert ("too small for numbers" in about) == (not panel.label[first].any())
    if "too small for numbers" in about:
        return
    assert (panel.label[first] == text(owners.lane)[first]).all()
    if drawn.name != "ladder_01_naive":  # whose warps' columns are too narrow for that
        assert (panel.label[~first] == text(owners.warp, "warp {}")[~first]).all()


@pytest.mark.parametrize("thread", [0, 45])
def test_the_values_of_one_thread(drawn: Plan, thread: int) -> None:
    owners = c_owners(drawn.tile, drawn.threads)
    panels = shown(drawn, "value", thread=thread)
    mine = owners.thread == thread
    assert (panels["value"].look == np.where(mine, "mark", tones(owners.warp))).all()
    labelled = panels["value"].label != ""  # the numbers of small pieces are left out
    assert (panels["value"].label[labelled] == text(owners.lane)[labelled]).all()
    assert (panels["a"].look[:, 0] == np.where(mine.any(axis=1), "mark", "panel")).all()
    assert (panels["b"].look[0] == np.where(mine.any(axis=0), "mark", "panel")).all()
    registers = panels["registers"].label
    for m, n in zip(*np.nonzero(mine), strict=True):
        i, j = owners.value_m[m, n], owners.value_n[m, n]
        assert registers[i, j] == str(i + registers.shape[0] * j)
    assert registers.size == mine.sum()


def test_a_piece_of_values_ends_in_a_heavy_line(drawn: Plan) -> None:
    owners = c_owners(drawn.tile, drawn.threads)
    m, n = (np.unique(each) for each in np.nonzero(owners.thread == 0))
    heavy = shown(drawn, "value")["registers"].heavy
    lines = [f"M0 {22 * at}h{31 * n.size}" for at in np.flatnonzero(np.diff(m) > 1) + 1]
    lines += [f"M{31 * at} 0v{22 * m.size}" for at in np.flatnonzero(np.diff(n) > 1) + 1]
    assert heavy.removesuffix("z").split("M0 0h")[0] == "".join(lines)  # then the frame


def test_the_order_of_the_multiply_adds_of_a_thread(drawn: Plan) -> None:
    """Numbered as they are issued, in the colour of the operand that a step has in common with the one before."""
    panel = shown(drawn, "order")["order"]
    rows, columns = (layout.size for layout in drawn.tile.value_mode)
    if drawn.uses_atoms:  # a warp's: of its tile over the atom's, in which a thread has rows of 8 and pairs of columns
        atom_m, atom_n, _ = drawn.atom.layouts.shape_mnk
        rows, columns = 8 * rows // atom_m, 4 * columns // atom_n
        assert (rows * atom_m * drawn.tile.warps[0].size, columns * atom_n * drawn.tile.warps[1].size) == (
            drawn.tile.block[:2]
        )
    assert panel.label.shape == (rows, columns)
    places = [(value % rows, value // rows) for value in drawn.order.values()]
    assert [panel.label[place] for place in places] == list(map(str, range(rows * columns)))
    looks = ["t0" if a == i else "t1" if b == j else "paper" for (a, b), (i, j) in pairwise(places)]
    assert [panel.look[place] for place in places] == ["paper", *looks]
    said = level_drawing(drawn, "order").about
    assert f" {sum(look != 'paper' for look in looks)} of the {rows * columns} " in said


@pytest.mark.parametrize("shape", [None, (1000, 700, 40), (1, 1, 1)])
def test_the_order_of_the_blocks(drawn: Plan, shape: tuple[int, int, int] | None) -> None:
    panel = shown(drawn, "block", shape=shape)["block"]
    block_m, block_n, _ = drawn.tile.block
    m, n, k = shape or (8 * block_m, 8 * block_n, 8)
    assert panel.label.shape == (min(MOST_TILES, -(-m // block_m)), min(MOST_TILES, -(-n // block_n)))
    for block, each in enumerate(work(drawn.schedule, drawn.tile, m, n, k)):
        row, column = each.m // block_m, each.n // block_n
        if max(row, column) >= MOST_TILES:
            continue
        assert panel.label[row, column] == f"{block} ({row},{column})"
        assert panel.look[row, column] == f"t{block // drawn.schedule.group % TONES}"


@pytest.mark.parametrize(("raster", "group"), [("along_m", 3), ("along_n", 4), ("along_n", 1)])
@pytest.mark.parametrize("shape", [None, (300, 1500, 64), (1900, 1900, 64)])
def test_a_line_joins_every_two_blocks_that_follow_as_neighbours(
    raster: str, group: int, shape: tuple[int, int, int] | None
) -> None:
    """It starts in the one, ends in the other, and crosses no text."""
    tiling = scheduled(raster, group)
    block_m, block_n, _ = tiling.tile.block
    m, n, k = shape or (8 * block_m, 8 * block_n, 8)
    places = [(each.m // block_m, each.n // block_n) for each in work(tiling.schedule, tiling.tile, m, n, k)]
    expected = [(a, b) for a, b in pairwise(places) if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    svg = to_svg(level_drawing(tiling, "block", shape=shape))
    (group,) = re.findall(r'data-unit="([\d.]+) ([\d.]+)"', svg)
    width, height = map(float, group)
    (path,) = re.findall(r'class="order" d="([^"]*)"', svg)
    lines = [(float(x), float(y), way, float(by)) for x, y, way, by in re.findall(r"M(\S+) (\S+)([hv])([-\d.]+)", path)]
    ends = [(x + by * (way == "h"), y + by * (way == "v")) for x, y, way, by in lines]
    assert [
        ((int(y // height), int(x // width)), (int(v // height), int(u // width)))
        for (x, y, *_), (u, v) in zip(lines, ends, strict=True)
    ] == expected
    grid = svg[svg.index("data-unit") : svg.index('id="legend"')]
    for size, texts in re.findall(r'<g font-size="([\d.]+)" text-anchor="middle">(.*?)</g>', grid, re.S):
        for x, y, word in re.findall(r'<text x="([\d.]+)" y="([\d.]+)">([^<]+)<', texts):
            right, below = float(x) % width + 0.32 * float(size) * len(word), float(y) % height + 0.2 * float(size)
            assert right < 0.94 * width and below < 0.94 * height


def test_a_group_of_one_is_no_group() -> None:
    for raster, walk in (
        ("along_m", "walk n, and share rows of A in L2"),
        ("along_n", "walk m, and share columns of B in L2"),
    ):
        drawing = level_drawing(scheduled(raster, 1), "block")
        assert walk in drawing.about and "one colour: one block (" in drawing.legend[0].text


def test_a_grid_of_too_many_tiles_says_which_is_drawn(drawn: Plan) -> None:
    with pytest.raises(DrawError, match="at most") as caught:
        level_drawing(drawn, "block", shape=(9_999_999, 9_999_999, 8))
    shape = tuple(map(int, str(caught.value.fix).removeprefix("--shape ").split(",")))
    assert level_drawing(drawn, "block", shape=shape) == level_drawing(drawn, "block")  # type: ignore[arg-type]


def test_a_large_grid_is_cut_and_says_so(drawn: Plan) -> None:
    drawing = level_drawing(drawn, "block", shape=(10_000, 5_000, 64))
    assert "Shown: the first 32 × 32 tiles" in drawing.about or drawn.tile.block[0] > 64
    assert len(to_svg(drawing)) < MOST_BYTES
    ragged = 10_000 % drawn.tile.block[0]
    assert (f"{ragged} of {drawn.tile.block[0]}" in drawing.about) == (ragged > 0)


def test_only_the_fine_tiling_goes_without_numbers(drawn: Plan) -> None:
    said = " ".join(level_drawing(drawn, level).about for level in levels_of(drawn))
    fine = drawn is plans_of("fine")[0]
    if (
        drawn.uses_atoms
    ):  # lanes hold pairs of a row, so that a larger tile's have no room: an atom beside it shows them
        assert ("too small for numbers" in said) == (max(drawn.tile.block[:2]) > 64)
    else:
        assert ("too small for numbers" in said, "Too fine for the numbers" in said) == (fine, fine)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", LEVELS)
def test_pictures_are_small_and_the_same_twice(name: str, level: str) -> None:
    for plan in ends(plans_of(name)):
        if level not in levels_of(plan):
            continue
        svg = to_svg(level_drawing(plan, level))
        assert len(svg.encode()) < MOST_BYTES
        assert svg == to_svg(level_drawing(plan, level))


@pytest.mark.parametrize(
    ("level", "options", "said"),
    [
        ("wrap", {}, "did you mean warp"),
        ("value", {"thread": 4096}, r"0 \.\."),
        ("value", {"thread": -1}, r"0 \.\."),
        ("block", {"shape": (0, 8, 8)}, "at least 1"),
        ("block", {"shape": (1 << 30, 1 << 30, 8)}, "block tiles"),
    ],
)
def test_what_can_not_be_drawn(drawn: Plan, level: str, options: dict[str, object], said: str) -> None:
    with pytest.raises((DrawError, RequestError), match=said):
        level_drawing(drawn, level, **options)  # type: ignore[arg-type]
