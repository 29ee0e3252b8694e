"""The bench on a GPU: run with ``pytest -m gpu tests/gpu``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from layoutgen.bench import allowed_error, bench, read
from layoutgen.bench.gpu import Gpu, cublas
from layoutgen.errors import LayoutgenError
from layoutgen.plot import plot

pytestmark = pytest.mark.gpu

SHAPES = [(512, 512, 512), (300, 260, 76)]


@pytest.fixture
def gpu() -> Gpu:
    return Gpu()


def test_a_small_bench_and_its_plots(tmp_path: Path) -> None:
    rivals = ["cublas", "triton"]
    out = tmp_path / "x.json"
    before = torch.get_float32_matmul_precision()
    result = bench(
        ["warptile_128x128", "salykov_128x128x8"],
        shapes=SHAPES,
        modes=["kn", "mk"],
        against=rivals,
        repeats=12,
        out=out,
    )
    assert torch.get_float32_matmul_precision() == before
    assert read(out) == result and result.complete and not list(result.failures)
    assert len(result.rows) == 4 * (len(rivals) + 2)
    for row in result.rows:
        assert len(row.samples_ms) == 12 and row.max_error is not None and row.max_error <= row.allowed_error
        assert row.tflops is not None and 0 < row.tflops < 1.1 * result.device.fp32_tflops
        assert set(row.ratios) == (set(rivals) if row.kind == "spec" else set())
    assert result.machine.gpu == torch.cuda.get_device_name() and result.machine.driver != "unknown"
    for conditions in result.conditions:
        assert conditions.samples >= 1 and conditions.sm_mhz is not None and conditions.watts is not None
    assert json.loads(out.read_text())["rows"][0]["name"] == "cublas"
    assert len(plot(out, tmp_path / "plots")) == 6


@pytest.mark.parametrize("modes", ["kn", "kk", "mn", "mk"])
def test_the_triton_rival_is_right(gpu: Gpu, modes: str) -> None:
    with gpu:
        sgemm = gpu.rival("triton")
        for shape in (*SHAPES, (1, 1, 1), (129, 65, 17)):
            assert gpu.error("triton", sgemm, gpu.operands(shape, modes)) <= allowed_error(shape[2])


def test_a_wrong_result_and_tf32_are_seen(gpu: Gpu) -> None:
    with gpu:
        operands = gpu.operands((1024, 1024, 1024), "kn")
        assert gpu.error("right", cublas, operands) <= allowed_error(1024)
        assert not gpu.error("nothing", lambda a, b, out: None, operands) <= allowed_error(1024)
        torch.set_float32_matmul_precision("high")
        assert gpu.error("TF32", cublas, operands) > allowed_error(1024)


def test_a_time_holds_the_kernel_and_no_python(gpu: Gpu) -> None:
    """A call that takes the CPU a millisecond to enqueue is timed as one that takes it none."""
    with gpu:
        a, b, out = gpu.operands((256, 256, 256), "kn")

        def slow() -> None:
            sum(range(40_000))
            cublas(a, b, out)

        for call in (slow, lambda: cublas(a, b, out)):
            for _ in range(5):
                gpu.milliseconds(call)
        plain = min(gpu.milliseconds(lambda: cublas(a, b, out)) for _ in range(10))
        assert min(gpu.milliseconds(slow) for _ in range(10)) < 2 * plain + 0.02
        assert gpu._flushes > 8


def test_operands_that_do_not_fit_are_named(gpu: Gpu) -> None:
    with gpu, pytest.raises(LayoutgenError, match="fit in the GPU's memory"):
        gpu.operands((2_000_000, 2_000_000, 64), "kn")
