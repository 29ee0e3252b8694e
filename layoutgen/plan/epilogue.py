"""The epilogue: accumulators -> D = alpha * accumulator + beta * C, straight from registers."""

from __future__ import annotations

from layoutgen.algebra import Layout, coalesce, composition, make_layout
from layoutgen.plan.model import CTile, Epilogue, ThreadMap
from layoutgen.plan.storage import ITEMSIZE, VECTOR_BYTES, vector_width

QUAD = 4  # neighbouring lanes that share a row of an atom's accumulators


def plan_epilogue(tile: CTile, threads: ThreadMap, align: int, dtype: str, *, atoms: bool) -> Epilogue:
    """C and D are contiguous in n with rows aligned to `align` bytes; each access takes a run of one thread's n values.

    A run of `vector` values is contiguous in n and starts on a multiple of `vector` (see vector_width), which divides
    the values of n, and by the variant's requirements the columns of C and D: an access is whole or outside. atoms:
    those of mma.sync, whose lanes hold pairs of columns and may pass them on; MFMA's hold columns one by one.
    """
    itemsize, value_n, thread_n, exchange = ITEMSIZE[dtype], tile.value_mode[1], threads.n, 1
    wanted = max(1, min(align, VECTOR_BYTES) // itemsize)
    if atoms:
        value_n, thread_n, exchange = _exchanged(tile, threads, wanted)
    vector = vector_width(value_n, (thread_n,), wanted)
    return Epilogue(
        vector=vector,
        bytes=vector * itemsize,
        guards=frozenset({"m", "n"}),
        read_c_if_beta=True,
        thread_n=thread_n,
        value_n=value_n,
        exchange=exchange,
    )


def _exchanged(tile: CTile, threads: ThreadMap, wanted: int) -> tuple[Layout, Layout, int]:
    """value -> n and thread -> n once lanes have passed each other values, and how many lanes do: those whose pairs of
    columns make up a run of `wanted`, if there are as many atoms for them to share out.

    Lane t of E has columns 2t and 2t + 1 of E atoms; then it has 2E columns of atom t: the E lanes' stride and that of
    the E atoms change places.
    """
    pair, value_n = 2, tile.value_mode[1]
    atoms = value_n.size // pair
    exchange = max(1, min(wanted // pair, QUAD))
    while atoms % exchange:
        exchange //= 2
    if exchange == 1:
        return value_n, threads.n, 1
    columns, each, rest = (
        composition(value_n, layout)
        for layout in (Layout(pair, 1), Layout(exchange, pair), Layout(atoms // exchange, pair * exchange))
    )
    lane_n = tile.lane_mode[1]
    own, others = composition(lane_n, Layout(exchange, 1)), composition(lane_n, Layout(QUAD // exchange, exchange))
    lanes, warps = make_layout(each, others, Layout(tile.lanes.size // QUAD, 0)), threads.n[1]
    return coalesce(make_layout(columns, own, rest)), make_layout(lanes, warps), exchange
