"""What a step of a derivation may claim of its result; each can be checked by evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from layoutgen.algebra.layout import Layout
from layoutgen.algebra.slicing import Coordinate, View
from layoutgen.algebra.swizzle import ComposedLayout, Swizzle

Function: TypeAlias = "Layout | ComposedLayout | Swizzle | View"


@dataclass(frozen=True, slots=True)
class Same:
    """result(i) == chain[0](chain[1](.. (i))) for every index i of the result."""

    chain: tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class SameOffsets:
    """The result reaches the offsets of ``other``, each as often; the order of indices may differ."""

    other: Layout | ComposedLayout


@dataclass(frozen=True, slots=True)
class SameSet:
    """The result reaches the offsets of ``other`` and no more, however often."""

    other: Layout | ComposedLayout


@dataclass(frozen=True, slots=True)
class Disjoint:
    """No two different pairs of an offset of ``other`` and one of the result have the same sum."""

    other: Layout | ComposedLayout


@dataclass(frozen=True, slots=True)
class Undoes:
    """other(result(i)) == i for every index i of the result."""

    other: Layout | ComposedLayout


@dataclass(frozen=True, slots=True)
class Finds:
    """other(result(o)) == o for every offset o of ``offsets``."""

    other: Layout | ComposedLayout
    offsets: Layout | ComposedLayout


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Mode k of the result is parts[k], as a function."""

    parts: tuple[Layout, ...]


@dataclass(frozen=True, slots=True)
class Units:
    """As a set, the result's offsets are those of ``other`` over n, rounded down, or up.

    Of a swizzle: result(i) == other(i * n) // n.
    """

    other: Layout | ComposedLayout | Swizzle
    n: int
    up: bool = False


@dataclass(frozen=True, slots=True)
class SameBits:
    """The result, in elements of ``new`` bits, touches the bits that ``other`` touches in elements of ``old`` bits.

    The element at offset o has the bits o * width + k, or, ``backward`` along a stride of -1, o * width - k, where
    0 <= k < width. Of a swizzle, which takes old = n and new = 1: result(n * i + k) == n * other(i) + k, 0 <= k < n.
    """

    other: Layout | ComposedLayout | Swizzle
    old: int
    new: int
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """result(i) == other(coordinate with index i filled in where it is ``_``)."""

    other: Layout | ComposedLayout
    coordinate: Coordinate


Claim: TypeAlias = "Same | SameOffsets | SameSet | Disjoint | Undoes | Finds | SideBySide | Units | SameBits | Slice"
