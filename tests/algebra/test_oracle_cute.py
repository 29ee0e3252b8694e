"""CuTe C++ as an oracle: g++ reads its headers and agrees that our results are its own, type for type.

Needs g++, which only this test uses; without it the test fails, for an oracle that is skipped says nothing.
DISAGREEMENTS lists where CuTe and we are known to differ, each with its reason, and the tests hold that they still do.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from layoutgen import algebra
from layoutgen.algebra import Layout, Swizzle, parse
from layoutgen.errors import LayoutError
from tests.algebra.draws import DRAWS
from tests.algebra.oracle import Case, case, cases, compile_lines, expression, operation, same, text, type_of
from tests.algebra.reference import count, value, values

TOTAL = sum(wanted for wanted, _ in DRAWS.values())
PARTS = 4  # of about 8 CPU seconds and 0.9 GB each


@cache
def drawn() -> list[Case]:
    return [made for op, (wanted, draw) in DRAWS.items() for made in cases(op, wanted, draw)]


def test_there_are_a_thousand_different_cases() -> None:
    assert len({made.text for made in drawn()}) == TOTAL >= 1000


@pytest.mark.parametrize("part", range(PARTS))
def test_cute_agrees(part: int, tmp_path: Path) -> None:
    # Every fourth case, so that the parts cost alike.
    chosen = drawn()[part::PARTS]
    verdict = compile_lines([same(made.expression, made.type) for made in chosen], tmp_path)
    wrong = [f"{chosen[k].text}\n  ours: {chosen[k].type}\n  g++: {message}" for k, message in verdict.refused.items()]
    assert not wrong, "\n".join(wrong)


def test_the_oracle_finds_what_differs(tmp_path: Path) -> None:
    good = case("coalesce", parse("(2,4):(1,2)"))
    rejected = expression("composition", parse("(2,3):(4,1)"), parse("(3,4):(3,1)"))
    right, wrong = same(good.expression, good.type), same(good.expression, "Layout<_8,_2>")
    refused = compile_lines([right, wrong, f"using T = decltype({rejected});", right], tmp_path).refused
    assert set(refused) == {1, 2}
    assert "static assertion failed" in refused[1]


def test_a_missing_compiler_fails_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(pytest.fail.Exception, match=r"install g\+\+"):
        compile_lines([], tmp_path)


REFUSES = "refuses"


class Row(NamedTuple):
    """A call on which CuTe and we differ: what CuTe gives (as we print it, or a C++ type), and why we don't."""

    op: str
    arguments: tuple[str | Any, ...]
    cute: str
    reason: str

    def __str__(self) -> str:
        return text(self.op, *self.operands())

    def operands(self) -> list[Any]:
        return [parse(argument) if isinstance(argument, str) else argument for argument in self.arguments]

    def ours(self) -> Any:
        """Our result; None where we raise LayoutError."""
        try:
            return operation(self.op)(*self.operands())
        except LayoutError:
            return None

    def cute_type(self) -> str:
        return self.cute if self.is_cpp() else type_of(parse(self.cute))

    def is_cpp(self) -> bool:
        """Whether CuTe's answer is spelled as a C++ type, since it is no layout or swizzle that ours could be."""
        return "Layout<" in self.cute


CROSSES = "a step that doesn't divide a mode of A leaves it midway; CuTe checks only steps longer than the mode"
CARRIES = "each mode of B alone stays inside its mode of A, but their sum carries into the next, which CuTe ignores"
DISAGREEMENTS = [
    Row("composition", ("(4,3):(1,100)", "4:3"), "(2,2):(3,100)", CROSSES),
    Row("composition", ("(8,4):(1,16)", "(2,2):(5,4)"), "(2,2):(5,4)", CARRIES),
    Row("composition", ("(8,4):(1,16)", "(2,2):(6,3)"), "(2,2):(6,3)", CARRIES),
    Row("composition", ("(8,4):(1,16)", "(2,2):(-1,8)"), "(2,2):(-1,16)", "steps of both signs borrow between modes"),
    Row("logical_divide", ("(3,4):(4,1)", "2:1"), "(2,(2,4)):(4,(8,1))", CROSSES),
    Row("with_shape", ("(3,4):(4,1)", (2, 6)), "(2,(2,3)):(4,(8,1))", CROSSES),
    Row("complement", ("4:-1", 8), "Layout<Shape<_m1,_0>,Stride<_1,_m4>>", "extents of -1 and 0 are no shape"),
    Row("left_inverse", ("(2,2,2):(2,1,1)",), "(2,2):(4,1)", "modes of stride 1 overlap, and their sum carries"),
    Row("downcast", ("(4,1):(1,1)", 2), "(8,2):(1,1)", "CuTe also splits the mode of one element, which holds nothing"),
    Row("downcast", ("(4,4):(1,1)", 2), "(8,8):(1,1)", "an element of two modes of stride 1 would split twice"),
    Row("upcast", ("(4,2):(1,2)", 4), "(1,1):(1,1)", "the modes inside a unit of 4 run to offset 5, in a second unit"),
    Row("recast_layout", ("(8,8):(8,1)", 6, 16), "(24,3):(1,1)", "widened by 8, then narrowed by 3 along both modes"),
    Row("cosize", ("Sw<1,0,1> o 0 o 2:2",), "3", "the swizzle reaches offset 3, which CuTe doesn't count"),
    Row(
        "blocked_product", ("3:1", Layout((2,), (1,))), "((3,(2))):((1,(3)))", "CuTe pairs a mode with the whole tiler"
    ),
    Row("blocked_product", (Layout((3,), (3,)), "3:1"), REFUSES, "CuTe can't zip a tuple of one mode with an int"),
    Row("filter", ("Sw<1,0,1> o 0 o (2,2):(1,0)",), REFUSES, "CuTe filters a composed layout by profile only"),
]


def test_disagreements_are_still_as_listed(tmp_path: Path) -> None:
    lines = []
    for row in DISAGREEMENTS:
        call = expression(row.op, *row.operands())
        lines.append(f"using T{len(lines)} = decltype({call});" if row.cute == REFUSES else same(call, row.cute_type()))
    refused = compile_lines(lines, tmp_path).refused
    assert [str(row) for k, row in enumerate(DISAGREEMENTS) if (k in refused) != (row.cute == REFUSES)] == []
    assert [str(row) for row in DISAGREEMENTS if row.cute != REFUSES and type_of(row.ours()) == row.cute_type()] == []
    assert [str(row) for row in DISAGREEMENTS if row.cute == REFUSES and row.ours() is None] == []


def composes(result: Any, a: Layout, b: Any) -> bool:
    """Whether result(i) == a(b(i)), by definition."""
    indices = range(count(a.shape)) if isinstance(b, Swizzle) else range(result.size)
    return all(result(i) == value(a, b(i)) for i in indices)


def divides(result: Layout, a: Layout, b: Layout) -> bool:
    whole = algebra.make_layout(b, algebra.complement(b, count(a.shape)))
    return composes(result, a, whole)


def inverts(result: Layout, a: Layout) -> bool:
    return all(value(a, value(result, offset)) == offset for offset in values(a))


def narrows(result: Layout, a: Layout, n: int) -> bool:
    return sorted(values(result)) == sorted(n * offset + k for offset in values(a) for k in range(n))


def widens(result: Layout, a: Layout, n: int) -> bool:
    return set(values(result)) == {offset // n for offset in values(a)}


def spans(result: int, a: Any) -> bool:
    offsets = [a(i) for i in range(a.size)]
    return bool(result == 1 + max(offsets))


LAWS: dict[str, Callable[..., bool]] = {
    "composition": composes,
    "logical_divide": divides,
    "with_shape": lambda result, a, shape: composes(result, a, Layout(shape)),
    "left_inverse": inverts,
    "downcast": narrows,
    "upcast": widens,
    "cosize": spans,
}


@pytest.mark.parametrize("row", [row for row in DISAGREEMENTS if row.op in LAWS and not row.is_cpp()], ids=str)
def test_cutes_answer_breaks_the_operations_law(row: Row) -> None:
    law = LAWS[row.op]
    assert not law(parse(row.cute), *row.operands())
    assert row.ours() is None or law(row.ours(), *row.operands())
