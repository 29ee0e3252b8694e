"""The race detector names both accesses, and is silent where barriers separate them."""

from __future__ import annotations

import pytest

from layoutgen.errors import SimError
from layoutgen.sim import Options
from tests.sim.kernels import kernel, run

SHARED = (
    ".shared .align 4 .b8 s[512];\nmov.u32 %r1, s;\nmad.lo.u32 %r2, %r0, 4, %r1;\nxor.b32 %r3, %r0, 32;\nmad.lo.u32"
    " %r3, %r3, 4, %r1;\n"
)
ORDERS = [Options(races=True), Options(races=True, warp_order=1), Options(races=True, warp_order=5)]


def check(body: str, threads: int = 64, declarations: str = SHARED) -> None:
    for options in ORDERS:
        run(kernel(declarations + body), threads, options=options)


def race(body: str, *names: str, threads: int = 64, declarations: str = SHARED) -> None:
    """Every order sees the race, and the error names these instructions."""
    for options in ORDERS:
        with pytest.raises(SimError, match="a barrier stands between") as e:
            run(kernel(declarations + body), threads, options=options)
        for name in names:
            assert name in str(e.value)
        assert e.value.where is not None and str(e.value).count("thread (") == 2


def test_a_write_and_a_read_by_another_warp() -> None:
    write, read = "st.shared.u32 [%r2], %r0;\n", "ld.shared.u32 %r4, [%r3];\n"
    race(write + read, "st.shared.u32", "ld.shared.u32", "shared offset")
    race(read + write, "st.shared.u32", "ld.shared.u32")
    check(f"{write}bar.sync 0;\n{read}")
    check(f"{read}bar.sync 0;\n{write}")


def test_the_error_names_threads_lines_and_offset() -> None:
    with pytest.raises(SimError) as e:
        run(kernel(SHARED + "st.shared.u32 [%r2], %r0;\nld.shared.u32 %r4, [%r3];"), 64, options=Options(races=True))
    text = str(e.value)
    assert "`ld.shared.u32 %r4, [%r3]` (PTX line 22) by thread (0,0,0)" in text
    assert "`st.shared.u32 [%r2], %r0` (PTX line 21) by thread (32,0,0)" in text and "shared offset 128" in text


def test_two_writes_to_one_word() -> None:
    race("st.shared.u32 [%r1], %r0;\n", "st.shared.u32")
    race(
        "setp.lt.u32 %p1, %r0, 32;\n@%p1 st.shared.u32 [%r2], 1;\n@!%p1 st.shared.u16 [%r3], 2;\n",
        "st.shared.u32",
        "st.shared.u16",
    )


def test_reads_by_many_and_accesses_within_a_warp_are_no_race() -> None:
    check("ld.shared.u32 %r4, [%r1];\nld.shared.u32 %r5, [%r3];\n")
    check("st.shared.u32 [%r2], %r0;\nxor.b32 %r4, %r0, 5;\nmad.lo.u32 %r4, %r4, 4, %r1;\nld.shared.u32 %r5, [%r4];\n")


def test_a_reader_is_remembered_among_others() -> None:
    """Warps 0, 1 and 3 read a word that warp 1 then writes."""
    body = (
        "shr.u32 %r5, %r0, 5;\nsetp.ne.u32 %p1, %r5, 2;\n@%p1 ld.shared.u32 %r4, [%r1];\nsetp.eq.u32 %p2, %r5, 1;\n"
        "@%p2 st.shared.u32 [%r1], 1;\n"
    )
    race(body, "st.shared.u32", "ld.shared.u32", threads=128)
    for other in (0, 3):  # of two readers, the one that is not the writer may be the first or the last
        pair = f"setp.eq.u32 %p1, %r5, 1;\nsetp.eq.or.u32 %p1, %r5, {other}, %p1"
        race(body.replace("setp.ne.u32 %p1, %r5, 2", pair), "st.shared.u32", "ld.shared.u32", threads=128)
    check(body.replace("setp.ne.u32 %p1, %r5, 2", "setp.eq.u32 %p1, %r5, 1"), threads=128)


def test_neighbouring_bytes_are_apart() -> None:
    bytes_ = SHARED.replace("mad.lo.u32 %r2, %r0, 4, %r1", "shr.u32 %r2, %r0, 5;\nadd.u32 %r2, %r2, %r1")
    check("cvt.u16.u32 %h1, %r0;\nst.shared.u8 [%r2], %h1;\n", declarations=bytes_)


def test_a_vector_store_covers_all_its_words() -> None:
    body = (
        ".shared .align 16 .b8 v[1024];\nmov.u32 %r1, v;\nmad.lo.u32 %r2, %r0, 16, %r1;\nxor.b32 %r3, %r0, 32;\n"
        "mad.lo.u32 %r3, %r3, 16, %r1;\nst.shared.v4.u32 [%r2], {%r0, %r0, %r0, %r0};\n"
    )
    for i in (0, 12):
        race(f"{body}ld.shared.u32 %r4, [%r3+{i}];\n", "st.shared.v4", declarations="")


def test_two_barriers_apart_and_round_a_loop() -> None:
    loop = (
        "mov.u32 %r6, 0;\nloop:\nst.shared.u32 [%r2], %r6;\nbar.sync 0;\nld.shared.u32 %r4, [%r3];\n{}add.u32 %r6,"
        " %r6, 1;\nsetp.lt.u32 %p1, %r6, 3;\n@%p1 bra loop;\n"
    )
    check(loop.format("bar.sync 0;\n"))
    race(loop.format(""), "st.shared.u32", "ld.shared.u32")


def test_a_block_does_not_race_with_another() -> None:
    for options in ORDERS:
        run(
            kernel(SHARED + "st.shared.u32 [%r2], %r0;\nbar.sync 0;\nld.shared.u32 %r4, [%r3];"),
            64,
            (3, 1, 1),
            options=options,
        )


COPY = SHARED + "mul.wide.u32 %d3, %r0, 4;\n"


def test_a_copy_writes_until_its_thread_waits() -> None:
    issue, wait, read = (
        "cp.async.ca.shared.global [%r2], [%d0], 4;\n",
        "cp.async.wait_all;\n",
        "ld.shared.u32 %r4, [%r3];\n",
    )
    own = "ld.shared.u32 %r4, [%r2];\n"
    check(issue + wait + "bar.sync 0;\n" + read)
    check(issue + wait + own)
    race(issue + own, "cp.async", "still under way")
    race(issue + "bar.sync 0;\n" + read, "cp.async", "still under way")
    race(issue + wait + read, "cp.async", "ld.shared")
    race(issue + "bar.sync 0;\n" + wait + read, "cp.async", "ld.shared")
    race(read + issue, "cp.async", "ld.shared")
    race(issue + issue, "cp.async", "still under way")
    race(issue + "st.shared.u32 [%r2], 1;\n", "cp.async", "st.shared", "still under way")
    race("cp.async.ca.shared.global [%r1], [%d0], 4;\n", "cp.async")


def test_barriers_for_a_part_of_the_block_are_refused() -> None:
    with pytest.raises(SimError, match="take the whole block"):
        run(kernel("shr.u32 %r9, %r0, 5;\nbar.sync %r9, 32;"), 64, options=Options(races=True))
    run(kernel("bar.sync 2, 64;"), 64, options=Options(races=True))
