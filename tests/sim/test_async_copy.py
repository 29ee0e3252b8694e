"""cp.async: what it writes, when it lands, and whose wait it takes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from layoutgen.errors import SimError
from layoutgen.sim import GlobalMemory, Options, Report, launch
from tests.sim.kernels import kernel

PARAMS = ".param .u64 src, .param .u64 dst"
PROLOGUE = """.shared .align 16 .b8 s[2048];
ld.param.u64 %d1, [src];
ld.param.u64 %d2, [dst];
mov.u32 %r1, s;
mad.lo.u32 %r2, %r0, 16, %r1;
mul.wide.u32 %d3, %r0, 16;
add.s64 %d4, %d1, %d3;
add.s64 %d5, %d2, %d3;
"""
STORE = """ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r2];
st.global.v4.u32 [%d5], {%r10, %r11, %r12, %r13};
"""
Landing = Literal["early", "late"]
POISON = 0xFFFFFFFF


def copy(
    body: str, landing: Landing = "late", threads: int = 32, src: np.ndarray | None = None
) -> tuple[np.ndarray, Report]:
    """Runs ``body`` between the prologue (%r2: 16 bytes of shared memory, %d4: of src) and a store of %r2's."""
    source = np.arange(4 * threads, dtype=np.uint32) if src is None else src
    out = np.zeros((threads, 4), np.uint32)
    memory = GlobalMemory()
    params = [memory.add(source, name="src", writable=True), memory.add(out, writable=True, name="dst")]
    options = Options(async_landing=landing)
    report = launch(
        kernel(PROLOGUE + body + STORE, PARAMS), memory, (1, 1, 1), (threads, 1, 1), params, options=options
    )
    return out, report


WAITS = [
    "cp.async.commit_group;\ncp.async.wait_group 0;",
    "cp.async.wait_all;",
    "cp.async.commit_group;\ncp.async.wait_all;",
]
LANDINGS: list[Landing] = ["early", "late"]


@pytest.mark.parametrize("landing", LANDINGS)
@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("how", ["cg", "ca"])
def test_sixteen_bytes(landing: Landing, wait: str, how: str) -> None:
    out, _ = copy(f"cp.async.{how}.shared.global.L2::128B [%r2], [%d4], 16;\n{wait}\n", landing)
    assert out.reshape(-1).tolist() == list(range(128))


@pytest.mark.parametrize("size", [4, 8])
def test_narrow_copies_leave_their_neighbours(size: int) -> None:
    out, _ = copy(f"cp.async.ca.shared::cta.global [%r2+{16 - size}], [%d4], {size};\ncp.async.wait_all;\n")
    for t in range(32):
        words = [4 * t, 4 * t + 1][: size // 4]
        assert out[t].tolist() == [POISON] * (4 - size // 4) + words


@pytest.mark.parametrize("landing", LANDINGS)
def test_bytes_beyond_the_source_size_are_zeros(landing: Landing) -> None:
    """Thread t reads t % 17 bytes: what lies beyond may be outside the buffer."""
    src = np.arange(1, 32 * 16 + 1, dtype=np.uint32).view(np.uint8)[: 31 * 16 + 31 % 17].copy()
    body = "rem.u32 %r3, %r0, 17;\ncp.async.cg.shared.global [%r2], [%d4], 16, %r3;\ncp.async.wait_all;\n"
    out, report = copy(body, landing, src=src)
    got = out.view(np.uint8).reshape(32, 16)
    for t in range(32):
        n = t % 17
        assert got[t].tolist() == [*src[16 * t : 16 * t + n].tolist(), *[0] * (16 - n)]
    assert report.by_class()["cp.async", 16].sectors == 16  # threads 0 and 17 read nothing, but share their sectors


@pytest.mark.parametrize("landing", LANDINGS)
def test_a_short_read_stays_inside_its_buffer_to_the_last_byte(landing: Landing) -> None:
    body = "mov.u32 %r3, 7;\ncp.async.cg.shared.global [%r2], [%d4], 16, %r3;\ncp.async.wait_all;\n"
    copy(body, landing, src=np.zeros(31 * 16 + 7, np.uint8))
    with pytest.raises(SimError, match=r"stays inside its buffer[\s\S]*thread \(31,0,0\)"):
        copy(body, landing, src=np.zeros(31 * 16 + 6, np.uint8))


@pytest.mark.parametrize("operand, reads", [("%p1", lambda t: t >= 7), ("!%p1", lambda t: t < 7)])
def test_the_ignore_predicate_writes_zeros(operand: str, reads: object) -> None:
    body = f"setp.lt.u32 %p1, %r0, 7;\ncp.async.cg.shared.global [%r2], [%d4], 16, {operand};\ncp.async.wait_all;\n"
    out, _ = copy(body)
    for t in range(32):
        assert out[t].tolist() == ([4 * t + i for i in range(4)] if reads(t) else [0] * 4)  # type: ignore[operator]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "cp.async.commit_group;\n",
        "cp.async.commit_group;\ncp.async.wait_group 1;\n",
        "cp.async.wait_group 0;\n",
    ],
)
def test_what_no_wait_covers_may_land_late(body: str) -> None:
    issue = "cp.async.cg.shared.global [%r2], [%d4], 16;\n"
    assert copy(issue + body, "early")[0].reshape(-1).tolist() == list(range(128))
    assert (copy(issue + body, "late")[0] == POISON).all()


def test_groups_land_in_order() -> None:
    """Three groups; a wait that allows one leaves only the last."""
    body = (
        "".join(
            f"cp.async.ca.shared.global [%r2+{4 * i}], [%d4+{4 * i}], 4;\ncp.async.commit_group;\n" for i in range(3)
        )
        + "cp.async.wait_group 1;\n"
    )
    out, _ = copy(body)
    assert all(out[t].tolist() == [4 * t, 4 * t + 1, POISON, POISON] for t in range(32))


def test_an_empty_group_counts() -> None:
    body = (
        "cp.async.cg.shared.global [%r2], [%d4],"
        " 16;\ncp.async.commit_group;\ncp.async.commit_group;\ncp.async.wait_group 1;\n"
    )
    assert copy(body)[0].reshape(-1).tolist() == list(range(128))


def test_a_wait_is_for_the_thread_that_waits() -> None:
    body = (
        "cp.async.cg.shared.global [%r2], [%d4], 16;\ncp.async.commit_group;\nsetp.lt.u32 %p1, %r0, 10;\n"
        "@%p1 cp.async.wait_group 0;\n"
    )
    out, _ = copy(body)
    assert (out[:10].reshape(-1) == np.arange(40)).all() and (out[10:] == POISON).all()


def test_groups_are_counted_per_thread() -> None:
    """Odd threads commit once more: the wait that allows one covers only theirs."""
    body = (
        "cp.async.cg.shared.global [%r2], [%d4], 16;\ncp.async.commit_group;\nand.b32 %r3, %r0, 1;\n"
        "setp.eq.u32 %p1, %r3, 1;\n@%p1 cp.async.commit_group;\ncp.async.wait_group 1;\n"
    )
    out, _ = copy(body)
    assert (out[1::2] == np.arange(128).reshape(32, 4)[1::2]).all() and (out[::2] == POISON).all()


@pytest.mark.parametrize("landing, seen", [("early", 0), ("late", 77)])
def test_a_late_copy_reads_global_memory_as_it_lands(landing: Landing, seen: int) -> None:
    src = np.zeros(128, np.uint32)
    body = (
        "cp.async.cg.shared.global [%r2], [%d4], 16;\ncp.async.commit_group;\nmov.u32 %r3, 77;\nst.global.u32"
        " [%d4], %r3;\ncp.async.wait_group 0;\n"
    )
    assert copy(body, landing, src=src)[0][:, 0].tolist() == [seen] * 32


@pytest.mark.parametrize(
    "copy_text, rule",
    [
        ("cp.async.cg.shared.global [%r2+4], [%d4], 16;", "16-byte access is aligned"),
        ("cp.async.ca.shared.global [%r2], [%d4+4], 8;", "8-byte copy reads an address aligned"),
        ("cp.async.cg.shared.global [%r2+2048], [%d4], 16;", "inside the block's shared memory"),
        (
            "cp.async.cg.shared.global [%r2], [%d4+16], 16;",
            r"stays inside its buffer[\s\S]*cp\.async\.cg[\s\S]*thread \(31,0,0\)",
        ),
        ("cp.async.cg.shared.global [%r2], [%d4], 16, 17;", "src-size is at most cp-size"),
        ("cp.async.cg.shared.global [%r2], [%d4], 8;", "copies 4, 8 or 16 bytes"),
        ("cp.async.ca.shared.global [%r2], [%d4], 2;", "copies 4, 8 or 16 bytes"),
        ("cp.async.mbarrier.arrive.shared.b64 [%r2];", "knows this form"),
        ("cp.async.bulk.commit_group;", "knows this form"),
        ("cp.async.cg.shared.global.L2::32B [%r2], [%d4], 16;", "knows this form"),
    ],
)
@pytest.mark.parametrize("landing", LANDINGS)
def test_copies_that_are_errors(copy_text: str, rule: str, landing: Landing) -> None:
    with pytest.raises(SimError, match=rule):
        copy(f"{copy_text}\n", landing)


def test_a_copy_under_way_does_not_outlive_its_block() -> None:
    """Each block issues one copy and waits for none: the next block's wait must not land it."""
    body = (
        PROLOGUE + "mov.u32 %r3, %ctaid.x;\nsetp.eq.u32 %p1, %r3, 0;\n"
        "@%p1 cp.async.cg.shared.global [%r2], [%d4], 16;\n"
        "@%p1 bra end;\ncp.async.wait_all;\n" + STORE + "end:\nret;"
    )
    out = np.zeros((32, 4), np.uint32)
    memory = GlobalMemory()
    params = [memory.add(np.arange(128, dtype=np.uint32)), memory.add(out, writable=True)]
    launch(kernel(body, PARAMS), memory, (2, 1, 1), (32, 1, 1), params, options=Options(batch_lanes=32))
    assert (out == POISON).all()
