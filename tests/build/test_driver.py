"""Launching, without a GPU: what ParamBlock hands to the driver, and which driver calls are made in which context."""

from __future__ import annotations

import ctypes
import enum
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from layoutgen.build import Artifact, Device, ParamBlock, Resources, current_arch, driver, load
from layoutgen.errors import BuildError

CTYPES = {
    "ptr": ctypes.c_uint64,
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


def unpack(block: ParamBlock, address: int) -> list[Any]:
    """What the driver would read: each parameter through its pointer, at its type's width."""
    pointers = (ctypes.c_void_p * len(block.types)).from_address(address)
    return [CTYPES[name].from_address(pointer).value for name, pointer in zip(block.types, pointers, strict=True)]


# --- ParamBlock ------------------------------------------------------------------------------------------------------


def test_every_type_arrives_as_itself() -> None:
    block = ParamBlock(["ptr", "f32", "i64", "i32", "f64", "u32", "u64", "f32"])
    values = [0x7F00_1234_5678, 1.5, 2**33, -7, 0.1, 2**32 - 1, 2**64 - 1, -0.25]
    assert unpack(block, block.pack(*values)) == values


def test_parameters_do_not_overlap_and_are_aligned() -> None:
    block = ParamBlock(["i32", "i64", "f32", "ptr"])
    pointers = (ctypes.c_void_p * 4).from_address(block.pack(1, 2, 3.0, 4))
    addresses = [int(pointer or 0) for pointer in pointers]
    assert all(address % 8 == 0 for address in addresses)
    assert all(later - earlier >= 8 for earlier, later in zip(addresses, addresses[1:], strict=False))


def test_packing_again_reuses_the_storage() -> None:
    block = ParamBlock(["i64", "f32"])
    first = block.pack(1, 1.0)
    assert block.pack(2, 0.5) == first
    assert unpack(block, first) == [2, 0.5]


def test_threads_have_their_own_storage() -> None:
    block = ParamBlock(["i64"])
    mine = block.pack(1)
    others: list[tuple[int, list[Any]]] = []

    def work() -> None:
        address = block.pack(2)
        others.append((address, unpack(block, address)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert others[0][0] != mine
    assert others[0][1] == [2]
    assert unpack(block, mine) == [1]


def test_a_kernel_without_parameters() -> None:
    assert ParamBlock([]).pack() != 0


def test_infinity_and_integers_are_fine_for_a_float() -> None:
    block = ParamBlock(["f32", "f32"])
    assert unpack(block, block.pack(float("inf"), 3)) == [float("inf"), 3.0]


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("i32", 2**33),  # ctypes would pass 0
        ("i32", 2**31),
        ("u32", -1),
        ("i64", 2**63),
        ("i64", 1.5),
        ("i32", 1.0),
        ("ptr", -1),
        ("ptr", None),
        ("f32", "1"),
        ("f32", 1e39),
        ("f32", None),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(type_name: str, value: object) -> None:
    block = ParamBlock(["i64", type_name], ["m", "culprit"])
    with pytest.raises(BuildError, match=f"culprit fits its type {type_name}") as caught:
        block.pack(1, value)
    assert caught.value.got is not None and repr(value) in caught.value.got


@pytest.mark.parametrize("values", [(), (1,), (1, 2, 3)])
def test_as_many_values_as_parameters(values: tuple[int, ...]) -> None:
    with pytest.raises(BuildError, match="one value for each parameter") as caught:
        ParamBlock(["i32", "i32"]).pack(*values)
    assert (caught.value.got, caught.value.allowed) == (str(len(values)), "2")


def test_unknown_types_and_missing_names_are_refused() -> None:
    with pytest.raises(BuildError, match="type is known") as caught:
        ParamBlock(["float"])
    assert caught.value.allowed is not None and "f32" in caught.value.allowed
    with pytest.raises(BuildError, match="1 names, 2 types"):
        ParamBlock(["i32", "i32"], ["m"])


# --- the driver, played by a stand-in that records the calls --------------------------------------------------------


class Status(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_INVALID_DEVICE = 101


class Attribute(enum.IntEnum):
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 9
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 5
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 132
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 232448


class FakeDriver:
    """One GPU whose attributes read as the Attribute's own numbers; contexts are integers, kept on a stack."""

    CUdevice_attribute = Attribute
    CUfunction_attribute = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES="static", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic"
    )

    def __init__(self) -> None:
        self.stack = [77]  # another GPU's context, as a thread that works there has
        self.launches: list[tuple[Any, ...]] = []
        self.attributes: dict[str, int] = {}
        self.launch_status = Status.CUDA_SUCCESS
        self.loads = 0

    def cuGetErrorString(self, status: Status) -> tuple[Status, bytes]:
        return Status.CUDA_SUCCESS, b"text of " + str(int(status)).encode()

    def cuDeviceGet(self, ordinal: int) -> tuple[Any, ...]:
        return (Status.CUDA_SUCCESS, ordinal) if ordinal == 0 else (Status.CUDA_ERROR_INVALID_DEVICE, None)

    def cuDeviceGetName(self, size: int, device: int) -> tuple[Status, bytes]:
        return Status.CUDA_SUCCESS, b"NVIDIA Stand-in\0\0\0"

    def cuDeviceGetAttribute(self, attribute: Attribute, device: int) -> tuple[Status, int]:
        return Status.CUDA_SUCCESS, int(attribute)

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[Status, int]:
        return Status.CUDA_SUCCESS, 1000 + device

    def cuCtxGetCurrent(self) -> tuple[Status, int]:
        return Status.CUDA_SUCCESS, self.stack[-1]

    def cuCtxPushCurrent(self, context: int) -> tuple[Status]:
        self.stack.append(context)
        return (Status.CUDA_SUCCESS,)

    def cuCtxPopCurrent(self) -> tuple[Status, int]:
        return Status.CUDA_SUCCESS, self.stack.pop()

    def cuModuleLoadData(self, cubin: bytes) -> tuple[Status, str]:
        assert self.stack[-1] == 1000, "a module belongs to the context that is current when it is loaded"
        self.loads += 1
        return Status.CUDA_SUCCESS, "module"

    def cuModuleGetFunction(self, module: str, name: bytes) -> tuple[Any, ...]:
        return (Status.CUDA_SUCCESS, "function") if name == b"k" else (Status.CUDA_ERROR_INVALID_VALUE, None)

    def cuFuncGetAttribute(self, attribute: str, function: str) -> tuple[Status, int]:
        return Status.CUDA_SUCCESS, {"static": 1024}[attribute]

    def cuFuncSetAttribute(self, function: str, attribute: str, value: int) -> tuple[Status]:
        self.attributes[attribute] = value
        return (Status.CUDA_SUCCESS,)

    def cuLaunchKernel(self, *arguments: Any) -> tuple[Status]:
        self.launches.append((self.stack[-1], *arguments))
        return (self.launch_status,)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    stand_in = FakeDriver()
    monkeypatch.setattr(driver, "_driver", lambda: stand_in)
    monkeypatch.setattr(driver, "_functions", {})
    return stand_in


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    driver._driver.cache_clear()
    monkeypatch.setattr(driver, "_LIBRARY", "libcuda-that-is-not-here.so.1")
    yield
    driver._driver.cache_clear()


@pytest.mark.usefixtures("no_driver")
def test_without_a_driver_there_is_no_arch_and_the_rest_says_why() -> None:
    assert current_arch() is None
    for use in (lambda: Device(0).name, lambda: load(b"cubin", "k")):
        with pytest.raises(BuildError, match="an NVIDIA driver is installed"):
            use()


def test_without_such_a_gpu_there_is_no_arch(fake: FakeDriver) -> None:
    assert current_arch(1) is None
    with pytest.raises(BuildError, match="CUDA_ERROR_INVALID_DEVICE: text of 101"):
        _ = Device(1).name


def test_a_driver_that_breaks_gives_no_arch(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("libcuda is not what it says")

    monkeypatch.setattr(driver, "_driver", broken)
    assert current_arch() is None


def test_a_device_tells_what_the_driver_tells(fake: FakeDriver) -> None:
    device = Device(0)
    assert (device.name, device.cc, device.sms) == ("NVIDIA Stand-in", (9, 5), 132)
    assert device.attribute("MULTIPROCESSOR_COUNT") == 132
    with pytest.raises(BuildError, match="knows the device attribute"):
        device.attribute("HORSEPOWER")


@pytest.mark.parametrize(
    ("cc", "arch"), [((8, 0), "sm_80"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a")]
)
def test_the_arch_of_a_compute_capability(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, cc: tuple[int, int], arch: str
) -> None:
    monkeypatch.setattr(Device, "cc", cc)
    assert current_arch() == arch


def test_loading_opts_in_to_all_shared_memory_and_leaves_the_context_alone(fake: FakeDriver) -> None:
    function = load(b"cubin", "k")
    assert function.max_shared_bytes == 232448 - 1024
    assert fake.attributes == {"dynamic": 232448 - 1024}
    assert fake.stack == [77]


def test_a_kernel_is_loaded_once(fake: FakeDriver) -> None:
    assert load(b"cubin", "k") is load(b"cubin", "k")
    assert fake.loads == 1
    load(b"another", "k")
    assert fake.loads == 2


def test_an_artifact_brings_its_kernels_name(fake: FakeDriver, tmp_path: Any) -> None:
    artifact = Artifact("key", "k", "sm_90a", "", b"cubin", Resources(1), 0.0, False, tmp_path)
    assert load(artifact) is load(b"cubin", "k")
    with pytest.raises(BuildError, match="loaded by name"):
        load(b"cubin")


def test_a_kernel_that_is_not_there_is_named_and_not_remembered(fake: FakeDriver) -> None:
    for _ in range(2):
        with pytest.raises(BuildError, match="cuModuleGetFunction for nope"):
            load(b"cubin", "nope")
    assert fake.loads == 2
    assert fake.stack == [77]


def test_a_launch_runs_in_the_kernels_context_and_restores_the_threads(fake: FakeDriver) -> None:
    function, block = load(b"cubin", "k"), ParamBlock(["i64"])
    function.launch((1, 2, 3), (32, 4, 1), 4096, 0xABC, address := block.pack(5))
    assert fake.launches == [(1000, "function", 1, 2, 3, 32, 4, 1, 4096, 0xABC, address, 0)]
    assert fake.stack == [77]
    fake.stack.append(1000)
    function.launch((1, 1, 1), (1, 1, 1), 0, 0, address)
    assert fake.launches[-1][0] == 1000
    assert fake.stack == [77, 1000]


def test_a_refused_launch_says_what_was_asked_and_restores_the_context(fake: FakeDriver) -> None:
    function = load(b"cubin", "k")
    fake.launch_status = Status.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(BuildError, match="launches k") as caught:
        function.launch((1, 1, 1), (2048, 1, 1), 0, 0, 0)
    assert caught.value.got is not None
    assert caught.value.got.startswith("CUDA_ERROR_INVALID_VALUE: text of 1 (grid (1, 1, 1), block (2048, 1, 1)")
    assert fake.stack == [77]
