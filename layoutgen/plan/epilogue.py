"""The epilogue: accumulators -> D = alpha * accumulator + beta * C, straight from registers."""

from __future__ import annotations

from layoutgen.plan.model import CTile, Epilogue, ThreadMap
from layoutgen.plan.storage import ITEMSIZE, VECTOR_BYTES, vector_width


def plan_epilogue(tile: CTile, threads: ThreadMap, align: int, dtype: str) -> Epilogue:
    """C and D are contiguous in n with rows aligned to `align` bytes; each access takes a run of one thread's n values.

    A run of `vector` values is contiguous in n and starts on a multiple of `vector` (see vector_width), which divides
    the values of n, and by the variant's requirements the columns of C and D: an access is whole or outside.
    """
    itemsize = ITEMSIZE[dtype]
    vector = vector_width(tile.value_mode[1], (threads.n,), min(align, VECTOR_BYTES) // itemsize)
    return Epilogue(vector=vector, bytes=vector * itemsize, guards=frozenset({"m", "n"}), read_c_if_beta=True)
