"""Every memory access of a plan's kernel: how often it stands in the text, and what one execution of it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from layoutgen.plan.model import CopyTile, LoadFragment, LoadTile, Plan, Step, StoreTile
from layoutgen.plan.storage import ITEMSIZE


def static_accesses(plan: Plan) -> Counter[tuple[str, int]]:
    """(opcode, bytes per thread) -> how often the instruction stands in the kernel's text.

    Loops over pieces are unrolled and the loop over k-tiles is not, so a step counts as often as the program names it.
    """
    counts = _moves(plan, plan.program.steps)
    stores = plan.tile.value_mode[0].size * plan.tile.value_mode[1].size // plan.epilogue.vector
    paths = 2 if plan.epilogue.read_c_if_beta else 1  # with and without C
    counts["st.global", plan.epilogue.bytes] += paths * stores
    counts["ld.global", plan.epilogue.bytes] += stores
    return counts


def turn_accesses(plan: Plan) -> Counter[tuple[str, int]]:
    """(opcode, bytes per thread) -> how often one thread executes it for each k-tile of the steady loop."""
    return _moves(plan, plan.program.steady)


def _moves(plan: Plan, steps: Iterable[Step]) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for step in steps:
        if isinstance(step, LoadFragment):
            for operand in plan.operands:
                load = operand.fragment.load
                counts[load.opcode, load.bytes] += operand.fragment.vectors
        elif isinstance(step, CopyTile | LoadTile | StoreTile):
            operand = plan.a if step.operand == "a" else plan.b
            copy = operand.copy
            elements = copy.element_x.size * copy.element_k.size
            if isinstance(step, LoadTile):
                counts["ld.global", ITEMSIZE[operand.dtype] * copy.read_vector] += elements // copy.read_vector
            else:
                counts[copy.write.opcode, copy.write.bytes] += elements // copy.write_vector
    return counts
