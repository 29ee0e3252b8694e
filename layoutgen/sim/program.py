"""A kernel decoded: straight runs of operations, each ended by a terminator or by the next label."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from layoutgen.sim.alu import bind_merged, mergeable
from layoutgen.sim.flow import Barrier, Branch, Terminator, WarpBarrier
from layoutgen.sim.frame import Active, Array, Frame, Op, Step
from layoutgen.sim.instructions import decode
from layoutgen.sim.parser import Instruction, Kernel
from layoutgen.sim.registers import Ref, RegisterMap


@dataclass(frozen=True, slots=True)
class Run:
    """Operations that execute one after another; ``terminator`` is None where the next run simply follows.

    ``guards[i]`` is the predicate of operation i (None: always), negated where ``ops[i].ins.negated``. ``target`` is
    the run that a branch goes to. ``instructions`` counts PTX instructions, the terminator among them.
    """

    ops: tuple[Op, ...]
    guards: tuple[Ref | None, ...]
    terminator: Terminator | None
    target: int
    first: int
    instructions: int

    def bind(self, frame: Frame, merged_elements: int) -> list[Step]:
        """Steps for a frame, with alike and independent neighbours merged into operations of up to
        ``merged_elements``.
        """
        steps: list[Step] = []
        limit = max(1, merged_elements // frame.lanes)
        at = 0
        while at < len(self.ops):
            count = mergeable(self.ops, at, limit)
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
    labels = set(kernel.labels.values())
    runs: list[tuple[int, int, Terminator | None]] = []  # first and last + 1 operation, and how it ends
    number: dict[int, int] = {}  # where a label points -> run
    ops: dict[int, Op] = {}
    start = 0

    def close(end: int, terminator: Terminator | None) -> None:
        nonlocal start
        runs.append((start, end, terminator))
        start = end if terminator is None or _implied(terminator) else end + 1

    for ins in kernel.instructions:
        at = ins.index
        if at in labels:
            if at > start:
                close(at, None)
            number[at] = len(runs)
        decoded = decode(ins, names)
        if isinstance(decoded, Terminator):
            close(at, decoded)
            continue
        ops[at] = decoded
        members = getattr(decoded, "members", None)
        if members is not None:
            close(at, WarpBarrier(ins, _guard(ins, names), members, implied=True))
        if (barrier := getattr(decoded, "barrier", None)) is not None:
            close(at, barrier)
    close(len(kernel.instructions), None)
    number[len(kernel.instructions)] = len(runs)
    return Program(kernel, names, tuple(_run(names, ops, number, *bounds) for bounds in runs))


def _implied(terminator: Terminator) -> bool:
    """Whether it stands before an instruction, and is none of the text."""
    return isinstance(terminator, WarpBarrier | Barrier) and terminator.implied


def _run(
    names: RegisterMap, ops: dict[int, Op], number: dict[int, int], start: int, end: int, terminator: Terminator | None
) -> Run:
    body = tuple(ops[i] for i in range(start, end))
    target = number[terminator.target] if isinstance(terminator, Branch) else -1
    counted = end - start + (terminator is not None and not _implied(terminator))
    return Run(body, tuple(_guard(op.ins, names) for op in body), terminator, target, start, counted)


def _guard(ins: Instruction, names: RegisterMap) -> Ref | None:
    return None if ins.guard is None else names.source(ins, ins.guard, "pred")


def _guarded(step: Step, predicate: Array, negated: bool) -> Step:
    def guarded(active: Active) -> None:
        mask = ~predicate if negated else predicate
        chosen = active.only(mask)
        assert chosen.lanes is not None
        if chosen.lanes.any():
            step(chosen)

    return guarded
