"""Plan -> Source: the kernel's text and how to launch it. The template prints; every value it prints is made here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import jinja2

from layoutgen import paths
from layoutgen.algebra import Layout, cute_type
from layoutgen.errors import counted
from layoutgen.plan.model import (
    Advance,
    Copy,
    CopyTile,
    Fetch,
    Guard,
    LoadFragment,
    Operand,
    OperandName,
    OperandRequirement,
    Plan,
    SharedOperand,
    StoreTile,
)
from layoutgen.plan.pipeline import Move
from layoutgen.plan.schedule import raster_words

ParamType = Literal["i32", "i64", "f32", "ptr"]
_ACCESS = re.compile(r";   // ((?:fragment|copy|load|store)_[ab]|read_c|write_d)$")
CURSOR = {"fetch": "next_tile", "fetch_a": "next_a", "fetch_b": "next_b"}
VECTOR_TYPE = {4: "float", 8: "float2", 16: "float4"}


@dataclass(frozen=True, slots=True)
class Param:
    """One kernel parameter: its name in the kernel and its type as the launcher packs it."""

    name: str
    type: ParamType


@dataclass(frozen=True, slots=True)
class Launch:
    """How to launch the kernel; the grid is (tiles_m * tiles_n, 1, 1)."""

    kernel: str
    threads: int
    shared_bytes: int
    params: tuple[Param, ...]


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


def emit(plan: Plan) -> Source:
    """Plan -> Source; the same plan gives the same text, byte for byte."""
    launch = Launch(plan.name, plan.threads.threads, plan.shared_bytes, PARAMS)
    text = _environment().get_template("simt.cu.j2").render(_context(plan, launch))
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


def move_name(step: Move) -> str:
    """The lambda that performs a move: one for each operand and set of guards; the ragged first tile has k."""
    if isinstance(step, StoreTile):
        return f"store_{step.operand}"
    verb = "copy" if isinstance(step, CopyTile) else "load"
    known = {frozenset({"x", "tile"}): "", frozenset({"x", "tile", "k"}): "first_"}
    kind = known.get(step.guards, "".join(f"{guard}_" for guard in sorted(step.guards)) or "unguarded_")
    return f"{verb}_{kind}{step.operand}"


def _const(number: int) -> str:
    """An integer as CuTe's static constant type, as cute_type prints it."""
    return cute_type(Layout(number, 1)).split("<", 1)[1].rsplit(",", 1)[0]


def _using(name: str, layout: Layout, comment: str) -> str:
    return f"using {name} = {cute_type(layout)};   // {comment}: {layout}"


def _requirement(letter: str, modes: str, requirement: OperandRequirement) -> str:
    if requirement.contiguous is None:
        return f"{letter} {modes} of any strides"
    return f"{letter} {modes} contiguous in {requirement.contiguous}, rows on {requirement.align}-byte boundaries"


def _context(plan: Plan, launch: Launch) -> dict[str, object]:
    block_m, block_n, block_k = plan.tile.block
    need = plan.requirements
    a, b = (_operand(plan, operand) for operand in plan.operands)
    views = {"a": a, "b": b}
    outer_m = plan.order.outer == "m"
    counts = {"m": plan.tile.value_mode[0].size, "n": plan.tile.value_mode[1].size}
    outer, inner = ("m", "n") if outer_m else ("n", "m")
    vector_bytes = plan.epilogue.bytes
    bounds = {"m": "row < m", "n": "col < n"}
    return {
        "plan": plan,
        "launch": launch,
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
            f"using BlockM = {_const(block_m)};",
            f"using BlockN = {_const(block_n)};",
            f"using BlockK = {_const(block_k)};",
            *([f"constexpr int kStages = {plan.stages};"] if plan.stages > 1 else []),
            f"constexpr int kGroup = {plan.schedule.group};",
            _using("ThreadM", plan.threads.m, "thread -> m"),
            _using("ThreadN", plan.threads.n, "thread -> n"),
            _using("ValueM", plan.tile.value_mode[0], "value -> m"),
            _using("ValueN", plan.tile.value_mode[1], "value -> n"),
        ],
        "promises": _promises(plan),
        "operands": [a, b],
        "a": a,
        "b": b,
        "cursors": _cursors(plan, views),
        "moves": list(_moves(plan, views)),
        "accesses_of": _accesses(plan),
        "asynchronous": any(not o.copy.atom.through_registers for o in plan.operands),
        "in_parts": _in_parts(plan),
        "fragment_about": f", those of {together} k" if (together := _fragments_together(plan)) > 1 else "",
        "slots": plan.program.slots,
        "slot_type": _const(plan.program.slots),
        "loop_about": _loop_words(plan),
        "raster": {
            **({"fast": "m", "slow": "n"} if plan.schedule.raster == "along_m" else {"fast": "n", "slow": "m"}),
            "about": raster_words(plan.schedule),
        },
        "order": {
            "outer": counts[outer],
            "inner": counts[inner],
            "step": f"outer % 2 ? {counts[inner] - 1} - step : step" if plan.order.serpentine else "step",
            "indices": "outer, inner" if outer_m else "inner, outer",
            "index_m": "outer" if outer_m else "inner",
            "index_n": "inner" if outer_m else "outer",
            "about": f"{outer} outer" + (f", every other turn backwards in {inner}" if plan.order.serpentine else ""),
        },
        "epilogue": {
            "bytes": vector_bytes,
            "type": VECTOR_TYPE[vector_bytes],
            "vector": _const(plan.epilogue.vector),
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


def _accesses(plan: Plan) -> dict[str, list[dict[str, object]]]:
    """Kind of access -> the operands that have it, by name, each with its type of vector."""
    shared = plan.shared_operands
    return {
        "fragment": [{"name": o.name, "type": _asm_type(o.fragment.vector)} for o in shared],
        "load": [
            {"name": o.name, "type": _asm_type(o.copy.read_vector)}
            for o in plan.operands
            if o.copy.atom.through_registers
        ],
        "store": [
            {"name": o.name, "type": _asm_type(o.copy.write_vector)} for o in shared if o.copy.atom.through_registers
        ],
        # Only 16 bytes can pass L1 by (PTX ISA, cp.async).
        "copy": [
            {
                "name": o.name,
                "type": _asm_type(o.copy.write_vector),
                "cache": "cg" if o.copy.write.bytes == 16 else "ca",
            }
            for o in shared
            if not o.copy.atom.through_registers
        ],
    }


def _loop_words(plan: Plan) -> str:
    if plan.stages > 1:
        staged = [each.copy.atom.through_registers for each in plan.operands]
        moved = ["copied"] * (not all(staged)) + ["stored and the next one loaded"] * any(staged)
        return f"multiply one k-tile a turn while the one kStages - 1 ahead is {', or '.join(moved)}"
    if plan.stages == 1:
        return "multiply one k-tile a turn, then fetch the next into its place"
    return "multiply the fragments of one k-tile a turn, then load those of the next"


def _operand(plan: Plan, operand: Operand) -> dict[str, object]:
    upper, copy, x = operand.name.upper(), operand.copy, operand.x
    direct = not isinstance(operand, SharedOperand)
    strides = {
        None: f"{operand.name}_{x}, {operand.name}_k",
        "k": f"{operand.name}_{x}, _1{{}}",
        x: f"_1{{}}, {operand.name}_k",
    }
    along = {"x": copy.element_x.size, "k": copy.element_k.size}
    by_x = copy.write_mode == "x" if isinstance(copy, Copy) else copy.read_mode == "x"
    staging_order = "_1," + _const(along["x"]) if by_x else _const(along["k"]) + ",_1"
    view: dict[str, object] = {
        "name": operand.name,
        "upper": upper,
        "x": x,
        "x_upper": x.upper(),
        "stride": f"make_stride({strides[operand.contiguous]})",
        "staging": f"Shape<{_const(along['x'])},{_const(along['k'])}>,Stride<{staging_order}>",
        "participants": copy.participants,
        "read_type": VECTOR_TYPE[copy.read_vector * 4],
        "read_element_i": _scaled("i", copy.read_vector if copy.read_mode == "x" else 1),
        "read_element_j": _scaled("j", copy.read_vector if copy.read_mode == "k" else 1),
        "read_to": _elements("tCr" + upper if direct else f"t{upper}r{upper}", copy),
        "value_count": _const(plan.tile.value_mode[0 if x == "m" else 1].size),
    }
    types = [
        _using(f"Copy{upper}ThreadX", copy.thread_x, f"thread -> {x}"),
        _using(f"Copy{upper}ThreadK", copy.thread_k, "thread -> k"),
        _using(f"Copy{upper}ElementX", copy.element_x, f"i -> {x}"),
        _using(f"Copy{upper}ElementK", copy.element_k, "j -> k"),
    ]
    loads = f"{copy.read_vector * 4}-byte loads"
    if not isinstance(operand, SharedOperand):
        return view | {
            "shared": False,
            "copy_about": f"{upper}: straight to the registers of the thread that multiplies, by {loads}",
            "registers": f"tCr{upper}",
            "registers_about": "(value, k), the fragments of a k-tile",
            "write_type": "float",
            "types": types,
        }
    staged, write = operand.copy.atom.through_registers, VECTOR_TYPE[operand.copy.write.bytes]
    fragment = VECTOR_TYPE[operand.fragment.load.bytes]
    return view | {
        "shared": True,
        "copy_about": f"{upper}: through registers, {loads} and {operand.copy.write.bytes}-byte stores"
        if staged
        else f"{upper}: cp.async, {operand.copy.write.bytes} bytes a piece",
        "registers": f"t{upper}r{upper}" if staged else "",
        "registers_about": "(x, k) on the way through registers",
        "write_type": write,
        "fragment_type": fragment,
        "vectors": operand.fragment.vectors,
        "fragment_stride": f",Stride<{_const(plan.program.slots)},_1>" if operand.fragment.mode == "k" else "",
        "fragment_turns": _fragments_together(plan) // operand.fragment.depth,
        "fragment_k": _divided("k_index", operand.fragment.depth),
        "fragment_slot": _divided("slot", operand.fragment.depth),
        "types": [
            _using(f"Smem{upper}", operand.shared.layout, f"({x}, k, stage) -> float"),
            f"constexpr int kSmem{upper} = {operand.shared.bytes // 4};   // floats, all stages",
            _using(f"Fragment{upper}Thread", operand.fragment.load.base, "thread -> float"),
            _using(f"Fragment{upper}", operand.fragment.load.steps, f"(vector, k, stage) -> {fragment}"),
            *types,
            _using(f"Copy{upper}Thread", operand.copy.write.base, "thread -> float"),
            _using(f"Copy{upper}", operand.copy.write.steps, f"(i, j, stage) -> {write}"),
        ],
    }


def _asm_type(width: int) -> dict[str, str]:
    """Elements per access -> the pieces of an inline instruction that moves a vector of them.

    last, after_last: the placeholders of the operands that follow its registers. parts, in_place: its elements as references.
    """
    registers = [f"%{i}" for i in range(width)]
    members = [f"to.{c}" for c in "xyzw"[:width]] if width > 1 else ["to"]
    return {
        "name": VECTOR_TYPE[4 * width],
        "suffix": {1: ".f32", 2: ".v2.f32", 4: ".v4.f32"}[width],
        "registers": "{" + ", ".join(registers) + "}" if width > 1 else registers[0],
        "bytes": str(4 * width),
        "last": f"%{width}",
        "outputs": ", ".join(f'"=f"({member})' for member in members),
        "inputs": ", ".join(f'"f"({member.replace("to", "from")})' for member in members),
        "parts": ", ".join(f"float& {c}" for c in "xyzw"[:width]),
        "in_place": ", ".join(f'"+f"({c})' for c in "xyzw"[:width]),
        "after_last": f"%{width + 1}",
    }


def _elements(registers: str, copy: Fetch) -> str:
    """The elements that a global access (i, j) brings, in a tensor of registers (x, k)."""
    i, j = (
        _scaled(index, copy.read_vector if copy.read_mode == mode else 1)
        for index, mode in (("i", "x"), ("j", "k"))
    )
    further = [f" + {each}" if each else "" for each in range(copy.read_vector)]
    return ", ".join(
        f"{registers}({i}{each}, {j})" if copy.read_mode == "x" else f"{registers}({i}, {j}{each})" for each in further
    )


def _scaled(index: str, by: int) -> str:
    return index if by == 1 else f"{index} * {by}"


def _divided(index: str, by: int) -> str:
    return index if by == 1 else f"{index} / {by}"


def _fragments_together(plan: Plan) -> int:
    """How many k the program loads fragments for at a time."""
    return max((step.count for step in plan.program.steps if isinstance(step, LoadFragment)), default=1)


def _cursors(plan: Plan, views: dict[str, dict[str, object]]) -> list[dict[str, object]]:
    """The lambdas that move on to the next k-tile to fetch: of both operands, or one of each."""
    steps = dict.fromkeys(step for step in plan.program.steps if isinstance(step, Advance))
    return [
        {"name": CURSOR[step.cursor], "left": _left(plan, moved[0]), "operands": [views[name] for name in moved]}
        for step in steps
        if (moved := [operand.name for operand in plan.operands if step.fetches(operand.name)])
    ]


def _left(plan: Plan, operand: OperandName) -> str:
    """The variable that counts the k-tiles of an operand that are left to fetch."""
    return "tiles_left" if Advance("fetch") in plan.program.steps else f"tiles_left_{operand}"


def _in_parts(plan: Plan) -> set[str]:
    """The moves that the program makes a few pieces at a time."""
    pieces: dict[str, set[tuple[int, int]]] = {}
    for step in plan.program.steps:
        if isinstance(step, Move):
            pieces.setdefault(move_name(step), set()).add((step.first, step.last))
    return {name for name, parts in pieces.items() if len(parts) > 1}


def _moves(plan: Plan, views: dict[str, dict[str, object]]) -> Iterator[dict[str, object]]:
    """The distinct moves of the program, in the order of first use."""
    seen: set[str] = set()
    for step in plan.program.steps:
        if not isinstance(step, Move):
            continue
        name = move_name(step)
        if name in seen:
            continue
        seen.add(name)
        operand = plan.a if step.operand == "a" else plan.b
        yield _move(plan, operand, step, name, views[step.operand])


def _move(
    plan: Plan, operand: Operand, step: Move, name: str, view: dict[str, object]
) -> dict[str, object]:
    copy, upper = operand.copy, operand.name.upper()
    guards: frozenset[Guard] = frozenset() if isinstance(step, StoreTile) else step.guards
    width, mode = copy.read_vector, copy.read_mode
    if isinstance(step, StoreTile) and isinstance(copy, Copy):
        width, mode = copy.write_vector, copy.write_mode
    along = {"x": copy.element_x.size, "k": copy.element_k.size}
    first_k = f"k_{operand.name} + Copy{upper}ElementK{{}}({view['read_element_j']})"
    row = f"x_{operand.name} + Copy{upper}ElementX{{}}({view['read_element_i']})"
    tests = []
    if {"x", "tile"} <= guards:
        tests.append(f"{row} < rows_{operand.name}")
    elif "x" in guards:
        tests.append(f"{row} < {operand.x}")
    elif "tile" in guards:
        tests.append(f"{_left(plan, operand.name)} > 0")
    if "k" in guards:
        tests.append(f"{first_k} >= 0")
    predicate = " && ".join(tests)
    about = {
        "CopyTile": f"start copying {upper}'s next k-tile into the write stage",
        "LoadTile": f"load {upper}'s next k-tile into registers",
        "StoreTile": f"store {upper}'s k-tile from registers into the write stage",
    }[type(step).__name__]
    return {
        "kind": type(step).__name__,
        "name": name,
        "operand": view,
        "about": about + ("; what lies before k = 0 is zero" if "k" in guards else ""),
        "in_parts": name in _in_parts(plan),
        "participants_only": copy.participants < plan.threads.threads,
        "pieces_x": along["x"] // (width if mode == "x" else 1),
        "pieces_k": along["k"] // (width if mode == "k" else 1),
        "predicate": predicate,
        "condition": f"if ({predicate}) " if predicate else "",
        "zero_fill": "k" in guards,
    }
