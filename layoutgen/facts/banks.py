"""How many wavefronts one warp's shared-memory access takes.

Shared memory delivers 128 bytes a wavefront, a word of 4 bytes from each of 32 banks (CUDA C++ Programming Guide,
"Shared Memory" of each compute capability). A warp's access is served in phases of as many lanes as ask for 128 bytes.
How phases meet is not documented; it was measured on an H200 by benchmarks/wavefronts.py, whose every pattern this
model reproduces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

BANKS = 32
BANK_BYTES = 4
ROW_BYTES = BANKS * BANK_BYTES
MATRIX_ROWS = 8  # of 16 bytes each, the 8 x 8 matrix of 16-bit elements of ldmatrix and stmatrix
WARP_SIZE = 32
HALF_SECTOR = 16

AccessKind = Literal["load", "store", "matrix"]


def wavefronts(addresses: Sequence[int], size: int, kind: AccessKind) -> int:
    """Wavefronts of one access by a warp.

    Args:
        addresses: bytes, of the lanes that take part, in their order: all 32 (or the rows' addresses of ldmatrix and
            stmatrix, 8 a matrix).
        size: bytes a lane, a multiple of which each address is; 16 for a row of a matrix.
        kind: "matrix" for ldmatrix and stmatrix.

    >>> wavefronts([16 * lane for lane in range(32)], 16, "load")
    4
    >>> wavefronts([16 * (lane // 2) for lane in range(32)], 16, "load")  # pairs of lanes read alike
    2
    >>> wavefronts([128 * lane for lane in range(32)], 4, "store")
    32
    """
    unit_bytes = max(size, BANK_BYTES)
    units = [address // unit_bytes for address in addresses]
    ways = ROW_BYTES // unit_bytes
    lanes = MATRIX_ROWS if kind == "matrix" else ways
    phases = [units[i : i + lanes] for i in range(0, len(units), lanes)]
    if kind != "load" or len(phases) == 1:
        return sum(_passes(phase, ways) for phase in phases)
    total = 0
    for first, second in zip(phases[::2], phases[1::2], strict=True):
        both = first + second
        at_once = _in_pairs(both) and _passes(both, ways) == 1
        total += 1 if at_once else _passes(first, ways) + _passes(second, ways)
    return total


def _passes(units: Sequence[int], ways: int) -> int:
    """How often the busiest bank is asked; a unit that several lanes ask for is delivered once."""
    load: dict[int, int] = {}
    for unit in set(units):
        load[unit % ways] = load.get(unit % ways, 0) + 1
    return max(load.values())


def _in_pairs(units: Sequence[int]) -> bool:
    """Whether every lane i reads what lane i^1 reads, or every one what lane i^2 reads."""
    return any(all(unit == units[i ^ distance] for i, unit in enumerate(units)) for distance in (1, 2))


def conflict_free(addresses: Sequence[int], size: int, kind: AccessKind) -> int:
    """The wavefronts of the same access if no two words that it asks for shared a bank; as for ``wavefronts``.

    >>> conflict_free([128 * lane for lane in range(32)], 16, "load")
    4
    """
    lanes = MATRIX_ROWS if kind == "matrix" else ROW_BYTES // max(size, BANK_BYTES)
    phases = -(-len(addresses) // lanes)
    if kind != "load" or phases == 1:
        return phases
    return sum(1 if _in_pairs(addresses[i : i + 2 * lanes]) else 2 for i in range(0, len(addresses), 2 * lanes))


def copy_wavefronts(sources: Sequence[int], addresses: Sequence[int], size: int) -> int:
    """Wavefronts of one cp.async by a warp: an estimate, for data arrives in its own time.

    On an H200 it is exact for copies of runs, however source and destination are shifted, and within a tenth for whole
    kernels (benchmarks/wavefronts.py, benchmarks/counters.py). Up to 8 bytes pass through L1, whose banks deliver a
    word a clock, too: lanes that share a bank of the source wait for each other, and then for their bank of shared
    memory. 16 bytes go past L1 by 32-byte sectors; a wavefront moves those of one 128-byte line to one row of banks,
    all turned alike and with the same halves.

    Args:
        sources, addresses: bytes in global and in shared memory, of the lanes that read, in their order.
        size: bytes a lane.

    >>> lanes = range(32)
    >>> copy_wavefronts([4 * i for i in lanes], [4 * i for i in lanes], 4)
    1
    >>> copy_wavefronts([4096 * (i // 8) + 4 * (i % 8) for i in lanes], [4 * i for i in lanes], 4)  # four rows
    4
    >>> copy_wavefronts([16 * i for i in lanes], [16 * i for i in lanes], 16)
    4
    >>> copy_wavefronts([16 * i for i in lanes], [16 * i + 16 for i in lanes], 16)  # sectors land in halves
    12
    """
    if size == HALF_SECTOR:
        return _sector_wavefronts(sources, addresses)
    ways = ROW_BYTES // max(size, BANK_BYTES)
    asked: dict[int, int] = {}
    arrivals = []
    for lane, source in enumerate(sources):
        bank = source // size % ways
        arrivals.append((asked.get(bank, 0), lane))
        asked[bank] = asked.get(bank, 0) + 1
    free: dict[int, int] = {}
    for clock, lane in sorted(arrivals):
        bank = addresses[lane] // size % ways
        free[bank] = max(free.get(bank, 0), clock) + 1
    return max(free.values(), default=0)


def _sector_wavefronts(sources: Sequence[int], addresses: Sequence[int]) -> int:
    halves: dict[tuple[int, int], dict[int, list[int]]] = {}
    for source, address in zip(sources, addresses, strict=True):
        (sector, half), (piece, place) = (divmod(each // HALF_SECTOR, 2) for each in (source, address))
        halves.setdefault((sector, piece), {}).setdefault(half, []).append(place)
    moves = set()
    for (sector, piece), places in halves.items():
        for turn in range(max(map(len, places.values()))):
            pattern = frozenset((half, own[turn]) for half, own in places.items() if turn < len(own))
            moves.add((sector // 4, piece // 4, (piece - sector) % 4, pattern))
    return len(moves)
