"""The frozen Plan: everything a reader (check, explain, emit, the operator) may ask, and nothing that computes.

Letters used in comments below, as in CuTe: x is m for operand A and n for operand B; v counts values of one thread,
i counts the pieces of one thread's copy. Offsets into shared memory are in elements unless a name says bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layoutgen.algebra import ComposedLayout, Layout, Swizzle
from layoutgen.hw.atoms import CopyAtom
from layoutgen.hw.devices import capability
from layoutgen.hw.types import MmaAtom
from layoutgen.plan.chain import Epilogue
from layoutgen.plan.issue import IssueOrder
from layoutgen.plan.raster import Schedule

Mode = Literal["m", "n", "k"]
OperandName = Literal["a", "b"]
Guard = Literal["x", "k", "tile", "m", "n"]
Opcode = Literal["ld.shared", "ldmatrix", "ldmatrix.trans", "st.shared", "cp.async"]


@dataclass(frozen=True, slots=True)
class OperandRequirement:
    """What a variant asks of one tensor.

    contiguous: the mode whose stride must be one element, or None where any two strides will do.
    align: bytes that must divide the base address, the pitch and the length of the contiguous mode.
    """

    contiguous: Mode | None
    align: int


@dataclass(frozen=True, slots=True)
class Requirements:
    """When a variant may be used; the operator's guards, the predicates and the tests' shapes come from here alone.

    c: holds for C (when it is read) and for D. epilogue: for each tensor of the epilogue's steps.
    """

    a: OperandRequirement
    b: OperandRequirement
    c: OperandRequirement
    epilogue: tuple[OperandRequirement, ...] = ()


@dataclass(frozen=True, slots=True)
class CTile:
    """Who owns what of the block tile of C.

    lanes, warps: (lane_m, lane_n) -> lane and (warp_m, warp_n) -> warp, as the spec gives them.
    lane_mode, warp_mode, value_mode: for (m, n), the layouts index -> coordinate of that mode in the block tile.
    """

    block: tuple[int, int, int]
    lanes: Layout
    warps: Layout
    lane_mode: tuple[Layout, Layout]
    warp_mode: tuple[Layout, Layout]
    value_mode: tuple[Layout, Layout]


@dataclass(frozen=True, slots=True)
class ThreadMap:
    """thread -> coordinate in the block tile of C, by mode; thread = lane + lanes * warp, modes (lane, warp)."""

    threads: int
    m: Layout
    n: Layout


@dataclass(frozen=True, slots=True)
class Access:
    """One family of memory instructions: every site moves `bytes` at (base of the thread ^ flip) + step.

    base: thread -> offset in elements. steps: piece -> offset in vectors of bytes // itemsize elements. flips: the same
    for each mode of pieces, all of which flip bits.
    Where shared memory is plain (strides, no swizzle) flips is None, and base(thread) + step * vector is the address.
    Where it is swizzled, pieces that move along the bits that the swizzle reads or changes flip bits instead.
    bytes: of one thread; of ldmatrix, those of the row that a lane points at.
    """

    name: str
    opcode: Opcode
    bytes: int
    base: Layout | ComposedLayout
    steps: Layout
    flips: Layout | None


PLAIN = Swizzle(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Shared:
    """One operand's shared memory: (x, k, stage) -> offset by the layout, then by the swizzle, which leaves plain
    memory as it is and keeps stages apart; and the bytes of all stages."""

    layout: Layout
    stage_elements: int
    bytes: int
    swizzle: Swizzle = PLAIN


@dataclass(frozen=True, slots=True)
class Fragment:
    """One operand's way from shared memory to registers.

    load: the shared loads; steps has modes (v, k, stage) in vectors. vector: elements of a load, in one thread.
    vectors: loads of a thread for each k of the program, or for as many of them, `depth`, as a load brings. mode: what
    the elements of a load, or of one row of a matrix, run along in shared memory, x or k.
    """

    load: Access
    vector: int
    vectors: int
    mode: Literal["x", "k"]
    depth: int


@dataclass(frozen=True, slots=True)
class AtomFragment(Fragment):
    """A fragment of an MMA atom's operands, in the atoms' registers: of atom 0, then of atom 1, along x.

    registers: of one load; ldmatrix brings one of each of as many 8 x 8 matrices of 16 bits, MFMA's loads all of an
    atom's, others one. of_atom: the registers of one atom. atoms: how many atoms a warp has along x.
    k: the atom's k -> k of a tile, within one K of the atom. elements: value of a lane, as the atom counts them -> its
    place among the elements loaded for the atom. Both are as they come, but where a register of the atom has terms of
    several numbers, of which each has a register of its own before it is split.
    """

    registers: int
    of_atom: int
    atoms: int
    k: Layout
    elements: Layout


@dataclass(frozen=True, slots=True)
class Fetch:
    """One operand's way from global memory, for one k-tile.

    participants: the first so many threads fetch. thread_x, thread_k: thread -> first coordinate in the tile.
    element_x, element_k: a thread's element (i, j) -> coordinate relative to its first; (i, j) also indexes its
    registers where the atom goes through registers.
    read_vector: elements per global access. read_mode: the mode ("x" or "k") that they run along.
    """

    atom: CopyAtom
    participants: int
    thread_x: Layout
    thread_k: Layout
    element_x: Layout
    element_k: Layout
    read_vector: int
    read_mode: Literal["x", "k"]

    @property
    def reads(self) -> int:
        """Global accesses of a thread, for one k-tile."""
        return self.element_x.size * self.element_k.size // self.read_vector


@dataclass(frozen=True, slots=True)
class Copy(Fetch):
    """A fetch that ends in shared memory, where every element of the tile lands once.

    threads, values: what the partition is made of: (x, k) -> thread, and the run of a thread's elements per mode.
    write_vector: elements per shared access, along write_mode; for cp.async those of the global one. A thread whose
    loads run along one mode and whose stores run along the other transposes a patch in its registers.
    write: the shared side; steps has modes (i, j, stage) in units of write_vector elements.
    """

    threads: Layout
    values: tuple[Layout, ...]
    write_vector: int
    write_mode: Literal["x", "k"]
    write: Access

    @property
    def writes(self) -> int:
        """Shared accesses of a thread, for one k-tile."""
        return self.element_x.size * self.element_k.size // self.write_vector


@dataclass(frozen=True, slots=True)
class Operand:
    """A or B: dtype, the mode x it shares with C, which global mode is contiguous, its k-tile's extents (BLK_X, BLK_K),
    and how it is fetched: here by each thread for itself, element (i, j) being value i of k = j."""

    name: OperandName
    dtype: str
    x: Mode
    contiguous: Mode | None
    tile: tuple[int, int]
    copy: Fetch


@dataclass(frozen=True, slots=True)
class SharedOperand(Operand):
    """An operand whose k-tiles a block holds in shared memory: copied there once, read as fragments by every thread."""

    copy: Copy
    shared: Shared
    fragment: Fragment


# ---- The program: what happens in which order. A template prints steps; a mutation test deletes them. ----


@dataclass(frozen=True, slots=True)
class CopyTile:
    """Start cp.async of a part of the operand's next k-tile into the write stage.

    first, last: of a thread's pieces, those from first up to last; a piece is an access, (i, j) of the copy with i
    fastest. guards: the predicates it runs under: "x", the row lies inside the operand; "tile", a k-tile is left to
    fetch; "k", the element does not lie before k = 0 (else it lands as zero).
    """

    operand: OperandName
    guards: frozenset[Guard]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LoadTile:
    """Load a part of the operand's next k-tile from global memory into registers; first, last, guards as for CopyTile.

    Those of an operand in shared memory stage it there; those of another are its fragments, slot k for each k.
    """

    operand: OperandName
    guards: frozenset[Guard]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class StoreTile:
    """Store a part of the operand's staging registers into the write stage; its pieces are the shared accesses."""

    operand: OperandName
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Close the group of copies started since the last commit."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until at most `pending` groups of this thread are in flight; 0 waits for copies in no group too.

    PTX ISA: cp.async.wait_group, and cp.async.wait_all for none.
    """

    pending: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of the block meet; shared memory written before is readable after."""


@dataclass(frozen=True, slots=True)
class Advance:
    """Move a cursor on: the k-tile to fetch next, or the stage that is read or written.

    fetch moves both operands on, fetch_a or fetch_b one, where they are not fetched equally far ahead.
    """

    cursor: Literal["fetch", "fetch_a", "fetch_b", "read", "write"]

    @property
    def operands(self) -> tuple[OperandName, ...]:
        """Those whose next k-tile it moves on; none for a stage."""
        moved: dict[str, tuple[OperandName, ...]] = {"fetch": ("a", "b"), "fetch_a": ("a",), "fetch_b": ("b",)}
        return moved.get(self.cursor, ())


@dataclass(frozen=True, slots=True)
class LoadFragment:
    """Load fragments k, k + 1, .. of the read stage, so many, into register slots from `slot` on, both operands.

    k counts by what an atom multiplies at once: by 1, or by the K of an MMA atom.
    """

    k: int
    slot: int
    count: int


@dataclass(frozen=True, slots=True)
class Mma:
    """Multiply the fragments of a slot into the accumulators, in the plan's issue order."""

    slot: int


@dataclass(frozen=True, slots=True)
class Promote:
    """Add what the atoms have summed to the accumulators, in f32, and let them begin anew: a tensor core cuts off what
    lies below the last bit of its sums, and the longer they grow the more."""


Step = CopyTile | LoadTile | StoreTile | Commit | Wait | Barrier | Advance | LoadFragment | Mma | Promote


@dataclass(frozen=True, slots=True)
class Program:
    """prologue once, then steady once per k-tile; then the epilogue."""

    prologue: tuple[Step, ...]
    steady: tuple[Step, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps in the order of the text."""
        return self.prologue + self.steady

    @property
    def slots(self) -> int:
        """How many fragments of each operand a thread holds at a time."""
        return 1 + max(step.slot for step in self.steady if isinstance(step, Mma))


@dataclass(frozen=True, slots=True)
class Plan:
    """One compiled kernel's worth of decisions. `variant` names it within its spec; `cost` orders them, low first.

    atom: what multiplies: one FFMA, or a warp's mma.sync or MFMA. dtype: of C and D; A and B have their own. terms: of
    the atom's type into which the numbers of A and B are split where that is not 1.
    """

    name: str
    about: str
    variant: str
    cost: int
    arch: str
    atom: MmaAtom
    dtype: str
    requirements: Requirements
    tile: CTile
    threads: ThreadMap
    a: Operand
    b: Operand
    stages: int
    program: Program
    order: IssueOrder
    schedule: Schedule
    epilogue: Epilogue
    terms: int = 1

    @property
    def amd(self) -> bool:
        """Whether it is for an architecture of AMD's: warps are wavefronts, and shared memory is LDS."""
        return capability(self.arch) is None

    @property
    def warp_size(self) -> int:
        """Lanes of a warp."""
        return self.tile.lanes.size

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of one block, in bytes."""
        return sum(operand.shared.bytes for operand in self.shared_operands)

    @property
    def uses_atoms(self) -> bool:
        """Whether warps multiply by MMA atoms; else each thread by itself, by FFMAs."""
        return self.atom.layouts.threads.size > 1

    @property
    def products(self) -> int:
        """How many of the atom's make one of A and B: the first term by all of the other's, the next by one less .."""
        return self.terms * (self.terms + 1) // 2

    @property
    def multiplied(self) -> str:
        """The type that is multiplied: A's, or that of the terms into which its numbers are split."""
        return self.atom.a.lower() if self.terms > 1 else self.a.dtype

    @property
    def accumulate(self) -> str:
        """The type of the sums."""
        return self.atom.c.lower() if self.uses_atoms else self.dtype

    @property
    def scalar(self) -> Literal["f32", "f64", "i32"]:
        """The type of alpha and beta, in which sums are scaled, as launchers name it."""
        return "i32" if self.epilogue.first == "s32" else self.epilogue.first

    @property
    def k_blocks(self) -> int:
        """How often a k-tile's k is multiplied: its extent over the atom's K."""
        return self.tile.block[2] // self.atom.layouts.shape_mnk[2]

    @property
    def operands(self) -> tuple[Operand, Operand]:
        return (self.a, self.b)

    def operand(self, name: OperandName) -> Operand:
        return self.a if name == "a" else self.b

    def in_shared(self, name: OperandName) -> SharedOperand:
        """An operand that the program stores to shared memory."""
        return next(each for each in self.shared_operands if each.name == name)

    @property
    def shared_operands(self) -> tuple[SharedOperand, ...]:
        """Those whose k-tiles are in shared memory: both, or none where there are no stages."""
        return tuple(each for each in self.operands if isinstance(each, SharedOperand))
