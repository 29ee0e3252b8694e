"""What a whole warp does at once for its tensor core: mma.sync, ldmatrix, stmatrix (PTX ISA 9.0, section 9.7.15).

Each needs all 32 lanes. Fragments are told by the equations of that section: groupID is lane / 4, threadID_in_group is
lane % 4, and a register has neighbours along a row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from layoutgen.sim.elements import ELEMENTS
from layoutgen.sim.frame import Active, Array, Frame, Op, Step
from layoutgen.sim.instructions.data import vector
from layoutgen.sim.instructions.forms import Decoder
from layoutgen.sim.instructions.loadstore import check_shared, effective
from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import Ref, RegisterMap
from layoutgen.sim.tensor_core import multiply_add

_LANE = np.arange(32)
_UNITS = {bits: np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)}
_ACCUMULATOR_BITS = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}

Shape = tuple[int, int, int]
_NARROW = ("e4m3", "e5m2")
_BYTES = ("s8", "u8")
_HALF: tuple[Shape, ...] = ((16, 8, 8), (16, 8, 16))
# Types of A and B, types of C and D -> shapes (M, N, K).
_FORMS: Mapping[tuple[tuple[str, ...], tuple[str, ...]], tuple[Shape, ...]] = {
    (("f16",), ("f16", "f32")): _HALF,
    (("bf16",), ("f32",)): _HALF,
    (("tf32",), ("f32",)): ((16, 8, 4), (16, 8, 8)),
    (_NARROW, ("f32",)): ((16, 8, 16), (16, 8, 32)),
    (_BYTES, ("s32",)): ((8, 8, 16), (16, 8, 16), (16, 8, 32)),
    (("f64",), ("f64",)): ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)),
}
_MMA = re.compile(r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)")


@cache
def places(rows: int, columns: int, per_register: int) -> Array:
    """(lane, value) -> row * columns + column of a fragment whose registers have so many neighbours along a row.

    Registers go down by 8 rows first, then along the row by what four lanes hold.
    """
    lane, value = _LANE[:, None], np.arange(rows * columns // 32)
    register, within = value // per_register, value % per_register
    down = rows // 8
    row = lane // 4 + 8 * (register % down)
    column = lane % 4 * per_register + within + 4 * per_register * (register // down)
    result: Array = row * columns + column
    return result


def _whole_warps(frame: Frame, ins: Instruction, active: Active) -> Array:
    """(warps,): those that execute it, with all their lanes."""
    if active.lanes is None:
        return np.ones(frame.lanes // 32, bool)
    present = active.lanes.reshape(-1, 32)
    some: Array = np.logical_or.reduce(present, 1)
    every: Array = np.logical_and.reduce(present, 1)
    if (some & ~every).any():
        warp = int(np.flatnonzero(some & ~every)[0])
        lane = warp * 32 + int(present[warp].argmax())
        missing = int(np.flatnonzero(~present[warp])[0])
        rule = "all 32 lanes of a warp execute an .aligned instruction together"
        raise frame.fault(ins, rule, lane, f"lane {missing} of the warp does not")
    return every


@dataclass(frozen=True, slots=True)
class Mma:
    """mma.sync: d = a b + c of one (M, N, K); the registers of each are those of one lane."""

    ins: Instruction
    shape: Shape
    types: tuple[str, str, str]
    saturate: bool
    d: tuple[Ref, ...]
    a: tuple[Ref, ...]
    b: tuple[Ref, ...]
    c: tuple[Ref, ...]
    members: Ref

    def bind(self, frame: Frame) -> Step:
        m, n, k = self.shape
        d, a, b, c = ([frame.row(ref).reshape(-1, 32) for ref in refs] for refs in (self.d, self.a, self.b, self.c))
        of_a, of_b = (ELEMENTS[kind].bits for kind in self.types[:2])
        of_c = _ACCUMULATOR_BITS[self.types[2]]

        def step(active: Active) -> None:
            warps = _whole_warps(frame, self.ins, active)
            result = multiply_add(
                _gather(a, warps, m, k, of_a), _gather(b, warps, n, k, of_b), _gather(c, warps, m, n, of_c, pairs=True),
                self.types, self.saturate,
            )  # fmt: skip
            _scatter(d, warps, result, of_c)

        return step


def _gather(rows: list[Array], warps: Array, height: int, width: int, bits: int, pairs: bool = False) -> Array:
    """Registers of each lane -> matrices (warps, height, width) of unsigned integers."""
    registers = np.stack([row[warps] for row in rows], axis=-1)
    values = registers.view(_UNITS[bits]).reshape(len(registers), 32, -1)
    found = np.empty((len(registers), height * width), _UNITS[bits])
    found[:, places(height, width, 2 if pairs else max(32 // bits, 1))] = values
    return found.reshape(-1, height, width)


def _scatter(rows: list[Array], warps: Array, matrices: Array, bits: int) -> None:
    """C's matrices (warps, M, N) -> registers of each lane."""
    count, height, width = matrices.shape
    values = np.ascontiguousarray(matrices.reshape(count, -1)[:, places(height, width, 2)]).view(rows[0].dtype)
    for index, row in enumerate(rows):
        row[warps] = values[:, :, index]


def _everyone(ins: Instruction, names: RegisterMap) -> Ref:
    """The mask of the lanes that wait for each other first: all."""
    return names.source(ins, "0xffffffff", "b32")


def _registers(ins: Instruction, names: RegisterMap, text: str, count: int, kind: str, target: bool) -> tuple[Ref, ...]:
    found = vector(text)
    if found is None or len(found) != count:
        raise names.refuse(ins, f"operand {text} is a vector of {count}")
    read = names.register if target else names.source
    return tuple(read(ins, each, kind) for each in found)


def _mma(ins: Instruction, names: RegisterMap) -> Op:
    found = _MMA.fullmatch(ins.opcode)
    if found is None or len(ins.operands) != 4:
        raise names.refuse(ins)
    m, n, k = shape = (int(found[1]), int(found[2]), int(found[3]))
    saturate, of_d, of_a, of_b, of_c = found.groups()[3:]
    known = any(
        of_a in inputs and of_b in inputs and of_c == of_d and of_c in sums and shape in shapes
        for (inputs, sums), shapes in _FORMS.items()
    )
    if not known or (saturate is not None and of_c != "s32"):
        raise names.refuse(ins)
    bits, sum_bits = (ELEMENTS[of_a].bits, ELEMENTS[of_b].bits), _ACCUMULATOR_BITS[of_c]
    kind = "b64" if of_c == "f64" else "b32"
    count = [rows * columns * each // (32 * max(32, each)) for rows, columns, each in
             ((m, n, sum_bits), (m, k, bits[0]), (n, k, bits[1]), (m, n, sum_bits))]  # fmt: skip
    d, a, b, c = (
        _registers(ins, names, text, each, kind, target)
        for text, each, target in zip(ins.operands, count, (True, False, False, False), strict=True)
    )
    return Mma(ins, shape, (of_a, of_b, of_c), saturate is not None, d, a, b, c, _everyone(ins, names))


@dataclass(frozen=True, slots=True)
class MatrixMove:
    """ldmatrix or stmatrix: 8x8 matrices of 16-bit elements, one register of each a lane.

    Eight lanes for each matrix give the addresses of its rows, 16 bytes each; what the other lanes give is not looked
    at. transposed: a lane holds two neighbours of a column instead of a row.
    """

    ins: Instruction
    load: bool
    transposed: bool
    registers: tuple[Ref, ...]
    base: Ref
    offset: int
    members: Ref

    def bind(self, frame: Frame) -> Step:
        count, batch = len(self.registers), frame.batch
        rows = [frame.row(ref).reshape(-1, 32) for ref in self.registers]
        units = batch.shared_units(2)
        held = np.empty(frame.lanes, self.base.dtype)
        start = frame.block.reshape(-1, 32)[:, 0] * (batch.shared_stride // 2)
        pointing = _LANE < 8 * count
        place = places(8, 8, 2)
        if self.transposed:
            place = place % 8 * 8 + place // 8

        def step(active: Active) -> None:
            warps = _whole_warps(frame, self.ins, active)
            address = effective(frame, self.base, self.offset, held)
            mask = (warps[:, None] & pointing).reshape(-1)
            asking = Active(mask, mask)
            if batch.meter is not None:
                batch.meter.shared(self.ins, address, asking, 16, load=False)  # its phases never merge
            lanes = asking.index
            check_shared(frame, self.ins, address[lanes], 16, lanes)
            if batch.races is not None:
                batch.races.access(frame, self.ins, address[lanes], 16, lanes, self.load)
            row = (address[lanes] >> address.dtype.type(1)).astype(np.int64).reshape(-1, count, 8)
            index = (row + start[warps][:, None, None])[..., None] + np.arange(8)  # (warp, matrix, row, element)
            flat = index.reshape(-1, count, 64)
            for matrix, register in enumerate(rows):
                if self.load:
                    register[warps] = np.ascontiguousarray(units[flat[:, matrix, place]]).view(np.uint32)[..., 0]
                else:
                    units[flat[:, matrix, place]] = register[warps][..., None].view(np.uint16)

        return step


# ptxas takes the shape before and behind the count, as CuTe writes it.
_MATRIX = re.compile(
    r"(ld|st)matrix\.sync\.aligned\.(?:m8n8\.x(?P<x>[124])(?P<t>\.trans)?|x(?P<y>[124])(?P<u>\.trans)?\.m8n8)"
    r"\.shared(?:::cta)?\.b16"
)


def _matrix(ins: Instruction, names: RegisterMap) -> Op:
    found = _MATRIX.fullmatch(ins.opcode)
    if found is None or len(ins.operands) != 2:
        raise names.refuse(ins)
    load = found[1] == "ld"
    held, at = ins.operands if load else reversed(ins.operands)
    registers = _registers(ins, names, held, int(found["x"] or found["y"]), "b32", load)
    base, offset = names.address(ins, at)
    return MatrixMove(ins, load, bool(found["t"] or found["u"]), registers, base, offset, _everyone(ins, names))


DECODERS: dict[str, Decoder] = {"mma": _mma, "ldmatrix": _matrix, "stmatrix": _matrix}
