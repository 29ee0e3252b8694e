"""A picture agrees with the facts: it is read back from the SVG, element by element."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from layoutgen import spec
from layoutgen.draw import LEVELS, SHARED_LEVELS, level_drawing, to_svg
from layoutgen.draw.levels import MOST_TILES
from layoutgen.draw.palette import TONES
from layoutgen.errors import DrawError, RequestError
from layoutgen.facts import access_facts, c_owners, copy_owners, shared_banks, shared_words
from layoutgen.facts.banks import wavefronts
from layoutgen.plan import Plan
from layoutgen.plan import plan as plans_from
from layoutgen.plan.model import OperandName
from layoutgen.plan.schedule import work
from tests.draw.conftest import NAMES, SHARED_NAMES, WITHOUT_STAGES, levels_of, plans_of
from tests.draw.picture import Read, read
from tests.plan.drafts import Draft

MOST_BYTES = 300_000


def shown(plan: Plan, level: str, **options: object) -> dict[str, Read]:
    return read(to_svg(level_drawing(plan, level, **options)))  # type: ignore[arg-type]


def ends(plans: tuple[Plan, ...]) -> set[Plan]:
    """The first variant and the last: the widest copies and the narrowest."""
    return {plans[0], plans[-1]}


def scheduled(raster: str, group: int) -> Plan:
    return plans_from(spec.loads(Draft(raster=raster, group=group).text()))[0]


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
        assert {label.removeprefix("warp ").split(" ")[0] for label in panel.label[warp == number]} == {str(number)}
    narrow = not panel.label[0, 0].startswith("warp")
    assert ("Numbers are warps" in level_drawing(drawn, "warp").about) == narrow == (drawn.name == "ladder_01_naive")


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


@pytest.mark.parametrize("name", SHARED_NAMES)
@pytest.mark.parametrize("letter", ["a", "b"])
def test_the_word_of_each_element(name: str, letter: OperandName) -> None:
    for plan in ends(plans_of(name)):
        operand = plan.in_shared(letter)
        panel = shown(plan, f"smem_{letter}")[f"smem_{letter}"]
        words = shared_words(operand.shared)
        stage, before = operand.shared.stage_elements, int(shared_banks(plan, operand)[0, 0])
        holds = np.full(panel.look.size, "panel", dtype=object)
        holds[before : before + stage] = "pad"
        holds[before + words] = tones(np.indices(words.shape)[1])
        assert (panel.look.reshape(-1) == holds).all()
        if words.size > 4096:
            assert not panel.texts
            continue
        at = {divmod(before + int(word), 32): f"{x},{k}" for (x, k), word in np.ndenumerate(words)}
        assert panel.texts == at
        assert {(x, k): bank for (_, bank), (x, k) in zip(at, np.ndindex(words.shape), strict=True)} == dict(
            np.ndenumerate(shared_banks(plan, operand))
        )


@pytest.mark.parametrize("name", SHARED_NAMES)
@pytest.mark.parametrize("letter", ["a", "b"])
def test_the_copier_of_each_element(name: str, letter: OperandName) -> None:
    for plan in ends(plans_of(name)):
        operand = plan.in_shared(letter)
        copy = operand.copy
        owners = copy_owners(copy, operand.tile)
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


@pytest.mark.parametrize("name", WITHOUT_STAGES)
@pytest.mark.parametrize("letter", ["a", "b"])
def test_what_the_lanes_of_a_warp_load(name: str, letter: OperandName) -> None:
    """Worked out from who owns C: a lane loads the rows of A, and the columns of B, of the elements that it owns."""
    for plan in ends(plans_of(name)):
        operand = plan.operand(letter)
        owners = c_owners(plan.tile, plan.threads)
        lines = owners.thread if letter == "a" else owners.thread.T
        panels = [panel for key, panel in shown(plan, f"copy_{letter}").items() if key.startswith("copy")]
        label, look = (
            np.concatenate([each if letter == "a" else each.T for each in part])
            for part in ([panel.label for panel in panels], [panel.look for panel in panels])
        )
        drawing = level_drawing(plan, f"copy_{letter}")
        assert label.shape == operand.tile
        vector = operand.copy.read_vector
        together: dict[str, set[tuple[int, int]]] = {}
        for x, line in enumerate(lines):
            lanes = sorted({int(thread) for thread in line if thread < 32})
            for k in range(operand.tile[1]):
                if not lanes:
                    assert (look[x, k], label[x, k]) == ("panel", "")
                    continue
                who, number = label[x, k].split(" ")
                assert look[x, k] == f"t{int(number[1:]) % TONES}"
                known = "all" if len(lanes) == 32 else f"{lanes[0]}..{lanes[-1]}" if len(lanes) > 1 else str(lanes[0])
                assert who == known or (who == f"{lanes[0]},{lanes[1]}.." and lanes[-1] - lanes[0] >= len(lanes))
                together.setdefault(label[x, k], set()).add((x, k))
        assert ("panel" in look) == any("other warps" in key.text for key in drawing.legend)
        # A pass of some lanes is one access: neighbours along the mode that it runs along.
        for places in together.values():
            xs, ks = ({place[i] for place in places} for i in (0, 1))
            run, other = (xs, ks) if operand.copy.read_mode == "x" else (ks, xs)
            assert len(other) == 1 and sorted(run) == list(range(min(run), min(run) + vector))
        told = re.findall(r"A pass of a warp moves ([\d.]+) sectors? of 32 bytes", drawing.about)
        (cost,) = (each for each in access_facts(plan) if each.name == f"load_{letter}")
        assert [float(each) for each in told] == (
            [] if operand.contiguous is None else [pytest.approx(cost.sectors / cost.requests, rel=5e-3)]
        )


def test_the_two_naive_kernels_differ_in_what_a_warp_loads() -> None:
    """The point of the ladder's second rung: 32 sectors of A become one, and one of B four that are full."""
    told = {
        (name, letter): re.findall(
            r"moves (\d+) .*? bytes(.*?):", level_drawing(plans_of(name)[0], f"copy_{letter}").about
        )
        for name in WITHOUT_STAGES[:2]
        for letter in "ab"
    }
    assert told == {
        ("ladder_01_naive", "a"): [("32", ", of which what it asks for would fill 4")],
        ("ladder_01_naive", "b"): [("1", "")],
        ("ladder_02_coalesced", "a"): [("1", "")],
        ("ladder_02_coalesced", "b"): [("4", "")],
    }


@pytest.mark.parametrize("name", WITHOUT_STAGES)
@pytest.mark.parametrize("level", SHARED_LEVELS)
def test_pictures_of_shared_memory_are_refused_where_there_is_none(name: str, level: str) -> None:
    for plan in plans_of(name):
        with pytest.raises(DrawError, match="stages in it") as caught:
            level_drawing(plan, level)
        assert "shared.stages: 0" in str(caught.value.got)
        allowed = str(caught.value.allowed).split(", ")
        assert sorted((*allowed, *SHARED_LEVELS)) == sorted(LEVELS)
        instead = str(caught.value.fix).split(",")[0].removeprefix("--level ")
        assert instead in allowed and instead[-1] == (level[-1] if level != "banks" else "a")
        for each in allowed:
            assert level_drawing(plan, each).panels


def lanes_words(panel: Read) -> dict[int, list[tuple[int, int]]]:
    """lane -> (bank, word) of each of its cells."""
    found: dict[int, list[tuple[int, int]]] = {}
    for (lane, bank), word in panel.texts.items():
        found.setdefault(lane, []).append((bank, int(word)))
    return found


def test_the_banks_of_a_load(in_shared: Plan) -> None:
    panels = shown(in_shared, "banks")
    titles = {panel.id: panel.title for panel in level_drawing(in_shared, "banks").panels}
    owners = c_owners(in_shared.tile, in_shared.threads)
    for operand in in_shared.shared_operands:
        panel = panels[f"banks_fragment_{operand.name}"]
        words, banks = shared_words(operand.shared), shared_banks(in_shared, operand)
        # Independently of the load's own layouts: each lane reads the words of its first values, or of its first one
        # for several k.
        along_x, depth = (operand.fragment.vector, 1) if operand.fragment.mode == "x" else (1, operand.fragment.vector)
        assert ("of k = 0 .. 3" in titles[f"banks_fragment_{operand.name}"]) == (depth == 4)
        axis = "mn".index(operand.x)
        value = (owners.value_m, owners.value_n)[axis]
        expected = {}
        for lane in range(32):
            own = owners.thread == lane
            xs = [np.nonzero(own & (value == v))[axis][0] for v in range(along_x)]
            expected[lane] = sorted((int(banks[x, k]), int(words[x, k])) for x in xs for k in range(depth))
        assert {lane: sorted(each) for lane, each in lanes_words(panel).items()} == expected


@pytest.mark.parametrize("name", SHARED_NAMES)
def test_the_phases_of_an_access(name: str) -> None:
    for plan in ends(plans_of(name)):
        panels = shown(plan, "banks")
        drawn = {panel.id: panel for panel in level_drawing(plan, "banks").panels}
        assert len(panels) == 8
        for access in (
            each for operand in plan.shared_operands for each in (operand.fragment.load, operand.copy.write)
        ):
            panel, title = panels[f"banks_{access.name}"], drawn[f"banks_{access.name}"].title
            lanes = lanes_words(panel)
            addresses = [4 * min(word for _, word in lanes[lane]) if lane in lanes else None for lane in range(32)]
            phases = drawn[f"wavefronts_{access.name}"].boxes
            total = sum(int(box.label) for box in phases)
            assert total == wavefronts(addresses, access.bytes, "load" if access.opcode == "ld.shared" else "store")
            least = "at least " if access.opcode == "cp.async" else ""
            assert f"{access.opcode} of {access.bytes} bytes: {least}{total} wavefront" in title
            (known,) = (each for each in access_facts(plan) if each.name == access.name)
            estimate = f"(check: {known.wavefronts / known.requests:.3g})"
            assert (estimate in title) == (access.opcode == "cp.async")
            assert ("no conflict" in title) == (total == len(phases))
            assert sorted(lane for box in phases for lane in range(box.row, box.row + box.rows)) == sorted(lanes)
            for box in phases:
                together = {at: lanes[at] for at in range(box.row, box.row + box.rows)}
                # Marked are the cells that share their bank with another word of the phase.
                words = {cell for cells in together.values() for cell in cells}
                marked = {(b, w) for b, w in words if any(b == other and w != v for other, v in words)}
                assert marked == {
                    (bank, word)
                    for lane, cells in together.items()
                    for bank, word in cells
                    if panel.look[lane, bank] == "mark"
                }
                assert (box.label != "1") == (box.look == "mark") == bool(marked)


def test_wavefronts_of_well_known_tilings() -> None:
    for name, told in (
        ("warptile_128x128", {"fragment_a": 2, "fragment_b": 4, "copy_a": 1, "copy_b": 4}),
        ("salykov_128x128x8", {"fragment_a": 2, "fragment_b": 2}),
        ("conflicts", {"copy_a": 8}),
        ("two_way", {"copy_a": 2}),
    ):
        panels = shown(plans_of(name)[0], "banks")
        for access, count in told.items():
            assert sum(int(text) for text in panels[f"wavefronts_{access}"].texts.values()) == count


def test_the_order_of_the_multiply_adds_of_a_thread(drawn: Plan) -> None:
    """Numbered as they are issued, in the colour of the operand that a step has in common with the one before."""
    panel = shown(drawn, "order")["order"]
    rows, columns = (layout.size for layout in drawn.tile.value_mode)
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
        for x, y, text in re.findall(r'<text x="([\d.]+)" y="([\d.]+)">([^<]+)<', texts):
            right, below = float(x) % width + 0.32 * float(size) * len(text), float(y) % height + 0.2 * float(size)
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
