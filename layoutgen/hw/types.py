"""What all atoms have in common: the record of one, the widths of element types, and how value modes are gathered."""

from __future__ import annotations

from dataclasses import dataclass

from layoutgen.algebra.layout import Layout
from layoutgen.algebra.tv import MmaLayouts
from layoutgen.errors import LayoutError

_BITS = {
    "F64": 64, "F32": 32, "TF32": 32, "XF32": 32, "S32": 32, "I32": 32, "F16": 16, "BF16": 16, "E4M3": 8, "E5M2": 8,
    "FP8": 8, "BF8": 8, "S8": 8, "U8": 8, "I8": 8, "S4": 4, "U4": 4, "U1": 1,
}  # fmt: skip


def bits_of(element: str) -> int:
    """The width of an element type by its name in an atom's; TF32 takes a 32-bit register.

    Raises:
        LayoutError: no such type.

    >>> bits_of("BF16"), bits_of("TF32"), bits_of("S4")
    (16, 32, 4)
    """
    if element not in _BITS:
        raise LayoutError("an element type has a known width", got=element, allowed=", ".join(_BITS))
    return _BITS[element]


@dataclass(frozen=True, slots=True)
class MmaAtom:
    """One matrix-multiply instruction.

    name: CuTe's, or AMD's mnemonic. arch: the oldest compute capability, times ten; for AMD the number of its gfx.
    mnemonic: the instruction, as the assembler spells it. a, b, c: element types. layouts: who holds what. section:
    where that is defined.
    """

    name: str
    arch: int
    mnemonic: str
    a: str
    b: str
    c: str
    layouts: MmaLayouts
    section: str


def gathered(*modes: tuple[int, int]) -> Layout:
    """The modes (extent, stride) of extent above 1: as a tuple, a single one bare, none as 1:0.

    >>> print(gathered((2, 16), (1, 8), (2, 128)), gathered((1, 8), (4, 16)), gathered((1, 8)))
    (2,2):(16,128) 4:16 1:0
    """
    kept = [(n, d) for n, d in modes if n > 1] or [(1, 0)]
    if len(kept) == 1:
        return Layout(*kept[0])
    return Layout(tuple(n for n, _ in kept), tuple(d for _, d in kept))
