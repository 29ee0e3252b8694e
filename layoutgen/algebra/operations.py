"""The functions on layouts that everything else is made of: coalesce, filter, composition, complement and the inverses.

Names and results are CuTe C++ 4.x's. Where C++ returns a layout that breaks its own post-condition, these raise
LayoutError instead. Sources: CUTLASS ``media/docs/cpp/cute/02_layout_algebra.md`` and ``include/cute/layout.hpp``;
Cecka, arXiv 2603.02298.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from layoutgen.algebra.int_tuple import IntTuple, ceil_div, product
from layoutgen.algebra.layout import Layout, flat_layout, make_layout, trusted
from layoutgen.errors import LayoutError

Tiler: TypeAlias = "Layout | int | None | tuple[Tiler, ...]"
"""What cuts a mode: a layout, an int n (that is n:1), None (CuTe's ``_``: don't cut), or a tuple, one per mode."""


T = TypeVar("T")


def by_mode(operation: Callable[[Layout, T], Layout], layout: Layout, entries: tuple[T, ...]) -> list[Layout]:
    """``operation`` applied to each mode that has an entry, with that entry."""
    if len(entries) > layout.rank:
        raise LayoutError(
            "a tuple works mode by mode, so it has at most as many entries as the layout has modes",
            got=f"{len(entries)} entries for {layout}, which has {layout.rank} mode(s)",
        )
    return [operation(layout[mode], entry) for mode, entry in enumerate(entries)]


def coalesce(layout: Layout, profile: IntTuple | None = None) -> Layout:
    """Merge neighbouring modes and drop modes of extent 1.

    Domain -> codomain: those of ``layout``. With a tuple ``profile``, each of its leaves coalesces the mode it stands
    for and keeps it a mode; modes past the profile stay as they are.

    Post: size(R) == size(layout); R(i) == layout(i) for every index; without a profile depth(R) <= 1.

    Raises:
        LayoutError: the profile has more modes than the layout.

    >>> print(coalesce(Layout.parse("(2,(1,6)):(1,(6,2))")))
    12:1
    >>> print(coalesce(Layout.parse("(2,(1,6)):(1,(6,2))"), (1, 1)))
    (2,6):(1,2)
    """
    if isinstance(profile, tuple):
        modes = by_mode(coalesce, layout, profile)
        return make_layout(*modes, *list(layout)[len(profile) :])
    return flat_layout(*_merged(layout.flat_shape, layout.flat_stride))


def _merged(flat_shape: tuple[int, ...], flat_stride: tuple[int, ...]) -> tuple[list[int], list[int]]:
    shape: list[int] = []
    stride: list[int] = []
    for n, d in zip(flat_shape, flat_stride, strict=True):
        if n == 1:
            continue
        if shape and shape[-1] * stride[-1] == d:
            shape[-1] *= n
        else:
            shape.append(n)
            stride.append(d)
    return shape, stride


def filter_zeros(layout: Layout) -> Layout:
    """Set the extent of every stride-0 mode to 1; the profile stays.

    Post: R has the offsets of ``layout``, each as often as its other modes reach it.

    >>> print(filter_zeros(Layout.parse("(4,(2,3)):(0,(1,2))")))
    (1,(2,3)):(0,(1,2))
    """

    def kept(n: IntTuple, d: IntTuple) -> IntTuple:
        if isinstance(n, tuple) and isinstance(d, tuple):
            return tuple(map(kept, n, d))
        return n if d else 1

    return Layout(kept(layout.shape, layout.stride), layout.stride)


def filter(layout: Layout) -> Layout:
    """Drop modes of stride 0 and of extent 1, then coalesce.

    Post: the offsets of R are those of ``layout`` as a set; depth(R) <= 1.

    >>> print(filter(Layout.parse("(4,(2,3)):(0,(1,2))")))
    6:1
    """
    return coalesce(filter_zeros(layout))


def composition(a: Layout, b: Tiler) -> Layout:
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
    if isinstance(b, Layout):
        return _compose(a, b)
    if isinstance(b, tuple):
        return make_layout(*by_mode(composition, a, b))
    if b is None:
        return a
    return _compose(a, Layout(b, 1))


def _compose(a: Layout, b: Layout) -> Layout:
    walk = _Walk(a, b)
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
        _nest((leaf[0] for leaf in leaves), b.shape),
        _nest((leaf[1] for leaf in leaves), b.shape),
        tuple(shape),
        tuple(stride),
    )


def _nest(leaves: Iterator[IntTuple], profile: IntTuple) -> IntTuple:
    if isinstance(profile, tuple):
        return tuple(_nest(leaves, mode) for mode in profile)
    return next(leaves)


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
        self.extents, self.strides = _merged(flat_shape, a.flat_stride)
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


def with_shape(layout: Layout, shape: IntTuple) -> Layout:
    """The same function of the index under another shape.

    Domain: coordinates of ``shape``. Post: R(i) == layout(i) for every index of ``shape``.

    Raises:
        LayoutError: as for composition.

    >>> print(with_shape(Layout.parse("(4,4):(4,1)"), (8, 2)))
    ((4,2),2):((4,1),2)
    """
    return composition(layout, Layout(shape))


def complement(layout: Layout, cotarget: IntTuple | None = None) -> Layout:
    """What ``layout`` leaves out of the first size(cotarget) offsets; by default of its own cosize.

    Domain: the gaps between and the repetitions after ``layout``. Codomain: offsets.

    Post: R is increasing, and layout(i) + R(j) are all distinct for distinct non-zero-stride coordinates i: R is
    disjoint from ``layout``. If the sorted strides chain (each a multiple of the stride before times its extent) and
    cotarget is a multiple of the last, then (layout, R) covers 0 .. cotarget - 1 exactly once per such coordinate.

    Raises:
        LayoutError: a negative stride, or modes that overlap.

    >>> print(complement(Layout.parse("4:2"), 24))
    (2,3):(1,8)
    >>> print(complement(Layout.parse("(2,2):(1,6)"), 24))
    (3,2):(2,12)
    """
    # Dropping size-1 and stride-0 modes one by one equals CuTe's filter, for merged modes sort next to each other.
    modes = sorted((d, n) for n, d in zip(layout.flat_shape, layout.flat_stride, strict=True) if n > 1 and d != 0)
    shape: list[int] = []
    stride: list[int] = []
    reached = 1
    for d, n in modes:
        if d < reached:
            raise LayoutError(
                "complement: the modes of a layout don't overlap and its strides aren't negative",
                got=f"mode {n}:{d} of {layout}, below the {reached} offsets that smaller strides take",
                allowed=f"a stride of at least {reached}",
                fix="take the complement of a layout whose strides nest inside each other",
            )
        shape.append(d // reached)
        stride.append(reached)
        reached = d * n
    if cotarget is None:
        cotarget = 1 + sum((n - 1) * d for d, n in modes)
    shape.append(product(ceil_div(cotarget, reached)))
    stride.append(reached)
    return flat_layout(*_merged(tuple(shape), tuple(stride)))


def right_inverse(layout: Layout) -> Layout:
    """The largest R, in order of stride, with layout(R(i)) == i.

    Domain: offsets 0 .. size(R) - 1. Codomain: indices of ``layout``.

    Post: layout(R(i)) == i for every i < size(R); 1:0 if no mode has stride 1.

    >>> print(right_inverse(Layout.parse("(8,4):(4,1)")))
    (4,8):(8,1)
    >>> print(right_inverse(Layout.parse("4:2")))
    1:0
    """
    modes = _merged(layout.flat_shape, layout.flat_stride)
    shape: list[int] = []
    stride: list[int] = []
    reached = 1
    for d, _, n, place in _by_stride(*modes):
        if d == reached:
            shape.append(n)
            stride.append(place)
            reached = n * d
    return flat_layout(*_merged(tuple(shape), tuple(stride)))


def _by_stride(shape: list[int], stride: list[int]) -> list[tuple[int, int, int, int]]:
    """(stride, position, extent, index of the mode's second element) in order of stride, then position."""
    places = []
    place = 1
    for position, (n, d) in enumerate(zip(shape, stride, strict=True)):
        places.append((d, position, n, place))
        place *= n
    return sorted(places)


def left_inverse(layout: Layout) -> Layout:
    """L that undoes ``layout``; a quasi-inverse if ``layout`` isn't injective.

    Domain: offsets. Codomain: indices of ``layout``.

    Post: layout(L(layout(i))) == layout(i) for every index i, so L(layout(i)) == i if ``layout`` is injective and
    has no modes past its end in play.

    Raises:
        LayoutError: sorted strides that don't divide each other, a negative stride, or an overlap that carries.

    >>> print(left_inverse(Layout.parse("(4,2):(1,16)")))
    (16,2):(1,4)
    """
    modes = _merged(layout.flat_shape, layout.flat_stride)
    last_position = len(modes[0]) - 1
    ordered = _by_stride(*modes)
    shape: list[int] = []
    stride: list[int] = [0]
    before = 1
    reach = 0
    for k, (d, position, n, place) in enumerate(ordered):
        if d == 0:
            continue
        if d < 0 or d % before:
            raise _no_left_inverse(layout, f"stride {d} after {before}", f"a positive multiple of {before}")
        shape.append(d // before)
        stride.append(place)
        before = d
        reach += (n - 1) * d
        # The digit L reads at this stride indexes the mode; smaller strides that overlap can push it past the end.
        period = ordered[k + 1][0] // d if k < len(ordered) - 1 else reach // d + 1
        open_ended = position == last_position and layout.flat_shape[-1] > 1
        if min(period - 1, reach // d) >= n and not open_ended:
            raise _no_left_inverse(
                layout,
                f"digit {min(period - 1, reach // d)} at mode {n}:{d}",
                f"at most {n - 1}, so smaller strides that don't run past {d}",
            )
    shape.append(ordered[-1][2] if ordered else 1)
    return flat_layout(*_merged(tuple(shape), tuple(stride)))


def _no_left_inverse(layout: Layout, got: str, allowed: str) -> LayoutError:
    return LayoutError(
        "left inverse: each stride of the layout, in increasing order, is a multiple of the one before",
        got=f"{got} in {layout}",
        allowed=allowed,
        fix="invert a layout whose sorted strides chain",
    )


