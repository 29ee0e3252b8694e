"""What stands beside the page's map of C: facts as bars, tables and a roofline, put in words but not computed."""

from __future__ import annotations

from dataclasses import dataclass

from layoutgen.errors import counted
from layoutgen.facts import AccessFacts, Facts, ProblemFacts


@dataclass(frozen=True, slots=True)
class Budget:
    """used of limit, in unit; note: what the figure is."""

    name: str
    used: int
    limit: int
    unit: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One access: how often warps execute it, and what that costs each time. poor: whether it could cost less.

    wavefronts and conflict_free, sectors and ideal: each time, or empty where it touches no such memory.
    """

    name: str
    instruction: str
    times: str
    wavefronts: str
    conflict_free: str
    sectors: str
    ideal: str
    poor_banks: bool
    poor_sectors: bool


@dataclass(frozen=True, slots=True)
class Clocks:
    """What one resource of a multiprocessor takes for a k-tile. limits: whether it takes longest."""

    name: str
    clocks: float
    limits: bool


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the roofline: FLOP per byte of global memory, and the roof's TFLOP/s there."""

    name: str
    intensity: float
    tflops: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """peak: TFLOP/s of the arithmetic; bandwidth: of global memory, 10^9 bytes a second.

    ceiling: TFLOP/s that the kernel can reach, whatever its intensity; limiter: what sets it.
    """

    peak: float
    bandwidth: float
    points: tuple[Point, ...] = ()
    ceiling: float | None = None
    limiter: str = ""

    @property
    def ridge(self) -> float:
        """The intensity from which arithmetic is the limit, in FLOP per byte."""
        return 1e3 * self.peak / self.bandwidth

    def roof(self, intensity: float) -> float:
        """The most TFLOP/s at an intensity."""
        return min(self.peak, intensity * self.bandwidth / 1e3)


@dataclass(frozen=True, slots=True)
class Launch:
    """A problem on the device. last: the part of the last wave's places that have a tile; the others parts of 1 too.

    words: what else there is to say, line by line: name and figure.
    """

    extents: tuple[int, int, int]
    rounds: int
    last: float
    waves: str
    words: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Aside:
    """All that the page says about a device."""

    device: str
    budgets: tuple[Budget, ...]
    accesses: tuple[Row, ...] = ()
    clocks: tuple[Clocks, ...] = ()
    roofline: Roofline | None = None
    launch: Launch | None = None


def aside(found: Facts) -> Aside:
    """Facts -> what the page says of them."""
    device, bound, block = found.device, found.bound, found.plan.tile.block
    points = [Point(f"{block[0]} × {block[1]} tile, no L2 hits", found.intensity.block, found.roof)]
    if found.problem is not None:
        points.append(Point("whole problem", found.problem.work.intensity, found.problem.roof))
    return Aside(
        device.name,
        _budgets(found),
        tuple(map(_row, found.accesses)),
        ()
        if found.ceiling is None
        else tuple(Clocks(name, clocks, name == bound.limiter) for name, clocks in bound.clocks.items()),
        None
        if found.peak is None
        else Roofline(found.peak, device.memory_gbs, tuple(points), found.ceiling, bound.limiter),
        None if found.problem is None else _launch(found.problem),
    )


def _budgets(found: Facts) -> tuple[Budget, ...]:
    device, each, resident = found.device, found.registers, found.occupancy
    return (
        Budget(
            "registers",
            each.minimum if found.built is None else found.built,
            each.cap,
            "a thread",
            f"at least: {counted(each.accumulators, 'accumulator')}, {each.fragments} in fragments, "
            f"{each.staging} staged; at most {each.cap}"
            if found.built is None
            else "as built",
        ),
        Budget(
            "shared memory",
            found.shared.bytes,
            device.shared_per_block,
            "bytes a block",
            f"{counted(found.shared.stages, 'stage')} of A and B, {found.shared.padding:,} bytes of padding"
            if found.shared.stages
            else "none: threads load what they multiply from global memory",
        ),
        Budget("threads", found.threads, device.max_threads_per_block, "a block"),
        Budget(
            "resident warps",
            resident.blocks * resident.warps,
            resident.max_warps,
            "on an SM",
            f"{'at most ' if found.built is None else ''}{counted(resident.blocks, 'block')} of "
            f"{counted(resident.warps, 'warp')}, limited by {' and '.join(resident.limited_by)}",
        ),
    )


def _row(each: AccessFacts) -> Row:
    def average(total: int, shown: int) -> str:
        return f"{total / each.requests:.3g}" if shown and each.requests else ""

    least = "≥ " if each.opcode == "cp.async" else ""
    return Row(
        each.name,
        f"{each.opcode} {each.bytes} B",
        f"{each.requests} a {each.per}",
        least + average(each.wavefronts, each.wavefronts) if each.wavefronts else "",
        average(each.conflict_free, each.wavefronts),
        average(each.sectors, each.sectors),
        average(each.ideal_sectors, each.sectors),
        each.wavefronts > each.conflict_free,
        each.sectors > each.ideal_sectors,
    )


def _launch(found: ProblemFacts) -> Launch:
    waves = found.waves
    return Launch(
        found.extents,
        waves.rounds,
        waves.last,
        f"{waves.tiles:,} tiles in {waves.waves:.2f} waves of {waves.slots}",
        (
            ("tiles that blocks share", f"{waves.shared.tiles} of {waves.tiles:,}")
            if waves.shared.blocks
            else ("the last wave's places with a tile", f"{waves.last:.0%}"),
            ("all waves' places with a tile", f"{waves.efficiency:.0%}"),
            ("of what the tiles compute, is part of the problem", f"{waves.useful:.1%}"),
            ("reads of A and B that hit L2, by the raster", f"{found.raster.l2_hits:.0%}"),
        ),
    )
