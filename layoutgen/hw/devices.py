"""What each GPU allows and what it can reach: the limits that `check` applies and the peaks beside measurements.

Sources (each row below cites its own):
  CUDA C++ Programming Guide 13.0, "Compute Capabilities", table "Technical Specifications per Compute Capability", and
      the throughput table of "Arithmetic Instructions": every limit that follows from the compute capability; its
      section on shared memory: 32 banks, successive 32-bit words in successive banks.
  Tuning guides for Ampere, Ada, Hopper and Blackwell, "Unified Shared Memory/L1/Texture Cache": the driver keeps 1 KB
      of shared memory of every block, so one block may have 1 KB less than the SM.
  cuda_occupancy.h of the CUDA runtime: the multiples in which registers and shared memory are allocated.
  The vendor's whitepaper or datasheet of each product: SM count, clock, FP32 peak, memory bandwidth, L2 size.
  For AMD's MI300X: AMD Instinct MI300X data sheet and CDNA 3 white paper (the product's figures; 256 FP32 operations a
      clock and compute unit; 4 MB of L2 on each of 8 dies, then 256 MB of Infinity Cache); "AMD Instinct MI300
      Instruction Set Architecture" (wavefronts of 64, VGPRs, LDS of 32 banks); ROCm documentation, "AMD GPU
      specifications" (512 KiB of VGPRs, 64 KiB of LDS) and, on its Compute Profiler, "Pipeline descriptions" (4 SIMDs
      with 8 wavefronts each); LLVM's AMDGPU backend (VGPRs are allocated by 8 for each of 64 lanes, LDS by 128 words).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from layoutgen.errors import LayoutgenError, closest

_KB = 1024
_NVIDIA = re.compile(r"sm_(\d{1,2})(\d)[af]?")
_AMD = re.compile(r"gfx[0-9a-f]{3,5}")


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU product. ``dataclasses.replace`` gives one with other figures; a file can too (`layoutgen.device_file`).

    The words are NVIDIA's. AMD's for the same: an SM is a compute unit, a warp a wavefront, a block a workgroup, shared
    memory LDS, a partition a SIMD; a register is one lane's share of a VGPR.

    Attributes:
        name: what ``--device`` calls it. arch: the architecture to compile for; one of AMD's, such as gfx942, has no
            compute capability, and layoutgen emits no code for it.
        sms: streaming multiprocessors.
        boost_mhz: the clock at which the vendor states the FP32 peak.
        fp32_tflops: that peak, without tensor cores, in 10^12 operations a second (an FMA is two).
        memory_gbs: memory bandwidth, 10^9 bytes a second. l2_mb: all of its L2 cache, 2^20 bytes.
        source: where the figures of the product stand; those of its compute capability are in the programming guide.
        shared_per_sm: bytes of shared memory of one SM, the reserved bytes of each block included.
        max_threads_per_sm, max_blocks_per_sm: how many can be resident.
        fp32_lanes_per_sm: FP32 results a clock.
        registers_per_sm, registers_per_block, registers_per_thread: 32-bit registers; of the 512 of a thread on CDNA,
            half are accumulation registers, which only matrix instructions, loads, stores and moves can name.
        shared_reserved_per_block: bytes that the driver takes of every resident block's share of the SM.
        register_unit, shared_unit: registers of a warp and shared bytes of a block are allocated in multiples of these.
        partitions: an SM has this many equal parts, each with a warp scheduler; all registers of a warp come from one.
        shared_banks, bank_bytes: successive words, of bank_bytes, lie in successive banks; each serves one a clock.
        l2_caches: the L2 is so many equal caches, each for its share of the SMs.
        llc_mb: the cache between L2 and memory, 2^20 bytes; 0 for none.
        mma_flop_per_clock: operations of one SM in a clock by mma.sync, or MFMA, on 16-bit floats; 0 where that isn't
            known.
    """

    name: str
    arch: str
    sms: int
    boost_mhz: int
    fp32_tflops: float
    memory_gbs: float
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
    shared_banks: int = 32
    bank_bytes: int = 4
    l2_caches: int = 1
    llc_mb: float = 0
    mma_flop_per_clock: int = 0

    @property
    def shared_per_block(self) -> int:
        """Bytes of shared memory that one block may have, static and dynamic together, after opting in."""
        return self.shared_per_sm - self.shared_reserved_per_block

    @property
    def max_warps_per_sm(self) -> int:
        """Warps that can be resident."""
        return self.max_threads_per_sm // self.warp_size

    @property
    def schedulers_per_sm(self) -> int:
        """Warps that can issue an instruction in one clock: one of each partition."""
        return self.partitions

    @property
    def flop_per_clock(self) -> float:
        """FP32 operations of one SM in a clock: what its lanes can, or less where the peak is a lower, measured one.

        The vendors' peaks are rounded, some of them up.
        """
        return min(2.0 * self.fp32_lanes_per_sm, self.fp32_tflops * 1e6 / (self.sms * self.boost_mhz))

    def mma_rate(self, dtype: str) -> float | None:
        """Operations of one SM in a clock by mma.sync, or MFMA, on elements of that type; None where that isn't known.

        16-bit floats set the rate: half of it for tf32, twice for 8-bit integers (whitepapers of A100 and H100).
        Hopper's mma.sync multiplies 8-bit floats as f16, at that rate. Of f64, A100 has a sixteenth, H100 an eighth.
        CDNA 3 has an eighth of f64 and f32 (white paper: 2048 FP16 operations a clock and compute unit, 256 of those).
        """
        if not self.mma_flop_per_clock:
            return None
        f64 = 1 / 16 if self.cc == (8, 0) else 1 / 8
        scale = {"f16": 1, "bf16": 1, "tf32": 1 / 2, "s8": 2, "u8": 2, "e4m3": 1, "e5m2": 1, "f64": f64, "f32": 1 / 8}
        return self.mma_flop_per_clock * scale[dtype]

    @property
    def ridge(self) -> float:
        """FP32 operations a byte of memory traffic, above which the FP32 peak is the lower roof."""
        return self.fp32_tflops * 1e3 / self.memory_gbs

    @property
    def cc(self) -> tuple[int, int] | None:
        """Compute capability (major, minor); None for a GPU of AMD's."""
        return capability(self.arch)

    def to_json(self) -> dict[str, Any]:
        """Every figure, also those that follow from others, as plain data."""
        derived = ("shared_per_block", "max_warps_per_sm", "schedulers_per_sm", "ridge")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}


# What follows from the compute capability and differs between them.
_LIMITS: Mapping[tuple[int, int], tuple[int, int, int, int, int]] = {
    # shared_per_sm, max_threads_per_sm, max_blocks_per_sm, fp32_lanes_per_sm, mma_flop_per_clock
    (8, 0): (164 * _KB, 2048, 32, 64, 2048),
    (8, 6): (100 * _KB, 1536, 16, 128, 0),
    (8, 9): (100 * _KB, 1536, 24, 128, 0),
    (9, 0): (228 * _KB, 2048, 32, 128, 2048),  # half of what wgmma has: 520 to 526 TFLOP/s measured in registers
    (10, 0): (228 * _KB, 2048, 32, 128, 0),
}


def capability(arch: str) -> tuple[int, int] | None:
    """The compute capability (major, minor) of an architecture; None for one of AMD's.

    Raises:
        LayoutgenError: it is written like neither.

    >>> capability("sm_90a"), capability("sm_120"), capability("gfx942")
    ((9, 0), (12, 0), None)
    """
    if _AMD.fullmatch(arch):
        return None
    if (match := _NVIDIA.fullmatch(arch)) is None:
        raise LayoutgenError(
            "an architecture is written like sm_90a", got=arch, allowed="sm_80, sm_86, sm_89, sm_90a, ..."
        )
    return int(match[1]), int(match[2])


def is_arch(text: str) -> bool:
    """Whether it is written like an architecture of NVIDIA's or AMD's.

    >>> is_arch("sm_90a"), is_arch("gfx942"), is_arch("hopper")
    (True, True, False)
    """
    return bool(_NVIDIA.fullmatch(text) or _AMD.fullmatch(text))


def limits(arch: str) -> dict[str, Any]:
    """The fields of a Device that follow from an architecture's compute capability; none where the table lacks it.

    >>> limits("sm_86")["max_blocks_per_sm"], limits("sm_75"), limits("gfx942")
    (16, {}, {})
    """
    names = ("shared_per_sm", "max_threads_per_sm", "max_blocks_per_sm", "fp32_lanes_per_sm", "mma_flop_per_clock")
    known = _LIMITS.get(capability(arch) or (0, 0), ())
    return dict(zip(names, known, strict=False))


_GA102 = "NVIDIA Ampere GA102 GPU Architecture whitepaper"
_A100 = "NVIDIA A100 Tensor Core GPU Architecture whitepaper"
_ADA = "NVIDIA Ada GPU Architecture whitepaper"
_H100 = "NVIDIA H100 Tensor Core GPU Architecture whitepaper"
_B200 = (
    "NVIDIA Blackwell datasheet (HGX B200, one GPU); L2: Blackwell Tuning Guide; SMs and clock: as its driver reports"
)
_H200 = "NVIDIA H200 datasheet (SXM); SMs, clock and L2: as its driver reports"

_PRODUCTS: tuple[tuple[str, str, int, int, float, float, float, str], ...] = (
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

_MI300X = Device(
    "mi300x", "gfx942", 304, 2100, 163.4, 5300, 8 * 4,
    "AMD Instinct MI300X data sheet; CDNA 3 white paper; AMD Instinct MI300 ISA; limits: ROCm documentation and LLVM",
    shared_per_sm=64 * _KB,
    max_threads_per_sm=4 * 8 * 64,
    max_blocks_per_sm=32,  # 16 of several wavefronts, which max_threads_per_sm says too
    fp32_lanes_per_sm=128,  # 64, two results each of packed FP32
    registers_per_sm=4 * 512 * 64,
    registers_per_block=4 * 512 * 64,
    registers_per_thread=512,
    shared_reserved_per_block=0,
    warp_size=64,
    register_unit=8 * 64,
    shared_unit=512,
    l2_caches=8,
    llc_mb=256,
    mma_flop_per_clock=2048,
)  # fmt: skip

DEVICES: Mapping[str, Device] = {
    **{row[0]: Device(*row, **limits(row[1])) for row in _PRODUCTS},
    _MI300X.name: _MI300X,
}


def of_amd(arch: str) -> Device | None:
    """The device of an architecture of AMD's; None for one of NVIDIA's, of which there may be one here.

    >>> of_amd("gfx942").name, of_amd("sm_90a")
    ('mi300x', None)
    """
    return next((known for known in DEVICES.values() if known.cc is None and known.arch == arch), None)


def device(name: str) -> Device:
    """The device called `name`; upper and lower case, spaces, ``-`` and ``_`` make no difference.

    Raises:
        LayoutgenError: no such device; names the known ones and the closest.
    """
    by_plain_name = {_plain(known): known for known in DEVICES}
    if (known := by_plain_name.get(_plain(name))) is not None:
        return DEVICES[known]
    close = [by_plain_name[plain] for plain in closest(_plain(name), by_plain_name, 0.5)]
    raise LayoutgenError(
        "the device is one that layoutgen knows",
        got=name,
        allowed=", ".join(DEVICES),
        fix=f"did you mean {' or '.join(close)}?" if close else None,
    )


def by_arch(arch: str) -> tuple[Device, ...]:
    """The known devices of an architecture's compute capability (``sm_90`` and ``sm_90a`` alike), in the table's order.

    Raises:
        LayoutgenError: `arch` is not written like ``sm_90a``, or no known device is of it.
    """
    wanted = capability(arch)
    found = tuple(known for known in DEVICES.values() if wanted and known.cc == wanted)
    if not found:
        raise LayoutgenError(
            "some known device is of the architecture",
            got=arch,
            allowed=", ".join(dict.fromkeys(known.arch for known in DEVICES.values() if known.cc)),
        )
    return found


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())
