"""Plan -> what the template prints of A and B: their types, their accesses, and the moves that the program makes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from layoutgen.algebra import ComposedLayout, Layout, cute_type
from layoutgen.emit_accesses import ELEMENT, WORDS, vector_type
from layoutgen.plan.model import (
    Access,
    Advance,
    AtomFragment,
    Copy,
    CopyTile,
    Fetch,
    Guard,
    LoadFragment,
    Operand,
    OperandName,
    Plan,
    Shared,
    SharedOperand,
    StoreTile,
)
from layoutgen.plan.pipeline import Move
from layoutgen.plan.storage import ITEMSIZE

CURSOR = {"fetch": "next_tile", "fetch_a": "next_a", "fetch_b": "next_b"}


def const(number: int) -> str:
    """An integer as CuTe's static constant type, as cute_type prints it."""
    return cute_type(Layout(number, 1)).split("<", 1)[1].rsplit(",", 1)[0]


def using(name: str, layout: Layout | ComposedLayout, comment: str) -> str:
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
    upper, copy, x, dtype = operand.name.upper(), operand.copy, operand.x, operand.dtype
    itemsize, element = ITEMSIZE[dtype], ELEMENT[operand.dtype]
    gathered = element != "float" and copy.atom.through_registers
    direct = not isinstance(operand, SharedOperand)
    strides = {
        None: f"{operand.name}_{x}, {operand.name}_k",
        "k": f"{operand.name}_{x}, _1{{}}",
        x: f"_1{{}}, {operand.name}_k",
    }
    along = {"x": copy.element_x.size, "k": copy.element_k.size}
    i = _scaled("i", copy.read_vector if copy.read_mode == "x" else 1)
    j = _scaled("j", copy.read_vector if copy.read_mode == "k" else 1)
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
        "type": element,
        "gathered": gathered,
        "staged": WORDS[itemsize] if gathered and itemsize < 8 else element,
        "read_width": const(copy.read_vector),
        "read_type": vector_type(dtype, copy.read_vector * itemsize),
        "read_element_i": i,
        "read_element_j": j,
        "read_from": _global_element(operand, i, j),
        "read_to": _gathered_element(upper, copy)
        if gathered
        else _elements("tCr" + upper if direct else f"t{upper}r{upper}", copy),
        "value_count": const(plan.tile.value_mode[0 if x == "m" else 1].size),
    }
    types = [
        using(f"Copy{upper}ThreadX", copy.thread_x, f"thread -> {x}"),
        using(f"Copy{upper}ThreadK", copy.thread_k, "thread -> k"),
        using(f"Copy{upper}ElementX", copy.element_x, f"i -> {x}"),
        using(f"Copy{upper}ElementK", copy.element_k, "j -> k"),
    ]
    loads = f"{copy.read_vector * itemsize}-byte loads"
    if not isinstance(operand, SharedOperand):
        return view | {
            "shared": False,
            "copy_about": f"{upper}: straight to the registers of the thread that multiplies, by {loads}",
            "registers": f"tCr{upper}",
            "registers_about": "(value, k), the fragments of a k-tile",
            "write_type": "float",
            "types": types,
        }
    staged, write = operand.copy.atom.through_registers, vector_type(dtype, operand.copy.write.bytes)
    return view | {
        "shared": True,
        "copy_about": f"{upper}: through registers, {loads} and {operand.copy.write.bytes}-byte stores"
        if staged
        else f"{upper}: cp.async, {operand.copy.write.bytes} bytes a piece",
        "registers": f"t{upper}r{upper}" if staged else "",
        "registers_about": "(x, k) on the way through registers",
        "write_type": write,
        "write_to": address("write", operand.copy.write, f"Copy{upper}", "i, j", write),
        **(atom_view if plan.uses_atoms else fragment_view)(plan, operand),
        "types": [
            using(f"Smem{upper}", _swizzled(operand.shared), f"({x}, k, stage) -> {element}"),
            f"constexpr int kSmem{upper} = {operand.shared.bytes // itemsize};   // {element}s, all stages",
            *_access_types(
                operand.fragment.load, f"Fragment{upper}", element, "(vector, k, stage)", _fragment_type(operand)
            ),
            *types,
            *_access_types(operand.copy.write, f"Copy{upper}", element, "(i, j, stage)", write),
        ],
    }


def _swizzled(shared: Shared) -> Layout | ComposedLayout:
    return ComposedLayout(shared.swizzle, 0, shared.layout) if shared.swizzle.bits else shared.layout


def _flips(access: Access) -> Layout | None:
    """By which bits a piece of the access flips its thread's address; None where none does."""
    return access.flips if access.flips is not None and any(access.flips.flat_stride) else None


def _access_types(access: Access, name: str, element: str, modes: str, vector: str) -> list[str]:
    """An access's layouts as types."""
    flips = _flips(access)
    return [
        using(f"{name}Thread", access.base, f"thread -> {element}"),
        using(name, access.steps, f"{modes} -> {vector}"),
        *([using(f"{name}Flips", flips, f"{modes} -> {vector}, by exclusive or")] if flips else []),
    ]


def address(register: str, access: Access, name: str, modes: str, vector: str) -> str:
    """Where in shared memory a piece lies, from the thread's address in a register of that name (and the operand's)."""
    operand = access.name.rpartition("_")[2]
    thread = f"{register}_{operand}"
    if (flips := _flips(access)) is not None:
        first, second = modes.split(", ")
        at = [each for mode, each in zip(flips, (f"{first}, 0", f"0, {second}"), strict=False) if any(mode.flat_stride)]
        flipped = " ^ ".join(f"{name}Flips{{}}({each}, 0) * sizeof({vector})" for each in at)
        thread = f"({thread} ^ {flipped})"
    return f"{thread} + {name}{{}}({modes}, 0) * sizeof({vector})"


def _fragment_type(operand: SharedOperand) -> str:
    """What a fragment's load brings at an address: a vector, or a row of a matrix."""
    load = operand.fragment.load
    return vector_type(operand.dtype, load.bytes) if load.opcode == "ld.shared" else "uint128_t"


def fragment_view(plan: Plan, operand: SharedOperand) -> dict[str, object]:
    """Scalar fragments."""
    fragment = operand.fragment
    return {
        "fragment_type": _fragment_type(operand),
        "vectors": fragment.vectors,
        "fragment_stride": f",Stride<{const(plan.program.slots)},_1>" if fragment.mode == "k" else "",
        "fragment_turns": fragments_together(plan) // fragment.depth,
        "fragment_k": _divided("k_index", fragment.depth),
        "fragment_slot": _divided("slot", fragment.depth),
    }


def atom_view(plan: Plan, operand: SharedOperand) -> dict[str, object]:
    """The fragments of MMA atoms."""
    fragment, upper = operand.fragment, operand.name.upper()
    assert isinstance(fragment, AtomFragment)
    registers = [
        f"tCr{upper}({_scaled('v', fragment.registers)}{f' + {each}' if each else ''}, slot)"
        for each in range(fragment.registers)
    ]
    vector = _fragment_type(operand)
    return {
        "fragment_type": vector,
        "fragment_from": address("read", fragment.load, f"Fragment{upper}", "v, k_index", vector),
        "fragment_to": ", ".join(registers),
        "fragment_about": f"{fragment.vectors} {fragment.load.opcode} of {operand.name.upper()}",
        "vectors": fragment.vectors,
        "register": "double" if operand.dtype == "f64" else "uint32_t",
        "of_atom": const(fragment.of_atom),
        "atoms": const(fragment.atoms),
        "atom_count": fragment.atoms,
    }


def atom_registers(plan: Plan) -> dict[str, object]:
    """The registers of atom (i, j): of its accumulators, in the fragment's order, and of A and B."""
    m, n, _ = plan.atom.layouts.shape_mnk
    rows, pair = m // 8, 2
    row = [f"{_scaled('i', rows)}{f' + {each}' if each else ''}" for each in range(rows)]
    column = [f"{_scaled('j', pair)}{f' + {each}' if each else ''}" for each in range(pair)]
    tensor = "tCrC_bits" if plan.accumulate == "s32" else "tCrP" if plan.terms > 1 else "tCrC"
    # CuTe's traits rename what its mma_sm90.hpp has in a namespace.
    name = re.sub(r"^SM90_", "SM90::MMA_", plan.atom.name)
    found: dict[str, object] = {
        "name": name,
        "tensor": tensor,
        "c": ", ".join(f"{tensor}({r}, {c})" for r in row for c in column),
    }
    for operand, atom in zip(plan.shared_operands, "ij", strict=True):
        fragment = operand.fragment
        assert isinstance(fragment, AtomFragment)
        found[operand.name] = ", ".join(
            f"tCr{operand.name.upper()}(make_coord({each}, {atom}), slot)" for each in range(fragment.of_atom)
        )
    return found


def _elements(registers: str, copy: Fetch) -> str:
    """The elements that a global access (i, j) brings, in a tensor of registers (x, k)."""
    i, j = (
        _scaled(index, copy.read_vector if copy.read_mode == mode else 1) for index, mode in (("i", "x"), ("j", "k"))
    )
    further = [f" + {each}" if each else "" for each in range(copy.read_vector)]
    return ", ".join(
        f"{registers}({i}{each}, {j})" if copy.read_mode == "x" else f"{registers}({i}, {j}{each})" for each in further
    )


def _gathered_element(upper: str, copy: Fetch) -> str:
    """Element v of what a global access (i, j) brings, in a tensor of registers (x, k)."""
    i, j = (
        _scaled(index, copy.read_vector if copy.read_mode == mode else 1) for index, mode in (("i", "x"), ("j", "k"))
    )
    return f"t{upper}r{upper}({i} + v, {j})" if copy.read_mode == "x" else f"t{upper}r{upper}({i}, {j} + v)"


def _global_element(operand: Operand, i: str, j: str) -> str:
    """The first element of a thread's global access (i, j)."""
    name, upper, x = operand.name, operand.name.upper(), operand.x
    at_x, at_k = f"Copy{upper}ElementX{{}}({i})", f"Copy{upper}ElementK{{}}({j})"
    if operand.contiguous is None:
        return f"t{upper}g{upper}.data()[{at_x} * {name}_{x} + {at_k} * {name}_k]"
    return f"t{upper}g{upper}({at_x}, {at_k})"


def _scaled(index: str, by: int) -> str:
    return index if by == 1 else f"{index} * {by}"


def _divided(index: str, by: int) -> str:
    return index if by == 1 else f"{index} / {by}"


def fragments_together(plan: Plan) -> int:
    """How many k the program loads fragments for at a time."""
    return max((step.count for step in plan.program.steps if isinstance(step, LoadFragment)), default=1)


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
