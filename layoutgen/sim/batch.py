"""A batch of blocks that run side by side, and the options that say how.

Warps of a group stand at the same place most of the time, so a step runs for all of them at once. Blocks never see each
other, and warps of a block only through shared memory, so any interleaving is one that a GPU might choose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from layoutgen.errors import SimError
from layoutgen.sim.barriers import DONE, RUN, Barriers
from layoutgen.sim.frame import POISON, Array, Frame
from layoutgen.sim.group import Group
from layoutgen.sim.memory import GlobalMemory
from layoutgen.sim.program import Program
from layoutgen.sim.races import Races
from layoutgen.sim.report import Meter


@dataclass(frozen=True, slots=True)
class Options:
    """How to simulate.

    Attributes:
        async_landing: when cp.async writes shared memory: at issue ('early'), or at the wait that guarantees it
        ('late'). warp_order: 'lockstep' runs the warps of a block together; a seed runs one warp at a time, drawn at
        random, until
            it waits at a barrier.
        poison: registers and shared memory start as NaNs (else zeros).
        count: fill in the report's traffic.
        races: stop at the first shared-memory access that races with another warp's.
        progress: called with (blocks done, blocks in all) after each batch.
        batch_lanes: about how many threads run together.
        limit: how often a warp may come to one place, as a mean over the batch, before it counts as endless.
    """

    async_landing: Literal["early", "late"] = "late"
    warp_order: Literal["lockstep"] | int = "lockstep"
    poison: bool = True
    count: bool = True
    races: bool = False
    progress: Callable[[int, int], None] | None = None
    batch_lanes: int = 2048
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.async_landing not in ("early", "late"):
            raise SimError("async_landing is one of two", got=repr(self.async_landing), allowed="'early', 'late'")
        if not isinstance(self.warp_order, int) and self.warp_order != "lockstep":
            raise SimError("warp_order is 'lockstep' or a seed", got=repr(self.warp_order))
        if self.batch_lanes < 1 or (self.limit is not None and self.limit < 1):
            raise SimError("batch_lanes and limit are positive", got=f"{self.batch_lanes}, {self.limit}")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a launch fixes: extents in x, y, z, dynamic shared memory in bytes, and the packed parameters."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int
    params: bytes

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]


class Batch:
    """``size`` blocks. Block b's shared memory is ``shared[b * shared_stride:][:shared_bytes]``.

    ``place`` and ``state`` have the shape (warps, blocks, 32); ``counts`` tells per run of the program how many warps
    executed it.
    """

    def __init__(
        self, program: Program, memory: GlobalMemory, options: Options, shape: Shape, size: int, meter: Meter | None
    ) -> None:
        self.program, self.memory, self.options, self.shape = program, memory, options, shape
        self.size, self.meter, self.params = size, meter, shape.params
        dynamic = shape.dynamic_shared_bytes
        self.shared_bytes = program.kernel.static_shared_bytes
        if dynamic:
            self.shared_bytes = program.names.dynamic_shared_base + dynamic
        self.shared_floor = program.names.reserved_shared
        self.shared_stride = -(-self.shared_bytes // 16) * 16
        self.shared = np.zeros(size * self.shared_stride, np.uint8)
        self.warps = -(-shape.threads // 32)
        self.counts = [0] * len(program.runs)
        self.ceiling: list[int] | None = None
        self.linear = np.zeros(size, np.int64)
        self.place = np.zeros((self.warps, size, 32), np.int32)
        self.state = np.zeros((self.warps, size, 32), np.uint8)
        self.barriers = Barriers(self)
        self.votes = np.zeros((2, 32 * self.warps, size), bool)  # that threads bring to a barrier, and whose turn it is
        self.turn = np.zeros((32 * self.warps, size), np.uint8)
        self.races = Races(self) if options.races else None
        lockstep = options.warp_order == "lockstep"
        self.groups = [Group(self, range(0, self.warps))] if lockstep else [
            Group(self, range(w, w + 1)) for w in range(self.warps)
        ]  # fmt: skip

    def run(self, first: int) -> None:
        """Runs blocks first, first + 1, ... of the grid to their end."""
        self.linear = np.arange(first, first + self.size)
        self.shared[...] = POISON if self.options.poison else 0
        self.place[...] = 0
        thread = np.arange(self.warps)[:, None, None] * 32 + np.arange(32)
        self.state[...] = np.where(thread < self.shape.threads, RUN, DONE)
        self.barriers.arrived.clear()
        self.votes[...] = False
        if self.options.limit is not None:
            self.ceiling = [n + self.options.limit * self.warps * self.size for n in self.counts]
        if self.races is not None:
            self.races.reset()
        for group in self.groups:
            group.frame.reset(self.special, self.options.poison)
        order = None if self.options.warp_order == "lockstep" else random.Random(self.options.warp_order)
        while True:
            ready = [g for g in self.groups if (g.state == RUN).any()]
            if ready:
                (ready[0] if order is None else order.choice(ready)).run()
            elif not self.barriers.release():
                return

    def shared_units(self, width: int) -> Array:
        """All blocks' shared memory as unsigned integers of ``width`` bytes."""
        units: Array = self.shared.view(f"u{width}")
        return units

    def coordinates(self, block: Array) -> tuple[Array, Array, Array]:
        """Linear block numbers in the grid -> (x, y, z)."""
        x, y, _ = self.shape.grid
        return block % x, block // x % y, block // (x * y)

    def block_name(self, block: int) -> str:
        """A block of the batch in CUDA's coordinates."""
        x, y, z = (int(c) for c in self.coordinates(self.linear[block]))
        return f"block ({x},{y},{z})"

    def who(self, thread: int, block: int) -> str:
        """A thread and its block in CUDA's coordinates."""
        x, y, _ = self.shape.block
        return f"thread ({thread % x},{thread // x % y},{thread // (x * y)}) of {self.block_name(block)}"

    def special(self, name: str, frame: Frame) -> Array:
        """A special register's value in every lane of a frame (PTX ISA 9.0, chapter 10)."""
        base, _, axis = name[1:].partition(".")
        i = "xyz".index(axis) if axis else 0
        thread = frame.thread
        if base == "tid":
            x, y, _ = self.shape.block
            return (thread % x, thread // x % y, thread // (x * y))[i]
        if base == "ctaid":
            return self.coordinates(self.linear[frame.block])[i]
        lane = thread % 32
        bit = np.int64(1) << lane
        values: Mapping[str, Array | int] = {
            "ntid": self.shape.block[i], "nctaid": self.shape.grid[i], "laneid": lane, "warpid": thread // 32,
            "nwarpid": self.warps, "lanemask_eq": bit, "lanemask_lt": bit - 1, "lanemask_le": 2 * bit - 1,
            "lanemask_gt": 0xFFFFFFFF & ~(2 * bit - 1), "lanemask_ge": 0xFFFFFFFF & ~(bit - 1),
            "dynamic_smem_size": self.shape.dynamic_shared_bytes, "total_smem_size": self.shared_bytes,
        }  # fmt: skip
        return np.broadcast_to(np.asarray(values[base]), frame.lanes)
