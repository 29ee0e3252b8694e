"""The device table, held against what the figures must satisfy together and against NVIDIA's occupancy calculator."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from layoutgen.errors import LayoutgenError
from layoutgen.facts import register_cap, resident_blocks
from layoutgen.hw.devices import DEVICES, Device, by_arch, device, limits
from tests.hw.cuda_occupancy import Answer, Question, ask

NVIDIA = {name: known for name, known in DEVICES.items() if known.cc}


def taking(threads: int, shared: int) -> Any:
    """What resident_blocks reads of a plan."""
    return SimpleNamespace(threads=SimpleNamespace(threads=threads), shared_bytes=shared)


@pytest.mark.parametrize("known", DEVICES.values(), ids=DEVICES)
def test_the_peak_follows_from_lanes_and_clock(known: Device) -> None:
    """An FMA is two operations; vendors round the peak and the clock to three digits."""
    computed = known.sms * known.fp32_lanes_per_sm * 2 * known.boost_mhz * 1e6 / 1e12
    assert computed == pytest.approx(known.fp32_tflops, rel=0.01)


@pytest.mark.parametrize("known", DEVICES.values(), ids=DEVICES)
def test_limits_hang_together(known: Device) -> None:
    assert known.shared_per_block == known.shared_per_sm - (1024 if known.cc else 0)
    assert known.max_threads_per_block <= known.max_threads_per_sm
    assert known.max_warps_per_sm * known.warp_size == known.max_threads_per_sm
    assert known.max_warps_per_sm % known.schedulers_per_sm == 0
    assert known.registers_per_thread * known.warp_size <= known.registers_per_sm // known.partitions
    assert known.registers_per_sm % (known.partitions * known.register_unit) == 0
    assert known.l2_mb % known.l2_caches == 0
    assert known.source


def test_the_devices_that_the_issue_asks_for() -> None:
    wanted = "rtx3090 rtxa6000 a100-40gb a100-80gb l4 l40s rtx4090 h100-sxm h100-pcie h200 b200 mi300x"
    assert list(DEVICES) == wanted.split()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Device, Question, Answer]]:
    """Each of NVIDIA's devices with kernels at random, and what NVIDIA's calculator says about them."""
    chance = random.Random(0)
    asked = []
    for known in NVIDIA.values():
        assert known.cc is not None
        for _ in range(60):
            threads, registers = 32 * chance.randint(1, 32), chance.randint(16, 255)
            shared = chance.choice((0, chance.randint(0, 20_000), chance.randint(0, known.shared_per_block)))
            asked.append(
                (known, Question(known.cc, known.max_threads_per_sm, known.shared_per_sm, threads, registers, shared))
            )
    said = ask([question for _, question in asked], tmp_path_factory.mktemp("occupancy"))
    return [(known, question, answer) for (known, question), answer in zip(asked, said, strict=True)]


def test_limits_are_those_of_the_cuda_runtime(answers: list[tuple[Device, Question, Answer]]) -> None:
    for known, _, said in answers:
        assert (known.shared_unit, known.register_unit, known.partitions) == (
            said.shared_unit, said.register_unit, said.partitions,
        )  # fmt: skip
        assert (known.max_blocks_per_sm, known.shared_per_sm) == (said.max_blocks, said.shared_per_sm), known.name


def test_resident_blocks_are_those_of_the_cuda_runtime(answers: list[tuple[Device, Question, Answer]]) -> None:
    seen = set()
    for known, asked, said in answers:
        assert resident_blocks(taking(asked.threads, asked.shared), asked.registers, known) == said.resident, asked
        seen.add(said.resident)
    assert {0, 1, 2, 3, 4, 5, 8} <= seen


def test_peaks_can_be_replaced() -> None:
    """30 TFLOP/s and 768 GB/s are literature's for an A6000, with a ridge of 39.06; the vendor's peak has 50."""
    known = device("rtxa6000")
    assert round(replace(known, fp32_tflops=30.0).ridge, 2) == 39.06
    assert int(known.ridge) == 50
    assert known.max_warps_per_sm == 48


def test_mi300x_by_its_data_sheet() -> None:
    known = device("MI300X")
    assert known.cc is None and known.arch == "gfx942"
    assert known.sms * 64 == 19456  # stream processors
    assert known.registers_per_sm * 4 == 512 * 1024  # bytes of VGPRs of a compute unit
    assert known.shared_per_block == 64 * 1024
    assert (known.max_warps_per_sm, known.warp_size) == (32, 64)
    assert known.l2_mb / known.l2_caches == 4
    assert limits("gfx942") == {}


@pytest.mark.parametrize(
    ("threads", "blocks", "cap"),
    # A SIMD has 512 registers of each of 64 lanes; wavefronts get them by eights. 96 threads are two wavefronts.
    [(256, 1, 512), (512, 1, 256), (1024, 1, 128), (1024, 2, 64), (320, 1, 256), (192, 4, 168), (96, 8, 128)],
)
def test_registers_of_a_thread_on_mi300x(threads: int, blocks: int, cap: int) -> None:
    assert register_cap(threads, blocks, device("mi300x")) == cap
    assert resident_blocks(taking(threads, 16), cap, device("mi300x")) >= blocks


def test_blocks_of_a_compute_unit() -> None:
    """At most 32 wavefronts, 512 registers a SIMD and lane, and 64 KiB of LDS, which comes in units of 512 bytes."""
    amd = device("mi300x")
    assert resident_blocks(taking(64, 16), 64, amd) == 32
    assert resident_blocks(taking(128, 16), 64, amd) == 16
    assert resident_blocks(taking(96, 16), 24, amd) == 16  # of two wavefronts; the 2048 threads would allow 21
    assert resident_blocks(taking(256, 16), 65, amd) == 7  # 72 of 512
    assert resident_blocks(taking(64, 4096), 24, amd) == 16
    assert resident_blocks(taking(64, 4097), 24, amd) == 14


def test_the_hopper_and_ampere_limits() -> None:
    assert device("h200").shared_per_block == 232448  # 227 KB, what an H200's driver reports
    assert device("a100-80gb").shared_per_block == 163 * 1024
    assert device("rtx4090").shared_per_block == 99 * 1024
    assert device("rtx3090").max_threads_per_sm == 1536


@pytest.mark.parametrize("spelling", ["h100-sxm", "H100-SXM", "h100_sxm", "H100 SXM"])
def test_spelling_is_forgiven(spelling: str) -> None:
    assert device(spelling).name == "h100-sxm"


def test_an_unknown_device_lists_the_known_and_the_closest() -> None:
    with pytest.raises(LayoutgenError) as caught:
        device("rtx4099")
    assert caught.value.fix == "did you mean rtx4090?"
    assert caught.value.allowed is not None and set(caught.value.allowed.split(", ")) == set(DEVICES)
    with pytest.raises(LayoutgenError) as caught:
        device("")
    assert caught.value.fix is None


def test_devices_of_an_architecture() -> None:
    assert {found.name for found in by_arch("sm_90")} == {"h100-sxm", "h100-pcie", "h200"}
    assert by_arch("sm_90a") == by_arch("sm_90")
    assert [found.name for found in by_arch("sm_100a")] == ["b200"]
    assert device("b200").cc == (10, 0)
    with pytest.raises(LayoutgenError, match="some known device") as caught:
        by_arch("sm_75")
    assert caught.value.allowed is not None and "sm_90a" in caught.value.allowed
    with pytest.raises(LayoutgenError, match="written like"):
        by_arch("hopper")


def test_no_device_of_amd_s_is_found_by_architecture() -> None:
    for arch in ("gfx942", "sm_75"):
        with pytest.raises(LayoutgenError, match="some known device") as caught:
            by_arch(arch)
        assert "gfx" not in (caught.value.allowed or "")


def test_every_device_of_nvidia_s_can_be_compiled_for() -> None:
    from layoutgen.build.nvrtc import compile_options

    for known in NVIDIA.values():
        assert compile_options(known.arch)
