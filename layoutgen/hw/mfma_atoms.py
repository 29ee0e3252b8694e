"""Matrix-core atoms of AMD's CDNA 3 (MI300X): v_mfma of 32x32 and 16x16, one block, with who holds what in 64 lanes.

Source: AMD Instinct MI300 Instruction Set Architecture, "Matrix Arithmetic Instructions"; the register mappings are
those that AMD's matrix instruction calculator prints. Operands here are A (M,K), B (N,K) and C (M,N), as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutgen.algebra.layout import Layout
from layoutgen.algebra.tv import MmaLayouts
from layoutgen.errors import LayoutError
from layoutgen.hw.types import MmaAtom, gathered

WAVEFRONT = 64

# Accumulator type, types of A and B, (M and N, K) of each shape.
_SHAPES: list[tuple[str, str, list[tuple[str, str]], list[tuple[int, int]]]] = [
    ("F32", "f32_{}_f32", [("F32", "F32")], [(32, 2), (16, 4)]),
    ("F32", "f32_{}_xf32", [("XF32", "XF32")], [(32, 4), (16, 8)]),
    ("F32", "f32_{}_f16", [("F16", "F16")], [(32, 8), (16, 16)]),
    ("F32", "f32_{}_bf16", [("BF16", "BF16")], [(32, 8), (16, 16)]),
    ("I32", "i32_{}_i8", [("I8", "I8")], [(32, 16), (16, 32)]),
    ("F64", "f64_{}_f64", [("F64", "F64")], [(16, 4)]),
    ("F32", "f32_{}_{}_{}", [(a, b) for a in ("BF8", "FP8") for b in ("BF8", "FP8")], [(32, 16), (16, 32)]),
]


def multiplicand(rows: int, k: int) -> Layout:
    """(lane, value) -> element of (rows, k): lane % rows is the row; each group of lanes has k / groups neighbours.

    >>> print(multiplicand(32, 8))
    ((32,2),4):((1,128),32)
    """
    groups = WAVEFRONT // rows
    values = gathered((k // groups, rows))
    return Layout(((rows, groups), values.shape), ((1, rows * (k // groups)), values.stride))


def accumulator(mn: int, adjacent: int = 4) -> Layout:
    """(lane, value) -> element of (mn, mn): lane % mn is the column; ``adjacent`` rows in a lane, groups of lanes next.

    >>> print(accumulator(32), accumulator(16))
    ((32,2),(4,4)):((32,4),(1,8)) ((16,4),4):((16,4),1)
    """
    groups = WAVEFRONT // mn
    values = gathered((adjacent, 1), (mn // (adjacent * groups), adjacent * groups))
    return Layout(((mn, groups), values.shape), ((mn, adjacent), values.stride))


def _atoms() -> Iterator[MmaAtom]:
    for c, form, types, shapes in _SHAPES:
        for a, b in types:
            for mn, k in shapes:
                name = f"v_mfma_{form.format(f'{mn}x{mn}x{k}', a.lower(), b.lower())}"
                # f64 accumulators fill two registers, and neighbouring rows lie in neighbouring groups of lanes.
                c_tv = accumulator(mn, 1 if c == "F64" else 4)
                operand = multiplicand(mn, k)
                layouts = MmaLayouts((mn, mn, k), Layout(WAVEFRONT), operand, operand, c_tv)
                section = "AMD Instinct MI300 ISA (gfx942), Matrix Arithmetic Instructions"
                yield MmaAtom(name, 942, name, a, b, c, layouts, section)


MFMA_ATOMS: dict[str, MmaAtom] = {atom.name: atom for atom in _atoms()}


def mfma_atom(name: str) -> MmaAtom:
    """The atom of AMD's mnemonic.

    Raises:
        LayoutError: there is no such atom here.

    >>> atom = mfma_atom("v_mfma_f32_16x16x16_f16")
    >>> print(atom.layouts.a, atom.layouts.c)
    ((16,4),4):((1,64),16) ((16,4),4):((16,4),1)
    """
    if name not in MFMA_ATOMS:
        raise LayoutError("an MFMA atom has one of these mnemonics", got=name, allowed=", ".join(MFMA_ATOMS))
    return MFMA_ATOMS[name]
