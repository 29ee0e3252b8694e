"""Nsight Compute from the command line: run it, and read its page of instructions."""

from __future__ import annotations

import csv
import io
import subprocess

Row = dict[str, str]  # column -> text


def ncu(*arguments: str) -> str:
    """What ncu prints; ends the program with its messages where it fails."""
    done = subprocess.run(["ncu", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def instructions(source_page: str) -> list[list[Row]]:
    """`--page source --csv` -> for each launch the rows of its SASS instructions."""
    launches: list[list[Row]] = []
    header: list[str] = []
    for row in csv.reader(io.StringIO(source_page)):
        if row[:1] == ["Kernel Name"]:
            launches.append([])
        elif row[:1] == ["Address"]:
            header = row
        elif launches and len(row) == len(header):
            launches[-1].append(dict(zip(header, row, strict=True)))
    return launches


def gpu() -> str:
    """The GPU here and its driver."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True).stdout.strip()
