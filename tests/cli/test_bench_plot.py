"""`layoutgen bench` and `layoutgen plot`: options, tables, exit codes, and nothing written for a mistake."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutgen import build, console_bench
from layoutgen.bench import Watch, read, runner, write
from tests.bench.lab import FakeLab
from tests.cli.conftest import Outcome
from tests.plot.results import ladder

Cli = Callable[..., Outcome]
SPEC = "warptile_128x128"


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    """What stands for the GPU: the spec is a tenth faster than cuBLAS and as fast as Triton."""
    times = {"cublas": 1.1, "triton": 1.0, SPEC: 1.0}
    fake = FakeLab({name: lambda n, ms=ms: ms * (1 + 0.01 * (n % 3 - 1)) for name, ms in times.items()})
    monkeypatch.setattr(runner, "_gpu", lambda: fake)
    return fake


def test_the_examples() -> None:
    assert doctest.testmod(console_bench).failed == 0


def test_a_table_for_each_case_and_the_json(cli: Cli, lab: FakeLab, tmp_path: Path) -> None:
    out = tmp_path / "x.json"
    done = cli(
        "bench", SPEC, "--shape", "512", "--shape", "64,128,32", "--modes", "kn", "--modes", "mk", "--against",
        "cublas,triton", "--repeats", "12", "-o", out,
    )  # fmt: skip
    assert (done.code, done.stderr) == (0, "")
    result = read(out)
    assert result.complete and result.cases == tuple((s, p) for s in ((512,) * 3, (64, 128, 32)) for p in ("kn", "mk"))
    for shape, modes in result.cases:
        assert f"{' x '.join(map(str, shape))}, a:{modes[0]} b:{modes[1]}, 12 rounds" in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith(f"  {SPEC}")]
    assert len(lines) == 4
    mine = result.rows[2]
    assert mine.kernel is not None and mine.tflops is not None
    for said in ("ak_bn_16B", str(mine.kernel.registers), f"{mine.tflops:.1f}", "no difference (", "1.10"):
        assert said in lines[0]
    assert "SM 1980 MHz (1965 .. 1980), power 650 W (600 .. 700)" in done.stdout
    assert done.stdout.endswith(f"\n\n{out}\n")
    assert result.script == (
        f"layoutgen bench {SPEC} --shape 512 --shape 64,128,32 --modes kn --modes mk "
        "--against cublas,triton --repeats 12"
    )


def test_a_name_is_whole_on_a_narrow_terminal(cli: Cli, lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    done = cli("bench", SPEC, "--shape", "64", "--repeats", "6")
    assert any({SPEC, "ak_bn_16B"} <= set(line.split()) for line in done.stdout.splitlines())


def test_a_wrong_kernel_is_shown_and_fails(cli: Cli, lab: FakeLab) -> None:
    lab.errors[SPEC] = 0.25
    done = cli("bench", SPEC, "--shape", "64", "--repeats", "6")
    assert done.code == 1
    (row,) = (line for line in done.stdout.splitlines() if line.startswith(f"  {SPEC} "))
    assert "wrong" in row and "2.5e-01" in row and "TFLOP/s" not in row
    assert f"{SPEC}: wrong: off by 2.5e-01" in done.stdout
    assert "cublas" in done.stdout


def test_ctrl_c_prints_and_writes_what_was_measured_and_exits_130(cli: Cli, lab: FakeLab, tmp_path: Path) -> None:
    out = tmp_path / "x.json"

    def interrupted(n: int) -> float:
        if n == 22:
            raise KeyboardInterrupt
        return 1.0

    lab.times["cublas"] = interrupted
    done = cli("bench", SPEC, "--shape", "64", "--repeats", "100", "-o", out)
    assert done.code == 130
    kept = read(out)
    assert not kept.complete and 6 < len(kept.rows[0].samples_ms) < 100
    assert f"64 x 64 x 64, a:k b:n, {len(kept.rows[0].samples_ms)} rounds" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--shape", "0"], "0 is not M,N,K"),
        (["--shape", "1,2"], "1,2 is not M,N,K"),
        (["--modes", "nn"], "allowed: kn, kk, mn, mk"),
        (["--against", "cublas,tritno"], "did you mean triton?"),
        (["--repeats", "2"], "at least 6"),
        (["--device", "h200"], "No such option"),
    ],
)
def test_wrong_usage(cli: Cli, lab: FakeLab, tmp_path: Path, options: list[str], said: str) -> None:
    done = cli("bench", SPEC, *options, "-o", tmp_path / "x.json")
    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr and not lab.log and list(tmp_path.iterdir()) == []


def test_what_is_no_spec_or_illegal(cli: Cli, lab: FakeLab, illegal: Path, tmp_path: Path) -> None:
    done = cli("bench", "warptile", "-o", tmp_path / "x.json")
    assert done.code == 2 and "did you mean warptile_128x128?" in done.stderr
    done = cli("bench", SPEC, illegal, "-o", tmp_path / "x.json")
    assert done.code == 1 and done.stderr.startswith("illegal is not legal on h200:")
    assert not (tmp_path / "x.json").exists()


def test_without_a_gpu(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "current_arch", lambda: None)
    done = cli("bench", SPEC, "-o", tmp_path / "x.json")
    assert (done.code, done.stdout) == (2, "")
    assert "a bench measures on an NVIDIA GPU" in done.stderr and "fix: " in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_bar_shows_on_a_terminal_and_tables_go_to_stdout(
    cli: Cli, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = cli("bench", SPEC, "--shape", "64", "--repeats", "6")
    assert plain.stderr == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    seen: list[str] = []
    monkeypatch.setattr(Watch, "begin", lambda self, what, amount: seen.append(what))  # the bar's own is another
    shown = cli("bench", SPEC, "--shape", "64", "--repeats", "6")
    assert "\x1b[" in shown.stderr and seen == []
    assert "64 x 64 x 64, a:k b:n, 6 rounds" in shown.stdout and "\x1b[?25l" not in shown.stdout


def test_plot_writes_what_there_is_to_draw(cli: Cli, tmp_path: Path) -> None:
    write(ladder(), tmp_path / "x.json")
    done = cli("plot", tmp_path / "x.json")
    files = [tmp_path / "x-roofline.svg", tmp_path / "x-bars.svg"]
    assert (done.code, done.stdout, done.stderr) == (0, "".join(f"{file}\n" for file in files), "")
    assert all(file.read_text().startswith("<?xml") for file in files)
    done = cli("plot", tmp_path / "x.json", "--kind", "bars", "-o", tmp_path / "y.png")
    assert done.stdout == f"{tmp_path / 'y.png'}\n" and (tmp_path / "y.png").read_bytes().startswith(b"\x89PNG")


def test_plot_refuses_what_is_no_result(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    for data, said in ((json.dumps({"rows": []}), "an object with rows"), ("{", "x.json:1: ")):
        file.write_text(data)
        done = cli("plot", file, "-o", tmp_path / "plots")
        assert (done.code, done.stdout) == (2, "")
        assert said in done.stderr and "fix: measure it again" in done.stderr
    assert cli("plot", tmp_path / "none.json").code == 2
    assert [each.name for each in tmp_path.iterdir()] == ["x.json"]
