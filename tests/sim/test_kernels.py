"""Whole kernels, as nvcc compiles them: data/tile.cu and data/paths.cu, ragged, in every order and landing."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from layoutgen.errors import SimError
from layoutgen.sim import GlobalMemory, Kernel, Options, Report, launch, parse, static_counts
from tests.sim.kernels import DATA

WAYS = [
    Options(async_landing="early"),
    Options(async_landing="late"),
    Options(async_landing="early", warp_order=1),
    Options(async_landing="late", warp_order=2),
    Options(async_landing="late", races=True),
    Options(async_landing="early", races=True, warp_order=3),
]


@cache
def text(name: str) -> str:
    return (DATA / name).read_text()


def tile(
    ptx: str, m: int, n: int, k: int, options: Options, alpha: float = 1.0, beta: float = 0.0
) -> tuple[np.ndarray, np.ndarray, Report]:
    """Runs the tile kernel on views into larger arrays of NaN; returns what it wrote and what float64 says."""
    rng = np.random.default_rng(m * 1000 + n * 10 + k)
    pitch = [-(-max(x, 1) // 4) * 4 + 4 for x in (m, n, n)]
    storage = [np.full((rows, p), np.nan, np.float32) for rows, p in zip((k + 1, k + 1, m), pitch, strict=True)]
    a, b = storage[0][:k, :m], storage[1][:k, :n]
    c = storage[2][:m, :n]
    a[...], b[...], c[...] = (rng.standard_normal(x.shape) for x in (a, b, c))
    want = alpha * (a.T.astype(np.float64) @ b)
    if beta:
        want += beta * c
    else:
        c[...] = np.nan
    memory = GlobalMemory()
    pa, pb, pc = memory.add(a, name="a"), memory.add(b, name="b"), memory.add(c, name="c", writable=True)
    grid = (-(-n // 32), -(-m // 32), 1)
    kernel = parse(ptx).kernels["tile"]
    report = launch(
        kernel,
        memory,
        grid,
        (64, 1, 1),
        [m, n, k, pa, pitch[0], pb, pitch[1], pc, pitch[2], alpha, beta],
        options=options,
    )
    outside = storage[2].copy()
    outside[:m, :n] = np.nan
    assert np.isnan(outside).all(), "something was written outside the view"
    return c, want, report


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("m, n, k", [(32, 32, 8), (33, 65, 19), (7, 3, 1), (64, 32, 0)])
def test_tile_is_right_however_copies_land_and_warps_run(m: int, n: int, k: int, options: Options) -> None:
    got, want, _ = tile(text("tile.ptx"), m, n, k, options)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def test_tile_adds_to_c() -> None:
    got, want, _ = tile(text("tile.ptx"), 40, 36, 24, Options(), alpha=-0.5, beta=2.0)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


def test_small_batches_and_large_ones_agree_to_the_bit() -> None:
    one, _, few = tile(text("tile.ptx"), 100, 70, 16, Options(batch_lanes=64))
    all_, _, many = tile(text("tile.ptx"), 100, 70, 16, Options(batch_lanes=1 << 16))
    assert one.tobytes() == all_.tobytes()
    assert few.executions == many.executions and few.by_class() == many.by_class()


def drop(ptx: str, pattern: str, which: int = 0) -> str:
    """PTX without the ``which``-th instruction that matches ``pattern``."""
    found = list(re.finditer(rf"\t{pattern}[^;]*;", ptx))
    at = found[which]
    return ptx[: at.start()] + ptx[at.end() :]


def is_right(ptx: str, options: Options) -> bool:
    got, want, _ = tile(ptx, 64, 64, 40, options)
    return bool(np.abs(got - want).max() < 1e-4)


ORDERS = (1, 2, 3)


def test_a_missing_wait_shows_when_copies_land_late() -> None:
    broken = drop(text("tile.ptx"), r"cp\.async\.wait_group")
    assert is_right(broken, Options(async_landing="early"))
    assert not is_right(broken, Options(async_landing="late"))


def test_a_wait_that_leaves_too_many_groups_shows_when_copies_land_late() -> None:
    broken = text("tile.ptx").replace("cp.async.wait_group 1", "cp.async.wait_group 2")
    assert is_right(broken, Options(async_landing="early")) and not is_right(broken, Options(async_landing="late"))


def test_a_missing_commit_shows_when_copies_land_late() -> None:
    broken = drop(text("tile.ptx"), r"cp\.async\.commit_group", 1)
    assert not is_right(broken, Options(async_landing="late"))


def test_a_missing_barrier_before_the_reads_shows_in_shuffled_order() -> None:
    broken = drop(text("tile.ptx"), r"bar\.sync", 0)
    assert is_right(broken, Options())  # in lockstep every warp has waited
    assert not all(is_right(broken, Options(warp_order=seed)) for seed in ORDERS)


def test_a_missing_barrier_after_the_reads_shows_when_copies_land_early_in_shuffled_order() -> None:
    broken = drop(text("tile.ptx"), r"bar\.sync", 1)
    assert not all(is_right(broken, Options(async_landing="early", warp_order=seed)) for seed in ORDERS)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("landing", ["early", "late"])
def test_a_missing_barrier_is_a_race(which: int, landing: str) -> None:
    broken = drop(text("tile.ptx"), r"bar\.sync", which)
    with pytest.raises(SimError, match=r"a barrier stands between[\s\S]*cp\.async[\s\S]*thread") as e:
        tile(broken, 64, 64, 40, Options(async_landing=landing, races=True))  # type: ignore[arg-type]
    assert "ld.shared" in str(e.value) and str(e.value).count("PTX line") == 2


def test_a_missing_wait_is_a_race_whenever_copies_land() -> None:
    broken = drop(text("tile.ptx"), r"cp\.async\.wait_group")
    with pytest.raises(SimError, match="still under way"):
        tile(broken, 32, 32, 16, Options(async_landing="early", races=True))


def test_counts_of_the_tile_kernel() -> None:
    """One block, 2 warps, 4 tiles in k: what the source says is what is counted."""
    kernel = parse(text("tile.ptx")).kernels["tile"]
    assert static_counts(kernel) == Counter(
        {("cp.async", 16): 4, ("ld.shared", 16): 16, ("ld.global", 4): 16, ("st.global", 4): 32}
    )
    _, _, report = tile(text("tile.ptx"), 32, 32, 32, Options())
    by_opcode = report.by_opcode()
    assert by_opcode["fma.rn.f32"] >= 2 * 4 * 8 * 16
    assert by_opcode["bar.sync"] == 2 * 4 * 2 and by_opcode["cp.async.wait_group"] == 2 * 4
    traffic = report.by_class()
    assert traffic["ld.shared", 16].requests == 2 * 4 * 16 and traffic["ld.shared", 16].bytes == 2 * 4 * 16 * 32 * 16
    # A's fragment: 4 addresses of 16 bytes per warp, each for 8 neighbours; B's: 8 addresses, for lanes 8 apart.
    assert traffic["ld.shared", 16].wavefronts == 2 * 4 * 8 * (2 + 4)
    copies = traffic["cp.async", 16]
    assert copies.requests == 2 * 5 * 2 and copies.bytes == 2 * 5 * 2 * 512
    # A and B are read once, in rows of 128 bytes 144 apart: every other one straddles five sectors.
    # The fifth tile reads nothing.
    assert copies.sectors == 2 * (16 * 4 + 16 * 5)
    assert copies.wavefronts > 16 * 4  # rows that start in a line's middle take more turns than whole lines do
    assert traffic["st.global", 4].requests == 2 * 16
    assert sum(report.executions) == report.warp_instructions == sum(by_opcode.values())


@pytest.mark.parametrize("rows, columns, group", [(16, 16, 1), (37, 53, 2), (100, 5, 8), (1, 1, 1)])
@pytest.mark.parametrize("order", ["lockstep", 4])
def test_transpose_through_registers(rows: int, columns: int, group: int, order: str | int) -> None:
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    y, half = np.zeros((columns, rows), np.float32), np.zeros((columns, rows), np.uint16)
    memory = GlobalMemory()
    params = [
        memory.add(x, name="x"),
        memory.add(y, writable=True, name="y"),
        memory.add(half, writable=True, name="half"),
    ]
    tiles = -(-rows // 16) * -(-columns // 16)
    kernel = parse(text("paths.ptx")).kernels["transpose"]
    options = Options(warp_order=order, races=True)  # type: ignore[arg-type]
    launch(kernel, memory, (tiles, 1, 1), (256, 1, 1), [*params, rows, columns, group], 17 * 16 * 4, options)
    assert (y == x.T).all() and (half.view(np.float16) == x.T.astype(np.float16)).all()


def local_kernel() -> Kernel:
    kernels = parse(text("paths.ptx")).kernels
    return next(k for name, k in kernels.items() if name == "local")


def test_local_arrays_narrow_loads_and_shuffles() -> None:
    n = 75
    data = np.random.default_rng(2).integers(0, 256, n).astype(np.uint8)
    out = np.zeros(n, np.int64)
    memory = GlobalMemory()
    launch(local_kernel(), memory, (3, 1, 1), (32, 1, 1), [memory.add(data), memory.add(out, writable=True), n])
    value = np.zeros(96, np.int64)
    for t in range(96):
        counts = [i * i for i in range(8)]
        for i in range(5):
            counts[data[(t + i) % n] % 8] += i
        value[t] = counts[data[t % n] % 8]
    sums = value.reshape(3, 32).sum(1).repeat(32)[:n]
    assert out.tolist() == [int(s) // 3 + int(b) * 0x100000001 for s, b in zip(sums, data, strict=True)]


def test_errors_name_the_source_line() -> None:
    kernel = parse(text("paths.ptx")).kernels["transpose"]
    x, y, half = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32), np.zeros((16, 16), np.uint16)
    memory = GlobalMemory()
    params = [memory.add(x, name="x"), memory.add(y, writable=True), memory.add(half, writable=True)]
    with pytest.raises(SimError) as e:
        launch(kernel, memory, (1, 1, 1), (256, 1, 1), [*params, 16, 17, 1], 17 * 16 * 4)
    source = (DATA / "paths.cu").read_text().splitlines()
    line = int(re.search(r"paths\.cu:(\d+)", str(e.value))[1])  # type: ignore[index]
    assert "x[(bm * 16 + i)" in source[line - 1]
    assert "buffer 'x' (1024 bytes), offset 1024" in str(e.value) and "block (0,0,0)" in str(e.value)


def matrices(ptx: str, m: int, n: int, k: int, options: Options) -> tuple[np.ndarray, np.ndarray, Report]:
    """Runs the tensor-core kernel on views into larger arrays; returns what it wrote and what float64 says."""
    rng = np.random.default_rng(m + n + k)
    a = np.full((m, k + 8), np.nan, np.float16)[:, :k]
    b = np.full((k, n + 8), np.nan, np.float16)[:, :n]
    c = np.full((m, n + 2), np.nan, np.float32)
    a[...], b[...] = (rng.standard_normal(x.shape) for x in (a, b))
    memory = GlobalMemory()
    addresses = [
        memory.add(a, name="a"), memory.add(b, name="b"), memory.add(c[:, :n], name="c", writable=True)
    ]  # fmt: skip
    arguments = [m, n, k, addresses[0], k + 8, addresses[1], n + 8, addresses[2], n + 2]
    grid = (-(-n // 64), -(-m // 64), 1)
    report = launch(parse(ptx).kernels["matrices"], memory, grid, (128, 1, 1), arguments, options=options)
    assert np.isnan(c[:, n:]).all(), "something was written outside the view"
    return c[:, :n], a.astype(np.float64) @ b.astype(np.float64), report


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (65, 72, 104), (3, 8, 8), (128, 64, 0)])
def test_tensor_cores_are_right_however_copies_land_and_warps_run(m: int, n: int, k: int, options: Options) -> None:
    got, want, _ = matrices(text("matrices.ptx"), m, n, k, options)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4)


def test_swizzled_rows_meet_no_bank_twice() -> None:
    _, _, report = matrices(text("matrices.ptx"), 128, 128, 64, Options())
    loads = report.by_class()["ldmatrix", 16]
    assert loads.wavefronts == 4 * loads.requests == 4 * (4 * 4 * 2 * 2 * 4)  # blocks, warps, k-tiles, k, a k's


WHAT_TENSOR_CORES_NEED = {
    r"bar\.sync \s*0;": "",
    r"cp\.async\.wait_group 1;": "cp.async.wait_group 2;",
    r"ldmatrix\.sync\.aligned\.m8n8\.x4\.trans": "ldmatrix.sync.aligned.m8n8.x4",
    r"commit_group;": "wait_group 7;",
}


@pytest.mark.parametrize("pattern", WHAT_TENSOR_CORES_NEED)
def test_without_what_it_needs_the_kernel_is_wrong(pattern: str) -> None:
    broken, count = re.subn(pattern, WHAT_TENSOR_CORES_NEED[pattern], text("matrices.ptx"))
    assert count
    caught = 0
    for options in WAYS:
        try:
            got, want, _ = matrices(broken, 65, 72, 104, options)
        except SimError:
            caught += 1
        else:
            caught += not np.allclose(got, want, rtol=0, atol=1e-4)
    assert caught
