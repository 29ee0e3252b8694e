"""The polynomials of layoutgen/epilogue/gelu.py: python -m benchmarks.gelu_fit (needs mpmath).

gelu(x) = max(x, 0) - h(|x|), and h(z) = z 2^p(z) with p(z) = log2 of the part of x that is taken at -z: smooth, and so
near a polynomial of low degree. Lawson's iteration of weighted least squares ("Contributions to the theory of linear
least maximum approximation", 1961) makes the largest error least; h may be off by `relative` of it, or by `absolute`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mpmath import erfc, log, log1p, mp, mpf, pi, sqrt
from numpy.polynomial import Chebyshev, Polynomial, chebyshev

POINTS, TURNS = 1500, 150


def exact(z: float) -> float:
    """log2 of Phi(-z)."""
    return float(log(erfc(mpf(z) / sqrt(2)) / 2, 2))


def tanh(z: float) -> float:
    """log2 of (1 + tanh(-u)) / 2 with u = sqrt(2 / pi) (z + 0.044715 z^3)."""
    u = sqrt(2 / pi) * (mpf(z) + mpf("0.044715") * mpf(z) ** 3)
    return float(-log1p(mp.exp(2 * u)) / log(2))


def fit(
    p: Callable[[float], float], most: float, degree: int, relative: float, absolute: float
) -> tuple[list[float], float]:
    """The coefficients on [0, most], constant first, and the largest error over what is allowed."""
    x = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    z = (x + 1) * most / 2
    wanted = np.array([p(each) for each in z])
    allowed = np.maximum(relative, absolute / np.maximum(z * 2.0**wanted, 1e-300)) / np.log(2)
    allowed = np.minimum(allowed, 1 + 0.2 * abs(wanted))
    weight = np.ones(POINTS)
    for _ in range(TURNS):
        found = chebyshev.chebfit(x, wanted, degree, w=np.sqrt(weight) / allowed)
        error = abs(chebyshev.chebval(x, found) - wanted) / allowed
        weight *= error / error.max() + 1e-4
        weight /= weight.sum()
    series = Chebyshev(found, domain=[0, most]).convert(kind=Polynomial, domain=[-1, 1], window=[-1, 1])
    return [float(np.float32(each)) for each in series.coef], float(error.max())


if __name__ == "__main__":
    mp.dps = 40
    forms = (("exact", exact, 16, 9, 2.0**-21, 2.0**-32), ("tanh", tanh, 7.5, 11, 2.0**-22, 2.0**-34))
    for name, p, most, degree, relative, absolute in forms:
        coefficients, error = fit(p, most, degree, relative, absolute)
        print(f"{name} on [0, {most}], {error:.2f} of what is allowed:", *map(repr, coefficients), sep="\n    ")
