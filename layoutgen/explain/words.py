"""Small words that several sections use: lists of numbers, counts, and calls spelled as short as they can be."""

from __future__ import annotations

from collections.abc import Sequence

from layoutgen.algebra import Layout, coalesce, evaluate
from layoutgen.errors import LayoutError
from layoutgen.plan.model import Plan

MOST_LISTED = 5


def call(expression: str) -> Layout:
    """The layout that an expression gives. Raises LayoutError, which names the call, if it gives none."""
    try:
        value = evaluate(expression)
    except LayoutError as error:
        raise LayoutError(f"{expression} has no result, for {error.rule}") from error
    assert isinstance(value, Layout)  # the expressions here are ours, and all make layouts
    return value


def coalesced(expression: str) -> str:
    """The expression, within coalesce where that changes what it gives."""
    value = call(expression)
    return expression if str(coalesce(value)) == str(value) else f"coalesce({expression})"


def as_vectors(expression: str, width: int) -> str:
    """Steps in elements -> the call that makes them steps of whole accesses; as the planner's in_vectors."""
    if width == 1:
        return coalesced(expression)
    return coalesced(f"upcast({coalesced(expression)}, {width})")


def is_identity(layout: Layout) -> bool:
    return not isinstance(layout.shape, tuple) and layout.stride == 1


def runs(numbers: Sequence[int]) -> str:
    """0 1 2 3 16 17 18 19 -> "0..3, 16..19"; many runs are cut short."""
    ordered = sorted(set(numbers))
    starts = [i for i, each in enumerate(ordered) if i == 0 or each != ordered[i - 1] + 1]
    pieces = []
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        first, last = ordered[start], ordered[end - 1]
        pieces.append(str(first) if first == last else f"{first}..{last}")
    return shortened(pieces)


def shortened(pieces: Sequence[object], most: int = MOST_LISTED) -> str:
    """a, b, c or, of more than `most`, a, b, .., z."""
    words = list(map(str, pieces))
    return ", ".join(words if len(words) <= most else [*words[:2], "..", words[-1]])


def plural(count: int, noun: str) -> str:
    ending = "es" if noun.endswith("s") else "s"
    return f"{count} {noun}" + ("" if count == 1 else ending)


def layout_at(plan: Plan, path: str) -> Layout:
    """The layout of the plan at a path such as "tile.value_mode.0"."""
    found: object = plan
    for name in path.split("."):
        found = found[int(name)] if isinstance(found, tuple) and name.isdigit() else getattr(found, name)
    if not isinstance(found, Layout):
        raise TypeError(f"{path} of a plan is no layout")
    return found
