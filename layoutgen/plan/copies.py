"""Copies: how the threads of a block bring one (x, k) tile of an operand from global memory."""

from __future__ import annotations

from math import gcd
from typing import Literal

from layoutgen.algebra import Layout, composition, first_collision, make_layout, max_vector, right_inverse
from layoutgen.errors import PlanError
from layoutgen.hw.atoms import COPY_ATOMS, CP_ASYNC, LDG_STS, CopyAtom
from layoutgen.plan.model import Copy, Fetch, OperandName, Shared
from layoutgen.plan.storage import (
    ITEMSIZE,
    VECTOR_BYTES,
    contiguous_mode,
    plan_access,
    run_limit,
    vector_width,
    write_default,
)
from layoutgen.plan.tile import Level, composing, divide, join, largest_divisor, numbers, renumbered
from layoutgen.spec import Spec
from layoutgen.spec_fields import Tiler

TRANSPOSE_K = 8  # a 32-byte sector holds eight words of a k-contiguous row
GlobalMode = Literal["x", "k"]


def default_atom(spec: Spec) -> Literal["cp.async", "ldg.sts", "ldg"]:
    """What a copy is made of where the spec doesn't say: without stages there is but one way, nor is there on AMD's."""
    return "ldg" if not spec.shared.stages else "ldg.sts" if spec.amd else "cp.async"


def atom_of(spec: Spec, operand: OperandName) -> CopyAtom:
    """The atom of an operand's copy. Raises PlanError where it leads elsewhere than the stages of shared memory do."""
    given, stages = getattr(spec.copies, operand), spec.shared.stages
    atom = COPY_ATOMS[default_atom(spec) if given is None else given.atom]
    if (atom.name == "ldg") == (stages == 0):
        return atom
    if stages == 0:
        rule, allowed, fix = "without stages of shared memory, threads load what they multiply", "ldg", "ldg"
    else:
        rule = "what stages of shared memory hold is copied there"
        allowed, fix = "ldg.sts" if spec.amd else "cp.async or ldg.sts", default_atom(spec)
    raise PlanError(
        rule,
        got=f"copies.{operand}.atom: {atom.name} with shared.stages: {stages}",
        allowed=allowed,
        fix=f"write copies.{operand}.atom: {fix}, or shared.stages: {2 if stages == 0 else 0}",
        where=spec.where(f"copies.{operand}.atom"),
    )


def default_values(
    tile: tuple[int, int], global_mode: GlobalMode, shared_mode: GlobalMode, vector: int, threads: int | None
) -> Tiler:
    """The run of one thread's elements per mode, at most `vector` long.

    Where global and shared memory agree in their contiguous mode, it runs along that. Where they differ, a thread that
    has registers (threads: how many share the tile; None for one that has not) turns a patch in them: as many vectors
    of the global mode as leave no thread idle.
    """
    extents: dict[GlobalMode, int] = {"x": tile[0], "k": tile[1]}
    runs: dict[GlobalMode, int] = {"x": 1, "k": 1}
    if global_mode == shared_mode or threads is not None:
        runs[global_mode] = gcd(extents[global_mode], vector)  # of 6, runs of 2: one of 3 is three accesses
    if global_mode != shared_mode and threads is not None:
        shares = max(1, tile[0] * tile[1] // (threads * runs[global_mode]))
        runs[shared_mode] = gcd(extents[shared_mode], min(vector, 1 << (shares.bit_length() - 1)))
    return Layout(runs["x"], 1), Layout(runs["k"], 1)


def default_threads(left: tuple[int, int], global_mode: GlobalMode, shared_mode: GlobalMode, threads: int) -> Layout:
    """Positions that values leave over in x and k -> (x, k) -> thread: neighbours walk the contiguous mode of global.

    Where k is contiguous in global and x in shared memory, eight threads at most walk k (an element each is one 32-byte
    sector) and the rest x, so that the shared side meets distinct banks.
    """
    left_x, left_k = left
    if global_mode == "x":
        along = largest_divisor(left_x, threads)
        return Layout((along, largest_divisor(left_k, threads // along)), (1, along))
    along = largest_divisor(left_k, threads if shared_mode == "k" else min(TRANSPOSE_K, threads))
    return Layout((largest_divisor(left_x, threads // along), along), (along, 1))


def _partition(spec: Spec, key: str, letter: str, extent: int, values: Layout, threads: int) -> tuple[Layout, Layout]:
    """One mode of the tile -> (thread position -> coordinate, element -> coordinate relative to the first)."""
    element_level, thread_level = (
        Level(f"{key}.{each} in {letter}", spec.where(f"{key}.{each}")) for each in ("values", "threads")
    )
    element_level.require_inside(values, "tile", extent)
    if (twice := first_collision(values)) is not None:
        raise PlanError(
            f"{element_level.name} must differ",
            got=f"{values}: values {twice[0]} and {twice[1]} are both at {values(twice[0])}",
            allowed="strides that step past what smaller strides reach",
            fix=f"write {largest_divisor(extent, values.size)} for a run in {letter}",
            where=element_level.where,
        )
    first, repeat = divide(values, extent, threads, element_level, thread_level)
    return first, join(values, repeat)


def _runs(values: Tiler | None) -> dict[GlobalMode, int]:
    """The widest access that values allow along each mode, in elements; 0 where nothing is said."""
    return {"x": max_vector(values[0]), "k": max_vector(values[1])} if values else {"x": 0, "k": 0}


def plan_fetch(
    spec: Spec,
    operand: OperandName,
    thread: Layout,
    value: Layout,
    global_mode: GlobalMode,
    align: int,
    *,
    as_given: bool,
) -> Fetch:
    """thread -> x and value -> x: each thread's own loads of its values of a k-tile. Other arguments as for plan_copy.

    Raises PlanError where the spec gives threads, or values that do not divide a thread's.
    """
    key, given = f"copies.{operand}", getattr(spec.copies, operand)
    block_k = spec.tiling.block[2]
    if given is not None and given.threads is not None:
        raise PlanError(
            "ldg loads what its thread multiplies",
            got=f"{key}.threads: {given.threads}",
            allowed="the threads of tiling.lanes and tiling.warps",
            fix=f"leave {key}.threads out",
            where=spec.where(f"{key}.threads"),
        )
    values: Tiler | None = given.values if given is not None else None
    own = (value.size, block_k)
    if values is not None and any(
        size % each.size or max_vector(each) != each.size for size, each in zip(own, values, strict=True)
    ):
        raise PlanError(
            f"{key}.values must be runs that divide a thread's values of a k-tile",
            got=f"<{values[0]}, {values[1]}> over {own[0]} x {own[1]}",
            allowed=f"divisors of {own[0]} and of {own[1]}",
            fix=f"write {key}.values: [1, 1], or leave it out",
            where=spec.where(f"{key}.values"),
        )
    unit = min(align, VECTOR_BYTES) // ITEMSIZE[getattr(spec.operands, operand).dtype]
    depth = Layout(block_k, 1)
    along, across = (value, (thread,)) if global_mode == "x" else (depth, ())
    return Fetch(
        atom=atom_of(spec, operand),
        participants=thread.size,
        thread_x=thread,
        thread_k=Layout(thread.size, 0),
        element_x=value,
        element_k=depth,
        read_vector=gcd(vector_width(along, across, unit), _runs(values if as_given else None)[global_mode]),
        read_mode=global_mode,
    )


def plan_copy(
    spec: Spec,
    operand: OperandName,
    shared: Shared,
    threads: int,
    global_mode: GlobalMode,
    align: int,
    *,
    as_given: bool,
) -> Copy:
    """Plan one operand's copy for a global tensor that is contiguous in `global_mode` and aligned to `align` bytes.

    as_given: use the spec's threads and values, as its primary variant does; otherwise, and for what the spec leaves
    out, the default partition for this mode and alignment. The atom is the spec's; but what cp.async can't move, less
    than 4 bytes at a time, goes through registers.
    Raises PlanError where threads and values do not compose, or not with the shared layout.
    """
    key = f"copies.{operand}"
    given = getattr(spec.copies, operand)
    atom = atom_of(spec, operand)
    itemsize = ITEMSIZE[getattr(spec.operands, operand).dtype]
    unit = max(1, min(align, VECTOR_BYTES) // itemsize)
    extent, block_k = shared.layout[0].size, shared.layout[1].size
    shared_mode = contiguous_mode(shared)
    narrow = itemsize < min(CP_ASYNC.widths)
    if narrow and (unit * itemsize < min(CP_ASYNC.widths) or global_mode != shared_mode):
        atom = LDG_STS

    layout: Layout | None = given.threads if given is not None and as_given else None
    values: Tiler | None = given.values if given is not None and as_given else None
    runs = _runs(values)
    if values is None:
        taken = (1, 1) if layout is None else (layout[0].size, layout[1].size)
        left = (max(1, extent // taken[0]), max(1, block_k // taken[1]))
        rest = max(1, threads // (taken[0] * taken[1])) if atom.through_registers else None
        # Elements smaller than a word are gathered to whole vectors, however narrow they are loaded.
        run = VECTOR_BYTES // itemsize if narrow and atom.through_registers and global_mode == shared_mode else unit
        values = default_values(left, global_mode, shared_mode, run, rest)
    if layout is None:
        left = (max(1, extent // values[0].size), max(1, block_k // values[1].size))
        many = threads
        if (
            shared.swizzle.bits
        ):  # by powers of two, so that what one thread copies lies along bits that no other's cross
            left, many = (left[0] & -left[0], left[1] & -left[1]), 1 << (threads.bit_length() - 1)
        layout = default_threads(left, global_mode, shared_mode, many)
    if layout.size > threads:
        raise PlanError(
            f"{key}.threads must be threads of the block",
            got=f"{layout}: {layout.size} threads",
            allowed=f"at most {threads}",
            fix=f"use fewer threads in a mode, or leave {key}.threads out for the planner's choice",
            where=spec.where(f"{key}.threads"),
        )
    if not numbers(layout, layout.size):
        raise PlanError(
            f"{key}.threads must number their positions 0 .. {layout.size - 1}, each once",
            got=layout,
            allowed=f"{layout.size} positions with offsets 0 .. {layout.size - 1}",
            fix=f"write {key}.threads: {renumbered(layout)}",
            where=spec.where(f"{key}.threads"),
        )
    letter = "m" if operand == "a" else "n"
    at_x, element_x = _partition(spec, key, letter, extent, values[0], layout[0].size)
    at_k, element_k = _partition(spec, key, "k", block_k, values[1], layout[1].size)

    storage_x, storage_k, stage = shared.layout
    rule = f"an address in shared.{operand} must be the thread's base plus a step of its copy"
    got = f"{shared.layout[:2]}, between whose modes a thread's elements carry"
    with composing(rule, spec.where(f"shared.{operand}"), got, write_default(spec, operand, extent)):
        base_x, step_x = composition(storage_x, make_layout(at_x, element_x))
        base_k, step_k = composition(storage_k, make_layout(at_k, element_k))
    inverse = right_inverse(layout)
    rule = f"{key}.threads must walk whole modes of the positions they take"
    got, fix = f"{layout} over {at_x} and {at_k}", "split the modes of the threads as those are split"
    with composing(rule, spec.where(f"{key}.threads"), got, fix):
        thread_x = composition(make_layout(at_x, Layout(at_k.size, 0)), inverse)
        thread_k = composition(make_layout(Layout(at_x.size, 0), at_k), inverse)
        base = composition(make_layout(base_x, base_k), inverse)

    along, across = (element_x, thread_x) if global_mode == "x" else (element_k, thread_k)
    read = gcd(vector_width(along, (across,), unit), runs[global_mode])
    along, across = (step_x, step_k) if shared_mode == "x" else (step_k, step_x)
    write = gcd(vector_width(along, (base, across, stage), run_limit(shared, itemsize)), runs[shared_mode])
    if not atom.through_registers:
        read = write = min(read, write) if global_mode == shared_mode else 1
    opcode: Literal["st.shared", "cp.async"] = "st.shared" if atom.through_registers else "cp.async"
    return Copy(
        atom=atom,
        threads=layout,
        values=values,
        participants=layout.size,
        thread_x=thread_x,
        thread_k=thread_k,
        element_x=element_x,
        element_k=element_k,
        read_vector=read,
        read_mode=global_mode,
        write_vector=write,
        write_mode=shared_mode,
        write=plan_access(
            f"{'store' if atom.through_registers else 'copy'}_{operand}",
            opcode,
            (write, write * itemsize),
            shared,
            base,
            (step_x, step_k, stage),
            (spec, f"shared.{operand}"),
        ),
    )
