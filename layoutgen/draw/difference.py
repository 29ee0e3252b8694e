"""Two plans -> a Drawing of both side by side, hatched where they differ: who owns C, what lies in shared memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from layoutgen.algebra import Offsets
from layoutgen.draw.cells import merge
from layoutgen.draw.memory import held_words
from layoutgen.draw.model import MOST_BOXES, Box, Drawing, Key, Panel, Tick, beside, rows
from layoutgen.draw.palette import TONES, alike, tone
from layoutgen.facts import BANKS, NOBODY, COwners, c_owners
from layoutgen.plan.model import OperandName, Plan, SharedOperand

LONGEST, BIGGEST = 520.0, 16.0  # pixels of the longest side of a block tile, and of an element
CELL = (16.0, 6.5)  # of a word
MOST_ROWS = 96  # of words that a picture of shared memory shows
NOTHING = -1  # what a word holds that is padding
FAR = 1 << 20  # more than any tile's extent, so that one number tells (x, k) in tiles of any size

Changed = NDArray[np.bool_]


def difference_drawing(a: Plan, b: Plan) -> Drawing:
    """C by warp and lane of both, and those of the operands' shared tiles that differ.

    Where only one has an element, or a word, that is a difference too. Shared memory is compared word by word, from
    where an operand's stage begins.
    """
    plans = (a, b)
    names = (a.name, b.name) if a.name != b.name else (f"{a.name} (first)", f"{b.name} (second)")
    owners = [c_owners(plan.tile, plan.threads) for plan in plans]
    changed = _changed(owners[0].thread, owners[1].thread)
    told = [f"C: {_count(changed)} elements have another owner."]
    side = min(BIGGEST, LONGEST / max(max(plan.tile.block[:2]) for plan in plans))
    groups = [beside([_owners(*each, side) for each in zip(names, owners, changed, strict=True)], 36)]
    for letter in ("a", "b"):
        words, panels = _of_operand(plans, names, letter)
        told.append(words)
        groups += [panels] if panels else []
    shared = len(groups) > 1
    warps = max(plan.tile.warps.size for plan in plans)
    deepest = max(plan.tile.block[2] for plan in plans if plan.shared_operands) if shared else 0
    notes = ["Numbers in C are lanes."] if any(_has_numbers(each.thread) for each in owners) else []
    notes += ["In shared memory 32 words make a row."] if shared else []
    return Drawing(
        f"{names[0]} and {names[1]}: what differs",
        " ".join(["Hatched: what differs.", *told, *notes]),
        rows(groups, gap=20),
        (
            Key("pad", "differs"),
            *(Key(tone(each), f"warp {alike(each, warps)}") for each in range(min(TONES, warps))),
            *(Key(tone(each), f"k = {alike(each, deepest)}") for each in range(min(TONES, deepest))),
            *([Key("panel", "holds nothing")] if shared else []),
        ),
    )


def _of_operand(plans: tuple[Plan, Plan], names: tuple[str, str], name: OperandName) -> tuple[str, tuple[Panel, ...]]:
    """What to say of an operand in shared memory, and what to show: nothing where it lies alike, or nowhere."""
    upper = name.upper()
    both = [(label, plan.in_shared(name)) for label, plan in zip(names, plans, strict=True) if plan.shared_operands]
    if len(both) < 2:
        where = f"only in {both[0][0]}" if both else "in neither"
        shown = [_shared(label, operand, _held(operand), None) for label, operand in both]
        return f"{upper} is in shared memory {where}.", beside(shown) if shown else ()
    held = [_held(operand) for _, operand in both]
    differs = _changed(*held)
    if not any(each.any() for each in differs):
        return f"{upper} lies alike in shared memory.", ()
    pieces = zip(both, held, differs, strict=True)
    return (
        f"{upper} in shared memory: {_count(differs)} words of a stage hold something else.",
        beside([_shared(label, operand, words, changed) for (label, operand), words, changed in pieces], 36),
    )


def _has_numbers(thread: Offsets) -> bool:
    """Whether lanes are not too fine for numbers."""
    return len(merge(thread)) <= MOST_BOXES


def _changed(a: Offsets, b: Offsets) -> tuple[Changed, Changed]:
    """Two grids -> where each differs from the other, which lacks what lies outside it."""
    common = tuple(slice(min(extents)) for extents in zip(a.shape, b.shape, strict=True))
    found = []
    for grid in (a, b):
        differs = np.ones(grid.shape, dtype=bool)
        differs[common] = a[common] != b[common]
        found.append(differs)
    return found[0], found[1]


def _count(changed: tuple[Changed, Changed]) -> str:
    """How many of how many differ, of both sides where they are not as large."""
    each = [f"{int(mine.sum()):,} of {mine.size:,}" for mine in changed]
    return each[0] if each[0] == each[1] else " and ".join(each)


def _hatching(changed: Changed) -> list[Box]:
    """Boxes over what differs; over all of it, where it is scattered more finely than a picture can show."""
    parts = [each for each in merge(changed.astype(np.int64)) if each.value]
    if len(parts) > MOST_BOXES:
        return [Box(0, 0, changed.shape[0], changed.shape[1], "pad")]
    return [Box(each.row, each.column, each.rows, each.columns, "pad") for each in parts]


def _owners(name: str, owners: COwners, changed: Changed, side: float) -> Panel:
    """C by warp and lane; where lanes are too fine for numbers, by warp."""
    thread, lanes = owners.thread, owners.lanes
    warps = merge(owners.warp)
    boxes = [
        Box(r.row, r.column, r.rows, r.columns, tone(r.value // lanes), str(r.value % lanes)) for r in merge(thread)
    ]
    if not _has_numbers(thread):
        boxes = [Box(r.row, r.column, r.rows, r.columns, tone(r.value), f"warp {r.value}") for r in warps]
    block_m, block_n = thread.shape
    step = max(8, 2 ** int(np.log2(max(block_m, block_n) / 8)))
    return Panel(
        f"c_{name}",
        f"{name}: C {block_m} × {block_n}",
        block_m,
        block_n,
        (side, side),
        (*boxes, *_hatching(changed)),
        top=tuple(Tick(n, str(n)) for n in range(0, block_n, step)),
        left=tuple(Tick(m, str(m)) for m in range(0, block_m, step)),
        outlines=tuple(Box(r.row, r.column, r.rows, r.columns, "") for r in warps),
    )


def _held(operand: SharedOperand) -> Offsets:
    """What each word of a stage holds, x + FAR k or NOTHING; shape (rows, 32)."""
    x, k = held_words(operand)
    held = np.full(-(-k.size // BANKS) * BANKS, NOTHING, dtype=np.int64)
    held[: k.size] = np.where(k == NOBODY, NOTHING, x + FAR * k)
    return held.reshape(-1, BANKS)


def _shared(name: str, operand: SharedOperand, held: Offsets, changed: Changed | None) -> Panel:
    """A stage of an operand's shared memory, coloured by k; changed: None where there is no other to compare it to."""
    k = np.where(held == NOTHING, NOTHING, held // FAR)[:MOST_ROWS]
    boxes = [Box(r.row, r.column, r.rows, r.columns, "panel" if r.value < 0 else tone(r.value)) for r in merge(k)]
    shown = len(k)
    cut = f", the first {shown * BANKS} words" if shown < len(held) else ""
    return Panel(
        f"smem_{operand.name}_{name}",
        f"{name}: {operand.name.upper()} in shared memory{cut}",
        shown,
        BANKS,
        CELL,
        (*boxes, *([] if changed is None else _hatching(changed[:MOST_ROWS]))),
        left=tuple(Tick(row, str(row * BANKS)) for row in range(0, shown, 4)),
    )
