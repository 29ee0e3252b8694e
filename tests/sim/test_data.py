"""Moves, comparisons, selections, address spaces and exchange within a warp."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutgen.errors import SimError
from tests.sim.kernels import compute, kernel, run
from tests.sim.reference import array, numbers

ORDER: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@pytest.mark.parametrize("kind", ["u16", "s16", "u32", "s32", "u64", "s64"])
@given(st.data())
@settings(max_examples=5)
def test_integer_comparisons(kind: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(numbers(kind), numbers(kind)), min_size=1, max_size=30))
    rows += [(a, a) for a, _ in rows]
    inputs = [(kind, array([r[i] for r in rows], kind)) for i in range(2)]
    for name, fn in ORDER.items():
        assert compute(f"setp.{name}.{kind}", "pred", inputs).tolist() == [int(fn(*r)) for r in rows], name
    for name, plain in UNSIGNED.items():
        if kind[0] == "u":
            assert compute(f"setp.{name}.{kind}", "pred", inputs).tolist() == [int(ORDER[plain](*r)) for r in rows], (
                name
            )


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_float_comparisons_on_nan(kind: str) -> None:
    pairs = [
        (1.0, 2.0),
        (2.0, 2.0),
        (3.0, 2.0),
        (math.nan, 1.0),
        (1.0, math.nan),
        (math.nan, math.nan),
        (0.0, -0.0),
    ]
    dtype = np.float32 if kind == "f32" else np.float64
    inputs = [(kind, np.array([p[i] for p in pairs], dtype)) for i in range(2)]
    has_nan = [math.isnan(a) or math.isnan(b) for a, b in pairs]
    for name, fn in ORDER.items():
        ordered = [int(fn(*p) and not n) for p, n in zip(pairs, has_nan, strict=True)]
        unordered = [int(fn(*p) or n) for p, n in zip(pairs, has_nan, strict=True)]
        assert compute(f"setp.{name}.{kind}", "pred", inputs).tolist() == ordered, name
        assert compute(f"setp.{name}u.{kind}", "pred", inputs).tolist() == unordered, name
    assert compute(f"setp.num.{kind}", "pred", inputs).tolist() == [int(not n) for n in has_nan]
    assert compute(f"setp.nan.{kind}", "pred", inputs).tolist() == [int(n) for n in has_nan]


@pytest.mark.parametrize("combine", ["and", "or", "xor"])
@pytest.mark.parametrize("negated", ["", "!"])
def test_setp_combines_and_gives_the_complement(combine: str, negated: str) -> None:
    body = (
        "and.b32 %r1, %r0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n"
        f"setp.lt.{combine}.u32 %p2|%p3, %r0, 9, {negated}%p1;\n"
        "selp.u32 %r2, 1, 0, %p2;\nselp.u32 %r3, 2, 0, %p3;\nor.b32 %r2, %r2, %r3;\nst.global.u32 [%d0], %r2;"
    )
    got, _ = run(kernel(body))
    fn: Callable[[bool, bool], bool] = {
        "and": lambda a, b: a and b,
        "or": lambda a, b: a or b,
        "xor": lambda a, b: a != b,
    }[combine]
    c = [(i % 2 == 1) != bool(negated) for i in range(32)]
    assert got.tolist() == [fn(i < 9, c[i]) + 2 * fn(i >= 9, c[i]) for i in range(32)]


def test_predicate_logic() -> None:
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    for op, want in (("and", [0, 0, 0, 1]), ("or", [0, 1, 1, 1]), ("xor", [0, 1, 1, 0])):
        assert compute(f"{op}.pred", "pred", [("pred", a), ("pred", b)]).tolist() == want
    assert compute("not.pred", "pred", [("pred", a)]).tolist() == [1, 1, 0, 0]
    assert compute("mov.pred", "pred", [("pred", b)]).tolist() == b.tolist()


def test_packing_and_unpacking() -> None:
    body = (
        "cvt.u16.u32 %h1, %r0;\nmov.b32 %r1, {%h1, 0x1234};\nmov.b32 {%h2, %h3}, %r1;\nmov.b64 %d2, {%r1,"
        " %r0};\nmov.b64 {%r4, _}, %d2;\nmov.b64 {_, %r5}, %d2;\nshl.b32 %r5, %r5, 8;\nxor.b32 %r6, %r4,"
        " %r5;\ncvt.u32.u16 %r7, %h3;\nadd.u32 %r6, %r6, %r7;\nst.global.u32 [%d0], %r6;"
    )
    got, _ = run(kernel(body))
    assert got.tolist() == [((0x12340000 | i) ^ i << 8) + 0x1234 for i in range(32)]


def test_four_shorts_make_a_double_word() -> None:
    body = (
        "mov.b64 %d2, {1, 2, 3, 4};\nmov.b64 {%h1, %h2, %h3, %h4}, %d2;\ncvt.u32.u16 %r1, %h3;\nst.global.u32"
        " [%d0], %r1;"
    )
    assert run(kernel(body))[0][0] == 3


def test_literals() -> None:
    body = (
        "mov.f32 %f1, 0f3FC00000;\nadd.f32 %f1, %f1, 0fBF000000;\ncvt.rzi.s32.f32 %r1, %f1;\n"  # 1.5 - 0.5
        "mov.u32 %r2, 0x10;\nadd.u32 %r1, %r1, %r2;\nadd.u32 %r1, %r1, 0b101;\nadd.u32 %r1, %r1, 010;\nadd.s32 %r1,"
        " %r1, -2;\n"
        "add.u32 %r1, %r1, WARP_SZ;\nadd.u32 %r1, %r1, 7U;\nst.global.u32 [%d0], %r1;"
    )
    assert run(kernel(body))[0][0] == 1 + 16 + 5 + 8 - 2 + 32 + 7


def test_special_registers() -> None:
    names = [
        "tid.x",
        "tid.y",
        "tid.z",
        "ntid.y",
        "ctaid.x",
        "ctaid.y",
        "ctaid.z",
        "nctaid.x",
        "nctaid.z",
        "laneid",
        "warpid",
        "nwarpid",
        "lanemask_lt",
        "lanemask_ge",
        "dynamic_smem_size",
    ]
    from layoutgen.sim import GlobalMemory, launch

    threads, blocks = 4 * 5 * 3, 2 * 3 * 2
    out = np.zeros((blocks, threads, len(names)), np.uint32)
    number = (
        "mov.u32 %r1, %tid.y;\nmov.u32 %r2, %tid.z;\nmad.lo.u32 %r1, %r2, 5, %r1;\nmad.lo.u32 %r1, %r1, 4, %r0;\n"
        "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ctaid.y;\nmov.u32 %r4, %ctaid.z;\nmad.lo.u32 %r3, %r4, 3, %r3;\n"
        f"mad.lo.u32 %r2, %r3, 2, %r2;\nmad.lo.u32 %r1, %r2, {threads}, %r1;\nld.param.u64 %d1, [p];\n"
        f"mad.wide.u32 %d1, %r1, {4 * len(names)}, %d1;\n"
    )
    body = number + "".join(f"mov.u32 %r5, %{n};\nst.global.u32 [%d1+{4 * i}], %r5;\n" for i, n in enumerate(names))
    memory = GlobalMemory()
    launch(kernel(body, ".param .u64 p"), memory, (2, 3, 2), (4, 5, 3), [memory.add(out, writable=True)], 48)
    for b in (0, 5, 11):
        for t in (0, 33, 59):
            x, y, z, lane = t % 4, t // 4 % 5, t // 20, t % 32
            want = [
                x,
                y,
                z,
                5,
                b % 2,
                b // 2 % 3,
                b // 6,
                2,
                2,
                lane,
                t // 32,
                2,
                (1 << lane) - 1,
                (0xFFFFFFFF << lane) & 0xFFFFFFFF,
                48,
            ]
            assert out[b, t].tolist() == want


def test_generic_addresses_find_their_space() -> None:
    body = (
        ".shared .align 4 .b8 s[128];\n.local .align 4 .b8 __local[8];\n"
        "mov.u64 %d2, s;\ncvta.shared.u64 %d2, %d2;\nadd.s64 %d2, %d2, %d1;\nst.u32 [%d2], %r0;\n"
        "mov.u64 %d3, __local;\ncvta.local.u64 %d3, %d3;\nadd.u32 %r1, %r0, 100;\nst.u32 [%d3+4], %r1;\n"
        "cvta.to.local.u64 %d4, %d3;\nld.local.u32 %r2, [%d4+4];\n"
        "setp.lt.u32 %p1, %r0, 16;\nselp.b64 %d5, %d2, %d3, %p1;\n@!%p1 add.s64 %d5, %d5, 4;\nld.u32 %r3, [%d5];\n"
        "add.u32 %r3, %r3, %r2;\nst.global.u32 [%d0], %r3;"
    )
    got, _ = run(kernel(body))
    assert got.tolist() == [(i if i < 16 else i + 100) + i + 100 for i in range(32)]


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The ISA's pseudocode: source lane, and whether it is in range."""
    bval, cval, segment = b & 31, c & 31, c >> 8 & 31
    top, bottom = (lane & segment) | (cval & ~segment & 31), lane & segment
    j = {"up": lane - bval, "down": lane + bval, "bfly": lane ^ bval, "idx": bottom | (bval & ~segment & 31)}[mode]
    inside = j >= top if mode == "up" else j <= top
    return (j if inside else lane), inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("b, c", [(1, 31), (1, 0), (5, 31), (3, 0x1807), (16, 0x101F), (2, 0x1C03)])
def test_shuffles(mode: str, b: int, c: int) -> None:
    body = (
        f"add.u32 %r1, %r0, 100;\nshfl.sync.{mode}.b32 %r2|%p1, %r1, {b}, {c}, -1;\nselp.u32 %r3, 1000, 0, %p1;\n"
        "add.u32 %r2, %r2, %r3;\nst.global.u32 [%d0], %r2;"
    )
    got, _ = run(kernel(body), 64)
    want = []
    for t in range(64):
        source, inside = shuffled(mode, t % 32, b, c)
        want.append(t // 32 * 32 + source + 100 + 1000 * inside)
    assert got.tolist() == want


def test_a_shuffle_waits_for_lanes_that_come_later() -> None:
    body = (
        "mov.u32 %r1, %r0;\nsetp.lt.u32 %p1, %r0, 16;\n@!%p1 bra late;\n"
        "meet:\nshfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;\nst.global.u32 [%d0], %r2;\nret;\n"
        "late:\nadd.u32 %r1, %r1, 50;\nbra meet;"
    )
    got, _ = run(kernel(body))
    assert got.tolist() == [*(i + 16 + 50 for i in range(16)), *range(16)]


def test_a_shuffle_from_a_lane_that_has_left_reads_poison() -> None:
    body = (
        "setp.ge.u32 %p0, %r0, 20;\n@%p0 exit;\nmov.u32 %r1, 5;\nshfl.sync.down.b32 %r2, %r1, 4, 31, 0xfffff;\n"
        "st.global.u32 [%d0], %r2;"
    )
    assert run(kernel(body))[0].tolist() == [5] * 16 + [0xFFFFFFFF] * 16


def test_votes_count_the_lanes_that_take_part() -> None:
    body = (
        "setp.ge.u32 %p0, %r0, 24;\n@%p0 ret;\nand.b32 %r1, %r0, 1;\nsetp.eq.u32 %p1, %r1, 1;\nvote.sync.ballot.b32"
        " %r2, %p1, 0xffffff;\nvote.sync.any.pred %p2, %p1, 0xffffff;\nvote.sync.all.pred %p3, %p1,"
        " 0xffffff;\nvote.sync.uni.pred %p4, !%p1, 0xffffff;\nactivemask.b32 %r3;\nselp.u32 %r4, 1, 0,"
        " %p2;\nselp.u32 %r5, 2, 0, %p3;\nselp.u32 %r6, 4, 0, %p4;\nadd.u32 %r4, %r4, %r5;\nadd.u32 %r4, %r4,"
        " %r6;\nshl.b32 %r4, %r4, 24;\nxor.b32 %r2, %r2, %r3;\nor.b32 %r2, %r2, %r4;\nst.global.u32 [%d0], %r2;"
    )
    got, _ = run(kernel(body))
    assert set(got[:24].tolist()) == {1 << 24 | 0xAAAAAA ^ 0xFFFFFF} and set(got[24:].tolist()) == {0xFFFFFFFF}


@pytest.mark.parametrize(
    "text",
    [
        "mov.b128 %d1, %d2;",
        "setp.lt.b32 %p1, %r1, %r2;",
        "setp.lo.s32 %p1, %r1, %r2;",
        "shfl.idx.b32 %r1, %r2, 0, 31;",
        "mov.u32 %r1, %clock;",
        "mov.u32 %r1, unknown;",
        "cvta.const.u64 %d1, %d2;",
        "mov.u32 %r1, %tid;",
        "add.u32 %r1, %r2, %d1;",
        "add.f32 %f1, %f2, 1;",
        "mov.u64 %d1, %r1;",
    ],
)
def test_unknown_operands_and_forms_are_refused(text: str) -> None:
    with pytest.raises(SimError) as e:
        run(kernel(text))
    assert text.rstrip(";") in str(e.value) and e.value.where is not None and e.value.where.line is not None
