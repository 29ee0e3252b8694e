"""generated/ holds what the specs and templates emit today, byte for byte, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from layoutgen import paths, report
from layoutgen.emitted import emitted_specs

SPECS = emitted_specs()


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_each_name_is_one_spec() -> None:
    assert len(paths.shipped_specs()) == len(list(paths.specs().rglob("*.y*ml"))) > 0


def test_generated_holds_a_folder_for_each_spec_and_nothing_else() -> None:
    stray = {entry.name for entry in paths.generated().iterdir()} ^ set(SPECS)
    assert not stray, f"run `make golden`, and delete from generated/ what no spec emits: {sorted(stray)}"


@pytest.mark.parametrize("name", SPECS)
def test_generated_is_up_to_date(name: str, tmp_path: Path) -> None:
    report.emit_spec(SPECS[name], tmp_path)
    emitted, committed = files_of(tmp_path / name), files_of(paths.generated() / name)
    stray = sorted(committed.keys() - emitted.keys())
    assert not stray, f"delete what {name} does not emit, or run `make golden`: {stray}"
    changed = sorted(file for file, data in emitted.items() if committed.get(file) != data)
    assert not changed, f"run `make golden`, read the diff of generated/{name} and commit it: {changed}"
