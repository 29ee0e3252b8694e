"""Loads cubins and launches kernels through the CUDA driver.

Source: CUDA Driver API reference, sections "Primary Context Management", "Module Management" and "Execution Control".
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any

from layoutgen.build.store import Artifact
from layoutgen.errors import BuildError

_LIBRARY = "libcuda.so.1"


@cache
def _driver() -> ModuleType:
    """cuda.bindings.driver over a driver that is there and initialised."""
    try:
        ctypes.CDLL(_LIBRARY)  # ask before importing the bindings, which take longer to say no
    except OSError as error:
        raise BuildError(
            "an NVIDIA driver is installed", got=error, fix="run on a machine with a GPU, or pass CPU tensors"
        ) from error
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise BuildError("cuda-bindings is installed", got=error, fix="pip install 'cuda-bindings>=13,<14'") from error
    _check(driver, "cuInit", driver.cuInit(0))
    module: ModuleType = driver
    return module


def _check(driver: ModuleType, name: str, result: tuple[Any, ...], about: str = "") -> Any:
    """The value of a driver call's result, or a BuildError with the driver's name and text for the error."""
    status, *values = result
    if int(status) != 0:
        raise BuildError(f"the CUDA driver performs {name}{about}", got=_describe(driver, status))
    return values[0] if values else None


def _call(name: str, *arguments: Any, about: str = "") -> Any:
    driver = _driver()
    return _check(driver, name, getattr(driver, name)(*arguments), about)


def _describe(driver: ModuleType, status: Any) -> str:
    _, text = driver.cuGetErrorString(status)
    return f"{status.name}: {text.decode() if text else 'an error that this driver has no text for'}"


@dataclass(frozen=True)
class Device:
    """The GPU number `ordinal`, as this process's CUDA driver counts them. Attributes are read when first asked for.

    Every attribute raises BuildError where there is no driver or no such GPU.
    """

    ordinal: int = 0

    @cached_property
    def name(self) -> str:
        """The product's name, e.g. ``NVIDIA H200``."""
        raw: bytes = _call("cuDeviceGetName", 256, self._handle)
        return raw.split(b"\0")[0].decode()

    @cached_property
    def cc(self) -> tuple[int, int]:
        """Compute capability (major, minor)."""
        return self.attribute("COMPUTE_CAPABILITY_MAJOR"), self.attribute("COMPUTE_CAPABILITY_MINOR")

    @property
    def arch(self) -> str:
        """What to compile for, e.g. ``sm_86``; from 9.0 on with the features of that very chip: ``sm_90a``."""
        major, minor = self.cc
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"

    @cached_property
    def sms(self) -> int:
        """Number of streaming multiprocessors."""
        return self.attribute("MULTIPROCESSOR_COUNT")

    @cached_property
    def shared_per_block(self) -> int:
        """Bytes of shared memory that one block may have (static and dynamic together, after opting in)."""
        return self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    @cached_property
    def shared_per_sm(self) -> int:
        """Bytes of shared memory of one SM, the reserved bytes of each block included."""
        return self.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR")

    @cached_property
    def l2_bytes(self) -> int:
        """Bytes of L2 cache."""
        return self.attribute("L2_CACHE_SIZE")

    def attribute(self, name: str) -> int:
        """The driver's device attribute ``CU_DEVICE_ATTRIBUTE_<name>``.

        Raises:
            BuildError: the driver knows no such attribute, or there is no such GPU.
        """
        driver = _driver()
        attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}", None)
        if attribute is None:
            raise BuildError("the driver knows the device attribute", got=name)
        return int(_call("cuDeviceGetAttribute", attribute, self._handle))

    @cached_property
    def _handle(self) -> Any:
        return _call("cuDeviceGet", self.ordinal, about=f" for GPU {self.ordinal}")


def current_arch(ordinal: int = 0) -> str | None:
    """The architecture to compile for on this machine, or None where there is no driver or no GPU. Never raises."""
    try:
        return Device(ordinal).arch
    except Exception:  # whatever a broken installation throws, there is no GPU to use
        return None


# name of a kernel parameter's type -> struct format. Explicit sizes ("=" below), as the kernel declares them.
_FORMATS = {"ptr": "Q", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}


class ParamBlock:
    """The parameters of one kernel signature, packed for cuLaunchKernel with little work per call.

    Each thread has its own storage, made once: pack and launch on the same thread, as often as you like.

    Example:
        >>> block = ParamBlock(["ptr", "i64", "f32"])
        >>> function.launch((1, 1, 1), (32, 1, 1), 0, stream, block.pack(address, 2**33, 1.5))
    """

    def __init__(self, types: Sequence[str], names: Sequence[str] = ()) -> None:
        """
        Args:
            types: the parameters' types in order: ptr, i32, u32, i64, u64, f32 or f64.
            names: their names, for error messages.

        Raises:
            BuildError: an unknown type, or as many names as there are no types.
        """
        for name in types:
            if name not in _FORMATS:
                raise BuildError("a kernel parameter's type is known", got=name, allowed=", ".join(_FORMATS))
        if names and len(names) != len(types):
            raise BuildError("every kernel parameter has a name", got=f"{len(names)} names, {len(types)} types")
        self.types = tuple(types)
        self.names = tuple(names) or tuple(f"parameter {index}" for index in range(len(types)))
        # Each parameter starts at a multiple of 8, which suits every type; the driver takes each by its own pointer.
        slots = (f"{_FORMATS[name]}{8 - struct.calcsize('=' + _FORMATS[name])}x" for name in types)
        self._pack_into = (layout := struct.Struct("=" + "".join(slots))).pack_into
        self._size = layout.size
        self._local = threading.local()

    def pack(self, *values: Any) -> int:
        """Writes the values -> address of the pointer array (``void**``), good until this thread's next `pack`.

        Raises:
            BuildError: too many or too few values, or one that its type cannot hold (2**33 as i32, 0.5 as i64).
        """
        local = self._local
        try:
            buffer, address = local.buffer, local.address
        except AttributeError:
            buffer, address = self._make_storage()
        try:
            self._pack_into(buffer, 0, *values)
        except (struct.error, OverflowError, TypeError) as error:
            raise self._explain(values) from error
        return int(address)

    def _make_storage(self) -> tuple[Any, int]:
        local = self._local
        local.buffer = ctypes.create_string_buffer(max(self._size, 1))
        base = ctypes.addressof(local.buffer)
        local.pointers = (ctypes.c_void_p * max(len(self.types), 1))(*range(base, base + self._size, 8))
        local.address = ctypes.addressof(local.pointers)
        return local.buffer, local.address

    def _explain(self, values: tuple[Any, ...]) -> BuildError:
        if len(values) != len(self.types):
            return BuildError("a kernel gets one value for each parameter", got=len(values), allowed=len(self.types))
        for name, type_name, value in zip(self.names, self.types, values, strict=True):
            try:
                struct.pack("=" + _FORMATS[type_name], value)
            except (struct.error, OverflowError, TypeError) as error:
                return BuildError(f"{name} fits its type {type_name}", got=f"{value!r} ({error})")
        return BuildError("the kernel's parameters can be packed", got=values)


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel, loaded on one GPU for the life of the process.

    Attributes:
        kernel_name: as in the source. device: the GPU's ordinal.
        max_shared_bytes: the dynamic shared memory that a launch may ask for.
        handle, context: the driver's CUfunction and CUcontext.
    """

    kernel_name: str
    device: int
    max_shared_bytes: int
    handle: Any
    context: Any

    def resident_blocks(self, threads: int, shared_bytes: int) -> int:
        """How many blocks of so many threads and bytes of dynamic shared memory the whole GPU has room for at once."""
        of_sm = _call("cuOccupancyMaxActiveBlocksPerMultiprocessor", self.handle, threads, shared_bytes)
        return int(of_sm) * Device(self.device).sms

    def launch(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        stream_handle: int,
        params: int,
    ) -> None:
        """Enqueues the kernel; nothing else, so that it can be captured in a CUDA graph.

        Args:
            grid, block: extents in blocks and in threads.
            shared_bytes: dynamic shared memory a block.
            stream_handle: a CUstream as an integer (torch's ``stream.cuda_stream``); 0 is the default stream.
            params: what `ParamBlock.pack` returned on this thread.

        Raises:
            BuildError: the driver refuses the launch.
        """
        driver = _driver()
        _, current = driver.cuCtxGetCurrent()
        foreign = int(current) != int(self.context)
        if foreign:  # a thread that has not used this GPU yet, or is at work on another one
            _call("cuCtxPushCurrent", self.context)
        try:
            (status,) = driver.cuLaunchKernel(self.handle, *grid, *block, shared_bytes, stream_handle, params, 0)
        finally:
            if foreign:
                _call("cuCtxPopCurrent")
        if int(status) != 0:
            raise BuildError(
                f"the CUDA driver launches {self.kernel_name}",
                got=f"{_describe(driver, status)} (grid {grid}, block {block}, {shared_bytes} bytes of dynamic shared "
                f"memory, GPU {self.device})",
                allowed=f"at most {self.max_shared_bytes} bytes of dynamic shared memory",
            )


_functions: dict[tuple[str, str, int], Function] = {}
_functions_lock = threading.Lock()


def load(code: Artifact | bytes, kernel_name: str | None = None, device: int = 0) -> Function:
    """Loads a kernel into the primary context of a GPU, once per process: the same call again gives the same Function.

    The kernel may then ask for all the dynamic shared memory that the GPU leaves it.

    Args:
        code: an artifact, or a cubin's bytes.
        kernel_name: needed with bytes; default the artifact's.

    Raises:
        BuildError: no driver, no such GPU, code for another architecture, or no such kernel in it.
    """
    cubin = code.cubin if isinstance(code, Artifact) else code
    name = kernel_name or (code.kernel_name if isinstance(code, Artifact) else None)
    if name is None:
        raise BuildError("a kernel is loaded by name", got="a cubin without a kernel's name")
    key = (hashlib.sha256(cubin).hexdigest(), name, device)
    with _functions_lock:
        if key not in _functions:
            _functions[key] = _load(cubin, name, device)
        return _functions[key]


def _load(cubin: bytes, name: str, device: int) -> Function:
    driver = _driver()
    # torch and the CUDA runtime use the primary context too, so their streams and memory are valid in it.
    context = _call("cuDevicePrimaryCtxRetain", Device(device)._handle)
    _call("cuCtxPushCurrent", context)
    try:
        library = _call("cuModuleLoadData", cubin, about=f" for {name} on GPU {device}")
        handle = _call("cuModuleGetFunction", library, name.encode(), about=f" for {name}")
        attributes = driver.CUfunction_attribute
        static = int(_call("cuFuncGetAttribute", attributes.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, handle))
        dynamic = Device(device).shared_per_block - static
        _call("cuFuncSetAttribute", handle, attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic)
    finally:
        _call("cuCtxPopCurrent")
    return Function(name, device, dynamic, handle, context)
