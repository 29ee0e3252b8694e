"""Composition: one layout read through another.

Names and results are CuTe C++ 4.x's. Where C++ returns a layout that breaks its own post-condition, composition raises
LayoutError instead. Sources: CUTLASS ``media/docs/cpp/cute/02_layout_algebra.md`` and ``include/cute/layout.hpp``;
Cecka, arXiv 2603.02298.
"""

from __future__ import annotations

from typing import TypeAlias, overload

from layoutgen.algebra.int_tuple import IntTuple, unflatten
from layoutgen.algebra.layout import Layout, make_layout, trusted
from layoutgen.algebra.simplify import AnyLayout, by_mode, merged
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle, compose_swizzles, swizzle_after, swizzled
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
    if isinstance(b, Layout):
        return _compose(a, b)
    if isinstance(b, tuple):
        return make_layout(*by_mode(composition, a, b))
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
    return a


def _compose(a: Layout, b: Layout) -> Layout:
    walk = _Walk(a, b)
    if len(walk.extents) == 1:
        # A is linear, past its end too.
        step = walk.strides[0]
        flat_stride = tuple(d * step for d in b.flat_stride)
        return trusted(b.shape, unflatten(iter(flat_stride), b.shape), b.flat_shape, flat_stride)
    shape: list[int] = []
    stride: list[int] = []
    leaves: list[tuple[IntTuple, IntTuple]] = []
    for n, d in zip(b.flat_shape, b.flat_stride, strict=True):
        first = len(shape)
        walk.leaf(n, d, shape, stride)
        if len(shape) == first + 1:
            leaves.append((shape[first], stride[first]))
        else:
            leaves.append((tuple(shape[first:]), tuple(stride[first:])))
    walk.check_no_carry()
    if not isinstance(b.shape, tuple):
        return trusted(*leaves[0], tuple(shape), tuple(stride))
    return trusted(
        unflatten((leaf[0] for leaf in leaves), b.shape),
        unflatten((leaf[1] for leaf in leaves), b.shape),
        tuple(shape),
        tuple(stride),
    )


class _Walk:
    """B's leaves as walks along the coalesced modes of A, which are the digits of a mixed-radix number.

    Leaf (n, d) visits indices 0, d, .. (n-1)d. It splits into pieces that move along one mode of A each, whose offsets
    are then linear. Pieces add up to A of the sum exactly if no digit overflows; since neighbouring modes don't merge,
    any overflow shows in some value. Thus ``leaf`` and ``check_no_carry`` refuse just what A's modes can't express.
    """

    __slots__ = ("a", "b", "backward", "extents", "forward", "strides")

    def __init__(self, a: Layout, b: Layout) -> None:
        self.a, self.b = a, b
        flat_shape = a.flat_shape
        if flat_shape and flat_shape[-1] == 1:
            # A's last mode goes on past its end, so an extent of 1 there still shapes what follows.
            flat_shape = (*flat_shape[:-1], 2)
        self.extents, self.strides = merged(flat_shape, a.flat_stride)
        if not self.extents:
            self.extents, self.strides = [1], [0]
        # How far B's leaves together move along each mode of A, for positive and negative strides.
        self.forward = [0] * len(self.extents)
        self.backward = [0] * len(self.extents)

    def leaf(self, n: int, d: int, shape: list[int], stride: list[int]) -> None:
        """Append the modes of i -> A(i * d), 0 <= i < n."""
        if d == 0:
            shape.append(n)
            stride.append(0)
            return
        whole_n, whole_d = n, d
        sign, reach = (1, self.forward) if d > 0 else (-1, self.backward)
        d = abs(d)
        last = len(self.extents) - 1
        first = len(shape)
        for mode, extent in enumerate(self.extents):
            if mode == last:
                if n > 1 or len(shape) == first:
                    shape.append(n)
                    stride.append(sign * d * self.strides[mode])
                    reach[mode] += (n - 1) * d
            elif d >= extent:
                if d % extent:
                    raise self._indivisible(whole_n, whole_d, f"step {d} is no multiple of", mode)
                d //= extent
            else:
                inside = -(-extent // d)
                if n > inside:
                    if extent % d:
                        raise self._indivisible(whole_n, whole_d, f"step {d} doesn't divide", mode)
                    if n % inside:
                        raise self._indivisible(whole_n, whole_d, f"{n} steps of {d} don't fill", mode)
                piece = min(n, inside)
                if piece > 1:
                    shape.append(piece)
                    stride.append(sign * d * self.strides[mode])
                    reach[mode] += (piece - 1) * d
                    n //= piece
                    if n == 1:
                        return
                d = 1

    def check_no_carry(self) -> None:
        """Raise unless the sum of all walks stays inside each mode of A but the last, which is open-ended."""
        for mode in range(len(self.extents) - 1):
            reached = max(self.forward[mode], self.backward[mode])
            if reached >= self.extents[mode]:
                raise LayoutError(
                    "composition: the modes of B together stay inside every mode of A that they walk along",
                    got=f"{self.a} o {self.b} reaches coordinate {reached} in mode {self._mode(mode)} of A, "
                    "and would carry into the next",
                    allowed=f"at most coordinate {self.extents[mode] - 1} there",
                    fix="give B smaller extents, or strides that split A's modes evenly",
                )
        if any(self.backward) and any(self.forward):
            walked = [mode for mode in range(len(self.extents)) if self.forward[mode] or self.backward[mode]]
            if len(walked) > 1:
                raise LayoutError(
                    "composition: positive and negative strides of B walk along one and the same mode of A, "
                    "else they borrow between modes",
                    got=f"{self.a} o {self.b} walks along {', '.join(map(self._mode, walked))}",
                    fix="give B strides of one sign",
                )

    def _mode(self, mode: int) -> str:
        return f"{self.extents[mode]}:{self.strides[mode]}"

    def _indivisible(self, n: int, d: int, what: str, mode: int) -> LayoutError:
        return LayoutError(
            "composition: a mode of B walks through A one mode at a time",
            got=f"{self.a} o {self.b}: at mode {n}:{d} of B, {what} mode {self._mode(mode)} of A",
            allowed=f"strides and extents that divide {self.extents[mode]} or are multiples of it",
            fix="choose a tile that divides this mode of A, or compose mode by mode with a tuple",
        )


def with_shape(layout: AnyLayout, shape: IntTuple) -> AnyLayout:
    """The same function of the index under another shape.

    Domain: coordinates of ``shape``. Post: R(i) == layout(i) for every index of ``shape``.

    Raises:
        LayoutError: as for composition.

    >>> print(with_shape(Layout.parse("(4,4):(4,1)"), (8, 2)))
    ((4,2),2):((4,1),2)
    """
    return composition(layout, Layout(shape))
