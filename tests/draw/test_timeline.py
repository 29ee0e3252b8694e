"""The program, walked: what is multiplied was copied, met and read in order, whatever the copies and stages."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from layoutgen.draw.timeline import Moment, timeline
from layoutgen.plan import Plan
from layoutgen.plan.model import Barrier, Mma, Program, Wait
from tests.draw.conftest import plans_of

TURNS = 6


def faults(plan: Plan) -> list[str]:
    """What a walk of the program does that no kernel may: read what is not ready, multiply out of order, overwrite."""
    found = []
    block_k = plan.tile.block[2]
    multiplied = []
    before: Moment | None = None
    for moment in timeline(plan, TURNS):
        if moment.reads is not None and moment.stages[moment.reads].state != "ready":
            found.append(f"reads {moment.stages[moment.reads]}")
        if moment.writes is not None and before is not None:
            old, new = before.stages[moment.writes], moment.stages[moment.writes]
            if old.tile is not None and old.tile != new.tile and (old.tile + 1) * block_k > len(multiplied) + 1:
                found.append(f"overwrites {old} with {new}")
        if moment.multiplies:
            tile, k = map(int, re.findall(r"tile (\d+), k = (\d+)", moment.text)[0])
            multiplied.append(tile * block_k + k)
        before = moment
    if multiplied != list(range(TURNS * block_k)):
        found.append(f"multiplies {multiplied}")
    return found


def test_the_walk_is_that_of_a_right_kernel(drawn: Plan) -> None:
    assert faults(drawn) == []


@pytest.mark.parametrize("kind", [Barrier, Wait, Mma])
def test_a_step_left_out_shows(kind: type) -> None:
    plan = plans_of("three_stages")[0]
    index = next(i for i, step in enumerate(plan.program.steady) if isinstance(step, kind))
    steady = plan.program.steady[:index] + plan.program.steady[index + 1 :]
    assert faults(replace(plan, program=Program(plan.program.prologue, steady))) != []


def test_every_step_of_the_program_is_there(drawn: Plan) -> None:
    moments = timeline(drawn)
    turns = drawn.stages + 1
    assert len(moments) == len(drawn.program.prologue) + turns * len(drawn.program.steady)
    parts = [moment.part for moment in moments]
    assert list(dict.fromkeys(parts)) == ["prologue", *(f"turn {i}" for i in range(turns))]
    assert {s for moment in moments for s in (moment.reads,) if s is not None} == set(range(drawn.stages))
    assert all(len(moment.stages) == drawn.stages for moment in moments)
