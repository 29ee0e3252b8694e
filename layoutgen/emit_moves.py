"""Plan -> what the template prints of A and B: their types, their accesses, and the moves that the program makes."""

from __future__ import annotations

from collections.abc import Iterator

from layoutgen.algebra import Layout, cute_type
from layoutgen.plan.model import (
    Advance,
    Copy,
    CopyTile,
    Fetch,
    Guard,
    LoadFragment,
    Operand,
    OperandName,
    Plan,
    SharedOperand,
    StoreTile,
)
from layoutgen.plan.pipeline import Move

CURSOR = {"fetch": "next_tile", "fetch_a": "next_a", "fetch_b": "next_b"}
VECTOR_TYPE = {4: "float", 8: "float2", 16: "float4"}


def const(number: int) -> str:
    """An integer as CuTe's static constant type, as cute_type prints it."""
    return cute_type(Layout(number, 1)).split("<", 1)[1].rsplit(",", 1)[0]


def using(name: str, layout: Layout, comment: str) -> str:
    """A layout as a static type with a name."""
    return f"using {name} = {cute_type(layout)};   // {comment}: {layout}"


def move_name(step: Move) -> str:
    """The lambda that performs a move: one for each operand and set of guards; the ragged first tile has k."""
    if isinstance(step, StoreTile):
        return f"store_{step.operand}"
    verb = "copy" if isinstance(step, CopyTile) else "load"
    known = {frozenset({"x", "tile"}): "", frozenset({"x", "tile", "k"}): "first_"}
    kind = known.get(step.guards, "".join(f"{guard}_" for guard in sorted(step.guards)) or "unguarded_")
    return f"{verb}_{kind}{step.operand}"


def operand_view(plan: Plan, operand: Operand) -> dict[str, object]:
    """What the template prints of an operand, whichever move is made."""
    upper, copy, x = operand.name.upper(), operand.copy, operand.x
    direct = not isinstance(operand, SharedOperand)
    strides = {
        None: f"{operand.name}_{x}, {operand.name}_k",
        "k": f"{operand.name}_{x}, _1{{}}",
        x: f"_1{{}}, {operand.name}_k",
    }
    along = {"x": copy.element_x.size, "k": copy.element_k.size}
    by_x = copy.write_mode == "x" if isinstance(copy, Copy) else copy.read_mode == "x"
    staging_order = "_1," + const(along["x"]) if by_x else const(along["k"]) + ",_1"
    view: dict[str, object] = {
        "name": operand.name,
        "upper": upper,
        "x": x,
        "x_upper": x.upper(),
        "any_strides": operand.contiguous is None,
        "stride": f"make_stride({strides[operand.contiguous]})",
        "staging": f"Shape<{const(along['x'])},{const(along['k'])}>,Stride<{staging_order}>",
        "participants": copy.participants,
        "read_type": VECTOR_TYPE[copy.read_vector * 4],
        "read_element_i": _scaled("i", copy.read_vector if copy.read_mode == "x" else 1),
        "read_element_j": _scaled("j", copy.read_vector if copy.read_mode == "k" else 1),
        "read_to": _elements("tCr" + upper if direct else f"t{upper}r{upper}", copy),
        "value_count": const(plan.tile.value_mode[0 if x == "m" else 1].size),
    }
    types = [
        using(f"Copy{upper}ThreadX", copy.thread_x, f"thread -> {x}"),
        using(f"Copy{upper}ThreadK", copy.thread_k, "thread -> k"),
        using(f"Copy{upper}ElementX", copy.element_x, f"i -> {x}"),
        using(f"Copy{upper}ElementK", copy.element_k, "j -> k"),
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
        "fragment_stride": f",Stride<{const(plan.program.slots)},_1>" if operand.fragment.mode == "k" else "",
        "fragment_turns": fragments_together(plan) // operand.fragment.depth,
        "fragment_k": _divided("k_index", operand.fragment.depth),
        "fragment_slot": _divided("slot", operand.fragment.depth),
        "types": [
            using(f"Smem{upper}", operand.shared.layout, f"({x}, k, stage) -> float"),
            f"constexpr int kSmem{upper} = {operand.shared.bytes // 4};   // floats, all stages",
            using(f"Fragment{upper}Thread", operand.fragment.load.base, "thread -> float"),
            using(f"Fragment{upper}", operand.fragment.load.steps, f"(vector, k, stage) -> {fragment}"),
            *types,
            using(f"Copy{upper}Thread", operand.copy.write.base, "thread -> float"),
            using(f"Copy{upper}", operand.copy.write.steps, f"(i, j, stage) -> {write}"),
        ],
    }


def _asm_type(width: int) -> dict[str, str]:
    """Elements per access -> the pieces of an inline instruction that moves a vector of them.

    last, after_last: the placeholders of the operands that follow its registers. parts, in_place: its elements as
    references.
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
        _scaled(index, copy.read_vector if copy.read_mode == mode else 1) for index, mode in (("i", "x"), ("j", "k"))
    )
    further = [f" + {each}" if each else "" for each in range(copy.read_vector)]
    return ", ".join(
        f"{registers}({i}{each}, {j})" if copy.read_mode == "x" else f"{registers}({i}, {j}{each})" for each in further
    )


def _scaled(index: str, by: int) -> str:
    return index if by == 1 else f"{index} * {by}"


def _divided(index: str, by: int) -> str:
    return index if by == 1 else f"{index} / {by}"


def fragments_together(plan: Plan) -> int:
    """How many k the program loads fragments for at a time."""
    return max((step.count for step in plan.program.steps if isinstance(step, LoadFragment)), default=1)


def accesses(plan: Plan) -> dict[str, list[dict[str, object]]]:
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


def cursors(plan: Plan, views: dict[str, dict[str, object]]) -> list[dict[str, object]]:
    """The lambdas that move on to the next k-tile to fetch: of both operands, or one of each."""
    steps = dict.fromkeys(step for step in plan.program.steps if isinstance(step, Advance))
    return [
        {
            "name": CURSOR[step.cursor],
            "left": _left(plan, step.operands[0]),
            "operands": [views[name] for name in step.operands],
        }
        for step in steps
        if step.operands
    ]


def _left(plan: Plan, operand: OperandName) -> str:
    """The variable that counts the k-tiles of an operand that are left to fetch."""
    return "tiles_left" if Advance("fetch") in plan.program.steps else f"tiles_left_{operand}"


def in_parts(plan: Plan) -> set[str]:
    """The moves that the program does not always make whole."""
    return {
        move_name(step)
        for step in plan.program.steps
        if isinstance(step, Move) and (step.first, step.last) != (0, _pieces(plan, step))
    }


def _pieces(plan: Plan, step: Move) -> int:
    """The accesses of a thread for a whole k-tile."""
    return (
        plan.in_shared(step.operand).copy.writes
        if isinstance(step, StoreTile)
        else plan.operand(step.operand).copy.reads
    )


def moves(plan: Plan, views: dict[str, dict[str, object]]) -> Iterator[dict[str, object]]:
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


def _move(plan: Plan, operand: Operand, step: Move, name: str, view: dict[str, object]) -> dict[str, object]:
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
        "in_parts": name in in_parts(plan),
        "participants_only": copy.participants < plan.threads.threads,
        "pieces_x": along["x"] // (width if mode == "x" else 1),
        "pieces_k": along["k"] // (width if mode == "k" else 1),
        "predicate": predicate,
        "condition": f"if ({predicate}) " if predicate else "",
        "zero_fill": "k" in guards,
    }
