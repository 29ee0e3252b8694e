"""Folders: the checkout before the wheel's copy, and a cache that the user can move."""

from __future__ import annotations

from pathlib import Path

import pytest

from layoutgen import paths
from layoutgen.errors import LayoutgenError


def test_this_checkouts_folders_are_found() -> None:
    root = Path(paths.__file__).parents[1]
    assert (paths.templates(), paths.specs(), paths.generated()) == (
        root / "templates",
        root / "specs",
        root / "generated",
    )


def test_a_wheel_uses_its_own_copy_even_beside_a_folder_of_that_name(tmp_path: Path) -> None:
    package = tmp_path / "site-packages/layoutgen"
    (package / "_data/templates").mkdir(parents=True)
    (tmp_path / "site-packages/templates").mkdir()  # some other project's
    assert paths._shipped("templates", package) == package / "_data/templates"


def test_a_checkout_wins_over_the_packaged_copy(tmp_path: Path) -> None:
    package = tmp_path / "layoutgen"
    (package / "_data/templates").mkdir(parents=True)
    (tmp_path / "templates").mkdir()
    (tmp_path / "pyproject.toml").touch()
    assert paths._shipped("templates", package) == tmp_path / "templates"


def test_a_missing_folder_names_both_places(tmp_path: Path) -> None:
    with pytest.raises(LayoutgenError, match="_data"):
        paths._shipped("templates", tmp_path / "layoutgen")


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("LAYOUTGEN_CACHE", "")
    assert paths.cache() == tmp_path / ".cache/layoutgen"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert paths.cache() == tmp_path / ".cache/layoutgen"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert paths.cache() == tmp_path / "xdg/layoutgen"
    monkeypatch.setenv("LAYOUTGEN_CACHE", "~/mine")
    assert paths.cache() == tmp_path / "mine"


def test_without_a_home_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("LAYOUTGEN_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(LayoutgenError, match="set LAYOUTGEN_CACHE"):
        paths.cache()
