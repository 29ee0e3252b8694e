"""Shared memory and fragments: where an operand's k-tile lies, and how a thread reads its values of it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from layoutgen.algebra import Layout, coalesce, composition, make_layout, upcast
from layoutgen.errors import LayoutError, PlanError
from layoutgen.plan.model import Access, Fragment, Shared
from layoutgen.spec import Spec

ITEMSIZE = {"f32": 4}
VECTOR_BYTES = 16  # the widest shared or global access of one thread (PTX ISA: ld/st .v4.b32, cp.async 16)


def default_shared(extent: int, block_k: int) -> Layout:
    """x-contiguous, each k padded by four words: a transposing copy then writes eight k of four x without conflict."""
    return Layout((extent, block_k), (1, extent + 4))


def place_shared(spec: Spec, operand: Literal["a", "b"], extent: int) -> Shared:
    """(x, k) of the spec -> (x, k, stage), each stage starting on a 16-byte boundary.

    Raises PlanError where the spec's layout is not one of the operand's (BLK_X, BLK_K) tile.
    """
    block_k = spec.tiling.block[2]
    given = getattr(spec.shared, operand)
    one = default_shared(extent, block_k) if given is None else given
    letter = {"a": "m", "b": "n"}[operand]
    if not isinstance(one.shape, tuple) or len(one) != 2 or (one[0].size, one[1].size) != (extent, block_k):
        raise PlanError(
            f"shared.{operand} must be a layout of the ({letter}, k) tile",
            got=str(one),
            allowed=f"modes of sizes ({extent}, {block_k})",
            fix=f"write ({extent},{block_k}):(1,{extent + 4})",
            where=spec.where(f"shared.{operand}"),
        )
    unit = VECTOR_BYTES // ITEMSIZE[getattr(spec.operands, operand).dtype]
    stage = -(-one.cosize // unit) * unit
    layout = make_layout(one[0], one[1], Layout(spec.shared.stages, stage))
    return Shared(layout, stage, stage * spec.shared.stages * ITEMSIZE[getattr(spec.operands, operand).dtype])


def vector_width(base: Layout, pieces: Layout, others: tuple[Layout, ...], limit: int) -> int:
    """The widest access, in elements, that every thread may use on `pieces`.

    base: thread -> offset; pieces: element -> offset, cut into runs of the width; others: further steps.
    A width is legal where each run is contiguous and every address is a multiple of it.
    """
    run = pieces.offsets()
    width = limit
    while width > 1:
        aligned = all(not np.any(layout.offsets() % width) for layout in (base, *others))
        if aligned and run.size % width == 0:
            groups = run.reshape(-1, width)
            if not np.any(groups[:, 0] % width) and np.array_equal(groups, groups[:, :1] + np.arange(width)):
                return width
        width //= 2
    return 1


def in_vectors(layout: Layout, width: int) -> Layout:
    """Element steps -> steps of whole vectors, in units of vectors (CuTe's upcast, then coalesced)."""
    return coalesce(upcast(coalesce(layout), width))


def adds_up(storage: Layout, thread: Layout, value: Layout) -> bool:
    """Whether storage(thread + value) = storage(thread) + storage(value) for every thread and value.

    It fails where a sum carries from one mode of a nested storage layout into the next; then base + step is no address.
    """
    t, v = thread.offsets(), value.offsets()
    table = storage.offsets()
    sums = t[:, None] + v[None, :]
    if sums.max() >= table.size:
        return False
    return bool(np.array_equal(table[sums], table[t][:, None] + table[v][None, :]))


def require_adds_up(spec: Spec, operand: str, storage: Layout, thread: Layout, value: Layout, what: str) -> None:
    if not adds_up(storage, thread, value):
        raise PlanError(
            f"an address in shared.{operand} must be the thread's base plus a step of {what}",
            got=f"{storage} carries between its modes",
            allowed="a layout that is linear over what one thread touches",
            fix=f"give shared.{operand} one stride per mode, or cut its modes at the thread tile",
            where=spec.where(f"shared.{operand}"),
        )


def plan_fragment(
    spec: Spec, operand: Literal["a", "b"], shared: Shared, thread: Layout, value: Layout, slots: int
) -> Fragment:
    """thread -> x and value -> x, through the shared layout: the loads of one thread's values of one k.

    Raises PlanError where base + step does not hold for the shared layout.
    """
    storage_x, storage_k, stage = (shared.layout[i] for i in range(3))
    require_adds_up(spec, operand, storage_x, thread, value, "its values")
    try:
        base, pieces = composition(storage_x, thread), composition(storage_x, value)
    except LayoutError as error:
        raise PlanError(
            f"the thread layout does not compose with shared.{operand}",
            got=error.got,
            allowed=error.allowed,
            fix=error.fix,
            where=spec.where(f"shared.{operand}"),
        ) from error
    itemsize = ITEMSIZE[getattr(spec.operands, operand).dtype]
    width = vector_width(base, pieces, (storage_k, stage), VECTOR_BYTES // itemsize)
    steps = make_layout(*(in_vectors(layout, width) for layout in (pieces, storage_k, stage)))
    load = Access(f"fragment_{operand}", "ld.shared", width * itemsize, base, steps)
    return Fragment(load, width, value.size // width, slots)
