"""The pipeline's program in words: what a turn does, in order, against the steps that the plan has."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from layoutgen import paths
from layoutgen.emitted import emitted_specs
from layoutgen.explain import explain
from layoutgen.explain.words import runs
from layoutgen.plan import plan
from layoutgen.plan.model import Barrier, CopyTile, LoadFragment, LoadTile, Mma, Program, StoreTile
from layoutgen.spec import Spec, load
from tests.explain.stages import DEEP, NONE, ONE, spread
from tests.plan.drafts import Draft

SGEMM = paths.shipped_specs()["sgemm_128x256x16"]
SHIPPED = [load(path) for path in emitted_specs().values()]


def program_lines(spec: Spec, program: Program | None = None) -> list[str]:
    plans = plan(spec)
    each = plans[0] if program is None else replace(plans[0], program=program)
    (section,) = (s for s in explain(spec, [each]).sections if s.title.startswith("The pipeline"))
    return [getattr(entry, "text", "") for entry in section.entries]


def test_turns_that_do_the_same_are_told_once() -> None:
    lines = program_lines(spread(Draft(block=(64, 64, 8), stages=3), 0, 7))
    assert [line.split(":")[0] for line in lines[1:4]] == ["k = 0 .. 5", "k = 6", "k = 7"]
    assert lines[0].count("commit the group") == 2 and "k-tile 1 into stage 1" in lines[0]
    assert lines[1] == "k = 0 .. 5: load fragment k + 1; multiply fragment k."
    assert lines[2] == "k = 6: load fragment k + 1; commit the group; multiply fragment k."
    assert "wait until at most 1 group" in lines[3] and "barrier; next stage; load fragment 0" in lines[3]
    assert lines[4].startswith("Between, k-tile + 2 copied to the write stage: A by ")
    at_once = program_lines(Draft(block=(64, 64, 3)).spec())
    assert at_once[1].startswith("k = 0: cp.async A, B of k-tile + 1 to the write stage; ")
    assert not any(line.startswith("Between") for line in at_once)


def test_what_goes_through_registers_is_stored_a_turn_after_its_load() -> None:
    """The k-tile of each move, as the kernel's cursors have it: what is stored was loaded before the load beside it."""
    staged = replace(ONE, stages=3)
    lines = program_lines(staged.spec())
    assert lines[0] == (
        "Before: load A, B of k-tile 0 from global; store A, B of k-tile 0 to stage 0; load A, B of k-tile 1 from "
        "global; store A, B of k-tile 1 to stage 1; load A, B of k-tile 2 from global; barrier; load fragment 0."
    )
    assert lines[1] == (
        "k = 0: load fragment k + 1; store A, B of k-tile + 2 to the write stage; load A, B of k-tile + 3 from global; "
        "multiply fragment k."
    )
    mixed = program_lines(Draft(stages=2, copy_a="{atom: ldg.sts}", copy_b="{atom: cp.async}").spec())
    assert "store A of k-tile 0 to stage 0; load A of k-tile 1 from global; wait for all copies" in mixed[0]
    assert (
        "store A of k-tile + 1 to the write stage; cp.async B of k-tile + 1 to the write stage; load A of k-tile + 2"
        in (mixed[1])
    )
    nothing = plan(staged.spec())[0].program
    loaded = Program(tuple(s for s in nothing.prologue if not isinstance(s, LoadTile)), nothing.steady)
    assert "store A, B of a k-tile that was never loaded to the write stage" in program_lines(staged.spec(), loaded)[1]


def test_moves_that_are_dealt_out_are_told_of_their_tile() -> None:
    (told,) = (line for line in program_lines(load(SGEMM)) if line.startswith("Between"))
    assert told == (
        "Between, k-tile + 1 stored to the write stage: A by 4 st.shared at k 3..6, B by 4 st.shared at k 6..9; "
        "k-tile + 2 loaded: A by 2 ld.global at k 10, B by 4 ld.global, 1 + 1 + 2 at k 11..13."
    )


OPCODES = {CopyTile: "cp.async", LoadTile: "ld.global", StoreTile: "st.shared"}
DEALT = {
    "copies": spread(Draft(block=(64, 64, 8), stages=3), 0, 7),
    "uneven": spread(Draft(block=(64, 64, 8), stages=3, copy_a="{atom: ldg.sts}"), 1, 4),
    "together": spread(replace(ONE, block=(64, 64, 16), stages=2, shared_a="(64,16):(16,1)"), 0, 12),
}


@pytest.mark.parametrize(
    "spec", [*SHIPPED, *(each.model_copy(update={"name": name}) for name, each in DEALT.items())], ids=lambda s: s.name
)
def test_moves_that_are_dealt_out_are_told_piece_by_piece(spec: Spec) -> None:
    """How many pieces of which operand are moved before which multiplication, counted from the program."""
    each = plan(spec)[0]
    dealt: dict[tuple[str, str], list[tuple[int, int]]] = {}
    k = 0
    for step in each.program.steady:
        k += isinstance(step, Mma)
        if isinstance(step, CopyTile | LoadTile | StoreTile):
            dealt.setdefault((step.operand, OPCODES[type(step)]), []).append((k, step.last - step.first))
    lines = program_lines(spec)
    (told,) = [line for line in lines if line.startswith("Between")] or [""]
    assert bool(told) == any(len(pieces) > 1 for pieces in dealt.values())
    for (name, opcode), pieces in dealt.items() if told else ():
        copy = each.in_shared(name).copy  # type: ignore[arg-type]
        (said,) = re.findall(
            rf"{name.upper()} by (\d+) {re.escape(opcode)}(?:, ([^a]*?)( each)?)? at k ([\d., ]*\d)", told
        )
        total, counts, alike, ks = said
        assert int(total) == (copy.writes if opcode == "st.shared" else copy.reads) == sum(n for _, n in pieces)
        known = [int(n) for n in counts.split(" + ")] if counts else [int(total) // len(pieces)]
        assert known * (len(pieces) // len(known)) == [n for _, n in pieces] and bool(alike) <= (len(known) == 1)
        assert ks == runs([k for k, _ in pieces])
        assert not any(opcode in line for line in lines if line.startswith("k = "))


def test_the_program_of_one_stage() -> None:
    lines = program_lines(ONE.spec())
    assert lines[0] == "Before: load A, B of k-tile 0 from global; store A, B of k-tile 0 to shared memory; barrier."
    assert lines[1] == "k = 0 .. 7: load fragment k; multiply fragment k."
    assert lines[2] == (
        "Then: barrier; load A, B of k-tile + 1 from global; store A, B of k-tile + 1 to shared memory; barrier."
    )
    program = plan(ONE.spec())[0].program
    first = next(i for i, step in enumerate(program.steady) if isinstance(step, Barrier))
    without = Program(program.prologue, program.steady[:first] + program.steady[first + 1 :])
    assert program_lines(ONE.spec(), without)[2].startswith("Then: load A, B")


def test_fragments_that_are_loaded_together_are_told_together() -> None:
    lines = program_lines(replace(ONE, shared_a=DEEP).spec())
    assert lines[1] == "k = 0, 4: load fragments k .. k + 3; multiply fragments k .. k + 3."
    assert "for 3 shared loads" in lines[3]  # four of A for four k, two of B for each
    deep = program_lines(replace(ONE, shared_a=DEEP, stages=2).spec())
    assert deep[0].endswith("load fragments 0 .. 3.")
    assert "load fragments k + 4 .. k + 7" in deep[1] and "multiply fragments k .. k + 3" in deep[1]


def test_the_program_without_stages() -> None:
    lines = program_lines(NONE.spec())
    assert lines[0] == "Before: load A, B of k-tile 0 from global."
    assert lines[1:3] == ["k = 0 .. 7: multiply fragment k.", "Then: load A, B of k-tile + 1 from global."]
    assert "for 3 global loads" in lines[3]  # of one k: four values of A, four k at a time, and eight of B by fours


def test_one_slot_is_told_in_its_order() -> None:
    lines = program_lines(Draft(block=(64, 64, 3)).spec())
    assert lines[1].startswith("k = 0:") and lines[1].endswith("multiply fragment k.")
    assert lines[2] == "k = 1, 2: load fragment k; multiply fragment k."
    assert lines[3].startswith("Then: ") and lines[3].endswith("load fragment 0.")


def test_a_fragment_in_the_wrong_slot_is_not_called_k() -> None:
    spec = Draft(block=(64, 64, 4)).spec()
    program = plan(spec)[0].program
    steady = list(program.steady)
    where = [index for index, step in enumerate(steady) if isinstance(step, Mma)][2]
    steady[where] = Mma(1 - steady[where].slot)
    lines = program_lines(spec, Program(program.prologue, tuple(steady)))
    assert any(line.startswith("k = 2:") and "multiply fragment k + 1" in line for line in lines)
    nothing = Program(tuple(s for s in program.prologue if not isinstance(s, LoadFragment)), program.steady)
    assert any("never loaded" in line for line in program_lines(spec, nothing))
