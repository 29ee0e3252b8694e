"""How many wavefronts one warp's shared-memory access takes.

Shared memory delivers 128 bytes a wavefront, a word of 4 bytes from each of 32 banks (CUDA C++ Programming Guide,
"Shared Memory" of each compute capability). A warp's access is served in phases of as many lanes as ask for 128 bytes.
How phases meet is not documented; it was measured on an H200 by benchmarks/wavefronts.py, whose every pattern this
model reproduces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from layoutgen.plan.storage import SECTOR_BYTES

BANKS = 32
BANK_BYTES = 4
ROW_BYTES = BANKS * BANK_BYTES
MATRIX_ROWS = 8  # of 16 bytes each, the 8 x 8 matrix of 16-bit elements of ldmatrix and stmatrix
HALF_SECTOR = SECTOR_BYTES // 2  # what cp.async moves past L1 (PTX ISA, cp.async.cg)

AccessKind = Literal["load", "store", "matrix"]


@dataclass(frozen=True, slots=True)
class Phase:
    """Lanes that are served together: in one wavefront, if no two words that they ask for share a bank.

    lanes: which of them take part. wavefronts: what it takes.
    """

    lanes: tuple[int, ...]
    wavefronts: int


def phases(addresses: Sequence[int | None], size: int, kind: AccessKind) -> tuple[Phase, ...]:
    """One access by a warp -> its phases, in the order of its lanes.

    Args:
        addresses: byte address of each lane, None of one that takes no part: all 32 (or the rows' addresses of ldmatrix
            and stmatrix, 8 a matrix).
        size: bytes a lane, a multiple of which each address is; 16 for a row of a matrix.
        kind: "matrix" for ldmatrix and stmatrix.

    Two phases of a load are one where lanes agree in pairs. If banks then conflict, each is served for itself. Loads
    with idle lanes were not measured; theirs stay apart, which is the most that they may take.

    >>> phases([16 * (lane // 2) for lane in range(8)] + [None] * 24, 16, "store")
    (Phase(lanes=(0, 1, 2, 3, 4, 5, 6, 7), wavefronts=1),)
    """
    unit_bytes = max(size, BANK_BYTES)
    ways = ROW_BYTES // unit_bytes
    units = [None if address is None else address // unit_bytes for address in addresses]
    width = MATRIX_ROWS if kind == "matrix" else ways
    parts = [range(i, min(i + width, len(units))) for i in range(0, len(units), width)]
    groups = [(part,) for part in parts] if kind != "load" or len(parts) == 1 else _merged(units, parts)
    found = []
    for group in groups:
        if lanes := tuple(lane for part in group for lane in part if units[lane] is not None):
            together = _passes([units[lane] for lane in lanes], ways)
            apart = sum(_passes([units[lane] for lane in part], ways) for part in group)
            found.append(Phase(lanes, 1 if together == 1 else apart))
    return tuple(found)


def _merged(units: Sequence[int | None], parts: Sequence[range]) -> list[tuple[range, ...]]:
    """The parts of a load, each two neighbours whose lanes agree in pairs together."""
    found: list[tuple[range, ...]] = []
    for first, second in zip(parts[::2], parts[1::2], strict=True):
        alike = _in_pairs([units[lane] for lane in (*first, *second)])
        found += [(first, second)] if alike else [(first,), (second,)]
    return found


def wavefronts(addresses: Sequence[int | None], size: int, kind: AccessKind) -> int:
    """Wavefronts of one access by a warp, that of all its phases; arguments as for ``phases``.

    >>> wavefronts([16 * lane for lane in range(32)], 16, "load")
    4
    >>> wavefronts([16 * (lane // 2) for lane in range(32)], 16, "load")  # pairs of lanes read alike
    2
    >>> wavefronts([128 * lane for lane in range(32)], 4, "store")
    32
    """
    return sum(phase.wavefronts for phase in phases(addresses, size, kind))


def conflict_free(addresses: Sequence[int | None], size: int, kind: AccessKind) -> int:
    """The wavefronts of the same access if no two words that it asks for shared a bank: one a phase.

    >>> conflict_free([128 * lane for lane in range(32)], 16, "load")
    4
    """
    return len(phases(addresses, size, kind))


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


def _passes(units: Sequence[int | None], ways: int) -> int:
    """How often the busiest bank is asked; a unit that several lanes ask for is delivered once."""
    asked = {unit for unit in units if unit is not None}
    return max(Counter(unit % ways for unit in asked).values(), default=0)


def _in_pairs(units: Sequence[int | None]) -> bool:
    """Whether every lane i reads what lane i^1 reads, or every one what lane i^2 reads."""
    if None in units:
        return False
    return any(all(unit == units[i ^ distance] for i, unit in enumerate(units)) for distance in (1, 2))
