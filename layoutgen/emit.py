"""Plan -> Source: the kernel's text and how to launch it. The template prints; every value it prints is made here."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import jinja2

from layoutgen import paths
from layoutgen.algebra import flatten
from layoutgen.emit_accesses import ELEMENT, accesses, reads_c_apart, vector_type
from layoutgen.emit_epilogue import chain_view
from layoutgen.emit_moves import (
    CURSOR,
    atom_registers,
    const,
    cursors,
    fragments_together,
    in_parts,
    move_name,
    moves,
    operand_view,
    using,
)
from layoutgen.emit_split import split_view
from layoutgen.emitted import require_emitted
from layoutgen.errors import counted
from layoutgen.plan.model import OperandRequirement, Plan
from layoutgen.plan.order import order_words
from layoutgen.plan.schedule import raster_words
from layoutgen.plan.storage import ITEMSIZE, SWIZZLE_BYTES

ParamType = Literal["i32", "i64", "f32", "f64", "ptr"]
_ACCESS = re.compile(r";   // ((?:fragment|copy|load|store)_[ab]|(?:read|write)_\w+)$")


@dataclass(frozen=True, slots=True)
class Param:
    """One kernel parameter: its name in the kernel and its type as the launcher packs it."""

    name: str
    type: ParamType


@dataclass(frozen=True, slots=True)
class Launch:
    """How to launch the kernel; the grid is (tiles_m * tiles_n, 1, 1), or as `plan.schedule.Streams` says.

    workspace_bytes: for each share, what it leaves of a tile that another block began.
    """

    kernel: str
    threads: int
    shared_bytes: int
    params: tuple[Param, ...]
    workspace_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel as text, with its launch description.

    access_lines: line of the text, from 1 -> the access whose instructions come from it: fragment_a, copy_b, write_d ..
    """

    name: str
    variant: str
    text: str
    launch: Launch

    @property
    def access_lines(self) -> dict[int, str]:
        return {
            number: match[1]
            for number, line in enumerate(self.text.splitlines(), start=1)
            if (match := _ACCESS.search(line))
        }


PARAMS = tuple(
    Param(name, kind)  # type: ignore[arg-type]
    for name, kind in (
        ("m", "i32"), ("n", "i32"), ("k", "i32"),
        ("A", "ptr"), ("a_m", "i64"), ("a_k", "i64"),
        ("B", "ptr"), ("b_n", "i64"), ("b_k", "i64"),
        ("C", "ptr"), ("c_m", "i64"), ("D", "ptr"), ("d_m", "i64"),
        ("alpha", "f32"), ("beta", "f32"),
    )
)  # fmt: skip


SCALAR = {"f32": "float", "f64": "double", "i32": "int32_t"}
STREAM_PARAMS = (Param("streams", "i32"), Param("streamed", "i32"), Param("partial", "ptr"), Param("flags", "ptr"))


def emit(plan: Plan) -> Source:
    """Plan -> Source; the same plan gives the same text, byte for byte. Raises BuildError for an AMD architecture's."""
    require_emitted(plan)
    params = tuple(replace(each, type=plan.scalar) if each.type == "f32" else each for each in PARAMS)
    for tensor in plan.epilogue.tensors:
        pitch = (Param(f"{tensor.name}_m", "i64"),) if tensor.modes == "mn" else ()
        params += (Param(f"{tensor.name}_data", "ptr"), *pitch)
    launch = Launch(plan.name, plan.threads.threads, plan.shared_bytes, params)
    if plan.schedule.kind == "stream_k":
        values = plan.tile.block[0] * plan.tile.block[1]
        launch = replace(launch, params=params + STREAM_PARAMS, workspace_bytes=values * ITEMSIZE[plan.accumulate])
    text = _environment().get_template("kernel.cu.j2").render(_context(plan, launch))
    return Source(plan.name, plan.variant, text, launch)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(paths.templates()),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.globals["kind_of"] = lambda step: type(step).__name__
    environment.globals["move_name"] = move_name
    environment.globals["cursor_name"] = CURSOR
    return environment


def _requirement(letter: str, modes: str, requirement: OperandRequirement) -> str:
    if requirement.contiguous is None:
        return f"{letter} {modes} of any strides"
    return f"{letter} {modes} contiguous in {requirement.contiguous}, rows on {requirement.align}-byte boundaries"


def _context(plan: Plan, launch: Launch) -> dict[str, object]:
    block_m, block_n, block_k = plan.tile.block
    need = plan.requirements
    a, b = (operand_view(plan, operand) for operand in plan.operands)
    views = {"a": a, "b": b}
    order = _order_view(plan)
    vector_bytes = plan.epilogue.bytes
    bounds = {"m": "row < m", "n": "col < n"}
    return {
        "plan": plan,
        "launch": launch,
        "family_template": "mma.cu.j2" if plan.uses_atoms else "simt.cu.j2",
        "headers": _headers(plan),
        "types_about": _types_about(plan),
        "accumulator": ELEMENT[plan.accumulate],
        "zero": "0.f" if plan.scalar == "f32" else "0",
        "scalar": SCALAR[plan.scalar],
        "atom": atom_registers(plan) if plan.uses_atoms else {},
        "exchange": [{"lane": 1 << bit, "column": 2 << bit} for bit in range(plan.epilogue.exchange.bit_length() - 1)],
        "c_type": ELEMENT[plan.dtype],
        "smem_align": SWIZZLE_BYTES if plan.uses_atoms else 16,
        "takes": [
            _requirement("A", "(m,k)", need.a),
            _requirement("B", "(n,k)", need.b),
            _requirement("C and D", "(m,n)", need.c),
        ],
        "block": f"tile {block_m}x{block_n}x{block_k}, {plan.threads.threads} threads, "
        + (
            f"{counted(plan.stages, 'stage')}, {plan.shared_bytes} bytes of shared memory"
            if plan.stages
            else "no shared memory"
        ),
        "tile_types": [
            f"using BlockM = {const(block_m)};",
            f"using BlockN = {const(block_n)};",
            f"using BlockK = {const(block_k)};",
            *([f"constexpr int kStages = {plan.stages};"] if plan.stages > 1 else []),
            f"constexpr int kGroup = {plan.schedule.group};",
            using("ThreadM", plan.threads.m, "thread -> m"),
            using("ThreadN", plan.threads.n, "thread -> n"),
            using("ValueM", plan.tile.value_mode[0], "value -> m"),
            using("ValueN", plan.tile.value_mode[1], "value -> n"),
            *(
                [
                    using("StoreThreadN", plan.epilogue.thread_n, "thread -> n that it stores"),
                    using("StoreValueN", plan.epilogue.value_n, "stored value -> n"),
                ]
                if plan.epilogue.exchange > 1
                else []
            ),
            order["type"],
        ],
        "promises": _promises(plan),
        "streams": plan.schedule.kind == "stream_k",
        "operands": [a, b],
        "a": a,
        "b": b,
        "cursors": cursors(plan, views),
        "moves": list(moves(plan, views)),
        "accesses_of": accesses(plan),
        "asynchronous": any(not o.copy.atom.through_registers for o in plan.operands),
        "in_parts": in_parts(plan),
        "fragment_about": f", those of {together} k" if (together := fragments_together(plan)) > 1 else "",
        "slots": plan.program.slots,
        "slot_type": const(plan.program.slots),
        "loop_about": _loop_words(plan),
        "raster": {
            **({"fast": "m", "slow": "n"} if plan.schedule.raster == "along_m" else {"fast": "n", "slow": "m"}),
            "about": raster_words(plan.schedule),
        },
        "order": order,
        "chain": chain_view(plan),
        "split": split_view(plan),
        "epilogue": {
            "bytes": vector_bytes,
            "type": vector_type(plan.dtype, vector_bytes),
            "thread_n": "StoreThreadN" if plan.epilogue.exchange > 1 else "ThreadN",
            "value_n": "StoreValueN" if plan.epilogue.exchange > 1 else "ValueN",
            "reads_apart": reads_c_apart(plan),
            "c_value": "rC(v)" if ELEMENT[plan.dtype] == SCALAR[plan.scalar] else f"{SCALAR[plan.scalar]}(rC(v))",
            "vector": const(plan.epilogue.vector),
            "guard": " && ".join(bounds[mode] for mode in ("m", "n") if mode in plan.epilogue.guards),
        },
    }


def _promises(plan: Plan) -> list[str]:
    threads = plan.threads.threads
    promises = [
        f"size(ThreadM{{}}) == {threads} && size(ThreadN{{}}) == {threads}",
        f"{threads} * size(ValueM{{}}) * size(ValueN{{}}) == BlockM{{}} * BlockN{{}}",
    ]
    for operand in plan.shared_operands:
        letter, copy = operand.name.upper(), operand.copy
        promises += [
            f"cosize_v<Smem{letter}> <= kSmem{letter}",
            f"{copy.participants} * size(Copy{letter}ElementX{{}}) * size(Copy{letter}ElementK{{}})"
            f" == Block{operand.x.upper()}{{}} * BlockK{{}}",
        ]
    return promises


def _headers(plan: Plan) -> list[str]:
    swizzled = any(each.shared.swizzle.bits for each in plan.shared_operands)
    atom = [f"cute/arch/mma_sm{plan.atom.arch}.hpp"] if plan.uses_atoms else []
    return (["cute/swizzle.hpp", "cute/swizzle_layout.hpp"] if swizzled else []) + atom


def _types_about(plan: Plan) -> str:
    """The types of the operands, and of the sums where they are not the same."""
    if not plan.uses_atoms:
        return plan.dtype
    inputs = " and ".join(dict.fromkeys(each.dtype for each in plan.operands))
    return f"{inputs}, D in {plan.dtype}, summed in {plan.accumulate} by {plan.atom.name}"


def _order_view(plan: Plan) -> dict[str, object]:
    """The loops over an issue order, outermost first, and the coordinate of `Order` inside them."""
    layout, indices = plan.order.layout, ["step"]
    loops = [("step", layout.size)]
    if plan.order.serpentine:
        layout = flatten(layout)
        loops = [(f"i{mode}", extent) for mode, extent in enumerate(layout.flat_shape)]
        indices = [_reflected(loops[mode:]) for mode in range(len(loops))]
    return {
        "type": using(
            "Order",
            layout,
            "step -> atom of a warp's tile, (atom_m, atom_n)"
            if plan.uses_atoms
            else "step -> value of a thread's tile, (value_m, value_n)",
        ),
        "loops": [
            {"indent": "  " * depth, "index": index, "extent": extent}
            for depth, (index, extent) in enumerate(reversed(loops))
        ],
        "indent": "  " * len(loops),
        "index": ", ".join(indices),
        "about": order_words(plan.order),
    }


def _reflected(loops: list[tuple[str, int]]) -> str:
    """The index of the first of loops, innermost first: it runs backwards in every other turn of those around it."""
    (name, extent), turns, around = loops[0], [], 1
    for outer, count in loops[1:]:
        turns += [outer] * (around % 2)
        around *= count
    turn = " + ".join(turns)
    return f"{f'({turn})' if len(turns) > 1 else turn} % 2 ? {extent - 1} - {name} : {name}" if turns else name


def _loop_words(plan: Plan) -> str:
    if plan.stages > 1:
        staged = [each.copy.atom.through_registers for each in plan.operands]
        moved = ["copied"] * (not all(staged)) + ["stored and the next one loaded"] * any(staged)
        return f"multiply one k-tile a turn while the one kStages - 1 ahead is {', or '.join(moved)}"
    if plan.stages == 1:
        return "multiply one k-tile a turn, then fetch the next into its place"
    return "multiply the fragments of one k-tile a turn, then load those of the next"
