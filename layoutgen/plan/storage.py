"""Shared memory and fragments: where an operand's k-tile lies, and how a thread reads its values of it."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Literal

from layoutgen.algebra import Layout, coalesce, composition, make_layout, max_vector, upcast
from layoutgen.errors import PlanError
from layoutgen.plan.model import Access, Fragment, Mode, Shared
from layoutgen.plan.tile import composing
from layoutgen.spec import Spec

ITEMSIZE = {"f32": 4}
VECTOR_BYTES = 16  # the widest shared or global access of one thread (PTX ISA: ld/st .v4.b32, cp.async 16)
SECTOR_BYTES = 32  # of global memory; copies that bypass L1 keep them whole (CUDA best practices guide)
# Words between the rows of a default layout. Where a copy transposes, it writes eight k of four x without conflict.
# Where it doesn't, each row starts on a sector, and the variants that do transpose meet only two to a bank.
PAD = {"transposed": 4, "straight": 8}


def default_shared(extent: int, block_k: int, contiguous: Mode | None) -> Layout:
    """(x, k) -> word: x-contiguous, for an operand whose global mode is `contiguous`; PAD words between rows."""
    pad = PAD["transposed" if contiguous == "k" else "straight"]
    return Layout((extent, block_k), (1, -(-extent // pad) * pad + pad))


def write_default(spec: Spec, operand: Literal["a", "b"], extent: int) -> str:
    """The edit that mends any shared layout."""
    contiguous = getattr(spec.operands, operand).contiguous
    return f"write shared.{operand}: {default_shared(extent, spec.tiling.block[2], contiguous)}"


def place_shared(spec: Spec, operand: Literal["a", "b"], extent: int) -> Shared:
    """(x, k) of the spec -> (x, k, stage), each stage starting on a 32-byte boundary.

    Raises PlanError where the spec's layout is not one of the operand's (BLK_X, BLK_K) tile.
    """
    block_k = spec.tiling.block[2]
    given = getattr(spec.shared, operand)
    contiguous = getattr(spec.operands, operand).contiguous
    one = default_shared(extent, block_k, contiguous) if given is None else given
    if (one[0].size, one[1].size) != (extent, block_k):
        raise PlanError(
            f"shared.{operand} must be a layout of the ({'m' if operand == 'a' else 'n'}, k) tile",
            got=f"{one}, of ({one[0].size}, {one[1].size}) elements",
            allowed=f"({extent}, {block_k}) elements",
            fix=write_default(spec, operand, extent),
            where=spec.where(f"shared.{operand}"),
        )
    itemsize = ITEMSIZE[getattr(spec.operands, operand).dtype]
    unit = SECTOR_BYTES // itemsize
    stage = -(-one.cosize // unit) * unit
    layout = make_layout(one[0], one[1], Layout(spec.shared.stages, stage))
    return Shared(layout, stage, stage * spec.shared.stages * itemsize)


def contiguous_mode(shared: Shared) -> Literal["x", "k"]:
    """The mode of the shared tile along which neighbouring elements are neighbours in memory; x where neither is."""
    k = coalesce(shared.layout[1])
    return "k" if k.size > 1 and k.flat_stride[0] == 1 else "x"


def vector_width(pieces: Layout, others: Iterable[Layout], limit: int) -> int:
    """The widest access to `pieces`, in elements: the largest power of two up to `limit`, itself one, that is legal.

    pieces: element -> offset, to be cut into runs of the width. others: the other terms of an address, such as the
    thread's base. A width is legal where each run is contiguous and every address is a multiple of it.
    """
    strides = (d for layout in others for n, d in zip(layout.flat_shape, layout.flat_stride, strict=True) if n > 1)
    return gcd(limit, max_vector(pieces), *strides)


def in_vectors(layout: Layout, width: int) -> Layout:
    """Element steps -> steps of whole vectors, in units of vectors (CuTe's upcast, then coalesced)."""
    return coalesce(upcast(coalesce(layout), width))


def plan_fragment(spec: Spec, operand: Literal["a", "b"], shared: Shared, thread: Layout, value: Layout) -> Fragment:
    """thread -> x and value -> x, through the shared layout: the loads of one thread's values, by runs of them or of k.

    Raises PlanError where the shared layout carries between its modes, so that base + step is no address.
    """
    storage_x, storage_k, stage = shared.layout
    rule = f"an address in shared.{operand} must be the thread's base plus a step of its values"
    got = f"{shared.layout[:2]}, between whose modes a thread's values carry"
    fix = write_default(spec, operand, storage_x.size)
    with composing(rule, spec.where(f"shared.{operand}"), got, fix):
        base, pieces = composition(storage_x, make_layout(thread, value))
    itemsize = ITEMSIZE[getattr(spec.operands, operand).dtype]
    limit = VECTOR_BYTES // itemsize
    along_x = vector_width(pieces, (base, storage_k, stage), limit)
    along_k = vector_width(storage_k, (base, pieces, stage), limit)
    mode: Literal["x", "k"] = "x" if along_x >= along_k else "k"
    width = max(along_x, along_k)
    steps = make_layout(*(in_vectors(layout, width) for layout in (pieces, storage_k, stage)))
    load = Access(f"fragment_{operand}", "ld.shared", width * itemsize, base, steps)
    return Fragment(load, width, value.size // (width if mode == "x" else 1), mode)
