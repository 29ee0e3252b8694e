"""Changing the element: the same memory read in wider or narrower units."""

from __future__ import annotations

from layoutgen.algebra.int_tuple import unflatten
from layoutgen.algebra.layout import Layout
from layoutgen.errors import LayoutError


def upcast(layout: Layout, n: int) -> Layout:
    """Offsets in elements -> offsets in units of ``n`` elements: strides divide by n, the contiguous extent shrinks.

    Domain: the units that ``layout`` touches, mode by mode. Codomain: offsets in units.

    Post: as a set, R's offsets are layout's over n, rounded down (up where the stride inside a unit is negative).

    Raises:
        LayoutError: a stride neither divides n nor is a multiple of it, or modes inside a unit run past its end.

    >>> print(upcast(Layout.parse("(8,3):(1,8)"), 4))
    (2,3):(1,2)
    >>> print(upcast(Layout.parse("((2,4),3):((1,2),8)"), 4))
    ((1,2),3):((1,1),2)
    """
    if n < 1:
        raise LayoutError("a unit has at least one element", got=n)
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
