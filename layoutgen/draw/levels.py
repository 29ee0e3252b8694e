"""Plan -> a Drawing of one level of its tiling, from blocks to a thread. Who owns what is read from the facts."""

from __future__ import annotations

import numpy as np

from layoutgen.algebra import Offsets
from layoutgen.draw.cells import merge, spans
from layoutgen.draw.model import MOST_BOXES, Box, Drawing, Key, Panel, Tick, beside
from layoutgen.draw.palette import TONES, alike, tone
from layoutgen.errors import DrawError, RequestError
from layoutgen.facts import c_owners
from layoutgen.plan.model import Plan
from layoutgen.plan.order import order_words
from layoutgen.plan.schedule import raster_words, tiles, work

MOST_TILES = 32  # drawn along each mode of C
MOST_BLOCKS = 1 << 20
LEAST, LONGEST = 640, 1024  # pixels of the longer side of a block tile: lines and letters are of one size
BIGGEST_ELEMENT = 5.0  # of a tile that is not small
LOWEST = 8.0  # pixels of the lowest, or narrowest, piece that has room for a number
NARROW = 44.0  # pixels of a piece that has room for a number only


def unit(rows: int, columns: int) -> float:
    """Pixels of one element of a block tile: a small tile's elements are larger."""
    longer = max(rows, columns)
    return max(min(BIGGEST_ELEMENT, LONGEST / longer), LEAST / longer)


def require_thread(plan: Plan, thread: int) -> None:
    """Raises RequestError unless the block has such a thread."""
    count = plan.threads.threads
    if not 0 <= thread < count:
        raise RequestError.of_thread(thread, count)


def block_level(plan: Plan, shape: tuple[int, int, int] | None = None) -> Drawing:
    """The grid of block tiles over C, numbered in launch order; by default a problem of 8 x 8 tiles.

    Raises:
        DrawError: an extent of `shape` (M, N, K) is below 1.
    """
    block_m, block_n, block_k = plan.tile.block
    extents = (8 * block_m, 8 * block_n, 8 * block_k) if shape is None else shape
    if min(extents) < 1:
        raise DrawError("a problem has M, N and K of at least 1", got=",".join(map(str, extents)))
    schedule = plan.schedule
    rows, columns = tiles(plan.tile, *extents[:2])
    if rows * columns > MOST_BLOCKS:
        raise DrawError(
            "a grid that is drawn has not too many tiles",
            got=f"{rows} x {columns} block tiles",
            allowed=f"at most {MOST_BLOCKS} of them",
            fix=f"--shape {8 * block_m},{8 * block_n},{8 * block_k}",
        )
    shown_rows, shown_columns = min(rows, MOST_TILES), min(columns, MOST_TILES)
    place: list[tuple[int, int]] = []
    boxes = []
    for block, each in enumerate(work(schedule, plan.tile, *extents)):
        row, column = each.m // block_m, each.n // block_n
        if row < shown_rows and column < shown_columns:
            place.append((row, column))
            boxes.append(Box(row, column, 1, 1, tone(block // schedule.group), str(block), f"({row},{column})"))
    ends = [
        f"{'rows' if mode == 'm' else 'columns'} {extent - extent % size}.. of C are ragged: {extent % size} of {size}"
        for mode, extent, size in (("m", extents[0], block_m), ("n", extents[1], block_n))
        if extent % size
    ]
    words = raster_words(schedule)
    along = {"along_m": "m", "along_n": "n"}[schedule.raster]
    side = max(28.0, min(64.0, 720 / max(shown_rows, shown_columns)))
    panel = Panel(
        "block",
        f"C  {extents[0]} × {extents[1]}:  {rows} × {columns} block tiles of {block_m} × {block_n}",
        shown_rows,
        shown_columns,
        (side, max(22.0, side * 0.66)),
        tuple(boxes),
        top=tuple(Tick(c, str(c * block_n)) for c in range(shown_columns)),
        left=tuple(Tick(r, str(r * block_m)) for r in range(shown_rows)),
        order=tuple(place),
        heavy_rows=tuple(range(schedule.group, shown_rows, schedule.group)) if along == "m" else (),
        heavy_columns=tuple(range(schedule.group, shown_columns, schedule.group)) if along == "n" else (),
    )
    cut = (
        f" Shown: the first {shown_rows} × {shown_columns} tiles."
        if (rows, columns) != (shown_rows, shown_columns)
        else ""
    )
    alone = schedule.kind == "data_parallel"
    numbers = "blocks in launch order" if alone else "tiles in launch order, the first of which blocks may share"
    return Drawing(
        f"{plan.name}: which block computes which tile of C",
        f"Numbers are {numbers}, below them the tile (m, n). A line joins blocks that follow one another. "
        f"{words[0].upper()}{words[1:]} in L2; "
        f"each sums over K = {extents[2]} in steps of {block_k}.{cut}" + "".join(f" The last {end}." for end in ends),
        beside([panel]),
        (Key("t0", f"one colour: {_together(schedule.group)} (eight colours, repeated)"),),
    )


def _together(group: int) -> str:
    return "one block" if group == 1 else f"{group} blocks that follow one another"


def _tile_panel(plan: Plan, id: str, boxes: list[Box], outlines: tuple[Box, ...] = ()) -> Panel:
    """The block tile of C, its rows and columns numbered where warps may begin."""
    block_m, block_n, block_k = plan.tile.block
    side = unit(block_m, block_n)
    step = max(8, 2 ** int(np.log2(max(block_m, block_n) / 8)))
    return Panel(
        id,
        f"C  {block_m} × {block_n}",
        block_m,
        block_n,
        (side, side),
        tuple(boxes),
        top=tuple(Tick(n, str(n)) for n in range(0, block_n, step)),
        left=tuple(Tick(m, str(m)) for m in range(0, block_m, step)),
        outlines=outlines,
        flat=len(boxes) > MOST_BOXES,
        biggest=13.0,
    )


def warp_level(plan: Plan) -> Drawing:
    """Which warp owns each (m, n) of the block tile."""
    warps = plan.tile.warps
    pieces = merge(c_owners(plan.tile, plan.threads).warp)
    narrow = min(r.columns for r in pieces) * unit(*plan.tile.block[:2]) < NARROW
    boxes = [
        Box(r.row, r.column, r.rows, r.columns, tone(r.value), str(r.value))
        if narrow
        else Box(r.row, r.column, r.rows, r.columns, tone(r.value), f"warp {r.value}", f"{r.rows} × {r.columns}")
        for r in pieces
    ]
    keys = tuple(Key(tone(w), f"warp {alike(w, warps.size)}") for w in range(min(warps.size, TONES)))
    return Drawing(
        f"{plan.name}: which warp owns what of the block tile",
        f"{warps.size} warps of {plan.warp_size} threads, placed by (warp_m, warp_n) → warp = {warps}. "
        f"{'Numbers are warps. ' if narrow else ''}m runs down, n right.",
        beside([_tile_panel(plan, "warp", boxes)]),
        keys,
    )


def lane_level(plan: Plan) -> Drawing:
    """Which lane of warp 0 owns each (m, n); the other warps blank. Beside it an MMA atom, where those multiply."""
    owners = c_owners(plan.tile, plan.threads)
    # One number for each look: lanes of warp 0 as they are, other warps beyond them.
    lanes = plan.warp_size
    number = np.where(owners.warp == 0, owners.lane, lanes + owners.warp)
    outlines = tuple(Box(r.row, r.column, r.rows, r.columns, "") for r in merge(owners.warp))
    boxes = []
    for r in merge(number):
        place = (r.row, r.column, r.rows, r.columns)
        boxes.append(
            Box(*place, tone(r.value), str(r.value))
            if r.value < lanes
            else Box(*place, "panel", f"warp {r.value - lanes}")
        )
    smallest = min(min(box.rows, box.columns) for box in boxes if box.look != "panel") * unit(*plan.tile.block[:2])
    small = len(boxes) > MOST_BOXES or smallest < LOWEST
    numbers = "Lanes are too small for numbers" if small else "Numbers are lanes"
    pieces = "each of the pieces that bear its number" if not small else "pieces of its colour"
    panels = [
        _tile_panel(plan, "lane", boxes, outlines),
        *([_atom_panel(plan, owners.lane)] if plan.uses_atoms else []),
    ]
    values = (plan.tile.value_mode[0].size, plan.tile.value_mode[1].size)
    return Drawing(
        f"{plan.name}: which lane owns what of warp 0's tile",
        f"{numbers}, placed by (lane_m, lane_n) → lane = {plan.tile.lanes}. A lane owns {values[0]} "
        f"× {values[1]} values, in {pieces}; the other warps do the same beside it."
        + " At the right, the first atom of warp 0, with its lanes' numbers."
        * plan.uses_atoms,
        beside(panels),
        (
            Key("t0", f"a lane's piece: eight colours, repeated{'' if small else '; the number tells'}"),
            Key("panel", "other warps"),
        ),
    )


def _atom_panel(plan: Plan, lanes: Offsets) -> Panel:
    """The first atom's part of the tile of C, by lane."""
    rows, columns, _ = plan.atom.layouts.shape_mnk
    boxes = tuple(
        Box(r.row, r.column, r.rows, r.columns, tone(r.value), str(r.value)) for r in merge(lanes[:rows, :columns])
    )
    ticks = [tuple(Tick(at, str(at)) for at in range(extent)) for extent in (rows, columns)]
    title = f"atom  {rows} × {columns}"
    return Panel("atom", title, rows, columns, (24.0, 20.0), boxes, top=ticks[1], left=ticks[0])


def jumps(coordinates: Offsets) -> tuple[int, ...]:
    """A thread's value coordinates in one mode -> the values that do not lie next to the one before."""
    return tuple(int(value) for value in np.flatnonzero(np.diff(coordinates) != 1) + 1)


def value_level(plan: Plan, thread: int = 0) -> Drawing:
    """One thread's values: where they lie in C, what they need of A and B, and their register numbers.

    Raises:
        RequestError: the block has no such thread.
    """
    require_thread(plan, thread)
    owners = c_owners(plan.tile, plan.threads)
    block_m, block_n, block_k = plan.tile.block
    warps = plan.tile.warps.size
    warp, lane = divmod(thread, plan.warp_size)
    boxes = []
    for r in merge(owners.thread):
        mine = r.value == thread
        look = "mark" if mine else tone(r.value // plan.warp_size)
        boxes.append(Box(r.row, r.column, r.rows, r.columns, look, str(r.value % plan.warp_size)))
    m, n = np.nonzero(owners.thread == thread)
    tile = _tile_panel(plan, "value", boxes)
    side = tile.unit[0]
    gap, strip = 10.0, block_k * side
    marked_m = [Box(at, 0, count, block_k, "mark") for at, count in spans(m)]
    marked_n = [Box(0, at, block_k, count, "mark") for at, count in spans(n)]
    plain = Box(0, 0, block_m, block_k, "panel"), Box(0, 0, block_k, block_n, "panel")
    title = f"A  {block_m} × {block_k}" if strip > 80 else "A"  # C's title begins where the strip ends
    a = Panel("a", title, block_m, block_k, tile.unit, (plain[0], *marked_m), left=tile.left)
    b = Panel("b", f"B  {block_k} × {block_n}", block_k, block_n, tile.unit, (plain[1], *marked_n), top=tile.top)
    x, y = a.margin[0], b.margin[1]
    left, down = x + strip + gap, y + strip + gap + 26
    inner = Panel("value", tile.title, tile.rows, tile.columns, tile.unit, tile.boxes, flat=tile.flat)
    registers = _registers(plan, thread)
    colours = "Colours are warps" if tile.flat else "Colours are warps, numbers are lanes"
    placed = (
        a.at(x, down),
        b.at(left, y),
        inner.at(left, down),
        registers.at(left + inner.width + 40 + registers.margin[0], down),
    )
    return Drawing(
        f"{plan.name}: what thread {thread} owns (warp {warp}, lane {lane})",
        f"{colours}. Highlighted: the {registers.rows} × {registers.columns} values of C "
        f"that thread {thread} accumulates, and the rows of A and columns of B that it reads for them. At the right, "
        "its accumulators: register number by row m and column n of C.",
        placed,
        (
            Key("mark", f"thread {thread}"),
            *(Key(tone(w), f"warp {alike(w, warps)}") for w in range(min(warps, TONES))),
        ),
    )


def _registers(plan: Plan, thread: int) -> Panel:
    """A thread's accumulators (value_m, value_n), numbered as the kernel's tCrC is: value_m fastest."""
    value_m, value_n = (mode.offsets() for mode in plan.tile.value_mode)
    at_m = value_m + plan.threads.m.offsets()[thread]
    at_n = value_n + plan.threads.n.offsets()[thread]
    rows, columns = at_m.size, at_n.size
    boxes = [Box(i, j, 1, 1, "paper", str(i + rows * j)) for i in range(rows) for j in range(columns)]
    return Panel(
        "registers",
        f"accumulators of thread {thread}",
        rows,
        columns,
        (31.0, 22.0),
        tuple(boxes),
        top=tuple(Tick(j, str(n)) for j, n in enumerate(at_n)),
        left=tuple(Tick(i, str(m)) for i, m in enumerate(at_m)),
        grid=True,
        heavy_rows=jumps(at_m),
        heavy_columns=jumps(at_n),
    )


def order_level(plan: Plan) -> Drawing:
    """The order in which a thread multiplies the values of its tile for one k, and which operand a step has at hand."""
    rows, columns = plan.order.extents
    place = [(value % rows, value // rows) for value in plan.order.values()]
    boxes, before, at_hand = [], (-1, -1), 0
    for step, (row, column) in enumerate(place):
        same = row == before[0], column == before[1]
        boxes.append(Box(row, column, 1, 1, "t0" if same[0] else "t1" if same[1] else "paper", str(step)))
        before, at_hand = (row, column), at_hand + any(same)
    panel = Panel(
        "order",
        f"{'atoms of a warp' if plan.uses_atoms else 'values of a thread'}  {rows} × {columns}",
        rows,
        columns,
        (52.0, 34.0),
        tuple(boxes),
        top=tuple(Tick(j, f"b{j}") for j in range(columns)),
        left=tuple(Tick(i, f"a{i}") for i in range(rows)),
        order=tuple(place),
        grid=True,
    )
    steps = rows * columns
    what, whose, factors = (
        ("atoms of one K", "a warp's atoms", "fragment")
        if plan.uses_atoms
        else ("multiply-adds of one k", "a thread's FFMAs", "register")
    )
    return Drawing(
        f"{plan.name}: the order of {whose}",
        f"Numbers are the {steps} {what} as they are issued: {order_words(plan.order)}. "
        f"Each multiplies its row's {factors} of A by its column's of B. {at_hand} of the {steps} have one of them in "
        "common with the step before, whose value is at hand; a line joins neighbours.",
        beside([panel]),
        (
            Key("t0", "same a as the step before"),
            Key("t1", "same b"),
            Key("paper", "both are new"),
        ),
    )
