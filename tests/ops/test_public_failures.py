"""Failures of other GEMM systems (tests/data/gemm.jsonl), each with what is right: tested here, tested elsewhere, or
waiting for the feature it is about.
"""

from __future__ import annotations

import ast
import json
import math
import mmap
from pathlib import Path

import numpy as np
import pytest
import torch

import layoutgen
from layoutgen import paths, run, sim
from layoutgen.algebra import Layout, zipped_divide
from layoutgen.build import artifact_key
from layoutgen.errors import LayoutError, OperandError
from layoutgen.ops import Operator
from layoutgen.plan import plan
from layoutgen.problem import Problem, View
from layoutgen.spec import load as load_spec
from tests.ops.operands import CANARY, assert_near, assert_untouched, only, reference, uniform

ROOT = Path(__file__).resolve().parents[2]
CASES = [json.loads(line) for line in (ROOT / "tests/data/gemm.jsonl").read_text(encoding="utf-8").splitlines()]
NAN = float("nan")

# id -> the tests, by file and name, that show the right behaviour where it belongs
GPU = "tests/gpu/test_gpu_operator.py"
ELSEWHERE = {
    "jit-race-shared": ("tests/build/test_store.py", "test_eight_processes_on_a_cold_cache_compile_once"),
    "jit-rename-nfs": ("tests/build/test_store.py", "test_the_loser_of_a_rename_takes_the_winners"),
    "jit-stale-lock": ("tests/build/test_store.py", "test_a_killed_builder_holds_nobody_up"),
    "compile_kernel-scalars": ("tests/build/test_driver.py", "test_every_type_arrives_as_itself"),
    "cccl-header-skew": ("tests/build/test_tools.py", "test_headers_of_another_release_are_refused"),
    "current-stream": (GPU, "test_a_call_follows_what_its_stream_has_done"),
    "graph-module-load": (GPU, "test_a_first_call_inside_a_capture_is_refused_and_breaks_nothing"),
    "graph-module-unload": (GPU, "test_an_operator_dropped_inside_a_capture_leaves_its_kernel"),
    "compile-padding": (GPU, "test_compiled_with_padded_products"),
}

# id -> the feature whose tests will hold the case
WAITING = {
    "k0-grouped-garbage": "grouped GEMM",
    "k0-tma-desc": "TMA and grouped GEMM",
    "n768-illegal-instr": "fp8 and grouped GEMM",
    "small-m-masked": "fp8 and grouped GEMM",
    "unsupported-mma-n": "tensor cores (wgmma)",
    "int32-batch-stride": "batched GEMM",
    "splitk-uninit": "split-K",
    "splitk-workspace-skipped": "split-K",
    "streamk-hang": "stream-K",
    "streamk-ws-device": "stream-K",
    "graph-autotune": "the tuner",
    "tune-key-extras": "the tuner",
    "sm90-grid-132": "clusters and persistent kernels",
}


@pytest.fixture(scope="module")
def op() -> Operator:
    return layoutgen.load("warptile_128x128")


@pytest.fixture
def random() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_every_case_is_tested_or_waits_for_its_feature() -> None:
    here = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    ids = [case["id"] for case in CASES]
    tested = {each for each in ids if each.replace("-", "_") in here}
    assert len(ids) == len(set(ids))
    assert sorted([*tested, *ELSEWHERE, *WAITING]) == sorted(ids)  # each in one place
    for file, name in ELSEWHERE.values():
        functions = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
        assert name in {each.name for each in functions if isinstance(each, ast.FunctionDef)}, (file, name)


# --- empty problems --------------------------------------------------------------------------------------------------


def test_k0_multistage_oob(op: Operator) -> None:
    a, b = torch.empty(128, 0), torch.empty(0, 128)  # nothing to read: in the simulator any read is an error
    assert torch.equal(op(a, b, out=torch.full((128, 128), NAN)), torch.zeros(128, 128))


def test_k0_seed_sgemm() -> None:
    op = layoutgen.load("salykov_128x128x8")
    a, b, c = torch.empty(0).view(128, 0), torch.empty(0).view(0, 128), torch.ones(128, 128)
    assert torch.equal(op(a, b), torch.zeros(128, 128))
    assert torch.equal(op(a, b, c, 1.0, 0.5), torch.full((128, 128), 0.5))


def test_m0_n0_divzero(op: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layoutgen.run.simulate", lambda *_: pytest.fail("a launch"))
    for m, n in ((0, 9), (5, 0), (0, 0)):
        assert op(torch.ones(m, 7), torch.ones(7, n)).shape == (m, n)


# --- what must not be read -------------------------------------------------------------------------------------------


def test_beta0_nan(op: Operator) -> None:
    ones = torch.ones(128, 128)
    for value in (NAN, math.inf):
        c = torch.full((128, 128), value)
        assert torch.equal(op(ones, ones, c, 1.0, 0.0, out=c), torch.full((128, 128), 128.0))


def test_beta0_seed_boehm(op: Operator, random: torch.Generator) -> None:
    a, b = uniform(random, 256, 64), uniform(random, 64, 256)
    d = op(a, b, torch.full((256, 256), NAN), 1.0, 0.0)
    assert_near(d, *reference(a, b, None, 1.0, 0.0), 64)


def test_alpha0_nan(op: Operator, random: torch.Generator) -> None:
    """The rule is BLAS's: beta * c, whatever a and b hold. torch.addmm has none: its backends differ."""
    a, b, c = uniform(random, 17, 33), uniform(random, 33, 20), uniform(random, 17, 20)
    a[0, 0], a[1, 1] = NAN, math.inf
    assert torch.equal(op(a, b, c, 0.0, 1.0), c)
    assert torch.equal(op(a, b, c, 0.0, 0.0), torch.zeros(17, 20))
    assert "as in BLAS" in (Operator.__doc__ or "")


def test_nan_in_k_tail(op: Operator, random: torch.Generator) -> None:
    """In b too, whose rows beyond K are NaN, for both orders of either."""
    m, n, k = 130, 36, 33
    a, b = torch.full((m, 64), NAN), torch.full((64, n), NAN)
    a[:, :k], b[:k] = uniform(random, m, k), uniform(random, k, n)
    expected = op(a[:, :k].clone(), b[:k].clone())
    assert expected.isfinite().all()
    for left in (a, a.t().contiguous().t()):
        for right in (b, b.t().contiguous().t()):
            assert torch.equal(op(left[:, :k], right[:k]), expected)


def test_inf_emulation(op: Operator, random: torch.Generator) -> None:
    """Here the arithmetic is float32's own; emulated products will have to pass this too."""
    a, b = uniform(random, 33, 17), uniform(random, 17, 20).abs() + 0.1
    clean = op(a, b)
    a[0, 0], a[2, 3] = math.inf, NAN
    d = op(a, b)
    assert (d[0] == math.inf).all() and d[2].isnan().all()
    rest = [i for i in range(33) if i not in (0, 2)]
    assert torch.equal(d[rest], clean[rest])


# --- alignment -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "k", "n"), [(2, 3, 4), (33, 17, 20), (17, 20, 33), (3, 5, 7)])
def test_align_odd_mk(op: Operator, random: torch.Generator, m: int, k: int, n: int) -> None:
    a, b = uniform(random, m, k), uniform(random, k, n)
    assert_near(op(a, b), *reference(a, b, None, 1.0, 0.0), k)


def test_tma_stride_16B(op: Operator, random: torch.Generator) -> None:
    """The same for 16-byte cp.async: a pitch of 511 words sends b to the variant that copies by words."""
    a, wide = uniform(random, 20, 12), uniform(random, 12, 511)
    assert op.variant_for(a, wide[:, :508]).variant == "ak_bn_4B"
    assert op.variant_for(a, wide[:, :508].contiguous()).variant == "ak_bn_16B"
    assert torch.equal(op(a, wide[:, :508]), op(a, wide[:, :508].contiguous()))


def test_tma_base_offset(op: Operator, random: torch.Generator) -> None:
    a, x = uniform(random, 20, 64), uniform(random, 64, 68)
    flat = torch.cat((torch.full((1,), NAN), x[:, :64].reshape(-1)))
    for b in (x[:, 1:65], flat[1:].view(64, 64)):
        assert op.variant_for(a, b).variant == "ak_bn_4B"
        assert torch.equal(op(a, b), op(a, b.clone()))


def test_tma_store_overrun(op: Operator, random: torch.Generator) -> None:
    a, b = uniform(random, 17, 12), uniform(random, 12, 466)
    out = torch.full((17, 512), CANARY)[:, :466]
    assert_near(op(a, b, out=out), *reference(a, b, None, 1.0, 0.0), 12)
    assert_untouched(out)


# --- more than the code allows for -----------------------------------------------------------------------------------


def test_stale_tma_cache(op: Operator, random: torch.Generator) -> None:
    """One operator, one M: other buffers, N, K and strides each time."""
    kept = []
    for n, k in ((20, 36), (20, 36), (36, 20), (20, 12)):
        a, b = uniform(random, 33, k), uniform(random, k, n)
        kept.append((op(a, b), a, b))
    for d, a, b in kept:
        assert_near(d, *reference(a, b, None, 1.0, 0.0), a.shape[1])


@pytest.mark.parametrize("k", [16, 48, 192, 208])
def test_k_pairs_only(op: Operator, random: torch.Generator, k: int) -> None:
    """Odd and even counts of k-tiles of 16."""
    a, b = uniform(random, 20, k), uniform(random, k, 20)
    assert_near(op(a, b), *reference(a, b, None, 1.0, 0.0), k)


def test_dyn_tiler_drops() -> None:
    """128 takes 12 and then 32 / 3 of the second mode."""
    with pytest.raises(LayoutError):
        zipped_divide(Layout((12, (4, 8)), (7, (1, 30))), 128)
    assert zipped_divide(Layout((12, (4, 8)), (7, (1, 30))), 96).size == 384


FAR = 2**30 + 12345


@pytest.mark.parametrize(
    ("variant", "a_strides", "b_strides"),
    [("ak_bn_4B", (FAR, 1), (1, FAR)), ("am_bk_4B", (1, FAR), (FAR, 1)), ("any", (2, FAR), (FAR, 3))],
)
def test_int32_offset_mm(variant: str, a_strides: tuple[int, int], b_strides: tuple[int, int]) -> None:
    """Rows of A, B, C and D that lie more than 2^31 elements apart, in memory of which few pages are ever touched."""
    m, n, k = 3, 5, 4
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)  # named from Python 3.12 on
    flat = {}
    for name in "abcd":
        flat[name] = np.frombuffer(mmap.mmap(-1, 4 * (5 * FAR), flags), np.float32)
    operator = only("warptile_128x128", variant)
    strides = {"a": a_strides, "b": b_strides, "c": (FAR, 1), "d": (FAR, 1)}
    extents = {"a": (m, k), "b": (n, k), "c": (m, n), "d": (m, n)}
    rng, memory, views, values = np.random.default_rng(0), sim.GlobalMemory(), [], {}
    for name, (rows, columns) in extents.items():
        values[name] = rng.uniform(-1, 1, (rows, columns)).astype(np.float32)
        row, column = strides[name]
        for i in range(rows):
            for j in range(columns):
                flat[name][i * row + j * column] = values[name][i, j]
        address = memory.add(flat[name], writable=name == "d", name=name)
        views.append(View(address, (rows, columns), strides[name]))
    run.simulate(operator.plans[0], Problem(m, n, k, *views, 1.0, 1.0), memory)
    result = torch.tensor([[flat["d"][i * FAR + j] for j in range(n)] for i in range(m)])
    a, b, c = (torch.from_numpy(values[name]) for name in "abc")
    assert_near(result, *reference(a, b.t(), c, 1.0, 1.0), k)


def test_grid_y_65535(op: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tiles lie on the grid's x axis; tests/gpu runs them."""
    grids = []
    monkeypatch.setattr("layoutgen.sim.launch", lambda *_, grid, **__: grids.append(grid))
    monkeypatch.setattr("layoutgen.run.admit", lambda *_, **__: None)  # it would take the simulator too long
    op(torch.ones(1, 1).expand(65536 * 128, 1), torch.ones(1, 1))
    op(torch.ones(1, 1), torch.ones(1, 1).expand(1, 65537 * 128))
    assert grids == [(65536, 1, 1), (65537, 1, 1)]


# --- calls -----------------------------------------------------------------------------------------------------------


def test_cpu_tensor(op: Operator) -> None:
    """A ValueError that names argument and device; tests/gpu has the pair of a CPU and a GPU."""
    with pytest.raises(ValueError, match="b must be on the device of a\n  got: a on cpu, b on meta"):
        op(torch.ones(4, 3), torch.ones(3, 5, device="meta"))
    assert issubclass(OperandError, ValueError)


def test_tune_kwarg_order(op: Operator, random: torch.Generator) -> None:
    a, b = uniform(random, 17, 20), uniform(random, 20, 33)
    assert torch.equal(op(b=b, a=a), op(a, b))
    assert op.variant_for(b=b, a=a) is op.variant_for(a, b)


def test_cache_key_config(tmp_path: Path) -> None:
    text = paths.find_spec("warptile_128x128").read_text(encoding="utf-8")
    keys = set()
    for stages in (2, 3):
        path = tmp_path / "warptile_128x128.yaml"
        path.write_text(text.replace("stages: 2", f"stages: {stages}"), encoding="utf-8")
        source = run.source(plan(load_spec(path))[0])
        keys.add(artifact_key(source.text, source.launch.kernel, "sm_90a"))
    assert len(keys) == 2


def test_fp32_silent_tf32(op: Operator, random: torch.Generator) -> None:
    a, b = uniform(random, 33, 300).bfloat16().float(), uniform(random, 300, 20)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        d = op(a, b)
    finally:
        torch.set_float32_matmul_precision(before)
    exact, scale = reference(a, b, None, 1.0, 0.0)
    assert ((d.double() - exact).abs() / scale).max() < 1e-6


def test_batch_invariance(op: Operator, random: torch.Generator) -> None:
    a, b = uniform(random, 257, 256), uniform(random, 256, 64)
    anchor = op(a[:1], b)
    for m in (2, 17, 128, 257):
        assert torch.equal(op(a[:m], b)[:1], anchor)
