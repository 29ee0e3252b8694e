"""What each GPU allows and what it can reach: the limits that `check` applies and the peaks beside measurements.

Sources (each row below cites its own):
  CUDA C++ Programming Guide 13.0, "Compute Capabilities", table "Technical Specifications per Compute Capability", and
      the throughput table of "Arithmetic Instructions": every limit that follows from the compute capability.
  Tuning guides for Ampere, Ada, Hopper and Blackwell, "Unified Shared Memory/L1/Texture Cache": the driver keeps 1 KB
      of shared memory of every block, so one block may have 1 KB less than the SM.
  cuda_occupancy.h of the CUDA runtime: the multiples in which registers and shared memory are allocated.
  The vendor's whitepaper or datasheet of each product: SM count, clock, FP32 peak, memory bandwidth, L2 size.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from layoutgen.errors import LayoutgenError

_KB = 1024


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU product.

    Attributes:
        name: what ``--device`` calls it. arch: the architecture to compile for.
        sms: streaming multiprocessors.
        boost_mhz: the clock at which the vendor states the FP32 peak.
        fp32_tflops: that peak, without tensor cores, in 10^12 operations a second (an FMA is two).
        memory_gbs: memory bandwidth, 10^9 bytes a second. l2_mb: L2 cache, 2^20 bytes.
        source: where the figures of the product stand; those of its compute capability are in the programming guide.
        shared_per_sm: bytes of shared memory of one SM, the reserved bytes of each block included.
        max_threads_per_sm, max_blocks_per_sm: how many can be resident.
        fp32_lanes_per_sm: FP32 results a clock.
        shared_reserved_per_block: bytes that the driver takes of every resident block's share of the SM.
        register_unit, shared_unit: registers of a warp and shared bytes of a block are allocated in multiples of these.
        partitions: an SM has this many equal parts; all registers of a warp come from one.
    """

    name: str
    arch: str
    sms: int
    boost_mhz: int
    fp32_tflops: float
    memory_gbs: int
    l2_mb: float
    source: str = field(repr=False)
    shared_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    fp32_lanes_per_sm: int = 128
    max_threads_per_block: int = 1024
    registers_per_sm: int = 65536
    registers_per_block: int = 65536
    registers_per_thread: int = 255
    shared_reserved_per_block: int = 1 * _KB
    warp_size: int = 32
    register_unit: int = 256
    shared_unit: int = 128
    partitions: int = 4

    @property
    def shared_per_block(self) -> int:
        """Bytes of shared memory that one block may have, static and dynamic together, after opting in."""
        return self.shared_per_sm - self.shared_reserved_per_block

    @property
    def cc(self) -> tuple[int, int]:
        """Compute capability (major, minor)."""
        return _capability(self.arch)


# compute capability -> (shared_per_sm, max_threads_per_sm, max_blocks_per_sm, fp32_lanes_per_sm)
_LIMITS: Mapping[tuple[int, int], tuple[int, int, int, int]] = {
    (8, 0): (164 * _KB, 2048, 32, 64),
    (8, 6): (100 * _KB, 1536, 16, 128),
    (8, 9): (100 * _KB, 1536, 24, 128),
    (9, 0): (228 * _KB, 2048, 32, 128),
    (10, 0): (228 * _KB, 2048, 32, 128),
}


def _capability(arch: str) -> tuple[int, int]:
    match = re.fullmatch(r"sm_(\d{1,2})(\d)[af]?", arch)
    if match is None:
        raise LayoutgenError(
            "an architecture is written like sm_90a", got=arch, allowed="sm_80, sm_86, sm_89, sm_90a, ..."
        )
    return int(match[1]), int(match[2])


_GA102 = "NVIDIA Ampere GA102 GPU Architecture whitepaper"
_A100 = "NVIDIA A100 Tensor Core GPU Architecture whitepaper"
_ADA = "NVIDIA Ada GPU Architecture whitepaper"
_H100 = "NVIDIA H100 Tensor Core GPU Architecture whitepaper"
_B200 = (
    "NVIDIA Blackwell datasheet (HGX B200, one GPU); L2: Blackwell Tuning Guide; SMs and clock: as its driver reports"
)
_H200 = "NVIDIA H200 datasheet (SXM); SMs, clock and L2: as its driver reports"

_PRODUCTS: tuple[tuple[str, str, int, int, float, int, float, str], ...] = (
    # name, arch, SMs, boost MHz, FP32 TFLOP/s, memory GB/s, L2 MB, source
    ("rtx3090", "sm_86", 82, 1695, 35.6, 936, 6, f"{_GA102} (GeForce RTX 3090)"),
    ("rtxa6000", "sm_86", 84, 1800, 38.7, 768, 6, f"{_GA102} (RTX A6000); RTX A6000 datasheet"),
    ("a100-40gb", "sm_80", 108, 1410, 19.5, 1555, 40, f"{_A100} (SXM4 40 GB)"),
    ("a100-80gb", "sm_80", 108, 1410, 19.5, 2039, 40, f"{_A100}; NVIDIA A100 80GB datasheet (SXM4)"),
    ("l4", "sm_89", 58, 2040, 30.3, 300, 48, f"NVIDIA L4 datasheet; {_ADA} (AD104)"),
    ("l40s", "sm_89", 142, 2520, 91.6, 864, 96, f"NVIDIA L40S datasheet; {_ADA} (AD102)"),
    ("rtx4090", "sm_89", 128, 2520, 82.6, 1008, 72, f"{_ADA} (GeForce RTX 4090)"),
    ("h100-sxm", "sm_90a", 132, 1980, 66.9, 3352, 50, f"{_H100} (SXM5)"),
    ("h100-pcie", "sm_90a", 114, 1755, 51.2, 2039, 50, f"{_H100} (PCIe Gen 5)"),
    ("h200", "sm_90a", 132, 1980, 66.9, 4800, 60, _H200),
    ("b200", "sm_100a", 148, 1965, 75.0, 7700, 126, _B200),
)

DEVICES: Mapping[str, Device] = {row[0]: Device(*row, *_LIMITS[_capability(row[1])]) for row in _PRODUCTS}


def device(name: str) -> Device:
    """The device called `name`; upper and lower case, spaces, ``-`` and ``_`` make no difference.

    Raises:
        LayoutgenError: no such device; names the known ones and the closest.
    """
    by_plain_name = {_plain(known): known for known in DEVICES}
    if (known := by_plain_name.get(_plain(name))) is not None:
        return DEVICES[known]
    close = difflib.get_close_matches(_plain(name), by_plain_name, n=1, cutoff=0.5)
    raise LayoutgenError(
        "the device is one that layoutgen knows",
        got=name,
        allowed=", ".join(DEVICES),
        fix=f"did you mean {by_plain_name[close[0]]}?" if close else None,
    )


def by_arch(arch: str) -> tuple[Device, ...]:
    """The known devices of an architecture's compute capability (``sm_90`` and ``sm_90a`` alike), in the table's order.

    Raises:
        LayoutgenError: `arch` is not written like ``sm_90a``, or no known device is of it.
    """
    found = tuple(known for known in DEVICES.values() if known.cc == _capability(arch))
    if not found:
        raise LayoutgenError(
            "some known device is of the architecture",
            got=arch,
            allowed=", ".join(dict.fromkeys(known.arch for known in DEVICES.values())),
        )
    return found


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())
