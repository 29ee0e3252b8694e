"""Coverage: does every coordinate of a tile have exactly one owner?

Brute force: a tile that fits a block has at most a few hundred thousand elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from layoutgen.algebra import Offsets, first_collision
from layoutgen.plan.model import Copy, CTile, Shared, ThreadMap

MOST_OWNERS = 4


@dataclass(frozen=True, slots=True)
class Coverage:
    """Whether every coordinate of a tile has exactly one owner.

    Attributes:
        coordinate: else the first, in colexicographic order, that has not, or one outside the tile if all inside do.
        owners: its first few owners, in words. count: how many there are in all.
    """

    coordinate: tuple[int, int] | None = None
    outside: bool = False
    owners: tuple[str, ...] = ()
    count: int = 0

    @property
    def ok(self) -> bool:
        return self.coordinate is None

    def __str__(self) -> str:
        if self.coordinate is None:
            return "every coordinate has one owner"
        place = f"({self.coordinate[0]},{self.coordinate[1]})" + (", outside the tile," if self.outside else "")
        more = f" and {self.count - len(self.owners)} more" if self.count > len(self.owners) else ""
        return f"{place} is owned by {' and '.join(self.owners) or 'nobody'}{more}"


def _cover(first: Offsets, second: Offsets, extents: tuple[int, int], owner: Callable[[int], str]) -> Coverage:
    """Is each (i, j) of a tile of `extents` among the pairs (first, second) exactly once, and no other pair?

    owner: index of a pair -> whose it is.
    """
    inside = (first >= 0) & (first < extents[0]) & (second >= 0) & (second < extents[1])
    counts = np.bincount((first + extents[0] * second)[inside], minlength=extents[0] * extents[1])
    wrong = np.flatnonzero(counts != 1)
    if wrong.size:
        j, i = divmod(int(wrong[0]), extents[0])
    elif not inside.all():
        outside = np.flatnonzero(~inside)[0]
        i, j = int(first[outside]), int(second[outside])
    else:
        return Coverage()
    owners = np.flatnonzero((first == i) & (second == j))
    few = tuple(owner(int(index)) for index in owners[:MOST_OWNERS])
    return Coverage((i, j), not wrong.size, few, owners.size)


def cover_c(tile: CTile, threads: ThreadMap) -> Coverage:
    """Does each (m, n) of the block tile belong to exactly one value of one thread?"""
    value_m, value_n = (layout.offsets() for layout in tile.value_mode)
    thread_m, thread_n = threads.m.offsets(), threads.n.offsets()
    shape = (threads.threads, value_m.size, value_n.size)  # (thread, i, j), the last fastest
    m = np.broadcast_to(thread_m[:, None, None] + value_m[None, :, None], shape).reshape(-1)
    n = np.broadcast_to(thread_n[:, None, None] + value_n[None, None, :], shape).reshape(-1)

    def owner(index: int) -> str:
        thread, i, j = (int(part) for part in np.unravel_index(index, shape))
        warp, lane = divmod(thread, tile.lanes.size)
        return f"thread {thread} (warp {warp} lane {lane}) value ({i},{j})"

    return _cover(m, n, tile.block[:2], owner)


def cover_copy(copy: Copy, tile: tuple[int, int]) -> Coverage:
    """Does each (x, k) of an operand's tile land exactly once?"""
    shape = (copy.participants, copy.element_x.size, copy.element_k.size)
    thread_x, thread_k = copy.thread_x.offsets(), copy.thread_k.offsets()
    x = np.broadcast_to(thread_x[:, None, None] + copy.element_x.offsets()[None, :, None], shape).reshape(-1)
    k = np.broadcast_to(thread_k[:, None, None] + copy.element_k.offsets()[None, None, :], shape).reshape(-1)

    def owner(index: int) -> str:
        thread, i, j = (int(part) for part in np.unravel_index(index, shape))
        return f"thread {thread} element ({i},{j})"

    return _cover(x, k, tile, owner)


def shared_collision(shared: Shared) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Two (x, k) of a stage that lie in the same word of shared memory, or None; stages never overlap."""
    pair = first_collision(shared.layout[:2])
    if pair is None:
        return None
    (first_k, first_x), (second_k, second_x) = (divmod(index, shared.layout[0].size) for index in pair)
    return (first_x, first_k), (second_x, second_k)
