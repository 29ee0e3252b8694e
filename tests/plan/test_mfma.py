"""Plans of MFMA atoms: who holds what of A, B and C is as AMD's layouts say, for wavefronts of 64 lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layoutgen import paths
from layoutgen.emitted import emitted_specs
from layoutgen.errors import PlanError
from layoutgen.facts import access_offsets, atom_owners, cover_c, cover_copy, shared_offsets
from layoutgen.hw.mfma_atoms import MFMA_ATOMS
from layoutgen.hw.warp_atoms import WARP_ATOMS, accumulator_of
from layoutgen.plan import Plan, plan, plan_primary
from layoutgen.plan.model import AtomFragment, SharedOperand
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.spec import load
from tests.plan.drafts import Draft
from tests.plan.machine import Machine

SPECS = {name: load(path) for name, path in paths.shipped_specs().items() if name not in emitted_specs()}
OF_SPECS = [each for spec in SPECS.values() for each in plan(spec)[::6]]
NAMES = [name for name in WARP_ATOMS if name in MFMA_ATOMS]
LANES = 64


def of(name: str, **fields: Any) -> tuple[Plan, ...]:
    """2 x 2 wavefronts of 2 x 1 atoms of K twice."""
    (m, n, k), atom = WARP_ATOMS[name].layouts.shape_mnk, WARP_ATOMS[name]
    types = (atom.a.lower(), atom.c.lower(), atom.c.lower())
    given = {"block": (4 * m, 2 * n, 2 * k), "warps": "(2,2):(1,2)", "dtypes": types, "stages": 1, **fields}
    return plan(Draft(arch="gfx942", atom=name, **given).spec())  # type: ignore[arg-type]


SMALL = [each for name in NAMES for each in of(name)[::4]]
APART = of("v_mfma_f32_16x16x16_f16", warp=("(16,2):(1,32)", "(8,2):(1,16)"))[0]  # a warp tile in pieces


def name_of(each: Plan) -> str:
    return f"{each.name}-{each.atom.name}-{each.variant}"


def held(each: Plan, operand: SharedOperand) -> set[tuple[int, int, int, int, int, int]]:
    """(offset in shared memory, its K of an atom, warp's place, lane, register of a slot, place in it) of each element
    that a lane gets: a load brings a run, from the address on."""
    fragment, itemsize = operand.fragment, ITEMSIZE[operand.dtype]
    assert isinstance(fragment, AtomFragment)
    load, per = fragment.load, max(4 // itemsize, 1)
    assert load.opcode == "ld.shared" and load.bytes == fragment.vector * itemsize
    offsets = access_offsets(load, fragment.vector, np.arange(fragment.vectors * each.k_blocks))
    found = set()
    for (piece, thread), at in np.ndenumerate(offsets):
        block, vector = divmod(piece, fragment.vectors)
        for value in range(fragment.vector):
            register = vector * fragment.registers + value // per
            found.add((int(at) + value, block, *divmod(thread, LANES), register, value % per))
    return found


@pytest.mark.parametrize("each", [*OF_SPECS[::3], *SMALL], ids=name_of)
def test_fragments_bring_what_the_atoms_multiply(each: Plan) -> None:
    """By the atom's layouts of A and B, in warp tiles that are runs of atoms."""
    for operand in each.shared_operands:
        mode = "mn".index(operand.x)
        layout = (each.atom.layouts.a, each.atom.layouts.b)[mode]
        extent, atom_k = each.atom.layouts.shape_mnk[mode], each.atom.layouts.shape_mnk[2]
        fragment, where = operand.fragment, shared_offsets(operand.shared)
        assert isinstance(fragment, AtomFragment)
        per, tile = max(4 // ITEMSIZE[operand.dtype], 1), operand.tile[0] // each.tile.warps[mode].size
        expected = set()
        for warp in range(each.tile.warps.size):
            first = (each.threads.m, each.threads.n)[mode][1](warp)
            for atom in range(tile // extent):
                for block in range(each.k_blocks):
                    for lane in range(LANES):
                        for value in range(layout[1].size):
                            k, x = divmod(layout(lane, value), extent)
                            at = int(where[first + atom * extent + x, block * atom_k + k])
                            register = atom * fragment.of_atom + value // per
                            expected.add((at, block, warp, lane, register, value % per))
        assert held(each, operand) == expected


@pytest.mark.parametrize("each", [*SMALL, APART], ids=name_of)
def test_the_facts_know_who_holds_what(each: Plan) -> None:
    for operand in each.shared_operands:
        owners, where = atom_owners(each, operand), shared_offsets(operand.shared)
        mode = "mn".index(operand.x)
        begins = each.tile.warp_mode[mode].offsets()
        told = {
            (int(where[at]), *(int(part[at]) for part in (owners.k_block, owners.lane, owners.register, owners.place)))
            for at in np.ndindex(operand.tile)
        }
        of_warp = (each.threads.m, each.threads.n)[mode][1]
        assert told == {(at, block, *rest) for at, block, _, *rest in held(each, operand)}
        for at, block, warp, lane, *_ in held(each, operand):
            (place,) = np.argwhere(where == at)
            assert begins[owners.warp[tuple(place)]] == of_warp(warp) and owners.lane[tuple(place)] == lane
            assert owners.k_block[tuple(place)] == block


@pytest.mark.parametrize("name", NAMES)
def test_accumulators_are_those_of_the_atom(name: str) -> None:
    atom = WARP_ATOMS[name]
    m, n, k = atom.layouts.shape_mnk
    each = of(name, block=(m, n, k), warps="1:0")[0]
    assert each.threads.threads == each.warp_size == LANES
    rows, columns = (mode.offsets() for mode in each.tile.value_mode)
    for lane in range(LANES):
        own = [int(each.threads.m(lane) + i) + m * int(each.threads.n(lane) + j) for j in columns for i in rows]
        assert own == [atom.layouts.c(lane, value) for value in range(atom.layouts.c[1].size)]
    assert accumulator_of(atom)[0].startswith("(4,16)" if m == 16 else "(2,32)")


@pytest.mark.parametrize("each", [*OF_SPECS, *SMALL], ids=name_of)
def test_c_is_covered_and_k_tiles_land_once(each: Plan) -> None:
    assert cover_c(each.tile, each.threads).ok
    assert each.threads.threads == LANES * each.tile.warps.size
    for operand in each.shared_operands:
        copy = operand.copy
        assert copy.atom.name == "ldg.sts" and cover_copy(copy, operand.tile).ok
        every = np.stack([shared_offsets(operand.shared, stage) for stage in range(each.stages)])
        assert np.unique(every).size == every.size and every.max() * ITEMSIZE[operand.dtype] < operand.shared.bytes
        x, k = copy.element_x.offsets(), copy.element_k.offsets()
        x, k = (x[:: copy.write_vector], k) if copy.write_mode == "x" else (x, k[:: copy.write_vector])
        at_x = np.tile(x, k.size)[:, None] + copy.thread_x.offsets()[None, :]
        at_k = np.repeat(k, x.size)[:, None] + copy.thread_k.offsets()[None, :]
        landed = access_offsets(copy.write, copy.write_vector, np.arange(copy.writes))
        assert (landed == every[0][at_x, at_k]).all()


@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: spec.name)
def test_the_rows_that_lanes_read_of_one_k_have_banks_of_their_own(spec: Any) -> None:
    """16 lanes of 8 bytes are a clock of 32 banks; those that stand in the rows of an atom read one run of k."""
    for each in plan(spec)[::5]:
        for operand in each.shared_operands:
            fragment = operand.fragment
            offsets = access_offsets(fragment.load, fragment.vector, np.arange(fragment.vectors * each.k_blocks))
            runs = (offsets * ITEMSIZE[operand.dtype] // fragment.load.bytes) % 16
            for group in range(0, each.threads.threads, 16):
                assert (np.sort(runs[:, group : group + 16], axis=1) == np.arange(16)).all()


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_the_next_k_tile_waits_in_registers(stages: int) -> None:
    """Every k is multiplied once and in order, and with one stage too a turn stores what the last one loaded."""
    each = of("v_mfma_f32_16x16x16_f16", stages=stages)[0]
    for k_tiles in (0, 1, 2, 3, 5):
        assert Machine(each, k_tiles).run() == [(tile, k) for tile in range(k_tiles) for k in range(each.k_blocks)]
    kinds = [type(step).__name__ for step in each.program.steady]
    assert kinds.index("StoreTile") < kinds.index("LoadTile")
    assert not {"CopyTile", "Wait", "Commit"} & set(kinds)


def test_columns_are_stored_one_by_one() -> None:
    """A lane has rows of a column; 16 lanes lie along a row, and none passes another anything."""
    for each in OF_SPECS:
        assert (each.epilogue.vector, each.epilogue.exchange) == (1, 1)
        assert [each.threads.n(lane) for lane in range(16)] == list(range(16))


def test_what_triton_s_configurations_keep() -> None:
    kept = {}
    for each in map(plan_primary, SPECS.values()):
        schedule, warps = each.schedule, each.tile.warps.size
        kept[each.name] = each.tile.block, warps, each.stages, schedule.group, schedule.waves_per_eu
    assert kept == {
        "triton_f16_mi300x_128x128x32": ((128, 128, 32), 8, 1, 1, 2),
        "triton_f16_mi300x_128x256x32": ((128, 256, 32), 4, 1, 16, 2),
        "triton_f16_mi300x_256x128x32": ((256, 128, 32), 4, 1, 4, 2),
        "triton_f16_mi300x_64x64x32": ((64, 64, 32), 4, 1, 1, 8),
    }


F16 = "v_mfma_f32_16x16x16_f16"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stages": 0}, "the fragments of MMA atoms come from shared memory"),
        ({"shared_a": "(64,32):(1,64)"}, "a lane's run of k must lie together in shared.a"),
        ({"shared_b": "(32,32):(33,1)"}, "a lane's run of k must lie together in shared.b"),
        ({"shared_a": "Sw<2,1,4> o 0 o (64,32):(32,1)"}, "a lane's run of k must lie together in shared.a"),
        ({"warps": "(8,1):(1,0)"}, "atoms must fill the warp tile in m"),
        ({"dtypes": ("bf16", "f32", "f32")}, "operands must be of the types that the atom multiplies"),
        ({"copy_a": "{atom: ldg}"}, "what stages of shared memory hold is copied there"),
    ],
)
def test_what_does_not_fit_together_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message) as raised:
        of(F16, **fields)
    assert raised.value.fix and raised.value.where and "cp.async" not in raised.value.fix


@pytest.mark.parametrize(
    ("arch", "atom", "mended"),
    [("sm_80", F16, "gfx942"), ("gfx942", "SM80_16x8x16_F32F16F16F32_TN", "sm_80")],
)
def test_an_atom_is_of_its_vendor_s_architecture(arch: str, atom: str, mended: str) -> None:
    draft = Draft(arch=arch, atom=atom, block=(64, 64, 32), dtypes=("f16", "f32", "f32"))
    with pytest.raises(PlanError, match="the spec's architecture has the atom's instruction") as raised:
        plan(draft.spec())
    assert raised.value.fix is not None and f"write arch: {mended}" in raised.value.fix


def test_wavefronts_multiply_without_atoms_too() -> None:
    each = plan(Draft(arch="gfx942", lanes="(8,8):(8,1)", block=(64, 128, 8)).spec())[0]
    assert each.warp_size == LANES and each.threads.threads == 4 * LANES and not each.uses_atoms
    assert cover_c(each.tile, each.threads).ok and each.a.copy.atom.name == "ldg.sts"
    with pytest.raises(PlanError, match="the lanes must number their positions 0 .. 63"):
        plan(Draft(arch="gfx942").spec())
