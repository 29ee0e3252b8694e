"""How often composition is right: random pairs through ours, pycute and tensor-layouts, each result checked by values.

    python benchmarks/composition.py -o benchmarks/results/composition.json

The generator draws A with 1 to 3 modes and B with 1 or 2, extents from EXTENTS and strides from STRIDES, all evenly,
until it has the asked number of pairs in which B stays inside A's domain: every offset of B is below size(A). So many
pairs repeat strides, overlap, have modes of one element and extents that don't divide.

A result is right if it has the values A(B(i)) and a shape that refines B's. A pair is representable if such a layout
exists, which a search over the values decides without looking at strides. Two kinds of representable pair are counted
apart, "exempt", since the case file of the tests asks for an error (h226, h228) where CuTe C++ is wrong or refuses: a
mode of B that splits by stepping over the end of a mode of A, and a B of one element whose stride, inside A, divides no
mode of it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

import pycute
import tensor_layouts

from layoutgen.algebra import IntTuple, Layout, composition
from layoutgen.algebra.int_tuple import compatible, flatten
from layoutgen.errors import LayoutError

EXTENTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
STRIDES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48)


def pairs(count: int, seed: int) -> Iterator[tuple[Layout, Layout]]:
    """``count`` pairs (A, B) with B inside A's domain."""
    random = Random(seed)

    def draw(rank: int) -> Layout:
        return Layout(tuple(random.choices(EXTENTS, k=rank)), tuple(random.choices(STRIDES, k=rank)))

    while count:
        a, b = draw(random.randint(1, 3)), draw(random.randint(1, 2))
        if b.cosize <= a.size:
            count -= 1
            yield a, b


def values_of(shape: IntTuple, stride: IntTuple) -> list[int]:
    """The offsets of every index, by the definition."""
    result = [0]
    for n, d in zip(flatten(shape), flatten(stride), strict=True):
        result = [outer * d + inner for outer in range(n) for inner in result]
    return result


def modes_of(offsets: list[int]) -> list[tuple[int, int]] | None:
    """The coalesced modes (extent, stride) of the layout with these offsets; None if there is no such layout.

    Its first mode is the longest linear run, and so on: that leaves no choice.
    """
    modes = []
    while len(offsets) > 1:
        run = 2
        while run < len(offsets) and offsets[run] == run * offsets[1]:
            run += 1
        if len(offsets) % run:
            return None
        blocks = offsets[::run]
        if offsets != [block + inner for block in blocks for inner in offsets[:run]]:
            return None
        modes.append((run, offsets[1]))
        offsets = blocks
    return modes


def classify(a: Layout, b: Layout) -> str:
    """Whether A o B is a layout whose shape refines B's: "none", "exempt" (see above), or "representable"."""
    outer = values_of(a.shape, a.stride)
    wanted = [outer[index] for index in values_of(b.shape, b.stride)]
    leaves = []
    total = [0]
    for n, d in zip(b.flat_shape, b.flat_stride, strict=True):
        own = modes_of([outer[i * d] for i in range(n)]) if (n - 1) * d < len(outer) else None
        if own is None:
            return "none"
        total = [step + inner for step in values_of(*_layout(own)) for inner in total]
        leaves.append((d, own))
    if total != wanted:
        return "none"
    extents = merged_extents(a)
    if b.size == 1:
        exempt = any(d < a.size and not divides_up(d, extents) for d, _ in leaves)
    else:
        exempt = any(steps_over(d, modes, extents) for d, modes in leaves)
    return "exempt" if exempt else "representable"


def _layout(modes: list[tuple[int, int]]) -> tuple[IntTuple, IntTuple]:
    return tuple(n for n, _ in modes), tuple(d for _, d in modes)


def steps_over(d: int, modes: list[tuple[int, int]], extents: list[int]) -> bool:
    """Whether a leaf with these modes, a step of ``d``, splits where it steps over the end of a mode of A."""
    for n, _ in modes[:-1]:
        rest = d
        for extent in extents[:-1]:
            rest, digit = divmod(rest, extent)
            if n * digit > extent:
                return True
        d *= n
    return False


def divides_up(d: int, extents: list[int]) -> bool:
    """Whether ``d`` is a multiple of A's extents in turn, as far as it reaches."""
    for extent in extents[:-1]:
        if d >= extent and d % extent:
            return False
        d = -(-d // extent)
    return True


def merged_extents(layout: Layout) -> list[int]:
    """The extents of the modes left when neighbours merge; the last is open-ended, so that an extent of 1 counts."""
    modes: list[tuple[int, int]] = []
    last = len(layout.flat_shape) - 1
    for position, (n, d) in enumerate(zip(layout.flat_shape, layout.flat_stride, strict=True)):
        extent = max(n, 2) if position == last else n
        if modes and modes[-1][0] * modes[-1][1] == d:
            modes[-1] = (modes[-1][0] * extent, modes[-1][1])
        elif extent > 1:
            modes.append((extent, d))
    return [n for n, _ in modes]


def verdict(compose: Callable[[Layout, Layout], Any], a: Layout, b: Layout, wanted: list[int]) -> str:
    """Whether a library's composition is right, wrong or refused."""
    try:
        result = compose(a, b)
        right = values_of(result.shape, result.stride) == wanted and compatible(b.shape, result.shape)
    except (LayoutError, AssertionError, ZeroDivisionError, ValueError, TypeError):
        return "refused"
    return "right" if right else "wrong"


PEERS: dict[str, Callable[[Layout, Layout], Any]] = {
    "layoutgen": composition,
    "pycute": lambda a, b: pycute.composition(pycute.Layout(a.shape, a.stride), pycute.Layout(b.shape, b.stride)),
    "tensor-layouts": lambda a, b: tensor_layouts.compose(
        tensor_layouts.Layout(a.shape, a.stride), tensor_layouts.Layout(b.shape, b.stride)
    ),
}


def measure(count: int, seed: int) -> dict[str, Any]:
    """Counts of each library's verdicts for each class of pair."""
    classes: Counter[str] = Counter()
    counts = {library: Counter[str]() for library in PEERS}
    for a, b in pairs(count, seed):
        kind = classify(a, b)
        classes[kind] += 1
        outer = values_of(a.shape, a.stride)
        wanted = [outer[index] for index in values_of(b.shape, b.stride)]
        for library, compose in PEERS.items():
            counts[library][f"{kind}: {verdict(compose, a, b, wanted)}"] += 1
    return {"pairs": count, "seed": seed, "classes": dict(classes), "verdicts": {k: dict(v) for k, v in counts.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=2603)
    options = parser.parse_args()
    started = time.monotonic()
    report = measure(options.pairs, options.seed)
    report["versions"] = {name: version(name) for name in ("nvidia-cutlass", "tensor-layouts")}
    print(f"{options.pairs} pairs with B inside A's domain: {report['classes']}")
    for library, verdicts in report["verdicts"].items():
        total = Counter[str]()
        for key, n in verdicts.items():
            total[key.partition(": ")[2]] += n
        print(f"{library:16} {dict(total)}\n{'':16} {dict(sorted(verdicts.items()))}")
    print(f"{time.monotonic() - started:.0f} s")
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
