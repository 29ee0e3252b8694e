"""`layoutgen draw`: the kind of file by its ending, clear refusals, and nothing half-written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layoutgen.draw import (
    LEVELS,
    SHARED_LEVELS,
    draw,
    find_plan,
    is_layout,
    layout_drawing,
    level_drawing,
    read_layout,
    to_svg,
)
from layoutgen.errors import DrawError
from layoutgen.paths import unwritable
from tests.cli.conftest import Outcome

Cli = Callable[..., Outcome]


def test_a_level_of_a_spec(cli: Cli, spec_file: Callable[..., Path], tmp_path: Path) -> None:
    path, out = spec_file(), tmp_path / "x.svg"
    for level in LEVELS:
        done = cli("draw", path, "-o", out, "--level", level)
        assert (done.code, done.stdout, done.stderr) == (0, f"{out}\n", "")
        assert out.read_text() == to_svg(level_drawing(find_plan(path), level))


def test_defaults_and_options(cli: Cli, spec_file: Callable[..., Path], tmp_path: Path) -> None:
    path, out = spec_file(), tmp_path / "x.svg"
    plan = find_plan(path)
    assert cli("draw", path, "-o", out).code == 0
    assert out.read_text() == to_svg(level_drawing(plan, "value", thread=0))
    assert cli("draw", path, "-o", out, "--thread", "33", "--theme", "dark").code == 0
    assert out.read_text() == to_svg(level_drawing(plan, "value", thread=33), "dark")
    assert cli("draw", path, "-o", out, "--level", "block", "--shape", "300,200,64").code == 0
    assert out.read_text() == to_svg(level_drawing(plan, "block", shape=(300, 200, 64)))


def test_a_variant(cli: Cli, spec_file: Callable[..., Path], tmp_path: Path) -> None:
    path, out = spec_file(), tmp_path / "x.svg"
    from layoutgen import spec
    from layoutgen.plan import plan

    last = plan(spec.load(path))[-1]
    assert cli("draw", path, "-o", out, "--level", "copy_a", "--variant", last.variant).code == 0
    assert out.read_text() == to_svg(level_drawing(last, "copy_a"))
    assert last.variant in out.read_text()


def test_a_layout_of_the_algebra(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "x.svg"
    for text in ("(8,4):(4,1)", "Sw<3,0,3> o 0 o (8,8):(8,1)", "composition((8,4):(4,1), 4:2)"):
        assert cli("draw", text, "-o", out).code == 0
        assert out.read_text() == to_svg(layout_drawing(read_layout(text)))
    assert cli("draw", "(8,8):(8,1)", "-o", out, "--banks").code == 0
    assert "bank 31" in out.read_text()


def test_kinds_of_file(cli: Cli, spec_file: Callable[..., Path], tmp_path: Path) -> None:
    path = spec_file()
    for name, begins in (("x.svg", b"<svg"), ("x.PNG", b"\x89PNG"), ("x.html", b"<!doctype html>")):
        assert cli("draw", path, "-o", tmp_path / name).code == 0
        assert (tmp_path / name).read_bytes().startswith(begins)
    assert cli("draw", path, "-o", tmp_path / "y.html", "--device", "rtx3090", "--thread", "5").code == 0
    assert "Budgets on rtx3090" in (tmp_path / "y.html").read_text()
    assert sorted(each.name for each in tmp_path.iterdir() if each.name != path.name) == [
        "x.PNG",
        "x.html",
        "x.svg",
        "y.html",
    ]


def test_a_page_on_a_problem(cli: Cli, spec_file: Callable[..., Path], tmp_path: Path) -> None:
    path, out = spec_file(), tmp_path / "x.html"
    assert cli("draw", path, "-o", out, "--shape", "1000,2000,640", "--device", "h200").code == 0
    page = out.read_text()
    assert "A problem of 1000 × 2000 × 640" in page and find_plan(path).variant in page
    # Rows of 641 floats are aligned as no wide copy needs them.
    odd = cli("draw", path, "-o", out, "--shape", "1000,2001,641", "--variant", find_plan(path).variant)
    assert odd.code == 1 and "leave variant out" in odd.stderr and out.read_text() == page
    assert cli("draw", path, "-o", out, "--shape", "1000,2001,641").code == 0
    taking = odd.stderr.split("allowed:")[1].split()[0].strip(",")
    assert taking != find_plan(path).variant and f"<dd>{taking}</dd>" in out.read_text()
    with pytest.raises(DrawError, match="at least 1"):
        draw(path, out, shape=(0, 1, 1))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--level", "wrap"], "did you mean warp"),
        (["--level", "nope"], "fix: --level value"),
        (["--theme", "sepia"], "auto, light, dark"),
        (["--banks"], "--level banks"),
        (["--device", "h200"], "budgets"),
        (["--level", "copy_a", "--thread", "3"], "leave thread out"),
        (["--level", "block", "--thread", "3"], "leave thread out"),
        (["--shape", "4096"], "leave shape out"),
        (["--level", "warp", "--shape", "4096"], "leave shape out"),
        (["--level", "block", "--shape", "9999999"], "fix: --shape 512,512,64"),
    ],
)
def test_what_is_refused_of_a_spec(
    cli: Cli, spec_file: Callable[..., Path], tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = cli("draw", spec_file(), "-o", tmp_path / "x.svg", *arguments)
    assert (done.code, done.stdout) == (1, "")
    assert said in done.stderr
    assert not (tmp_path / "x.svg").exists()


def test_pictures_of_shared_memory_where_there_is_none(cli: Cli, tmp_path: Path) -> None:
    """What is there to draw instead is drawn, as the refusal says."""
    out = tmp_path / "x.svg"
    for level in SHARED_LEVELS:
        done = cli("draw", "ladder_01_naive", "-o", out, "--level", level)
        assert (done.code, done.stdout, out.exists()) == (1, "", False)
        assert "shared.stages: 0" in done.stderr
        assert "allowed: block, warp, lane, value, order, copy_a, copy_b\n" in done.stderr
    instead = done.stderr.split("fix: --level ")[1].split(",")[0]
    assert cli("draw", "ladder_01_naive", "-o", out, "--level", instead).code == 0
    assert "what the lanes of warp 0 load of A" in out.read_text()
    assert cli("draw", "ladder_01_naive", "-o", tmp_path / "x.html").code == 0


@pytest.mark.parametrize(
    ("source", "out", "arguments", "said"),
    [
        ("(8,4,2):(1,2,3)", "x.svg", [], "3 modes"),
        ("(8,4):(4,1)", "x.gif", [], ".svg, .png, .html"),
        ("(8,4):(4,1)", "x", [], ".svg, .png, .html"),
        ("(8,4):(4,1)", "x.html", [], "a page is of a spec"),
        ("8:1", "x.html", ["--device", "h200"], "or name a spec"),
        ("(8,4):(4,1)", "x.svg", ["--level", "warp"], "leave level out"),
        ("(8,4):(4,1)", "x.svg", ["--thread", "0"], "leave thread out"),
        ("(8,4):(4", "x.svg", [], "there"),
        ("warptile_128x128", "x.html", ["--level", "warp"], "leave level out"),
        ("(8,4):(4,1)", "none/deep/x.svg", [], "/none\n"),
    ],
)
def test_what_is_refused(cli: Cli, tmp_path: Path, source: str, out: str, arguments: list[str], said: str) -> None:
    done = cli("draw", source, "-o", tmp_path / out, *arguments)
    assert (done.code, done.stdout) == (1, "")
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_verb_says_alike_that_a_variant_or_a_thread_is_not_there(
    cli: Cli, spec_file: Callable[..., Path], tmp_path: Path
) -> None:
    path, out = spec_file(), tmp_path / "x.svg"
    variants = [
        cli("draw", path, "-o", out, "--variant", "ak_bn"),
        cli("explain", path, "--variant", "ak_bn"),
        cli("emit", path, "--stdout", "--variant", "ak_bn"),
    ]
    (said,) = {(done.code, done.stdout, done.stderr) for done in variants}
    assert said[:2] == (2, "") and "a variant is one of the spec's" in said[2]
    assert "fix: did you mean ak_bn_16B" in said[2]
    threads = [cli("draw", path, "-o", out, "--thread", "128"), cli("explain", path, "--thread", "128")]
    (said,) = {(done.code, done.stdout, done.stderr) for done in threads}
    assert said[0] == 2 and "allowed: 0 .. 127" in said[2]


def test_an_empty_name_is_no_spec(cli: Cli, tmp_path: Path) -> None:
    for verb in (["check", ""], ["draw", "", "-o", tmp_path / "x.svg"], ["explain", " "]):
        done = cli(*verb)
        assert done.code == 2 and "an empty name" in done.stderr and not (tmp_path / "x.svg").exists()


def test_wrong_usage(cli: Cli, tmp_path: Path) -> None:
    assert cli("draw", "warptile_128x128", "-o", tmp_path / "x.svg", "--shape", "8x8").code == 2
    assert cli("draw", "warptile_128x128", "-o", tmp_path / "x.html", "--shape", "0,1,1").code == 2
    assert cli("draw", "no_such_spec", "-o", tmp_path / "x.svg").code == 2
    assert cli("draw", "warptile_128x128").code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_way_and_a_file_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x.svg").mkdir()
    (tmp_path / "file").write_text("mine")
    for out, why in (
        (tmp_path / "x.svg", f"{tmp_path / 'x.svg'} is a folder"),
        (tmp_path / "file" / "x.svg", f"{tmp_path / 'file'} is a file, not a folder"),
        (tmp_path / "none" / "x.svg", f"there is no folder {tmp_path / 'none'}"),
        (tmp_path / ("x" * 300 + ".svg"), f"{tmp_path / ('x' * 300 + '.svg')}: file name too long"),
    ):
        with pytest.raises(DrawError, match="may write to") as caught:
            draw("4:1", out)
        assert caught.value.got == why
    denied = PermissionError(13, "Permission denied")
    assert unwritable(tmp_path / "a" / "x.svg", denied) == f"you may not write to the folder {tmp_path}"
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "x.svg"]


def test_what_is_a_layout_and_what_a_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_layout("4:1") and is_layout("(4,8)") and is_layout("Sw<1,0,1>")
    assert not is_layout("warptile_128x128") and not is_layout("a(1).yaml")
    Path("a(1)").write_text("")
    assert not is_layout("a(1)")
