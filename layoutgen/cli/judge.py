"""Verbs that judge a spec and make something of it: check, build, emit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from layoutgen.cli.common import (
    AsJson,
    DeviceName,
    Specs,
    app,
    attempt,
    device_asked,
    device_named,
    exit_code,
    extents_of,
    print_json,
    progress_line,
    reported,
)
from layoutgen.errors import RequestError


@app.command(no_args_is_help=True)
def check(
    specs: Specs,
    shape: Annotated[
        str | None, typer.Option("--shape", metavar="M,N,K", help="A problem, for waves, traffic and hints.")
    ] = None,
    device: DeviceName = None,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings and hints fail, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say whether specs are legal, what is wrong where, and what a legal one costs.

    Registers are the least that a thread needs and the most that it may have; shared memory is a block's. An access is
    named as in the emitted source; its wavefronts and sectors are those of one execution by a warp.
    """
    from layoutgen import console, console_facts, report

    on, extents = device_asked(device), extents_of(shape)
    outcomes = [attempt(source, lambda source: report.check_spec(source, device=on, shape=extents)) for source in specs]
    if as_json:
        print_json(outcomes)
    else:
        for table in console.check_tables(outcomes):
            console.print_table(table)
        for _, found, _ in outcomes:
            if found and found.facts:
                console_facts.print_facts(found.facts)
        console.print_findings([str(finding) for _, found, _ in outcomes if found for finding in found.findings])
        console.print_errors([error for *_, error in outcomes])
    refused = any(found and (found.findings if strict else not found.legal) for _, found, _ in outcomes)
    raise typer.Exit(max(exit_code(outcomes), int(refused)))


@app.command(no_args_is_help=True)
def build(
    specs: Specs,
    every: Annotated[bool, typer.Option("--all-variants", help="Build all variants, not the primary alone.")] = False,
    device: DeviceName = None,
    as_json: AsJson = False,
) -> None:
    """Compile specs and run each operator once.

    It runs on the GPU here, or in the CPU simulator where there is none. An illegal spec is refused with what check
    finds. What was built before comes from the cache. The error is the largest |d - a b| / (|a| |b|) of any element,
    against float64.
    """
    from layoutgen import console, report

    on = None if device is None else device_named(device)
    with progress_line() as progress:
        outcomes = [
            attempt(source, lambda source: report.build_spec(source, device=on, every=every, progress=progress))
            for source in specs
        ]
    if as_json:
        print_json(outcomes)
    else:
        if reports := [built for _, built, _ in outcomes if built]:
            console.print_table(console.compiled_table(reports))
            console.print_table(console.ran_table(reports))
            console.print_findings([str(finding) for built in reports for finding in built.findings])
        console.print_errors([error for *_, error in outcomes])
    raise typer.Exit(exit_code(outcomes))


@app.command(no_args_is_help=True)
def emit(
    specs: Annotated[list[str] | None, typer.Argument(metavar="SPEC", help="As for check.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Emit every spec that comes with layoutgen, but for AMD's.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Where to write  [default: generated]")
    ] = None,
    to_stdout: Annotated[bool, typer.Option("--stdout", help="Print one kernel and write nothing.")] = False,
    variant: Annotated[
        str | None, typer.Option("--variant", metavar="NAME", help="What --stdout prints  [default: the primary one]")
    ] = None,
) -> None:
    """Write the kernels of specs as CUDA source.

    All variants, to DIR/SPEC/VARIANT.cu; prints which files those are.
    """
    from layoutgen import console, report
    from layoutgen.emitted import emitted_specs

    if every == bool(specs):
        raise typer.BadParameter("name specs, or --all", param_hint="SPEC")
    if variant and not to_stdout:
        raise typer.BadParameter("goes with --stdout", param_hint="--variant")
    if to_stdout and out is not None:
        raise typer.BadParameter("writes no file: leave -o out", param_hint="--stdout")
    if to_stdout and len(specs or ()) != 1:
        raise typer.BadParameter("prints one kernel: name one spec", param_hint="--stdout")
    with reported():
        sources = specs or list(map(str, emitted_specs().values()))
        if to_stdout:
            texts = {kernel.variant: kernel.text for kernel in report.sources(sources[0])}
            if variant and variant not in texts:
                raise RequestError.of_variant(variant, texts)
            typer.echo(texts[variant or next(iter(texts))], nl=False)
            return
    outcomes = [attempt(source, lambda source: report.emit_spec(source, out)) for source in sources]
    for _, files, _ in outcomes:
        for file in files or ():
            typer.echo(file)
    console.print_errors([error for *_, error in outcomes])
    raise typer.Exit(exit_code(outcomes))
