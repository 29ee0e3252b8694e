"""Which lane holds what of A and B in the registers of an MMA atom, by the atom's own layouts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutgen.algebra import Layout, Offsets
from layoutgen.facts.ownership import NOBODY
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
    """An operand of a plan that multiplies by atoms -> who holds what.

    Which row of an atom a coordinate of the warp's tile is, the accumulators say, whose rows (columns, for B) are A's;
    which k, and which register before it is split, the fragment.
    """
    fragment, mode = operand.fragment, 0 if operand.x == "m" else 1
    assert isinstance(fragment, AtomFragment)
    layouts = plan.atom.layouts
    extent, atom_k = layouts.shape_mnk[mode], layouts.shape_mnk[2]
    warp_x, value_x = plan.tile.warp_mode[mode].offsets(), plan.tile.value_mode[mode].offsets()
    lane_x = (plan.threads.m, plan.threads.n)[mode][0].offsets()
    place_in_c = divmod(_by_lane(layouts.c), layouts.shape_mnk[0])[1 - mode]  # (lane, value) -> row, or column
    first, value = np.unique(place_in_c[0], return_inverse=True)  # values of lane 0, which begins at 0, along the mode
    inside = np.empty((fragment.atoms, extent), dtype=np.int64)
    each = value_x.reshape(fragment.atoms, first.size)[:, value]
    inside[:, place_in_c] = lane_x[:, None] + each[:, None, :]
    k_of, x_of = divmod(_by_lane(layouts.a if mode == 0 else layouts.b), extent)
    per = max(4 // ITEMSIZE[operand.dtype], 1)
    w, atom, block, lane, value = np.indices((warp_x.size, fragment.atoms, plan.k_blocks, *x_of.shape))
    x = warp_x[w] + inside[atom, x_of[lane, value]]
    k = block * atom_k + fragment.k.offsets()[k_of[lane, value]]
    register, place = divmod(fragment.elements.offsets()[value], per)
    found = []
    for part in (w, lane, block, atom * fragment.of_atom + register, place):
        at = np.full(operand.tile, NOBODY, dtype=np.int64)
        at[x, k] = part
        found.append(at)
    return AtomOwners(*found)


def _by_lane(layout: Layout) -> Offsets:
    """(lane, value) -> element of an atom's operand, as an array."""
    lanes, values = layout
    return lanes.offsets()[:, None] + values.offsets()[None, :]
