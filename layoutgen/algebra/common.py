"""What two layouts have in common, the widest copy between them, and what a layout maps to 0.

Source: CUTLASS ``include/cute/layout.hpp`` and ``swizzle_layout.hpp``.
"""

from __future__ import annotations

from math import gcd

from layoutgen.algebra.compose import composition
from layoutgen.algebra.int_tuple import compact_steps
from layoutgen.algebra.inverse import right_inverse
from layoutgen.algebra.layout import Layout, flat_layout
from layoutgen.algebra.runtime import RuntimeInt
from layoutgen.algebra.simplify import coalesce
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.errors import LayoutError


def nullspace(layout: Layout) -> Layout:
    """The stride-0 modes, as indices of ``layout``: what a broadcast repeats.

    Domain: the coordinates of the stride-0 modes. Codomain: indices of ``layout``.

    Post: layout(R(i)) == 0 for every i; size(R) == size(layout) / size(filter(layout)). A kernel that isn't made of
    whole modes, as of (2,2):(1,-1), is left out, as in CuTe.

    >>> print(nullspace(Layout.parse("(2,4,6):(1,2,0)")), nullspace(Layout.parse("(2,2):(1,-1)")))
    6:8 1:0
    """
    places = compact_steps(layout.flat_shape)
    kept = [(n, place) for n, d, place in zip(layout.flat_shape, layout.flat_stride, places) if d == 0]
    return flat_layout([n for n, _ in kept], [place for _, place in kept])


def max_common_layout(a: Layout, b: Layout) -> Layout:
    """The longest contiguous run of offsets that lies at the same indices in both.

    Domain: 0 .. n - 1. Codomain: indices of ``a`` and of ``b``.

    Post: a(R(i)) == b(R(i)) == i for every i; 1:0 if nothing but offset 0 is in common.

    >>> print(max_common_layout(Layout.parse("(8,4):(1,16)"), Layout.parse("(8,4):(1,8)")))
    8:1
    >>> print(max_common_layout(Layout.parse("(4,8):(8,1)"), Layout.parse("(4,8):(8,1)")))
    (8,4):(4,1)
    """
    inverse = right_inverse(b)
    for length in range(len(inverse.flat_shape), 0, -1):
        # Where A can't follow the whole inverse, or ends before, it may follow the modes that run fastest.
        part = flat_layout(list(inverse.flat_shape[:length]), list(inverse.flat_stride[:length]))
        try:
            common = coalesce(composition(a, part))
        except LayoutError:
            continue
        n = common.flat_shape[0]
        if common.flat_stride[0] != 1 or isinstance(n, RuntimeInt):
            break
        result = composition(part, Layout(n))
        if result.cosize <= a.size:
            return result
    return Layout(1)


def max_common_vector(a: Layout | ComposedLayout, b: Layout | ComposedLayout) -> int:
    """How many elements one instruction can move between two layouts: contiguous in both, at the same indices.

    A swizzle keeps runs of 2**base elements together and a multiple of that where it is; so the result divides that,
    and the offset of a composed layout.

    Post: a(c(i)) == i and b(c(i)) == i for 0 <= i < R, with c = max_common_layout of the layouts inside.

    >>> max_common_vector(Layout.parse("(4,8):(1,4)"), Layout.parse("(4,8):(8,1)"))
    1
    >>> max_common_vector(ComposedLayout.parse("Sw<2,3,3> o 0 o (8,64):(64,1)"), Layout.parse("(8,64):(64,1)"))
    8
    """
    if isinstance(a, ComposedLayout):
        if not isinstance(a.layout_a, Swizzle):
            raise LayoutError("of composed layouts, only swizzled ones tell how far they are contiguous", got=a)
        run = gcd(max_common_vector(a.layout_b, b), a.offset)
        return gcd(run, 1 << a.layout_a.base) if a.layout_a.bits else run
    if isinstance(b, ComposedLayout):
        return max_common_vector(b, a)
    return max_common_layout(a, b).size
