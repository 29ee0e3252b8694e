"""Schedules: every tile of C is one block's work, in an order that shares rows of A and columns of B."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.plan import plan
from layoutgen.plan.schedule import WorkRange, tiles, work
from tests.plan.drafts import Draft


def ranges(raster: str, group: int, m: int, n: int, k: int) -> list[WorkRange]:
    each = plan(Draft(block=(32, 64, 8), values=("2", "4"), raster=raster, group=group).spec())[0]
    return list(work(each.schedule, each.tile, m, n, k))


@given(
    st.sampled_from(["along_m", "along_n"]),
    st.integers(1, 12),
    st.integers(0, 400),
    st.integers(0, 600),
    st.integers(0, 50),
)
def test_every_tile_is_worked_on_once(raster: str, group: int, m: int, n: int, k: int) -> None:
    done = ranges(raster, group, m, n, k)
    assert len(done) == len(set(done))
    assert {(each.m, each.n) for each in done} == {(i, j) for i in range(0, m, 32) for j in range(0, n, 64)}
    assert all((each.k0, each.k1) == (0, k) for each in done)


def test_blocks_walk_a_group_before_the_other_mode_moves_on() -> None:
    def order(raster: str, group: int) -> list[tuple[int, int]]:
        return [(each.m // 32, each.n // 64) for each in ranges(raster, group, 3 * 32 - 5, 2 * 64 + 1, 8)]

    assert order("along_m", 2) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert order("along_n", 2) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 2), (1, 2), (2, 2)]
    assert order("along_m", 1) == [(i, j) for i in range(3) for j in range(3)]
    assert order("along_m", 100) == order("along_m", 3) == [(i, j) for j in range(3) for i in range(3)]


@pytest.mark.parametrize(
    ("m", "n", "expected"), [(0, 5, (0, 1)), (1, 64, (1, 1)), (33, 65, (2, 2)), (1 << 31, 0, (1 << 26, 0))]
)
def test_tiles(m: int, n: int, expected: tuple[int, int]) -> None:
    each = plan(Draft(block=(32, 64, 8), values=("2", "4")).spec())[0]
    assert tiles(each.tile, m, n) == expected


def test_the_schedule_is_the_spec_s() -> None:
    schedule = plan(Draft(raster="along_n", group=5, min_blocks=3).spec())[0].schedule
    assert (schedule.kind, schedule.raster, schedule.group, schedule.min_blocks) == ("data_parallel", "along_n", 5, 3)
