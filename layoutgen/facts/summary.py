"""All facts of a plan on a device, and of a problem if one is given, gathered once for whoever shows or judges them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from layoutgen.facts.accesses import AccessFacts, access_facts, are_known
from layoutgen.facts.performance import (
    Bound,
    Loop,
    RasterTraffic,
    Waves,
    Work,
    bound,
    ceiling,
    launch_waves,
    peak,
    problem_work,
    raster_traffic,
    roof,
    tile_intensity,
)
from layoutgen.facts.resources import Occupancy, Registers, occupancy, registers
from layoutgen.hw.devices import Device
from layoutgen.plan.model import Operand, Plan
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.problem import Problem


@dataclass(frozen=True, slots=True)
class SharedFacts:
    """Bytes of a block's shared memory: in all, and what of it is padding between and after the elements."""

    bytes: int
    padding: int
    stages: int


@dataclass(frozen=True, slots=True)
class Intensity:
    """FLOP per byte that each level takes from the one behind it, per k: a block from global memory, a warp and a
    thread from shared memory (lanes that read the same count once for the warp, each for the threads).
    """

    block: float
    warp: float
    thread: float


@dataclass(frozen=True, slots=True)
class ProblemFacts:
    """What a problem adds: work, waves, the raster's traffic, the roof over the bytes that must move."""

    extents: tuple[int, int, int]
    work: Work
    waves: Waves
    raster: RasterTraffic
    roof: float


@dataclass(frozen=True, slots=True)
class Facts:
    """A plan on a device.

    Attributes:
        registers: bounds before it is built; built: what ptxas uses. loop: the main loop's instructions, as compiled;
            both are None before.
        occupancy: with ptxas's registers, or before with the least that a thread can do with: then an upper bound.
        roof: TFLOP/s that memory feeds at the block tile's intensity, if L2 answered nothing. ceiling: TFLOP/s that
            the slowest resource allows within the multiprocessor, and with the raster's L2 hits if there is a problem:
            without one, memory sets none, as L2 may answer for it. None where accesses aren't known.
        accesses: none for AMD's devices and architectures (see `accesses.are_known`).
    """

    plan: Plan
    device: Device
    threads: int
    registers: Registers
    built: int | None
    loop: Loop | None
    shared: SharedFacts
    accesses: tuple[AccessFacts, ...]
    occupancy: Occupancy
    intensity: Intensity
    roof: float
    bound: Bound
    ceiling: float | None
    problem: ProblemFacts | None

    @property
    def peak(self) -> float | None:
        """TFLOP/s at which the device multiplies as the plan does; None where that isn't known."""
        return peak(self.plan, self.device)

    @property
    def conflicts(self) -> int | None:
        """Wavefronts of a k-tile that bank conflicts add; None where accesses aren't known."""
        if self.ceiling is None:
            return None
        return sum(each.wavefronts - each.conflict_free for each in self.accesses if each.per == "k-tile")

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the plan."""
        found = self.problem
        return {
            "device": self.device.name,
            "variant": self.plan.variant,
            "threads": self.threads,
            "registers": {**asdict(self.registers), "minimum": self.registers.minimum, "built": self.built},
            "loop": asdict(self.loop) if self.loop else None,
            "shared": asdict(self.shared),
            "accesses": {each.name: asdict(each) for each in self.accesses},
            "bank_conflicts": self.conflicts,
            "occupancy": {
                **asdict(self.occupancy),
                "blocks": self.occupancy.blocks,
                "fraction": self.occupancy.fraction,
                "limited_by": list(self.occupancy.limited_by),
            },
            "intensity": asdict(self.intensity),
            "roof_tflops": self.roof,
            "clocks_per_k_tile": self.bound.clocks,
            "limiter": None if self.ceiling is None else self.bound.limiter,
            "ceiling_tflops": self.ceiling,
            "problem": None
            if found is None
            else {
                "extents": list(found.extents),
                "flop": found.work.flop,
                "bytes": found.work.bytes,
                "intensity": found.work.intensity,
                "roof_tflops": found.roof,
                "tiles": found.waves.tiles,
                "waves": found.waves.waves,
                "efficiency": found.waves.efficiency,
                "shared_tiles": found.waves.shared.tiles,
                "useful": found.waves.useful,
                "bytes_from_l2": found.raster.from_l2,
                "bytes_from_memory": found.raster.from_memory,
            },
        }


def facts(
    plan: Plan,
    device: Device,
    problem: Problem | None = None,
    *,
    built: int | None = None,
    loop: Loop | None = None,
) -> Facts:
    """Plan and device -> Facts.

    Args:
        problem: for waves and traffic, and so that global accesses are counted for its strides.
        built: registers of a thread, as ptxas reports them. loop: the main loop, as it was compiled.
    """
    bounds = registers(plan, device)
    resident = occupancy(plan, bounds.minimum if built is None else built, device)
    accesses = access_facts(plan, problem) if are_known(plan, device) else ()
    itemsize = ITEMSIZE[plan.a.dtype]
    block = tile_intensity(*plan.tile.block[:2], itemsize)
    about = None if problem is None else _about(plan, device, problem, max(1, resident.blocks) * device.sms)
    slowest = bound(plan, accesses, device, about.raster.l2_hits if about else None, loop)
    return Facts(
        plan=plan,
        device=device,
        threads=plan.threads.threads,
        registers=bounds,
        built=built,
        loop=loop,
        shared=SharedFacts(
            plan.shared_bytes, plan.shared_bytes - sum(map(_dense, plan.shared_operands)) * plan.stages, plan.stages
        ),
        accesses=accesses,
        occupancy=resident,
        intensity=Intensity(
            block, tile_intensity(*_warp_tile(plan), itemsize), tile_intensity(*_values(plan), itemsize)
        ),
        roof=roof(block, device, plan),
        bound=slowest,
        ceiling=ceiling(slowest, device),
        problem=about,
    )


def _about(plan: Plan, device: Device, problem: Problem, slots: int) -> ProblemFacts:
    m, n, k = problem.m, problem.n, problem.depth
    todo = problem_work(
        m, n, k, reads_c=problem.beta != 0.0, itemsize=ITEMSIZE[plan.a.dtype], c_itemsize=ITEMSIZE[plan.dtype]
    )
    return ProblemFacts(
        (m, n, k),
        todo,
        launch_waves(plan, m, n, k, slots),
        raster_traffic(plan, m, n, k, slots),
        roof(todo.intensity, device, plan),
    )


def _dense(operand: Operand) -> int:
    """Bytes of one k-tile's elements."""
    return operand.tile[0] * operand.tile[1] * ITEMSIZE[operand.dtype]


def _values(plan: Plan) -> tuple[int, int]:
    m, n = plan.tile.value_mode
    return m.size, n.size


def _warp_tile(plan: Plan) -> tuple[int, int]:
    m, n = (lane.size * value for lane, value in zip(plan.tile.lane_mode, _values(plan), strict=True))
    return m, n
