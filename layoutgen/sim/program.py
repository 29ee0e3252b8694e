"""A kernel decoded: straight runs of operations, each ended by a terminator or by the next label."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from layoutgen.sim.alu import bind_merged, mergeable
from layoutgen.sim.frame import Active, Array, Frame, Op, Step
from layoutgen.sim.instructions import decode
from layoutgen.sim.instructions.control import Terminator
from layoutgen.sim.parser import Kernel
from layoutgen.sim.registers import Ref, RegisterMap


@dataclass(frozen=True, slots=True)
class Run:
    """Operations that execute one after another; ``terminator`` is None where the next run simply follows.

    ``guards[i]`` is the predicate of operation i (None: always), negated where ``ops[i].ins.negated``. ``target`` is the run
    that a branch goes to. ``instructions`` counts PTX instructions, the terminator among them.
    """

    ops: tuple[Op, ...]
    guards: tuple[Ref | None, ...]
    terminator: Terminator | None
    target: int
    first: int
    instructions: int

    def bind(self, frame: Frame, merged_elements: int) -> list[Step]:
        """Steps for a frame, with alike and independent neighbours merged into operations of up to ``merged_elements``."""
        steps: list[Step] = []
        limit = max(1, merged_elements // frame.lanes)
        at = 0
        while at < len(self.ops):
            count = mergeable(self.ops[at:], limit)
            op, guard = self.ops[at], self.guards[at]
            step = bind_merged(self.ops[at : at + count], frame) if count > 1 else op.bind(frame)  # type: ignore[arg-type]
            steps.append(step if guard is None else _guarded(step, frame.row(guard), op.ins.negated))
            at += count
        return steps


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Program:
    """Runs in text order, and the map of their registers."""

    kernel: Kernel
    names: RegisterMap
    runs: tuple[Run, ...]


_programs: weakref.WeakKeyDictionary[Kernel, Program] = weakref.WeakKeyDictionary()


def program(kernel: Kernel) -> Program:
    """The kernel decoded, once. Raises SimError for the first instruction the simulator doesn't know."""
    if kernel not in _programs:
        _programs[kernel] = _decode(kernel)
    return _programs[kernel]


def _decode(kernel: Kernel) -> Program:
    names = RegisterMap(kernel)
    for ins in kernel.instructions:
        names.define(ins)
    ops = [decode(ins, names) for ins in kernel.instructions]
    starts = {0, *kernel.labels.values()}
    starts.update(i + 1 for i, op in enumerate(ops) if isinstance(op, Terminator))
    bounds = sorted(s for s in starts if s < len(ops))
    number = {start: i for i, start in enumerate(bounds)}
    number[len(ops)] = len(bounds)
    runs = []
    for start, end in zip(bounds, [*bounds[1:], len(ops)], strict=True):
        last = ops[end - 1]
        terminator = last if isinstance(last, Terminator) else None
        body = ops[start : end - 1] if terminator is not None else ops[start:end]
        guards = tuple(None if op.ins.guard is None else names.source(op.ins, op.ins.guard, "pred") for op in body)
        target = number[getattr(terminator, "target", len(ops))]
        runs.append(Run(tuple(body), guards, terminator, target, start, end - start))
    return Program(kernel, names, tuple(runs))


def _guarded(step: Step, predicate: Array, negated: bool) -> Step:
    def guarded(active: Active) -> None:
        mask = ~predicate if negated else predicate
        chosen = active.only(mask)
        assert chosen.lanes is not None
        if chosen.lanes.any():
            step(chosen)

    return guarded
