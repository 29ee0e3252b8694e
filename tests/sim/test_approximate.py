"""Approximate instructions against float64, within the errors that the PTX ISA allows them, and at their corners."""

from __future__ import annotations

import numpy as np
import pytest

from layoutgen.errors import SimError
from tests.sim.kernels import compute, kernel, run

INF, NAN = np.float32(np.inf), np.float32(np.nan)
TINY = np.float32(2.0**-126)  # the smallest normal number


def f32(op: str, *inputs: object) -> np.ndarray:
    """The instruction of arrays of f32."""
    arrays = [np.asarray(each, np.float32) for each in inputs]
    return compute(op, "f32", [("f32", each) for each in arrays]).view(np.float32)


def test_powers_of_two_are_within_their_error() -> None:
    """2^-22.5 of the result; whole powers are exact here."""
    x = np.concatenate((np.linspace(-126, 127.99, 500), np.linspace(-1, 1, 500))).astype(np.float32)
    exact = np.exp2(x.astype(np.float64))
    assert (abs(f32("ex2.approx.ftz.f32", x) - exact) <= 2.0**-22.5 * exact).all()
    whole = np.arange(-126, 128)
    assert f32("ex2.approx.ftz.f32", whole).tolist() == np.ldexp(1.0, whole).tolist()


def test_powers_of_two_beyond_the_numbers() -> None:
    """What is below the normal numbers is 0, as operand and as result."""
    x = [-np.inf, -1e-40, -0.0, 0.0, 1e-40, np.inf, 128.0, -126.5, -149.0, -1e30]
    assert f32("ex2.approx.ftz.f32", x).tolist() == [0, 1, 1, 1, 1, np.inf, np.inf, 0, 0, 0]
    assert np.isnan(f32("ex2.approx.ftz.f32", [np.nan])).all()


@pytest.mark.parametrize("op", ["div.approx.f32", "div.approx.ftz.f32"])
def test_quotients_are_within_their_error(op: str) -> None:
    """Two units in the last place, for divisors up to 2^126."""
    random = np.random.default_rng(0)
    a, b = (np.ldexp(random.uniform(1, 2, 500), random.integers(-60, 60, 500)).astype(np.float32) for _ in "ab")
    b[:3], a[:3] = (2.0**126, -(2.0**126), TINY), (1.5 * 2.0**126, 1.5 * 2.0**10, 1.0)
    exact = a.astype(np.float64) / b
    assert (abs(f32(op, a, -b) + exact) <= 2.0**-22 * abs(exact)).all()


@pytest.mark.parametrize("op", ["div.approx.f32", "div.approx.ftz.f32"])
def test_a_divisor_above_2_to_the_126_gives_zero(op: str) -> None:
    """Or a NaN, if it divides an infinity (PTX ISA 9.0, 9.7.3, div)."""
    huge = [1.5 * 2.0**126, -(2.0**127), 3e38, 1.0001 * 2.0**126, 3e38, 3e38]
    found = f32(op, [2.0**127, 2.0**127, -3e38, 1.0, np.inf, np.nan], huge)
    assert found[:4].tolist() == [0, 0, 0, 0] and np.signbit(found[:4]).tolist() == [False, True, True, False]
    assert np.isnan(found[4:]).all()


def test_quotients_of_zeros_and_infinities() -> None:
    a = [1.0, -1.0, 0.0, np.inf, 1.0, -np.inf, 0.0]
    b = [0.0, 0.0, 0.0, np.inf, -np.inf, 2.0, 3.0]
    found = f32("div.approx.ftz.f32", a, b)
    assert found[[0, 1, 4, 5, 6]].tolist() == [np.inf, -np.inf, 0, -np.inf, 0] and np.isnan(found[2:4]).all()


def test_quotients_flush_where_they_say_so() -> None:
    """Operands and results below the normal numbers."""
    a, b = [1e-40, 1.0, -TINY, TINY], [1.0, 1e-40, 4.0, 1e-40]
    assert f32("div.approx.ftz.f32", a, b).tolist() == [0, np.inf, 0, np.inf]
    kept = f32("div.approx.f32", a, b)
    assert kept[0] == np.float32(1e-40) and kept[2] == -TINY / 4 and 0 < kept[3] < INF


def rcp(a: object) -> np.ndarray:
    return compute("rcp.approx.ftz.f64", "f64", [("f64", np.asarray(a, np.float64))]).view(np.float64)


def test_coarse_reciprocals() -> None:
    """The low 32 bits are neither read nor written; 20 of the high ones are right."""
    random = np.random.default_rng(0)
    a = np.ldexp(random.uniform(1, 2, 500), random.integers(-1000, 1000, 500)) * random.choice((-1, 1), 500)
    found = rcp(a)
    assert (abs(found * a - 1) <= 2.0**-19).all()
    assert not (found.view(np.uint64) & np.uint64(0xFFFFFFFF)).any()
    alike = (a.view(np.uint64) | np.uint64(0xFFFFFFFF)).view(np.float64)
    assert rcp(alike).tolist() == found.tolist()


def test_coarse_reciprocals_beyond_the_numbers() -> None:
    a = [0.0, -0.0, np.inf, -np.inf, 5e-324, -1e-310, 2.0**1023, -(2.0**1023), 2.0**-1022]
    found = rcp(a)
    assert found.tolist() == [np.inf, -np.inf, 0, 0, np.inf, -np.inf, 0, 0, 2.0**1022]
    assert np.signbit(found).tolist() == np.signbit(a).tolist()
    quiet = np.array([0x7FF0000000000001, 0x7FF8000000000000], np.uint64)  # the first an infinity in its high bits
    assert np.isnan(rcp(quiet.view(np.float64))).all()


@pytest.mark.parametrize(
    "instruction",
    [
        "ex2.approx.f32 %f1, %f2", "ex2.approx.ftz.f16 %h1, %h2", "div.full.f32 %f1, %f2, %f3",
        "div.full.ftz.f32 %f1, %f2, %f3", "rcp.approx.f64 %x1, %x2", "rcp.rn.ftz.f64 %x1, %x2",
    ],
)  # fmt: skip
def test_other_forms_are_refused(instruction: str) -> None:
    with pytest.raises(SimError, match=rf"knows this form[\s\S]*{instruction.split()[0]}"):
        run(kernel(f"{instruction};"))
