"""`layoutgen explain` and `layoutgen diff`: what they print, their JSON, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutgen import paths
from layoutgen.report import diff_specs, explain_spec
from tests.cli.conftest import Outcome

Cli = Callable[..., Outcome]


def test_explain_prints_the_page(cli: Cli) -> None:
    done = cli("explain", "warptile_128x128", "--device", "h200")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout == f"{explain_spec('warptile_128x128')}\n"


def test_explain_follows_what_is_asked_for(cli: Cli) -> None:
    done = cli("explain", "warptile_128x128", "--coord", " (127, 0)", "--thread", "127", "--variant", "any")
    told = explain_spec("warptile_128x128", coordinate=(127, 0), thread=127, variant="any")
    assert done.stdout == f"{told}\n"
    assert "C(127,0) of a block" in done.stdout and "\nThread 127: " in done.stdout and "variant any" in done.stdout


def test_steps_derive_each_call(cli: Cli) -> None:
    done = cli("explain", "warptile_128x128", "--steps")
    assert done.stdout == "\n".join(explain_spec("warptile_128x128").lines(derive=True)) + "\n"
    assert "1. " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--coord", "5,128"], ["(5,128) of 128 x 128", "n < 128", "--coord 5,0"]),
        (["--coord", "5"], ["a coordinate is m,n", "'5'", "write it as 5,77"]),
        (["--coord", "5,7,9"], ["a coordinate is m,n"]),
        (["--coord", "5,x"], ["a coordinate is m,n"]),
        (["--coord=-1,3"], ["(-1,3)", "0 <= m"]),
        (["--thread", "128"], ["thread 128", "0 .. 127", "--thread 127"]),
        (["--thread", "-1"], ["thread -1", "--thread 0"]),
        (["--variant", "xx"], ["xx", "ak_bn_16B, "]),
    ],
)
def test_what_is_not_there_exits_2_and_says_what_is(cli: Cli, arguments: list[str], said: list[str]) -> None:
    done = cli("explain", "warptile_128x128", *arguments)
    assert (done.code, done.stdout) == (2, "")
    for words in said:
        assert words in done.stderr
    assert "fix: " in done.stderr
    data = json.loads(cli("explain", "warptile_128x128", *arguments, "--json").stdout)
    assert data["errors"][0]["kind"] == "RequestError" and data["errors"][0]["fix"]


def test_an_illegal_spec_is_explained_and_exits_1(cli: Cli, illegal: Path) -> None:
    done = cli("explain", illegal, "--device", "h200")
    assert done.code == 1 and done.stderr == ""
    assert "complement(4:1, 32)" in done.stdout and f"{illegal}:6: error [lanes]" in done.stdout
    data = json.loads(cli("explain", illegal, "--json").stdout)
    assert data["legal"] is False and "error [lanes]" in data["findings"][0] and data["variant"] is None


def test_what_is_no_spec_exits_2(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("name: broken\n")
    for verb in (["explain"], ["diff", "warptile_128x128"]):
        done = cli(*verb, tmp_path / "broken.yaml")
        assert (done.code, done.stdout) == (2, "") and "broken.yaml:1" in done.stderr
        data = json.loads(cli(*verb, tmp_path / "broken.yaml", "--json").stdout)
        assert data["errors"][0]["kind"] == "SpecError"


def test_explain_as_json(cli: Cli) -> None:
    data = json.loads(cli("explain", "salykov_128x128x8", "--json", "--thread", "3").stdout)
    told = json.loads(json.dumps(explain_spec("salykov_128x128x8", thread=3).to_json()))
    assert data == {"spec": "salykov_128x128x8", **told, "errors": []}


def test_diff_of_the_same_tiling_exits_0(cli: Cli, spec_file: Callable[..., Path]) -> None:
    done = cli("diff", spec_file("one"), spec_file("two"))
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[2:] == ["the same tiling"]


def test_diff_shows_lines_layouts_and_facts_and_exits_1(cli: Cli, spec_file: Callable[..., Path]) -> None:
    one, two = spec_file("one"), spec_file("two", ("stages: 2", "stages: 3"))
    done = cli("diff", one, two, "--device", "h200")
    assert (done.code, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[:3] == [f"- {one}", f"+ {two}", "different tilings"]
    (before,), (after,) = ([line for line in lines if f"{sign} shared.stages" in line] for sign in "-+")
    assert before.split() == ["-", "shared.stages:", "2", f"{one}:7"]
    assert after.split() == ["+", "shared.stages:", "3", f"{two}:7"]
    apart = diff_specs(one, two)
    for change in (*apart.plan, *apart.facts):
        (row, *_) = [line for line in lines if line.strip().startswith(change.what)]
        assert all(value in done.stdout for value in (change.a, change.b) if value), row
    assert "variants that differ: ak_bn_16B, " in done.stdout
    assert json.loads(cli("diff", one, two, "--json").stdout) == json.loads(json.dumps(apart.to_json()))


def test_diff_says_which_side_does_not_compose(cli: Cli, spec_file: Callable[..., Path], illegal: Path) -> None:
    done = cli("diff", spec_file("one"), illegal)
    assert done.code == 1
    assert f"The levels of {illegal} do not compose" in done.stdout and "findings.lanes" in done.stdout


def test_a_pipe_gets_plain_lines(process: Callable[..., object]) -> None:
    done = process("explain", paths.shipped_specs()["warptile_128x128"])
    assert done.returncode == 0 and "\x1b" not in done.stdout  # type: ignore[attr-defined]
    assert max(map(len, done.stdout.splitlines())) <= 100  # type: ignore[attr-defined]


def test_diff_between_rungs_with_and_without_shared_memory(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "x.svg"
    done = cli("diff", "ladder_02_coalesced", "ladder_03_shared", "-o", out)
    assert (
        (done.code, done.stderr) == (1, "")
        and "A in shared memory" in done.stdout
        and "a load runs along" in done.stdout
    )
    assert "A is in shared memory only in ladder_03_shared." in out.read_text()
    assert cli("diff", "ladder_01_naive", "ladder_01_naive").code == 0


def test_diff_draws(cli: Cli, spec_file: Callable[..., Path], tmp_path: Path) -> None:
    out = tmp_path / "x.svg"
    done = cli("diff", "warptile_128x128", "salykov_128x128x8", "-o", out)
    plain = cli("diff", "warptile_128x128", "salykov_128x128x8")
    assert (done.code, done.stdout, done.stderr) == (1, f"{plain.stdout}{out}\n", "")
    assert "warptile_128x128 and salykov_128x128x8: what differs" in out.read_text()
    refused = cli("diff", "warptile_128x128", "salykov_128x128x8", "-o", tmp_path / "x.html")
    assert refused.code == 2 and ".svg, .png" in refused.stderr and not (tmp_path / "x.html").exists()
    data = cli("diff", "warptile_128x128", "salykov_128x128x8", "-o", out, "--json")
    assert json.loads(data.stdout)["same"] is False and data.stderr == f"{out}\n"


def test_diff_tells_what_it_cannot_draw(cli: Cli, illegal: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.svg"
    done = cli("diff", "warptile_128x128", illegal, "-o", out)
    assert done.code == 2 and done.stdout == cli("diff", "warptile_128x128", illegal).stdout
    assert f"{illegal}:6" in done.stderr and not out.exists()
