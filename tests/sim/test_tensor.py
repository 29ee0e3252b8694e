"""mma.sync: whose register holds what, what is summed how, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from layoutgen.errors import SimError
from layoutgen.hw.mma_atoms import MMA_ATOMS
from layoutgen.sim import GlobalMemory, Options, launch
from layoutgen.sim.elements import ELEMENTS
from layoutgen.sim.instructions.tensor import _FORMS, places
from layoutgen.sim.tensor_core import multiply_add
from tests.sim.kernels import DATA, compute, kernel, run

pytestmark = pytest.mark.filterwarnings("ignore:invalid value")  # of signalling NaNs, which decoding makes quiet

FORMS = [
    (shape, a, b, c)
    for (inputs, sums), shapes in _FORMS.items()
    for shape, a, b, c in product(shapes, inputs, inputs, sums)
]
SUM_BITS = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}
WIDTH = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def encode(values: NDArray[np.int64], kind: str) -> NDArray:
    """Small integers -> bits of a type that has them all."""
    if kind in ("s8", "u8"):
        return values.astype(np.int8).view(np.uint8)
    if kind in ("s32", "f32", "f64", "f16"):
        dtype = {"s32": np.int32, "f32": np.float32, "f64": np.float64, "f16": np.float16}[kind]
        return values.astype(dtype).view(WIDTH[np.dtype(dtype).itemsize * 8])
    element = ELEMENTS[kind]
    every = np.arange(1 << element.bits, dtype=WIDTH[element.bits]) if element.bits < 32 else None
    if every is None:
        return values.astype(np.float32).view(np.uint32)
    bits = {float(value): int(each) for each, value in zip(every[::-1], element.decode(every)[::-1], strict=True)}
    return np.vectorize(lambda value: bits[float(value)])(values).astype(WIDTH[element.bits])


def deal(matrix: NDArray, per_register: int) -> NDArray[np.uint32]:
    """A fragment's matrix (rows, k) -> (lane, register), by the equations of the PTX ISA (9.7.15.5), told for each lane
    and element apart."""
    rows, columns = matrix.shape
    held = np.empty((32, rows * columns // 32), matrix.dtype)
    for lane in range(32):
        group, in_group = lane >> 2, lane % 4
        for i in range(held.shape[1]):
            pair, within = divmod(i, per_register)
            row = group + 8 * (pair & 1) if rows == 16 else group
            step = pair >> 1 if rows == 16 else pair
            held[lane, i] = matrix[row, in_group * per_register + within + 4 * per_register * step]
    return held


def words(held: NDArray) -> NDArray:
    return np.ascontiguousarray(held).view(np.uint64 if held.dtype == np.uint64 else np.uint32)


def mma(
    shape: tuple[int, int, int], types: tuple[str, str, str], a: NDArray, b: NDArray, c: NDArray, suffix: str = ""
) -> NDArray:
    """Bits of a (M, K), b (N, K), c (M, N) -> bits of d, through a kernel of one warp."""
    (m, n, k), (of_a, of_b, of_c) = shape, types
    per = max(32 // ELEMENTS[of_a].bits, 1)
    fragments = [words(deal(a, per)), words(deal(b, per)), words(deal(c, 2))]
    wide = of_c == "f64"
    memory, lines, vectors = GlobalMemory(), [], []
    lanes = [np.ascontiguousarray(each) for each in fragments]
    addresses = [memory.add(each, name="in") for each in lanes]
    out = np.zeros_like(lanes[2])
    addresses.append(memory.add(out, writable=True, name="out"))
    size, kind, register, first = (8, "b64", "%d", 8) if wide else (4, "b32", "%r", 4)
    for index, each in enumerate(lanes):
        count = each.shape[1]
        lines += [
            f"ld.param.u64 %d{index}, [p{index}];", f"mul.wide.u32 %d5, %r0, {size * count};",
            f"add.s64 %d{index}, %d{index}, %d5;",
        ]  # fmt: skip
        names = [f"{register}{first + i}" for i in range(count)]
        first += count
        lines += [f"ld.global.{kind} {name}, [%d{index} + {size * i}];" for i, name in enumerate(names)]
        vectors.append("{" + ", ".join(names) + "}")
    lines += [f"ld.param.u64 %d3, [p3];\nmul.wide.u32 %d5, %r0, {size * out.shape[1]};\nadd.s64 %d3, %d3, %d5;"]
    typed = f"{of_c}.{of_a}.{of_b}.{of_c}"
    lines.append(f"mma.sync.aligned.m{m}n{n}k{k}.row.col{suffix}.{typed} {vectors[2]}, {', '.join(vectors)};")
    lines += [
        f"st.global.{kind} [%d3 + {size * i}], {name};" for i, name in enumerate(vectors[2].strip("{}").split(", "))
    ]
    body = kernel("\n".join(lines), ", ".join(f".param .u64 p{i}" for i in range(4)))
    launch(body, memory, (1, 1, 1), (32, 1, 1), addresses, 0, None)
    held = out.view(WIDTH[SUM_BITS[of_c]]).reshape(32, -1)
    d = np.empty((m, n), held.dtype)
    for lane in range(32):
        for i in range(held.shape[1]):
            d[(lane >> 2) + 8 * (i >> 1), lane % 4 * 2 + (i & 1)] = held[lane, i]
    return d


@pytest.mark.parametrize(("shape", "a", "b", "c"), FORMS, ids=str)
def test_small_integers_multiply_exactly(shape: tuple[int, int, int], a: str, b: str, c: str) -> None:
    m, n, k = shape
    random = np.random.default_rng(m * n * k)
    low = 0 if "u8" in (a, b) else -4
    x, y, z = (random.integers(low, 5, extents) for extents in ((m, k), (n, k), (m, n)))
    got = mma(shape, (a, b, c), encode(x, a), encode(y, b), encode(z, c))
    assert got.tolist() == encode(x @ y.T + z, c).tolist()


def test_the_fragments_are_those_of_the_atoms() -> None:
    """The simulator knows no layouts: the two say the same, each in its own way."""
    seen = set()
    for atom in MMA_ATOMS.values():
        kind = atom.a.lower()
        shape = tuple(atom.layouts.shape_mnk)
        inputs = [form for form in FORMS if form[0] == shape and form[1] == kind and form[3] == atom.c.lower()]
        if not inputs or atom.arch == 70:
            continue
        m, n, k = shape
        per = max(32 // ELEMENTS[kind].bits, 1)
        for layout, rows, columns, each in (
            (atom.layouts.a, m, k, per), (atom.layouts.b, n, k, per), (atom.layouts.c, m, n, 2),
        ):  # fmt: skip
            place = places(rows, columns, each)
            told = [[layout(lane + 32 * value) for value in range(place.shape[1])] for lane in range(32)]
            assert told == (place // columns + place % columns * rows).tolist()
        seen.add((shape, kind))
    assert seen == {(shape, a) for shape, a, _, _ in FORMS if not (a in ("e4m3", "e5m2") and shape[2] == 16)}


ROWS = json.loads((DATA / "tensor_core_h200.json").read_text())["rows"]


@pytest.mark.parametrize("kind", ROWS)
def test_the_bits_are_those_of_an_h200(kind: str) -> None:
    element = ELEMENTS[kind]
    for a, b, c, d in ROWS[kind]:
        x, y = (np.frombuffer(bytes.fromhex(each), f">u{element.bits // 8}") for each in (a, b))
        x, y = (each.astype(WIDTH[element.bits])[None] for each in (x, y))
        got = multiply_add(x, y, np.array([[int(c, 16)]], np.uint32), (kind, kind, "f32"))
        assert f"{got[0, 0]:08x}" == d


def cut(value: Fraction, unit: Fraction) -> Fraction:
    """Toward zero to a multiple of `unit`."""
    steps = abs(value) // unit
    return steps * unit if value >= 0 else -steps * unit


def exponent(value: Fraction, lowest: int) -> int:
    size = abs(value)
    found = size.numerator.bit_length() - size.denominator.bit_length()
    return max(found - (size < Fraction(2) ** found), lowest)


def slowly(x: list[float], y: list[float], z: float, lowest: int) -> Fraction:
    """The sum with every step in exact arithmetic."""
    pairs = [(Fraction(a), Fraction(b)) for a, b in zip(x, y, strict=True) if a and b]
    tops = [exponent(a, lowest) + exponent(b, lowest) for a, b in pairs]
    tops += [exponent(Fraction(z), -126)] if z else []
    if not tops:
        return Fraction(0)
    unit = Fraction(2) ** (max(tops) - 25)
    total = sum((cut(a * b, unit) for a, b in pairs), cut(Fraction(z), unit))
    return cut(total, Fraction(2) ** (exponent(total, -126) - 23)) if total else total


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32"])
@given(st.data())
@settings(max_examples=60)
def test_sums_are_those_of_exact_arithmetic_cut_off(kind: str, data: st.DataObject) -> None:
    element = ELEMENTS[kind]
    bits = st.integers(0, (1 << element.bits) - 1)
    k = data.draw(st.sampled_from((4, 8, 16)))
    raw = [data.draw(st.lists(bits, min_size=k, max_size=k)) for _ in range(2)]
    x, y = (np.array([each], WIDTH[element.bits]) for each in raw)
    c = np.array([[data.draw(st.floats(width=32, allow_nan=False, allow_infinity=False))]], np.float32)
    a, b = element.decode(x)[0], element.decode(y)[0]
    got = multiply_add(x, y, c.view(np.uint32), (kind, kind, "f32")).view(np.float32)[0, 0]
    with np.errstate(invalid="ignore", over="ignore"):
        plain = float((a * b).sum() + c[0, 0])
    if not np.isfinite(plain):
        assert str(got) == str(np.float32(plain))
        return
    exact = slowly(a.tolist(), b.tolist(), float(c[0, 0]), element.lowest)
    limit = Fraction(2) ** 128
    assert got == (float(exact) if abs(exact) < limit else float("inf") if exact > 0 else -float("inf"))


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
@pytest.mark.parametrize("k", [16, 32])
def test_8_bit_floats_are_multiplied_as_halves(kind: str, k: int) -> None:
    """As ptxas has it for sm_90a: F2FP.UNPACK of two of each four bytes, HMMA from zero, HMMA from that, FADD of c."""
    random = np.random.default_rng(k)
    element = ELEMENTS[kind]
    finite = np.flatnonzero(np.isfinite(element.decode(np.arange(256, dtype=np.uint8)))).astype(np.uint8)
    x, y = (random.choice(finite, (rows, k)) for rows in (16, 8))
    c = random.standard_normal((16, 8)).astype(np.float32).view(np.uint32)
    halves = [element.decode(each).astype(np.float16).view(np.uint16) for each in (x, y)]
    low, high = (np.flatnonzero(np.arange(k) // 2 % 2 == half) for half in (0, 1))
    first = multiply_add(halves[0][:, low], halves[1][:, low], np.zeros_like(c), ("f16", "f16", "f32"))
    second = multiply_add(halves[0][:, high], halves[1][:, high], first, ("f16", "f16", "f32"))
    expected = c.view(np.float32) + second.view(np.float32)
    assert mma((16, 8, k), (kind, kind, "f32"), x, y, c).tolist() == expected.view(np.uint32).tolist()


def one(a: list[float], b: list[float], c: float, out: str = "f32") -> float:
    x, y = (np.array([each + [0.0] * (16 - len(each))], np.float16).view(np.uint16) for each in (a, b))
    dtype = np.float32 if out == "f32" else np.float16
    z = np.array([[c]], dtype).view(np.uint32 if out == "f32" else np.uint16)
    return float(multiply_add(x, y, z, ("f16", "f16", out)).view(dtype)[0, 0])


def test_what_is_not_finite_stays_so() -> None:
    inf, nan = float("inf"), float("nan")
    assert one([inf], [1.0], 0.0) == inf and one([-inf, 1], [2.0, 1], 5.0) == -inf
    for a, b, c in (([inf], [0.0], 0.0), ([inf, inf], [1.0, -1.0], 0.0), ([nan], [0.0], 0.0), ([inf], [-1.0], inf)):
        assert np.isnan(one(a, b, c))
    assert np.isnan(one([0.0], [0.0], nan)) and one([0.0], [0.0], -inf) == -inf
    x = np.full((1, 4), np.float32(3e38)).view(np.uint32)
    assert multiply_add(x, x, np.zeros((1, 1), np.uint32), ("tf32", "tf32", "f32")).view(np.float32)[0, 0] == inf


def test_small_summands_are_cut_off_and_not_rounded() -> None:
    tiny = 2.0**-13
    assert one([1.0, tiny], [1.0, tiny], 0.0) == 1.0  # 2^-26: below 25 bits
    assert one([1.0, tiny], [1.0, 2 * tiny], 0.0) == 1.0  # kept, and then below f32's 23
    assert one([1.0, *[tiny] * 8], [1.0, *[2 * tiny] * 8], 0.0) == 1 + 2.0**-22  # eight of them add up
    assert one([1.0, -tiny], [1.0, 2 * tiny], 0.0) == 1 - 2.0**-24  # now 24 bits are 2^-24 apart
    assert one([1.0], [1.0], 3 * 2.0**-11, "f16") == 1 + 2.0**-9  # to nearest even: a tie
    assert one([2.0**-14], [2.0**-10], 2.0**-24, "f16") == 2.0**-23  # denormal
    assert one([2.0**-24], [1.0], 2.0**-40) == 2.0**-24  # a denormal one counts as large as the smallest normal one
    assert str(one([-1.0] * 16, [0.0] * 16, -0.0)) == "0.0"


def test_tf32_has_ten_bits() -> None:
    x, one = (np.full((1, 4), value, np.float32).view(np.uint32) for value in (1 + 2.0**-10 + 2.0**-11, 1.0))
    got = multiply_add(x, one, np.zeros((1, 1), np.uint32), ("tf32", "tf32", "f32")).view(np.float32)
    assert got[0, 0] == 4 * (1 + 2.0**-10)


def test_each_warp_of_each_block_multiplies_its_own() -> None:
    """A holds the warp's number plus one, B ones, C the block's number: D is 8 times the one plus the other."""
    body = (
        "mov.u32 %r30, %ctaid.x; mul.wide.u32 %d5, %r30, 384; add.s64 %d0, %d0, %d5;\n"
        "shr.u32 %r1, %r0, 5; add.u32 %r1, %r1, 1; cvt.rn.f32.u32 %f4, %r1; cvt.rn.f32.u32 %f5, %r30;\n"
        "mov.b32 %r4, %f4; mov.b32 %r5, 0f3F800000;\n"
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%f0,%f1,%f2,%f3}, {%r4,%r4,%r4,%r4}, {%r5,%r5}, {%f5,%f5,%f5,%f5};\n"
        "add.f32 %f0, %f0, %f3; cvt.rzi.u32.f32 %r6, %f0; st.global.u32 [%d0], %r6;"
    )
    for order in ("lockstep", 1):
        out = np.zeros(192, np.uint32)
        run(kernel(body), threads=96, grid=(2, 1, 1), out=out, options=Options(warp_order=order))
        expected = [2 * (8 * (warp + 1) + block) for block in range(2) for warp in range(3)]
        assert out.reshape(6, 32).tolist() == [[each] * 32 for each in expected]


def test_a_warp_that_is_guarded_keeps_its_registers() -> None:
    body = (
        "shr.u32 %r1, %r0, 5; setp.eq.u32 %p1, %r1, 1; mov.f32 %f0, 0f3F800000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; "
        "mov.f32 %f3, %f0; mov.b32 %r4, %f0;\n"
        "@%p1 mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%f0,%f1,%f2,%f3}, {%r4,%r4,%r4,%r4}, {%r4,%r4}, {%f0,%f1,%f2,%f3};\n"
        "cvt.rzi.u32.f32 %r6, %f3; st.global.u32 [%d0], %r6;"
    )
    got, _ = run(kernel(body), threads=96)
    assert got.reshape(3, 32).tolist() == [[1] * 32, [9] * 32, [1] * 32]


def test_integers_wrap_or_saturate() -> None:
    a, b = (np.full((rows, 32), 127, np.uint8) for rows in (16, 8))
    c = np.full((16, 8), 2**31 - 1, np.int32).view(np.uint32)
    shape, types = (16, 8, 32), ("s8", "s8", "s32")
    wrapped = mma(shape, types, a, b, c).view(np.int32)
    assert (wrapped == 2**31 - 1 + 32 * 127 * 127 - 2**32).all()
    assert (mma(shape, types, a, b, c, ".satfinite").view(np.int32) == 2**31 - 1).all()
    signed = mma(shape, ("u8", "s8", "s32"), np.full((16, 32), 255, np.uint8), b | 128, np.zeros_like(c))
    assert (signed.view(np.int32) == -32 * 255).all()


@given(st.lists(st.tuples(*[st.floats(width=64, allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=20))
@settings(max_examples=60)
def test_f64_multiplies_and_adds_with_one_rounding(rows: list[tuple[float, float, float]]) -> None:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    got = compute("fma.rn.f64", "b64", [("f64", column) for column in columns]).view(np.float64)
    for (a, b, c), each in zip(rows, got.tolist(), strict=True):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        try:
            assert each == float(exact)
        except OverflowError:
            assert each == (float("inf") if exact > 0 else -float("inf"))


MMA = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r4,%r5}, {%r6}, {%f0,%f1,%f2,%f3};"


@pytest.mark.parametrize(
    "text",
    [
        MMA.replace("m16n8k8", "m16n8k4"), MMA.replace("row.col", "col.row"), MMA.replace(".f32 {", ".f16 {"),
        MMA.replace("{%r6}", "{%r6,%r7}"), MMA.replace("row.col", "row.col.satfinite"), MMA.replace("f16", "bf16", 1),
        "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r4,%r5,%r6}, [%r1];",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r4}, [%r1];",
        "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8 {%r4}, [%r1];",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r1];",
    ],
)  # fmt: skip
def test_forms_that_are_not_known_are_refused(text: str) -> None:
    with pytest.raises(SimError) as refused:
        run(kernel(f"mov.u32 %r1, 0;\n{text}"), dynamic=1024)
    assert "mma" in str(refused.value) or "matrix" in str(refused.value)


@pytest.mark.parametrize("text", [MMA, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r1];"])
def test_all_lanes_of_a_warp_take_part(text: str) -> None:
    with pytest.raises(SimError, match="all 32 lanes"):
        run(kernel(f"mov.u32 %r1, 0;\nsetp.lt.u32 %p1, %r0, 40;\n@%p1 {text}"), threads=64, dynamic=1024)
    run(kernel(f"mov.u32 %r1, 0;\nsetp.lt.u32 %p1, %r0, 32;\n@%p1 {text}"), threads=64, dynamic=1024)
