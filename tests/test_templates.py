"""A template prints what the plan decided: one that computes would be a second planner."""

from __future__ import annotations

import jinja2
import pytest
from jinja2 import nodes

from layoutgen import paths

ARITHMETIC = (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow, nodes.Neg)
TEMPLATES = sorted(paths.templates().glob("*.j2"))


def arithmetic(text: str) -> list[tuple[int, str]]:
    """(line, operation) of everything in a template that computes a number."""
    tree = jinja2.Environment().parse(text)
    return [(node.lineno, type(node).__name__) for node in tree.find_all(ARITHMETIC)]


def test_arithmetic_is_found() -> None:
    assert arithmetic("{{ a * 2 }}\n{% set b = a // c %}\n{% if a + 1 > b %}{% endif %}") == [
        (1, "Mul"),
        (2, "FloorDiv"),
        (3, "Add"),
    ]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_do_no_arithmetic(path) -> None:
    assert arithmetic(path.read_text()) == []


def test_there_are_templates() -> None:
    assert {path.name for path in TEMPLATES} >= {"simt.cu.j2", "steps.cu.j2", "copies.cu.j2"}
