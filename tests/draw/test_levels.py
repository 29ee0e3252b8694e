"""A picture agrees with the facts: it is read back from the SVG, element by element."""

from __future__ import annotations

import numpy as np
import pytest

from layoutgen.draw import LEVELS, level_drawing, to_svg
from layoutgen.draw.palette import TONES
from layoutgen.errors import DrawError
from layoutgen.facts import c_owners, copy_owners, shared_words
from layoutgen.plan import Plan
from layoutgen.plan.model import Operand
from layoutgen.plan.schedule import work
from tests.draw.conftest import NAMES, plans_of
from tests.draw.picture import Read, read

MOST_BYTES = 300_000


def shown(plan: Plan, level: str, **options: object) -> dict[str, Read]:
    return read(to_svg(level_drawing(plan, level, **options)))  # type: ignore[arg-type]


def ends(plans: tuple[Plan, ...]) -> set[Plan]:
    """The first variant and the last: the widest copies and the narrowest."""
    return {plans[0], plans[-1]}


def text(numbers: np.ndarray, form: str = "{}") -> np.ndarray:
    return np.vectorize(form.format, otypes=[object])(numbers)


def tones(numbers: np.ndarray) -> np.ndarray:
    return text(numbers % TONES, "t{}")


def test_the_warp_of_each_element(drawn: Plan) -> None:
    warp = c_owners(drawn.tile, drawn.threads).warp
    panel = shown(drawn, "warp")["warp"]
    assert (panel.covered == 1).all()
    assert (panel.look == tones(warp)).all()
    for number in range(drawn.tile.warps.size):
        assert {label.split(" ")[1] for label in panel.label[warp == number]} == {str(number)}


def test_the_lane_of_each_element_of_warp_0(drawn: Plan) -> None:
    owners = c_owners(drawn.tile, drawn.threads)
    panel = shown(drawn, "lane")["lane"]
    first = owners.warp == 0
    assert (panel.covered == 1).all()
    assert (panel.look == np.where(first, tones(owners.lane), "panel")).all()
    if len(np.unique(panel.label)) == 1:
        assert "too small for numbers" in level_drawing(drawn, "lane").about
        return
    assert (panel.label[first] == text(owners.lane)[first]).all()
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("letter", ["a", "b"])
def test_the_word_of_each_element(name: str, letter: str) -> None:
    for plan in ends(plans_of(name)):
        operand: Operand = getattr(plan, letter)
        panel = shown(plan, f"smem_{letter}")[f"smem_{letter}"]
        words = shared_words(operand.shared)
        stage = operand.shared.stage_elements
        holds = np.full(panel.look.size, "panel", dtype=object)
        holds[:stage] = "pad"
        holds[words] = tones(np.indices(words.shape)[1])
        assert (panel.look.reshape(-1) == holds).all()
        if words.size > 4096:
            assert not panel.texts
            continue
        assert panel.texts == {divmod(int(word), 32): f"{x},{k}" for (x, k), word in np.ndenumerate(words)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("letter", ["a", "b"])
def test_the_copier_of_each_element(name: str, letter: str) -> None:
    for plan in ends(plans_of(name)):
        operand: Operand = getattr(plan, letter)
        copy, extent = operand.copy, plan.tile.block["mn".index(operand.x)]
        owners = copy_owners(copy, (extent, plan.tile.block[2]))
        panels = [panel for key, panel in shown(plan, f"copy_{letter}").items() if key.startswith("copy")]
        labels = [panel.label if letter == "a" else panel.label.T for panel in panels]
        label = np.concatenate(labels)
        assert label.shape == owners.thread.shape
        assert all((panel.covered == 1).all() for panel in panels)
        if not (label != "").any():
            assert "Too fine for the numbers" in level_drawing(plan, f"copy_{letter}").about
            continue
        thread, passes = (
            np.vectorize(lambda each, part=part: int(each.replace("p", "").split()[part]))(label) for part in (0, 1)
        )
        assert (thread == owners.thread).all()
        # A pass is one access: its elements of a thread are write_vector neighbours in shared memory.
        words = shared_words(operand.shared)
        for t in (0, copy.participants - 1):
            for p in range(passes.max() + 1):
                together = np.sort(words[(thread == t) & (passes == p)])
                assert (np.diff(together) == 1).all() and together.size == copy.write_vector
                assert together[0] % copy.write_vector == 0


def test_the_banks_of_a_load(drawn: Plan) -> None:
    panels = shown(drawn, "banks")
    owners = c_owners(drawn.tile, drawn.threads)
    for operand in drawn.operands:
        panel = panels[f"banks_{operand.name}"]
        words = shared_words(operand.shared)
        # Independently of the load's own layouts: each lane reads the words of its first values.
        axis = "mn".index(operand.x)
        value = (owners.value_m, owners.value_n)[axis]
        read_words = {}
        for lane in range(32):
            own = owners.thread == lane
            coordinates = [np.nonzero(own & (value == v))[axis][0] for v in range(operand.fragment.vector)]
            read_words[lane] = [int(words[x, 0]) for x in coordinates]
        expected = {(lane, word % 32): str(word) for lane, row in read_words.items() for word in row}
        assert {place: label for place, label in panel.texts.items() if place[0] < 32} == expected
        for bank in range(32):
            count = len({word for row in read_words.values() for word in row if word % 32 == bank})
            assert panel.texts.get((32, bank), "0") == str(count)
            assert (panel.look[32, bank] == "mark") == (count > 1)


@pytest.mark.parametrize("shape", [None, (1000, 700, 40), (1, 1, 1)])
def test_the_order_of_the_blocks(drawn: Plan, shape: tuple[int, int, int] | None) -> None:
    panel = shown(drawn, "block", shape=shape)["block"]
    block_m, block_n, _ = drawn.tile.block
    m, n, k = shape or (8 * block_m, 8 * block_n, 8)
    assert panel.label.shape == (-(-m // block_m), -(-n // block_n))
    for block, each in enumerate(work(drawn.schedule, drawn.tile, m, n, k)):
        row, column = each.m // block_m, each.n // block_n
        assert panel.label[row, column] == f"{block} ({row},{column})"
        assert panel.look[row, column] == f"t{block // drawn.schedule.group % TONES}"


def test_a_large_grid_is_cut_and_says_so(drawn: Plan) -> None:
    drawing = level_drawing(drawn, "block", shape=(10_000, 5_000, 64))
    assert "Shown: the first 32 × 32 tiles" in drawing.about or drawn.tile.block[0] > 64
    assert len(to_svg(drawing)) < MOST_BYTES
    ragged = 10_000 % drawn.tile.block[0]
    assert (f"{ragged} of {drawn.tile.block[0]}" in drawing.about) == (ragged > 0)


def test_only_the_fine_tiling_goes_without_numbers(drawn: Plan) -> None:
    said = " ".join(level_drawing(drawn, level).about for level in LEVELS)
    fine = drawn is plans_of("fine")[0]
    assert ("too small for numbers" in said, "Too fine for the numbers" in said) == (fine, fine)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", LEVELS)
def test_pictures_are_small_and_the_same_twice(name: str, level: str) -> None:
    for plan in ends(plans_of(name)):
        svg = to_svg(level_drawing(plan, level))
        assert len(svg.encode()) < MOST_BYTES
        assert svg == to_svg(level_drawing(plan, level))


@pytest.mark.parametrize(
    ("level", "options", "said"),
    [
        ("wrap", {}, "did you mean warp"),
        ("value", {"thread": 4096}, "0 to"),
        ("value", {"thread": -1}, "0 to"),
        ("block", {"shape": (0, 8, 8)}, "at least 1"),
        ("block", {"shape": (1 << 30, 1 << 30, 8)}, "block tiles"),
    ],
)
def test_what_can_not_be_drawn(drawn: Plan, level: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(DrawError, match=said):
        level_drawing(drawn, level, **options)  # type: ignore[arg-type]
