"""Plan -> a Drawing of an operand's k-tile: in shared memory, and as it is copied or loaded."""

from __future__ import annotations

import numpy as np

from layoutgen.algebra import Offsets
from layoutgen.draw.cells import merge
from layoutgen.draw.model import MOST_BOXES, Box, Drawing, Key, Panel, Tick, beside, stacked
from layoutgen.draw.palette import TONES, alike, tone
from layoutgen.facts import (
    BANK_BYTES,
    BANKS,
    NOBODY,
    CopyOwners,
    access_facts,
    copy_owners,
    fetch_pieces,
    first_word,
    shared_offsets,
    turned,
)
from layoutgen.plan.model import Copy, Operand, Plan, SharedOperand
from layoutgen.plan.storage import ITEMSIZE

MOST_WORDS = 1 << 12  # of a stage whose cells tell their element; of larger ones colours tell k
MOST_CELLS = 6000  # boxes and labels of a stage, drawn one by one
MOST_REGIONS = 16  # of a panel's passes that get an outline; of finer ones the lines would hide the cells
FOLD = 32  # elements of x in one panel of a copy
OTHERS = -1  # in place of a piece: what only other warps load


def smem_level(plan: Plan, operand: SharedOperand) -> Drawing:
    """One stage of an operand's shared memory, a row of banks at a time: which (x, k) each word holds."""
    itemsize = ITEMSIZE[operand.dtype]
    several, halves = (
        max(BANK_BYTES // itemsize, 1),
        max(itemsize // BANK_BYTES, 1),
    )  # elements a word, words an element
    x, k = held_words(operand)
    extent, block_k = operand.tile
    stage = k.size
    first = first_word(plan, operand)
    before = first % BANKS  # words of the first row that are another operand's
    rows = -(-(before + stage) // BANKS)
    holds = np.full(rows * BANKS, -2, dtype=np.int64)  # k of the element in each word, -1 padding, -2 not this stage
    used = np.flatnonzero(k != NOBODY)
    apart = several if bool((k[used] % several == 0).all()) else 1  # k between those that stand first in a word
    holds[before : before + stage] = np.where(k == NOBODY, -1, k // apart)
    boxes = [
        Box(r.row, r.column, r.rows, r.columns, {-1: "pad", -2: "panel"}.get(r.value, tone(r.value)))
        for r in merge(holds.reshape(rows, BANKS))
    ]
    labels = (
        ()
        if used.size > MOST_WORDS or len(boxes) + used.size > MOST_CELLS
        else tuple(Box(*divmod(before + word, BANKS), 1, 1, "", f"{x[word]},{k[word]}") for word in used.tolist())
    )
    name, mode = operand.name.upper(), operand.x
    padding = stage - used.size
    held = f"({mode},k)" if labels else "k"
    held += (
        f" of the first of {several} elements" if several > 1 else f" of the element of {halves} words" * (halves > 1)
    )
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
        flat=len(boxes) + len(labels) > MOST_CELLS,
    )
    return Drawing(
        f"{plan.name}: {name}'s {extent} × {block_k} tile in shared memory",
        f"Each cell is a word of {BANK_BYTES} bytes with the {held} that it holds; at the left the first word of "
        f"each row, above it the bank. (x, k, stage) → {_unit(operand)} = {_layout(operand)}. "
        f"{'The only stage' if plan.stages == 1 else f'One stage of {plan.stages}'}: {stage} words"
        + (f", {padding} of them padding." if padding else ", no padding.")
        + (f" {name} begins at word {first} of the block's shared memory, in bank {before}." if first else ""),
        beside([panel]),
        (
            *(Key(tone(at), f"k = {_alike(at, apart, block_k)}") for at in range(min(TONES, block_k // apart))),
            *([Key("pad", "padding: holds nothing")] if padding else []),
        ),
    )


def held_words(operand: SharedOperand) -> tuple[Offsets, Offsets]:
    """Word of a stage -> x and k of the first element that it holds, or of which it holds a part; NOBODY for none."""
    begins = shared_offsets(operand.shared).reshape(-1) * ITEMSIZE[operand.dtype]
    order = np.argsort(-begins)  # a word's first element last, to stay
    x, k = np.unravel_index(order, operand.tile)
    found = np.full((2, operand.shared.stage_elements * ITEMSIZE[operand.dtype] // BANK_BYTES), NOBODY, dtype=np.int64)
    for part in range(0, max(ITEMSIZE[operand.dtype], BANK_BYTES), BANK_BYTES):
        found[:, (begins[order] + part) // BANK_BYTES] = x, k
    return found[0], found[1]


def _alike(index: int, apart: int, count: int) -> str:
    """Which k have the index-th tone, of those that stand first in a word, at most two by number."""
    every = range(index * apart, count, TONES * apart)
    return ", ".join(map(str, every[:2])) + (", .." if len(every) > 2 else "")


def _unit(operand: SharedOperand) -> str:
    return "word" if ITEMSIZE[operand.dtype] == BANK_BYTES else "element"


def _layout(operand: SharedOperand) -> str:
    """The layout of an operand's shared memory, behind its swizzle."""
    swizzle = operand.shared.swizzle
    return f"{swizzle} o 0 o {operand.shared.layout}" if swizzle.bits else str(operand.shared.layout)


def copy_level(plan: Plan, operand: Operand) -> Drawing:
    """Which thread fetches which (x, k) of the k-tile in which pass: of a block's, or of warp 0's where each thread
    fetches for itself."""
    return _block_copies(plan, operand) if isinstance(operand, SharedOperand) else _warp_loads(plan, operand)


def _block_copies(plan: Plan, operand: SharedOperand) -> Drawing:
    """A pass is one access to shared memory a thread."""
    copy = operand.copy
    owners = copy_owners(copy, operand.tile)
    number, passes = copy_passes(operand)
    at = number[owners.element_x, owners.element_k]
    piece = owners.thread * passes + at
    flat = len(merge(piece)) > MOST_BOXES
    labels = {int(each): (str(each // passes), f"p{each % passes}") for each in np.unique(piece)}
    patches = _patches(copy, owners)
    if patches is None:
        outlined, told = at if len(merge(at)) <= MOST_REGIONS else None, ""
    else:
        outlined, told = None if flat else patches, _turning(operand)
    panels = _panels(operand, piece, labels, passes, flat=flat, outlined=outlined)
    itemsize = ITEMSIZE[operand.dtype]
    numbers = "Too fine for the numbers of threads; colours tell" if flat else "Numbers are threads, p is"
    return Drawing(
        f"{plan.name}: which thread copies which element of {operand.name.upper()}",
        f"{numbers} the pass in which they copy: {_passes(passes)} of {copy.participants} threads. A "
        f"thread reads {copy.read_vector * itemsize} bytes of global memory at a time and writes "
        f"{copy.write_vector * itemsize} to shared memory ({copy.atom.name}, variant {plan.variant}). {told}"
        f"{_directions(operand)}",
        panels,
        _pass_keys(passes),
    )


def _patches(copy: Copy, owners: CopyOwners) -> Offsets | None:
    """(x, k) -> the patch that a thread turns in its registers, of its own number; None where it turns nothing."""
    if not turned(copy):
        return None
    extents = {copy.read_mode: copy.read_vector, copy.write_mode: copy.write_vector}
    at_x, at_k = owners.element_x // extents["x"], owners.element_k // extents["k"]
    return (owners.thread * copy.element_x.size + at_x) * copy.element_k.size + at_k


def _turning(operand: SharedOperand) -> str:
    """How a thread turns what it copies."""
    copy, modes = operand.copy, {"x": operand.x, "k": "k"}
    return (
        f"Within a line is a patch that a thread turns in its registers: read along {modes[copy.read_mode]}, written "
        f"along {modes[copy.write_mode]}, a pass at a time. "
    )


def _warp_loads(plan: Plan, operand: Operand) -> Drawing:
    """A pass is one load from global memory a thread. Lanes with the same x load alike, every k of them."""
    fetch = operand.copy
    number, passes = copy_passes(operand)
    loaders: dict[int, list[int]] = {}
    piece = np.full(operand.tile, OTHERS, dtype=np.int64)
    for lane in range(plan.warp_size):
        for value, x in enumerate((fetch.thread_x(lane) + fetch.element_x.offsets()).tolist()):
            alike = loaders.setdefault(x, [])
            alike.append(lane)
            piece[x] = alike[0] * passes + number[value]
    labels = {
        int(each): (_lanes(lanes, plan.warp_size), f"p{each % passes}")
        for x, lanes in loaders.items()
        for each in np.unique(piece[x])
    }
    flat = len(merge(piece)) > MOST_BOXES
    numbers = "Too fine for the numbers of lanes; colours tell" if flat else "Numbers are lanes, p is"
    wide = fetch.read_vector * ITEMSIZE[operand.dtype]
    return Drawing(
        f"{plan.name}: what the lanes of warp 0 load of {operand.name.upper()}",
        f"{numbers} the pass in which they load: {_passes(passes)} of {wide} bytes a lane, from global memory to the "
        f"registers of the thread that multiplies ({fetch.atom.name}, variant {plan.variant}). "
        f"{_sectors(plan, operand)}{_directions(operand)}",
        _panels(operand, piece, labels, passes, flat=flat, outlined=None),
        (*_pass_keys(passes), *([Key("panel", "other warps load it")] if (piece == OTHERS).any() else [])),
    )


def _lanes(lanes: list[int], of: int) -> str:
    """Lanes in the room of a cell; of: how many a warp has."""
    if len(lanes) == of:
        return "all"
    first, last = lanes[0], lanes[-1]
    if lanes == list(range(first, last + 1)):
        return str(first) if first == last else f"{first}..{last}"
    return f"{first},{lanes[1]}.."


def _sectors(plan: Plan, operand: Operand) -> str:
    """What a pass costs, where strides and what they cost are known."""
    if operand.contiguous is None or plan.amd:
        return ""
    (cost,) = (each for each in access_facts(plan) if each.name == f"load_{operand.name}")
    moved, least = cost.sectors / cost.requests, cost.ideal_sectors / cost.requests
    told = f"{moved:.3g} sector{'s' * (moved != 1)} of 32 bytes"
    fewer = f", of which what it asks for would fill {least:.3g}" if moved > least else ""
    return f"A pass of a warp moves {told}{fewer}: {operand.contiguous} is contiguous. "


def _panels(
    operand: Operand,
    piece: Offsets,
    labels: dict[int, tuple[str, str]],
    passes: int,
    *,
    flat: bool,
    outlined: Offsets | None,
) -> tuple[Panel, ...]:
    """An operand's k-tile, folded after so many x; A is drawn as m x k, B as k x n.

    piece: (x, k) -> what is moved at once, pass + passes * who, or OTHERS. labels: piece -> who, and the pass.
    outlined: (x, k) -> what a line goes round.
    """
    extent, block_k = operand.tile
    mode = operand.x
    across = mode == "n"  # B is k x n: its n runs right

    panels = []
    for first in range(0, extent, FOLD):
        part = piece[first : first + FOLD]
        grid = part.T if across else part
        boxes = tuple(
            Box(r.row, r.column, r.rows, r.columns, "panel")
            if r.value == OTHERS
            else Box(r.row, r.column, r.rows, r.columns, tone(r.value % passes), *labels[r.value])
            for r in merge(grid)
        )
        regions = []
        if outlined is not None:
            around = outlined[first : first + FOLD]
            regions = merge(around.T if across else around)
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
                outlines=tuple(Box(r.row, r.column, r.rows, r.columns, "") for r in regions),
            )
        )
    return stacked(panels) if across else beside(panels, gap=16)


def _directions(operand: Operand) -> str:
    return f"{operand.x} runs " + ("right, k down." if operand.x == "n" else "down, k right.")


def _passes(count: int) -> str:
    return f"{count} pass{'es' * (count != 1)}"


def _pass_keys(passes: int) -> tuple[Key, ...]:
    return tuple(Key(tone(p), f"pass {alike(p, passes)}") for p in range(min(TONES, passes)))


def copy_passes(operand: Operand) -> tuple[Offsets, int]:
    """A thread's element (i, j) -> the pass that moves it, to shared memory where it goes there; and how many there
    are."""
    fetch = operand.copy
    number = np.empty((fetch.element_x.size, fetch.element_k.size), dtype=np.int64)
    pieces = fetch_pieces(fetch, "write" if isinstance(operand, SharedOperand) else "read")
    for index, piece in enumerate(pieces):
        for at in piece.elements:
            number[at] = index
    return number, len(pieces)
