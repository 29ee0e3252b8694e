"""Control flow and barriers (PTX ISA 9.0, sections 9.7.12 and 9.7.13): what ends a straight run of instructions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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


@dataclass(frozen=True, slots=True)
class BlockVote:
    """bar.red.or.pred: whether any thread of the block brought a true predicate to the ``barrier`` before it.

    Votes have two places, used in turn: a warp that is on its way to the next one leaves those of the last untouched,
    and none comes to the one after that before all have read them.
    """

    ins: Instruction
    target: Ref
    barrier: Barrier

    def bind(self, frame: Frame) -> Step:
        target, votes, turn = frame.row(self.target), frame.batch.votes, frame.batch.turn

        def step(active: Active) -> None:
            thread, block = frame.thread, frame.block
            anyone = votes[turn[thread, block], :, block].any(1)
            np.copyto(target, anyone, where=True if active.keep is None else active.keep)
            chosen = slice(None) if active.lanes is None else active.lanes
            turn[thread[chosen], block[chosen]] ^= 1

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


def _bar(ins: Instruction, names: RegisterMap) -> Terminator | Op:
    guard = _guard(ins, names)
    mods = ins.opcode.split(".")[1:]
    if mods == ["warp", "sync"] and len(ins.operands) == 1:
        return WarpBarrier(ins, guard, names.source(ins, ins.operands[0], "b32"))
    aligned = ins.opcode.startswith("bar.") or "aligned" in mods
    if mods == ["red", "or", "pred"] and len(ins.operands) == 3 and guard is None:
        number, vote = names.source(ins, ins.operands[1], "u32"), names.source(ins, ins.operands[2], "pred")
        barrier = Barrier(ins, None, number, None, arrive=False, aligned=aligned, vote=vote)
        return BlockVote(ins, names.target(ins, ins.operands[0], "pred"), barrier)
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
