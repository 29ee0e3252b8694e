"""How a layout changes when its elements do."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Any

from layoutgen.algebra.explain.claims import SameBits, Units
from layoutgen.algebra.explain.steps import Step, derives, explain
from layoutgen.algebra.layout import Layout, make_layout
from layoutgen.algebra.recast import contiguous_modes, downcast, recast_layout, upcast
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle


@derives(upcast)
def _upcast(result: Any, layout: Any, n: int) -> Iterator[Step]:
    if n < 1:
        yield Step("a unit has at least one element", result)
    elif isinstance(layout, Swizzle) and n & (n - 1):
        yield Step(f"{n} elements as a number of bits", result)
    elif isinstance(layout, Swizzle):
        yield Step(
            f"offsets over {n} have their bits {_log2(n)} places lower; what falls out stays inside a unit",
            result,
            Units(layout, n),
        )
    elif isinstance(layout, ComposedLayout):
        if layout.offset % n:
            yield Step(f"the offset {layout.offset}, in whole units of {n}", result)
            return
        yield from _both("upcast", layout, n)
        yield Step(f"the offset in units: {layout.offset} // {n} == {layout.offset // n}", result, Units(layout, n))
    else:
        yield from _upcast_layout(result, layout, n)


def _upcast_layout(result: Any, layout: Layout, n: int) -> Iterator[Step]:
    up = False
    for extent, d in zip(layout.flat_shape, layout.flat_stride, strict=True):
        step, sign = abs(d), 1 if d > 0 else -1
        if step % n == 0:
            text, count = f"{extent}:{d} steps over whole units ({d} // {n} == {d // n})", extent
        elif extent == 1:
            text, count = f"{extent}:{d} has one element, wherever it is in its unit", 1
        elif n % step == 0:
            per_unit = n // step
            count = -(-extent // per_unit)
            text = (
                f"{extent}:{d} has {per_unit} elements in a unit ({n} // {step} == {per_unit}), and so touches {count}"
            )
            up = up or d < 0
        else:
            yield Step(f"{extent}:{d} in units of {n}", None)
            return
        part = Layout(count, sign * -(-step // n))
        yield Step(text, part, Units(Layout(extent, d), n, up=d < 0))
    yield Step("together: what lies inside a unit has to stay inside", result, Units(layout, n, up))


@derives(downcast)
def _downcast(result: Any, layout: Any, n: int) -> Iterator[Step]:
    if n < 1:
        yield Step("an element has at least one part", result)
    elif isinstance(layout, Swizzle) and n & (n - 1):
        yield Step(f"{n} parts as a number of bits", result)
    elif isinstance(layout, Swizzle):
        yield Step(f"offsets times {n} have their bits {_log2(n)} places higher", result, SameBits(layout, n, 1))
    elif isinstance(layout, ComposedLayout):
        yield from _both("downcast", layout, n)
        moved = f"the offset in parts: {layout.offset} * {n} == {layout.offset * n}"
        yield Step(moved, result, SameBits(layout, n, 1))
    else:
        yield from _by_ratio(result, layout, n, 1)


def _both(name: str, layout: ComposedLayout, n: int) -> Iterator[Step]:
    """The two functions of a swizzled layout, one after the other."""
    if not isinstance(layout.layout_a, Swizzle):
        yield Step("a swizzle in front of a layout", None)
        return
    for what, part in (("swizzle", layout.layout_a), ("layout inside", layout.layout_b)):
        inner = explain(name, part, n)
        yield Step(f"the {what}", inner.result, None, inner)


def _by_ratio(result: Any, layout: Layout, old: int, new: int) -> Iterator[Step]:
    """Elements of ``old`` units as elements of ``new`` units, neither a multiple of the other unless one is 1."""
    modes = list(zip(layout.flat_shape, layout.flat_stride, strict=True))
    along = contiguous_modes(layout)
    if len(along) != 1:
        yield Step(f"elements split along the mode of stride 1, of which there are {len(along)}", result)
        return
    (contiguous,) = along
    before: list[Layout] = []
    after: list[Layout] = []
    backward = modes[contiguous][1] < 0
    for k in sorted(range(len(modes)), key=lambda k: k != contiguous):
        n, d = modes[k]
        run, what = (n, f"{n} elements in a row") if k == contiguous else (d if n > 1 else 0, f"a stride of {d}")
        if run % new:
            yield Step(f"{what}, of {old} units each, in elements of {new}", None)
            return
        told = f"{n}:{d}: {what} is " if k != contiguous else f"{n}:{d}: {what} are "
        shrunk = f"{run} // {new} == {run // new}, " if new > 1 else ""
        grown = run // new * old
        before.append(Layout(n, d))
        after.append(Layout(grown, d) if k == contiguous else Layout(n, grown))
        text = f"{told}{grown} of the new ({shrunk}{run // new} * {old} == {grown})"
        yield Step(text, make_layout(*after), SameBits(make_layout(*before), old, new, backward))
    yield Step("each mode where it was", result, SameBits(layout, old, new, backward))


@derives(recast_layout)
def _recast_layout(result: Any, layout: Any, old_bits: int, new_bits: int) -> Iterator[Step]:
    if old_bits < 1 or new_bits < 1:
        yield Step("an element has at least one bit", result)
        return
    common = gcd(old_bits, new_bits)
    old, new = old_bits // common, new_bits // common
    if old == 1:
        inner = explain("upcast", layout, new)
        yield Step(f"a new element holds {new} old ones ({old_bits} * {new} == {new_bits})", result, None, inner)
    elif new == 1:
        inner = explain("downcast", layout, old)
        yield Step(f"an old element holds {old} new ones ({new_bits} * {old} == {old_bits})", result, None, inner)
    elif isinstance(layout, Layout):
        yield from _by_ratio(result, layout, old, new)
    else:
        yield Step(f"{new} old elements as {old} new ones", result)


def _log2(n: int) -> int:
    return n.bit_length() - 1
