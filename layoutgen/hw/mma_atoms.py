"""Matrix-multiply atoms that one warp (or quad pair, or thread) executes: mma.sync, with who holds what.

The fragments follow the equations of the PTX ISA, section "Matrix multiply-accumulate operation using mma
instruction", 9.7.14.5.1 to 9.7.14.5.13 in version 9.2; ``section`` names the one of each atom. Names are CuTe's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as cartesian

from layoutgen.algebra.layout import Layout
from layoutgen.algebra.tv import SCALAR_FMA, MmaLayouts
from layoutgen.errors import LayoutError
from layoutgen.hw.gmma_atoms import gmma_atom, is_gmma
from layoutgen.hw.types import MmaAtom, bits_of, gathered

_ISA = "PTX ISA 9.2, 9.7.14.5"


def fragment(rows: int, columns: int, per_register: int) -> Layout:
    """(lane, value) -> element of (rows, columns), for a warp: 8 rows by 4 lanes, each with one register of neighbours.

    Lane / 4 is the row and lane % 4 the register along a row. Further registers go down by 8 rows, then along the row:
    the common form of groupID and threadID_in_group in all the PTX ISA's fragments from m8n8k4 .f64 on.

    >>> print(fragment(16, 16, 2))
    ((4,8),(2,2,2)):((32,1),(16,8,128))
    """
    values = gathered((per_register, rows), (rows // 8, 8), (columns // (4 * per_register), 4 * per_register * rows))
    return Layout(((4, 8), values.shape), ((per_register * rows, 1), values.stride))


def _warp(m: int, n: int, k: int, bits: int) -> MmaLayouts:
    """A, B in registers of 32 bits (64 for f64), k fastest; C in pairs of columns."""
    per_register = max(32 // bits, 1)
    return MmaLayouts(
        (m, n, k), Layout(32), fragment(m, k, per_register), fragment(n, k, per_register), fragment(m, n, 2)
    )


def _quad_pair(a_row: bool, b_column: bool, wide: bool) -> MmaLayouts:
    """m8n8k4 .f16: lanes 0-3 and 16-19 (and so on) work as one; row is lane % 4 (+4 for the upper lanes)."""
    contiguous_k = Layout((8, 4), (1, 8))
    contiguous_mn = Layout(((4, 2), 4), ((8, 4), 1))
    c_f32 = Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))
    return MmaLayouts(
        (8, 8, 4),
        Layout((4, 2), (1, 16)),
        contiguous_k if a_row else contiguous_mn,
        contiguous_k if b_column else contiguous_mn,
        c_f32 if wide else Layout((8, 8), (1, 8)),
    )


# Architecture, shapes, A and B types, accumulator types, suffixes.
_S8 = [("S8", "S8"), ("S8", "U8"), ("U8", "S8"), ("U8", "U8")]
_S4 = [("S4", "S4"), ("S4", "U4"), ("U4", "S4"), ("U4", "U4")]
_F8 = [("E4M3", "E4M3"), ("E4M3", "E5M2"), ("E5M2", "E4M3"), ("E5M2", "E5M2")]
_WARP: list[tuple[int, list[tuple[int, int, int]], list[tuple[str, str]], list[str], list[str]]] = [
    (75, [(16, 8, 8)], [("F16", "F16")], ["F32"], ["TN"]),
    (75, [(8, 8, 16)], [("S8", "S8")], ["S32"], ["TN"]),
    (80, [(16, 8, 8), (16, 8, 16)], [("F16", "F16")], ["F16", "F32"], ["TN"]),
    (80, [(16, 8, 8), (16, 8, 16)], [("BF16", "BF16")], ["F32"], ["TN"]),
    (80, [(16, 8, 4), (16, 8, 8)], [("TF32", "TF32")], ["F32"], ["TN"]),
    (80, [(8, 8, 4)], [("F64", "F64")], ["F64"], ["TN"]),
    (80, [(8, 8, 16), (16, 8, 16), (16, 8, 32)], _S8, ["S32"], ["TN", "TN_SATURATE"]),
    (80, [(8, 8, 32), (16, 8, 32), (16, 8, 64)], _S4, ["S32"], ["TN", "TN_SATURATE"]),
    (80, [(8, 8, 128), (16, 8, 128), (16, 8, 256)], [("U1", "U1")], ["S32"], ["TN_XORPOPC", "TN_ANDPOPC"]),
    (89, [(16, 8, 32)], _F8, ["F32", "F16"], ["TN"]),
    (90, [(16, 8, 4), (16, 8, 8), (16, 8, 16)], [("F64", "F64")], ["F64"], ["TN"]),
]

_SECTIONS = {
    (8, 8, 4): "2", (8, 8, 16): "3", (8, 8, 32): "4", (8, 8, 128): "5", (16, 8, 4): "6", (16, 8, 8): "7",
    (16, 8, 16): "8", (16, 8, 32): "10", (16, 8, 64): "11", (16, 8, 128): "12", (16, 8, 256): "13",
}  # fmt: skip


def _atoms() -> Iterator[MmaAtom]:
    yield MmaAtom(
        "UniversalFMA", 0, "fma, one thread", "any", "any", "any",
        SCALAR_FMA, "PTX ISA 9.2, fma",
    )  # fmt: skip
    dot = Layout((1, 4))
    yield MmaAtom(
        "SM61_DP4A", 61, "dp4a.s32.s32", "S8", "S8", "S32",
        MmaLayouts((1, 1, 4), Layout(1), dot, dot, Layout((1, 1))), "PTX ISA 9.2, dp4a",
    )  # fmt: skip
    for c_type, majors in cartesian(("F16", "F32"), ("TN", "NT", "NN", "TT")):
        layouts = _quad_pair(majors[0] == "T", majors[1] == "N", c_type == "F32")
        name = f"SM70_8x8x4_{c_type}F16F16{c_type}_{majors}"
        alayout, blayout = "row" if majors[0] == "T" else "col", "col" if majors[1] == "N" else "row"
        mnemonic = f"mma.sync.aligned.m8n8k4.{alayout}.{blayout}.{c_type.lower()}.f16.f16.{c_type.lower()}"
        yield MmaAtom(name, 70, mnemonic, "F16", "F16", c_type, layouts, f"{_ISA}.1")
    for arch, shapes, types, accumulators, suffixes in _WARP:
        for (m, n, k), (a, b), c, suffix in cartesian(shapes, types, accumulators, suffixes):
            section = "9" if (m, n, k) == (16, 8, 16) and c == "S32" else _SECTIONS[m, n, k]
            name = f"SM{arch}_{m}x{n}x{k}_{c}{a}{b}{c}_{suffix}"
            layouts = _warp(m, n, k, bits_of(a))
            yield MmaAtom(name, arch, _mnemonic(m, n, k, c, a, b, suffix), a, b, c, layouts, f"{_ISA}.{section}")


def _mnemonic(m: int, n: int, k: int, c: str, a: str, b: str, suffix: str) -> str:
    """The instruction, spelled as in PTX."""
    saturate = ".satfinite" if suffix.endswith("SATURATE") else ""
    bitwise = {"XORPOPC": ".xor.popc", "ANDPOPC": ".and.popc"}.get(suffix.removeprefix("TN_"), "")
    types = ".".join({"U1": "b1"}.get(t, t.lower()) for t in (c, a, b, c))
    return f"mma.sync.aligned.m{m}n{n}k{k}.row.col{saturate}.{types}{bitwise}"


MMA_ATOMS: dict[str, MmaAtom] = {atom.name: atom for atom in _atoms()}


def mma_atom(name: str) -> MmaAtom:
    """The atom of CuTe's name, also a warpgroup's; template arguments ``<..>`` don't change its layouts.

    Raises:
        LayoutError: there is no such atom.

    >>> atom = mma_atom("SM80_16x8x16_F32F16F16F32_TN")
    >>> print(atom.mnemonic, atom.layouts.a)
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ((4,8),(2,2,2)):((32,1),(16,8,128))
    >>> print(mma_atom("SM90_64x64x16_F32F16F16_SS<K,K>").layouts.c)
    ((4,8,4),(2,2,8)):((128,1,16),(64,8,512))
    """
    base = name.split("<")[0]
    if is_gmma(base):
        return gmma_atom(base)
    if base not in MMA_ATOMS:
        raise LayoutError(
            "an MMA atom has one of CuTe's names",
            got=name,
            allowed="UniversalFMA, SM70_8x8x4_.., SM75_.., SM80_.., SM89_.. and SM90_.. of mma.sync and wgmma",
            fix="see layoutgen.hw.mma_atoms.MMA_ATOMS",
        )
    return MMA_ATOMS[base]
