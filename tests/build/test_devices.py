"""The device table, held against what the figures must satisfy together."""

from __future__ import annotations

import pytest

from layoutgen.errors import LayoutgenError
from layoutgen.hw.devices import DEVICES, Device, by_arch, device


@pytest.mark.parametrize("known", DEVICES.values(), ids=DEVICES)
def test_the_peak_follows_from_lanes_and_clock(known: Device) -> None:
    """An FMA is two operations; vendors round the peak and the clock to three digits."""
    computed = known.sms * known.fp32_lanes_per_sm * 2 * known.boost_mhz * 1e6 / 1e12
    assert computed == pytest.approx(known.fp32_tflops, rel=0.01)


@pytest.mark.parametrize("known", DEVICES.values(), ids=DEVICES)
def test_limits_hang_together(known: Device) -> None:
    assert known.shared_per_block == known.shared_per_sm - 1024
    assert known.max_threads_per_block <= known.max_threads_per_sm
    assert known.max_threads_per_sm % known.warp_size == 0
    assert known.source


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


def test_every_device_can_be_compiled_for() -> None:
    from layoutgen.build.nvrtc import compile_options

    for known in DEVICES.values():
        assert compile_options(known.arch)
