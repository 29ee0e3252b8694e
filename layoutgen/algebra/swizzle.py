"""Swizzle and ComposedLayout: the functions on offsets that no shape and stride can express.

Source: CUTLASS ``include/cute/swizzle.hpp``, ``layout_composed.hpp`` and ``swizzle_layout.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from layoutgen.algebra.int_tuple import IntTuple
from layoutgen.algebra.layout import Layout, Offsets
from layoutgen.algebra.scanner import Scanner
from layoutgen.errors import LayoutError

_NOTATION = "a swizzled layout reads swizzle o offset o layout, such as Sw<3,4,3> o 0 o (8,64):(64,1)"


@dataclass(frozen=True, slots=True)
class Swizzle:
    """XORs the ``bits`` bits at ``base`` with those ``shift`` higher (lower if negative): CuTe's Swizzle<B,M,S>.

    Domain and codomain: offsets. It is its own inverse, and leaves runs of 2**base offsets in place.

    Raises:
        LayoutError: negative bits or base, or the two bit fields would overlap.

    >>> swizzle = Swizzle(2, 0, 3)
    >>> [swizzle(offset) for offset in (0, 1, 8, 9, 16)]
    [0, 1, 9, 8, 18]
    >>> print(swizzle)
    Sw<2,0,3>
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise LayoutError(
                "a swizzle has bits >= 0, base >= 0 and abs(shift) >= bits, so that its two bit fields don't overlap",
                got=str(self),
            )

    @staticmethod
    def from_masks(source: int, target: int) -> Swizzle:
        """The swizzle that XORs the bits of mask ``target`` with those of mask ``source``, in order (make_swizzle).

        Raises:
            LayoutError: a mask isn't a run of ones, or the two differ in length.

        >>> print(Swizzle.from_masks(0b1000, 0b0100))
        Sw<1,2,1>
        """
        if source == target == 0:
            return Swizzle(0, 0, 0)
        bits = source.bit_count()
        if min(source, target) > 0:
            low, high = _trailing_zeros(source), _trailing_zeros(target)
            run = (1 << bits) - 1
            if source == run << low and target == run << high:
                return Swizzle(bits, min(low, high), low - high)
        raise LayoutError(
            "a swizzle's two bit fields are runs of equally many ones",
            got=f"source {source:#b} and target {target:#b}",
            fix="compose with a layout whose strides are powers of two and keep each field together",
        )

    @staticmethod
    def parse(text: str) -> Swizzle:
        """Read ``Sw<bits,base,shift>``.

        Raises:
            LayoutError: the text is something else; the message names the column.

        >>> Swizzle.parse("Sw<3,4,3>")
        Swizzle(bits=3, base=4, shift=3)
        """
        scanner = Scanner(text, "a swizzle reads Sw<bits,base,shift>, such as Sw<3,4,3>")
        swizzle = Swizzle.scan(scanner)
        scanner.end()
        return swizzle

    @staticmethod
    def scan(scanner: Scanner) -> Swizzle:
        """Read a swizzle at the scanner's cursor; LayoutError as for ``parse``."""
        scanner.expect("Sw<")
        bits = scanner.integer()
        scanner.expect(",")
        base = scanner.integer()
        scanner.expect(",")
        shift = scanner.integer()
        scanner.expect(">")
        return Swizzle(bits, base, shift)

    @property
    def source_mask(self) -> int:
        """The bits that are read (CuTe's yyy_msk)."""
        return ((1 << self.bits) - 1) << (self.base + max(0, self.shift))

    @property
    def target_mask(self) -> int:
        """The bits that change (CuTe's zzz_msk)."""
        return ((1 << self.bits) - 1) << (self.base - min(0, self.shift))

    def __call__(self, offset: int) -> int:
        read = offset & self.source_mask
        return offset ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def at(self, offsets: Offsets) -> Offsets:
        """Elementwise over an int64 array."""
        read = offsets & self.source_mask
        return offsets ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


def _trailing_zeros(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


Function: TypeAlias = "Swizzle | Layout | ComposedLayout"


@dataclass(frozen=True, slots=True)
class ComposedLayout:
    """layout_a o offset o layout_b, left unevaluated: c -> layout_a(offset + layout_b(c)).

    Domain: the coordinates of ``layout_b``, whose shape it has. Codomain: that of ``layout_a``.

    >>> layout = ComposedLayout.parse("Sw<1,3,3> o 0 o (8,16):(16,1)")
    >>> layout(4, 0), layout.size, layout.cosize
    (72, 128, 128)
    >>> print(layout[1])
    Sw<1,3,3> o 0 o 16:1
    """

    layout_a: Function
    offset: int
    layout_b: Layout | ComposedLayout

    @staticmethod
    def parse(text: str) -> ComposedLayout:
        """Read ``Sw<..> o offset o layout``, where the layout may be composed in turn.

        Raises:
            LayoutError: the text is something else; the message names the column.
        """
        scanner = Scanner(text, _NOTATION)
        layout = ComposedLayout.scan(scanner)
        scanner.end()
        return layout

    @staticmethod
    def scan(scanner: Scanner) -> ComposedLayout:
        """Read a composed layout at the scanner's cursor; LayoutError as for ``parse``."""
        return ComposedLayout.scan_after(Swizzle.scan(scanner), scanner)

    @staticmethod
    def scan_after(outer: Swizzle, scanner: Scanner) -> ComposedLayout:
        """Read the rest of a composed layout whose outer function is read already."""
        scanner.expect("o")
        offset = scanner.integer()
        scanner.expect("o")
        inner = ComposedLayout.scan(scanner) if scanner.at("Sw") else Layout.scan(scanner)
        return ComposedLayout(outer, offset, inner)

    def map_inner(self, operation: Callable[[Layout], Layout]) -> ComposedLayout:
        """The same outer function over ``operation`` of the innermost layout."""
        inner = self.layout_b
        changed = inner.map_inner(operation) if isinstance(inner, ComposedLayout) else operation(inner)
        return ComposedLayout(self.layout_a, self.offset, changed)

    @property
    def shape(self) -> IntTuple:
        """The shape of ``layout_b``."""
        return self.layout_b.shape

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.layout_b.size

    @property
    def rank(self) -> int:
        """The number of modes."""
        return self.layout_b.rank

    @property
    def depth(self) -> int:
        """How deep the shape nests; 0 for an int."""
        return self.layout_b.depth

    @property
    def cosize(self) -> int:
        """Elements a buffer needs, counted from offset 0: a swizzle reaches further than its layout's own cosize."""
        offsets = self.offsets()
        return 1 + max(0, int(offsets.max())) - min(0, int(offsets.min()))

    def __call__(self, *coordinate: IntTuple) -> int:
        """Coordinate or index -> offset."""
        inner: IntTuple = self.layout_b(*coordinate)
        if isinstance(inner, tuple):
            if self.offset or isinstance(self.layout_a, Swizzle):
                raise LayoutError(
                    "after a coordinate layout comes a layout, with offset 0",
                    got=str(self),
                    fix="compose the coordinate layout with the tensor's layout, then swizzle",
                )
            return self.layout_a(inner)
        return self.layout_a(self.offset + inner)

    def at(self, indices: Offsets) -> Offsets:
        """Integer indices -> offsets, elementwise and vectorised."""
        return self.layout_a.at(self.offset + self.layout_b.at(indices))

    def offsets(self) -> Offsets:
        """The offsets of indices 0 .. size - 1, as int64 of shape (size,)."""
        return self.layout_a.at(self.offset + self.layout_b.offsets())

    def __len__(self) -> int:
        return self.rank

    def __getitem__(self, mode: int) -> ComposedLayout:
        """The layout of one mode, with the same outer function and offset."""
        return ComposedLayout(self.layout_a, self.offset, self.layout_b[mode])

    def __iter__(self) -> Iterator[ComposedLayout]:
        return (self[mode] for mode in range(self.rank))

    def __str__(self) -> str:
        return f"{self.layout_a} o {self.offset} o {self.layout_b}"


def compose_swizzles(a: Swizzle, b: Swizzle) -> Swizzle:
    """First ``b``, then ``a``, as one swizzle; see ``composition``."""
    if a.shift != b.shift or b.target_mask & a.source_mask:
        raise LayoutError(
            "composition: two swizzles of one shift merge if the outer reads no bit that the inner changes",
            got=f"{a} o {b}",
            fix="keep them as two composed layouts",
        )
    return Swizzle.from_masks(a.source_mask ^ b.source_mask, a.target_mask ^ b.target_mask)


def swizzle_after(layout: Layout, swizzle: Swizzle) -> Layout | ComposedLayout:
    """``layout`` o ``swizzle`` rewritten as a swizzle of layout's offsets; see ``composition``."""
    source, target = layout(swizzle.source_mask), layout(swizzle.target_mask)
    result = swizzled(Swizzle.from_masks(source, target), layout)
    wanted = layout.at(swizzle.at(np.arange(layout.size, dtype=np.int64)))
    if not np.array_equal(result.offsets(), wanted):
        raise LayoutError(
            "composition: swizzling a layout's indices equals some swizzle of its offsets",
            got=f"{layout} o {swizzle}",
            fix="use strides that are powers of two, or swizzle the offsets: composition(swizzle, layout)",
        )
    return result


def swizzled(swizzle: Swizzle, layout: Layout) -> Layout | ComposedLayout:
    """Swizzle o 0 o layout; the layout itself if the swizzle does nothing."""
    return layout if swizzle.bits == 0 else ComposedLayout(swizzle, 0, layout)
