"""Facts of small plans, against figures worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layoutgen.algebra import Layout
from layoutgen.facts import (
    Coverage,
    c_owners,
    copy_owners,
    cover_c,
    cover_copy,
    register_cap,
    registers,
    resident_blocks,
    shared_collision,
    shared_offsets,
    static_accesses,
)
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import Plan, plan
from layoutgen.plan.model import CTile, Shared, ThreadMap
from layoutgen.spec import load
from tests.plan.drafts import Draft

H200 = DEVICES["h200"]
SPECS = Path(__file__).resolve().parents[2] / "specs"


def primary(**fields: object) -> Plan:
    return plan(Draft(**fields).spec())[0]  # type: ignore[arg-type]


def with_values(each: Plan, m: str, n: str) -> CTile:
    return replace(each.tile, value_mode=(Layout.parse(m), Layout.parse(n)))


def test_a_cover_names_the_first_bad_coordinate_and_its_owners() -> None:
    """One warp of (8,4) lanes over 32 x 16: lane (i, j) starts at (4 i, 4 j)."""
    each = primary(block=(32, 16, 8), warps="1:0")
    assert cover_c(each.tile, each.threads) == Coverage() and Coverage().ok
    missing = cover_c(with_values(each, "2:1", "4:1"), each.threads)
    assert (missing.coordinate, missing.owners, missing.count) == ((2, 0), (), 0)
    assert str(missing) == "(2,0) is owned by nobody"
    twice = cover_c(with_values(each, "4:1", "4:4"), each.threads)
    assert twice.coordinate == (0, 1)  # (0,0) is right: only lane (0,0) has it
    twice = cover_c(with_values(each, "4:1", "(2,4):(0,1)"), each.threads)
    assert str(twice) == (
        "(0,0) is owned by thread 0 (warp 0 lane 0) value (0,0) and thread 0 (warp 0 lane 0) value (0,1)"
    )
    outside = cover_c(with_values(each, "(4,2):(1,32)", "4:1"), each.threads)
    assert outside.outside and outside.coordinate == (32, 0)
    assert str(outside) == "(32,0), outside the tile, is owned by thread 0 (warp 0 lane 0) value (4,0)"
    crowd = cover_c(each.tile, ThreadMap(32, Layout(32, 0), Layout(32, 0)))
    assert crowd.count == 32 and str(crowd).endswith("and 28 more")


def test_a_cover_counts_m_and_n_apart() -> None:
    """m runs past its extent into the next column, and n leaves that out: as offsets m + BLK_M * n they would fit."""
    each = primary(block=(32, 16, 8), warps="1:0")
    tile = replace(each.tile, value_mode=(Layout(2, 32), Layout(1, 0)))
    threads = ThreadMap(256, Layout((32, 8), (1, 0)), Layout((32, 8), (0, 2)))
    assert not cover_c(tile, threads).ok


def test_the_cover_of_a_copy() -> None:
    copy = primary().a.copy
    assert cover_copy(copy, (64, 8)).ok
    assert str(cover_copy(copy, (64, 9))) == "(0,8) is owned by nobody"
    late = replace(copy, thread_k=Layout((8, 16), (1, 0)), thread_x=Layout((8, 16), (0, 2)))
    assert cover_copy(late, (64, 8)).coordinate is not None


@pytest.mark.parametrize(
    ("layout", "pair"),
    [
        ("(4,2,2):(1,4,8)", None),
        ("(4,2,2):(1,5,8)", None),
        ("(4,2,2):(1,3,8)", ((3, 0), (0, 1))),
        ("(4,2,2):(0,1,8)", ((0, 0), (1, 0))),
        ("((2,2),2,2):((1,4),2,8)", None),
    ],
)
def test_words_that_two_elements_share(layout: str, pair: tuple[tuple[int, int], tuple[int, int]] | None) -> None:
    assert shared_collision(Shared(Layout.parse(layout), 8, 64)) == pair


@pytest.mark.parametrize(
    ("threads", "blocks", "cap"),
    # 65536 registers in four parts, in units of 8 a thread; all as ptxas 13.0 allots them.
    [(128, 1, 255), (256, 2, 128), (1024, 1, 64), (288, 1, 168), (288, 2, 96), (96, 5, 128), (64, 16, 64)],
)
def test_the_most_registers_of_a_thread(threads: int, blocks: int, cap: int) -> None:
    assert register_cap(threads, blocks, H200) == cap


def test_registers_by_hand() -> None:
    """128 x 128 over 128 threads is 16 x 8 values; two slots of 16 + 8; 128 threads stage 16 x 128 words of B.

    Addresses: a word in shared memory and two in global memory, of A and B each.
    """
    bounds = registers(primary(block=(128, 128, 16), values=("8", "4"), copy_b="{atom: ldg.sts}"), H200)
    assert (bounds.accumulators, bounds.fragments, bounds.staging) == (128, 48, 16)
    assert bounds.addresses == 2 * (1 + 2) and bounds.minimum == 198 and bounds.cap == 255


def test_resident_blocks_by_hand() -> None:
    each = primary()  # 128 threads; rows of 68 words of A and 72 of B
    assert each.shared_bytes == 2 * 4 * (544 + 568)  # less the last row's pad: 540 words, of whole sectors, and 568
    assert resident_blocks(each, 24, H200) == 2048 // 128
    assert resident_blocks(each, 128, H200) == 4
    assert resident_blocks(each, 41, H200) == 10  # 48 registers: ten warps in each part
    assert resident_blocks(each, 32, DEVICES["rtx4090"]) == 100 * 1024 // (8896 + 1024)
    deep = primary(stages=8)
    assert resident_blocks(deep, 32, DEVICES["rtx4090"]) == 100 * 1024 // (35584 + 1024)
    small = primary(block=(32, 16, 2), warps="1:0")  # 32 threads; (36 + 24) x 2 words x 2 stages
    assert resident_blocks(small, 24, DEVICES["rtx4090"]) == 24


def test_static_accesses_of_warptile_128x128_by_hand() -> None:
    """Per k: 8 values of A and 16 of B, four at a time. A tile: 16 words of A, 4 x 4 of B. D: 128 words."""
    (each, *_) = plan(load(SPECS / "warptile_128x128.yaml"))
    loads = 1 + 16  # the prologue's and the main loop's
    assert static_accesses(each) == {
        ("ld.shared", 16): loads * (8 // 4 + 16 // 4),
        ("cp.async", 4): 2 * 16,  # the first tile's, and the main loop's
        ("cp.async", 16): 2 * 4,
        ("st.global", 16): 2 * 128 // 4,  # with C and without
        ("ld.global", 16): 128 // 4,
    }


def test_static_accesses_of_a_staged_copy_by_hand() -> None:
    """A: 64 x 8 words by 128 threads through registers, k-contiguous: four words of a row are loaded at once, by the
    prologue for two tiles, and stored in four rows."""
    counts = static_accesses(primary(copy_a="{atom: ldg.sts}"))
    tile = 4 * 4  # values of a thread: 32 x 32 by a warp of (8,4) lanes of 4 x 4, in two columns
    assert counts == {
        ("ld.shared", 16): (1 + 8) * (1 + 2),
        ("st.shared", 4): 2 * 4,
        ("cp.async", 16): 2 * 1,
        ("st.global", 16): 2 * 2 * tile // 4,
        ("ld.global", 16): 3 * 1 + 2 * tile // 4,
    }
    words = static_accesses(primary(copy_a="{atom: ldg.sts, values: [1, 1]}"))
    assert words["ld.global", 4] == 3 * 4 and words["st.shared", 4] == 2 * 4
    patch = static_accesses(primary(block=(64, 64, 32), copy_a="{atom: ldg.sts}"))  # 4 x 4 of it are a thread's
    assert patch["ld.global", 16] == 3 * 4 + 2 * tile // 4 and patch["st.shared", 16] == 2 * 4


def test_static_accesses_of_parts_by_hand() -> None:
    """The same, dealt out: a part has its own instructions, and all parts are the whole."""
    whole, dealt = (
        primary(copy_a="{atom: ldg.sts}", spread=spread, block=(64, 64, 16)) for spread in ((0, 1), (0, 15))
    )
    assert len(dealt.program.steady) > len(whole.program.steady)
    assert static_accesses(whole) == static_accesses(dealt)


def test_static_accesses_without_shared_memory_by_hand() -> None:
    """A thread's 4 x 8 values of 8 k: A's rows in two loads of four k each, B's k in two of four n; before the loop and
    in it."""
    tile = 4 * 4
    assert static_accesses(primary(stages=0)) == {
        ("ld.global", 16): 2 * (4 * 2 + 8 * 2) + 2 * tile // 4,
        ("st.global", 16): 2 * 2 * tile // 4,
    }


def test_static_accesses_of_one_stage_and_of_several_k_by_hand() -> None:
    """A along k: four values times two turns of four k; B along n: two runs for each k. Copies stand before the loop
    and in it."""
    counts = static_accesses(primary(stages=1, shared_a="(64,8):(8,1)"))
    assert counts["ld.shared", 16] == 4 * 2 + 2 * 8
    assert counts["cp.async", 16] == 2 * (1 + 1)


@pytest.mark.parametrize("name", sorted(path.stem for path in SPECS.glob("*.yaml")))
def test_the_owner_of_an_element_reaches_it_through_the_plans_layouts(name: str) -> None:
    for each in plan(load(SPECS / f"{name}.yaml")):
        owners = c_owners(each.tile, each.threads)
        m, n = np.indices(each.tile.block[:2])
        value_m, value_n = each.tile.value_mode
        assert np.array_equal(each.threads.m.at(owners.thread) + value_m.at(owners.value_m), m)
        assert np.array_equal(each.threads.n.at(owners.thread) + value_n.at(owners.value_n), n)
        assert np.array_equal(owners.warp * 32 + owners.lane, owners.thread)
        for operand, extent in zip(each.operands, each.tile.block, strict=False):
            copy, copied = operand.copy, copy_owners(operand.copy, (extent, each.tile.block[2]))
            x, k = np.indices(copied.thread.shape)
            assert np.array_equal(copy.thread_x.at(copied.thread) + copy.element_x.at(copied.element_x), x)
            assert np.array_equal(copy.thread_k.at(copied.thread) + copy.element_k.at(copied.element_k), k)
            words = shared_offsets(operand.shared, stage=1)
            assert [int(words[x, k]) for x, k in ((1, 0), (0, 1), (5, 3))] == [
                operand.shared.layout(x, k, 1) for x, k in ((1, 0), (0, 1), (5, 3))
            ]


def test_nobody_owns_what_values_leave_out() -> None:
    each = primary(block=(32, 16, 8), warps="1:0")
    owners = c_owners(with_values(each, "2:1", "4:1"), each.threads)
    assert (owners.thread[2, 0], owners.warp[2, 0], owners.lane[2, 0], owners.thread[1, 0]) == (-1, -1, -1, 0)
