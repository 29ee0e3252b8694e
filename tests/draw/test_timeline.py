"""The program, walked: what is multiplied was copied, met and read in order, whatever the copies and stages."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from layoutgen.draw.timeline import Moment, Stage, stage_names, timeline
from layoutgen.errors import PlanError
from layoutgen.plan import Plan
from layoutgen.plan import plan as plans_from
from layoutgen.plan.model import Advance, Barrier, CopyTile, LoadFragment, LoadTile, Mma, Program, StoreTile, Wait
from tests.draw.conftest import DRAFTS, plans_of
from tests.explain.stages import spread
from tests.kernels.small import small

TURNS = 6


def faults(plan: Plan) -> list[str]:
    """What a walk of the program does that no kernel may: read what is not ready, multiply out of order, overwrite."""
    found = []
    block_k = plan.k_blocks  # fragments of a k-tile, of which an atom's are of several k
    multiplied = []
    before: Moment | None = None
    since_met: set[int] = set()  # stages that some thread may still read
    for moment in timeline(plan, TURNS):
        found += [f"reads {moment.stages[i]}" for i in moment.reads if moment.stages[i].state != "ready"]
        # Registers may be written once all of them is stored; else parts of two tiles would be stored, and read here.
        shared = [each for each in moment.writes if each < plan.stages or not plan.stages]
        for written in shared if before is not None else ():
            old, new = before.stages[written], moment.stages[written]  # type: ignore[union-attr]
            if old.tile is not None and old.tile != new.tile and (old.tile + 1) * block_k > len(multiplied) + 1:
                found.append(f"overwrites {old} with {new}")
            if plan.stages and written in since_met:
                found.append(f"overwrites stage {written}, which some thread may still read")
        since_met = set() if moment.text.startswith("all threads meet") else since_met | set(moment.reads)
        since_met -= set(range(plan.stages, len(moment.stages))) if plan.stages else set()
        if moment.multiplies:
            tile, k = re.findall(r"tile (\w+), k = (\d+)", moment.text)[0]
            multiplied.append(-1 if tile == "None" else int(tile) * block_k + int(k))
        before = moment
    if multiplied != list(range(TURNS * block_k)):
        found.append(f"multiplies {multiplied}")
    return found


def test_the_walk_is_that_of_a_right_kernel(drawn: Plan) -> None:
    assert faults(drawn) == []


@pytest.mark.parametrize("name", ["k_vectors", "spread"])
def test_copies_are_dealt_out_no_further_than_a_kernel_stands(name: str) -> None:
    """However far a spec spreads them: what is accepted walks right. Past the next tile's fragments none would."""
    block_k = DRAFTS[name].block[2]
    accepted = []
    for last in range(1, block_k + 1):
        try:
            plan = plans_from(spread(DRAFTS[name], 0, last))[0]
        except PlanError:
            continue
        accepted.append(last)
        assert faults(plan) == [], last
    assert accepted == list(range(1, block_k - (4 if name == "k_vectors" else 1) + 1))


def without(plan: Plan, kind: type, number: int = 0) -> Plan:
    """The plan, of whose steady steps the number-th of a kind is left out."""
    index = [i for i, step in enumerate(plan.program.steady) if isinstance(step, kind)][number]
    steady = plan.program.steady[:index] + plan.program.steady[index + 1 :]
    return replace(plan, program=Program(plan.program.prologue, steady))


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        ("three_stages", Barrier, 0),
        ("three_stages", Wait, 0),
        ("three_stages", Mma, 0),
        ("three_stages", LoadFragment, 3),
        ("ladder_03_shared", Barrier, 0),  # before the tile is overwritten
        ("ladder_03_shared", Barrier, 1),  # before it is read
        ("ladder_03_shared", LoadFragment, 3),
        ("ladder_01_naive", LoadTile, 0),
        ("ladder_01_naive", LoadTile, 1),
        ("ladder_01_naive", Mma, 7),
        ("sgemm_128x256x16", StoreTile, 0),
        ("sgemm_128x256x16", StoreTile, 6),
        ("sgemm_128x256x16", LoadTile, 1),
        ("sgemm_128x256x16", LoadTile, 3),
        ("spread", CopyTile, 0),
        ("spread", Advance, 0),
        ("spread", Advance, 1),
        ("ladder_11_double_buffer", LoadTile, 1),
    ],
)
def test_a_step_left_out_shows(name: str, kind: type, number: int) -> None:
    plan = plans_of(name)[0]
    assert faults(plan) == [] != faults(without(plan, kind, number))


def test_every_step_of_the_program_is_there(drawn: Plan) -> None:
    moments = timeline(drawn)
    turns = max(drawn.stages, 1) + 1
    assert len(moments) == len(drawn.program.prologue) + turns * len(drawn.program.steady)
    parts = [moment.part for moment in moments]
    assert list(dict.fromkeys(parts)) == ["prologue", *(f"turn {i}" for i in range(turns))]
    rows = stage_names(drawn)
    assert {row for moment in moments for row in moment.reads} == set(range(len(rows)))
    assert {row for moment in moments for row in moment.writes} == set(range(len(rows)))
    assert all(len(moment.stages) == len(rows) for moment in moments)


@pytest.mark.parametrize("verb", ["copy", "load", "store"])
def test_moves_that_are_dealt_out_are_told_by_their_accesses(drawn: Plan, verb: str) -> None:
    """Of each turn every access of both operands once, and of the prologue all of each at once, tile by tile: a load of
    what is stored a turn later goes one tile further.
    """
    for operand in drawn.operands:
        if (verb == "copy") == operand.copy.atom.through_registers or (verb == "store" and not drawn.stages):
            continue
        accesses = drawn.in_shared(operand.name).copy.writes if verb == "store" else operand.copy.reads
        ahead = drawn.stages - 1 + (verb == "load") if drawn.stages > 1 else 1
        for turn, part in enumerate(("prologue", "turn 0", "turn 1")):
            found = []
            for text in (m.text for m in timeline(drawn) if m.part == part):
                words = rf"{verb} {operand.name.upper()}, tile (\d+)(?:, access(?:es)? (.*) of (\d+))?, into .*"
                if (said := re.fullmatch(words, text)) is not None:
                    first, last = (said[2] or f"0 .. {accesses - 1}").partition(" .. ")[::2]
                    assert said[3] in (None, str(accesses))
                    found += [(int(said[1]), each) for each in range(int(first), int(last or first) + 1)]
            tiles = range(ahead) if part == "prologue" else [ahead + turn - 1]
            assert found == [(tile, access) for tile in tiles for access in range(accesses)]


def test_registers_are_shown_from_their_load_to_their_store() -> None:
    """sgemm: a turn stores the next tile access by access, then loads the one after; both are seen under way."""
    plan = plans_of("sgemm_128x256x16")[0]
    assert stage_names(plan) == ("stage 0", "stage 1", "A in registers", "B in registers")
    turn = [moment for moment in timeline(plan) if moment.part == "turn 0"]
    (first,) = (moment for moment in turn if moment.text == "store A, tile 1, access 0 of 4, into stage 1")
    assert (first.writes, first.reads) == ((1,), (2,))
    assert first.stages == (Stage("ready", 0), Stage("arriving", 1), Stage("ready", 1), Stage("arriving", 1))
    (last,) = (moment for moment in turn if moment.text == "store B, tile 1, access 3 of 4, into stage 1")
    assert last.stages == (Stage("ready", 0), Stage("landed", 1), Stage("ready", 1), Stage("ready", 1))
    assert turn[-1].stages == (Stage("ready", 0), Stage("ready", 1), Stage("arriving", 2), Stage("arriving", 2))
    assert stage_names(plans_of("ladder_12_cp_async")[0]) == ("stage 0", "stage 1", "stage 2")
    assert stage_names(plans_of("mixed_copies")[0])[3:] == ("A in registers",)


def test_the_two_barriers_of_one_stage() -> None:
    plan = plans_of("ladder_06_vectorised")[0]
    told = [moment.text for moment in timeline(plan) if moment.part == "turn 0"]
    assert [text for text in told if text.startswith("all threads")] == [
        "all threads meet: nobody still reads stage 0", "all threads meet: stage 0 may be read"
    ]  # fmt: skip
    assert told[-6:-1] == [
        "load A, tile 1, into registers",
        "load B, tile 1, into registers",
        "next to fetch of A and B: tile 2",
        "store A, tile 1, into stage 0",
        "store B, tile 1, into stage 0",
    ]
    assert told[0] == "load fragment k = 0 of stage 0 into slot 0"
    deep = timeline(plans_of("ladder_03_shared")[0])
    assert "load fragments k = 28 .. 31 of stage 0 into slots 0 .. 3" in [moment.text for moment in deep]


def test_registers_are_the_rows_where_there_are_no_stages() -> None:
    plan = plans_of("ladder_01_naive")[0]
    assert stage_names(plan) == ("A in registers", "B in registers")
    moments = timeline(plan)
    assert moments[0].stages == (Stage("arriving", 0), Stage()) and moments[0].writes == (0,)
    first = next(moment for moment in moments if moment.multiplies)
    assert first.stages == (Stage("ready", 0), Stage("ready", 0)) and first.reads == (0, 1)
    assert first.text == "multiply slot 0: tile 0, k = 0"
    assert not any("meet" in moment.text or "stage" in moment.text for moment in moments)


def test_a_barrier_tells_what_it_brings_and_no_more() -> None:
    moments = timeline(plans_of("three_stages")[0])
    told = [moment.text for moment in moments if moment.text.startswith("all threads")]
    assert told[:3] == [
        "all threads meet: stage 0 may be read",
        "all threads meet: stage 1 may be read, nobody still reads stage 0",
        "all threads meet: stage 2 may be read, nobody still reads stage 1",
    ]


def test_promotion_is_told() -> None:
    (each,) = small("tf32x3")
    told = [moment.text for moment in timeline(each, TURNS)]
    assert told.count("add what the atoms have summed to the accumulators") == TURNS
