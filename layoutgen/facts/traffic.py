"""What a launch's memory accesses cost, worked out from the plan's layouts: no kernel is compiled, none is run.

An execution is one instruction of one warp: its lanes' byte addresses and which lanes take part. Every instruction of
the plan's program is enumerated, block by block, so it is meant for problems of a few tiles; larger ones repeat them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from layoutgen.algebra import Offsets
from layoutgen.facts.banks import (
    BANK_BYTES,
    HALF_SECTOR,
    MATRIX_ROWS,
    ROW_BYTES,
    AccessKind,
    conflict_free,
    copy_wavefronts,
    wavefronts,
)
from layoutgen.facts.ownership import access_offsets, first_word
from layoutgen.hw.warp_atoms import WARP
from layoutgen.plan.model import (
    Advance,
    AtomFragment,
    CopyTile,
    Fetch,
    LoadFragment,
    LoadTile,
    Operand,
    OperandName,
    Plan,
    SharedOperand,
    StoreTile,
)
from layoutgen.plan.model import Opcode as SharedOpcode
from layoutgen.plan.schedule import WorkRange, work
from layoutgen.plan.storage import ITEMSIZE, SECTOR_BYTES
from layoutgen.problem import Problem, View

FAR = np.int64(1) << 60  # beyond every address
SHARED_PIECES = 1 << 20  # more than a block's shared memory has 32-byte pieces
Opcode = SharedOpcode | Literal["ld.global", "st.global", "atom.global"]
Lanes = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sums over all executions of an access.

    requests: warps with a lane that takes part. wavefronts: passes of shared memory; of cp.async an estimate, since its
    data arrives in its own time. sectors: 32-byte pieces of global memory. bytes: what lanes asked for.
    """

    requests: int = 0
    wavefronts: int = 0
    sectors: int = 0
    bytes: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.requests + other.requests,
            self.wavefronts + other.wavefronts,
            self.sectors + other.sectors,
            self.bytes + other.bytes,
        )


class Sites(NamedTuple):
    """Instructions of one access that all threads execute together.

    opcode: PTX's instruction and space; bytes: what one thread moves. shared, source: byte addresses in shared and in
    global memory, shape (instructions, threads), or None. active: the lanes that execute it; reading: those of them
    that touch global memory. swizzled: whether the shared memory is.
    """

    name: str
    opcode: Opcode
    bytes: int
    shared: Offsets | None
    source: Offsets | None
    active: Lanes
    reading: Lanes
    swizzled: bool = False

    @property
    def kind(self) -> AccessKind:
        """What it is to shared memory."""
        if self.opcode in ("ldmatrix", "ldmatrix.trans"):
            return "matrix"
        return "load" if self.opcode == "ld.shared" else "store"


def launch_traffic(plan: Plan, problem: Problem) -> dict[str, Traffic]:
    """Access -> its traffic over a whole launch: fragment_a, copy_b (cp.async), load_a and store_a, read_c, write_d."""
    totals: dict[str, Traffic] = {}
    for block in work(plan.schedule, plan.tile, problem.m, problem.n, problem.depth):
        for sites in block_sites(plan, problem, block):
            totals[sites.name] = totals.get(sites.name, Traffic()) + count(sites)
    return totals


def block_sites(plan: Plan, problem: Problem, block: WorkRange) -> Iterator[Sites]:
    """The accesses of one block, in the order of its program."""
    k_tiles = -(-(block.k1 - block.k0) // plan.tile.block[2])
    fetched: dict[OperandName, int] = {"a": 0, "b": 0}
    turns = [plan.program.prologue, *[plan.program.steady] * k_tiles]
    for step in (step for turn in turns for step in turn):
        if isinstance(step, LoadFragment):
            for operand in plan.shared_operands:
                yield fragment_sites(plan, operand, step.k, step.count)
        elif isinstance(step, CopyTile | LoadTile):
            yield fetch_sites(plan, problem, block, step, fetched[step.operand])
        elif isinstance(step, Advance):
            for name in step.operands:
                fetched[name] += 1
        elif isinstance(step, StoreTile):
            yield write_sites(plan, plan.in_shared(step.operand), slice(step.first, step.last))
    yield from epilogue_sites(plan, problem, block)


def fragment_sites(plan: Plan, operand: SharedOperand, k: int, count: int) -> Sites:
    """The shared loads of so many k of an operand, from k on: a thread's vectors. Loads that bring several k bring no
    others."""
    load, depth = operand.fragment.load, operand.fragment.depth
    itemsize, vectors = ITEMSIZE[operand.dtype], operand.fragment.vectors
    pieces = np.arange(k // depth * vectors, (k + count) // depth * vectors)
    offsets = access_offsets(load, load.bytes // itemsize, pieces)
    address = first_word(plan, operand) * BANK_BYTES + offsets * itemsize
    everyone = np.ones(address.shape, bool)
    if isinstance(operand.fragment, AtomFragment) and load.opcode != "ld.shared":
        # A lane points at a row of a matrix; those beyond the last matrix repeat them, and count for nothing.
        pointing = np.arange(address.shape[1]) % WARP < MATRIX_ROWS * operand.fragment.registers
        everyone &= pointing[None, :]
    return Sites(load.name, load.opcode, load.bytes, address, None, everyone, np.zeros_like(everyone))


def fetch_sites(plan: Plan, problem: Problem, block: WorkRange, step: CopyTile | LoadTile, tile: int) -> Sites:
    """One k-tile's way from global memory: cp.async, or loads into registers. Past the last tile nothing is fetched.

    The ragged tile is the first: its leading columns lie before k0.
    """
    operand = plan.a if step.operand == "a" else plan.b
    copy, block_k = operand.copy, plan.tile.block[2]
    k_tiles = -(-(block.k1 - block.k0) // block_k)
    first, extent, view = _operand_of(problem, block, operand)
    vector, pieces = copy.read_vector, slice(step.first, step.last)
    x, k = (each[pieces] for each in _reads(copy))
    threads = np.arange(copy.participants)
    x = first + copy.thread_x.at(threads)[None, :] + x[:, None]
    k = block.k1 + (tile - k_tiles) * block_k + copy.thread_k.at(threads)[None, :] + k[:, None]
    itemsize = ITEMSIZE[operand.dtype]
    source = view.address + (x * view.strides[0] + k * view.strides[1]) * itemsize
    reading = (x < (extent if tile < k_tiles else 0)) & (k >= block.k0)
    if not isinstance(operand, SharedOperand) or copy.atom.through_registers:
        return Sites(f"load_{operand.name}", "ld.global", vector * itemsize, None, source, reading, reading)
    # Copies that may lie before k0 are executed by all, to fill with zeros; others by those that read.
    active = np.ones(reading.shape, bool) if "k" in step.guards else reading
    return Sites(
        operand.copy.write.name,
        operand.copy.write.opcode,
        operand.copy.write.bytes,
        _shared_address(plan, operand, tile % plan.stages)[pieces],
        source,
        active,
        reading,
        bool(operand.shared.swizzle.bits),
    )


def write_sites(plan: Plan, operand: SharedOperand, pieces: slice = slice(None)) -> Sites:
    """One k-tile's way into shared memory, to stage 0, or some pieces of it: the stores, or cp.async without its
    source."""
    address = _shared_address(plan, operand, 0)[pieces]
    everyone = np.ones(address.shape, bool)
    write = operand.copy.write
    swizzled = bool(operand.shared.swizzle.bits)
    return Sites(write.name, write.opcode, write.bytes, address, None, everyone, np.zeros_like(everyone), swizzled)


def epilogue_sites(plan: Plan, problem: Problem, block: WorkRange) -> Iterator[Sites]:
    """What a thread stores, rows, then its runs of a row: the reads of C, where beta is not zero, the writes of D, and
    before them the tensors of the epilogue's steps, each as often as it is asked for."""
    vector, itemsize = plan.epilogue.vector, ITEMSIZE[plan.dtype]
    value_m, value_n = plan.tile.value_mode[0].offsets(), plan.epilogue.value_n.offsets()
    threads_m, threads_n = plan.threads.m.offsets(), plan.epilogue.thread_n.offsets()
    runs = value_n[::vector]
    m = block.m + np.repeat(value_m, runs.size)[:, None] + threads_m[None, :]
    n = block.n + np.tile(runs, value_m.size)[:, None] + threads_n[None, :]
    inside = (m < problem.m) & (n < problem.n)
    yield from _chain_sites(plan, problem, (m, n), inside)
    for name, view in (("read_c", problem.c), ("write_d", problem.d)):
        if name == "write_d" or problem.beta != 0.0:
            source = view.address + (m * view.strides[0] + n * view.strides[1]) * itemsize
            opcode: Opcode = "ld.global" if name == "read_c" else "st.global"
            yield Sites(name, opcode, vector * itemsize, None, source, inside, inside)


def _chain_sites(plan: Plan, problem: Problem, at: tuple[Offsets, Offsets], inside: Lanes) -> Iterator[Sites]:
    """The accesses to the tensors of the epilogue's steps, where a thread has runs of D `at` (m, n), rows outermost."""
    m, n = at
    runs = m.shape[0] // plan.tile.value_mode[0].size
    for link, view in zip(plan.epilogue.linked, problem.epilogue, strict=True):
        assert link.tensor is not None
        modes, itemsize = link.tensor.modes, ITEMSIZE[link.tensor.dtype]
        some = {"": slice(1), "m": slice(None, None, runs), "n": slice(runs), "mn": slice(None)}[modes]
        rows, columns = m[some], n[some]
        active = inside[some]
        if "n" not in modes:
            active = rows < (problem.m if modes else np.inf)
        elif modes == "n":
            active = columns < problem.n
        if link.tensor.written:
            active &= (np.arange(m.shape[1]) & sum(plan.epilogue.row_lanes) == 0)[None, :]
        pieces = plan.epilogue.vector * itemsize // link.bytes if "n" in modes else 1
        source = view.address + (rows * view.strides[0] + columns * view.strides[1]) * itemsize
        source = (source[:, None] + (np.arange(pieces) * link.bytes)[None, :, None]).reshape(-1, m.shape[1])
        active = np.repeat(active, pieces, axis=0)
        opcode: Opcode = "atom.global" if link.tensor.written else "ld.global"
        name = f"{'write' if link.tensor.written else 'read'}_{link.tensor.name}"
        yield Sites(name, opcode, link.bytes, None, source, active, active)


def together(every: Sequence[Sites]) -> Sites:
    """The sites of one access, at least one, as if they were one step's."""

    def joined(arrays: Sequence[NDArray[Any] | None]) -> Any:
        return None if arrays[0] is None else np.concatenate([array for array in arrays if array is not None])

    shared, source, active, reading = map(
        joined, zip(*((each.shared, each.source, each.active, each.reading) for each in every), strict=True)
    )
    return every[0]._replace(shared=shared, source=source, active=active, reading=reading)


def _operand_of(problem: Problem, block: WorkRange, operand: Operand) -> tuple[int, int, View]:
    """An operand's first coordinate in a block, its extent and its view."""
    return (block.m, problem.m, problem.a) if operand.name == "a" else (block.n, problem.n, problem.b)


def _reads(copy: Fetch) -> tuple[Offsets, Offsets]:
    """(x, k) of a thread's global accesses, relative to its first element; x runs fastest."""
    x, k = copy.element_x.offsets(), copy.element_k.offsets()
    if copy.read_mode == "x":
        x = x[:: copy.read_vector]
    else:
        k = k[:: copy.read_vector]
    return np.tile(x, k.size), np.repeat(k, x.size)


def _shared_address(plan: Plan, operand: SharedOperand, stage: int) -> Offsets:
    """Byte address of each piece of a copy to a stage, shape (pieces, participants), in the block's memory."""
    write, pieces = operand.copy.write, operand.copy.writes
    offsets = access_offsets(write, operand.copy.write_vector, np.arange(stage * pieces, (stage + 1) * pieces))
    return first_word(plan, operand) * BANK_BYTES + offsets * ITEMSIZE[operand.dtype]


def count(sites: Sites) -> Traffic:
    """The traffic of one execution of each of some instructions by all warps."""
    active, reading = by_warp(sites.active, False), by_warp(sites.reading, False)
    return Traffic(
        requests=int(active.any(1).sum()),
        wavefronts=_wavefronts(sites, active),
        sectors=_sectors(sites, reading),
        bytes=int(active.sum()) * sites.bytes,
    )


def _sectors(sites: Sites, reading: Lanes) -> int:
    """The sectors of global memory that warps move.

    A cp.async of 16 bytes bypasses L1, and as an H200 counts it (benchmarks/counters.py) fetches a sector once for each
    32-byte piece of shared memory that it goes to: twice, if the two halves of a sector land in two of those.
    """
    if sites.source is None:
        return 0
    sector = by_warp(sites.source, 0) // SECTOR_BYTES
    if sites.opcode == "cp.async" and sites.bytes == HALF_SECTOR:
        assert sites.shared is not None
        sector = sector * SHARED_PIECES + by_warp(sites.shared, 0) // SECTOR_BYTES
    return int(distinct(sector, reading).sum())


def by_warp(values: NDArray[Any], fill: int) -> NDArray[Any]:
    """(instructions, threads) -> (instructions x warps, 32), lanes that a block's last warp lacks filled."""
    lacking = -values.shape[1] % WARP
    if not lacking:
        return values.reshape(-1, WARP)
    return np.pad(values, ((0, 0), (0, lacking)), constant_values=fill).reshape(-1, WARP)


def distinct(values: Offsets, counted: Lanes) -> Offsets:
    """Different values among the counted lanes of each warp."""
    ordered = np.sort(np.where(counted, values, np.int64(-1)), axis=1)
    new = np.ones(ordered.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    found: Offsets = (new & (ordered >= 0)).sum(1)
    return found


def patterns(sites: Sites, active: Lanes) -> Iterator[tuple[list[int], int]]:
    """(the addresses of a warp's active lanes, how many executions have them), up to a whole number of rows of banks.

    What an access costs depends on its lanes' distances alone, and most instructions share them.
    """
    assert sites.shared is not None
    address = by_warp(sites.shared, 0)
    rows = np.where(active, address, FAR).min(1) // ROW_BYTES * ROW_BYTES
    distance = np.where(active, address - rows[:, None], np.int64(-1))
    warps = np.ascontiguousarray(distance[active.any(1)])
    # As bytes: np.unique's axis=0 makes each lane a field, which is slow.
    rows_as_bytes = warps.view(np.dtype((np.void, warps.itemsize * WARP))).reshape(-1)
    _, first, times = np.unique(rows_as_bytes, return_index=True, return_counts=True)
    yield from zip(warps[first].tolist(), times.tolist(), strict=True)


def _wavefronts(sites: Sites, active: Lanes) -> int:
    """Of cp.async an estimate. Into swizzled memory, where an H200 counts 3 to 40 for 32 lanes, in one kernel or
    another of the same speed (benchmarks/results/counters-mma-h200.json), the fewest that it can take."""
    if sites.shared is None:
        return 0
    if sites.opcode == "cp.async" and not sites.swizzled:
        return sum(times * copy_wavefronts(*pattern, sites.bytes) for pattern, times in _copies(sites))
    return sum(times * _of_pattern(wavefronts, pattern, sites) for pattern, times in patterns(sites, active))


def _copies(sites: Sites) -> Iterator[tuple[tuple[list[int], list[int]], int]]:
    """((bytes in global, bytes in shared memory) of the lanes of a warp that read, how many executions have them)."""
    assert sites.shared is not None and sites.source is not None
    reading = by_warp(sites.reading, False)
    busy = reading.any(1)
    ends = [
        np.where(reading, each - np.where(reading, each, FAR).min(1, keepdims=True) // ROW_BYTES * ROW_BYTES, -1)[busy]
        for each in (by_warp(sites.source, 0), by_warp(sites.shared, 0))
    ]
    found, times = np.unique(np.concatenate(ends, axis=1), axis=0, return_counts=True)
    for pattern, count in zip(found.tolist(), times.tolist(), strict=True):
        source, shared = ([each for each in end if each >= 0] for end in (pattern[:WARP], pattern[WARP:]))
        yield (source, shared), count


def _of_pattern(model: Callable[[list[int | None], int, AccessKind], int], pattern: list[int], sites: Sites) -> int:
    """A model of a warp's access, whose idle lanes a pattern marks by -1."""
    lanes = [None if address < 0 else address for address in pattern]
    return model(lanes, sites.bytes, sites.kind)


def conflict_free_wavefronts(sites: Sites, taken: int) -> int:
    """The wavefronts of the same accesses if no two words that one asks for shared a bank of shared memory.

    taken: what they take as they are, by `count`.
    """
    if sites.shared is None:
        return 0
    every = list(patterns(sites, by_warp(sites.active, False)))
    free = sum(times * _of_pattern(conflict_free, pattern, sites) for pattern, times in every)
    if sites.opcode != "cp.async" or sites.swizzled:
        return free
    # What its source costs stays; what its destination adds to its phases goes.
    served = sum(times * _of_pattern(wavefronts, pattern, sites) for pattern, times in every)
    return max(free, taken - (served - free))


def global_lines(sites: Sites) -> int:
    """The 128-byte lines of global memory that requests touch, each for itself: what L1 looks up."""
    if sites.source is None:
        return 0
    return int(distinct(by_warp(sites.source, 0) // ROW_BYTES, by_warp(sites.reading, False)).sum())


def ideal_sectors(sites: Sites) -> int:
    """The sectors that would hold what each request asks for, if it lay together."""
    if sites.source is None:
        return 0
    asked = distinct(by_warp(sites.source, 0), by_warp(sites.reading, False))
    return int((-(-asked * sites.bytes // SECTOR_BYTES)).sum())
