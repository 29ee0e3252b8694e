"""Finds the CUDA compiler that pip installed: NVRTC, the headers it compiles against, ptxas and nvdisasm.

Nothing here looks at PATH, CUDA_HOME or a CUDA toolkit. Every piece is a file of a wheel, found below any entry of
``sys.path`` (a virtual environment, a user site, a ``pip install --target`` folder on PYTHONPATH, several at once),
next to the ``dist-info`` that names its version.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from layoutgen.errors import BuildError

_CUDA = "nvidia/cu13"  # where every CUDA 13 wheel unpacks


@dataclass(frozen=True, slots=True)
class _Piece:
    """One file of the toolchain: the wheel that brings it and where it lies below site-packages (first match wins)."""

    wheel: str
    patterns: tuple[str, ...]
    optional: bool = False


_PIECES: Mapping[str, _Piece] = {
    "nvrtc": _Piece("nvidia-cuda-nvrtc", (f"{_CUDA}/lib/libnvrtc.so.*",)),
    "builtins": _Piece("nvidia-cuda-nvrtc", (f"{_CUDA}/lib/libnvrtc-builtins.so.*",)),
    "cute": _Piece("nvidia-cutlass", ("cutlass_library/source/include/cute/tensor.hpp",)),
    "cudart": _Piece("nvidia-cuda-runtime", (f"{_CUDA}/include/cuda_runtime.h",)),
    "crt": _Piece("nvidia-cuda-crt", (f"{_CUDA}/include/crt/host_defines.h",)),
    "cccl": _Piece("nvidia-cuda-cccl", (f"{_CUDA}/include/cccl/cuda/std/version", f"{_CUDA}/include/cuda/std/version")),
    "ptxas": _Piece("nvidia-cuda-nvcc", (f"{_CUDA}/bin/ptxas",)),
    "nvdisasm": _Piece("nvidia-cuda-nvdisasm", (f"{_CUDA}/bin/nvdisasm",), optional=True),
}
# How far each header lies below the folder that -I must name.
_INCLUDE_DEPTH = {"cute": 2, "cccl": 3, "cudart": 1, "crt": 2}


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The compiler's pieces on this machine.

    Attributes:
        nvrtc: libnvrtc, and ``builtins`` the library it loads by name at its first compilation.
        includes: the folders for ``-I``, CuTe's first.
        ptxas: the assembler; ``nvdisasm`` the disassembler, or None where its wheel is not installed.
        versions: wheel -> installed version, of every wheel that a piece came from.
    """

    nvrtc: Path
    builtins: Path
    includes: tuple[Path, ...]
    ptxas: Path
    nvdisasm: Path | None
    versions: Mapping[str, str]


def toolchain(roots: Sequence[Path] | None = None) -> Toolchain:
    """The toolchain below `roots` (default: every entry of ``sys.path``), searched in order.

    Raises:
        BuildError: a piece is missing (all missing wheels are named), or the wheels are of releases that don't compile
            CuTe together.
    """
    return _find(tuple(_search_path() if roots is None else roots))


def _search_path() -> Iterable[Path]:
    places = [Path(entry or ".").absolute() for entry in sys.path]
    # Import hooks (some editable installs) know of places that sys.path doesn't list.
    if (nvidia := importlib.util.find_spec("nvidia")) is not None:
        places += [Path(place).absolute().parent for place in nvidia.submodule_search_locations or ()]
    return dict.fromkeys(places)


@cache
def _find(roots: tuple[Path, ...]) -> Toolchain:
    found: dict[str, Path] = {}
    versions: dict[str, str] = {}
    missing: dict[str, None] = {}
    for name, piece in _PIECES.items():
        if (place := _locate(piece, roots)) is not None:
            found[name], versions[piece.wheel] = place
        elif not piece.optional:
            missing[piece.wheel] = None
    if missing:
        release = _release(versions["nvidia-cuda-nvrtc"]) if "nvidia-cuda-nvrtc" in versions else (13, 0)
        raise BuildError(
            "the CUDA compiler is installed from pip",
            got=f"no {', no '.join(missing)}",
            allowed="nvidia-cutlass and the nvidia-cuda-* wheels of one CUDA release",
            fix="pip install " + " ".join(_requirement(wheel, release) for wheel in missing),
        )
    _check_releases(versions)
    includes = dict.fromkeys(found[name].parents[depth - 1] for name, depth in _INCLUDE_DEPTH.items())
    return Toolchain(
        found["nvrtc"], found["builtins"], tuple(includes), found["ptxas"], found.get("nvdisasm"), versions
    )


def _locate(piece: _Piece, roots: Iterable[Path]) -> tuple[Path, str] | None:
    """The piece's file and version. Both must lie below the same root: another root's version says nothing about it."""
    for root in roots:
        files = (file for pattern in piece.patterns for file in sorted(root.glob(pattern)))
        file = next((file for file in files if file.parent.name != "bin" or os.access(file, os.X_OK)), None)
        if file is None:
            continue
        for distribution in importlib.metadata.distributions(name=piece.wheel, path=[str(root)]):
            return file, distribution.version
    return None


def _check_releases(versions: Mapping[str, str]) -> None:
    """CUDA's headers of one release need that release's compiler; ptxas reads PTX of its own release and older ones."""
    nvrtc = versions["nvidia-cuda-nvrtc"]
    for name in ("cccl", "cudart", "crt"):
        wheel = _PIECES[name].wheel
        if _release(versions[wheel]) != _release(nvrtc):
            raise BuildError(
                "the CUDA headers are of the compiler's release",
                got=f"{wheel} {versions[wheel]} with nvidia-cuda-nvrtc {nvrtc} and nvidia-cutlass "
                f"{versions['nvidia-cutlass']}; that pair does not compile CuTe",
                allowed=_requirement(wheel, _release(nvrtc)),
                fix=f"pip install '{_requirement(wheel, _release(nvrtc))}'",
            )
    ptxas = versions["nvidia-cuda-nvcc"]
    if _release(ptxas) < _release(nvrtc):
        raise BuildError(
            "ptxas is at least of the compiler's release, to know the PTX version that NVRTC writes",
            got=f"nvidia-cuda-nvcc {ptxas} with nvidia-cuda-nvrtc {nvrtc}",
            fix=f"pip install '{_requirement('nvidia-cuda-nvcc', _release(nvrtc))}'",
        )


def _release(version: str) -> tuple[int, int]:
    """(major, minor) of a wheel's version, the part that names a CUDA release."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _requirement(wheel: str, release: tuple[int, int]) -> str:
    if wheel == "nvidia-cutlass":  # CUTLASS counts its own releases
        return wheel
    return f"{wheel}=={release[0]}.{release[1]}.*"
