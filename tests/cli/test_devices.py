"""`layoutgen devices`, a file after --device, and what the commands say about a device that they can't build for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from layoutgen import device_file, report
from layoutgen.errors import BuildError, SpecError
from layoutgen.hw.devices import DEVICES, device
from tests.cli.conftest import ROOT, Outcome

Cli = Callable[..., Outcome]
GPU = "name: my-gpu\nbase: rtxa6000\nshared_per_sm: 20000\n"


@pytest.fixture
def gpu_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_gpu.yaml"
    path.write_text(GPU)
    return path


def test_the_table_has_a_row_for_each_device(cli: Cli) -> None:
    done = cli("devices")
    assert (done.code, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()[3:] if line] == list(DEVICES)
    assert done.row("a100-40gb") == [
        "a100-40gb", "sm_80", "108", "1410", "19.5", "1555", "12.5", "40", "32", "2048", "32", "163", "65536", "255",
    ]  # fmt: skip
    assert done.row("mi300x")[-6:] == ["64", "2048", "32", "64", "131072", "512"]


def test_json_has_every_figure(cli: Cli) -> None:
    rows = json.loads(cli("devices", "--json").stdout)
    assert [row["name"] for row in rows] == list(DEVICES)
    assert all(row["source"] for row in rows)
    a6000 = next(row for row in rows if row["name"] == "rtxa6000")
    assert (a6000["max_warps_per_sm"], a6000["shared_per_block"], int(a6000["ridge"])) == (48, 99 * 1024, 50)


def test_devices_are_chosen_by_name_and_by_file(cli: Cli, gpu_file: Path) -> None:
    (name, mine) = json.loads(cli("devices", "L40S", gpu_file, "--json").stdout)
    assert name == device("l40s").to_json()
    assert (mine["name"], mine["shared_per_sm"], mine["source"]) == ("my-gpu", 20000, str(gpu_file))
    assert cli("devices", "l41s").code == 2


@pytest.mark.parametrize("verb", ["check", "build", "list"])
def test_each_verb_takes_a_file(cli: Cli, gpu_file: Path, verb: str) -> None:
    """A block may have 18,976 bytes here, and warptile_128x128 takes more."""
    spec = [] if verb == "list" else ["warptile_128x128"]
    done = cli(verb, *spec, "--device", gpu_file)
    if verb == "list":
        assert done.row("warptile_128x128")[1] == "illegal"
    else:
        assert done.code == 1
        assert "[shared-memory]" in done.stdout + done.stderr
        assert "18976 bytes on my-gpu" in done.stdout + done.stderr


def test_what_is_wrong_with_a_file_is_told_with_its_lines(cli: Cli, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: my-gpu\nbase: h2000\nsms: many\n")
    with pytest.raises(SpecError) as caught:
        device_file.load(bad)
    for verb in ("check", "build"):
        done = cli(verb, "warptile_128x128", "--device", bad)
        assert (done.code, done.stdout, done.stderr) == (2, "", f"{caught.value}\n")
    assert f"{bad}:2: " in done.stderr and f"{bad}:3: " in done.stderr
    missing = cli("check", "warptile_128x128", "--device", tmp_path / "none.yaml")
    assert missing.code == 2
    assert "none.yaml: the device description must exist" in missing.stderr


def test_a_wrong_name_is_wrong_usage(cli: Cli) -> None:
    done = cli("check", "warptile_128x128", "--device", "h20")
    assert done.code == 2
    assert "did you mean h200?" in done.stderr
    assert "did you mean h100-sxm or h100-pcie?" in cli("check", "warptile_128x128", "--device", "h100").stderr
    table = cli("devices", "nope")
    assert table.code == 2 and "DEVICE" in table.stderr and "--device" not in table.stderr


def test_a_device_named_twice_is_told_once(cli: Cli) -> None:
    assert cli("devices", "l4", "h200", "l4").stdout == cli("devices", "l4", "h200").stdout


def test_nothing_is_built_for_amd(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAYOUTGEN_CACHE", str(tmp_path / "cache"))
    done = cli("build", "warptile_128x128", "--device", "mi300x")
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr.startswith("layoutgen emits CUDA, and no code for AMD\n  got: mi300x, which is gfx942\n")
    with pytest.raises(BuildError):
        report.build_spec("warptile_128x128", device=replace(device("mi300x"), name="other"))
    assert not (tmp_path / "cache").exists()


def test_the_guide_shows_what_there_is(cli: Cli) -> None:
    """The table of the guide is the command's, its examples load, and its keys are those of a file."""
    guide = (ROOT / "docs" / "devices.md").read_text()
    table = cli("devices").stdout.rstrip("\n")
    assert f"```text\n{table}\n```" in guide
    examples = re.findall(r"```yaml\n(.*?)```", guide, re.S)
    loaded = [device_file.loads(text) for text in examples]
    assert loaded[0] == replace(device_file.load(ROOT / "docs" / "my_gpu.yaml"), source=loaded[0].source)
    assert len({each.name for each in loaded}) == len(loaded) >= 2
    keys = re.findall(r"^\| `([a-z0-9_`, ]+)` \|", guide, re.M)
    named = {key.strip("` ") for row in keys for key in row.split(",")}
    assert named == {"base", *device("h200").__dataclass_fields__}
