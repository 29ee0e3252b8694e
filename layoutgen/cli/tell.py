"""Verbs that tell what there is: rules, schema, list, devices."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from layoutgen.cli.common import (
    AsJson,
    DeviceName,
    app,
    device_asked,
    device_named,
    reported,
)


@app.command()
def rules(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Such as raster  [default: all of them]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell the rules that a spec may break, each with an example.

    What it says and why, and edits of a spec that ships with what is then found.
    """
    from layoutgen import console
    from layoutgen.check import rules as registry

    with reported():
        chosen = registry.find(ids or [])
    if as_json:
        typer.echo(json.dumps(list(map(registry.to_json, chosen)), indent=2))
    else:
        console.print_rules(chosen)


@app.command()
def schema() -> None:
    """Print the JSON schema of a spec, for editors.

    docs/spec.md shows how to use it in VS Code.
    """
    from layoutgen.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


@app.command(name="list")
def list_(device: DeviceName = None) -> None:
    """List the specs that come with layoutgen."""
    from layoutgen import console, report

    on = device_asked(device)
    with reported():
        specs = report.list_specs(on)
    console.print_table(console.list_table(specs))


@app.command()
def devices(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="DEVICE", help="As for --device  [default: all known ones]")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print every figure and its source as one JSON array.")
    ] = False,
) -> None:
    """List devices, what they allow and what they reach.

    The ridge is where the FP32 peak meets the memory's: operations a byte. Registers are a thread's.
    """
    from layoutgen import console
    from layoutgen.hw.devices import DEVICES

    found = [device_named(name, "DEVICE") for name in dict.fromkeys(names)] if names else list(DEVICES.values())
    if as_json:
        typer.echo(json.dumps([each.to_json() for each in found], indent=2))
    else:
        console.print_table(console.devices_table(found))
