"""What is legal, but poor for the problem at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from layoutgen.check.findings import Finding, hint
from layoutgen.errors import counted
from layoutgen.facts import Facts, ProblemFacts, raster_traffic
from layoutgen.plan import Plan
from layoutgen.plan.storage import ITEMSIZE, VECTOR_BYTES
from layoutgen.spec import Spec

FEW_WAVES = 0.8  # of the slots' time must have a tile
MUCH_USE = 0.75  # of the computed positions must exist
GROUP = 8  # tiles
LEAST_SIDE = 16  # of a block tile that is worth proposing
MUCH_LESS = 0.9  # of what is read from memory without groups
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
            f"{counted(waves.tiles, 'tile')} of {block} for {counted(waves.slots, 'block')} at once, "
            f"{waves.waves:.2f} waves: a tile in {waves.efficiency:.0%} of the places", f"at least {FEW_WAVES:.0%}",
            _smaller(found, m, n) if waves.waves < 1
            else "use a block tile that gives just under a whole number of waves, or write schedule.kind: stream_k",
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
            f"rows of a multiple of {_run(plans[0])}, which variant {plans[0].variant} takes",
            f"pad the rows of {_aligned(plans[0])} to a multiple of {_run(plans[0])}",
        )  # fmt: skip
    yield from _raster(spec, found, found.problem)
    clocks, device = found.bound.clocks, found.device
    if found.bound.limiter == "global memory":
        what, peak = "atoms" if found.plan.uses_atoms else "FFMAs", found.peak or device.fp32_tflops
        of_itself = found.problem.roof < peak
        yield hint(
            spec, "memory-bound", "tiling.block", "reading a k-tile from memory takes no longer than multiplying it",
            f"{clocks['global memory']:.0f} clocks of reading for {clocks['compute']:.0f} of {what}",
            f"at most {max(clocks['compute'], clocks['issue slots']):.0f}",
            f"nothing here does: the problem's own {found.problem.work.intensity:.3g} FLOP a byte feed no more than "
            f"{found.problem.roof:.1f} of {peak:.1f} TFLOP/s"
            if of_itself
            else "use a larger block tile, or a larger schedule.group",
        )  # fmt: skip


def _run(plan: Plan) -> str:
    """What 16 bytes of a row hold."""
    count = VECTOR_BYTES // ITEMSIZE[plan.a.dtype]
    return f"{count} {'floats' if plan.a.dtype == 'f32' else 'elements'}"


def _smaller(found: Facts, m: int, n: int) -> str:
    """The largest block tile, by halves of the longer side, of which there are as many as places now."""
    assert found.problem is not None
    slots, (block_m, block_n, _) = found.problem.waves.slots, found.plan.tile.block
    while -(-m // block_m) * -(-n // block_n) < slots:
        if block_m >= block_n:
            block_m //= 2
        else:
            block_n //= 2
        if min(block_m, block_n) < LEAST_SIDE:
            return f"use a smaller block tile; even of {LEAST_SIDE} x {LEAST_SIDE}, C has too few to fill the device"
    tiles = -(-m // block_m) * -(-n // block_n)
    return f"use a smaller block tile, such as {block_m} x {block_n}, of which there are {tiles}"


def _aligned(primary: Plan) -> str:
    """The matrices whose rows a variant accesses by more than an element."""
    need = primary.requirements
    names = [
        name for name, each in (("A", need.a), ("B", need.b), ("D", need.c)) if each.align > ITEMSIZE[primary.a.dtype]
    ]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _raster(spec: Spec, found: Facts, about: ProblemFacts) -> Iterator[Finding]:
    """A grid walked without groups, where groups would read much less from memory."""
    if spec.schedule.group > 1 or about.waves.waves < LARGE_GRID:
        return
    grouped = replace(found.plan, schedule=replace(found.plan.schedule, group=GROUP))
    better = raster_traffic(grouped, *about.extents, about.waves.slots)
    if better.from_memory < MUCH_LESS * about.raster.from_memory:
        yield hint(
            spec, "raster", "schedule.group", "on a large grid, blocks that run together share rows and columns in L2",
            f"group 1: {about.raster.l2_hits:.0%} of the reads of A and B hit L2",
            f"{better.l2_hits:.0%}, in groups of {GROUP} tiles", f"write schedule.group: {GROUP}",
        )  # fmt: skip
