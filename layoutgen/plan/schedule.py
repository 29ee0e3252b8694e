"""The schedule: which block computes which part of C, and how many blocks there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutgen.plan.model import CTile, Schedule
from layoutgen.spec import Spec


@dataclass(frozen=True, slots=True)
class WorkRange:
    """Rows m .. m + BLK_M and columns n .. n + BLK_N of C, summed over k0 <= k < k1 (all clipped to the problem)."""

    m: int
    n: int
    k0: int
    k1: int


def plan_schedule(spec: Spec) -> Schedule:
    """Every block computes one tile over the whole of k; no partial results meet."""
    return Schedule("data_parallel", spec.schedule.raster, spec.schedule.group, spec.schedule.min_blocks)


def raster_words(schedule: Schedule) -> str:
    """How blocks that are neighbours in launch order lie in C, and what they share, in words."""
    fast, slow = ("m", "n") if schedule.raster == "along_m" else ("n", "m")
    if schedule.group == 1:  # a group is one row or column of tiles, and they walk along it
        return f"neighbouring blocks walk {slow}, and share {'rows of A' if slow == 'n' else 'columns of B'}"
    return (
        f"neighbouring blocks walk {fast} within groups of {schedule.group} tiles, and share rows of A and columns of B"
    )


def tiles(tile: CTile, m: int, n: int) -> tuple[int, int]:
    """Problem extents -> number of block tiles in m and n."""
    return -(-m // tile.block[0]), -(-n // tile.block[1])


def work(schedule: Schedule, tile: CTile, m: int, n: int, k: int) -> Iterator[WorkRange]:
    """The work of block 0, 1, .. in launch order, as the emitted kernel decodes it.

    Blocks walk the raster mode within a group of `group` tiles before the other mode advances, so that blocks that run
    together share rows of A and columns of B in L2.
    """
    tiles_m, tiles_n = tiles(tile, m, n)
    fast, slow = (tiles_m, tiles_n) if schedule.raster == "along_m" else (tiles_n, tiles_m)
    for block in range(fast * slow):
        group, rest = divmod(block, schedule.group * slow)
        first = group * schedule.group
        width = min(fast - first, schedule.group)
        in_fast, in_slow = first + rest % width, rest // width
        tile_m, tile_n = (in_fast, in_slow) if schedule.raster == "along_m" else (in_slow, in_fast)
        yield WorkRange(tile_m * tile.block[0], tile_n * tile.block[1], 0, k)
