"""Expressions: what they evaluate to, what they print, and where the caret points when they are wrong."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from layoutgen import algebra
from layoutgen.algebra import ComposedLayout, Layout, Swizzle
from layoutgen.algebra.basis import ScaledBasis
from layoutgen.algebra.evaluate import eval_command, evaluate, grid
from layoutgen.algebra.explain import EXPLAINED
from layoutgen.algebra.expression import MOST_TEXT, functions, show
from layoutgen.errors import LayoutError
from tests.algebra.draws import DRAWS
from tests.algebra.oracle import cases, text


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("composition((8,4):(4,1), 4:2)", Layout(4, 8)),
        ("(8,4):(4,1) o 4:2", Layout(4, 8)),
        ("64:2 o 16:2 o 4:2", Layout(4, 8)),
        (" ( 8 , 4 ) : ( 4 , 1 ) ", Layout((8, 4), (4, 1))),
        ("composition(\n\t(8,4):(4,1),\n 4:2)", Layout(4, 8)),
        ("(8,4):(4,1)(3,2)", 14),
        ("(8,(2,2)):(4,(1,16))(3,(1,0))", 13),
        ("Sw<1,0,1>(2)", 3),
        ("Sw<2,0,3> o Sw<1,2,3>", Swizzle(3, 0, 3)),
        ("Sw<3,4,3> o 8 o (8,64):(64,1)", ComposedLayout(Swizzle(3, 4, 3), 8, Layout((8, 64), (64, 1)))),
        ("Sw<3,4,3> o 0 o (8,64)", ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 64)))),
        ("Sw<3,4,3> o 4:1", ComposedLayout(Swizzle(3, 4, 3), 0, Layout(4, 1))),
        ("8:2 o 3 o 4:1", ComposedLayout(Layout(8, 2), 3, Layout(4, 1))),
        ("zipped_divide((12,32):(1,12), <4,8>)[1][0]", Layout(3, 4)),
        ("logical_divide((6,10):(1,6), <_,5>)", Layout((6, (5, 2)), (1, (6, 30)))),
        ("logical_divide((6,(2,4)):(1,(6,12)), <3,<2,2>>)[0]", Layout((3, 2), (1, 3))),
        ("make_layout(4:1, composition(8:4, 4:2), (2,2):(64,32))", Layout((4, 4, (2, 2)), (1, 8, (64, 32)))),
        ("slice((4,(2,3)):(1,(4,8)), (2,(_,_)))", Layout((2, 3), (4, 8))),
        ("coalesce((4,8))", Layout(32, 1)),
        ("size((4,8))", 32),
        ("compatible(12, (3,4))", True),
        ("complement(4:2)", Layout(2, 1)),
        ("get((8,(2,4)):(4,(1,32)), 1, 1)", Layout(4, 32)),
        ("-3", -3),
        ("(2,(3,4))", (2, (3, 4))),
        ("<4,_,2:1>", (4, None, Layout(2, 1))),
    ],
)
def test_values(expression: str, value: Any) -> None:
    result = evaluate(expression)
    assert (type(result), result) == (type(value), value)


@pytest.mark.parametrize("op", sorted(set(DRAWS) - {"apply"}))
def test_reads_every_operation_as_it_is_written(op: str) -> None:
    _, draw = DRAWS[op]
    for made in cases(op, 5, draw):
        shown = show(evaluate(made.text))
        assert shown and show(evaluate(made.text.replace(",", " , ").replace("(", " ( "))) == shown


def test_calls_what_the_name_says() -> None:
    assert text("raked_product", Layout(4, 1), Layout(2, 1)) == "raked_product(4:1, 2:1)"
    assert evaluate("raked_product(4:1, 2:1)") == algebra.raked_product(Layout(4, 1), Layout(2, 1))
    assert evaluate("blocked_product(4:1, 2:1)") != evaluate("raked_product(4:1, 2:1)")


def test_a_public_function_can_be_called_if_its_arguments_can_be_written() -> None:
    public = {name for name in algebra.__all__ if inspect.isfunction(getattr(algebra, name))}
    assert set(EXPLAINED) | set(DRAWS) - {"apply"} <= set(functions()) <= public
    assert "parse" not in functions() and "make_tiled_mma" not in functions()


@pytest.mark.parametrize(
    ("expression", "under", "words"),
    [
        ("composition((8,4):(4,1), 4;2)", ";2)", "allowed: ')'"),
        ("compositon((8,4):(4,1), 4:2)", "compositon", "did you mean composition?"),
        ("frobnicate(4:2)", "frobnicate", "allowed: blocked_product, coalesce"),
        ("composition((8,4):(4,1))", ")", "allowed: composition(a, b)"),
        ("composition(4:1, 2:1, 3)", "3)", "got: 3 of them"),
        ("coalesce(4:1, Sw<1,0,1>)", "Sw<", "an int or a tuple of ints"),
        ("upcast(8:1, (2,2))", "(2,2)", "allowed: an int"),
        ("size(compatible(2, 2))", "compatible", "got: true"),
        ("coalesce(composition((8,4):(1,16), (2,2):(5,4)))", "composition", "reaches coordinate 9 in mode 8:1 of A"),
        ("coalesce((4,8):(1))", "(4,8)", "shape and stride nest alike"),
        ("coalesce((4,0))", "(4,0)", "at least 1"),
        ("4:2 o (4,8):(1,8) o Sw<3,4", "", "allowed: ','"),
        ("4:2 o compatible(2,2)", "compatible", "each argument"),
        ("(8,4):(4,1) o 9 o Sw<1,0,1>", "(8,4)", "A o offset o B"),
        ("(8,4)(1,2)", "(1,2)", "a layout is applied"),
        ("Sw<1,0,1>(2,3)", "(2,3)", "a swizzle to an int"),
        ("4:1 o (8,4):(4,1)[5]", "[5]", "[k] takes mode k"),
        ("(8,4):(4,1)((1,2),3)", "((1,2)", "equally many modes"),
        ("coalesce(get(8:1, 3))", "get", "mode 3 of 8:1, which has 1 mode(s)"),
        ("size(shape_div(4, (2,0)))", "shape_div", "has a value at its arguments"),
        ("<4:1", "", "allowed: '>'"),
        ("4:1 4:1", "4:1", "the end of the text"),
        ("(4,_", "", "allowed: ')'"),
        ("coalesce(4:1", "", "got: the end"),
        ("coalesce(@)", "@)", "a function's name"),
        ("os.system('x')", "os", "by name"),
        ("__import__('os')", "__import__", "by name"),
        ("coalesce(4:99999999999999999999)", "99999999999999999999", "at most 18 digits"),
        ("4:1\x1b[31m", "?[31m", "the end of the text"),
        ("", "", "got: the end"),
    ],
)
def test_a_caret_under_the_place(expression: str, under: str, words: str) -> None:
    with pytest.raises(LayoutError) as raised:
        evaluate(expression)
    message = str(raised.value)
    assert words in message
    lines = message.splitlines()
    carets = [k for k, line in enumerate(lines) if line.strip() == "^"]
    assert len(carets) == 1, message
    shown, caret = lines[carets[0] - 1], lines[carets[0]]
    pointed = shown[caret.index("^") :]
    assert pointed.startswith(under) if under else pointed == "", message
    if words != "the end of the text":
        assert shown.strip() == expression.strip()


def test_long_and_deep_texts_are_bounded() -> None:
    with pytest.raises(LayoutError, match="at most 32 expressions inside each other") as raised:
        evaluate("coalesce(" * 100 + "4:1" + ")" * 100)
    assert max(map(len, str(raised.value).splitlines())) < 120
    assert raised.value.got is not None and raised.value.got.count("...") == 2
    with pytest.raises(LayoutError, match=f"at most {MOST_TEXT}"):
        evaluate("4" * (MOST_TEXT + 1))
    many = ", ".join(["2:1"] * 40)
    assert evaluate(f"make_layout({many})").rank == 40
    deep = "coalesce(" * 31 + "(4,8)" + ")" * 31
    assert evaluate(deep) == Layout(32, 1)


def printed(expression: str, **options: bool) -> str:
    return "\n\n".join(eval_command(expression, **options))


def test_prints_the_value_alone() -> None:
    assert printed("composition((8,4):(4,1), 4:2)") == "4:8"
    assert printed("is_injective(4:0)") == "false"
    assert printed("first_collision((4,2):(1,2))") == "(2,4)"
    assert printed("local_tile((8,8):(8,1), <4,4>, (1,_))") == "(4,4,2):(8,1,4)+32"


def test_explains_each_call_innermost_first() -> None:
    assert (
        printed("flatten(coalesce((8,4):(4,1) o 4:2))", explain=True)
        == """\
composition((8,4):(4,1), 4:2)
  1. mode 4:2 of B takes 4 steps of 2 along 8:4 of A (2 * 4 == 8)
     4:8
  = 4:8

coalesce(4:8)
  1. a single mode is left
     4:8
  = 4:8

flatten(4:8)
  = 4:8"""
    )
    assert printed("coalesce(8)(3)", explain=True).endswith("\n  = 8:1\n\n3")  # what no call returned


@pytest.mark.parametrize(
    ("expression", "before", "last"),
    [
        (
            "coalesce((8,4):(1,16) o (2,4):(1,5))",
            ["  1. mode 2:1 of B", "  2. mode 4:5 of B"],
            "     refused: composition",
        ),
        ("coalesce(8) o idx2crd(1, 4:1)", ["coalesce(8:1)", "  = 8:1"], ""),
        ("cosize(coalesce((4,4):(1@0,1@1)))", ["coalesce(", "cosize("], "  refused: this operation orders"),
        ("composition(coalesce((2,4)), 4", ["coalesce((2,4):(1,2))", "  = 8:1"], ""),
        ("coalesce(get(8:1, 3))", [], ""),
    ],
)
def test_a_refused_call_is_explained_before_its_error(expression: str, before: list[str], last: str) -> None:
    paragraphs = eval_command(expression, explain=True)
    shown = []
    with pytest.raises(LayoutError) as raised:
        for paragraph in paragraphs:
            shown.append(paragraph)
    with pytest.raises(LayoutError) as unexplained:
        evaluate(expression)
    assert str(raised.value) == str(unexplained.value)
    text = "\n\n".join(shown)
    assert (text == "") is (not before)
    places = [text.index(line) for line in before]
    assert places == sorted(places)
    refusals = [line for line in text.splitlines() if "refused" in line]
    assert [line.startswith(last) for line in refusals] == ([True] if last else [])
    assert "allowed: " not in text and (not last or text.endswith(refusals[0]))  # the error says it


def test_a_value_without_a_table_is_explained_but_not_printed() -> None:
    paragraphs = eval_command("size(coalesce((2,2,2):(1,4,16)))", explain=True, table=True)
    assert next(paragraphs).startswith("coalesce") and next(paragraphs) == "size((2,2,2):(1,4,16))\n  = 8"
    with pytest.raises(LayoutError, match="the offsets of a layout"):
        next(paragraphs)


@pytest.mark.parametrize(
    "expression", ["(4,8):(8,1)", "5:3", "((2,2),(2,3)):((1,20),(2,4))", "Sw<2,0,2> o 0 o (4,4):(4,1)", "(3):(7)"]
)
def test_a_table_shows_every_offset_in_its_place(expression: str) -> None:
    layout = evaluate(expression)
    rows, columns = (layout[0].size, layout[1].size) if layout.rank == 2 else (1, layout.size)
    value, blank, head, rule, *body = printed(expression, table=True).splitlines()
    assert (value, blank) == (expression, "") and set(rule.strip()) == {"─"}
    assert head.split() == [str(column) for column in range(columns)]
    assert len(body) == rows
    for row, line in enumerate(body):
        at = [layout(row, column) if layout.rank == 2 else layout(column) for column in range(columns)]
        assert line.split() == [str(row), *map(str, at)]


def test_a_table_of_a_coordinate_layout_shows_coordinates() -> None:
    *_, last = grid(Layout((2, 3), (ScaledBasis(1, 0), ScaledBasis(1, 1)))).splitlines()
    assert last.split() == ["1", "(1,0)", "(1,1)", "(1,2)"]


def test_a_table_of_a_view_counts_from_where_it_starts() -> None:
    *_, last = printed("slice_and_offset((4,3):(1,4), (2,_))", table=True).splitlines()
    assert last.split() == ["0", "2", "6", "10"]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("size(4)", "the offsets of a layout"),
        ("Sw<1,0,1>", "the offsets of a layout"),
        ("(2,2,2):(1,2,4)", "one or two modes"),
        ("(2,65):(1,2)", "at most 256 rows and 64 columns"),
        ("(257,2):(1,2)", "got: 257 rows and 2 columns"),
    ],
)
def test_what_has_no_table_is_refused(expression: str, words: str) -> None:
    with pytest.raises(LayoutError) as raised:
        printed(expression, table=True)
    assert words in str(raised.value)
