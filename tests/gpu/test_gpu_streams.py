"""Blocks that share tiles on a GPU, where they run together: right, and the bits of the simulator, whoever is first."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from layoutgen import paths, run, sim, spec
from layoutgen.ops import Operator
from layoutgen.plan import Plan, plan
from layoutgen.problem import Problem, View
from tests.kernels.test_streams import WAYS, written
from tests.ops.operands import assert_near, reference, uniform

pytestmark = pytest.mark.gpu

SHAPES = ((96, 128, 128), (160, 256, 4096), (2048, 2048, 520), (32, 64, 65536))  # shares of a part of a tile, and more


@pytest.fixture
def random() -> torch.Generator:
    return torch.Generator("cuda").manual_seed(0)


def large() -> Operator:
    base = spec.load(paths.find_spec("sgemm_128x256x16"))
    shared = base.model_copy(update={"schedule": base.schedule.model_copy(update={"kind": "stream_k"})})
    return Operator(shared, plan(shared))


def simulated(each: Plan, a: torch.Tensor, b: torch.Tensor, slots: int) -> torch.Tensor:
    (m, k), n = a.shape, b.shape[1]
    memory, d = sim.GlobalMemory(), np.full((m, n), np.nan, np.float32)
    at = [memory.add(np.ascontiguousarray(x.cpu().numpy()), writable=False, name="operand") for x in (a, b)]
    to = View(memory.add(d, writable=True, name="d"), (m, n), (n, 1))
    problem = Problem(m, n, k, View(at[0], (m, k), (k, 1)), View(at[1], (n, k), (1, n)), to, to, 1.0, 0.0)
    assert run.fits(each, problem) and run.shared_tiles(each, problem, slots).blocks
    run.simulate(each, problem, memory, slots=slots)
    return torch.from_numpy(d)


def of(way: str) -> Operator:
    drafted = written(way)
    return Operator(drafted, plan(drafted))


@pytest.mark.parametrize("way", WAYS)
def test_shared_tiles_have_the_bits_of_the_simulator(way: str, random: torch.Generator) -> None:
    operator = of(way)
    a, b = uniform(random, 96, 128), uniform(random, 128, 128)
    slots = run.CompiledForGpu(operator.plans[0], 0).slots
    assert torch.equal(operator.eager(a, b).cpu(), simulated(operator.plans[0], a, b, slots))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shared_tiles_are_right_each_time(way: str, shape: tuple[int, int, int], random: torch.Generator) -> None:
    operator, (m, n, k) = of(way), shape
    a, b, c = uniform(random, m, k), uniform(random, k, n), uniform(random, m, n)
    first = operator.eager(a, b, c, -0.5, 2.0)
    assert_near(first, *reference(a, b, c, -0.5, 2.0), k)
    assert all(torch.equal(operator.eager(a, b, c, -0.5, 2.0), first) for _ in range(50))


@pytest.mark.parametrize("size", [1024, 4092, 4096])
@pytest.mark.parametrize("order", ["kn", "kk", "mn", "mk"])
def test_large_problems(size: int, order: str, random: torch.Generator) -> None:
    operator = large()
    a = uniform(random, size, size) if order[0] == "k" else uniform(random, size, size).t()
    b = uniform(random, size, size) if order[1] == "n" else uniform(random, size, size).t()
    first = operator.eager(a, b)
    assert_near(first, *reference(a, b, None, 1.0, 0.0), size)
    assert all(torch.equal(operator.eager(a, b), first) for _ in range(5))


def test_two_streams_and_a_graph_have_workspaces_of_their_own(random: torch.Generator) -> None:
    operator = of("cp_async")
    pairs = [(uniform(random, 160, 4096), uniform(random, 4096, 256)) for _ in range(2)]
    alone = [operator.eager(*pair) for pair in pairs]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in pairs]
    for _ in range(20):
        results = []
        for stream, pair in zip(streams, pairs, strict=True):
            with torch.cuda.stream(stream):
                results.append(operator.eager(*pair))
        torch.cuda.synchronize()
        assert all(map(torch.equal, results, alone))
    graph = torch.cuda.CUDAGraph()
    a, b = pairs[0]
    with torch.cuda.graph(graph):
        d = operator.eager(a, b)
    for _ in range(3):
        a.copy_(uniform(random, *a.shape))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(d, operator.eager(a, b))
