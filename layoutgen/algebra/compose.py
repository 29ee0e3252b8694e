"""Composition: one layout read through another.

Names and results are CuTe C++ 4.x's. Where C++ returns a layout that breaks its own post-condition, composition raises
LayoutError instead. Sources: CUTLASS ``media/docs/cpp/cute/02_layout_algebra.md`` and ``include/cute/layout.hpp``;
Cecka, arXiv 2603.02298.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias, overload

from layoutgen.algebra.basis import Path, ScaledBasis, single_axis
from layoutgen.algebra.fit import fitted
from layoutgen.algebra.int_tuple import IntTuple, unflatten
from layoutgen.algebra.layout import Layout, get, make_layout, trusted
from layoutgen.algebra.named import NamedLayout, named_error, with_names_of
from layoutgen.algebra.simplify import AnyLayout, by_mode
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle, compose_swizzles, swizzle_after, swizzled
from layoutgen.algebra.walk import open_ended, walk
from layoutgen.errors import LayoutError

Tiler: TypeAlias = "Layout | int | None | tuple[Tiler, ...]"
"""What cuts a mode: a layout, an int n (that is n:1), None (CuTe's ``_``: don't cut), or a tuple, one per mode."""


@overload
def composition(a: Layout, b: Tiler) -> Layout: ...


@overload
def composition(a: ComposedLayout, b: Tiler) -> ComposedLayout: ...


@overload
def composition(a: Swizzle, b: Swizzle) -> Swizzle: ...


@overload
def composition(a: Swizzle, b: ComposedLayout) -> ComposedLayout: ...


@overload
def composition(a: Swizzle, b: Layout) -> Layout | ComposedLayout: ...


@overload
def composition(a: Layout | ComposedLayout, b: Swizzle | ComposedLayout) -> Layout | ComposedLayout: ...


def composition(
    a: Layout | ComposedLayout | Swizzle, b: Tiler | ComposedLayout | Swizzle
) -> Layout | ComposedLayout | Swizzle:
    """R = A o B: first B, then A. With a tuple of tilers, mode k of A composed with entry k; further modes are dropped.

    Domain: that of B. Codomain: that of A. Indices past the end of A extend A's last mode, as in CuTe.

    Post: R(i) == A(B(i)) for every index i of B; B's shape is compatible with R's. CuTe C++ and pycute return layouts
    that break this when modes of B together carry from one mode of A into the next, or when a stride that doesn't
    divide a mode of A runs past its end. This one raises.

    With a named B, the result's modes have its names, and an error says which of them are to blame.

    Raises:
        LayoutError: no layout that moves along one mode of A at a time has these values.

    >>> print(composition(Layout.parse("(6,2):(8,2)"), Layout.parse("(4,3):(3,1)")))
    ((2,2),3):((24,2),8)
    >>> print(composition(Layout.parse("(12,(4,8)):(59,(13,1))"), (3, 8)))
    (3,(4,2)):(59,(13,1))
    >>> composition(Layout.parse("(8,4):(1,16)"), Layout.parse("(2,2):(5,4)"))
    Traceback (most recent call last):
    layoutgen.errors.LayoutError: composition: the modes of B together stay inside every mode of A that they walk along
      got: (8,4):(1,16) o (2,2):(5,4) reaches coordinate 9 in mode 8:1 of A, and would carry into the next
      allowed: at most coordinate 7 there
      fix: give B smaller extents, or strides that split A's modes evenly
    """
    if not isinstance(a, Swizzle):
        return _after(a, b)
    if isinstance(b, Layout):
        return swizzled(a, b)
    if isinstance(b, ComposedLayout):
        return ComposedLayout(a, 0, b)
    if isinstance(b, Swizzle):
        return compose_swizzles(a, b)
    raise LayoutError("a swizzle composes with a layout or a swizzle", got=f"{a} o {b!r}")


def _after(a: Layout | ComposedLayout, b: Tiler | ComposedLayout | Swizzle) -> Layout | ComposedLayout:
    if isinstance(a, ComposedLayout):
        return ComposedLayout(a.layout_a, a.offset, _after(a.layout_b, b))
    if isinstance(b, NamedLayout):
        try:
            return with_names_of(b, _compose(a, b))
        except LayoutError as error:
            raise named_error(error, partial(_compose, a), b) from None
    if isinstance(b, Layout):
        return _compose(a, b)
    if isinstance(b, tuple):
        return with_names_of(a, make_layout(*by_mode(composition, a, b)[: len(b)]))
    if isinstance(b, int):
        return _compose(a, Layout(b, 1))
    if isinstance(b, Swizzle):
        return swizzle_after(a, b)
    if isinstance(b, ComposedLayout):
        if b.offset:
            raise LayoutError(
                "composition: a layout composes with a swizzled layout of offset 0",
                got=f"{a} o ({b})",
                fix="move the offset into the pointer first",
            )
        return _after(_after(a, b.layout_a), b.layout_b)
    if b is None:
        return a
    raise LayoutError("a layout composes with a layout, a swizzle or a tiler", got=f"{a} o {b!r}")


def _compose(a: Layout, b: Layout) -> Layout:
    for d in b.flat_stride:
        if type(d) is not int and isinstance(d, ScaledBasis):
            return _compose_axes(a, b)
    modes = open_ended(a)
    try:
        return walk(a, modes, b.shape, b.flat_shape, b.flat_stride)
    except LayoutError:
        found = fitted(a, modes[0], b)
        if found is None:
            raise
        return found


def _compose_axes(a: Layout, b: Layout) -> Layout:
    """B's offsets are coordinates of A: its leaf n:d@path walks along the mode of A at that path."""
    steps = list(map(single_axis, b.flat_stride))
    parts: dict[Path, list[int]] = {}
    for leaf, (path, _) in enumerate(steps):
        parts.setdefault(path, []).append(leaf)
    leaves: list[Layout] = [Layout(1)] * len(b.flat_stride)
    for path, own in parts.items():
        mode = get(a, *_checked(path, a))
        shape = tuple([b.flat_shape[leaf] for leaf in own])
        stride = tuple([steps[leaf][1] for leaf in own])
        if not path and any(stride):
            raise LayoutError(
                "composition: the strides of B are all coordinates of A, or all indices of it",
                got=f"{a} o {b}",
            )
        for leaf, result in zip(own, walk(mode, open_ended(mode), shape, shape, stride)):
            leaves[leaf] = result
    joined = make_layout(*leaves)
    return trusted(unflatten(iter(joined.shape), b.shape), joined.flat_shape, joined.flat_stride)  # type: ignore[arg-type]


def _checked(path: Path, a: Layout) -> Path:
    """``path``, once it is known to lead to a mode of A."""
    mode: IntTuple = a.shape
    for axis in path:
        if not isinstance(mode, tuple) or axis >= len(mode):
            raise LayoutError(
                "composition: every axis that B moves along is a mode of A",
                got=f"axis {ScaledBasis(1, *path)} for A = {a}",
                allowed=f"one of {len(mode)} mode(s)" if isinstance(mode, tuple) else "an index",
            )
        mode = mode[axis]
    return path


def with_shape(layout: AnyLayout, shape: IntTuple) -> AnyLayout:
    """The same function of the index under another shape.

    Domain: coordinates of ``shape``. Post: R(i) == layout(i) for every index of ``shape``.

    Raises:
        LayoutError: as for composition.

    >>> print(with_shape(Layout.parse("(4,4):(4,1)"), (8, 2)))
    ((4,2),2):((4,1),2)
    """
    return composition(layout, Layout(shape))
