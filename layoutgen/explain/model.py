"""What an explanation is made of, and how it reads: sections of text, of layouts with their calls, and of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from textwrap import wrap
from typing import Any

from layoutgen.algebra import Layout
from layoutgen.algebra.evaluate import eval_command

WIDTH = 100
INDENT = "  "
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text}


@dataclass(frozen=True, slots=True)
class Step:
    """One layout, and the call of the algebra that makes it.

    label: its name, with domain -> codomain where it is one that the kernel carries. call: an expression that
    `layoutgen.algebra.evaluate` reads and that gives the result; None where the layout is given rather than made.
    says: in plain words. of: the layout of the plan that it is, as a path such as "threads.m" or "tile.value_mode.0".
    """

    label: str
    call: str | None
    result: Layout
    says: str = ""
    of: str | None = None

    def derivation(self) -> list[str]:
        """How the call reaches its result, line by line; nothing for a call that only puts its arguments together."""
        if self.call is None:
            return []
        told = eval_command(self.call, explain=True)
        return [line for each in told if each.count("\n") > 1 for line in each.splitlines()]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "result": str(self.result), "derivation": self.derivation()}


@dataclass(frozen=True, slots=True)
class Rows:
    """A small table: a name for each row, and its cells, flush right and as wide as the widest."""

    rows: tuple[tuple[str, tuple[str, ...]], ...]

    def to_json(self) -> dict[str, Any]:
        return {"rows": [{"name": name, "cells": list(cells)} for name, cells in self.rows]}


Entry = Text | Step | Rows


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    entries: tuple[Entry, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, Step))

    def lines(self, *, derive: bool = False) -> Iterator[str]:
        """The section as it is read; derive: each call with its derivation beneath."""
        yield from wrap(self.title, WIDTH, subsequent_indent=INDENT)
        for kind, entries in groupby(self.entries, type):
            for entry in [list(entries)] if kind is Step and not derive else ([each] for each in entries):
                for line in _shown(entry):
                    yield f"{INDENT * (1 if kind is Text else 2)}{line}"
                if derive and isinstance(entry[0], Step):
                    yield from (f"{INDENT * 4}{line}" for line in entry[0].derivation())


def _shown(entries: Sequence[Entry]) -> Iterator[str]:
    """Consecutive steps are set in columns; everything else stands alone."""
    first = entries[0]
    if isinstance(first, Text):
        yield from wrap(first.text, WIDTH - len(INDENT), subsequent_indent=INDENT, break_on_hyphens=False)
    elif isinstance(first, Rows):
        yield from _rows(first)
    else:
        yield from _steps([entry for entry in entries if isinstance(entry, Step)])


def _steps(steps: Sequence[Step]) -> Iterator[str]:
    """Columns: label, call, = result, and what it says; what does not fit goes to a line of its own, under the call."""
    width = WIDTH - 2 * len(INDENT)
    left = max(len(step.label) for step in steps) + 2
    fit = [step for step in steps if step.call and left + len(step.call) + len(f" = {step.result}") <= width]
    calls = max((len(step.call or "") for step in fit), default=0)
    results = max((len(str(step.result)) for step in fit), default=0)
    for step in steps:
        lines = _call_lines(f"{step.label:<{left}}", step.call or str(step.result), width)
        if step in fit and left + calls + 3 + len(str(step.result)) <= width:
            lines = [f"{step.label:<{left}}{step.call or '':<{calls}} = {step.result}"]
        elif step.call and len(lines[-1]) + 3 + len(str(step.result)) <= width:
            lines[-1] += f" = {step.result}"
        elif step.call:
            lines.append(f"{'':<{left}}= {step.result}")
        for column in (max(left + calls + results + 5, len(lines[-1]) + 2), len(lines[-1]) + 2):
            if step.says and column + len(step.says) <= width:
                lines[-1] = f"{lines[-1]:<{column}}{step.says}"
                break
        else:
            lines += wrap(step.says, width, initial_indent=" " * left, subsequent_indent=" " * left)
        yield from lines


def _call_lines(label: str, call: str, width: int) -> list[str]:
    """A call behind its label, broken between the arguments of the outermost function where it is too long."""
    depth, glued = 0, ""
    for char in call:
        depth += (char == "(") - (char == ")")
        glued += NO_BREAK if char == " " and depth > 1 else char
    lines = wrap(
        label + glued, width, subsequent_indent=" " * len(label), break_long_words=False, break_on_hyphens=False
    )  # fmt: skip
    return [line.replace(NO_BREAK, " ") for line in lines]


def _rows(table: Rows) -> Iterator[str]:
    """What does not fit a line is cut short: ..; it is all in to_json."""
    left = max(len(name) for name, _ in table.rows) + 2
    cell = max(len(cell) for _, cells in table.rows for cell in cells)
    fit = max(1, (WIDTH - 2 * len(INDENT) - left) // (cell + 1))
    for name, cells in table.rows:
        shown = cells if len(cells) <= fit else (*cells[: fit - 1], "..")
        yield f"{name:<{left}}" + " ".join(f"{each:>{cell}}" for each in shown)


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a spec's tiling is composed, and who owns what; `str` is the page.

    variant: which of the spec's kernels, None where its levels do not compose. findings: what check says of the spec.
    followed: the element of C, and the thread if one was asked for, as plain data.
    """

    name: str
    about: str
    variant: str | None
    variants: tuple[str, ...]
    legal: bool
    sections: tuple[Section, ...]
    findings: tuple[str, ...] = ()
    followed: dict[str, Any] = field(default_factory=dict)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every layout that is shown."""
        return tuple(step for section in self.sections for step in section.steps)

    def lines(self, *, derive: bool = False) -> Iterator[str]:
        variant = f", variant {self.variant} of {len(self.variants)}" if self.variant is not None else ""
        yield from wrap(f"{self.name}{variant}: {self.about}", WIDTH, subsequent_indent=INDENT)
        for section in self.sections:
            yield ""
            yield from section.lines(derive=derive)
        for finding in self.findings:
            yield ""
            yield from finding.splitlines()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "about": self.about,
            "variant": self.variant,
            "variants": list(self.variants),
            "legal": self.legal,
            "sections": [
                {"title": section.title, "entries": [entry.to_json() for entry in section.entries]}
                for section in self.sections
            ],
            "findings": list(self.findings),
            **self.followed,
        }
