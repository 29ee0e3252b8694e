"""Copy instructions of a whole warp, ldmatrix and stmatrix, and of one thread, with who moves what, in bits.

Sources: PTX ISA 9.2, 9.7.14.5.15 "ldmatrix", 9.7.14.5.16 "stmatrix", and 9.7.9 "Data Movement". Names are CuTe's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product as cartesian

from layoutgen.algebra.layout import Layout
from layoutgen.algebra.tiled_copy import CopyLayouts
from layoutgen.errors import LayoutError
from layoutgen.hw.types import gathered

_VECTOR = re.compile(r"(?:UniversalCopy|SM80_CP_ASYNC_CACHE(?:ALWAYS|GLOBAL)(?:_ZFILL)?)<[a-z]*?(?P<bits>\d+)>")
_WIDTHS = (8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class CopyInstruction:
    """One copy instruction.

    name: CuTe's. arch: the oldest compute capability, times ten. mnemonic: as spelled in PTX. layouts: (thread,
    value) -> bit of what is moved, for source and destination; ``layouts.recast(1, bits)`` counts elements. section:
    where the PTX ISA defines it.
    """

    name: str
    arch: int
    mnemonic: str
    layouts: CopyLayouts
    section: str


def _rows(matrices: int) -> Layout:
    """(lane, bit) -> bit: 8 lanes for each 8x8 matrix of 16-bit elements point at its rows; the others repeat them."""
    if matrices == 4:
        return Layout((32, 128), (128, 1))
    return Layout(((8 * matrices, 4 // matrices), 128), ((128, 0), 1))


def _registers(matrices: int, transposed: bool) -> Layout:
    """(lane, bit) -> bit: each lane has 32 bits of every matrix, row lane / 4 and two neighbours of it at lane % 4;
    transposed, two neighbours in the column lane / 4.
    """
    values = gathered((16, 1), (2, 128), (matrices, 1024)) if transposed else gathered((32, 1), (matrices, 1024))
    lanes = Layout((4, 8), (256, 16)) if transposed else Layout(32, 32)
    return Layout((lanes.shape, values.shape), (lanes.stride, values.stride))


def _matrix_copies() -> list[CopyInstruction]:
    found = []
    for (load, transposed), count in cartesian(cartesian((True, False), (False, True)), (1, 2, 4)):
        memory, registers = _rows(count), _registers(count, transposed)
        kind = f"U16x{2 * count}" if transposed else f"U32x{count}"
        suffix = ".trans" if transposed else ""
        if load:
            name, arch, mnemonic, section = f"SM75_{kind}_LDSM", 75, "ldmatrix", "9.7.14.5.15"
            layouts = CopyLayouts(memory, registers, registers)
        else:
            name, arch, mnemonic, section = f"SM90_{kind}_STSM", 90, "stmatrix", "9.7.14.5.16"
            layouts = CopyLayouts(registers, memory, registers)
        mnemonic = f"{mnemonic}.sync.aligned.m8n8.x{count}{suffix}.shared.b16"
        found.append(
            CopyInstruction(f"{name}_{'T' if transposed else 'N'}", arch, mnemonic, layouts, f"PTX ISA 9.2, {section}")
        )
    return found


COPY_INSTRUCTIONS: dict[str, CopyInstruction] = {copy.name: copy for copy in _matrix_copies()}


def copy_instruction(name: str) -> CopyInstruction:
    """The copy instruction of CuTe's name; UniversalCopy and cp.async carry their width, as in UniversalCopy<u128>.

    Raises:
        LayoutError: there is no such instruction.

    >>> ldmatrix = copy_instruction("SM75_U32x4_LDSM_N").layouts.recast(1, 16)
    >>> print(ldmatrix.src, ldmatrix.dst)
    (32,8):(8,1) (32,(2,4)):(2,(1,64))
    >>> print(copy_instruction("UniversalCopy<u128>").layouts.recast(1, 16).ref)
    (1,8):(0,1)
    """
    if name in COPY_INSTRUCTIONS:
        return COPY_INSTRUCTIONS[name]
    match = _VECTOR.fullmatch(name)
    asynchronous = "CP_ASYNC" in name
    allowed = () if match is None else (128,) if "GLOBAL" in name else (32, 64, 128) if asynchronous else _WIDTHS
    if match is None or int(match["bits"]) not in allowed:
        raise LayoutError(
            "a copy instruction has one of CuTe's names",
            got=name,
            allowed=", ".join(COPY_INSTRUCTIONS)
            + ", UniversalCopy<u8> to <u128>, SM80_CP_ASYNC_CACHEALWAYS<u32> to <u128>, .._CACHEGLOBAL<u128>",
        )
    bits = int(match["bits"])
    if not asynchronous:
        return CopyInstruction(name, 0, f"ld and st, {bits} bits", CopyLayouts.vector(bits), "PTX ISA 9.2, ld and st")
    cache = "cg" if "GLOBAL" in name else "ca"
    mnemonic = f"cp.async.{cache}.shared.global {bits // 8}"
    return CopyInstruction(name, 80, mnemonic, CopyLayouts.vector(bits), "PTX ISA 9.2, cp.async")
