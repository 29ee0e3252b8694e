"""How many passes a warp's access takes: shared-memory wavefronts and 32-byte global sectors.

Shared memory has 32 banks of 4 bytes. A warp's access of up to 4 bytes per lane is one phase; 8-byte accesses take
one phase per half warp and 16-byte ones one per quarter warp. In a phase, a bank delivers one word per wavefront, to
every lane that asked for it. Measured on an H200 (benchmarks/wavefronts.py), a load takes two neighbouring phases at
once where their lanes read alike in pairs, lane i what lane i^1 reads or all of them what lane i^2 reads, and all that
they read lies in different banks; a store never does.
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
    alone = _passes(unit, active, 128 // unit_bytes, 128 // unit_bytes)
    if not load or size < 8:
        total: Array = alone.sum(1)
        return total
    lanes = 256 // unit_bytes
    merged = _passes(unit, active, lanes, 128 // unit_bytes)
    in_pairs = np.zeros(merged.shape, bool)
    for distance in (1, 2):
        partner = _LANE ^ distance
        alike = (unit == unit[:, partner]) | ~active | ~active[:, partner]
        in_pairs |= alike.reshape(len(unit), -1, lanes).all(2)
    separate = alone.reshape(len(unit), -1, 2).sum(2)
    best: Array = np.where(in_pairs & (merged == 1), merged, separate).sum(1)
    return best


def _passes(unit: Array, active: Array, lanes: int, banks: int) -> Array:
    """Units (warps, 32), ``banks`` of which are delivered at once -> passes of each phase of so many lanes, (warps,
    phases).
    """
    phases = 32 // lanes
    phase = np.broadcast_to(np.arange(len(unit))[:, None] * phases + _LANE // lanes, unit.shape)[active]
    pairs = np.unique(np.stack([phase, unit[active]]), axis=1)  # a word asked for twice in a phase is read once
    load_of_bank = np.bincount(pairs[0] * banks + pairs[1] % banks, minlength=len(unit) * phases * banks)
    busiest: Array = load_of_bank.reshape(len(unit), phases, banks).max(2)
    return busiest


def sectors(address: Array, active: Array) -> Array:
    """Byte addresses (warps, 32), active lanes (warps, 32) -> distinct 32-byte sectors of each warp (warps,)."""
    sector = np.where(active, address >> 5, np.int64(-1))
    sector = np.sort(sector, axis=1)
    first = np.ones(sector.shape, bool)
    first[:, 1:] = sector[:, 1:] != sector[:, :-1]
    count: Array = (first & (sector >= 0)).sum(1)
    return count
