"""The command line: each verb calls the function that does its work, most of them in `layoutgen.report`, and prints
what that returns.

Exit codes: 0 done (and legal), 1 illegal, different or failed, 2 wrong usage or no spec, 130 interrupted. Whatever a
verb needs is imported when it runs, so that help is quick; nothing here imports torch.
"""

from __future__ import annotations

import importlib.metadata
import signal
from typing import Annotated

import typer

from layoutgen.cli import judge, look, measure, tell
from layoutgen.cli.common import app

__all__ = ["app", "judge", "look", "main", "measure", "tell"]


def main() -> None:
    """The program `layoutgen`."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `layoutgen list | head -1` ends as quietly as any filter
    app(prog_name="layoutgen")


def _print_version(asked: bool) -> None:
    if asked:
        try:
            version = importlib.metadata.version("layoutgen")
        except importlib.metadata.PackageNotFoundError:
            version = "(run from a source tree that is not installed)"
        typer.echo(f"layoutgen {version}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass
