"""Layouts of run-time extents: what they say holds for every value, and the rest is refused."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.algebra import (
    IntTuple,
    Layout,
    RuntimeInt,
    coalesce,
    complement,
    composition,
    covers_exactly_once,
    cute_type,
    first_collision,
    flat_divide,
    left_inverse,
    logical_divide,
    max_vector,
    parse,
    right_inverse,
    size,
    tiled_divide,
    upcast,
    zipped_divide,
)
from layoutgen.errors import LayoutError

M, N, K = RuntimeInt(16, "m"), RuntimeInt(8, "n"), RuntimeInt(1, "k")


def at(x: Any, values: dict[str, int]) -> Any:
    """The value of an extent, stride or layout where the unknowns have these values."""
    if isinstance(x, Layout):
        return Layout(at(x.shape, values), at(x.stride, values))
    if isinstance(x, tuple):
        return tuple(at(part, values) for part in x)
    if not isinstance(x, RuntimeInt):
        return x
    result = x.divisor
    for name in x.unknowns:
        result *= values[name]
    return result


numbers = st.one_of(
    st.integers(1, 40),
    st.builds(
        lambda divisor, names: RuntimeInt(divisor, *names),
        st.integers(1, 24),
        st.lists(st.sampled_from("mnk"), min_size=1, max_size=2),
    ),
)
unknowns = st.fixed_dictionaries({name: st.integers(1, 9) for name in "mnk"})


@given(numbers, numbers, st.lists(unknowns, min_size=3, max_size=3))
@pytest.mark.parametrize("name", ["add", "sub", "mul", "floordiv", "mod", "lt", "le", "gt", "ge"])
def test_what_is_decided_holds_for_every_value(name: str, a: Any, b: Any, choices: list[dict[str, int]]) -> None:
    operation = getattr(operator, name)
    try:
        result = operation(a, b)
    except LayoutError:
        assert isinstance(a, RuntimeInt) or isinstance(b, RuntimeInt)
        return
    for values in choices:
        assert at(result, values) == operation(at(a, values), at(b, values))


SHAPES: list[Layout] = [
    Layout((M, N)),
    Layout((M, N), (N, 1)),
    Layout((N, M, 4), (1, N, M * N)),
    Layout((M, (4, N)), (4 * N, (1, 4))),
]


@pytest.mark.parametrize("layout", SHAPES, ids=str)
@pytest.mark.parametrize(
    "operation",
    [
        lambda x: coalesce(x),
        lambda x: composition(x, (8, 4)),
        lambda x: composition(x, (Layout(4, 2), Layout(2))),
        lambda x: logical_divide(x, (8, 4)),
        lambda x: zipped_divide(x, (4, 8)),
        lambda x: tiled_divide(x, (Layout(4, 2), 2)),
        lambda x: flat_divide(x, (2, 4)),
        lambda x: right_inverse(x),
        lambda x: upcast(x, 4),
    ],
)
def test_operations_give_what_they_would_on_the_values(layout: Layout, operation: Any) -> None:
    try:
        result = operation(layout)
    except LayoutError as error:
        assert "run-time" in error.rule or "run time" in error.rule or "?" in str(error)
        return
    for values in ({"m": 1, "n": 1, "k": 1}, {"m": 3, "n": 5, "k": 2}):
        assert at(result, values).offsets().tolist() == operation(at(layout, values)).offsets().tolist()


def test_most_of_those_are_decided() -> None:
    """So that the test above can't pass by refusing everything."""
    a = Layout.parse("(?{div=128},?{div=64}):(?{div=64},1)")
    assert str(zipped_divide(a, (128, 64))) == "((128,64),(?,?)):((?{div=64},1),(?{div=8192},64))"
    assert str(logical_divide(a, (32, 16))) == "((32,?{div=4}),(16,?{div=4})):((?{div=64},?{div=2048}),(1,16))"
    assert str(composition(a, (128, 64))) == "(128,64):(?{div=64},1)"
    assert str(coalesce(Layout.parse("(?{div=16},8)"))) == "?{div=128}:1"
    assert str(size(a)) == "?{div=8192}"
    assert str(complement(Layout((4, 8)), size(a))) == "?{div=256}:32"
    assert str(composition(Layout((M, N), (1, 2 * M)), Layout(8, 2))) == "8:2"
    assert max_vector(Layout((M, N), (1, 5 * M))) == 16


def test_a_tile_that_may_not_divide_overhangs() -> None:
    layout = Layout((K, 8), (8, 1))
    divided = zipped_divide(layout, (4, 8))
    assert str(divided) == "((4,8),(?,1)):((8,1),(32,0))"
    again: IntTuple = zipped_divide(layout, (4, 8)).shape
    assert again == divided.shape, "the same quotient is the same unknown"


@pytest.mark.parametrize(
    "operation",
    [
        lambda: composition(Layout((K, N), (1, 2 * K)), Layout(8, 2)),
        lambda: composition(Layout((M, N), (1, 2 * M)), Layout(32)),
        lambda: composition(Layout((4 * M, N), (1, 5 * M)), Layout((M, 2), (1, 1))),
        lambda: Layout((M, N))(3, 5),
        lambda: Layout((M, N)).cosize,
        lambda: Layout((M, N)).offsets(),
        lambda: left_inverse(Layout((M, N))),
        lambda: first_collision(Layout((M, N))),
        lambda: covers_exactly_once(Layout((M, N)), (16, 8)),
        lambda: upcast(Layout((K, 4)), 4),
        lambda: right_inverse(Layout((8, K, N), (N, 1, 8))),
        lambda: cute_type(Layout((M, 4))),
        lambda: range(M),
        lambda: RuntimeInt(0),
        lambda: RuntimeInt(True),
        lambda: parse("?{div=0}"),
        lambda: parse("?{div=-1}"),
        lambda: parse("?{mul=4}"),
        lambda: parse("?{div=4"),
    ],
)
def test_what_depends_on_the_value_is_refused(operation: Any) -> None:
    with pytest.raises(LayoutError) as raised:
        operation()
    assert raised.value.got


def test_each_unknown_that_is_read_is_one_of_its_own() -> None:
    layout = Layout.parse("(?,?{div=8}):(1,?)")
    assert len({*map(repr, layout.flat_shape), repr(layout.flat_stride[1])}) == 3
    assert str(layout) == "(?,?{div=8}):(1,?)"
    assert Layout((M, N)) == Layout((RuntimeInt(16, "m"), N)) and hash(Layout((M, N))) == hash(Layout((M, N)))
