"""A plan's epilogue by torch: tensors for it at random, and what it makes of a product, in float64 or in C's type."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from layoutgen.operands import TORCH, shape_of
from layoutgen.plan.model import Plan
from layoutgen.problem import Extents


def random_tensors(plan: Plan, shape: Extents, random: torch.Generator) -> dict[str, torch.Tensor]:
    """The tensors of a result of M x N: uniform on (-1, 1), or integers up to 100; those to be written are there too.

    Scales of sums of integers are so much smaller that what they leave is of the size of 100.
    """
    m, n, k = shape
    found = {}
    for link in plan.epilogue.linked:
        assert link.tensor is not None
        kind, extents = TORCH[link.tensor.dtype], shape_of(link.tensor, m, n)
        values = torch.rand(extents, generator=random, device=random.device).mul_(2).sub_(1)
        if not kind.is_floating_point:
            values.mul_(100)
        elif link.step.word == "scale" and plan.accumulate == "s32":
            values.div_(30 * math.sqrt(max(k, 1)))
        found[link.tensor.name] = values.to(kind)
    return found


def applied(
    plan: Plan,
    x: torch.Tensor,
    size: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    rows: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(a b, |a| |b|) -> (what the epilogue makes of a b, the size of what it was made from), in x's dtype.

    rows: which of the result's x has; all by default.
    """
    for link in plan.epilogue.chain:
        t = None
        if link.tensor is not None and not link.tensor.written:
            t = tensors[link.tensor.name]
            if "m" in link.tensor.modes and rows is not None:
                t = t[rows]
            t = t.to(x.dtype)
        x, size = link.step.in_torch(x, t), link.step.magnitude(size, t)
    return x, size


def off(d: torch.Tensor, x: torch.Tensor, size: torch.Tensor) -> float:
    """The largest |d - x| / size of any element, in float64; of integers, what rounding to the nearest and saturation
    don't explain. NaN or infinity where d has one.

    Of a product computed as written it is at most K 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms,
    section 3.5).
    """
    if d.is_floating_point():
        return float(((d.double() - x).abs() / size).max())
    held = torch.iinfo(d.dtype)
    half = 0.5 if x.is_floating_point() else 0.0
    return float((((d.double() - x.clamp(held.min, held.max)).abs() - half).clamp(min=0) / size).max())


def unfused(plan: Plan, a: torch.Tensor, b: torch.Tensor, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The same by torch alone, an operation after the other, in the result's dtype: what a user writes without us.

    A bias of each column that comes first is torch.addmm's, which fuses it.
    """
    chain = plan.epilogue.chain
    first = chain[0].tensor if chain else None
    if first is not None and chain[0].step.word == "bias" and first.modes == "n" and first.dtype == plan.dtype:
        x, chain = torch.addmm(tensors[first.name], a, b), chain[1:]
    else:
        x = torch.mm(a, b)
    for link in chain:
        t = None if link.tensor is None else tensors[link.tensor.name]
        x = link.step.in_torch(x, t)
    return x
