"""Every kernel is right however warps interleave and copies land, at every ragged edge, and touches nothing else.

Those of the specs that come with layoutgen, and of small specs that have what those lack.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from layoutgen import spec
from layoutgen.emitted import emitted_specs
from layoutgen.plan import Plan, plan
from tests.kernels.harness import cases, failure, kernel, schedules
from tests.kernels.small import SMALL, small

SPECS = sorted(emitted_specs().values())
LARGE = 128 * 128  # elements of C


def plans() -> list[Plan]:
    """The primary variant of every spec, all variants of one spec of the family, and those of small specs."""
    every = [plan(spec.load(path)) for path in SPECS]
    others = plan(spec.load("specs/warptile_128x128.yaml"))[1:]
    return [*(variants[0] for variants in every), *others, *(each for name in SMALL for each in small(name))]


def simulated() -> list[Plan]:
    """Those whose simulation under every schedule takes seconds. What is left out are large tiles of MMA atoms: small
    specs have all that they have, and tests/ops runs each once."""
    return [each for each in plans() if not (each.uses_atoms and each.tile.block[0] * each.tile.block[1] >= LARGE)]


def test_there_are_specs() -> None:
    assert {Path(path).stem for path in SPECS} >= {"warptile_128x128", "salykov_128x128x8", "salykov_128x256x8"}
    assert len([path for path in SPECS if path.parent.name == "ladder"]) == 12


@pytest.mark.parametrize("each", simulated(), ids=lambda p: f"{p.name}-{p.variant}")
def test_every_schedule_gives_the_right_result(each: Plan) -> None:
    code = kernel(each)
    for case in cases(each):
        for schedule in schedules(each):
            assert failure(each, code, case, schedule) is None, (case, schedule)
