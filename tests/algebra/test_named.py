"""Named modes: they print and parse, say in errors which mode is to blame, and never change a value."""

from __future__ import annotations

import copy
import pickle
from random import Random

import pytest

from layoutgen.algebra import Layout, coalesce, composition, evaluate, logical_divide, make_layout, named, parse
from layoutgen.errors import LayoutError
from tests.algebra.draws import strided

NAMES = ("lane", "value", "m", "k", "n", "warp", "stage", "tile")


@pytest.mark.parametrize("seed", range(40))
def test_names_change_no_value_and_survive_text_and_pickling(seed: int) -> None:
    layout = strided(Random(seed))
    with_names = named(layout, *NAMES[: layout.rank])
    assert with_names.flat_shape == layout.flat_shape
    assert [with_names(i) for i in range(min(layout.size, 64))] == [layout(i) for i in range(min(layout.size, 64))]
    for again in (
        Layout.parse(str(with_names)),
        parse(str(with_names)),
        evaluate(str(with_names)),
        pickle.loads(pickle.dumps(with_names)),
        copy.deepcopy(with_names),
    ):
        assert again == with_names
        assert str(again) == str(with_names)
        assert again.names == with_names.names


def test_a_named_layout_equals_the_one_without_names() -> None:
    plain = Layout.parse("(4,(2,2)):(8,(1,4))")
    assert named(plain, "m", "k") == plain
    assert len({plain, named(plain, "m", "k"), named(plain, "a", "b")}) == 1


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (
            lambda: composition(Layout.parse("(16,8):(8,1)"), parse("(lane=(4,8),value=2):((32,1),16)")),
            "(lane=(4,8),value=2):((2,8),1)",
        ),
        (lambda: composition(parse("(m=8,k=8):(8,1)"), (4, None)), "(m=4,k=8):(8,1)"),
        (lambda: composition(parse("(m=8,k=8):(8,1)"), (4,)), "(m=4):(8)"),
        (lambda: logical_divide(parse("(m=8,k=8):(8,1)"), (4,)), "(m=(4,2),k=8):((8,32),1)"),
        (lambda: coalesce(parse("(m=(2,4),k=8):((1,2),8)"), (1, 1)), "(m=8,k=8):(1,8)"),
        (lambda: parse("(m=8,n=2,k=4)")[1:], "(n=2,k=4):(8,16)"),
        (lambda: parse("Sw<2,0,2> o 0 o (m=4,k=4):(4,1)"), "Sw<2,0,2> o 0 o (m=4,k=4):(4,1)"),
    ],
)
def test_operations_that_keep_the_modes_keep_their_names(result, expected) -> None:  # type: ignore[no-untyped-def]
    assert str(result()) == expected


def test_operations_that_make_other_modes_drop_the_names() -> None:
    layout = parse("(m=4,k=8):(8,1)")
    assert str(coalesce(layout)) == "(4,8):(8,1)"
    assert str(make_layout(layout, layout)) == "((4,8),(4,8)):((8,1),(8,1))"


def test_a_mode_and_a_coordinate_by_name() -> None:
    layout = parse("(lane=(4,8),value=(2,2)):((32,1),(16,8))")
    assert layout["value"] == layout[1] == Layout.parse("(2,2):(16,8)")
    assert layout(value=3, lane=(1, 2)) == layout((1, 2), 3) == 58


@pytest.mark.parametrize(
    ("b", "blamed"),
    [
        ("(m=2,k=2):(5,4)", "in m and k together"),
        ("(m=2,k=5):(1,3)", "in k of"),
        ("(m=5,k=5):(2,3)", "in m and k of"),
    ],
)
def test_a_refused_composition_blames_modes_by_name(b: str, blamed: str) -> None:
    plain, with_names = Layout.parse(b.replace("m=", "").replace("k=", "")), parse(b)
    with pytest.raises(LayoutError) as unnamed:
        composition(Layout.parse("(8,6):(1,16)"), plain)
    with pytest.raises(LayoutError) as raised:
        composition(Layout.parse("(8,6):(1,16)"), with_names)
    assert raised.value.rule == unnamed.value.rule
    assert blamed in str(raised.value.got)
    assert str(with_names) in str(raised.value.got)


@pytest.mark.parametrize(
    ("call", "got", "allowed"),
    [
        (lambda it: it["n"], "'n' of (m=4,k=8):(8,1)", "m, k"),
        (lambda it: it(m=1), "m=1", "m, k"),
        (lambda it: it(m=1, k=2, n=3), "n=3", "m, k"),
        (lambda it: it(1, k=2), "1, k=2", "m, k"),
        (lambda it: named(it, "m"), "'m' for the 2", None),
        (lambda it: named(it, "m", "m"), "'m', 'm'", None),
        (lambda it: named(it, "m", "2k"), "'2k'", None),
        (lambda it: named(it, "_m", "k"), "'_m'", None),
        (lambda it: named(it, "m", "for"), "'for'", None),
        (lambda it: Layout.parse("(m=4,8):(8,1)"), "'8' at column 6", "a name and '='"),
        (lambda it: Layout.parse("(m=4,k=(a=2,2)):(8,1)"), "'a' at column", "an integer"),
    ],
)
def test_wrong_names_are_refused(call, got, allowed) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LayoutError) as raised:
        call(parse("(m=4,k=8):(8,1)"))
    assert got in str(raised.value.got)
    assert allowed is None or allowed in str(raised.value.allowed)
