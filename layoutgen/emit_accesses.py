"""Plan -> the inline instructions by which its kernel moves data, each as the pieces that a template puts together."""

from __future__ import annotations

from layoutgen.plan.model import AtomFragment, Plan
from layoutgen.plan.storage import ITEMSIZE

# The element types' names in CuTe, and the types by which vectors of them are moved: floats keep theirs.
ELEMENT = {
    "f32": "float", "tf32": "float", "s32": "int32_t", "f64": "double", "f16": "half_t", "bf16": "bfloat16_t",
    "s8": "int8_t", "u8": "uint8_t", "e4m3": "float_e4m3_t", "e5m2": "float_e5m2_t",
}  # fmt: skip
WORDS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint2", 16: "uint4"}
VECTOR_TYPE = {4: "float", 8: "float2", 16: "float4"}


def vector_type(dtype: str, size: int) -> str:
    """The type of a vector of elements of so many bytes in all."""
    return (VECTOR_TYPE if ELEMENT[dtype] == "float" else WORDS)[size]


def reads_c_apart(plan: Plan) -> bool:
    """Whether C is read by an access of its own, as its elements are not of the type in which sums are scaled."""
    return plan.uses_atoms and ITEMSIZE[plan.dtype] < ITEMSIZE["f32"]


def accesses(plan: Plan) -> dict[str, list[dict[str, object]]]:
    """Kind of access -> the operands that have it, by name, each with its type of vector."""
    shared = plan.shared_operands
    return {
        "fragment": [
            {
                "name": o.name,
                "type": _matrix_type(o.fragment)
                if isinstance(o.fragment, AtomFragment)
                else _asm_type(o.fragment.vector),
            }
            for o in shared
        ],
        "load": [
            {"name": o.name, "type": access_type(o.dtype, o.copy.read_vector)}
            for o in plan.operands
            if o.copy.atom.through_registers
        ],
        # Elements that are converted: the compiler would merge the read with that, and split it.
        "c": [{"name": "c", "type": _word_type(plan.epilogue.bytes)}] if reads_c_apart(plan) else [],
        "store": [
            {"name": o.name, "type": access_type(o.dtype, o.copy.write_vector)}
            for o in shared
            if o.copy.atom.through_registers
        ],
        # Only 16 bytes can pass L1 by (PTX ISA, cp.async).
        "copy": [
            {
                "name": o.name,
                "type": access_type(o.dtype, o.copy.write_vector),
                "cache": "cg" if o.copy.write.bytes == 16 else "ca",
            }
            for o in shared
            if not o.copy.atom.through_registers
        ],
    }


def _matrix_type(fragment: AtomFragment) -> dict[str, str]:
    """The pieces of an inline ldmatrix, or of a load of one register of an atom's."""
    count, opcode = fragment.registers, fragment.load.opcode
    wide, kind, constraint = ("64", "double", "d") if fragment.load.bytes == 8 else ("32", "uint32_t", "r")
    registers = ", ".join(f"%{each}" for each in range(count))
    trans = ".trans" if opcode == "ldmatrix.trans" else ""
    return {
        "opcode": f"ld.shared.b{wide}" if opcode == "ld.shared"
        else f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16",
        "registers": registers if opcode == "ld.shared" else f"{{{registers}}}",
        "last": f"%{count}",
        "outputs": ", ".join(f'"={constraint}"(r{each})' for each in range(count)),
        "parameters": ", ".join(f"{kind}& r{each}" for each in range(count)),
    }  # fmt: skip


def _word_type(size: int) -> dict[str, object]:
    """As _asm_type, of a vector of so many bytes whose elements are not floats."""
    words = max(size // 4, 1)
    kind, constraint = {1: ("u8", "h"), 2: ("u16", "h")}.get(size, ("b32", "r"))
    members = [f"to.{c}" for c in "xyzw"[:words]] if words > 1 else ["to"]
    registers = [f"%{each}" for each in range(words)]
    return {
        "gathered": True,
        "name": WORDS[size],
        "held": WORDS[max(size, 2)],
        "suffix": f"{f'.v{words}' if words > 1 else ''}.{kind}",
        "registers": "{" + ", ".join(registers) + "}" if words > 1 else registers[0],
        "bytes": str(size),
        "last": f"%{words}",
        "after_last": f"%{words + 1}",
        "in_place": ", ".join(f'"+{constraint}"({member})' for member in members),
        "results": ", ".join(f'"={constraint}"({member})' for member in members),
        "inputs": ", ".join(f'"{constraint}"({_wide(member.replace("to", "from"), size)})' for member in members),
    }


def _wide(value: str, size: int) -> str:
    """A byte in a register of the least width that inline assembly has."""
    return f"uint16_t({value})" if size == 1 else value


def access_type(dtype: str, width: int) -> dict[str, object]:
    """The pieces of an inline instruction that moves so many elements."""
    if ELEMENT[dtype] != "float":
        return _word_type(width * ITEMSIZE[dtype])
    return {**_asm_type(width), "held": VECTOR_TYPE[4 * width], "results": _asm_type(width)["outputs"]}


def _asm_type(width: int) -> dict[str, object]:
    """Floats per access -> the pieces of an inline instruction that moves a vector of them.

    last, after_last: the placeholders of the operands that follow its registers. parts, in_place: its elements as
    references.
    """
    registers = [f"%{i}" for i in range(width)]
    members = [f"to.{c}" for c in "xyzw"[:width]] if width > 1 else ["to"]
    return {
        "gathered": False,
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
