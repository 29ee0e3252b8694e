"""cvt against Python's own conversions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutgen.errors import SimError
from tests.sim.kernels import compute, kernel, run
from tests.sim.reference import array, bits, f32, numbers, wrap

KINDS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


@pytest.mark.parametrize("source", KINDS)
@given(st.data())
@settings(max_examples=4)
def test_between_integers(source: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(numbers(source), min_size=1, max_size=30))
    for target in KINDS:
        got = compute(f"cvt.{target}.{source}", target, [(source, array(rows, source))])
        assert got.tolist() == array([wrap(v, target) for v in rows], target).tolist(), target
        low, high = (
            (0, (1 << bits(target)) - 1)
            if target[0] == "u"
            else (-(1 << bits(target) - 1), (1 << bits(target) - 1) - 1)
        )
        got = compute(f"cvt.sat.{target}.{source}", target, [(source, array(rows, source))])
        assert got.tolist() == array([max(low, min(high, v)) for v in rows], target).tolist(), f"sat {target}"


def test_a_narrow_signed_result_fills_a_wide_register() -> None:
    got, _ = run(kernel("mov.u32 %r1, 0x1234ff80;\ncvt.s32.s8 %r2, %r1;\nst.global.u32 [%d0], %r2;"))
    assert got[0] == 0xFFFFFF80
    got, _ = run(kernel("mov.u32 %r1, 0x1234ff80;\ncvt.u32.u8 %r2, %r1;\nst.global.u32 [%d0], %r2;"))
    assert got[0] == 0x80


ROUND = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
FLOATS = np.array(
    [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        0.49999997,
        127.5,
        128.0,
        -128.5,
        255.5,
        65535.5,
        1e9,
        2147483648.0,
        -2147483648.0,
        4294967296.0,
        -1.0,
        1e18,
        9.3e18,
        -9.3e18,
        1.9e19,
        1e30,
        -1e30,
    ],
    np.float32,
)


@pytest.mark.parametrize("rounding", ROUND)
@pytest.mark.parametrize("target", ["u16", "s16", "u32", "s32", "u64", "s64"])
def test_float_to_integer_rounds_and_clamps(target: str, rounding: str) -> None:
    low, high = (
        (0, (1 << bits(target)) - 1) if target[0] == "u" else (-(1 << bits(target) - 1), (1 << bits(target) - 1) - 1)
    )
    for source, values in (("f32", FLOATS), ("f64", FLOATS.astype(np.float64) + 0.25)):
        got = compute(f"cvt.{rounding}.{target}.{source}", target, [(source, values)])
        want = [max(low, min(high, ROUND[rounding](float(v)))) for v in values]
        assert got.tolist() == array(want, target).tolist(), source


def test_nan_and_infinities_to_integers() -> None:
    values = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert compute("cvt.rzi.s32.f32", "s32", [("f32", values)]).tolist() == [0, 0x7FFFFFFF, 0x80000000]
    assert compute("cvt.rzi.u64.f32", "u64", [("f32", values)]).tolist() == [0, (1 << 64) - 1, 0]


@pytest.mark.parametrize("source", ["u16", "s16", "u32", "s32", "u64", "s64"])
@given(st.data())
@settings(max_examples=5)
def test_integer_to_float_is_rounded_once(source: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(numbers(source), min_size=1, max_size=30))
    got = compute(f"cvt.rn.f32.{source}", "f32", [(source, array(rows, source))])
    assert got.view(np.float32).tolist() == [float(f32(Fraction(v))) for v in rows]
    got = compute(f"cvt.rn.f64.{source}", "f64", [(source, array(rows, source))])
    assert got.view(np.float64).tolist() == [float(v) for v in rows]


def test_between_floats() -> None:
    values = np.array([1.0, 1 / 3, 65519.0, 65520.0, 6e-8, 2.0**-25, -2.5], np.float32)
    half = compute("cvt.rn.f16.f32", "f16", [("f32", values)])
    assert half.view(np.float16)[[0, 2, 3, 5, 6]].tolist() == [1.0, 65504.0, np.inf, 0.0, -2.5]
    assert compute("cvt.f32.f16", "f32", [("b16", half)]).view(np.float32)[1] == np.float32(0.333251953125)
    assert compute("cvt.f64.f32", "f64", [("f32", values)]).view(np.float64).tolist() == values.astype(float).tolist()
    third = np.array([1 / 3, 1 + 2.0**-24, 1 + 2.0**-24 + 2.0**-50, 1e300])
    assert compute("cvt.rn.f32.f64", "f32", [("f64", third)]).view(np.float32).tolist() == [
        np.float32(1 / 3),
        1.0,
        1 + 2.0**-23,
        np.inf,
    ]
    assert compute("cvt.rni.f32.f32", "f32", [("f32", values * 2.5)]).view(np.float32).tolist()[-1] == -6.0
    assert compute("cvt.sat.f32.f32", "f32", [("f32", values)]).view(np.float32).tolist()[1:3] == [
        np.float32(1 / 3),
        1.0,
    ]


def test_bfloat16_rounds_to_even_and_keeps_nan() -> None:
    patterns = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x7F800001, 0x80000000], np.uint32)
    got = compute("cvt.rn.bf16.f32", "bf16", [("f32", patterns.view(np.float32))])
    assert got.tolist() == [0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x7FFF, 0x8000]
    back = compute("cvt.f32.bf16", "f32", [("b16", got)])
    assert back.tolist() == [int(g) << 16 for g in got]


def test_packing_two_halves_puts_the_first_operand_high() -> None:
    a, b = np.array([1.0, -2.0], np.float32), np.array([0.5, 4.0], np.float32)
    assert compute("cvt.rn.f16x2.f32", "b32", [("f32", a), ("f32", b)]).tolist() == [0x3C003800, 0xC0004400]
    assert compute("cvt.rn.bf16x2.f32", "b32", [("f32", a), ("f32", b)]).tolist() == [0x3F803F00, 0xC0004080]


@pytest.mark.parametrize(
    "op", ["cvt.f32.s32", "cvt.rz.f32.s32", "cvt.rn.f32.f32", "cvt.s32.f32", "cvt.rn.tf32.f32", "cvt.rn.e4m3x2.f32"]
)
def test_other_conversions_are_refused(op: str) -> None:
    with pytest.raises(SimError, match=rf"knows this form[\s\S]*{op}"):
        run(kernel(f"{op} %r1, %r2;"))


def test_tf32_rounds_ties_away_from_zero() -> None:
    patterns = np.array([0x3F801000, 0x3F800FFF, 0xBF803000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x00000FFF], np.uint32)
    got = compute("cvt.rna.tf32.f32", "b32", [("f32", patterns.view(np.float32))])
    assert [hex(each) for each in got.tolist()] == [
        "0x3f802000", "0x3f800000", "0xbf804000", "0x7f800000", "0x7f800000", "0x7fffffff", "0x0",
    ]  # fmt: skip


def narrow(kind: str) -> dict[int, Fraction]:
    """The finite numbers of an 8-bit float, from its definition."""
    exponent_bits, fraction_bits, bias = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15)}[kind]
    found = {}
    for code in range(256):
        exponent, fraction = code >> fraction_bits & (1 << exponent_bits) - 1, code & (1 << fraction_bits) - 1
        if exponent == (1 << exponent_bits) - 1 and (kind == "e5m2" or fraction == 7):
            continue  # infinities and NaNs
        scaled = fraction if exponent == 0 else fraction + (1 << fraction_bits)
        size = Fraction(scaled) * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)
        found[code] = -size if code >> 7 else size
    return found


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
@given(st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=20))
@settings(max_examples=30)
def test_8_bit_floats_are_the_nearest(kind: str, drawn: list[float]) -> None:
    known = narrow(kind)
    largest = max(known.values())
    middle = [float(known[i] + known[i + 1]) / 2 for i in range(0, 120, 7)]
    values = np.array([*drawn, *middle, *(-x for x in middle)], np.float32)
    got = compute(f"cvt.rn.satfinite.{kind}x2.f32", "b16", [("f32", values), ("f32", values[::-1].copy())])
    for value, other, both in zip(values.tolist(), values[::-1].tolist(), got.tolist(), strict=True):
        for each, code in ((value, both >> 8), (other, both & 255)):
            exact = Fraction(each) if math.isfinite(each) else (largest if each > 0 else -largest)
            exact = max(-largest, min(largest, exact))
            off = abs(known[code] - exact)
            rivals = [c for c, x in known.items() if abs(x - exact) <= off and x != known[code]]
            assert all(abs(known[c] - exact) == off and code % 2 == 0 for c in rivals)
            assert (code >> 7 == 1) == (math.copysign(1.0, each) < 0)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_8_bit_floats_unpack_to_halves(kind: str) -> None:
    codes = np.array([code << 8 | code ^ 0x80 for code in narrow(kind)], np.uint16)
    got = compute(f"cvt.rn.f16x2.{kind}x2", "b32", [("b16", codes)]).view(np.float16).reshape(-1, 2)
    known = narrow(kind)
    assert [Fraction(float(high)) for _, high in got] == [known[code] for code in known]
    assert [Fraction(float(low)) for low, _ in got] == [-known[code] for code in known]
    nan = compute(f"cvt.rn.satfinite.{kind}x2.f32", "b16", [("f32", np.array([np.nan], np.float32))] * 2)
    assert nan.tolist() == [0x7F7F]
    assert compute(f"cvt.rn.f16x2.{kind}x2", "b32", [("b16", nan)]).tolist() == [0x7FFF7FFF]
