"""Arguments, shapes, batches, reports."""

from __future__ import annotations

import numpy as np
import pytest

from layoutgen.errors import SimError
from layoutgen.sim import GlobalMemory, Options, launch
from tests.sim.kernels import kernel, run

ARGUMENTS = (
    ".param .u64 out, .param .s32 i, .param .u32 u, .param .f32 f, .param .f64 d, .param .u16 h, .param .align 8"
    " .b8 s[12]"
)
READ = """ld.param.u64 %d1, [out];
ld.param.u32 %r1, [i];
ld.param.u32 %r2, [u];
ld.param.f32 %f1, [f];
ld.param.f64 %x1, [d];
ld.param.u16 %h1, [h];
ld.param.v2.u32 {%r3, %r4}, [s];
mov.b64 %d2, s;
ld.param.u32 %r5, [%d2+8];
st.global.u32 [%d1], %r1;
st.global.u32 [%d1+4], %r2;
st.global.f32 [%d1+8], %f1;
st.global.u16 [%d1+12], %h1;
st.global.f64 [%d1+16], %x1;
st.global.v2.u32 [%d1+24], {%r3, %r4};
st.global.u32 [%d1+32], %r5;
"""
GOOD: list[object] = [-5, 0xFFFFFFFF, 1.5, 0.1, 65535, bytes(range(12))]


def arguments(values: list[object]) -> np.ndarray:
    out = np.zeros(40, np.uint8)
    memory = GlobalMemory()
    launch(kernel(READ, ARGUMENTS), memory, (1, 1, 1), (1, 1, 1), [memory.add(out, writable=True), *values])
    return out


def test_arguments_arrive_in_their_types() -> None:
    out = arguments(GOOD)
    assert out[:8].view(np.int32).tolist() == [-5, -1] and out[8:12].view(np.float32)[0] == 1.5
    assert out[12:14].view(np.uint16)[0] == 65535 and out[16:24].view(np.float64)[0] == 0.1
    assert out[24:36].tolist() == list(range(12))
    assert (
        arguments([np.int64(-5), np.uint32(0xFFFFFFFF), np.float64(1.5), 0.1, np.uint8(7), bytes(12)])[:12] == out[:12]
    ).all()


@pytest.mark.parametrize(
    "which, value, name",
    [
        (0, 1 << 32, "i"),
        (1, -(1 << 31) - 1, "u"),
        (1, 1.0, "u"),
        (2, "1", "f"),
        (4, 65536, "h"),
        (5, bytes(11), "s"),
        (5, 3, "s"),
        (0, None, "i"),
    ],
)
def test_arguments_that_do_not_fit(which: int, value: object, name: str) -> None:
    with pytest.raises(SimError, match=f"parameter {name} "):
        arguments([*GOOD[:which], value, *GOOD[which + 1 :]])


def test_the_number_of_arguments() -> None:
    with pytest.raises(SimError, match=r"one argument per parameter[\s\S]*got: 6[\s\S]*out, i, u, f, d, h, s"):
        arguments(GOOD[:-1])


def test_a_parameter_address_that_differs_between_lanes_is_refused() -> None:
    with pytest.raises(SimError, match="all lanes read the same parameter"):
        run(kernel("mov.b64 %d2, out;\nadd.s64 %d2, %d2, %d1;\nld.param.u32 %r1, [%d2];"))


@pytest.mark.parametrize(
    "grid, block, rule",
    [
        ((0, 1, 1), (32, 1, 1), "grid"),
        ((1, 65536, 1), (32, 1, 1), "grid"),
        ((1 << 31, 1, 1), (32, 1, 1), "grid"),
        ((1, 1, 1), (1025, 1, 1), "block"),
        ((1, 1, 1), (32, 33, 1), "block"),
        ((1, 1, 1), (1, 1, 65), "block"),
        ((1, 1, 1), (0, 1, 1), "block"),
    ],
)
def test_shapes_beyond_cuda_s_limits(grid: tuple[int, int, int], block: tuple[int, int, int], rule: str) -> None:
    with pytest.raises(SimError, match=f"a {rule} is within CUDA's limits"):
        launch(kernel("ret;", ""), GlobalMemory(), grid, block, [])


@pytest.mark.parametrize(
    "limit, block, fine",
    [
        ("maxntid 64, 1, 1", (64, 1, 1), True),
        ("maxntid 64, 1, 1", (65, 1, 1), False),
        ("maxntid 8, 8, 1", (64, 1, 1), True),
        ("reqntid 64", (64, 1, 1), True),
        ("reqntid 64", (32, 2, 1), False),
    ],
)
def test_a_kernel_s_own_limits(limit: str, block: tuple[int, int, int], fine: bool) -> None:
    from layoutgen.sim import parse
    from tests.sim.kernels import HEADER

    k = parse(f"{HEADER}.visible .entry k()\n.{limit}\n.minnctapersm 2\n{{\nret;\n}}\n").kernels["k"]
    if fine:
        launch(k, GlobalMemory(), (1, 1, 1), block, [])
    else:
        with pytest.raises(SimError, match=limit.split()[0]):
            launch(k, GlobalMemory(), (1, 1, 1), block, [])


def test_every_block_runs_once_whatever_the_batch() -> None:
    body = (
        "mov.u32 %r1, %ctaid.x;\nmad.lo.u32 %r2, %r1, 48, %r0;\nmul.wide.u32 %d2, %r2, 4;\nld.param.u64 %d0,"
        " [out];\nadd.s64 %d0, %d0, %d2;\nld.global.u32 %r3, [%d0];\nadd.u32 %r3, %r3, %r2;\nst.global.u32 [%d0],"
        " %r3;"
    )
    for lanes in (1, 64, 100, 256, 1 << 20):
        out = np.zeros(48 * 11, np.uint32)
        seen: list[tuple[int, int]] = []
        options = Options(batch_lanes=lanes, progress=lambda *counts, seen=seen: seen.append(counts))
        _, report = run(kernel(body), 48, (11, 1, 1), out=out, options=options)
        assert out.tolist() == list(range(48 * 11))
        assert report.blocks == 11 and report.by_opcode()["st.global.u32"] == 22
        assert seen[-1] == (11, 11) and [d for d, _ in seen] == sorted({d for d, _ in seen})


def test_a_grid_of_many_blocks_in_all_dimensions() -> None:
    body = (
        "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ctaid.y;\nmov.u32 %r3, %ctaid.z;\nmad.lo.u32 %r2, %r3, 7,"
        " %r2;\nmad.lo.u32 %r1, %r2, 1000, %r1;\nld.param.u64 %d0, [out];\nmul.wide.u32 %d2, %r1, 4;\nadd.s64 %d0,"
        " %d0, %d2;\nst.global.u32 [%d0], %r1;"
    )
    out = np.zeros(1000 * 7 * 2, np.uint32)
    run(kernel(body), 1, (1000, 7, 2), out=out)
    assert (out == np.arange(14000)).all()


def test_a_block_number_beyond_65535_in_x() -> None:
    body = "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 70000;\n@%p1 st.global.u32 [%d0], %r1;"
    out, report = run(kernel(body), 1, (70001, 1, 1), options=Options(count=False, batch_lanes=1 << 16))
    assert out[0] == 70000 and report.by_opcode()["setp.eq.u32"] == 70001


def test_counts_can_be_left_out() -> None:
    _, report = run(kernel("st.global.u32 [%d0], %r0;"), options=Options(count=False))
    assert report.traffic == {} and report.by_class() == {} and report.warp_instructions == 5


def test_traffic_per_instruction() -> None:
    _, report = run(kernel("st.global.u32 [%d0], %r0;\nsetp.lt.u32 %p1, %r0, 9;\n@%p1 st.global.u32 [%d0], 1;"), 64)
    rows = [(i.opcode, n, t) for i, n, t in report.per_instruction() if t is not None]
    assert [(o, n) for o, n, _ in rows] == [("st.global.u32", 2)] * 2
    assert [(t.requests, t.sectors, t.bytes) for _, _, t in rows if t] == [(2, 8, 256), (1, 2, 36)]
    assert report.by_class()["st.global", 4].sectors == 10


@pytest.mark.parametrize(
    "options", [{"async_landing": "soon"}, {"warp_order": "random"}, {"batch_lanes": 0}, {"limit": 0}]
)
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(SimError):
        Options(**options)  # type: ignore[arg-type]
