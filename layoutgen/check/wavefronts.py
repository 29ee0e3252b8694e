"""Rules on what a plan of an AMD architecture asks of a compute unit's SIMDs."""

from __future__ import annotations

from collections.abc import Iterator

from layoutgen.check.findings import Finding, error
from layoutgen.facts import Registers, occupancy
from layoutgen.hw.devices import Device
from layoutgen.plan import Plan
from layoutgen.spec import Spec


def waves(spec: Spec, primary: Plan, bounds: Registers, device: Device) -> Iterator[Finding]:
    """As many wavefronts as the spec asks for are resident on each SIMD, as registers, LDS and threads allow."""
    schedule = spec.schedule
    if schedule.min_blocks > 1:
        yield error(
            spec, "min-blocks", "schedule.min_blocks", "min_blocks is an argument of CUDA's __launch_bounds__",
            f"min_blocks: {schedule.min_blocks} with arch: {spec.arch}", "waves_per_eu, for a SIMD",
            "leave schedule.min_blocks out, or write schedule.waves_per_eu",
        )  # fmt: skip
    resident = occupancy(primary, bounds.minimum, device)
    fit = resident.blocks * resident.warps // device.partitions
    if schedule.waves_per_eu is not None and schedule.waves_per_eu > fit:
        yield error(
            spec, "waves-per-eu", "schedule.waves_per_eu", "waves_per_eu wavefronts fit on each SIMD",
            f"{schedule.waves_per_eu}, of blocks of {resident.warps} wavefronts with {bounds.minimum} registers a "
            f"thread and {primary.shared_bytes} bytes of LDS",
            f"{fit} on {device.name}, limited by {' and '.join(resident.limited_by)}",
            f"write schedule.waves_per_eu: {fit}" if fit else "leave schedule.waves_per_eu out, or use more warps",
        )  # fmt: skip
