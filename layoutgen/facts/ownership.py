"""Who owns what of a block's tiles, as arrays over the tile: what is drawn, explained and looked up.

Banks and sectors count from addresses that a GPU aligns: dynamic shared memory starts at bank 0.

All of it is evaluated from the layouts that the kernel carries. Coverage is taken for granted here; `coverage` proves
it, and where it does not hold, the owner with the highest index is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from layoutgen.algebra import Layout, Offsets
from layoutgen.facts.banks import BANK_BYTES, BANKS
from layoutgen.plan.model import Access, Copy, CTile, Fetch, Fragment, Plan, Shared, SharedOperand, ThreadMap
from layoutgen.plan.storage import ITEMSIZE

NOBODY = -1
Side = Literal["read", "write"]  # of global memory, of shared memory


@dataclass(frozen=True, slots=True, eq=False)
class COwners:
    """The owner of each (m, n) of the block tile of C; arrays of shape (BLK_M, BLK_N), NOBODY where there is none.

    thread: its number, lane + lanes * warp. value_m, value_n: which of its values along each mode; its accumulator is
    (value_m, value_n). lanes: of a warp.
    """

    lanes: int
    thread: Offsets
    value_m: Offsets
    value_n: Offsets

    @property
    def warp(self) -> Offsets:
        return np.where(self.thread < 0, NOBODY, self.thread // self.lanes)

    @property
    def lane(self) -> Offsets:
        return np.where(self.thread < 0, NOBODY, self.thread % self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class CopyOwners:
    """The copier of each (x, k) of an operand's k-tile; arrays of shape (BLK_X, BLK_K), NOBODY where there is none.

    element_x, element_k: which of the thread's elements along each mode.
    """

    thread: Offsets
    element_x: Offsets
    element_k: Offsets


def c_owners(tile: CTile, threads: ThreadMap) -> COwners:
    """Block tile of C -> its owners."""
    value_m, value_n = tile.value_mode
    return COwners(tile.lanes.size, *_owners(threads.m, threads.n, value_m, value_n, tile.block[:2]))


def copy_owners(copy: Copy, tile: tuple[int, int]) -> CopyOwners:
    """An operand's copy and its (BLK_X, BLK_K) -> who copies what."""
    return CopyOwners(*_owners(copy.thread_x, copy.thread_k, copy.element_x, copy.element_k, tile))


def _owners(
    thread_i: Layout, thread_j: Layout, value_i: Layout, value_j: Layout, tile: tuple[int, int]
) -> tuple[Offsets, Offsets, Offsets]:
    """thread -> (i, j) and value -> (i, j) beyond it: the thread and its two value indices at each (i, j) of a tile."""
    shape = (thread_i.size, value_i.size, value_j.size)
    i = np.broadcast_to(thread_i.offsets()[:, None, None] + value_i.offsets()[None, :, None], shape)
    j = np.broadcast_to(thread_j.offsets()[:, None, None] + value_j.offsets()[None, None, :], shape)
    inside = (i >= 0) & (i < tile[0]) & (j >= 0) & (j < tile[1])
    found = []
    for part in np.indices(shape, dtype=np.int64):
        at = np.full(tile, NOBODY, dtype=np.int64)
        at[i[inside], j[inside]] = part[inside]
        found.append(at)
    return found[0], found[1], found[2]


def shared_offsets(shared: Shared, stage: int = 0) -> Offsets:
    """(x, k) of a k-tile -> its element's offset in the operand's shared memory; shape (BLK_X, BLK_K)."""
    x, k, stages = shared.layout
    return shared.swizzle.at(x.offsets()[:, None] + k.offsets()[None, :] + stages(stage))


def access_offsets(access: Access, vector: int, pieces: Offsets) -> Offsets:
    """Pieces, by their index, and threads -> the element at which a piece's vector begins; shape (pieces, threads).

    vector: elements of one.
    """
    base = access.base.offsets()[None, :]
    flip, index = np.zeros_like(pieces), pieces
    for mode in access.flips or ():
        flip = flip ^ mode.at(index % mode.size)
        index = index // mode.size
    flipped = base ^ (flip * vector)[:, None]
    return flipped + (access.steps.at(pieces) * vector)[:, None]


def first_word(plan: Plan, operand: SharedOperand) -> int:
    """Where an operand's stages begin in the block's dynamic shared memory, in words; A's come first, then B's."""
    return 0 if operand.name == "a" else (plan.shared_bytes - operand.shared.bytes) // BANK_BYTES


def shared_banks(plan: Plan, operand: SharedOperand, stage: int = 0) -> Offsets:
    """(x, k) of a k-tile -> the bank of its first byte; shape (BLK_X, BLK_K)."""
    words = shared_offsets(operand.shared, stage) * ITEMSIZE[operand.dtype] // BANK_BYTES
    return (first_word(plan, operand) + words) % BANKS


@dataclass(frozen=True, slots=True)
class Piece:
    """One access of a thread: (i, j) numbers it along x and k, `position` is an element's place in it.

    first: the indices (element_x, element_k) of its first element; `width` of them follow along `mode`.
    """

    i: int
    j: int
    position: int
    first: tuple[int, int]
    width: int
    mode: Literal["x", "k"]

    @property
    def elements(self) -> tuple[tuple[int, int], ...]:
        """The indices of all that it moves, in order."""
        i, j = self.first
        return tuple((i + v, j) if self.mode == "x" else (i, j + v) for v in range(self.width))


def fetch_piece(fetch: Fetch, element: tuple[int, int], side: Side) -> Piece:
    """Which access of its thread reads element (i, j) from global memory, or writes it to shared memory.

    Raises TypeError where what is asked for is written nowhere.
    """
    if side == "read":
        width, mode = fetch.read_vector, fetch.read_mode
    elif isinstance(fetch, Copy):
        width, mode = fetch.write_vector, fetch.write_mode
    else:
        raise TypeError("a fetch that ends in registers writes nothing")
    i, j = element
    if mode == "x":
        return Piece(i // width, j, i % width, (i // width * width, j), width, mode)
    return Piece(i, j // width, j % width, (i, j // width * width), width, mode)


def turned(fetch: Fetch) -> bool:
    """Whether a thread reads runs along one mode and writes runs along the other: it turns patches in registers."""
    return (
        isinstance(fetch, Copy)
        and fetch.read_mode != fetch.write_mode
        and min(fetch.read_vector, fetch.write_vector) > 1
    )


def fetch_pieces(fetch: Fetch, side: Side) -> tuple[Piece, ...]:
    """A thread's accesses in the order of their numbers, as a program's moves count them: i fastest."""
    elements = ((i, j) for j in range(fetch.element_k.size) for i in range(fetch.element_x.size))
    every = (fetch_piece(fetch, element, side) for element in elements)
    return tuple(each for each in every if each.position == 0)


def fragment_piece(fragment: Fragment, value: int) -> Piece:
    """Which of a thread's shared loads of one k brings its value, by itself where loads run along k."""
    width = fragment.vector if fragment.mode == "x" else 1
    return Piece(value // width, 0, value % width, (value // width * width, 0), width, "x")
