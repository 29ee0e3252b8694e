"""atom and red in global memory (PTX ISA 9.0, sections 9.7.13.5 and 9.7.13.7): the maximum of unsigned integers.

Lanes come one after the other, in the order of their numbers, of which PTX says nothing; maxima don't depend on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from layoutgen.sim.frame import Active, Frame, Op, Step
from layoutgen.sim.instructions.forms import Decoder
from layoutgen.sim.instructions.loadstore import effective, global_parts
from layoutgen.sim.parser import SIZES, Instruction
from layoutgen.sim.registers import Ref, RegisterMap

_FORM = re.compile(r"(?:atom|red)(?:\.relaxed)?(?:\.gpu)?\.global(?:\.gpu)?\.max\.(u32|u64)")


@dataclass(frozen=True, slots=True)
class Maximum:
    """memory = max(memory, value) at [base + offset]; ``target`` (None of red) becomes what was there before."""

    ins: Instruction
    width: int
    target: Ref | None
    value: Ref
    base: Ref
    offset: int

    def bind(self, frame: Frame) -> Step:
        value, target = frame.row(self.value), None if self.target is None else frame.row(self.target)
        held, meter = np.empty(frame.lanes, np.uint64), frame.batch.meter

        def step(active: Active) -> None:
            address = effective(frame, self.base, self.offset, held)
            if meter is not None:
                meter.globally(self.ins, address, active, self.width)
            lanes = np.arange(frame.lanes) if active.lanes is None else active.index
            for part, buffer, offset in global_parts(frame, self.ins, address[lanes], self.width, True, lanes):
                units = buffer.units(self.width)
                for lane, index in zip(lanes if part is None else lanes[part], offset // self.width, strict=True):
                    before = units[index]
                    units[index] = max(before, value[lane])
                    if target is not None:
                        target[lane] = before

        return step


def _maximum(ins: Instruction, names: RegisterMap) -> Op:
    form = _FORM.fullmatch(ins.opcode)
    returns = ins.opcode.startswith("atom")
    if form is None or len(ins.operands) != 2 + returns:
        raise names.refuse(ins)
    kind = form[1]
    target = names.target(ins, ins.operands[0], kind) if returns else None
    base, offset = names.address(ins, ins.operands[-2])
    return Maximum(ins, SIZES[kind], target, names.source(ins, ins.operands[-1], kind), base, offset)


DECODERS: dict[str, Decoder] = {"atom": _maximum, "red": _maximum}
