"""A and B of MMA atoms, as explain follows them: against the PTX ISA's fragments and the addresses of the kernel."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from layoutgen import paths
from layoutgen.explain import explain
from layoutgen.explain.follow import AtomSource
from layoutgen.facts import first_word, shared_offsets
from layoutgen.plan import Plan, plan
from layoutgen.plan.model import Access, AtomFragment, SharedOperand
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.spec import Spec, load
from tests.draw.conftest import ATOM_NAMES

ATOMS = [load(paths.shipped_specs()[name]) for name in (*ATOM_NAMES, "bf16x6_96x128x48")]


def address(access: Access, thread: int, piece: tuple[int, int, int], width: int) -> int:
    """The element that an access begins at, as the kernel computes it."""
    flip = 0
    for at, mode in zip(piece, access.flips or (), strict=access.flips is not None):
        flip ^= mode(at)
    base = access.base(thread)
    assert isinstance(base, int)
    return (base ^ (flip * width)) + width * access.steps(*piece)


def held_by(each: Plan, operand: SharedOperand) -> dict[tuple[int, int], tuple[int, int, int]]:
    """(x, k) of warp 0's first K -> (lane, register, place), by the atom's layouts. Its tile is one run of x. Of
    bf16x6, whose registers are two f32, the second is 4 k on, where the atom's is 1, and comes with the next matrix."""
    layouts, mode = each.atom.layouts, "mn".index(operand.x)
    of_lane, extent = (layouts.a, layouts.b)[mode], layouts.shape_mnk[mode]
    fragment, per = operand.fragment, max(4 // ITEMSIZE[operand.dtype], 1)
    assert isinstance(fragment, AtomFragment)
    values, rows = of_lane[1].size, extent // 8
    assert fragment.of_atom == values // per
    found = {}
    for atom in range(fragment.atoms):
        for lane in range(32):
            for value in range(values):
                k, x = divmod(of_lane(lane, value), extent)
                if each.products == 6:
                    second, row, half = value % 2, value // 2 % rows, value // 2 // rows
                    k, value = 4 * second + k % 8 // 2 + k // 8 * 8, row + rows * (second + 2 * half)
                found[atom * extent + x, k] = lane, atom * fragment.of_atom + value // per, value % per
    return found


def prove_load(each: Plan, operand: SharedOperand, thread: int, source: AtomSource, stage: int, k: int) -> None:
    """The load that fills the register finds the element where explain says that it lies."""
    fragment, size, atom_k = operand.fragment, ITEMSIZE[operand.dtype], each.atom.layouts.shape_mnk[2]
    assert isinstance(fragment, AtomFragment)
    warp = thread // 32 * 32
    extent = operand.tile[0] // each.tile.warps["mn".index(operand.x)].size
    lane, register, place = held_by(each, operand)[source.x % extent, k % atom_k]
    assert (source.lane[k], source.held[k], source.load[k]) == (lane, register, register // fragment.registers)
    per, matrix = max(4 // size, 1), register % fragment.registers
    pointing, beyond = {
        "ld.shared": (lane, place),
        "ldmatrix": (8 * matrix + lane // 4, lane % 4 * per + place),
        "ldmatrix.trans": (8 * matrix + lane % 4 * per + place, lane // 4),
    }[fragment.load.opcode]
    piece = (source.load[k], k // atom_k, stage)
    element = address(fragment.load, warp + pointing, piece, fragment.load.bytes // size) + beyond
    assert element == shared_offsets(operand.shared, stage)[source.x, k]
    assert source.word[stage][k] == element * size // 4
    assert source.bank[stage][k] == (first_word(each, operand) + element * size // 4) % 32


def prove_copy(operand: SharedOperand, source: AtomSource, k: int) -> None:
    """The copier's store is where the element lies, along with what explain says, from a sector of the tile."""
    copy, size = operand.copy, ITEMSIZE[operand.dtype]
    t, (i, j) = source.copier[k], source.element[k]
    assert (copy.thread_x(t) + copy.element_x(i), copy.thread_k(t) + copy.element_k(j)) == (source.x, k)
    assert (
        len(source.read[k]) == copy.read_vector and (source.x, k) in source.read[k] and (source.x, k) in source.write[k]
    )
    piece = (i // copy.write_vector, j, 0) if copy.write_mode == "x" else (i, j // copy.write_vector, 0)
    first, offsets = address(copy.write, t, piece, copy.write_vector), shared_offsets(operand.shared)
    assert [offsets[at] for at in source.write[k]] == list(range(first, first + copy.write_vector))
    if operand.contiguous is not None:
        along = [at[operand.contiguous == "k"] for at in source.sector[k]]
        assert {each * size // 32 for each in along} == {(k if operand.contiguous == "k" else source.x) * size // 32}
        assert (source.x, k) in source.sector[k]


@pytest.mark.parametrize("spec", ATOMS, ids=lambda spec: spec.name)
def test_factors_come_from_where_the_kernel_puts_them(spec: Spec) -> None:
    choose, plans = Random(5), plan(spec)
    for each in plans:
        block_m, block_n, block_k = each.tile.block
        coordinate = (choose.randrange(block_m), choose.randrange(block_n))
        found = explain(spec, plans, variant=each.variant, coordinate=coordinate).followed["coordinate"]
        for operand in each.shared_operands:
            source = AtomSource(**found[operand.name])
            assert source.x == coordinate["mn".index(operand.x)]
            for k in choose.sample(range(block_k), 4):
                for stage in (0, each.stages - 1):
                    prove_load(each, operand, found["thread"], source, stage, k)
                prove_copy(operand, source, k)


@pytest.mark.parametrize("spec", ATOMS, ids=lambda spec: spec.name)
def test_a_thread_s_loads_are_those_of_its_fragments(spec: Spec) -> None:
    plans = plan(spec)
    each = plans[0]
    thread = each.threads.threads - 27
    told: dict[str, Any] = explain(spec, plans, thread=thread).followed["thread"]
    for operand in each.shared_operands:
        fragment, size = operand.fragment, ITEMSIZE[operand.dtype]
        assert isinstance(fragment, AtomFragment)
        begin = (each.threads.m, each.threads.n)["mn".index(operand.x)][1](thread // 32)
        held = [(at, where) for at, where in held_by(each, operand).items() if where[0] == thread % 32]
        loads = told[operand.name]["loads"]
        assert len(loads) == fragment.vectors
        for number, one in enumerate(loads):
            mine = sorted([begin + x, k] for (x, k), (_, r, _) in held if r // fragment.registers == number)
            assert sorted(one["elements"]) == mine
            element = address(fragment.load, thread, (number, 0, 0), fragment.load.bytes // size)
            assert (one["element"], one["word"]) == (element, element * size // 4)
            assert one["bank"] == (first_word(each, operand) + one["word"]) % 32


def test_the_page_tells_of_registers_by_lane() -> None:
    """mma_bf16_128x256x32: lane 4 g + t holds row g of A, and k 2 t and 2 t + 1, then 8 on in its third register."""
    spec = load(paths.shipped_specs()["mma_bf16_128x256x32"])
    page = str(explain(spec, plan(spec), coordinate=(5, 77)))
    assert "Atom: SM80_16x8x16_F32BF16BF16F32_TN, an mma.sync of 16 x 8 x 16" in page
    assert "A(5,k): lanes 20..23 get the first 16 k by load 1 of 4" in page
    row = next(line for line in page.splitlines() if line.strip().startswith("lane, register"))
    assert row.split()[2:] == "20 r0 21 r0 22 r0 23 r0 20 r2 21 r2 22 r2 23 r2".split()
    assert "FFMA" not in page and "32 atoms a warp for 8 shared loads" in page
