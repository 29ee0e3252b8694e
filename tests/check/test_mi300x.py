"""Layouts on a device with wavefronts of 64, for which there is no code: what check judges and what it can't."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from layoutgen.check import Finding, Report, check
from layoutgen.emitted import emitted_specs
from layoutgen.hw.devices import DEVICES
from layoutgen.plan.storage import ITEMSIZE
from layoutgen.spec import load
from tests.plan.drafts import Draft

SPECS = sorted(emitted_specs().values())
MI300X = DEVICES["mi300x"]


def report(**fields: object) -> Report:
    return check(Draft(**fields).spec(), MI300X)  # type: ignore[arg-type]


def finding(found: Report, rule: str) -> Finding:
    (only,) = (each for each in found.findings if each.rule == rule)
    return only


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_each_spec_is_told_of_wavefronts_and_of_code(path: Path) -> None:
    spec = load(path)
    found, on_h200 = check(spec, MI300X), check(spec, DEVICES["h200"], mend=False)
    assert not found.legal
    code, lanes = finding(found, "arch"), finding(found, "wavefront")
    assert "layoutgen emits CUDA, and no code for AMD" in code.message
    assert "gfx942" in code.got and code.where == spec.where("arch")
    assert "mi300x has wavefronts of 64" in lanes.got and lanes.where == spec.where("tiling.lanes")
    rules, anywhere = {each.rule for each in found.findings}, {"no-overlap", "narrow-loads"}
    assert rules - anywhere <= {"arch", "wavefront", "min-blocks", "k-depth", "shared-memory"}
    known = {each.rule for each in on_h200.findings}
    assert rules & anywhere == known & anywhere or rules & {"min-blocks", "shared-memory"}
    # All the rest is judged all the same.
    m, n, k = spec.tiling.block
    if spec.shared.stages * (m + n) * k * ITEMSIZE[spec.operands.a.dtype] > 64 * 1024:  # of LDS, of elements alone
        assert "shared-memory" in rules and not found.plans
        return
    assert found.plans and found.registers is not None and on_h200.registers is not None
    assert found.registers.cap > on_h200.registers.cap
    assert len(found.plans) == len(on_h200.plans)


def test_threads_are_judged() -> None:
    most = report(block=(128, 256, 8), warps="(4,8):(8,1)")
    assert [each.rule for each in most.findings] == ["arch", "k-depth", "wavefront"]
    more = report(block=(256, 256, 8), warps="(8,8):(8,1)")
    assert finding(more, "threads").allowed == "1024 threads"


def test_the_last_byte_of_lds() -> None:
    """64 + 7 x 1088 words of A and 64 + 7 x 64 of B, in two stages, are 65,536 bytes, of which nothing is reserved."""
    full = report(shared_a="(64,8):(1,1088)", shared_b="(64,8):(1,64)")
    assert full.plans[0].shared_bytes == 65536
    assert "shared-memory" not in [each.rule for each in full.findings]
    over = report(shared_a="(64,8):(1,1089)", shared_b="(64,8):(1,64)")
    assert finding(over, "shared-memory").allowed == "65536 bytes on mi300x"


def test_registers_are_judged() -> None:
    """256 values of C in each of 128 threads are too many for NVIDIA's 255 registers and fit in 512."""
    wide = {"block": (256, 128, 8), "values": ("8", "8")}
    assert "registers" in [each.rule for each in check(Draft(**wide).spec(), DEVICES["h200"]).findings]  # type: ignore[arg-type]
    on_amd = report(**wide)
    assert [each.rule for each in on_amd.findings] == ["arch", "k-depth", "wavefront"]
    assert on_amd.registers is not None and 256 < on_amd.registers.minimum <= on_amd.registers.cap == 512
    assert "registers" in [each.rule for each in report(block=(512, 256, 8), values=("8", "8")).findings]


def test_another_number_of_lanes_is_told_whose_they_are() -> None:
    found = report(lanes="(8,8):(8,1)", block=(64, 128, 8))
    lanes = finding(found, "lanes")
    assert lanes.message == "a warp has 32 lanes with arch: sm_80, though one of mi300x has 64"
    assert lanes.got.startswith("64 lanes")
    assert "wavefront" not in [each.rule for each in found.findings]
    on_nvidia = check(Draft(lanes="(8,8):(8,1)", block=(64, 128, 8)).spec(), DEVICES["h200"])
    assert finding(on_nvidia, "lanes").message == "a warp has 32 lanes"


def test_what_ends_in_a_runs_on_that_architecture_alone() -> None:
    """An sm_90 without its a may be of the same compute capability; code for it lacks what sm_90a has."""
    spec = Draft(arch="sm_90a").spec()
    h200 = DEVICES["h200"]
    assert check(spec, h200).legal
    assert [each.rule for each in check(spec, replace(h200, arch="sm_90")).of("error")] == ["arch"]
    assert [each.rule for each in check(spec, DEVICES["b200"]).of("error")] == ["arch"]
    assert check(Draft(arch="sm_90").spec(), replace(h200, arch="sm_120f")).legal
