"""Equal neighbouring cells of an array as few rectangles, so that a picture of 256 x 128 elements stays small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutgen.algebra import Offsets


@dataclass(frozen=True, slots=True)
class Rectangle:
    """The cells [row, row + rows) x [column, column + columns), all of one value."""

    row: int
    column: int
    rows: int
    columns: int
    value: int


def runs(line: Offsets) -> list[tuple[int, int, int]]:
    """One-dimensional array -> (start, length, value) of each run of equal values, in order."""
    starts = np.flatnonzero(np.diff(line, prepend=line[0] - 1))
    lengths = np.diff(starts, append=line.size)
    return [(int(s), int(n), int(line[s])) for s, n in zip(starts, lengths, strict=True)]


def merge(values: Offsets) -> list[Rectangle]:
    """Array of shape (rows, columns) -> rectangles that cover it once each, ordered by row, then by column.

    A run of equal values in a row grows downwards while the next row has the very same run: not the fewest rectangles
    there could be, but exact for tilings, whose pieces are rectangles.

    >>> [(r.row, r.column, r.rows, r.columns, r.value) for r in merge(np.array([[1, 1, 2], [1, 1, 3]]))]
    [(0, 0, 2, 2, 1), (0, 2, 1, 1, 2), (1, 2, 1, 1, 3)]
    """
    open_runs: dict[tuple[int, int, int], int] = {}  # run -> the row where it began
    found: list[Rectangle] = []

    def close(run: tuple[int, int, int], begin: int, end: int) -> None:
        found.append(Rectangle(begin, run[0], end - begin, run[1], run[2]))

    for row in range(values.shape[0]):
        here = {run: open_runs.get(run, row) for run in runs(values[row])}
        for run, begin in open_runs.items():
            if run not in here:
                close(run, begin, row)
        open_runs = here
    for run, begin in open_runs.items():
        close(run, begin, values.shape[0])
    return sorted(found, key=lambda r: (r.row, r.column))


def spans(coordinates: Offsets) -> list[tuple[int, int]]:
    """Coordinates in any order -> (start, length) of each contiguous span of them.

    >>> spans(np.array([5, 0, 1, 4, 9]))
    [(0, 2), (4, 2), (9, 1)]
    """
    ordered = np.unique(coordinates)
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 2) != 1)
    return [(int(ordered[s]), int(e - s)) for s, e in zip(starts, [*starts[1:], ordered.size], strict=True)]
