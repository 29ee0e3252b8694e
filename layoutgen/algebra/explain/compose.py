"""How coalescing, filtering and composing come about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.compose import composition, with_shape
from layoutgen.algebra.explain.claims import Same, SameSet
from layoutgen.algebra.explain.steps import Step, by_mode, derives, explain, inside
from layoutgen.algebra.int_tuple import IntTuple, to_text
from layoutgen.algebra.layout import Layout, flat_layout, flatten
from layoutgen.algebra.simplify import coalesce, filter, filter_zeros
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.errors import LayoutError


@derives(coalesce)
def _coalesce(result: Any, layout: Any, profile: IntTuple | None = None) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        yield from inside("coalesce", result, layout, *([] if profile is None else [profile]))
        return
    if isinstance(profile, tuple):
        yield from by_mode("coalesce", result, layout, profile)
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


@derives(filter)
def _filter(result: Any, layout: Any) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        yield from inside("filter", result, layout)
        return
    still = [f"{n}:{d}" for n, d in zip(layout.flat_shape, layout.flat_stride, strict=True) if n != 1 and d == 0]
    told = f"{', '.join(still)} never moves: one element is enough" if still else "every mode moves: nothing to drop"
    moving = filter_zeros(layout)
    yield Step(told, moving, SameSet(layout))
    inner = explain("coalesce", moving)
    yield Step("drop what has one element, and merge", result, None, inner)


@derives(composition)
def _composition(result: Any, a: Any, b: Any) -> Iterator[Step]:
    if isinstance(a, Swizzle):
        if isinstance(b, Swizzle):
            yield Step("masks add up where the inner changes no bit that the outer reads", result, Same((a, b)))
        else:
            yield Step("a swizzle is no layout: it stays in front, and acts on the offsets", result, Same((a, b)))
    elif isinstance(a, ComposedLayout):
        yield from inside("composition", result, a, b)
    elif b is None:
        yield Step("_ leaves the layout whole", result, Same((a,)))
    elif isinstance(b, tuple):
        yield from by_mode("composition", result, a, b, keeps=False)
    elif isinstance(b, Swizzle):
        yield Step(
            f"index bits {b.source_mask:#b} and {b.target_mask:#b} of B are offset bits {a(b.source_mask):#b} and "
            f"{a(b.target_mask):#b} of A: swizzling indices as swizzling offsets",
            result,
            Same((a, b)),
        )
    elif isinstance(b, ComposedLayout):
        if b.offset:
            yield Step(f"A would have to take the offset {b.offset} of B apart", result)
            return
        first = explain("composition", a, b.layout_a)
        yield Step("first with the swizzle", first.result, Same((a, b.layout_a)), first)
        second = explain("composition", first.result, b.layout_b)
        yield Step("then with the layout inside", second.result, Same((a, b)), second)
    elif isinstance(b, (Layout, int)):
        yield from _compose_layouts(result, a, b if isinstance(b, Layout) else Layout(b, 1))
    else:
        yield Step("B is no layout, swizzle or tiler", result)


def _compose_layouts(result: Layout | None, a: Layout, b: Layout) -> Iterator[Step]:
    # A stride such as 2@1 names a mode of A, which coalescing would lose.
    named = any(isinstance(d, ScaledBasis) for d in b.flat_stride)
    whole = a if named else coalesce(a)
    if whole.flat_shape != a.flat_shape:
        yield Step("A coalesced is the same function of an index, with fewer modes to walk along", whole, Same((a,)))
    leaves = [Layout(n, d) for n, d in zip(b.flat_shape, b.flat_stride, strict=True)]
    part = None
    for leaf, part in zip(leaves, _alone(a, leaves) if result is None else _parts(b, result)):
        told = "on its way through A" if part is None else _walk(whole, leaf, part)
        yield Step(f"mode {leaf} of B {told}", part, Same((a, leaf)))
    if result is None or result != part:
        alone = "" if len(leaves) < 2 else ", where no sum of these steps may leave the mode of A that they go along"
        yield Step(f"nested like B{alone}", result, Same((a, b)))


def _parts(b: Layout, result: Layout) -> Iterator[Layout]:
    """The part of the result that stands for each leaf of B."""
    if isinstance(b.shape, tuple):
        for mode, part in zip(b, result, strict=True):
            yield from _parts(mode, part)
    else:
        yield result


def _alone(a: Layout, leaves: list[Layout]) -> Iterator[Layout | None]:
    """A composed with each leaf of B; None for a leaf that can't be even by itself."""
    for leaf in leaves:
        if leaf.size == 1 and len(leaves) > 1:
            yield Layout(1, 0)  # whatever its stride, which composition looks at only if B is this leaf
            continue
        try:
            yield composition(a, leaf)
        except LayoutError:
            yield None


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


@derives(with_shape)
def _with_shape(result: Any, layout: Any, shape: IntTuple) -> Iterator[Step]:
    text = f"the compact layout of {to_text(shape)} counts indices: read through it, the function stays the same"
    inner = explain("composition", layout, Layout(shape))
    yield Step(text, result, Same((layout,)), inner)
