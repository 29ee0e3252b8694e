"""Clocks and power while calls are timed: nvidia-smi's lines, and what is kept of them."""

from __future__ import annotations

import doctest
import sys
import time
from pathlib import Path

import pytest

from layoutgen.bench import Reading, smi
from layoutgen.bench.smi import Sampler, conditions

CUBE = (64, 64, 64)

# Prints its arguments to a file, then samples every 20 ms: SM clock 100, 101, ..
PROGRAM = """
import pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(" ".join(sys.argv[2:]))
print("No devices were found", flush=True)
for n in range(1000):
    print(f"{100 + n}, 3201, 650.5, [N/A]", flush=True)
    time.sleep(0.02)
"""


def test_the_examples() -> None:
    assert doctest.testmod(smi).failed == 0


def test_conditions_are_medians_and_ranges() -> None:
    found = conditions(
        CUBE, "kn", [(1980.0, 3201.0, 600.0, None), (1965.0, 3201.0, 700.0, None), (1980.0, 3201.0, 690.0, None)]
    )
    assert found.samples == 3 and found.celsius is None
    assert found.sm_mhz == Reading(1980.0, 1965.0, 1980.0) and found.watts == Reading(690.0, 600.0, 700.0)
    assert str(found) == "SM 1980 MHz (1965 .. 1980), memory 3201 MHz (3201 .. 3201), power 690 W (600 .. 700)"
    assert conditions(CUBE, "kn", []).sm_mhz is None and "not sampled" in str(conditions(CUBE, "kn", []))


def test_samples_are_those_of_the_time_asked_for(tmp_path: Path) -> None:
    sampler = Sampler("GPU-1", (sys.executable, "-c", PROGRAM, str(tmp_path / "arguments")))
    sampler.start()
    try:
        first = sampler.since(time.monotonic())  # too early for any: the first that comes
        assert len(first) == 1 and first[0][1:] == (3201.0, 650.5, None)
        began = time.monotonic()
        time.sleep(0.2)
        clocks = [clock for clock, *_ in sampler.since(began)]
        assert len(clocks) >= 2 and clocks[0] is not None and first[0][0] is not None and clocks[0] > first[0][0]
    finally:
        sampler.stop()
    arguments = (tmp_path / "arguments").read_text()
    assert "-i GPU-1" in arguments and "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu" in arguments
    process = sampler._process
    assert process is not None and process.returncode is not None


@pytest.mark.parametrize("program", [("no-such-program-here",), (sys.executable, "-c", "print('no line of ours')")])
def test_without_nvidia_smi_there_are_none(program: tuple[str, ...]) -> None:
    sampler = Sampler("GPU-1", program)
    sampler.start()
    if sampler._process is not None:
        sampler._process.wait()
    assert sampler.since(time.monotonic()) == []
    sampler.stop()
