"""Which lane holds what of A and B in the registers of an MMA atom, by the PTX ISA's fragments.

"Matrix Fragments for mma.m16n8k16" and its like: lane 4 g + t holds row g, and the registers that begin at t along k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutgen.algebra import Offsets
from layoutgen.facts.ownership import NOBODY
from layoutgen.plan.mma import LANES, ROWS
from layoutgen.plan.model import AtomFragment, Plan, SharedOperand
from layoutgen.plan.storage import ITEMSIZE


@dataclass(frozen=True, slots=True, eq=False)
class AtomOwners:
    """Who holds each (x, k) of an operand's k-tile, in every warp whose tile has x; arrays of shape (BLK_X, BLK_K).

    warp: its place along x among the warps. lane: of it. k_block: which K of an atom. register: of the operand's in a
    slot, in the order of loads. place: among the elements of a register, from its low bits on.
    """

    warp: Offsets
    lane: Offsets
    k_block: Offsets
    register: Offsets
    place: Offsets


def atom_owners(plan: Plan, operand: SharedOperand) -> AtomOwners:
    """An operand of a plan that multiplies by atoms -> who holds what."""
    fragment, mode = operand.fragment, 0 if operand.x == "m" else 1
    assert isinstance(fragment, AtomFragment)
    levels = (plan.tile.warp_mode, plan.tile.lane_mode, plan.tile.value_mode)
    warp_x, lane_x, value_x = (layout[mode].offsets() for layout in levels)
    atom_x, atom_k = plan.atom.layouts.shape_mnk[mode], plan.atom.layouts.shape_mnk[2]
    per = max(4 // ITEMSIZE[operand.dtype], 1)
    rows, columns = atom_x // ROWS, atom_k // (LANES * per)
    if mode == 0:  # the accumulators of lane 4 g + t stand in the same row g of each 8
        inside = lane_x[:, None, None] + value_x.reshape(fragment.atoms, rows)[None, :, :]  # (g, atom, row)
    else:  # column g of an atom is one of lane g / 2's pair
        pairs = value_x.reshape(fragment.atoms, 2)
        inside = (lane_x[:, None, None] + pairs.T[None, :, :]).reshape(ROWS, fragment.atoms, 1)
    shape = (warp_x.size, ROWS, fragment.atoms, rows, plan.k_blocks, columns, LANES, per)
    w, g, atom, row, block, column, t, place = np.indices(shape)
    x = warp_x[w] + inside[g, atom, row]
    k = block * atom_k + column * LANES * per + t * per + place
    found = []
    for part in (w, LANES * g + t, block, atom * fragment.of_atom + column * rows + row, place):
        at = np.full(operand.tile, NOBODY, dtype=np.int64)
        at[x, k] = part
        found.append(at)
    return AtomOwners(*found)
