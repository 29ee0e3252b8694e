"""What an epilogue's steps do to float64, by formulas of this file's own, and how far f32 may be from that."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from layoutgen.epilogue import Step
from layoutgen.operands import TORCH
from layoutgen.plan import Plan
from tests.elements import ROUNDOFF, SMALLEST

Array = NDArray[np.float64]
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _gelu(step: Step, x: Array, t: Array) -> Array:
    if step.form == "exact":  # type: ignore[attr-defined]
        return x * _erfc(-x / math.sqrt(2)) / 2
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _clamp(step: Step, x: Array, t: Array) -> Array:
    low = -math.inf if step.min is None else step.min  # type: ignore[attr-defined]
    high = math.inf if step.max is None else step.max  # type: ignore[attr-defined]
    return np.where(x < low, low, np.where(x > high, high, x))


# word -> x after the step, and how much an error of x before it may have grown.
STEPS: dict[str, tuple[Callable[[Step, Array, Array], Array], Callable[[Array], Array]]] = {
    "bias": (lambda step, x, t: x + t, lambda t: np.ones(())),
    "residual": (lambda step, x, t: x + t, lambda t: np.ones(())),
    "scale": (lambda step, x, t: x * t, abs),
    "relu": (lambda step, x, t: np.where(x < 0, 0, x), lambda t: np.ones(())),
    "clamp": (_clamp, lambda t: np.ones(())),
    "gelu": (_gelu, lambda t: np.full((), 1.13)),
    "silu": (lambda step, x, t: x / (1 + np.exp(-x)), lambda t: np.full((), 1.1)),
    "amax": (lambda step, x, t: x, lambda t: np.ones(())),
}


def spread(t: Array, modes: str) -> Array:
    """A tensor of some modes of C as an array that broadcasts to (M, N)."""
    return t.reshape(-1, 1) if modes == "m" else t


def applied(
    plan: Plan, x: Array, error: Array, tensors: Mapping[str, Array]
) -> tuple[Array, Array, dict[str, tuple[Array, Array]]]:
    """alpha A B + beta C, and how far it may be from that -> the same of what the chain makes of it, and of each row's
    largest |x| that it leaves on the way."""
    left: dict[str, tuple[Array, Array]] = {}
    for link in plan.epilogue.chain:
        step, rounding = link.step, ROUNDOFF["s32" if link.value == "s32" else link.value]
        reads = link.tensor is not None and not link.tensor.written
        t = spread(tensors[link.tensor.name], link.tensor.modes) if link.tensor and reads else np.zeros(())
        do, grown = STEPS[step.word]
        before, x = x, do(step, x, t)
        error = error * grown(t) + 4 * rounding * (abs(before) + abs(t) + abs(x))
        if step.word in ("gelu", "silu") and link.value == "f32":
            error = error + 2.0**-22 * abs(before)
        if link.tensor is not None and link.tensor.written:
            left[link.tensor.name] = (abs(x).max(1, initial=0.0), error.max(1, initial=0.0))
    return x, error, left


def stored(plan: Plan, x: Array, error: Array) -> tuple[Array, Array]:
    """The least and the most that may be stored for x to within `error`: rounded, and of integers saturated."""
    if plan.dtype in ("s32", "s8", "u8"):
        most = {"s32": 2**31 - 1, "s8": 127, "u8": 255}[plan.dtype]
        least = 0 if plan.dtype == "u8" else -most - 1
        low, high = (np.clip(np.rint(each), least, most) for each in (x - error, x + error))
        return low, high
    if plan.dtype in ("f16", "bf16"):
        low, high = (torch.from_numpy(each).to(TORCH[plan.dtype]).double().numpy() for each in (x - error, x + error))
        return low, high
    rounding = ROUNDOFF[plan.dtype] if plan.dtype != plan.epilogue.last else 0.0
    smallest = SMALLEST.get(plan.dtype, 0.0) / 2
    slack = error + rounding * (abs(x) + error) * 1.001 + smallest + 1e-30
    return x - slack, x + slack
