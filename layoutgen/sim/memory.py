"""Global memory: numpy arrays at made-up addresses, every access checked for bounds, alignment and permission."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import as_strided

from layoutgen.errors import SimError
from layoutgen.sim.frame import Array

_SPACING = 36  # buffers lie 64 GiB apart: no index error of a 32-bit product reaches the next one
_ALIGNMENT = 256  # cudaMalloc's
_FOREIGN_ALIGNMENT = 64  # PyTorch's for CPU tensors


@dataclass(slots=True)
class Buffer:
    """Bytes [0, size) at ``address``, of which ``valid`` tells which belong to the array (None: all of them).

    ``bytes`` begins ``lead`` bytes earlier, at a multiple of 16, so that it can be viewed as wider words.
    """

    name: str
    address: int
    size: int
    writable: bool
    bytes: Array
    lead: int
    valid: Array | None
    owner: object
    _units: dict[int, Array] = field(default_factory=dict)

    def units(self, size: int) -> Array:
        """``bytes`` as unsigned integers of ``size`` bytes."""
        whole: Array = self.bytes[: len(self.bytes) // size * size].view(f"u{size}")
        return whole

    def unit_valid(self, size: int) -> Array:
        """For each aligned unit of ``size`` bytes of ``bytes``: does all of it belong to the array?"""
        assert self.valid is not None
        if size not in self._units:
            whole = len(self.valid) // size * size
            self._units[size] = np.logical_and.reduce(self.valid[:whole].reshape(-1, size), 1)
        return self._units[size]


Part = tuple[Array | None, Buffer, Array]  # which of the addresses (None: all), their buffer, offsets into its bytes


class AccessError(Exception):
    """What lane ``lane`` (an index into the addresses) did wrong. The instruction that asked adds who and where."""

    def __init__(self, rule: str, lane: int, detail: str) -> None:
        super().__init__(detail)
        self.rule, self.lane, self.detail = rule, lane, detail


class GlobalMemory:
    """Buffers by address. The simulated kernel reads and writes the arrays' own storage."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []

    def add(self, array: Array, *, writable: bool = False, name: str = "") -> int:
        """A numpy array of any strides >= 0 -> the address of its first element.

        Only the elements of ``array`` itself exist for the kernel: the gaps of a strided view, and whatever surrounds
        it, are out of bounds. The address is aligned as the first element is within the numpy array that owns the
        storage, taken to be aligned to 256 bytes; where no numpy array owns it, as the element is, up to 64 bytes.
        Raises SimError for negative strides, for objects, and for a writable view
        of read-only memory.
        """
        name = name or f"buffer {len(self.buffers)}"
        if array.dtype.hasobject or any(s < 0 for s in array.strides):
            raise SimError(
                "a buffer is an array of numbers with strides >= 0",
                got=f"{name}: {array.dtype}, strides {array.strides}",
            )
        if writable and not array.flags.writeable:
            raise SimError("a writable buffer is writable in numpy", got=f"{name} is read-only")
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        start = array.ctypes.data
        size = (
            0
            if array.size == 0
            else sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) + array.itemsize
        )
        if size >= 1 << _SPACING:
            raise SimError("a buffer is smaller than 64 GiB", got=f"{name}: {size} bytes")
        shift = (start - root.ctypes.data) % _ALIGNMENT if root.flags.owndata else start % _FOREIGN_ALIGNMENT
        lead = shift % 16
        total = lead + size
        raw = np.zeros(0, np.uint8)
        if size:
            raw = np.ctypeslib.as_array((ctypes.c_uint8 * total).from_address(start - lead))
        valid = None
        if size != array.size * array.itemsize:
            valid = np.zeros(-(-total // 16) * 16, bool)
            spots = as_strided(valid[lead:], (*array.shape, array.itemsize), (*array.strides, 1))
            spots[...] = True
        address = (len(self.buffers) + 1 << _SPACING) + shift
        self.buffers.append(Buffer(name, address, size, writable, raw, lead, valid, array))
        return address

    def locate(self, address: Array, size: int, write: bool) -> list[Part]:
        """Addresses (lanes,) u64 of ``size``-byte accesses -> [(lanes or None for all, buffer, offsets into
        buffer.bytes)].

        Raises AccessError for the first lane that is misaligned or outside every buffer.
        """
        if int(np.bitwise_or.reduce(address)) & size - 1:
            lane = int(np.flatnonzero(address & np.uint64(size - 1))[0])
            raise AccessError(
                f"a {size}-byte access is aligned to {size} bytes", lane, f"{self._describe(int(address[lane]))}"
            )
        first = int(address[0])
        number = (first >> _SPACING) - 1
        if 0 <= number < len(self.buffers):
            buffer = self.buffers[number]
            offset = (address - np.uint64(buffer.address)).view(np.int64)
            low, high = int(offset.min()), int(offset.max())
            if low >= 0 and high + size <= buffer.size:
                return [(None, buffer, self._check(buffer, offset, size, write, address))]
        numbers = (address >> np.uint64(_SPACING)).astype(np.int64) - 1
        parts: list[Part] = []
        for number in np.unique(numbers).tolist():
            lanes = np.flatnonzero(numbers == number)
            if not 0 <= number < len(self.buffers):
                raise self._outside(int(lanes[0]), int(address[lanes[0]]), size)
            buffer = self.buffers[number]
            offset = (address[lanes] - np.uint64(buffer.address)).view(np.int64)
            bad = np.flatnonzero((offset < 0) | (offset + size > buffer.size))
            if bad.size:
                raise self._outside(int(lanes[bad[0]]), int(address[lanes[bad[0]]]), size)
            parts.append((lanes, buffer, self._check(buffer, offset, size, write, address, lanes)))
        return parts

    def _check(
        self, buffer: Buffer, offset: Array, size: int, write: bool, address: Array, lanes: Array | None = None
    ) -> Array:
        def lane(i: int) -> int:
            return i if lanes is None else int(lanes[i])

        if write and not buffer.writable:
            raise AccessError("a store goes to a writable buffer", lane(0), self._describe(int(address[lane(0)])))
        offset += buffer.lead
        if buffer.valid is not None:
            inside = buffer.unit_valid(size).take(offset // size)
            if not inside.all():
                bad = lane(int(np.flatnonzero(~inside)[0]))
                raise self._outside(bad, int(address[bad]), size)
        return offset

    def _outside(self, lane: int, address: int, size: int) -> AccessError:
        return AccessError(
            "a global access stays inside its buffer", lane, f"{size} bytes at {self._describe(address)}"
        )

    def _describe(self, address: int) -> str:
        near = min(self.buffers, key=lambda b: abs(address - b.address), default=None)
        if near is None or abs(address - near.address) > 1 << _SPACING - 1:
            return f"address {address:#x}, far from every buffer"
        gaps = "" if near.valid is None else ", a view with gaps"
        return f"buffer {near.name!r} ({near.size} bytes{gaps}), offset {address - near.address}"
