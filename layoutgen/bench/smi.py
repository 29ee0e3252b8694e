"""Clocks, power and temperature of a GPU while something runs, through nvidia-smi in a process of its own."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterable

from layoutgen.bench.result import Conditions, Reading
from layoutgen.problem import Extents

FIELDS = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")
EVERY_MS = 100
_LATE_SECONDS = 1.0  # how long a sample is waited for where the timed rounds were over before one came

Sample = tuple[float, tuple[float | None, ...]]  # when (time.monotonic), and FIELDS


def parse(line: str) -> tuple[float | None, ...] | None:
    """A line of nvidia-smi's csv -> FIELDS, None for one that the GPU does not tell; None where it is no such line.

    >>> parse("1980, 3201, 670.89, [N/A]"), parse("No devices were found")
    ((1980.0, 3201.0, 670.89, None), None)
    """
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != len(FIELDS):
        return None
    return tuple(float(part) if part.replace(".", "", 1).isdigit() else None for part in parts)


def conditions(shape: Extents, modes: str, samples: Iterable[tuple[float | None, ...]]) -> Conditions:
    """Samples of one case -> the median and range of each figure."""
    taken = list(samples)
    figures = ([value for value in column if value is not None] for column in zip(*taken, strict=True))
    return Conditions(shape, modes, len(taken), *(Reading.of(values) if values else None for values in figures))


class Sampler:
    """Reads nvidia-smi's lines as they come; without nvidia-smi there are none.

    gpu: as nvidia-smi's -i takes it, such as GPU-uuid.
    """

    def __init__(self, gpu: str, program: tuple[str, ...] = ("nvidia-smi",)) -> None:
        query = f"--query-gpu={','.join(FIELDS)}"
        self._command = [*program, "-i", gpu, query, "--format=csv,noheader,nounits", "-lms", str(EVERY_MS)]
        self._samples: list[Sample] = []
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,  # Ctrl-C is ours: the case at hand is still to be described
            )
        except OSError:
            return
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # a pipe, as asked for
        for line in process.stdout:
            if (figures := parse(line)) is not None:
                self._samples.append((time.monotonic(), figures))

    def since(self, began: float) -> list[tuple[float | None, ...]]:
        """The samples from `began` (of time.monotonic) until now.

        Where it was too short for any, the first that comes after, while clocks and power still show it, or none.
        """
        until, process = time.monotonic(), self._process
        while process is not None and process.poll() is None and time.monotonic() < until + _LATE_SECONDS:
            if self._samples and self._samples[-1][0] >= began:
                break
            time.sleep(0.01)
        within = [figures for at, figures in list(self._samples) if began <= at <= until]
        after = [figures for at, figures in list(self._samples) if at > until]
        return within or after[:1]
