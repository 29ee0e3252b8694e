"""What the README shows is what there is: its spec has twelve lines and is legal, and its links lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.table import errors, table, times
from docs.pictures import PICTURES
from layoutgen import spec
from layoutgen.bench import read
from layoutgen.check import check
from layoutgen.hw.devices import device

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def test_the_spec_shown_is_the_spec_shipped() -> None:
    shown = re.search(r"```yaml\n(.*?)```", README, re.S)
    assert shown is not None
    assert shown[1].count("\n") == 12
    loaded = spec.loads(shown[1])
    shipped = spec.load(ROOT / "specs" / "warptile_128x128.yaml")
    assert check(loaded, device("h200")).legal
    assert (loaded.name, loaded.tiling.block, loaded.tiling.warps, loaded.tiling.lanes, loaded.tiling.values) == (
        shipped.name, shipped.tiling.block, shipped.tiling.warps, shipped.tiling.lanes, shipped.tiling.values,
    )  # fmt: skip
    assert loaded.shared == shipped.shared


def test_the_speeds_shown_are_those_measured() -> None:
    assert table(read(ROOT / "benchmarks" / "results" / "sgemm-h200.json")) in README


def test_the_page_on_tensor_cores_has_the_figures_that_were_measured() -> None:
    page = (ROOT / "docs" / "tensor-cores.md").read_text()
    for types in ("bf16", "f16", "tf32", "s8", "f64"):
        assert table(read(ROOT / "benchmarks" / "results" / f"mma-{types}-h200.json")) in page


def test_the_page_has_what_an_epilogue_and_split_numbers_cost() -> None:
    page = (ROOT / "docs" / "tensor-cores.md").read_text()
    results = ROOT / "benchmarks" / "results"
    assert times(read(results / "fused-h200.json")) in page
    assert table(read(results / "tf32x3-h200.json")) in page
    assert errors(json.loads((results / "split-errors-h200.json").read_text())["rows"]) in page


def test_links_lead_somewhere() -> None:
    for file in (
        ROOT / "README.md",
        ROOT / "docs" / "spec.md",
        ROOT / "docs" / "devices.md",
        ROOT / "docs" / "algebra.md",
        ROOT / "docs" / "measured.md",
        ROOT / "docs" / "bench.md",
        ROOT / "docs" / "ladder.md",
    ):
        for target in re.findall(r"\]\(([^)#:]+)\)", file.read_text()):
            assert (file.parent / target).exists(), f"{file.name}: {target}"


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.name)
def test_a_picture_is_what_is_drawn_now(file: Path) -> None:
    assert file.read_text() == PICTURES[file]()
    assert file.stat().st_size < (
        300_000 if file.name == "speeds.svg" else 150_000
    )  # matplotlib's letters are outlines


def test_every_picture_is_shown_and_every_one_shown_is_there() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for target in re.findall(r"!\[[^\]]+\]\(([^)#:]+)\)", page.read_text())
    }
    assert shown == {*PICTURES, ROOT / "docs" / "page.png"}
    assert set((ROOT / "docs").rglob("*.svg")) | set((ROOT / "docs").rglob("*.png")) == shown
    assert (ROOT / "docs" / "page.png").stat().st_size < 300_000
