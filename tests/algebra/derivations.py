"""Checks of derivations: each step's claim and arithmetic hold by evaluation, and refusals are the operation's."""

from __future__ import annotations

import re
from itertools import product as cartesian
from typing import Any

from layoutgen import algebra
from layoutgen.algebra import ComposedLayout, Layout, Swizzle, View
from layoutgen.algebra.explain import (
    Disjoint,
    Explanation,
    Finds,
    Same,
    SameBits,
    SameOffsets,
    SameSet,
    SideBySide,
    Slice,
    Step,
    Undoes,
    Units,
    explain,
)
from layoutgen.errors import LayoutError
from tests.algebra.reference import value, values

EQUATION = re.compile(r"\(?(-?\d+(?: (?:\*|//) -?\d+)? [!=]= -?\d+)\)?")


def at(function: Any, index: int) -> Any:
    """Layouts by definition; swizzles, which have no shape, and coordinate layouts by calling them."""
    if isinstance(function, View) and isinstance(function.offset, int):
        return function.offset + at(function.layout, index)
    if isinstance(function, ComposedLayout):
        return at(function.layout_a, function.offset + at(function.layout_b, index))
    if isinstance(function, Layout) and all(type(d) is int for d in function.flat_stride):
        return value(function, index)
    return trimmed(function(index))


def trimmed(offset: Any) -> Any:
    """An offset, or a coordinate up to its last axis that isn't 0: it says nothing of later ones."""
    while isinstance(offset, tuple) and offset and offset[-1] == 0:
        offset = offset[:-1]
    return offset


def offsets(layout: Any) -> list[int]:
    static = isinstance(layout, Layout) and layout.is_static
    return values(layout) if static else [at(layout, i) for i in range(layout.size)]


def bits(layout: Any, width: int, backward: bool) -> set[int]:
    return {o * width + (-k if backward else k) for o in set(offsets(layout)) for k in range(width)}


def filled(shape: Any, coordinate: Any) -> list[Any]:
    """The coordinates of ``shape`` that agree with ``coordinate`` where it isn't None, leftmost fastest."""
    if coordinate is None:
        return list(range(algebra.size(shape)))
    if not isinstance(coordinate, tuple):
        return [coordinate]
    modes = [filled(n, c) for n, c in zip(shape, coordinate, strict=True)]
    return [point[::-1] for point in cartesian(*reversed(modes))]


def holds(step: Step) -> bool:
    result: Any = step.result
    claim = step.claim
    match claim:
        case None:
            return step.inner is not None and step.inner.result == result is not None
        case Same(chain):
            size = 4096 if isinstance(result, Swizzle) else result.size
            return all(at(result, i) == through(chain, i) for i in range(size))
        case SameOffsets(other):
            return sorted(offsets(result)) == sorted(offsets(other))
        case SameSet(other):
            return set(offsets(result)) == set(offsets(other))
        case Disjoint(other):
            sums = [a + b for a in set(offsets(other)) for b in offsets(result)]
            return len(set(sums)) == len(sums)
        case Undoes(other):
            return [at(other, index) for index in offsets(result)] == list(range(result.size))
        case Finds(other, some):
            return all(at(other, at(result, o)) == o for o in offsets(some))
        case SideBySide(parts):
            return list(map(offsets, result)) == list(map(offsets, parts))
        case Units(Swizzle() as other, n, _):
            return all(result(i) == other(i * n) // n for i in range(4096))
        case Units(other, n, up):
            return set(offsets(result)) == {-(-o // n) if up else o // n for o in offsets(other)}
        case SameBits(Swizzle() as other, n, 1):
            return all(result(n * i + k) == n * other(i) + k for i in range(1024) for k in range(n))
        case SameBits(other, old, new, backward):
            return bits(result, new, backward) == bits(other, old, backward)
        case Slice(other, coordinate):
            chosen = [trimmed(other(point)) for point in filled(other.shape, coordinate)]
            return [at(result, i) for i in range(result.layout.size)] == chosen
    raise AssertionError(f"no check for {claim}")


def through(chain: tuple[Any, ...], index: int) -> int:
    for function in reversed(chain):
        index = at(function, index)
    return index


def check(explanation: Explanation) -> None:
    assert explanation.error is None
    assert explanation.steps[-1].result == explanation.result
    for step in explanation.walk():
        assert step.error is None and holds(step), f"{explanation}\n{step}"
        for equation in EQUATION.findall(step.text):
            assert eval(equation), step.text


def check_refused(explanation: Explanation, error: LayoutError) -> None:
    """All that comes before the last step holds; the last is refused, as the operation is."""
    assert explanation.result is None and explanation.error is not None
    assert str(explanation.error) == str(error)
    *done, last = explanation.steps
    for step in done:
        for inner in [*(step.inner.walk() if step.inner else ()), step]:
            assert inner.error is None and holds(inner), f"{explanation}\n{step}"
    assert last.result is None and last.claim is None
    assert str(last.error) == str(error)
    if last.inner is not None:
        assert last.inner.error is not None and last.inner.error.rule == error.rule
        check_refused(last.inner, last.inner.error)


def explained_or_refused(name: str, arguments: tuple[Any, ...]) -> Explanation:
    """The explanation, checked to say what the operation does."""
    explanation = explain(name, *arguments)
    try:
        result = getattr(algebra, name)(*arguments)
    except LayoutError as error:
        check_refused(explanation, error)
    else:
        assert explanation.result == result
        check(explanation)
    return explanation
