"""What a launch did, in numbers: instructions executed and the passes its memory accesses took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from layoutgen.sim.banks import bypassing_sectors, copy_wavefronts, sectors, wavefronts
from layoutgen.sim.frame import Active, Array
from layoutgen.sim.parser import SIZES, Instruction, Kernel

_REMEMBERED_PATTERNS = 4096


@dataclass(slots=True)
class Traffic:
    """Sums over all executions by a warp of one memory instruction (or of a class of them).

    ``requests`` counts warps with at least one active lane; ``wavefronts`` are shared-memory passes (see ``banks``);
    ``sectors`` are 32-byte pieces of global memory; ``bytes`` what the active lanes asked for.
    """

    requests: int = 0
    wavefronts: int = 0
    sectors: int = 0
    bytes: int = 0

    def __iadd__(self, other: Traffic) -> Traffic:
        self.requests += other.requests
        self.wavefronts += other.wavefronts
        self.sectors += other.sectors
        self.bytes += other.bytes
        return self


@dataclass(frozen=True, slots=True)
class Report:
    """Counts of one launch. ``executions[i]`` is how often a warp executed instruction i of the kernel."""

    kernel: Kernel
    blocks: int
    executions: tuple[int, ...]
    traffic: dict[int, Traffic] = field(default_factory=dict)

    @property
    def warp_instructions(self) -> int:
        """Instructions executed, each counted once per warp."""
        return sum(self.executions)

    def by_opcode(self) -> Counter[str]:
        """Opcode text -> executions by a warp."""
        totals: Counter[str] = Counter()
        for ins, n in zip(self.kernel.instructions, self.executions, strict=True):
            totals[ins.opcode] += n
        return totals

    def by_class(self) -> dict[tuple[str, int], Traffic]:
        """(class such as 'ld.shared', bytes per thread) -> traffic, as ``static_counts`` names them."""
        totals: dict[tuple[str, int], Traffic] = defaultdict(Traffic)
        for index, traffic in self.traffic.items():
            key = memory_class(self.kernel.instructions[index])
            if key is not None:
                totals[key] += traffic
        return dict(totals)

    def per_instruction(self) -> Iterator[tuple[Instruction, int, Traffic | None]]:
        """(instruction, executions, traffic if it is a memory instruction) in text order."""
        for ins, n in zip(self.kernel.instructions, self.executions, strict=True):
            yield ins, n, self.traffic.get(ins.index)


def static_counts(kernel: Kernel) -> Counter[tuple[str, int]]:
    """How many memory instructions stand in the text, by (class, bytes per thread).

    Classes are 'ld.shared', 'st.shared', 'ld.global' (with or without .nc), 'st.global', 'ld.local', 'st.local',
    'ld.generic', 'st.generic', 'ldmatrix', 'stmatrix' and 'cp.async', whose bytes are those it writes.
    """
    keys = (memory_class(ins) for ins in kernel.instructions)
    return Counter(key for key in keys if key is not None)


def memory_class(ins: Instruction) -> tuple[str, int] | None:
    """(class, bytes per thread) of a memory instruction; None for all others and for ld.param and ld.const."""
    parts = ins.opcode.split(".")
    if ins.opcode.startswith(("cp.async.ca.", "cp.async.cg.")):
        return "cp.async", int(ins.operands[2])
    if parts[0] in ("ldmatrix", "stmatrix"):
        return parts[0], 4 * next(int(p[1:]) for p in parts if p in ("x1", "x2", "x4"))
    if parts[0] not in ("ld", "st") or parts[-1] not in SIZES:
        return None
    space = next(
        (p.split("::")[0] for p in parts if p.split("::")[0] in ("shared", "global", "local", "param", "const")),
        "generic",
    )
    if space in ("param", "const"):
        return None
    width = next((int(p[1:]) for p in parts if p in ("v2", "v4", "v8")), 1)
    return f"{parts[0]}.{space}", width * SIZES[parts[-1]]


class Meter:
    """Counts traffic. The passes of an access depend on the lanes' distances alone, so each pattern is worked out
    once.
    """

    def __init__(self) -> None:
        self.traffic: dict[int, Traffic] = defaultdict(Traffic)
        self._known: dict[tuple[object, ...], int] = {}

    def shared(self, ins: Instruction, address: Array, active: Active, size: int, load: bool) -> None:
        """``address``: (lanes,) byte offsets in the block's shared memory."""
        traffic = self._request(ins, active, size, len(address))
        traffic.wavefronts += self._passes(address, active, 3, size, load)

    def globally(self, ins: Instruction, address: Array, active: Active, size: int) -> None:
        """``address``: (lanes,) global addresses."""
        traffic = self._request(ins, active, size, len(address))
        traffic.sectors += self._passes(address, active, 31, size, None)

    def copy(self, ins: Instruction, shared: Array, source: Array, active: Active, reading: Active, size: int) -> None:
        """An asynchronous copy by ``active`` lanes, of which ``reading`` touch global memory."""
        traffic = self._request(ins, active, size, len(shared))
        lanes = np.ones(source.shape, bool) if reading.lanes is None else reading.lanes
        traffic.wavefronts += self._copy_passes(source, shared, lanes, size)
        if size == 16:  # cp.async.cg
            parts = (each.reshape(-1, 32) for each in (source, shared, lanes))
            traffic.sectors += int(bypassing_sectors(*parts).sum())
        elif lanes.any():
            traffic.sectors += self._passes(source, reading, 31, size, None)

    def _copy_passes(self, source: Array, shared: Array, lanes: Array, size: int) -> int:
        total = 0
        for start in range(0, len(lanes), 32):
            warp = slice(start, start + 32)
            if not lanes[warp].any():
                continue
            begin, end = (each[warp][lanes[warp]].astype(np.int64) for each in (source, shared))
            begin, end = begin - begin.min() // 128 * 128, end - end.min() // 128 * 128
            key = (size, begin.tobytes(), end.tobytes())
            if key not in self._known:
                self._known[key] = copy_wavefronts(begin, end, size)
            total += self._known[key]
        return total

    def _request(self, ins: Instruction, active: Active, size: int, lanes: int) -> Traffic:
        traffic = self.traffic[ins.index]
        traffic.requests += (
            lanes // 32 if active.lanes is None else int(np.count_nonzero(active.lanes.reshape(-1, 32).any(1)))
        )
        traffic.bytes += size * (lanes if active.lanes is None else int(np.count_nonzero(active.lanes)))
        return traffic

    def _passes(self, address: Array, active: Active, grain: int, size: int, load: bool | None) -> int:
        """Wavefronts, or (``load`` None) sectors, over all warps; ``grain`` is the shift that leaves them unchanged,
        minus 1.
        """
        warps = address.reshape(-1, 32)
        if active.lanes is None:
            lanes = None
            distance = warps - (warps[:, :1] & ~warps.dtype.type(grain))
            key = (size, load, distance.tobytes())
        else:
            lanes = active.lanes.reshape(-1, 32)
            busy = lanes.any(1)
            warps, lanes = warps[busy], lanes[busy]
            base = warps[np.arange(len(warps)), lanes.argmax(1)][:, None]
            distance = warps - (base & ~base.dtype.type(grain))
            key = (size, load, np.where(lanes, distance, ~distance.dtype.type(0)).tobytes())
        total = self._known.get(key)
        if total is None:
            if len(self._known) >= _REMEMBERED_PATTERNS:
                self._known.clear()
            here = np.ones(warps.shape, bool) if lanes is None else lanes
            positive = distance.astype(np.int64) + (1 << 40)
            passes = sectors(positive, here) if load is None else wavefronts(positive, here, size, load)
            total = self._known[key] = int(passes.sum())
        return total
