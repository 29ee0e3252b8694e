"""Shared by the tests of the command line: how to run it, and specs that are small, illegal or no spec."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from layoutgen.cli import app

ROOT = Path(__file__).resolve().parents[2]

# 64 x 64 x 8, 128 threads: half the time to compile of the specs that ship.
TINY = """
name: tiny
about: A small tiling for tests
arch: sm_80
operands: {a: {dtype: f32, contiguous: k}, b: {dtype: f32, contiguous: n}, c: {dtype: f32}, accumulate: f32}
tiling: {block: [64, 64, 8], warps: (2,2):(2,1), lanes: (8,4):(4,1), values: [4, 4]}
shared: {stages: 2}
"""


class Outcome:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code, self.stdout, self.stderr = code, stdout, stderr

    def row(self, first: str) -> list[str]:
        """The cells of the one line of stdout that starts with the word `first`."""
        (row,) = (line.split() for line in self.stdout.splitlines() if line.split()[:1] == [first])
        return row


@pytest.fixture
def cli() -> Callable[..., Outcome]:
    """Runs a command in this process."""

    def run(*arguments: object) -> Outcome:
        result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `python -m layoutgen`, or `python -c code`, in a process of its own."""

    def run(*arguments: object, code: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        program = ["-m", "layoutgen"] if code is None else ["-c", code]
        command = [sys.executable, *program, *map(str, arguments)]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path, **environment}, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def spec_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes TINY under a name, with pieces of its text replaced: spec_file("wide", ("[64, 64,", "[64, 128,"))."""

    def write(name: str = "tiny", *replaced: tuple[str, str]) -> Path:
        text = TINY.replace("name: tiny", f"name: {name}")
        for old, new in replaced:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / f"{name}.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def illegal(spec_file: Callable[..., Path]) -> Path:
    """A spec whose lanes repeat a number."""
    return spec_file("illegal", ("(8,4):(4,1)", "(8,4):(4,2)"))
