"""What the verbs share: the program itself, options that several take, and how errors and progress are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from layoutgen.errors import LayoutgenError, RequestError, SpecError

if TYPE_CHECKING:
    from layoutgen.console import Outcome
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
        help="A GPU such as h200, or a YAML file that describes one  [default: the one here, else h200; of an AMD "
        "spec, its own]",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON array and nothing else.")]


def extents_of(shape: str | None) -> tuple[int, int, int] | None:
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


def attempt(source: str, verb: Callable[[str], T]) -> Outcome[T]:
    """(source, what the verb returned or None, the error it raised or None)."""
    try:
        return source, verb(source), None
    except LayoutgenError as error:
        return source, None, error


def exit_code(outcomes: Sequence[Outcome[Any]]) -> int:
    return max((code_of(error) for *_, error in outcomes if error), default=0)


def code_of(error: LayoutgenError) -> int:
    return 2 if isinstance(error, (SpecError, RequestError)) else 1


@contextmanager
def reported(kind: type[LayoutgenError] = LayoutgenError) -> Iterator[None]:
    """Prints a LayoutgenError of the kind instead of its traceback, and exits."""
    try:
        yield
    except kind as error:
        from layoutgen import console

        console.print_errors([error])
        raise typer.Exit(code_of(error)) from None


def device_named(name: str | None, option: str = "--device") -> Device:
    """The device that the option names; by default the one here. A name that is none is wrong usage of the option."""
    from layoutgen.device_file import find
    from layoutgen.run import default_device

    if name is None:
        with reported():
            return default_device()
    try:
        with reported(SpecError):
            return find(name)
    except LayoutgenError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def device_asked(name: str | None) -> Device | None:
    """As `device_named`, but None where the option names none, for each spec to be judged for its own default."""
    found = device_named(name)
    return None if name is None else found


def print_json(outcomes: Sequence[Outcome[Any]]) -> None:
    from layoutgen import console

    typer.echo(json.dumps([console.entry(outcome) for outcome in outcomes], indent=2))


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
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
