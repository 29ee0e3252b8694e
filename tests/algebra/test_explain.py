"""Derivations end in the operation's own result, and each step's claim and arithmetic hold by evaluation."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from layoutgen import algebra
from layoutgen.algebra import ComposedLayout, Layout, Swizzle, View, parse
from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.explain import (
    EXPLAINED,
    Disjoint,
    Finds,
    SameBits,
    SameOffsets,
    SameSet,
    SideBySide,
    Slice,
    Step,
    Undoes,
    Units,
    explain,
)
from layoutgen.algebra.runtime import RuntimeInt
from layoutgen.errors import LayoutError
from tests.algebra.derivations import EQUATION, check, check_refused, explained_or_refused, holds
from tests.algebra.draws import DRAWS, nested, shape, strided, swizzle, swizzled


def tilers(r: Random) -> Any:
    return r.choice((None, r.choice((1, 2, 3, 5, 8)), Layout(r.choice((2, 3, 4)), r.choice((0, 1, 2, 3)))))


def any_tiler(r: Random) -> Any:
    return tilers(r) if r.random() < 0.5 else tuple(tilers(r) for _ in range(r.randint(1, 3)))


def coordinates(r: Random, most: int = 3) -> tuple[int | None, ...]:
    return tuple(r.choice((None, 0, 1)) for _ in range(r.randint(1, most)))


def a_tile(r: Random) -> tuple[Any, ...]:
    layout = Layout((8, 12), r.choice(((1, 8), (12, 1), (1, 16)))) if r.random() < 0.7 else swizzled(r)
    tiler = tuple(r.choice((1, 2, 4)) for _ in range(min(2, layout.rank)))
    place = coordinates(r, len(tiler))
    if r.random() < 0.3 and len(tiler) == 2:
        return layout, (*tiler, 3), (*r.choices((0, 1), k=2), None), (1, 1, None)
    return layout, tiler, place


def a_partition(r: Random) -> tuple[Any, ...]:
    layout = Layout((8, 16), r.choice(((1, 8), (16, 1), (3, 24))))
    threads = Layout((r.choice((2, 4)), r.choice((2, 4))), r.choice(((1, 4), (4, 1))))
    one_mode = (Layout(16, 2), threads, r.randrange(8), r.choice(((1, None), (None, 1))))
    return one_mode if r.random() < 0.2 else (layout, threads, r.randrange(12))


def signed(r: Random, most: int = 3) -> Layout:
    return strided(r, (-4, -2, -1, 0, 1, 1, 2, 3, 4, 6, 8, 16), most=most, size=256)


OWN: dict[str, Callable[[Random], tuple[Any, ...]]] = {
    "local_tile": a_tile,
    "local_partition": a_partition,
    "slice_and_offset": DRAWS["slice"][1],
}
# Arguments of which many are refused.
AWKWARD: dict[str, Callable[[Random], tuple[Any, ...]]] = {
    **{op: lambda r: (signed(r), any_tiler(r)) for op in EXPLAINED if op.endswith(("_divide", "_product"))},
    "blocked_product": lambda r: (signed(r), signed(r)),
    "coalesce": lambda r: (signed(r), (1,) * r.randint(1, 4)),
    "complement": lambda r: (signed(r), 48),
    "composition": lambda r: (signed(r), signed(r) if r.random() < 0.7 else r.choice((any_tiler(r), swizzle(r)))),
    "downcast": lambda r: (signed(r), r.randint(0, 4)),
    "left_inverse": lambda r: (signed(r) if r.random() < 0.8 else swizzled(r),),
    "local_partition": lambda r: (signed(r), nested(r, extents=(2, 4), most=2), r.randrange(20)),
    "local_tile": lambda r: (signed(r), any_tiler(r), coordinates(r)),
    "make_ordered_layout": lambda r: (shape(r, size=256), r.choice((1, (2, 1), (1, 1, 2), (2, (1, 3))))),
    "raked_product": lambda r: (signed(r), signed(r)),
    "recast_layout": lambda r: (signed(r), r.choice((0, 4, 6, 8, 16)), r.choice((4, 6, 8, 16))),
    "right_inverse": lambda r: (swizzled(r),),
    "slice_and_offset": lambda r: (signed(r), coordinates(r)),
    "tile_to_shape": lambda r: (signed(r), (r.choice((4, 8, 12)), 16)),
    "upcast": lambda r: (signed(r) if r.random() < 0.8 else swizzle(r), r.randint(0, 8)),
    "with_shape": lambda r: (signed(r), shape(r, size=256)),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_every_step_of_random_derivations_holds(name: str) -> None:
    random = Random(f"explain {name}")
    draw = OWN[name] if name in OWN else DRAWS[name][1]
    explanations = [explained_or_refused(name, draw(random)) for _ in range(60)]
    done = [explanation for explanation in explanations if explanation.error is None]
    assert len(done) > 25
    equations = sum(len(EQUATION.findall(str(explanation))) for explanation in done)
    assert equations > len(done) // 2 or name in ("filter", "slice_and_offset")


@pytest.mark.parametrize("name", sorted(AWKWARD))
def test_what_is_refused_is_explained_up_to_there(name: str) -> None:
    random = Random(f"refused {name}")
    explanations = [explained_or_refused(name, AWKWARD[name](random)) for _ in range(60)]
    refused = [explanation for explanation in explanations if explanation.error is not None]
    assert len(refused) >= 5
    for explanation in refused:
        text = str(explanation)
        assert "what comes next" not in text, text
        assert text.count("refused: ") == 1 and text.index("refused: ") < text.index("got: ")


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
        ("complement", ("Sw<1,0,2> o 0 o (2,4):(1,2)", "32")),
        ("complement", ("Sw<1,0,2> o 0 o (2,4):(1,2)",)),
        ("right_inverse", ("Sw<1,0,3> o 0 o (4,4):(4,1)",)),
        ("left_inverse", ("Sw<1,0,3> o 2 o (4,4):(4,1)",)),
        ("left_inverse", ("(2,2):(1,1)",)),
        ("left_inverse", ("1:0",)),
        ("upcast", ("(4,2):(-1,8)", "2")),
        ("upcast", ("Sw<2,1,3>", "4")),
        ("downcast", ("(4,2):(-1,8)", "2")),
        ("downcast", ("(4,1):(1,1)", "2")),
        ("recast_layout", ("(8,3):(1,8)", "6", "16")),
        ("recast_layout", ("(8,3):(-1,8)", "6", "16")),
        ("make_ordered_layout", ("(4,(2,8),3)", "(2,3,1)")),
        ("make_ordered_layout", ("(2,3,4,2)", "(0,2,3,0)")),
        ("make_layout_like", ("Sw<1,0,3> o 0 o (4,4):(4,1)",)),
        ("make_fragment_like", ("Sw<1,0,3> o 0 o ((2,2),4):((4,1),8)",)),
        ("blocked_product", ("8:6", "12:-2")),
        ("raked_product", ("8:6", "12:-2")),
        ("blocked_product", ("Sw<1,0,3> o 0 o (4,4):(4,1)", "2:1")),
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
        ("complement", (Layout((2, 2), (ScaledBasis(4, 1), ScaledBasis(1, 1))), 16)),
        ("filter", (Layout((4, 2), (ScaledBasis(1, 0), 0)),)),
        ("with_shape", (AXES, (2, 8))),
        ("local_tile", (AXES, (2, 2), (1, None))),
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
    unknown = parse("(?,4):(4,1)")
    for name, arguments in (
        ("right_inverse", ()),
        ("logical_product", (2,)),
        ("complement", ((2, 2),)),
        ("filter", ()),
    ):
        explanation = explain(name, unknown, *arguments)
        assert explanation.result == explanation.steps[-1].result == getattr(algebra, name)(unknown, *arguments)


def test_a_refusal_comes_after_the_steps_that_can_be_done() -> None:
    assert (
        str(explain("composition", parse("(8,6):(1,16)"), parse("(2,3,4):(1,2,5)")))
        == """\
composition((8,6):(1,16), (2,3,4):(1,2,5))
  1. mode 2:1 of B takes 2 steps of 1 along 8:1 of A (1 * 1 == 1)
     2:1
  2. mode 3:2 of B takes 3 steps of 2 along 8:1 of A (2 * 1 == 2)
     3:2
  3. mode 4:5 of B on its way through A
     refused: composition: a mode of B walks through A one mode at a time
       got: (8,6):(1,16) o (2,3,4):(1,2,5): mode 4:5 of B steps over the end of a mode of A at step 2 of 5
       allowed: strides and extents that divide the modes of A or are multiples of them: 8:1, 6:16
       fix: choose a tile that divides this mode of A, or compose mode by mode with a tuple"""
    )


def test_modes_that_only_together_leave_a_mode_are_refused_last() -> None:
    explanation = explain("composition", parse("(8,4):(1,16)"), parse("(2,2,1):(5,4,3)"))
    assert [step.result for step in explanation.steps] == [Layout(2, 5), Layout(2, 4), Layout(1, 0), None]
    assert "no sum of these steps" in explanation.steps[-1].text
    assert "reaches coordinate 9" in str(explanation.error)


def test_a_refusal_inside_is_told_where_it_happens() -> None:
    explanation = explain("zipped_divide", parse("(8,(4,3)):(1,(8,100))"), (4, parse("4:3")))
    text = str(explanation)
    check_refused(explanation, explanation.error or LayoutError(""))
    assert text.count("refused: ") == text.count("fix: ") == 1
    assert text.index("(4,2):(1,4)") < text.index("mode 4:3 of B on its way through A") < text.index("refused: ")
    assert [len(explanation.steps), explanation.steps[0].inner.steps[0].result] == [1, Layout((4, 2), (1, 4))]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("composition", (Layout(4), "4:1")),
        ("composition", (Swizzle(1, 0, 2), 4)),
        ("composition", (Layout(4), Layout(2, ScaledBasis(1, 3)))),
        ("composition", (Layout(8), ComposedLayout(Swizzle(1, 0, 2), 8, Layout(8)))),
        ("complement", (AXES, 32)),
        ("complement", (ComposedLayout(Layout(8), 0, Layout(8)),)),
        ("right_inverse", (AXES,)),
        ("left_inverse", (AXES,)),
        ("left_inverse", (ComposedLayout(Layout(8), 0, Layout(8)),)),
        ("logical_divide", (Layout(8), 0)),
        ("logical_product", (Layout(8), 0)),
        ("upcast", (Layout(8), 0)),
        ("upcast", (AXES, 2)),
        ("upcast", (ComposedLayout(Layout(8), 0, Layout(8)), 2)),
        ("downcast", (ComposedLayout(Swizzle(1, 0, 2), 0, Layout((2, 2), (1, 1))), 2)),
        ("recast_layout", (Swizzle(1, 4, 2), 6, 16)),
        ("with_shape", (Layout(8), (4, 0))),
        ("tile_to_shape", (Layout((2, 2)), (4, 4), (1, 2, 3))),
        ("local_tile", (Layout((8, 8)), (2, 2), (0, 0), (1,))),
    ],
)
def test_chosen_refusals_are_explained(name: str, arguments: tuple[Any, ...]) -> None:
    explanation = explained_or_refused(name, arguments)
    assert explanation.error is not None


def test_the_checks_can_fail() -> None:
    (step, *_) = explain("composition", parse("(6,2):(8,2)"), parse("4:3")).steps
    assert holds(step)
    assert not holds(Step(step.text, Layout((2, 2), (24, 3)), step.claim))
    assert not holds(Step("", Layout(3, 1), Disjoint(Layout(2, 1))))
    assert not holds(Step("", Layout(4, 2), Undoes(Layout(4, 2))))
    assert not holds(Step("", Layout(4, 2), SameOffsets(Layout(4, 1))))
    assert not holds(Step("", Layout((4, 2)), SideBySide((Layout(4), Layout(2)))))
    assert not holds(Step("", Layout(4, 2), SameSet(Layout(4, 1))))
    assert not holds(Step("", Layout(4, 2), Finds(Layout(4, 2), Layout(4, 2))))
    assert not holds(Step("", Layout(4, 1), Units(Layout(4, 1), 2)))
    assert not holds(Step("", Swizzle(1, 1, 2), Units(Swizzle(1, 1, 2), 2)))
    assert not holds(Step("", Layout(4, 2), SameBits(Layout(4, 1), 2, 1)))
    assert not holds(Step("", Swizzle(1, 1, 2), SameBits(Swizzle(1, 1, 2), 2, 1)))
    assert not holds(Step("", View(Layout(4, 1), 1), Slice(Layout((2, 4)), (1, None))))
    assert not holds(Step("", None))
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
       4. nested like B, where no sum of these steps may leave the mode of A that they go along
          ((2,2),(2,3)):((4,1),(2,8))
       = ((2,2),(2,3)):((4,1),(2,8))
  = ((2,2),(2,3)):((4,1),(2,8))"""
    )


def test_an_operation_without_derivation_is_named() -> None:
    with pytest.raises(LayoutError, match="allowed: blocked_product, coalesce, complement"):
        explain(algebra.flatten, Layout(2))
