"""Matrices of every element type, and how far a right result may be from float64."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from layoutgen.operands import TORCH
from layoutgen.plan import Plan

# Unit roundoff: half the distance from 1 to the next number; integers are exact.
ROUNDOFF = {
    "f64": 2.0**-53, "f32": 2.0**-24, "tf32": 2.0**-11, "f16": 2.0**-11, "bf16": 2.0**-8, "e4m3": 2.0**-4,
    "e5m2": 2.0**-3, "s32": 0.0, "s8": 0.0, "u8": 0.0,
}  # fmt: skip
# The smallest number above zero, where products of numbers up to 1 come near it.
SMALLEST = {"f16": 2.0**-24, "e4m3": 2.0**-9, "e5m2": 2.0**-16}


def representable(values: NDArray[np.float64], dtype: str) -> torch.Tensor:
    """Values from -1 to 1 as elements of a type, of which tensor cores leave nothing out; integers of -100 to 100."""
    if dtype in ("s8", "u8", "s32"):
        return torch.from_numpy(np.asarray(np.rint((abs(values) if dtype == "u8" else values) * 100))).to(TORCH[dtype])
    if dtype == "tf32":
        bits = np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
        return torch.from_numpy(bits.view(np.float32))
    return torch.from_numpy(values).to(TORCH[dtype])


def as_bytes(tensor: torch.Tensor) -> NDArray[np.generic]:
    """A tensor's elements as unsigned integers of their width."""
    width = tensor.element_size()
    view = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width]
    return tensor.contiguous().view(view).numpy().view(f"u{width}")


def from_bytes(array: NDArray[np.generic], dtype: str) -> torch.Tensor:
    """The inverse of `as_bytes`."""
    signed = np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}" if array.dtype.itemsize > 1 else "u1")
    return torch.from_numpy(signed).view(TORCH[dtype])


def of_sums(plan: Plan, k: int, scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far alpha A B + beta C may be: the rounding of the sums and of scaling them.

    A chain of K multiply-adds is off by (K + 3) roundings at most (Higham, Accuracy and Stability of Numerical
    Algorithms, 3.1). A tensor core cuts each of an atom's sums where the largest of its terms ends, 2^-24 of it for
    each term and for the sum (Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021).
    Integers that are scaled in another type are rounded as they enter it, by alpha and by beta.
    """
    each = ROUNDOFF[plan.accumulate] * (2 if plan.uses_atoms and plan.accumulate == "f32" else 1)
    scaling = 3 * ROUNDOFF[plan.epilogue.first] if plan.epilogue.first != plan.accumulate else 0.0
    bound: NDArray[np.float64] = ((k + 4) * each + scaling) * scale
    return bound


def allowed(plan: Plan, k: int, exact: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far D may be: the rounding of the sums, of scaling them, and of what is stored."""
    stored = ROUNDOFF[plan.dtype] if plan.dtype != plan.accumulate else 0.0
    least = SMALLEST.get(plan.dtype, 0.0) / 2
    bound: NDArray[np.float64] = of_sums(plan, k, scale) * (1 + stored) + stored * abs(exact) * 1.001 + least + 1e-30
    return bound
