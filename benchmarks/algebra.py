"""Time the layout algebra beside pycute and tensor-layouts: one workload, one process, compared before it is timed.

    python benchmarks/algebra.py -o benchmarks/results/algebra.json

Each operation runs on the inputs in WORKLOAD. All libraries must give the same function (the same offsets of every
index) before anything is timed. A time is the least of many short rounds, in which the libraries take turns, so that
other processes on the machine disturb all of them alike. No library answers from a memo of the same call; none has one.
The last column asks each of our results for its nested stride as well, which it builds when first asked.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import timeit
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pycute
import tensor_layouts

from layoutgen import algebra

ROUND_S = 0.002
READ = "layoutgen, stride read"  # our layouts nest their strides when first asked; this asks each result
LIBRARIES = ("layoutgen", READ, "pycute", "tensor-layouts")
PEERS = LIBRARIES[2:]
Arguments = tuple[Any, ...]

# SM80 m16n8k16 accumulators of 2x2 warps over a 128x128 tile: (thread, value) -> index into the tile.
THREADS = (((4, 8), (2, 2)), ((256, 1), (16, 1024)))
VALUES = (((2, 2), (4, 8)), ((128, 8), (32, 2048)))
TILE_128 = ((THREADS[0], VALUES[0]), (THREADS[1], VALUES[1]))
TILE_256 = ((((4, 8), (4, 2)), ((2, 2), (4, 8))), (((512, 1), (16, 2048)), ((256, 8), (64, 4096))))

COPY_128 = (((8, 16), ((4, 2), (2, 4))), ((16, 1), ((512, 2048), (128, 4096))))

# A tuple ((shape), (stride)) stands for a layout; anything else is passed on as it is.
DIVIDED: list[Arguments] = [
    (((128, 128), (128, 1)), (32, 16)),
    (((128, (8, 16)), (8, (1, 1024))), (64, 8)),
    (((16, 64, 4), (64, 1, 1024)), (8, 32)),
]
WORKLOAD: dict[str, list[Arguments]] = {
    "coalesce, rank 8": [
        (((2, 4, 2, 8, 1, 2, 4, 2), (1, 2, 8, 16, 5, 256, 512, 2048)),),
        (((2, 1, 4, 2, 3, 8, 2, 2), (4, 0, 8, 1, 2, 6, 48, 128)),),
        (((2, 2, 2, 2, 2, 2, 2, 2), (128, 64, 32, 16, 8, 4, 2, 1)),),
    ],
    "coalesce, 8 leaves in thread-value form": [(TILE_128,), (TILE_256,)],
    "composition": [
        (((128, 128), (128, 1)), TILE_128),
        (((128, 128), (1, 136)), TILE_128),
        (((128, (8, 16)), (8, (1, 1024))), TILE_128),
    ],
    "complement": [((THREADS[0], THREADS[1]), 16384), ((VALUES[0], VALUES[1]), 16384), (((4, 8), (8, 64)), 1024)],
    "logical_divide": DIVIDED,
    "zipped_divide": DIVIDED,
    "right_inverse": [(TILE_128,), (TILE_256,), (((8, 32, 4), (32, 1, 256)),)],
}
CONSTRUCT = {
    "construct, thread-value shapes": [(TILE_128[0],), (TILE_256[0],), (COPY_128[0],)],
    "construct, flat shapes": [((128, 128),), ((16, 64, 4),), ((2, 3, 4, 5),)],
    "construct, shapes and strides": [TILE_128, COPY_128, ((16, 64, 4), (64, 1, 1024))],
}


def is_layout(argument: Any) -> bool:
    """Whether an argument of WORKLOAD stands for a layout: shape and stride, congruent; tilers hold ints alone."""
    return isinstance(argument, tuple) and isinstance(argument[0], tuple)


def layout_class(library: str) -> Any:
    module: Any = module_of(library)
    return module.Layout


def module_of(library: str) -> Any:
    return {"pycute": pycute, "tensor-layouts": tensor_layouts}.get(library, algebra)


def function(library: str, name: str) -> Callable[..., Any]:
    if library == "tensor-layouts" and name == "composition":
        name = "compose"
    found: Callable[..., Any] = getattr(module_of(library), name)
    return found


def values(layout: Any) -> list[int]:
    """Offsets of every index, by the definition and not by any library's evaluation."""

    def leaves(t: Any) -> list[int]:
        return [leaf for mode in t for leaf in leaves(mode)] if isinstance(t, tuple) else [t]

    result = [0]
    for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        result = [outer * d + inner for outer in range(n) for inner in result]
    return result


def runs(name: str, library: str) -> tuple[Callable[[], Any], Callable[[], list[Any]]]:
    """A call that runs the whole of the operation's workload, and one that gives its results."""
    make = layout_class(library)
    if name in CONSTRUCT:
        given = CONSTRUCT[name]
        if library == READ:
            return lambda: [make(*a).stride for a in given], lambda: [values(make(*a)) for a in given]
        return lambda: [make(*a) for a in given], lambda: [values(make(*a)) for a in given]
    if name == "offsets of a 128x128 thread-value layout":
        layout = make(*TILE_128)
        if library in ("layoutgen", READ):
            return layout.offsets, lambda: layout.offsets().tolist()
        return lambda: [layout(i) for i in range(16384)], lambda: [layout(i) for i in range(16384)]
    operation = function(library, name.partition(",")[0])
    inputs = [tuple(make(*a) if is_layout(a) else a for a in arguments) for arguments in WORKLOAD[name]]
    if library == READ:
        return lambda: [operation(*a).stride for a in inputs], lambda: [values(operation(*a)) for a in inputs]
    return lambda: [operation(*a) for a in inputs], lambda: [values(operation(*a)) for a in inputs]


def least_seconds(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least time of one call of each, over short rounds in which they take turns until the seconds are spent."""
    counts = {library: max(1, int(ROUND_S / timeit.timeit(call, number=1))) for library, call in calls.items()}
    least = dict.fromkeys(calls, float("inf"))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for library, call in calls.items():
            least[library] = min(least[library], timeit.timeit(call, number=counts[library]) / counts[library])
    return least


def cpu_model() -> str:
    """The processor's name, as the operating system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def measure(spent_s: float) -> dict[str, Any]:
    """Microseconds per workload for each library, and how many times faster ours is."""
    rows: dict[str, Any] = {}
    names = [*CONSTRUCT, *WORKLOAD, "offsets of a 128x128 thread-value layout"]
    for name in names:
        prepared = {library: runs(name, library) for library in LIBRARIES}
        expected = prepared["pycute"][1]()
        for library, (_, results) in prepared.items():
            if results() != expected:
                raise SystemExit(f"{name}: {library} and pycute disagree")
        seconds = least_seconds({library: call for library, (call, _) in prepared.items()}, spent_s)
        rows[name] = {
            "us": {library: round(s * 1e6, 2) for library, s in seconds.items()},
            "times_faster_than": {peer: round(seconds[peer] / seconds["layoutgen"], 2) for peer in PEERS},
            "stride_read_times_faster_than": {peer: round(seconds[peer] / seconds[READ], 2) for peer in PEERS},
        }
    tile = algebra.Layout(*TILE_256)
    if not algebra.covers_exactly_once(tile, (256, 128)):
        raise SystemExit("the thread-value layout does not cover its tile")
    proof = least_seconds({"layoutgen": lambda: algebra.covers_exactly_once(tile, (256, 128))}, spent_s)
    return {"operations": rows, "exact_cover_of_256x128_ms": round(proof["layoutgen"] * 1e3, 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--seconds", type=float, default=3, help="how long to measure each operation")
    options = parser.parse_args()
    report = {
        "machine": cpu_model(),
        "python": sys.version.split()[0],
        "versions": {"nvidia-cutlass": version("nvidia-cutlass"), "tensor-layouts": version("tensor-layouts")},
        **measure(options.seconds),
    }
    print(f"{report['machine']}, Python {report['python']}; microseconds for the workload of each operation\n")
    print(f"{'':46}{'ours':>10}{'pycute':>12}{'tensor-l.':>12}{'/pycute':>9}{'/tensor-l.':>11}{'read/pycute':>13}")
    for name, row in report["operations"].items():
        us, ratio = row["us"], row["times_faster_than"]
        print(
            f"{name:46}{us['layoutgen']:10.2f}{us['pycute']:12.2f}{us['tensor-layouts']:12.2f}"
            f"{ratio['pycute']:9.2f}{ratio['tensor-layouts']:11.2f}"
            f"{row['stride_read_times_faster_than']['pycute']:13.2f}"
        )
    print(f"{'exact cover of a 256x128 tile':46}{report['exact_cover_of_256x128_ms'] * 1e3:10.2f}")
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
