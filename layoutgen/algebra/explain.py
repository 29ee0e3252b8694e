"""Derivations: how an operation reaches its result, in steps that each claim something which evaluation can check.

The steps restate the operations' definitions (CUTLASS ``media/docs/cpp/cute/02_layout_algebra.md``). The result is the
operation's own, so that an explanation explains what really comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.compose import Tiler, composition
from layoutgen.algebra.int_tuple import IntTuple, ceil_div, product, to_text
from layoutgen.algebra.inverse import complement, right_inverse
from layoutgen.algebra.layout import Layout, flat_layout, flatten
from layoutgen.algebra.simplify import coalesce
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.algebra.tiling import flat_divide, logical_divide, tiled_divide, zipped_divide
from layoutgen.errors import LayoutError

Function: TypeAlias = "Layout | ComposedLayout | Swizzle"


@dataclass(frozen=True, slots=True)
class Same:
    """result(i) == chain[0](chain[1](.. (i))) for every index i of the result."""

    chain: tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class SameOffsets:
    """The result reaches the offsets of ``other``, each as often; the order of indices may differ."""

    other: Layout | ComposedLayout


@dataclass(frozen=True, slots=True)
class Disjoint:
    """No two different pairs of an offset of ``other`` and one of the result have the same sum."""

    other: Layout


@dataclass(frozen=True, slots=True)
class Undoes:
    """other(result(i)) == i for every index i of the result."""

    other: Layout


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Mode k of the result is parts[k], as a function."""

    parts: tuple[Layout, ...]


Claim: TypeAlias = "Same | SameOffsets | Disjoint | Undoes | SideBySide"


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a derivation.

    Attributes:
        text: what is done and why, with its arithmetic spelled out as equations such as ``2 * 3 == 6``.
        result: the layout it gives: the whole so far, or the part that the text speaks of.
        claim: what holds of the result; None where ``inner``, which ends in the same result, says it all.
        inner: the derivation of the result, where the step is an operation of its own.
    """

    text: str
    result: Function
    claim: Claim | None
    inner: Explanation | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A call, the steps of its derivation, and its result; ``str`` lays them out as numbered lines."""

    call: str
    steps: tuple[Step, ...]
    result: Function

    def walk(self) -> Iterator[Step]:
        """Every step, those of inner derivations before the step that they derive."""
        for step in self.steps:
            if step.inner is not None:
                yield from step.inner.walk()
            yield step

    def lines(self, indent: str = "") -> Iterator[str]:
        """The text, line by line."""
        yield f"{indent}{self.call}"
        for number, step in enumerate(self.steps, 1):
            yield f"{indent}  {number}. {step.text}"
            if step.inner is not None:
                yield from step.inner.lines(f"{indent}     ")
            else:
                yield f"{indent}     {step.result}"
        yield f"{indent}  = {self.result}"

    def __str__(self) -> str:
        return "\n".join(self.lines())


def explain(operation: str | Callable[..., Any], *arguments: Any) -> Explanation:
    """The derivation of ``operation(*arguments)``, an operation of EXPLAINED given by name or as the function.

    Raises:
        LayoutError: as for the operation itself, or no derivation is written for it.

    >>> from layoutgen.algebra import composition
    >>> print(explain(composition, Layout.parse("(6,2):(8,2)"), Layout.parse("(4,3):(3,1)")))
    composition((6,2):(8,2), (4,3):(3,1))
      1. mode 4:3 of B takes 2 steps of 3 along 6:8 of A (3 * 8 == 24), then 2 of 6 along 2:2 (1 * 2 == 2)
         (2,2):(24,2)
      2. mode 3:1 of B takes 3 steps of 1 along 6:8 of A (1 * 8 == 8)
         3:8
      3. nested like B: no sum of these steps leaves the mode of A that they go along
         ((2,2),3):((24,2),8)
      = ((2,2),3):((24,2),8)
    """
    name = operation if isinstance(operation, str) else getattr(operation, "__name__", repr(operation))
    if name not in _DERIVATIONS:
        raise LayoutError(
            "explain derives the operations that it has a derivation for", got=name, allowed=", ".join(EXPLAINED)
        )
    result = _OPERATIONS[name](*arguments)
    call = f"{name}({', '.join(map(_show, arguments))})"
    return Explanation(call, tuple(_DERIVATIONS[name](result, *arguments)), result)


def _show(argument: Any) -> str:
    if argument is None:
        return "_"
    if isinstance(argument, tuple) and not all(isinstance(entry, int) for entry in argument):
        return f"<{','.join(map(_show, argument))}>"
    return to_text(argument) if isinstance(argument, (int, tuple)) else str(argument)


def _inside(name: str, result: ComposedLayout, layout: ComposedLayout, *rest: Any) -> Step:
    inner = explain(name, layout.layout_b, *rest)
    assert isinstance(inner.result, (Layout, ComposedLayout))
    text = f"{layout.layout_a} o {layout.offset} acts on the offsets afterwards, so the layout inside changes alone"
    return Step(text, result, Same((ComposedLayout(layout.layout_a, layout.offset, inner.result),)), inner)


def _by_mode(name: str, result: Layout, layout: Layout, entries: tuple[Any, ...]) -> Iterator[Step]:
    parts = []
    for mode, entry in enumerate(entries):
        inner = explain(name, layout[mode], entry)
        assert isinstance(inner.result, Layout)
        parts.append(inner.result)
        yield Step(f"mode {mode}", inner.result, None, inner)
    untouched = list(layout)[len(parts) :] if len(parts) < result.rank else []
    yield Step("the modes side by side", result, SideBySide((*parts, *untouched)))


# Coalesce


def _coalesce(result: Any, layout: Any, profile: IntTuple | None = None) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        yield _inside("coalesce", result, layout, *([] if profile is None else [profile]))
        return
    if isinstance(profile, tuple):
        yield from _by_mode("coalesce", result, layout, profile)
        return
    same = Same((layout,))
    if layout.depth > 1:
        yield Step("nesting is only a grouping of indices: flatten", flatten(layout), same)
    done: list[tuple[int, int]] = []
    rest = list(zip(layout.flat_shape, layout.flat_stride, strict=True))
    apart = []
    merged = False
    while rest:
        n, d = rest.pop(0)
        if n == 1:
            text = f"drop {n}:{d}, which has one element and never moves"
        elif done and done[-1][0] * done[-1][1] == d:
            before_n, before_d = done.pop()
            text = f"{before_n}:{before_d} ends where {n}:{d} begins ({before_n} * {before_d} == {d}): merge"
            done.append((before_n * n, before_d))
            merged = True
        else:
            if done:
                apart.append(f"{done[-1][0]} * {done[-1][1]} != {d}")
            done.append((n, d))
            continue
        shape, stride = zip(*(done + rest), strict=True) if done + rest else ((1,), (0,))
        yield Step(text, flat_layout(list(shape), list(stride)), same)
    if apart:
        yield Step(f"{'nothing else merges' if merged else 'no neighbours merge'}: {', '.join(apart)}", result, same)
    else:
        yield Step("a single mode is left", result, same)


# Composition


def _composition(result: Any, a: Any, b: Any) -> Iterator[Step]:
    if isinstance(a, ComposedLayout):
        yield _inside("composition", result, a, b)
    elif b is None:
        yield Step("_ leaves the layout whole", result, Same((a,)))
    elif isinstance(b, tuple):
        yield from _by_mode("composition", result, a, b)
    elif isinstance(a, Swizzle) and isinstance(b, Swizzle):
        yield Step("the inner changes no bit that the outer reads, so their masks add up", result, Same((a, b)))
    elif isinstance(a, Swizzle):
        yield Step("a swizzle is no layout: it stays in front, and acts on the offsets", result, Same((a, b)))
    elif isinstance(b, Swizzle):
        yield Step(
            f"index bits {b.source_mask:#b} and {b.target_mask:#b} of B are offset bits {a(b.source_mask):#b} and "
            f"{a(b.target_mask):#b} of A, so swizzling indices is swizzling offsets",
            result,
            Same((a, b)),
        )
    elif isinstance(b, ComposedLayout):
        first = explain("composition", a, b.layout_a)
        yield Step("first with the swizzle", first.result, Same((a, b.layout_a)), first)
        second = explain("composition", first.result, b.layout_b)
        yield Step("then with the layout inside", second.result, Same((a, b)), second)
    else:
        yield from _compose_layouts(result, a, Layout(b, 1) if isinstance(b, int) else b)


def _compose_layouts(result: Layout, a: Layout, b: Layout) -> Iterator[Step]:
    # A stride such as 2@1 names a mode of A, which coalescing would lose.
    named = any(isinstance(d, ScaledBasis) for d in b.flat_stride)
    whole = a if named else coalesce(a)
    if whole.flat_shape != a.flat_shape:
        yield Step("A coalesced is the same function of an index, with fewer modes to walk along", whole, Same((a,)))
    leaves = list(_leaves(b, result))
    for leaf, part in leaves:
        yield Step(f"mode {leaf} of B {_walk(whole, leaf, part)}", part, Same((a, leaf)))
    if not leaves or result != leaves[-1][1]:
        alone = "" if len(leaves) < 2 else ": no sum of these steps leaves the mode of A that they go along"
        yield Step(f"nested like B{alone}", result, Same((a, b)))


def _leaves(b: Layout, result: Layout) -> Iterator[tuple[Layout, Layout]]:
    """Each leaf of B with the part of the result that stands for it."""
    if isinstance(b.shape, tuple):
        for mode, part in zip(b, result, strict=True):
            yield from _leaves(mode, part)
    else:
        yield b, result


def _walk(a: Layout, leaf: Layout, part: Layout) -> str:
    """How one leaf n:d of B moves through the coalesced modes of A."""
    n, d = leaf.flat_shape[0], leaf.flat_stride[0]
    if n == 1 or d == 0:
        return "doesn't move"
    if isinstance(d, ScaledBasis):
        return f"goes along the mode of A that {d} names"
    if not all(type(number) is int for number in (n, d, *a.flat_shape)):
        return "goes through A as far as divisors tell"
    pieces: list[str] = []
    for m, s in zip(part.flat_shape, part.flat_stride, strict=True):
        mode, place = 0, 1
        while mode < len(a.flat_shape) - 1 and abs(d) >= place * a.flat_shape[mode]:
            place *= a.flat_shape[mode]
            mode += 1
        extent, step = a.flat_shape[mode], a.flat_stride[mode]
        inside = d // place
        along = f"along {extent}:{step}{'' if pieces else ' of A'}"
        why = f"{inside} * {step} == {s}" if inside * place == d and inside * step == s else f"A({d}) is {s}"
        pieces.append(f"{m}{'' if pieces else ' steps'} of {d} {along} ({why})")
        d *= m
    return "takes " + ", then ".join(pieces)


# Complement, divides


def _complement(result: Layout, layout: Layout, cotarget: IntTuple | None = None) -> Iterator[Step]:
    modes = sorted((d, n) for n, d in zip(layout.flat_shape, layout.flat_stride, strict=True) if n > 1 and d != 0)
    ordered = flat_layout([n for _, n in modes], [d for d, _ in modes])
    kept = flat_layout(*_unzipped([(n, d) for n, d in zip(layout.flat_shape, layout.flat_stride, strict=True) if d]))
    yield Step("the modes that move, by stride: only which offsets they take matters", ordered, SameOffsets(kept))
    gaps: list[tuple[int, int]] = []
    taken: list[tuple[int, int]] = []
    reached = 1
    for d, n in modes:
        gap = d // reached
        told = f"{n}:{d} starts at {d}, and what comes before fills {reached}: {d} // {reached} == {gap}"
        gaps += [(gap, reached)] if gap > 1 else []
        taken.append((n, d))
        text = f"{told}, so {gap} copies fit before it" if gap > 1 else f"{told}, no gap"
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


def _logical_divide(result: Any, layout: Any, tiler: Tiler) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        yield _inside("logical_divide", result, layout, tiler)
    elif tiler is None:
        yield Step("_ leaves the layout whole", result, Same((layout,)))
    elif isinstance(tiler, tuple):
        yield from _by_mode("logical_divide", result, layout, tiler)
    else:
        tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
        rest = explain("complement", tile, coalesce(layout).shape)
        yield Step("where the tiles start: what the tile leaves out", rest.result, Disjoint(tile), rest)
        both = Layout((tile.shape, rest.result.shape), (tile.stride, rest.result.stride))  # type: ignore[union-attr]
        inner = explain("composition", layout, both)
        yield Step("read the layout through (tile, rest)", inner.result, Same((layout, both)), inner)


def _regrouped(how: str) -> Callable[..., Iterator[Step]]:
    def derivation(result: Any, layout: Any, tiler: Tiler) -> Iterator[Step]:
        inner = explain("logical_divide", layout, tiler)
        assert isinstance(inner.result, (Layout, ComposedLayout))
        yield Step("cut each mode into (tile, rest)", inner.result, None, inner)
        yield Step(how, result, SameOffsets(inner.result))

    return derivation


# Right inverse


def _right_inverse(result: Layout, layout: Layout) -> Iterator[Step]:
    whole = coalesce(layout)
    if whole.flat_shape != layout.flat_shape:
        yield Step("coalesced, the same function of an index", whole, Same((layout,)))
    modes = []
    for k, (n, d) in enumerate(zip(whole.flat_shape, whole.flat_stride, strict=True)):
        modes.append((d, k, n, prod(whole.flat_shape[:k])))
    found: list[tuple[int, int]] = []
    reached = 1
    for d, _, n, place in sorted(modes):
        if n > 1 and d == reached:
            found.append((n, place))
            reached = n * d
            text = f"{n}:{d} reaches the offsets from {d} on with indices {place} apart: up to {n} * {d} == {reached}"
        else:
            text = f"{n}:{d} doesn't go on from offset {reached}: {d} != {reached}" if n > 1 else "1 element: nothing"
        yield Step(text, flat_layout(*_unzipped(found)), Undoes(layout))
    if result != flat_layout(*_unzipped(found)):
        yield Step("coalesce", result, Undoes(layout))


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "coalesce": coalesce,
    "complement": complement,
    "composition": composition,
    "flat_divide": flat_divide,
    "logical_divide": logical_divide,
    "right_inverse": right_inverse,
    "tiled_divide": tiled_divide,
    "zipped_divide": zipped_divide,
}
_DERIVATIONS: dict[str, Callable[..., Iterator[Step]]] = {
    "coalesce": _coalesce,
    "complement": _complement,
    "composition": _composition,
    "flat_divide": _regrouped("tiles and rests as modes of their own: (tile0,tile1,..,rest0,rest1,..)"),
    "logical_divide": _logical_divide,
    "right_inverse": _right_inverse,
    "tiled_divide": _regrouped("tiles first, then each rest as a mode: ((tile0,tile1,..),rest0,rest1,..)"),
    "zipped_divide": _regrouped("tiles first, rests second: ((tile0,tile1,..),(rest0,rest1,..))"),
}
EXPLAINED = tuple(_OPERATIONS)
