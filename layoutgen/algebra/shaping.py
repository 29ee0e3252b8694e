"""Layouts made to measure: compact ones in a given order, and blocks repeated up to a given shape.

Source: CUTLASS ``include/cute/layout.hpp`` and ``stride.hpp``; ``media/docs/cpp/cute/02_layout_algebra.md``.
"""

from __future__ import annotations

from math import gcd

from layoutgen.algebra.int_tuple import IntTuple, compact_col_major, flatten, product, rank, to_text
from layoutgen.algebra.inverse import complement
from layoutgen.algebra.layout import Layout, make_layout
from layoutgen.algebra.properties import covers_exactly_once, is_injective
from layoutgen.algebra.simplify import AnyLayout, coalesce, filter_zeros
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.algebra.tiling import blocked_product, tiled_product
from layoutgen.errors import LayoutError


def product_each(shape: IntTuple) -> tuple[int, ...]:
    """The size of every mode.

    >>> product_each((8, (2, 4)))
    (8, 8)
    """
    return tuple(map(product, shape)) if isinstance(shape, tuple) else (shape,)


def compact_order(shape: IntTuple, order: IntTuple) -> IntTuple:
    """The strides that make ``shape`` contiguous, modes of smaller order faster. Within a leaf of ``order``: leftmost.

    Orders are any ints, compared only. Modes of equal order start at the same stride, as in CuTe, and so overlap.

    Raises:
        LayoutError: ``order`` nests deeper than ``shape``, or has another rank.

    >>> compact_order((4, (2, 8), 3), (2, 3, 1))
    (3, (12, 24), 1)
    """
    sizes = list(zip(flatten(order), map(product, parts_at(shape, order)), strict=True))

    def strides(part: IntTuple, place: IntTuple) -> IntTuple:
        if isinstance(place, tuple) and isinstance(part, tuple):
            return tuple(map(strides, part, place))
        start = 1
        for other, size in sizes:
            if other < product(place):
                start *= size
        return compact_col_major(part, start)

    return strides(shape, order)


def parts_at(shape: IntTuple, order: IntTuple) -> list[IntTuple]:
    """The part of ``shape`` at each leaf of ``order``.

    Raises:
        LayoutError: as for compact_order.

    >>> parts_at((4, (2, 8), 3), (2, (3, 5), 1)), parts_at((4, (2, 8)), (1, 0))
    ([4, 2, 8, 3], [4, (2, 8)])
    """
    if not isinstance(order, tuple):
        return [shape]
    if not isinstance(shape, tuple) or len(shape) != len(order):
        raise LayoutError(
            "an order has the modes of its shape, or stops nesting earlier",
            got=f"order {to_text(order)} for shape {to_text(shape)}",
            allowed=f"{rank(shape)} entries" if isinstance(shape, tuple) else "an int",
        )
    return [leaf for part, place in zip(shape, order, strict=True) for leaf in parts_at(part, place)]


def make_ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
    """The layout of ``shape`` with strides as of compact_order.

    Domain: coordinates of ``shape``. Codomain: 0 .. size - 1.

    Post: a bijection if no two leaves of ``order`` are equal; leaves of equal order overlap, as in CuTe.

    Raises:
        LayoutError: as for compact_order.

    >>> print(make_ordered_layout((4, 8), (2, 1)))
    (4,8):(8,1)
    >>> print(make_ordered_layout((2, 3, 4, 2), (0, 2, 3, 0)))
    (2,3,4,2):(1,4,12,1)
    """
    return Layout(shape, compact_order(shape, order))


def make_layout_like(layout: Layout | ComposedLayout) -> Layout:
    """The compact layout of the same shape and order of strides; modes of stride 0 keep it. A swizzle is left out.

    Domain: that of ``layout``. Codomain: 0 .. (number of coordinates, stride-0 modes not counted) - 1.

    Post: R(c) == R(d) only where stride-0 modes differ, if no two strides of ``layout`` are equal.

    >>> print(make_layout_like(Layout.parse("(2,3,4,5):(0,42,4,0)")))
    (2,3,4,5):(0,4,1,0)
    >>> print(make_layout_like(Layout.parse("(4,8):(2,32)")))
    (4,8):(1,4)
    """
    if isinstance(layout, ComposedLayout):
        return make_layout_like(layout.layout_b)
    return Layout(layout.shape, compact_order(filter_zeros(layout).shape, layout.stride))


def make_fragment_like(layout: Layout | ComposedLayout) -> Layout:
    """Registers for what ``layout`` shows a thread: the first mode (one atom's values) contiguous, then the rest in
    the order of its strides.

    Domain: that of ``layout``. Codomain: registers; the stride-0 parts of the first mode share theirs.

    >>> print(make_fragment_like(Layout.parse("((2,2),4,8):((1,64),1024,16)")))
    ((2,2),4,8):((1,2),32,4)
    """
    if isinstance(layout, ComposedLayout):
        return make_fragment_like(layout.layout_b)
    if layout.rank == 1:
        return Layout(layout.shape)
    first = layout[0]
    rest = make_layout(*list(layout)[1:])
    ordered = make_ordered_layout(rest.shape, rest.stride)
    return tiled_product(Layout(first.shape, compact_col_major(filter_zeros(first).shape)), ordered)


def tile_to_shape(block: AnyLayout, shape: IntTuple, order: IntTuple | None = None) -> AnyLayout:
    """Repeat ``block`` until it fills ``shape``, along the modes of smaller ``order`` first (default: leftmost first).

    Domain: coordinates of ``shape``. Codomain: offsets. Modes of ``shape`` past the block's only repeat it.

    Post: mode k of R has the size of mode k of ``shape``; R restricted to the block's coordinates is ``block``.

    Raises:
        LayoutError: the block's modes don't divide those of ``shape``, or it has more; as for blocked_product.

    >>> print(tile_to_shape(Layout.parse("(4,8):(8,1)"), (16, 32), (2, 1)))
    ((4,4),(8,4)):((8,128),(1,32))
    >>> print(tile_to_shape(Layout.parse("(8,32):(32,1)"), (64, 32, 3)))
    ((8,8),(32,1),(1,3)):((32,256),(1,0),(0,2048))
    >>> print(tile_to_shape(ComposedLayout.parse("Sw<1,3,3> o 0 o (8,16):(16,1)"), (64, 16)))
    Sw<1,3,3> o 0 o ((8,8),(16,1)):((16,128),(1,0))
    """
    if isinstance(block, ComposedLayout):
        return block.map_inner(lambda inner: tile_to_shape(inner, shape, order))
    target = product_each(shape)
    sizes = product_each(block.shape)
    sizes += (1,) * (len(target) - len(sizes))
    if len(sizes) != len(target) or any(whole % part for whole, part in zip(target, sizes, strict=True)):
        raise LayoutError(
            "tile_to_shape: each mode of the block divides that of the shape",
            got=f"{block} for {to_text(shape)}",
            allowed=f"multiples of {to_text(sizes)}",
            fix="use a smaller block (a narrower swizzle atom) or a larger shape",
        )
    repetitions = tuple(whole // part for whole, part in zip(target, sizes, strict=True))
    tiler = Layout(repetitions) if order is None else make_ordered_layout(repetitions, order)
    return blocked_product(make_layout(*block, *[Layout(1, 0)] * (len(target) - block.rank)), tiler)


def cuts_evenly(tiler: int | Layout, extent: int) -> bool:
    """Whether ``tiler`` and its repetitions reach each of 0 .. extent - 1 exactly once, and nothing else.

    Raises:
        LayoutError: it overlaps itself, or the divisor of a run-time extent doesn't decide it.

    >>> cuts_evenly(8, 24), cuts_evenly(Layout((2, 4), (1, 4)), 32), cuts_evenly(Layout((2, 4), (1, 4)), 24)
    (True, True, False)
    """
    size = tiler if isinstance(tiler, int) else tiler.size
    if extent % size:
        return False
    if isinstance(tiler, int) or (tiler.cosize == size and is_injective(tiler)):
        return True
    return bool(covers_exactly_once(make_layout(tiler, complement(tiler, extent)), extent))


def domain_distribute(shape: IntTuple | Layout | ComposedLayout, count: int) -> Layout:
    """``count`` indices of a shape or of a layout's, taken from each mode as far as both divide: work shared among
    threads.

    Domain: 0 .. size(R) - 1. Codomain: indices of ``shape``.

    Post: R is injective and increasing; size(R) divides count, and equals it only if the modes' common divisors allow.

    Raises:
        LayoutError: ``count`` is below 1.

    >>> print(domain_distribute((15, 14), 6))
    (3,2):(1,15)
    """
    if count < 1:
        raise LayoutError("work is shared among at least one", got=count)
    extents, strides = [], []
    place = 1
    for extent in flatten(shape.shape if isinstance(shape, (Layout, ComposedLayout)) else shape):
        share = gcd(extent, count)
        extents.append(share)
        strides.append(place)
        count //= share
        place *= extent
    return coalesce(Layout(tuple(extents), tuple(strides)))
