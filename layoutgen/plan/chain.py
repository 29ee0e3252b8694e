"""The frozen epilogue of a plan: what happens to a sum before it is stored, and how it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layoutgen.algebra import Layout
from layoutgen.epilogue import Step, Tensor, Value


@dataclass(frozen=True, slots=True)
class Link:
    """One step of the epilogue's chain: it computes in `value`, on a tensor where it needs one, `bytes` of which a
    thread moves at a time: of as many columns as of D, up to 16; of one element where it has no columns."""

    step: Step
    value: Value
    tensor: Tensor | None
    bytes: int

    def __str__(self) -> str:
        return f"{self.step.about()} ({self.value})"


@dataclass(frozen=True, slots=True)
class Epilogue:
    """D = chain(alpha * accumulator + beta * C), `vector` elements of n (so many bytes) per access.

    Rows are the tile's. thread_n, value_n: thread -> first column that it stores, and stored value -> column beyond it:
    the tile's too, but where as many lanes as `exchange` says pass each other values first, so that each has longer
    runs: a mode of lanes then is one of values, and the other way round. C is read only where beta is not zero, and
    never unless `reads_c`: sums that are to stay integers take no C of floats.
    first: the type in which the chain begins, which alpha and beta have. row_lanes: the bits of a lane's number that
    leave its rows the same: lanes that differ in them share rows. turns: of a loop over a thread's rows, each with the
    text of as many rows as the instruction cache holds the steps of. early: whether what the steps need of a thread's
    columns is read before the main loop, and held in registers through it.
    """

    vector: int
    bytes: int
    guards: frozenset[Literal["m", "n"]]
    read_c_if_beta: bool
    thread_n: Layout
    value_n: Layout
    exchange: int
    first: Value
    row_lanes: tuple[int, ...]
    reads_c: bool = True
    turns: int = 1
    early: bool = False
    chain: tuple[Link, ...] = ()

    @property
    def last(self) -> Value:
        """The type in which the chain ends."""
        return self.chain[-1].value if self.chain else self.first

    @property
    def linked(self) -> tuple[Link, ...]:
        """The steps that have a tensor."""
        return tuple(link for link in self.chain if link.tensor is not None)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Those of the chain, in its order: the operator's keywords."""
        return tuple(link.tensor for link in self.chain if link.tensor is not None)
