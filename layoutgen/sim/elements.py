"""The types of a tensor core's operands: from bits to numbers, and for the 8-bit floats back.

e4m3 and e5m2: Micikevicius et al., "FP8 Formats for Deep Learning" (arXiv:2209.05433); PTX ISA 9.0, section 5.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from layoutgen.sim.frame import Array

F16_LOWEST, F32_LOWEST = -14, -126


@dataclass(frozen=True, slots=True)
class Element:
    """A type of A and B. bits: of one element. decode: unsigned integers of that width -> float64 (of integers: int64),
    exactly. lowest: the exponent of the smallest normal number where it is multiplied, which denormal ones share."""

    bits: int
    decode: Callable[[Array], Array]
    lowest: int = 0


def _bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def _tf32(bits: Array) -> Array:
    """The low 13 bits of the register are not looked at."""
    return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def _e5m2(bits: Array) -> Array:
    """The upper half of a float16."""
    return (bits.astype(np.uint16) << np.uint16(8)).view(np.float16).astype(np.float64)


def _e4m3_values() -> Array:
    """Sign, four bits of exponent (bias 7), three of fraction; no infinity, and all ones is a NaN."""
    exponent, fraction = np.arange(128) >> 3, np.arange(128) & 7
    size = np.where(exponent == 0, np.ldexp(fraction, -9), np.ldexp(8 + fraction, exponent - 10))
    size[127] = np.nan
    return np.concatenate([size, -size])


_E4M3 = _e4m3_values()

ELEMENTS: Mapping[str, Element] = {
    "f16": Element(16, lambda bits: bits.view(np.float16).astype(np.float64), F16_LOWEST),
    "bf16": Element(16, _bf16, F32_LOWEST),
    "tf32": Element(32, _tf32, F32_LOWEST),
    "e4m3": Element(8, lambda bits: _E4M3[bits], F16_LOWEST),
    "e5m2": Element(8, _e5m2, F16_LOWEST),
    "f64": Element(64, lambda bits: bits.view(np.float64)),
    "s8": Element(8, lambda bits: bits.view(np.int8).astype(np.int64)),
    "u8": Element(8, lambda bits: bits.astype(np.int64)),
}


def to_narrow(x: Array, kind: str) -> Array:
    """float32 -> bits of e4m3 or e5m2, to nearest even; what is larger than any number becomes the largest one, and a
    NaN 0x7f, as cvt.rn.satfinite gives them."""
    values = ELEMENTS[kind].decode(np.arange(128, dtype=np.uint8))
    values = values[np.isfinite(values)]
    size = np.minimum(np.abs(x.astype(np.float64)), values[-1])
    low = np.searchsorted(values, size, "right") - 1
    high = np.minimum(low + 1, len(values) - 1)
    below, above = size - values[low], values[high] - size
    nearest = np.where((above < below) | ((above == below) & (low % 2 == 1)), high, low)
    bits: Array = np.where(np.isnan(x), 0x7F, nearest | np.where(np.signbit(x), 0x80, 0))
    return bits.astype(np.uint8)
