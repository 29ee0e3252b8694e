"""Instruction families. Each module offers BUILDERS (mnemonic -> opcode forms) or DECODERS (mnemonic -> operation),
or both; a new family is a new module and its name in ``FAMILIES``. What no family claims is refused."""

from __future__ import annotations

from layoutgen.sim.flow import Terminator
from layoutgen.sim.frame import Op
from layoutgen.sim.instructions import (
    approximate,
    async_copy,
    atomic,
    control,
    convert,
    data,
    floating,
    integer,
    loadstore,
    tensor,
    warp,
)
from layoutgen.sim.instructions.forms import Decoder, Form, FormBuilder, decoder
from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import RegisterMap

FAMILIES = (
    integer, floating, approximate, convert, data, loadstore, atomic, async_copy, warp, tensor, control
)  # fmt: skip


def _first(builders: list[FormBuilder]) -> FormBuilder:
    def build(mods: tuple[str, ...]) -> Form | None:
        return next((form for b in builders if mods and (form := b(mods)) is not None), None)

    return build


def _collect() -> dict[str, Decoder]:
    builders: dict[str, list[FormBuilder]] = {}
    decoders: dict[str, Decoder] = {}
    for family in FAMILIES:
        for mnemonic, builder in getattr(family, "BUILDERS", {}).items():
            builders.setdefault(mnemonic, []).append(builder)
        decoders.update(getattr(family, "DECODERS", {}))
    return {**{mnemonic: decoder(_first(found)) for mnemonic, found in builders.items()}, **decoders}


_DECODERS = _collect()


def decode(ins: Instruction, names: RegisterMap) -> Op | Terminator:
    """An instruction -> its operation or terminator. Raises SimError for a form that no family knows."""
    known = _DECODERS.get(ins.opcode.partition(".")[0])
    if known is None:
        raise names.refuse(ins)
    return known(ins, names)
