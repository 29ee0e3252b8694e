"""The schedule: which block computes which part of C, and how many blocks there are.

Stream-K: Osama, Merrill, Cecka, Garland and Owens, "Stream-K: Work-centric Parallel Decomposition for Dense
Matrix-Matrix Multiplication on the GPU" (PPoPP 2023), its hybrid of whole tiles and two waves of shared ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from layoutgen.plan.model import CTile
from layoutgen.plan.raster import Schedule
from layoutgen.spec import Spec


@dataclass(frozen=True, slots=True)
class WorkRange:
    """Rows m .. m + BLK_M and columns n .. n + BLK_N of C, summed over k0 <= k < k1 (all clipped to the problem)."""

    m: int
    n: int
    k0: int
    k1: int


def plan_schedule(spec: Spec) -> Schedule:
    """Spec -> Schedule."""
    given = spec.schedule
    return Schedule(given.kind, given.raster, given.group, given.min_blocks, given.waves_per_eu)


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


@dataclass(frozen=True, slots=True)
class Streams:
    """The tiles that blocks share: the first `tiles` of the raster, whose k-tiles are dealt out evenly to the first
    `blocks` blocks, in runs. Every other tile is the work of one block after those."""

    blocks: int = 0
    tiles: int = 0

    def grid(self, tiles: int) -> int:
        """Blocks of a launch that has so many tiles."""
        return self.blocks + tiles - self.tiles


WHOLE = Streams()
LEAST_TURNS = 4  # of a share: what starts a block and ends it is not worth less
MOST_TURNS = 2**31 - 1  # of all shares: the kernel counts them in 32 bits


def streams(schedule: Schedule, tile: CTile, m: int, n: int, k: int, slots: int) -> Streams:
    """What blocks share of a problem on a device that has room for `slots` of them at once; nothing where whole tiles
    would do as well.

    Partial sums are written and read once, 4 bytes a value, at about 32 bytes a clock of a multiprocessor, which takes
    as long as 32 k of the tile's FFMAs at 128 a clock; one more turn goes into waiting and starting.
    """
    block_k = tile.block[2]
    tiles_m, tiles_n = tiles(tile, m, n)
    count, depth = tiles_m * tiles_n, -(-k // block_k)
    if schedule.kind != "stream_k" or count % slots == 0:
        return WHOLE
    shared = count - max(0, count // slots - 1) * slots
    turns = shared * depth
    blocks = min(slots, turns // LEAST_TURNS)
    if blocks == 0 or turns > MOST_TURNS:
        return WHOLE
    meeting = 1 - (-32 // block_k)
    whole = -(-shared // slots) * depth
    return Streams(blocks, shared) if -(-turns // blocks) + meeting < whole else WHOLE


def share_begin(found: Streams, depth: int, share: int) -> int:
    """The first of the k-tiles, counted over all shared tiles of `depth` each, of a share."""
    each, more = divmod(found.tiles * depth, found.blocks)
    return share * each + min(share, more)


def dealt(
    schedule: Schedule, tile: CTile, m: int, n: int, k: int, found: Streams = WHOLE
) -> Iterator[tuple[WorkRange, ...]]:
    """The work of block 0, 1, .. in launch order and in the order that it does it, as the emitted kernel decodes it.

    Block 0 has the last share, so that what a block waits for, the share after its own, was begun before.
    """
    whole, block_k = list(work(schedule, tile, m, n, k)), tile.block[2]
    depth = -(-k // block_k)
    ragged = depth * block_k - k
    for share in reversed(range(found.blocks)):
        turn, end = (share_begin(found, depth, each) for each in (share, share + 1))
        parts = []
        while turn < end:
            index, first = divmod(turn, depth)
            last = min(depth, first + end - turn)
            each = whole[index]
            parts.append(WorkRange(each.m, each.n, max(0, first * block_k - ragged), last * block_k - ragged))
            turn += last - first
        yield tuple(parts)
    yield from ((each,) for each in whole[found.tiles :])
