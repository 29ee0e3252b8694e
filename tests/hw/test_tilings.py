"""Tiled MMAs and copies by their definition: which atom an element belongs to, and who holds it there."""

from __future__ import annotations

from itertools import product as cartesian
from typing import Any

import pytest

from layoutgen.algebra import (
    SCALAR_FMA,
    ComposedLayout,
    CopyLayouts,
    Layout,
    MmaLayouts,
    Swizzle,
    TiledCopy,
    TiledMma,
    View,
    composition,
    covers_exactly_once,
    local_tile,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_for,
    make_tiled_copy_for_atom,
    make_tiled_mma,
)
from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.runtime import RuntimeInt
from layoutgen.algebra.tv import MODES
from layoutgen.errors import LayoutError
from layoutgen.hw.copy_layouts import copy_instruction
from layoutgen.hw.mfma_atoms import mfma_atom
from layoutgen.hw.mma_atoms import mma_atom


def mma(name: str, atoms: str, permutation: Any = ()) -> TiledMma:
    atom = mfma_atom(name) if name.startswith("v_") else mma_atom(name)
    return make_tiled_mma(atom.layouts, Layout.parse(atoms), permutation)


TILINGS = {
    "simt": mma("UniversalFMA", "(4,8,1):(8,1,0)", (8, 16)),
    "simt, values together": mma("UniversalFMA", "(4,2)", (Layout((4, 2), (2, 1)), 4, 2)),
    "mma.sync": mma("SM80_16x8x16_F32F16F16F32_TN", "(2,2,1)", (32, 32, 16)),
    "mma.sync, warps along k": mma("SM80_16x8x8_F32TF32TF32F32_TN", "(1,2,2):(0,2,1)"),
    "mma.sync, columns reordered": mma("SM80_16x8x8_F32TF32TF32F32_TN", "(2,1)", (None, Layout((2, 4, 2), (1, 4, 2)))),
    "quad pairs": mma("SM70_8x8x4_F32F16F16F32_NT", "(2,2):(4,8)"),
    "wgmma": mma("SM90_64x32x16_F32F16F16_RS", "(2,1)"),
    "mfma": mma("v_mfma_f32_16x16x16_f16", "(2,2):(2,1)"),
}


def held(tiled: TiledMma, operand: Any, thread_vmnk: tuple[int, ...], value: int, repeat: tuple[int, int]) -> Any:
    """The element of an operand that a thread's value is, by the definition of a tiled MMA."""
    atom, axes = tiled.atom, MODES[operand]
    element = atom.tv(operand)(thread_vmnk[0], value)
    in_atom = (element % atom.tile(operand)[0], element // atom.tile(operand)[0])
    found = []
    for mode, axis in enumerate(axes):
        groups = tiled.threads_vmnk[1 + axis].size
        index = in_atom[mode] + atom.shape_mnk[axis] * (thread_vmnk[1 + axis] + groups * repeat[mode])
        permuted = tiled.permutation[axis]
        if isinstance(permuted, Layout):
            tile, inside = divmod(index, permuted.size)
            index = permuted.size * tile + permuted(inside)
        found.append(index)
    return tuple(found)


def threads_of(tiled: TiledMma) -> dict[int, tuple[int, ...]]:
    """Thread index -> (V, M, N, K)."""
    vmnk = tiled.threads_vmnk
    return {vmnk(point): point for point in cartesian(*(range(mode.size) for mode in vmnk))}


@pytest.mark.parametrize("operand", MODES)
@pytest.mark.parametrize("name", TILINGS)
def test_a_thread_holds_what_its_atom_gives_it(name: str, operand: Any) -> None:
    tiled = TILINGS[name]
    tile = tuple(tiled.tile_mnk[axis] for axis in MODES[operand])
    wide = (2 * tile[0], 3 * tile[1])
    tensor = Layout((*wide, 2), (wide[1] + 1, 1, 10_000))
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, tensor)
    identity = Layout((*wide, 2), (ScaledBasis(1, 0), ScaledBasis(1, 1), ScaledBasis(1, 2)))
    partition = {"A": tiled.partition_A, "B": tiled.partition_B, "C": tiled.partition_C}[operand]
    tv = tiled.tv_layout(operand)
    repeats = [tile[k] // tiled.atom.tile(operand)[k] // tiled.threads_vmnk[1 + MODES[operand][k]].size for k in (0, 1)]
    whole = [n // t * r for n, t, r in zip(wide, tile, repeats, strict=True)]
    for thread, vmnk in list(threads_of(tiled).items())[:: tiled.size // 5 | 1]:
        values = tiled.atom.tv(operand)[1].size
        view, xored, named = (partition(layout, thread) for layout in (tensor, swizzled, identity))
        assert view.layout.size == xored.layout.size == values * whole[0] * whole[1] * 2
        assert view.layout.shape == xored.layout.shape and view.layout.rank == 4
        for index, (k, j, i) in enumerate(cartesian(*map(range, (repeats[1], repeats[0], values)))):
            row, column = held(tiled, operand, vmnk, i, (j, k))
            assert tv(thread, index) == row + tile[0] * column
        for stage, k, j, i in cartesian((0, 1), *map(range, (whole[1], whole[0], values))):
            row, column = held(tiled, operand, vmnk, i, (j, k))
            offset = row * (wide[1] + 1) + column + 10_000 * stage
            assert view(i, j, k, stage) == offset
            assert xored(i, j, k, stage) == Swizzle(3, 3, 3)(offset)
            assert named(i, j, k, stage) == (row, column, stage)


@pytest.mark.parametrize("name", TILINGS)
def test_the_accumulators_cover_the_tile_once_and_the_operands_as_often_as_they_are_shared(name: str) -> None:
    tiled = TILINGS[name]
    m, n, k = tiled.tile_mnk
    vmnk = tiled.threads_vmnk
    for operand, tile in {"A": (m, k), "B": (n, k), "C": (m, n)}.items():
        # The first of those threads that hold the same elements, for the axis that the operand lacks.
        lacking = ({0, 1, 2} - set(MODES[operand])).pop()
        threads = [thread for thread, point in threads_of(tiled).items() if point[1 + lacking] == 0]
        tv = tiled.tv_layout(operand)
        if tv[0].size == len(threads) == vmnk.size:
            assert covers_exactly_once(tv, tile)
        if tiled.atom.tv(operand)[0].cosize > 1 or tiled.atom.threads.size == 1:
            found = sorted(tv(thread, value) for thread in threads for value in range(tv[1].size))
            assert found == list(range(tile[0] * tile[1]))


def test_run_time_extents_follow_from_their_divisors() -> None:
    """A block of a row-major matrix of M by K, both known when the kernel runs, and its partition."""
    m, k = RuntimeInt(128, "M"), RuntimeInt(64, "K")
    matrix = Layout((m, k), (k, 1))
    view = local_tile(matrix, (64, 32), (1, None))
    assert view.layout == Layout((64, 32, k // 32), (k, 1, 32)) and view.offset == 64 * k
    tiled = TILINGS["mma.sync"]
    assert tiled.partition_shape("A", (m, k)) == ((2, 2, 2), m // 32, k // 16)
    assert tiled.partition_A(matrix, 0).layout == Layout(((2, 2, 2), m // 32, k // 16), ((1, 8 * k, 8), 32 * k, 16))
    with pytest.raises(LayoutError, match="known divisor"):
        tiled.partition_A(Layout((RuntimeInt(8, "M"), k)), 0)


def test_the_shapes_of_partitions_and_fragments() -> None:
    tiled = TILINGS["mma.sync"]
    assert tiled.partition_shape("A", (64, 32)) == ((2, 2, 2), 2, 2)
    assert str(tiled.partition_fragment_C((64, 64))) == "((2,2),2,4):((1,2),4,8)"
    for thread in (0, 77):
        for part, fragment in (
            (
                tiled.partition_A(Layout((64, 32), (32, 1)), thread),
                tiled.partition_fragment_A(Layout((64, 32), (32, 1)), thread),
            ),
            (tiled.partition_B(Layout((64, 32)), thread), tiled.partition_fragment_B(Layout((64, 32)), thread)),
        ):
            assert fragment.shape == part.layout.shape
            assert sorted(fragment.offsets().tolist()) == list(range(fragment.size))


@pytest.mark.parametrize("order", ["(16,8):(8,1)", "(16,8):(1,16)", "((4,4),8):((1,32),4)"])
@pytest.mark.parametrize("values", ["(1,4)", "(4,1)", "(2,2):(2,1)"])
def test_a_tiled_copy_gives_each_thread_the_values_at_its_place(order: str, values: str) -> None:
    threads, inner = Layout.parse(order), Layout.parse(values)
    copy = make_tiled_copy(CopyLayouts.vector(1), threads, inner)
    m, n = (threads[mode].size * inner[mode].size for mode in (0, 1))
    assert copy.tile == (m, n) and copy.size == threads.size
    source = Layout((2 * m, n), (n, 1))
    for x, y, i, j in cartesian(*(range(layout[mode].size) for layout in (threads, inner) for mode in (0, 1))):
        thread, value = threads((x, y)), inner((i, j))
        row, column = x * inner[0].size + i, y * inner[1].size + j
        assert copy.layout_S_TV()(thread, value) == copy.layout_D_TV()(thread, value) == row + m * column
        for view in (copy.partition_S(source, thread), copy.partition_D(source, thread)) if y == j == 0 else ():
            assert view.offset + view.layout((0, value), 1, 0) == source((row + m, column))


@pytest.mark.parametrize("operand", ["A", "B"])
@pytest.mark.parametrize("instruction", ["SM75_U32x1_LDSM_N", "SM75_U32x2_LDSM_N", "SM75_U32x4_LDSM_N"])
def test_ldmatrix_loads_what_the_mma_wants(operand: Any, instruction: str) -> None:
    """Play the instruction: register j of lane l is elements 2 (l % 4) and the next of the row at lane 8 j + l / 4."""
    tiled = TILINGS["mma.sync"]
    copy = make_tiled_copy_for(copy_instruction(instruction).layouts.recast(1, 16), tiled, operand)
    tensor = Layout((64, 32), (32, 1))
    partition = tiled.partition_A if operand == "A" else tiled.partition_B
    for thread in (0, 13, 45, 127):
        registers = partition(tensor, thread)
        fragment = Layout(registers.layout.shape)
        wanted = copy.partition_D(tensor, thread)
        view = copy.retile(fragment)
        assert view.size == fragment.size
        in_register = {fragment(index): registers.offset + registers.layout(index) for index in range(fragment.size)}
        sources = [copy.partition_S(tensor, thread // 32 * 32 + lane) for lane in range(32)]
        per_atom = copy.atom.dst[1].size
        for index in range(view.size):
            value, atom = index % per_atom, index // per_atom
            element = wanted.offset + wanted.layout(index)
            assert in_register[view(index)] == element
            lane = thread % 32
            source = sources[8 * (value // 2) + lane // 4]
            assert source.offset + source.layout(2 * (lane % 4) + value % 2 + 8 * atom) == element


def test_a_copy_for_c_stores_the_accumulators() -> None:
    tiled = TILINGS["mma.sync"]
    copy = make_tiled_copy_for(CopyLayouts.vector(2), tiled, "C")
    assert covers_exactly_once(copy.layout_S_TV(), copy.tile)
    assert copy.layout_D_TV().offsets().tolist() == tiled.tv_layout("C").offsets().tolist()
    stmatrix = make_tiled_copy_for(copy_instruction("SM90_U32x4_STSM_N").layouts.recast(1, 16), tiled, "C")
    assert covers_exactly_once(stmatrix.layout_S_TV(), stmatrix.tile)
    assert covers_exactly_once(stmatrix.layout_D_TV(), stmatrix.tile)


@pytest.mark.parametrize(
    ("values", "tv", "data"),
    [
        (4, "(8,4):(4,1)", "(16,8):(8,1)"),
        (1, "(32,4):(1,64)", "(16,16):(1,16)"),
        (2, "((4,8),(2,2)):((2,64),(1,8))", "(16,64):(64,1)"),
        (1, "(2,1):(5,0)", "(4,4):(1,4)"),
    ],
)
def test_a_copy_by_offsets_touches_those_offsets(values: int, tv: str, data: str) -> None:
    offsets, layout = Layout.parse(tv), Layout.parse(data)
    copy = make_cotiled_copy(CopyLayouts.vector(values), offsets, layout)
    in_data = composition(layout, copy.tiler)
    for thread, value in cartesian(range(offsets[0].size), range(offsets[1].size)):
        assert in_data(copy.tv(thread, value)) == offsets(thread, value)


def test_the_smallest_copy_of_c_has_each_threads_first_values() -> None:
    tiled = TILINGS["mma.sync"]
    copy = make_tiled_copy_for_atom(CopyLayouts.vector(2), tiled)
    whole = composition(Layout((32, 32)), copy.tiler)
    tv = tiled.tv_layout("C")
    for thread, value in cartesian(range(128), range(2)):
        assert whole(copy.tv(thread, value)) == tv(thread, value)


def atom(**changed: Any) -> MmaLayouts:
    parts: dict[str, Any] = {
        "shape_mnk": (8, 4, 1), "threads": Layout(4), "a": Layout((4, 2)), "b": Layout((4, 1)), "c": Layout((4, 8)),
    }  # fmt: skip
    return MmaLayouts(**parts | changed)


def gapped() -> TiledMma:
    """Its tile of N takes pairs of columns 8 apart, which repeat evenly every 128."""
    return mma("SM80_16x8x8_F32TF32TF32F32_TN", "(1,4)", (16, Layout((2, 16), (1, 8)), 8))


GAPPED_COPY = TiledCopy(CopyLayouts.vector(1), Layout((4, 2)), (Layout((2, 4), (1, 4)),))


def test_tiles_with_gaps_partition_what_they_repeat_over() -> None:
    assert gapped().tile_mnk == (16, 32, 8)
    seen = [gapped().partition_C(Layout((16, 128)), thread) for thread in range(128)]
    assert sorted(view(index) for view in seen for index in range(view.layout.size)) == list(range(16 * 128))
    parts = [GAPPED_COPY.partition_D(Layout(32), thread) for thread in range(4)]
    assert sorted(part(index) for part in parts for index in range(part.layout.size)) == list(range(32))


def partition(tiled: TiledMma, shape: Any, thread: int = 0) -> View:
    return tiled.partition_C(Layout(shape), thread)


@pytest.mark.parametrize(
    ("operation", "rule"),
    [
        (lambda: atom(a=Layout((4, 3))), "maps \\(thread, value\\) into its operand"),
        (lambda: atom(a=Layout((2, 4))), "maps \\(thread, value\\) into its operand"),
        (lambda: atom(c=Layout(32)), "maps \\(thread, value\\) into its operand"),
        (lambda: atom(c=Layout((4, 7))), "maps \\(thread, value\\) into its operand"),
        (lambda: make_tiled_mma(SCALAR_FMA, Layout((2, 2, 2, 2))), "at most the modes M, N, K"),
        (lambda: make_tiled_mma(SCALAR_FMA, Layout((4, 4), (1, 2))), "each thread works in one atom"),
        (lambda: make_tiled_mma(SCALAR_FMA, Layout((4, 4), (1, 0))), "each thread works in one atom"),
        (lambda: partition(TILINGS["mma.sync"], (32, 48)), "share N of C evenly"),
        (lambda: partition(TILINGS["mma.sync"], (16, 32)), "share M of C evenly"),
        (lambda: partition(TILINGS["mma.sync"], 32), "has two modes or more"),
        (lambda: partition(TILINGS["mma.sync"], (32, 32), 128), "hands out"),
        (lambda: mma("SM80_16x8x8_F32TF32TF32F32_TN", "(4,1)", (16, 8, 8)).tv_layout("C"), "share M of C evenly"),
        (lambda: mma("SM80_16x8x8_F32TF32TF32F32_TN", "(1,1)", (24, 8, 8)).partition_shape("C", (24, 8)), "share M"),
        (lambda: gapped().partition_C(Layout((16, 32)), 0), "share N of C evenly"),
        (lambda: TiledMma(SCALAR_FMA, Layout((4, 4)), (1, 1, 1)), "thread in the atom"),
        (lambda: GAPPED_COPY.partition_S(Layout(24), 0), "whole tiles"),
        (lambda: make_tiled_copy(CopyLayouts.vector(1), Layout((4, 4), (1, 8))), "number 0, 1, 2"),
        (lambda: make_tiled_copy(CopyLayouts.vector(1), Layout((4, 4), (1, 0))), "number 0, 1, 2"),
        (lambda: make_tiled_copy(CopyLayouts.vector(8), Layout((4, 4)), Layout((1, 4))), "whole atoms"),
        (lambda: TiledCopy(CopyLayouts.vector(1), Layout((4, 4)), (2, 4)), "lie in its tile"),
        (lambda: make_tiled_copy_for_atom(CopyLayouts.vector(32), TILINGS["mma.sync"]), "no more values than"),
        (lambda: make_cotiled_copy(CopyLayouts.vector(1), Layout((4, 4)), Layout((4, 2))), "only what the data layout"),
        (lambda: make_cotiled_copy(CopyLayouts.vector(1), Layout((2, 2), (1, 5)), Layout((4, 4))), "overlap"),
        (lambda: make_cotiled_copy(CopyLayouts.vector(1), Layout((8, 4), (4, 1)), Layout((16, 8), (12, 1))), "walks"),
        (lambda: CopyLayouts(Layout((2, 4)), Layout((4, 2)), Layout((2, 4))), "equally many threads"),
        (lambda: CopyLayouts.vector(8).recast(8, 128), "moves whole elements"),
        (lambda: make_tiled_copy(CopyLayouts.vector(1), Layout((4, 4))).partition_S(Layout((6, 4)), 0), "whole tiles"),
        (lambda: make_tiled_copy(CopyLayouts.vector(1), Layout((4, 4))).partition_S(Layout(16), 0), "whole tiles"),
        (lambda: make_tiled_copy(CopyLayouts.vector(1), Layout((4, 4))).partition_D(Layout((8, 4)), 16), "a thread of"),
    ],
)
def test_what_cannot_be_tiled_is_refused(operation: Any, rule: str) -> None:
    with pytest.raises(LayoutError, match=rule) as raised:
        operation()
    assert raised.value.got is not None
