"""The page's data are the plan's, its text is escaped, and it needs nothing from elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from layoutgen.draw import aside, to_html
from layoutgen.draw.budgets import Aside, Budget, Clocks, Launch, Point, Roofline, Row
from layoutgen.draw.roofline import roofline_svg
from layoutgen.draw.timeline import stage_names
from layoutgen.errors import RequestError
from layoutgen.facts import c_owners, copy_owners, facts, first_word, fragment_executions, shared_offsets
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import Plan
from layoutgen.plan.model import AtomFragment
from layoutgen.plan.schedule import work
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.problem import packed
from tests.draw.conftest import ATOM_NAMES, plans_of

H200 = DEVICES["h200"]
NASTY = "</script><script>alert(1)</script><b>&"


class Page(HTMLParser):
    """The tags of a page, with their attributes, and the text of its elements by id."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.id: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.id = dict(attrs).get("id")

    def handle_data(self, data: str) -> None:
        if self.id:
            self.text[self.id] = self.text.get(self.id, "") + data


def page(plan: Plan, thread: int = 0) -> str:
    return to_html(plan, aside(facts(plan, H200)), thread=thread)


def data_of(plan: Plan) -> dict:
    return json.loads(Page(page(plan)).text["data"])


def table(first_i: list, first_j: list, then_i: list, then_j: list, shape: tuple[int, int]) -> np.ndarray:
    """As the script fills it: element -> (thread, i, j)."""
    found = np.full((*shape, 3), -1)
    for thread, (i0, j0) in enumerate(zip(first_i, first_j, strict=True)):
        for i, i1 in enumerate(then_i):
            for j, j1 in enumerate(then_j):
                found[i0 + i1, j0 + j1] = thread, i, j
    return found


def test_the_owners_that_the_script_finds_are_the_facts(drawn: Plan) -> None:
    data, owners = data_of(drawn), c_owners(drawn.tile, drawn.threads)
    c = data["c"]
    found = table(c["thread_m"], c["thread_n"], c["value_m"], c["value_n"], drawn.tile.block[:2])
    assert (found == np.stack([owners.thread, owners.value_m, owners.value_n], axis=-1)).all()
    assert data["block"] == list(drawn.tile.block)


def test_the_words_and_copiers_that_the_script_finds_are_the_facts(in_shared: Plan) -> None:
    for operand, data in zip(in_shared.shared_operands, data_of(in_shared)["operands"], strict=True):
        shared = data["shared"]
        for stage in range(in_shared.stages):
            # As the script does: the element's offset, the bits that a swizzle changes, then words.
            plain = np.add.outer(shared["element_x"], shared["element_k"])
            mask, shift = shared["swizzle"]["mask"], shared["swizzle"]["shift"]
            offset = plain ^ ((plain & mask) << -shift if shift < 0 else (plain & mask) >> shift)
            words = offset * data["itemsize"] // 4 + shared["word_stage"][stage]
            assert data["itemsize"] == ITEMSIZE[operand.dtype]
            assert (words == shared_offsets(operand.shared, stage) * ITEMSIZE[operand.dtype] // 4).all()
        copy = data["copy"]
        found = table(copy["thread_x"], copy["thread_k"], copy["element_x"], copy["element_k"], operand.tile)
        owners = copy_owners(operand.copy, operand.tile)
        assert (found == np.stack([owners.thread, owners.element_x, owners.element_k], axis=-1)).all()
        depth, vector = operand.fragment.depth, operand.fragment.vector
        if in_shared.uses_atoms:
            depth, vector = in_shared.atom.layouts.shape_mnk[2], max(operand.fragment.load.bytes // data["itemsize"], 1)
        assert (shared["depth"], data["vector"], data["along"]) == (depth, vector, operand.fragment.mode)
        assert data["atom"] == in_shared.uses_atoms == (shared["loads"] is not None)


@pytest.mark.parametrize("name", ATOM_NAMES)
def test_the_loads_that_the_script_finds_bring_each_element_of_an_atom(name: str) -> None:
    """Each of a warp's loads brings as many elements as its registers hold, and those of its atoms only."""
    plan = plans_of(name)[0]
    for operand, data in zip(plan.shared_operands, data_of(plan)["operands"], strict=True):
        fragment, atom_k = operand.fragment, plan.atom.layouts.shape_mnk[2]
        assert isinstance(fragment, AtomFragment)
        loads = np.array(data["shared"]["loads"])
        assert loads.shape == (operand.tile[0], atom_k)
        warps = plan.tile.warps["mn".index(operand.x)].size
        of_each = fragment.registers * 32 * max(4 // data["itemsize"], 1) * warps
        assert np.bincount(loads.reshape(-1)).tolist() == [of_each] * fragment.vectors
        if fragment.registers <= fragment.of_atom:  # an atom's registers are of whole loads
            atom_x = plan.atom.layouts.shape_mnk["mn".index(operand.x)]
            atoms = loads[: fragment.atoms * atom_x] * fragment.registers // fragment.of_atom
            assert (atoms == np.arange(fragment.atoms * atom_x)[:, None] // atom_x).all()


def test_what_the_script_knows_of_an_operand(drawn: Plan) -> None:
    for operand, data in zip(drawn.operands, data_of(drawn)["operands"], strict=True):
        assert np.array(data["copy"]["pass"]).shape == (operand.copy.element_x.size, operand.copy.element_k.size)
        assert (data["name"].lower(), data["x"], data["contiguous"]) == (operand.name, operand.x, operand.contiguous)
        assert (data["shared"] is None) == (drawn.stages == 0)
        if not drawn.stages:
            assert (data["vector"], data["along"]) == (operand.copy.read_vector, operand.copy.read_mode)


def test_what_has_no_subject_is_left_out_and_said_to_be(drawn: Plan) -> None:
    html = page(drawn)
    assert ("No shared memory, so there are no stages of it" in html) == (drawn.stages == 0)
    assert ("all threads have met" in html) == (drawn.stages > 0)
    staged = drawn.stages > 0 and any(each.copy.atom.through_registers for each in drawn.operands)
    assert ("a store has waited for the loads" in html) == ("or not all stored" in html) == staged
    assert (">A in registers<" in html) == ("A in registers" in stage_names(drawn))
    assert (">stage 0<" in html) == (drawn.stages > 0)
    assert data_of(drawn)["stages"] == list(stage_names(drawn))


def test_blocks_are_in_launch_order(drawn: Plan) -> None:
    m, n, k = drawn.tile.block
    assert data_of(drawn)["blocks"] == [[w.m, w.n] for w in work(drawn.schedule, drawn.tile, 8 * m, 8 * n, 8 * k)]


def test_one_file_that_loads_nothing(drawn: Plan) -> None:
    html = page(drawn)
    for tag, attributes in Page(html).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base"), tag
        assert not {"src", "href", "srcset", "xlink:href", "action"} & attributes.keys()
    # The namespace of SVG is a name, not an address to visit.
    assert set(re.findall(r"https?://[^\"'\s<)]+", html)) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in html and not re.findall(r"\burl\(|\bfetch\(|XMLHttpRequest|\bimport\(", html)
    assert len(html) < 400_000


def test_the_same_twice_and_another_for_each_variant() -> None:
    plans = plans_of("warptile_128x128")
    pages = [page(plan) for plan in plans]
    assert pages == [page(plan) for plan in plans]
    assert len(set(pages)) == len(plans) > 1


def test_the_heading_names_the_atom_and_what_follows_the_sums() -> None:
    told = page(plans_of("linear_gelu_bf16_128x256x32")[0])
    assert "<dd>SM80_16x8x16_F32BF16BF16F32_TN</dd>" in told
    assert "<dt>after the sums</dt><dd>bias: one for each column (f32); gelu, exact (f32)</dd>" in told
    assert "SM80_16x8x8_F32TF32TF32F32_TN, 3 products" in page(plans_of("tf32x3_128x128x56")[0])
    assert "after the sums" not in page(plans_of("warptile_128x128")[0])


def test_text_from_the_spec_is_escaped() -> None:
    plan = replace(plans_of("warptile_128x128")[0], name=NASTY, about=NASTY, variant=NASTY)
    beside = Aside(
        NASTY,
        (Budget(NASTY, 1, 2, NASTY, NASTY),),
        (Row(NASTY, NASTY, NASTY, NASTY, NASTY, NASTY, NASTY, True, True),),
        (Clocks(NASTY, 1.0, True),),
        Roofline(1000, 10, (Point(NASTY, 3.0, 0.03),), 500, NASTY),
        Launch((1, 2, 3), 1, 0.5, NASTY, ((NASTY, NASTY),)),
    )
    clean = page(plans_of("warptile_128x128")[0])
    html = to_html(plan, beside)
    scripts = [tag for tag, _ in Page(html).tags if tag == "script"]
    assert scripts == [tag for tag, _ in Page(clean).tags if tag == "script"]
    assert "<b>&" not in html and html.count("&lt;b&gt;&amp;") >= 20


def test_everything_has_a_name_and_ids_are_unique(drawn: Plan) -> None:
    read = Page(page(drawn))
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in read.tags:
        for reference in ("aria-labelledby", "aria-describedby", "for"):
            assert set((attributes.get(reference) or "").split()) <= set(ids)
    live = [attributes["id"] for _, attributes in read.tags if attributes.get("aria-live") == "polite"]
    assert live == ["summary", "moment"]


def test_budgets_are_the_facts(drawn: Plan) -> None:
    for device in (H200, DEVICES["rtx3090"]):
        found = facts(drawn, device)
        known, resident = found.registers, found.occupancy
        shown = {each.name: (each.used, each.limit) for each in aside(found).budgets}
        assert shown == {
            "registers": (known.minimum, known.cap),
            "shared memory": (drawn.shared_bytes, device.shared_per_block),
            "threads": (drawn.threads.threads, device.max_threads_per_block),
            "resident warps": (round(resident.fraction * device.max_warps_per_sm), device.max_warps_per_sm),
        }
        assert " and ".join(resident.limited_by) in aside(found).budgets[-1].note
        assert aside(facts(drawn, device, built=200)).budgets[0].used == 200


def numbers(texts: list[str]) -> list[float]:
    return [float(text.removeprefix("≥ ") or "0") for text in texts]


def test_accesses_are_the_facts(drawn: Plan) -> None:
    found = facts(drawn, H200)
    rows = aside(found).accesses
    assert [row.name for row in rows] == [each.name for each in found.accesses]
    for row, each in zip(rows, found.accesses, strict=True):
        totals = [each.wavefronts, each.conflict_free, each.sectors, each.ideal_sectors]
        shown = numbers([row.wavefronts, row.conflict_free, row.sectors, row.ideal])
        assert shown == pytest.approx([total / each.requests for total in totals], rel=5e-3)
        assert row.wavefronts.startswith("≥") == (each.opcode == "cp.async")
        assert (row.poor_banks, row.poor_sectors) == (totals[0] > totals[1], totals[2] > totals[3])


def test_the_page_marks_what_could_cost_less() -> None:
    html = page(plans_of("conflicts")[0])
    assert (
        html.count('class="poor"')
        == sum(row.poor_banks + row.poor_sectors for row in aside(facts(plans_of("conflicts")[0], H200)).accesses)
        > 0
    )


def test_clocks_and_ceiling_are_the_facts(drawn: Plan) -> None:
    found = facts(drawn, H200)
    beside = aside(found)
    assert {each.name: each.clocks for each in beside.clocks} == found.bound.clocks
    assert [each.name for each in beside.clocks if each.limits] == [found.bound.limiter]
    assert beside.roofline is not None
    assert (beside.roofline.ceiling, beside.roofline.limiter) == (found.ceiling, found.bound.limiter)
    assert f"Ceiling {found.ceiling:,.1f} TFLOP/s, set by {found.bound.limiter}." in page(drawn)


def test_a_problem_is_the_facts(drawn: Plan) -> None:
    found = facts(drawn, H200, packed(drawn, 4096, 4096, 4096))
    known, launch = found.problem, aside(found).launch
    assert known is not None and launch is not None
    assert launch.extents == (4096, 4096, 4096)
    assert launch.rounds - 1 + launch.last == pytest.approx(known.waves.waves)
    shared = dict(launch.words).get("tiles that blocks share")
    assert shared == (f"{known.waves.shared.tiles} of {known.waves.tiles}" if known.waves.shared.blocks else None)
    figures = [float(figure.rstrip("%")) / 100 for _, figure in launch.words if figure != shared]
    assert figures == pytest.approx(
        [*([] if shared else [launch.last]), known.waves.efficiency, known.waves.useful, known.raster.l2_hits],
        abs=0.006,
    )
    html = to_html(drawn, aside(found))
    widths = re.findall(r"width:([\d.]+)%", html[html.index('class="waves"') : html.index('class="pairs"')])
    assert float(widths[-1]) == pytest.approx(100 * launch.last, abs=0.01)
    assert len(widths) == min(launch.rounds, 16) and set(widths[:-1]) <= {"100.00"}
    assert ("<span>…</span>" in html) == (launch.rounds > 16)
    assert 'class="waves"' not in page(drawn)


def test_the_wavefronts_that_the_script_finds_are_those_of_the_load(in_shared: Plan) -> None:
    warps = in_shared.threads.threads // 32
    for operand, data in zip(in_shared.shared_operands, data_of(in_shared)["operands"], strict=True):
        shared = data["shared"]
        assert shared["first_word"] == first_word(in_shared, operand)
        executions = fragment_executions(in_shared, operand)
        assert len(executions) == len(shared["wavefronts"])
        for each in executions:
            assert each.k is not None
            first = each.k * shared["depth"] if in_shared.uses_atoms else each.k
            at = (first // shared["depth"] * shared["vectors"] + each.instruction) * warps + each.warp
            assert shared["wavefronts"][at] == [each.wavefronts, each.conflict_free]


def test_a_budget_overdrawn_says_so() -> None:
    plan = plans_of("warptile_128x128")[0]
    html = to_html(plan, Aside("tiny", (Budget("threads", 300, 200, "a block"),)))
    assert 'class="track over"' in html and "width:100.00%" in html and "300 of 200 a block" in html
    assert "Roofline" not in html


# The figures of a well-known worked example: an A6000 at 30 TFLOP/s and 768 GB/s.
@pytest.mark.parametrize(("intensity", "roof"), [(0.25, 192), (8, 6144), (16, 12288), (32, 24576), (42.67, 30000)])
def test_the_roof(intensity: float, roof: float) -> None:
    roofline = Roofline(30, 768, (Point("tile", intensity, roof / 1000),))
    assert roofline.roof(intensity) == pytest.approx(roof / 1000)
    assert roofline.ridge == pytest.approx(39.06, abs=0.01)
    svg = roofline_svg(roofline)
    assert f"at most {roof / 1000:g} TFLOP/s" in svg
    circle = re.search(r'cx="([\d.]+)" cy="([\d.]+)"', svg)
    assert circle and 0 < float(circle[1]) < 340 and 0 < float(circle[2]) < 216


@pytest.mark.parametrize(("name", "intensity"), [("warptile_128x128", 32), ("salykov_128x256x8", 128 / 3)])
def test_the_tile_stands_at_its_intensity(name: str, intensity: float) -> None:
    roofline = aside(facts(plans_of(name)[0], H200)).roofline
    assert roofline is not None and roofline.points[0].intensity == pytest.approx(intensity)


def test_a_ceiling_that_is_low_is_still_named_within_the_picture() -> None:
    """Its line begins at the axis, and no name of a point stands on it."""
    for ceiling in (0.5, 2.0, 10.0, 60.0):
        points = (Point("tile", 8.0, 38.4), Point("whole problem", 700.0, 66.9))
        svg = roofline_svg(Roofline(66.9, 4800, points, ceiling, "L1"))
        line = re.search(r'class="ceiling" d="M([\d.]+) ([\d.]+)H', svg)
        name = re.search(r'x="([\d.]+)" y="([\d.]+)" text-anchor="end" font-weight="bold">ceiling', svg)
        assert line and name
        assert float(line[1]) >= 30 and 6 + 66 <= float(name[1]) <= 328
        for y in re.findall(r'y="([\d.]+)" text-anchor="\w+" font-weight="\w+">(?:tile|whole|[\d.]+ FLOP)', svg):
            assert not float(y) - 9 < float(line[2]) < float(y) + 2


def test_a_thread_that_is_none() -> None:
    plan = plans_of("warptile_128x128")[0]
    with pytest.raises(RequestError, match=r"0 \.\. 127"):
        page(plan, 128)


def test_a_page_for_a_device_of_amd_s_shows_no_clocks() -> None:
    each = plans_of("warptile_128x128")[0]
    assert aside(facts(each, DEVICES["mi300x"])).clocks == ()
    assert aside(facts(each, DEVICES["h200"])).clocks != ()
