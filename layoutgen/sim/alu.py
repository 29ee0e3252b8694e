"""Arithmetic: an instruction that computes each lane's result from that lane's registers alone.

Neighbours with the same opcode and no dependence among them (the 64 multiply-adds of an outer product, say) are bound
together as one operation on (rows, lanes) arrays: the cost of a numpy call is paid once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from layoutgen.sim.frame import Active, Array, Frame, Step, progression
from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import Ref

MERGED_ELEMENTS = 1 << 16  # rows x lanes of one merged operation: more would outgrow the caches


@dataclass(frozen=True, slots=True)
class Alu:
    """``fn(*sources, out)`` elementwise, as ufuncs are called; ``fn`` reads all sources before it writes ``out``.

    ``key`` tells which instructions share ``fn``; ``forbid`` = (rule, predicate of the sources) names operands, on
    active lanes, that have no defined result.
    """

    ins: Instruction
    fn: Callable[..., object]
    target: Ref
    sources: tuple[Ref, ...]
    key: tuple[object, ...]
    forbid: tuple[str, Callable[..., Array]] | None = None

    def bind(self, frame: Frame) -> Step:
        step = bind_merged([self], frame)
        if self.forbid is None:
            return step
        rule, bad = self.forbid
        sources = [frame.row(s) for s in self.sources]

        def checked(active: Active) -> None:
            wrong = bad(*sources)
            if active.lanes is not None:
                wrong = wrong & active.lanes
            if wrong.any():
                lane = int(np.flatnonzero(wrong)[0])
                raise frame.fault(self.ins, rule, lane, "operands " + ", ".join(str(s[lane]) for s in sources))
            step(active)

        return checked


def mergeable(ops: Sequence[object], start: int, limit: int) -> int:
    """How many of ``ops``, from ``start`` on, one merged operation may stand for (1 if none)."""
    first = ops[start]
    if not isinstance(first, Alu) or first.ins.guard is not None or first.forbid is not None:
        return 1
    written: set[int] = set()
    for n in range(min(limit, len(ops) - start)):
        op = ops[start + n]
        if not isinstance(op, Alu) or op.key != first.key or op.ins.guard is not None:
            return n
        width = op.target.width
        if any(s.row in written and s.width == width for s in op.sources):
            return n
        written.add(op.target.row)
    return min(limit, len(ops) - start)


def bind_merged(ops: Sequence[Alu], frame: Frame) -> Step:
    """One step for ``ops``, which are alike and independent (see ``mergeable``)."""
    gathers: list[Callable[[], object]] = []
    sources = [_source([op.sources[i] for op in ops], i, frame, gathers) for i in range(len(ops[0].sources))]
    fn, target = ops[0].fn, ops[0].target
    whole = frame.array(target)
    rows = [op.target.row for op in ops]
    run = progression(rows)
    tmp = frame.scratch("out", target.dtype, len(ops))
    out = None
    if len(ops) == 1:
        out, tmp = whole[rows[0]], tmp[0]
    elif run is not None:
        out = whole[run]

    def step(active: Active) -> None:
        for gather in gathers:
            gather()
        keep = active.keep
        if keep is None and out is not None:
            fn(*sources, out)
            return
        fn(*sources, tmp)
        if out is not None:
            np.copyto(out, tmp, where=keep)
        elif keep is None:
            whole[rows] = tmp
        else:
            for i, row in enumerate(rows):
                np.copyto(whole[row], tmp[i], where=keep)

    return step


def _source(refs: list[Ref], slot: int, frame: Frame, gathers: list[Callable[[], object]]) -> Array:
    """An array (rows, lanes) of one operand of each merged instruction; a gather refreshes it where it is no view."""
    whole = frame.array(refs[0])
    rows = [r.row % len(whole) for r in refs]
    if len(rows) == 1:
        single: Array = whole[rows[0]]
        return single
    if len(set(rows)) == 1:
        same: Array = whole[rows[0]][None, :]
        return same
    run = progression(rows)
    if run is not None:
        return whole[run]
    held = frame.scratch(slot, refs[0].dtype, len(rows))
    gathers.append(partial(np.take, whole, np.asarray(rows), 0, held, "clip"))
    return held
