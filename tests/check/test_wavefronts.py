"""Specs of an AMD architecture: what check says of wavefronts of 64 lanes, and of devices that have none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from layoutgen import paths
from layoutgen.check import Finding, check
from layoutgen.emitted import emitted_specs
from layoutgen.facts import facts, wanted_blocks
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import plan_primary
from layoutgen.spec import Spec, load, loads
from tests.plan.drafts import Draft

MI300X = DEVICES["mi300x"]
SPECS = {name: load(path) for name, path in paths.shipped_specs().items() if name not in emitted_specs()}
F16: dict[str, Any] = {
    "arch": "gfx942", "atom": "v_mfma_f32_16x16x16_f16", "block": (64, 64, 32), "stages": 1,
    "dtypes": ("f16", "f16", "f32"),
}  # fmt: skip


def spec(schedule: str = "", **fields: Any) -> Spec:
    text = Draft(**{**F16, **fields}).text()
    return loads(text.replace("min_blocks: 1}", f"{schedule}}}") if schedule else text, "draft.yaml")


def only(found: Spec, rule: str, device: str = "mi300x") -> Finding:
    (finding,) = (each for each in check(found, DEVICES[device]).findings if each.rule == rule)
    return finding


def test_there_are_four() -> None:
    assert [name.removeprefix("triton_f16_mi300x_") for name in SPECS] == [
        "128x128x32", "128x256x32", "256x128x32", "64x64x32",
    ]  # fmt: skip


@pytest.mark.parametrize("name", SPECS)
def test_each_is_legal_on_its_device_and_nothing_is_said(name: str) -> None:
    report = check(SPECS[name], MI300X)
    assert report.legal and not report.findings
    found, bounds = report.facts, report.registers
    assert found is not None and bounds is not None
    assert found.shared.bytes <= 64 * 1024 and bounds.minimum <= bounds.cap <= 512
    waves = SPECS[name].schedule.waves_per_eu
    assert waves is not None and bounds.cap == 512 // waves
    assert found.occupancy.blocks * found.occupancy.warps >= 4 * waves
    assert found.accesses == () and found.conflicts is found.ceiling is None
    assert found.peak == pytest.approx(1307.4, rel=1e-3)  # TFLOP/s, the data sheet's FP16


@pytest.mark.parametrize("device", ["h200", "a100-80gb"])
def test_no_device_of_nvidia_s_runs_one(device: str) -> None:
    report = check(SPECS["triton_f16_mi300x_64x64x32"], DEVICES[device])
    assert [each.rule for each in report.of("error")] == ["arch", "wavefront"] == [e.rule for e in report.findings]
    arch, lanes = report.findings
    assert arch.got.startswith(f"gfx942 on {device}") and "mi300x" in arch.fix
    assert "64 lanes" in lanes.got and f"{device} has warps of 32" in lanes.got and lanes.allowed == "32 lanes"
    assert report.plans and report.facts is None


def test_another_gfx_is_another_architecture() -> None:
    other = replace(MI300X, name="mi250x", arch="gfx90a")
    assert [each.rule for each in check(SPECS["triton_f16_mi300x_64x64x32"], other).findings] == ["arch"]


def test_waves_that_do_not_fit() -> None:
    """4 wavefronts with 16 KB of LDS, of which there are 64: 4 blocks, 4 wavefronts on each of 4 SIMDs."""
    two = only(spec("waves_per_eu: 8", stages=2), "waves-per-eu")
    assert two.severity == "error" and two.where.line == 12
    assert two.got == "8, of blocks of 4 wavefronts with 46 registers a thread and 16384 bytes of LDS"
    assert (two.allowed, two.fix) == ("4 on mi300x, limited by shared memory", "write schedule.waves_per_eu: 4")
    assert check(spec("waves_per_eu: 4", stages=2), MI300X).legal
    assert check(spec("waves_per_eu: 8"), MI300X).legal
    assert "threads" in only(spec("waves_per_eu: 9"), "waves-per-eu").allowed


def test_registers_that_keep_waves_out() -> None:
    """256 x 128 of C in 4 wavefronts are 128 accumulators of a thread: with all else more than a third of 512."""
    large = {"block": (256, 128, 32)}
    assert check(spec("waves_per_eu: 2", **large), MI300X).legal
    assert "registers" in only(spec("waves_per_eu: 3", **large), "waves-per-eu").allowed
    assert wanted_blocks(plan_primary(spec("waves_per_eu: 3", **large)), MI300X) == 3


def test_half_of_the_simds_are_not_all() -> None:
    """48 KB of LDS leave room for one block, of 2 wavefronts."""
    found = only(spec("waves_per_eu: 1", warps="(2,1):(1,0)", block=(256, 128, 32), stages=2), "waves-per-eu")
    assert found.allowed.startswith("0 on mi300x") and "more warps" in found.fix


@pytest.mark.parametrize(
    ("found", "device", "rule", "fix"),
    [
        (spec("min_blocks: 2"), "mi300x", "min-blocks", "write schedule.waves_per_eu"),
        (
            loads(Draft().text().replace("min_blocks: 1}", "waves_per_eu: 2}")), "h200", "waves-per-eu",
            "write schedule.min_blocks",
        ),
        (spec(copy_a="{atom: cp.async}"), "mi300x", "atom", "write copies.a.atom: ldg.sts"),
        (spec(warps="(4,8):(8,1)", block=(64, 128, 32)), "mi300x", "threads", "use at most 16 warps"),
        (spec(stages=8, block=(256, 256, 32)), "mi300x", "shared-memory", "write shared.stages: 2"),
        (spec(block=(512, 256, 32)), "mi300x", "registers", "use a smaller block tile"),
        (spec(arch="sm_80"), "h200", "compose", "write arch: gfx942"),
        (spec(atom=None, dtypes=("f32", "f32", "f32")), "mi300x", "lanes", "(8,8):(8,1)"),
        (spec(block=(64, 64, 16)), "mi300x", "k-depth", "write tiling.block: [64, 64, 32]"),
    ],
)  # fmt: skip
def test_what_else_is_refused(found: Spec, device: str, rule: str, fix: str) -> None:
    assert fix in only(found, rule, device).fix


def test_one_stage_hides_nothing_where_a_copy_waits_for_its_loads() -> None:
    """cp.async is refused; of the sound, one stage through registers is loaded a turn ahead."""
    assert "no-overlap" not in [each.rule for each in check(spec(), MI300X).findings]
    assert only(loads(Draft(stages=1, copy_a="{atom: ldg.sts}", copy_b="{atom: ldg.sts}").text()), "no-overlap", "h200")


def test_facts_on_another_vendor_s_device_claim_no_accesses() -> None:
    on_nvidia = facts(plan_primary(SPECS["triton_f16_mi300x_64x64x32"]), DEVICES["h200"])
    assert on_nvidia.accesses == () and on_nvidia.ceiling is None
