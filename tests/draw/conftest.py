"""The plans that pictures are drawn of: every spec that ships, and tilings that reach what those do not."""

from __future__ import annotations

from functools import cache

import pytest

from layoutgen import paths, spec
from layoutgen.draw import LEVELS, SHARED_LEVELS
from layoutgen.emitted import emitted_specs
from layoutgen.plan import Plan, plan
from tests.explain.stages import spread
from tests.plan.drafts import Draft

DRAFTS = {
    "three_stages": Draft(stages=3, copy_a="{atom: cp.async}", copy_b="{atom: cp.async}"),
    "mixed_copies": Draft(stages=3, copy_a="{atom: ldg.sts}", copy_b="{atom: cp.async}"),
    "odd_k": Draft(block=(64, 64, 5), contiguous=("m", "n")),
    "along_n": Draft(raster="along_n", group=3, contiguous=("k", "k")),
    # Single values far from their like, and a deep tile: more cells than a picture can outline and label.
    "fine": Draft(
        block=(256, 128, 32),
        warps="(4,2):(2,1)",
        values=("1", "1"),
        copy_a="{atom: cp.async, values: [1, 1]}",
        copy_b="{atom: cp.async, values: [1, 1]}",
    ),
    # A lands transposed in rows of 128 words: eight of a warp's lanes in one bank.
    "conflicts": Draft(block=(128, 64, 8), warp=("64", "32"), shared_a="(128,8):(1,128)"),
    "dense": Draft(shared_a="(64,8):(1,64)"),
    "two_way": Draft(block=(128, 64, 8), warp=("64", "32"), shared_a="(128,8):(1,136)"),
    # Shared tiles that are contiguous in k, of which fragments are read four k at a time.
    "k_vectors": Draft(stages=3, block=(64, 64, 16), shared_a="(64,16):(16,1)", shared_b="(64,16):(20,1)"),
    # Without stages: four neighbours of a thread's values at once, and lanes that stand in both modes.
    "registers": Draft(stages=0, contiguous=("m", "n"), copy_a="{atom: ldg}", copy_b="{atom: ldg, values: [1, 1]}"),
    "spread": Draft(block=(64, 64, 8), stages=3, copy_a="{atom: ldg.sts}", copy_b="{atom: cp.async}"),
    "values_apart": Draft(values=("(2,2):(1,16)", "(2,2):(1,16)")),
}
# Specs of tensor cores that differ from others in the size of a tile alone, or in what is done to sums.
ALIKE = (
    "mma_bf16_128x256x64", "mma_f16_128x256x32", "triton_f16_128x256x64", "triton_f16_128x128x32",
    "triton_f16_64x128x32", "linear_gelu_bf16_128x256x32", "quantized_s8_128x256x128", "tf32x3_128x128x56",
    "bf16x6_96x128x48",
)  # fmt: skip
NAMES = (*(name for name in emitted_specs() if name not in ALIKE), *DRAFTS)
WITHOUT_STAGES = ("ladder_01_naive", "ladder_02_coalesced", "registers")
ATOM_NAMES = tuple(
    name for name, path in emitted_specs().items() if name not in ALIKE and spec.load(path).tiling.atom is not None
)
SHARED_NAMES = tuple(name for name in NAMES if name not in WITHOUT_STAGES)


@cache
def plans_of(name: str) -> tuple[Plan, ...]:
    if name == "spread":
        return plan(spread(DRAFTS[name], 1, 6))
    return plan(spec.loads(DRAFTS[name].text()) if name in DRAFTS else spec.load(paths.find_spec(name)))


def levels_of(plan: Plan) -> tuple[str, ...]:
    """The levels that a plan can be drawn at."""
    return tuple(level for level in LEVELS if plan.stages or level not in SHARED_LEVELS)


@pytest.fixture(params=SHARED_NAMES)
def in_shared(request: pytest.FixtureRequest) -> Plan:
    """The primary plan of each that has shared memory."""
    return plans_of(request.param)[0]


@pytest.fixture(params=NAMES)
def drawn(request: pytest.FixtureRequest) -> Plan:
    """The primary plan of each."""
    return plans_of(request.param)[0]
