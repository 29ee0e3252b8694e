"""PTX -> cubin and the resources that the kernel takes, through ptxas.

Source: CUDA Compiler Driver NVCC, section "ptxas Options" (``--verbose``).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from layoutgen.build.nvrtc import Ptx
from layoutgen.build.tools import toolchain
from layoutgen.errors import BuildError, Where

OPTIONS = ("-v",)


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes, as ``ptxas -v`` reports it.

    Attributes:
        registers: 32-bit registers a thread.
        static_shared: bytes of static shared memory a block.
        stack: bytes of local memory a thread (spills and indexed arrays).
        spill_stores, spill_loads: bytes that a thread's spill instructions move, each instruction counted once.
        constant: bytes in the kernel's constant banks; 0 where ptxas doesn't say (it no longer does for sm_90 and up).
    """

    registers: int
    static_shared: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    constant: int = 0


def assemble(ptx: Ptx | str, arch: str, kernel_name: str | None = None) -> tuple[bytes, Resources]:
    """Assembles PTX for the GPU `arch`, e.g. ``sm_90a``.

    Args:
        kernel_name: whose resources to report; needed only where the PTX has several kernels.

    Returns:
        The cubin and the kernel's resources.

    Raises:
        BuildError: ptxas refuses the text (`where` is the line of PTX), or there is no such kernel.
    """
    name, text = (Path(ptx.name).stem, ptx.text) if isinstance(ptx, Ptx) else ("kernel", ptx)
    with tempfile.TemporaryDirectory(prefix="layoutgen-") as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(text, encoding="utf-8")
        command = [str(toolchain().ptxas), *OPTIONS, f"-arch={arch}", "-o", str(cubin), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise BuildError(
                "ptxas can be run", got=error, fix="pip install --force-reinstall nvidia-cuda-nvcc"
            ) from error
        log = (done.stdout + done.stderr).replace(str(source), f"{name}.ptx")
        if done.returncode != 0 or not cubin.is_file():
            line = re.search(r"\.ptx, line (\d+);", log)
            raise BuildError(
                "ptxas assembles the PTX", got=log.strip(), where=Where(f"{name}.ptx", int(line[1]) if line else None)
            )
        return cubin.read_bytes(), _choose(_parse(log), kernel_name)


def _parse(log: str) -> dict[str, Resources]:
    """Kernel -> resources. ptxas leaves out the figures that are zero."""
    kernels: dict[str, Resources] = {}
    for section in log.split("Compiling entry function ")[1:]:
        quoted = re.match(r"'([^']+)'", section)
        used = re.search(r"Used (\d+) registers.*", section)
        if quoted is None or used is None:
            continue

        def bytes_of(what: str, text: str) -> int:
            return sum(int(number) for number in re.findall(rf"(\d+) bytes {what}", text))

        # The properties of device functions that were not inlined follow the kernel's own: take the first of each.
        frame = re.search(r"\d+ bytes stack frame.*", section)
        properties = frame[0] if frame else ""
        kernels[quoted[1]] = Resources(
            registers=int(used[1]),
            static_shared=bytes_of(r"smem", used[0]),
            stack=bytes_of("stack frame", properties),
            spill_stores=bytes_of("spill stores", properties),
            spill_loads=bytes_of("spill loads", properties),
            constant=bytes_of(r"cmem\[\d+\]", used[0]),
        )
    return kernels


def _choose(kernels: dict[str, Resources], kernel_name: str | None) -> Resources:
    if kernel_name is None and len(kernels) == 1:
        return next(iter(kernels.values()))
    if kernel_name is None or kernel_name not in kernels:
        raise BuildError(
            "the PTX has the kernel whose resources are asked for",
            got=kernel_name or "no name",
            allowed=", ".join(kernels) or "none: the PTX has no kernel",
            fix='declare the kernel extern "C", so that its name stays as it is written',
        )
    return kernels[kernel_name]
