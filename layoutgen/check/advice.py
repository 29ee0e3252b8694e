"""What is legal, but poor, whatever the problem."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from layoutgen.algebra import max_vector
from layoutgen.check.findings import Finding, warning
from layoutgen.check.plans import write_default_of
from layoutgen.errors import PlanError
from layoutgen.facts import AccessFacts, Facts, access_facts
from layoutgen.plan import Plan, plan
from layoutgen.plan.model import Operand
from layoutgen.plan.storage import ITEMSIZE, VECTOR_BYTES, contiguous_mode, default_shared, vector_width
from layoutgen.spec import Spec


def advice(spec: Spec, primary: Plan, found: Facts) -> Iterator[Finding]:
    """What is poor about a legal spec, whatever the problem; found: the primary plan's facts."""
    if primary.tile.block[2] % 2:
        yield warning(
            spec, "odd-k", "tiling.block", "fragments are double-buffered only for an even number of k",
            f"BLK_K = {primary.tile.block[2]}, so each load is waited for", "an even BLK_K",
            f"write tiling.block: {[*primary.tile.block[:2], primary.tile.block[2] + 1]}",
        )  # fmt: skip
    for index, operand in enumerate(primary.operands):
        yield from _narrow(spec, primary, index, operand)
    for access in found.accesses:
        yield from _conflicts(spec, primary, access)
        yield from _scattered(spec, access)
    yield from _idle(spec, found)


def _operand_of(primary: Plan, access: AccessFacts) -> Operand | None:
    """A or B, which the access's name ends in; None for C and D."""
    return {"a": primary.a, "b": primary.b}.get(access.name.rpartition("_")[2])


def _conflicts(spec: Spec, primary: Plan, access: AccessFacts) -> Iterator[Finding]:
    """Accesses to shared memory whose lanes meet in a bank."""
    operand = _operand_of(primary, access)
    if operand is None or access.wavefronts <= access.conflict_free:
        return
    verb = "read" if access.opcode == "ld.shared" else "write"
    yield warning(
        spec, "bank-conflicts", f"shared.{operand.name}",
        f"the lanes of a warp {verb} {operand.name.upper()}'s shared memory in different banks",
        f"{access.wavefronts / access.requests:.3g} wavefronts for each {access.bytes}-byte access of {access.name}",
        f"{access.conflict_free / access.requests:.3g}, without conflicts", _spread(spec, operand, access),
    )  # fmt: skip


def _spread(spec: Spec, operand: Operand, access: AccessFacts) -> str:
    """The edit that takes conflicts away: the planner's own layout, if that has fewer of them."""
    x, k, _ = operand.shared.layout
    if default_shared(x.size, k.size) != operand.shared.layout[:2]:
        without = spec.shared.model_copy(update={operand.name: None})
        try:
            other = plan(spec.model_copy(update={"shared": without}))[0]
        except PlanError:  # other stages of a plan that this layout happens to suit
            return write_default_of(operand)
        own = next(each for each in access_facts(other) if each.name == access.name)
        if own.wavefronts / own.requests < access.wavefronts / access.requests:
            return write_default_of(operand)
    if access.opcode == "ld.shared":
        run = VECTOR_BYTES // ITEMSIZE[operand.dtype]
        return f"cut tiling.values in {operand.x} to runs of {run} that lie apart, as (4,2):(1,32)"
    return (
        f"let a warp's threads in copies.{operand.name} walk {operand.x}, or pad shared.{operand.name} by 4 words more"
    )


def _scattered(spec: Spec, access: AccessFacts) -> Iterator[Finding]:
    """Accesses to global memory that move more than they use."""
    if access.sectors <= access.ideal_sectors or access.name == "read_c":
        return
    operand = access.name.rpartition("_")[2]
    copied = access.name != "write_d"
    yield warning(
        spec, "uncoalesced", f"copies.{operand}" if copied else "tiling.lanes",
        f"a warp's access to {operand.upper()} in global memory uses all of the 32-byte sectors that it moves",
        f"{access.sectors / access.requests:.3g} sectors for each {access.bytes}-byte access of {access.name}",
        f"{access.ideal_sectors / access.requests:.3g}, without a gap",
        f"leave copies.{operand}.threads out: the planner lets neighbouring threads copy neighbouring elements"
        if copied
        else "let neighbouring lanes own neighbouring columns of n: give n the strides of 1 in tiling.lanes",
    )  # fmt: skip


def _idle(spec: Spec, found: Facts) -> Iterator[Finding]:
    """Multiprocessors that are held back by something other than multiplying."""
    resident, device = found.occupancy, found.device
    warps = resident.blocks * resident.warps
    if 0 < warps < device.schedulers_per_sm:
        yield warning(
            spec, "idle-schedulers", "tiling.warps", "every warp scheduler of a multiprocessor has a warp",
            f"{warps} resident warps, limited by {' and '.join(resident.limited_by)}",
            f"{device.schedulers_per_sm} on {device.name}", "use more warps, or smaller blocks of which more fit",
        )  # fmt: skip
    clocks = found.bound.clocks
    if found.bound.limiter == "shared memory":
        yield warning(
            spec, "shared-bound", "tiling.values", "reading a k-tile's fragments takes no longer than multiplying them",
            f"{clocks['shared memory']:.0f} clocks of wavefronts for {clocks['compute']:.0f} of FFMAs",
            f"at most {clocks['issue slots']:.0f}",
            "give a thread more values in both modes, for a load to feed more FFMAs",
        )  # fmt: skip


def _narrow(spec: Spec, primary: Plan, index: int, operand: Operand) -> Iterator[Finding]:
    """Accesses that are narrower than what the spec's values ask for."""
    name, upper = operand.name, operand.name.upper()
    itemsize = ITEMSIZE[operand.dtype]
    widest = VECTOR_BYTES // itemsize
    thread = (primary.threads.m, primary.threads.n)[index]
    run = vector_width(primary.tile.value_mode[index], (thread,), widest)
    loaded = operand.fragment.vector
    if loaded < run:
        yield warning(
            spec, "narrow-loads", f"shared.{name}", f"a thread's runs of values of {upper} are loaded in one access",
            f"{loaded * itemsize}-byte loads through {operand.shared.layout[:2]}", f"{run * itemsize} bytes",
            write_default_of(operand),
        )  # fmt: skip
    copy, given = operand.copy, getattr(spec.copies, name)
    if given is None or given.values is None:
        return
    asked = gcd(widest, max_vector(given.values[1 if operand.contiguous == "k" else 0]))
    moved = max(copy.read_vector, copy.write_vector)
    if moved < asked:
        shared = {"x": operand.x, "k": "k"}[contiguous_mode(operand.shared)]
        turned = shared != operand.contiguous and not copy.atom.through_registers
        yield warning(
            spec, "narrow-copy", f"copies.{name}.values", f"a copy moves a thread's run of {upper} in one access",
            f"{copy.atom.name} moves {moved * itemsize} bytes at a time" + (
                f": {upper} is contiguous in {operand.contiguous}, its shared memory in {shared}" if turned
                else f": threads or shared.{name} do not keep runs on {asked * itemsize}-byte boundaries"
            ),
            f"{asked * itemsize} bytes",
            f"write copies.{name}.values: [1, 1]" if turned
            else f"align copies.{name}.threads and shared.{name} to {asked * itemsize} bytes",
        )  # fmt: skip
