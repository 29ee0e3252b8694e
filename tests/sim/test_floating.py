"""Floating point instructions against exact rational arithmetic, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutgen.errors import SimError
from layoutgen.sim.instructions.floating import fma_f32
from tests.sim.kernels import compute, kernel, run
from tests.sim.reference import f32


def words(values: list[float] | np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float32).view(np.uint32)


# Any bit pattern of a finite float32, so that exponents are spread as widely as they can be.
PATTERN = st.integers(0, 0xFF7FFFFF).filter(lambda p: p & 0x7F800000 != 0x7F800000)
CORNERS = st.sampled_from(
    (0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x00800001, 0x3F800000, 0x3F800001, 0x3F7FFFFF, 0x7F7FFFFF,
     0xFF7FFFFF, 0x4B800000, 0x4B800001, 0x33800000, 0x0C800000, 0x1A000001)
)  # fmt: skip


def value(pattern: int) -> Fraction:
    return Fraction(float(np.uint32(pattern).view(np.float32)))


def same(got: np.ndarray, want: list[np.float32]) -> None:
    """Equal as numbers (zeros of either sign): the rational reference has one zero."""
    assert got.view(np.float32).tolist() == [float(w) for w in want]


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    out = np.empty(a.shape, np.float32)
    with np.errstate(all="ignore"):
        fma_f32(a, b, c, out)
    return out


@given(st.lists(st.tuples(*[PATTERN | CORNERS] * 3), min_size=1, max_size=60))
@settings(max_examples=100)
def test_fma_of_any_patterns_is_rounded_once(rows: list[tuple[int, int, int]]) -> None:
    a, b, c = (np.array([r[i] for r in rows], np.uint32).view(np.float32) for i in range(3))
    same(fma(a, b, c), [f32(value(x) * value(y) + value(z)) for x, y, z in rows])


@given(
    st.lists(st.tuples(st.integers(1, 1 << 24), st.integers(1, 1 << 24), st.integers(1, 1 << 24), st.integers(0, 80)),
             min_size=1, max_size=60)
)  # fmt: skip
@settings(max_examples=60)
def test_fma_near_halfway_is_rounded_once(rows: list[tuple[int, int, int, int]]) -> None:
    """A sum whose float64 rounding lands halfway: big + half an ulp + or - a product far below."""
    a, b, c = [], [], []
    for x, y, z, distance in rows:
        big, tiny = z | 1 << 23, Fraction(2) ** -distance
        a += [x, -x]
        b += [float(y * tiny / (1 << 40))] * 2
        c += [float(big), float(big)]
    arrays = [np.array(v, np.float32) for v in (a, b, c)]
    want = [f32(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(*arrays, strict=True)]
    same(fma(*arrays), want)


def test_fma_cases_that_double_rounding_gets_wrong() -> None:
    """a * b is half an ulp of c and a little more or less than float64 can keep beside c."""
    odd = np.float32(1 + 2**-23)
    cases = [
        (odd, np.float32(2.0**-24 * (1 - 2**-23)), np.float32(1.0)),
        (np.float32(2**-12 + 2**-35), np.float32(2**-12 - 2**-35), odd),
        (np.float32(-(2**-12) - 2**-35), np.float32(2**-12 - 2**-35), odd),
        (np.float32(1 + 2**-12), np.float32(2.0**-24 * (1 + 2**-12)), np.float32(1.0)),
        # denormal results: the product's halves lie below 2^-149
        (np.float32(2**-75 + 2**-98), np.float32(2**-75), np.float32(2**-149)),
        (np.float32(2**-75), np.float32(2**-75), np.float32(2**-149)),
        (np.float32(2**-75 - 2**-99), np.float32(2**-75), np.float32(2**-149)),
        (np.float32(2**-100), np.float32(-(2**-100)), np.float32(3 * 2**-149)),
        (np.float32((1 - 2**-23) * 2**-75), np.float32((1 + 2**-23) * 2**-75), np.float32(2**-127 + 2**-149)),
        (np.float32((1 + 2**-23) * 2**-75), np.float32((1 + 2**-23) * 2**-75), np.float32(2**-127 + 2**-148)),
    ]
    a, b, c = (np.array([case[i] for case in cases], np.float32) for i in range(3))
    exact = [f32(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in cases]
    twice = (a.astype(np.float64) * b + c).astype(np.float32)
    same(fma(a, b, c), exact)
    needed = twice != np.array(exact)
    assert needed[:4].any() and needed[4:].any(), "these cases should need the correction"
    # A NaN elsewhere in the array must not hide the denormals from the check.
    nan = np.full(len(a), np.nan, np.float32)
    both = fma(np.concatenate([nan, a]), np.concatenate([b, b]), np.concatenate([c, c]))
    same(both[len(a) :], exact)


def test_fma_of_infinities_and_signed_zeros() -> None:
    a = np.array([np.inf, np.inf, 0.0, -0.0, -0.0, 3e38], np.float32)
    b = np.array([1.0, 0.0, 1.0, 1.0, 1.0, 3e38], np.float32)
    c = np.array([-np.inf, 1.0, -0.0, -0.0, 0.0, -np.inf], np.float32)
    got = words(fma(a, b, c))
    assert np.isnan(got[:2].view(np.float32)).all()
    assert got[2:].tolist() == [0, 0x80000000, 0, 0xFF800000]


def test_fma_instruction_and_merged_neighbours_agree() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.standard_normal(64).astype(np.float32) for _ in range(3))
    got = compute("fma.rn.f32", "f32", [("f32", a), ("f32", b), ("f32", c)])
    same(
        got,
        [f32(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))) for x, y, z in zip(a, b, c, strict=True)],
    )


EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add.f32": lambda a, b: a + b,
    "add.rn.f32": lambda a, b: a + b,
    "sub.f32": lambda a, b: a - b,
    "mul.f32": lambda a, b: a * b,
    "mul.rn.f32": lambda a, b: a * b,
    "div.rn.f32": lambda a, b: a / b,
}


@pytest.mark.parametrize("op", EXACT)
@given(st.lists(st.tuples(PATTERN | CORNERS, PATTERN | CORNERS), min_size=1, max_size=40))
@settings(max_examples=10)
def test_arithmetic_is_rounded_once(op: str, rows: list[tuple[int, int]]) -> None:
    rows = [r for r in rows if not op.startswith("div") or value(r[1]) != 0] or [(1, 1)]
    a, b = (np.array([r[i] for r in rows], np.uint32).view(np.float32) for i in range(2))
    same(compute(op, "f32", [("f32", a), ("f32", b)]), [f32(EXACT[op](value(x), value(y))) for x, y in rows])


def test_f64_arithmetic() -> None:
    a, b = np.array([1.0, 3.0, 1e100, 0.1]), np.array([3.0, -7.0, 1e-200, 0.2])
    for op, want in (("add", a + b), ("sub", a - b), ("mul", a * b), ("div.rn", a / (b * 4))):
        divisor = b * 4 if op == "div.rn" else b
        assert compute(f"{op}.f64", "f64", [("f64", a), ("f64", divisor)]).view(np.float64).tolist() == want.tolist()


def test_roots_and_reciprocals_are_rounded_once() -> None:
    a = np.array([2.0, 3.0, 10.0, 1e-40, 0.0, 4.0], np.float32)
    root = compute("sqrt.rn.f32", "f32", [("f32", a)]).view(np.float32)
    assert root.tolist() == [float(np.float32(np.sqrt(np.float64(x)))) for x in a]  # 53 bits suffice for a root to 24
    inverse = compute("rcp.rn.f32", "f32", [("f32", a)])
    same(inverse[:4], [f32(1 / Fraction(float(x))) for x in a[:4]])
    assert inverse[4] == 0x7F800000


def test_flush_to_zero_of_operands_and_results() -> None:
    tiny = words([1.0, -1.0, 1.0, 2.0**-126])
    tiny[:3] = (0x00400000, 0x80400000, 0x00800000)
    a = tiny.view(np.float32)
    doubled = compute("add.ftz.f32", "f32", [("f32", a), ("f32", np.zeros(4, np.float32))])
    assert doubled.tolist() == [0, 0, 0x00800000, 0x00800000]
    halved = compute("mul.ftz.f32", "f32", [("f32", a), ("f32", np.full(4, 0.5, np.float32))])
    assert halved.tolist() == [0, 0x80000000, 0, 0]
    kept = compute("mul.f32", "f32", [("f32", a), ("f32", np.full(4, 0.5, np.float32))])
    assert kept.tolist() == [0x00200000, 0x80200000, 0x00400000, 0x00400000]
    fused = compute("fma.rn.ftz.f32", "f32", [("f32", a), ("f32", np.full(4, 0.5, np.float32)), ("f32", a * 0)])
    assert (fused & 0x7FFFFFFF).tolist() == [0, 0, 0, 0]


def test_saturation_clamps_to_the_unit_interval() -> None:
    a = np.array([-1.0, 0.25, 3.0, np.nan, 1.0], np.float32)
    got = compute("add.sat.f32", "f32", [("f32", a), ("f32", np.zeros(5, np.float32))])
    assert got.view(np.float32).tolist() == [0.0, 0.25, 1.0, 0.0, 1.0]
    fused = compute("fma.rn.sat.f32", "f32", [("f32", a), ("f32", np.full(5, 2.0, np.float32)), ("f32", a * 0)])
    assert fused.view(np.float32).tolist() == [0.0, 0.5, 1.0, 0.0, 1.0]


def test_min_and_max_of_zeros_and_nans() -> None:
    a = np.array([0.0, -0.0, np.nan, 1.0, np.nan, 2.0], np.float32)
    b = np.array([-0.0, 0.0, 1.0, np.nan, np.nan, 1.0], np.float32)
    low, high = (compute(f"{op}.f32", "f32", [("f32", a), ("f32", b)]) for op in ("min", "max"))
    assert low[:2].tolist() == [0x80000000, 0x80000000] and high[:2].tolist() == [0, 0]
    for got, last in ((low, 1.0), (high, 2.0)):
        assert got[2:4].view(np.float32).tolist() == [1.0, 1.0]
        assert np.isnan(got[4:5].view(np.float32)).all() and got[5:].view(np.float32)[0] == last
    assert np.isnan(compute("max.NaN.f32", "f32", [("f32", a), ("f32", b)])[2:5].view(np.float32)).all()


def test_signs_and_tests() -> None:
    a = np.array([1.5, -1.5, np.inf, np.nan, -0.0], np.float32)
    assert compute("neg.f32", "f32", [("f32", a)])[[0, 1, 4]].tolist() == words([-1.5, 1.5, 0.0]).tolist()
    assert compute("abs.f32", "f32", [("f32", a)])[[0, 1, 4]].tolist() == words([1.5, 1.5, 0.0]).tolist()
    copied = compute("copysign.f32", "f32", [("f32", a[[0, 1]]), ("f32", np.array([-2.0, 3.0], np.float32))])
    assert copied.tolist() == words([2.0, -3.0]).tolist()
    for what, want in (("finite", [1, 1, 0, 0, 1]), ("infinite", [0, 0, 1, 0, 0]), ("notanumber", [0, 0, 0, 1, 0])):
        assert compute(f"testp.{what}.f32", "pred", [("f32", a)]).tolist() == want


@pytest.mark.parametrize(
    "op",
    [
        "ex2.approx.f32",
        "div.full.f32",
        "fma.f32",
        "fma.rz.f32",
        "add.rp.f32",
        "fma.rz.f64",
        "add.ftz.f64",
        "mul.rn.f16",
    ],
)
def test_forms_that_are_not_exact_are_refused(op: str) -> None:
    with pytest.raises(SimError, match=rf"knows this form[\s\S]*{op}"):
        run(kernel(f"{op} %f1, %f2, %f3, %f4;"))
