"""What else the ladder's chapter tells of: the kernels that its rungs retell, and the search over orders."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation

from docs.pictures import RESULTS

ORIGINALS = RESULTS / "originals-h200.json"  # {"method": .., "kernels": {spec: {"kernel": whose, "tflops": ..}}}
ORDERS = RESULTS / "order-h200.json"  # of benchmarks/order.py


@dataclass(frozen=True)
class Original:
    """The kernel that a rung retells, as measured on the same card. kernel: whose and which."""

    kernel: str
    tflops: float


def originals(file: Path = ORIGINALS) -> tuple[dict[str, Original], str]:
    """spec -> the kernel that it retells, and how those were measured."""
    if not file.is_file():
        return {}, ""
    data = json.loads(file.read_text())
    return {name: Original(each["kernel"], each["tflops"]) for name, each in data["kernels"].items()}, data["method"]


@dataclass(frozen=True)
class Searched:
    """What the search over orders found for a spec. worst, best, own: TFLOP/s. rank: of its own order, from 1 up.
    reused: of its own, operands kept from the FFMA before. correlation: of speed and `reused`."""

    tried: int
    worst: float
    best: float
    own: float
    rank: int
    reused: int
    ffma: int
    correlation: float


def searched(name: str, order: str, file: Path = ORDERS) -> Searched | None:
    """What benchmarks/order.py found for a spec with this order; None where it was not searched."""
    every = json.loads(file.read_text())["specs"] if file.is_file() else []
    for rows in (each["orders"] for each in every if each["spec"] == name):
        own, speeds = rows[0], [row["tflops"] for row in rows]
        assert own["order"] == order
        return Searched(
            len(rows), min(speeds), max(speeds), own["tflops"], 1 + sum(speed > own["tflops"] for speed in speeds),
            own["reused"], own["ffma"], correlation(speeds, [row["reused"] for row in rows]),
        )  # fmt: skip
    return None
