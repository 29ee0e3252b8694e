"""Which device a command means when none is named: the GPU here by its product's name, else the H200."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from layoutgen import build, run
from tests.cli.conftest import Outcome


def pretend(monkeypatch: pytest.MonkeyPatch, arch: str | None, product: str = "") -> None:
    monkeypatch.setattr(build, "current_arch", lambda: arch)
    monkeypatch.setattr(build, "Device", lambda: SimpleNamespace(name=product))


@pytest.mark.parametrize(
    ("arch", "product", "name"),
    [
        (None, "", "h200"),
        ("sm_90a", "NVIDIA H200", "h200"),
        ("sm_90a", "NVIDIA H100 PCIe", "h100-pcie"),
        ("sm_90a", "NVIDIA H100 80GB HBM3", "h100-sxm"),  # no name of ours: the first of its architecture
        ("sm_80", "NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("sm_86", "NVIDIA RTX A6000", "rtxa6000"),
        ("sm_89", "NVIDIA L40S", "l40s"),
        ("sm_89", "NVIDIA L4", "l4"),
        ("sm_89", "NVIDIA GeForce RTX 4090", "rtx4090"),
    ],
)
def test_the_device_here(monkeypatch: pytest.MonkeyPatch, arch: str | None, product: str, name: str) -> None:
    pretend(monkeypatch, arch, product)
    assert run.default_device().name == name


def test_a_gpu_that_the_table_lacks_is_told(monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Outcome]) -> None:
    pretend(monkeypatch, "sm_75", "Tesla T4")
    done = cli("check", "warptile_128x128")
    assert (done.code, done.stdout) == (1, "")
    assert "sm_75" in done.stderr
    assert cli("check", "warptile_128x128", "--device", "h200").code == 0
