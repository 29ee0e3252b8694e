"""Exact integer and rational arithmetic to compare with, and the values worth trying."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

INF = float("inf")


def round_to(value: Fraction, precision: int, lowest: int, largest: int) -> float:
    """``value`` rounded to nearest even, with ``precision`` bits, or fewer at exponents below ``lowest``."""
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, lowest) - precision + 1)
    rounded = round(size / unit) * unit  # Python rounds halves to even
    result = INF if rounded >= Fraction(2) ** (largest + 1) else float(rounded)
    return result if value > 0 else -result


def f32(value: Fraction) -> np.float32:
    return np.float32(round_to(value, 24, -126, 127))


def bits(kind: str) -> int:
    return int(kind[1:])


def wrap(value: int, kind: str) -> int:
    """The value that ``kind`` holds after keeping its low bits."""
    value &= (1 << bits(kind)) - 1
    return value - (1 << bits(kind)) if kind[0] == "s" and value >> bits(kind) - 1 else value


def array(values: list[int], kind: str) -> np.ndarray:
    return np.array([v & (1 << bits(kind)) - 1 for v in values], f"u{bits(kind) // 8}")


def numbers(kind: str) -> st.SearchStrategy[int]:
    """Values of ``kind``, with its corners often."""
    n = bits(kind)
    low, high = (0, (1 << n) - 1) if kind[0] in "ub" else (-(1 << n - 1), (1 << n - 1) - 1)
    corners = [
        c for c in (low, low + 1, -1, 0, 1, 2, high - 1, high, 1 << n // 2, (1 << n // 2) - 1) if low <= c <= high
    ]
    return st.sampled_from(corners) | st.integers(low, high)
