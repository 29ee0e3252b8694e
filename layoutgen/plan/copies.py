"""Copies: how the threads of a block bring one (x, k) tile of an operand from global to shared memory."""

from __future__ import annotations

from typing import Literal

from layoutgen.algebra import Layout, complement, composition, make_layout, right_inverse
from layoutgen.errors import LayoutError, PlanError
from layoutgen.hw.atoms import COPY_ATOMS, CopyAtom
from layoutgen.plan.model import Access, Copy, Shared
from layoutgen.plan.storage import ITEMSIZE, VECTOR_BYTES, in_vectors, require_adds_up, vector_width
from layoutgen.plan.tile import two_modes
from layoutgen.spec import Spec

TRANSPOSE_K = 8  # a 32-byte sector holds eight words of a k-contiguous row


def _divisor(number: int, limit: int) -> int:
    """The largest divisor of `number` that is at most `limit`."""
    return next(d for d in range(min(number, limit), 0, -1) if number % d == 0)


def default_partition(
    extent: int, block_k: int, threads: int, global_mode: Literal["x", "k"], shared_mode: Literal["x", "k"], vector: int
) -> tuple[Layout, tuple[Layout, Layout]]:
    """-> ((x, k) -> thread, values by mode): neighbouring threads walk the contiguous mode of global memory.

    Where the contiguous modes agree, each access is `vector` elements. Where they differ, eight threads walk k (one
    32-byte sector) and four or more walk x, one element each, so that the shared side meets distinct banks.
    """
    if global_mode == shared_mode == "x":
        width = _divisor(extent, vector)
        along = _divisor(extent // width, threads)
        across = _divisor(block_k, threads // along)
        return Layout((along, across), (1, along)), (Layout(width, 1), Layout(1, 0))
    if global_mode == shared_mode == "k":
        width = _divisor(block_k, vector)
        along = _divisor(block_k // width, threads)
        across = _divisor(extent, threads // along)
        return Layout((across, along), (along, 1)), (Layout(1, 0), Layout(width, 1))
    if global_mode == "k":
        along = _divisor(block_k, min(TRANSPOSE_K, threads))
        across = _divisor(extent, threads // along)
        return Layout((across, along), (along, 1)), (Layout(1, 0), Layout(1, 0))
    along = _divisor(extent, threads)
    across = _divisor(block_k, threads // along)
    return Layout((along, across), (1, along)), (Layout(1, 0), Layout(1, 0))


def contiguous_mode(shared: Shared) -> Literal["x", "k"]:
    """The mode of the shared tile along which neighbouring elements are neighbours in memory."""
    return "k" if shared.layout[1].offsets()[:2].tolist() == [0, 1] else "x"


def _mode(spec: Spec, key: str, extent: int, values: Layout, threads: int, letter: str) -> tuple[Layout, Layout]:
    """One mode of the tile -> (thread position -> coordinate, element -> coordinate)."""
    if values.cosize > extent:
        raise PlanError(
            f"a copy's values must lie within its tile in {letter}",
            got=f"{values} reaches {values.cosize}",
            allowed=f"at most {extent}",
            fix=f"shrink {key}.values",
            where=spec.where(f"{key}.values"),
        )
    try:
        rest = complement(values, extent)
        if rest.size % threads:
            raise PlanError(
                f"a copy's threads must divide its tile in {letter}",
                got=f"{threads} threads over {rest.size} positions",
                allowed=f"a divisor of {rest.size}",
                fix=f"change {key}.threads or {key}.values",
                where=spec.where(f"{key}.threads"),
            )
        repeat = composition(rest, Layout(rest.size // threads, threads))
        elements = [mode for mode in (values, repeat) if mode.size > 1]
        joined = make_layout(*elements) if len(elements) > 1 else elements[0] if elements else Layout(1, 0)
        return composition(rest, Layout(threads, 1)), joined
    except LayoutError as error:
        raise PlanError(
            f"a copy's values and threads do not compose in {letter}",
            got=error.got,
            allowed=error.allowed,
            fix=error.fix,
            where=spec.where(f"{key}.threads"),
        ) from error


def plan_copy(
    spec: Spec,
    operand: Literal["a", "b"],
    shared: Shared,
    threads: int,
    global_mode: Literal["x", "k"],
    align: int,
    *,
    as_given: bool,
) -> Copy:
    """Plan one operand's copy for a global tensor that is contiguous in `global_mode` and aligned to `align` bytes.

    as_given: use the spec's threads and values, as its primary variant does; otherwise the default partition for this
    mode and alignment, with the spec's atom.
    Raises PlanError where threads and values do not tile the operand's tile, or cp.async is left nothing legal.
    """
    key = f"copies.{operand}"
    given = getattr(spec.copies, operand, None) if spec.copies is not None else None
    itemsize = ITEMSIZE[getattr(spec.operands, operand).dtype]
    extent, block_k = shared.layout[0].size, shared.layout[1].size
    atom: CopyAtom = COPY_ATOMS[given.atom] if given is not None else COPY_ATOMS["cp.async"]
    shared_mode = contiguous_mode(shared)
    if given is not None and given.threads is not None and as_given:
        layout = two_modes(given.threads)
        values = given.values if given.values is not None else (Layout(1, 0), Layout(1, 0))
    else:
        layout, values = default_partition(
            extent, block_k, threads, global_mode, shared_mode, min(align, VECTOR_BYTES) // itemsize
        )
    at_x, element_x = _mode(spec, key, extent, values[0], layout[0].size, {"a": "m", "b": "n"}[operand])
    at_k, element_k = _mode(spec, key, block_k, values[1], layout[1].size, "k")
    if layout.size != layout.cosize or layout.size > threads:
        raise PlanError(
            "a copy's threads must be numbered 0, 1, .. without gaps, and be threads of the block",
            got=f"{layout}: {layout.size} positions, last thread {layout.cosize - 1}",
            allowed=f"at most {threads} threads",
            fix=f"change {key}.threads",
            where=spec.where(f"{key}.threads"),
        )
    inverse = right_inverse(layout)
    thread_x = composition(make_layout(at_x, Layout(at_k.size, 0)), inverse)
    thread_k = composition(make_layout(Layout(at_x.size, 0), at_k), inverse)

    storage_x, storage_k, stage = (shared.layout[i] for i in range(3))
    require_adds_up(spec, operand, storage_x, thread_x, element_x, "its copy")
    require_adds_up(spec, operand, storage_k, thread_k, element_k, "its copy")
    base = composition(make_layout(composition(storage_x, at_x), composition(storage_k, at_k)), inverse)
    step_x, step_k = composition(storage_x, element_x), composition(storage_k, element_k)

    along, across = (element_x, thread_x) if global_mode == "x" else (element_k, thread_k)
    read = vector_width(across, along, (), min(align, VECTOR_BYTES) // itemsize)
    along, across = (step_x, step_k) if shared_mode == "x" else (step_k, step_x)
    write = vector_width(base, along, (across, stage), VECTOR_BYTES // itemsize)
    if not atom.through_registers:
        read = write = min(read, write) if global_mode == shared_mode else 1
    elif global_mode != shared_mode and write > 1:
        read = 1  # a thread's registers run along one mode only, and the shared side keeps its width
    opcode: Literal["st.shared", "cp.async"] = "st.shared" if atom.through_registers else "cp.async"
    steps = make_layout(in_vectors(step_x, write), in_vectors(step_k, write), in_vectors(stage, write))
    return Copy(
        atom=atom,
        participants=layout.size,
        thread_x=thread_x,
        thread_k=thread_k,
        element_x=element_x,
        element_k=element_k,
        vector_mode=shared_mode if write > 1 else global_mode,
        read_vector=read,
        write_vector=write,
        write=Access(f"copy_{operand}", opcode, write * itemsize, base, steps),
    )
