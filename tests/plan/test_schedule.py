"""Schedules: every tile of C is one block's work, in an order that shares rows of A and columns of B."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.plan import plan
from layoutgen.plan.schedule import WHOLE, Streams, WorkRange, dealt, streams, tiles, work
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


@given(st.integers(1, 700), st.integers(1, 700), st.integers(1, 600), st.integers(1, 40), st.sampled_from([1, 3]))
def test_shares_are_even_hold_every_k_once_and_end_sooner(m: int, n: int, k: int, slots: int, group: int) -> None:
    each = plan(Draft(block=(32, 64, 8), values=("2", "4"), group=group, kind="stream_k").spec())[0]
    found = streams(each.schedule, each.tile, m, n, k, slots)
    rows, columns = tiles(each.tile, m, n)
    blocks = list(dealt(each.schedule, each.tile, m, n, k, found))
    assert len(blocks) == found.grid(rows * columns)
    of_tile: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for block, parts in enumerate(blocks):
        for part in parts:
            of_tile.setdefault((part.m, part.n), []).append((part.k0, part.k1, block))
    assert len(of_tile) == rows * columns
    for parts in of_tile.values():
        parts.sort()
        assert parts[0][0] == 0 and parts[-1][1] == k
        for (_, end, block), (begin, _, after) in pairwise(parts):
            assert end == begin and after < block  # what a block waits for was begun before it
    shares = [sum(-(-part.k1 // 8) - part.k0 // 8 if k % 8 == 0 else 1 for part in parts) for parts in blocks]
    if found.blocks:
        assert found.blocks <= slots and rows * columns % slots
        if k % 8 == 0:
            even, depth = shares[: found.blocks], k // 8
            assert max(even) - min(even) <= 1
            waves = -(-(rows * columns - found.tiles) // slots)
            assert waves * depth + max(even) < -(-rows * columns // slots) * depth


def test_only_stream_k_shares_tiles() -> None:
    each = plan(Draft(block=(32, 64, 8), values=("2", "4")).spec())[0]
    assert streams(each.schedule, each.tile, 320, 640, 4096, 7) == WHOLE
    shared = replace(each.schedule, kind="stream_k")
    assert streams(shared, each.tile, 320, 640, 4096, 100) == WHOLE  # a whole wave
    assert streams(shared, each.tile, 32, 64, 8, 100) == WHOLE  # too little to share
    assert streams(shared, each.tile, 320, 640, 4096, 30) == Streams(30, 40)
    assert streams(shared, each.tile, 320, 640, 2**30, 30) == WHOLE  # more turns than 32 bits hold


def test_the_schedule_is_the_spec_s() -> None:
    schedule = plan(Draft(raster="along_n", group=5, min_blocks=3).spec())[0].schedule
    assert (schedule.kind, schedule.raster, schedule.group, schedule.min_blocks) == ("data_parallel", "along_n", 5, 3)
