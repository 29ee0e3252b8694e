"""Branches, divergence, barriers, deadlocks, and the ways in which a kernel may end."""

from __future__ import annotations

import numpy as np
import pytest

from layoutgen.errors import SimError
from layoutgen.sim import Options
from tests.sim.kernels import kernel, run

ORDERS = [Options(), Options(warp_order=1), Options(warp_order=2)]


def test_lanes_diverge_and_meet_again() -> None:
    """Collatz: each lane loops a different number of times; the code after the loop runs once per warp."""
    body = (
        "add.u32 %r1, %r0, 1;\nmov.u32 %r2, 0;\nloop:\nsetp.le.u32 %p1, %r1, 1;\n@%p1 bra done;\nand.b32 %r3, %r1,"
        " 1;\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra even;\nmad.lo.u32 %r1, %r1, 3, 1;\nbra.uni next;\neven:\nshr.u32"
        " %r1, %r1, 1;\nnext:\nadd.u32 %r2, %r2, 1;\nbra loop;\ndone:\nst.global.u32 [%d0], %r2;\nret;"
    )

    def steps(n: int) -> int:
        count = 0
        while n > 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    for options in ORDERS:
        got, report = run(kernel(body), 96, options=options)
        assert got.tolist() == [steps(t + 1) for t in range(96)]
        assert report.by_opcode()["st.global.u32"] == 3
        # Lanes of a warp meet again each time round, so a warp goes round as often as its slowest lane.
        assert report.by_opcode()["add.u32"] == 3 + sum(
            max(steps(t + 1) for t in range(w * 32, w * 32 + 32)) for w in range(3)
        )


def test_a_guard_leaves_the_other_lanes_alone() -> None:
    body = (
        "setp.lt.u32 %p1, %r0, 5;\nmov.u32 %r1, 1;\n@%p1 add.u32 %r1, %r1, 1;\n@!%p1 mul.lo.u32 %r1, %r1, 10;\n@%p1"
        " st.global.u32 [%d0], %r1;"
    )
    got, _ = run(kernel(body))
    assert got.tolist() == [2] * 5 + [0xFFFFFFFF] * 27


def test_threads_that_leave_early_touch_nothing_more() -> None:
    body = "setp.ge.u32 %p1, %r0, 50;\n@%p1 exit;\nbar.sync 0;\nst.global.u32 [%d0], %r0;"
    for options in ORDERS:
        got, _ = run(kernel(body), 96, options=options)
        assert got.tolist() == [*range(50), *[0xFFFFFFFF] * 46]


def test_a_block_that_is_no_multiple_of_a_warp() -> None:
    got, report = run(kernel("bar.sync 0;\nst.global.u32 [%d0], %r0;"), 33)
    assert got.tolist() == list(range(33)) and report.traffic[6 - 1].requests == 2


def test_blocks_take_different_paths() -> None:
    body = (
        "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, 0;\nloop:\nsetp.ge.u32 %p1, %r2, %r1;\n@%p1 bra done;\nbar.sync"
        " 0;\nadd.u32 %r2, %r2, 1;\nbra loop;\ndone:\nmul.wide.u32 %d2, %r1, 256;\nadd.s64 %d0, %d0,"
        " %d2;\nst.global.u32 [%d0], %r2;"
    )
    for options in [*ORDERS, Options(batch_lanes=64)]:
        out = np.zeros((5, 64), np.uint32)
        _, report = run(kernel(body), 64, (5, 1, 1), out=out, options=options)
        assert (out == np.arange(5)[:, None]).all()
        assert report.by_opcode()["bar.sync"] == 2 * (1 + 2 + 3 + 4)


EXCHANGE = (
    ".shared .align 4 .b8 s[{bytes}];\nmov.u32 %r1, s;\nmad.lo.u32 %r2, %r0, 4, %r1;\nst.shared.u32 [%r2],"
    " %r0;\n{barrier}\nxor.b32 %r3, %r0, 32;\nmad.lo.u32 %r2, %r3, 4, %r1;\nld.shared.u32 %r4,"
    " [%r2];\nst.global.u32 [%d0], %r4;"
)


@pytest.mark.parametrize(
    "barrier",
    ["bar.sync 0;", "barrier.sync 3;", "barrier.cta.sync.aligned 1, 128;", "mov.u32 %r9, 2;\nbar.sync %r9, 128;"],
)
def test_a_barrier_publishes_shared_memory(barrier: str) -> None:
    for options in ORDERS:
        got, _ = run(kernel(EXCHANGE.format(bytes=512, barrier=barrier)), 128, options=options)
        assert got.tolist() == [t ^ 32 for t in range(128)]
    broken = kernel(EXCHANGE.format(bytes=512, barrier=""))
    assert run(broken, 128)[0].tolist() == [t ^ 32 for t in range(128)]  # in lockstep the writes come first anyway
    assert any((run(broken, 128, options=o)[0] == 0xFFFFFFFF).any() for o in ORDERS[1:])


def test_pairs_of_warps_with_a_barrier_each() -> None:
    barrier = "shr.u32 %r9, %r0, 6;\nadd.u32 %r9, %r9, 1;\nbar.sync %r9, 64;"
    for options in ORDERS:
        got, _ = run(kernel(EXCHANGE.format(bytes=512, barrier=barrier)), 128, options=options)
        assert got.tolist() == [t ^ 32 for t in range(128)]


def test_one_warp_arrives_and_the_other_waits() -> None:
    body = (
        ".shared .align 4 .b8 s[128];\nmov.u32 %r1, s;\nand.b32 %r2, %r0, 31;\nmad.lo.u32 %r1, %r2, 4,"
        " %r1;\nsetp.ge.u32 %p1, %r0, 32;\n@%p1 bra produce;\nbar.sync 1, 64;\nld.shared.u32 %r3,"
        " [%r1];\nst.global.u32 [%d0], %r3;\nret;\nproduce:\nst.shared.u32 [%r1], %r0;\nbar.arrive 1, 64;\nret;"
    )
    for options in ORDERS:
        got, _ = run(kernel(body), 64, options=options)
        assert got[:32].tolist() == list(range(32, 64))


HANDSHAKE = (
    ".shared .align 4 .b8 s[4];\nmov.u32 %r1, s;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\nsetp.ge.u32 %p1, %r0, 32;\n"
    "@%p1 bra produce;\nconsume:\nbar.sync 1, 64;\nld.shared.u32 %r4, [%r1];\nmad.lo.u32 %r3, %r3, 10, %r4;\n"
    "bar.arrive 2, 64;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 4;\n@%p2 bra consume;\n"
    "st.global.u32 [%d0], %r3;\nret;\n"
    "produce:\nadd.u32 %r2, %r2, 1;\nst.shared.u32 [%r1], %r2;\nbar.arrive 1, 64;\nbar.sync 2, 64;\n"
    "setp.lt.u32 %p2, %r2, 4;\n@%p2 bra produce;\nret;"
)


def test_arrivals_are_spent_by_the_barrier_that_they_complete() -> None:
    for seed in range(6):
        got, _ = run(kernel(HANDSHAKE), 64, options=Options(warp_order=seed))
        assert got[:32].tolist() == [1234] * 32


def test_arrivals_do_not_outlive_their_block() -> None:
    """In block 0 warp 1 arrives and nobody waits; in block 1 warp 0 waits and nobody arrives."""
    body = (
        "mov.u32 %r1, %ctaid.x;\nsetp.ge.u32 %p1, %r0, 32;\nsetp.eq.u32 %p2, %r1, 0;\n@%p1 bra other;\n@%p2 exit;\n"
        "bar.sync 1, 64;\nret;\nother:\n@%p2 bar.arrive 1, 64;\nret;"
    )
    with pytest.raises(SimError, match=r"deadlock in block \(1,0,0\)"):
        run(kernel(body), 64, (2, 1, 1), options=Options(batch_lanes=64))


def test_more_threads_than_a_barrier_takes() -> None:
    for body in (
        "bar.sync 1, 64;",
        "setp.lt.u32 %p1, %r0, 64;\n@%p1 bra w;\nbar.arrive 1, 64;\nret;\nw:\nbar.sync 1, 64;",
    ):
        with pytest.raises(SimError, match=r"96 threads of block \(0,0,0\) came to `bar.sync 1, 64`"):
            run(kernel(body), 96)


def test_half_a_warp_does_not_make_a_barrier_complete() -> None:
    body = (
        "setp.lt.u32 %p1, %r0, 16;\n@%p1 bra first;\nsetp.lt.u32 %p1, %r0, 32;\n@%p1 bra second;\n"
        "first:\nbarrier.sync 1, 64;\nret;\nsecond:\nbarrier.sync 2, 64;\nret;"
    )
    with pytest.raises(
        SimError, match=r"warps \[0, 1\] wait at `barrier\.sync 1, 64`.*warps \[0\] wait at `barrier\.sync 2, 64`"
    ):
        run(kernel(body), 64)


def test_a_barrier_that_half_of_the_warps_miss() -> None:
    body = "setp.ge.u32 %p1, %r0, 64;\n@%p1 bra other;\nbar.sync 0;\nret;\nother:\nbar.sync 1;\nret;"
    for options in ORDERS:
        with pytest.raises(
            SimError,
            match=(
                r"deadlock in block \(0,0,0\): warps \[0, 1\] wait at `bar\.sync 0`.*warps \[2, 3\] wait at"
                r" `bar\.sync 1`"
            ),
        ):
            run(kernel(body), 128, options=options)


def test_a_barrier_for_more_threads_than_come() -> None:
    body = "setp.ge.u32 %p1, %r0, 32;\n@%p1 exit;\nbar.sync 0, 64;\nret;"
    with pytest.raises(SimError, match=r"warps \[0\] wait at[\s\S]*warps \[1\] have exited"):
        run(kernel(body), 64)


def test_a_warp_that_comes_to_two_barriers_at_once() -> None:
    body = "setp.ge.u32 %p1, %r0, 16;\n@%p1 bra other;\nbar.sync 0;\nret;\nother:\nbar.sync 0;\nret;"
    with pytest.raises(SimError, match="all threads of a warp come to the same barrier"):
        run(kernel(body))
    run(kernel(body.replace("bar.sync", "barrier.sync")))  # not aligned: lanes may come by different ways


def test_lanes_that_come_late_to_a_barrier_are_waited_for() -> None:
    body = (
        "setp.lt.u32 %p1, %r0, 8;\n@%p1 bra away;\nback:\nbar.sync 0;\nst.global.u32 [%d0], %r0;\nret;\n"
        "away:\nadd.u32 %r0, %r0, 100;\nbra back;"
    )
    got, report = run(kernel(body), 64)
    assert got.tolist() == [*range(100, 108), *range(8, 64)] and report.by_opcode()["st.global.u32"] == 2


def test_warp_barriers_take_the_lanes_in_their_mask() -> None:
    body = (
        "setp.lt.u32 %p1, %r0, 8;\n@%p1 bra low;\nbar.warp.sync 0xffffff00;\nbra end;\nlow:\nbar.warp.sync 0xff;\n"
        "end:\nst.global.u32 [%d0], %r0;"
    )
    assert run(kernel(body))[0].tolist() == list(range(32))
    with pytest.raises(SimError, match="deadlock"):
        run(kernel(body.replace("0xff;", "0xffff;")))


@pytest.mark.parametrize(
    "operands, rule", [("16", "number from 0 to 15"), ("0, 33", "multiple of 32"), ("0, %r9", "multiple of 32")]
)
def test_barrier_operands(operands: str, rule: str) -> None:
    with pytest.raises(SimError, match=rule):
        run(kernel(f"mov.u32 %r9, 0;\nbar.sync {operands};"))


def test_an_endless_loop_meets_the_limit() -> None:
    with pytest.raises(SimError, match="come to an end within the limit"):
        run(kernel("again:\nadd.u32 %r1, %r1, 1;\nbra again;"), options=Options(limit=1000))


def test_the_limit_is_for_each_block_and_warp() -> None:
    loop = kernel("mov.u32 %r1, 0;\nagain:\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 10;\n@%p1 bra again;")
    run(loop, 96, (40, 1, 1), options=Options(limit=10, batch_lanes=128))
    with pytest.raises(SimError, match="more than 9 times"):
        run(loop, 96, (40, 1, 1), options=Options(limit=9, batch_lanes=128))


def test_trap_stops_the_launch() -> None:
    with pytest.raises(SimError, match=r"doesn't trap[\s\S]*thread \(7,0,0\)"):
        run(kernel("setp.eq.u32 %p1, %r0, 7;\n@%p1 trap;\nst.global.u32 [%d0], %r0;"))


def test_a_kernel_may_end_without_ret_and_a_label_may_stand_last() -> None:
    assert run(kernel("st.global.u32 [%d0], %r0;\nbra end;\nst.global.u32 [%d0], 5;\nend:"))[0].tolist() == list(
        range(32)
    )


def test_merged_instructions_keep_their_order_of_effects() -> None:
    """Neighbours with one opcode where a later one reads, or writes again, what an earlier one wrote."""
    body = (
        "mov.u32 %r1, 1;\nmov.u32 %r2, 2;\nadd.u32 %r3, %r1, %r2;\nadd.u32 %r4, %r3, %r2;\nadd.u32 %r1, %r4, %r1;\n"
        "add.u32 %r1, %r1, %r0;\nadd.u32 %r5, %r1, 1;\nmov.u32 %r6, %r5;\nmov.u32 %r5, %r1;\nmov.u32 %r1, %r6;\n"
        "sub.u32 %r1, %r1, %r5;\nshl.b32 %r1, %r1, 8;\nadd.u32 %r1, %r1, %r5;\nst.global.u32 [%d0], %r1;"
    )
    assert run(kernel(body))[0].tolist() == [256 + 6 + t for t in range(32)]


def test_swapping_registers_in_a_merged_run_under_divergence() -> None:
    moves = "".join(f"mov.u32 %r{20 + i}, %r{10 + (i * 3 + 1) % 8};\n" for i in range(8))
    body = (
        "".join(f"add.u32 %r{10 + i}, %r0, {i * 100};\nmov.u32 %r{20 + i}, 9;\n" for i in range(8))
        + "setp.lt.u32 %p1, %r0, 11;\n@!%p1 bra skip;\n"
        + moves
        + "skip:\n"
        + "mov.u32 %r1, 0;\n"
        + "".join(f"mad.lo.u32 %r1, %r1, 3, %r{20 + i};\n" for i in range(8))
        + "st.global.u32 [%d0], %r1;"
    )
    want = []
    for t in range(32):
        total = 0
        for i in range(8):
            total = (total * 3 + (t + (i * 3 + 1) % 8 * 100 if t < 11 else 9)) & 0xFFFFFFFF
        want.append(total)
    assert run(kernel(body))[0].tolist() == want


@pytest.mark.parametrize(
    "text",
    [
        "call foo;",
        "bra nowhere;",
        "brx.idx %r1, t;",
        "bar.red.popc.u32 %r1, 0, %p1;",
        "fence.proxy.async;",
        "nanosleep.u32 20;",
    ],
)
def test_other_control_flow_is_refused(text: str) -> None:
    with pytest.raises(SimError) as e:
        run(kernel(text))
    assert text.rstrip(";") in str(e.value)


@pytest.mark.parametrize("text", ["membar.cta;", "membar.gl;", "fence.acq_rel.gpu;", "fence.sc.sys;"])
def test_fences_change_nothing(text: str) -> None:
    assert run(kernel(f"{text}\nst.global.u32 [%d0], %r0;"))[0].tolist() == list(range(32))


def test_a_vote_of_the_block_reaches_every_thread() -> None:
    """Twice in a row, by one thread and by none; whatever the order of the warps."""
    body = (
        "setp.eq.u32 %p1, %r0, 70;\nbar.red.or.pred %p2, 0, %p1;\nsetp.gt.u32 %p1, %r0, 500;\n"
        "bar.red.or.pred %p3, 0, %p1;\nselp.u32 %r1, 1, 0, %p2;\nselp.u32 %r2, 2, 0, %p3;\nadd.u32 %r1, %r1, %r2;\n"
        "st.global.u32 [%d0], %r1;"
    )
    for options in ORDERS:
        got, report = run(kernel(body), 96, options=options)
        assert set(got.tolist()) == {1}
        assert report.by_opcode()["bar.red.or.pred"] == 2 * 3


def test_a_vote_counts_only_threads_of_its_block() -> None:
    body = (
        "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 1;\nbar.red.or.pred %p2, 0, %p1;\nselp.u32 %r2, 1, 0, %p2;\n"
        "mul.wide.u32 %d2, %r1, 256;\nadd.s64 %d0, %d0, %d2;\nst.global.u32 [%d0], %r2;"
    )
    got, _ = run(kernel(body), 64, grid=(2, 1, 1), out=np.full(128, 7, np.uint32))
    assert set(got[:64].tolist()) == {0} and set(got[64:].tolist()) == {1}
