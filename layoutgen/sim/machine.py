"""The scheduler: batches of blocks, groups of warps that run together, divergence, barriers.

Warps of a group stand at the same place most of the time, so a step runs for all of them at once. Where they part, the lanes
at the smallest place go first, which brings them together again where paths join. Blocks never see each other, and warps of a
block only through shared memory, so any interleaving is one that a GPU might choose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from layoutgen.errors import SimError
from layoutgen.sim.alu import MERGED_ELEMENTS
from layoutgen.sim.frame import POISON, Active, Array, Frame, Step
from layoutgen.sim.instructions.control import WARP_BARRIER, Barrier, Branch, Exit, Terminator, Trap
from layoutgen.sim.memory import GlobalMemory
from layoutgen.sim.program import Program
from layoutgen.sim.races import Races
from layoutgen.sim.report import Meter

RUN, WAIT, DONE = np.uint8(0), np.uint8(1), np.uint8(2)


@dataclass(frozen=True, slots=True)
class Options:
    """How to simulate.

    Attributes:
        async_landing: when cp.async writes shared memory: at issue, or at the wait that guarantees it.
        warp_order: 'lockstep' runs the warps of a block together; a seed runs one warp at a time, drawn at random, until it
            waits at a barrier.
        poison: registers and shared memory start as NaNs (else zeros).
        count: fill in the report's traffic.
        races: stop at the first shared-memory access that races with another warp's.
        progress: called with (blocks done, blocks in all) after each batch.
        batch_lanes: about how many threads run together.
        limit: instructions that a warp may execute before the launch is given up as endless (None: no limit).
    """

    async_landing: Literal["early", "late"] = "late"
    warp_order: Literal["lockstep"] | int = "lockstep"
    poison: bool = True
    count: bool = True
    races: bool = False
    progress: Callable[[int, int], None] | None = None
    batch_lanes: int = 1024
    limit: int | None = None


class Batch:
    """``size`` blocks that run side by side. Shared memory of block b begins at byte b * shared_stride of ``shared``."""

    def __init__(
        self, program: Program, memory: GlobalMemory, options: Options, params: bytes, grid: tuple[int, int, int],
        block: tuple[int, int, int], dynamic_shared_bytes: int, size: int, meter: Meter | None,
    ) -> None:  # fmt: skip
        self.program, self.memory, self.options, self.params = program, memory, options, params
        self.grid, self.dims, self.size, self.meter = grid, block, size, meter
        self.dynamic_shared_bytes = dynamic_shared_bytes
        static = program.kernel.static_shared_bytes
        self.shared_bytes = program.names.dynamic_shared_base + dynamic_shared_bytes if dynamic_shared_bytes else static
        self.shared_stride = -(-self.shared_bytes // 16) * 16
        self.shared = np.zeros(size * self.shared_stride, np.uint8)
        self.threads = block[0] * block[1] * block[2]
        self.warps = -(-self.threads // 32)
        self.counts = [0] * len(program.runs)
        shape = (self.warps, size, 32)
        self.place = np.zeros(shape, np.int32)
        self.state = np.zeros(shape, np.uint8)
        self.barrier = np.zeros(shape, np.int64)
        self.expected = np.zeros(
            shape, np.int64
        )  # threads that the barrier takes; for a warp barrier its lane mask; 0: all
        self.arrived: dict[int, Array] = {}  # barrier number -> (size,) threads that arrived without waiting
        self.races = Races(self) if options.races else None
        order = (
            [range(self.warps)] if options.warp_order == "lockstep" else [range(w, w + 1) for w in range(self.warps)]
        )
        self.groups = [Group(self, warps) for warps in order]
        self.linear = np.zeros(size, np.int64)

    def shared_units(self, width: int) -> Array:
        """All blocks' shared memory as unsigned integers of ``width`` bytes."""
        units: Array = self.shared.view(f"u{width}")
        return units

    def coordinates(self, block: Array) -> tuple[Array, Array, Array]:
        """Linear block numbers in the grid -> (x, y, z)."""
        x, y, _ = self.grid
        return block % x, block // x % y, block // (x * y)

    def who(self, thread: int, block: int) -> str:
        """A thread and its block in CUDA's coordinates."""
        x, y, _ = self.dims
        at = tuple(int(c) for c in self.coordinates(self.linear[block]))
        return f"thread ({thread % x},{thread // x % y},{thread // (x * y)}) of block ({at[0]},{at[1]},{at[2]})"

    def special(self, name: str, frame: Frame) -> Array:
        """A special register's value in every lane of a frame."""
        base, _, axis = name[1:].partition(".")
        i = "xyz".index(axis) if axis else 0
        thread = frame.thread
        if base == "tid":
            x, y, _ = self.dims
            return (thread % x, thread // x % y, thread // (x * y))[i]
        if base == "ctaid":
            return self.coordinates(self.linear[frame.block])[i]
        lane = thread % 32
        one, ones = np.int64(1), np.int64(0xFFFFFFFF)
        values: Mapping[str, object] = {
            "ntid": self.dims[i], "nctaid": self.grid[i], "laneid": lane, "warpid": thread // 32, "nwarpid": self.warps,
            "lanemask_eq": one << lane, "lanemask_lt": (one << lane) - 1, "lanemask_le": (one << lane + 1) - 1,
            "lanemask_gt": ones & ~((one << lane + 1) - 1), "lanemask_ge": ones & ~((one << lane) - 1),
            "dynamic_smem_size": self.dynamic_shared_bytes, "total_smem_size": self.shared_bytes,
        }  # fmt: skip
        return np.broadcast_to(np.asarray(values[base]), frame.lanes)

    def run(self, first: int) -> None:
        """Runs blocks first, first + 1, ... of the grid to their end."""
        self.linear = np.arange(first, first + self.size)
        self.shared[...] = POISON if self.options.poison else 0
        self.place[...] = 0
        self.arrived.clear()
        thread = np.arange(self.warps)[:, None, None] * 32 + np.arange(32)
        self.state[...] = np.where(thread < self.threads, RUN, DONE)
        if self.races is not None:
            self.races.reset()
        for group in self.groups:
            group.frame.reset(self.special, self.options.poison)
        order = random.Random(self.options.warp_order) if isinstance(self.options.warp_order, int) else None
        while True:
            ready = [g for g in self.groups if (g.state == RUN).any()]
            if ready:
                (ready[0] if order is None else order.choice(ready)).run()
            elif not self.release():
                return

    def release(self) -> bool:
        """Lets lanes go whose barrier is complete. False where every lane has exited; SimError where none can go."""
        waiting = self.state == WAIT
        if not waiting.any():
            return False
        live = self.state != DONE
        freed = np.zeros_like(waiting)
        for number in np.unique(self.barrier[waiting]).tolist():
            here = waiting & (self.barrier == number)
            if number == WARP_BARRIER:
                freed |= here & self._warp_complete(here, live)[..., None]
                continue
            self._check_aligned(here, live)
            expected = np.where(here, self.expected, 0).max((0, 2))
            came = here.any(2).sum(0) * 32 + self.arrived.get(number, np.zeros(self.size, np.int64))
            done = here.any((0, 2)) & np.where(expected == 0, (here | ~live).all((0, 2)), came >= expected)
            if number in self.arrived:
                self.arrived[number][done] = 0
            freed |= here & done[None, :, None]
            if self.races is not None and done.any():
                self.races.synchronised(done, bool((here | ~live).all((0, 2))[done].all()))
        if not freed.any():
            raise self._deadlock(waiting)
        self.state[freed] = RUN
        self.place[freed] += 1
        return True

    def _warp_complete(self, here: Array, live: Array) -> Array:
        """(warps, blocks): have all live members of the warp barrier come to the same place?"""
        member = (self.expected >> np.arange(32)) & 1 == 1
        mask = np.where(here, self.expected, 0).max(2)
        wanted = live & ((mask[..., None] >> np.arange(32)) & 1 == 1)
        place = np.where(here & member, self.place, -1).max(2)
        return here.any(2) & (~wanted | (here & (self.place == place[..., None]))).all(2)

    def _check_aligned(self, here: Array, live: Array) -> None:
        """bar.sync takes whole warps: nothing else can run, so lanes of the warp that are elsewhere will never come."""
        place = np.where(here, self.place, -1).max(2)[..., None]
        apart = here.any(2)[..., None] & live & ~(here & (self.place == place))
        if apart.any():
            w, b, lane = (int(i[0]) for i in np.nonzero(apart))
            ins = self._barrier_at(int(place[w, b, 0]))
            if isinstance(ins, Barrier) and ins.aligned:
                other = self._barrier_at(int(self.place[w, b, lane]))
                raise SimError(
                    "all threads of a warp come to the same barrier",
                    got=f"{self.who(w * 32 + lane, b)} waits at {None if other is None else other.ins}, others of its warp at {ins.ins}",
                    where=self.program.kernel.where(ins.ins),
                )

    def _barrier_at(self, place: int) -> Terminator | None:
        return self.program.runs[place].terminator

    def _deadlock(self, waiting: Array) -> SimError:
        w, b, _ = np.nonzero(waiting)
        block = int(b[0])
        places: dict[int, set[int]] = {}
        for warp, lane in zip(*np.nonzero(waiting[:, block]), strict=True):
            places.setdefault(int(self.place[warp, block, lane]), set()).add(int(warp))
        lines = [
            f"warps {sorted(warps)} wait at {t.ins}"
            for p, warps in places.items()
            if (t := self._barrier_at(p)) is not None
        ]
        exited = [warp for warp in range(self.warps) if (self.state[warp, block] == DONE).all()]
        if exited:
            lines.append(f"warps {exited} have exited")
        first = self._barrier_at(min(places))
        return SimError(
            "every barrier is reached by all the threads it takes",
            got=f"deadlock in {self.who(0, block).split(' of ')[1]}: " + "; ".join(lines),
            where=None if first is None else self.program.kernel.where(first.ins),
        )


class Group:
    """Warps (of every block of the batch) that run together, with their registers."""

    def __init__(self, batch: Batch, warps: range) -> None:
        self.batch = batch
        chosen = slice(warps.start, warps.stop)
        self.place = batch.place[chosen].reshape(-1)
        self.state = batch.state[chosen].reshape(-1)
        self.barrier = batch.barrier[chosen].reshape(-1)
        self.expected = batch.expected[chosen].reshape(-1)
        self.frame = Frame(batch, batch.program.names, warps)
        self.everyone = Active(None, None)
        self.whole_block = len(warps) == batch.warps
        self._steps: dict[int, list[Step]] = {}

    def run(self) -> None:
        """Runs until every lane waits at a barrier or has exited."""
        while True:
            ready = self.state == RUN
            if not ready.any():
                return
            places = self.place[ready]
            place = int(places.min())
            together = bool((places == place).all())
            lanes = ready if together else ready & (self.place == place)
            if lanes.all():
                active = self.everyone
            else:
                alone = (lanes | (self.state == DONE)).all()
                active = Active(lanes, None if alone else lanes)
            self._follow(place, active, together)

    def _follow(self, place: int, active: Active, together: bool) -> None:
        """Runs ``active`` from ``place``: on and on where no other lane of the group could run, else for one run."""
        runs, counts = self.batch.program.runs, self.batch.counts
        lanes = active.lanes
        warps = self.frame.lanes // 32 if lanes is None else int(np.count_nonzero(lanes.reshape(-1, 32).any(1)))
        limit = self.batch.options.limit
        spent = 0
        while True:
            if place == len(runs):
                self._put(self.state, lanes, DONE)
                return
            run = runs[place]
            counts[place] += warps
            spent += run.instructions
            if limit is not None and spent > limit:
                self._endless(place, limit)
            steps = self._steps.get(place)
            if steps is None:
                steps = self._steps[place] = run.bind(self.frame, MERGED_ELEMENTS)
            for step in steps:
                step(active)
            following = place + 1
            terminator = run.terminator
            if terminator is not None:
                next_place = self._end(run.terminator, run.target, place, active)
                if next_place is None:
                    return
                following = next_place
            if not together:
                self._put(self.place, lanes, following)
                return
            place = following

    def _end(self, terminator: Terminator | None, target: int, place: int, active: Active) -> int | None:
        """Where all active lanes go after a terminator, or None where they part, wait or exit (``place`` and ``state`` say)."""
        assert terminator is not None
        concerned = active
        if terminator.guard is not None:
            predicate = self.frame.row(terminator.guard)
            chosen = active.only(~predicate if terminator.ins.negated else predicate)
            assert chosen.lanes is not None
            count = int(np.count_nonzero(chosen.lanes))
            if count == 0:
                return place + 1
            if count != (self.frame.lanes if active.lanes is None else len(active.index)):
                self._put(self.place, active.lanes, place + 1)
                concerned = chosen
        if isinstance(terminator, Branch):
            if concerned is active:
                return target
            self._put(self.place, concerned.lanes, target)
            return None
        if isinstance(terminator, Exit):
            self._put(self.state, concerned.lanes, DONE)
            return None
        if isinstance(terminator, Trap):
            lane = 0 if concerned.lanes is None else int(concerned.index[0])
            raise self.frame.fault(terminator.ins, "a kernel doesn't trap", lane, "the kernel gave up")
        assert isinstance(terminator, Barrier)
        return self._arrive(terminator, place, concerned, concerned is active)

    def _arrive(self, barrier: Barrier, place: int, active: Active, all_active: bool) -> int | None:
        frame, lanes = self.frame, active.lanes
        if barrier.members is not None:
            members = frame.row(barrier.members).astype(np.int64)
            if all_active and active.keep is None:
                return place + 1  # the whole warp is here
            number: Array | int = WARP_BARRIER
        else:
            assert barrier.number is not None
            number = frame.row(barrier.number).astype(np.int64)
            if barrier.arrive:
                self._arrive_only(barrier, number, active)
                if all_active:
                    return place + 1
                return None
            if (
                self.whole_block
                and all_active
                and active.keep is None
                and barrier.threads is None
                and barrier.number.row < 0
            ):
                if self.batch.races is not None:
                    self.batch.races.synchronised(np.ones(self.batch.size, bool), True)
                return place + 1
            members = (
                np.zeros(frame.lanes, np.int64)
                if barrier.threads is None
                else frame.row(barrier.threads).astype(np.int64)
            )
            bad = np.flatnonzero((number < 0) | (number > 15) | (members % 32 != 0))
            bad = bad if lanes is None else bad[lanes[bad]]
            if bad.size:
                raise frame.fault(
                    barrier.ins,
                    "a barrier has a number from 0 to 15 and takes whole warps",
                    int(bad[0]),
                    "its operands",
                )
        self._put(self.place, lanes, place)
        self._put(self.barrier, lanes, number if lanes is None or isinstance(number, int) else number[lanes])
        self._put(self.expected, lanes, members if lanes is None else members[lanes])
        self._put(self.state, lanes, WAIT)
        return None

    def _arrive_only(self, barrier: Barrier, number: Array, active: Active) -> None:
        """bar.arrive counts a warp in and lets it go on."""
        here = np.ones(self.frame.shape, bool) if active.lanes is None else active.lanes.reshape(self.frame.shape)
        numbers = number.reshape(self.frame.shape)
        for w, b in zip(*np.nonzero(here.any(2)), strict=True):
            lane = int(here[w, b].argmax())
            count = self.batch.arrived.setdefault(int(numbers[w, b, lane]), np.zeros(self.batch.size, np.int64))
            count[b] += 32

    def _put(self, array: Array, lanes: Array | None, value: object) -> None:
        array[... if lanes is None else lanes] = value

    def _endless(self, place: int, limit: int) -> None:
        ins = self.batch.program.kernel.instructions[self.batch.program.runs[place].first]
        raise SimError(
            "a warp ends within the limit of instructions",
            got=f"more than {limit} instructions without a wait, now at {ins}",
            where=self.batch.program.kernel.where(ins),
        )
