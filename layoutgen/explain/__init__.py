"""Spec and Plan -> a page: how the tiling is composed, with the call that makes each layout, and who owns what.

The plan's layouts are shown as they are; the calls restate how the planner made them, and tests evaluate every one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutgen.errors import RequestError
from layoutgen.explain.follow import Element, SharedSource, Source, element, element_section
from layoutgen.explain.model import Explanation, Rows, Section, Step, Text
from layoutgen.explain.operands import operand_section
from layoutgen.explain.program import program_section
from layoutgen.explain.thread import thread_section
from layoutgen.explain.tile import tile_section
from layoutgen.plan.model import Plan
from layoutgen.spec import Spec

LEGEND = Section(
    "How to read it: a layout shape:stride is a function of an index",
    (
        Text(
            "(4,4):(1,16) takes (i,j), or the index i + 4j, to i + 16j. composition(A, B) is A after B; "
            "complement(V, n): where copies of V start to fill 0 .. n-1; right_inverse(L): the index at which L has a "
            "value. --steps derives each call. A word is 4 bytes, a sector 32."
        ),
    ),
)


def explain(
    spec: Spec,
    plans: Sequence[Plan],
    *,
    variant: str | None = None,
    coordinate: tuple[int, int] | None = None,
    thread: int | None = None,
    findings: Sequence[str] = (),
    legal: bool = True,
) -> Explanation:
    """Spec and its plans (none where its levels do not compose) -> Explanation.

    Args:
        variant: which plan, by its name; default the first, the primary one.
        coordinate: the (m, n) of the block tile of C to follow; default C(5,77) of the matrix, modulo the tile.
        thread: the thread of the block to follow as well.
        findings: what check says of the spec, to be shown last; legal: whether it may be built.

    Raises:
        RequestError: there is no such variant, coordinate or thread.
    """
    names = tuple(plan.variant for plan in plans)
    if variant is not None and plans and variant not in names:
        raise RequestError.of_variant(variant, names)
    if not plans:
        told = (LEGEND, tile_section(spec, None))
        return Explanation(spec.name, spec.about, None, (), legal, told, tuple(findings))
    plan = plans[names.index(variant)] if variant else plans[0]
    found = element(plan, coordinate)
    sections: tuple[Section, ...] = (
        LEGEND,
        tile_section(spec, plan),
        *(operand_section(plan, operand) for operand in plan.operands),
        program_section(plan),
        element_section(plan, found),
    )
    followed: dict[str, Any] = {"coordinate": found.to_json()}
    if thread is not None:
        section, data = thread_section(plan, thread)
        sections, followed = (*sections, section), {**followed, **data}
    return Explanation(spec.name, spec.about, plan.variant, names, legal, sections, tuple(findings), followed)


__all__ = ["Element", "Explanation", "Rows", "Section", "SharedSource", "Source", "Step", "Text", "explain"]
