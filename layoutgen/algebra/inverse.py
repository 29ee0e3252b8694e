"""Complement and inverses: what a layout leaves out, and the way back from offsets to indices.

Names and results are CuTe C++ 4.x's; inputs for which C++ breaks its own post-condition raise LayoutError.
Sources: CUTLASS ``media/docs/cpp/cute/02_layout_algebra.md`` and ``include/cute/layout.hpp``; Cecka, arXiv 2603.02298.
"""

from __future__ import annotations

from typing import Any, overload

from layoutgen.algebra.basis import Path, ScaledBasis, single_axis
from layoutgen.algebra.int_tuple import IntTuple, ceil_div, product
from layoutgen.algebra.layout import Layout, flat_layout, trusted
from layoutgen.algebra.simplify import filter_zeros, merged
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.algebra.swizzled import complement_of, invert_left, invert_right
from layoutgen.errors import LayoutError


def complement(layout: Layout | ComposedLayout, cotarget: IntTuple | None = None) -> Layout:
    """What ``layout`` leaves out of the first size(cotarget) offsets; by default of its own cosize.

    Domain: the gaps between and the repetitions after ``layout``. Codomain: offsets.

    Post: R is increasing, and layout(i) + R(j) are all distinct for distinct non-zero-stride coordinates i: R is
    disjoint from ``layout``. If the sorted strides chain (each a multiple of the stride before times its extent) and
    cotarget is a multiple of the last, then (layout, R) covers 0 .. cotarget - 1 exactly once per such coordinate.

    A coordinate layout has a complement if it moves along one axis; a swizzled layout has that of the layout inside, if
    it stays disjoint.

    Raises:
        LayoutError: a negative stride, modes that overlap, or several axes.

    >>> print(complement(Layout.parse("4:2"), 24))
    (2,3):(1,8)
    >>> print(complement(Layout.parse("(2,2):(1,6)"), 24))
    (3,2):(2,12)
    """
    if isinstance(layout, ComposedLayout):
        return complement_of(layout, cotarget, complement)
    try:
        return _rest(layout, cotarget, False)
    except LayoutError:
        along = _axis(layout)
        if along is None:
            raise
    # All strides lie along one axis, which is as good as the integers.
    path, flat_stride = along
    rest = _rest(trusted(layout.shape, layout.flat_shape, flat_stride), cotarget, False)
    basis = ScaledBasis(1, *path)
    return trusted(rest.shape, rest.flat_shape, tuple([d and d * basis for d in rest.flat_stride]))


def _axis(layout: Layout) -> tuple[Path, tuple[Any, ...]] | None:
    """The one axis that a coordinate layout moves along, and how far each mode does; None if there isn't one."""
    steps = list(map(single_axis, layout.flat_stride))
    paths = {path for path, d in steps if d != 0}
    if len(paths) != 1 or () in paths:
        return None
    return paths.pop(), tuple([d for _, d in steps])


def run_time_complement(layout: Layout, cotarget: IntTuple | None = None) -> Layout:
    """``complement`` with its modes of one element, which CuTe cannot drop where integers are known only at run time.

    Domain, codomain, post-conditions and errors: those of ``complement``.

    >>> print(run_time_complement(Layout.parse("4:2"), 8))
    (2,1):(1,8)
    """
    return _rest(layout, cotarget, True)


def _rest(layout: Layout, cotarget: IntTuple | None, keep_ones: bool, /) -> Layout:
    if cotarget is None:
        cotarget = layout.cosize if 0 not in layout.flat_stride else filter_zeros(layout).cosize
    # Dropping size-1 and stride-0 modes one by one equals CuTe's filter, for merged modes sort next to each other.
    shape: list[int] = []
    stride: list[int] = []
    reached = 1
    for d, n in sorted(zip(layout.flat_stride, layout.flat_shape)):
        if n == 1 or d == 0:
            continue
        if d < reached:
            raise LayoutError(
                "complement: the modes of a layout don't overlap and its strides aren't negative",
                got=f"mode {n}:{d} of {layout}, below the {reached} offsets that smaller strides take",
                allowed=f"a stride of at least {reached}",
                fix="take the complement of a layout whose strides nest inside each other",
            )
        gap = d // reached
        if gap != 1 or keep_ones:
            shape.append(gap)
            stride.append(reached)
        reached = d * n
    repetitions = -(-cotarget // reached) if type(cotarget) is int else product(ceil_div(cotarget, reached))
    if repetitions != 1 or keep_ones:
        shape.append(repetitions)
        stride.append(reached)
    # No two of these merge, for each stops short of the next.
    return flat_layout(shape, stride)


@overload
def right_inverse(layout: Layout) -> Layout: ...


@overload
def right_inverse(layout: ComposedLayout) -> ComposedLayout: ...


def right_inverse(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    """The largest R, in order of stride, with layout(R(i)) == i.

    Domain: offsets 0 .. size(R) - 1. Codomain: indices of ``layout``.

    Post: layout(R(i)) == i for every i < size(R); 1:0 if no mode has stride 1.

    Raises:
        LayoutError: a swizzled layout that doesn't fill whole periods of its swizzle from offset 0 on; strides that
            aren't integers.

    >>> print(right_inverse(Layout.parse("(8,4):(4,1)")))
    (4,8):(8,1)
    >>> print(right_inverse(Layout.parse("4:2")))
    1:0
    >>> print(right_inverse(ComposedLayout.parse("Sw<1,0,3> o 0 o (4,4):(4,1)")))
    (4,4):(4,1) o 0 o Sw<1,0,3> o 0 o 16:1
    """
    if isinstance(layout, ComposedLayout):
        return invert_right(layout, right_inverse)
    shape: list[int] = []
    stride: list[int] = []
    reached = 1
    end = 0  # where the last mode of R would go on
    for d, place, n in by_stride(layout):
        if d == reached:
            reached = n * d
            if place == end:
                shape[-1] *= n
                end *= n
            else:
                shape.append(n)
                stride.append(place)
                end = n * place
    if not shape:
        layout.require_ints("the right inverse")
    return flat_layout(shape, stride)


def by_stride(layout: Layout) -> list[tuple[int, int, int]]:
    """(stride, index of the second element, extent) of the coalesced modes, in order of stride, then position."""
    modes: list[tuple[int, int, int]] = []
    leaves = zip(layout.flat_shape, layout.flat_stride)
    extent = step = place = 1
    while extent == 1:
        extent, step = next(leaves, (0, 0))
    if not extent:
        return modes
    end = extent * step  # as in ``merged``, but for the places: an inverse needs both, and is mostly this loop
    for n, d in leaves:
        if d == end:
            extent *= n
            end *= n
        elif n != 1:
            modes.append((step, place, extent))
            place *= extent
            extent, step, end = n, d, n * d
    modes.append((step, place, extent))
    modes.sort()
    return modes


@overload
def left_inverse(layout: Layout) -> Layout: ...


@overload
def left_inverse(layout: ComposedLayout) -> ComposedLayout: ...


def left_inverse(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    """L that undoes ``layout``; a quasi-inverse if ``layout`` isn't injective.

    Domain: offsets. Codomain: indices of ``layout``.

    Post: layout(L(layout(i))) == layout(i) for every index i, so L(layout(i)) == i if ``layout`` is injective.

    Raises:
        LayoutError: sorted strides that don't divide each other, a negative stride, or an overlap that carries.

    >>> print(left_inverse(Layout.parse("(4,2):(1,16)")))
    (16,2):(1,4)
    """
    if isinstance(layout, ComposedLayout):
        return invert_left(layout, left_inverse)
    ordered = by_stride(layout)
    last_place = max([place for _, place, _ in ordered], default=1)
    shape: list[int] = []
    stride: list[int] = [0]
    before = 1
    reach = 0
    for k, (d, place, n) in enumerate(ordered):
        if d == 0:
            continue
        if d < 0 or d % before:
            raise LayoutError(
                "left inverse: each stride, in increasing order, is a multiple of the one before",
                got=f"stride {d} after {before} in {layout}",
                allowed=f"a positive multiple of {before}",
                fix="invert a layout whose sorted strides chain",
            )
        shape.append(d // before)
        stride.append(place)
        before = d
        reach += (n - 1) * d
        # The digit L reads at this stride indexes the mode; smaller strides that overlap can push it past the end.
        period = ordered[k + 1][0] // d if k < len(ordered) - 1 else reach // d + 1
        open_ended = place == last_place and layout.flat_shape[-1] > 1
        digit = min(period - 1, reach // d)
        if digit >= n and not open_ended:
            raise LayoutError(
                "left inverse: modes that overlap don't add up to more than the next mode holds",
                got=f"{digit} steps of {d} in {layout}, where mode {n}:{d} has {n - 1}",
                allowed=f"smaller strides that stay below {d}",
                fix="invert an injective layout, whose strides step past what smaller ones reach",
            )
    shape.append(ordered[-1][2] if ordered else 1)
    return flat_layout(*merged(tuple(shape), tuple(stride)))
