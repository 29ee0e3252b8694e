"""Calls of operators whose specs have an epilogue, on any device, held to float64 by tests/chain.py."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from layoutgen.operands import TORCH, shape_of
from layoutgen.ops import Operator
from layoutgen.plan import Plan
from layoutgen.plan import plan as plans_of
from tests.chain import applied, stored
from tests.elements import of_sums
from tests.kernels.small import MMA, SMALL
from tests.ops.operands import elements, on_device
from tests.plan.drafts import Draft

CHAINS = tuple(name for name, (fields, _) in SMALL.items() if fields.get("epilogue"))


@cache
def drafted(epilogue: tuple[str, ...], c: str = "f32", **fields: object) -> Operator:
    """A small bf16 operator with this epilogue, not registered."""
    shape = {"name": "drafted", "block": (32, 64, 32), "warps": "(1,2):(0,1)", "stages": 2}
    draft = Draft(**(MMA | shape | {"dtypes": ("bf16", c, "f32"), "epilogue": epilogue} | fields))  # type: ignore[arg-type]
    return Operator(draft.spec(), plans_of(draft.spec()))


@cache
def small_operator(name: str) -> Operator:
    """One of tests/kernels/small.py with an epilogue, not registered."""
    shape = {"name": name, "block": (32, 64, 8), "warps": "(1,2):(0,1)", "values": ("4", "4")}
    spec = Draft(**(shape | SMALL[name][0])).spec()
    return Operator(spec, plans_of(spec))


def tensors(random: torch.Generator, plan: Plan, m: int, n: int) -> dict[str, torch.Tensor]:
    """What the epilogue reads of an M x N result."""
    return {
        each.name: elements(random, each.dtype, *shape_of(each, m, n))
        for each in plan.epilogue.tensors
        if not each.written
    }


def exact(tensor: torch.Tensor) -> NDArray[np.float64]:
    found: NDArray[np.float64] = tensor.double().cpu().numpy()
    return found


def assert_fused(operator: Operator, shape: tuple[int, int, int], device: str = "cpu", modes: str = "kn") -> None:
    """One call with everything at random is what float64 allows."""
    (m, n, k), plan = shape, operator.plans[0]
    random = torch.Generator().manual_seed(m + n + k)
    a = elements(random, plan.a.dtype, m, k) if modes[0] == "k" else elements(random, plan.a.dtype, k, m).t()
    b = elements(random, plan.b.dtype, k, n) if modes[1] == "n" else elements(random, plan.b.dtype, n, k).t()
    fused = tensors(random, plan, m, n)
    there = {name: on_device(each, device) for name, each in fused.items()}
    result = operator.eager(on_device(a, device), on_device(b, device), alpha=1.0, **there)
    d, *left = result if isinstance(result, tuple) else (result,)
    sums, size = exact(a) @ exact(b), abs(exact(a)) @ abs(exact(b))
    values = {name: exact(each) for name, each in fused.items()}
    wanted, error, maxima = applied(plan, sums, of_sums(plan, k, size), values)
    low, high = stored(plan, wanted, error)
    found = exact(d)
    assert d.dtype == TORCH[plan.dtype] and found.shape == (m, n)
    wrong = ~((low <= found) & (found <= high))
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.size} are wrong"
    for got, (most, slack) in zip(left, maxima.values(), strict=True):
        assert (abs(exact(got) - most) <= slack).all()
