"""Epilogues on a GPU: run with ``pytest -m gpu tests/gpu``."""

from __future__ import annotations

import pytest
import torch

import layoutgen
from layoutgen.ops import Operator
from tests.ops.fused import CHAINS, assert_fused, drafted, small_operator, tensors
from tests.ops.operands import FUSED, elements, on_device

pytestmark = pytest.mark.gpu

SHAPES = ((1000, 528, 272), (130, 77, 45), (1, 1, 1), (64, 256, 0), (513, 1024, 4096))


def modes(operator: Operator) -> str:
    return "kn" if operator.plans[0].b.contiguous == "n" else "kk"


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_small_specs_are_right(name: str, shape: tuple[int, int, int]) -> None:
    assert_fused(small_operator(name), shape, "cuda", modes(small_operator(name)))


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shipped_specs_are_right(name: str, shape: tuple[int, int, int]) -> None:
    operator = layoutgen.load(name)
    assert_fused(operator, shape, "cuda", modes(operator))


@pytest.mark.parametrize("name", CHAINS)
def test_the_simulator_has_the_bits_of_the_gpu(name: str) -> None:
    """But where powers of 2 are approximate, in gelu and silu: there floats are a few units of f32 apart."""
    operator = small_operator(name)
    plan, random = operator.plans[0], torch.Generator().manual_seed(0)
    m, n, k = 33, 80, 64
    a, b = elements(random, plan.a.dtype, m, k), elements(random, plan.b.dtype, k, n)
    if modes(operator) == "kk":
        b = b.t().contiguous().t()
    fused = tensors(random, plan, m, n)
    here = operator.eager(a, b, **fused)
    there = operator.eager(a.cuda(), b.cuda(), **{name: on_device(each, "cuda") for name, each in fused.items()})
    approximate = any(link.step.word in ("gelu", "silu") and link.value == "f32" for link in plan.epilogue.chain)
    for mine, its in zip(*(each if isinstance(each, tuple) else (each,) for each in (here, there)), strict=True):
        if not approximate and plan.accumulate != "f64":
            assert torch.equal(mine, its.cpu())
        else:
            unit = torch.finfo(mine.dtype).eps
            assert torch.allclose(mine.double(), its.cpu().double(), rtol=unit, atol=2.0**-21)


def test_activations_are_near_float64_over_all_sizes() -> None:
    """Every f16 number and a million others, through the f32 of the kernel."""
    line = torch.linspace(-16, 16, 1 << 20)
    every = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.float16).float()
    x = torch.cat((line, every[every.isfinite() & (every.abs() < 100)]))
    x = x[: x.numel() // 1024 * 1024].reshape(-1, 1024).cuda()
    none = x.new_empty(x.shape[0], 0, dtype=torch.bfloat16), x.new_empty(0, 1024, dtype=torch.bfloat16)
    by_torch = {
        "gelu": lambda x: x * torch.special.ndtr(x),
        "gelu: {form: tanh}": lambda x: x / (1 + torch.exp(-1.5957691216057308 * (x + 0.044715 * x**3))),
        "silu": lambda x: x / (1 + torch.exp(-x)),
    }
    for step, exact in by_torch.items():
        found, wanted = drafted((step,)).eager(*none, x, 1.0, 1.0), exact(x.double())
        assert isinstance(found, torch.Tensor)
        assert ((found.double() - wanted).abs() <= 2.0**-19 * wanted.abs() + 2.0**-31).all(), step


def test_the_largest_of_a_row_among_many_blocks() -> None:
    op = drafted(("amax",))
    a = torch.rand(2048, 64, device="cuda").sub_(0.5).to(torch.bfloat16)
    b = torch.rand(64, 4096, device="cuda").sub_(0.5).to(torch.bfloat16)
    d, most = op.eager(a, b)
    assert torch.equal(most, d.abs().amax(1))
    b[:, 77] = float("nan")
    assert op.eager(a, b)[1].isnan().all()


def test_a_cuda_graph_clears_what_it_accumulates() -> None:
    op = drafted(("amax",))
    a, b = (torch.rand(*shape, device="cuda").to(torch.bfloat16) for shape in ((64, 64), (64, 64)))
    out, amax = torch.empty(64, 64, device="cuda"), torch.empty(64, device="cuda")
    op.warm_up()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op.eager_out(a, b, out=out, amax=amax)
    for factor in (1.0, 0.25):
        a.mul_(factor)
        graph.replay()
        assert torch.equal(amax, out.abs().amax(1))
