"""Derivations: how an operation reaches its result, or its refusal, in steps that each claim something checkable.

The steps restate the operations' definitions (CUTLASS ``media/docs/cpp/cute/02_layout_algebra.md``). The result is the
operation's own, so that an explanation explains what really comes out.
"""

# The modules that only register their derivations.
from layoutgen.algebra.explain import compose, inverse, recast, shape, tile  # noqa: F401
from layoutgen.algebra.explain.claims import (
    Claim,
    Disjoint,
    Finds,
    Function,
    Same,
    SameBits,
    SameOffsets,
    SameSet,
    SideBySide,
    Slice,
    Undoes,
    Units,
)
from layoutgen.algebra.explain.steps import Explanation, Step, explain, explained

EXPLAINED = explained()

__all__ = [
    "EXPLAINED",
    "Claim",
    "Disjoint",
    "Explanation",
    "Finds",
    "Function",
    "Same",
    "SameBits",
    "SameOffsets",
    "SameSet",
    "SideBySide",
    "Slice",
    "Step",
    "Undoes",
    "Units",
    "explain",
]
