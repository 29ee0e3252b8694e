"""Where layoutgen keeps things: templates, specs and generated kernels beside the package, artifacts in the cache.

A checkout (also an editable install) has ``templates/``, ``specs/`` and ``generated/`` next to the package; a wheel
carries copies inside it, under ``layoutgen/_data``. The checkout wins, so that an edited template is the one in use.
"""

from __future__ import annotations

import os
from pathlib import Path

from layoutgen.errors import LayoutgenError

_PACKAGE = Path(__file__).resolve().parent


def templates() -> Path:
    """The folder of Jinja templates, one ``.cu.j2`` per mainloop family."""
    return _shipped("templates")


def specs() -> Path:
    """The folder of the YAML specs that come with layoutgen."""
    return _shipped("specs")


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
