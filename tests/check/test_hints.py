"""What is poor for the problem at hand: --shape's hints, with figures that are worked out here by hand."""

from __future__ import annotations

import pytest

from layoutgen.check import Finding, Report, check
from layoutgen.hw.devices import DEVICES
from tests.plan.drafts import Draft

# 128 threads of 16 x 8 values, 128 + 48 registers at least: two blocks of an H200's 132 multiprocessors, 264 places.
SQUARE = {"block": (128, 128, 8), "values": ("8", "4"), "group": 8}


def report(shape: tuple[int, int, int], device: str = "h200", **fields: object) -> Report:
    return check(Draft(**{**SQUARE, **fields}).spec(), DEVICES[device], shape)  # type: ignore[arg-type]


def hints(found: Report) -> list[str]:
    return [finding.rule for finding in found.of("hint")]


def only(found: Report, rule: str) -> Finding:
    (finding,) = (each for each in found.findings if each.rule == rule)
    return finding


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4096, 4096, 4096), []),  # 1024 tiles, 3.88 waves
        ((300, 300, 300), ["waves", "overhang"]),
        ((1023, 1023, 1023), ["alignment", "waves"]),
        ((1024, 1024, 1024), ["waves"]),
        ((264 * 128, 128, 1024), []),
        ((265 * 128, 128, 1024), ["waves"]),
        ((8192, 8192, 8191), []),  # A is contiguous in k, but copied word by word
        ((8191, 8192, 8192), []),  # nothing is contiguous in m
        ((8192, 8191, 8192), ["alignment"]),
        ((128 * 264, 96, 1024), []),  # 3 / 4 of the last columns' tiles
        ((128 * 264, 92, 1024), ["overhang"]),
    ],
)
def test_hints(shape: tuple[int, int, int], expected: list[str]) -> None:
    found = report(shape)
    assert found.legal and hints(found) == expected
    assert check(Draft(**SQUARE).spec(), DEVICES["h200"]).of("hint") == ()  # type: ignore[arg-type]


def test_a_problem_of_300() -> None:
    """Nine tiles of 128 for 300 x 300; 304 of k."""
    found = report((300, 300, 300))
    waves, overhang = only(found, "waves"), only(found, "overhang")
    assert waves.got == "9 tiles of 128x128x8 for 264 blocks at once, 0.03 waves: a tile in 3% of the places"
    assert (
        f"{300**3 / (384 * 384 * 304):.0%} of what"
        in overhang.got
        == ("60% of what tiles of 128x128x8 compute for 300 x 300 x 300 exists")
    )
    assert waves.where.line == overhang.where.line == 6


def test_too_few_tiles_are_told_a_size_of_which_there_are_enough() -> None:
    """264 places: a 1024 x 1024 C has 256 tiles of 64 x 64, and 512 of 32 x 64. Of 128 x 128, no size is enough."""
    assert only(report((1024, 1024, 1024)), "waves").fix.endswith("such as 32 x 64, of which there are 512")
    assert only(report((300, 300, 300)), "waves").fix.endswith(f"such as 16 x 16, of which there are {19 * 19}")
    one = only(report((128, 128, 128)), "waves")
    assert "even of 16 x 16" in one.fix and one.got.startswith("1 tile of 128x128x8 for 264 blocks at once")


def test_a_problem_of_1023() -> None:
    alignment = only(report((1023, 1023, 1023)), "alignment")
    assert alignment.got == "1023 x 1023 x 1023, dense, which variant ak_bn_4B takes"
    assert "ak_bn_16B" in alignment.allowed and alignment.where.line == 4
    assert alignment.fix == "pad the rows of B and D to a multiple of 4 floats"  # A is copied word by word


def test_337_tiles_in_336_places() -> None:
    """84 multiprocessors of an A6000. Three stages of 164 + 68 words by 8 k take 22 KB: four blocks of 100 KB."""
    fields = {"block": (128, 64, 8), "stages": 3, "shared_a": "(128,8):(1,164)"}
    one, two = (report((128 * tiles, 64, 1024), "rtxa6000", **fields) for tiles in (336, 337))
    assert "waves" not in hints(one) and "waves" in hints(two)
    assert (
        only(two, "waves").got
        == "337 tiles of 128x64x8 for 336 blocks at once, 1.00 waves: a tile in 50% of the places"
    )


def test_a_large_grid_without_groups() -> None:
    """64 x 64 tiles in waves of 264: ungrouped, 64 rows and 4 columns or so; in groups of 8 rows, 8 rows and 33."""
    found = report((8192, 8192, 8192), group=1)
    raster = only(found, "raster")
    assert raster.where.line == len(Draft(**SQUARE).text().splitlines())  # type: ignore[arg-type]
    assert raster.fix == "write schedule.group: 8"
    # 4096 tiles read 2 x 4096 strips. 15 whole waves touch 64 rows and 5 or 6 columns each, the last one 64 and 3.
    walked = [range(264 * wave, min(264 * wave + 264, 4096)) for wave in range(16)]
    strips = sum(len({b % 64 for b in wave}) + len({b // 64 for b in wave}) for wave in walked)
    assert raster.got == f"group 1: {1 - strips / (2 * 4096):.0%} of the reads of A and B hit L2"
    grouped = sum(
        len({8 * (b // 512) + b % 8 for b in wave}) + len({b % 512 // 8 for b in wave}) for wave in walked
    )  # 8 rows x 64 columns a group
    assert raster.allowed == f"{1 - grouped / (2 * 4096):.0%}, in groups of 8 tiles"
    assert hints(report((8192, 8192, 8192), group=8)) == []


def test_groups_are_not_asked_for_where_they_do_not_help() -> None:
    assert "raster" not in hints(report((128, 128 * 1000, 1024), group=1))  # one row of tiles
    assert "raster" not in hints(report((8192, 768, 1024), group=1))  # 384 tiles are no large grid


def test_a_problem_that_memory_feeds_too_slowly() -> None:
    """2 m n k FLOP over 4 (m k + n k + m n) bytes of 16 x 65536 x 4096."""
    found = report((16, 65536, 4096), block=(16, 256, 8), warps="(1,4):(4,1)", lanes="(2,16):(16,1)")
    m, n, k = 16, 65536, 4096
    intensity = 2 * m * n * k / (4 * (m * k + n * k + m * n))
    finding = only(found, "memory-bound")
    assert f"the problem's own {intensity:.3g} FLOP a byte feed no more than {intensity * 4.8:.1f}" in finding.fix
    assert "memory-bound" not in hints(report((8192, 8192, 8192)))


def test_a_huge_grid_takes_no_longer() -> None:
    """Its waves are like the first ones: what L2 answers is the same as of a grid that is walked to its end."""
    large, huge = (report((each, each, 4096)).facts for each in (16384, 1 << 22))
    assert large is not None and large.problem is not None and huge is not None and huge.problem is not None
    assert huge.problem.raster.from_l2 == 2 * 32768**2 * 128 * 4096 * 4
    assert abs(large.problem.raster.l2_hits - huge.problem.raster.l2_hits) < 0.005
