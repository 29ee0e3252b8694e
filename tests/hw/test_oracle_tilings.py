"""CuTe C++ agrees, type for type, on tiled MMAs and copies, tiles and partitions: g++ reads its headers.

Needs g++; see tests/algebra/oracle.py. One known difference: with warps along K, CuTe's layout of C leaves the tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as cartesian
from pathlib import Path
from typing import Any

import pytest

from layoutgen.algebra import (
    CopyLayouts,
    Layout,
    TiledMma,
    as_position_independent,
    local_partition,
    local_tile,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_for,
    make_tiled_copy_for_atom,
    make_tiled_copy_like,
    make_tiled_mma,
    slice,
)
from layoutgen.algebra.tv import MODES
from layoutgen.hw.copy_layouts import copy_instruction
from layoutgen.hw.gmma_atoms import gmma_smem_atom
from layoutgen.hw.mma_atoms import mma_atom
from tests.algebra.oracle import compile_lines, same, type_of, value_of

MMAS: list[tuple[str, str, Any]] = [
    ("SM80_16x8x16_F32F16F16F32_TN", "(2,2,1)", (32, 32, 16)),
    ("SM80_16x8x16_F32F16F16F32_TN", "(2,2,1):(2,1,0)", (32, 64, 16)),
    ("SM80_16x8x8_F32TF32TF32F32_TN", "(2,1,1)", (None, Layout((2, 4, 2), (1, 4, 2)), None)),
    ("SM80_16x8x8_F32TF32TF32F32_TN", "(1,2,2)", (None, None, None)),
    ("SM70_8x8x4_F32F16F16F32_NT", "(2,2,1):(4,8,0)", (None, None, None)),
    ("SM80_8x8x4_F64F64F64F64_TN", "(4,2,1)", (64, 32, 8)),
    ("UniversalFMA<float>", "(8,4,1)", (Layout((8, 4), (4, 1)), Layout((4, 4), (4, 1)), 1)),
    ("SM90_64x64x16_F32F16F16_SS<GMMA::Major::K,GMMA::Major::K>", "(2,1,1)", (None, None, None)),
]
WARP_COPIES = [
    ("SM75_U32x4_LDSM_N", "A"),
    ("SM75_U32x2_LDSM_N", "B"),
    ("SM75_U16x8_LDSM_T", "A"),
    ("SM75_U32x1_LDSM_N", "B"),
    ("SM90_U32x4_STSM_N", "C"),
]
VECTOR_COPIES = [
    ("UniversalCopy<uint128_t>", 128, 16, "(16,8):(8,1)", "(1,8)"),
    ("UniversalCopy<uint64_t>", 64, 16, "(32,4)", "(4,2)"),
    ("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", 128, 32, "(16,8):(8,1)", "(1,4)"),
]


def tiled(name: str, atoms: str, permutation: Any) -> tuple[TiledMma, str]:
    """The tiled MMA, and C++ for it."""
    layout = Layout.parse(atoms)
    tile = f"Tile<{','.join(map(type_of, permutation))}>"
    spelled = f"decltype(make_tiled_mma({name}{{}},{value_of(layout)},{tile}{{}}))"
    return make_tiled_mma(mma_atom(name).layouts, layout, permutation), spelled


def tensor(tile: tuple[int, ...]) -> Layout:
    """Two by two tiles in padded rows."""
    return Layout((2 * tile[0], 2 * tile[1]), (2 * tile[1] + 8, 1))


def mma_lines() -> Iterator[str]:
    for number, (name, atoms, permutation) in enumerate(MMAS):
        mma, spelled = tiled(name, atoms, permutation)
        yield f"using Mma{number} = {spelled};"
        value = f"std::declval<Mma{number}>()"
        yield check(f"{value}.get_thr_layout_vmnk()", mma.threads_vmnk)
        for operand, (i, j) in MODES.items():
            if operand == "C" and mma.threads_vmnk[3].size > 1:
                # The known difference, stated so that it is noticed when CuTe mends it.
                m, n, _ = mma.tile_mnk
                yield f"static_assert(decltype(cosize({value}.get_layoutC_TV()))::value > {m * n});"
                continue
            yield check(f"{value}.get_layout{operand}_TV()", mma.tv_layout(operand))
            whole = tensor((mma.tile_mnk[i], mma.tile_mnk[j]))
            yield check(f"{value}.thrfrg_{operand}({value_of(whole)})", mma.thrfrg(operand, whole))


def copy_lines() -> Iterator[str]:
    mma, spelled = tiled(*MMAS[0])
    yield f"using Mma = {spelled};"
    for instruction, operand in WARP_COPIES:
        copy = make_tiled_copy_for(copy_instruction(instruction).layouts.recast(1, 16), mma, operand)  # type: ignore[arg-type]
        made = f"decltype(make_tiled_copy_{operand}(Copy_Atom<{instruction},half_t>{{}},Mma{{}}))"
        yield check(f"{made}::get_layoutS_TV()", copy.layout_S_TV())
        yield check(f"{made}::get_layoutD_TV()", copy.layout_D_TV())
        whole = tensor(copy.tile)
        view = slice(copy.partition_S(whole, 0).layout, (None, None, None))
        # tidfrg_S is (thread, value, (rest, rest)); partition_S opens the rest.
        sliced = f"slice(make_coord(0,_,make_coord(_,_)),{made}::tidfrg_S({value_of(whole)}))"
        yield check(sliced, view)
        fragment = Layout(mma.partition_shape(operand, whole.shape))  # type: ignore[arg-type]
        yield check(f"{made}::retile({value_of(fragment)})", copy.retile(fragment))
    for instruction, moved, element, threads, values in VECTOR_COPIES:
        thr, val = Layout.parse(threads), Layout.parse(values)
        copy = make_tiled_copy(CopyLayouts.vector(moved).recast(1, element), thr, val)
        atom = f"Copy_Atom<{instruction},uint_bit_t<{element}>>{{}}"
        made = f"decltype(make_tiled_copy({atom},{value_of(thr)},{value_of(val)}))"
        yield check(f"typename {made}::TiledLayout_TV{{}}", copy.tv)
        yield check(f"{made}::get_layoutS_TV()", copy.layout_S_TV())
        yield check(f"{made}::get_layoutD_TV()", copy.layout_D_TV())


COTILED = [
    ("UniversalCopy<uint128_t>", 4, "(8,4):(4,1)", "(16,8):(8,1)"),
    ("UniversalCopy<float>", 1, "(32,4):(1,64)", "(16,16)"),
    ("UniversalCopy<uint64_t>", 2, "((4,8),(2,2)):((2,64),(1,8))", "(16,64):(64,1)"),
]


def derived_lines() -> Iterator[str]:
    """Copies made from other copies, from accumulators, and from offsets."""
    mma, spelled = tiled(*MMAS[0])
    yield f"using Warps = {spelled};"
    narrow = make_tiled_copy_for(copy_instruction("SM75_U32x4_LDSM_N").layouts.recast(1, 16), mma, "A")
    made = "make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N,half_t>{},Warps{})"
    for side in ("S", "D"):
        copy = make_tiled_copy_like(CopyLayouts.vector(1), narrow, side)  # type: ignore[arg-type]
        derived = f"decltype(make_tiled_copy_{side}(Copy_Atom<UniversalCopy<half_t>,half_t>{{}},{made}))"
        yield check(f"typename {derived}::TiledLayout_TV{{}}", copy.tv)
    for values in (1, 2):
        copy = make_tiled_copy_for_atom(CopyLayouts.vector(values), mma)
        atom = f"Copy_Atom<UniversalCopy<uint_bit_t<{32 * values}>>,float>{{}}"
        derived = f"decltype(make_tiled_copy_C_atom({atom},Warps{{}}))"
        yield check(f"typename {derived}::TiledLayout_TV{{}}", copy.tv)
        yield check(f"typename {derived}::Tiler_MN{{}}", copy.tiler)
    for instruction, values, tv, data in COTILED:
        offsets, layout = Layout.parse(tv), Layout.parse(data)
        copy = make_cotiled_copy(CopyLayouts.vector(values), offsets, layout)
        made = f"make_cotiled_copy(Copy_Atom<{instruction},float>{{}},{value_of(offsets)},{value_of(layout)})"
        yield check(f"typename decltype({made})::TiledLayout_TV{{}}", copy.tv)
        yield check(f"typename decltype({made})::Tiler_MN{{}}", copy.tiler)


def shared_memory_lines() -> Iterator[str]:
    """Atoms of shared memory, tiled up to a stage, and where their elements lie."""
    for (major, (row, name)), (bits, element) in cartesian(
        cartesian(("K", "MN"), ((16, "INTER"), (32, "SW32"), (64, "SW64"), (128, "SW128"))),
        ((16, "half_t"), (8, "int8_t"), (32, "float")),
    ):
        atom = gmma_smem_atom(major, row, bits)
        spelled = f"SM90::GMMA::Layout_{major}_{name}_Atom<{element}>"
        yield f"static_assert(is_same_v<{spelled}, {atom.cute_type}>);"
        tile = atom.tile_to_shape((128, 128, 3), (1, 0, 2))
        made = f"tile_to_shape({spelled}{{}},{value_of((128, 128, 3))},Step<_1,_0,_2>{{}})"
        yield f"static_assert(is_same_v<decltype({made}), {tile.cute_type}>);"
        if row > 16:  # without a swizzle CuTe gives a layout composed with nothing
            independent = as_position_independent(atom)
            yield check(f"as_position_independent_swizzle_layout({spelled}{{}})", independent)


def tensor_lines() -> Iterator[str]:
    """Tiles and partitions are made of tensors in C++, whose layouts we compare."""
    matrix = Layout((128, 64), (64, 1))
    of = f"make_tensor((float*)nullptr,{value_of(matrix)})"
    for tiler, coordinate in (((32, 16), (1, None)), ((32, 64), (None, 0)), ((64,), (1,))):
        point = f"make_coord({','.join('_' if c is None else str(c) for c in coordinate)})"
        yield check(
            f"local_tile({of},{value_of(tiler)},{point}).layout()", local_tile(matrix, tiler, coordinate).layout
        )
    threads = Layout((32, 4), (4, 1))
    for step in ((1, 1), (1, None), (None, 1)):
        spelled = f"Step<{','.join('X' if s is None else '_1' for s in step)}>"
        ours = local_partition(matrix if step == (1, 1) else matrix[:1], threads, 0, step).layout
        source = of if step == (1, 1) else f"make_tensor((float*)nullptr,{value_of(matrix[:1])})"
        yield check(f"local_partition({source},{value_of(threads)},0,{spelled}{{}}).layout()", ours)


def check(expression: str, ours: Any) -> str:
    return same(f"remove_cvref_t<decltype({expression})>{{}}", type_of(ours))


@pytest.mark.parametrize("lines", [(mma_lines, tensor_lines), (copy_lines, derived_lines, shared_memory_lines)])
def test_cute_agrees(lines: Any, tmp_path: Path) -> None:
    checks = [line for some in lines for line in some()]
    assert len(checks) > 25
    headers = ["#include <cute/tensor.hpp>", "#include <cute/atom/copy_atom.hpp>"]
    refused = compile_lines([*headers, *checks], tmp_path).refused
    wrong = [f"{checks[k - len(headers)]}\n  g++: {message}" for k, message in refused.items()]
    assert not wrong, "\n".join(wrong)
