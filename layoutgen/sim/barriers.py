"""Who waits where: barriers of a block (bar, barrier) and of a warp, for all blocks of a batch at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from layoutgen.errors import SimError
from layoutgen.sim.flow import WARP_BARRIER, Barrier, Terminator
from layoutgen.sim.frame import Array

if TYPE_CHECKING:
    from layoutgen.sim.batch import Batch

RUN, WAIT, DONE = np.uint8(0), np.uint8(1), np.uint8(2)


class Barriers:
    """Arrays of shape (warps, blocks, 32) that tell, of lanes in state WAIT, which barrier they wait at and for whom.

    Attributes:
        number: the barrier's number, or WARP_BARRIER.
        expected: threads that the barrier takes (0: all of the block); for a warp barrier its lane mask.
        arrived: barrier number -> (blocks,) threads that arrived without waiting.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.number = np.zeros(batch.state.shape, np.int64)
        self.expected = np.zeros(batch.state.shape, np.int64)
        self.arrived: dict[int, Array] = {}

    def arrive(self, number: int, block: int, threads: int) -> None:
        """Counts threads in that don't wait."""
        self.arrived.setdefault(number, np.zeros(self.batch.size, np.int64))[block] += threads

    def release(self) -> bool:
        """Lets lanes go whose barrier is complete. False where every lane has exited; SimError where none can go."""
        batch = self.batch
        waiting = batch.state == WAIT
        if not waiting.any():
            return False
        live = batch.state != DONE
        freed = np.zeros_like(waiting)
        for number in np.unique(self.number[waiting]).tolist():
            here = waiting & (self.number == number)
            freed |= self._warps(here, live) if number == WARP_BARRIER else self._blocks(here, live, number)
        if not freed.any():
            raise self._deadlock(waiting)
        batch.state[freed] = RUN
        batch.place[freed] += 1
        return True

    def _warps(self, here: Array, live: Array) -> Array:
        """Lanes whose warp barrier is complete: all live members have come to the same place."""
        place = np.where(here, self.batch.place, -1).max(2)[..., None]
        together = here & (self.batch.place == place)
        members = np.where(together, self.expected, 0).max(2)[..., None] >> np.arange(32) & 1 == 1
        complete = np.logical_and.reduce(together | ~(live & members), 2)
        freed: Array = together & complete[..., None]
        return freed

    def _blocks(self, here: Array, live: Array, number: int) -> Array:
        """Lanes whose block barrier is complete, where ``here`` are all lanes that wait at ``number``."""
        batch = self.batch
        self._check_aligned(here, live)
        expected = np.where(here, self.expected, 0).max((0, 2))
        arrived = self.arrived.get(number, np.zeros(batch.size, np.int64))
        whole_warps = here.any(2) & (here | ~live).all(2)
        everyone = np.logical_and.reduce(here | ~live, (0, 2))
        came = whole_warps.sum(0) * 32 + arrived
        done = here.any((0, 2)) & np.where(expected == 0, everyone, came >= expected)
        crowded = np.flatnonzero(done & (expected != 0) & (came > expected))
        if crowded.size:
            raise self._crowded(here, int(crowded[0]), int(came[crowded[0]]))
        arrived[done] = 0
        if batch.races is not None and done.any():
            batch.races.synchronised(done, bool(everyone[done].all()))
        freed: Array = here & done[None, :, None]
        return freed

    def _crowded(self, here: Array, block: int, came: int) -> SimError:
        warp, lane = np.argwhere(here[:, block])[0].tolist()
        barrier = self._at(int(self.batch.place[warp, block, lane]))
        assert barrier is not None
        return SimError(
            "a barrier is reached by as many threads as it takes",
            got=f"{came} threads of {self.batch.block_name(block)} came to {barrier.ins}",
            where=self.batch.program.kernel.where(barrier.ins),
        )

    def _check_aligned(self, here: Array, live: Array) -> None:
        """bar.sync takes whole warps: as nothing else can run, lanes of the warp that are elsewhere never come."""
        batch = self.batch
        place = np.where(here, batch.place, -1).max(2)[..., None]
        apart = np.logical_or.reduce(here, 2)[..., None] & live & ~(here & (batch.place == place))
        for w, b, lane in np.argwhere(apart).tolist():
            barrier = self._at(int(place[w, b, 0]))
            if isinstance(barrier, Barrier) and barrier.aligned:
                who, other = batch.who(w * 32 + lane, b), self._at(int(batch.place[w, b, lane]))
                raise SimError(
                    "all threads of a warp come to the same barrier",
                    got=f"{who} is at {'the end' if other is None else other.ins}, others of its warp at {barrier.ins}",
                    where=batch.program.kernel.where(barrier.ins),
                )

    def _at(self, place: int) -> Terminator | None:
        return self.batch.program.runs[place].terminator

    def _deadlock(self, waiting: Array) -> SimError:
        batch = self.batch
        block = int(np.argwhere(waiting)[0][1])
        warps_at: dict[int, set[int]] = {}
        for warp, lane in np.argwhere(waiting[:, block]).tolist():
            warps_at.setdefault(int(batch.place[warp, block, lane]), set()).add(warp)
        stories = []
        for place, warps in sorted(warps_at.items()):
            barrier = self._at(place)
            assert barrier is not None
            stories.append(f"warps {sorted(warps)} wait at {barrier.ins}")
        exited = [warp for warp in range(batch.warps) if (batch.state[warp, block] == DONE).all()]
        if exited:
            stories.append(f"warps {exited} have exited")
        first = self._at(min(warps_at))
        assert first is not None
        return SimError(
            "every barrier is reached by all the threads it takes",
            got=f"deadlock in {batch.block_name(block)}: " + "; ".join(stories),
            where=batch.program.kernel.where(first.ins),
        )
