"""Wavefronts and sectors, against a count made bank by bank and against what an H200 measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutgen.sim.banks import sectors, wavefronts
from layoutgen.sim.frame import Active
from layoutgen.sim.parser import Instruction
from layoutgen.sim.report import Meter

LANE = np.arange(32)
ALL = np.ones((1, 32), bool)


def one(address: np.ndarray, size: int, load: bool = True, active: np.ndarray = ALL) -> int:
    return int(wavefronts(address.reshape(1, 32), active, size, load)[0])


@pytest.mark.parametrize("size, passes", [(1, 1), (2, 1), (4, 1), (8, 2), (16, 4)])
def test_consecutive_addresses(size: int, passes: int) -> None:
    assert one(LANE * size, size) == one(LANE * size, size, load=False) == passes


@pytest.mark.parametrize("size, passes", [(4, 1), (8, 1), (16, 2)])
def test_one_address_for_all(size: int, passes: int) -> None:
    assert one(LANE * 0 + 64, size) == passes


@pytest.mark.parametrize(
    "stride, passes", [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (32, 32), (33, 1), (36, 4), (132, 4)]
)
def test_strided_words(stride: int, passes: int) -> None:
    assert one(LANE * stride * 4, 4) == passes


def test_sixteen_byte_loads_as_measured_on_an_h200() -> None:
    assert one(LANE // 2 * 16, 16) == 2  # addr(i) = addr(i^1): half warps
    assert one(LANE % 2 * 16 + LANE // 4 * 32, 16) == 2  # addr(i) = addr(i^2)
    assert one(LANE // 4 * 16, 16) == 2
    assert one(LANE // 8 * 16, 16) == 2
    assert one(LANE % 8 * 16, 16) == 4  # pairs are apart: four quarter warps, though only 8 addresses
    assert one(LANE % 16 * 16, 16) == 4
    assert one(LANE // 2 * 128, 16) == 16  # half warps of 8 distinct addresses in the same four banks
    assert one(LANE * 128, 16) == 32
    assert one(np.where(LANE < 31, LANE // 2 * 16, 256), 16) == 3  # one pair apart keeps its own half from merging
    assert one(np.repeat([0, 8, 1, 2, 3, 4, 5, 6] * 2, 2) * 16, 16) == 2 * (2 + 1)  # halves that conflict don't merge


def test_eight_byte_loads_merge_their_halves() -> None:
    assert one(LANE // 2 * 8, 8) == 1
    assert one(LANE % 2 * 8 + LANE // 4 * 16, 8) == 1
    assert one(LANE % 16 * 8, 8) == 2
    assert one(LANE // 2 * 128, 8) == 16


def test_stores_do_not_merge() -> None:
    assert one(LANE // 2 * 16, 16, load=False) == 4 and one(LANE // 2 * 8, 8, load=False) == 2


def test_inactive_lanes_take_no_bank_and_keep_no_phases_apart() -> None:
    half = (LANE < 16).reshape(1, 32)
    assert one(LANE * 128, 4, active=half) == 16
    assert one(LANE * 16, 16, active=half) == 2
    even = (LANE % 2 == 0).reshape(1, 32)
    assert one(np.where(LANE % 2, 8000, LANE // 2 * 8), 8, active=even) == 1
    assert one(LANE * 8, 4, active=(LANE == 3).reshape(1, 32)) == 1


@given(
    st.sampled_from((4, 8, 16)),
    st.lists(st.integers(0, 200), min_size=32, max_size=32),
    st.lists(st.booleans(), min_size=32, max_size=32).filter(any),
)
@settings(max_examples=100)
def test_wavefronts_bank_by_bank(size: int, units: list[int], on: list[bool]) -> None:
    """Stores, whose phases never merge: the most words that any bank gives in each phase."""
    lanes = 128 // size
    total = 0
    for first in range(0, 32, lanes):
        words: dict[int, set[int]] = {}
        for lane in range(first, first + lanes):
            for w in range(size // 4):
                if on[lane]:
                    word = units[lane] * size // 4 + w
                    words.setdefault(word % 32, set()).add(word)
        total += max((len(s) for s in words.values()), default=0)
    assert one(np.array(units) * size, size, False, np.array([on])) == total


@given(st.lists(st.integers(0, 1 << 40), min_size=32, max_size=32), st.lists(st.booleans(), min_size=32, max_size=32))
@settings(max_examples=50)
def test_sectors_are_distinct_pieces_of_32_bytes(addresses: list[int], on: list[bool]) -> None:
    got = sectors(np.array([addresses]), np.array([on]))[0]
    assert got == len({a // 32 for a, o in zip(addresses, on, strict=True) if o})


def test_the_same_addresses_of_other_lanes_are_another_pattern() -> None:
    ins = Instruction(0, "ld.shared.u32", (), None, False, "", 1, None)
    meter, address = Meter(), (LANE * 128).astype(np.uint32)
    for lanes, passes in ((LANE < 4, 4), (LANE < 9, 9), (LANE % 2 == 0, 16)):
        before = meter.traffic[0].wavefronts
        meter.shared(ins, address, Active(lanes, lanes), 4, True)
        assert meter.traffic[0].wavefronts - before == passes


@given(
    st.integers(0, 255),
    st.sampled_from((4, 8, 16)),
    st.lists(st.integers(-40, 40), min_size=64, max_size=64),
    st.booleans(),
)
@settings(max_examples=60)
def test_a_remembered_pattern_counts_as_itself(base: int, size: int, offsets: list[int], masked: bool) -> None:
    """The meter looks patterns up by distances between lanes: moving them must not change the count."""
    ins = Instruction(0, "ld.shared.u32", (), None, False, "", 1, None)
    lanes = np.arange(64) % 3 != 0 if masked else None
    here = np.ones((2, 32), bool) if lanes is None else lanes.reshape(2, 32)
    meter = Meter()
    for shift in (0, 1, 7):
        address = ((base + 40 + shift + np.array(offsets)) * size).astype(np.uint32)
        before = meter.traffic[0].wavefronts
        meter.shared(ins, address, Active(lanes, lanes), size, True)
        assert meter.traffic[0].wavefronts - before == wavefronts(address.reshape(2, 32), here, size, True).sum()
        far = address.astype(np.uint64) + np.uint64(1 << 37)
        before = meter.traffic[0].sectors
        meter.globally(ins, far, Active(lanes, lanes), size)
        assert meter.traffic[0].sectors - before == sectors(far.reshape(2, 32).astype(np.int64), here).sum()
    assert meter.traffic[0].requests == 2 * 2 * 3
