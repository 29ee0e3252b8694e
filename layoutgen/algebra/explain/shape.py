"""How layouts made to measure come about: in a given order, like another, or repeated up to a shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutgen.algebra.explain.claims import Same, SameOffsets, SameSet
from layoutgen.algebra.explain.steps import Step, derives, explain, inside
from layoutgen.algebra.int_tuple import IntTuple, compact_col_major, flatten, product, to_text
from layoutgen.algebra.layout import Layout, make_layout
from layoutgen.algebra.shaping import (
    make_fragment_like,
    make_layout_like,
    make_ordered_layout,
    parts_at,
    product_each,
    tile_to_shape,
)
from layoutgen.algebra.simplify import filter_zeros
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.errors import LayoutError


@derives(make_ordered_layout)
def _make_ordered_layout(result: Any, shape: IntTuple, order: IntTuple) -> Iterator[Step]:
    try:
        parts = list(zip(flatten(order), parts_at(shape, order), strict=True))
    except LayoutError:
        yield Step(f"give each mode of {to_text(shape)} its order", None)
        return
    laid: dict[int, Layout] = {}
    start = 1
    for place in sorted({own for own, _ in parts}):
        reached = start
        for k, (own, part) in enumerate(parts):
            if own == place:
                laid[k] = Layout(part, compact_col_major(part, start))
                size = product(part)
                past = f"steps past the {start} of lower order ({start} * {size} == {start * size})"
                text = f"{to_text(part)}, of order {place}, {past}"
                yield Step(text, laid[k], SameOffsets(Layout(size, start)))
                reached *= size
        start = reached
    whole = make_layout(*[laid[k] for k in range(len(parts))])
    yield Step("each where the shape has it", result, SameOffsets(whole))


@derives(make_layout_like)
def _make_layout_like(result: Any, layout: Any) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        inner = explain("make_layout_like", layout.layout_b)
        yield Step("a compact layout needs no swizzle: like the layout inside", result, None, inner)
        return
    inner = explain("make_ordered_layout", filter_zeros(layout).shape, layout.stride)
    yield Step("modes that move, compact in the order of their strides", inner.result, None, inner)
    assert isinstance(inner.result, Layout)
    yield Step("modes of stride 0 get their extents back", result, SameSet(inner.result))


@derives(make_fragment_like)
def _make_fragment_like(result: Any, layout: Any) -> Iterator[Step]:
    if isinstance(layout, ComposedLayout):
        inner = explain("make_fragment_like", layout.layout_b)
        yield Step("registers need no swizzle: like the layout inside", result, None, inner)
        return
    if layout.rank == 1:
        yield Step("one mode: contiguous", result, SameOffsets(Layout(layout.size)))
        return
    first, rest = layout[0], make_layout(*list(layout)[1:])
    moving = filter_zeros(first).shape
    atom = Layout(first.shape, compact_col_major(moving))
    yield Step("the first mode, one atom's values, is contiguous", atom, SameSet(Layout(product(moving))))
    ordered = explain("make_ordered_layout", rest.shape, rest.stride)
    yield Step("the others in the order of their strides", ordered.result, None, ordered)
    inner = explain("tiled_product", atom, ordered.result)
    yield Step("an atom for each of these", result, None, inner)


@derives(tile_to_shape)
def _tile_to_shape(result: Any, block: Any, shape: IntTuple, order: IntTuple | None = None) -> Iterator[Step]:
    if isinstance(block, ComposedLayout):
        yield from inside("tile_to_shape", result, block, shape, *([] if order is None else [order]))
        return
    target, sizes = product_each(shape), product_each(block.shape)
    sizes += (1,) * (len(target) - len(sizes))
    if len(sizes) != len(target) or any(whole % part for whole, part in zip(target, sizes, strict=True)):
        yield Step(f"how often {block} goes into {to_text(shape)}, mode by mode", result)
        return
    counts = [f"{whole} // {part} == {whole // part}" for whole, part in zip(target, sizes, strict=True)]
    repetitions = tuple(whole // part for whole, part in zip(target, sizes, strict=True))
    tiler = Layout(repetitions)
    often = f"how often the block goes into {to_text(shape)}, mode by mode: {', '.join(counts)}"
    yield Step(often, tiler, SameOffsets(Layout(product(repetitions))))
    if order is not None:
        inner = explain("make_ordered_layout", repetitions, order)
        yield Step("the copies in the order that is asked for", inner.result, None, inner)
        assert isinstance(inner.result, Layout)
        tiler = inner.result
    padded = make_layout(*block, *[Layout(1, 0)] * (len(target) - block.rank))
    if padded != block:
        yield Step(f"the block with {len(target)} modes", padded, Same((block,)))
    inner = explain("blocked_product", padded, tiler)
    yield Step("blocks side by side", result, None, inner)
