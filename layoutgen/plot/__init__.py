"""`layoutgen plot` as functions: the JSON of a bench -> roofline, size curves and bars, with matplotlib. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import cast, get_args

from matplotlib.figure import Figure

from layoutgen import paths
from layoutgen.bench import Result, read
from layoutgen.draw import write_picture
from layoutgen.errors import DrawError, RequestError, counted, meant
from layoutgen.plot.bars import bars
from layoutgen.plot.roofline import roofline
from layoutgen.plot.sizes import sizes
from layoutgen.plot.style import Format, by, names, render
from layoutgen.problem import Extents

__all__ = ["FORMATS", "KINDS", "bars", "plot", "render", "roofline", "sizes"]

KINDS = ("roofline", "sizes", "bars")
FORMATS = get_args(Format)
Drawing = Callable[[], Figure]


def plot(
    source: str | Path | Result,
    out: str | Path | None = None,
    *,
    kinds: Sequence[str] | None = None,
    shape: Extents | None = None,
    modes: Sequence[str] | None = None,
    format: str = "svg",
) -> list[Path]:
    """Draw a result; returns the files that were written, each in one step.

    Args:
        source: the JSON file, or what `layoutgen.bench.bench` returned.
        out: a folder, or a file for one picture, whose ending then says the format; default the folder of the JSON
            file, or the current one. In a folder the files are STEM-KIND.svg, and STEM-KIND-MODES.svg where there are
            several pairs of modes; STEM is the JSON file's, or bench.
        kinds: of KINDS; default those for which there is something to draw. sizes wants two shapes, the others a spec.
        shape: what roofline and bars show; default the largest that was measured. modes: default all that were.

    Raises:
        RequestError: the source is no result, or has nothing to draw of what is asked for.
        DrawError: a file can't be written.
    """
    result = source if isinstance(source, Result) else read(source)
    near = Path("bench") if isinstance(source, Result) else Path(source)
    _one_of("a format", format, FORMATS)
    for kind in kinds or ():
        _one_of("a kind of plot", kind, KINDS)
    pairs = list(dict.fromkeys(pair for _, pair in result.cases))
    for pair in modes or ():
        _one_of("a pair of modes", pair, pairs)
    figures = {
        (kind, pair): draw
        for pair in modes or pairs
        for kind in kinds or KINDS
        if (draw := _drawing(result, kind, pair, shape)) is not None
    }
    if not figures:
        raise _nothing(result, kinds, shape)
    if out is not None and Path(out).suffix and not Path(out).is_dir():
        return [_one(figures, Path(out))]
    folder = near.parent if out is None else Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        got, fix = paths.unwritable(folder / "x", error), "name a folder that you may write to with -o"
        raise DrawError("a picture can be written", got=got, fix=fix) from error
    several = len({pair for _, pair in figures}) > 1
    return [
        write_picture(
            folder / f"{near.stem}-{kind}{f'-{pair}' if several else ''}.{format}", render(draw(), cast(Format, format))
        )
        for (kind, pair), draw in figures.items()
    ]


def _one(figures: Mapping[tuple[str, str], Drawing], file: Path) -> Path:
    _one_of("the ending of a picture's file", file.suffix.lower(), [f".{each}" for each in FORMATS])
    if len(figures) != 1:
        raise RequestError(
            "a file holds one picture",
            got=f"{file} for {', '.join(f'{kind} {pair}' for kind, pair in figures)}",
            fix="choose one with --kind and --modes, or name a folder",
        )
    (draw,) = figures.values()
    return write_picture(file, render(draw(), cast(Format, file.suffix[1:].lower())))


def _drawing(result: Result, kind: str, modes: str, shape: Extents | None) -> Drawing | None:
    """What draws one picture, or None where the result has nothing for it."""
    rows = [row for row in result.rows if row.modes == modes]
    if kind == "sizes":
        timed = {row.shape for row in rows if row.samples_ms}
        return partial(sizes, result, modes) if len(timed) > 1 else None
    specs = {row.shape for row in rows if row.kind == "spec" and (kind == "bars" or row.samples_ms)}
    shown = shape or max(specs, key=lambda each: (prod(each), each), default=None)
    if shown is None or shown not in specs:
        return None
    return partial(roofline if kind == "roofline" else bars, result, shown, modes)


def _nothing(result: Result, kinds: Sequence[str] | None, shape: Extents | None) -> RequestError:
    measured = list(dict.fromkeys(extents for extents, _ in result.cases))
    if shape is not None and shape not in measured:
        return RequestError(
            "the shape is one that was measured", got=by(shape), allowed=", ".join(map(by, measured)) or "none",
            fix="leave the shape out for the largest",
        )  # fmt: skip
    return RequestError(
        "a result has what is to be drawn: sizes wants two shapes, roofline and bars a spec",
        got=f"{counted(len(measured), 'shape')}, {counted(len(names(result.rows, 'spec')), 'spec')}"
        f" for {', '.join(kinds or KINDS)}",
        fix="measure more in one run of layoutgen bench",
    )


def _one_of(what: str, asked: str, known: Sequence[str]) -> None:
    if asked not in known:
        fix = meant(asked, known) or (f"take {known[0]}" if known else "measure one first")
        raise RequestError(f"{what} is one that there is", got=repr(asked), allowed=", ".join(known), fix=fix)
