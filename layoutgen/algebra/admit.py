"""What a Layout may be built from. The first two functions only read, at speed; ``admitted`` says what is wrong."""

from __future__ import annotations

from typing import Any

from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.runtime import RuntimeInt
from layoutgen.errors import LayoutError


def compact_of(shape: Any, extents: list[int], steps: list[int], place: int = 1) -> int:
    """Append the leaves and their compact strides, from ``place`` on; the next place.

    It is 0, at some point, if a leaf isn't a positive int or nests in something but tuples.
    """
    for n in shape if type(shape) is tuple else (shape,):
        if type(n) is int:
            extents.append(n)
            if n > 1:
                steps.append(place)
                place *= n
            elif n == 1:
                steps.append(0)
            else:
                return 0
        elif type(n) is tuple:
            place = compact_of(n, extents, steps, place)
            if not place:
                return 0
        else:
            return 0
    return place


def pairs_of(shape: Any, stride: Any, extents: list[int], steps: list[int]) -> bool:
    """Append the leaves of both; False, at some point, unless they nest alike and hold only proper ints."""
    if type(shape) is not tuple or type(stride) is not tuple:
        extents.append(shape)
        steps.append(stride)
        return type(shape) is int and type(stride) is int and shape > 0
    if len(shape) != len(stride):
        return False
    for n, d in zip(shape, stride):
        if type(n) is int and type(d) is int and n > 0:
            extents.append(n)
            steps.append(d)
        elif type(n) is not tuple or not pairs_of(n, d, extents, steps):
            return False
    return True


def admitted(t: Any, what: str) -> Any:
    """``t`` in plain tuples, once its leaves are known to be of the kinds that a shape or a stride may hold."""
    if isinstance(t, tuple):
        return tuple([admitted(mode, what) for mode in t])
    if type(t) is not int and not isinstance(t, RuntimeInt if what == "shape" else (RuntimeInt, ScaledBasis)):
        raise LayoutError(
            f"a {what} is an int or a nested tuple of ints", got=f"{t!r} of type {type(t).__name__} in the {what}"
        )
    if what == "shape" and type(t) is int and t < 1:
        raise LayoutError("every extent of a shape is at least 1", got=t)
    return t
