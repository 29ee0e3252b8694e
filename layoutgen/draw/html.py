"""Plan -> one HTML file to explore it in: no network, light and dark, mouse and keyboard.

What it knows is embedded as JSON: the offsets of the plan's layouts, mode by mode, which the script only adds up.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2

from layoutgen import paths
from layoutgen.algebra import Layout
from layoutgen.draw.budgets import Aside, Launch
from layoutgen.draw.cells import merge
from layoutgen.draw.levels import block_level, require_thread, unit
from layoutgen.draw.memory import copy_passes
from layoutgen.draw.model import MOST_BOXES, Box, Panel, Tick
from layoutgen.draw.palette import DARK, LIGHT, Palette, rules, tone, variables
from layoutgen.draw.roofline import roofline_svg
from layoutgen.draw.svg import panel_svg
from layoutgen.draw.timeline import Moment, stage_names, timeline
from layoutgen.facts import BANK_BYTES, BANKS, SECTOR_BYTES, atom_owners, c_owners, first_word, fragment_executions
from layoutgen.plan.model import AtomFragment, Operand, Plan, SharedOperand
from layoutgen.plan.schedule import work
from layoutgen.plan.storage import ITEMSIZE

GAP = 12.0  # pixels between C and the strips of A and B
MOST_WAVES = 15  # full ones that the bar of waves shows
TILES = 8  # block tiles along each mode of the C that the page shows


def to_html(plan: Plan, aside: Aside, *, thread: int = 0) -> str:
    """The page as text; the same plan and aside give the same text.

    Args:
        aside: the budgets and the roofline that stand beside the map.
        thread: whose first element is chosen when the page opens.

    Raises:
        RequestError: the block has no such thread.
    """
    require_thread(plan, thread)
    moments = timeline(plan)
    roofline = None if aside.roofline is None else roofline_svg(aside.roofline)
    return _template().render(
        plan=plan,
        aside=aside,
        shares=[min(100.0, 100 * each.used / each.limit) for each in aside.budgets],
        lengths=[100 * each.clocks / max(every.clocks for every in aside.clocks) for each in aside.clocks],
        waves=None if aside.launch is None else waves(aside.launch),
        roofline=roofline,
        light=variables(LIGHT),
        dark=variables(DARK),
        looks=rules(_VARIABLES),
        map=map_svgs(plan),
        states=_states(plan),
        lanes=timeline_svg(moments, stage_names(plan)),
        data=page_data(plan, moments, thread),
        keyboard=KEYBOARD,
    )


KEYBOARD = (
    ("Arrow keys", "move to the next element; with Shift, eight on"),
    ("Enter or click", "keep the element while the mouse moves; again to let go. On a block: look into it"),
    ("[ and ]", "step k"),
)
_VARIABLES = Palette(
    **{name: f"var(--{name.replace('_', '-')})" for name in Palette.__slots__ if name != "tones"},
    tones=tuple(f"var(--t{index})" for index in range(len(LIGHT.tones))),
)


@cache
def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(paths.templates())
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("report.html.j2")


def waves(launch: Launch) -> list[float | None]:
    """The percentage of each wave's places that have a tile; None for those that the bar leaves out."""
    full = launch.rounds - 1
    shown: list[float | None] = [100.0] * min(full, MOST_WAVES)
    return [*shown, *([None] if full > MOST_WAVES else []), 100 * launch.last]


def page_data(plan: Plan, moments: tuple[Moment, ...], thread: int) -> dict[str, Any]:
    """What the script knows. Offsets of layouts: c.thread_m[t] + c.value_m[i] is a row of C, and so on."""
    block_m, block_n, block_k = plan.tile.block
    side = unit(block_m, block_n)
    blocks = work(plan.schedule, plan.tile, TILES * block_m, TILES * block_n, TILES * block_k)
    return {
        "block": list(plan.tile.block),
        "warpSize": plan.warp_size,
        "banks": BANKS,
        "sectorBytes": SECTOR_BYTES,
        "start": thread,
        "unit": side,
        "c": {
            "thread_m": _list(plan.threads.m),
            "thread_n": _list(plan.threads.n),
            "value_m": _list(plan.tile.value_mode[0]),
            "value_n": _list(plan.tile.value_mode[1]),
        },
        "operands": [_operand(plan, each) for each in plan.operands],
        "stages": list(stage_names(plan)),
        "blocks": [[each.m, each.n] for each in blocks],
        "moments": [
            {
                "part": each.part,
                "text": each.text,
                "writes": each.writes,
                "reads": each.reads,
                "stages": [{"state": stage.state, "tile": stage.tile} for stage in each.stages],
            }
            for each in moments
        ],
    }


def _operand(plan: Plan, operand: Operand) -> dict[str, Any]:
    """vector, along: of the loads that bring what is multiplied, from shared memory or without it from global."""
    fetch = operand.copy
    passes, _ = copy_passes(operand)
    shared = operand if isinstance(operand, SharedOperand) else None
    return {
        "name": operand.name.upper(),
        "x": operand.x,
        "contiguous": operand.contiguous,
        "itemsize": ITEMSIZE[operand.dtype],
        "vector": _together(shared) if shared else fetch.read_vector,
        "atom": plan.uses_atoms,
        "brings": _brings(operand),
        "along": shared.fragment.mode if shared else fetch.read_mode,
        "shared": _shared(plan, shared) if shared else None,
        "copy": {
            "atom": fetch.atom.name,
            "thread_x": _list(fetch.thread_x),
            "thread_k": _list(fetch.thread_k),
            "element_x": _list(fetch.element_x),
            "element_k": _list(fetch.element_k),
            "pass": passes.tolist(),
        },
    }


def _together(operand: SharedOperand) -> int:
    """The elements that a thread's load brings from where it points: a vector, or of ldmatrix a row of a matrix."""
    fragment = operand.fragment
    if isinstance(fragment, AtomFragment):
        return max(fragment.load.bytes // ITEMSIZE[operand.dtype], 1)
    return fragment.vector


def _brings(operand: Operand) -> str:
    """What brings it, after its bytes."""
    if isinstance(operand, SharedOperand) and operand.fragment.load.opcode != "ld.shared":
        return f"row, by {operand.fragment.load.opcode}"
    return "load"


def _atom_loads(plan: Plan, operand: SharedOperand) -> list[list[int]]:
    """(x, k within an atom's K) -> which of its warp's loads brings it."""
    fragment = operand.fragment
    assert isinstance(fragment, AtomFragment)
    of_first = atom_owners(plan, operand).register[:, : plan.atom.layouts.shape_mnk[2]]
    loads: list[list[int]] = (of_first // fragment.registers).tolist()
    return loads


def _shared(plan: Plan, operand: SharedOperand) -> dict[str, Any]:
    x, k, stage = operand.shared.layout
    return {
        "vectors": operand.fragment.vectors,
        "depth": plan.atom.layouts.shape_mnk[2] if plan.uses_atoms else operand.fragment.depth,
        "loads": _atom_loads(plan, operand) if plan.uses_atoms else None,
        "swizzle": {"mask": operand.shared.swizzle.source_mask, "shift": operand.shared.swizzle.shift},
        "first_word": first_word(plan, operand),
        # By k, or as many as a load brings, then load, then warp: wavefronts, and what they were without conflicts.
        # Of AMD's none is known.
        "wavefronts": None
        if plan.amd
        else [[each.wavefronts, each.conflict_free] for each in fragment_executions(plan, operand)],
        "element_x": _list(x),
        "element_k": _list(k),
        "word_stage": [offset * ITEMSIZE[operand.dtype] // BANK_BYTES for offset in _list(stage)],
    }


def _list(layout: Layout) -> list[int]:
    return [int(offset) for offset in layout.offsets()]


def map_svgs(plan: Plan) -> dict[str, Any]:
    """C by block, warp and lane, and the strips of A and B: groups of SVG, each with its corner at (0, 0)."""
    owners = c_owners(plan.tile, plan.threads)
    block_m, block_n, block_k = plan.tile.block
    side = unit(block_m, block_n)

    def panel(name: str, rows: int, columns: int, boxes: list[Box], biggest: float = 20.0) -> Panel:
        return Panel(name, "", rows, columns, (side, side), tuple(boxes), biggest=biggest, flat=len(boxes) > MOST_BOXES)

    warps = [Box(r.row, r.column, r.rows, r.columns, tone(r.value), f"warp {r.value}") for r in merge(owners.warp)]
    lanes = [
        Box(r.row, r.column, r.rows, r.columns, tone(r.value), str(r.value % plan.warp_size))
        for r in merge(owners.thread)
    ]
    blocks = block_level(plan).panels[0]
    unit_m, unit_n = block_m * side / TILES, block_n * side / TILES
    grid = Panel("view-block", "", blocks.rows, blocks.columns, (unit_n, unit_m), blocks.boxes, biggest=20.0)
    strip = block_k * side + GAP
    return {
        "width": block_n * side + strip + 2,
        "height": block_m * side + strip + 2,
        "strip": strip,
        "views": [
            ("block", panel_svg(grid)),
            ("warp", panel_svg(panel("view-warp", block_m, block_n, warps))),
            ("lane", panel_svg(panel("view-lane", block_m, block_n, lanes, biggest=12.0))),
        ],
        "a": panel_svg(panel("strip-a", block_m, block_k, [Box(0, 0, block_m, block_k, "panel", "A")])),
        "b": panel_svg(panel("strip-b", block_k, block_n, [Box(0, 0, block_k, block_n, "panel", "B")])),
    }


LANE, STEP, WIDEST, LONG = 30.0, 7.0, 24.0, 880.0  # pixels of a row of the timeline, of a step, and of all of them
LETTER = 5.6  # pixels of a letter at a row's left
_LOOKS = {"empty": "panel", "arriving": "t1", "landed": "t3", "ready": "t2"}
SHARED_STATES = (
    ("t1", "arriving: copies are in flight"),
    ("t3", "landed: each thread knows of its own copies"),
    ("t2", "ready: all threads have met, and may read"),
)
REGISTER_STATES = (
    ("t1", "arriving: loads are in flight"),
    ("t2", "ready: a multiply-add has waited for them"),
)
STAGED_STATES = (
    ("t1", "arriving: copies or loads are in flight, or not all stored"),
    SHARED_STATES[1],
    ("t2", "ready: all threads have met, and may read; in registers: a store has waited for the loads"),
)


def _states(plan: Plan) -> tuple[tuple[str, str], ...]:
    """What the timeline's colours say, where it has stages, or registers, or both."""
    if not plan.stages:
        return REGISTER_STATES
    return STAGED_STATES if any(each.copy.atom.through_registers for each in plan.operands) else SHARED_STATES


def timeline_svg(moments: tuple[Moment, ...], names: tuple[str, ...]) -> dict[str, Any]:
    """Stages over steps: a row for each stage, the step along the columns, equal neighbours merged."""
    boxes = []
    for row in range(len(names)):
        begin = 0
        for column, moment in enumerate(moments):
            following = moments[column + 1].stages[row] if column + 1 < len(moments) else None
            if following != moment.stages[row]:
                held = moment.stages[row]
                label = "empty" if held.tile is None else f"tile {held.tile} {held.state}"
                boxes.append(Box(row, begin, 1, column + 1 - begin, _LOOKS[held.state], label))
                begin = column + 1
    parts = [moment.part for moment in moments]
    starts = [column for column, part in enumerate(parts) if column == 0 or parts[column - 1] != part]
    step = max(STEP, min(WIDEST, LONG / len(moments)))
    panel = Panel(
        "timeline",
        "",
        len(names),
        len(moments),
        (step, LANE),
        tuple(boxes),
        top=tuple(Tick(column + 30 / step, parts[column]) for column in starts),
        left=tuple(Tick(row, name) for row, name in enumerate(names)),
        heavy_columns=tuple(starts[1:]),
    )
    left = 12 + LETTER * max(map(len, names))
    return {
        "svg": panel_svg(panel),
        "left": left,
        "width": left + panel.width + 10,
        "height": panel.height + 24,
        "reach": panel.height,
        "step": step,
    }
