"""Layout as a value: construction, evaluation, modes, and what it says of bad input."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from layoutgen.algebra import (
    ComposedLayout,
    Layout,
    Swizzle,
    coalesce,
    complement,
    composition,
    cosize,
    covers_exactly_once,
    depth,
    downcast,
    flatten,
    get,
    idx2crd,
    left_inverse,
    make_layout,
    parse,
    rank,
    recast_layout,
    shape_div,
    size,
    upcast,
    zipped_divide,
)
from layoutgen.errors import LayoutError


def test_a_layout_is_a_frozen_value() -> None:
    layout = Layout((8, (2, 2)), (4, (1, 16)))
    assert layout == Layout.parse("(8,(2,2)):(4,(1,16))")
    assert len({layout, Layout((8, (2, 2)), (4, (1, 16))), Layout((8, 4))}) == 2
    assert layout != Layout((8, (2, 2))) and layout != "(8,(2,2)):(4,(1,16))"
    for name in ("shape", "stride", "size", "anything"):
        with pytest.raises(AttributeError, match="frozen"):
            setattr(layout, name, 1)
    with pytest.raises(AttributeError, match="frozen"):
        del layout.shape
    for again in (copy.deepcopy(layout), pickle.loads(pickle.dumps(layout))):
        assert again == layout and again.offsets().tolist() == layout.offsets().tolist()


def test_sizes_and_nesting() -> None:
    layout = Layout.parse("(8,(2,2)):(4,(1,-16))")
    assert (size(layout), cosize(layout), rank(layout), depth(layout)) == (32, 46, 2, 2)
    assert (size((8, 4)), rank(8), depth((8, (2, 2)))) == (32, 1, 2)
    assert len(layout) == 2 and [str(mode) for mode in layout] == ["8:4", "(2,2):(1,-16)"]
    assert str(layout[-1][1]) == str(get(layout, 1, 1)) == "2:-16"
    assert str(layout[1:]) == "((2,2)):((1,-16))"
    assert str(flatten(layout)) == "(8,2,2):(4,1,-16)"
    assert str(Layout(8)[0]) == "8:1"
    with pytest.raises(IndexError, match="2 mode"):
        layout[2]


def test_the_layout_of_no_modes_is_one_point() -> None:
    point = Layout(())
    assert (str(point), point.size, point(), point.offsets().tolist()) == ("():()", 1, 0, [0])
    assert str(coalesce(point)) == "1:0"
    assert str(composition(point, Layout(4))) == "4:0"


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 1, "an integer or '('"),
        ("(8,4", 5, "',' or ')'"),
        ("(8,4):(1,8", 11, "',' or ')'"),
        ("(8,,4)", 4, "an integer or '('"),
        ("(8 4):(1,8)", 4, "',' or ')'"),
        ("8:1)", 4, "the end"),
        ("8:1:2", 4, "the end"),
        ("8:x", 3, "an integer or '('"),
        ("8.5:1", 2, "the end"),
        ("(8,4):", 7, "an integer or '('"),
        ("8:--1", 3, "an integer"),
        ("8:1" + "0" * 5000, 3, "at most 18 digits"),
        ("(" * 5000, 33, "at most 32 parentheses"),
    ],
)
def test_text_that_is_no_layout_is_refused_at_its_column(text: str, column: int, expected: str) -> None:
    with pytest.raises(LayoutError) as raised:
        Layout.parse(text)
    assert f"at column {column}" in str(raised.value.got)
    assert expected in str(raised.value.allowed)
    assert text[:80] in str(raised.value) and len(str(raised.value)) < 400


@pytest.mark.parametrize("text", [" ( 8 , ( 2,2 ) ) : (4, (1, 16)) ", "(8,(2,2)):(4,(1,16))\n"])
def test_blanks_do_not_count(text: str) -> None:
    assert str(Layout.parse(text)) == "(8,(2,2)):(4,(1,16))"


@pytest.mark.parametrize(
    ("shape", "stride", "rule"),
    [
        (0, 1, "at least 1"),
        ((4, -2), (1, 4), "at least 1"),
        ((4, 2), (1,), "nest alike"),
        ((4, 2), 1, "nest alike"),
        (4, (1,), "nest alike"),
        ((4, (2, 2)), (1, 4), "nest alike"),
        ([4, 2], [1, 4], "int or a nested tuple"),
        (4.0, 1, "int or a nested tuple"),
        (True, 1, "int or a nested tuple"),
        ("4", 1, "int or a nested tuple"),
        ((4, 2), (1, None), "int or a nested tuple"),
        ((4, 0), None, "at least 1"),
        (None, None, "int or a nested tuple"),
    ],
)
def test_bad_shapes_and_strides_are_refused(shape: Any, stride: Any, rule: str) -> None:
    with pytest.raises(LayoutError, match=rule) as raised:
        Layout(shape, stride)
    assert raised.value.got


@pytest.mark.parametrize(
    ("operation", "rule"),
    [
        (lambda: Layout((4, 8))(1, 2, 3), "equally many modes"),
        (lambda: Layout(4)((1, 2)), "equally many modes"),
        (lambda: idx2crd((1, 2), 8), "equally many modes"),
        (lambda: coalesce(Layout(8), (1, 1)), "as many entries"),
        (lambda: complement(Layout.parse("4:-1"), 8), "strides aren't negative"),
        (lambda: complement(Layout.parse("(4,2):(1,2)"), 8), "don't overlap"),
        (lambda: left_inverse(Layout.parse("(2,2):(2,3)")), "multiple of the one before"),
        (lambda: left_inverse(Layout.parse("(2,4):(2,1)")), "modes that overlap"),
        # A digit 2 at mode 2:2, which goes on in the last mode, 1:0, and not in its own.
        (lambda: left_inverse(Layout.parse("(4,2,1):(1,2,0)")), "modes that overlap"),
        (lambda: zipped_divide(Layout((8, 8)), (2, None)), "every mode the tiler names"),
        (lambda: shape_div(136, 64), "one to divide the other"),
        (lambda: upcast(Layout.parse("(6,3):(1,6)"), 4), "divides the unit"),
        (lambda: upcast(Layout.parse("(3,2):(1,2)"), 4), "stay inside it"),
        (lambda: upcast(Layout(8), 0), "at least one unit"),
        (lambda: downcast(Layout.parse("(4,4):(2,8)"), 2), "one mode of stride 1"),
        (lambda: downcast(Layout.parse("(2,2):(1,1)"), 2), "one mode of stride 1"),
        (lambda: recast_layout(Layout(8), 0, 8), "at least one bit"),
        (lambda: recast_layout(Layout.parse("(8,4):(9,1)"), 6, 16), "multiple of the old element count"),
        (lambda: composition(Layout.parse("(4,3):(1,100)"), Layout.parse("4:3")), "one mode at a time"),
        (lambda: composition(Layout.parse("(8,4):(1,16)"), Layout.parse("(2,2):(5,4)")), "stay inside every mode"),
        (lambda: composition(Layout.parse("(4,8):(1,100)"), Layout.parse("(2,2):(1,-4)")), "one and the same mode"),
        (lambda: composition(Layout((4, 8)), 0), "at least 1"),
        (lambda: Layout((1 << 20, 1 << 20)).offsets(), "bounded size"),
        (lambda: covers_exactly_once(Layout(8), (1 << 20, 1 << 20)), "bounded size"),
        (lambda: covers_exactly_once(Layout(8), (4, 0)), "at least 1"),
        (lambda: Swizzle(3, 0, 2), "don't overlap"),
        (lambda: Swizzle(-1, 0, 2), "don't overlap"),
        (lambda: Swizzle.from_masks(0b101, 0b11000), "runs of equally many ones"),
        (lambda: Swizzle.from_masks(0b11, 0b1000), "runs of equally many ones"),
        (lambda: upcast(Swizzle(2, 0, -2), 2), "no bit inside a unit"),
        (lambda: upcast(Swizzle(2, 4, 3), 3), "power of two"),
        (lambda: upcast(ComposedLayout(Swizzle(2, 4, 3), 1, Layout(64)), 2), "whole number of units"),
        (lambda: upcast(ComposedLayout(Layout(8), 0, Layout(8)), 2), "only swizzled ones"),
        (lambda: recast_layout(Swizzle(2, 4, 3), 6, 16), "power of two"),
        (lambda: composition(Swizzle(1, 0, 1), Swizzle(1, 1, 1)), "reads no bit that the inner changes"),
        (lambda: composition(Layout(8), ComposedLayout(Swizzle(2, 0, 2), 4, Layout(8))), "offset 0"),
        (lambda: composition(Layout.parse("32:3"), Swizzle(2, 0, 3)), "runs of equally many ones"),
        (lambda: composition(Swizzle(2, 0, 3), 4), "with a layout or a swizzle"),
    ],
)
def test_each_operation_names_the_rule_it_refuses_by(operation: Any, rule: str) -> None:
    with pytest.raises(LayoutError, match=rule) as raised:
        operation()
    assert raised.value.got


@pytest.mark.parametrize(
    ("text", "column"),
    [("<4,", 4), ("<4", 3), ("Sw<3,4>", 7), ("Sw<3,4,3> o 8:1", 14), ("Sw<3,4,3> o 0 o", 16), ("_1", 2)],
)
def test_operands_that_do_not_parse_are_refused_at_their_column(text: str, column: int) -> None:
    with pytest.raises(LayoutError, match=f"at column {column}"):
        parse(text)


def test_make_layout_of_one_layout_is_a_rank_one_tuple() -> None:
    assert str(make_layout(Layout(4))) == "(4):(1)"


def test_offsets_are_64_bit() -> None:
    layout = Layout((2, 2), (1, 1 << 40))
    assert layout.offsets().dtype == np.int64
    assert layout.offsets().tolist() == [0, 1, 1 << 40, (1 << 40) + 1]
