"""The epilogue: accumulators -> D = alpha * accumulator + beta * C, straight from registers."""

from __future__ import annotations

from layoutgen.algebra import Layout, make_layout
from layoutgen.plan.model import Access, CTile, Epilogue, ThreadMap
from layoutgen.plan.storage import ITEMSIZE, VECTOR_BYTES, in_vectors, vector_width


def plan_epilogue(tile: CTile, threads: ThreadMap, align: int, dtype: str) -> Epilogue:
    """C and D are contiguous in n with rows aligned to `align` bytes; each access takes a run of one thread's n values.

    The accesses' layouts are in tile coordinates, m + BLK_M * n, since pitches are known only at run time.
    """
    itemsize = ITEMSIZE[dtype]
    value_m, value_n = tile.value_mode
    width = vector_width(threads.n, value_n, (), min(align, VECTOR_BYTES) // itemsize)
    steps = make_layout(value_m, in_vectors(value_n, width))
    assert steps.size * width == value_m.size * value_n.size
    base: Layout = threads.m

    def access(name: str, opcode: str) -> Access:
        return Access(name, opcode, width * itemsize, base, steps)  # type: ignore[arg-type]

    return Epilogue(
        vector=width,
        load=access("c", "ld.global"),
        store=access("d", "st.global"),
        guards=frozenset({"m", "n"}),
        read_c_if_beta=True,
    )
