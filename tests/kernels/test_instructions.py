"""What the plan says is what the compiler made: every access stands in PTX and in SASS at its planned width."""

from __future__ import annotations

from collections import Counter

import pytest

from layoutgen import build, sim
from layoutgen.emit import emit
from layoutgen.facts import registers, static_accesses
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import Plan
from tests.kernels.harness import ARCH
from tests.kernels.test_schedules import plans

SASS = {"lds": "ld.shared", "sts": "st.shared", "ldg": "ld.global", "stg": "st.global", "ldgsts": "cp.async"}


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
