"""Plan -> a Drawing of its accesses to shared memory: the banks that the lanes of a warp ask for, phase by phase."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from layoutgen.draw.model import Box, Drawing, Key, Panel, Tick, beside, rows
from layoutgen.draw.palette import tone
from layoutgen.facts import (
    BANK_BYTES,
    BANKS,
    Execution,
    access_facts,
    first_word,
    fragment_executions,
    write_executions,
)
from layoutgen.facts.banks import Phase
from layoutgen.hw.warp_atoms import WARP
from layoutgen.plan.model import Plan, SharedOperand

UNIT = (22.0, 17.0)
APART = 8.0  # pixels between the lanes and their wavefronts


def banks_level(plan: Plan) -> Drawing:
    """What one execution by a warp asks of the banks, for each access: of its executions in a k-tile the worst."""
    groups, worst = [], []
    told = {each.name: each for each in access_facts(plan)}
    each_takes = {name: each.wavefronts / each.requests for name, each in told.items() if each.opcode == "cp.async"}
    for reads in (True, False):
        panels: list[Panel] = []
        for operand in plan.shared_operands:
            every = (fragment_executions if reads else write_executions)(plan, operand)
            shown = max(every, key=lambda each: (each.wavefronts, -each.conflict_free))  # the first of those
            worst.append((shown, sum(each.wavefronts == shown.wavefronts for each in every), len(every)))
            panels += _panels(
                shown, brought_k(plan, operand, shown), first_word(plan, operand), each_takes.get(shown.name)
            )
        groups.append(panels)
    every_phase = [phase for shown, *_ in worst for phase in shown.phases]
    least = any(shown.opcode == "cp.async" for shown, *_ in worst)
    return Drawing(
        f"{plan.name}: the banks that a warp's accesses to shared memory hit",
        "Rows are lanes, columns banks; a cell is the word, counted from where its operand begins, that the lane reads "
        "or writes there. Heavy lines part the phases in which the hardware serves a warp, at the right are the "
        "wavefronts that each takes: one, if no bank holds two of its words. "
        + (
            "Those of cp.async are the fewest, since its data may arrive piece by piece; beside them, what check "
            "estimates for each. "
            if least
            else ""
        )
        + f"{_alike(worst)} Variant {plan.variant}.",
        rows(_spread(panels) for panels in groups),
        (
            Key("t0", "one colour for each phase; lanes that ask for the same word share it"),
            *(
                [Key("mark", "conflict: other words of the phase lie in the same bank")]
                if any(phase.wavefronts > 1 for phase in every_phase)
                else []
            ),
        ),
    )


def _alike(worst: Iterable[tuple[Execution, int, int]]) -> str:
    """Whether the executions that are shown stand for all."""
    fewer = [f"{shown.name} ({alike} of {of} take as many)" for shown, alike, of in worst if alike < of]
    if not fewer:
        return "Each is one execution of many in a k-tile; the others take as many."
    return f"Shown is the worst in a k-tile: of {', '.join(fewer)}, the others fewer."


def _spread(panels: list[Panel]) -> tuple[Panel, ...]:
    """Lanes and wavefronts of one operand, then those of the other."""
    first, second = beside(panels[:2], APART), beside(panels[2:], APART)
    right = max(panel.x + panel.width for panel in first) + 40
    down = max(panel.y for panel in (*first, *second))
    return tuple(panel.at(panel.x, down) for panel in first) + tuple(
        panel.at(panel.x + right, down) for panel in second
    )


def brought_k(plan: Plan, operand: SharedOperand, shown: Execution) -> range:
    """The k that a fragment's load brings, of atoms those that they multiply at once; none for a copy."""
    if shown.k is None:
        return range(0)
    if plan.uses_atoms:
        atom_k = plan.atom.layouts.shape_mnk[2]
        return range(shown.k * atom_k, (shown.k + 1) * atom_k)
    return range(shown.k, shown.k + operand.fragment.depth)


def _panels(shown: Execution, brought: range, first: int, estimate: float | None) -> list[Panel]:
    """The lanes over the banks, and the wavefronts of each phase.

    brought: the k of a fragment's load. first: the operand's first word. estimate: of a cp.async, as the facts
    have it.
    """
    boxes = [Box(0, 0, WARP, BANKS, "panel")]
    total = []
    for index, phase in enumerate(shown.phases):
        words = {lane: _words(shown, lane) for lane in phase.lanes}
        of_bank: dict[int, set[int]] = defaultdict(set)
        for word in (word for each in words.values() for word in each):
            of_bank[word % BANKS].add(word)
        for lane, each in words.items():
            for word in each:
                look = "mark" if len(of_bank[word % BANKS]) > 1 else tone(index)
                boxes.append(Box(lane, word % BANKS, 1, 1, look, str(word - first)))
        count = phase.wavefronts
        total.append(Box(phase.lanes[0], 0, _extent(phase), 1, "mark" if count > 1 else tone(index), str(count)))
    edges = tuple(phase.lanes[0] for phase in shown.phases[1:])
    lanes = Panel(
        f"banks_{shown.name}",
        _title(shown, brought, estimate),
        WARP,
        BANKS,
        UNIT,
        tuple(boxes),
        top=tuple(Tick(bank, str(bank)) for bank in range(BANKS)),
        left=tuple(Tick(lane, f"lane {lane}") for lane in range(WARP)),
        grid=True,
        heavy_rows=edges,
    )
    waves = Panel(
        f"wavefronts_{shown.name}", "", WARP, 1, (58.0, UNIT[1]), tuple(total),
        top=(Tick(0, "wavefronts"),), heavy_rows=edges, biggest=14.0,
    )  # fmt: skip
    return [lanes, waves]


def _extent(phase: Phase) -> int:
    return phase.lanes[-1] - phase.lanes[0] + 1


def _words(shown: Execution, lane: int) -> range:
    """The words of the block's shared memory that a lane asks for."""
    address = shown.addresses[lane]
    begin = (address or 0) // BANK_BYTES
    return range(begin, begin + max(1, shown.bytes // BANK_BYTES)) if address is not None else range(0)


def _title(shown: Execution, brought: range, estimate: float | None) -> str:
    """Which execution, and what it takes."""
    which = f"warp {shown.warp}, instruction {shown.instruction}"
    which += f" of k = {brought[0]}" if brought else ""
    which += f" .. {brought[-1]}" if len(brought) > 1 else ""
    least = "" if estimate is None else "at least "
    plural = "" if shown.wavefronts == 1 else "s"
    free = "no conflict" if shown.wavefronts == shown.conflict_free else f"{shown.conflict_free} without conflicts"
    return (
        f"{shown.name}, {shown.opcode} of {shown.bytes} bytes: {least}{shown.wavefronts} wavefront{plural}"
        f"{'' if estimate is None else f' (check: {estimate:.3g})'}, {free}  "
        f"({which})"
    )
