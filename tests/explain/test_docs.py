"""docs/explain.md shows what the commands print."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from layoutgen import paths
from layoutgen.cli import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explain.md"
BLOCK = re.compile(r"```console\n\$ layoutgen (?P<command>[^\n]*)\n(?P<output>.*?)```", re.S)


def regenerated(text: str) -> str:
    """The page with each console block's output as it is now."""

    def run(block: re.Match[str]) -> str:
        done = CliRunner().invoke(app, shlex.split(block["command"]), catch_exceptions=False)
        return f"```console\n$ layoutgen {block['command']}\n{done.stdout.rstrip()}\n```"

    return BLOCK.sub(run, text)


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LAYOUTGEN_UPDATE_DOCS=1 writes it anew."""
    shipped = paths.shipped_specs()["warptile_128x128"].read_text()
    (tmp_path / "warptile_128x128.yaml").write_text(shipped)
    three = shipped.replace("name: warptile_128x128", "name: three_stages").replace("stages: 2", "stages: 3")
    (tmp_path / "three_stages.yaml").write_text(three)
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    now = regenerated(text)
    if os.environ.get("LAYOUTGEN_UPDATE_DOCS"):
        PAGE.write_text(now)
    assert len(BLOCK.findall(text)) == 2 and "thread 35" in now and "shared.stages" in now
    assert now == PAGE.read_text()
