"""The layout with given values, if there is one: composition's last resort where a walk along the modes of A stops.

A walk refuses a step over the end of a mode. Yet strides of A that are 0 or repeat can bring the values back onto one
line, which only the values tell.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul

import numpy as np

from layoutgen.algebra.int_tuple import unflatten
from layoutgen.algebra.layout import Layout, Offsets, trusted

MOST_FITTED = 1 << 16  # elements of B; looking at more would make a refusal slow
MOST_OFFSET = 1 << 62  # past that, int64 wraps around


def linear_modes(values: Offsets) -> list[tuple[int, int]] | None:
    """Extent and stride of the coalesced modes whose layout has these values; None if no layout does.

    The first mode is the longest linear run, which leaves no choice.

    >>> linear_modes(np.array([0, 3, 8, 11])), linear_modes(np.array([0, 3, 8]))
    ([(2, 3), (2, 8)], None)
    """
    modes = []
    while values.size > 1:
        step = int(values[1])
        bent = np.flatnonzero(values != step * np.arange(values.size))
        run = int(bent[0]) if bent.size else values.size
        if values.size % run:
            return None
        rows = values.reshape(-1, run)
        if not np.array_equal(rows, rows[:, :1] + rows[0]):
            return None
        modes.append((run, step))
        values = rows[:, 0]
    return modes


def fitted(a: Layout, extents: list[int], b: Layout) -> Layout | None:
    """A o B by its values, ``extents`` being those of A's coalesced modes; None if there is none or B is too large.

    None, too, for what CuTe refuses by rule: a B of one element, and a leaf that splits by stepping over the end of a
    mode of A.
    """
    if not (a.is_static and b.is_static and 1 < b.size <= MOST_FITTED):
        return None
    if b.cosize * max(map(abs, a.flat_stride), default=0) >= MOST_OFFSET:
        return None
    parts: list[Layout] = []
    for n, d in zip(b.flat_shape, b.flat_stride, strict=True):
        modes = linear_modes(a.at(np.arange(n, dtype=np.int64) * d)) or ([(1, 0)] if n == 1 else None)
        if modes is None or _steps_over(abs(d), modes, extents):
            return None
        shape, stride = zip(*modes, strict=True)
        parts.append(trusted(shape if len(shape) > 1 else n, shape, stride))
    result = trusted(
        unflatten(iter([part.shape for part in parts]), b.shape),
        tuple([n for part in parts for n in part.flat_shape]),
        tuple([d for part in parts for d in part.flat_stride]),
    )
    return result if np.array_equal(result.offsets(), a.at(b.offsets())) else None


def _steps_over(d: int, modes: list[tuple[int, int]], extents: list[int]) -> bool:
    """Whether a leaf of stride ``d`` and these modes goes on, after one of them, from inside a mode of A."""
    starts = accumulate([n for n, _ in modes], mul, initial=d)
    for (n, _), step in zip(modes[:-1], starts, strict=False):
        for extent in extents[:-1]:
            step, digit = divmod(step, extent)
            if n * digit > extent:
                return True
    return False
