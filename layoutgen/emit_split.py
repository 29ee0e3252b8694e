"""How a kernel splits numbers into terms of the type that its atoms multiply, and which products of these it adds."""

from __future__ import annotations

from typing import Any

from layoutgen.algebra import Layout, make_layout
from layoutgen.emit_moves import const, using
from layoutgen.plan.model import AtomFragment, Plan
from layoutgen.plan.storage import ITEMSIZE

LATER = {2: ("low",), 3: ("middle", "low")}  # the terms after the first, by how many there are


def split_view(plan: Plan) -> dict[str, object]:
    """What templates/split.cu.j2 prints; empty where numbers are not split.

    packed: how many numbers have a term each in a register of the atom. smaller, largest: the products, each a term of
    A's registers and one of B's, the smallest first. operands: of each, the shape of a term's registers, and where they
    are packed, who is packed.
    """
    if plan.terms == 1:
        return {}
    packed = ITEMSIZE[plan.a.dtype] // ITEMSIZE[plan.multiplied]
    names = ("high", *LATER[plan.terms])
    pairs = [(names[total - of_b], names[of_b]) for total in reversed(range(plan.terms)) for of_b in range(total + 1)]
    operands: dict[str, dict[str, Any]] = {}
    for operand, atom in zip(plan.shared_operands, "ij", strict=True):
        fragment, upper = operand.fragment, operand.name.upper()
        assert isinstance(fragment, AtomFragment)
        registers = fragment.of_atom // packed
        number, *register = fragment.elements if packed > 1 else (Layout(1, 0), fragment.elements)
        whose = make_layout(number, make_layout(*register, Layout(fragment.atoms, fragment.of_atom)))
        operands[operand.name] = {
            "upper": upper,
            "shape": f"Shape<{const(registers)},{const(fragment.atoms)}>",
            "whose": using(f"Packed{upper}", whose, "(number, register) -> register of the fragment"),
            "of_atom": {
                term: ", ".join(f"tCr{upper}_{term}({each}, {atom})" for each in range(registers)) for term in names
            },
        }
    products = [(operands["a"]["of_atom"][of_a], operands["b"]["of_atom"][of_b]) for of_a, of_b in pairs]
    return {
        "packed": packed,
        "later": LATER[plan.terms],
        "operands": operands,
        "smaller": products[:-1],
        "largest": products[-1],
    }
