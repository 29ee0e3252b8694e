"""Shared-memory races: two warps touch the same word between two barriers, and one of them writes.

Per word, tables hold the last writer and the readers with the smallest and the largest thread number, each stamped
with the block's count of barriers. Two readers are enough: a writer conflicts with some reader of another warp if and
only if it conflicts with one of these. An asynchronous copy writes from its issue until its thread's wait, and from
then counts as an ordinary write of that thread. Lanes of one warp are not told apart: they run in step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from layoutgen.errors import SimError
from layoutgen.sim.frame import Array, Frame
from layoutgen.sim.parser import Instruction
from layoutgen.sim.report import memory_class

if TYPE_CHECKING:
    from layoutgen.sim.batch import Batch


class _Last:
    """Per word: who did it last, with which instruction, and in which interval between barriers."""

    def __init__(self, words: int) -> None:
        self.epoch = np.full(words, -1, np.int64)
        self.thread = np.zeros(words, np.int64)
        self.ins = np.zeros(words, np.int64)

    def put(self, word: Array, epoch: Array, thread: Array, ins: Array | int) -> None:
        self.epoch[word] = epoch
        self.thread[word] = thread
        self.ins[word] = ins

    def conflicts(self, word: Array, epoch: Array, thread: Array) -> Array:
        """Where the word's last one was in this interval and of another warp."""
        found: Array = (self.epoch[word] == epoch) & (self.thread[word] >> 5 != thread >> 5)
        return found


class Races:
    """Watches a batch's shared memory. A word is 4 bytes, or as few as the kernel's narrowest shared access."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        classes = [memory_class(ins) for ins in batch.program.kernel.instructions]
        narrow = any(c is not None and c[1] < 4 and c[0].endswith(("shared", "generic")) for c in classes)
        self.word_bytes = 1 if narrow else 4
        self.reset()

    def reset(self) -> None:
        """As a block starts: nobody has touched anything."""
        words = len(self.batch.shared) // self.word_bytes
        self.epoch = np.zeros(self.batch.size, np.int64)
        self.writer, self.first_reader, self.last_reader = _Last(words), _Last(words), _Last(words)
        self.copying = _Last(words)  # epoch >= 0 while a copy to the word is under way

    def synchronised(self, blocks: Array, whole: bool) -> None:
        """A barrier of ``blocks`` (a mask) is complete. Raises SimError unless it took every warp of the block."""
        if not whole:
            raise SimError(
                "the race detector follows barriers that take the whole block",
                got="a barrier for some warps of a block",
                fix="simulate this kernel with races=False",
            )
        self.epoch[blocks] += 1

    def access(
        self, frame: Frame, ins: Instruction, address: Array, size: int, lanes: Array | None, load: bool
    ) -> None:
        """A load or store by ``lanes`` (None: all) at byte offsets ``address`` of their blocks' shared memory."""
        word, epoch, thread = self._words(frame, address, size, lanes)
        self._check(frame, ins, word, epoch, thread, load)
        if load:
            self._read(word, epoch, thread, ins.index)
        else:
            self.writer.put(word, epoch, thread, ins.index)
            twice = self.writer.thread[word] >> 5 != thread >> 5
            if twice.any():
                raise self._race(frame, ins, word, thread, twice, self.writer)

    def copy_issued(self, frame: Frame, ins: Instruction, address: Array, size: int, lanes: Array) -> None:
        """An asynchronous copy begins to write."""
        word, epoch, thread = self._words(frame, address, size, lanes)
        self._check(frame, ins, word, epoch, thread, False)
        self.copying.put(word, epoch, thread, ins.index)
        twice = self.copying.thread[word] != thread
        if twice.any():
            raise self._race(frame, ins, word, thread, twice, self.copying)

    def copy_landed(self, frame: Frame, ins: Instruction, address: Array, size: int, lanes: Array) -> None:
        """Its thread has waited for it."""
        word, epoch, thread = self._words(frame, address, size, lanes)
        self.copying.epoch[word] = -1
        self.writer.put(word, epoch, thread, ins.index)

    def _words(self, frame: Frame, address: Array, size: int, lanes: Array | None) -> tuple[Array, Array, Array]:
        """(lanes, words of each access) numbers of words, and (lanes, 1) intervals and threads."""
        block = frame.block if lanes is None else frame.block[lanes]
        thread = frame.thread if lanes is None else frame.thread[lanes]
        start = (address.astype(np.int64) + block * self.batch.shared_stride) // self.word_bytes
        word = start[:, None] + np.arange(size // self.word_bytes)
        return word, self.epoch[block][:, None], thread[:, None]

    def _check(self, frame: Frame, ins: Instruction, word: Array, epoch: Array, thread: Array, load: bool) -> None:
        under_way = self.copying.epoch[word] >= 0
        if under_way.any():
            raise self._race(frame, ins, word, thread, under_way, self.copying)
        for last in (self.writer,) if load else (self.writer, self.first_reader, self.last_reader):
            bad = last.conflicts(word, epoch, thread)
            if bad.any():
                raise self._race(frame, ins, word, thread, bad, last)

    def _read(self, word: Array, epoch: Array, thread: Array, ins: int) -> None:
        """Lanes come in order of threads, and of values assigned to one index numpy keeps the last.

        Raveling copies the reversed arrays: numpy is free to walk a view of negative strides backwards.
        """
        when = np.broadcast_to(epoch, word.shape)
        for last, step in ((self.last_reader, 1), (self.first_reader, -1)):
            beyond = last.thread[word] < thread if step < 0 else last.thread[word] > thread
            kept = (last.epoch[word] == epoch) & beyond
            who = np.where(kept, last.thread[word], thread)
            what = np.where(kept, last.ins[word], ins)
            last.put(*(x[::step].ravel() for x in (word, when, who, what)))

    def _race(self, frame: Frame, ins: Instruction, word: Array, thread: Array, bad: Array, last: _Last) -> SimError:
        kernel = self.batch.program.kernel
        lane, k = (int(i[0]) for i in np.nonzero(bad))
        at = int(word[lane, k])
        block, offset = divmod(at * self.word_bytes, self.batch.shared_stride)
        other = kernel.instructions[int(last.ins[at])]
        under_way = ", still under way" if last is self.copying else ""
        return SimError(
            "a barrier stands between two warps' accesses to a shared word of which one writes",
            got=f"{ins} by {self.batch.who(int(thread[lane, 0]), block)} and {other} by "
            f"{self.batch.who(int(last.thread[at]), block)}{under_way}, both at shared offset {offset}",
            where=kernel.where(ins),
        )
