"""Composition on random pairs with B inside A's domain: exact wherever a layout with these values exists.

The pairs and the search that decides which of them are representable are those of benchmarks/composition.py, which does
20,000 of them beside pycute and tensor-layouts.
"""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.composition import PEERS, classify, pairs, values_of, verdict
from layoutgen.algebra import Layout, composition
from layoutgen.errors import LayoutError

PAIRS = 3000


def test_composition_is_exact_inside_as_domain_and_ahead_of_its_peers() -> None:
    counts = {library: Counter[tuple[str, str]]() for library in PEERS}
    for a, b in pairs(PAIRS, seed=1):
        kind = classify(a, b)
        outer = values_of(a.shape, a.stride)
        wanted = [outer[index] for index in values_of(b.shape, b.stride)]
        for library, compose in PEERS.items():
            counts[library][kind, verdict(compose, a, b, wanted)] += 1
    assert set(counts["layoutgen"]) == {("representable", "right"), ("exempt", "refused"), ("none", "refused")}
    exact = counts["layoutgen"]["representable", "right"]
    assert PAIRS // 3 < exact < PAIRS - PAIRS // 4, "the pairs test one side only"
    for peer in ("pycute", "tensor-layouts"):
        assert sum(n for (_, outcome), n in counts[peer].items() if outcome == "right") < exact


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # A step along both modes at once, as long as it carries nowhere.
        ("(8,8):(16,1)", "2:9", "2:17"),
        ("(8,8):(16,1)", "(2,3):(32,9)", "(2,3):(4,17)"),
        # Leaves that split where a mode of A ends.
        ("(16,16):(16,3)", "4:24", "(2,2):(131,9)"),
        ("(4,3):(1,100)", "6:2", "(2,3):(2,100)"),
        # A last step that reaches past a multiple of the extent, but stays inside.
        ("(8,4):(1,16)", "3:3", "3:3"),
        ("(8,4):(1,16)", "(2,2):(3,4)", "(2,2):(3,4)"),
        # Stride 0 stays 0 whatever A is.
        ("(4,4):(2,100)", "(3,2):(0,5)", "(3,2):(0,102)"),
        # A backward walk mirrors the forward one.
        ("(4,8):(1,100)", "8:-2", "(2,4):(-2,-100)"),
        # Steps over the end of a mode that A's strides bring back onto one line.
        ("(12,4,16):(2,0,24)", "16:32", "16:16"),
        ("(12,4,16):(2,0,24)", "(8,2):(32,256)", "(8,2):(16,128)"),
    ],
)
def test_worked_examples(a: str, b: str, expected: str) -> None:
    assert str(composition(Layout.parse(a), Layout.parse(b))) == expected


@pytest.mark.parametrize(
    ("a", "b", "what"),
    [
        ("(8,8):(16,1)", "6:3", "steps over the end of a mode of A at step 3 of 3"),
        ("(3,6):(16,6)", "1:4", "moves nowhere"),
        ("(8,6):(1,16)", "5:2", "crosses a mode of A after 4 of 5 steps of 2"),
        ("(8,4):(1,16)", "(2,2):(5,4)", "reaches coordinate 9"),
        ("(8,4):(1,16)", "(2,2):(-5,-4)", "reaches coordinate 9"),
    ],
)
def test_a_refusal_names_the_step(a: str, b: str, what: str) -> None:
    with pytest.raises(LayoutError) as raised:
        composition(Layout.parse(a), Layout.parse(b))
    assert what in str(raised.value.got)
