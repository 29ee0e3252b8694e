"""docs/check.md shows what the commands print, and explains all of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from layoutgen import paths
from layoutgen.cli import app
from tests.explain.test_docs import BLOCK, regenerated

PAGE = Path(__file__).resolve().parents[2] / "docs" / "check.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = paths.shipped_specs()["warptile_128x128"].read_text()
    poor = shipped.replace("name: warptile_128x128", "name: conflicts").replace(
        "a: (128,16):(1,132)", "a: (128,16):(1,128)"
    )
    assert poor.count("(1,128)") == 1
    (tmp_path / "conflicts.yaml").write_text(poor)
    monkeypatch.chdir(tmp_path)


def test_the_page_shows_what_is_printed(folder: None) -> None:
    """LAYOUTGEN_UPDATE_DOCS=1 writes it anew."""
    text = PAGE.read_text()
    now = regenerated(text)
    if os.environ.get("LAYOUTGEN_UPDATE_DOCS"):
        PAGE.write_text(now)
    assert len(BLOCK.findall(text)) == 3 and "warning [bank-conflicts]" in now and "15.52 waves" in now
    assert now == PAGE.read_text()


def test_the_page_names_every_option_access_and_resource(folder: None) -> None:
    text = PAGE.read_text()
    shown = CliRunner().invoke(app, ["check", "warptile_128x128", "--device", "h200"]).stdout
    assert all(f"`{each}`" in text for each in re.findall(r"^  (copy_b|fragment_a|write_d)", shown, re.M))
    (clocks,) = re.findall(r"clocks of a k-tile on one SM: (.*)", shown)
    assert all(f"`{name}`" in text for name in map(str.strip, re.findall(r"([a-z ]+) \d+", clocks)))
    options = re.findall(r"(--[a-z]+)", CliRunner().invoke(app, ["check", "--help"]).stdout)
    assert set(options) - {"--help"} <= set(re.findall(r"--[a-z]+", text))
