"""Moving and choosing values: mov, selp, setp, set, cvta (PTX ISA 9.0, sections 9.7.6, 9.7.7 and 9.7.9)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from layoutgen.sim.frame import Active, Array, Frame, Op, Step
from layoutgen.sim.instructions.forms import Decoder, Form, alu
from layoutgen.sim.parser import SIZES, Instruction
from layoutgen.sim.registers import LOCAL_WINDOW, SHARED_WINDOW, Ref, RegisterMap

_MOVABLE = ("b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64", "pred")


def copy(a: Array, out: Array) -> None:
    """out = a, bit for bit."""
    out[...] = a


def vector(text: str) -> tuple[str, ...] | None:
    """``{a, b}`` -> its names; None where ``text`` is no vector."""
    return tuple(s.strip() for s in text[1:-1].split(",")) if text.startswith("{") else None


def _mov(ins: Instruction, names: RegisterMap) -> Op:
    kind = ins.opcode.split(".")[-1]
    if ins.opcode != f"mov.{kind}" or kind not in _MOVABLE or len(ins.operands) != 2:
        raise names.refuse(ins)
    target, source = ins.operands
    if vector(target) or vector(source):
        return _pack(ins, names, kind)
    return alu(ins, names, Form(copy, kind, (kind,)), target, (source,))


@dataclass(frozen=True, slots=True)
class Scatter:
    """Writes the low to high parts of one register into several (``mov.b32 {lo, hi}, r``); ``_`` drops a part."""

    ins: Instruction
    source: Ref
    targets: tuple[Ref | None, ...]

    def bind(self, frame: Frame) -> Step:
        source = frame.row(self.source)
        rows = [None if t is None else frame.row(t) for t in self.targets]
        part = np.dtype(f"u{self.source.width // len(rows)}")

        def step(active: Active) -> None:
            parts = source.view(part).reshape(-1, len(rows)).copy()
            for i, row in enumerate(rows):
                if row is not None:
                    np.copyto(row, parts[:, i], where=True if active.keep is None else active.keep)

        return step


def _pack(ins: Instruction, names: RegisterMap, kind: str) -> Op:
    left, right = vector(ins.operands[0]), vector(ins.operands[1])
    parts = left or right or ()
    if kind[0] != "b" or (left and right) or len(parts) not in (2, 4) or SIZES[kind] // len(parts) < 2:
        raise names.refuse(ins)
    part = f"b{8 * SIZES[kind] // len(parts)}"
    if left:
        targets = tuple(None if r == "_" else names.register(ins, r, part) for r in left)
        return Scatter(ins, names.register(ins, ins.operands[1], kind), targets)
    shift = 8 * SIZES[part]

    def join(*operands: Array) -> None:
        *sources, out = operands
        total = sources[0].astype(out.dtype)
        for i, s in enumerate(sources[1:], 1):
            total |= s.astype(out.dtype) << out.dtype.type(shift * i)
        out[...] = total

    return alu(ins, names, Form(join, kind, (part,) * len(parts)), ins.operands[0], parts, "join")


# --- comparisons ----------------------------------------------------------------------------------

_SIGNED = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {**_SIGNED, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu")


def _either(fn: Callable[..., Array], a: Array, b: Array, out: Array) -> None:
    np.logical_or(fn(a, b), np.isnan(a) | np.isnan(b), out=out)


def _neither(negate: bool, a: Array, b: Array, out: Array) -> None:
    np.not_equal(np.isnan(a) | np.isnan(b), negate, out=out)


def _ordered_ne(a: Array, b: Array, out: Array) -> None:
    np.logical_or(a < b, a > b, out=out)


def _comparison(name: str, kind: str) -> Callable[..., object] | None:
    """``fn(a, b, out)`` of a PTX comparison. Float comparisons are false on a NaN, or true where the name ends in u."""
    if kind[0] in "us":
        return (_SIGNED if kind[0] == "s" else _UNSIGNED).get(name)
    if kind[0] == "b":
        return _SIGNED[name] if name in ("eq", "ne") else None
    if name in ("num", "nan"):
        return partial(_neither, name == "num")
    if name == "ne":
        return _ordered_ne
    if name in _SIGNED:
        return _SIGNED[name]
    if name in _UNORDERED:
        return partial(_either, _SIGNED[name[:2]])
    return None


_COMBINE: dict[str, Callable[[Array, Array], Array]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
_COMPARABLE = ("b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64")


@dataclass(frozen=True, slots=True)
class SetPredicate:
    """setp with its less common parts: a second destination (the complement) and a predicate to combine with."""

    ins: Instruction
    fn: Callable[..., object]
    targets: tuple[Ref | None, ...]
    sources: tuple[Ref, Ref]
    combine: Callable[[Array, Array], Array] | None
    with_: Ref | None
    negated: bool

    def bind(self, frame: Frame) -> Step:
        a, b = (frame.row(s) for s in self.sources)
        other = None if self.with_ is None else frame.row(self.with_)
        rows = [None if t is None else frame.row(t) for t in self.targets]
        result = np.empty(frame.lanes, bool)

        def step(active: Active) -> None:
            self.fn(a, b, result)
            values = [result, ~result]
            if self.combine is not None and other is not None:
                c = ~other if self.negated else other.copy()
                values = [self.combine(v, c) for v in values]
            for row, value in zip(rows, values, strict=False):
                if row is not None:
                    np.copyto(row, value, where=True if active.keep is None else active.keep)

        return step


def _setp(ins: Instruction, names: RegisterMap) -> Op:
    mods = ins.opcode.split(".")[1:]
    kind = mods[-1]
    middle = mods[1:-1]
    combine = _COMBINE.get(middle[0]) if len(middle) == 1 else None
    fn = _comparison(mods[0], kind) if kind in _COMPARABLE else None
    if fn is None or (middle and combine is None) or len(ins.operands) != (4 if combine else 3):
        raise names.refuse(ins)
    if combine is None and "|" not in ins.operands[0]:
        return alu(ins, names, Form(fn, "pred", (kind, kind)), ins.operands[0], ins.operands[1:])
    targets = tuple(
        None if t.strip() == "_" else names.register(ins, t.strip(), "pred") for t in ins.operands[0].split("|")
    )
    sources = names.source(ins, ins.operands[1], kind), names.source(ins, ins.operands[2], kind)
    other, negated = None, False
    if combine is not None:
        negated = ins.operands[3].startswith("!")
        other = names.source(ins, ins.operands[3].lstrip("!").strip(), "pred")
    return SetPredicate(ins, fn, targets, sources, combine, other, negated)


def _select(a: Array, b: Array, p: Array, out: Array) -> None:
    out[...] = np.where(p, a, b)


def _selp(ins: Instruction, names: RegisterMap) -> Op:
    kind = ins.opcode.split(".")[-1]
    if ins.opcode != f"selp.{kind}" or kind not in _COMPARABLE or len(ins.operands) != 4:
        raise names.refuse(ins)
    return alu(ins, names, Form(_select, kind, (kind, kind, "pred")), ins.operands[0], ins.operands[1:])


def _cvta(ins: Instruction, names: RegisterMap) -> Op:
    """Between an address of a state space and a generic one. Global addresses are the same in both."""
    mods = ins.opcode.split(".")[1:]
    to = mods[0] == "to"
    space = mods[1 if to else 0]
    window = {"global": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space)
    if window is None or mods[-1] != "u64" or len(mods) != (3 if to else 2) or len(ins.operands) != 2:
        raise names.refuse(ins)
    base = np.uint64(window)
    fn = np.subtract if to else np.add
    form = Form(lambda a, out: fn(a, base, out=out), "u64", ("u64",))
    return alu(ins, names, form, ins.operands[0], ins.operands[1:])


DECODERS: dict[str, Decoder] = {"mov": _mov, "setp": _setp, "selp": _selp, "cvta": _cvta}
