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


def copy_wavefronts(source: Array, shared: Array, size: int) -> int:
    """The wavefronts of one warp's cp.async, of the lanes that read; measured like ``wavefronts``, but an estimate.

    Up to 8 bytes a lane: lanes take turns at their bank of the source (a 128-byte row has as many banks as it has
    pieces of ``size``), and then, as they come, at their bank of shared memory. 16 bytes move by sectors: those of one
    line of global memory go to one row of shared memory at once if they are turned alike and have the same halves.
    """
    source, shared = source // size, shared // size
    if size == 16:
        both = source // 2 * (1 << 20) + shared // 2
        repeat = _rank(both * 2 + source % 2)  # the how-manieth copy of this half to this place
        whole, of = np.unique(both * 32 + repeat, return_inverse=True)
        pattern = np.zeros(len(whole), np.int64)
        np.bitwise_or.at(pattern, of.reshape(-1), 1 << (source % 2 * 2 + shared % 2))
        sector, piece = whole // 32 >> 20, whole // 32 & (1 << 20) - 1
        return len({*zip(sector // 4, piece // 4, (piece - sector) % 4, pattern, strict=True)})
    banks = 128 // size
    clock = _rank(source % banks)
    done = 0
    for bank in np.unique(shared % banks):
        ready = 0
        for came in np.sort(clock[shared % banks == bank]).tolist():
            ready = max(ready, came) + 1
        done = max(done, ready)
    return done


def _rank(keys: Array) -> Array:
    """Of each key, how many equal ones stand before it."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.r_[starts, len(keys)]))
    return rank


def sectors(address: Array, active: Array) -> Array:
    """Byte addresses (warps, 32), active lanes (warps, 32) -> distinct 32-byte sectors of each warp (warps,)."""
    return _distinct(address >> 5, active)


def bypassing_sectors(source: Array, shared: Array, active: Array) -> Array:
    """The sectors that a cp.async which bypasses L1 moves: global and shared byte addresses (warps, 32) -> (warps,).

    A sector is fetched once for each 32-byte piece of shared memory that it goes to, as an H200 counts.
    """
    pieces = shared.astype(np.int64) >> 5
    return _distinct(((source.astype(np.int64) >> 5) << 16) + pieces, active)


def _distinct(number: Array, active: Array) -> Array:
    number = np.sort(np.where(active, number, np.int64(-1)), axis=1)
    first = np.ones(number.shape, bool)
    first[:, 1:] = number[:, 1:] != number[:, :-1]
    count: Array = (first & (number >= 0)).sum(1)
    return count
