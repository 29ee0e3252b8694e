"""The issue order: in which order a thread multiplies the fragments of one k."""

from __future__ import annotations

from layoutgen.algebra import Layout
from layoutgen.errors import PlanError
from layoutgen.plan.issue import IssueOrder
from layoutgen.plan.tile import numbers
from layoutgen.spec import Spec


def _nested(m: int, n: int) -> dict[str, Layout]:
    """Outer mode -> the order that walks m x n values of a thread, or atoms of a warp, mode by mode."""
    return {"m": Layout((n, m), (m, 1)), "n": Layout((m, n), (1, m))}


def plan_order(spec: Spec, m: int, n: int) -> IssueOrder:
    """Spec, and how many values of a thread (or atoms of a warp) it has in m and n -> IssueOrder.

    Raises PlanError where a layout does not take each of them once.
    """
    order, nested = spec.tiling.order, _nested(m, n)
    if not isinstance(order.walk, Layout):
        return IssueOrder(nested[order.walk], order.serpentine, (m, n))
    if not numbers(order.walk, m * n):
        raise PlanError(
            "the order of multiply-adds must take each of a thread's values once",
            got=f"{order.walk}: {order.walk.size} steps to values up to {order.walk.cosize - 1}",
            allowed=f"{m * n} steps to values 0 .. {m * n - 1}: value (i,j) of {m} x {n} is i + {m}j",
            fix=f"write tiling.order: {nested['m']}, or {nested['n']}, and split or exchange modes of it",
            where=spec.where("tiling.order"),
        )
    return IssueOrder(order.walk, order.serpentine, (m, n))


def order_words(order: IssueOrder) -> str:
    """How a thread walks its values, or a warp its atoms, in words."""
    outer = next((mode for mode, layout in _nested(*order.extents).items() if layout == order.layout), None)
    walk = f"by {order.layout}" if outer is None else f"{outer} outer, {'nm'[outer == 'n']} inner"
    return walk + (", to and fro" if order.serpentine else "")
