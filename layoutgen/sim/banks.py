"""How many passes a warp's access takes: shared-memory wavefronts and 32-byte global sectors.

Shared memory has 32 banks of 4 bytes. A warp's access of up to 4 bytes per lane is one phase; 8-byte accesses take
one phase per half warp and 16-byte ones one per quarter warp. Measured on an H200, loads merge neighbouring phases
where lanes read alike in pairs: if addr(i) = addr(i^1) on every lane, or addr(i) = addr(i^2) on every lane, an 8-byte
load is one phase and a 16-byte load two. In a phase, a bank delivers one word per wavefront, to every lane that asked
for it.
"""

from __future__ import annotations

import numpy as np

from layoutgen.sim.frame import Array

_LANE = np.arange(32)


def wavefronts(address: Array, active: Array, size: int, load: bool) -> Array:
    """Byte addresses (warps, 32), active lanes (warps, 32) -> wavefronts of each warp (warps,).

    ``size`` is the bytes per lane (1 to 16); addresses are multiples of it. A pair of lanes of which one is inactive
    doesn't stop phases from merging.
    """
    unit_bytes = max(size, 4)
    unit = address.astype(np.int64) // unit_bytes
    lanes_per_phase = np.full(len(unit), 128 // unit_bytes)
    if load and size >= 8:
        for distance in (1, 2):
            partner = _LANE ^ distance
            alike = (unit == unit[:, partner]) | ~active | ~active[:, partner]
            lanes_per_phase[alike.all(1)] = 256 // unit_bytes
    phase = _LANE // lanes_per_phase[:, None]
    row = (np.arange(len(unit))[:, None] * 4 + phase)[active]  # one row per warp and phase
    banks = 128 // unit_bytes
    pairs = np.unique(np.stack([row, unit[active]]), axis=1)  # a word asked for twice in a phase is read once
    load_of_bank = np.bincount(pairs[0] * banks + pairs[1] % banks, minlength=len(unit) * 4 * banks)
    passes: Array = load_of_bank.reshape(len(unit), 4, banks).max(2).sum(1)
    return passes


def sectors(address: Array, active: Array) -> Array:
    """Byte addresses (warps, 32), active lanes (warps, 32) -> distinct 32-byte sectors of each warp (warps,)."""
    sector = np.where(active, address >> 5, np.int64(-1))
    sector = np.sort(sector, axis=1)
    first = np.ones(sector.shape, bool)
    first[:, 1:] = sector[:, 1:] != sector[:, :-1]
    count: Array = (first & (sector >= 0)).sum(1)
    return count
