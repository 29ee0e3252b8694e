"""Thread-value layouts of matrix-multiply atoms, and their tiling over warps and blocks (CuTe's TiledMMA).

A thread-value layout maps (thread, value) to an element of a tile, as its colexicographic index. Source: CUTLASS
``media/docs/cpp/cute/0t_mma_atom.md``; ``include/cute/atom/mma_atom.hpp``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from layoutgen.algebra.compose import composition
from layoutgen.algebra.int_tuple import IntTuple, product, to_text
from layoutgen.algebra.inverse import complement, right_inverse
from layoutgen.algebra.layout import Layout, make_layout
from layoutgen.algebra.properties import first_collision
from layoutgen.algebra.shaping import cuts_evenly, make_fragment_like
from layoutgen.algebra.simplify import AnyLayout
from layoutgen.algebra.slicing import View, coordinate_of, slice, slice_and_offset
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.algebra.tiling import logical_divide, tiled_product, zipped_divide
from layoutgen.errors import LayoutError

Operand: TypeAlias = Literal["A", "B", "C"]

# Which of M, N, K an operand's two modes are: A is (M,K), B is (N,K), C is (M,N).
MODES: dict[Operand, tuple[int, int]] = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}


@dataclass(frozen=True, slots=True)
class MmaLayouts:
    """What an atom computes, C(m,n) += A(m,k) B(n,k), and which thread holds what.

    Attributes:
        shape_mnk: the extents M, N, K.
        threads: thread of the atom -> thread index, 0 for the first.
        a, b, c: (thread, value) -> element of (M,K), (N,K), (M,N). A stride-0 thread mode says that all threads share
            the operand, as when it lies in shared memory.

    Raises:
        LayoutError: a thread-value layout isn't (thread, value), has another number of threads, or misses or leaves
            the operand.

    >>> atom = MmaLayouts((8, 8, 1), Layout(8), Layout((8, 1)), Layout((8, 1)), Layout((8, 8)))
    >>> print(atom.tv("C"), atom.tile("A"))
    (8,8):(1,8) (8, 1)
    """

    shape_mnk: tuple[int, int, int]
    threads: Layout
    a: Layout
    b: Layout
    c: Layout

    def __post_init__(self) -> None:
        for operand in MODES:
            tv = self.tv(operand)
            size = product(self.tile(operand))
            if tv.rank != 2 or tv[0].size != self.threads.size or not (tv[1].size <= size == tv.cosize):
                raise LayoutError(
                    "a thread-value layout maps (thread, value) into its operand",
                    got=f"{tv} of {self.threads.size} threads for {operand} of {to_text(self.tile(operand))}",
                    allowed=f"({self.threads.size} threads, values) that reach from 0 to {size - 1}",
                )

    def tv(self, operand: Operand) -> Layout:
        """The thread-value layout of an operand."""
        return self.a if operand == "A" else self.b if operand == "B" else self.c

    def tile(self, operand: Operand) -> tuple[int, int]:
        """The extents of an operand."""
        i, j = MODES[operand]
        return self.shape_mnk[i], self.shape_mnk[j]


SCALAR_FMA = MmaLayouts((1, 1, 1), Layout(1), Layout((1, 1)), Layout((1, 1)), Layout((1, 1)))
"""One multiply-add by one thread: CuTe's UniversalFMA, the atom of SIMT kernels."""


@dataclass(frozen=True, slots=True)
class TiledMma:
    """An atom repeated over threads and then over values (CuTe's TiledMMA); see make_tiled_mma.

    Attributes:
        atom: the layouts of one atom.
        threads_vmnk: (thread in the atom, atom along M, along N, along K) -> thread index.
        permutation: what tiles M, N and K: an int, or a layout that also reorders the mode.

    >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

    >>> mma.size, mma.tile_mnk
    (8, (4, 2, 1))
    """

    atom: MmaLayouts
    threads_vmnk: Layout
    permutation: tuple[int | Layout, int | Layout, int | Layout]

    def __post_init__(self) -> None:
        if self.threads_vmnk.rank != 4 or self.threads_vmnk[0].size != self.atom.threads.size:
            raise LayoutError(
                "the threads of a tiled MMA are (thread in the atom, atom along M, along N, along K)",
                got=f"{self.threads_vmnk} for an atom of {self.atom.threads.size} threads",
                fix="build it with make_tiled_mma",
            )

    @property
    def size(self) -> int:
        """The number of threads."""
        return self.threads_vmnk.size

    @property
    def tile_mnk(self) -> tuple[int, int, int]:
        """The extents of the tile that all threads together cover at least once (CuTe's tile_shape)."""
        m, n, k = (entry if isinstance(entry, int) else entry.size for entry in self.permutation)
        return m, n, k

    def thrfrg(self, operand: Operand, layout: AnyLayout) -> AnyLayout:
        """Regroup an operand by thread and fragment (CuTe's thrfrg_A, thrfrg_B, thrfrg_C).

        Domain: ((thread in the atom, (atom along mode 0, along mode 1)), (value in the atom, (repetitions along mode
        0, along mode 1, further modes..))). Codomain: that of ``layout``.

        Raises:
            LayoutError: the first two modes of ``layout`` aren't whole numbers of tiles; as for logical_divide.

        >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

        >>> print(mma.thrfrg("C", Layout((8, 4))))
        ((1,(4,2)),(1,(2,2))):((0,(1,8)),(0,(4,16)))
        """
        if isinstance(layout, ComposedLayout):
            return layout.map_inner(lambda inner: self.thrfrg(operand, inner))
        i, j = MODES[operand]
        self._check_whole(operand, layout)
        permuted = logical_divide(layout, (self.permutation[i], self.permutation[j]))
        atoms = zipped_divide(permuted, self.atom.tile(operand))
        thread, value = composition(atoms[0], self.atom.tv(operand))
        spread = zipped_divide(atoms[1], (self.threads_vmnk[1 + i].size, self.threads_vmnk[1 + j].size))
        return make_layout(make_layout(thread, spread[0]), make_layout(value, spread[1]))

    def _check_whole(self, operand: Operand, layout: Layout) -> None:
        if layout.rank < 2:
            raise LayoutError(
                f"operand {operand} has two modes or more", got=layout, fix="give it as (rows, columns, ..)"
            )
        for mode, axis in enumerate(MODES[operand]):
            tile, permutation = self.tile_mnk[axis], self.permutation[axis]
            unit = self.atom.shape_mnk[axis] * self.threads_vmnk[1 + axis].size
            extent = layout[mode].size
            if extent % unit or tile % self.atom.shape_mnk[axis] or not cuts_evenly(permutation, extent):
                raise LayoutError(
                    f"the threads share {'MNK'[axis]} of {operand} evenly, in whole atoms and whole tiles",
                    got=f"{extent} in {layout}, for tiles {permutation} and {unit} that the atoms of all threads take",
                    allowed=f"multiples of {tile} and {unit}; tiles that leave no gaps when they repeat",
                    fix=f"pad {'MNK'[axis]}, or spread fewer atoms along it",
                )

    def tv_layout(self, operand: Operand) -> Layout:
        """(thread index, value) -> element of the operand's tile (CuTe's get_layoutA_TV, ..B_TV, ..C_TV).

        Threads that differ only along the third of M, N, K hold the same elements (where they lie along K, CuTe C++'s
        layout of C runs out of the tile instead).

        Raises:
            LayoutError: as for thrfrg.

        >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

        >>> print(mma.tv_layout("C"))
        (8,(1,(1,1))):(1,(0,(0,0)))
        >>> print(mma.tv_layout("A"))
        ((4,2),(1,(1,1))):((1,0),(0,(0,0)))
        """
        i, j = MODES[operand]
        thread, value = self.thrfrg(operand, Layout((self.tile_mnk[i], self.tile_mnk[j])))
        if operand != "C":
            m, n = self.threads_vmnk[1].size, self.threads_vmnk[2].size
            spread = Layout((m, n), (1, 0) if operand == "A" else (0, 1))
            thread = composition(thread, (None, (spread, None)))
        elif self.threads_vmnk[3].size > 1:
            thread = make_layout(*thread, Layout(self.threads_vmnk[3].size, 0))
        vmnk = self.threads_vmnk
        of_index = right_inverse(make_layout(vmnk, complement(vmnk)))
        if of_index.size < vmnk.cosize:
            raise LayoutError(
                "the threads of a tiled MMA number 0, 1, 2 and so on, but for gaps that repeat evenly",
                got=f"{vmnk}, of which {of_index.size} threads can be told apart",
                allowed="strides that nest",
            )
        return make_layout(composition(thread, composition(Layout((vmnk.size, 1), (1, 0)), of_index)), value)

    def _partition(self, operand: Operand, layout: AnyLayout, thread: int) -> View:
        i, j = MODES[operand]
        at = coordinate_of(self.threads_vmnk, thread)
        if not isinstance(at, tuple):
            raise LayoutError("threads of a tiled MMA are (V,M,N,K)", got=self.threads_vmnk)
        regrouped = self.thrfrg(operand, layout)
        return slice_and_offset(regrouped, ((at[0], (at[1 + i], at[1 + j])), (None, (None,) * layout.rank)))

    def partition_A(self, layout: AnyLayout, thread: int) -> View:
        """What a thread holds of A, an (M,K,..) layout.

        Domain: (value, repetitions along M, along K, ..). Codomain: that of ``layout``.

        Raises:
            LayoutError: no such thread; as for thrfrg.

        >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

        >>> print(mma.partition_A(Layout((8, 2)), 5))
        (1,2,2):(0,4,8)+1
        """
        return self._partition("A", layout, thread)

    def partition_B(self, layout: AnyLayout, thread: int) -> View:
        """What a thread holds of B, an (N,K,..) layout; as partition_A.

        >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

        >>> print(mma.partition_B(Layout((8, 2)), 5))
        (1,4,2):(0,2,8)+1
        """
        return self._partition("B", layout, thread)

    def partition_C(self, layout: AnyLayout, thread: int) -> View:
        """What a thread holds of C, an (M,N,..) layout; as partition_A.

        >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

        >>> print(mma.partition_C(Layout((8, 4)), 5))
        (1,2,2):(0,4,16)+9
        """
        return self._partition("C", layout, thread)

    def partition_shape(self, operand: Operand, shape: IntTuple) -> IntTuple:
        """The shape of a partition of an operand of ``shape`` (CuTe's partition_shape_A, ..B, ..C).

        >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

        >>> mma.partition_shape("C", (8, 4))
        (1, 2, 2)
        """
        layout = Layout(shape)
        regrouped = self.thrfrg(operand, layout)
        return slice(regrouped, (0, (None, (None,) * layout.rank))).shape

    def partition_fragment_C(self, shape: IntTuple) -> Layout:
        """The accumulator registers of a thread for C of ``shape``: (value, repetitions along M, along N), compact.

        >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

        >>> print(mma.partition_fragment_C((8, 4)))
        (1,2,2):(0,1,2)
        """
        return Layout(self.partition_shape("C", shape))

    def partition_fragment_A(self, layout: AnyLayout, thread: int) -> Layout:
        """The registers of a thread for its part of A, in the order in which the part lies in memory.

        >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

        >>> print(mma.partition_fragment_A(Layout((8, 2), (2, 1)), 5))
        (1,2,2):(0,2,1)
        """
        return make_fragment_like(self.partition_A(layout, thread).layout)

    def partition_fragment_B(self, layout: AnyLayout, thread: int) -> Layout:
        """The registers of a thread for its part of B; as partition_fragment_A.

        >>> mma = make_tiled_mma(SCALAR_FMA, Layout((4, 2)))

        >>> print(mma.partition_fragment_B(Layout((8, 2), (2, 1)), 5))
        (1,4,2):(0,2,1)
        """
        return make_fragment_like(self.partition_B(layout, thread).layout)


def make_tiled_mma(
    atom: MmaLayouts,
    atoms: Layout | None = None,
    permutation: tuple[int | Layout | None, ...] = (),
) -> TiledMma:
    """Repeat ``atom`` over threads as ``atoms`` says, (M,N,K) -> which group of threads, and then over values.

    Without ``atoms`` there is one.
    ``permutation`` gives the tile of M, N and K: an int, a layout (which also reorders the mode), or None for what
    the atoms take. Missing modes of ``atoms`` count as 1, missing entries of ``permutation`` as None.

    Raises:
        LayoutError: more than three modes, or the groups of threads aren't disjoint.

    >>> mma = make_tiled_mma(SCALAR_FMA, Layout((16, 16)))
    >>> print(mma.threads_vmnk, mma.tile_mnk)
    (1,16,16,1):(0,1,16,0) (16, 16, 1)
    """
    atoms = atoms or Layout((1, 1, 1))
    if atoms.rank > 3 or len(permutation) > 3:
        raise LayoutError("atoms and permutation have at most the modes M, N, K", got=f"{atoms} and {permutation}")
    threads = tiled_product(atom.threads, make_layout(*atoms, *[Layout(1, 0)] * (3 - atoms.rank)))
    if (twice := first_collision(threads)) is not None:
        raise LayoutError(
            "each thread works in one atom",
            got=f"atoms {atoms} give thread {threads(twice[0])} to two of them",
            fix="give the atoms a layout that is injective, such as a compact one",
        )
    given = (*permutation, None, None, None)
    m, n, k = (
        atom.shape_mnk[axis] * threads[1 + axis].size if entry is None else entry
        for axis, entry in enumerate(given[:3])
    )
    return TiledMma(atom, threads, (m, n, k))
