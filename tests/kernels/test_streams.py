"""Blocks that share tiles: right wherever shares begin and end, for each way to copy; and nothing of it is for show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layoutgen import build, run, sim
from layoutgen.emit import emit
from layoutgen.plan import Plan, plan
from layoutgen.plan.schedule import dealt, streams
from layoutgen.problem import packed
from layoutgen.spec import Spec
from tests.kernels.harness import ARCH, Case, Schedule, failure, kernel, schedules
from tests.plan.drafts import Draft

LDG_STS = "{atom: ldg.sts}"
SHAPE = {"name": "shared", "kind": "stream_k", "block": (32, 64, 8), "warps": "(1,2):(0,1)"}
WAYS = {
    "cp_async": {"stages": 3},
    "staged": {"copy_a": LDG_STS, "copy_b": LDG_STS, "raster": "along_n", "group": 2},
    "one_stage": {"stages": 1},
    "direct": {"stages": 0},
}
# Of tiles of 32 x 64 x 8: shares of more than a tile, with whole tiles beside them and without; shares of a part of a
# tile, of which it takes two or five; ragged in every mode; and as many shares as have the least of turns.
CASES = (
    Case(96, 128, 100, alpha=-0.5, beta=2.0, slots=4),
    Case(128, 192, 160, slots=5),
    Case(64, 64, 200, beta=1.0, slots=3),
    Case(32, 64, 200, slots=5),
    Case(68, 132, 332, slots=7),
    Case(60, 60, 76, slots=132),
)


def written(way: str) -> Spec:
    return Draft(**(SHAPE | WAYS[way])).spec()  # type: ignore[arg-type]


def made(way: str) -> tuple[Plan, ...]:
    return plan(written(way))


def shared(each: Plan, case: Case) -> list[int]:
    """How many parts each block has."""
    found = streams(each.schedule, each.tile, case.m, case.n, case.k, case.slots)
    assert found.blocks > 1
    return [len(parts) for parts in dealt(each.schedule, each.tile, case.m, case.n, case.k, found)]


def test_the_cases_share_tiles_in_every_way() -> None:
    each = made("cp_async")[0]
    assert [shared(each, case) for case in CASES] == [
        [2, 2, 3, 2],
        [2, 2, 3, 2, 2, *[1] * 5],
        [1, 2, 1],
        [1] * 5,
        [2, 2, 2, 3, 2, 2, 2],
        [1, 1, 2, 1, 1],
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("variant", ["ak_bn_16B", "am_bk_16B", "any"])
def test_shared_tiles_are_right(way: str, variant: str) -> None:
    (each,) = [each for each in made(way) if each.variant == variant]
    for case in CASES:
        for schedule in schedules(each)[:: 3 if variant == "ak_bn_16B" else 5]:
            assert failure(each, kernel(each), case, schedule) is None, (case, schedule)


def test_without_room_every_block_has_its_tile() -> None:
    each = made("staged")[0]
    for case in (Case(96, 128, 100, slots=1), Case(64, 64, 0, slots=3), Case(64, 128, 40, beta=1.0, slots=4)):
        problem = packed(each, case.m, case.n, case.k)
        assert run.shared_tiles(each, problem, case.slots).blocks == 0
        assert failure(each, kernel(each), case, Schedule("late", "lockstep")) is None


# Not here: the wait for the flag, and the fence before it. In the simulator blocks run one after the other, as they
# wait; the tests on a GPU have them run together.
MUTANTS = {
    "the flag": ("if (thread == 0) write_flag(flags + share);", ""),
    "the parts of others": ("    add_partials();", ""),
    "the part that is left": ("    leave_partial();", ""),
    "the barrier between tiles": ("__syncthreads();   // shared memory of the tile before is read", ""),
    "the first k of a part": ("(depth - first) * BlockK{} - k", "depth * BlockK{} - k"),
    "the end of a tile": ("min(left, depth - first)", "left"),
    "the next tile": ("++tile;", ""),
    "its beginning": ("  first = 0;", ""),
    "the odd turns": (" + min(share, streamed * depth % streams)", ""),
    "further parts": ("done += min(share_begin(other + 1) - share_begin(other), depth - done)", "done = depth"),
}


@pytest.mark.parametrize("what", MUTANTS)
def test_without_any_of_it_a_case_fails(what: str) -> None:
    each = made("staged")[0]
    source = emit(each)
    old, new = MUTANTS[what]
    assert source.text.count(old) == 1
    ptx = build.compile_ptx(source.text.replace(old, new), f"{each.name}.cu", ARCH)
    code = sim.parse(ptx.text).kernels[source.launch.kernel]
    assert any(failure(each, code, case, schedule) for case in CASES for schedule in schedules(each))


def test_the_workspace_is_flags_and_a_tile_of_values_for_each_share() -> None:
    each = made("staged")[0]
    problem = packed(each, 96, 128, 100)
    found = run.shared_tiles(each, problem, 4)
    assert (found.blocks, found.tiles) == (4, 6)
    assert run.flag_bytes(found) == 256 and run.workspace_bytes(each, found) == 256 + 4 * 32 * 64 * 4
    assert run.params(each, problem, found, 1 << 20)[-4:] == (4, 6, (1 << 20) + 256, 1 << 20)
    whole = replace(each, schedule=replace(each.schedule, kind="data_parallel"))
    assert run.params(whole, problem, run.shared_tiles(whole, problem, 4), 0) == problem.params()
