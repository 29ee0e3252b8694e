"""Draw the pictures of the README, the guides and the ladder again.

    python docs/pictures.py

A test holds each file to what this draws. The README's screenshot is docs/screenshot.py's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from layoutgen import draw
from layoutgen.algebra import Layout
from layoutgen.bench import Result, read
from layoutgen.draw.model import Box, Drawing, Key, Panel, Tick, beside, stacked
from layoutgen.draw.palette import TONES, tone
from layoutgen.draw.timeline import Moment, stage_names, timeline
from layoutgen.plan import Plan, plan_primary
from layoutgen.plan.schedule import WHOLE, dealt, streams, work
from layoutgen.plot import bars, render
from layoutgen.spec import loads

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks" / "results"
LADDER = DOCS / "pictures" / "ladder"
MEASURED = RESULTS / "ladder-h200.json"  # what `layoutgen bench` wrote; there may be none yet
SHAPE, MODES = (4096, 4096, 4096), "kn"  # what the ladder is measured on
SPEC = "warptile_128x128"


def layout(text: str, *, banks: bool = False, picks: str | None = None) -> str:
    """A layout of the algebra's guide."""
    picked = None if picks is None else Layout.parse(picks)
    return draw.to_svg(draw.layout_drawing(draw.read_layout(text), banks=banks, picks=picked))


def values(thread: int) -> str:
    """What a thread of the README's spec owns."""
    return draw.to_svg(draw.level_drawing(draw.find_plan(SPEC), "value", thread=thread))


def level(spec: str, name: str, *panels: str) -> str:
    """One level of a spec, or some panels of it with the keys that they need."""
    drawing = draw.level_drawing(draw.find_plan(spec), name)
    if panels:
        kept = beside([each for each in drawing.panels if each.id in panels], gap=8)
        assert [each.id for each in kept] == list(panels)
        looks = {box.look for panel in kept for box in panel.boxes}
        drawing = replace(drawing, panels=kept, legend=tuple(key for key in drawing.legend if key.look in looks))
    return draw.to_svg(drawing)


def banks(spec: str, *accesses: str) -> str:
    """The banks that some accesses of a spec hit."""
    return level(spec, "banks", *(f"{part}_{access}" for access in accesses for part in ("banks", "wavefronts")))


def rows_of_matrices(shared: str) -> str:
    """The banks that ldmatrix hits in the guide's spec, with this layout of A's shared memory."""
    text = re.search(r"```yaml\n(name: guide\n.*?)```", (DOCS / "tensor-cores.md").read_text(), re.DOTALL)
    assert text is not None
    spec = loads(text[1].replace("shared: {", f'shared: {{a: "{shared}", '))
    drawing = draw.level_drawing(plan_primary(spec), "banks")
    kept = beside([each for each in drawing.panels if each.id in ("banks_fragment_a", "wavefronts_fragment_a")], gap=8)
    looks = {box.look for panel in kept for box in panel.boxes}
    legend = tuple(key for key in drawing.legend if key.look in looks)
    return draw.to_svg(replace(drawing, panels=kept, legend=legend))


def pipeline(spec: str) -> str:
    """What multiplies, what each stage holds and what is on its way in registers, turn by turn."""
    plan = draw.find_plan(spec)
    return draw.to_svg(pipeline_drawing(plan))


def pipeline_drawing(plan: Plan) -> Drawing:
    """The plan's program as a chart: time runs right, a column for each k that is multiplied.

    What happens between two of those takes no column, unless a tile is fetched and waited for there: then each change
    takes one, and nothing is multiplied in it.
    """
    rows = ["multiplied", *stage_names(plan)]
    boxes: list[Box] = []
    starts: dict[str, int] = {}  # part of the program -> its first column
    column = 0
    before: Cells = (Cell(),) * (len(rows) - 1)
    walked = [(moment, _cells(moment)) for moment in timeline(plan)]
    for (multiplies, _), group in groupby(walked, lambda each: (each[0].multiplies, each[0].part)):
        spent = list(group)
        changes = [cells for _, cells in spent]
        if not multiplies and not _waits(before, changes[-1][: plan.stages]):
            before = changes[-1]
            continue
        shown = spent if multiplies else [next(each) for _, each in groupby(spent, lambda each: each[1])]
        for moment, cells in shown:
            starts.setdefault(moment.part, column)
            now = Cell(_multiplied(moment)) if multiplies else Cell()
            boxes += [_box(row, column, cell) for row, cell in enumerate((now, *cells))]
            column += 1
        before = changes[-1]
    panel = Panel(
        "pipeline", "", len(rows), column, (13.0, 28.0), tuple(_joined(boxes)),
        top=tuple(Tick(at, part) for part, at in starts.items()),
        left=tuple(Tick(row, name) for row, name in enumerate(rows)),
        heavy_columns=tuple(starts.values())[1:],
    )  # fmt: skip
    tiles = sorted({int(box.label) for box in boxes if box.label and box.look != "pad"})
    return Drawing(
        f"{plan.name}: what is multiplied while what arrives",
        "Numbers are k-tiles. Time runs right: a column for each k that is multiplied and, to no scale, for what "
        "threads wait for before they can go on.",
        beside([panel]),
        (
            *(Key(tone(tile), f"tile {tile}") for tile in tiles[:TONES]),
            Key("pad", "on its way: not yet to be read"),
            Key("panel", "nothing"),
        ),
    )


@dataclass(frozen=True)
class Cell:
    """What a row of the chart has at a time. ready: it may be read."""

    tile: int | None = None
    ready: bool = True


Cells = tuple[Cell, ...]


def _cells(moment: Moment) -> Cells:
    return tuple(Cell(each.tile, each.state in ("empty", "ready")) for each in moment.stages)


def _waits(before: Cells, after: Cells) -> bool:
    """Whether a tile came to be readable of which nothing was there before."""
    known = {cell.tile for cell in before}
    return any(cell.ready and cell.tile not in known for cell in after if cell.tile is not None)


def _box(row: int, column: int, cell: Cell) -> Box:
    if cell.tile is None:
        return Box(row, column, 1, 1, "panel")
    return Box(row, column, 1, 1, tone(cell.tile) if cell.ready else "pad", str(cell.tile))


def _multiplied(moment: Moment) -> int:
    found = re.search(r"tile (\d+)", moment.text)
    assert found is not None, moment
    return int(found[1])


def _joined(boxes: list[Box]) -> Iterable[Box]:
    """Boxes of a row that touch and look and read alike as one."""
    ordered = sorted(boxes, key=lambda box: (box.row, box.column))
    for _, run in groupby(ordered, lambda box: (box.row, box.look, box.label)):
        first, *more = run
        yield replace(first, columns=1 + len(more))


def shared_tiles(spec: str, extents: tuple[int, int], slots: int) -> str:
    """How a device with room for `slots` blocks of a spec spends its turns on extents[0] x extents[1] tiles of eight
    turns: each by one block, and by the spec's own schedule."""
    plan = draw.find_plan(spec)
    m, n, k = (count * size for count, size in zip((*extents, 8), plan.tile.block, strict=True))
    found = streams(plan.schedule, plan.tile, m, n, k, slots)
    order = [(each.m, each.n) for each in work(plan.schedule, plan.tile, m, n, k)]
    panels = []
    for id, title, each in (("whole", "A block for each tile", WHOLE), ("shared", "Tiles shared", found)):
        free, boxes = [0] * slots, []
        for block in dealt(plan.schedule, plan.tile, m, n, k, each):
            row = free.index(min(free))
            for part in block:
                tile, turns = order.index((part.m, part.n)), -(-(part.k1 - part.k0) // plan.tile.block[2])
                boxes.append(Box(row, free[row], 1, turns, tone(tile), str(tile)))
                free[row] += turns
        ends = tuple(Tick(at - 0.5, str(at)) for at in range(0, max(free) + 1, 4))
        panels.append(Panel(id, title, slots, max(free), (17.0, 28.0), tuple(boxes), top=ends))
    return draw.to_svg(
        Drawing(
            f"{extents[0] * extents[1]} tiles on a device with room for {slots} blocks",
            "A row for each block that there is room for. Time runs right, in turns of the main loop, of which a tile "
            "takes eight. Numbers are tiles in launch order. Where one appears twice, the block with its first turns "
            "adds up what the other left.",
            stacked(panels),
        )
    )


def speeds() -> str:
    """The ladder as it was measured, rung by rung."""
    return measured(read(MEASURED))


def measured(result: Result) -> str:
    """Of a result, the rungs in their order and their rivals."""
    rows = {row.name: row for row in result.at(SHAPE, MODES)}
    shown = [*(name for name in RUNGS if name in rows), *(name for name, row in rows.items() if row.kind == "rival")]
    return render(bars(replace(result, rows=tuple(rows[name] for name in shown)), SHAPE, MODES), "svg").decode()


RUNGS: dict[str, Callable[[], str]] = {
    "ladder_01_naive": lambda: level("ladder_01_naive", "copy_a"),
    "ladder_02_coalesced": lambda: level("ladder_02_coalesced", "copy_b"),
    "ladder_03_shared": lambda: level("ladder_03_shared", "smem_a"),
    "ladder_04_thread_tile_1d": lambda: level("ladder_04_thread_tile_1d", "value"),
    "ladder_05_thread_tile_2d": lambda: level("ladder_05_thread_tile_2d", "value"),
    "ladder_06_vectorised": lambda: banks("ladder_06_vectorised", "fragment_b"),
    "ladder_07_banks_linear": lambda: banks("ladder_07_banks_linear", "fragment_b"),
    "ladder_08_banks_padded": lambda: banks("ladder_08_banks_padded", "fragment_b"),
    "ladder_09_searched": lambda: pipeline("ladder_09_searched"),
    "ladder_10_warptile": lambda: level("ladder_10_warptile", "value"),
    "ladder_11_double_buffer": lambda: pipeline("ladder_11_double_buffer"),
    "ladder_12_cp_async": lambda: pipeline("ladder_12_cp_async"),
    "salykov_128x128x8": lambda: level("salykov_128x128x8", "lane"),
    "salykov_128x256x8": lambda: level("salykov_128x256x8", "lane"),
    "sgemm_128x256x16": lambda: level("sgemm_128x256x16", "copy_a", "copy_a0", "copy_a32"),
    "sgemm_stream_128x256x16": lambda: shared_tiles("sgemm_stream_128x256x16", (2, 5), slots=4),
}

PICTURES: dict[Path, Callable[[], str]] = {
    DOCS / f"{SPEC}.svg": lambda: values(45),
    DOCS / "pictures" / "layout.svg": lambda: layout("(4,8):(8,1)"),
    DOCS / "pictures" / "composition.svg": lambda: layout("(4,8):(8,1)", picks="8:1"),
    DOCS / "pictures" / "divide.svg": lambda: layout("logical_divide((8,6):(6,1), <4,2>)"),
    DOCS / "pictures" / "thread_value.svg": lambda: layout("((4,2),(2,2)):((1,8),(4,16))"),
    DOCS / "pictures" / "swizzle.svg": lambda: layout("Sw<3,2,3> o 0 o (8,32):(32,1)", banks=True),
    DOCS / "pictures" / "values.svg": lambda: values(35),
    **{LADDER / f"{name}.svg": picture for name, picture in RUNGS.items()},
    DOCS / "pictures" / "ldmatrix_plain.svg": lambda: rows_of_matrices("(64,32):(32,1)"),
    DOCS / "pictures" / "ldmatrix_swizzled.svg": lambda: rows_of_matrices("Sw<2,3,3> o 0 o (64,32):(32,1)"),
    DOCS / "pictures" / "accumulators.svg": lambda: level("triton_f16_64x64x32", "lane"),
    LADDER / "order.svg": lambda: level("sgemm_128x256x16", "order"),
    LADDER / "dealt_out.svg": lambda: pipeline("sgemm_128x256x16"),
    **({LADDER / "speeds.svg": speeds} if MEASURED.is_file() else {}),
}


if __name__ == "__main__":
    for file, draws in PICTURES.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(draws())
