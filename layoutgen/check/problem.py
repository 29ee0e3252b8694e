"""What is legal, but poor for the problem at hand."""

from __future__ import annotations

from collections.abc import Iterator

from layoutgen.check.findings import Finding, hint
from layoutgen.facts import Facts
from layoutgen.plan import Plan
from layoutgen.spec import Spec

FEW_WAVES = 0.8  # of the slots' time must have a tile
MUCH_USE = 0.75  # of the computed positions must exist
LARGE_GRID = 2  # waves, from which on the raster's order decides what L2 holds


def for_problem(spec: Spec, plans: tuple[Plan, ...], found: Facts) -> Iterator[Finding]:
    """What is poor about a legal spec for the problem that the facts are about, if any."""
    if found.problem is None:
        return
    m, n, k = found.problem.extents
    block = "x".join(map(str, found.plan.tile.block))
    waves = found.problem.waves
    if waves.efficiency < FEW_WAVES:
        yield hint(
            spec, "waves", "tiling.block", "the last wave of blocks nearly fills the device",
            f"{waves.tiles} tiles of {block} for {waves.slots} blocks at once, {waves.waves:.2f} waves: a tile in "
            f"{waves.efficiency:.0%} of the places", f"at least {FEW_WAVES:.0%}",
            "use a smaller block tile" if waves.waves < 1 else "use one that gives just under a whole number of waves",
        )  # fmt: skip
    if waves.useful < MUCH_USE:
        yield hint(
            spec, "overhang", "tiling.block", "block tiles overhang little of the problem",
            f"{waves.useful:.0%} of what tiles of {block} compute for {m} x {n} x {k} exists",
            f"at least {MUCH_USE:.0%}", "use a smaller block tile, or one that divides the problem",
        )  # fmt: skip
    if found.plan.variant != plans[0].variant:
        yield hint(
            spec, "alignment", "operands", "rows of the problem start on the boundaries that the spec's copies need",
            f"{m} x {n} x {k}, dense, which variant {found.plan.variant} takes",
            f"rows of a multiple of 4 floats, which variant {plans[0].variant} takes",
            "pad the rows of A, B and D to a multiple of 4 floats",
        )  # fmt: skip
    if spec.schedule.group == 1 and waves.waves >= LARGE_GRID:
        yield hint(
            spec, "raster", "schedule.group", "on a large grid, blocks that run together share rows and columns in L2",
            f"group 1: {found.problem.raster.l2_hits:.0%} of the reads of A and B hit L2", "a group of about 8 tiles",
            "write schedule.group: 8",
        )  # fmt: skip
    if found.bound.limiter == "global memory":
        clocks = found.bound.clocks
        yield hint(
            spec, "memory-bound", "tiling.block", "reading a k-tile from memory takes no longer than multiplying it",
            f"{clocks['global memory']:.0f} clocks of reading for {clocks['compute']:.0f} of FFMAs",
            f"at most {clocks['issue slots']:.0f}", "use a larger block tile, or a larger schedule.group",
        )  # fmt: skip
