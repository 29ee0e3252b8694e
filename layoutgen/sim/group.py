"""A group: warps that run together. Its lanes follow the program's runs; where they part, the smallest place goes
first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from layoutgen.errors import SimError
from layoutgen.sim.alu import MERGED_ELEMENTS
from layoutgen.sim.barriers import DONE, RUN, WAIT
from layoutgen.sim.flow import WARP_BARRIER, Barrier, Branch, Exit, Terminator, Trap, WarpBarrier
from layoutgen.sim.frame import Active, Array, Frame, Step

if TYPE_CHECKING:
    from layoutgen.sim.batch import Batch


class Group:
    """Warps ``warps`` of every block of the batch, with their registers.

    ``place`` and ``state`` are (lanes,) views of the batch's arrays. A lane's place is the run it executes next, or at
    whose barrier it waits; while all runnable lanes are together it is kept in a local variable instead.
    """

    def __init__(self, batch: Batch, warps: range) -> None:
        self.batch = batch
        chosen = slice(warps.start, warps.stop)
        self.place = batch.place[chosen].reshape(-1)
        self.state = batch.state[chosen].reshape(-1)
        self.number = batch.barriers.number[chosen].reshape(-1)
        self.expected = batch.barriers.expected[chosen].reshape(-1)
        self.frame = Frame(batch, batch.program.names, warps)
        self.is_whole_block = len(warps) == batch.warps
        self._everyone = Active(None, None)
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
                active = self._everyone
            else:
                alone = bool((lanes | (self.state == DONE)).all())
                active = Active(lanes, None if alone else lanes)
            self._follow(place, active, together)

    def _follow(self, place: int, active: Active, together: bool) -> None:
        """Runs ``active`` from ``place``: on and on where no other lane of the group could run, else for one run."""
        batch = self.batch
        runs, counts, ceiling = batch.program.runs, batch.counts, batch.ceiling
        lanes = active.lanes
        warps = self.frame.lanes // 32 if lanes is None else int(np.count_nonzero(lanes.reshape(-1, 32).any(1)))
        while place < len(runs):
            run = runs[place]
            counts[place] += warps
            if ceiling is not None and counts[place] > ceiling[place]:
                raise self._endless(run.first)
            steps = self._steps.get(place)
            if steps is None:
                steps = self._steps[place] = run.bind(self.frame, MERGED_ELEMENTS)
            for step in steps:
                step(active)
            following = place + 1
            if run.terminator is not None:
                after = self._end(run.terminator, run.target, place, active)
                if after is None:
                    return
                following = after
            if not together:
                self._put(self.place, lanes, following)
                return
            place = following
        self._put(self.state, lanes, DONE)

    def _end(self, terminator: Terminator, target: int, place: int, active: Active) -> int | None:
        """Where all active lanes go after a terminator; None where they part, wait or exit, as place and state tell."""
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
        all_active = concerned is active
        if isinstance(terminator, Branch):
            if all_active:
                return target
            self._put(self.place, concerned.lanes, target)
        elif isinstance(terminator, Exit):
            self._put(self.state, concerned.lanes, DONE)
        elif isinstance(terminator, Barrier):
            return self._barrier(terminator, place, concerned, all_active)
        elif isinstance(terminator, WarpBarrier):
            if all_active and active.keep is None:
                return place + 1  # all live lanes of the warps are here
            self._wait(place, concerned, WARP_BARRIER, self.frame.row(terminator.members).astype(np.int64))
        else:
            assert isinstance(terminator, Trap)
            lane = 0 if concerned.lanes is None else int(concerned.index[0])
            raise self.frame.fault(terminator.ins, "a kernel doesn't trap", lane, "the kernel gave up")
        return None

    def _barrier(self, barrier: Barrier, place: int, active: Active, all_active: bool) -> int | None:
        frame = self.frame
        if barrier.vote is not None:
            self._vote(frame.row(barrier.vote), active)
        everyone = self.is_whole_block and all_active and active.keep is None
        fixed = barrier.number.row < 0 and int(frame.row(barrier.number)[0]) <= 15
        if everyone and barrier.threads is None and fixed:  # the common case: __syncthreads()
            if self.batch.races is not None:
                self.batch.races.synchronised(np.ones(self.batch.size, bool), True)
            return place + 1
        number = frame.row(barrier.number).astype(np.int64)
        threads = np.zeros_like(number) if barrier.threads is None else frame.row(barrier.threads).astype(np.int64)
        bad = (number > 15) | (threads % 32 != 0) | ((threads == 0) & (barrier.threads is not None))
        if active.lanes is not None:
            bad &= active.lanes
        if bad.any():
            lane = int(np.flatnonzero(bad)[0])
            rule = "a barrier has a number from 0 to 15 and takes a multiple of 32 threads"
            raise frame.fault(barrier.ins, rule, lane, f"barrier {number[lane]} of {threads[lane]} threads")
        if not barrier.arrive:
            self._wait(place, active, number, threads)
            return None
        here = np.ones(frame.lanes, bool) if active.lanes is None else active.lanes
        for warp in np.flatnonzero(here.reshape(-1, 32).any(1)).tolist():
            lane = warp * 32 + int(here[warp * 32 : warp * 32 + 32].argmax())
            self.batch.barriers.arrive(int(number[lane]), int(frame.block[lane]), 32)
        if all_active:
            return place + 1
        self._put(self.place, active.lanes, place + 1)
        return None

    def _vote(self, vote: Array, active: Active) -> None:
        lanes = slice(None) if active.lanes is None else active.lanes
        thread, block = self.frame.thread[lanes], self.frame.block[lanes]
        self.batch.votes[self.batch.turn[thread, block], thread, block] = vote[lanes]

    def _wait(self, place: int, active: Active, number: Array | int, expected: Array) -> None:
        lanes = slice(None) if active.lanes is None else active.lanes
        self.place[lanes] = place
        self.number[lanes] = number if isinstance(number, int) else number[lanes]
        self.expected[lanes] = expected[lanes]
        self.state[lanes] = WAIT

    def _put(self, array: Array, lanes: Array | None, value: object) -> None:
        array[... if lanes is None else lanes] = value

    def _endless(self, first: int) -> SimError:
        kernel = self.batch.program.kernel
        ins = kernel.instructions[min(first, len(kernel.instructions) - 1)]
        rule = "warps come to an end within the limit"
        return SimError(
            rule, got=f"a warp reached {ins} more than {self.batch.options.limit} times", where=kernel.where(ins)
        )
