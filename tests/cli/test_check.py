"""`layoutgen check`: verdicts, findings with their places, JSON, and the three exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutgen import paths, spec
from layoutgen.check import check
from layoutgen.emitted import emitted_specs
from layoutgen.hw.devices import DEVICES
from tests.cli.conftest import Outcome

Cli = Callable[..., Outcome]


def test_every_spec_that_ships_is_legal_on_the_h200(cli: Cli) -> None:
    files = list(emitted_specs().values())
    done = cli("check", *files, "--device", "h200")
    assert (done.code, done.stderr) == (0, "")
    for file in files:
        report = check(spec.load(file), DEVICES["h200"])
        plan, bounds, found = report.plans[0], report.registers, report.facts
        assert bounds is not None and found is not None
        assert done.row(file.stem) == [
            file.stem, "legal", str(32 * plan.tile.warps.size), f"{bounds.minimum}..{bounds.cap}",
            f"{plan.shared_bytes:,}", str(found.conflicts), f"{found.ceiling:.1f}",
        ]  # fmt: skip
    assert "error" not in done.stdout


def test_a_bare_name_is_a_spec_that_ships(cli: Cli) -> None:
    assert cli("check", "warptile_128x128").row("warptile_128x128")[1] == "legal"


def test_an_illegal_spec_shows_its_findings_with_their_places(cli: Cli, illegal: Path) -> None:
    done = cli("check", "warptile_128x128", illegal, "--device", "h200")
    assert (done.code, done.stderr) == (1, "")
    assert done.row("illegal")[1] == "illegal"
    assert done.row("warptile_128x128")[1] == "legal"
    (finding, *_) = check(spec.load(illegal), DEVICES["h200"]).findings
    line = illegal.read_text().splitlines().index(next(x for x in illegal.read_text().splitlines() if "lanes" in x)) + 1
    assert str(finding) in done.stdout
    assert f"\n{illegal}:{line}: error [" in done.stdout


POOR = ("[64, 64, 8]", "[64, 64, 7]")  # an odd number of k, for one


def test_strict_lets_warnings_and_hints_fail(cli: Cli, spec_file: Callable[..., Path]) -> None:
    poor = spec_file("poor", POOR)
    assert cli("check", poor, "--device", "h200").code == 0
    done = cli("check", poor, "--device", "h200", "--strict")
    assert done.code == 1 and done.row("poor")[1] == "legal" and "warning [odd-k]" in done.stdout
    fine = ("check", "warptile_128x128", "--device", "h200", "--strict")
    assert cli(*fine).code == cli(*fine, "--shape", "4096").code == 0
    assert cli(*fine, "--shape", "1023").code == 1


def test_a_shape_brings_waves_traffic_and_hints(cli: Cli) -> None:
    plain = cli("check", "warptile_128x128", "--device", "h200").stdout
    done = cli("check", "warptile_128x128", "--device", "h200", "--shape", "300,300,300")
    assert done.code == 0 and "300 x 300 x 300: 9 tiles" in done.stdout and "300" not in plain
    assert "hint [overhang]" in done.stdout and "hint" not in plain
    assert cli("check", "warptile_128x128", "--device", "h200", "--shape", "300").stdout == done.stdout
    (entry,) = json.loads(cli("check", "warptile_128x128", "--device", "h200", "--shape", "300", "--json").stdout)
    assert entry["facts"]["problem"]["tiles"] == 9 and entry["facts"]["problem"]["extents"] == [300, 300, 300]
    assert {each["rule"] for each in entry["findings"]} == {"waves", "overhang"}


@pytest.mark.parametrize("shape", ["", "0", "1,2", "1,2,3,4", "-1", "1.5", "a", "10000000", "8192x8192x8192"])
def test_what_is_no_shape_is_refused(cli: Cli, shape: str) -> None:
    done = cli("check", "warptile_128x128", "--shape", shape)
    assert done.code == 2 and "--shape" in done.stderr and "M,N,K" in done.stderr


def test_what_a_tiling_costs_is_shown(cli: Cli) -> None:
    """The copies and loads of warptile_128x128 by hand: 16 words of A a thread, 4 pieces of B; 16 k of 2 + 4 loads.

    A copy of A reads four rows, one after the other. One of B takes a row's four lines of 128 bytes to as many rows of
    banks, but for three rows of four, which start 32, 64 and 96 bytes on: (4 + 3 x 8) / 4.
    """
    done = cli("check", "warptile_128x128", "--device", "h200")
    assert done.row("copy_a")[1:] == ["cp.async", "4", "B", "64", "a", "k-tile", "4", "4", "4", "4"]
    assert done.row("copy_b")[1:] == ["cp.async", "16", "B", "16", "a", "k-tile", "7", "7", "16", "16"]
    assert done.row("fragment_a")[1:8] == ["ld.shared", "16", "B", str(4 * 16 * 2), "a", "k-tile", "2"]
    assert done.row("write_d")[1:7] == ["st.global", "16", "B", str(4 * 128 // 4), "a", "block"]


def test_no_access_is_shown_on_a_device_of_amd_s(cli: Cli) -> None:
    done = cli("check", "warptile_128x128", "--device", "mi300x")
    assert done.row("warptile_128x128")[-2:] == ["-", "-"]
    for word in ("fragment_a", "copy_a", "set by", "clocks of a k-tile"):
        assert word not in done.stdout
    assert "banks, sectors and issue slots are NVIDIA's, mi300x is AMD's" in done.stdout
    assert "shared bytes a block" in done.stdout


def test_one_block_and_one_tile_are_one(cli: Cli) -> None:
    one = cli("check", "warptile_128x128", "--device", "mi300x", "--shape", "128")
    assert "1 block of 2 warps, limited by" in one.stdout and ": 1 tile in " in one.stdout
    assert "1 blocks" not in one.stdout and "1 tiles" not in one.stdout


def test_warnings_are_shown_and_are_legal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from layoutgen import report
    from layoutgen.check import Finding
    from layoutgen.errors import Where

    warned = Finding("slow", "warning", "the rule", "got", "allowed", "fix", Where("x.yaml", 7))
    real = report.check_spec
    monkeypatch.setattr(report, "check_spec", lambda *a, **k: replace(real(*a, **k), findings=(warned,)))
    done = cli("check", "warptile_128x128")
    assert done.code == 0
    assert str(warned) in done.stdout


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_no_spec_exits_2_and_the_others_are_still_checked(cli: Cli, tmp_path: Path, count: int) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: broken\nabout: x\nabout: y\n")
    done = cli("check", *[broken] * count, "warptile_128x128")
    assert done.code == 2
    assert done.row("warptile_128x128")[1] == "legal"
    assert done.stdout.splitlines()[3].split()[:3] == [str(broken), "no", "spec"]
    with pytest.raises(spec.SpecError) as caught:
        spec.load(broken)
    assert done.stderr == f"{caught.value}\n"  # once, however often it was named
    assert f"{broken}:3: " in done.stderr


def test_no_spec_counts_more_than_an_illegal_one(cli: Cli, illegal: Path) -> None:
    assert cli("check", illegal, "missing.yaml").code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing/file.yaml"], ["missing/file.yaml: the spec must exist"]),
        (["warptile128x128"], ["warptile128x128", "did you mean warptile_128x128?"]),
        (["nothing_like_it"], ["nothing_like_it", "salykov_128x128x8"]),
        (["."], ["a directory"]),
        (["warptile_128x128", "--device", "h300"], ["h300", "rtx4090", "did you mean h200?"]),
        (["warptile_128x128", "--devise", "h200"], ["--devise"]),
    ],
)
def test_wrong_usage_exits_2_and_says_what_would_be_right(cli: Cli, arguments: list[str], said: list[str]) -> None:
    done = cli("check", *arguments)
    assert done.code == 2
    for words in said:
        assert words in done.stderr


def test_the_device_decides(cli: Cli, spec_file: Callable[..., Path]) -> None:
    # 7 stages of (128 + 128) x 16 floats and their padding: over the 99 KB of an RTX 4090, under the 227 of an H200.
    path = spec_file(
        "deep", ("[64, 64, 8]", "[128, 128, 16]"), ("stages: 2", "stages: 7"), ("values: [4, 4]", "values: [8, 4]")
    )
    assert cli("check", path, "--device", "H200").code == 0
    done = cli("check", path, "--device", "rtx4090")
    assert done.code == 1
    assert "[shared-memory]" in done.stdout
    assert "on rtx4090" in done.stdout.splitlines()[1]


def test_json_is_one_array_with_errors_in_it(cli: Cli, illegal: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("name: broken\nabout: x\nabout: y\n")
    done = cli("check", "warptile_128x128", illegal, broken, "nothing_like_it", "--json", "--device", "h200")
    assert (done.code, done.stderr) == (2, "")
    good, bad, no_spec, unknown = json.loads(done.stdout)
    shipped = paths.shipped_specs()["warptile_128x128"]
    for entry, file in ((good, shipped), (bad, illegal)):
        report = check(spec.load(file), DEVICES["h200"]).to_json()
        assert {key: entry[key] for key in report} == json.loads(json.dumps(report))
        assert entry["errors"] == []
    assert (good["spec"], good["legal"], good["variants"][0]) == ("warptile_128x128", True, "ak_bn_16B")
    assert (bad["spec"], bad["legal"]) == (str(illegal), False)
    assert bad["findings"][0]["where"].startswith(f"{illegal}:")
    assert (no_spec["spec"], no_spec["legal"]) == (str(broken), None)
    assert {each["kind"] for each in no_spec["errors"]} == {"SpecError"}
    assert len(no_spec["errors"]) > 2  # the duplicate, and each key that is missing
    assert f"{broken}:3" in [each["where"] for each in no_spec["errors"]]
    assert unknown["errors"][0]["got"] == "nothing_like_it"
    assert "warptile_128x128" in unknown["errors"][0]["allowed"]


def test_no_place_is_broken_over_two_lines(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / ("long folder " * 15)
    folder.mkdir()
    broken = folder / "broken.yaml"
    broken.write_text("\tname: x\n")
    done = cli("check", broken)
    assert any(line.startswith(f"{broken}:1: ") for line in done.stderr.splitlines())
    assert any(line.split("  ")[1:2] == [str(broken)] for line in done.stdout.splitlines())


def test_no_arguments_show_the_help(cli: Cli) -> None:
    assert cli("check").code == 2
    assert "--device" in cli("check").stderr + cli("check").stdout
