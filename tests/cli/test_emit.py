"""`layoutgen emit` and `list`: which files are written, which are deleted, and what is left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from layoutgen import emit as emit_module
from layoutgen import paths, report, spec
from layoutgen.emitted import emitted_specs
from layoutgen.plan import plan
from tests.cli.conftest import Outcome

Cli = Callable[..., Outcome]


def kernels(source: Path) -> dict[str, str]:
    return {each.variant: emit_module.emit(each).text for each in plan(spec.load(source))}


def test_all_variants_are_written_where_o_says(cli: Cli, spec_file: Callable[..., Path], tmp_path: Path) -> None:
    path, out = spec_file(), tmp_path / "new" / "out"
    done = cli("emit", path, "-o", out)
    expected = kernels(path)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(out / "tiny" / f"{variant}.cu") for variant in expected]
    written = {file: file.read_text() for file in out.rglob("*") if file.is_file()}
    assert written == {out / "tiny" / f"{variant}.cu": text for variant, text in expected.items()}
    assert all(report.MARK in text for text in expected.values())


def test_the_default_is_generated_in_this_folder(
    cli: Cli, spec_file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = spec_file()
    monkeypatch.chdir(tmp_path)
    first = cli("emit", path).stdout.splitlines()[0]
    assert first == "generated/tiny/ak_bn_16B.cu"
    assert (tmp_path / first).read_text() == kernels(path)["ak_bn_16B"]
    assert report.emit_spec(path)[0] == Path(first)


def test_stale_kernels_go_and_other_files_stay(spec_file: Callable[..., Path], tmp_path: Path) -> None:
    path, folder = spec_file(), tmp_path / "out" / "tiny"
    first, *_ = report.emit_spec(path, tmp_path / "out")
    stale = folder / "a_variant_of_old.cu"
    stale.write_text(first.read_text())
    own, notes = folder / "mine.cu", folder / "notes.txt"
    own.write_text("// by hand\n")
    notes.write_text(report.MARK)
    first.write_text("damaged")
    second = folder / "any.cu"
    before = second.stat().st_mtime_ns
    report.emit_spec(path, tmp_path / "out")
    assert first.read_text() == kernels(path)["ak_bn_16B"]
    assert second.stat().st_mtime_ns == before  # it said the same already
    assert {file.name for file in folder.iterdir()} == {"mine.cu", "notes.txt", *(f"{v}.cu" for v in kernels(path))}


def test_all_emits_every_spec_that_ships_and_has_code(cli: Cli, tmp_path: Path) -> None:
    done = cli("emit", "--all", "-o", tmp_path)
    assert done.code == 0
    assert {Path(line).parent.name for line in done.stdout.splitlines()} == set(emitted_specs())


@pytest.mark.parametrize("variant", [None, "ak_bn_16B", "any"])
def test_stdout_prints_one_kernel(
    cli: Cli, variant: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("emit", "warptile_128x128", "--stdout", *(["--variant", variant] if variant else []))
    assert done.code == 0
    assert done.stdout == kernels(paths.shipped_specs()["warptile_128x128"])[variant or "ak_bn_16B"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["warptile_128x128", "--all"], "SPEC"),
        (["warptile_128x128", "--stdout", "-o", "here"], "leave -o out"),
        (["--stdout", "--all"], "--stdout"),
        (["--stdout", "warptile_128x128", "salykov_128x128x8"], "--stdout"),
        (["warptile_128x128", "--variant", "any"], "--variant"),
        (["warptile_128x128", "--stdout", "--variant", "none_such"], "ak_bn_16B, "),
        (["nothing_like_it"], "nothing_like_it"),
        (["nothing_like_it", "--stdout"], "nothing_like_it"),
    ],
)
def test_wrong_usage_writes_nothing(
    cli: Cli, arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = cli("emit", *arguments)
    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_illegal_spec_is_not_emitted(cli: Cli, illegal: Path, tmp_path: Path) -> None:
    for arguments in (["-o", tmp_path / "out"], ["--stdout"]):
        done = cli("emit", illegal, *arguments)
        assert (done.code, done.stdout) == (1, "")
        assert f"{illegal}:" in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_a_device_allows_is_emitted_wherever_we_are(spec_file: Callable[..., Path]) -> None:
    newer = spec_file("newer", ("sm_80", "sm_100"))
    assert [kernel.variant for kernel in report.sources(newer)] == list(kernels(newer))


def test_a_folder_that_cannot_be_written_is_told(cli: Cli, spec_file: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = cli("emit", spec_file(), "-o", tmp_path / "file")
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"kernels can be written\n  got: {tmp_path / 'file'} is a file, not a folder\n")


def test_list_names_every_spec_that_ships(cli: Cli) -> None:
    done = cli("list", "--device", "h200")
    assert done.code == 0
    for name, path in paths.shipped_specs().items():
        verdict = "legal" if name in emitted_specs() else "illegal"
        assert done.row(name) == [name, verdict, *spec.load(path).about.split()]


def test_list_says_what_a_device_cannot_run(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, spec_file: Callable[..., Path]
) -> None:
    monkeypatch.setattr(paths, "shipped_specs", lambda: {"newer": spec_file("newer", ("sm_80", "sm_100"))})
    assert cli("list", "--device", "h200").row("newer")[1] == "illegal"
    assert cli("list", "--device", "b200").row("newer")[1] == "legal"
