"""Kernel text -> PTX, through NVRTC.

Source: NVRTC User Guide (compilation options and error log), CUDA 13.0.
"""

from __future__ import annotations

import ctypes
import re
import signal
import time
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

from layoutgen.build.tools import toolchain
from layoutgen.errors import BuildError, Where

# CuTe's headers mark few functions __device__ when they think a host compiler reads them; -default-device makes all so.
# Source lines tell a profiler, and the simulator's reports, which access of the plan an instruction is.
OPTIONS = ("-std=c++17", "-default-device", "-lineinfo")
_FIRST_ERROR = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?:catastrophic )?error\b[^:]*: (?P<message>.*)", re.M)
_SIGACTION_BYTES = 256  # more than a C library's struct sigaction, which starts with the handler (little-endian)
_LOG_LINES = 25  # a template error repeats itself over hundreds of lines


@dataclass(frozen=True, slots=True)
class Ptx:
    """PTX text of one source file.

    Attributes:
        text: the PTX. name: the source's file name, as the log prints it. arch: e.g. ``sm_90a``.
        seconds: CPU seconds that the compiler took. log: its warnings.
    """

    text: str = field(repr=False)
    name: str
    arch: str
    seconds: float
    log: str = ""

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels (PTX ``.entry`` functions), in the order of the text."""
        return tuple(re.findall(r"\.entry\s+([\w$]+)", self.text))


def compile_options(arch: str) -> tuple[str, ...]:
    """The NVRTC options for `arch`, include folders apart.

    Raises:
        BuildError: `arch` is not written like ``sm_90`` or ``sm_90a``.
    """
    match = re.fullmatch(r"sm_(\d{2,3}[af]?)", arch)
    if match is None:
        raise BuildError("an architecture is written like sm_90a", got=arch, allowed="sm_80, sm_86, sm_89, sm_90a, ...")
    return (*OPTIONS, f"--gpu-architecture=compute_{match[1]}")


def compile_ptx(text: str, name: str, arch: str = "sm_90a") -> Ptx:
    """Compiles kernel source to PTX for ``compute_XX`` of `arch` (``sm_XX``).

    Args:
        text: CUDA C++ source. CuTe's headers are on the include path.
        name: the file name for error messages and line information.

    Raises:
        BuildError: the toolchain is incomplete, it doesn't know `arch`, or the source does not compile; then `where` is
            the first error's file and line and `got` its message with the compiler's log.
    """
    options = compile_options(arch)
    tools = toolchain()
    nvrtc = _load(tools.nvrtc, tools.builtins, tools.versions["nvidia-cuda-nvrtc"])
    known = [f"sm_{number}" for number in _done(nvrtc.nvrtcGetSupportedArchs())]
    if arch.rstrip("af") not in known:
        raise BuildError("NVRTC knows the architecture", got=arch, allowed=", ".join(known))
    arguments = [option.encode() for option in (*options, *(f"-I{folder}" for folder in tools.includes))]
    program = _done(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
    try:
        start = time.process_time()
        (status,) = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)
        seconds = time.process_time() - start
        log = _text(nvrtc, "Log", program)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise _compile_error(name, status.name, log)
        return Ptx(_text(nvrtc, "PTX", program), name, arch, seconds, log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


@cache
def _load(library: Any, builtins: Any, version: str) -> ModuleType:
    """cuda.bindings.nvrtc over the NVRTC of the toolchain."""
    try:
        # NVRTC opens its builtins by bare name at the first compilation and would not find them inside a wheel; once
        # they are loaded, the name resolves. NVRTC itself is loaded first so that the bindings use this copy.
        ctypes.CDLL(str(builtins))
        ctypes.CDLL(str(library))
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise BuildError("cuda-bindings is installed", got=error, fix="pip install 'cuda-bindings>=13,<14'") from error
    except OSError as error:
        raise BuildError(
            "NVRTC can be loaded", got=error, fix="pip install --force-reinstall nvidia-cuda-nvrtc"
        ) from error
    status, major, minor = nvrtc.nvrtcVersion()
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS or not version.startswith(f"{major}.{minor}."):
        raise BuildError(
            "the process has loaded the NVRTC that the toolchain found",
            got=f"NVRTC {major}.{minor} is loaded, nvidia-cuda-nvrtc {version} is installed at {library}",
            fix="install one release of NVRTC, or import layoutgen before the package that loads the other",
        )
    _keep_interrupts(nvrtc)
    module: ModuleType = nvrtc
    return module


def _keep_interrupts(nvrtc: ModuleType) -> None:
    """Has the process's first compilation be an empty one, with SIGINT ignored.

    The first, and only that, handles SIGINT itself for as long as it takes, unless SIGINT is ignored. It calls exit():
    a Ctrl-C would end a notebook's kernel, or hang it where the signal meets an allocation.
    """
    libc, number = ctypes.CDLL(None), int(signal.SIGINT)
    ignore, before = (ctypes.create_string_buffer(_SIGACTION_BYTES) for _ in range(2))
    ignore[0] = bytes([signal.SIG_IGN])
    program = _done(nvrtc.nvrtcCreateProgram(b"", b"empty.cu", 0, [], []))
    libc.sigaction(number, ignore, before)  # not signal.signal, which serves the main thread alone
    try:
        nvrtc.nvrtcCompileProgram(program, 0, [])
    finally:
        libc.sigaction(number, before, None)
        nvrtc.nvrtcDestroyProgram(program)


def _done(result: tuple[Any, ...]) -> Any:
    status, value = result
    if int(status) != 0:
        raise BuildError("NVRTC answers", got=status.name)
    return value


def _text(nvrtc: ModuleType, what: str, program: Any) -> str:
    size = _done(getattr(nvrtc, f"nvrtcGet{'Program' if what == 'Log' else ''}{what}Size")(program))
    buffer = bytearray(size)  # not bytes: the bindings write into it, and Python shares short bytes objects
    (status,) = getattr(nvrtc, f"nvrtcGet{'Program' if what == 'Log' else ''}{what}")(program, buffer)
    if int(status) != 0:
        raise BuildError(f"NVRTC hands out its {what}", got=status.name)
    return buffer.rstrip(b"\0").decode(errors="replace")


def _compile_error(name: str, status: str, log: str) -> BuildError:
    first = _FIRST_ERROR.search(log)
    lines = log.strip().splitlines()
    shown = "\n".join(lines[:_LOG_LINES])
    if len(lines) > _LOG_LINES:
        shown += f"\n({len(lines) - _LOG_LINES} more lines)"
    message = f"{first['message']}\n{shown}" if first else f"{status}\n{shown}"
    where = Where(first["file"].strip(), int(first["line"])) if first else Where(name)
    return BuildError("the kernel compiles", got=message, where=where)
