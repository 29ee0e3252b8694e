"""Control flow and barriers (PTX ISA 9.0, sections 9.7.12 and 9.7.13): what ends a straight run of instructions."""

from __future__ import annotations

from dataclasses import dataclass

from layoutgen.sim.flow import Barrier, Branch, Exit, Terminator, Trap, WarpBarrier
from layoutgen.sim.frame import Active, Frame, Op, Step
from layoutgen.sim.instructions.forms import Decoder
from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import Ref, RegisterMap


@dataclass(frozen=True, slots=True)
class Nothing:
    """Fences and hints: no effect where memory is read and written in program order, one instruction at a time."""

    ins: Instruction

    def bind(self, frame: Frame) -> Step:
        def step(active: Active) -> None:
            return None

        return step


def _guard(ins: Instruction, names: RegisterMap) -> Ref | None:
    return None if ins.guard is None else names.source(ins, ins.guard, "pred")


def _bra(ins: Instruction, names: RegisterMap) -> Terminator:
    if ins.opcode not in ("bra", "bra.uni") or len(ins.operands) != 1:
        raise names.refuse(ins)
    target = names.kernel.labels.get(ins.operands[0])
    if target is None:
        raise names.refuse(ins, f"label {ins.operands[0]} stands in the kernel")
    return Branch(ins, _guard(ins, names), target)


def _exit(ins: Instruction, names: RegisterMap) -> Terminator:
    if ins.opcode not in ("ret", "ret.uni", "exit") or ins.operands:
        raise names.refuse(ins)
    return Exit(ins, _guard(ins, names))


def _trap(ins: Instruction, names: RegisterMap) -> Terminator:
    if ins.opcode != "trap" or ins.operands:
        raise names.refuse(ins)
    return Trap(ins, _guard(ins, names))


def _bar(ins: Instruction, names: RegisterMap) -> Terminator:
    guard = _guard(ins, names)
    mods = ins.opcode.split(".")[1:]
    if mods == ["warp", "sync"] and len(ins.operands) == 1:
        return WarpBarrier(ins, guard, names.source(ins, ins.operands[0], "b32"))
    aligned = ins.opcode.startswith("bar.") or "aligned" in mods
    kinds = [m for m in mods if m not in ("cta", "aligned")]
    if len(kinds) != 1 or kinds[0] not in ("sync", "arrive") or not 1 <= len(ins.operands) <= 2:
        raise names.refuse(ins)
    arrive = kinds[0] == "arrive"
    if arrive and len(ins.operands) != 2:
        raise names.refuse(ins)
    threads = names.source(ins, ins.operands[1], "u32") if len(ins.operands) == 2 else None
    return Barrier(ins, guard, names.source(ins, ins.operands[0], "u32"), threads, arrive, aligned)


_FENCES = {
    *(f"membar.{scope}" for scope in ("cta", "gl", "sys")),
    *(f"fence.{sem}.{scope}" for sem in ("sc", "acq_rel") for scope in ("cta", "cluster", "gpu", "sys")),
}


def _fence(ins: Instruction, names: RegisterMap) -> Op:
    if ins.opcode not in _FENCES or ins.operands:
        raise names.refuse(ins)
    return Nothing(ins)


DECODERS: dict[str, Decoder] = {
    "bra": _bra,
    "ret": _exit,
    "exit": _exit,
    "trap": _trap,
    "bar": _bar,
    "barrier": _bar,
    "membar": _fence,
    "fence": _fence,
}
