"""Merged cells are the array again, in no more rectangles than a tiling has pieces."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.draw.cells import merge, runs, spans

ARRAYS = st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(
    lambda shape: st.lists(st.integers(-1, 2), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
        lambda values: np.array(values).reshape(shape)
    )
)


@given(ARRAYS)
def test_rectangles_cover_the_array_once(values: np.ndarray) -> None:
    again = np.full(values.shape, 99)
    covered = np.zeros(values.shape, dtype=int)
    for r in merge(values):
        place = slice(r.row, r.row + r.rows), slice(r.column, r.column + r.columns)
        again[place] = r.value
        covered[place] += 1
    assert (again == values).all()
    assert (covered == 1).all()


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4))
def test_a_tiling_needs_one_rectangle_a_tile(down: int, right: int, rows: int, columns: int) -> None:
    tiles = np.arange(down * right).reshape(down, right)
    assert len(merge(np.kron(tiles, np.ones((rows, columns), dtype=int)))) == down * right


@given(st.lists(st.integers(-1, 1), min_size=1, max_size=12))
def test_runs_are_the_line_and_never_touch_their_like(line: list[int]) -> None:
    found = runs(np.array(line))
    assert [value for _, n, value in found for _ in range(n)] == line
    assert all(a[2] != b[2] for a, b in zip(found, found[1:], strict=False))


@given(st.sets(st.integers(0, 30), min_size=1))
def test_spans_are_the_set_and_never_touch(numbers: set[int]) -> None:
    found = spans(np.array(sorted(numbers, reverse=True)))
    assert {at + i for at, n in found for i in range(n)} == numbers
    assert all(a[0] + a[1] < b[0] for a, b in zip(found, found[1:], strict=False))
