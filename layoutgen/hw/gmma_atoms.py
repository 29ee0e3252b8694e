"""Warpgroup atoms of Hopper: wgmma's accumulators and register operands, and its shared-memory layouts.

Sources: PTX ISA 9.2, 9.7.15.5.1.1 "Register Fragments" and 9.7.15.5.1.2 "Shared Memory Matrix Layout"; CuTe's names.
"""

from __future__ import annotations

import re

from layoutgen.algebra.layout import Layout
from layoutgen.algebra.smem import SmemLayout
from layoutgen.algebra.swizzle import Swizzle
from layoutgen.algebra.tv import MmaLayouts
from layoutgen.errors import LayoutError
from layoutgen.hw.types import MmaAtom, bits_of, gathered

_NAME = re.compile(
    r"SM90_64x(?P<n>\d+)x(?P<k>\d+)_(?P<c>F16|F32|S32)(?P<a>B?F16|TF32|E4M3|E5M2|[SU]8)"
    r"(?P<b>B?F16|TF32|E4M3|E5M2|[SU]8)_(?P<source>SS|RS)(?P<suffix>(?:_TN)?(?:_SATURATE)?)"
)
_FLOAT8 = {"E4M3", "E5M2"}
_INT8 = {"S8", "U8"}
_SECTIONS = {16: "1", 8: "2", 32: "3"}
SWIZZLE_BITS = {16: 0, 32: 1, 64: 2, 128: 3}
"""Bytes of a swizzled row -> bits that the swizzle changes; 16 is CuTe's INTER, the layout without one."""


def gmma_n(a: str) -> tuple[int, ...]:
    """The extents N that wgmma has for an A type: multiples of 8 up to 256, for integers 8, 24 and multiples of 16.

    >>> gmma_n("F16")[:4], gmma_n("S8")[:6], gmma_n("U8")[-1]
    ((8, 16, 24, 32), (8, 16, 24, 32, 48, 64), 256)
    """
    every = range(8, 257, 8)
    return tuple(n for n in every if a not in _INT8 or n in (8, 24) or n % 16 == 0)


def accumulator(n: int) -> Layout:
    """(thread, value) -> element of (64, n): each warp has 16 rows, in them pairs of columns as mma.sync's.

    >>> print(accumulator(128))
    ((4,8,4),(2,2,16)):((128,1,16),(64,8,512))
    """
    return Layout(((4, 8, 4), (2, 2, n // 8)), ((128, 1, 16), (64, 8, 512)))


def register_a(bits: int) -> Layout:
    """(thread, value) -> element of (64, 256 / bits), for A in registers: 32 bits along K, rows 8 apart, then along K.

    >>> print(register_a(16))
    ((4,8,4),(2,2,2)):((128,1,16),(64,8,512))
    """
    per_register = 32 // bits
    values = gathered((per_register, 64), (2, 8), (2, 4 * per_register * 64))
    return Layout(((4, 8, 4), values.shape), ((per_register * 64, 1, 16), values.stride))


def shared_operand(rows: int, columns: int) -> Layout:
    """(thread, value) -> element of an operand in shared memory: all 128 threads name all of it.

    >>> print(shared_operand(64, 16))
    (128,(64,16)):(0,(1,64))
    """
    return Layout((128, (rows, columns)), (0, (1, rows)))


def is_gmma(name: str) -> bool:
    """Whether a name has the form of a wgmma atom's.

    >>> is_gmma("SM90_64x8x16_F32F16F16_SS"), is_gmma("SM90_16x8x4_F64F64F64F64_TN")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


def gmma_atom(name: str) -> MmaAtom:
    """The wgmma atom of CuTe's name, such as SM90_64x64x16_F32F16F16_SS: A from shared memory (SS) or registers (RS).

    Raises:
        LayoutError: wgmma has no such shape or types.

    >>> atom = gmma_atom("SM90_64x96x8_F32TF32TF32_RS_TN")
    >>> print(atom.mnemonic, atom.layouts.a, atom.layouts.b)
    wgmma.mma_async.sync.aligned.m64n96k8.f32.tf32.tf32 ((4,8,4),(2,2)):((64,1,16),(8,256)) (128,(96,8)):(0,(1,96))
    """
    match = _NAME.fullmatch(name)
    if match is None or not _exists(match):
        raise LayoutError(
            "wgmma multiplies 64 by N by 256 bits",
            got=name,
            allowed="N a multiple of 8 up to 256 (integers: 8, 24 or a multiple of 16); both types f16, bf16, tf32, "
            "or 8 bits wide; accumulators f32, f16 (of f16 and 8-bit floats) or s32",
        )
    a, b, c, n, k = match["a"], match["b"], match["c"], int(match["n"]), int(match["k"])
    from_registers = match["source"] == "RS"
    layouts = MmaLayouts(
        (64, n, k),
        Layout(128),
        register_a(bits_of(a)) if from_registers else shared_operand(64, k),
        shared_operand(n, k),
        accumulator(n),
    )
    saturate = ".satfinite" if match["suffix"].endswith("SATURATE") else ""
    types = f"{c.lower()}.{a.lower()}.{b.lower()}"
    mnemonic = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}{saturate}.{types}"
    return MmaAtom(name, 90, mnemonic, a, b, c, layouts, f"PTX ISA 9.2, 9.7.15.5.1.1.{_SECTIONS[k]}")


def _exists(match: re.Match[str]) -> bool:
    a, b, c, suffix = match["a"], match["b"], match["c"], match["suffix"]
    alike = a == b or {a, b} <= _FLOAT8 or {a, b} <= _INT8
    sums = {"S32"} if a in _INT8 else {"F16", "F32"} if a in {"F16", *_FLOAT8} else {"F32"}
    # 16-bit operands may be contiguous along M or N; the others have K fastest, and CuTe says so in the name.
    suffixes = {""} if bits_of(a) == 16 else {"_TN", "_TN_SATURATE"} if a in _INT8 else {"_TN"}
    shape = int(match["n"]) in gmma_n(a) and int(match["k"]) * bits_of(a) == 256
    return alike and shape and c in sums and suffix in suffixes


def gmma_names() -> tuple[str, ...]:
    """Every wgmma atom of dense operands.

    >>> len(gmma_names()), gmma_names()[0]
    (1056, 'SM90_64x8x16_F16F16F16_SS')
    """
    pairs = [("F16", "F16"), ("BF16", "BF16"), ("TF32", "TF32")]
    pairs += [(a, b) for kind in (("E4M3", "E5M2"), ("S8", "U8")) for a in kind for b in kind]
    names = (
        f"SM90_64x{n}x{256 // bits_of(a)}_{c}{a}{b}_{source}{suffix}"
        for a, b in pairs
        for c in ("F16", "F32", "S32")
        for n in gmma_n(a)
        for source in ("SS", "RS")
        for suffix in ("", "_TN", "_TN_SATURATE")
    )
    return tuple(name for name in names if _exists(_matched(name)))


def _matched(name: str) -> re.Match[str]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise LayoutError("a wgmma atom has one of CuTe's names", got=name)
    return match


def gmma_smem_atom(major: str, row_bytes: int, bits: int) -> SmemLayout:
    """The smallest shared-memory layout that wgmma reads, K- or MN-major: 8 rows of 16, 32, 64 or 128 bytes.

    Domain: (M or N, K) coordinates. Codomain: elements of ``bits`` bits; the swizzle is of byte addresses.

    Raises:
        LayoutError: another major mode or row, or an element that doesn't divide 16 bytes.

    >>> print(gmma_smem_atom("K", 64, 16))
    Sw<2,4,3> o smem_ptr[16b](unset) o (8,32):(32,1)
    >>> print(gmma_smem_atom("MN", 128, 32))
    Sw<3,4,3> o smem_ptr[32b](unset) o (32,8):(1,32)
    """
    if major not in ("K", "MN") or row_bytes not in SWIZZLE_BITS or bits < 1 or 128 % bits:
        raise LayoutError(
            "a wgmma shared-memory atom is K- or MN-major, with 16-byte rows (no swizzle) or swizzled ones",
            got=f"{major}, {row_bytes} bytes, elements of {bits} bits",
            allowed="K or MN; 16, 32, 64 or 128 bytes; a divisor of 128 bits",
        )
    row = 8 * row_bytes // bits
    layout = Layout((8, row), (row, 1)) if major == "K" else Layout((row, 8), (1, row))
    return SmemLayout(Swizzle(SWIZZLE_BITS[row_bytes], 4, 3), bits, layout)
