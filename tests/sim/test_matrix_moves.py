"""ldmatrix and stmatrix: which lane gets which neighbours, the banks they meet, and what is refused."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from layoutgen.errors import SimError
from layoutgen.sim import Options
from layoutgen.sim.report import static_counts
from tests.sim.kernels import kernel, run
from tests.sim.test_tensor import MMA

FILL = """
mov.u32 %r1, smem; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2;
mul.lo.u32 %r10, %r0, 0x00080008; add.u32 %r10, %r10, 0x00010000;
add.u32 %r11, %r10, 0x00020002; add.u32 %r12, %r10, 0x00040004; add.u32 %r13, %r10, 0x00060006;
st.shared.v4.b32 [%r3], {%r10,%r11,%r12,%r13}; bar.sync 0;
"""  # the 16-bit element i of shared memory is i
SHARED = ".extern .shared .align 16 .b8 smem[];\n"


@pytest.mark.parametrize(("count", "transposed"), list(product((1, 2, 4), (False, True))))
def test_ldmatrix_gives_each_lane_two_neighbours(count: int, transposed: bool) -> None:
    names = ", ".join(f"%r{20 + i}" for i in range(count))
    suffix = ".trans" if transposed else ""
    for register in range(count):
        # Row r of matrix j is at 128 j + 16 (7 - r): the matrices are read upside down.
        body = FILL + (
            "and.b32 %r4, %r0, 7; sub.u32 %r4, 7, %r4; shr.u32 %r5, %r0, 3; mad.lo.u32 %r4, %r5, 8, %r4; "
            "shl.b32 %r4, %r4, 4; add.u32 %r4, %r1, %r4;\n"
            f"ldmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 {{{names}}}, [%r4];\n"
            f"st.global.u32 [%d0], %r{20 + register};"
        )
        code = kernel(body, declarations=SHARED)
        got, report = run(code, dynamic=512)
        matrix = 64 * register + np.arange(64).reshape(8, 8)[::-1]
        rows = matrix.T if transposed else matrix
        lane = np.arange(32)
        low, high = (rows[lane // 4, lane % 4 * 2 + i] for i in (0, 1))
        assert got.tolist() == (low | high << 16).tolist()
        assert static_counts(code)["ldmatrix", 4 * count] == 1
        traffic = report.by_class()["ldmatrix", 4 * count]
        assert (traffic.requests, traffic.wavefronts, traffic.bytes) == (1, count, 128 * count)


@pytest.mark.parametrize("transposed", [False, True])
def test_stmatrix_puts_back_what_ldmatrix_took(transposed: bool) -> None:
    """In two warps of two blocks."""
    suffix = ".trans" if transposed else ""
    body = FILL + (
        f"ldmatrix.sync.aligned.m8n8.x4{suffix}.shared.b16 {{%r20,%r21,%r22,%r23}}, [%r3];\n"
        f"stmatrix.sync.aligned.m8n8.x4{suffix}.shared.b16 [%r3 + 1024], {{%r20,%r21,%r22,%r23}};\nbar.sync 0;\n"
        "mov.u32 %r30, %ctaid.x; mul.wide.u32 %d5, %r30, 256; add.s64 %d0, %d0, %d5;\n"
        "shl.b32 %r4, %r0, 4; add.u32 %r4, %r1, %r4; ld.shared.u32 %r5, [%r4 + 1032]; add.u32 %r5, %r5, %r30;\n"
        "st.global.u32 [%d0], %r5;"
    )
    out = np.zeros(128, np.uint32)
    run(kernel(body, declarations=SHARED), 64, (2, 1, 1), 2048, out, Options(races=True))
    element = 8 * np.arange(64) + 4
    assert out.reshape(2, 64).tolist() == [((element | element + 1 << 16) + block).tolist() for block in (0, 1)]


MEASURED = json.loads((Path(__file__).parents[2] / "benchmarks/results/wavefronts-h200.json").read_text())


@pytest.mark.parametrize("kind", [kind for kind in MEASURED["wavefronts"] if "matrix" in kind])
def test_wavefronts_are_those_that_an_h200_counted(kind: str) -> None:
    load, count = kind.startswith("ld"), next(n for n in (1, 2, 4) if f".x{n}" in kind)
    suffix = ".trans" if "trans" in kind else ""
    held = "{" + ", ".join(f"%r{20 + i}" for i in range(count)) + "}"
    for name, units in MEASURED["patterns"].items():
        lane = "\n".join(
            f"setp.eq.u32 %p1, %r0, {i}; selp.u32 %r1, {16 * unit}, %r1, %p1;" for i, unit in enumerate(units)
        )
        told = f"{held}, [%r1]" if load else f"[%r1], {held}"
        start = "\n".join(f"mov.u32 %r{20 + i}, 0;" for i in range(count))
        opcode = f"{'ld' if load else 'st'}matrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16"
        body = f"mov.u32 %r1, 0;\n{start}\n{lane}\n{opcode} {told};"
        _, report = run(kernel(body, declarations=SHARED), dynamic=16 * (max(units) + 1), options=Options(poison=False))
        name_of = "ldmatrix" if load else "stmatrix"
        assert report.by_class()[name_of, 4 * count].wavefronts == MEASURED["wavefronts"][kind][name], name


@pytest.mark.parametrize(
    "text",
    [
        "ldmatrix.sync.aligned.x4.m8n8.shared.b16 {R}, [%r3];",
        "ldmatrix.sync.aligned.x4.trans.m8n8.shared.b16 {R}, [%r3];",
        "stmatrix.sync.aligned.x4.m8n8.shared.b16 [%r3], {R};",
    ],
)
def test_cutes_spelling_is_known(text: str) -> None:
    run(kernel(FILL + text.replace("{R}", "{%r20,%r21,%r22,%r23}"), declarations=SHARED), dynamic=512)


def test_lanes_that_come_later_are_waited_for() -> None:
    body = (
        "mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0; mov.u32 %r7, 1; setp.lt.u32 %p1, %r0, 7;\n@%p1 bra COLD;\n"
        f"JOIN:\n{MMA}\nst.global.u32 [%d0], %r7;\nret;\nCOLD:\nmov.u32 %r7, 2;\nbra JOIN;"
    )
    got, _ = run(kernel(body))
    assert got.tolist() == [2] * 7 + [1] * 25


def test_each_block_has_its_own_rows() -> None:
    body = (
        "mov.u32 %r30, %ctaid.x; mul.wide.u32 %d5, %r30, 128; add.s64 %d0, %d0, %d5;\n"
        "mov.u32 %r1, smem; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; mad.lo.u32 %r4, %r30, 1000, %r0;\n"
        "st.shared.u32 [%r3], %r4; bar.sync 0;\n"
        "shl.b32 %r5, %r0, 4; add.u32 %r5, %r1, %r5;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];\n"
        "st.global.u32 [%d0], %r6;"
    )
    out = np.zeros(96, np.uint32)
    run(kernel(body, declarations=SHARED), grid=(3, 1, 1), dynamic=128, out=out)
    assert out.reshape(3, 32).tolist() == [[1000 * block + lane for lane in range(32)] for block in range(3)]


def test_rows_that_share_banks_take_a_wavefront_each() -> None:
    body = "shl.b32 %r1, %r0, 7;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%r1];"
    _, report = run(kernel(body, declarations=SHARED), dynamic=4096)
    assert report.by_class()["ldmatrix", 16].wavefronts == 32


@pytest.mark.parametrize(("offset", "said"), [(8, "aligned to 16"), (512, "stays inside")])
def test_rows_are_whole_pieces_of_shared_memory(offset: int, said: str) -> None:
    body = f"shl.b32 %r1, %r0, 4;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r4}}, [%r1 + {offset}];"
    with pytest.raises(SimError, match=said):
        run(kernel(body, declarations=SHARED), dynamic=512)


def test_lanes_that_point_at_no_row_may_point_anywhere() -> None:
    body = "mul.lo.u32 %r1, %r0, 16;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r1];"
    run(kernel(body, declarations=SHARED), dynamic=128)


def test_a_missing_barrier_before_ldmatrix_is_a_race() -> None:
    body = FILL.replace("bar.sync 0;", "") + (
        "xor.b32 %r4, %r3, 512;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20,%r21,%r22,%r23}, [%r4];"
    )
    with pytest.raises(SimError, match="a barrier stands between"):
        run(kernel(body, declarations=SHARED), threads=64, dynamic=1024, options=Options(races=True))
