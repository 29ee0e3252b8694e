"""Where layoutgen keeps things: templates, specs and generated kernels beside the package, artifacts in the cache.

A checkout (also an editable install) has ``templates/``, ``specs/`` and ``generated/`` next to the package; a wheel
carries copies inside it, under ``layoutgen/_data``. The checkout wins, so that an edited template is the one in use.
"""

from __future__ import annotations

import os
from pathlib import Path

from layoutgen.errors import LayoutgenError, SpecError, meant

_PACKAGE = Path(__file__).resolve().parent


def templates() -> Path:
    """The folder of Jinja templates, one ``.cu.j2`` per mainloop family."""
    return _shipped("templates")


def specs() -> Path:
    """The folder of the YAML specs that come with layoutgen."""
    return _shipped("specs")


def shipped_specs() -> dict[str, Path]:
    """name -> file of every spec that comes with layoutgen, by name."""
    return {file.stem: file for file in sorted(specs().rglob("*.yaml"), key=lambda file: file.stem)}


def find_spec(source: str | Path) -> Path:
    """A path as it is; a bare name is looked up among the specs that come with layoutgen.

    Raises:
        SpecError: a bare name that is neither a file here nor one of those specs.
    """
    if not str(source).strip():
        raise SpecError("a spec is named", got="an empty name", fix="name a file, or a spec such as `list` shows")
    path = Path(source)
    if path.suffix or len(path.parts) != 1 or path.is_file():
        return path
    shipped = shipped_specs()
    if (known := shipped.get(str(path))) is not None:
        return known
    if path.exists():  # a folder, say, which the reader of specs refuses
        return path
    raise SpecError(
        "a bare name is that of a spec that comes with layoutgen",
        got=str(path),
        allowed=", ".join(shipped),
        fix=meant(str(path), shipped, 0.5) or "write the path of a file, such as ./NAME.yaml",
    )


def unwritable(file: Path, error: OSError) -> str:
    """Why a file can't be written, in words that name what the user named and nothing temporary."""
    if isinstance(error, PermissionError):
        there = next((part for part in file.parents if os.path.isdir(part)), file.parent)
        return f"you may not write to the folder {there}"
    if os.path.isdir(file):  # os.path, since pathlib's raise where a name is too long
        return f"{file} is a folder"
    for part in reversed(file.parents):
        if not os.path.isdir(part):
            return f"{part} is a file, not a folder" if os.path.exists(part) else f"there is no folder {part}"
    return f"{file}: {(error.strerror or str(error)).lower()}"


def generated() -> Path:
    """The folder of the emitted kernels that reviewers read."""
    return _shipped("generated")


def cache() -> Path:
    """The folder for built artifacts; it need not exist yet.

    ``$LAYOUTGEN_CACHE`` if set, else ``$XDG_CACHE_HOME/layoutgen``, else ``~/.cache/layoutgen``.

    Raises:
        LayoutgenError: none of these is known (no variable set and the user has no home folder).
    """
    if chosen := os.environ.get("LAYOUTGEN_CACHE"):
        return Path(chosen).expanduser().absolute()
    if (base := os.environ.get("XDG_CACHE_HOME")) and Path(base).is_absolute():  # the XDG rule: ignore a relative path
        return Path(base) / "layoutgen"
    try:
        return Path.home() / ".cache" / "layoutgen"
    except RuntimeError as error:
        raise LayoutgenError(
            "the cache needs a folder", got=error, fix="set LAYOUTGEN_CACHE to a folder that you may write to"
        ) from error


def _shipped(name: str, package: Path = _PACKAGE) -> Path:
    checkout = package.parent
    # site-packages may hold some other project's `templates`, so a sibling counts only in a source tree.
    is_source_tree = any((checkout / marker).exists() for marker in ("pyproject.toml", ".git"))
    if is_source_tree and (checkout / name).is_dir():
        return checkout / name
    packaged = package / "_data" / name
    if packaged.is_dir():
        return packaged
    raise LayoutgenError(
        f"layoutgen is installed with its {name} folder",
        got=f"neither {checkout / name} (in a checkout) nor {packaged} (in a wheel)",
        fix="install layoutgen again, or run it from a complete checkout",
    )
