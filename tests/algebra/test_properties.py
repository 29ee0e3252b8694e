"""Injective, exact cover, vector width: each against a count by hand, and the type names against CuTe's header."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import cutlass_library
from hypothesis import given
from hypothesis import strategies as st

from layoutgen.algebra import (
    ComposedLayout,
    Layout,
    Swizzle,
    covers_exactly_once,
    cute_type,
    first_collision,
    idx2crd,
    is_injective,
    max_vector,
)
from layoutgen.algebra.cute import NAMED_INTS
from tests.algebra.reference import SIGNED, STRIDES, compact_layouts, layouts, values


@given(layouts(strides=SIGNED))
def test_the_first_collision_is_the_first(layout: Layout) -> None:
    seen: dict[int, int] = {}
    expected = None
    for index, offset in enumerate(values(layout)):
        if offset in seen:
            expected = (seen[offset], index)
            break
        seen[offset] = index
    assert first_collision(layout) == expected
    assert is_injective(layout) is (expected is None)


@given(compact_layouts())
def test_a_bijection_covers_its_size(layout: Layout) -> None:
    cover = covers_exactly_once(layout, layout.size)
    assert cover and cover.ok and cover.coordinate is None and cover.outside is None


@given(layouts(strides=(0, 1, 2, 3, 4, 8, -1)), st.sampled_from([(4,), (4, 4), (3, (2, 4)), 16]))
def test_cover_names_the_first_bad_coordinate_and_its_owners(layout: Layout, tile: tuple[int, ...]) -> None:
    size = Layout(tile).size
    offsets = values(layout)
    counts = Counter(offsets)
    bad = next((element for element in range(size) if counts[element] != 1), None)
    strays = [offset for offset in offsets if not 0 <= offset < size]
    cover = covers_exactly_once(layout, tile)
    assert cover.ok is bool(cover) is (bad is None and not strays)
    assert cover.coordinate == (None if bad is None else idx2crd(bad, tile))
    assert cover.outside == (strays[0] if strays else None)
    if cover.ok:
        return
    blamed = bad if bad is not None else strays[0]
    owners = [index for index, offset in enumerate(offsets) if offset == blamed]
    assert cover.count == len(owners)
    assert list(cover.owners) == owners[: len(cover.owners)]
    assert len(cover.owners) == min(len(owners), 4)
    assert [layout(coordinate) for coordinate in cover.owner_coordinates] == [blamed] * len(cover.owners)


def test_a_cover_reads_as_a_sentence() -> None:
    tile = (4, 4)
    assert str(covers_exactly_once(Layout((4, 4), (4, 1)), tile)) == "every element of (4,4) is owned exactly once"
    assert str(covers_exactly_once(Layout((4, 3)), tile)) == "coordinate (0,3) of (4,4) is owned by nobody"
    twice = "coordinate (1,0) of (4,4) is owned 2 time(s), by (1,0) and (0,1)"
    assert str(covers_exactly_once(Layout((2, 8), (1, 1)), tile)) == twice
    outside = "offset 16, outside (4,4), is owned 1 time(s), by (0,4)"
    assert str(covers_exactly_once(Layout((4, 5)), tile)) == outside
    many = "coordinate (0,0) of (4,4) is owned 16 time(s), by (0,0) and (1,0) and (2,0) and (3,0) and 12 more"
    assert str(covers_exactly_once(Layout((4, 4), (0, 0)), tile)) == many


def vector_by_hand(offsets: list[int]) -> int:
    """The largest v such that each aligned group of v indices is v consecutive offsets from a multiple of v."""
    return max(
        v
        for v in range(1, len(offsets) + 1)
        if len(offsets) % v == 0
        and all(offsets[i] % v == 0 for i in range(0, len(offsets), v))
        and all(offsets[i + k] == offsets[i] + k for i in range(0, len(offsets), v) for k in range(v))
    )


@given(layouts(strides=STRIDES))
def test_max_vector_is_the_widest(layout: Layout) -> None:
    assert max_vector(layout) == vector_by_hand(values(layout))


@given(st.integers(0, 3), st.sampled_from([0, 2, 8]), st.sampled_from([(1, 64), (16, 1), (2, 128)]))
def test_max_vector_of_a_swizzled_layout_is_safe(base: int, offset: int, stride: tuple[int, int]) -> None:
    layout = ComposedLayout(Swizzle(2, base, 3), offset, Layout((16, 8), stride))
    v = max_vector(layout)
    assert vector_by_hand(layout.offsets().tolist()) % v == 0
    assert max_vector(ComposedLayout(Swizzle(0, 0, 0), 0, Layout((16, 8), (1, 64)))) == 16


def test_the_named_integers_are_those_that_the_header_defines() -> None:
    header = Path(cutlass_library.__file__).parent / "source/include/cute/numeric/integral_constant.hpp"
    defined = re.findall(r"using (_m?\d+)\s*= Int<(-?\d+)>;", header.read_text())
    assert {int(value) for _, value in defined} == NAMED_INTS
    for name, value in defined:
        assert cute_type(Layout(4, int(value))) == f"Layout<_4,{name}>"


def test_type_names() -> None:
    assert cute_type(Layout((130,), (-7,))) == "Layout<Shape<Int<130>>,Stride<_m7>>"
    assert cute_type(Layout(())) == "Layout<Shape<>,Stride<>>"
    nested = ComposedLayout(Swizzle(2, 0, 3), 33, ComposedLayout(Swizzle(1, 4, -3), 0, Layout(8)))
    inner = "ComposedLayout<Swizzle<1,4,-3>,_0,Layout<_8,_1>>"
    assert cute_type(nested) == f"ComposedLayout<Swizzle<2,0,3>,Int<33>,{inner}>"
