"""What stands beside the page's map of C: budgets as bars and a roofline. The page shows what it is given."""

from __future__ import annotations

from dataclasses import dataclass

from layoutgen.facts import registers
from layoutgen.hw.devices import Device
from layoutgen.plan import Plan
from layoutgen.plan.storage import ITEMSIZE


@dataclass(frozen=True, slots=True)
class Budget:
    """used of limit, in unit; note: what the figure is."""

    name: str
    used: int
    limit: int
    unit: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the roofline: FLOP per byte of global memory, and GFLOP/s where known, else the roof there."""

    name: str
    intensity: float
    gflops: float | None = None


@dataclass(frozen=True, slots=True)
class Roofline:
    """peak_gflops: of the arithmetic; bandwidth_gbs: of global memory, 10^9 bytes a second."""

    peak_gflops: float
    bandwidth_gbs: float
    points: tuple[Point, ...] = ()

    @property
    def ridge(self) -> float:
        """The intensity from which arithmetic is the limit, in FLOP per byte."""
        return self.peak_gflops / self.bandwidth_gbs

    def roof(self, intensity: float) -> float:
        """The most GFLOP/s at an intensity."""
        return min(self.peak_gflops, intensity * self.bandwidth_gbs)


@dataclass(frozen=True, slots=True)
class Aside:
    """All that the page says about a device."""

    device: str
    budgets: tuple[Budget, ...]
    roofline: Roofline | None = None


def aside(plan: Plan, device: Device) -> Aside:
    """A plan on a device: one block's budgets, and where its tile stands under the roofline without any reuse in L2."""
    each = registers(plan, device)
    block_m, block_n, _ = plan.tile.block
    bytes_per_k = ITEMSIZE[plan.dtype] * (block_m + block_n)
    return Aside(
        device.name,
        (
            Budget(
                "registers",
                each.minimum,
                each.cap,
                "a thread",
                f"at least: {each.accumulators} accumulators, {each.fragments} in fragments, {each.staging} staged; "
                f"at most {each.cap}",
            ),
            Budget(
                "shared memory",
                plan.shared_bytes,
                device.shared_per_block,
                "bytes a block",
                f"{plan.stages} stages of A and B, padding included",
            ),
            Budget("threads", plan.threads.threads, device.max_threads_per_block, "a block"),
        ),
        Roofline(
            device.fp32_tflops * 1000,
            device.memory_gbs,
            (Point(f"{block_m} × {block_n} tile", 2 * block_m * block_n / bytes_per_k),),
        ),
    )
