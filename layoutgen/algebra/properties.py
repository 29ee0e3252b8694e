"""What a plan must know of a layout, each with the counter-example if it doesn't hold."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from layoutgen.algebra.coordinate import coordinate_in, in_a_box, is_coordinate_layout, tile_indices
from layoutgen.algebra.int_tuple import IntTuple, idx2crd, to_text
from layoutgen.algebra.layout import MOST_OFFSETS, Layout
from layoutgen.algebra.named import NamedLayout
from layoutgen.algebra.runtime import RuntimeInt
from layoutgen.algebra.simplify import merged
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle
from layoutgen.errors import LayoutError

MOST_OWNERS = 4


def first_collision(layout: Layout | ComposedLayout) -> tuple[int, int] | None:
    """Indices i < j with the same offset, of all such pairs the one with the smallest j; None if injective.

    >>> first_collision(Layout.parse("(4,2):(1,2)")), first_collision(Layout.parse("(4,2):(1,4)"))
    ((2, 4), None)
    """
    if isinstance(layout, Layout):
        layout = in_a_box(layout)
        if _strides_nest(layout):
            return None
    offsets = layout.offsets()
    order = np.argsort(offsets, kind="stable")
    repeats = np.flatnonzero(offsets[order[1:]] == offsets[order[:-1]])
    if not repeats.size:
        return None
    second = int(order[repeats + 1].min())
    return int(np.flatnonzero(offsets == offsets[second])[0]), second


def _strides_nest(layout: Layout) -> bool:
    """Whether each stride steps past all that smaller ones reach: enough for injective, though not needed."""
    reach = 0
    for d, n in sorted((abs(d), n) for n, d in zip(layout.flat_shape, layout.flat_stride, strict=True) if n > 1):
        if d <= reach:
            return False
        reach += (n - 1) * d
    return True


def is_injective(layout: Layout | ComposedLayout) -> bool:
    """Whether no two indices share an offset.

    >>> is_injective(Layout.parse("(2,3):(3,2)")), is_injective(Layout.parse("(4,2):(1,2)"))
    (True, False)
    """
    return first_collision(layout) is None


def first_gap(layout: Layout | ComposedLayout, size: int | None = None) -> int | None:
    """The smallest offset of 0 .. size - 1 that ``layout`` doesn't reach, by default of its cosize; None if surjective.

    >>> first_gap(Layout.parse("(2,3):(1,3)")), first_gap(Layout.parse("(2,3):(3,1)")), first_gap(Layout(4), 6)
    (2, None, 4)
    """
    offsets = layout.offsets()
    size = layout.cosize if size is None else size
    reached = np.zeros(min(size, layout.size + 1), dtype=bool)  # among so many, one is not reached if any isn't
    reached[offsets[(offsets >= 0) & (offsets < reached.size)]] = True
    gaps = np.flatnonzero(~reached)
    return int(gaps[0]) if gaps.size else None


def is_surjective(layout: Layout | ComposedLayout, size: int | None = None) -> bool:
    """Whether ``layout`` reaches every offset of 0 .. size - 1, by default of its cosize.

    >>> is_surjective(Layout.parse("(4,2):(1,2)")), is_surjective(Layout.parse("4:2"))
    (True, False)
    """
    return first_gap(layout, size) is None


def is_bijective(layout: Layout | ComposedLayout, size: int | None = None) -> bool:
    """Whether ``layout`` is one to one and onto 0 .. size - 1, by default its cosize.

    >>> is_bijective(Layout.parse("(2,3):(3,1)")), is_bijective(Layout.parse("(4,2):(1,2)"))
    (True, False)
    """
    size = layout.cosize if size is None else size
    return layout.size == size and is_surjective(layout, size)


@dataclass(frozen=True, slots=True)
class Cover:
    """Whether a layout owns every element of a tile exactly once; truthy if so.

    Attributes:
        tile: the shape that was to be covered.
        coordinate: the first element of the tile, in colexicographic order, not owned exactly once; None if all are.
        outside: the first offset outside the tile that the layout reaches, or coordinate, if its strides are scaled
            basis vectors; None if there is none.
        count: how many indices of the layout own ``coordinate``, or fall on ``outside`` if all of the tile is fine.
        owners: the first few of those indices.
        owner_coordinates: the same as coordinates of the layout: for a thread-value layout, (thread, value).
        names: of the layout's modes, if they have any.
    """

    tile: IntTuple
    coordinate: IntTuple | None = None
    outside: IntTuple | None = None
    count: int = 1
    owners: tuple[int, ...] = ()
    owner_coordinates: tuple[IntTuple, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Every element is owned exactly once, and nothing outside."""
        return self.coordinate is None and self.outside is None

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        if self.ok:
            return f"every element of {to_text(self.tile)} is owned exactly once"
        if self.coordinate is not None:
            where = f"coordinate {to_text(self.coordinate)} of {to_text(self.tile)}"
        else:
            kind = "coordinate" if isinstance(self.outside, tuple) else "offset"
            where = f"{kind} {to_text(self.outside)}, outside {to_text(self.tile)},"  # type: ignore[arg-type]
        if not self.count:
            return f"{where} is owned by nobody"
        named = " and ".join(map(self._owner, self.owner_coordinates))
        more = f" and {self.count - len(self.owners)} more" if self.count > len(self.owners) else ""
        return f"{where} is owned {self.count} time(s), by {named}{more}"

    def _owner(self, coordinate: IntTuple) -> str:
        if not self.names or not isinstance(coordinate, tuple):
            return to_text(coordinate)
        return f"({','.join(f'{name}={to_text(c)}' for name, c in zip(self.names, coordinate, strict=True))})"


def covers_exactly_once(layout: Layout | ComposedLayout, tile: IntTuple) -> Cover:
    """Whether ``layout``, whose offsets are colexicographic indices into ``tile``, is a bijection onto it.

    Domain: indices of ``layout``, such as (thread, value). Codomain: 0 .. size(tile) - 1, or the coordinates of
    ``tile`` if ``layout`` has scaled basis vectors for strides.

    Raises:
        LayoutError: layout or tile has more than MOST_OFFSETS elements, the tile is no shape, or a coordinate layout
            has an axis that the tile lacks.

    >>> print(covers_exactly_once(Layout.parse("((4,8),(2,2)):((32,1),(16,8))"), (16, 8)))
    every element of (16,8) is owned exactly once
    >>> print(covers_exactly_once(Layout.parse("(4,4):(1,2)"), (4, 4)))
    coordinate (2,0) of (4,4) is owned 2 time(s), by (2,0) and (0,1)
    >>> print(covers_exactly_once(Layout.parse("(4,5):(1@0,1@1)"), (4, 4)))
    coordinate (0,4), outside (4,4), is owned 1 time(s), by (0,4)
    >>> print(covers_exactly_once(Layout.parse("(lane=4,value=4):(1,2)"), (4, 4)))
    coordinate (2,0) of (4,4) is owned 2 time(s), by (lane=2,value=0) and (lane=0,value=1)
    """
    named = isinstance(layout, Layout) and is_coordinate_layout(layout)
    offsets = tile_indices(layout, tile) if named else layout.offsets()  # type: ignore[arg-type]
    size = Layout(tile).size
    if size > MOST_OFFSETS:
        raise LayoutError(
            "a tile that is checked element by element has a bounded size",
            got=f"{size} elements in {to_text(tile)}",
            allowed=f"at most {MOST_OFFSETS}",
        )
    within = (offsets >= 0) & (offsets < size)
    counts = np.bincount(offsets if within.all() else offsets[within], minlength=size)
    bad = np.flatnonzero(counts != 1)
    if not bad.size and within.all():
        return Cover(tile)
    strays = np.flatnonzero(~within)
    outside: IntTuple | None = None
    if strays.size:
        first = int(strays[0])
        outside = coordinate_in(tile, layout(first)) if named else int(offsets[first])
    blamed = offsets[strays[0]] if not bad.size else bad[0]
    owners = tuple(map(int, np.flatnonzero(offsets == blamed)))
    few = owners[:MOST_OWNERS]
    return Cover(
        tile,
        coordinate=idx2crd(int(bad[0]), tile) if bad.size else None,
        outside=outside,
        count=len(owners),
        owners=few,
        owner_coordinates=tuple(idx2crd(index, layout.shape) for index in few),
        names=layout.names if isinstance(layout, NamedLayout) else (),
    )


def max_vector(layout: Layout | ComposedLayout) -> int:
    """The widest access, in elements, that never straddles: v such that every v consecutive indices, from a multiple
    of v on, are v consecutive offsets starting at a multiple of v.

    Exact for a layout; for a swizzled one, the widest that its parts guarantee.

    >>> max_vector(Layout.parse("(8,4):(1,12)")), max_vector(Layout.parse("(8,4):(4,1)"))
    (4, 1)
    >>> max_vector(Layout.parse("(?{div=16},?):(1,?{div=8})"))
    8
    >>> max_vector(ComposedLayout.parse("Sw<3,2,3> o 0 o (64,8):(1,64)"))
    4
    """
    if isinstance(layout, ComposedLayout):
        inner = gcd(max_vector(layout.layout_b), layout.offset)
        if isinstance(layout.layout_a, Swizzle):
            return gcd(inner, 1 << layout.layout_a.base) if layout.layout_a.bits else inner
        return gcd(inner, max_vector(layout.layout_a))
    shape, stride = merged(layout.flat_shape, layout.flat_stride)
    if not shape or stride[0] != 1:
        return 1
    # What is known of a run-time extent or stride is its divisor.
    return gcd(*[n.divisor if isinstance(n, RuntimeInt) else n for n in (shape[0], *stride[1:])])
