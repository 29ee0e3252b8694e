"""The split of addresses into adds and xors, against every thread and value."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.algebra import ComposedLayout, Layout, Swizzle
from layoutgen.algebra.address import AddressSplit, Step, split_address
from layoutgen.errors import LayoutError
from tests.algebra.reference import SIGNED, layouts
from tests.algebra.test_swizzle import swizzles


@given(layouts(strides=SIGNED).filter(lambda x: x.size <= 64), layouts(strides=SIGNED).filter(lambda x: x.size <= 64))
def test_a_plain_layout_is_always_a_sum(threads: Layout, values: Layout) -> None:
    layout = Layout((threads.shape, values.shape), (threads.stride, values.stride))
    split = split_address(layout)
    assert split.is_sum
    check(split, layout)


def check(split: AddressSplit, layout: Layout | ComposedLayout) -> None:
    for thread in range(layout[0].size):
        for value in range(layout[1].size):
            assert split(thread, value) == layout((thread, value))


@given(swizzles(), st.permutations([1, 4, 8, 32, 64]), st.sampled_from([0, 8, 40]))
def test_a_swizzled_layout_splits_right_or_names_where_it_cannot(
    swizzle: Swizzle, stride: list[int], offset: int
) -> None:
    inner = Layout(((4, 2), (2, 3, 4)), ((stride[0], stride[1]), tuple(stride[2:])))
    layout = ComposedLayout(swizzle, offset, inner)
    try:
        split = split_address(layout)
    except LayoutError as error:
        found = re.search(
            r"value 0 to (\d+) of thread 0 .* moves by (-?\d+), from value (\d+) to (\d+) of thread (\d+) by (-?\d+)",
            error.got or "",
        )
        assert found
        step, moved, start, end, thread, other = map(int, found.groups())
        assert layout((0, step)) - layout((0, 0)) == moved != other == layout((thread, end)) - layout((thread, start))
        assert layout((0, step)) ^ layout((0, 0)) != 0
        return
    check(split, layout)
    for step in split.steps:
        assert step.amounts[0] == 0
    if split.is_sum:
        places = {layout((t, v)) - layout((0, v)) - layout((t, 0)) for t in range(8) for v in range(24)}
        assert places == {-layout((0, 0))}


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        # K-major f16 rows of 128 bytes: the step along k flips bits, the step to rows 8 further on adds.
        ("Sw<3,3,3> o 0 o (8,(8,8,2)):(64,(1,8,512))", "add 8:1, xor {0,8}, xor {0,16}, xor {0,32}, add 2:512"),
        # Threads along k and values along rows: each row flips the bits of k.
        ("Sw<2,0,2> o 0 o (4,4):(1,4)", "xor {0,5}, xor {0,10}"),
        # Far apart, so that nothing interacts.
        ("Sw<2,0,2> o 0 o (4,(3,2)):(4,(16,64))", "add 3:16, add 2:64"),
        ("(4,1):(1,0)", ""),
    ],
)
def test_known_splits(layout: str, expected: str) -> None:
    parsed = ComposedLayout.parse(layout) if layout.startswith("Sw") else Layout.parse(layout)
    split = split_address(parsed)
    assert ", ".join(map(str, split.steps)) == expected
    check(split, parsed)


def test_what_does_not_split_is_refused() -> None:
    with pytest.raises(LayoutError, match="moves by 5, .* by 3") as raised:
        # A step carries out of the bits that threads use, and there the swizzle adds for one thread, flips for another.
        split_address(ComposedLayout.parse("Sw<2,0,2> o 0 o (3,2):(3,4)"))
    assert raised.value.fix
    with pytest.raises(LayoutError, match="split into those of"):
        split_address(Layout((4, 4, 4)))
    with pytest.raises(LayoutError, match="split into those of"):
        split_address(Layout((1 << 20, 1 << 20)))


def test_steps_of_several_amounts() -> None:
    assert Step("add", (0, 3, 5)).is_linear is False and str(Step("add", (0, 3, 5))) == "add {0,3,5}"
    assert Step("add", (0, 3, 5)).apply(10, 2) == 15
