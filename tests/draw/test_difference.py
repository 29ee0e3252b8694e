"""Two plans side by side: hatched is what the facts say differs, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layoutgen.draw import difference_drawing, draw_difference, to_svg
from layoutgen.draw.palette import TONES
from layoutgen.errors import DrawError
from layoutgen.facts import c_owners
from layoutgen.plan import Plan
from layoutgen.plan.model import OperandName
from tests.draw.conftest import NAMES, plans_of
from tests.draw.picture import Read, read
from tests.draw.words import first_elements, stage_words

PAIRS = (
    ("warptile_128x128", "salykov_128x256x8"),
    ("three_stages", "values_apart"),
    ("odd_k", "conflicts"),
    ("fine", "salykov_128x128x8"),
    ("dense", "conflicts"),  # without padding, word 64 is x 64 of one and k 1 of the other
    ("ladder_05_thread_tile_2d", "ladder_06_vectorised"),
    ("triton_f16_64x64x32", "triton_f16_64x128x32"),
)
ONE_SIDED = (("ladder_02_coalesced", "ladder_03_shared"), ("warptile_128x128", "registers"))


def pair_of(names: tuple[str, str]) -> tuple[Plan, Plan]:
    """Drafts share a name, which the picture needs to tell apart."""
    first, second = (replace(plans_of(name)[0], name=name) for name in names)
    return first, second


def differs(mine: dict, other: dict) -> set:
    return {at for at, what in mine.items() if other.get(at) != what}


def look(panel: Read) -> dict[tuple[int, int], str]:
    return dict(np.ndenumerate(panel.look))


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_elements_whose_owner_differs_are_hatched(names: tuple[str, str]) -> None:
    plans = pair_of(names)
    panels = read(to_svg(difference_drawing(*plans)))
    owners = [dict(np.ndenumerate(c_owners(plan.tile, plan.threads).thread)) for plan in plans]
    for name, mine, other in zip(names, owners, owners[::-1], strict=True):
        changed = differs(mine, other)
        assert changed or names[0].startswith("ladder_05")  # the next rung's C is its own
        assert look(panels[f"c_{name}"]) == {
            at: "pad" if at in changed else f"t{thread // 32 % TONES}" for at, thread in mine.items()
        }


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
@pytest.mark.parametrize("letter", ["a", "b"])
def test_words_that_hold_something_else_are_hatched(names: tuple[str, str], letter: OperandName) -> None:
    plans = pair_of(names)
    drawing = difference_drawing(*plans)
    panels = read(to_svg(drawing))
    operands = [plan.in_shared(letter) for plan in plans]
    rows = [-(-stage_words(operand) // 32) for operand in operands]
    holds = [
        {word: held.get(word) for word in range(32 * count)}
        for held, count in zip(map(first_elements, operands), rows, strict=True)
    ]
    if holds[0] == holds[1]:
        assert f"{letter.upper()} lies alike" in drawing.about
        assert not [key for key in panels if key.startswith(f"smem_{letter}")]
        return
    for name, mine, other in zip(names, holds, holds[::-1], strict=True):
        shown = look(panels[f"smem_{letter}_{name}"])
        absent = object()
        changed = {word for word, held in mine.items() if other.get(word, absent) != held}
        for (row, bank), tone in shown.items():
            held = mine[32 * row + bank]
            plain = "panel" if held is None else f"t{held[1] % TONES}"
            assert tone == ("pad" if 32 * row + bank in changed else plain)


@pytest.mark.parametrize("names", [*ONE_SIDED, *((b, a) for a, b in ONE_SIDED)], ids="-".join)
def test_shared_memory_that_only_one_has_is_shown_of_that_one(names: tuple[str, str]) -> None:
    plans = pair_of(names)
    drawing = difference_drawing(*plans)
    (mine,) = (name for name, plan in zip(names, plans, strict=True) if plan.stages)
    panels = read(to_svg(drawing))
    assert [key for key in panels if key.startswith("smem")] == [f"smem_{letter}_{mine}" for letter in "ab"]
    for operand in plans[names.index(mine)].shared_operands:
        assert f"{operand.name.upper()} is in shared memory only in {mine}." in drawing.about
        held = first_elements(operand)
        for (row, bank), tone in look(panels[f"smem_{operand.name}_{mine}"]).items():
            at = held.get(32 * row + bank)
            assert tone == ("panel" if at is None else f"t{at[1] % TONES}")


def test_without_shared_memory_only_owners_are_compared() -> None:
    drawing = difference_drawing(*pair_of(("ladder_01_naive", "ladder_02_coalesced")))
    assert {panel.id.split("_")[0] for panel in drawing.panels} == {"c"}
    assert "A is in shared memory in neither. B is in shared memory in neither." in drawing.about
    # All but the four on the diagonal of both.
    assert "C: 124 of 128 and 1,020 of 1,024 elements have another owner." in drawing.about


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_and_itself(name: str) -> None:
    drawing = difference_drawing(plans_of(name)[0], plans_of(name)[0])
    svg = to_svg(drawing)
    panels = read(svg)
    assert [key.split(" (")[1] for key in panels] == ["first)", "second)"]
    assert not any("pad" in panel.look for panel in panels.values())
    assert "C: 0 of " in drawing.about
    same = "lies alike" if plans_of(name)[0].stages else "is in shared memory in neither"
    assert f"A {same}" in drawing.about and f"B {same}" in drawing.about


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_it_is_small_and_its_panels_are_apart(names: tuple[str, str]) -> None:
    drawing = difference_drawing(*pair_of(names))
    assert len(to_svg(drawing).encode()) < 300_000
    for i, a in enumerate(drawing.panels):
        for b in drawing.panels[:i]:
            apart_x = a.x - a.margin[0] >= b.x + b.width or b.x - b.margin[0] >= a.x + a.width
            assert apart_x or a.y - a.margin[1] >= b.y + b.height or b.y - b.margin[1] >= a.y + a.height


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_the_legend_and_the_caption_tell_what_is_drawn(names: tuple[str, str]) -> None:
    plans = pair_of(names)
    drawing = difference_drawing(*plans)
    deepest = max(plan.tile.block[2] for plan in plans)
    warps = max(plan.tile.warps.size for plan in plans)
    for key in drawing.legend:
        kind, _, told = key.text.partition(" ")
        count = warps if kind == "warp" else deepest
        if kind in ("warp", "k"):
            of_one = [int(each) for each in told.removeprefix("= ").removesuffix(", ..").split(", ")]
            assert of_one == list(range(of_one[0], count, TONES))[:2] and key.look == f"t{of_one[0]}"
            assert told.endswith("..") == (of_one[0] + 2 * TONES < count)
    labels = {box.label for panel in drawing.panels if panel.id.startswith("c_") for box in panel.boxes}
    assert ("Numbers in C are lanes." in drawing.about) == any(map(str.isdigit, labels))
    words = any(panel.id.startswith("smem_") for panel in drawing.panels)
    assert (
        ("32 words make a row" in drawing.about) == words == any(key.text.startswith("k =") for key in drawing.legend)
    )


def test_lanes_too_fine_for_numbers_are_not_announced() -> None:
    plan = plans_of("fine")[0]
    assert "are lanes" not in difference_drawing(plan, plan).about


def test_kinds_of_file(tmp_path: Path) -> None:
    plans = pair_of(PAIRS[0])
    assert draw_difference(*plans, tmp_path / "x.svg").read_text() == to_svg(difference_drawing(*plans))
    assert draw_difference(*plans, tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(DrawError, match=r"\.svg, \.png"):
        draw_difference(*plans, tmp_path / "x.html")
    assert len(list(tmp_path.iterdir())) == 2
