"""What is legal, but poor, whatever the problem. A fix here is in words; `mend` looks for an edit that does it."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from layoutgen.algebra import max_vector
from layoutgen.check.findings import Finding, warning
from layoutgen.errors import counted
from layoutgen.facts import AccessFacts, Facts
from layoutgen.plan import Plan
from layoutgen.plan.model import CopyTile, LoadTile, Operand, SharedOperand, StoreTile
from layoutgen.plan.storage import ITEMSIZE, SECTOR_BYTES, VECTOR_BYTES, contiguous_mode, vector_width
from layoutgen.plan.variants import MAX_STAGES
from layoutgen.spec import Spec

FEW_CONFLICTS = 1 / 32  # of a k-tile's clocks: what conflicts add below this is lost beside all else
MUCH_USED = 0.75  # of the sectors that an access moves
MUCH_LONGER = 1.1  # than FFMAs: the wavefronts of cp.async are an estimate, good to a tenth
MFMA_DEPTH = 32


def advice(spec: Spec, primary: Plan, found: Facts) -> Iterator[Finding]:
    """What is poor about a legal spec, whatever the problem; found: the primary plan's facts."""
    yield from _depth(spec, primary, found)
    narrow = [each for operand in primary.shared_operands for each in _narrow(spec, primary, operand)]
    yield from narrow
    if not found.accesses:
        return  # banks, sectors and schedulers are NVIDIA's
    for access in found.accesses:
        yield from _conflicts(spec, primary, access, found)
        yield from _scattered(spec, primary, access, {each.message for each in narrow if each.rule == "narrow-copy"})
    yield from _idle(spec, found)


def _depth(spec: Spec, primary: Plan, found: Facts) -> Iterator[Finding]:
    """Too few stages; a BLK_K that is odd, or small for what multiplies."""
    block_k = primary.tile.block[2]
    moves = [step for step in primary.program.steady if isinstance(step, CopyTile | LoadTile | StoreTile)]
    if primary.stages == 1 and not isinstance(moves[0], StoreTile):  # else it was loaded a turn before
        yield warning(
            spec, "no-overlap", "shared.stages", "a k-tile is fetched while another one is multiplied",
            "one stage of shared memory: no warp of a block multiplies while the next tile arrives",
            f"2 .. {MAX_STAGES} stages", "give shared.stages two or more",
        )  # fmt: skip
    if primary.stages > 1 and block_k % 2:
        yield warning(
            spec, "odd-k", "tiling.block", "fragments are double-buffered only for an even number of k",
            f"BLK_K = {block_k}, so each load is waited for", "an even BLK_K",
            "give tiling.block an even BLK_K, and the layouts of shared memory and copies with it",
        )  # fmt: skip
    if found.device.cc is None and block_k < MFMA_DEPTH:
        yield warning(
            spec, "k-depth", "tiling.block", "a k-tile keeps a CDNA device's MFMAs busy while the next one arrives",
            f"BLK_K = {block_k}", f"a BLK_K of at least {MFMA_DEPTH} on {found.device.name}",
            f"give tiling.block a BLK_K of {MFMA_DEPTH}, and the layouts of shared memory and copies with it",
        )  # fmt: skip


def _operand_of(primary: Plan, access: AccessFacts) -> Operand | None:
    """A or B, which the access's name ends in; None for C and D."""
    return {"a": primary.a, "b": primary.b}.get(access.name.rpartition("_")[2])


def _conflicts(spec: Spec, primary: Plan, access: AccessFacts, found: Facts) -> Iterator[Finding]:
    """Accesses to shared memory whose lanes meet in a bank, if that takes time worth speaking of."""
    operand, extra = _operand_of(primary, access), access.wavefronts - access.conflict_free
    if operand is None or extra < FEW_CONFLICTS * max(found.bound.clocks.values()):
        return
    reads = access.opcode == "ld.shared"
    given = (f"shared.{operand.name}", *([] if reads else [f"copies.{operand.name}"]))
    yield warning(
        spec, "bank-conflicts", _first_of(spec, *given) or ("tiling.values" if reads else "tiling.block"),
        f"the lanes of a warp {'read' if reads else 'write'} {operand.name.upper()}'s shared memory in different banks",
        f"{access.wavefronts / access.requests:.3g} wavefronts for each {access.bytes}-byte access of {access.name}",
        f"{access.conflict_free / access.requests:.3g}, without conflicts",
        f"let neighbouring lanes read neighbouring {operand.x}: cut tiling.values into runs of 4 that lie apart"
        if reads
        else f"let threads in copies.{operand.name} walk {operand.x}, or change the rows of shared.{operand.name}",
    )  # fmt: skip


def _first_of(spec: Spec, *keys: str) -> str | None:
    """The first key of the form level.operand that the spec gives."""
    parts = [key.split(".") for key in keys]
    return next((".".join(part) for part in parts if getattr(getattr(spec, part[0]), part[1]) is not None), None)


def _scattered(spec: Spec, primary: Plan, access: AccessFacts, narrow: set[str]) -> Iterator[Finding]:
    """Accesses to global memory that move much more than they use; narrow: of which the cause has been told."""
    if access.ideal_sectors >= MUCH_USED * access.sectors:
        return
    if access.name.startswith(("read_", "write_")) and access.name != "write_d":
        return  # C and the epilogue's tensors go as D is written; what is wider comes in pieces, by way of L1
    copied = _operand_of(primary, access)
    operand = access.name.rpartition("_")[2]
    if any(f" {operand.upper()} " in message for message in narrow):
        return
    if (
        isinstance(copied, SharedOperand)
        and access.bytes == VECTOR_BYTES
        and access.opcode == "cp.async"
        and _halves(copied)
    ):
        yield warning(
            spec, "uncoalesced", _first_of(spec, f"shared.{operand}", f"copies.{operand}") or "tiling.block",
            f"sectors of {operand.upper()} that a copy brings stay whole in shared memory",
            f"{access.sectors / access.requests:.3g} sectors for each {access.bytes}-byte access of {access.name}: "
            f"the halves of some land in two 32-byte pieces of shared.{operand}",
            f"{access.ideal_sectors / access.requests:.3g}, where all rows start on 32-byte boundaries",
            f"pad the rows of shared.{operand} to a multiple of 32 bytes",
        )  # fmt: skip
        return
    if copied is None or isinstance(copied, SharedOperand):
        fix = (
            "let neighbouring lanes own neighbouring columns of n: give n the strides of 1 in tiling.lanes"
            if copied is None
            else f"let neighbouring threads in copies.{operand} copy neighbouring elements of global memory, 32 bytes "
            "at least"
        )
    else:  # its lanes load what they multiply
        fix = f"let neighbouring lanes load one element, or neighbours in {copied.contiguous}: turn tiling.lanes"
        copied = None
    yield warning(
        spec, "uncoalesced", (_first_of(spec, f"copies.{operand}") or "tiling.block") if copied else "tiling.lanes",
        f"a warp's accesses to {operand.upper()} in global memory use the 32-byte sectors that they move",
        f"{access.sectors / access.requests:.3g} sectors for each {access.bytes}-byte access of {access.name}",
        f"{access.ideal_sectors / access.requests:.3g}, without a gap", fix,
    )  # fmt: skip


def _halves(operand: SharedOperand) -> bool:
    """Whether rows of a stage, or pieces of one, start in the middle of 32 bytes."""
    tile = operand.shared.layout[:2]
    words = SECTOR_BYTES // ITEMSIZE[operand.dtype]
    strides = (d for n, d in zip(tile.flat_shape, tile.flat_stride, strict=True) if n > 1 and d != 1)
    return any(stride % words for stride in strides)


def _idle(spec: Spec, found: Facts) -> Iterator[Finding]:
    """Multiprocessors that are held back by something other than multiplying."""
    resident, device = found.occupancy, found.device
    warps = resident.blocks * resident.warps
    if 0 < warps < device.schedulers_per_sm:
        yield warning(
            spec, "idle-schedulers", "tiling.block", "every warp scheduler of a multiprocessor has a warp",
            f"{counted(warps, 'resident warp')}, limited by {' and '.join(resident.limited_by)}",
            f"{device.schedulers_per_sm} on {device.name}", "use more warps, or smaller blocks of which more fit",
        )  # fmt: skip
    if found.peak is None:
        return  # how long multiplying takes is not known
    what = "atoms" if found.plan.uses_atoms else "FFMAs"
    clocks = found.bound.clocks
    if clocks["L1"] > max(clocks["compute"], clocks["issue slots"], clocks["shared memory"]):
        yield warning(
            spec, "l1-bound", "shared.stages" if found.shared.stages == 0 else "tiling.block",
            f"loads from global memory take no longer over a k-tile than its {what} do",
            f"{clocks['L1']:.0f} clocks of 128-byte lines from L1, for {clocks['compute']:.0f} of {what}",
            f"at most {max(clocks['compute'], clocks['issue slots']):.0f}",
            "bring A and B to shared memory once, with 1 stage or more" if found.shared.stages == 0
            else "let neighbouring threads copy neighbouring elements of global memory",
        )  # fmt: skip
    if clocks["shared memory"] > MUCH_LONGER * max(clocks["compute"], clocks["issue slots"]):
        apart = [each.name for each in found.accesses if each.apart]
        paired = ", or lanes that read alike in pairs, as (4,(2,4)):(2,(1,8)) does" if apart else ""
        copies = sum(each.wavefronts for each in found.accesses if each.opcode in ("cp.async", "st.shared"))
        yield warning(
            spec, "shared-bound", "tiling.warps" if found.plan.uses_atoms else "tiling.values",
            f"shared memory takes no longer over a k-tile than its {what} do",
            f"{clocks['shared memory']:.0f} clocks of wavefronts, {copies} of them copies', "
            f"for {clocks['compute']:.0f} of {what}"
            + (f"; of {' and '.join(apart)} no pairs of lanes read alike: twice the wavefronts" if apart else ""),
            f"at most {max(clocks['compute'], clocks['issue slots']):.0f}, give or take a tenth",
            "give a warp a larger tile, in both modes alike, for each load and copy to feed more atoms"
            if found.plan.uses_atoms
            else f"give a thread more values, in both modes alike, for each load and copy to feed more FFMAs{paired}",
        )  # fmt: skip


def _narrow(spec: Spec, primary: Plan, operand: SharedOperand) -> Iterator[Finding]:
    """Accesses that are narrower than what the spec's values ask for."""
    name, upper, index = operand.name, operand.name.upper(), "mn".index(operand.x)
    itemsize = ITEMSIZE[operand.dtype]
    widest = VECTOR_BYTES // itemsize
    thread = (primary.threads.m, primary.threads.n)[index]
    run = vector_width(primary.tile.value_mode[index], (thread,), widest)
    loaded = operand.fragment.vector
    if loaded < run and not primary.uses_atoms:
        yield warning(
            spec, "narrow-loads", f"shared.{name}", f"a thread's runs of values of {upper} are loaded in one access",
            f"{loaded * itemsize}-byte loads through {operand.shared.layout[:2]}", f"{run * itemsize} bytes",
            f"let neighbouring {operand.x} lie side by side in shared.{name}, from {run * itemsize}-byte boundaries on",
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
            f"align copies.{name}.threads and shared.{name} to {asked * itemsize} bytes",
        )  # fmt: skip
