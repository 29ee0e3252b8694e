"""The epilogue: accumulators -> D = chain(alpha * accumulator + beta * C), straight from registers."""

from __future__ import annotations

from layoutgen.algebra import Layout, coalesce, composition, make_layout
from layoutgen.epilogue import Step, Tensor, Value
from layoutgen.errors import EpilogueError
from layoutgen.plan.chain import Epilogue, Link
from layoutgen.plan.model import CTile, ThreadMap
from layoutgen.plan.storage import INTEGERS, ITEMSIZE, VECTOR_BYTES, vector_width
from layoutgen.spec import Spec

INSTRUCTION_BYTES, STORED = 16, 3  # of Volta and later; how many a value takes without steps
EARLY_BYTES = 32  # that a thread can hold beside the registers of a main loop: more spills, where fragments fill them
CACHED_BYTES = 24 << 10  # of instructions that an SM holds beside a main loop (benchmarks/results/fused-h200.json)
QUAD = 4  # neighbouring lanes that share a row of an atom's accumulators


def plan_epilogue(spec: Spec, tile: CTile, threads: ThreadMap, align: int) -> Epilogue:
    """C and D are contiguous in n with rows aligned to `align` bytes; each access takes a run of one thread's n values.

    A run of `vector` values is contiguous in n and starts on a multiple of `vector` (see vector_width), which divides
    the values of n, and by the variant's requirements the columns of C and D: an access is whole or outside. Lanes of
    mma.sync hold pairs of columns and may pass them on; MFMA's hold columns one by one.
    Raises EpilogueError where the chain has no meaning.
    """
    dtype = spec.operands.c.dtype
    itemsize, value_n, thread_n, exchange = ITEMSIZE[dtype], tile.value_mode[1], threads.n, 1
    wanted = max(1, min(align, VECTOR_BYTES) // itemsize)
    if spec.tiling.atom and not spec.amd:
        value_n, thread_n, exchange = _exchanged(tile, threads, wanted)
    vector = vector_width(value_n, (thread_n,), wanted)
    first, chain = _plan_chain(spec)
    return Epilogue(
        vector=vector,
        bytes=vector * itemsize,
        guards=frozenset({"m", "n"}),
        read_c_if_beta=True,
        thread_n=thread_n,
        value_n=value_n,
        exchange=exchange,
        first=first,
        row_lanes=_row_lanes(tile, threads),
        turns=_turns(tile, spec.epilogue),
        reads_c=first != "s32" or dtype in INTEGERS,
        chain=tuple(_link(*each, vector) for each in chain),
        early=_column_bytes(value_n, chain) <= EARLY_BYTES and spec.tiling.split is None,  # whose registers are full
    )


def _plan_chain(spec: Spec) -> tuple[Value, list[tuple[Step, Value, Tensor | None]]]:
    """The type in which the chain begins, and each step with that in which it computes and its tensor.

    Sums of integers stay so, and exact, where C is an integer too, or the first step is one of integers: alpha and beta
    are int32 then.
    """
    stored, sums = spec.operands.c.dtype, spec.operands.accumulate
    first: Value = sums
    if sums == "s32" and stored not in INTEGERS:
        first = spec.epilogue[0].computes_in("s32", stored) if spec.epilogue else "f32"
    value, chain, named = first, [], dict[str, int]()
    for index, step in enumerate(spec.epilogue):
        value = step.computes_in(value, stored)
        tensor, at = step.tensor(value, stored), f"epilogue.{index}.{step.word}"
        if tensor is not None:
            if tensor.name in named:
                raise EpilogueError(
                    "each tensor of the epilogue has a keyword of its own",
                    got=f"{tensor.name} in steps {named[tensor.name] + 1} and {index + 1}",
                    allowed="names that differ",
                    fix=f"give step {index + 1} a name of its own, such as {tensor.name}_{index + 1}",
                    where=spec.where(f"{at}.name"),
                )
            if tensor.dtype == "f64" != value:
                raise EpilogueError(
                    "a tensor of the epilogue is no wider than the type in which its step computes",
                    got=f"{tensor.name} in f64, in a step that computes in {value}",
                    allowed="f32, f16, bf16 or s32",
                    fix=f"leave the dtype of {tensor.name} out",
                    where=spec.where(f"{at}.dtype"),
                )
            named[tensor.name] = index
        chain.append((step, value, tensor))
    return first, chain


def _column_bytes(value_n: Layout, chain: list[tuple[Step, Value, Tensor | None]]) -> int:
    """What a thread reads of tensors that have no rows."""
    read = [tensor for _, _, tensor in chain if tensor is not None and "m" not in tensor.modes]
    return sum(ITEMSIZE[tensor.dtype] * (value_n.size if tensor.modes else 1) for tensor in read)


def _turns(tile: CTile, chain: tuple[Step, ...]) -> int:
    """How many times the text of a thread's rows is gone through, each time for as many rows: so often that its steps
    stay in the instruction cache, whose misses take as long as the steps themselves where they don't."""
    rows, columns = (mode.size for mode in tile.value_mode)
    each = columns * (STORED + sum(step.instructions for step in chain)) * INSTRUCTION_BYTES
    turns = 1
    while chain and rows % (2 * turns) == 0 and rows // turns * each > CACHED_BYTES:
        turns *= 2
    return turns


def _row_lanes(tile: CTile, threads: ThreadMap) -> tuple[int, ...]:
    lanes = tile.lanes.size
    rows = threads.m.offsets()[:lanes]
    bits = (1 << bit for bit in range(lanes.bit_length() - 1))
    return tuple(bit for bit in bits if all(rows[lane] == rows[lane ^ bit] for lane in range(lanes)))


def _link(step: Step, value: Value, tensor: Tensor | None, vector: int) -> Link:
    if tensor is None:
        return Link(step, value, None, 0)
    itemsize = ITEMSIZE[tensor.dtype]
    return Link(step, value, tensor, min(vector * itemsize, VECTOR_BYTES) if "n" in tensor.modes else itemsize)


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
