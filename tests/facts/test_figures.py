"""The figures that the literature on GEMMs gives come out of the facts; each by hand in the comment beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from layoutgen.facts import facts, launch_waves, problem_work, raster_traffic, registers, roof, tile_intensity
from layoutgen.facts.performance import bound
from layoutgen.facts.resources import Occupancy, occupancy
from layoutgen.hw.devices import DEVICES
from layoutgen.plan import Plan, plan
from layoutgen.problem import packed
from layoutgen.spec import load
from tests.plan.drafts import Draft

SPECS = Path(__file__).resolve().parents[2] / "specs"
A6000 = DEVICES["rtxa6000"]
H100_PCIE = DEVICES["h100-pcie"]
AT_30 = replace(A6000, fp32_tflops=30.0)  # what its clock sustains, in Boehm's account


def primary(name: str) -> Plan:
    return plan(load(SPECS / f"{name}.yaml"))[0]


@pytest.mark.parametrize(
    ("m", "n", "intensity", "gflops"),
    [
        (1, 1, 0.25, 192),  # 2 FLOP for 8 bytes; x 768 GB/s
        (32, 32, 8, 6144),
        (64, 64, 16, 12288),
        (128, 128, 32, 24576),
        (128, 256, 42.67, 30000),  # 32768 of memory, above the peak
    ],
)
def test_intensity_and_roof_of_a_block_tile(m: int, n: int, intensity: float, gflops: float) -> None:
    assert round(tile_intensity(m, n), 2) == intensity
    assert round(roof(tile_intensity(m, n), AT_30) * 1e3) == gflops


def test_ridge() -> None:
    assert round(30e12 / 768e9, 2) == round(AT_30.fp32_tflops * 1e3 / AT_30.memory_gbs, 2) == 39.06
    assert round(A6000.fp32_tflops * 1e3 / A6000.memory_gbs) == 50  # at 38.7 TFLOP/s
    assert roof(39.0, AT_30) < AT_30.fp32_tflops == roof(39.07, AT_30)


def test_waves() -> None:
    spec = primary("salykov_128x128x8")
    at_4092 = launch_waves(spec, 4092, 4092, 4092, slots=84 * 4)
    assert (at_4092.tiles, round(at_4092.waves, 2), round(at_4092.efficiency, 2)) == (1024, 3.05, 0.76)
    assert at_4092.rounds == 4
    assert round(launch_waves(spec, 300, 300, 8, slots=336).useful, 2) == 0.61  # 300 x 300 of 384 x 384
    rows = [launch_waves(spec, 128 * tiles, 128, 8, slots=336).rounds for tiles in (336, 337)]
    assert rows == [1, 2]
    assert H100_PCIE.sms == 114
    assert [launch_waves(spec, 128 * tiles, 128, 8, slots=H100_PCIE.sms).rounds for tiles in (114, 115)] == [1, 2]


def test_useful_counts_the_ragged_k_tile() -> None:
    spec = primary("salykov_128x128x8")
    assert launch_waves(spec, 128, 128, 12, slots=1).useful == 0.75  # 12 of 16
    assert launch_waves(spec, 128, 64, 0, slots=1).useful == 0.5  # nothing to sum, and half of the tile


def test_accumulators_of_an_8_x_8_thread_tile() -> None:
    """256 threads of 64 are 16,384 registers, a quarter of the file: four blocks, 32 of 48 warps, 67%."""
    spec = primary("salykov_128x128x8")
    bounds = registers(spec, A6000)
    assert bounds.accumulators * spec.threads.threads == 16384 == A6000.registers_per_sm // 4
    resident = occupancy(spec, bounds.accumulators, A6000)
    assert (resident.registers, resident.blocks * resident.warps, resident.max_warps) == (4, 32, 48)
    assert round(resident.fraction, 2) == 0.67
    assert resident.limited_by == ("registers",)


def test_salykovs_double_buffer() -> None:
    shared = facts(primary("salykov_128x128x8"), A6000).shared
    assert shared.bytes - shared.padding == 16384  # 2 stages of (128 + 128) x 8 floats
    # A's rows of k are 4 floats longer, all but the last; and a stage ends where 32 bytes do.
    assert shared.padding == 2 * (7 * 4 + 4) * 4


def test_work_of_4092_cubed() -> None:
    found = problem_work(4092, 4092, 4092, reads_c=True)
    assert (round(found.flop / 1e9), round(found.bytes / 1e6), int(found.intensity)) == (137, 268, 511)


def test_the_fullest_resource_limits() -> None:
    found = Occupancy(registers=3, shared_memory=2, threads=2, block_slots=16, warps=8, max_warps=48)
    assert (found.blocks, found.limited_by, found.fraction) == (2, ("shared memory", "threads"), 16 / 48)


def test_grouping_saves_memory_traffic() -> None:
    """Four blocks at once of an 8 x 8 grid of tiles: strips of 4 x 1 read 5 tiles' worth, squares of 2 x 2 read 4."""

    def traffic(group: int) -> tuple[int, int]:
        each = plan(Draft(block=(64, 64, 8), group=group).spec())[0]
        found = raster_traffic(each, 512, 512, 8, slots=4)
        tile = 64 * 8 * 4
        return found.from_l2 // tile, found.from_memory // tile

    assert traffic(2) == (64 * 2, 16 * (2 + 2))
    assert traffic(4) == (64 * 2, 16 * (4 + 1))
    each = plan(Draft(block=(64, 64, 8), group=2).spec())[0]
    assert raster_traffic(each, 512, 512, 8, slots=4).l2_hits == 0.5


def test_a_problem_brings_its_strides() -> None:
    """Rows of 4095 floats start at any of eight places in a sector, so that a warp's lines straddle them."""
    each = plan(load(SPECS / "warptile_128x128.yaml"))[4]
    assert each.variant == "ak_bn_4B"
    even = {a.name: a.sectors for a in facts(each, A6000, packed(each, 4096, 4096, 4096)).accesses}
    odd = {a.name: a.sectors for a in facts(each, A6000, packed(each, 4095, 4095, 4095)).accesses}
    assert odd["copy_a"] > even["copy_a"] and odd["copy_b"] > even["copy_b"]
    assert odd["fragment_a"] == even["fragment_a"] == 0


def test_the_bound_of_a_k_tile_by_hand() -> None:
    """128 x 128 x 16 by 4 warps, on 4 x 32 lanes: 8192 FFMAs of a warp in 2048 clocks, and 464 accesses beside them."""
    h200, each = DEVICES["h200"], primary("warptile_128x128")
    found = facts(each, h200)
    assert found.bound.fma == pytest.approx(2048, rel=2e-4)  # the vendor's 66.9 TFLOP/s are rounded
    requests = {"fragment_a": 2 * 16 * 4, "fragment_b": 4 * 16 * 4, "copy_a": 16 * 4, "copy_b": 4 * 4}
    assert found.bound.issue == (8192 + sum(requests.values())) / 4
    # A's copies read four rows at once, a multiple of 128 bytes apart, which share banks. B's rows start on 32 bytes,
    # every fourth on 128; where they don't, each line of the source goes to two rows of banks.
    by_name = {access.name: access for access in found.accesses}
    assert by_name["copy_a"].wavefronts == 64 * 4
    assert by_name["copy_b"].sectors == 16 * 16
    assert by_name["copy_b"].wavefronts == 4 * (4 + 8 + 8 + 8)
    assert found.bound.shared == 128 * 2 + 256 * 4 + 64 * 4 + by_name["copy_b"].wavefronts
    bytes_per_clock = 4.8e12 / (1.98e9 * 132)
    memory = bound(each, found.accesses, h200, l2_hits=0.75).memory
    assert memory == pytest.approx(2 * 128 * 16 * 4 / 4 / bytes_per_clock)
    assert found.bound.limiter == "issue slots"
    assert found.ceiling == pytest.approx(2 * 128 * 128 * 16 / found.bound.issue * 1.98e9 * 132 / 1e12)
    assert found.ceiling is not None and found.ceiling < h200.fp32_tflops


def test_memory_sets_no_ceiling_before_a_problem_says_what_l2_answers() -> None:
    """An L4's 300 GB/s alone would feed 9.6 TFLOP/s; L2 answers most, and more than that is reached."""
    each, l4 = primary("warptile_128x128"), DEVICES["l4"]
    alone, large = facts(each, l4), facts(each, l4, packed(each, 8192, 8192, 8192))
    assert alone.bound.memory is None and "global memory" not in alone.bound.clocks
    assert "global memory" in large.bound.clocks
    assert alone.ceiling is not None and large.ceiling is not None and alone.ceiling >= large.ceiling > alone.roof
    fed = facts(each, replace(l4, memory_gbs=1.0), packed(each, 8192, 8192, 8192))
    assert fed.bound.limiter == "global memory" and fed.ceiling is not None and fed.ceiling < 1


@pytest.mark.parametrize("peak", [10.0, 30.0, 36.0, 38.7, 39.0])
def test_no_ceiling_is_above_the_device_s_peak(peak: float) -> None:
    """Issue slots allow 2048 / 2164 of 38.7 TFLOP/s, whatever was measured of the lanes."""
    mine = replace(A6000, fp32_tflops=peak)
    found = facts(primary("warptile_128x128"), mine)
    assert found.ceiling == pytest.approx(min(peak, 2048 / 2164 * 84 * 1.8e9 * 256 / 1e12))
    assert found.bound.limiter == ("compute" if peak < 36.6 else "issue slots")


def test_of_amd_nothing_is_counted_that_is_nvidia_s() -> None:
    found = facts(primary("warptile_128x128"), DEVICES["mi300x"])
    assert (found.accesses, found.conflicts, found.ceiling) == ((), None, None)
    assert list(found.bound.clocks) == ["compute"]
    plain = found.to_json()
    assert (plain["accesses"], plain["bank_conflicts"], plain["limiter"]) == ({}, None, None)
    assert found.occupancy.blocks == 1 and found.registers.minimum == 182
