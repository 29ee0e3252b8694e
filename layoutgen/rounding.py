"""How far rounding lets a right product be from the exact one, by its types."""

from __future__ import annotations

from typing import NamedTuple

from layoutgen.plan.model import Plan

# Unit roundoff: half the distance from 1 to the next number; integers are exact.
ROUNDOFF = {
    "f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "e4m3": 2.0**-4, "e5m2": 2.0**-3,
    "s32": 0.0, "s8": 0.0, "u8": 0.0,
}  # fmt: skip
EACH_STEP = 2.0**-21  # what a step of an epilogue may add in f32, of the size of what it computes on
_TF32_FACTOR = 2.0**-10  # what leaving out its low 13 bits takes from an f32, of its size


class Types(NamedTuple):
    """The element types of a, b and c, and of the sums, as specs name them."""

    a: str = "f32"
    b: str = "f32"
    c: str = "f32"
    accumulate: str = "f32"

    @staticmethod
    def of(plan: Plan) -> Types:
        return Types(plan.a.dtype, plan.b.dtype, plan.dtype, plan.accumulate)

    def __str__(self) -> str:
        return f"a {self.a}, b {self.b}, c {self.c}, summed in {self.accumulate}"

    def allowed(self, roundings: int) -> float:
        """The largest |d - a b| / (|a| |b|) of sums that are rounded so often.

        A tensor core cuts off what lies below the last bit of its sums, which is twice as coarse (Fasi, Higham,
        Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7, 2021); tf32 leaves
        out the low bits of both factors; and what is stored in another type is rounded once more.
        """
        cut = 2 if self.accumulate == "f32" != self.a else 1
        stored = ROUNDOFF[self.c] if self.c != self.accumulate else 0.0
        return roundings * cut * ROUNDOFF[self.accumulate] + stored + (2 * _TF32_FACTOR if self.a == "tf32" else 0.0)


F32 = Types()
