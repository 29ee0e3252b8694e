"""Post-conditions of every operation, checked on random layouts by evaluating both sides from the definition."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layoutgen.algebra import (
    Layout,
    blocked_product,
    coalesce,
    complement,
    composition,
    downcast,
    filter,
    flat_divide,
    flat_product,
    idx2crd,
    left_inverse,
    logical_divide,
    logical_product,
    make_layout,
    raked_product,
    recast_layout,
    right_inverse,
    tiled_divide,
    tiled_product,
    upcast,
    with_shape,
    zipped_divide,
    zipped_product,
)
from layoutgen.errors import LayoutError
from tests.algebra.reference import (
    EXTENTS,
    SIGNED,
    STRIDES,
    compact_layouts,
    count,
    layouts,
    leaves,
    profiles,
    refines,
    value,
    values,
)

SMALL = (1, 2, 3, 4, 6)


@given(layouts(strides=SIGNED))
def test_every_way_of_evaluating_agrees_with_the_definition(layout: Layout) -> None:
    expected = values(layout)
    assert layout.offsets().tolist() == expected
    assert [layout(i) for i in range(layout.size)] == expected
    assert [layout(idx2crd(i, layout.shape)) for i in range(layout.size)] == expected
    beyond = np.arange(-2 * layout.size, 3 * layout.size)
    assert layout.at(beyond).tolist() == [value(layout, i) for i in beyond.tolist()]
    for index in (3 * layout.size + 1, -layout.size - 1):
        assert layout(index) == value(layout, index)
    assert layout.cosize == max(expected) - min(expected) + 1


@given(layouts(strides=SIGNED))
def test_text_round_trips(layout: Layout) -> None:
    assert Layout.parse(str(layout)) == layout


@given(layouts(strides=SIGNED))
def test_modes_put_together_again_are_the_layout(layout: Layout) -> None:
    again = make_layout(*layout)
    assert values(again) == values(layout)
    assert again == layout or not isinstance(layout.shape, tuple)


@given(layouts(strides=SIGNED))
def test_coalesce(layout: Layout) -> None:
    result = coalesce(layout)
    assert values(result) == values(layout)
    modes = leaves(result.shape, result.stride)
    assert result.depth <= 1
    assert result.size == 1 or all(n > 1 for n, _ in modes)
    assert all(n * d != e for (n, d), (_, e) in zip(modes, modes[1:], strict=False)), "neighbours that could merge"


@given(layouts(strides=SIGNED))
def test_coalesce_by_profile_keeps_the_modes(layout: Layout) -> None:
    assume(isinstance(layout.shape, tuple))
    result = coalesce(layout, (1,) * layout.rank)
    assert [values(mode) for mode in result] == [values(mode) for mode in layout]
    assert all(mode.depth <= 1 for mode in result)


@given(layouts(strides=SIGNED))
def test_filter(layout: Layout) -> None:
    result = filter(layout)
    assert set(values(result)) == set(values(layout))
    assert result.size == 1 or 0 not in result.flat_stride


@given(layouts(), layouts(strides=(0, 1, 2, 3, 4, 6, 8, 12), most=2))
def test_composition_evaluates_to_a_of_b_or_raises_with_a_reason(a: Layout, b: Layout) -> None:
    check_composition(a, b)


def flat_pairs(strides: tuple[int, ...]) -> list[tuple[Layout, Layout]]:
    """Flat A of up to three modes and B of up to two, drawn evenly; B reaches past A's end now and then."""
    random = Random(2603)

    def draw(rank: int) -> Layout:
        return Layout(tuple(random.choices(EXTENTS, k=rank)), tuple(random.choices(strides, k=rank)))

    return [(draw(random.randint(1, 3)), draw(random.randint(1, 2))) for _ in range(3000)]


def test_composition_on_many_pairs_is_never_wrong_and_refuses_only_what_it_must() -> None:
    composed = sum(check_composition(a, b) for a, b in flat_pairs(STRIDES))
    assert 300 < composed < 2700, "the pairs test one side only"


def test_composition_with_strides_of_both_signs_is_never_wrong() -> None:
    composed = 0
    for a, b in flat_pairs(SIGNED):
        try:
            assert_composes(a, b, [value(a, index) for index in values(b)])
        except LayoutError as error:
            assert error.rule and error.got and error.fix
        else:
            composed += 1
    assert 300 < composed < 2700, "the pairs test one side only"


def check_composition(a: Layout, b: Layout) -> bool:
    """Whether A o B exists. Fails if it is wrong, or refused although modes of A one at a time express it."""
    expected = [value(a, index) for index in values(b)]
    try:
        assert_composes(a, b, expected)
    except LayoutError as error:
        assert error.rule and error.got and error.fix
        assert not walks_one_mode_at_a_time(a, b, expected)
        return False
    return True


def assert_composes(a: Layout, b: Layout, expected: list[int]) -> None:
    result = composition(a, b)
    assert values(result) == expected
    assert refines(b.shape, result.shape)


def walks_one_mode_at_a_time(a: Layout, b: Layout, expected: list[int]) -> bool:
    """Whether some layout has the values ``expected`` and each of its modes moves along one mode of A: a search by
    values that knows nothing of strides and divisibility.
    """
    extents = merged_extents(a)
    total = [0]
    for n, d in leaves(b.shape, b.stride):
        own = [value(a, i * d) for i in range(n)]
        steps = linear_steps(own)
        if steps is None or not all(single_digit(step * d, extents) for step in steps or [1]):
            return False
        total = [outer + inner for outer in own for inner in total]
    return total == expected


def merged_extents(layout: Layout) -> list[int]:
    """The extents of the modes left when neighbours merge; the last is open-ended, so that an extent of 1 counts."""
    modes: list[tuple[int, int]] = []
    pairs = leaves(layout.shape, layout.stride)
    for position, (n, d) in enumerate(pairs):
        extent = max(n, 2) if position == len(pairs) - 1 else n
        if modes and modes[-1][0] * modes[-1][1] == d:
            modes[-1] = (modes[-1][0] * extent, modes[-1][1])
        elif extent > 1:
            modes.append((extent, d))
    return [n for n, _ in modes]


def linear_steps(offsets: list[int]) -> list[int] | None:
    """The index steps of the modes of the coalesced layout with these offsets; None if there is no such layout.

    Its first mode is the longest linear run, and so on: that leaves no choice.
    """
    steps, place = [], 1
    while len(offsets) > 1:
        run = 2
        while run < len(offsets) and offsets[run] == run * offsets[1]:
            run += 1
        if len(offsets) % run:
            return None
        blocks = offsets[::run]
        if offsets != [block + inner for block in blocks for inner in offsets[:run]]:
            return None
        steps.append(place)
        place *= run
        offsets = blocks
    return steps


def single_digit(index: int, extents: list[int]) -> bool:
    digits = []
    for n in extents[:-1]:
        digits.append(index % n)
        index //= n
    return sum(digit != 0 for digit in [*digits, index]) <= 1


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("(4,8):(1,100)", "(2,1):(2,4)", "(2,1):(2,100)"),
        ("(4,8):(1,100)", "1:0", "1:0"),
        ("(4,8):(1,100)", "(1,(1,4)):(4,(1,1))", "(1,(1,4)):(100,(100,1))"),
    ],
)
def test_a_mode_of_one_element_stays_a_mode_with_cutes_stride(a: str, b: str, expected: str) -> None:
    assert str(composition(Layout.parse(a), Layout.parse(b))) == expected


@given(layouts(), st.lists(st.sampled_from(SMALL), min_size=1, max_size=3))
def test_composition_by_mode_composes_each_mode(a: Layout, tiler: list[int]) -> None:
    assume(len(tiler) <= a.rank)
    try:
        result = composition(a, tuple(tiler))
    except LayoutError:
        return
    for mode, own, n in zip(result, a, tiler, strict=False):
        assert values(mode) == [value(own, i) for i in range(n)]


@given(layouts(), profiles())
def test_with_shape(layout: Layout, shape: int | tuple[int, ...]) -> None:
    try:
        result = with_shape(layout, shape)
    except LayoutError:
        return
    assert values(result) == [value(layout, i) for i in range(count(shape))]
    assert refines(shape, result.shape)


@given(layouts(extents=SMALL), st.integers(1, 128))
def test_complement_is_increasing_disjoint_and_fills_where_it_can(layout: Layout, cotarget: int) -> None:
    try:
        rest = values(complement(layout, cotarget))
    except LayoutError:
        return
    own = set(values(filter(layout)))
    assert all(a < b for a, b in zip(rest, rest[1:], strict=False))
    sums = {a + b for a in own for b in rest}
    assert len(sums) == len(own) * len(rest), "an element of the layout and one of its complement share an offset"
    ordered = sorted((d, n) for n, d in leaves(layout.shape, layout.stride) if n > 1 and d)
    ends = [1, *(n * d for d, n in ordered)]
    if all(d % end == 0 for (d, _), end in zip(ordered, ends, strict=False)) and cotarget % ends[-1] == 0:
        assert sums == set(range(cotarget))


@given(compact_layouts(extents=SMALL), st.integers(1, 64))
def test_a_compact_layouts_complement_repeats_it(layout: Layout, times: int) -> None:
    assert values(complement(layout, layout.size * times)) == [layout.size * i for i in range(times)]


@given(layouts(extents=SMALL))
def test_complement_by_default_fills_the_gaps_alone(layout: Layout) -> None:
    try:
        rest = values(complement(layout))
    except LayoutError:
        return
    assert max(rest) < layout.cosize


@given(layouts())
def test_right_inverse(layout: Layout) -> None:
    result = right_inverse(layout)
    assert [value(layout, index) for index in values(result)] == list(range(result.size))


@given(compact_layouts())
def test_inverses_of_a_bijection_undo_it_on_both_sides(layout: Layout) -> None:
    for inverse in (right_inverse(layout), left_inverse(layout)):
        assert inverse.size == layout.size
        assert [value(inverse, offset) for offset in values(layout)] == list(range(layout.size))


@given(layouts(strides=(0, 1, 2, 3, 4, 6, 8, 12, -1), extents=SMALL))
def test_left_inverse_undoes_the_layout_or_raises(layout: Layout) -> None:
    try:
        inverse = left_inverse(layout)
    except LayoutError:
        return
    back = [value(inverse, offset) for offset in values(layout)]
    assert [value(layout, index) for index in back] == values(layout)
    if len(set(values(layout))) == layout.size:
        assert back == list(range(layout.size))


@given(layouts(extents=SMALL), st.sampled_from([1, 2, 3, 4, Layout(2, 2), Layout((2, 2), (1, 4)), Layout(4, 3)]))
def test_logical_divide_is_the_tile_and_its_repetitions(layout: Layout, tiler: int | Layout) -> None:
    tile = Layout(tiler) if isinstance(tiler, int) else tiler
    try:
        result = logical_divide(layout, tiler)
    except LayoutError:
        return
    rest = complement(tile, coalesce(layout).shape)
    assert result.rank == 2
    assert values(result) == [value(layout, b + a) for b in values(rest) for a in values(tile)]


@given(layouts(extents=SMALL), st.lists(st.sampled_from([1, 2, 3, Layout(2, 2)]), min_size=1, max_size=3))
def test_the_divides_regroup_one_another(layout: Layout, entries: list[int | Layout]) -> None:
    assume(isinstance(layout.shape, tuple) and len(entries) <= layout.rank)
    tiler = tuple(entries)
    try:
        logical = logical_divide(layout, tiler)
    except LayoutError:
        return
    check_regrouping(
        logical, len(tiler), zipped_divide(layout, tiler), tiled_divide(layout, tiler), flat_divide(layout, tiler)
    )


@given(layouts(extents=(1, 2, 3)), st.lists(st.sampled_from([1, 2, 3, Layout(2, 2)]), min_size=1, max_size=2))
def test_the_products_regroup_one_another(block: Layout, entries: list[int | Layout]) -> None:
    assume(isinstance(block.shape, tuple) and len(entries) <= block.rank)
    tiler = tuple(entries)
    try:
        logical = logical_product(block, tiler)
    except LayoutError:
        return
    assert [values(mode[0]) for mode in list(logical)[: len(tiler)]] == [values(b) for b in list(block)[: len(tiler)]]
    check_regrouping(
        logical, len(tiler), zipped_product(block, tiler), tiled_product(block, tiler), flat_product(block, tiler)
    )


def check_regrouping(logical: Layout, cut: int, zipped: Layout, tiled: Layout, flat: Layout) -> None:
    pairs = list(logical)[:cut]
    firsts = [str(pair[0]) for pair in pairs]
    seconds = [str(pair[1]) for pair in pairs] + [str(mode) for mode in list(logical)[cut:]]
    assert [str(mode) for mode in zipped[0]] == firsts
    assert [str(mode) for mode in zipped[1]] == seconds
    unpacked = seconds if len(seconds) > 1 else [str(zipped[1])]
    assert [str(mode) for mode in tiled] == [str(zipped[0]), *unpacked]
    assert [str(mode) for mode in flat] == [*(firsts if cut > 1 else [str(zipped[0])]), *unpacked]


@given(compact_layouts(extents=(1, 2, 3, 4)), compact_layouts(extents=(1, 2, 3)))
def test_products_of_bijections_are_bijections_made_of_whole_blocks(block: Layout, tiler: Layout) -> None:
    product = logical_product(block, tiler)
    offsets = values(product)
    assert sorted(offsets) == list(range(block.size * tiler.size))
    assert offsets[: block.size] == values(block)
    repetitions = [value(tiler, index) for index in range(tiler.size)]
    assert offsets[:: block.size] == [block.size * where for where in repetitions]
    blocked, raked = blocked_product(block, tiler), raked_product(block, tiler)
    assert blocked.rank == raked.rank == max(block.rank, tiler.rank)
    assert sorted(values(blocked)) == sorted(values(raked)) == sorted(offsets)
    for mode, (whole, interleaved) in enumerate(zip(blocked, raked, strict=True)):
        if mode < block.rank:
            assert values(whole[0]) == values(interleaved[1]) == values(block[mode])


def test_a_repetition_that_splits_an_int_stays_one_mode() -> None:
    block, tiler = Layout(8, 6), Layout(12, -2)
    assert logical_product(block, tiler)[1].rank == 2
    blocked, raked = blocked_product(block, tiler), raked_product(block, tiler)
    assert blocked.rank == raked.rank == 1
    assert values(blocked) == values(logical_product(block, tiler))
    assert values(raked) == [values(blocked)[i + 8 * k] for i in range(8) for k in range(12)]


@given(layouts(strides=(0, 1, 2, 4, 6, 8, 12, -1, -2, -8), extents=SMALL), st.sampled_from([1, 2, 3, 4, 8]))
def test_upcast_touches_the_units_that_hold_the_elements(layout: Layout, n: int) -> None:
    try:
        units = upcast(layout, n)
    except LayoutError as error:
        assert error.rule
        return
    inside = [d for size, d in leaves(layout.shape, layout.stride) if size > 1 and 0 < abs(d) < n]
    round_to = (lambda x: -(-x // n)) if any(d < 0 for d in inside) else (lambda x: x // n)
    assert set(values(units)) == {round_to(offset) for offset in values(layout)}


@given(layouts(extents=SMALL), st.sampled_from([1, 2, 3, 4, 8]))
def test_downcast_splits_each_element_into_its_parts(layout: Layout, n: int) -> None:
    try:
        parts = downcast(layout, n)
    except LayoutError:
        return
    assert sorted(values(parts)) == sorted(n * offset + part for offset in values(layout) for part in range(n))


@given(layouts(extents=SMALL), st.sampled_from([(6, 16), (16, 6), (12, 8), (8, 12), (32, 16), (4, 16)]))
def test_recast_keeps_the_bits(layout: Layout, bits: tuple[int, int]) -> None:
    old, new = bits
    try:
        result = recast_layout(layout, old, new)
    except LayoutError:
        return
    before = {offset * old + bit for offset in values(layout) for bit in range(old)}
    after = {offset * new + bit for offset in values(result) for bit in range(new)}
    # Widening alone may round up to whole new elements.
    assert before <= after if new % old == 0 else before == after


@pytest.mark.parametrize("operation", [logical_divide, zipped_divide, logical_product, zipped_product, composition])
def test_a_tiler_with_too_many_entries_is_refused(operation: object) -> None:
    with pytest.raises(LayoutError, match="at most as many entries"):
        operation(Layout((4, 8)), (2, 2, 2))  # type: ignore[operator]
