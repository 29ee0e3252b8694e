"""Changing the element: the same memory read in wider or narrower units."""

from __future__ import annotations

from math import gcd
from typing import TypeVar

from layoutgen.algebra.int_tuple import unflatten
from layoutgen.algebra.layout import Layout
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.errors import LayoutError

Recastable = TypeVar("Recastable", Layout, ComposedLayout, Swizzle, Layout | ComposedLayout)


def upcast(layout: Recastable, n: int) -> Recastable:
    """Offsets in elements -> offsets in units of ``n`` elements: strides divide by n, the contiguous extent shrinks.

    Domain: the units that ``layout`` touches, mode by mode. Codomain: offsets in units.

    Post: as a set, R's offsets are layout's over n, rounded down (up where the stride inside a unit is negative).

    Raises:
        LayoutError: a stride neither divides n nor is a multiple of it, or modes inside a unit run past its end.

    A swizzle moves down by log2(n) bits. Bits of it that fall inside a unit are dropped: they only permute elements
    within units, which the coarser layout doesn't see.

    >>> print(upcast(Layout.parse("(8,3):(1,8)"), 4))
    (2,3):(1,2)
    >>> print(upcast(Layout.parse("((2,4),3):((1,2),8)"), 4))
    ((1,2),3):((1,1),2)
    >>> print(upcast(ComposedLayout.parse("Sw<3,4,3> o 0 o (8,64):(64,1)"), 2))
    Sw<3,3,3> o 0 o (8,32):(32,1)
    """
    _check_unit(n)
    if isinstance(layout, Swizzle):
        return _upcast_swizzle(layout, n)
    if isinstance(layout, ComposedLayout):
        if layout.offset % n:
            raise LayoutError(
                "upcast: the offset of a composed layout is a whole number of units",
                got=f"offset {layout.offset} of {layout} for units of {n} elements",
                allowed=f"a multiple of {n}",
            )
        return ComposedLayout(upcast(_swizzle_of(layout), n), layout.offset // n, upcast(layout.layout_b, n))
    return _upcast_layout(layout, n)


def downcast(layout: Recastable, n: int) -> Recastable:
    """Offsets in elements -> offsets in n-ths of an element: strides grow by n, and so does the contiguous extent.

    Domain: the parts of the elements that ``layout`` touches. Codomain: offsets in parts.

    Post: as a set, R's offsets are n * offset + k for every offset of ``layout`` and 0 <= k < n; n * offset - k if the
    contiguous stride is -1, as in CuTe.

    Raises:
        LayoutError: no mode of stride 1 or -1 to split the elements along, or more than one.

    >>> print(downcast(Layout.parse("(4,4):(4,1)"), 4))
    (4,16):(16,1)
    """
    _check_unit(n)
    if isinstance(layout, Swizzle):
        return Swizzle(layout.bits, layout.base + _log2(n), layout.shift)
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(downcast(_swizzle_of(layout), n), layout.offset * n, downcast(layout.layout_b, n))
    return recast_ratio(layout, 1, n)


def recast_layout(layout: Recastable, old_bits: int, new_bits: int) -> Recastable:
    """The layout of elements of ``old_bits`` read as elements of ``new_bits``.

    Domain -> codomain: coordinates of the new elements -> offsets in new elements.

    Raises:
        LayoutError: as for upcast and downcast; for a ratio that is no integer, unless every row is whole in both.

    >>> print(recast_layout(Layout.parse("(8,8):(8,1)"), 16, 4))
    (8,32):(32,1)
    >>> print(recast_layout(Layout.parse("(8,8):(8,1)"), 6, 16))
    (8,3):(3,1)
    """
    if old_bits < 1 or new_bits < 1:
        raise LayoutError("an element has at least one bit", got=f"{old_bits} and {new_bits} bits")
    common = gcd(old_bits, new_bits)
    grow, shrink = old_bits // common, new_bits // common
    if grow == 1:
        return upcast(layout, shrink)
    if shrink == 1:
        return downcast(layout, grow)
    if isinstance(layout, Layout):
        return recast_ratio(layout, shrink, grow)
    raise LayoutError("a swizzled layout recasts by a power of two", got=f"{layout} from {old_bits} to {new_bits} bits")


def recast_ratio(layout: Layout, shrink: int, grow: int) -> Layout:
    """Every ``shrink`` elements along the contiguous mode become ``grow`` new ones."""
    modes = list(zip(layout.flat_shape, layout.flat_stride, strict=True))
    contiguous = contiguous_modes(layout)
    if len(contiguous) != 1:
        raise LayoutError(
            "recasting: elements split along the one mode of stride 1",
            got=f"{len(contiguous)} such modes in {layout}",
            allowed="exactly one",
        )
    shape: list[int] = []
    stride: list[int] = []
    for k, (n, d) in enumerate(modes):
        run = n if k == contiguous[0] else d if n > 1 else 0
        if run % shrink:
            raise LayoutError(
                "recasting: the contiguous extent and every other stride are a multiple of the old element count",
                got=f"mode {n}:{d} of {layout}, {shrink} old elements to {grow} new ones",
                allowed=f"a multiple of {shrink}",
            )
        shape.append(n // shrink * grow if k == contiguous[0] else n)
        stride.append(d if k == contiguous[0] else d // shrink * grow)
    return Layout(unflatten(iter(shape), layout.shape), unflatten(iter(stride), layout.shape))


def contiguous_modes(layout: Layout) -> list[int]:
    """Which leaves step from element to element: those of stride 1 or -1, of several those that move.

    >>> contiguous_modes(Layout.parse("(4,8):(8,1)")), contiguous_modes(Layout.parse("(4,1):(1,1)"))
    ([1], [0])
    """
    modes = list(zip(layout.flat_shape, layout.flat_stride, strict=True))
    moving = [k for k, (n, d) in enumerate(modes) if abs(d) == 1 and n > 1]
    return moving or [k for k, (_, d) in enumerate(modes) if abs(d) == 1]


def _check_unit(n: int) -> None:
    if n < 1:
        raise LayoutError("an element is at least one unit", got=n)


def _log2(n: int) -> int:
    if n & (n - 1):
        raise LayoutError("a swizzle recasts by a power of two", got=n)
    return n.bit_length() - 1


def _swizzle_of(layout: ComposedLayout) -> Swizzle:
    if not isinstance(layout.layout_a, Swizzle):
        raise LayoutError("of composed layouts, only swizzled ones recast", got=layout)
    return layout.layout_a


def _upcast_swizzle(swizzle: Swizzle, n: int) -> Swizzle:
    base = swizzle.base - _log2(n)
    if base >= 0:
        return Swizzle(swizzle.bits, base, swizzle.shift)
    if swizzle.shift < 0 and swizzle.bits:
        raise LayoutError(
            "upcast: no bit inside a unit moves the unit",
            got=f"{swizzle} in units of {n} elements",
            allowed=f"units of at most {1 << swizzle.base} elements",
        )
    return Swizzle(max(swizzle.bits + base, 0), 0, swizzle.shift)


def _upcast_layout(layout: Layout, n: int) -> Layout:
    shape: list[int] = []
    stride: list[int] = []
    within = {1: 0, -1: 0}
    for extent, d in zip(layout.flat_shape, layout.flat_stride, strict=True):
        step, sign = abs(d), 1 if d > 0 else -1
        stride.append(sign * -(-step // n))
        if step % n == 0:
            shape.append(extent)
        elif n % step == 0 or extent == 1:
            per_unit = -(-n // step)
            shape.append(-(-extent // per_unit))
            within[sign] += (min(extent, per_unit) - 1) * step
        else:
            raise LayoutError(
                "upcast: every stride divides the unit or is a multiple of it",
                got=f"stride {d} of {layout} for units of {n} elements",
                allowed=f"divisors and multiples of {n}",
                fix="pad the layout so that its rows start on whole units, or use narrower units",
            )
    if within[1] >= n or within[-1] >= n or (within[1] and within[-1]):
        raise LayoutError(
            "upcast: the modes inside a unit stay inside it",
            got=f"{layout} runs {within[1] or within[-1]} elements past the start of a unit of {n}"
            if not (within[1] and within[-1])
            else f"{layout} mixes strides of both signs inside a unit of {n}",
            allowed=f"at most {n - 1}, in one direction",
            fix="make the contiguous extent a multiple of the unit",
        )
    return Layout(unflatten(iter(shape), layout.shape), unflatten(iter(stride), layout.shape))
