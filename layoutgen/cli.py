"""The command line: each verb calls one function of `layoutgen.report` and prints what it returns.

Exit codes: 0 done (and legal), 1 illegal or failed, 2 wrong usage or no spec, 130 interrupted. Whatever a verb needs is
imported when it runs, so that help is quick; nothing here imports torch.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from layoutgen.errors import LayoutgenError, RequestError, SpecError

if TYPE_CHECKING:
    from layoutgen.console import Outcome
    from layoutgen.explain import Explanation
    from layoutgen.hw.devices import Device

T = TypeVar("T")

app = typer.Typer(
    help="A YAML description of a matrix multiply's tilings -> a proven, readable, fast CuTe kernel and a PyTorch "
    "operator.",
    rich_markup_mode=None,  # plain help and usage errors, wherever they are printed
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
)

Specs = Annotated[list[str], typer.Argument(metavar="SPEC", help="Paths, or names of specs that come with layoutgen.")]
DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME|FILE",
        help="A GPU such as h200, or a YAML file that describes one  [default: the one here, else h200]",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON array and nothing else.")]


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

    on, extents = _device(device), _extents(shape)
    outcomes = [
        _attempt(source, lambda source: report.check_spec(source, device=on, shape=extents)) for source in specs
    ]
    if as_json:
        _print_json(outcomes)
    else:
        console.print_table(console.check_table(on.name, outcomes))
        for _, found, _ in outcomes:
            if found and found.facts:
                console_facts.print_facts(found.facts)
        console.print_findings([str(finding) for _, found, _ in outcomes if found for finding in found.findings])
        console.print_errors([error for *_, error in outcomes])
    refused = any(found and (found.findings if strict else not found.legal) for _, found, _ in outcomes)
    raise typer.Exit(max(_exit_code(outcomes), int(refused)))


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

    on = None if device is None else _device(device)
    with _progress() as progress:
        outcomes = [
            _attempt(source, lambda source: report.build_spec(source, device=on, every=every, progress=progress))
            for source in specs
        ]
    if as_json:
        _print_json(outcomes)
    else:
        if reports := [built for _, built, _ in outcomes if built]:
            console.print_table(console.compiled_table(reports))
            console.print_table(console.ran_table(reports))
            console.print_findings([str(finding) for built in reports for finding in built.findings])
        console.print_errors([error for *_, error in outcomes])
    raise typer.Exit(_exit_code(outcomes))


@app.command(no_args_is_help=True)
def emit(
    specs: Annotated[list[str] | None, typer.Argument(metavar="SPEC", help="As for check.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Emit every spec that comes with layoutgen.")] = False,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Where to write.")] = Path("generated"),
    to_stdout: Annotated[bool, typer.Option("--stdout", help="Print one kernel and write nothing.")] = False,
    variant: Annotated[
        str | None, typer.Option("--variant", metavar="NAME", help="What --stdout prints  [default: the primary one]")
    ] = None,
) -> None:
    """Write the kernels of specs as CUDA source.

    All variants, to DIR/SPEC/VARIANT.cu; prints which files those are.
    """
    from layoutgen import console, paths, report

    if every == bool(specs):
        raise typer.BadParameter("name specs, or --all", param_hint="SPEC")
    if variant and not to_stdout:
        raise typer.BadParameter("goes with --stdout", param_hint="--variant")
    if to_stdout and len(specs or ()) != 1:
        raise typer.BadParameter("prints one kernel: name one spec", param_hint="--stdout")
    with _reported():
        sources = specs or list(map(str, paths.shipped_specs().values()))
        if to_stdout:
            texts = {kernel.variant: kernel.text for kernel in report.sources(sources[0])}
            if variant and variant not in texts:
                raise typer.BadParameter(f"{variant} is none of {', '.join(texts)}", param_hint="--variant")
            typer.echo(texts[variant or next(iter(texts))], nl=False)
            return
    outcomes = [_attempt(source, lambda source: report.emit_spec(source, out)) for source in sources]
    for _, files, _ in outcomes:
        for file in files or ():
            typer.echo(file)
    console.print_errors([error for *_, error in outcomes])
    raise typer.Exit(_exit_code(outcomes))


@app.command(no_args_is_help=True)
def explain(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="A path, or the name of a spec that comes with layoutgen.")
    ],
    coordinate: Annotated[
        str | None, typer.Option("--coord", metavar="M,N", help="The element of C's tile to follow  [default: 5,77]")
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

    on = _device(device)

    def told(source: str) -> Explanation:
        at = None if coordinate is None else report.parse_coordinate(coordinate)
        return report.explain_spec(source, variant=variant, coordinate=at, thread=thread, device=on)

    outcome = _attempt(spec, told)
    _, explanation, error = outcome
    if as_json:
        typer.echo(json.dumps(console.entry(outcome), indent=2))
    elif explanation is not None:
        console.print_explanation(explanation, derive=steps)
    else:
        console.print_errors([error])
    raise typer.Exit(max(_exit_code([outcome]), int(explanation is not None and not explanation.legal)))


@app.command(no_args_is_help=True)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A spec, as for explain.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    device: DeviceName = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show what differs between two tilings.

    Keys of the specs, layouts by level, and facts.
    Exit codes are those of diff: 0 the same tiling, whatever it is called and however it is written; 1 they differ;
    2 trouble.
    """
    from layoutgen import console, report

    on = _device(device)
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
    raise typer.Exit(0 if found.same else 1)


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

    with _reported():
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

    on = _device(device)
    with _reported():
        specs = report.list_specs(on)
    console.print_table(console.list_table(on.name, specs))


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

    found = list(map(_device, names)) if names else list(DEVICES.values())
    if as_json:
        typer.echo(json.dumps([each.to_json() for each in found], indent=2))
    else:
        console.print_table(console.devices_table(found))


@app.command(name="eval", no_args_is_help=True)
def eval_(
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION", help="Such as 'composition((8,4):(4,1), 4:2)'.")],
    explain: Annotated[bool, typer.Option("--explain", help="Show the derivation step by step.")] = False,
    table: Annotated[bool, typer.Option("--table", help="Show the offsets as a grid.")] = False,
) -> None:
    """Evaluate an expression of the layout algebra."""
    from layoutgen.algebra.evaluate import eval_command

    with _reported():
        for number, paragraph in enumerate(eval_command(expression, explain, table)):
            typer.echo(f"\n{paragraph}" if number else paragraph)


def _extents(shape: str | None) -> tuple[int, int, int] | None:
    """4092 or 4096,4096,1000 -> M, N and K."""
    if shape is None:
        return None
    numbers = [part.strip() for part in shape.split(",")]
    if len(numbers) not in (1, 3) or not all(re.fullmatch(r"[1-9][0-9]{0,6}", number) for number in numbers):
        raise typer.BadParameter(
            f"{shape} is not M,N,K, three numbers from 1 to 9999999, or one for all", param_hint="--shape"
        )
    m, n, k = map(int, numbers * (3 // len(numbers)))
    return m, n, k


def _attempt(source: str, verb: Callable[[str], T]) -> Outcome[T]:
    """(source, what the verb returned or None, the error it raised or None)."""
    try:
        return source, verb(source), None
    except LayoutgenError as error:
        return source, None, error


def _exit_code(outcomes: Sequence[Outcome[Any]]) -> int:
    return max((_code(error) for *_, error in outcomes if error), default=0)


def _code(error: LayoutgenError) -> int:
    return 2 if isinstance(error, (SpecError, RequestError)) else 1


@contextmanager
def _reported(kind: type[LayoutgenError] = LayoutgenError) -> Iterator[None]:
    """Prints a LayoutgenError of the kind instead of its traceback, and exits."""
    try:
        yield
    except kind as error:
        from layoutgen import console

        console.print_errors([error])
        raise typer.Exit(_code(error)) from None


def _device(name: str | None) -> Device:
    from layoutgen.device_file import find
    from layoutgen.run import default_device

    if name is None:
        with _reported():
            return default_device()
    try:
        with _reported(SpecError):
            return find(name)
    except LayoutgenError as error:
        raise typer.BadParameter(str(error), param_hint="--device") from None


def _print_json(outcomes: Sequence[Outcome[Any]]) -> None:
    from layoutgen import console

    typer.echo(json.dumps([console.entry(outcome) for outcome in outcomes], indent=2))


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Shows on a terminal what is being done and for how long; the line goes when it is done."""
    from layoutgen.console import console

    out = console(stderr=True)
    if not out.is_terminal or out.is_dumb_terminal:
        yield lambda text: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task("")
        yield lambda text: progress.reset(task, description=text)
