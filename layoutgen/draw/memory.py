"""Plan -> a Drawing of an operand's k-tile: in shared memory, and as it is copied."""

from __future__ import annotations

import numpy as np

from layoutgen.algebra import Offsets
from layoutgen.draw.cells import merge
from layoutgen.draw.model import MOST_BOXES, Box, Drawing, Key, Panel, Tick, beside, stacked
from layoutgen.draw.palette import TONES, tone
from layoutgen.facts import BANK_BYTES, BANKS, copy_owners, first_word, shared_words
from layoutgen.plan.model import Operand, Plan
from layoutgen.plan.storage import ITEMSIZE

MOST_WORDS = 1 << 12  # of a stage whose cells tell their element; of larger ones colours tell k
MOST_REGIONS = 16  # of a panel's passes that get an outline; of finer ones the lines would hide the cells
FOLD = 32  # elements of x in one panel of a copy


def tile_extents(plan: Plan, operand: Operand) -> tuple[int, int]:
    """(BLK_X, BLK_K) of the operand's k-tile."""
    block_m, block_n, block_k = plan.tile.block
    return (block_m if operand.x == "m" else block_n, block_k)


def smem_level(plan: Plan, operand: Operand) -> Drawing:
    """One stage of an operand's shared memory, a row of banks at a time: which (x, k) each word holds."""
    words = shared_words(operand.shared)
    extent, block_k = words.shape
    stage = operand.shared.stage_elements
    first = first_word(plan, operand)
    before = first % BANKS  # words of the first row that are another operand's
    rows = -(-(before + stage) // BANKS)
    holds = np.full(rows * BANKS, -2, dtype=np.int64)  # k of the element in each word, -1 padding, -2 not this stage
    holds[before : before + stage] = -1
    x, k = np.indices(words.shape)
    cells = before + words
    holds[cells] = k
    boxes = [
        Box(r.row, r.column, r.rows, r.columns, {-1: "pad", -2: "panel"}.get(r.value, tone(r.value)))
        for r in merge(holds.reshape(rows, BANKS))
    ]
    labels = (
        ()
        if words.size > MOST_WORDS
        else tuple(
            Box(cell // BANKS, cell % BANKS, 1, 1, "", f"{i},{j}")
            for cell, i, j in sorted(zip(*(each.reshape(-1).tolist() for each in (cells, x, k)), strict=True))
        )
    )
    name, mode = operand.name.upper(), operand.x
    padding = stage - words.size
    held = f"({mode},k)" if labels else "k"
    panel = Panel(
        f"smem_{operand.name}",
        "bank",
        rows,
        BANKS,
        (31.0, 15.0),
        tuple(boxes),
        labels,
        top=tuple(Tick(bank, str(bank)) for bank in range(BANKS)),
        left=tuple(Tick(row, str(max(0, row * BANKS - before))) for row in range(rows)),
        grid=True,
    )
    return Drawing(
        f"{plan.name}: {name}'s {extent} × {block_k} tile in shared memory",
        f"Each cell is a word of {BANK_BYTES} bytes with the {held} that it holds; at the left the first word of "
        f"each row, above it the bank. (x, k, stage) → word = {operand.shared.layout}. One stage of {plan.stages}: "
        f"{stage} words"
        + (f", {padding} of them padding." if padding else ", no padding.")
        + (f" {name} begins at word {first} of the block's shared memory, in bank {before}." if first else ""),
        beside([panel]),
        (
            *(
                Key(tone(k), f"k = {k}" + (f", {k + TONES}" if k + TONES < block_k else ""))
                for k in range(min(TONES, block_k))
            ),
            *([Key("pad", "padding: holds nothing")] if padding else []),
        ),
    )


def copy_level(plan: Plan, operand: Operand) -> Drawing:
    """Which thread copies which (x, k) of the k-tile in which pass. A pass is one access to shared memory a thread."""
    copy = operand.copy
    extent, block_k = tile_extents(plan, operand)
    owners = copy_owners(copy, (extent, block_k))
    number, passes = copy_passes(operand)
    at = number[owners.element_x, owners.element_k]
    piece = owners.thread * passes + at
    mode = operand.x
    across = mode == "n"  # B is k x n: its n runs right
    flat = len(merge(piece)) > MOST_BOXES
    panels = []
    for first in range(0, extent, FOLD):
        part = piece[first : first + FOLD]
        grid = part.T if across else part
        boxes = tuple(
            Box(
                r.row,
                r.column,
                r.rows,
                r.columns,
                tone(r.value % passes),
                str(r.value // passes),
                f"p{r.value % passes}",
            )
            for r in merge(grid)
        )
        regions = merge(grid % passes)
        outlines = tuple(Box(r.row, r.column, r.rows, r.columns, "") for r in regions)
        xs = tuple(Tick(i, str(first + i)) for i in range(min(FOLD, extent - first)))
        ks = tuple(Tick(k, str(k)) for k in range(block_k))
        panels.append(
            Panel(
                f"copy_{operand.name}{first}",
                f"{mode} = {first} .. {min(first + FOLD, extent) - 1}",
                grid.shape[0],
                grid.shape[1],
                (24.0, 23.0),
                boxes,
                top=xs if across else ks,
                left=ks if across else xs,
                flat=flat,
                outlines=outlines if len(regions) <= MOST_REGIONS else (),
            )
        )
    itemsize = ITEMSIZE[operand.dtype]
    name = operand.name.upper()
    numbers = "Too fine for the numbers of threads; colours tell" if flat else "Numbers are threads, p is"
    times = "pass" if passes == 1 else "passes"
    return Drawing(
        f"{plan.name}: which thread copies which element of {name}",
        f"{numbers} the pass in which they copy: {passes} {times} of {copy.participants} threads. A "
        f"thread reads {copy.read_vector * itemsize} bytes of global memory at a time and writes "
        f"{copy.write_vector * itemsize} to shared memory ({copy.atom.name}, variant {plan.variant}). {mode} runs "
        + ("right, k down." if across else "down, k right."),
        stacked(panels) if across else beside(panels, gap=16),
        tuple(
            Key(tone(p), f"pass {p}" + (f", {p + TONES}" if p + TONES < passes else ""))
            for p in range(min(TONES, passes))
        ),
    )


def copy_passes(operand: Operand) -> tuple[Offsets, int]:
    """A thread's element (i, j) -> the pass that moves it to shared memory, and how many passes there are."""
    copy = operand.copy
    i, j = np.indices((copy.element_x.size, copy.element_k.size))
    vector = copy.write_vector
    vector_x, vector_k = (vector, 1) if copy.vector_mode == "x" else (1, vector)
    across = copy.element_x.size // vector_x
    return i // vector_x + across * (j // vector_k), across * (copy.element_k.size // vector_k)
