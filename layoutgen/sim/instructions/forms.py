"""The shape that all instruction families share: an opcode's form, and how operands turn it into an operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layoutgen.sim.alu import Alu
from layoutgen.sim.flow import Terminator
from layoutgen.sim.frame import Array, Op
from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import RegisterMap


@dataclass(frozen=True, slots=True)
class Form:
    """One opcode, modifiers and types included: ``fn(*sources, out)`` and the PTX types of its operands."""

    fn: Callable[..., object]
    target: str
    sources: tuple[str, ...]
    forbid: tuple[str, Callable[..., Array]] | None = None
    widen: bool = False


FormBuilder = Callable[[tuple[str, ...]], Form | None]  # the modifiers after the mnemonic -> its form, None if unknown
Decoder = Callable[[Instruction, RegisterMap], Op | Terminator]


def decoder(builder: FormBuilder) -> Decoder:
    """A decoder for instructions of the shape ``opcode target, sources...``."""
    known: dict[str, Form | None] = {}

    def decode(ins: Instruction, names: RegisterMap) -> Op:
        if ins.opcode not in known:
            known[ins.opcode] = builder(tuple(ins.opcode.split(".")[1:]))
        form = known[ins.opcode]
        if form is None or len(ins.operands) != 1 + len(form.sources):
            raise names.refuse(ins)
        return alu(ins, names, form, ins.operands[0], ins.operands[1:])

    return decode


def alu(
    ins: Instruction, names: RegisterMap, form: Form, target: str, sources: tuple[str, ...], key: object = None
) -> Alu:
    """An Alu of ``form`` with these operands. ``key`` tells apart uses of one opcode whose ``fn`` differs."""
    out = (names.target if form.widen else names.register)(ins, target, form.target)
    refs = tuple(names.source(ins, s, kind, widen=form.widen) for s, kind in zip(sources, form.sources, strict=True))
    return Alu(ins, form.fn, out, refs, (ins.opcode, key, out.width, *(r.width for r in refs)), form.forbid)
