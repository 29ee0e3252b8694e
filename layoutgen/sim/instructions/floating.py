"""Floating point arithmetic in f32 and f64 (PTX ISA 9.0, section 9.7.3), correctly rounded to nearest even.

Each instruction is rounded as it stands; where neither a mul nor an add says .rn, ptxas may fuse them and round once. A
NaN is a NaN: which payload a GPU would give it is not modelled. Approximate instructions are in ``approximate``, or
refused.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import threading
from collections.abc import Callable
from functools import cache, partial

import numpy as np

from layoutgen.sim.frame import Array
from layoutgen.sim.instructions.forms import Form

_F32_TINY = np.float32(2.0**-126)  # the smallest normal number
_DISCARDED = np.int64((1 << 29) - 1)  # the bits of a float64 that a normal float32 has no room for
_HALFWAY = np.int64(1 << 28)


class _Workspace(threading.local):
    """Arrays that fma_f32 reuses: fresh ones of this size would cost more than the arithmetic (each is mapped anew)."""

    def __init__(self) -> None:
        self.size = 0

    def arrays(self, shape: tuple[int, ...]) -> list[Array]:
        size = math.prod(shape)
        if size > self.size:
            self.size = size
            kinds = (np.float64, np.float64, np.int64, np.float32, np.float32, np.bool_)
            self.held: list[Array] = [np.empty(size, kind) for kind in kinds]
        return [a[:size].reshape(shape) for a in self.held]


_workspace = _Workspace()


def fma_f32(a: Array, b: Array, c: Array, out: Array) -> None:
    """out = a * b + c with one rounding.

    The float64 product is exact. The float64 sum is rounded once, and rounding it again to float32 is wrong only
    where it fell exactly halfway between two float32 numbers while it wasn't exact: those few lanes are nudged toward
    the exact sum. Where float32 numbers are denormal, halfway lies elsewhere, so all of those are looked at.
    """
    product, total, bits, rounded, magnitude, suspicious = _workspace.arrays(out.shape)
    np.copyto(product, a)
    np.copyto(total, b)
    np.multiply(product, total, out=product)
    np.copyto(total, c)
    np.add(product, total, out=total)
    np.copyto(rounded, total, casting="same_kind")
    np.bitwise_and(total.view(np.int64), _DISCARDED, out=bits)
    np.equal(bits, _HALFWAY, out=suspicious)
    np.absolute(rounded, out=magnitude)
    if not magnitude.min() > _F32_TINY:  # so also where a NaN hides the minimum
        suspicious |= (magnitude <= _F32_TINY) & (total != 0)
    if suspicious.any():
        where = np.nonzero(suspicious)
        addend = np.broadcast_to(c, out.shape)[where].astype(np.float64)
        rounded[where] = _round_sum(product[where], addend, total[where])
    out[...] = rounded


def _round_sum(product: Array, addend: Array, total: Array) -> Array:
    """float32 of the exact product + addend, whose float64 sum is ``total``.

    Rounds to odd first, which makes the second rounding safe (Boldo and Melquiond, 2008).
    """
    part = total - product
    error = (product - (total - part)) + (addend - part)  # Knuth's two-sum: total + error is the exact sum
    even = (total.view(np.int64) & 1) == 0
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where((error != 0) & even, np.nextafter(total, toward), total).astype(np.float32)


@cache
def _fma_of_libm() -> np.ufunc:
    """Looked for when first needed: that starts a process, which no import should."""
    fma = ctypes.CDLL(ctypes.util.find_library("m")).fma
    fma.argtypes, fma.restype = [ctypes.c_double] * 3, ctypes.c_double
    return np.frompyfunc(fma, 3, 1)


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once. Where no number is tiny or huge, by adding c to the two halves of the product, rounded
    to odd before the last sum (Boldo and Melquiond, "Emulation of a FMA and Correctly Rounded Sums", IEEE Transactions
    on Computers 57, 2008); elsewhere by the C library's, number by number."""
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        product = a * b
        error = _product_error(a, b, product)
        high, low = _two_sum(c, error)
        most, rest = _two_sum(product, high)
        last, lost = _two_sum(low, rest)
        even = (last.view(np.uint64) & np.uint64(1)) == 0
        odd = np.where((lost != 0) & even, np.nextafter(last, np.copysign(np.inf, lost)), last)
        result = most + odd
        result = np.where(result == 0, np.where(error == 0, product + c, 0.0), result)
    within = _ordinary(a, _FACTOR) & _ordinary(b, _FACTOR) & _ordinary(c, _ADDEND)
    if not within.all():
        with np.errstate(invalid="ignore"):
            result[~within] = np.asarray(_fma_of_libm()(a[~within], b[~within], c[~within]), np.float64)
    return result


_FACTOR, _ADDEND = 2.0**450, 2.0**900  # with these, no half of a product overflows or loses bits


def _ordinary(x: Array, most: float) -> Array:
    size = np.abs(x)
    found: Array = (size == 0) | ((size >= 1 / most) & (size <= most))
    return found


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """x + y rounded, and what rounding left (Knuth, TAOCP 4.2.2)."""
    total = x + y
    other = total - x
    return total, (x - (total - other)) + (y - other)


def _product_error(x: Array, y: Array, product: Array) -> Array:
    """What rounding left of x * y (Dekker, "A Floating-Point Technique for Extending the Available Precision")."""

    def halves(value: Array) -> tuple[Array, Array]:
        scaled = value * 134217729.0  # 2^27 + 1
        upper = scaled - (scaled - value)
        return upper, value - upper

    (x1, x2), (y1, y2) = halves(x), halves(y)
    error: Array = ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2
    return error


def _fused_f64(a: Array, b: Array, c: Array, out: Array) -> None:
    out[...] = fma_f64(a, b, c)


def flush(x: Array) -> Array:
    """.ftz: denormal numbers become zeros of their sign."""
    return np.where(np.abs(x) < _F32_TINY, np.copysign(np.float32(0), x), x)


def _flushing(fn: Callable[..., object], *operands: Array) -> None:
    *sources, out = operands
    result = np.empty(np.broadcast(*sources).shape, out.dtype)
    fn(*(flush(s) for s in sources), result)
    out[...] = flush(result)


def _saturating(fn: Callable[..., object], *operands: Array) -> None:
    """.sat: clamps to [0, 1]; a NaN becomes +0."""
    *sources, out = operands
    result = np.empty(np.broadcast(*sources).shape, out.dtype)
    fn(*sources, result)
    out[...] = np.where(result > 0, np.minimum(result, out.dtype.type(1)), out.dtype.type(0))


def _rounded(
    fn: Callable[..., object], sources: int, kinds: tuple[str, ...], bare: bool = True
) -> Callable[[tuple[str, ...]], Form | None]:
    """Forms ``[.rn][.ftz][.sat].type``; ``bare``: .rn may be left out. f64 has neither .ftz nor .sat."""

    def build(mods: tuple[str, ...]) -> Form | None:
        kind = mods[-1]
        rest = list(mods[:-1])
        if rest[:1] == ["rn"]:
            rest.pop(0)
        elif not bare:
            return None
        if kind not in kinds or rest not in ([], ["ftz"], ["sat"], ["ftz", "sat"]) or (rest and kind == "f64"):
            return None
        run = fn
        if "ftz" in rest:
            run = partial(_flushing, run)
        if "sat" in rest:
            run = partial(_saturating, run)
        return Form(run, kind, (kind,) * sources)

    return build


def _fused(mods: tuple[str, ...]) -> Form | None:
    by_type = {"f32": fma_f32, "f64": _fused_f64}
    return _rounded(by_type[mods[-1]], 3, (mods[-1],), bare=False)(mods) if mods[-1] in by_type else None


def _reciprocal(a: Array, out: Array) -> None:
    np.divide(a.dtype.type(1), a, out=out)


def _least(greatest: bool, nan: bool, a: Array, b: Array, out: Array) -> None:
    """min or max as PTX has them: -0 < +0; one NaN gives the other operand (with .NaN: NaN)."""
    pick = np.maximum if greatest else np.minimum
    result = pick(a, b) if nan else (np.fmax if greatest else np.fmin)(a, b)
    zeros = (a == 0) & (b == 0)
    if zeros.any():
        negative = np.signbit(a) & np.signbit(b) if greatest else np.signbit(a) | np.signbit(b)
        result = np.where(zeros, np.where(negative, out.dtype.type(-0.0), out.dtype.type(0.0)), result)
    out[...] = result


def _extreme(greatest: bool) -> Callable[[tuple[str, ...]], Form | None]:
    def build(mods: tuple[str, ...]) -> Form | None:
        kind, rest = mods[-1], mods[:-1]
        if (
            kind not in ("f32", "f64")
            or rest not in ((), ("ftz",), ("NaN",), ("ftz", "NaN"))
            or (kind == "f64" and rest)
        ):
            return None
        fn: Callable[..., object] = partial(_least, greatest, "NaN" in rest)
        return Form(partial(_flushing, fn) if "ftz" in rest else fn, kind, (kind, kind))

    return build


def _sign(fn: np.ufunc) -> Callable[[tuple[str, ...]], Form | None]:
    def build(mods: tuple[str, ...]) -> Form | None:
        if mods == ("ftz", "f32"):
            return Form(partial(_flushing, fn), "f32", ("f32",))
        return Form(fn, mods[0], mods) if mods in (("f32",), ("f64",)) else None

    return build


def _copysign(a: Array, b: Array, out: Array) -> None:
    """copysign d, a, b: the sign of a on the magnitude of b."""
    np.copysign(b, a, out=out)


def _test(what: str) -> Callable[[Array, Array], object] | None:
    tests: dict[str, Callable[[Array, Array], object]] = {
        "finite": lambda a, out: np.isfinite(a, out=out),
        "infinite": lambda a, out: np.isinf(a, out=out),
        "number": lambda a, out: np.logical_not(np.isnan(a), out=out),
        "notanumber": lambda a, out: np.isnan(a, out=out),
    }
    return tests.get(what)


def _test_form(mods: tuple[str, ...]) -> Form | None:
    if len(mods) != 2 or mods[1] not in ("f32", "f64"):
        return None
    fn = _test(mods[0])
    return None if fn is None else Form(fn, "pred", (mods[1],))


_BOTH = ("f32", "f64")
BUILDERS = {
    "add": _rounded(np.add, 2, _BOTH),
    "sub": _rounded(np.subtract, 2, _BOTH),
    "mul": _rounded(np.multiply, 2, _BOTH),
    "fma": _fused,
    "mad": _fused,
    "div": _rounded(np.divide, 2, _BOTH, bare=False),
    "rcp": _rounded(_reciprocal, 1, _BOTH, bare=False),
    "sqrt": _rounded(np.sqrt, 1, _BOTH, bare=False),
    "min": _extreme(False),
    "max": _extreme(True),
    "neg": _sign(np.negative),
    "abs": _sign(np.absolute),
    "copysign": lambda mods: Form(_copysign, mods[0], mods * 2) if mods in (("f32",), ("f64",)) else None,
    "testp": _test_form,
}
