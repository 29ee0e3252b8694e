"""Check: limits of named devices, one finding a fault, and quick for whatever it is given."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest

from layoutgen.check import IllegalSpecError, Report, check, require_legal
from layoutgen.emitted import emitted_specs
from layoutgen.errors import PlanError
from layoutgen.hw import atoms
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import copies
from layoutgen.spec import load
from tests.plan.drafts import Draft

SPECS = sorted(emitted_specs().values())


def report(device: str = "h200", **fields: object) -> Report:
    return check(Draft(**fields).spec(), DEVICES[device])  # type: ignore[arg-type]


def rules(found: Report) -> list[str]:
    """The rules of a draft's findings, but for what its 4 x 8 values a thread always are: too few for their loads."""
    return [finding.rule for finding in found.findings if finding.rule != "shared-bound"]


LARGE = {"block": (128, 64, 8), "values": ("8", "4")}  # 8 x 8 values a thread: nothing is to be said


# What is poor about each rung of the ladder is what the next ones mend; about all other specs nothing is to be said.
POOR = {
    # Rows of 56 are padded for fragments, and begin in the middle of sectors; 64 would spill.
    "tf32x3_128x128x56": ["uncoalesced"],
    "bf16x6_96x128x48": ["bank-conflicts"],  # Rows of 48, a line and a half, which copies meet in more wavefronts.
    "ladder_01_naive": ["l1-bound", "uncoalesced", "uncoalesced"],
    "ladder_02_coalesced": ["l1-bound", "spills"],
    "ladder_03_shared": ["no-overlap", "shared-bound"],
    "ladder_04_thread_tile_1d": ["no-overlap", "shared-bound", "spills"],
    "ladder_05_thread_tile_2d": ["bank-conflicts", "no-overlap", "shared-bound", "uncoalesced"],
    "ladder_06_vectorised": ["bank-conflicts", "no-overlap", "shared-bound", "uncoalesced"],
    "ladder_07_banks_linear": ["narrow-loads", "no-overlap", "uncoalesced"],
    "ladder_08_banks_padded": [
        "bank-conflicts", "bank-conflicts", "narrow-loads", "no-overlap", "shared-bound", "uncoalesced"
    ],
    "ladder_09_searched": ["bank-conflicts", "bank-conflicts", "no-overlap", "shared-bound", "uncoalesced"],
    "ladder_10_warptile": ["bank-conflicts", "no-overlap"],
    # Tiles of Triton's, and low ones, that feed tensor cores less than shared memory takes to be read.
    "mma_bf16_16x64x128": ["shared-bound"],
    "triton_f16_64x128x32": ["shared-bound"],
    "triton_f16_64x64x32": ["shared-bound"],
}  # fmt: skip
# Where the rate of atoms isn't known, nothing puts conflicts in the shade, and nothing is shared-bound.
UNRATED = {"tf32x3_128x128x56": ["bank-conflicts", "uncoalesced"], "bf16x6_96x128x48": ["bank-conflicts"]}
# Of the specs of tensor cores: what a device has not, and how many variants they have where not 17.
LACKS = {
    "a100-80gb": {"mma_e4m3_128x128x64": ["arch"], "mma_f64_128x64x16": ["arch"]},
    "rtx4090": {
        "mma_f64_128x64x16": ["arch"],
        **dict.fromkeys(
            (
                "mma_bf16_128x256x64",
                "mma_s8_128x256x128",
                "mma_tf32_128x256x16",
                "triton_f16_128x256x64",
                "quantized_s8_128x256x128",
                "tf32x3_128x128x56",
            ),
            ["shared-memory"],
        ),
    },
}
VARIANTS = {"mma_f64_128x64x16": 9, "mma_tf32_128x256x16": 13, "tf32x3_128x128x56": 13, "bf16x6_96x128x48": 13}
# Two blocks of 1024 threads, or of 51 KB, are more than a multiprocessor of an RTX 4090 holds.
TOO_MANY_BLOCKS = {"ladder_02_coalesced", "ladder_12_cp_async"}
# Where what is moved along n, or along m too, is single words already, a variant for narrower accesses is none.
WITHOUT_NARROWER = {
    "ladder_01_naive": 2, "ladder_02_coalesced": 2, "ladder_03_shared": 1, "ladder_04_thread_tile_1d": 1,
}  # fmt: skip
# An A100 has half the FP32 lanes: its shared memory keeps up with them in spite of conflicts.
KEEPS_UP = {"ladder_05_thread_tile_2d", "ladder_06_vectorised", "ladder_09_searched"}


@pytest.mark.parametrize("device", ["h200", "a100-80gb", "rtx4090", "b200"])
@pytest.mark.parametrize("path", [path for path in SPECS if path.parent.name == "mma"], ids=lambda path: path.stem)
def test_the_specs_of_tensor_cores_are_legal_where_a_device_has_what_they_ask_for(path: Path, device: str) -> None:
    found = check(load(path), DEVICES[device])
    if lacking := LACKS.get(device, {}).get(path.stem):
        assert [each.rule for each in found.findings if each.severity == "error"] == lacking
        return
    known = DEVICES[device].mma_flop_per_clock > 0  # else nothing is said of what multiplying takes
    assert found.legal and len(found.plans) == VARIANTS.get(path.stem, 17)
    assert [each.rule for each in found.findings] == (POOR if known else UNRATED).get(path.stem, [])


@pytest.mark.parametrize("device", ["h200", "a100-80gb", "rtx4090", "b200"])
@pytest.mark.parametrize("path", [path for path in SPECS if path.parent.name != "mma"], ids=lambda path: path.stem)
def test_the_specs_that_come_with_layoutgen_are_legal_and_only_of_the_ladder_is_something_to_be_said(
    path: Path, device: str
) -> None:
    found = check(load(path), DEVICES[device])
    if device == "rtx4090" and path.stem in TOO_MANY_BLOCKS:
        assert [each.rule for each in found.findings] == ["min-blocks"]
        return
    assert found.legal and len(found.plans) == 9 - WITHOUT_NARROWER.get(path.stem, 0)
    poor = POOR.get(path.stem, [])
    if device == "a100-80gb" and path.stem in KEEPS_UP:
        poor = [rule for rule in poor if rule != "shared-bound"]
    assert sorted(each.rule for each in found.findings) == poor
    assert require_legal(load(path), DEVICES[device]) == found


def test_each_rung_is_told_what_it_is_poor_at() -> None:
    """32 sectors for 32 numbers of a column; conflicts of B's reads from the fifth rung on, until warps have tiles."""

    def said(name: str, rule: str) -> list[str]:
        spec = load(next(path for path in SPECS if path.stem == name))
        return [each.got for each in check(spec, DEVICES["h200"], mend=False).findings if each.rule == rule]

    assert said("ladder_01_naive", "uncoalesced") == [
        "32 sectors for each 4-byte access of load_a", "32 sectors for each 4-byte access of write_d"
    ]  # fmt: skip
    for name in ("ladder_05_thread_tile_2d", "ladder_06_vectorised", "ladder_09_searched"):
        assert "8 wavefronts for each 16-byte access of fragment_b" in said(name, "bank-conflicts")
    assert said("ladder_08_banks_padded", "bank-conflicts")[0].startswith("4 wavefronts for each 4-byte access")
    assert not any("fragment" in got for got in said("ladder_10_warptile", "bank-conflicts"))
    assert said("ladder_07_banks_linear", "narrow-loads") == ["4-byte loads through ((8,16),8):((16,1),128)"]


def test_shared_memory_is_the_device_s() -> None:
    """Stages of 128 x 128 x 24 take 25 KB each; one block may have 227 KB of an H200 and 99 KB of an RTX 4090."""
    tile = {"block": (128, 128, 24), "values": ("8", "4")}
    assert report("rtx4090", stages=3, **tile).legal
    four = report("rtx4090", stages=4, **tile)
    assert rules(four) == ["shared-memory"] and "101376 bytes on rtx4090" in four.findings[0].allowed
    assert four.findings[0].fix == "write shared.stages: 3"
    assert report("h200", stages=4, **tile).legal
    two = report("rtx4090", stages=2, min_blocks=2, **tile)
    assert rules(two) == ["min-blocks"] and two.findings[0].fix == "write schedule.min_blocks: 1"


def test_a_fix_of_an_error_brings_no_other_error() -> None:
    """Nine stages of 33 KB: eight are too many for an H200, six are not. One of 132 KB: no two of them fit."""
    deep = {"block": (128, 128, 32), "values": ("8", "4")}
    (nine,) = report(stages=9, **deep).of("error")
    assert (nine.rule, nine.fix) == ("stages", "write shared.stages: 6")
    assert report(stages=6, **deep).legal and not report(stages=7, **deep).legal
    (many,) = report(stages=9, block=(128, 128, 128), values=("8", "4")).of("error")
    assert many.fix == "use a smaller block tile, and 2 to 8 stages"
    # Another error that comes to light is no reason to keep nine stages.
    (hidden,) = report(stages=9, values=("4", "3")).of("error")
    assert hidden.fix == "write shared.stages: 8"


@pytest.mark.parametrize("blocks", [9, 16, 1000])
def test_as_many_blocks_as_are_asked_for_leave_registers_to_spare(blocks: int) -> None:
    """62 registers: eight blocks of 64 fit, six have the 80 that kernels without spills take."""
    (error,) = report(min_blocks=blocks).findings
    assert (error.allowed, error.fix) == ("8 on h200, 6 with registers to spare", "write schedule.min_blocks: 6")
    assert rules(report(min_blocks=6)) == [] and rules(report(min_blocks=7)) == ["spills"]


@pytest.mark.parametrize(
    ("arch", "allowed", "fix"),
    [
        ("sm_75", "nothing that a spec can name, as it is older than sm_80", "check against another device"),
        ("sm_89", "sm_89 or older", "write arch: sm_89, or check against another device"),
        ("sm_88", "sm_88 or older", "write arch: sm_87, or check against another device"),
        ("sm_90", "sm_90 or older", "write arch: sm_90, or check against another device"),
        ("sm_90a", "sm_90 or older, or sm_90a itself", "write arch: sm_90, or check against another device"),
    ],
)
def test_the_architecture_to_write_is_one_that_a_spec_may_name(arch: str, allowed: str, fix: str) -> None:
    (error,) = check(Draft(arch="sm_100").spec(), replace(DEVICES["h200"], arch=arch)).of("error")
    assert (error.rule, error.allowed, error.fix) == ("arch", allowed, fix)


def test_the_last_byte_of_shared_memory() -> None:
    """64 + 7 x 4066 words of A and 64 + 7 x 66 of B, each rounded to eight, in two stages: what one block may have."""
    full = report(shared_a="(64,8):(1,4066)", shared_b="(64,8):(1,66)")
    assert full.legal and full.plans[0].shared_bytes == DEVICES["h200"].shared_per_block
    over = report(shared_a="(64,8):(1,4067)", shared_b="(64,8):(1,66)")
    assert [finding.rule for finding in over.findings if finding.severity == "error"] == ["shared-memory"]
    assert "write shared.a: (64,8):(1,68)" in [finding.fix for finding in over.findings]
    padded = report(block=(128, 128, 112), values=("8", "4"))  # dense rows would fit, the planner's do not
    assert [(finding.rule, finding.where.line) for finding in padded.findings] == [("shared-memory", 6)]


@pytest.mark.parametrize(
    ("arch", "device", "legal"),
    [
        ("sm_80", "a100-40gb", True), ("sm_86", "a100-40gb", False), ("sm_86", "rtx4090", True),
        ("sm_90", "h200", True), ("sm_90a", "h200", True), ("sm_100", "h200", False),
        ("sm_90", "b200", True), ("sm_90a", "b200", False), ("sm_100a", "b200", True), ("sm_120", "b200", False),
    ],
)  # fmt: skip
def test_architectures(arch: str, device: str, legal: bool) -> None:
    found = report(device, arch=arch)
    assert found.legal is legal and rules(found) == ([] if legal else ["arch"])


def test_an_atom_that_is_newer_than_the_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = replace(atoms.CP_ASYNC, arch="sm_100")
    monkeypatch.setitem(copies.COPY_ATOMS, "cp.async", newer)
    found = report(copy_a="{atom: cp.async}", copy_b="{atom: ldg.sts}", arch="sm_90")
    assert rules(found) == ["atom"] and found.findings[0].fix == "write arch: sm_100"


def test_several_faults_are_found_at_once_in_the_order_of_their_lines() -> None:
    found = report(arch="sm_120", lanes="(8,4):(4,2)", warps="(16,8):(8,1)")
    lines = [finding.where.line for finding in found.findings]
    assert set(rules(found)) == {"arch", "lanes", "threads"} and lines == sorted(lines, key=lambda line: line or 0)


def test_a_group_may_be_larger_than_any_grid() -> None:
    assert report(**LARGE, group=1 << 20).findings == ()


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"block": (100000, 100000, 8)}, "shared-memory"),
        ({"block": (1 << 20, 1 << 20, 1 << 20)}, "shared-memory"),
        ({"block": (16384, 32, 1), "warps": "1:0", "lanes": "(1,32):(0,1)", "values": ("16384:0", "1")}, "registers"),
        ({"block": (16384, 32, 1), "warps": "1:0", "lanes": "(1,32):(0,1)", "values": ("16384", "1")}, "registers"),
        ({"lanes": "(1048576,1048576):(1,1048576)"}, "lanes"),
        ({"warps": "(1048576,1048576):(0,0)"}, "threads"),
        ({"values": ("(1048576,1048576):(0,0)", "4")}, "compose"),
        ({"warp": ("(1048576,1048576):(0,0)", "32")}, "compose"),
        ({"shared_a": "(1048576,1048576):(1,1048576)"}, "compose"),
        ({"copy_a": "{atom: cp.async, threads: (1048576,1048576):(0,1)}"}, "compose"),
        ({"copy_a": "{atom: cp.async, values: <(1048576,1048576):(0,0), 1>}"}, "compose"),
        ({"block": (64, 64, 3000), "shared_a": "(64,3000):(1,1048576)"}, "shared-memory"),
        ({"stages": 1 << 20}, "stages"),
        ({"min_blocks": 1 << 20}, "min-blocks"),
    ],
)
def test_the_absurd_is_refused_at_once(fields: dict[str, object], rule: str) -> None:
    before = process_time()
    assert rules(report(**fields)) == [rule]
    assert process_time() - before < 0.3


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_check_takes_a_tenth_of_its_half_second(path: Path) -> None:
    """All of it, where edits must be tried for what is poor."""
    spec = load(path)

    def seconds(*, mend: bool) -> float:
        times = []
        for _ in range(3):
            before = process_time()
            check(spec, DEVICES["h200"], mend=mend)
            times.append(process_time() - before)
        return min(times)

    least = 0.1 if path.parent.name == "mma" else 0.05  # they have twice as many variants
    assert seconds(mend=False) < least and seconds(mend=True) < (0.5 if path.stem in POOR else least)


def test_a_block_of_the_most_threads_and_values_is_checked_in_time() -> None:
    before = process_time()
    found = report(block=(512, 256, 4), warps="(4,8):(8,1)", lanes="(8,4):(4,1)", values=("4", "4"))
    assert found.plans and found.registers is not None and found.registers.accumulators == 128
    assert process_time() - before < 0.5


def test_an_illegal_spec_as_an_error() -> None:
    with pytest.raises(IllegalSpecError, match="lanes") as caught:
        require_legal(Draft(lanes="(8,8):(8,1)").spec(), DEVICES["h200"])
    assert isinstance(caught.value, PlanError) and not caught.value.report.legal
    assert "draft is not legal on h200" in str(caught.value)


def test_a_report_as_json() -> None:
    good = json.loads(json.dumps(report(min_blocks=8).to_json()))
    facts = good["facts"]
    assert good["legal"] and facts["threads"] == 128 and facts["shared"]["bytes"] == 8896 and len(good["variants"]) == 9
    assert facts["registers"] == {
        "accumulators": 32, "fragments": 24, "staging": 0, "addresses": 6, "cap": 64, "minimum": 62, "built": None,
    }  # fmt: skip
    assert good["instructions"]["ld.shared.16B"] == 27
    assert [each["rule"] for each in good["findings"]] == ["shared-bound", "spills"]
    bad = json.loads(json.dumps(report(lanes="(8,8):(8,1)").to_json()))
    assert not bad["legal"] and bad["variants"] == [] and bad["facts"] is None
    (finding,) = bad["findings"]
    assert finding["where"] == "draft.yaml:8" and finding["severity"] == "error" and finding["rule"] == "lanes"
