"""Derivations end in the operation's own result, and each step's claim and arithmetic hold by evaluation."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from layoutgen import algebra
from layoutgen.algebra import ComposedLayout, Layout, Swizzle, parse
from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.explain import (
    EXPLAINED,
    Disjoint,
    Explanation,
    Same,
    SameOffsets,
    SideBySide,
    Step,
    Undoes,
    explain,
)
from layoutgen.algebra.runtime import RuntimeInt
from layoutgen.errors import LayoutError
from tests.algebra.draws import DRAWS
from tests.algebra.reference import value, values

EQUATION = re.compile(r"\(?(-?\d+(?: (?:\*|//) -?\d+)? [!=]= -?\d+)\)?")


def at(function: Any, index: int) -> Any:
    """Layouts by definition; swizzles, which have no shape, and coordinate layouts by calling them."""
    if isinstance(function, ComposedLayout):
        return at(function.layout_a, function.offset + at(function.layout_b, index))
    if isinstance(function, Layout) and all(type(d) is int for d in function.flat_stride):
        return value(function, index)
    offset = function(index)
    while isinstance(offset, tuple) and offset and offset[-1] == 0:
        offset = offset[:-1]  # a coordinate says nothing of later axes
    return offset


def offsets(layout: Any) -> list[int]:
    return values(layout) if isinstance(layout, Layout) else [at(layout, i) for i in range(layout.size)]


def holds(step: Step) -> bool:
    result: Any = step.result
    claim = step.claim
    if claim is None:
        return step.inner is not None and step.inner.result == result
    if isinstance(claim, SameOffsets):
        return sorted(offsets(result)) == sorted(offsets(claim.other))
    if isinstance(claim, Disjoint):
        sums = [a + b for a in set(values(claim.other)) for b in values(result)]
        return len(set(sums)) == len(sums)
    if isinstance(claim, Undoes):
        return [value(claim.other, index) for index in values(result)] == list(range(result.size))
    if isinstance(claim, SideBySide):
        return list(map(offsets, result)) == list(map(offsets, claim.parts))
    assert isinstance(claim, Same)
    size = 4096 if isinstance(result, Swizzle) else result.size
    return all(at(result, i) == through(claim.chain, i) for i in range(size))


def through(chain: tuple[Any, ...], index: int) -> int:
    for function in reversed(chain):
        index = at(function, index)
    return index


def check(explanation: Explanation) -> None:
    steps = list(explanation.walk())
    assert explanation.steps[-1].result == explanation.result
    for step in steps:
        assert holds(step), f"{explanation}\n{step}"
        for equation in EQUATION.findall(step.text):
            assert eval(equation), step.text


@pytest.mark.parametrize("name", EXPLAINED)
def test_every_step_of_random_derivations_holds(name: str) -> None:
    random = Random(f"explain {name}")
    _, draw = DRAWS[name]
    equations = explained = 0
    for _ in range(150):
        arguments = draw(random)
        try:
            result = getattr(algebra, name)(*arguments)
        except LayoutError:
            with pytest.raises(LayoutError):
                explain(name, *arguments)
            continue
        explanation = explain(name, *arguments)
        assert explanation.result == result
        check(explanation)
        explained += 1
        equations += len(EQUATION.findall(str(explanation)))
    assert explained > 60 and equations > explained // 2


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("composition", ("(8,4):(1,16)", "4:-1")),
        ("composition", ("(4,2):(4,1)", "Sw<1,0,1>")),
        ("composition", ("Sw<1,0,2>", "Sw<1,1,2>")),
        ("composition", ("8:1", "Sw<1,0,1> o 0 o (4,2):(1,4)")),
        ("composition", ("Sw<3,0,3> o 8 o (8,8):(8,1)", "<4,_>")),
        ("composition", ("4:2", "():()")),
        ("coalesce", ("1:7",)),
        ("right_inverse", ("(1,4,2):(3,0,1)",)),
        ("complement", ("1:0", "8")),
    ],
)
def test_chosen_derivations_hold(name: str, arguments: tuple[str, ...]) -> None:
    check(explain(name, *map(parse, arguments)))


AXES = Layout((4, 4), (ScaledBasis(1, 0), ScaledBasis(1, 1)))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("composition", (AXES, Layout((2, 8), (8, 1)))),
        ("coalesce", (Layout((4, 2, 3), (ScaledBasis(1, 0), ScaledBasis(4, 0), ScaledBasis(1, 1))),)),
        ("logical_divide", (AXES, Layout(2, 2))),
    ],
)
def test_derivations_of_coordinate_layouts_hold(name: str, arguments: tuple[Any, ...]) -> None:
    explanation = explain(name, *arguments)
    assert explanation.result == getattr(algebra, name)(*arguments)
    assert all(holds(step) for step in explanation.walk())


def test_a_stride_that_names_a_mode_says_so() -> None:
    tile = Layout((4, 2), (ScaledBasis(1, 1), ScaledBasis(2, 0)))
    explanation = explain("composition", Layout((8, 4), (1, 8)), tile)
    assert "mode 4:1@1 of B goes along the mode of A that 1@1 names" in str(explanation)
    assert "coalesced" not in str(explanation)
    assert explanation.result == Layout((4, 2), (8, 2))


def test_extents_known_at_run_time_are_explained() -> None:
    rows = RuntimeInt(16, "m")
    explanation = explain("logical_divide", Layout(rows), 8)
    assert "?{div=2} of that, rounded up, make all ?{div=16}" in str(explanation)
    assert explanation.result == algebra.logical_divide(Layout(rows), 8)


def test_the_checks_can_fail() -> None:
    (step, *_) = explain("composition", parse("(6,2):(8,2)"), parse("4:3")).steps
    assert holds(step)
    assert not holds(Step(step.text, Layout((2, 2), (24, 3)), step.claim))
    assert not holds(Step("", Layout(3, 1), Disjoint(Layout(2, 1))))
    assert not holds(Step("", Layout(4, 2), Undoes(Layout(4, 2))))
    assert not holds(Step("", Layout(4, 2), SameOffsets(Layout(4, 1))))
    assert not holds(Step("", Layout((4, 2)), SideBySide((Layout(4), Layout(2)))))
    assert EQUATION.findall("3:2 (3 * 8 == 25), 6 // 2 == 3, 4 != 2") == ["3 * 8 == 25", "6 // 2 == 3", "4 != 2"]


def test_reads_like_a_derivation() -> None:
    assert (
        str(explain("logical_divide", parse("(4,2,3):(2,1,8)"), parse("4:2")))
        == """\
logical_divide((4,2,3):(2,1,8), 4:2)
  1. where the tiles start: what the tile leaves out
     complement(4:2, (4,2,3))
       1. the modes that move, by stride: only which offsets they take matters
          4:2
       2. 4:2 starts at 2, and what comes before fills 1: 2 // 1 == 2, so 2 copies fit before it
          2:1
       3. all of it takes 8; (1,1,3) of that, rounded up, make (4,2,3)
          (2,3):(1,8)
       = (2,3):(1,8)
  2. read the layout through (tile, rest)
     composition((4,2,3):(2,1,8), (4,(2,3)):(2,(1,8)))
       1. mode 4:2 of B takes 2 steps of 2 along 4:2 of A (2 * 2 == 4), then 2 of 4 along 2:1 (1 * 1 == 1)
          (2,2):(4,1)
       2. mode 2:1 of B takes 2 steps of 1 along 4:2 of A (1 * 2 == 2)
          2:2
       3. mode 3:8 of B takes 3 steps of 8 along 3:8 of A (1 * 8 == 8)
          3:8
       4. nested like B: no sum of these steps leaves the mode of A that they go along
          ((2,2),(2,3)):((4,1),(2,8))
       = ((2,2),(2,3)):((4,1),(2,8))
  = ((2,2),(2,3)):((4,1),(2,8))"""
    )


def test_an_operation_without_derivation_is_named() -> None:
    with pytest.raises(LayoutError, match="allowed: coalesce, complement, composition"):
        explain(algebra.raked_product, Layout(2), Layout(2))
