"""What a spec's text means, worked out with lists and loops and nothing of layoutgen's algebra or planner.

A layout here is a list of offsets. A tile cuts an extent greedily: repetition r starts at the lowest position at which
a whole further copy of the tile fits beside those before it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.plan.drafts import Draft

Ints = NDArray[np.int64]


def _leaves(shape: Any, stride: Any) -> list[tuple[int, int]]:
    if isinstance(shape, tuple):
        return [leaf for s, d in zip(shape, stride, strict=True) for leaf in _leaves(s, d)]
    return [(shape, stride)]


def _offsets(shape: Any, stride: Any) -> list[int]:
    """All offsets of one mode, its leftmost leaf fastest."""
    found = [0]
    for extent, step in _leaves(shape, stride):
        found = [before + i * step for i in range(extent) for before in found]
    return found


def two_modes(text: str) -> tuple[list[int], list[int]]:
    """`(2,2):(2,1)` -> the offsets of each mode; a layout of rank 1 stands along the first."""
    shape, stride = (ast.literal_eval(part) for part in text.split(":"))
    if not isinstance(shape, tuple):
        return _offsets(shape, stride), [0]
    return _offsets(shape[0], stride[0]), _offsets(shape[1], stride[1])


def one_mode(text: str) -> list[int]:
    """`8` or `(4,2):(1,16)` -> its offsets."""
    if ":" not in text:
        return list(range(int(text)))
    shape, stride = (ast.literal_eval(part) for part in text.split(":"))
    return _offsets(shape, stride)


def repetitions(tile: list[int], extent: int) -> list[int]:
    """Where copies of the tile start, so that they are disjoint; greedily from 0 upwards."""
    free, starts = set(range(extent)), []
    for start in range(extent):
        copy = {start + offset for offset in tile}
        if len(copy) == len(tile) and copy <= free:
            free -= copy
            starts.append(start)
    return starts


def _mode(extent: int, warps: int, lanes: int, warp_tile: list[int], values: list[int]) -> Ints:
    """-> the coordinate of (warp position, lane position, value)."""
    of_warp, of_lane = repetitions(warp_tile, extent), repetitions(values, len(warp_tile))
    return np.array(
        [
            [
                [
                    of_warp[warp + warps * again] + warp_tile[of_lane[lane + lanes * turn] + value]
                    for again in range(len(of_warp) // warps)
                    for turn in range(len(of_lane) // lanes)
                    for value in values
                ]
                for lane in range(lanes)
            ]
            for warp in range(warps)
        ]
    )


@dataclass(frozen=True)
class Owned:
    """m[thread, i], n[thread, j]: thread's value (i, j) is C(m, n)."""

    m: Ints
    n: Ints


def owned(draft: Draft) -> Owned:
    """Who owns what of the block tile of C, by definition."""
    lanes, warps = two_modes(draft.lanes), two_modes(draft.warps)
    by_position = []
    for mode in (0, 1):
        extent = draft.block[mode]
        tile = one_mode(draft.warp[mode]) if draft.warp else list(range(extent // len(warps[mode])))
        coordinates = _mode(extent, len(warps[mode]), len(lanes[mode]), tile, one_mode(draft.values[mode]))
        by_position.append(coordinates)
    where_lane = {lm + ln: (i, j) for i, lm in enumerate(lanes[0]) for j, ln in enumerate(lanes[1])}
    where_warp = {wm + wn: (i, j) for i, wm in enumerate(warps[0]) for j, wn in enumerate(warps[1])}
    threads = range(len(where_lane) * len(where_warp))
    m, n = (
        np.array([by_position[mode][where_warp[t // 32][mode], where_lane[t % 32][mode]] for t in threads])
        for mode in (0, 1)
    )
    return Owned(m, n)


def words(draft: Draft, operand: str) -> Ints:
    """word[x, k, stage]: where an element of A's or B's k-tile lies in the operand's shared memory."""
    extent, block_k = draft.block["ab".index(operand)], draft.block[2]
    given = {"a": draft.shared_a, "b": draft.shared_b}[operand]
    if given is None:
        unit = 4 if draft.contiguous["ab".index(operand)] == "k" else 8
        row = -(-extent // unit) * unit + unit
        one = np.array([[x + k * row for k in range(block_k)] for x in range(extent)])
    else:
        of_x, of_k = two_modes(given)
        one = np.array([[x + k for k in of_k] for x in of_x])
    stage = -(-(int(one.max()) + 1) // 8) * 8
    return one[:, :, None] + stage * np.arange(draft.stages)[None, None, :]
