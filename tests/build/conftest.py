"""Shared by the tests of layoutgen.build: a small kernel, and a copy of the installed toolchain to falsify."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutgen.build import toolchain

# Plain CUDA, because NVRTC takes 0.1 s for it and 2 s for CuTe's headers.
SCALE = """
extern "C" __global__ void scale(float* x, long long n, float alpha) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) x[i] *= alpha;
}
"""


@pytest.fixture
def scale() -> str:
    """Source of a kernel `scale`."""
    return SCALE


@pytest.fixture
def site(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder like site-packages that links to the toolchain, with wheels left out or of other versions."""

    def make(name: str = "site", *, without: tuple[str, ...] = (), **versions: str) -> Path:
        root = tmp_path / name
        tools = toolchain()
        cutlass, cccl, cudart, crt = (
            next(folder for folder in tools.includes if (folder / header).is_file())
            for header in ("cute/tensor.hpp", "cuda/std/version", "cuda_runtime.h", "crt/host_defines.h")
        )
        files = {
            "nvidia-cutlass": {"cutlass_library/source/include": cutlass},
            "nvidia-cuda-cccl": {"nvidia/cu13/include/cccl": cccl},
            "nvidia-cuda-runtime": {
                f"nvidia/cu13/include/{entry.name}": entry
                for entry in cudart.iterdir()
                if entry.name not in ("cccl", "crt")
            },
            "nvidia-cuda-crt": {"nvidia/cu13/include/crt": crt / "crt"},
            "nvidia-cuda-nvrtc": {f"nvidia/cu13/lib/{file.name}": file for file in (tools.nvrtc, tools.builtins)},
            "nvidia-cuda-nvcc": {"nvidia/cu13/bin/ptxas": tools.ptxas},
        }
        if tools.nvdisasm is not None:
            files["nvidia-cuda-nvdisasm"] = {"nvidia/cu13/bin/nvdisasm": tools.nvdisasm}
        for wheel, links in files.items():
            if wheel in without:
                continue
            for place, target in links.items():
                (root / place).parent.mkdir(parents=True, exist_ok=True)
                (root / place).symlink_to(target)
            version = versions.get(wheel.replace("-", "_"), importlib.metadata.version(wheel))
            info = root / f"{wheel.replace('-', '_')}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {wheel}\nVersion: {version}\n")
        return root

    return make
