"""A picture read back: its panels as arrays of looks and labels, from the SVG's text alone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import numpy as np

from layoutgen.draw import level_drawing, to_svg
from layoutgen.draw.palette import TONES
from layoutgen.plan import Plan

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Read:
    """look, label: (rows, columns) arrays of text; a label is that of the smallest rect which holds it.

    texts: element -> the last text whose middle lies there. covered: how many rects cover each element. heavy: a path.
    """

    look: np.ndarray
    label: np.ndarray
    texts: dict[tuple[int, int], str]
    covered: np.ndarray
    heavy: str


def read(svg: str) -> dict[str, Read]:
    """SVG -> panel id -> what it shows."""
    root = ElementTree.fromstring(svg)
    return {group.get("id", ""): panel(group) for group in root.iter(f"{SVG}g") if group.get("data-unit")}


def panel(group: ElementTree.Element) -> Read:
    width, height = map(float, group.attrib["data-unit"].split())
    columns, rows = map(int, group.attrib["data-extent"].split())
    look = np.full((rows, columns), "", dtype=object)
    label = np.full((rows, columns), "", dtype=object)
    covered = np.zeros((rows, columns), dtype=int)
    rects = []
    heavy = ""
    for child in group:
        if child.tag == f"{SVG}path" and child.get("class") == "strong":
            heavy = child.attrib["d"]
        for rect in child.findall(f"{SVG}rect"):
            x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
            place = (slice(round(y / height), round((y + h) / height)), slice(round(x / width), round((x + w) / width)))
            look[place] = child.attrib["class"].split()[1]
            covered[place] += 1
            rects.append((w * h, x, y, w, h, place))
        for path in child.findall(f"{SVG}path"):  # runs, in units of elements
            for row, runs in strokes(path.attrib["d"]):
                for start, length in runs:
                    look[row, start : start + length] = path.attrib["class"].removeprefix("s-")
                    covered[row, start : start + length] += 1
    rects.sort(key=lambda rect: rect[0])
    texts = {}
    for child in group:
        for text in child.findall(f"{SVG}text"):
            x, y = float(text.attrib["x"]), float(text.attrib["y"]) - 0.36 * float(child.attrib["font-size"])
            if x < 0 or y < 0:
                continue  # a tick or the title
            place = next(place for _, left, top, w, h, place in rects if 0 <= x - left <= w and 0 <= y - top <= h)
            was = label[place].flat[0]
            label[place] = f"{was} {text.text}".strip()
            texts[int(y // height), int(x // width)] = text.text or ""
    return Read(look, label, texts, covered, heavy)


def strokes(path: str) -> list[tuple[int, list[tuple[int, int]]]]:
    """M3 0.5h2m1 0h4 -> (row, [(column, length), ..]) of each line."""
    lines = []
    for line in path.split("M")[1:]:
        start, *rest = re.split(r"h|m", line)
        x, row = int(start.split()[0]), int(start.split()[1].split(".")[0])
        runs = []
        for move, step in zip(re.findall(r"[hm]", line), rest, strict=True):
            if move == "h":
                runs.append((x, int(step)))
                x += int(step)
            else:
                x += int(step.split()[0])
        lines.append((row, runs))
    return lines


def shown(plan: Plan, level: str, **options: object) -> dict[str, Read]:
    return read(to_svg(level_drawing(plan, level, **options)))  # type: ignore[arg-type]


def ends(plans: tuple[Plan, ...]) -> set[Plan]:
    """The first variant and the last: the widest copies and the narrowest."""
    return {plans[0], plans[-1]}


def text(numbers: np.ndarray, form: str = "{}") -> np.ndarray:
    return np.vectorize(form.format, otypes=[object])(numbers)


def tones(numbers: np.ndarray) -> np.ndarray:
    return text(numbers % TONES, "t{}")
