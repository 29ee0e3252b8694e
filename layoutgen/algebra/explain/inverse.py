"""How complements and inverses come about."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from layoutgen.algebra.basis import ScaledBasis, single_axis
from layoutgen.algebra.coordinate import is_coordinate_layout
from layoutgen.algebra.explain.claims import Disjoint, Finds, Same, SameOffsets, Undoes
from layoutgen.algebra.explain.steps import Step, derives, explain
from layoutgen.algebra.int_tuple import IntTuple, ceil_div, product, to_text, unflatten
from layoutgen.algebra.inverse import by_stride, complement, left_inverse, right_inverse
from layoutgen.algebra.layout import Layout, flat_layout
from layoutgen.algebra.simplify import coalesce
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle


@derives(complement)
def _complement(result: Any, layout: Any, cotarget: IntTuple | None = None) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        if not _is_swizzled(layout):
            yield Step("one swizzle in front of one layout", result)
            return
        inner = explain("complement", layout.layout_b, layout.cosize if cotarget is None else cotarget)
        yield Step("what the layout inside leaves out", inner.result, None, inner)
        yield Step("as a swizzle moves offsets about, check that none of their sums coincide", result, Disjoint(layout))
    elif is_coordinate_layout(layout):
        yield from _complement_along_an_axis(result, layout, cotarget)
    else:
        yield from _complement_of_integers(result, layout, cotarget)


def _complement_along_an_axis(result: Any, layout: Layout, cotarget: IntTuple | None) -> Iterator[Step]:
    steps = list(map(single_axis, layout.flat_stride))
    paths = {path for path, d in steps if d != 0}
    if len(paths) != 1 or () in paths:
        yield Step("strides have an order if all of them go along one axis", result)
        return
    along = Layout(layout.shape, unflatten(iter([d for _, d in steps]), layout.shape))
    basis = ScaledBasis(1, *paths.pop())
    inner = explain("complement", along, cotarget)
    yield Step(f"along {basis} alone, distances are as good as offsets", inner.result, None, inner)
    assert isinstance(inner.result, Layout)
    yield Step(f"the distances as coordinates along {basis}", result, Same((Layout(1, basis), inner.result)))


def _complement_of_integers(result: Any, layout: Layout, cotarget: IntTuple | None) -> Iterator[Step]:
    modes = sorted((d, n) for n, d in zip(layout.flat_shape, layout.flat_stride, strict=True) if n != 1 and d != 0)
    ordered = flat_layout([n for _, n in modes], [d for d, _ in modes])
    kept = flat_layout(*_unzipped([(n, d) for n, d in zip(layout.flat_shape, layout.flat_stride, strict=True) if d]))
    yield Step("the modes that move, by stride: only which offsets they take matters", ordered, SameOffsets(kept))
    gaps: list[tuple[int, int]] = []
    taken: list[tuple[int, int]] = []
    reached = 1
    for d, n in modes:
        if d < reached:
            yield Step(f"{n}:{d} starts at {d}, and what comes before fills {reached}: they overlap", None)
            return
        gap = d // reached
        told = f"{n}:{d} starts at {d}, and what comes before fills {reached}: {d} // {reached} == {gap}"
        gaps += [(gap, reached)] if gap != 1 else []
        taken.append((n, d))
        text = f"{told}, so {gap} copies fit before it" if gap != 1 else f"{told}, no gap"
        yield Step(text, flat_layout(*_unzipped(gaps)), Disjoint(flat_layout(*_unzipped(taken))))
        reached = d * n
    if cotarget is None:
        cotarget = 1 + sum((n - 1) * d for d, n in modes)
    repeats = ceil_div(cotarget, reached)
    gaps.append((product(repeats), reached))
    size = to_text(cotarget) if isinstance(cotarget, tuple) else f"all {cotarget}"
    text = f"all of it takes {reached}; {to_text(repeats)} of that, rounded up, make {size}"
    yield Step(text, whole := flat_layout(*_unzipped(gaps)), Disjoint(ordered))
    if result != whole:
        yield Step("coalesce", result, Same((whole,)))


def _unzipped(modes: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [n for n, _ in modes], [d for _, d in modes]


@derives(right_inverse)
def _right_inverse(result: Any, layout: Any) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        yield from _through_a_swizzle("right_inverse", result, layout, Undoes(layout))
        return
    if is_coordinate_layout(layout):
        yield Step("indices can be looked up by offsets, which are integers", result)
        return
    whole = coalesce(layout)
    if whole.flat_shape != layout.flat_shape:
        yield Step("coalesced, the same function of an index", whole, Same((layout,)))
    modes = []
    for k, (n, d) in enumerate(zip(whole.flat_shape, whole.flat_stride, strict=True)):
        modes.append((d, k, n, prod(whole.flat_shape[:k])))
    found: list[tuple[int, int]] = []
    reached = 1
    for d, _, n, place in sorted(modes):
        if n != 1 and d == reached:
            found.append((n, place))
            reached = n * d
            text = f"{n}:{d} reaches the offsets from {d} on with indices {place} apart: up to {n} * {d} == {reached}"
        else:
            text = f"{n}:{d} doesn't go on from offset {reached}: {d} != {reached}" if n != 1 else "1 element: nothing"
        yield Step(text, flat_layout(*_unzipped(found)), Undoes(layout))
    if result != flat_layout(*_unzipped(found)):
        yield Step("coalesce", result, Undoes(layout))


@derives(left_inverse)
def _left_inverse(result: Any, layout: Any) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        yield from _through_a_swizzle("left_inverse", result, layout, Finds(layout, layout))
        return
    if is_coordinate_layout(layout):
        yield Step("indices can be looked up by offsets, which are integers", result)
        return
    whole = coalesce(layout)
    if whole.flat_shape != layout.flat_shape:
        yield Step("coalesced, the same function of an index", whole, Same((layout,)))
    digits: list[tuple[int, int]] = []
    told: list[tuple[int, int]] = []  # the modes so far, from the last on that smaller ones overlap
    before, place_before = 1, 0
    for d, place, n in by_stride(layout):
        if d == 0:
            continue
        if d < 0 or d % before:
            yield Step(f"the stride of {n}:{d} is no positive multiple of {before}, the one before", None)
            return
        digits.append((d // before, place_before))
        told = [*(told if sum((m - 1) * e for m, e in told) < d else []), (n, d)]
        yield Step(
            f"{n}:{d} is a digit of the offset, counting in steps of {d} ({before} * {d // before} == {d}); "
            f"each moves the index by {place}",
            flat_layout(*_unzipped([*digits, (n, place)])),
            Finds(layout, flat_layout(*_unzipped(told))),
        )
        before, place_before = d, place
    yield Step("the digits together, coalesced, where none may count past its mode", result, Finds(layout, layout))


def _is_swizzled(layout: ComposedLayout) -> bool:
    return isinstance(layout.layout_a, Swizzle) and isinstance(layout.layout_b, Layout)


def _through_a_swizzle(name: str, result: Any, layout: ComposedLayout, claim: Undoes | Finds) -> Iterator[Step]:
    """An inverse of swizzle o offset o layout."""
    if not _is_swizzled(layout):
        yield Step("one swizzle in front of one layout", result)
        return
    inner = explain(name, layout.layout_b)
    yield Step("the way back through the layout inside", inner.result, None, inner)
    yield Step(f"before it, back through {layout.layout_a}, its own inverse, and less the offset", result, claim)
