"""Slicing: fix some coordinates, keep the others. What a thread or a block sees of a larger layout.

A coordinate here is an int (fixed), None (CuTe's ``_``: kept), or a tuple of those, one per mode. Source: CUTLASS
``media/docs/cpp/cute/03_tensor.md``; ``include/cute/layout.hpp``, ``underscore.hpp``, ``swizzle_layout.hpp`` and
``tensor_impl.hpp``. CuTe's tensors become a View here: a layout, and how far to advance the pointer.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np

from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.compose import Tiler, composition
from layoutgen.algebra.int_tuple import IntTuple, crd2idx, product, rank, to_text, unflatten
from layoutgen.algebra.layout import MOST_OFFSETS, Layout
from layoutgen.algebra.scanner import Scanner
from layoutgen.algebra.simplify import AnyLayout
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.algebra.tiling import zipped_divide
from layoutgen.errors import LayoutError

Coordinate: TypeAlias = "int | None | tuple[Coordinate, ...]"


class View(NamedTuple):
    """What is left of a layout, and the offset at which it starts: element c is at ``offset + layout(c)``.

    Of a coordinate layout, whose strides are scaled basis vectors, the offset is one too; calling the view adds them.

    >>> view = View(Layout.parse("(4,8):(1,4)"), 32)
    >>> print(view, view(1, 2))
    (4,8):(1,4)+32 41
    >>> view = slice_and_offset(Layout((4, 8), (ScaledBasis(1, 0), ScaledBasis(1, 1))), (3, None))
    >>> print(view, view(5))
    (8):(1@1)+3@0+0@1 (3, 5)
    """

    layout: Layout | ComposedLayout
    offset: int

    def __call__(self, *coordinate: IntTuple) -> Any:
        """Coordinate or index -> offset in the whole layout: an int, or a coordinate."""
        point = coordinate[0] if len(coordinate) == 1 else coordinate
        if isinstance(self.layout, ComposedLayout):
            return self.offset + self.layout(point)
        total = self.offset + crd2idx(point, self.layout.shape, self.layout.stride)
        return total.coordinate() if isinstance(total, ScaledBasis) else total

    def __str__(self) -> str:
        return f"{self.layout}+{self.offset}"


def parse_coordinate(text: str) -> Coordinate:
    """Read an int, ``_`` or a tuple of those.

    Raises:
        LayoutError: the text is something else; the message names the column.

    >>> parse_coordinate("(2,(_,0))")
    (2, (None, 0))
    """
    scanner = Scanner(text, "a coordinate reads 3, _ or a tuple of those, such as (2,(_,0))")
    coordinate = _scan(scanner)
    scanner.end()
    return coordinate


def _scan(scanner: Scanner) -> Coordinate:
    if scanner.take("_"):
        return None
    if not scanner.take("("):
        return scanner.integer()
    modes = [_scan(scanner)]
    while scanner.take(","):
        modes.append(_scan(scanner))
    scanner.expect(")")
    return tuple(modes)


@overload
def slice(layout: Layout, coordinate: Coordinate) -> Layout: ...


@overload
def slice(layout: ComposedLayout, coordinate: Coordinate) -> Layout | ComposedLayout: ...


def slice(layout: Layout | ComposedLayout, coordinate: Coordinate) -> Layout | ComposedLayout:
    """The modes of ``layout`` at which the coordinate is ``_``, moved up to the top level; the offset is dropped.

    Domain: the coordinates that are left open. Codomain: that of ``layout``, less the offset of the fixed ones.

    Raises:
        LayoutError: as for slice_and_offset.

    >>> print(slice(Layout.parse("(4,(2,3)):(1,(4,8))"), (2, (None, None))))
    (2,3):(4,8)
    >>> print(slice(ComposedLayout.parse("Sw<3,4,3> o 0 o (10,2):(2,1)"), (None, 0)))
    (10):(2)
    """
    if isinstance(layout, ComposedLayout):
        return _slice_composed(layout, coordinate).layout
    # The offset isn't asked for: of run-time strides it may be a sum that has no name.
    return _kept(layout, coordinate)


def slice_and_offset(layout: Layout | ComposedLayout, coordinate: Coordinate) -> View:
    """The open modes of ``layout``, and the offset at which the fixed coordinates put them.

    Domain: the coordinates that are left open. Codomain: that of ``layout``.

    Post: R.offset + R.layout(c) == layout(c filled into the open places). A swizzled layout becomes a plain one if it
    is one on this slice; that is decided by evaluating it, up to MOST_OFFSETS elements. Otherwise the bits that the
    swizzle reads or changes stay in the composed layout's own offset, and the rest moves out, as in CuTe C++.

    Raises:
        LayoutError: coordinate and shape differ in their modes.

    >>> print(slice_and_offset(Layout.parse("(4,(2,3)):(1,(4,8))"), (2, None)))
    ((2,3)):((4,8))+2
    >>> print(slice_and_offset(ComposedLayout.parse("Sw<3,0,3> o 0 o (8,8):(8,1)"), (5, None)))
    ((2,2,2)):((-1,2,-4))+45
    >>> print(slice_and_offset(ComposedLayout.parse("Sw<3,0,3> o 0 o (8,8,4):(8,1,64)"), (None, None, 2)))
    Sw<3,0,3> o 0 o (8,8):(8,1)+128
    """
    if isinstance(layout, ComposedLayout):
        return _slice_composed(layout, coordinate)
    # Fixed as given, open ones at zero.
    return View(_kept(layout, coordinate), crd2idx(_opened(coordinate), layout.shape, layout.stride))


def _kept(layout: Layout, coordinate: Coordinate) -> Layout:
    shape, stride = (dice_tuple(part, coordinate, fixed=False) for part in (layout.shape, layout.stride))
    return Layout(shape, stride)


def _slice_composed(layout: ComposedLayout, coordinate: Coordinate) -> View:
    inner, advance = slice_and_offset(layout.layout_b, coordinate)
    start = layout.offset + advance
    swizzle = layout.layout_a
    if not isinstance(swizzle, Swizzle) or inner.size > MOST_OFFSETS or not any(_fixed(coordinate)):
        return View(ComposedLayout(swizzle, start, inner), 0)
    wanted = swizzle.at(start + inner.offsets())
    if isinstance(inner, Layout) and (plain := _linear(swizzle, start, inner)) is not None:
        begin = swizzle(start)
        if np.array_equal(begin + plain.offsets(), wanted):
            return View(plain, begin)
    active = start & (swizzle.source_mask | swizzle.target_mask)
    kept = ComposedLayout(swizzle, active, inner)
    if np.array_equal(start - active + kept.offsets(), wanted):
        return View(kept, start - active)
    return View(ComposedLayout(swizzle, start, inner), 0)


def _linear(swizzle: Swizzle, start: int, inner: Layout) -> Layout | None:
    """The layout that steps as the swizzle does from ``start`` when one bit of the offset changes; a candidate only."""
    top = swizzle.base + swizzle.bits + abs(swizzle.shift)
    steps = [swizzle(start + (1 << bit)) - swizzle(start) for bit in range(top)]
    try:
        return composition(Layout((2,) * (top + 1), (*steps, 1 << top)), inner)
    except LayoutError:
        return None


def _fixed(coordinate: Coordinate) -> list[bool]:
    """For each leaf, whether it is fixed."""
    if isinstance(coordinate, tuple):
        return list(chain.from_iterable(map(_fixed, coordinate)))
    return [coordinate is not None]


def _opened(coordinate: Coordinate) -> IntTuple:
    if isinstance(coordinate, tuple):
        return tuple(map(_opened, coordinate))
    return coordinate or 0


def dice(layout: AnyLayout, coordinate: Coordinate) -> AnyLayout:
    """The modes of ``layout`` at which the coordinate is an int, whatever its value: what slice leaves out.

    Domain: the coordinates that are fixed. Codomain: that of ``layout``.

    Post: R(fixed) + slice(layout, c)(open) == layout(c filled in).

    Raises:
        LayoutError: coordinate and shape differ in their modes.

    >>> print(dice(Layout.parse("(4,(2,3)):(1,(4,8))"), (None, (1, None))))
    (2):(4)
    """
    if isinstance(layout, ComposedLayout):
        return layout.map_inner(lambda inner: dice(inner, coordinate))
    shape, stride = (dice_tuple(part, coordinate, fixed=True) for part in (layout.shape, layout.stride))
    return Layout(shape, stride)


def dice_tuple(entries: Any, coordinate: Coordinate, *, fixed: bool = True) -> Any:
    """The entries of a nested tuple (a shape, tiler or coordinate) at which the coordinate is an int; else the others.

    Raises:
        LayoutError: the tuple has other modes than the coordinate.

    >>> dice_tuple((128, 64, 8), (1, None, 1)), dice_tuple((128, 64, 8), (1, None, 1), fixed=False)
    ((128, 8), (64,))
    """
    if not isinstance(coordinate, tuple):
        return entries if (coordinate is not None) == fixed else ()
    return tuple(_lifted(entries, coordinate, fixed))


def _lifted(entries: Any, coordinate: Coordinate, fixed: bool) -> list[Any]:
    if not isinstance(coordinate, tuple):
        return [entries] if (coordinate is not None) == fixed else []
    if not isinstance(entries, tuple) or len(entries) != len(coordinate):
        raise LayoutError(
            "a coordinate has the modes of what it slices, or stops nesting earlier",
            got=f"{coordinate_text(coordinate)} for {len(entries) if isinstance(entries, tuple) else 1} mode(s)",
            allowed=f"{len(entries)} entries" if isinstance(entries, tuple) else "an int or _",
        )
    return list(chain.from_iterable(_lifted(e, c, fixed) for e, c in zip(entries, coordinate, strict=True)))


def coordinate_text(coordinate: Coordinate) -> str:
    """Print a coordinate as CuTe does.

    >>> coordinate_text((2, (None, 0)))
    '(2,(_,0))'
    """
    if isinstance(coordinate, tuple):
        return f"({','.join(map(coordinate_text, coordinate))})"
    return "_" if coordinate is None else str(coordinate)


def coordinate_of(layout: Layout, index: int) -> IntTuple:
    """The coordinate at which an injective layout, such as one of threads, has the value ``index``.

    Domain: values of ``layout``. Codomain: its coordinates, flat in each mode (CuTe's get_flat_coord); 0 along modes
    of stride 0.

    Post: layout(R) == index.

    Raises:
        LayoutError: the layout doesn't reach ``index``, or not with its largest strides first.

    >>> coordinate_of(Layout.parse("(32,(2,2),1):(1,(64,32),0)"), 70)
    (6, 1, 0)
    """
    rest = index
    digits = [0] * len(layout.flat_shape)
    for k in sorted(range(len(digits)), key=lambda k: -layout.flat_stride[k]):
        if layout.flat_stride[k] > 0:
            digits[k] = max(0, min(rest // layout.flat_stride[k], layout.flat_shape[k] - 1))
            rest -= digits[k] * layout.flat_stride[k]
    if rest:
        raise LayoutError(
            "an index is one of those that the layout of threads hands out",
            got=f"{index}, with {layout}",
            fix="ask for a thread of this layout",
        )
    coordinate = unflatten(iter(digits), layout.shape)
    if not isinstance(coordinate, tuple) or not isinstance(layout.shape, tuple):
        return coordinate
    return tuple(crd2idx(c, mode) for c, mode in zip(coordinate, layout.shape, strict=True))


def local_tile(
    layout: AnyLayout, tiler: Tiler, coordinate: Coordinate, projection: tuple[Coordinate, ...] | None = None
) -> View:
    """The tile at ``coordinate`` of those that ``tiler`` cuts (CuTe's inner_partition): the rest is sliced.

    Domain: (tile0,tile1,.., open rest modes). Codomain: that of ``layout``. A tuple coordinate may leave out trailing
    modes, which then stay open. ``projection`` keeps only the entries of tiler and coordinate at which it is an int.

    Post: R.offset + R.layout(t, r) == zipped_divide(layout, tiler)(t, coordinate with r filled in).

    Raises:
        LayoutError: as for zipped_divide and slice.

    >>> print(local_tile(Layout.parse("(256,512):(512,1)"), (128, 64), (1, None)))
    (128,64,8):(512,1,64)+65536
    >>> print(local_tile(Layout.parse("(256,512):(512,1)"), (128, 96, 64), (1, 0, None), (1, None, 1)))
    (128,64,8):(512,1,64)+65536
    """
    if projection is not None:
        tiler, coordinate = dice_tuple(tiler, projection), dice_tuple(coordinate, projection)
    divided = zipped_divide(layout, tiler)
    return slice_and_offset(divided, (all_open(divided, 0), filled_up(coordinate, divided, 1)))


def local_partition(
    layout: AnyLayout, threads: Layout, index: int, projection: tuple[Coordinate, ...] | None = None
) -> View:
    """What thread ``index`` sees if the tile shape(threads) is repeated over ``layout`` (CuTe's outer_partition).

    Domain: which repetition, mode by mode. Codomain: that of ``layout``. ``threads`` maps a coordinate in the tile to
    a thread; ``projection`` keeps only those of its modes at which it is an int.

    Post: R.offset + R.layout(r) == zipped_divide(layout, shape of threads)(coordinate of the thread, r).

    Raises:
        LayoutError: no such thread; as for zipped_divide.

    >>> print(local_partition(Layout.parse("(128,64):(64,1)"), Layout.parse("(32,8):(1,32)"), 37))
    (4,8):(2048,8)+321
    >>> print(local_partition(Layout.parse("(128,8):(1,128)"), Layout((16, 16)), 5, (1, None)))
    (8,8):(16,128)+5
    """
    shape = threads.shape if isinstance(threads.shape, tuple) else (threads.shape,)
    found = coordinate_of(threads, index)
    tiler: Any = tuple(map(product, shape))
    coordinate: Any = found if isinstance(found, tuple) else (found,)
    if projection is not None:
        tiler, coordinate = dice_tuple(tiler, projection), dice_tuple(coordinate, projection)
    divided = zipped_divide(layout, tiler)
    return slice_and_offset(divided, (filled_up(coordinate, divided, 0), all_open(divided, 1)))


def all_open(divided: Layout | ComposedLayout, mode: int) -> Coordinate:
    """``_`` for each part of a mode, which takes the parts out of their parentheses; a lone part stays, as in CuTe."""
    count = rank(divided[mode].shape)
    return (None,) * count if count > 1 else None


def filled_up(coordinate: Coordinate, divided: Layout | ComposedLayout, mode: int) -> Coordinate:
    """A tuple coordinate filled up with ``_`` to the rank of that mode."""
    if not isinstance(coordinate, tuple):
        return coordinate
    missing = rank(divided[mode].shape) - len(coordinate)
    if missing < 0:
        raise LayoutError(
            "a coordinate has at most as many entries as there are modes to point into",
            got=f"{coordinate_text(coordinate)} into {to_text(divided[mode].shape)}",
        )
    return coordinate + (None,) * missing
