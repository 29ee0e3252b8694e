"""Complement and inverses of swizzled layouts, each proved by evaluating its post-condition.

Source: CUTLASS ``include/cute/swizzle_layout.hpp``; a swizzle is its own inverse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from layoutgen.algebra.int_tuple import IntTuple
from layoutgen.algebra.layout import MOST_OFFSETS, Layout
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.errors import LayoutError


def invert_right(layout: ComposedLayout, invert: Callable[[Layout], Layout]) -> ComposedLayout:
    """R with layout(R(i)) == i: first the swizzle back, then the inner layout's right inverse."""
    swizzle, inner = _parts(layout)
    inverse = invert(inner)
    indices = np.arange(_bounded(inverse.size, layout), dtype=np.int64)
    back = swizzle.at(indices) - layout.offset
    if back.min() < 0 or back.max() >= inverse.size:
        raise LayoutError(
            "right inverse: a swizzle permutes the contiguous offsets that its layout reaches",
            got=f"{layout}, whose layout reaches 0 .. {inverse.size - 1} from offset {layout.offset}",
            allowed=f"offset 0 and a multiple of {_span(swizzle)} offsets",
            fix="invert the inner layout, or extend it to whole periods of the swizzle",
        )
    return ComposedLayout(inverse, -layout.offset, ComposedLayout(swizzle, 0, Layout(inverse.size)))


def invert_left(layout: ComposedLayout, invert: Callable[[Layout], Layout]) -> ComposedLayout:
    """L with L(layout(i)) == i: the swizzle back, less the offset, then the inner layout's left inverse."""
    swizzle, inner = _parts(layout)
    inverse = invert(inner)
    return ComposedLayout(inverse, -layout.offset, ComposedLayout(swizzle, 0, Layout(layout.cosize)))


def complement_of(layout: ComposedLayout, cotarget: IntTuple | None, complement: Callable[..., Layout]) -> Layout:
    """The inner layout's complement, if the swizzle leaves it disjoint from ``layout``."""
    _, inner = _parts(layout)
    rest = complement(inner, layout.cosize if cotarget is None else cotarget)
    own = np.unique(layout.offsets())
    _bounded(own.size * rest.size, layout)
    sums = np.unique(own[:, None] + rest.offsets())
    if sums.size != own.size * rest.size:
        raise LayoutError(
            "complement: what a swizzled layout leaves out is what its inner layout does",
            got=f"{layout}, some of whose offsets plus some of {rest} coincide",
            fix="complement a layout that fills whole periods of the swizzle",
        )
    return rest


def _parts(layout: ComposedLayout) -> tuple[Swizzle, Layout]:
    if isinstance(layout.layout_a, Swizzle) and isinstance(layout.layout_b, Layout):
        return layout.layout_a, layout.layout_b
    raise LayoutError("of composed layouts, those of one swizzle and one layout have inverses", got=str(layout))


def _span(swizzle: Swizzle) -> int:
    """The period of a swizzle: it permutes each aligned block of so many offsets."""
    return 1 << (swizzle.base + swizzle.bits + abs(swizzle.shift)) if swizzle.bits else 1


def _bounded(count: int, layout: ComposedLayout) -> int:
    if count > MOST_OFFSETS:
        raise LayoutError(
            "what is proved by evaluation has a bounded size", got=f"{count} offsets of {layout}", allowed=MOST_OFFSETS
        )
    return count
