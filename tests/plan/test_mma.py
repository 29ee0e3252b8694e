"""Plans of MMA atoms: who holds what of A, B and C is as the PTX ISA's fragments say, whatever the shared layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from layoutgen.algebra import Layout
from layoutgen.errors import PlanError, SpecError
from layoutgen.facts import access_facts, access_offsets, atom_owners, shared_offsets
from layoutgen.hw.mma_atoms import mma_atom
from layoutgen.plan import Plan, plan
from layoutgen.plan.model import AtomFragment, SharedOperand
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.spec import load, loads
from tests.kernels.small import SMALL, small
from tests.plan.drafts import Draft

EVERY = sorted((Path(__file__).resolve().parents[2] / "specs" / "mma").glob("*.yaml"))
SPECS = [path for path in EVERY if not load(path).epilogue]  # tiles of others are those of one of these
OF_SPECS = [each for path in SPECS for each in plan(load(path))]
OF_SMALL = [each for name in SMALL if "atom" in SMALL[name][0] for each in small(name)]
BF16 = {
    "block": (64, 64, 32), "warps": "(2,2):(1,2)", "atom": "SM80_16x8x16_F32BF16BF16F32_TN",
    "dtypes": ("bf16", "bf16", "f32"), "stages": 2,
}  # fmt: skip


def of(**fields: Any) -> tuple[Plan, ...]:
    return plan(Draft(**{**BF16, **fields}).spec())


def name(each: Plan) -> str:
    return f"{each.name}-{each.variant}"


def held(each: Plan, operand: SharedOperand) -> list[tuple[int, int, int, int, int]]:
    """(offset in shared memory, warp's place, lane, register of a slot, place in it) of every element that a lane gets
    for the first K of an atom, by the PTX ISA's words on ldmatrix: lane l gets of row l / 4 of each matrix the elements
    that begin at 2 (l % 4), two of 16 bits or as many as 32 bits hold; transposed, of the column."""
    fragment, itemsize = operand.fragment, ITEMSIZE[operand.dtype]
    assert isinstance(fragment, AtomFragment)
    load, per = fragment.load, max(4 // itemsize, 1)
    offsets = access_offsets(load, load.bytes // itemsize, np.arange(fragment.vectors))
    found = []
    for thread in range(each.threads.threads):
        warp, lane = divmod(thread, 32)
        for vector in range(fragment.vectors):
            for matrix in range(fragment.registers):
                for place in range(per):
                    if load.opcode == "ld.shared":
                        at = offsets[vector, thread] + place
                    else:
                        row, element = lane // 4, per * (lane % 4) + place
                        if load.opcode == "ldmatrix.trans":
                            row, element = element, row
                        at = offsets[vector, 32 * warp + 8 * matrix + row] + element
                    found.append((int(at), warp, lane, vector * fragment.registers + matrix, place))
    return found


@pytest.mark.parametrize("each", [*OF_SPECS[::5], *OF_SMALL], ids=name)
def test_fragments_bring_what_the_atoms_multiply(each: Plan) -> None:
    for operand in each.shared_operands:
        mode = 0 if operand.x == "m" else 1
        owners, where = atom_owners(each, operand), shared_offsets(operand.shared)
        begins = each.tile.warp_mode[mode].offsets()
        of_warp = (each.threads.m, each.threads.n)[mode][1]
        expected = set()
        first = owners.k_block == 0
        for x, k in zip(*first.nonzero(), strict=True):
            for warp in range(each.threads.threads // 32):
                if of_warp(warp) == begins[owners.warp[x, k]]:
                    lane, register, place = owners.lane[x, k], owners.register[x, k], owners.place[x, k]
                    expected.add((int(where[x, k]), warp, int(lane), int(register), int(place)))
        assert set(held(each, operand)) == expected


@pytest.mark.parametrize("each", [*OF_SPECS[::5], *OF_SMALL], ids=name)
def test_the_owners_are_those_of_the_atoms_layouts(each: Plan) -> None:
    """Of a warp's first atom, by CuTe's traits."""
    atom = mma_atom(each.atom.name)
    for operand, layout in zip(each.shared_operands, (atom.layouts.a, atom.layouts.b), strict=True):
        extent, k = atom.layouts.tile(operand.name.upper())  # type: ignore[arg-type]
        owners = atom_owners(each, operand)
        per, rows = max(4 // ITEMSIZE[operand.dtype], 1), extent // 8
        for lane in range(32):
            for value in range(layout[1].size):
                x, at = layout(lane, value) % extent, layout(lane, value) // extent
                if each.products == 6:  # a register of the atom is two f32, which come with two matrices, 4 k apart
                    second, row, half = value % 2, value // 2 % rows, value // 2 // rows
                    at, value = 4 * second + at % 8 // 2 + at // 8 * 8, row + rows * (second + 2 * half)
                assert (owners.lane[x, at], owners.register[x, at] * per + owners.place[x, at]) == (lane, value)
        assert owners.k_block[:, k:].min(initial=1) > 0
    for lane in range(32):
        m, n = each.threads.m(lane), each.threads.n(lane)
        values = [
            (m + i) + atom.layouts.shape_mnk[0] * (n + j)
            for i in each.tile.value_mode[0].offsets()[: atom.layouts.shape_mnk[0] // 8]
            for j in each.tile.value_mode[1].offsets()[:2]
        ]
        assert values == [atom.layouts.c(lane, value) for value in range(atom.layouts.c[1].size)]


@pytest.mark.parametrize("each", [*OF_SPECS, *OF_SMALL], ids=name)
def test_copies_land_where_the_swizzle_says(each: Plan) -> None:
    for operand in each.shared_operands:
        copy = operand.copy
        x, k = copy.element_x.offsets(), copy.element_k.offsets()
        x, k = (x[:: copy.write_vector], k) if copy.write_mode == "x" else (x, k[:: copy.write_vector])
        at_x = np.tile(x, k.size)[:, None] + copy.thread_x.offsets()[None, :]
        at_k = np.repeat(k, x.size)[:, None] + copy.thread_k.offsets()[None, :]
        for stage in range(each.stages):
            pieces = np.arange(stage * copy.writes, (stage + 1) * copy.writes)
            landed = access_offsets(copy.write, copy.write_vector, pieces)
            assert (landed == shared_offsets(operand.shared, stage)[at_x, at_k]).all()


@pytest.mark.parametrize("each", [*OF_SPECS, *OF_SMALL], ids=name)
def test_only_bits_flip_that_are_clear_where_an_operand_begins(each: Plan) -> None:
    """Below 1 KB, on a multiple of which it begins; further up its address may have any."""
    for operand in each.shared_operands:
        for access in (operand.fragment.load, operand.copy.write):
            for mode in access.flips or ():
                assert int(mode.offsets().max()) * access.bytes < 1024


@pytest.mark.parametrize("each", OF_SPECS, ids=name)
def test_fragments_of_the_specs_meet_no_bank_twice(each: Plan) -> None:
    for access in access_facts(each):
        if access.name.startswith("fragment"):
            assert access.wavefronts == access.conflict_free


def test_what_a_swizzle_is_worth() -> None:
    """ldmatrix reads eight rows of 16 bytes: 64 bytes apart, they meet in pairs of banks' quarters."""
    wavefronts = {}
    for shared in (None, "(64,32):(32,1)", "(64,32):(40,1)", "Sw<2,3,3> o 0 o (64,32):(32,1)"):
        (first, *_) = of(shared_a=shared)
        wavefronts[shared] = next(a.wavefronts / a.requests for a in access_facts(first) if a.name == "fragment_a")
    assert list(wavefronts.values()) == [4, 16, 4, 4]
    assert of(shared_a="Sw<2,3,3> o 0 o (64,32):(32,1)") == of(shared_a=None)


def test_columns_are_stored_in_runs_of_16_bytes() -> None:
    """Lanes of a quad have pairs of columns, and pass each other what makes them runs."""
    for dtype, lanes, run in (("bf16", 4, 8), ("f32", 2, 4)):
        found = [(p.epilogue.exchange, p.epilogue.vector) for p in of(dtypes=("bf16", dtype, "f32"))[::4]]
        assert found[0] == (lanes, run)
        assert found[-1] == (1, 1)
    columns = of()[0].epilogue
    every = {(columns.thread_n(t), int(v)) for t in range(32) for v in columns.value_n.offsets()}
    assert sorted(a + b for a, b in every) == list(range(32))


def test_each_pair_of_modes_has_a_variant_for_each_alignment() -> None:
    aligns = {16: "cp.async", 8: "cp.async", 4: "cp.async", 2: "ldg.sts"}
    found = {(p.variant, p.a.copy.atom.name, p.b.copy.atom.name) for p in of()}
    pairs = ("ak_bn", "ak_bk", "am_bn", "am_bk")
    assert found == {(f"{pair}_{n}B", atom, atom) for pair in pairs for n, atom in aligns.items()} | {
        ("any", "ldg.sts", "ldg.sts")
    }
    opcodes = {p.variant: (p.a.fragment.load.opcode, p.b.fragment.load.opcode) for p in of()[:4]}  # type: ignore[attr-defined]
    assert opcodes == {
        "ak_bn_16B": ("ldmatrix", "ldmatrix.trans"), "ak_bk_16B": ("ldmatrix", "ldmatrix"),
        "am_bn_16B": ("ldmatrix.trans", "ldmatrix.trans"), "am_bk_16B": ("ldmatrix.trans", "ldmatrix"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dtypes": ("f16", "f16", "f32")}, "operands must be of the types that the atom multiplies"),
        ({"dtypes": ("bf16", "bf16", "f32"), "atom": None}, "without an MMA atom, threads multiply and add in f32"),
        ({"stages": 0}, "the fragments of MMA atoms come from shared memory"),
        ({"block": (64, 64, 24)}, "the atom's K must divide the k of the block tile"),
        ({"block": (64, 64, 32), "warps": "(8,1):(1,0)"}, "atoms must fill the warp tile in m"),
        ({"shared_a": "(64,32):(33,1)"}, "a row of a matrix must lie together in shared.a"),
        ({"shared_a": "Sw<2,1,3> o 0 o (64,32):(32,1)"}, "a row of a matrix must lie together in shared.a"),
        ({"shared_b": "Sw<2,9,3> o 0 o (64,32):(1,64)"}, "a swizzle is for the fragments of MMA atoms"),
        # Its last of 33 steps along k would flip bit 10, which may be set where shared memory begins.
        (
            {"block": (64, 64, 528), "shared_a": "Sw<3,3,7> o 0 o (64,528):(1024,1)"},
            "every thread steps through shared.a alike",
        ),
        ({"order": "(3,3):(1,3)"}, "the order of multiply-adds must take each"),
        (
            {"atom": "SM89_16x8x32_F32E4M3E4M3F32_TN", "dtypes": ("e4m3", "bf16", "f32")},
            "the spec's architecture has the atom's instruction",
        ),
    ],
)
def test_what_does_not_fit_together_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message) as raised:
        of(**fields)
    assert raised.value.fix and raised.value.where


def test_scalar_fragments_take_no_swizzle() -> None:
    with pytest.raises(PlanError, match="a swizzle is for the fragments of MMA atoms"):
        plan(Draft(shared_a="Sw<3,2,4> o 0 o (64,8):(1,64)").spec())


def test_an_operand_begins_where_no_bit_that_flips_is_set() -> None:
    """Whatever the other one takes: A's padded rows of 96 bytes end on no multiple of 1024."""
    for each in of(shared_a="(64,32):(48,1)", stages=3):
        a, b = each.shared_operands
        assert a.shared.stage_elements * 2 % 1024 == b.shared.stage_elements * 2 % 1024 == 0
        assert each.shared_bytes == a.shared.bytes + b.shared.bytes
    assert of(shared_a="(64,32):(48,1)")[0].a.shared.layout[1] == Layout(32, 1)  # type: ignore[attr-defined]


def test_an_atom_that_is_not_known_is_all_that_is_said() -> None:
    text = Draft(**BF16).text().replace("BF16F32_TN", "BF16F32_NT")  # type: ignore[arg-type]
    with pytest.raises(SpecError) as raised:
        loads(text)
    assert str(raised.value).count("\n") == 3
    assert "must be an MMA atom" in str(raised.value) and "BF16F32_TN?" in str(raised.value)


def test_a_spec_may_not_contradict_its_atom() -> None:
    text = Draft(**BF16).text()  # type: ignore[arg-type]
    same = loads(text.replace("  atom:", "  lanes: (8,4):(4,1)\n  values: <2:8, 2:1>\n  atom:"))
    assert plan(same) == plan(loads(text))
    other = loads(text.replace("  atom:", "  values: [2, 2]\n  atom:"))
    with pytest.raises(PlanError, match="an MMA atom says who holds what of C"):
        plan(other)
