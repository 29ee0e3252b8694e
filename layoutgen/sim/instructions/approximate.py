"""Approximate floating point (PTX ISA 9.0, section 9.7.3): ex2.approx, div.approx, and rcp.approx of f64.

The ISA bounds their errors (ex2 by 2^-22.5 of the result, div by 2 units in the last place) and leaves the bits to the
hardware. Here they are rounded to nearest, so that a GPU's result may differ in the last two bits.
"""

from __future__ import annotations

import numpy as np

from layoutgen.sim.frame import Array
from layoutgen.sim.instructions.floating import flush
from layoutgen.sim.instructions.forms import Form

_LARGE = np.float32(2.0**126)
_F64_TINY = 2.0**-1022
_HIGH = np.uint64(0xFFFFFFFF00000000)


def _exp2(a: Array, out: Array) -> None:
    with np.errstate(over="ignore", under="ignore"):
        out[...] = flush(np.exp2(flush(a).astype(np.float64)).astype(np.float32))


def _divide(ftz: bool, a: Array, b: Array, out: Array) -> None:
    """A divisor above 2^126 gives a zero, or a NaN if it divides an infinity."""
    a, b = (flush(a), flush(b)) if ftz else (a, b)
    with np.errstate(all="ignore"):
        result = (a.astype(np.float64) / b.astype(np.float64)).astype(np.float32)
    huge = (abs(b) > _LARGE) & np.isfinite(b)
    if huge.any():
        zero = np.copysign(np.float32(0), a) * np.sign(b)
        result = np.where(huge & ~np.isnan(a), np.where(np.isinf(a), np.float32(np.nan), zero), result)
    out[...] = flush(result) if ftz else result


def _division(mods: tuple[str, ...]) -> Form | None:
    if mods not in (("approx", "f32"), ("approx", "ftz", "f32")):
        return None
    return Form(lambda a, b, out: _divide("ftz" in mods, a, b, out), "f32", ("f32", "f32"))


def _coarse_reciprocal(a: Array, out: Array) -> None:
    """Of the high 32 bits of a, to as many: a number for Newton's iteration to begin with."""

    def high(x: Array) -> Array:
        kept = (x.view(np.uint64) & _HIGH).view(np.float64)
        return np.where(abs(kept) < _F64_TINY, np.copysign(0.0, x), kept)

    with np.errstate(all="ignore"):
        out[...] = np.where(np.isnan(a), a, high(1 / high(np.ascontiguousarray(a))))


BUILDERS = {
    "rcp": lambda mods: Form(_coarse_reciprocal, "f64", ("f64",)) if mods == ("approx", "ftz", "f64") else None,
    # Without .ftz denormal numbers count, which none of our kernels asks for.
    "ex2": lambda mods: Form(_exp2, "f32", ("f32",)) if mods == ("approx", "ftz", "f32") else None,
    "div": _division,
}
