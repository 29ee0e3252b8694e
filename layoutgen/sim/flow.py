"""Terminators: instructions after which lanes of a group may stand at different places. The scheduler follows them."""

from __future__ import annotations

from dataclasses import dataclass

from layoutgen.sim.parser import Instruction
from layoutgen.sim.registers import Ref

WARP_BARRIER = 16  # the number under which lanes of one warp wait for each other; a block's barriers are 0 to 15


@dataclass(frozen=True, slots=True)
class Terminator:
    """The end of a straight run of instructions. ``guard``, negated where ``ins`` says so, picks the lanes it
    concerns.
    """

    ins: Instruction
    guard: Ref | None


@dataclass(frozen=True, slots=True)
class Branch(Terminator):
    """bra: ``target`` is an instruction index."""

    target: int


@dataclass(frozen=True, slots=True)
class Exit(Terminator):
    """ret, exit."""


@dataclass(frozen=True, slots=True)
class Trap(Terminator):
    """trap: the kernel gives up (a failed assertion)."""


@dataclass(frozen=True, slots=True)
class Barrier(Terminator):
    """A barrier of the block: bar.sync, barrier.sync, or (``arrive``) bar.arrive, which counts and doesn't wait.

    ``threads`` is how many it takes (None: all of the block). ``aligned``: all lanes of a warp come to it together.
    ``vote``: the predicate that each brings to a barrier which stands before the instruction that counts them.
    """

    number: Ref
    threads: Ref | None
    arrive: bool
    aligned: bool
    vote: Ref | None = None

    @property
    def implied(self) -> bool:
        """Whether the instruction runs after it."""
        return self.vote is not None


@dataclass(frozen=True, slots=True)
class WarpBarrier(Terminator):
    """bar.warp.sync: the lanes in the mask ``members`` meet here.

    ``implied``: it stands before an instruction, such as shfl.sync, that its members execute together.
    """

    members: Ref
    implied: bool = False
