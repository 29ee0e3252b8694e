"""Pictures of shared memory, of copies and of banks agree with the facts: read back from the SVG."""

from __future__ import annotations

import re

import numpy as np
import pytest

from layoutgen.draw import LEVELS, SHARED_LEVELS, level_drawing
from layoutgen.draw.banks import brought_k
from layoutgen.draw.palette import TONES
from layoutgen.errors import DrawError
from layoutgen.facts import (
    access_facts,
    atom_owners,
    c_owners,
    copy_owners,
    first_word,
    fragment_executions,
    shared_banks,
    shared_offsets,
)
from layoutgen.facts.banks import wavefronts
from layoutgen.plan import Plan
from layoutgen.plan.model import AtomFragment, OperandName
from layoutgen.plan.storage import ITEMSIZE
from tests.draw.conftest import ATOM_NAMES, SHARED_NAMES, WITHOUT_STAGES, plans_of
from tests.draw.picture import Read, ends, shown
from tests.draw.words import first_elements, stage_words


@pytest.mark.parametrize("name", SHARED_NAMES)
@pytest.mark.parametrize("letter", ["a", "b"])
def test_the_word_of_each_element(name: str, letter: OperandName) -> None:
    for plan in ends(plans_of(name)):
        operand = plan.in_shared(letter)
        panel = shown(plan, f"smem_{letter}")[f"smem_{letter}"]
        words, banks, size = first_elements(operand), shared_banks(plan, operand), ITEMSIZE[operand.dtype]
        before = first_word(plan, operand) % 32
        holds = np.full(panel.look.size, "panel", dtype=object)
        holds[before : before + stage_words(operand)] = "pad"
        # Of words that hold several k, neighbours have the tones that follow each other.
        first = [k for _, k in words.values()]
        several = max(4 // size, 1) if all(k * size % 4 == 0 for k in first) else 1
        for word, (_, k) in words.items():
            holds[before + word] = f"t{k // several % TONES}"
        assert (panel.look.reshape(-1) == holds).all()
        told = level_drawing(plan, f"smem_{letter}")
        assert {key.look for key in told.legend} == set(holds) - {"panel"}
        for key in told.legend:
            if key.look != "pad":
                known = [int(each) for each in key.text.removeprefix("k = ").removesuffix(", ..").split(", ")]
                assert known == sorted({k for k in first if f"t{k // several % TONES}" == key.look})[:2]
        if not panel.texts:
            assert len(words) > 2048 and "with the k" in told.about
            continue
        assert len(words) <= 4096
        assert panel.texts == {divmod(before + word, 32): f"{x},{k}" for word, (x, k) in words.items()}
        for word, at in words.items():
            assert (before + word - banks[at]) % 32 in range(max(size // 4, 1))


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
        words = shared_offsets(operand.shared)
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
        if isinstance(operand.fragment, AtomFragment):
            continue
        words, banks = shared_offsets(operand.shared), shared_banks(in_shared, operand)
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


@pytest.mark.parametrize("name", ATOM_NAMES)
def test_the_banks_of_an_atom_s_load(name: str) -> None:
    """What its lanes hold afterwards, by the facts, are the elements in the words that are drawn; each once."""
    for plan in ends(plans_of(name)):
        panels, drawing = shown(plan, "banks"), level_drawing(plan, "banks")
        titles = {panel.id: panel.title for panel in drawing.panels}
        for operand in plan.shared_operands:
            fragment, size, atom_k = operand.fragment, ITEMSIZE[operand.dtype], plan.atom.layouts.shape_mnk[2]
            assert isinstance(fragment, AtomFragment)
            id = f"banks_fragment_{operand.name}"
            told = re.search(r"\(warp (\d+), instruction (\d+) of k = (\d+) \.\. (\d+)\)", titles[id])
            assert told is not None
            warp, instruction, first, last = map(int, told.groups())
            assert last - first + 1 == atom_k and first % atom_k == 0
            owners = atom_owners(plan, operand)
            place = plan.tile.warp_mode["mn".index(operand.x)].offsets()[owners.warp]
            begins = (plan.threads.m if operand.x == "m" else plan.threads.n)[1](warp)
            held = (place == begins) & (owners.k_block == first // atom_k)
            held &= owners.register // fragment.registers == instruction
            begin = shared_offsets(operand.shared)[held] * size
            expected = {int(byte) // 4 + part for byte in begin for part in range(max(size // 4, 1))}
            cells = [cell for each in lanes_words(panels[id]).values() for cell in each]
            assert {word for _, word in cells} == expected
            assert all(bank == (first_word(plan, operand) + word) % 32 for bank, word in cells)
            every = [brought_k(plan, operand, each) for each in fragment_executions(plan, operand)]
            assert (every[0], every[-1][-1], len(set(every))) == (range(atom_k), plan.tile.block[2] - 1, plan.k_blocks)
            if fragment.load.opcode != "ld.shared":  # 8 rows of 16 bytes a matrix
                assert len(cells) == 4 * 8 * fragment.registers


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
