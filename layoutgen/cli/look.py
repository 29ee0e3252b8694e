"""Verbs that show: explain, diff, draw, eval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutgen.cli.common import (
    DeviceName,
    app,
    attempt,
    device_asked,
    device_named,
    exit_code,
    extents_of,
    reported,
)
from layoutgen.errors import LayoutgenError

if TYPE_CHECKING:
    from layoutgen.explain import Explanation


@app.command(no_args_is_help=True)
def explain(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="A path, or the name of a spec that comes with layoutgen.")
    ],
    coordinate: Annotated[
        str | None,
        typer.Option(
            "--coord", metavar="M,N", help="The element of C's tile to follow  [default: 5,77 modulo the tile]"
        ),
    ] = None,
    thread: Annotated[int | None, typer.Option("--thread", metavar="T", help="A thread to follow as well.")] = None,
    variant: Annotated[
        str | None, typer.Option("--variant", metavar="NAME", help="Which kernel  [default: the primary one]")
    ] = None,
    steps: Annotated[bool, typer.Option("--steps", help="Derive each call of the algebra, step by step.")] = False,
    device: DeviceName = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Tell how a tiling is composed and who owns what.

    Level by level, with the call of the layout algebra that makes each layout; then one element of C: which thread owns
    it and where its operands come from. An illegal spec is told as far as it composes, then what check finds.
    """
    from layoutgen import console, report

    on = device_asked(device)

    def told(source: str) -> Explanation:
        at = None if coordinate is None else report.parse_coordinate(coordinate)
        return report.explain_spec(source, variant=variant, coordinate=at, thread=thread, device=on)

    outcome = attempt(spec, told)
    _, explanation, error = outcome
    if as_json:
        typer.echo(json.dumps(console.entry(outcome), indent=2))
    elif explanation is not None:
        console.print_explanation(explanation, derive=steps)
    else:
        console.print_errors([error])
    raise typer.Exit(max(exit_code([outcome]), int(explanation is not None and not explanation.legal)))


@app.command(no_args_is_help=True)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A spec, as for explain.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    device: DeviceName = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Draw both side by side: x.svg or x.png.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what differs between two tilings.

    Keys of the specs, layouts by level, and facts.
    Exit codes are those of diff: 0 the same tiling, whatever it is called and however it is written; 1 they differ;
    2 trouble.
    """
    from layoutgen import console, report

    on = device_asked(device)
    try:
        found = report.diff_specs(a, b, device=on)
    except LayoutgenError as error:
        if as_json:
            typer.echo(json.dumps(console.entry((f"{a} {b}", None, error)), indent=2))
        else:
            console.print_errors([error])
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2))
    else:
        console.print_difference(found, a, b)
    if out is not None:
        from layoutgen.draw import draw_difference, find_plan

        try:
            file = draw_difference(find_plan(a), find_plan(b), out)
        except LayoutgenError as error:
            console.print_errors([error])
            raise typer.Exit(2) from None
        typer.echo(file, err=as_json)
    raise typer.Exit(0 if found.same else 1)


@app.command(no_args_is_help=True)
def draw(
    source: Annotated[
        str, typer.Argument(metavar="SPEC|LAYOUT", help="A spec as for check, or such as '(8,4):(4,1)'.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="x.svg, x.png or x.html.")],
    level: Annotated[
        str | None,
        typer.Option(help="block, warp, lane, value, order, smem_a, smem_b, copy_a, copy_b or banks  [default: value]"),
    ] = None,
    variant: Annotated[str | None, typer.Option(metavar="NAME", help="Of the spec  [default: the primary one]")] = None,
    thread: Annotated[int | None, typer.Option(metavar="T", help="Whose values to show  [default: 0]")] = None,
    shape: Annotated[
        str | None, typer.Option(metavar="M,N,K", help="The problem of --level block, or of an .html.")
    ] = None,
    banks: Annotated[bool, typer.Option("--banks", help="Colour a LAYOUT by shared-memory bank.")] = False,
    theme: Annotated[str | None, typer.Option(help="auto, light or dark  [default: auto; a PNG is light]")] = None,
    device: DeviceName = None,
) -> None:
    """Draw a tiling, or a layout of at most two modes.

    An .svg or .png shows one level. An .html is a page to explore a spec in, beside what it costs on the device.
    """
    from layoutgen import report
    from layoutgen.draw import draw as draw_file
    from layoutgen.draw import is_layout

    on = None if device is None else device_named(device)
    with reported():
        if on is None and out.suffix.lower() == ".html" and not is_layout(source):
            on = report.default_device(report.read_spec(source))
        typer.echo(
            draw_file(
                source, out, level=level, variant=variant, thread=thread, shape=extents_of(shape), banks=banks,
                theme=theme, device=on,
            )
        )  # fmt: skip


@app.command(name="eval", no_args_is_help=True)
def eval_(
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION", help="Such as 'composition((8,4):(4,1), 4:2)'.")],
    explain: Annotated[bool, typer.Option("--explain", help="Show the derivation step by step.")] = False,
    table: Annotated[bool, typer.Option("--table", help="Show the offsets as a grid.")] = False,
) -> None:
    """Evaluate an expression of the layout algebra."""
    from layoutgen.algebra.evaluate import eval_command

    with reported():
        for number, paragraph in enumerate(eval_command(expression, explain, table)):
            typer.echo(f"\n{paragraph}" if number else paragraph)
