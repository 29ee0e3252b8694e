"""ld and st in the spaces param, global, shared, local and generic (PTX ISA 9.0, sections 9.7.9.8 to 9.7.9.12)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from layoutgen.sim.frame import Active, Array, Frame, Op, Step
from layoutgen.sim.instructions.data import vector
from layoutgen.sim.instructions.forms import Decoder
from layoutgen.sim.memory import AccessError, Part
from layoutgen.sim.parser import SIZES, Instruction
from layoutgen.sim.registers import LOCAL_WINDOW, SHARED_WINDOW, Ref, RegisterMap

_SPACES = {"param": "param", "global": "global", "shared": "shared", "shared::cta": "shared", "local": "local"}
# Hints and orderings that change nothing where one instruction runs at a time.
_HINT = re.compile(
    r"weak|volatile|relaxed|acquire|release|cta|cluster|gpu|sys|ca|cg|cs|lu|cv|wb|wt|nc|L1::evict_\w+|L1::no_allocate|"
    r"L2::evict_\w+|L2::cache_hint|L2::(?:64|128|256)B"
)


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store: ``registers`` (low address first; None: ``_``) of ``width`` bytes each, at [base + offset]."""

    ins: Instruction
    space: str
    load: bool
    width: int
    registers: tuple[Ref | None, ...]
    base: Ref
    offset: int

    @property
    def size(self) -> int:
        """Bytes per thread."""
        return self.width * len(self.registers)

    def bind(self, frame: Frame) -> Step:
        return _BINDERS[self.space](self, frame)


def effective(frame: Frame, base: Ref, offset: int, out: Array) -> Array:
    """base + offset, wrapping in the width of the base: shape (lanes,)."""
    result: Array = np.add(frame.row(base), base.dtype.type(offset & (1 << 8 * base.width) - 1), out=out)
    return result


def _rows(access: Access, frame: Frame) -> list[Array | None]:
    return [None if r is None else frame.row(r) for r in access.registers]


def _move(access: Access, rows: list[Array | None], units: Array, index: Array, lanes: Array | None) -> None:
    """Between registers of ``lanes`` (None: all) and memory units ``index``, ``index`` + 1, ..., one per register."""
    for k, row in enumerate(rows):
        at = index + k if k else index
        if not access.load:
            assert row is not None
            units[at] = (row if lanes is None else row[lanes]).astype(units.dtype, copy=False)
        elif row is not None and lanes is None and row.dtype == units.dtype and row.flags.c_contiguous:
            units.take(at, out=row, mode="clip")  # every index has been checked; clip spares numpy a copy
        elif row is not None:
            values = units.take(at)
            if row.dtype.kind == "i":
                values = values.view(f"i{units.dtype.itemsize}")  # a narrow signed load extends its sign
            if lanes is None:
                row[...] = values
            else:
                row[lanes] = values


def global_parts(
    frame: Frame, ins: Instruction, address: Array, size: int, write: bool, lanes: Array | None
) -> list[Part]:
    """``GlobalMemory.locate`` for addresses of ``lanes``, with its error told of this instruction."""
    try:
        return frame.batch.memory.locate(address, size, write)
    except AccessError as e:
        lane = e.lane if lanes is None else int(lanes[e.lane])
        raise frame.fault(ins, e.rule, lane, e.detail) from None


def check_shared(frame: Frame, ins: Instruction, address: Array, size: int, lanes: Array | None) -> None:
    """Addresses (lanes,) into the block's shared memory are aligned to ``size`` and inside it; SimError otherwise."""
    if int(np.bitwise_or.reduce(address)) & (size - 1):
        bad, rule = (
            np.flatnonzero(address & address.dtype.type(size - 1)),
            f"a {size}-byte access is aligned to {size} bytes",
        )
    elif frame.batch.shared_floor and int(np.minimum.reduce(address)) < frame.batch.shared_floor:
        bad, rule = np.flatnonzero(address < frame.batch.shared_floor), "a shared access stays behind what is reserved"
    elif int(np.maximum.reduce(address)) + size > frame.batch.shared_bytes:
        bad = (
            np.flatnonzero(address > frame.batch.shared_bytes - size)
            if size <= frame.batch.shared_bytes
            else np.arange(1)
        )
        rule = "a shared access stays inside the block's shared memory"
    else:
        return
    lane = int(bad[0]) if lanes is None else int(lanes[bad[0]])
    raise frame.fault(
        ins, rule, lane, f"{size} bytes at shared offset {int(address[bad[0]])} of {frame.batch.shared_bytes}"
    )


def _bind_global(access: Access, frame: Frame) -> Step:
    rows, size = _rows(access, frame), access.size
    held = np.empty(frame.lanes, np.uint64)
    meter = frame.batch.meter

    def step(active: Active) -> None:
        address = effective(frame, access.base, access.offset, held)
        if meter is not None:
            meter.globally(access.ins, address, active, size)
        lanes = None if active.lanes is None else active.index
        if lanes is not None:
            address = address[lanes]
        for part, buffer, offset in global_parts(frame, access.ins, address, size, not access.load, lanes):
            chosen = lanes if part is None else part if lanes is None else lanes[part]
            _move(access, rows, buffer.units(access.width), offset // access.width, chosen)

    return step


def _bind_shared(access: Access, frame: Frame) -> Step:
    rows, size, batch = _rows(access, frame), access.size, frame.batch
    held = np.empty(frame.lanes, access.base.dtype)
    units = batch.shared_units(access.width)
    block_start = frame.block * (batch.shared_stride // access.width)
    shift = access.width.bit_length() - 1

    def step(active: Active) -> None:
        address = effective(frame, access.base, access.offset, held)
        if batch.meter is not None:
            batch.meter.shared(access.ins, address, active, size, access.load)
        if active.lanes is None:
            check_shared(frame, access.ins, address, size, None)
            lanes, index = None, (address >> address.dtype.type(shift)).astype(np.int64) + block_start
        else:
            lanes = active.index
            address = address[lanes]
            check_shared(frame, access.ins, address, size, lanes)
            index = (address >> address.dtype.type(shift)).astype(np.int64) + block_start[lanes]
        if batch.races is not None:
            batch.races.access(frame, access.ins, address, size, lanes, access.load)
        _move(access, rows, units, index, lanes)

    return step


def _bind_local(access: Access, frame: Frame) -> Step:
    rows, size = _rows(access, frame), access.size
    units = frame.local_units(access.width)
    start = np.arange(frame.lanes) * (frame.local_stride // access.width)
    held = np.empty(frame.lanes, access.base.dtype)
    limit = frame.names.kernel.local_bytes

    def step(active: Active) -> None:
        lanes = np.arange(frame.lanes) if active.lanes is None else active.index
        address = effective(frame, access.base, access.offset, held)[lanes].astype(np.int64)
        bad = np.flatnonzero((address & size - 1 != 0) | (address < 0) | (address + size > limit))
        if bad.size:
            rule = "a local access is aligned and inside the thread's local memory"
            detail = f"{size} bytes at local offset {address[bad[0]]} of {limit}"
            raise frame.fault(access.ins, rule, int(lanes[bad[0]]), detail)
        _move(access, rows, units, address // access.width + start[lanes], lanes)

    return step


def _bind_generic(access: Access, frame: Frame) -> Step:
    """Picks the space by the window that each address lies in, then does what that space's instruction does."""
    spaces = ("global", "shared", "local")
    windows = np.array([0, SHARED_WINDOW, LOCAL_WINDOW], np.uint64)
    base = np.empty(frame.lanes, np.uint64)
    steps: dict[int, Step] = {}

    def step(active: Active) -> None:
        address = effective(frame, access.base, access.offset, base)
        space = np.searchsorted(windows, address, side="right") - 1
        for number in np.unique(space if active.lanes is None else space[active.index]).tolist():
            if number not in steps:
                shifted = replace(access, space=spaces[number], offset=access.offset - int(windows[number]))
                steps[number] = shifted.bind(frame)
            inside = space == number
            steps[number](active if inside.all() and active.lanes is None else active.only(inside))

    return step


def _bind_param(access: Access, frame: Frame) -> Step:
    rows = _rows(access, frame)
    base = frame.row(access.base)
    params = frame.batch.params

    def step(active: Active) -> None:
        bases = base if active.lanes is None else base[active.index]
        first = int(bases[0])
        if (bases != bases[0]).any():
            raise frame.fault(
                access.ins, "all lanes read the same parameter", 0, "an address that differs between lanes"
            )
        at = first + access.offset
        if at % access.size or not 0 <= at <= len(params) - access.size:
            raise frame.fault(access.ins, "a parameter read is aligned and in range", 0, f"{access.size} bytes at {at}")
        for k, row in enumerate(rows):
            if row is not None:
                raw = params[at + k * access.width : at + (k + 1) * access.width]
                value = int.from_bytes(raw, "little", signed=row.dtype.kind == "i")
                np.copyto(row, row.dtype.type(value), where=True if active.keep is None else active.keep)

    return step


_BINDERS: dict[str, Callable[[Access, Frame], Step]] = {
    "param": _bind_param,
    "global": _bind_global,
    "shared": _bind_shared,
    "local": _bind_local,
    "generic": _bind_generic,
}


def _load_or_store(ins: Instruction, names: RegisterMap) -> Op:
    root, *mods = ins.opcode.split(".")
    load = root == "ld"
    kind = mods[-1] if mods else ""
    spaces = [m for m in mods if m in _SPACES]
    vectors = [m for m in mods if m in ("v2", "v4")]
    others = [m for m in mods[:-1] if m not in spaces and m not in vectors]
    hints = len(ins.operands) == 3 and "L2::cache_hint" in others
    known = all(_HINT.fullmatch(m) for m in others) and len(spaces) <= 1 and len(vectors) <= 1
    if (
        not known
        or kind not in SIZES
        or kind in ("b128", "f16", "bf16", "f16x2", "bf16x2")
        or len(ins.operands) != 2 + hints
    ):
        raise names.refuse(ins)
    where, what = ins.operands[:2] if not load else (ins.operands[1], ins.operands[0])
    parts = vector(what) if vectors else (what,)
    if parts is None or (vectors and len(parts) != int(vectors[0][1])) or len(parts) * SIZES[kind] > 16:
        raise names.refuse(ins)
    space = _SPACES[spaces[0]] if spaces else "generic"
    base, offset = names.address(ins, where)
    if space in ("global", "generic") and base.width != 8:
        raise names.refuse(ins, "a global address is 64 bits wide")
    if space == "param" and not load:
        raise names.refuse(ins)
    if kind[0] == "f":
        kind = f"b{kind[1:]}"  # floats move as bits
    if load:
        registers = tuple(None if p == "_" else names.target(ins, p, kind) for p in parts)
    else:
        registers = tuple(names.source(ins, p, kind, widen=True) for p in parts)
    return Access(ins, space, load, SIZES[kind], registers, base, offset)


DECODERS: dict[str, Decoder] = {"ld": _load_or_store, "st": _load_or_store}
