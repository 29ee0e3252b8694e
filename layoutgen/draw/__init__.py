"""Pictures of a plan and of bare layouts: SVG, PNG, and one HTML page to explore.

Everything drawn is read from the plan and the facts; nothing is computed here but where to put it.

>>> from layoutgen.draw import layout_drawing, read_layout, to_svg
>>> svg = to_svg(layout_drawing(read_layout("(8,4):(4,1)")))
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from layoutgen import paths, spec
from layoutgen.draw.banks import banks_level
from layoutgen.draw.budgets import Aside, aside
from layoutgen.draw.difference import difference_drawing
from layoutgen.draw.html import to_html
from layoutgen.draw.layout import layout_drawing, read_layout
from layoutgen.draw.levels import block_level, lane_level, order_level, value_level, warp_level
from layoutgen.draw.memory import copy_level, smem_level
from layoutgen.draw.model import Drawing
from layoutgen.draw.palette import Theme
from layoutgen.draw.png import to_png
from layoutgen.draw.svg import to_svg
from layoutgen.errors import DrawError, RequestError, meant
from layoutgen.facts import Facts, facts
from layoutgen.hw.devices import DEVICES, Device, of_amd
from layoutgen.plan import Plan, plan
from layoutgen.problem import fits, packed

Shape = tuple[int, int, int]

_LEVELS: Mapping[str, Callable[[Plan, int, Shape | None], Drawing]] = {
    "block": lambda plan, thread, shape: block_level(plan, shape),
    "warp": lambda plan, thread, shape: warp_level(plan),
    "lane": lambda plan, thread, shape: lane_level(plan),
    "value": lambda plan, thread, shape: value_level(plan, thread),
    "order": lambda plan, thread, shape: order_level(plan),
    "smem_a": lambda plan, thread, shape: smem_level(plan, plan.in_shared("a")),
    "smem_b": lambda plan, thread, shape: smem_level(plan, plan.in_shared("b")),
    "copy_a": lambda plan, thread, shape: copy_level(plan, plan.a),
    "copy_b": lambda plan, thread, shape: copy_level(plan, plan.b),
    "banks": lambda plan, thread, shape: banks_level(plan),
}
LEVELS = tuple(_LEVELS)
SHARED_LEVELS = ("smem_a", "smem_b", "banks")  # what has no subject where nothing is in shared memory
THEMES = ("auto", "light", "dark")
KINDS = (".svg", ".png", ".html")


def level_drawing(plan: Plan, level: str = "value", *, thread: int = 0, shape: Shape | None = None) -> Drawing:
    """Plan -> the Drawing of one level.

    Args:
        level: one of LEVELS: block (the grid over C), warp, lane, value (of one thread), order (of its multiply-adds),
            smem_a and smem_b (what each word holds), copy_a and copy_b (who copies, or loads, what), banks (that
            accesses hit).
        thread: whose values `value` shows.
        shape: the problem's (M, N, K) for `block`; by default 8 x 8 tiles.

    Raises:
        DrawError: no such level, one of shared memory where there is none, or an extent below 1.
        RequestError: no such thread.
    """
    if level not in _LEVELS:
        raise DrawError(
            "a level is one of a tiling's",
            got=level,
            allowed=", ".join(LEVELS),
            fix=meant(level, LEVELS) or "--level value, or leave level out",
        )
    if level in SHARED_LEVELS and not plan.shared_operands:
        raise DrawError(
            "a picture of shared memory is of a spec that has stages in it",
            got=f"{level} of {plan.name}, whose threads load what they multiply (shared.stages: 0)",
            allowed=", ".join(each for each in LEVELS if each not in SHARED_LEVELS),
            fix=f"--level {'copy_b' if level == 'smem_b' else 'copy_a'}, which shows what a warp loads",
        )
    if level == "banks" and plan.amd:
        raise DrawError(
            "the banks that lanes hit together are known of NVIDIA's warps",
            got=f"{level} of {plan.name}, whose wavefronts have {plan.warp_size} lanes",
            allowed=", ".join(each for each in LEVELS if each != level),
            fix="--level smem_a, which shows the bank of each word",
        )
    return _LEVELS[level](plan, thread, shape)


def is_layout(source: str) -> bool:
    """Whether `source` is an expression of the algebra, and not the path or name of a spec."""
    return (
        any(mark in source for mark in "(:<") and not source.endswith((".yaml", ".yml")) and not Path(source).is_file()
    )


def find_plans(source: str | Path) -> dict[str, Plan]:
    """The path, or the name, of a spec -> its plans by variant, the primary one first.

    Raises:
        SpecError, PlanError: it is no spec, or its levels do not compose.
    """
    return {each.variant: each for each in plan(spec.load(paths.find_spec(source)))}


def find_plan(source: str | Path, variant: str | None = None) -> Plan:
    """The path, or the name, of a spec -> one of its plans, by default the primary one.

    Raises:
        SpecError, PlanError: it is no spec, or its levels do not compose.
        RequestError: it has no such variant.
    """
    return _named(find_plans(source), variant)


def _named(plans: Mapping[str, Plan], variant: str | None) -> Plan:
    """One of a spec's plans; by default the primary one. Raises RequestError."""
    if variant is None:
        return next(iter(plans.values()))
    if variant not in plans:
        raise RequestError.of_variant(variant, plans)
    return plans[variant]


def draw(
    source: str | Path,
    out: str | Path,
    *,
    level: str | None = None,
    variant: str | None = None,
    thread: int | None = None,
    shape: Shape | None = None,
    banks: bool = False,
    theme: str | None = None,
    device: Device | None = None,
) -> Path:
    """Draw a spec or a bare layout into a file of kind .svg, .png or .html; returns its path.

    Args:
        source: the path or the name of a spec, or an expression of the algebra whose value is a layout.
        out: where to write; its ending tells the kind. .html is a page on a spec with all of its levels.
        level, thread, shape: as `level_drawing`; by default level "value" of thread 0. A page tells how a dense
            problem of `shape` fills the device.
        variant: which of the spec's plans; by default the primary one, or of a page on a problem the one that takes it.
        banks: colour a bare layout by the bank of 4-byte words.
        theme: "auto" follows the reader's choice of light or dark, which a PNG can't: by default auto, and light there.
        device: what the page's facts are of; by default the H200, or the one of an AMD architecture.

    Raises:
        SpecError, PlanError, LayoutError: as reading the source does.
        RequestError: the spec has no such variant or thread.
        DrawError: an argument does not go with the source or the kind, or the file can't be written.
    """
    if theme not in (None, *THEMES):
        raise DrawError("a theme is one of three", got=theme, allowed=", ".join(THEMES))
    chosen_theme: Theme | None = theme  # type: ignore[assignment]
    file = Path(out)
    if file.suffix.lower() not in KINDS:
        raise DrawError("a picture's ending tells its kind", got=file.name, allowed=", ".join(KINDS), fix="-o x.svg")
    kind = file.suffix.lower()
    given = {"level": level, "variant": variant, "thread": thread, "shape": shape, "device": device}
    if isinstance(source, str) and is_layout(source):
        if kind == ".html":
            raise DrawError(
                "a page is of a spec, and a bare layout is one grid",
                got=f"{source} for {file.name}",
                fix="write an .svg or a .png, or name a spec",
            )
        _refuse(given, "a bare layout is one grid")
        drawing = layout_drawing(read_layout(source), banks=banks)
    else:
        _refuse({"banks": banks or None}, "bank colours are of bare layouts; a spec has --level banks")
        if kind == ".html":
            _refuse({"level": level, "theme": theme}, "the page shows C at all levels in both themes")
            found = _facts(source, variant, shape, device)
            return write_picture(file, to_html(found.plan, aside(found), thread=thread or 0).encode())
        chosen = find_plan(source, variant)
        _refuse({"device": device}, "a device is what the budgets of an .html page are of")
        shown = level or "value"
        drawing = level_drawing(chosen, shown, thread=thread or 0, shape=shape)
        if shown != "value":
            _refuse({"thread": thread}, f"a thread is what level value or an .html page is of, and {shown} of none")
        if shown != "block":
            _refuse({"shape": shape}, f"a problem is what level block or an .html page is of, and {shown} of none")
    return _write_drawing(drawing, file, chosen_theme)


def draw_difference(a: Plan, b: Plan, out: str | Path) -> Path:
    """Draw two plans side by side, hatched where they differ, into a file of kind .svg or .png; returns its path.

    Raises:
        DrawError: `out` has another ending, or can't be written.
    """
    file = Path(out)
    if file.suffix.lower() not in KINDS[:2]:
        raise DrawError(
            "a picture's ending tells its kind", got=file.name, allowed=", ".join(KINDS[:2]), fix="-o x.svg"
        )
    return _write_drawing(difference_drawing(a, b), file, None)


def _write_drawing(drawing: Drawing, file: Path, theme: Theme | None) -> Path:
    if file.suffix.lower() == ".png":
        return write_picture(file, to_png(drawing, theme or "light"))
    return write_picture(file, to_svg(drawing, theme or "auto").encode())


def _facts(source: str | Path, variant: str | None, shape: Shape | None, device: Device | None) -> Facts:
    """Facts of a spec's plan, and of a dense problem if there is one, which the plan has to take."""
    plans = find_plans(source)
    chosen = _named(plans, variant)
    device = device or of_amd(chosen.arch) or DEVICES["h200"]
    if shape is None:
        return facts(chosen, device)
    if min(shape) < 1:
        raise DrawError("a problem has M, N and K of at least 1", got=",".join(map(str, shape)))
    problem = packed(chosen, *shape)
    taking = [each for each in plans.values() if fits(each, problem)]
    if variant is not None and chosen not in taking:
        raise DrawError(
            "a variant takes problems whose rows are aligned as its copies need",
            got=f"{' x '.join(map(str, shape))} for {variant}",
            allowed=", ".join(each.variant for each in taking),
            fix="leave variant out",
        )
    return facts(taking[0] if variant is None else chosen, device, problem)


def _refuse(given: Mapping[str, object], rule: str) -> None:
    """Raises DrawError for the first argument that is given and does not go here."""
    for name, value in given.items():
        if value is not None:
            raise DrawError(rule, got=name, fix=f"leave {name} out")


def write_picture(file: Path, data: bytes) -> Path:
    """The file appears whole or not at all."""
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    try:
        try:
            temporary.write_bytes(data)
            os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DrawError(
            "a picture can be written",
            got=paths.unwritable(file, error),
            fix="name a file in a folder that you may write to with -o",
        ) from error
    return file


__all__ = [
    "KINDS",
    "LEVELS",
    "SHARED_LEVELS",
    "Aside",
    "Drawing",
    "Theme",
    "aside",
    "difference_drawing",
    "draw",
    "draw_difference",
    "find_plan",
    "is_layout",
    "layout_drawing",
    "level_drawing",
    "read_layout",
    "to_html",
    "to_png",
    "to_svg",
]
