"""Integer instructions against Python's integers, in every width."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutgen.errors import SimError
from tests.sim.kernels import compute, kernel, run
from tests.sim.reference import array, bits, numbers

KINDS = ("u16", "s16", "u32", "s32", "u64", "s64")


def tuples(kind: str, count: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[numbers(kind)] * count), min_size=1, max_size=40)


def check(op: str, out: str, kinds: tuple[str, ...], rows: list[tuple[int, ...]], expect: Callable[..., int]) -> None:
    got = compute(op, out, [(k, array([r[i] for r in rows], k)) for i, k in enumerate(kinds)])
    want = array([expect(*r) for r in rows], out)
    assert got.tolist() == want.tolist(), f"{op} of {rows}"


def truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
@settings(max_examples=6)
def test_arithmetic_wraps(kind: str, data: st.DataObject) -> None:
    rows = data.draw(tuples(kind, 2))
    for op, expect in BINARY.items():
        check(f"{op}.{kind}", kind, (kind, kind), rows, expect)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
@settings(max_examples=6)
def test_high_half_of_a_product(kind: str, data: st.DataObject) -> None:
    rows = data.draw(tuples(kind, 2))
    check(f"mul.hi.{kind}", kind, (kind, kind), rows, lambda a, b: a * b >> bits(kind))


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
@settings(max_examples=6)
def test_multiply_add(kind: str, data: st.DataObject) -> None:
    rows = data.draw(tuples(kind, 3))
    check(f"mad.lo.{kind}", kind, (kind,) * 3, rows, lambda a, b, c: a * b + c)
    check(f"mad.hi.{kind}", kind, (kind,) * 3, rows, lambda a, b, c: (a * b >> bits(kind)) + c)


@pytest.mark.parametrize("kind", ("u16", "s16", "u32", "s32"))
@given(st.data())
@settings(max_examples=6)
def test_wide_products(kind: str, data: st.DataObject) -> None:
    wide = f"{kind[0]}{2 * bits(kind)}"
    rows = data.draw(st.lists(st.tuples(numbers(kind), numbers(kind), numbers(wide)), min_size=1, max_size=40))
    check(f"mul.wide.{kind}", wide, (kind, kind), [r[:2] for r in rows], lambda a, b: a * b)
    check(f"mad.wide.{kind}", wide, (kind, kind, wide), rows, lambda a, b, c: a * b + c)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
@settings(max_examples=6)
def test_division_truncates(kind: str, data: st.DataObject) -> None:
    rows = [r for r in data.draw(tuples(kind, 2)) if r[1] != 0] or [(1, 1)]
    check(f"div.{kind}", kind, (kind, kind), rows, truncated)
    check(f"rem.{kind}", kind, (kind, kind), rows, lambda a, b: a - b * truncated(a, b))


def test_division_by_zero_is_refused_where_it_executes() -> None:
    with pytest.raises(SimError, match=r"not by zero[\s\S]*div\.s32[\s\S]*thread \(3,0,0\)"):
        run(kernel("sub.s32 %r1, %r0, 3;\ndiv.s32 %r2, 1, %r1;"))
    guarded = (
        "sub.s32 %r1, %r0, 3;\nsetp.ne.s32 %p1, %r1, 0;\nmov.u32 %r2, 7;\n@%p1 div.s32 %r2, 62, %r1;\nst.global.u32"
        " [%d0], %r2;"
    )
    got, _ = run(kernel(guarded))
    assert got[3] == 7 and got[5] == 31


@given(st.lists(st.tuples(numbers("s32"), numbers("s32")), min_size=1, max_size=40))
@settings(max_examples=20)
def test_saturating_add(rows: list[tuple[int, int]]) -> None:
    clamp: Callable[[int], int] = lambda v: max(-(1 << 31), min((1 << 31) - 1, v))  # noqa: E731
    check("add.sat.s32", "s32", ("s32", "s32"), rows, lambda a, b: clamp(a + b))
    check("sub.sat.s32", "s32", ("s32", "s32"), rows, lambda a, b: clamp(a - b))


@pytest.mark.parametrize("kind", ("b16", "b32", "b64"))
@given(st.data())
@settings(max_examples=6)
def test_logic(kind: str, data: st.DataObject) -> None:
    rows = data.draw(tuples(kind, 2))
    check(f"and.{kind}", kind, (kind, kind), rows, lambda a, b: a & b)
    check(f"or.{kind}", kind, (kind, kind), rows, lambda a, b: a | b)
    check(f"xor.{kind}", kind, (kind, kind), rows, lambda a, b: a ^ b)
    one = [r[:1] for r in rows]
    check(f"not.{kind}", kind, (kind,), one, lambda a: ~a)
    check(f"cnot.{kind}", kind, (kind,), one, lambda a: int(a == 0))


@pytest.mark.parametrize("kind", ("s16", "s32", "s64"))
@given(st.data())
@settings(max_examples=6)
def test_sign(kind: str, data: st.DataObject) -> None:
    rows = data.draw(tuples(kind, 1))
    check(f"neg.{kind}", kind, (kind,), rows, lambda a: -a)
    check(f"abs.{kind}", kind, (kind,), rows, abs)


@pytest.mark.parametrize("kind", ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"))
@given(st.data())
@settings(max_examples=6)
def test_shifts_clamp_their_amount(kind: str, data: st.DataObject) -> None:
    amount = st.sampled_from((0, 1, bits(kind) - 1, bits(kind), bits(kind) + 1, 255, (1 << 32) - 1)) | st.integers(
        0, 70
    )
    rows = data.draw(st.lists(st.tuples(numbers(kind), amount), min_size=1, max_size=40))
    check(f"shr.{kind}", kind, (kind, "u32"), rows, lambda a, n: a >> min(n, 1000))
    if kind[0] == "b":
        check(f"shl.{kind}", kind, (kind, "u32"), rows, lambda a, n: a << n if n < 1000 else 0)


def test_a_shift_may_overwrite_its_amount() -> None:
    got, _ = run(
        kernel("mov.u32 %r1, 0x80000000;\nadd.u32 %r2, %r0, 0;\nshr.u32 %r2, %r1, %r2;\nst.global.u32 [%d0], %r2;")
    )
    assert got.tolist() == [0x80000000 >> i for i in range(32)]


@given(st.lists(st.tuples(numbers("b32"), numbers("b32"), numbers("b32")), min_size=1, max_size=40))
@settings(max_examples=20)
def test_funnel_shifts(rows: list[tuple[int, int, int]]) -> None:
    three = ("b32",) * 3
    check("shf.l.wrap.b32", "b32", three, rows, lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32)
    check("shf.l.clamp.b32", "b32", three, rows, lambda a, b, c: ((b << 32 | a) << min(c, 32)) >> 32)
    check("shf.r.wrap.b32", "b32", three, rows, lambda a, b, c: (b << 32 | a) >> (c & 31))
    check("shf.r.clamp.b32", "b32", three, rows, lambda a, b, c: (b << 32 | a) >> min(c, 32))


def extract(a: int, kind: str, b: int, c: int) -> int:
    """bfe, bit by bit, as the PTX ISA writes it."""
    msb, pos, length = bits(kind) - 1, b & 0xFF, c & 0xFF
    at: Callable[[int], int] = lambda i: (a >> i) & 1  # noqa: E731
    sign = 0 if kind[0] == "u" or length == 0 else at(min(pos + length - 1, msb))
    return sum((at(pos + i) if i < length and pos + i <= msb else sign) << i for i in range(msb + 1))


def insert(a: int, b: int, c: int, d: int, width: int) -> int:
    """bfi, bit by bit."""
    pos, length = c & 0xFF, d & 0xFF
    for i in range(length):
        if pos + i < width:
            b = b & ~(1 << pos + i) | ((a >> i) & 1) << pos + i
    return b


SMALL = st.integers(0, 70) | st.sampled_from((31, 32, 33, 63, 64, 255, 256, 257))


@pytest.mark.parametrize("kind", ("u32", "s32", "u64", "s64"))
@given(st.data())
@settings(max_examples=15)
def test_bit_fields(kind: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(numbers(kind), SMALL, SMALL), min_size=1, max_size=40))
    check(f"bfe.{kind}", kind, (kind, "u32", "u32"), rows, lambda a, b, c: extract(a, kind, b, c))
    if kind[0] == "u":
        wide = f"b{bits(kind)}"
        four = data.draw(st.lists(st.tuples(numbers(wide), numbers(wide), SMALL, SMALL), min_size=1, max_size=40))
        check(f"bfi.{wide}", wide, (wide, wide, "u32", "u32"), four, lambda a, b, c, d: insert(a, b, c, d, bits(kind)))


@given(st.lists(st.tuples(*[numbers("b32")] * 3), min_size=1, max_size=40))
@settings(max_examples=20)
def test_permute_bytes(rows: list[tuple[int, int, int]]) -> None:
    def permute(a: int, b: int, selector: int) -> int:
        result = 0
        for i in range(4):
            nibble = selector >> 4 * i & 15
            byte = ((b << 32 | a) >> 8 * (nibble & 7)) & 0xFF
            if nibble & 8:
                byte = 0xFF if byte & 0x80 else 0
            result |= byte << 8 * i
        return result

    check("prmt.b32", "b32", ("b32",) * 3, rows, permute)


@given(st.integers(0, 255), st.lists(st.tuples(*[numbers("b32")] * 3), min_size=1, max_size=20))
@settings(max_examples=25)
def test_any_function_of_three_bits(table: int, rows: list[tuple[int, int, int]]) -> None:
    def lut(a: int, b: int, c: int) -> int:
        bit: Callable[[int, int], int] = lambda x, i: x >> i & 1  # noqa: E731
        return sum((table >> (4 * bit(a, i) + 2 * bit(b, i) + bit(c, i)) & 1) << i for i in range(32))

    got = compute("lop3.b32", "b32", [("b32", array([r[i] for r in rows], "b32")) for i in range(3)], f", {table:#x}")
    assert got.tolist() == [lut(*r) for r in rows]


@pytest.mark.parametrize("kind", ("b32", "b64"))
@given(st.data())
@settings(max_examples=10)
def test_counting_and_reversing_bits(kind: str, data: st.DataObject) -> None:
    rows = data.draw(tuples(kind, 1))
    n = bits(kind)
    check(f"popc.{kind}", "u32", (kind,), rows, lambda a: a.bit_count())
    check(f"clz.{kind}", "u32", (kind,), rows, lambda a: n - a.bit_length())
    check(f"brev.{kind}", kind, (kind,), rows, lambda a: int(f"{a:0{n}b}"[::-1], 2))


@pytest.mark.parametrize("kind", ("u32", "s32", "u64", "s64"))
@given(st.data())
@settings(max_examples=10)
def test_finding_the_highest_bit(kind: str, data: st.DataObject) -> None:
    rows = data.draw(tuples(kind, 1))
    highest: Callable[[int], int] = lambda a: (~a if a < 0 else a).bit_length() - 1  # noqa: E731
    check(f"bfind.{kind}", "u32", (kind,), rows, highest)
    check(f"bfind.shiftamt.{kind}", "u32", (kind,), rows, lambda a: -1 if a in (0, -1) else bits(kind) - 1 - highest(a))


def test_forms_that_are_not_modelled_are_refused() -> None:
    for op in (
        "mul.s32",
        "mul24.lo.s32",
        "add.cc.u32",
        "dp4a.u32.u32",
        "bfind.u16",
        "lop3.or.b32",
        "shl.u32",
        "mul.wide.s64",
    ):
        with pytest.raises(SimError, match=rf"knows this form[\s\S]*{op}"):
            run(kernel(f"{op} %r1, %r0, %r0;"))
