"""Atoms against CuTe's traits as its headers spell them, the PTX ISA's equations, and AMD's calculator's tables."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from layoutgen.algebra import IntTuple, Layout, congruent, covers_exactly_once
from layoutgen.algebra.tv import MODES
from layoutgen.errors import LayoutError
from layoutgen.hw.copy_layouts import COPY_INSTRUCTIONS, copy_instruction
from layoutgen.hw.gmma_atoms import gmma_atom, gmma_names, gmma_smem_atom
from layoutgen.hw.mfma_atoms import MFMA_ATOMS, mfma_atom
from layoutgen.hw.mma_atoms import MMA_ATOMS, mma_atom
from layoutgen.hw.types import bits_of
from tests.hw.cute_headers import Types

WARP = [f"mma_traits_sm{arch}.hpp" for arch in (61, 70, 75, 80, 89, 90)]
GMMA = ("mma_traits_sm90_gmma.hpp", "mma_traits_sm90_gmma_ext.hpp")

# Complex products are several mma instructions, not atoms of the ISA; CuTe's dp2a leaves out that its B is narrower.
NOT_ATOMS = ("C64", "SM61_DP2A")
# CuTe 4.2 against the PTX ISA's equations (checked below): lane strides of 4 elements where a register holds 8, and a
# stride that doesn't nest as its shape.
CUTE_IS_WRONG = {
    *((f"SM80_16x8x32_S32{a}4{b}4S32_TN{end}", "BLayout") for a in "SU" for b in "SU" for end in ("", "_SATURATE")),
    *((f"SM80_16x8x128_S32U1U1S32_TN_{op}POPC", "ALayout") for op in ("XOR", "AND")),
}


@cache
def headers(*names: str) -> Types:
    return Types(*names)


def unwrapped(t: object) -> object:
    """Without parentheses around a single mode, which CuTe's s4 atoms have inside (thread, value)."""
    if isinstance(t, tuple):
        return unwrapped(t[0]) if len(t) == 1 else tuple(map(unwrapped, t))
    return t


def same(theirs: tuple[IntTuple, ...], ours: Layout) -> bool:
    """Whether (shape, stride), or a shape alone for the compact layout, is ours but for such parentheses."""
    if not congruent(theirs[0], theirs[-1]):
        return False
    layout = Layout(*theirs)
    return unwrapped((layout.shape, layout.stride)) == (ours.shape, ours.stride)


@pytest.mark.parametrize("header", WARP)
def test_warp_atoms_are_cutes(header: str) -> None:
    types = headers(header)
    found = [name for name in types.traits if not any(part in name for part in NOT_ATOMS)]
    assert found
    for name in found:
        layouts = MMA_ATOMS[name].layouts
        members = {"ALayout": layouts.a, "BLayout": layouts.b, "CLayout": layouts.c, "ThrID": layouts.threads}
        assert types.member(name, "Shape_MNK") == layouts.shape_mnk
        for member, ours in members.items():
            theirs = types.member(name, member)
            agree = same(theirs, ours)
            assert agree != ((name, member) in CUTE_IS_WRONG), (name, member, theirs, str(ours))


def test_every_warp_atom_of_ours_is_one_of_cutes() -> None:
    theirs = {name for header in WARP for name in headers(header).traits}
    assert set(MMA_ATOMS) - theirs == {"UniversalFMA"}
    assert {name for name, _ in CUTE_IS_WRONG} <= theirs


def test_warpgroup_atoms_are_cutes() -> None:
    types = headers(*GMMA)
    assert set(types.traits) == set(gmma_names())
    for name in types.traits:
        layouts = gmma_atom(name).layouts
        assert types.member(name, "Shape_MNK") == layouts.shape_mnk
        for member, ours in {"ALayout": layouts.a, "BLayout": layouts.b, "CLayout": layouts.c}.items():
            assert types.member(name, member) == (ours.shape, ours.stride), (name, member)


@pytest.mark.parametrize("name", [*MMA_ATOMS, *gmma_names()[::37], *MFMA_ATOMS])
def test_every_operand_is_owned_once(name: str) -> None:
    """Each element by one (thread, value); an operand in shared memory, which all threads name, by one value."""
    layouts = mfma_atom(name).layouts if name in MFMA_ATOMS else mma_atom(name).layouts
    for operand in MODES:
        tv = layouts.tv(operand)
        shared = name.startswith("SM90_64") and tv[0].cosize == 1
        assert covers_exactly_once(tv[1] if shared else tv, layouts.tile(operand))


Equation = Callable[[int, int, int], tuple[int, int]]

# (atom, operand) -> (groupID, threadID_in_group, i) -> (row, column), as the PTX ISA writes them. B's row is k.
EQUATIONS: dict[tuple[str, str], Equation] = {
    ("SM80_16x8x16_F32F16F16F32_TN", "A"): lambda g, t, i: (
        g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
        t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8,
    ),
    ("SM80_16x8x16_F32F16F16F32_TN", "B"): lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
    ("SM80_16x8x16_F32F16F16F32_TN", "C"): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    ("SM80_16x8x8_F32TF32TF32F32_TN", "A"): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
    ("SM90_16x8x16_F64F64F64F64_TN", "B"): lambda g, t, i: (t + 4 * i, g),
    ("SM80_16x8x64_S32S4S4S32_TN", "A"): lambda g, t, i: (
        g if 0 <= i < 8 or 16 <= i < 24 else g + 8,
        t * 8 + (i & 7) + (0 if i < 16 else 32),
    ),
    ("SM80_16x8x32_S32S4S4S32_TN", "B"): lambda g, t, i: (t * 8 + (i & 7), g),
    ("SM80_16x8x128_S32U1U1S32_TN_XORPOPC", "A"): lambda g, t, i: (g if i < 32 else g + 8, t * 32 + (i & 0x1F)),
    ("SM80_16x8x128_S32U1U1S32_TN_XORPOPC", "B"): lambda g, t, i: (t * 32 + i, g),
}


@pytest.mark.parametrize(("name", "operand"), EQUATIONS)
def test_fragments_follow_the_ptx_isa(name: str, operand: str) -> None:
    layouts = mma_atom(name).layouts
    tv = {"A": layouts.a, "B": layouts.b, "C": layouts.c}[operand]
    m, n, _ = layouts.shape_mnk
    for lane in range(32):
        for i in range(tv[1].size):
            row, column = EQUATIONS[name, operand](lane >> 2, lane % 4, i)
            assert tv(lane, i) == (column + n * row if operand == "B" else row + m * column)


def test_copies_are_cutes() -> None:
    types = headers("copy_traits_sm75.hpp", "copy_traits_sm90.hpp")
    assert set(types.traits) - set(COPY_INSTRUCTIONS) == {"SM75_U32x1_MOVM_T"}, "movmatrix moves registers"
    for name, copy in COPY_INSTRUCTIONS.items():
        for member, ours in {"Src": copy.layouts.src, "Dst": copy.layouts.dst, "Ref": copy.layouts.ref}.items():
            assert types.member(name, f"{member}Layout") == (ours.shape, ours.stride), (name, member)


@pytest.mark.parametrize("name", [name for name in COPY_INSTRUCTIONS if "LDSM_N" in name])
def test_ldmatrix_follows_the_ptx_isa(name: str) -> None:
    """Lane l gets row l / 4, elements 2 (l % 4) and the next, of each matrix; row r of matrix m is lane 8 m + r's."""
    layouts = copy_instruction(name).layouts.recast(1, 16)
    for matrix in range(layouts.dst[1].size // 2):
        for lane in range(32):
            row, column = lane // 4, 2 * (lane % 4)
            for half in (0, 1):
                assert layouts.dst(lane, 2 * matrix + half) == layouts.src(8 * matrix + row, column + half)


@pytest.mark.parametrize(("major", "row_bytes"), [(m, b) for m in ("K", "MN") for b in (16, 32, 64, 128)])
def test_shared_memory_atoms_are_cutes(major: str, row_bytes: int) -> None:
    text = headers(GMMA[0]).source
    bits = "INTER" if row_bytes == 16 else f"SW{row_bytes}"
    line = text[text.index(f"using Layout_{major}_{bits}_Atom_Bits") :].split(";")[0]
    swizzle, layout = line.split("smem_ptr_flag,")
    theirs = headers(GMMA[0]).value(layout.rstrip().removesuffix(">"))
    ours = gmma_smem_atom(major, row_bytes, 1)
    assert (ours.layout.shape, ours.layout.stride) == theirs
    assert str(ours.swizzle).removeprefix("Sw") in swizzle.replace(" ", "")
    for element in (8, 16, 32):
        assert ours.recast(element) == gmma_smem_atom(major, row_bytes, element)


TABLES = json.loads((Path(__file__).parents[1] / "data" / "mfma_cdna3.json").read_text())


@pytest.mark.parametrize("name", MFMA_ATOMS)
def test_matrix_core_atoms_are_those_of_amds_calculator(name: str) -> None:
    layouts = mfma_atom(name).layouts
    m, n, _ = layouts.shape_mnk
    for operand, tv in {"A": layouts.a, "B": layouts.b, "D": layouts.c}.items():
        lanes = TABLES["tables"][TABLES["instructions"][name][operand]]
        assert len(lanes) == tv[0].size == 64
        for lane, entries in enumerate(lanes):
            elements = [tuple(map(int, entry.split(","))) for entry in entries.split()]
            expected = [column + n * row if operand == "B" else row + m * column for row, column in elements]
            assert [tv(lane, value) for value in range(tv[1].size)] == expected


def test_amds_tables_hold_no_more_than_we_do() -> None:
    assert set(TABLES["instructions"]) == set(MFMA_ATOMS)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: mma_atom("SM80_16x8x16_F32F32F32F32_TN"),
        lambda: mma_atom("SM90_64x12x16_F32F16F16_SS"),
        lambda: mma_atom("SM90_64x40x32_S32S8S8_SS_TN"),
        lambda: mma_atom("SM90_64x64x16_F16BF16BF16_SS"),
        lambda: mma_atom("SM90_64x64x16_F32F16BF16_SS"),
        lambda: mma_atom("SM90_64x64x8_F32TF32TF32_SS"),
        lambda: copy_instruction("SM75_U32x3_LDSM_N"),
        lambda: copy_instruction("SM80_CP_ASYNC_CACHEGLOBAL<u32>"),
        lambda: copy_instruction("SM80_CP_ASYNC_CACHEALWAYS<u16>"),
        lambda: gmma_smem_atom("K", 256, 16),
        lambda: gmma_smem_atom("N", 128, 16),
        lambda: gmma_smem_atom("K", 128, 24),
        lambda: mfma_atom("v_mfma_f32_64x64x4_f32"),
        lambda: bits_of("F12"),
    ],
)
def test_what_does_not_exist_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(LayoutError) as raised:
        ask()
    assert raised.value.rule and raised.value.got and raised.value.allowed


def test_names_say_what_the_instruction_is() -> None:
    assert mma_atom("SM80_16x8x256_S32U1U1S32_TN_ANDPOPC").mnemonic == (
        "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"
    )
    assert mma_atom("SM80_16x8x32_S32S8U8S32_TN_SATURATE").mnemonic == (
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"
    )
    assert mma_atom("SM70_8x8x4_F32F16F16F32_NT").mnemonic == "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32"
    assert copy_instruction("SM75_U16x8_LDSM_T").mnemonic == "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"


@pytest.mark.parametrize("name", ["copy_layouts", "gmma_atoms", "mfma_atoms", "mma_atoms", "types"])
def test_examples(name: str) -> None:
    module = importlib.import_module(f"layoutgen.hw.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted == inspect.getsource(module).count(">>> ") > 0
    public = [thing for key, thing in vars(module).items() if inspect.isfunction(thing) and not key.startswith("_")]
    assert all(">>> " in (thing.__doc__ or "") for thing in public if thing.__module__ == module.__name__)
