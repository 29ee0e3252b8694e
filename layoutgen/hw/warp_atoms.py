"""The atoms that a spec may name, those of a whole warp or wavefront, and how a spec would write their accumulators."""

from __future__ import annotations

from layoutgen.algebra.layout import Layout
from layoutgen.algebra.simplify import coalesce
from layoutgen.hw.mfma_atoms import MFMA_ATOMS
from layoutgen.hw.mma_atoms import MMA_ATOMS
from layoutgen.hw.types import MmaAtom, gathered

WARP = 32  # lanes of a warp of NVIDIA's; a wavefront of CDNA has WAVEFRONT
_MULTIPLIED = {"F16", "BF16", "TF32", "F64", "S8", "U8", "E4M3", "E5M2"}
# Of AMD's those of types that specs have: fp8 there is e4m3fnuz, and xf32 is no tf32.
_MULTIPLIED_BY_AMD = {"F32", "F16", "BF16", "F64"}

WARP_ATOMS: dict[str, MmaAtom] = {
    **{
        name: atom
        for name, atom in MMA_ATOMS.items()
        if atom.arch >= 80 and {atom.a, atom.b} <= _MULTIPLIED and atom.c != "F16" and not name.endswith("SATURATE")
    },
    **{name: atom for name, atom in MFMA_ATOMS.items() if {atom.a, atom.b} <= _MULTIPLIED_BY_AMD},
}


def is_mfma(name: str) -> bool:
    """Whether it is the mnemonic of a matrix-core atom of AMD's, of wavefronts of 64 lanes."""
    return name in MFMA_ATOMS


def accumulator_of(atom: MmaAtom) -> tuple[str, str]:
    """Who holds what of a warp's C, as text: (lane_m, lane_n) -> lane, and the values of a lane in m and in n.

    Lane and value -> m + M n is cut into what moves along m, by less than M, and what moves along n.

    >>> accumulator_of(WARP_ATOMS["SM80_16x8x16_F32F16F16F32_TN"])
    ('(8,4):(4,1)', '<2:8, 2:1>')
    >>> accumulator_of(WARP_ATOMS["v_mfma_f32_32x32x8_f16"])
    ('(2,32):(32,1)', '<(4,4):(1,8), 1:1>')
    """
    m = atom.layouts.shape_mnk[0]
    lanes, values = (coalesce(mode) for mode in atom.layouts.c)
    numbers, number = [], 1  # of lanes: a mode's stride among them
    for extent in lanes.flat_shape:
        numbers.append(number)
        number *= extent

    def along(layout: Layout, strides: list[int], n: bool) -> Layout:
        modes = zip(layout.flat_shape, layout.flat_stride, strides, strict=True)
        return gathered(*((extent, stride) for extent, step, stride in modes if (step >= m) == n))

    lane_m, lane_n = (along(lanes, numbers, n) for n in (False, True))
    steps = list(values.flat_stride)
    value_m, value_n = along(values, steps, False), along(values, [step // m for step in steps], True)
    ids = Layout((lane_m.shape, lane_n.shape), (lane_m.stride, lane_n.stride))
    # One value is a run of one.
    return str(ids), f"<{', '.join('1:1' if each.size == 1 else str(each) for each in (value_m, value_n))}>"
