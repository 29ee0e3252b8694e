"""What a bench measured, as frozen data and as the JSON that `layoutgen plot` and others read. Needs no torch."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from layoutgen import paths
from layoutgen.bench.statistic import Ratio, median, quantile
from layoutgen.errors import LayoutgenError, RequestError, Where
from layoutgen.facts import Loop
from layoutgen.problem import Extents

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]

WRONG = "wrong: "  # how the failure of one that ran begins
FORMAT = "layoutgen bench"
SCHEMA = 1
MODES = ("kn", "kk", "mn", "mk")  # the contiguous modes of a and b; kn: both row-major, as torch's NN
METHOD = {
    "samples": "milliseconds between two CUDA events around one call, every side once a round, in shuffled order",
    "l2": "flushed before each call",
    "inputs": "uniform(-1, 1) in the operands' types; integers from -127 to 127",
    "error": "largest |d - a b| / (|a| |b|) against float64, over the first and last 256 rows and 256 between",
    "tflops": "2 M N K / median",
    "ratio": "median of the rounds' ratios of speed; null where its 95% interval (low .. high) holds 1",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it was measured: the GPU as its driver names it, and the versions of what ran on it."""

    gpu: str
    driver: str
    torch: str
    cuda: str
    python: str
    layoutgen: str
    triton: str | None = None


@dataclass(frozen=True, slots=True)
class Roofs:
    """The device of layoutgen's table that the GPU is: FP32 peak in TFLOP/s, memory bandwidth in GB/s.

    types: of a and b. mma_tflops: the peak of mma.sync on them, where specs multiply by it and the table has one.
    """

    name: str
    fp32_tflops: float
    memory_gbs: float
    types: str = "f32"
    mma_tflops: float | None = None

    @property
    def peak(self) -> float:
        """TFLOP/s of what the specs multiply by, as far as it is known."""
        return self.mma_tflops or self.fp32_tflops

    @property
    def peak_name(self) -> str:
        return f"{self.types} mma.sync peak" if self.mma_tflops else "FP32 peak"

    @property
    def ridge(self) -> float:
        """FLOP per byte above which the peak is the lower roof."""
        return 1e3 * self.peak / self.memory_gbs


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure that was sampled while calls were timed."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Reading:
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Conditions:
    """The GPU during one case's timed rounds, or as near to them as there are samples; None where it doesn't tell.

    sm_mhz, memory_mhz: clocks. watts: power. celsius: temperature. samples: how many.
    """

    shape: Extents
    modes: str
    samples: int
    sm_mhz: Reading | None = None
    memory_mhz: Reading | None = None
    watts: Reading | None = None
    celsius: Reading | None = None

    def __str__(self) -> str:
        figures = (
            ("SM", self.sm_mhz, "MHz"), ("memory", self.memory_mhz, "MHz"),
            ("power", self.watts, "W"), ("temperature", self.celsius, "C"),
        )  # fmt: skip
        told = [
            f"{name} {each.median:.0f} {unit} ({each.low:.0f} .. {each.high:.0f})"
            for name, each, unit in figures
            if each
        ]
        return ", ".join(told) if told else "clocks and power not sampled: nvidia-smi tells nothing here"


@dataclass(frozen=True, slots=True)
class Kernel:
    """What ran for a spec, as compiled, and what its plan says of the problem: so that plots need the JSON alone.

    Attributes:
        block: its tile of C and of k. registers, spill_bytes: of a thread. shared_bytes: of a block.
        loop: instructions of a warp in one turn of the main loop's SASS, if nvdisasm is installed to tell.
        intensity: FLOP per byte of the block tile. roof_tflops: what memory feeds at it.
        ceiling_tflops, limiter: what the plan's slowest resource allows, and which that is.
        waves: block tiles over resident blocks. efficiency: the part of the slots' time that has a tile.
    """

    variant: str
    block: tuple[int, int, int]
    threads: int
    registers: int
    spill_bytes: int
    shared_bytes: int
    loop: Loop | None
    intensity: float
    roof_tflops: float
    ceiling_tflops: float | None
    limiter: str | None
    waves: float
    efficiency: float


@dataclass(frozen=True, slots=True)
class Row:
    """One side at one shape and pair of contiguous modes.

    Attributes:
        samples_ms: every timed call in the order of the rounds; none if it failed.
        max_error, allowed_error: against float64, as METHOD says; None where nothing finite came out.
        failure: why it got no time; None for a right one.
        kernel: of a spec; None for a rival.
        ratios: rival -> this row's speed over the rival's; of a spec's row alone.
    """

    name: str
    kind: Literal["spec", "rival"]
    shape: Extents
    modes: str
    samples_ms: tuple[Positive, ...]
    max_error: float | None
    allowed_error: float
    failure: str | None = None
    kernel: Kernel | None = None
    ratios: dict[str, Ratio] = field(default_factory=dict)

    @property
    def wrong(self) -> bool:
        """Whether it ran, and to a result that is no rounding of the right one."""
        return self.failure is not None and self.failure.startswith(WRONG)

    @property
    def flop(self) -> int:
        m, n, k = self.shape
        return 2 * m * n * k

    def tflops_at(self, part: float) -> float | None:
        """The speed that `part` of the calls stay below; 0.5: the median's."""
        return self.flop / quantile(self.samples_ms, 1 - part) / 1e9 if self.samples_ms else None

    @property
    def tflops(self) -> float | None:
        """2 M N K over the median time, in 10^12 a second; None if it failed."""
        return self.tflops_at(0.5)

    @property
    def median_ms(self) -> float | None:
        return median(self.samples_ms) if self.samples_ms else None

    @property
    def iqr_ms(self) -> float | None:
        """The interquartile range: the middle half of the calls lie within so many milliseconds."""
        return quantile(self.samples_ms, 0.75) - quantile(self.samples_ms, 0.25) if self.samples_ms else None

    def to_json(self) -> dict[str, Any]:
        """The row, with the figures that follow from its samples."""
        derived = {
            "median_ms": self.median_ms, "min_ms": min(self.samples_ms, default=None), "iqr_ms": self.iqr_ms,
            "tflops": self.tflops,
        }  # fmt: skip
        return {**asdict(self), **derived}


@dataclass(frozen=True, slots=True)
class Result:
    """A bench, as far as it went.

    complete: all that was asked for was measured. script: what one may type to repeat it.
    """

    script: str
    machine: Machine
    device: Roofs
    repeats: int
    rows: tuple[Row, ...] = ()
    conditions: tuple[Conditions, ...] = ()
    complete: bool = False

    @property
    def cases(self) -> tuple[tuple[Extents, str], ...]:
        """The (shape, modes) that were measured, in order."""
        return tuple(dict.fromkeys((row.shape, row.modes) for row in self.rows))

    def at(self, shape: Extents, modes: str) -> tuple[Row, ...]:
        """The rows of one case."""
        return tuple(row for row in self.rows if (row.shape, row.modes) == (shape, modes))

    @property
    def failures(self) -> Iterator[Row]:
        return (row for row in self.rows if row.failure is not None)

    def to_json(self) -> dict[str, Any]:
        """Plain data, finite throughout."""
        about = {"format": FORMAT, "schema": SCHEMA, "method": METHOD}
        return {**about, **asdict(self), "rows": [row.to_json() for row in self.rows]}

    @classmethod
    def from_json(cls, data: Any) -> Result:
        """What `to_json` made, with every type checked. Raises ValueError (pydantic's) for anything else."""
        return _reader().validate_python(data)


@cache
def _reader() -> TypeAdapter[Result]:
    return TypeAdapter(Result)


def read(file: str | Path) -> Result:
    """A result that `layoutgen bench -o` wrote.

    Raises:
        RequestError: there is no such file, it is no such result, or one of another schema.
    """
    path = Path(file)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        got = (error.strerror or str(error)).lower() if isinstance(error, OSError) else "no text"
        raise RequestError("the result can be read", got=got, fix="name a file that `layoutgen bench -o` wrote",
                           where=Where(str(path))) from error  # fmt: skip
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise _refused(path, "no JSON", line) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        keys = f"an object with {', '.join(list(data)[:5])}" if isinstance(data, dict) and data else "something else"
        raise _refused(path, f"JSON, but {keys}")
    if data.get("schema") != SCHEMA:
        raise _refused(path, f"schema {data.get('schema')}", allowed=f"schema {SCHEMA}")
    try:
        return Result.from_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise _refused(path, f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from error


def _refused(path: Path, got: str, line: int | None = None, allowed: str | None = None) -> RequestError:
    return RequestError(
        "the file is a result of `layoutgen bench`",
        got=got,
        allowed=allowed or f'an object with "format": "{FORMAT}"',
        fix="measure it again: layoutgen bench SPEC... -o results.json",
        where=Where(str(path), line),
    )


def admit(file: Path) -> None:
    """Raise LayoutgenError where `write` could not write, so that it is said before an hour of measuring."""
    try:
        if file.is_dir():
            raise IsADirectoryError
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise _unwritable(file, error) from error


def write(result: Result, file: Path) -> None:
    """Write the result in one step: a reader, or a run that is killed, sees the old file or the new one.

    Raises LayoutgenError where the file can't be written.
    """
    text = json.dumps(result.to_json(), indent=1, allow_nan=False) + "\n"
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    try:
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> LayoutgenError:
    got, fix = paths.unwritable(file, error), "name a file that you may write to with -o"
    return LayoutgenError("the result can be written", got=got, fix=fix)
