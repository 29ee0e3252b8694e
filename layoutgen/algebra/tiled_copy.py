"""Thread-value layouts of copy atoms, and their tiling over threads and values (CuTe's TiledCopy).

Source: CUTLASS ``include/cute/atom/copy_atom.hpp`` and ``copy_traits.hpp``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from layoutgen.algebra.compose import composition, with_shape
from layoutgen.algebra.int_tuple import product, to_text
from layoutgen.algebra.inverse import left_inverse, right_inverse
from layoutgen.algebra.layout import Layout, make_layout
from layoutgen.algebra.recast import recast_layout, upcast
from layoutgen.algebra.shaping import cuts_evenly, product_each
from layoutgen.algebra.simplify import AnyLayout, coalesce, filter
from layoutgen.algebra.slicing import View, slice, slice_and_offset
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.algebra.tiling import logical_product, raked_product, zipped_divide
from layoutgen.algebra.tv import Operand, TiledMma
from layoutgen.errors import LayoutError


@dataclass(frozen=True, slots=True)
class CopyLayouts:
    """Which thread reads and which writes the elements that one copy instruction moves.

    Attributes:
        src, dst: (thread, value) -> element, in some numbering of the elements that both share.
        ref: the one of the two whose threads and values a TiledCopy is built from: the registers' side.

    Raises:
        LayoutError: a layout isn't (thread, value), or they differ in the number of threads.

    >>> print(CopyLayouts.vector(128).recast(1, 16).src)
    (1,8):(0,1)
    """

    src: Layout
    dst: Layout
    ref: Layout

    def __post_init__(self) -> None:
        if any(tv.rank != 2 or tv[0].size != self.ref[0].size for tv in (self.src, self.dst, self.ref)):
            raise LayoutError(
                "source, destination and reference are (thread, value) of equally many threads",
                got=f"{self.src}, {self.dst} and {self.ref}",
            )

    @staticmethod
    def vector(values: int) -> CopyLayouts:
        """One thread moves ``values`` contiguous elements (CuTe's UniversalCopy, and cp.async).

        >>> print(CopyLayouts.vector(4).ref)
        (1,4):(0,1)
        """
        one = Layout((1, values))
        return CopyLayouts(one, one, one)

    def recast(self, old_bits: int, new_bits: int) -> CopyLayouts:
        """The same instruction, counted in elements of another width.

        Raises:
            LayoutError: the instruction moves no whole elements; as for recast_layout.
        """
        src, dst, ref = (recast_layout(tv, old_bits, new_bits) for tv in (self.src, self.dst, self.ref))
        if any(tv.size * new_bits != old.size * old_bits for tv, old in ((src, self.src), (dst, self.dst))):
            raise LayoutError(
                "a copy instruction moves whole elements",
                got=f"{self.ref[1].size * old_bits} bits a thread, in elements of {new_bits} bits",
            )
        return CopyLayouts(src, dst, ref)


@dataclass(frozen=True, slots=True)
class TiledCopy:
    """A copy atom repeated over threads and values (CuTe's TiledCopy); see make_tiled_copy.

    Attributes:
        atom: the layouts of one atom, in elements of what is copied.
        tv: (thread index, value) -> element of the tile, numbered as the atom's reference side.
        tiler: the tile, mode by mode: an int, or a layout that also picks and reorders elements.

    Raises:
        LayoutError: threads or values of ``tv`` aren't whole atoms, or its values leave the tile.

    >>> copy = TiledCopy(CopyLayouts.vector(4), Layout((8, 4), (4, 1)), (4, 8))
    >>> copy.size, copy.tile
    (8, (4, 8))
    """

    atom: CopyLayouts
    tv: Layout
    tiler: tuple[int | Layout, ...]

    def __post_init__(self) -> None:
        threads, values = self.atom.ref[0].size, self.atom.ref[1].size
        if self.tv.rank != 2 or self.tv[0].size % threads or self.tv[1].size % values:
            raise LayoutError(
                "a tiled copy has whole atoms of threads and of values",
                got=f"{self.tv}, for an atom of {threads} threads and {values} values",
                allowed=f"multiples of {threads} threads and of {values} values",
                fix="give each thread more contiguous values, or use a narrower atom",
            )
        size = product(self.tile)
        if self.tv.cosize > size:
            raise LayoutError(
                "the threads and values of a tiled copy lie in its tile",
                got=f"{self.tv} for a tile of {to_text(self.tile)}",
                allowed=f"elements 0 to {size - 1}",
            )

    @property
    def size(self) -> int:
        """The number of threads."""
        return self.tv[0].size

    @property
    def tile(self) -> tuple[int, ...]:
        """The extents of the tile."""
        return tuple(entry if isinstance(entry, int) else entry.size for entry in self.tiler)

    def _tv(self, side: Layout) -> Layout:
        """(thread index, (value in the atom, atom)) -> element of the tile, as one side's threads hold it."""
        atoms = zipped_divide(self.tv, (self.atom.ref[0].size, self.atom.ref[1].size))
        (thread, value), (more_threads, more_values) = (
            composition(atoms[0], composition(right_inverse(self.atom.ref), side)),
            atoms[1],
        )
        return coalesce(make_layout(make_layout(thread, more_threads), make_layout(value, more_values)), (1, (1, 1)))

    def layout_S_TV(self) -> Layout:
        """(thread index, value) -> element of the tile, as the source side reads it (CuTe's get_layoutS_TV).

        >>> copy = make_tiled_copy(CopyLayouts.vector(8), Layout((16, 8), (8, 1)), Layout((1, 8)))

        >>> print(copy.layout_S_TV())
        ((8,16),(8,1)):((128,1),(16,0))
        """
        return self._tv(self.atom.src)

    def layout_D_TV(self) -> Layout:
        """(thread index, value) -> element of the tile, as the destination side writes it (CuTe's get_layoutD_TV)."""
        return self._tv(self.atom.dst)

    def _partition(self, side: Layout, layout: AnyLayout, thread: int) -> View:
        regrouped = self._regrouped(side, layout)
        if not 0 <= thread < self.size:
            raise LayoutError("a thread of the tiled copy", got=thread, allowed=f"0 to {self.size - 1}")
        return slice_and_offset(regrouped, (thread, None, (None,) * layout.rank))

    def _regrouped(self, side: Layout, layout: AnyLayout) -> AnyLayout:
        """(thread index, (value in the atom, atom), (repetitions, mode by mode)) -> offset (CuTe's tidfrg_S, _D)."""
        if isinstance(layout, ComposedLayout):
            return layout.map_inner(lambda inner: self._regrouped(side, inner))
        sizes = product_each(layout.shape)
        if len(sizes) < len(self.tiler) or not all(map(cuts_evenly, self.tiler, sizes)):
            raise LayoutError(
                "a tiled copy moves whole tiles",
                got=f"{layout} in tiles <{','.join(map(str, self.tiler))}>",
                allowed=f"multiples of {to_text(self.tile)}; tiles that leave no gaps when they repeat",
                fix="pad the tensor to whole tiles and predicate, or choose a tile that divides it",
            )
        divided = zipped_divide(layout, self.tiler)
        thread, value = composition(divided[0], self._tv(side))
        return make_layout(thread, value, divided[1])

    def partition_S(self, layout: AnyLayout, thread: int) -> View:
        """What a thread reads of the source.

        Domain: ((value in the atom, atom), repetitions along mode 0, along mode 1, ..). Codomain: that of ``layout``.

        Raises:
            LayoutError: no such thread; ``layout`` isn't whole tiles; as for composition.

        >>> copy = make_tiled_copy(CopyLayouts.vector(8), Layout((16, 8), (8, 1)), Layout((1, 8)))

        >>> print(copy.partition_S(Layout((128, 64), (64, 1)), 9))
        ((8,1),8,1):((1,0),1024,0)+72
        """
        return self._partition(self.atom.src, layout, thread)

    def partition_D(self, layout: AnyLayout, thread: int) -> View:
        """What a thread writes of the destination; as partition_S.

        >>> copy = make_tiled_copy(CopyLayouts.vector(8), Layout((16, 8), (8, 1)), Layout((1, 8)))

        >>> print(copy.partition_D(Layout((128, 64), (64, 1)), 9))
        ((8,1),8,1):((1,0),1024,0)+72
        """
        return self._partition(self.atom.dst, layout, thread)

    def retile(self, layout: Layout) -> Layout:
        """A thread's registers, laid out for another tiling, regrouped as this copy's values (CuTe's retile_S, _D).

        Domain: ((value in the atom, atom), repetitions, mode by mode). Codomain: that of ``layout``, whose domain is
        (value, repetitions, mode by mode) with size(mode 0) values that come first in this copy's ``tv``.

        Raises:
            LayoutError: the values don't tile the copy's; as for zipped_divide.

        >>> copy = make_tiled_copy(CopyLayouts.vector(8), Layout((16, 8), (8, 1)), Layout((1, 8)))

        >>> print(copy.retile(Layout((8, 2, 1))))
        ((8,1),2,1):((1,0),8,0)
        """
        values = layout[0].size
        in_tile = upcast(with_shape(right_inverse(self.tv), self.tile), self.size * values)
        order = logical_product(Layout(values), right_inverse(in_tile))
        by_atom = zipped_divide(order, Layout(self.atom.ref[1].size))
        tiles = zipped_divide(layout, (values, *product_each(in_tile.shape)))
        regrouped = make_layout(composition(tiles[0], by_atom), tiles[1])
        return slice(regrouped, (None, (0, *[None] * (layout.rank - 1))))


def make_tiled_copy(atom: CopyLayouts, threads: Layout, values: Layout | None = None) -> TiledCopy:
    """A copy in which threads lie over the tile as ``threads``, (m,n,..) -> thread index, and each thread's values as
    ``values``, (m,n,..) -> value index, inside that; by default one value.

    Post: each element of the tile belongs to exactly one (thread, value).

    Raises:
        LayoutError: ``threads`` or ``values`` isn't a bijection onto 0 .. size - 1; as for TiledCopy.

    >>> copy = make_tiled_copy(CopyLayouts.vector(1), Layout((32, 8)), Layout((4, 1)))
    >>> print(copy.tile, copy.tv)
    (128, 8) (256,4):(4,1)
    """
    values = values or Layout(1)
    tile = raked_product(threads, values)
    inverse = right_inverse(tile)
    if inverse.size != threads.size * values.size:
        raise LayoutError(
            "the threads of a tiled copy number 0, 1, 2 and so on, and so do its values",
            got=f"threads {threads} and values {values}",
            allowed="bijections onto 0 .. size - 1",
            fix="leave out broadcasts and gaps",
        )
    return TiledCopy(atom, with_shape(inverse, (threads.size, values.size)), product_each(tile.shape))


def make_tiled_copy_for(atom: CopyLayouts, mma: TiledMma, operand: Operand) -> TiledCopy:
    """A copy whose registers are those that ``mma`` holds of an operand (CuTe's make_tiled_copy_A, ..B, ..C).

    Raises:
        LayoutError: as for TiledMma.tv_layout and TiledCopy.

    >>> from layoutgen.algebra.tv import SCALAR_FMA, make_tiled_mma
    >>> print(make_tiled_copy_for(CopyLayouts.vector(1), make_tiled_mma(SCALAR_FMA, Layout((4, 2))), "C").tv)
    (8,(1,(1,1))):(1,(0,(0,0)))
    """
    m, n, k = mma.tile_mnk
    tile = {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]
    return TiledCopy(atom, mma.tv_layout(operand), tile)


def make_tiled_copy_like(atom: CopyLayouts, copy: TiledCopy, side: Literal["S", "D"]) -> TiledCopy:
    """A copy with another atom, whose registers are those on one side of ``copy`` (CuTe's make_tiled_copy_S, .._D).

    Raises:
        LayoutError: as for TiledCopy.

    >>> copy = make_tiled_copy(CopyLayouts.vector(4), Layout((4, 8)), Layout((4, 1)))
    >>> print(make_tiled_copy_like(CopyLayouts.vector(1), copy, "D").tv)
    (32,(4,1)):(4,(1,0))
    """
    return TiledCopy(atom, copy.layout_S_TV() if side == "S" else copy.layout_D_TV(), copy.tiler)


def make_tiled_copy_for_atom(atom: CopyLayouts, mma: TiledMma) -> TiledCopy:
    """The smallest copy of C that ``mma``'s accumulators retile to: as many values as one copy atom has (CuTe's
    make_tiled_copy_C_atom, for epilogues in steps).

    Raises:
        LayoutError: a thread of ``mma`` has fewer values than the atom; as for make_cotiled_copy.

    >>> from layoutgen.algebra.tv import SCALAR_FMA, make_tiled_mma
    >>> copy = make_tiled_copy_for_atom(CopyLayouts.vector(2), make_tiled_mma(SCALAR_FMA, Layout((4, 2)), (8, 8)))
    >>> print(copy.tv, copy.tile)
    ((4,2),2):((1,8),4) (8, 2)
    """
    m, n, _ = mma.tile_mnk
    tv = mma.tv_layout("C")
    values = atom.src[1].size
    if values > tv[1].size:
        raise LayoutError(
            "a copy atom takes no more values than a thread holds",
            got=f"{values} of {tv[1].size}",
            fix="use a narrower copy, or a larger tile",
        )
    return _over_what_it_touches(atom, (m, n), composition(tv, Layout((tv[0].size, values))))


def make_cotiled_copy(atom: CopyLayouts, tv: Layout, data: Layout) -> TiledCopy:
    """A copy given by offsets: ``tv`` maps (thread, value) to offsets of ``data``, whatever coordinates those have.

    Post: data(coordinate of the tile at R.tv(t, v)) == tv(t, v).

    Raises:
        LayoutError: an offset that isn't one of ``data``; offsets that aren't a tile of its modes; as for TiledCopy.

    >>> copy = make_cotiled_copy(CopyLayouts.vector(4), Layout((8, 4), (4, 1)), Layout((16, 8), (8, 1)))
    >>> print(copy.tv, [str(cut) for cut in copy.tiler])
    ((2,4),4):((4,1),8) ['4:1', '(2,4):(4,1)']
    """
    index = composition(make_layout(left_inverse(data), Layout(1, 0)), tv)
    if not np.array_equal(data.at(index.offsets()), tv.offsets()):
        raise LayoutError(
            "a copy by offsets touches only what the data layout has",
            got=f"{tv} in {data}",
            fix="give (thread, value) layouts of offsets that the data layout reaches",
        )
    return _over_what_it_touches(atom, product_each(data.shape), index)


def _over_what_it_touches(atom: CopyLayouts, shape: tuple[int, ...], tv: Layout) -> TiledCopy:
    """The copy whose tile is the part of ``shape`` that ``tv`` reaches, mode by mode."""
    tiler = tuple(
        filter(composition(Layout(shape, tuple(int(k == mode) for k in range(len(shape)))), tv))
        for mode in range(len(shape))
    )
    from_tile = composition(Layout(shape), tiler)
    in_tile = composition(left_inverse(from_tile), tv)
    if not np.array_equal(from_tile.at(in_tile.offsets()), tv.offsets()):
        raise LayoutError(
            "the elements of a tiled copy are a tile: some of each mode",
            got=f"{tv} in a tensor of {to_text(shape)}",
            fix="let threads and values move along whole modes",
        )
    return TiledCopy(atom, in_tile, tiler)
