"""What a step works on: the registers of a group of lanes that run together, and which of the lanes are active."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from layoutgen.errors import SimError
from layoutgen.sim.registers import UNSIGNED, Ref, RegisterMap

if TYPE_CHECKING:
    from layoutgen.sim.batch import Batch
    from layoutgen.sim.parser import Instruction

Array = NDArray[Any]
POISON = 0xFF  # the byte that fills registers and shared memory: as f32 it is a NaN, as an index it is out of bounds


class Active:
    """The lanes that execute now, as boolean masks of shape (lanes,).

    ``lanes`` is None where every lane is active. ``keep`` is None where registers of inactive lanes need no
    protection, which is also so when all inactive lanes have exited; memory must look at ``lanes``, arithmetic only
    at ``keep``.
    """

    __slots__ = ("_index", "keep", "lanes")

    def __init__(self, lanes: Array | None, keep: Array | None) -> None:
        self.lanes = lanes
        self.keep = keep
        self._index: Array | None = None

    @property
    def index(self) -> Array:
        """Lane numbers of the active lanes; only where ``lanes`` is not None."""
        if self._index is None:
            assert self.lanes is not None
            self._index = np.flatnonzero(self.lanes)
        return self._index

    def only(self, mask: Array) -> Active:
        """The active lanes that are also in ``mask``."""
        both = mask.copy() if self.lanes is None else self.lanes & mask
        return Active(both, both)


Step = Callable[[Active], None]


class Op(Protocol):
    """A decoded instruction. ``bind`` ties it to a frame's arrays and gives the callable that runs it on the active
    lanes.
    """

    @property
    def ins(self) -> Instruction: ...

    def bind(self, frame: Frame) -> Step: ...


class Owned(Protocol):
    """What an instruction family keeps per frame: made from the frame when first asked for, reset as blocks start."""

    def __init__(self, frame: Frame) -> None: ...

    def reset(self) -> None: ...


OwnedT = TypeVar("OwnedT", bound=Owned)


class Frame:
    """Registers of ``lanes`` lanes ordered (warp, block, lane of warp), and where each lane stands in the grid.

    Attributes:
        registers: width in bytes (0: predicates) -> array (rows, lanes).
        thread: (lanes,) linear thread index in its block.
        block: (lanes,) number of the block within the batch.
    """

    def __init__(self, batch: Batch, names: RegisterMap, warps: Sequence[int]) -> None:
        self.batch = batch
        self.names = names
        blocks = batch.size
        self.shape = (len(warps), blocks, 32)
        self.lanes = len(warps) * blocks * 32
        lane = np.arange(32)
        self.thread = np.broadcast_to((np.asarray(warps)[:, None] * 32 + lane)[:, None, :], self.shape).reshape(-1)
        self.block = np.broadcast_to(np.arange(blocks)[None, :, None], self.shape).reshape(-1)
        self.registers = {
            width: np.zeros((names.count[width] + len(names.constants[width]), self.lanes), dtype)
            for width, dtype in UNSIGNED.items()
        }
        self.local_stride = -(-names.kernel.local_bytes // 16) * 16
        self._local = np.zeros(self.lanes * self.local_stride, np.uint8)
        self._owned: dict[type, Owned] = {}
        self._scratch: dict[tuple[object, np.dtype], Array] = {}

    def reset(self, special: Callable[[str, Frame], Array], poison: bool) -> None:
        """Puts registers and local memory in the state in which a block starts: poison (or zero), and the constants."""
        for owned in self._owned.values():
            owned.reset()
        self._local[...] = POISON if poison else 0
        for width, array in self.registers.items():
            registers = array[: self.names.count[width]]
            registers[...] = 0
            if poison:
                np.invert(registers, out=registers)
            for i, value in enumerate(self.names.constants[width]):
                array[-1 - i] = value if isinstance(value, int) else special(value, self).astype(array.dtype)

    def array(self, ref: Ref) -> Array:
        """The whole register array that ``ref`` lies in, as ``ref.dtype``: shape (rows, lanes)."""
        array = self.registers[ref.width].view(ref.dtype)
        if ref.width and ref.dtype.itemsize < ref.width:
            array = array[:, :: ref.width // ref.dtype.itemsize]
        return array

    def row(self, ref: Ref) -> Array:
        """One register: shape (lanes,), a view."""
        row: Array = self.array(ref)[ref.row]
        return row

    def own(self, kind: type[OwnedT]) -> OwnedT:
        """The frame's one object of a family's class, such as its asynchronous copies."""
        if kind not in self._owned:
            self._owned[kind] = kind(self)
        found = self._owned[kind]
        assert isinstance(found, kind)
        return found

    def local_units(self, width: int) -> Array:
        """Local memory of all lanes, lane i's at byte i * local_stride, as unsigned integers of ``width`` bytes."""
        units: Array = self._local.view(f"u{width}")
        return units

    def scratch(self, slot: object, dtype: np.dtype, rows: int) -> Array:
        """A (rows, lanes) array that steps share: whatever it holds is dead once a step returns."""
        key = (slot, dtype)
        held = self._scratch.get(key)
        if held is None or len(held) < rows:
            held = self._scratch[key] = np.empty((rows, self.lanes), dtype)
        return held[:rows]

    def fault(self, ins: Instruction, rule: str, lane: int, detail: str, *, fix: str | None = None) -> SimError:
        """The error for what one lane did."""
        got = f"{ins} by {self.batch.who(int(self.thread[lane]), int(self.block[lane]))}: {detail}"
        return SimError(rule, got=got, fix=fix, where=self.names.kernel.where(ins))


def progression(rows: Sequence[int]) -> slice | None:
    """The slice that names ``rows``, where they are an arithmetic progression (None where they are not)."""
    step = rows[1] - rows[0] if len(rows) > 1 else 1
    if step == 0 or any(b - a != step for a, b in zip(rows, rows[1:], strict=False)):
        return None
    stop = rows[-1] + step
    return slice(rows[0], stop if stop >= 0 else None, step)
