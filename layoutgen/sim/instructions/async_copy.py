"""cp.async from global to shared memory, its groups and waits (PTX ISA 9.0, section 9.7.9.25).

Per thread, copies belong to the group of the next commit; a wait lands groups for the thread that waits and for no
other. A copy lands at issue (``early``) or at the wait that guarantees it (``late``), when the bytes are read from
global memory. Both are what hardware may do; a kernel is right only if both give the same result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from layoutgen.sim.frame import Active, Array, Frame, Op, Step
from layoutgen.sim.instructions.forms import Decoder
from layoutgen.sim.instructions.loadstore import check_shared, effective, global_parts
from layoutgen.sim.memory import Part
from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import Ref, RegisterMap

_COPY = re.compile(r"cp\.async\.(ca|cg)\.shared(?:::cta)?\.global(\.L2::cache_hint)?(?:\.L2::(?:64|128|256)B)?")


@dataclass(slots=True)
class Flight:
    """Copies of one instruction that may still be under way, as parallel arrays over the lanes that issued them."""

    ins: Instruction
    size: int  # bytes written per lane
    lanes: Array
    group: Array
    shared: Array  # offsets in the block's shared memory
    source: Array  # global addresses
    taken: Array | None  # bytes to read, the rest being zeros; None: all
    landed: bool

    def split(self, chosen: Array) -> tuple[Flight, Flight]:
        """The lanes in ``chosen`` (a mask over the flight's lanes), and the others."""

        def part(mask: Array) -> Flight:
            taken = None if self.taken is None else self.taken[mask]
            return Flight(
                self.ins,
                self.size,
                self.lanes[mask],
                self.group[mask],
                self.shared[mask],
                self.source[mask],
                taken,
                self.landed,
            )

        return part(chosen), part(~chosen)


class Copies:
    """The copies under way of one frame's lanes. ``committed`` counts each lane's groups."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.committed = np.zeros(frame.lanes, np.int64)
        self.flights: list[Flight] = []

    def reset(self) -> None:
        """As a block starts: nothing under way."""
        self.committed[...] = 0
        self.flights.clear()

    def issue(self, flight: Flight) -> None:
        """Puts a flight under way. Landing early, its bytes arrive now, but only a wait makes them the lane's."""
        batch = self.frame.batch
        if batch.races is not None:
            batch.races.copy_issued(self.frame, flight.ins, flight.shared, flight.size, flight.lanes)
        if batch.options.async_landing == "early":
            self._land(flight)
        else:
            for some, count in self._reads(flight):
                self._sources(flight, some, count)  # a copy that never lands must read inside its buffer, too
        if not flight.landed or batch.races is not None:
            self.flights.append(flight)

    def wait(self, active: Active, allowed: int | None) -> None:
        """Lands, for active lanes, all groups but the latest ``allowed``; with None also what no commit covers."""
        waiting: list[Flight] = []
        for flight in self.flights:
            due = np.ones(len(flight.lanes), bool)
            if allowed is not None:
                due = flight.group + allowed < self.committed[flight.lanes]
            if active.lanes is not None:
                due &= active.lanes[flight.lanes]
            if due.all():
                self._finish(flight)
            elif not due.any():
                waiting.append(flight)
            else:
                done, rest = flight.split(due)
                self._finish(done)
                waiting.append(rest)
        self.flights = waiting

    def _finish(self, flight: Flight) -> None:
        if not flight.landed:
            self._land(flight)
        if self.frame.batch.races is not None:
            self.frame.batch.races.copy_landed(self.frame, flight.ins, flight.shared, flight.size, flight.lanes)

    def _land(self, flight: Flight) -> None:
        flight.landed = True
        batch = self.frame.batch
        to = flight.shared.astype(np.int64) + self.frame.block[flight.lanes] * batch.shared_stride
        if flight.taken is not None:
            words = to[flight.taken < flight.size] // 4
            for k in range(flight.size // 4):
                batch.shared_units(4)[words + k] = 0
        for some, count in self._reads(flight):
            self._copy(flight, some, to, count)

    def _reads(self, flight: Flight) -> list[tuple[Array, int]]:
        """(which of the flight's lanes, how many bytes they read), without those that read none."""
        if flight.taken is None:
            return [(np.arange(len(flight.lanes)), flight.size)]
        counts = np.unique(flight.taken).tolist()
        return [(np.flatnonzero(flight.taken == count), count) for count in counts if count]

    def _copy(self, flight: Flight, some: Array, to: Array, count: int) -> None:
        """Copies ``count`` bytes for the flight's lanes ``some``: in words, or byte by byte for a short read."""
        whole = count == flight.size
        width = 4 if whole else 1
        shared = self.frame.batch.shared_units(width)
        for part, buffer, offset in self._sources(flight, some, count):
            target = to[some] if part is None else to[some[part]]
            for k in range(0, count, width):
                shared[(target + k) // width] = buffer.units(width).take((offset + k) // width)

    def _sources(self, flight: Flight, some: Array, count: int) -> list[Part]:
        """Where ``count`` bytes of each lane begin; every byte has been checked."""
        address, lanes = flight.source[some], flight.lanes[some]
        if count == flight.size:
            return global_parts(self.frame, flight.ins, address, count, False, lanes)
        for k in range(1, count):
            global_parts(self.frame, flight.ins, address + np.uint64(k), 1, False, lanes)
        return global_parts(self.frame, flight.ins, address, 1, False, lanes)


@dataclass(frozen=True, slots=True)
class Copy:
    """cp.async of ``size`` bytes. ``taken``: register with the bytes to read; ``ignore``: predicate that reads none."""

    ins: Instruction
    size: int
    shared: tuple[Ref, int]
    source: tuple[Ref, int]
    taken: Ref | None
    ignore: Ref | None
    ignore_negated: bool

    def bind(self, frame: Frame) -> Step:
        batch, copies, size = frame.batch, frame.own(Copies), self.size
        shared_row, source_row = np.empty(frame.lanes, self.shared[0].dtype), np.empty(frame.lanes, np.uint64)
        taken_row = None if self.taken is None else frame.row(self.taken)
        ignore_row = None if self.ignore is None else frame.row(self.ignore)
        everyone = np.arange(frame.lanes)

        def step(active: Active) -> None:
            shared = effective(frame, *self.shared, shared_row)
            source = effective(frame, *self.source, source_row)
            lanes = everyone if active.lanes is None else active.index
            taken = None if taken_row is None else taken_row[lanes]
            if ignore_row is not None:
                taken = np.where(ignore_row[lanes] != self.ignore_negated, np.uint32(0), np.uint32(size))
            if batch.meter is not None:
                reading = active
                if taken is not None:
                    mask = np.zeros(frame.lanes, bool)
                    mask[lanes[taken > 0]] = True
                    reading = Active(mask, mask)
                batch.meter.copy(self.ins, shared, source, active, reading, size)
            shared, source = shared[lanes], source[lanes]
            check_shared(frame, self.ins, shared, size, None if active.lanes is None else lanes)
            wrong = source & np.uint64(size - 1) != 0
            if wrong.any():
                lane = int(lanes[np.flatnonzero(wrong)[0]])
                raise frame.fault(
                    self.ins,
                    f"a {size}-byte copy reads an address aligned to {size} bytes",
                    lane,
                    "a misaligned source",
                )
            if taken is not None and (taken > size).any():
                lane = int(lanes[np.flatnonzero(taken > size)[0]])
                raise frame.fault(self.ins, "src-size is at most cp-size", lane, f"src-size {int(taken.max())}")
            copies.issue(Flight(self.ins, size, lanes, copies.committed[lanes], shared, source, taken, False))

        return step


@dataclass(frozen=True, slots=True)
class Commit:
    """cp.async.commit_group: closes the group of each active lane."""

    ins: Instruction

    def bind(self, frame: Frame) -> Step:
        copies = frame.own(Copies)

        def step(active: Active) -> None:
            copies.committed += 1 if active.lanes is None else active.lanes

        return step


@dataclass(frozen=True, slots=True)
class Wait:
    """cp.async.wait_group ``allowed``, or cp.async.wait_all (None)."""

    ins: Instruction
    allowed: int | None

    def bind(self, frame: Frame) -> Step:
        copies = frame.own(Copies)
        return lambda active: copies.wait(active, self.allowed)


def _cp(ins: Instruction, names: RegisterMap) -> Op:
    if ins.opcode == "cp.async.commit_group" and not ins.operands:
        return Commit(ins)
    if ins.opcode == "cp.async.wait_all" and not ins.operands:
        return Wait(ins, None)
    if ins.opcode == "cp.async.wait_group" and len(ins.operands) == 1:
        return Wait(ins, names.integer(ins, ins.operands[0]))
    m = _COPY.fullmatch(ins.opcode)
    count = len(ins.operands) - (1 if m and m[2] else 0)
    if m is None or count not in (3, 4):
        raise names.refuse(ins)
    size = names.integer(ins, ins.operands[2])
    if size not in ((4, 8, 16) if m[1] == "ca" else (16,)):
        raise names.refuse(ins, "cp.async.ca copies 4, 8 or 16 bytes and cp.async.cg copies 16")
    taken = ignore = None
    negated = False
    if count == 4:
        fourth = ins.operands[3]
        negated = fourth.startswith("!")
        if names.declared(fourth.lstrip("!")) == "pred":
            ignore = names.source(ins, fourth.lstrip("!"), "pred")
        else:
            taken = names.source(ins, fourth, "u32")
    source, offset = names.address(ins, ins.operands[1])
    if source.width != 8:
        raise names.refuse(ins, "a global address is 64 bits wide")
    return Copy(ins, size, names.address(ins, ins.operands[0]), (source, offset), taken, ignore, negated)


DECODERS: dict[str, Decoder] = {"cp": _cp}
