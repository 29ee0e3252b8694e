"""Shared-memory layouts whose swizzle belongs to the pointer: CuTe's ``Sw<3,4,3> o smem_ptr[16b](unset) o layout``.

The tensor-core atoms of Hopper are defined this way: the swizzle permutes *byte addresses*, so it acts after the
pointer has been added, and the layout alone gives plain offsets. Source: CUTLASS ``include/cute/pointer_flagged.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from layoutgen.algebra.cute import cute_type
from layoutgen.algebra.int_tuple import IntTuple
from layoutgen.algebra.layout import Layout, Offsets
from layoutgen.algebra.recast import recast_layout
from layoutgen.algebra.shaping import tile_to_shape
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle, swizzled
from layoutgen.errors import LayoutError


@dataclass(frozen=True, slots=True)
class SmemLayout:
    """``layout`` counts elements of ``bits`` bits from a pointer whose byte addresses ``swizzle`` permutes.

    Domain: coordinates of ``layout``. Codomain: elements *before* the swizzle, as CuTe evaluates such a layout. Where
    the element really lies is what as_position_independent says.

    Raises:
        LayoutError: an element has less than one bit.

    >>> layout = SmemLayout(Swizzle(1, 4, 3), 16, Layout.parse("(64,16):(16,1)"))
    >>> print(layout)
    Sw<1,4,3> o smem_ptr[16b](unset) o (64,16):(16,1)
    >>> layout(4, 0), layout.as_position_independent()(4, 0)
    (64, 72)
    """

    swizzle: Swizzle
    bits: int
    layout: Layout

    def __post_init__(self) -> None:
        if self.bits < 1:
            raise LayoutError("an element has at least one bit", got=f"{self.bits} bits")

    @property
    def shape(self) -> IntTuple:
        """The shape of ``layout``."""
        return self.layout.shape

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.layout.size

    @property
    def cosize(self) -> int:
        """Elements from the first to the last before the swizzle."""
        return self.layout.cosize

    @property
    def rank(self) -> int:
        """The number of modes."""
        return self.layout.rank

    @property
    def depth(self) -> int:
        """How deep the shape nests."""
        return self.layout.depth

    @property
    def alignment(self) -> int:
        """Bytes to which the buffer must be aligned for the swizzle to start at its origin."""
        swizzle = self.swizzle
        return 1 << (swizzle.base + swizzle.bits + abs(swizzle.shift)) if swizzle.bits else 1 << swizzle.base

    def __call__(self, *coordinate: IntTuple) -> int:
        """Coordinate or index -> offset from the pointer, in elements, before the pointer's swizzle."""
        offset: int = self.layout(*coordinate)
        return offset

    def offsets(self) -> Offsets:
        """The offsets of indices 0 .. size - 1 before the swizzle, as int64 of shape (size,)."""
        return self.layout.offsets()

    def map_inner(self, operation: Callable[[Layout], Layout]) -> SmemLayout:
        """The same pointer under ``operation`` of the layout.

        >>> print(SmemLayout(Swizzle(3, 4, 3), 16, Layout.parse("(8,64):(64,1)")).map_inner(lambda x: x[1]))
        Sw<3,4,3> o smem_ptr[16b](unset) o 64:1
        """
        return replace(self, layout=operation(self.layout))

    def tile_to_shape(self, shape: IntTuple, order: IntTuple | None = None) -> SmemLayout:
        """Repeat the atom up to ``shape``; see tile_to_shape.

        >>> atom = SmemLayout(Swizzle(3, 4, 3), 16, Layout.parse("(8,64):(64,1)"))
        >>> print(atom.tile_to_shape((128, 64, 4)))
        Sw<3,4,3> o smem_ptr[16b](unset) o ((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192))
        """
        return self.map_inner(lambda inner: tile_to_shape(inner, shape, order))

    def recast(self, bits: int) -> SmemLayout:
        """The same memory in elements of ``bits`` bits; the swizzle, being of bytes, stays.

        Raises:
            LayoutError: as for recast_layout.

        >>> print(SmemLayout(Swizzle(3, 4, 3), 1, Layout.parse("(8,1024):(1024,1)")).recast(16))
        Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)
        """
        return SmemLayout(self.swizzle, bits, recast_layout(self.layout, self.bits, bits))

    def as_position_independent(self) -> Layout | ComposedLayout:
        """Where each element lies, as one function of the coordinate: the swizzle in units of elements.

        Domain: coordinates of ``layout``. Codomain: elements from the buffer's first.

        Pre: the buffer starts at a multiple of ``alignment`` bytes. Post: for whole-byte elements, the byte address of
        R(c) is ``swizzle`` of that of ``layout(c)``.

        Raises:
            LayoutError: the element is no power of two of bits wide, or wider than what the swizzle keeps together.

        >>> print(SmemLayout(Swizzle(1, 4, 3), 16, Layout.parse("(8,16):(16,1)")).as_position_independent())
        Sw<1,3,3> o 0 o (8,16):(16,1)
        """
        if self.bits > 8 << self.swizzle.base and self.swizzle.bits:
            raise LayoutError(
                "a swizzle moves whole elements",
                got=f"{self.swizzle} of bytes with elements of {self.bits} bits",
                allowed=f"at most {8 << self.swizzle.base} bits",
            )
        return swizzled(recast_layout(self.swizzle, 8, self.bits), self.layout)

    @property
    def cute_type(self) -> str:
        """The C++ type whose default-constructed value is this layout, spelled without its namespace ``cute::``.

        >>> SmemLayout(Swizzle(3, 4, 3), 16, Layout.parse("(8,64):(64,1)")).cute_type
        'ComposedLayout<Swizzle<3,4,3>,smem_ptr_flag_bits<16>,Layout<Shape<_8,_64>,Stride<_64,_1>>>'
        """
        return f"ComposedLayout<{cute_type(self.swizzle)},smem_ptr_flag_bits<{self.bits}>,{cute_type(self.layout)}>"

    def __str__(self) -> str:
        return f"{self.swizzle} o smem_ptr[{self.bits}b](unset) o {self.layout}"


def as_position_independent(layout: SmemLayout) -> Layout | ComposedLayout:
    """CuTe's as_position_independent_swizzle_layout: the swizzle of a shared-memory pointer moved into the layout.

    Domain: coordinates of ``layout``. Codomain: elements from the buffer's first.

    Raises:
        LayoutError: as for SmemLayout.as_position_independent.

    >>> print(as_position_independent(SmemLayout(Swizzle(3, 4, 3), 32, Layout.parse("(8,32):(32,1)"))))
    Sw<3,2,3> o 0 o (8,32):(32,1)
    """
    return layout.as_position_independent()
