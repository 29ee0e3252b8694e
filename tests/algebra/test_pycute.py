"""pycute, from the CUTLASS wheel, as a second oracle: on random inputs where it and we both answer, the layouts agree.

Where pycute is known to answer wrongly, its answer is compared only after its own post-condition has been checked.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pycute
import pytest

from layoutgen import algebra
from layoutgen.algebra import Layout
from layoutgen.errors import LayoutError
from tests.algebra.reference import EXTENTS, STRIDES, leaves, value, values

PAIRS = 600
WIDE = EXTENTS[1:]


def theirs(layout: Layout) -> pycute.Layout:
    return pycute.Layout(layout.shape, layout.stride)


def ours(layout: pycute.Layout) -> Layout:
    return Layout(layout.shape, layout.stride)


def draw(random: Random, most: int = 3, strides: tuple[int, ...] = STRIDES) -> Layout:
    rank = random.randint(1, most)
    return Layout(tuple(random.choices(EXTENTS, k=rank)), tuple(random.choices(strides, k=rank)))


def compact(random: Random, most: int = 3, extents: tuple[int, ...] = EXTENTS) -> Layout:
    """Contiguous in a random order of its modes."""
    shape = random.choices(extents, k=random.randint(1, most))
    stride, place = [0] * len(shape), 1
    for mode in random.sample(range(len(shape)), len(shape)):
        stride[mode] = place
        place *= shape[mode]
    return Layout(tuple(shape), tuple(stride))


def both(name: str, *arguments: Any) -> tuple[Layout, Layout] | None:
    """Our result and theirs; None if either refuses (pycute does so by assertion, or by a zero extent)."""
    try:
        result = getattr(algebra, name)(*arguments)
        other = getattr(pycute, name)(*(theirs(a) if isinstance(a, Layout) else a for a in arguments))
        return result, ours(other)
    except (LayoutError, AssertionError, ZeroDivisionError):
        return None


def modes(layout: Layout) -> list[tuple[int, int]]:
    """Leaves of extent above 1: the strides of the others differ by convention (CuTe C++ gives them 0)."""
    return [(n, d) for n, d in leaves(layout.shape, layout.stride) if n > 1]


def compare(name: str, arguments: Callable[[Random], tuple[Any, ...]], trusted: Callable[..., bool]) -> None:
    random = Random(name)
    compared = 0
    for _ in range(PAIRS):
        drawn = arguments(random)
        results = both(name, *drawn)
        if results is None or not trusted(results[1], *drawn):
            continue
        mine, other = results
        assert modes(mine) == modes(other), (name, *map(str, drawn))
        assert values(mine) == values(other)
        compared += 1
    assert compared > PAIRS // 10, "too few inputs on which both answer"


def composes(result: Layout, a: Layout, b: Layout) -> bool:
    return values(result) == [value(a, index) for index in values(b)]


def always(*_: Any) -> bool:
    return True


@pytest.mark.parametrize(
    ("name", "arguments", "trusted"),
    [
        ("coalesce", lambda r: (draw(r),), always),
        ("filter", lambda r: (draw(r),), always),
        # pycute lets modes of B carry into each other.
        ("composition", lambda r: (draw(r), draw(r, 2, (1, 2, 3, 4, 8))), composes),
        ("complement", lambda r: (compact(r), r.choice([16, 48, 96, 144])), always),
        ("right_inverse", lambda r: (compact(r),), always),
        ("left_inverse", lambda r: (compact(r),), always),
        # No extents of 1: where a tile overhangs, pycute goes on past such a mode with stride 0.
        ("logical_divide", lambda r: (compact(r, 3, WIDE), Layout(r.choice(EXTENTS), r.choice([1, 2, 4]))), always),
        ("zipped_divide", lambda r: (compact(r, 2, WIDE), (r.choice([1, 2, 3]),)), always),
        # By layouts only: pycute divides by an int where it should multiply.
        ("logical_product", lambda r: (compact(r), compact(r, 2)), always),
        ("tiled_product", lambda r: (compact(r), compact(r, 2)), always),
    ],
)
def test_agrees_with_pycute(
    name: str, arguments: Callable[[Random], tuple[Any, ...]], trusted: Callable[..., bool]
) -> None:
    compare(name, arguments, trusted)


def test_int_tuples_agree_with_pycute() -> None:
    random = Random(1)
    for _ in range(PAIRS):
        shape = (random.choice(EXTENTS), (random.choice(EXTENTS), random.choice(EXTENTS)), random.choice(EXTENTS))
        size = algebra.product(shape)
        index = random.randrange(size)
        assert size == pycute.product(shape)
        coordinate = algebra.idx2crd(index, shape)
        assert coordinate == pycute.idx2crd(index, shape)
        assert algebra.crd2idx(coordinate, shape) == pycute.crd2idx(coordinate, shape) == index
