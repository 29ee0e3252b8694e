"""Specs at random, as text: a mode of the tile is a row of digits, each of them a value, a lane or a repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from hypothesis import strategies as st

from layoutgen.algebra.int_tuple import prime_factors
from layoutgen.spec import Spec, loads

Choose = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Draft:
    """The text of each field of a spec."""

    name: str = "draft"
    block: tuple[int, int, int] = (64, 64, 8)
    warps: str = "(2,2):(2,1)"
    lanes: str = "(8,4):(4,1)"
    values: tuple[str, str] = ("4", "4")
    warp: tuple[str, str] | None = None
    order: str = "m"
    contiguous: tuple[str, str] = ("k", "n")
    shared_a: str | None = None
    shared_b: str | None = None
    stages: int = 2
    copy_a: str | None = None
    copy_b: str | None = None
    spread: tuple[int, int] | None = None
    kind: str | None = None
    raster: str = "along_m"
    group: int = 1
    min_blocks: int = 1
    arch: str = "sm_80"
    atom: str | None = None
    dtypes: tuple[str, str, str] = ("f32", "f32", "f32")
    epilogue: tuple[str, ...] = ()
    split: str | None = None

    def text(self) -> str:
        of_ab, of_c, accumulate = self.dtypes
        own = (f"  lanes: {self.lanes}", f"  values: <{', '.join(self.values)}>")
        lines = [
            f"name: {self.name}",
            "about: a spec for tests",
            f"arch: {self.arch}",
            f"operands: {{a: {{dtype: {of_ab}, contiguous: {self.contiguous[0]}}}, b: {{dtype: {of_ab}, contiguous: "
            f"{self.contiguous[1]}}}, c: {{dtype: {of_c}}}, accumulate: {accumulate}}}",
            "tiling:",
            f"  block: {list(self.block)}",
            *([f"  warp: <{', '.join(self.warp)}>"] if self.warp else []),
            f"  warps: {self.warps}",
            *(own if self.atom is None else (f"  atom: {self.atom}",)),
            *([f"  split: {self.split}"] if self.split else []),
            f"  order: {self.order}",
            "shared:",
            *([f"  a: {self.shared_a}"] if self.shared_a else []),
            *([f"  b: {self.shared_b}"] if self.shared_b else []),
            f"  stages: {self.stages}",
        ]
        copies = [f"  {name}: {copy}" for name, copy in (("a", self.copy_a), ("b", self.copy_b)) if copy]
        copies += [f"  spread: {list(self.spread)}"] if self.spread else []
        lines += ["copies:", *copies] if copies else []
        kind = "" if self.kind is None else f"kind: {self.kind}, "
        lines.append(f"schedule: {{{kind}raster: {self.raster}, group: {self.group}, min_blocks: {self.min_blocks}}}")
        lines += ["epilogue:", *(f"  - {step}" for step in self.epilogue)] if self.epilogue else []
        return "\n".join(lines) + "\n"

    def spec(self) -> Spec:
        return loads(self.text(), "draft.yaml")


def _show(digits: Sequence[tuple[int, int]]) -> str:
    """(extent, stride) digits -> shape:stride, leftmost fastest."""
    if not digits:
        return "1:0"
    if len(digits) == 1:
        return f"{digits[0][0]}:{digits[0][1]}"
    return f"({','.join(str(n) for n, _ in digits)}):({','.join(str(d) for _, d in digits)})"


def _pair(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> str:
    """Two modes as one layout."""
    one, two = (_show(digits).split(":") for digits in (first, second))
    return f"({one[0]},{two[0]}):({one[1]},{two[1]})"


def _shuffled(choose: Choose, items: Sequence[Any]) -> list[Any]:
    rest, order = list(items), []
    while rest:
        order.append(rest.pop(choose(range(len(rest)))))
    return order


def _numbering(choose: Choose, factors: Sequence[int]) -> tuple[str, tuple[int, int]]:
    """Factors, each given to m or n, numbered in a random order of strides -> the layout, and its sizes."""
    stride, digits = 1, []
    for factor in _shuffled(choose, factors):
        digits.append((factor, stride))
        stride *= factor
    along: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for digit in _shuffled(choose, digits):
        along[choose((0, 1))].append(digit)
    return _pair(*along), (prod(n for n, _ in along[0]), prod(n for n, _ in along[1]))


def _values(choose: Choose, lanes: int, most: int) -> tuple[str, int, list[int]]:
    """One mode of a warp tile -> the values, the tile's size, and where it can be cut."""
    kinds = [("lane", factor) for factor in prime_factors(lanes)]
    size, own = 1, 0
    while choose((True, True, False)) and own < 3:
        extent = choose((2, 2, 4, 4, 3))
        if size * extent > most:
            break
        kinds.insert(choose(range(len(kinds) + 1)), ("value", extent))
        size, own = size * extent, own + 1
    repeat = choose((1, 1, 1, 2, 3))
    if size * repeat <= most and repeat > 1:
        kinds.append(("repeat", repeat))
    stride, cuts, mine = 1, [], []
    for kind, extent in kinds:
        if kind == "value":
            mine.append((extent, stride))
        stride *= extent
        cuts.append(stride)
    text = _show(_shuffled(choose, mine) if choose((True, False)) else mine)
    if len(mine) == 1 and mine[0][1] == 1 and choose((True, False)):
        text = str(mine[0][0])
    return text, stride, cuts


def _warp_tile(choose: Choose, size: int, warps: int, cuts: list[int]) -> tuple[str | None, int]:
    """-> the warp tile's text and the block's extent: whole, or in two pieces with the other warps in between."""
    kind = choose(("default", "run", "pieces", "repeat"))
    if kind == "default":
        return None, size * warps
    cut = choose([cut for cut in cuts if cut < size] or [size])
    if kind == "pieces" and cut < size and warps > 1:
        return f"({cut},{size // cut}):(1,{cut * warps})", size * warps
    return str(size), size * warps * (2 if kind == "repeat" else 1)


def _copy(choose: Choose, extent: int, block_k: int, threads: int, stages: int) -> str | None:
    """A copy: the planner's, or some divisors of the tile as threads and values; without stages, of values alone."""
    if stages == 0:
        return choose((None, "{atom: ldg}", "{atom: ldg, values: [1, 1]}", "{atom: ldg, values: [1, 2]}"))  # type: ignore[no-any-return]
    atom = choose(("cp.async", "cp.async", "ldg.sts"))
    kind = choose(("none", "atom", "threads", "values", "both", "both"))
    if kind == "none":
        return None

    def divisor(number: int, most: int) -> int:
        return int(choose([d for d in range(1, number + 1) if number % d == 0 and d <= most][-6:]))

    run_x, run_k = divisor(extent, 4), divisor(block_k, 4)
    along_x = divisor(extent // run_x, threads)
    along_k = divisor(block_k // run_k, threads // along_x)
    values = f"values: [{run_x}, {run_k}]"
    if choose((True, False, False)) and along_x > 1:
        values = f"values: <{run_x}:{along_x}, {run_k}>"  # the other threads' elements lie between
    layout = f"({along_x},{along_k}):" + choose((f"(1,{along_x})", f"({along_k},1)"))
    fields = [f"atom: {atom}"]
    fields += [f"threads: {layout}"] if kind in ("threads", "both") else []
    fields += [values] if kind in ("values", "both") else []
    return "{" + ", ".join(fields) + "}"


def _shared(choose: Choose, extent: int, block_k: int) -> str | None:
    kind = choose(("default", "x", "x", "k", "blocked", "wide"))
    pad = choose((0, 1, 2, 4, 8))
    if kind == "default":
        return None
    if kind == "x":
        return f"({extent},{block_k}):(1,{extent + pad})"
    if kind == "k":
        return f"({extent},{block_k}):({block_k + pad},1)"
    if kind == "blocked" and extent % 4 == 0:
        return f"((4,{extent // 4}),{block_k}):((1,{4 * block_k + pad}),4)"
    return f"({extent},{block_k}):(2,{2 * extent + pad})"


def _order(choose: Choose, rows: int, columns: int) -> str:
    """A thread's values in some order: the factors of both modes, shuffled, some of them in a mode of their own."""
    digits = _shuffled(choose, _digits(rows, 1) + _digits(columns, rows))
    cut = choose(range(len(digits) + 1))
    return choose(("", "serpentine ")) + _pair(digits[:cut], digits[cut:])


def _digits(number: int, stride: int) -> list[tuple[int, int]]:
    found = []
    for factor in prime_factors(number):
        found.append((factor, stride))
        stride *= factor
    return found


def draft(choose: Choose) -> Draft:
    """A spec whose levels compose to a cover of C; its copies and shared memory may be refused."""
    lanes, lane_counts = _numbering(choose, [2] * 5)
    warps, warp_counts = _numbering(choose, choose(([], [2], [2, 2], [2, 2, 2], [3], [2, 3])))
    values, warp, extents = [], [], []
    for mode in (0, 1):
        text, size, cuts = _values(choose, lane_counts[mode], most=16 if mode == 0 else 8)
        tile, extent = _warp_tile(choose, size, warp_counts[mode], cuts)
        values.append(text)
        warp.append(tile or str(size))
        extents.append(extent)
    block_k = choose((1, 2, 3, 4, 5, 8, 8, 16))
    threads = 32 * prod(warp_counts)
    stages = choose((0, 1, 2, 2, 3, 4, 8))
    first = choose(range(block_k))
    words = Draft(
        block=(extents[0], extents[1], block_k),
        warps=warps,
        lanes=lanes,
        values=(values[0], values[1]),
        warp=(warp[0], warp[1]) if warp != [str(e // w) for e, w in zip(extents, warp_counts, strict=True)] else None,
        order=choose(("m", "n", "serpentine_m", "serpentine_n")),
        contiguous=(choose(("m", "k")), choose(("n", "k"))),
        shared_a=_shared(choose, extents[0], block_k) if stages else None,
        shared_b=_shared(choose, extents[1], block_k) if stages else None,
        stages=stages,
        copy_a=_copy(choose, extents[0], block_k, threads, stages),
        copy_b=_copy(choose, extents[1], block_k, threads, stages),
        spread=choose((None, None, (first, choose(range(first + 1, block_k + 1))))) if stages > 1 else None,
        raster=choose(("along_m", "along_n")),
        group=choose((1, 3, 8, 1 << 20)),
    )
    own = [extents[mode] // (lane_counts[mode] * warp_counts[mode]) for mode in (0, 1)]
    return choose((*7 * [words], replace(words, order=_order(choose, *own))))


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """`draft`, so that a failure shrinks."""
    return draft(lambda options: draw(st.sampled_from(options)))


def of_spec(spec: Spec) -> Draft:
    """A spec that was read from a file, as a draft."""

    def pair(tile: Any) -> tuple[str, str]:
        return str(tile[0]), str(tile[1])

    def copy(given: Any) -> str | None:
        if given is None:
            return None
        fields = [f"atom: {given.atom}"]
        fields += [f"threads: {given.threads}"] if given.threads else []
        fields += [f"values: <{', '.join(pair(given.values))}>"] if given.values else []
        return "{" + ", ".join(fields) + "}"

    tiling = spec.tiling
    return Draft(
        block=tiling.block,
        warps=str(tiling.warps),
        lanes=str(tiling.lanes),
        values=pair(tiling.values),
        warp=pair(tiling.warp) if tiling.warp else None,
        order=str(tiling.order),
        contiguous=(spec.operands.a.contiguous, spec.operands.b.contiguous),
        shared_a=str(spec.shared.a) if spec.shared.a else None,
        shared_b=str(spec.shared.b) if spec.shared.b else None,
        stages=spec.shared.stages,
        copy_a=copy(spec.copies.a),
        copy_b=copy(spec.copies.b),
        spread=spec.copies.spread,
        raster=spec.schedule.raster,
        group=spec.schedule.group,
        min_blocks=spec.schedule.min_blocks,
        arch=spec.arch,
    )
