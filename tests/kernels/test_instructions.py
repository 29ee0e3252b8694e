"""What the plan says is what the compiler made: every access stands in PTX and in SASS at its planned width."""

from __future__ import annotations

from collections import Counter

import pytest

from layoutgen import build, run, sim
from layoutgen.emit import emit
from layoutgen.facts import Loop, access_facts, facts, registers, static_accesses
from layoutgen.facts.traffic import block_sites
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import Plan
from layoutgen.plan.schedule import WorkRange
from layoutgen.problem import packed
from tests.kernels.harness import ARCH
from tests.kernels.test_schedules import plans

SASS = {
    "lds": "ld.shared",
    "ldsm": "ldmatrix",
    "sts": "st.shared",
    "ldg": "ld.global",
    "stg": "st.global",
    "ldgsts": "cp.async",
}


@pytest.mark.parametrize("each", plans(), ids=lambda p: f"{p.name}-{p.variant}")
def test_accesses_keep_their_planned_width(each: Plan) -> None:
    source = emit(each)
    artifact = build.build(source.text, source.launch.kernel, ARCH)
    planned = static_accesses(each)
    assert sim.static_counts(sim.parse(artifact.ptx).kernels[source.launch.kernel]) == planned
    assembled = Counter(
        {(SASS[op], width): n for (op, width), n in build.sass_counts(artifact.cubin).items() if op in SASS}
    )
    assert assembled == planned


OPCODES = {name: op for op, name in SASS.items()} | {"ldmatrix.trans": "ldsm"}


@pytest.mark.parametrize("each", plans(), ids=lambda p: f"{p.name}-{p.variant}")
def test_every_access_of_the_machine_code_is_one_of_the_plans(each: Plan) -> None:
    """By source lines: so many instructions of each access as the program's steps have pieces, two paths of D and of
    what goes with its rows, in the text of as many rows as a turn has."""
    planned: Counter[tuple[str | None, str, int]] = Counter()
    epilogue = each.epilogue
    problem = packed(each, *each.tile.block, beta=1.0 if epilogue.reads_c else 0.0)
    block = WorkRange(0, 0, 0, each.tile.block[2])
    by_row = {"read_c": 1, "write_d": 1 + epilogue.reads_c}
    by_row |= {f"read_{tensor.name}": 1 + epilogue.reads_c for tensor in epilogue.tensors if "m" in tensor.modes}
    for sites in block_sites(each, problem, block):
        if sites.opcode in OPCODES:  # others are atomic
            times = sites.active.shape[0]
            times = by_row[sites.name] * times // epilogue.turns if sites.name in by_row else times
            times *= 2 if each.products > 1 and sites.name not in by_row else 1  # with guards and without
            planned[sites.name, OPCODES[sites.opcode], sites.bytes] += times
    if each.schedule.kind == "stream_k":
        values = each.tile.value_mode[0].size * each.tile.value_mode[1].size
        planned |= {("write_partial", "stg", 4): values, ("read_partial", "ldg", 4): values}
        planned |= {("write_flag", "stg", 4): 1, ("read_flag", "ldg", 4): 1}
    source = emit(each)
    cubin = build.build(source.text, source.launch.kernel, ARCH).cubin
    assembled = Counter(
        # Of ldmatrix the plan counts the bytes of a row, whatever a lane gets of them.
        (
            run.access_of(each, instruction.lines),
            instruction.opcode,
            16 if instruction.opcode == "ldsm" else instruction.bytes,
        )
        for instruction in build.sass_instructions(cubin, each.name)
        if instruction.opcode in SASS
    )
    assert assembled == planned


# The instructions of Hopper that ptxas makes of an atom, where there are several: it multiplies 8-bit floats as f16.
INSTRUCTIONS = {("e4m3", (16, 8, 32)): 2}


@pytest.mark.parametrize("each", plans(), ids=lambda p: f"{p.name}-{p.variant}")
def test_the_main_loop_multiplies_one_k_tile(each: Plan) -> None:
    """Its FFMAs and memory instructions are the plan's; what else it has only the compiler knows."""
    source = emit(each)
    loop = Loop.of(build.loop_counts(build.build(source.text, source.launch.kernel, ARCH).cubin, each.name))
    block_m, block_n, block_k = each.tile.block
    if each.uses_atoms:
        m, n = each.order.extents
        assert loop.ffma == each.products * m * n * each.k_blocks * INSTRUCTIONS.get(
            (each.a.dtype, each.atom.layouts.shape_mnk), 1
        )
    else:
        assert loop.ffma == block_m * block_n * block_k // each.threads.threads
        assert loop.other < max(loop.ffma, 3 * loop.memory)  # addresses and predicates, of which few values have many
    assert loop.memory == sum(access.instructions for access in access_facts(each) if access.per == "k-tile")
    assert loop.other > 0
    found = facts(each, DEVICES["h200"], loop=loop)
    assert found.bound.issue == loop.instructions * each.threads.threads / 32 / 4


@pytest.mark.parametrize("each", plans(), ids=lambda p: f"{p.name}-{p.variant}")
def test_registers_are_within_their_bounds_and_primary_variants_do_not_spill(each: Plan) -> None:
    source = emit(each)
    resources = build.build(source.text, source.launch.kernel, ARCH).resources
    bounds = registers(each, DEVICES["h200"])
    spills = resources.spill_stores + resources.spill_loads
    assert spills == 0 or each.cost > 0
    assert resources.registers <= bounds.cap
    if not spills:
        assert bounds.minimum <= resources.registers
    assert resources.registers * each.threads.threads * each.schedule.min_blocks <= 65536
