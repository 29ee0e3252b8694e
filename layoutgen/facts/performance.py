"""What a plan can reach on a device: residency, waves, bytes, and the roof over it.

Roofline: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009. All here
is an upper bound that follows from counts; what keeps a kernel below it shows only when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from layoutgen.facts.accesses import AccessFacts, are_known
from layoutgen.hw.devices import Device
from layoutgen.plan.model import Plan
from layoutgen.plan.schedule import WHOLE, Streams, streams, tiles, work
from layoutgen.plan.storage import ITEMSIZE, SECTOR_BYTES

MOST_WALKED = 1 << 15  # tiles of a grid


def tile_intensity(block_m: int, block_n: int, itemsize: int = 4) -> float:
    """FLOP per byte that a block tile of C takes from the memory behind it, per k: 2 m n over (m + n) elements.

    >>> tile_intensity(1, 1), tile_intensity(128, 128)
    (0.25, 32.0)
    """
    return 2 * block_m * block_n / ((block_m + block_n) * itemsize)


def peak(plan: Plan, device: Device) -> float | None:
    """TFLOP/s at which the device multiplies as the plan does: FP32's, or its atoms'; None where that isn't known."""
    if not plan.uses_atoms:
        return device.fp32_tflops
    rate = device.mma_rate(plan.multiplied)
    return None if rate is None else rate / plan.products * device.boost_mhz * device.sms / 1e6


def roof(intensity: float, device: Device, plan: Plan | None = None) -> float:
    """TFLOP/s: the lower of what memory feeds at so many FLOP per byte and the device's peak, as far as it is known: of
    FP32, or of what the plan multiplies by."""
    most = device.fp32_tflops if plan is None else peak(plan, device)
    feeds = intensity * device.memory_gbs / 1e3
    return feeds if most is None else min(most, feeds)


@dataclass(frozen=True, slots=True)
class Work:
    """What a problem asks of any kernel. flop: 2 m n k. bytes: A, B and D once, and C where it is read."""

    flop: int
    bytes: int

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flop / self.bytes


def problem_work(m: int, n: int, k: int, *, reads_c: bool, itemsize: int = 4, c_itemsize: int | None = None) -> Work:
    """Extents -> the least that has to be done and moved. c_itemsize: of C and D, if not as A's and B's."""
    of_c = m * n * (2 if reads_c else 1) * (itemsize if c_itemsize is None else c_itemsize)
    return Work(2 * m * n * k, (m * k + n * k) * itemsize + of_c)


@dataclass(frozen=True, slots=True)
class Waves:
    """How a launch fills the device.

    Attributes:
        tiles: block tiles of C. slots: blocks that the device holds at once. waves: tiles / slots.
        time: of the slot that has most to do, in tiles over all of k. shared: the tiles that blocks share.
        efficiency: the part of the slots' time that has a tile, if all tiles take equally long.
        useful: the part of the computed positions of C, and of k, that the problem has.
    """

    tiles: int
    slots: int
    useful: float
    time: float
    shared: Streams = WHOLE

    @property
    def waves(self) -> float:
        return self.tiles / self.slots

    @property
    def rounds(self) -> int:
        return -(-self.tiles // self.slots)

    @property
    def last(self) -> float:
        """The part of the slots that have a tile in the last round."""
        return self.waves - (self.rounds - 1)

    @property
    def efficiency(self) -> float:
        return self.tiles / (self.time * self.slots)


def launch_waves(plan: Plan, m: int, n: int, k: int, slots: int) -> Waves:
    """Plan, problem extents and resident blocks of the whole device -> Waves."""
    block_m, block_n, block_k = plan.tile.block
    tiles_m, tiles_n = tiles(plan.tile, m, n)
    k_tiles = -(-k // block_k)
    useful = (
        m * n * k / (tiles_m * block_m * tiles_n * block_n * k_tiles * block_k)
        if k_tiles
        else m * n / (tiles_m * block_m * tiles_n * block_n)
    )
    count, shared = tiles_m * tiles_n, streams(plan.schedule, plan.tile, m, n, k, slots)
    time = float(-(-(count - shared.tiles) // slots))
    if shared.blocks:
        time += -(-shared.tiles * k_tiles // shared.blocks) / k_tiles
    return Waves(count, slots, useful, time, shared)


@dataclass(frozen=True, slots=True)
class RasterTraffic:
    """Bytes of A and B on their way up. from_l2: what blocks read. from_memory: what L2 reads, if it keeps what the
    blocks of one wave share, and nothing from one wave to the next."""

    from_l2: int
    from_memory: int

    @property
    def l2_hits(self) -> float:
        """The part of the blocks' reads that L2 answers."""
        return 1 - self.from_memory / self.from_l2 if self.from_l2 else 0.0


def raster_traffic(plan: Plan, m: int, n: int, k: int, slots: int) -> RasterTraffic:
    """What the raster order leaves to be read from L2 and from memory.

    A grid of very many tiles is not walked to its end: its waves are taken to be like the first ones, on average.
    """
    block_m, block_n, _ = plan.tile.block
    itemsize = ITEMSIZE[plan.a.dtype]
    blocks = work(plan.schedule, plan.tile, m, n, k)
    from_l2 = from_memory = 0
    tiles_m, tiles_n = tiles(plan.tile, m, n)
    waves = max(1, MOST_WALKED // slots)
    walked = min(waves * slots, tiles_m * tiles_n)
    for wave in islice(iter(lambda: list(islice(blocks, slots)), []), waves):
        rows, columns = {each.m for each in wave}, {each.n for each in wave}
        from_l2 += sum(_clipped((each.m,), block_m, m) + _clipped((each.n,), block_n, n) for each in wave)
        from_memory += _clipped(rows, block_m, m) + _clipped(columns, block_n, n)
    part = tiles_m * tiles_n / max(1, walked)
    return RasterTraffic(round(from_l2 * part) * k * itemsize, round(from_memory * part) * k * itemsize)


def _clipped(starts: Iterable[int], block: int, extent: int) -> int:
    return sum(min(block, extent - start) for start in starts)


@dataclass(frozen=True, slots=True)
class Loop:
    """What a warp executes for each k-tile, as compiled: FFMAs or what multiplies on tensor cores, memory instructions,
    and all that goes with them."""

    ffma: int
    memory: int
    other: int

    @property
    def instructions(self) -> int:
        return self.ffma + self.memory + self.other

    @staticmethod
    def of(counts: Mapping[tuple[str, int], int]) -> Loop:
        """The main loop's instructions as `layoutgen.build.loop_counts` names them."""
        ffma = sum(n for (opcode, _), n in counts.items() if opcode in ("ffma", *_TENSOR))
        memory = sum(n for (opcode, size), n in counts.items() if size and opcode not in _CONSTANTS)
        return Loop(ffma, memory, sum(counts.values()) - ffma - memory)


_TENSOR = ("hmma", "imma", "dmma", "qmma")
_CONSTANTS = ("ldc", "ldcu", "uldc")  # kernel parameters


@dataclass(frozen=True, slots=True)
class Bound:
    """One k-tile of one block, in clocks of the part of a multiprocessor that each resource is; the slowest decides.

    Attributes:
        fma: the FFMAs, at the device's FP32 peak, or the atoms at theirs; 0 where that isn't known.
        issue: issuing whatever the loop has, one instruction a clock and scheduler; before the kernel is built, its
            FFMAs or atoms and memory instructions alone. shared: wavefronts, one a clock. l1: the 128-byte lines that
            loads into registers ask L1 for, one a clock; the three are None where accesses aren't known.
        memory: its global bytes at the SM's share of the bandwidth, but for what L2 answers; None where no problem says
            how much that is.
        flop: of the k-tile.
    """

    fma: float
    issue: float | None
    shared: float | None
    l1: float | None
    memory: float | None
    flop: int

    @property
    def clocks(self) -> dict[str, float]:
        """Resource -> clocks, by their names in words; without those of which nothing is known."""
        every = {
            "compute": self.fma,
            "issue slots": self.issue,
            "shared memory": self.shared,
            "L1": self.l1,
            "global memory": self.memory,
        }
        return {name: clocks for name, clocks in every.items() if clocks is not None}

    @property
    def limiter(self) -> str:
        """The resource that takes longest; compute, where issuing takes no longer than the lanes do."""
        return max(self.clocks, key=lambda name: self.clocks[name])


def bound(
    plan: Plan,
    accesses: tuple[AccessFacts, ...],
    device: Device,
    l2_hits: float | None = None,
    loop: Loop | None = None,
) -> Bound:
    """Plan and its accesses on a device -> the clocks of a k-tile.

    Args:
        l2_hits: the part of the global reads that L2 answers (see raster_traffic), which don't count for memory; None
            where no problem says so: what L2 answers may be anything then, and memory sets no bound.
        loop: what was compiled, if it was.
    """
    block_m, block_n, block_k = plan.tile.block
    ffma = block_m * block_n * block_k / device.warp_size  # warp instructions
    rate = device.flop_per_clock
    if plan.uses_atoms:
        atom_m, atom_n, atom_k = plan.atom.layouts.shape_mnk
        ffma = plan.products * block_m * block_n * block_k / (atom_m * atom_n * atom_k)
        rate = (device.mma_rate(plan.multiplied) or float("inf")) / plan.products
    of_tile = [access for access in accesses if access.per == "k-tile"]
    other = sum(access.requests for access in of_tile)
    issued = ffma + other if loop is None else loop.instructions * plan.threads.threads / device.warp_size
    moved = sum(access.sectors for access in of_tile) * SECTOR_BYTES
    bytes_per_clock = device.memory_gbs * 1e3 / (device.boost_mhz * device.sms)
    flop, known = 2 * block_m * block_n * block_k, are_known(plan, device)
    return Bound(
        fma=flop / rate,
        issue=issued / device.partitions if known else None,
        shared=float(sum(access.wavefronts for access in of_tile)) if known else None,
        l1=float(sum(access.lines for access in of_tile if access.opcode == "ld.global")) if known else None,
        memory=moved * (1 - l2_hits) / bytes_per_clock if known and l2_hits is not None else None,
        flop=flop,
    )


def ceiling(found: Bound, device: Device) -> float | None:
    """TFLOP/s of the whole device if its slowest resource is always busy; None where others aren't known."""
    if found.issue is None:
        return None
    return found.flop / max(found.clocks.values()) * device.boost_mhz * device.sms / 1e6
