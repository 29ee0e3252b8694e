"""The toolchain is found in wheels alone, and a set of wheels that can't work together is refused with the way out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import layoutgen
from layoutgen.build import toolchain
from layoutgen.errors import BuildError

Site = Callable[..., Path]
PACKAGE_ROOT = Path(layoutgen.__file__).parents[1]


def run(code: str, *pythonpath: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a fresh Python that has no CUDA tool on its PATH."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    bare = {"PATH": "/nonexistent", "PYTHONPATH": os.pathsep.join(map(str, (*pythonpath, PACKAGE_ROOT, *inherited)))}
    return subprocess.run(
        [sys.executable, "-c", code], env=bare | environment, capture_output=True, text=True, check=False
    )


def test_the_pieces_are_files_of_the_wheels() -> None:
    tools = toolchain()
    assert (tools.includes[0] / "cute/layout.hpp").is_file()
    for header in ("cuda/std/type_traits", "cuda_runtime.h", "crt/host_defines.h"):
        assert any((folder / header).is_file() for folder in tools.includes), header
    assert os.access(tools.ptxas, os.X_OK)
    assert set(tools.versions) >= {"nvidia-cuda-nvrtc", "nvidia-cuda-nvcc", "nvidia-cuda-cccl", "nvidia-cutlass"}


def test_builds_with_no_cuda_tool_on_the_path(tmp_path: Path, scale: str) -> None:
    code = f"from layoutgen.build import build; a = build({scale!r}, 'scale'); print(a.resources.registers, a.folder)"
    done = run(code, LAYOUTGEN_CACHE=str(tmp_path / "cache"), CUDA_HOME="/nonexistent")
    assert done.returncode == 0, done.stderr
    registers, folder = done.stdout.split()
    assert int(registers) > 0
    assert Path(folder).is_relative_to(tmp_path / "cache")


def test_pieces_may_come_from_several_folders_of_sys_path(site: Site) -> None:
    headers = ("nvidia-cutlass", "nvidia-cuda-cccl", "nvidia-cuda-crt")
    tools = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvcc", "nvidia-cuda-runtime", "nvidia-cuda-nvdisasm")
    first, second = site("first", without=tools), site("second", without=headers)
    found = toolchain([first, second])
    assert found.includes[0].is_relative_to(first)
    assert found.nvrtc.is_relative_to(second) and found.ptxas.is_relative_to(second)
    assert first / "nvidia/cu13/include" in found.includes and second / "nvidia/cu13/include" in found.includes


def test_the_first_folder_wins(site: Site) -> None:
    first, second = site("first", nvidia_cutlass="4.9.0"), site("second")
    assert toolchain([first, second]).versions["nvidia-cutlass"] == "4.9.0"
    assert toolchain([second, first]).versions["nvidia-cutlass"] != "4.9.0"


def test_missing_wheels_are_all_named(site: Site) -> None:
    root = site(without=("nvidia-cuda-cccl", "nvidia-cutlass", "nvidia-cuda-nvcc"))
    with pytest.raises(BuildError) as caught:
        toolchain([root])
    assert caught.value.fix is not None and caught.value.fix.startswith("pip install ")
    for wheel in ("nvidia-cuda-cccl==13.0.*", "nvidia-cutlass", "nvidia-cuda-nvcc==13.0.*"):
        assert wheel in caught.value.fix.split()
    assert "nvidia-cuda-crt" not in caught.value.fix


def test_an_empty_machine_lacks_everything_but_the_optional_disassembler(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        toolchain([tmp_path])
    assert caught.value.fix is not None and "nvidia-cuda-nvrtc" in caught.value.fix
    assert "nvdisasm" not in caught.value.fix


def test_files_of_unknown_version_do_not_count(site: Site) -> None:
    root = site()
    next(root.glob("nvidia_cuda_cccl-*.dist-info/METADATA")).unlink()
    next(root.glob("nvidia_cuda_cccl-*.dist-info")).rmdir()
    with pytest.raises(BuildError, match="no nvidia-cuda-cccl"):
        toolchain([root])


def test_a_wheel_whose_files_are_gone_does_not_count(site: Site) -> None:
    root = site()
    (root / "nvidia/cu13/bin/ptxas").unlink()
    with pytest.raises(BuildError, match="nvidia-cuda-nvcc"):
        toolchain([root])


def test_a_tool_that_cannot_be_run_does_not_count(site: Site) -> None:
    ptxas = site() / "nvidia/cu13/bin/ptxas"
    ptxas.unlink()
    ptxas.write_text("unpacked without its mode")
    ptxas.chmod(0o644)
    with pytest.raises(BuildError, match="nvidia-cuda-nvcc"):
        toolchain([ptxas.parents[3]])


def test_the_disassembler_is_optional(site: Site) -> None:
    assert toolchain([site(without=("nvidia-cuda-nvdisasm",))]).nvdisasm is None


@pytest.mark.parametrize("wheel", ["nvidia-cuda-cccl", "nvidia-cuda-runtime", "nvidia-cuda-crt"])
def test_headers_of_another_release_are_refused(site: Site, wheel: str) -> None:
    with pytest.raises(BuildError) as caught:
        toolchain([site(**{wheel.replace("-", "_"): "13.3.1"})])
    message = str(caught.value)
    assert f"{wheel} 13.3.1" in message and "nvidia-cuda-nvrtc 13.0" in message and "nvidia-cutlass 4" in message
    assert caught.value.fix == f"pip install '{wheel}==13.0.*'"


def test_patch_releases_mix(site: Site) -> None:
    assert toolchain([site(nvidia_cuda_cccl="13.0.1")]).versions["nvidia-cuda-cccl"] == "13.0.1"


def test_ptxas_may_be_newer_than_nvrtc_but_not_older(site: Site) -> None:
    assert toolchain([site("newer", nvidia_cuda_nvcc="13.5.1")]).ptxas.is_file()
    with pytest.raises(BuildError, match=r"nvidia-cuda-nvcc 12\.9\.9 with nvidia-cuda-nvrtc 13\.0"):
        toolchain([site("older", nvidia_cuda_nvcc="12.9.9")])


def test_another_nvrtc_than_the_wheels_is_refused(site: Site, scale: str) -> None:
    """The wheel says 13.7 and the library is 13.0, as where another package has loaded its own NVRTC first."""
    wheels = ("nvrtc", "cccl", "crt", "runtime", "nvcc")
    root = site(**{f"nvidia_cuda_{wheel}": "13.7.0" for wheel in wheels})
    done = run(f"from layoutgen.build import compile_ptx; compile_ptx({scale!r}, 'scale.cu')", root)
    assert "BuildError" in done.stderr and "NVRTC 13.0 is loaded, nvidia-cuda-nvrtc 13.7.0 is installed" in done.stderr
