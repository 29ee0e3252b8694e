"""Instructions by which lanes of a warp read each other: shfl, vote, activemask (PTX ISA 9.0, sections 9.7.9.6 and
9.7.13).

The scheduler brings the lanes of the member mask together before the instruction runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutgen.sim.frame import Active, Array, Frame, Op, Step
from layoutgen.sim.instructions.forms import Decoder
from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import Ref, RegisterMap

_POISON = np.uint32(0xFFFFFFFF)
_LANE = np.arange(32)


def _present(frame: Frame, active: Active) -> Array:
    """(warps, 32): the lanes that take part."""
    everyone = np.ones(frame.lanes, bool) if active.lanes is None else active.lanes
    return everyone.reshape(-1, 32)


def _put(row: Array | None, value: Array, active: Active) -> None:
    if row is not None:
        np.copyto(row, value.reshape(-1), where=True if active.keep is None else active.keep)


@dataclass(frozen=True, slots=True)
class Shuffle:
    """shfl.sync: each lane reads ``value`` of another, picked by ``mode``; a lane that is absent reads as poison."""

    ins: Instruction
    mode: str
    target: Ref
    predicate: Ref | None
    value: Ref
    pick: Ref
    clamp: Ref
    members: Ref

    def bind(self, frame: Frame) -> Step:
        target, predicate = frame.row(self.target), None if self.predicate is None else frame.row(self.predicate)
        value, pick, clamp = (frame.row(r).reshape(-1, 32) for r in (self.value, self.pick, self.clamp))

        def step(active: Active) -> None:
            b, c = pick.astype(np.int64) & 31, clamp.astype(np.int64)
            segment, bound = c >> 8 & 31, c & 31
            top = (_LANE & segment) | (bound & ~segment)
            bottom = _LANE & segment
            if self.mode == "up":
                source = _LANE - b
                inside = source >= top
            elif self.mode == "down":
                source = _LANE + b
                inside = source <= top
            elif self.mode == "bfly":
                source = _LANE ^ b
                inside = source <= top
            else:
                source = bottom | (b & ~segment)
                inside = source <= top
            source = np.where(inside, source, _LANE)
            got = np.take_along_axis(value, source, axis=1)
            there = np.take_along_axis(_present(frame, active), source, axis=1)
            _put(target, np.where(there, got, _POISON), active)
            _put(predicate, inside, active)

        return step


@dataclass(frozen=True, slots=True)
class Vote:
    """vote.sync, or activemask (``what`` = 'active'): one value from a predicate of all lanes that take part."""

    ins: Instruction
    what: str
    target: Ref
    predicate: Ref | None
    negated: bool
    members: Ref | None

    def bind(self, frame: Frame) -> Step:
        target = frame.row(self.target)
        predicate = None if self.predicate is None else frame.row(self.predicate).reshape(-1, 32)

        def step(active: Active) -> None:
            present = _present(frame, active)
            yes = present if predicate is None else (predicate ^ self.negated) & present
            if self.what in ("ballot", "active"):
                value: Array = (yes.astype(np.int64) << _LANE).sum(1, keepdims=True)
            elif self.what == "any":
                value = np.logical_or.reduce(yes, 1, keepdims=True)
            else:
                value = np.logical_and.reduce(yes | ~present, 1, keepdims=True)
                if self.what == "uni":
                    value = value | ~np.logical_or.reduce(yes, 1, keepdims=True)
            _put(target, np.broadcast_to(value, present.shape).astype(target.dtype), active)

        return step


def _shfl(ins: Instruction, names: RegisterMap) -> Op:
    mods = ins.opcode.split(".")[1:]
    if len(mods) != 3 or mods[0] != "sync" or mods[1] not in ("up", "down", "bfly", "idx") or mods[2] != "b32":
        raise names.refuse(ins)
    if len(ins.operands) != 5:
        raise names.refuse(ins)
    target, _, predicate = (s.strip() for s in ins.operands[0].partition("|"))
    value, pick, clamp, members = (names.source(ins, s, "b32") for s in ins.operands[1:])
    flag = names.register(ins, predicate, "pred") if predicate else None
    return Shuffle(ins, mods[1], names.register(ins, target, "b32"), flag, value, pick, clamp, members)


def _vote(ins: Instruction, names: RegisterMap) -> Op:
    forms = {"all.pred": "pred", "any.pred": "pred", "uni.pred": "pred", "ballot.b32": "b32"}
    rest = ins.opcode.removeprefix("vote.sync.")
    if rest not in forms or len(ins.operands) != 3:
        raise names.refuse(ins)
    predicate = names.source(ins, ins.operands[1].lstrip("!").strip(), "pred")
    target = names.register(ins, ins.operands[0], forms[rest])
    negated = ins.operands[1].startswith("!")
    return Vote(ins, rest.split(".")[0], target, predicate, negated, names.source(ins, ins.operands[2], "b32"))


def _activemask(ins: Instruction, names: RegisterMap) -> Op:
    if ins.opcode != "activemask.b32" or len(ins.operands) != 1:
        raise names.refuse(ins)
    return Vote(ins, "active", names.register(ins, ins.operands[0], "b32"), None, False, None)


DECODERS: dict[str, Decoder] = {"shfl": _shfl, "vote": _vote, "activemask": _activemask}
