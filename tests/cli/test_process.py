"""The program as a process: what it imports, how it ends, and how it prints into pipes and terminals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutgen import report
from layoutgen.bench import write
from layoutgen.cli import common as cli_module
from tests.cli.conftest import ROOT, Outcome
from tests.plot.results import ladder

Process = Callable[..., subprocess.CompletedProcess[str]]

# Runs a command, then prints the packages that were imported as the last line.
WITH_IMPORTS = """
import json, sys
sys.argv[0] = "layoutgen"
from layoutgen.cli import main
try:
    main()
finally:
    print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def imports(done: subprocess.CompletedProcess[str]) -> set[str]:
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_help_imports_next_to_nothing_and_names_every_verb(process: Process) -> None:
    done = process("--help", code=WITH_IMPORTS)
    assert not {"torch", "numpy", "pydantic", "jinja2", "rich", "yaml", "matplotlib"} & imports(done)
    for verb in ("check", "build", "emit", "explain", "diff", "draw", "bench", "plot", "list", "devices"):
        assert f"\n  {verb} " in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        "check warptile_128x128",
        "check warptile_128x128 --json",
        "list",
        "draw warptile_128x128 -o {folder}/x.html",
        "draw warptile_128x128 -o {folder}/x.svg",
        "plot {folder}/results.json",
    ],
)
def test_looking_needs_no_torch(process: Process, arguments: str, tmp_path: Path) -> None:
    write(ladder(), tmp_path / "results.json")
    found = imports(process(*arguments.format(folder=tmp_path).split(), code=WITH_IMPORTS))
    assert "numpy" in found
    assert "torch" not in found


def test_a_second_build_needs_no_torch(process: Process) -> None:
    report.build_spec("warptile_128x128")
    done = process("build", "warptile_128x128", code=WITH_IMPORTS)
    assert "torch" not in imports(done)
    assert "cached" in done.stdout


def test_it_is_a_module_with_a_version(process: Process) -> None:
    done = process("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("layoutgen ")
    assert process("--version", "nonsense").returncode == 0


def test_a_reader_who_left_ends_it_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "layoutgen", "emit", "warptile_128x128", "--stdout"],
            stdout=writer, stderr=subprocess.PIPE, cwd=ROOT, check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.stderr == b""
    assert done.returncode == -13  # SIGPIPE, as for any filter


def test_ctrl_c_exits_130(cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for verb, function in (("check", "check_spec"), ("build", "build_spec"), ("emit", "emit_spec")):
        monkeypatch.setattr(report, function, interrupted)
        done = cli(verb, "warptile_128x128")
        assert (done.code, done.stdout, done.stderr) == (130, "", "")


def on_terminal(*arguments: str, columns: int = 80, **environment: str) -> str:
    """What a command prints on a terminal, stdout and stderr."""
    master, slave = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), **environment}
    command = [sys.executable, "-m", "layoutgen", *arguments]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env=environment):
        os.close(slave)
        printed = b""
        try:
            while part := os.read(master, 1 << 16):
                printed += part
        except OSError:  # how Linux reports that the last writer closed a terminal
            pass
    os.close(master)
    return printed.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colours_unless_no_color_is_set(illegal: Path) -> None:
    coloured = on_terminal("check", str(illegal), NO_COLOR="")
    plain = on_terminal("check", str(illegal), NO_COLOR="1")
    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    (finding,) = report.check_spec(illegal).findings
    assert str(finding) in plain  # whole, however narrow the terminal is
    assert max(map(len, str(finding).splitlines())) > 80


def test_tables_fit_a_terminal_of_80_columns() -> None:
    report.build_spec("salykov_128x256x8")
    printed = on_terminal("build", "salykov_128x256x8", NO_COLOR="1")
    assert "salykov_128x256x8  ak_bn_16B" in printed
    assert max(len(line) for line in printed.splitlines()) <= 80


def test_progress_shows_on_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with cli_module.progress_line() as tell:
        tell("compiling")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with cli_module.progress_line() as tell:
        tell("compiling")
    out, err = capsys.readouterr()
    assert out == ""
    assert "compiling" in err
