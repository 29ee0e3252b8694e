"""The specs that come with layoutgen say what the kernels they restate compute.

The index arithmetic here is read off the kernels themselves: Boehm's 10_kernel_warptiling.cuh (settings for the A6000)
and Salykov's 128x128x8.cuh and 128x256x8.cuh. Each test walks all threads and compares. Copies are
ours where the specs' comments say so.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from layoutgen.algebra import Layout
from layoutgen.plan import plan
from layoutgen.spec import Copy, Spec, load, loads

SPECS = Path(__file__).resolve().parents[2] / "specs"
SALYKOV = ("salykov_128x128x8", "salykov_128x256x8")


def spec_of(name: str) -> Spec:
    return load(SPECS / f"{name}.yaml")


def at(layout: Layout, i: int, j: int) -> int:
    """The offset of index i in mode 0 and index j in mode 1."""
    return layout[0](i) + layout[1](j)


def copied(copy: Copy | None, rows: int) -> dict[int, list[list[tuple[int, int]]]]:
    """thread -> per step, the (row, k) of each of its words, steps tiling `rows` x 8."""
    assert copy is not None and copy.threads is not None and copy.values is not None
    value_m, value_k = copy.values
    assert value_k.size == 1
    (threads_m, threads_k), run = (copy.threads[0].size, copy.threads[1].size), value_m.stride == 1
    step_m = threads_m * value_m.size
    moved: dict[int, list[list[tuple[int, int]]]] = {}
    for m, k in product(range(threads_m), range(threads_k)):
        first = m * value_m.size if run else m  # what the values leave over: blocks of a run, or what lies between
        words = [first + value_m(v) for v in range(value_m.size)]
        moved[at(copy.threads, m, k)] = [
            [(m0 + word, k0 + k) for word in words]
            for m0, k0 in product(range(0, rows, step_m), range(0, 8, threads_k))
        ]
    return moved


@pytest.mark.parametrize("path", sorted(SPECS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_spec_loads_and_round_trips(path: Path) -> None:
    spec = load(path)
    assert loads(spec.to_yaml()) == spec
    assert spec.where("tiling.lanes").line is not None


def test_warptile_is_boehms_kernel_10() -> None:
    spec = spec_of("warptile_128x128")
    assert spec.tiling.block == (128, 128, 16)
    assert spec.tiling.warp == (Layout(64, 1), Layout(64, 1))
    assert spec.tiling.values == (Layout(8, 1), Layout(4, 1))  # TM, TN
    columns = 16 // 4  # WSUBN / TN, with WSUBN = WN / WNITER = 64 / 4
    for lane in range(32):
        assert at(spec.tiling.lanes, lane // columns, lane % columns) == lane
    for warp in range(4):
        assert at(spec.tiling.warps, warp // 2, warp % 2) == warp
    assert spec.tiling.warps.size * spec.tiling.lanes.size == 128


@pytest.mark.parametrize("name", SALYKOV)
def test_lanes_of_salykovs_warps(name: str) -> None:
    lanes = spec_of(name).tiling.lanes
    for lane in range(32):
        mapped_x, mapped_y = 2 * (lane // 8) + lane % 2, lane // 2 % 4
        assert at(lanes, mapped_y, mapped_x) == lane


@pytest.mark.parametrize(
    ("name", "block", "warp", "columns", "pieces_m"),
    [
        ("salykov_128x128x8", (128, 128, 8), (32, 64), 2, [0, 16]),
        ("salykov_128x256x8", (128, 256, 8), (64, 64), 4, [0, 16, 32, 48]),
    ],
)
def test_tiles_of_salykovs_kernels(
    name: str, block: tuple[int, int, int], warp: tuple[int, int], columns: int, pieces_m: list[int]
) -> None:
    tiling = spec_of(name).tiling
    assert tiling.block == block
    assert tiling.warp == (Layout(warp[0], 1), Layout(warp[1], 1))
    for index in range(8):
        assert at(tiling.warps, index // columns, index % columns) == index
    value_m, value_n = tiling.values
    assert [value_m(v) for v in range(value_m.size)] == [piece + i for piece in pieces_m for i in range(4)]
    assert [value_n(v) for v in range(value_n.size)] == [piece + i for piece in [0, 32] for i in range(4)]
    # Lanes stand 4 apart in each mode, and with the values fill the warp tile.
    assert value_m.size * tiling.lanes[0].size == warp[0] and value_n.size * tiling.lanes[1].size == warp[1]


@pytest.mark.parametrize(("name", "row_b"), [("salykov_128x128x8", 128), ("salykov_128x256x8", 256)])
def test_shared_memory_of_salykovs_kernels(name: str, row_b: int) -> None:
    shared = spec_of(name).shared
    assert shared.a is not None and shared.b is not None
    for k in range(8):
        assert at(shared.a, 5, k) == 5 + k * 132
        assert at(shared.b, 5, k) == 5 + k * row_b


def test_copies_of_salykovs_larger_kernel() -> None:
    """A's are his, a word at a time; the rest is ours: B by 16 bytes, and a third stage."""
    spec = spec_of("salykov_128x256x8")
    a = copied(spec.copies.a, 128)
    assert a.keys() == set(range(256))
    for thread in range(256):
        assert a[thread] == [[(thread // 8 + 32 * i, thread % 8)] for i in range(4)]
    assert spec.shared.stages == 3 and plan(spec)[0].in_shared("b").copy.write.bytes == 16


def test_copies_of_salykovs_smaller_kernel_are_ours() -> None:
    """Through registers, as his; but a thread loads 16 bytes at a time of A and of B, where his loads four words."""
    spec = spec_of("salykov_128x128x8")
    copies = [operand.copy for operand in plan(spec)[0].shared_operands]
    assert spec.shared.stages == 2 and [copy.atom.name for copy in copies] == ["ldg.sts", "ldg.sts"]
    assert [(copy.read_vector, copy.read_mode, copy.participants) for copy in copies] == [(4, "k", 256), (4, "x", 256)]


def test_launch_bounds_of_salykovs_kernels() -> None:
    assert [spec_of(name).schedule.min_blocks for name in SALYKOV] == [2, 1]
