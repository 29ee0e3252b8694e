"""What is legal, but poor: each rule fires where it should and says the figures that are worked out here by hand."""

from __future__ import annotations

import pytest

from layoutgen import paths
from layoutgen.check import Finding, Report, check
from layoutgen.check.mend import Edit, mended
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import plan_primary
from layoutgen.spec import load
from tests.plan.drafts import Draft

LARGE = {"block": (128, 64, 8), "values": ("8", "4")}  # 128 threads of 8 x 8 values: nothing is to be said


def report(device: str = "h200", shape: tuple[int, int, int] | None = None, **fields: object) -> Report:
    return check(Draft(**{**LARGE, **fields}).spec(), DEVICES[device], shape)  # type: ignore[arg-type]


def only(found: Report, rule: str, about: str = "") -> Finding:
    (finding,) = (each for each in found.findings if each.rule == rule and about in each.message)
    return finding


def line(found: Report, rule: str, text: str, **fields: object) -> bool:
    """Whether a finding stands at the line of the draft that starts with a key."""
    lines = Draft(**{**LARGE, **fields}).text().splitlines()  # type: ignore[arg-type]
    return all(lines[(each.where.line or 0) - 1].startswith(text) for each in found.findings if each.rule == rule)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"shared_a": "(128,8):(1,132)"}, []),
        # Rows of 130 words: loads of two words, and four m by eight k of a copy meet in a bank: 2 apart in k, 1 in m.
        ({"shared_a": "(128,8):(1,130)"}, ["shared-bound", "narrow-loads", "bank-conflicts", "bank-conflicts"]),
        ({"values": ("2", "4"), "shared_a": "(128,8):(1,130)"}, ["bank-conflicts"]),  # runs of two want no more
        ({"copy_a": "{atom: ldg.sts, values: [1, 4]}"}, []),  # four words are loaded at once, and stored one by one
        ({"copy_a": "{atom: ldg.sts, values: [4, 4]}"}, []),  # as many are stored at once: a patch, turned in registers
        # Loaded one by one, four k of eight m, which are half of their sectors; and four m are stored at once, where
        # the next k, 132 words on, begins in the bank of the next four m.
        ({"copy_a": "{atom: ldg.sts, threads: (32,4):(4,1), values: [4, 1]}"}, ["bank-conflicts", "uncoalesced"]),
        # A run of m, across A's contiguous mode: four m apart and eight k, 132 words apart, meet in eight banks.
        ({"copy_a": "{atom: cp.async, values: [4, 1]}"}, ["bank-conflicts"]),
        ({"copy_b": "{atom: cp.async, threads: (16,8):(1,16), values: <4:16, 1>}"}, []),
        ({"copy_b": "{atom: ldg.sts, threads: (16,8):(1,16), values: [4, 1]}"}, []),
        ({"block": (128, 64, 1)}, ["odd-k", "uncoalesced", "shared-bound"]),
        # 8 bytes of each row of A, of a sector's 32.
        ({"block": (128, 64, 2)}, ["bank-conflicts", "uncoalesced", "shared-bound"]),
        ({"block": (128, 64, 12)}, ["bank-conflicts", "uncoalesced"]),  # six k at a time: 24 bytes, not on 32
        ({"block": (128, 64, 16)}, []),
        ({"block": (64, 64, 8), "values": ("4", "4"), "min_blocks": 8}, ["shared-bound", "spills"]),
        ({"min_blocks": 4}, []),
    ],
)  # fmt: skip
def test_advice(fields: dict[str, object], expected: list[str]) -> None:
    found = report(**fields)
    assert found.legal and [finding.rule for finding in found.findings] == expected


def test_lanes_that_write_one_bank() -> None:
    """Rows of A of 128 words: lanes are 8 k by 4 m, and all eight k of an m lie in its bank.

    The four m come from rows of A that lie a multiple of 128 bytes apart, one after the other: a clock each, the last
    of which begins at clock 3, and then takes 8 in its bank.
    """
    fields = {"shared_a": "(128,8):(1,128)"}
    finding = only(found := report(**fields), "bank-conflicts")
    assert finding.got == "11 wavefronts for each 4-byte access of copy_a"
    assert finding.allowed == "4, without conflicts" and line(found, "bank-conflicts", "  a: (128", **fields)
    assert finding.fix == "write shared.a: (128,8):(1,132)"
    # 4 warps x 8 copies of 7 too many = 224 clocks, of 512 of FFMAs: one too many in 2 of 32 copies would not be told.
    assert found.facts is not None and found.facts.conflicts == 224


def test_lanes_that_read_one_bank() -> None:
    """32 lanes in m read 16 bytes, 32 bytes apart: the 8 lanes of a phase meet two and two in 4 of 8 places."""
    fields = {
        "block": (256, 32, 8), "warps": "(1,4):(4,1)", "lanes": "(32,1):(1,32)", "values": ("8", "8"),
    }  # fmt: skip
    finding = only(found := report(**fields), "bank-conflicts")
    assert finding.got == "8 wavefronts for each 16-byte access of fragment_a" and finding.allowed.startswith("4,")
    assert line(found, "bank-conflicts", "  values:", **fields)
    assert finding.fix == "write tiling.values: <(4,2):(1,128), 8>"
    assert "bank-conflicts" not in [
        each.rule for each in report(**{**fields, "values": ("(4,2):(1,128)", "8")}).findings
    ]


def test_few_conflicts_are_not_worth_a_word() -> None:
    """12 x 2 threads copy B's 48 x 8 in 16-byte pieces: 3 phases take 4 wavefronts, in 4 of 384 clocks."""
    fields = {"block": (128, 48, 8), "warps": "1:0", "values": ("8", "2")}
    found = report(**fields)
    assert found.facts is not None and found.facts.conflicts == 4 and round(found.facts.bound.fma) == 384
    assert "bank-conflicts" not in [each.rule for each in found.findings]


def test_rows_of_half_a_sector() -> None:
    """A warp copies four k of eight rows of A: 16 of 32 bytes of eight sectors, where four would do."""
    fields = {"block": (128, 64, 4)}
    finding = only(found := report(**fields), "uncoalesced")
    assert (finding.got, finding.allowed) == ("8 sectors for each 4-byte access of copy_a", "4, without a gap")
    assert line(found, "uncoalesced", "  block:", **fields) and finding.fix == "write tiling.block: [128, 64, 8]"


def test_d_is_written_in_halves_of_sectors() -> None:
    """Eight n of a thread, in two accesses: 4 lanes x 16 bytes lie 32 bytes apart in each of 8 rows."""
    fields = {"block": (128, 128, 8), "values": ("8", "8")}
    finding = only(found := report(**fields), "uncoalesced")
    assert (finding.got, finding.allowed) == ("32 sectors for each 16-byte access of write_d", "16, without a gap")
    assert line(found, "uncoalesced", "  lanes:", **fields) and finding.fix == "write tiling.values: [8, 4]"


def test_rows_that_start_within_a_sector() -> None:
    """A warp copies two rows of B, of 8 sectors each: the odd one starts within 32 bytes, and moves each twice."""
    fields = {"shared_b": "(64,8):(1,68)", "copy_b": "{atom: cp.async, values: [4, 1]}"}
    finding = only(found := report(**fields), "uncoalesced")
    assert finding.message == "sectors of B that a copy brings stay whole in shared memory"
    assert finding.got.startswith(f"{8 + 2 * 8} sectors for each 16-byte access of copy_b: the halves of some land in")
    assert finding.allowed.startswith("16, ") and line(found, "uncoalesced", "  b: (64", **fields)
    assert finding.fix == "write shared.b: (64,8):(1,72)"
    for whole in ("(64,8):(1,72)", "(64,8):(1,64)", "((8,8),8):((1,64),8)"):
        assert "uncoalesced" not in [each.rule for each in report(**{**fields, "shared_b": whole}).findings]
    pieces = only(report(**{**fields, "shared_b": "((4,16),8):((1,32),4)"}), "uncoalesced")
    assert pieces.message == finding.message  # of 16 bytes each, of one row: no two of them are neighbours


def test_no_edit_makes_copies_narrower() -> None:
    """Of 4 bytes each, copies bring every sector once, wherever it goes: in four times the instructions."""
    fields = {"shared_b": "(64,8):(1,68)", "copy_b": "{atom: cp.async, values: [4, 1]}"}
    spec = Draft(**{**LARGE, **fields}).spec()  # type: ignore[arg-type]
    finding = only(check(spec, DEVICES["h200"], mend=False), "uncoalesced")
    tried: list[Edit] = []

    def judge(edit: Edit) -> frozenset[tuple[str, str]]:
        tried.append(edit)
        return frozenset({(finding.rule, finding.message)})

    assert mended(spec, plan_primary(spec), finding, frozenset(), judge) is None
    planned = [plan_primary(edit.apply(spec)).b.copy for edit in tried if edit.key.startswith("copies.b")]
    assert len(planned) > 2 and {copy.read_vector for copy in planned} == {4}


def test_too_few_values_for_their_loads() -> None:
    """64 x 64 x 8 by 4 warps of 4 x 8 values a thread.

    Each k, a warp loads 16 bytes a lane of A once, every 4 lanes the same, in 2 wavefronts; and of B twice,
    neighbouring lanes apart, in 4: in all 8 k x 4 warps x (2 + 2 x 4) = 320. Copies of A, 4 warps x 4 words, read four
    rows: 4 x 16. A row of B has two lines of 128 bytes. In shared memory, rows 0 and 4 keep those in one row of banks
    each; the others start 32, 64 and 96 bytes on, and each of their lines takes two wavefronts: 2 x (2 + 4 + 4 + 4).
    """
    found = report(block=(64, 64, 8), values=("4", "4"))
    assert found.facts is not None
    reads = {each.name: each.wavefronts for each in found.facts.accesses}
    loads, copies = reads["fragment_a"] + reads["fragment_b"], reads["copy_a"] + reads["copy_b"]
    assert (loads, copies) == (320, 64 + 28)
    ffma = 64 * 64 * 8 // 128
    finding = only(found, "shared-bound")
    assert finding.got == (
        f"{loads + copies} clocks of wavefronts, {copies} of them copies', for {ffma} of FFMAs; "
        "of fragment_b no pairs of lanes read alike: twice the wavefronts"
    )
    others = 8 * 4 * 3 + 4 * 4 + 4 * 1  # loads of A and B, copies of A and B
    assert finding.allowed == f"at most {ffma + others // 4}, give or take a tenth"
    assert line(found, "shared-bound", "  values:", block=(64, 64, 8), values=("4", "4"))
    assert finding.fix == "write tiling.lanes: (4,(2,4)):(2,(1,8))"


def test_lanes_that_read_alike_in_pairs() -> None:
    """With them each load of the tile above takes 2 wavefronts: of 8 k and 4 warps, 3 loads. Of 32 lanes in m, none."""
    small = {"block": (64, 64, 8), "values": ("4", "4"), "lanes": "(4,(2,4)):(2,(1,8))"}
    found = report(**small)
    assert found.facts is not None and "shared-bound" not in [each.rule for each in found.findings]
    reads = {each.name: each for each in found.facts.accesses}
    assert reads["fragment_a"].wavefronts + reads["fragment_b"].wavefronts == 8 * 4 * 3 * 2
    assert not any(each.apart for each in reads.values())
    thin = {"block": (256, 32, 8), "warps": "(2,2):(2,1)", "lanes": "(32,1):(1,32)", "values": ("4", "4")}
    assert [each.name for each in report(**thin).facts.accesses if each.apart] == ["fragment_a"]  # type: ignore[union-attr]
    words = only(check(Draft(**{**small, "lanes": "(8,4):(4,1)"}).spec(), DEVICES["h200"], mend=False), "shared-bound")  # type: ignore[arg-type]
    assert words.fix.endswith(", or lanes that read alike in pairs, as (4,(2,4)):(2,(1,8)) does")


def test_schedulers_without_a_warp() -> None:
    """64 and 32 by 128 words in two stages: rows of 68 and 40, 108 of an SM's 228 KB: two blocks."""
    fields = {"block": (64, 32, 128), "warps": "1:0"}
    finding = only(found := report(**fields), "idle-schedulers")
    assert found.facts is not None and found.facts.shared.bytes == 2 * 4 * (8704 + 5112)  # words of whole sectors
    assert finding.got == "2 resident warps, limited by shared memory" and finding.allowed == "4 on h200"
    assert finding.fix == "write tiling.block: [64, 32, 64]" and line(found, "idle-schedulers", "  block:", **fields)
    assert "idle-schedulers" not in [each.rule for each in report(**{**fields, "block": (64, 32, 64)}).findings]


def test_a_short_k_tile_for_mfmas() -> None:
    finding = only(report("mi300x"), "k-depth")
    assert finding.severity == "warning" and finding.got == "BLK_K = 8"
    assert finding.fix == "write tiling.block: [128, 64, 32]"
    assert "k-depth" not in [each.rule for each in report("mi300x", block=(128, 64, 32)).findings]
    assert "k-depth" not in [each.rule for each in report().findings]


def test_an_amd_device_is_told_nothing_that_was_measured_on_nvidia_s() -> None:
    fields = {"block": (128, 64, 32), "shared_a": "(128,32):(1,128)"}
    assert "bank-conflicts" in [each.rule for each in report(**fields).findings]
    assert {each.rule for each in report("mi300x", **fields).findings} == {"arch", "wavefront"}


def test_a_copy_that_no_edit_mends_is_told_so_in_words() -> None:
    """All of A's rows in one bank, and a BLK_K that no list of ours knows: there is no edit, and none is claimed."""
    fields = {"block": (128, 64, 8), "shared_b": "(64,8):(12,1)", "shared_a": "(128,8):(8,1)"}
    for finding in report(**fields).findings:
        assert not finding.fix.startswith("write ") or finding.fix.startswith(("write shared.", "write tiling."))
    bound = only(report(**fields), "shared-bound")
    assert bound.fix.startswith("give a thread more values, in both modes alike, for each load and copy to feed more")


def test_fixes_can_be_left_out() -> None:
    spec = Draft(**{**LARGE, "shared_a": "(128,8):(1,128)"}).spec()  # type: ignore[arg-type]
    quick, slow = (check(spec, DEVICES["h200"], mend=mend) for mend in (False, True))
    assert [each.rule for each in quick.findings] == [each.rule for each in slow.findings]
    assert not any(each.fix.startswith("write") for each in quick.findings)


def test_what_an_epilogue_reads_is_no_fault_of_the_lanes() -> None:
    """A bias of s32 beside a D of s8 comes in halves of sectors, the other of which L1 has."""
    spec = load(paths.find_spec("quantized_s8_128x256x128"))
    assert check(spec, DEVICES["h200"], (4096, 4096, 4096)).findings == ()
