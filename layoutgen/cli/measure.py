"""Verbs that measure and show what was measured: bench, plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from layoutgen.cli.common import Specs, app, extents_of, reported

if TYPE_CHECKING:
    from layoutgen.bench import Watch


@app.command(no_args_is_help=True)
def bench(
    specs: Specs,
    shape: Annotated[
        list[str] | None, typer.Option("--shape", metavar="M,N,K", help="Or N for a cube; repeatable  [default: 4096]")
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option(
            "--modes",
            metavar="AB",
            help="Contiguous modes of a and b: kn (both row-major), kk, mn or mk; repeatable  [default: kn]",
        ),
    ] = None,
    against: Annotated[
        str,
        typer.Option("--against", metavar="RIVALS", help="Of cublas, triton and torch, with commas between, or none."),
    ] = "cublas",
    repeats: Annotated[int, typer.Option("--repeats", metavar="N", help="Timed rounds of each case.")] = 30,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write the JSON that plot reads, case by case.")
    ] = None,
) -> None:
    """Time specs on the GPU here, beside cuBLAS, Triton, or torch's own operations for a spec's epilogue.

    Each result is held to float64 first; a wrong one gets no time. Then every side is timed once a round, with a cold
    L2. A ratio is the median over the rounds with its 95% interval; one whose interval holds 1 is no difference.
    Ctrl-C keeps what was measured.
    """
    from layoutgen.bench import bench as measure

    shapes = [extents for text in shape or ["4096"] if (extents := extents_of(text))]
    rivals = [] if against == "none" else [name.strip() for name in against.split(",")]
    with reported(), _watch() as watch:
        result = measure(
            specs, shapes=shapes, modes=modes or ["kn"], against=rivals, repeats=repeats, out=out, watch=watch
        )
    if out is not None:
        typer.echo(out)
    raise typer.Exit(int(any(result.failures)))


@contextmanager
def _watch() -> Iterator[Watch]:
    """Prints each case when it is measured; on a terminal also a bar with the time left, which goes at the end."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from layoutgen import console_bench
    from layoutgen.bench import Conditions, Row, Watch
    from layoutgen.console import console

    out = console(stderr=True)
    shown = out.is_terminal and not out.is_dumb_terminal
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # What is printed goes to stdout, between two lives of the bar on stderr.
    bar = Progress(*columns, console=out, transient=True, disable=not shown, redirect_stdout=False)

    class Shown(Watch):
        def begin(self, what: str, amount: float) -> None:
            for task in bar.task_ids:
                bar.remove_task(task)
            bar.add_task(what, total=amount)

        def step(self, what: str, amount: float = 1.0) -> None:
            bar.update(bar.task_ids[-1], advance=amount, description=what)

        def measured(self, rows: Sequence[Row], conditions: Conditions) -> None:
            bar.stop()
            console_bench.print_case(rows, conditions)
            bar.start()

    with bar:
        yield Shown()


@app.command(no_args_is_help=True)
def plot(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="The JSON that bench -o wrote.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="DIR|FILE",
            help="A folder, or x.svg or x.png for one kind  [default: the result's folder]",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="roofline, sizes or bars; repeatable  [default: what there is]"),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", metavar="M,N,K", help="That roofline and bars show  [default: the largest measured]"),
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option("--modes", metavar="AB", help="As for bench; repeatable  [default: all measured]"),
    ] = None,
    format_: Annotated[str, typer.Option("--format", metavar="svg|png", help="What is written to a folder.")] = "svg",
) -> None:
    """Draw what was measured: a roofline, speeds by size, bars.

    Every figure comes from the JSON. Bars stand in the order of the specs, each in the outline of its ceiling.
    """
    from layoutgen.plot import plot as draw

    with reported():
        for file in draw(result, out, kinds=kind, shape=extents_of(shape), modes=modes, format=format_):
            typer.echo(file)
