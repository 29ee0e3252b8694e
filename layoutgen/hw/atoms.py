"""Copy atoms: the instructions that fetch a k-tile from global memory, as the PTX ISA defines them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CopyAtom:
    """A way from global memory: to shared memory, or straight to the registers of the thread that multiplies.

    name: what a spec calls it. widths: bytes one instruction may move, widest first. arch: the oldest architecture.
    through_registers: whether the data waits in registers between a load and a store (so the two sides may differ in
    width and a tile may be transposed on the way), or stays there. source: where the widths are defined.
    """

    name: str
    widths: tuple[int, ...]
    arch: str
    through_registers: bool
    source: str


CP_ASYNC = CopyAtom(
    "cp.async", (16, 8, 4), "sm_80", False, "PTX ISA, Data Movement: cp.async (cp-size 4, 8 or 16; .cg only 16)"
)
LDG_STS = CopyAtom("ldg.sts", (16, 8, 4), "sm_50", True, "PTX ISA, Data Movement: ld.global and st.shared, .v2 and .v4")
LDG = CopyAtom("ldg", (16, 8, 4), "sm_50", True, "PTX ISA, Data Movement: ld.global, .v2 and .v4")

COPY_ATOMS = {atom.name: atom for atom in (CP_ASYNC, LDG_STS, LDG)}
