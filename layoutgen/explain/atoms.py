"""A and B of MMA atoms: from shared memory to the registers of a warp's lanes, as layoutgen.plan.mma plans it."""

from __future__ import annotations

from typing import Any

import numpy as np

from layoutgen.algebra import ComposedLayout, Layout, named
from layoutgen.explain.model import Entry, Rows, Step, Text
from layoutgen.explain.words import plural, runs
from layoutgen.facts import BANK_BYTES, BANKS, access_offsets, atom_owners, first_word
from layoutgen.plan.model import Access, AtomFragment, Plan, SharedOperand
from layoutgen.plan.storage import ITEMSIZE


def atom_line(plan: Plan) -> Text:
    """What a warp multiplies by."""
    m, n, k = plan.atom.layouts.shape_mnk
    if plan.amd:
        kind = f"a matrix-core instruction of a wavefront, {plan.warp_size} lanes: {m} x {n} x {k}"
        return Text(f"Atom: {plan.atom.name}, {kind} ({plan.atom.section}). Shared memory is LDS there.")
    return Text(f"Atom: {plan.atom.name}, an mma.sync of {m} x {n} x {k} ({plan.atom.section}).")


def instruction(plan: Plan, fragment: AtomFragment) -> str:
    """The load as PTX spells it, without its types; as AMD's assembler does for theirs."""
    opcode = fragment.load.opcode
    if plan.amd:
        return f"ds_read_b{8 * fragment.load.bytes}"
    return opcode if opcode == "ld.shared" else opcode.replace("ldmatrix", f"ldmatrix.x{fragment.registers}")


def fragment_entries(plan: Plan, operand: SharedOperand) -> list[Entry]:
    """How a warp loads its atoms' fragments."""
    fragment, name = operand.fragment, operand.name
    assert isinstance(fragment, AtomFragment)
    atom_x, atom_k = plan.atom.layouts.shape_mnk["mn".index(operand.x)], plan.atom.layouts.shape_mnk[2]
    wide = f" of {fragment.load.bytes} bytes" if fragment.load.opcode == "ld.shared" else ""
    packed = f"a register packs k and k + {fragment.k(1)}, in A and B alike"
    order: list[Entry] = [Step("atom's k -> k", None, fragment.k, packed, f"{name}.fragment.k")]
    return [
        Text(
            f"Fragment: every {atom_k} k, a warp's {plural(fragment.atoms, 'atom')} of {atom_x} {operand.x} in "
            f"{fragment.vectors} {instruction(plan, fragment)}{wide}; {plural(plan.program.slots, 'register slot')}."
        ),
        *access_steps(fragment.load, name, f"{name}.fragment.load", ("load", f"k{atom_k}", "stage")),
        *(order if fragment.k != Layout(atom_k) else []),
    ]


def access_steps(access: Access, name: str, of: str, modes: tuple[str, ...]) -> list[Entry]:
    """An access through a swizzle: where a thread's first piece lies, and what the others add or flip."""
    base = access.base
    swizzle = f"then {base.layout_a}" if isinstance(base, ComposedLayout) else ""
    thread = base.layout_b if isinstance(base, ComposedLayout) else base
    assert isinstance(thread, Layout)
    unit = f"{access.bytes} bytes"
    found: list[Entry] = [
        Step("thread -> element", None, thread, swizzle, f"{of}.base.layout_b" if swizzle else f"{of}.base"),
        Step(f"+ step -> {unit}", None, named(access.steps, *modes), "", f"{of}.steps"),
    ]
    if access.flips is not None and any(access.flips.flat_stride):
        flips = named(access.flips, *modes)
        found.append(Step(f"^ step -> {unit}", None, flips, "bits that flip first", f"{of}.flips"))
    return found


def atom_loads(plan: Plan, operand: SharedOperand, thread: int) -> list[dict[str, Any]]:
    """Each load of a thread, for the first K of an atom and stage 0: where it points, and the (x, k) that it gets."""
    fragment, (warp, lane) = operand.fragment, divmod(thread, plan.warp_size)
    assert isinstance(fragment, AtomFragment)
    itemsize, owners = ITEMSIZE[operand.dtype], atom_owners(plan, operand)
    pieces = range(fragment.vectors)
    offsets = access_offsets(fragment.load, fragment.load.bytes // itemsize, np.arange(fragment.vectors))[:, thread]
    mode = "mn".index(operand.x)
    begins = plan.tile.warp_mode[mode].offsets()[owners.warp]
    of_warp = begins == (plan.threads.m, plan.threads.n)[mode][1](warp)
    found = []
    for load in pieces:
        brings = owners.register // fragment.registers == load
        mine = of_warp & (owners.lane == lane) & (owners.k_block == 0) & brings
        at = [[int(x), int(k)] for x, k in zip(*mine.nonzero(), strict=True)]
        element = int(offsets[load])
        word = element * itemsize // BANK_BYTES
        found.append(
            {"elements": at, "element": element, "word": word, "bank": (first_word(plan, operand) + word) % BANKS}
        )
    return found


def loads_told(plan: Plan, operand: SharedOperand, loads: list[dict[str, Any]]) -> list[Entry]:
    """`atom_loads` as a table."""
    fragment = operand.fragment
    assert isinstance(fragment, AtomFragment)
    atom_k = plan.atom.layouts.shape_mnk[2]
    return [
        Text(
            f"Fragment of {operand.name.upper()}, every {atom_k} k: {len(loads)} {instruction(plan, fragment)}, "
            "the first ones from here, with what it gets:"
        ),
        Rows(
            (
                ("element", tuple(str(each["element"]) for each in loads)),
                ("bank", tuple(str(each["bank"]) for each in loads)),
                (operand.x, tuple(runs([x for x, _ in each["elements"]]) for each in loads)),
                ("k", tuple(runs([k for _, k in each["elements"]]) for each in loads)),
            )
        ),
    ]
