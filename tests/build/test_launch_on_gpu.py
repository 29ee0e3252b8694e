"""Launches on a real GPU, with torch for memory and streams: run with ``pytest -m gpu``."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from layoutgen.build import Device, Function, ParamBlock, build, current_arch, load
from layoutgen.errors import BuildError
from layoutgen.hw import devices

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

FILL = """
extern "C" __global__ void fill(float* x, long long n, long long big, int k, float alpha) {
  extern __shared__ float s[];
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  s[threadIdx.x] = alpha;
  __syncthreads();
  if (i < n) x[i] = s[threadIdx.x] * k + (float)(big >> 32);
}
"""
BLOCK = ParamBlock(["ptr", "i64", "i64", "i32", "f32"], ["x", "n", "big", "k", "alpha"])


@pytest.fixture(scope="module")
def fill(tmp_path_factory: pytest.TempPathFactory) -> Function:
    arch = current_arch()
    assert arch is not None
    cache: Path = tmp_path_factory.mktemp("cache")
    return load(build(FILL, "fill", arch, cache=cache))


def launch(fill: Function, x: object, big: int, k: int, alpha: float, stream: int, shared: int = 512) -> None:
    fill.launch((8, 1, 1), (128, 1, 1), shared, stream, BLOCK.pack(x.data_ptr(), 1000, big, k, alpha))  # type: ignore[attr-defined]


def test_parameters_arrive_and_all_shared_memory_is_open(fill: Function) -> None:
    x = torch.full((1024,), -1.0, device="cuda")
    launch(fill, x, 3 * 2**32, 2, 1.5, torch.cuda.current_stream().cuda_stream, shared=fill.max_shared_bytes)
    assert torch.equal(x[:1000], torch.full((1000,), 6.0, device="cuda"))
    assert torch.equal(x[1000:], torch.full((24,), -1.0, device="cuda"))


def test_a_thread_that_never_used_the_gpu_can_launch(fill: Function) -> None:
    x = torch.zeros(1000, device="cuda")
    torch.cuda.synchronize()
    thread = threading.Thread(target=launch, args=(fill, x, 0, 7, 1.0, 0))
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert x.unique().tolist() == [7.0]


def test_a_launch_goes_to_its_stream(fill: Function) -> None:
    x, stream = torch.zeros(1000, device="cuda"), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    launch(fill, x, 0, 2, 0.5, stream.cuda_stream)
    stream.synchronize()
    assert x.unique().tolist() == [1.0]


def test_a_graph_captures_the_launch(fill: Function) -> None:
    x, graph = torch.zeros(1000, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(fill, x, 0, 9, 1.0, torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    assert x.unique().tolist() == [0.0]
    graph.replay()
    torch.cuda.synchronize()
    assert x.unique().tolist() == [9.0]


def test_every_gpu_of_the_machine_has_its_own_function(fill: Function) -> None:
    arch = current_arch()
    assert arch is not None
    for ordinal in range(torch.cuda.device_count()):
        function = load(build(FILL, "fill", arch), device=ordinal)
        x = torch.zeros(1000, device=f"cuda:{ordinal}")
        launch(function, x, 0, ordinal + 2, 1.0, torch.cuda.current_stream(ordinal).cuda_stream)
        torch.cuda.synchronize(ordinal)
        assert x.unique().tolist() == [ordinal + 2.0]


def test_a_launch_beyond_the_limits_is_refused(fill: Function) -> None:
    x = torch.zeros(1000, device="cuda")
    with pytest.raises(BuildError, match="CUDA_ERROR_INVALID_VALUE"):
        launch(fill, x, 0, 1, 1.0, 0, shared=fill.max_shared_bytes + 1)


def test_what_is_no_kernel_is_refused(fill: Function) -> None:
    with pytest.raises(BuildError, match="CUDA_ERROR_INVALID_IMAGE"):
        load(b"no cubin", "fill")
    with pytest.raises(BuildError, match="CUDA_ERROR_INVALID_DEVICE"):
        _ = Device(99).name


def test_the_device_table_agrees_with_this_gpu() -> None:
    here = Device(0)
    known = [
        row for row in devices.DEVICES.values() if row.name.replace("-", " ") in here.name.lower().replace("-", " ")
    ]
    for row in known:
        assert (row.arch, row.sms, row.shared_per_sm) == (here.arch, here.sms, here.shared_per_sm)
        assert row.shared_per_block == here.shared_per_block
        assert row.l2_mb * 2**20 == here.l2_bytes
        assert row.boost_mhz * 1000 == here.attribute("CLOCK_RATE")
        assert row.max_threads_per_sm == here.attribute("MAX_THREADS_PER_MULTIPROCESSOR")
        assert row.max_blocks_per_sm == here.attribute("MAX_BLOCKS_PER_MULTIPROCESSOR")
        assert row.shared_reserved_per_block == here.attribute("RESERVED_SHARED_MEMORY_PER_BLOCK")
        assert row.registers_per_sm == here.attribute("MAX_REGISTERS_PER_MULTIPROCESSOR")
        width = here.attribute("GLOBAL_MEMORY_BUS_WIDTH") / 8
        assert row.memory_gbs == pytest.approx(2 * here.attribute("MEMORY_CLOCK_RATE") * 1e3 * width / 1e9, rel=0.01)
    assert known or "H200" not in here.name
