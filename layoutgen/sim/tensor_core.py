"""What the tensor cores of a Hopper GPU compute: sums of products that are aligned, cut off and then added exactly.

No document of NVIDIA's says how. Found by experiment: Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA
tensor cores" (PeerJ Computer Science 7, 2021); Khattak and Mikaitis, "Accurate models of NVIDIA tensor cores"
(arXiv:2512.07004), whose measurements on an H200 this agrees with bit for bit; Xie, Wang, Yang and Yang, "MMA-Sim"
(arXiv:2511.10909). An mma.sync of narrow floats forms all its products exactly, takes the largest exponent of the
products and of c, cuts every summand toward zero at 25 bits below it, adds what is left without an error, and cuts the
sum to f32 (or rounds it to f16, to nearest even). Earlier GPUs keep a bit less, and sum over half of a long k first.
f64 is a chain of fused multiply-adds, and integers are exact.

A Hopper GPU has no mma.sync of 8-bit floats (its wgmma has): ptxas turns them to f16, multiplies those of k % 4 below 2
and adds the others to that with two f16 instructions that start from zero, and then adds c in f32. So it is done here.
"""

from __future__ import annotations

import numpy as np

from layoutgen.sim.elements import ELEMENTS, F16_LOWEST, F32_LOWEST, Element
from layoutgen.sim.frame import Array
from layoutgen.sim.instructions.floating import fma_f64

_KEPT = 25  # bits of a summand below the largest exponent
_FRACTION = 23  # bits of f32's
_ZERO = -4096  # the exponent of a zero: below all others
_F16_NAN, _F32_NAN = np.uint16(0x7FFF), np.uint32(0x7FFFFFFF)


def _exponents(x: Array, lowest: int) -> Array:
    result: Array = np.maximum(np.frexp(x)[1] - 1, lowest)
    return result


def fused_sum(a: Array, b: Array, c: Array, of_a: Element, of_b: Element, c_lowest: int) -> Array:
    """c + the sum over k of a(m,k) b(n,k), before it is brought to the type of d.

    a, b, c: float64 of shapes (.., M, K), (.., N, K) and (.., M, N). c_lowest: the lowest exponent of c's type.
    The result is exact, but for the bits of summands that are cut off; it is not finite where an exact sum is not.
    """
    products = a[..., :, None, :] * b[..., None, :, :]
    exact = products.sum(-1) + c
    exponents = _exponents(a, of_a.lowest)[..., :, None, :] + _exponents(b, of_b.lowest)[..., None, :, :]
    exponents[products == 0] = _ZERO
    top = np.maximum(exponents.max(-1), np.where(c == 0, _ZERO, _exponents(c, c_lowest)))
    shift = _KEPT - np.where(top == _ZERO, 0, top)
    kept = np.trunc(np.ldexp(products, shift[..., None])).sum(-1) + np.trunc(np.ldexp(c, shift))
    total = np.ldexp(kept, -shift) + 0.0  # the sum of negative zeros is a positive one
    result: Array = np.where(np.isfinite(exact), total, exact)
    return result


def to_f32(x: Array) -> Array:
    """float64 -> bits of float32, cut toward zero; what reaches 2^128 is infinite."""
    unit = _FRACTION - _exponents(x, F32_LOWEST)
    cut = np.where(np.isfinite(x), np.ldexp(np.trunc(np.ldexp(x, unit)), -unit), x)
    bits: Array = np.where(np.isnan(x), _F32_NAN, cut.astype(np.float32).view(np.uint32))
    return bits


def to_f16(x: Array) -> Array:
    """float64 -> bits of float16, to nearest even."""
    bits: Array = np.where(np.isnan(x), _F16_NAN, x.astype(np.float16).view(np.uint16))
    return bits


@np.errstate(invalid="ignore", over="ignore")
def multiply_add(a: Array, b: Array, c: Array, types: tuple[str, str, str], saturate: bool = False) -> Array:
    """a b + c, as one mma.sync computes it.

    a (.., M, K) and b (.., N, K) are bits of the first two of `types`, c (.., M, N) and the result bits of the third:
    f16, f32, s32 or f64. saturate: of integers, whose sums else keep their low 32 bits.
    """
    of_a, of_b, of_c = types
    first, second = ELEMENTS[of_a], ELEMENTS[of_b]
    x, y = first.decode(a), second.decode(b)
    if of_c == "s32":
        exact = x @ np.swapaxes(y, -1, -2) + c.view(np.int32)
        limits = np.iinfo(np.int32)
        return (np.clip(exact, limits.min, limits.max) if saturate else exact).astype(np.int32).view(np.uint32)
    if of_c == "f64":
        total = c.view(np.float64)
        for k in range(x.shape[-1]):
            total = fma_f64(x[..., :, None, k], y[..., None, :, k], total)
        return total.view(np.uint64)
    if of_c == "f16":
        return to_f16(fused_sum(x, y, c.view(np.float16).astype(np.float64), first, second, F16_LOWEST))
    addend = c.view(np.float32)
    if first.bits > 8:
        return to_f32(fused_sum(x, y, addend.astype(np.float64), first, second, F32_LOWEST))
    total = np.zeros_like(addend)
    for part in (np.arange(x.shape[-1]) % 4 < 2, np.arange(x.shape[-1]) % 4 >= 2):
        sums = fused_sum(x[..., part], y[..., part], total.astype(np.float64), first, second, F32_LOWEST)
        total = to_f32(sums).view(np.float32)
    result = addend + total
    return np.where(np.isnan(result), _F32_NAN, result.view(np.uint32))
