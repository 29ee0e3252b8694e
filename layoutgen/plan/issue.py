"""The order in which multiply-adds, or MMA atoms, are issued: part of the Plan."""

from __future__ import annotations

from dataclasses import dataclass

from layoutgen.algebra import Layout, flatten


@dataclass(frozen=True, slots=True)
class IssueOrder:
    """The order of the FFMAs of one k, or of the MMA atoms.

    layout: step -> value of a thread's tile, (value_m, value_n) with value_m fastest, or atom of its warp's; one-to-one
    and onto.
    serpentine: each mode runs backwards in every other turn of those after it, so that from one step to the next one
    mode advances by one (a reflected Gray code of mixed radix: Knuth, TAOCP 7.2.1.1).
    extents: values (or atoms) in m and n.
    """

    layout: Layout
    serpentine: bool
    extents: tuple[int, int]

    def values(self) -> tuple[int, ...]:
        """The value of step 0, 1, .."""
        flat = flatten(self.layout)
        found = []
        for step in range(flat.size):
            offset, turn = 0, step
            for extent, stride in zip(flat.flat_shape, flat.flat_stride, strict=True):
                turn, index = divmod(turn, extent)
                offset += stride * (extent - 1 - index if self.serpentine and turn % 2 else index)
            found.append(offset)
        return tuple(found)
