"""Split f32 on a GPU: run with ``pytest -m gpu tests/gpu``."""

from __future__ import annotations

import pytest
import torch

import layoutgen
from layoutgen.ops import Operator

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", params=["tf32x3_128x128x56", "bf16x6_96x128x48"])
def op(request: pytest.FixtureRequest) -> Operator:
    return layoutgen.load(request.param)


def uniform(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, device="cuda").mul_(2).sub_(1)


@pytest.mark.parametrize(
    "shape", [(4096, 4096, 4096), (4092, 4092, 4092), (1000, 130, 33), (1, 1, 1), (64, 64, 0)], ids=str
)
@pytest.mark.parametrize("order", ["kn", "kk", "mn", "mk"])
def test_errors_are_those_of_f32(op: Operator, shape: tuple[int, int, int], order: str) -> None:
    m, n, k = shape
    a = uniform(m, k) if order[0] == "k" else uniform(k, m).t()
    b = uniform(k, n) if order[1] == "n" else uniform(n, k).t()
    d = op.eager(a, b)
    assert isinstance(d, torch.Tensor)
    size = (a.double().abs() @ b.double().abs()).clamp(min=1e-30)
    assert ((d.double() - a.double() @ b.double()).abs() / size).max() < 2.0**-21


def test_inf_and_nan_stay_in_their_rows_and_columns(op: Operator) -> None:
    a, b = torch.rand(1000, 300, device="cuda") + 0.5, torch.rand(300, 900, device="cuda") - 0.5
    b[:, ::3] = 1.0
    a[0, 0], a[333, 5], a[777, 7], b[9, 11], b[4, 830] = (
        float("inf"),
        float("-inf"),
        float("nan"),
        float("inf"),
        float("nan"),
    )
    a[888, 3] = torch.tensor(0x7FFFFFFF, dtype=torch.int32).view(torch.float32).item()
    d, plain = op.eager(a, b), a @ b
    assert isinstance(d, torch.Tensor)
    for what in (torch.isnan, torch.isposinf, torch.isneginf):
        assert torch.equal(what(d), what(plain))
    assert (d - plain)[plain.isfinite()].abs().max() < 1e-3


def test_the_simulator_has_the_bits_of_the_gpu(op: Operator) -> None:
    a, b = torch.rand(130, 200), torch.rand(200, 140) - 0.5
    a[3, 5], a[7, 7] = float("inf"), 2.0**-130
    here, there = op.eager(a, b), op.eager(a.cuda(), b.cuda())
    assert isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor)
    same = (here == there.cpu()) | (here.isnan() & there.cpu().isnan())
    assert same.all()
