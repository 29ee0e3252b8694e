"""The issue order: in which order a thread multiplies the fragments of one k."""

from __future__ import annotations

from layoutgen.algebra import Layout
from layoutgen.errors import PlanError
from layoutgen.plan.model import CTile, IssueOrder
from layoutgen.plan.tile import numbers
from layoutgen.spec import Spec


def _nested(tile: CTile) -> dict[str, Layout]:
    """Outer mode -> the order that walks the values of a thread's tile mode by mode."""
    m, n = (layout.size for layout in tile.value_mode)
    return {"m": Layout((n, m), (m, 1)), "n": Layout((m, n), (1, m))}


def plan_order(spec: Spec, tile: CTile) -> IssueOrder:
    """Spec -> IssueOrder.

    Raises PlanError where a layout does not take each of a thread's values once.
    """
    order, nested = spec.tiling.order, _nested(tile)
    if not isinstance(order.walk, Layout):
        return IssueOrder(nested[order.walk], order.serpentine)
    m, n = (layout.size for layout in tile.value_mode)
    if not numbers(order.walk, m * n):
        raise PlanError(
            "the order of multiply-adds must take each of a thread's values once",
            got=f"{order.walk}: {order.walk.size} steps to values up to {order.walk.cosize - 1}",
            allowed=f"{m * n} steps to values 0 .. {m * n - 1}: value (i,j) of {m} x {n} is i + {m}j",
            fix=f"write tiling.order: {nested['m']}, or {nested['n']}, and split or exchange modes of it",
            where=spec.where("tiling.order"),
        )
    return IssueOrder(order.walk, order.serpentine)


def order_words(order: IssueOrder, tile: CTile) -> str:
    """How a thread walks its values, in words."""
    outer = next((mode for mode, layout in _nested(tile).items() if layout == order.layout), None)
    walk = f"by {order.layout}" if outer is None else f"{outer} outer, {'nm'[outer == 'n']} inner"
    return walk + (", to and fro" if order.serpentine else "")
