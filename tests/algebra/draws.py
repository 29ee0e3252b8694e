"""Random arguments for each operation of the algebra, drawn where CuTe answers and answers right.

test_oracle_cute.py lists what lies outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from layoutgen import algebra
from layoutgen.algebra import ComposedLayout, IntTuple, Layout, Swizzle
from layoutgen.algebra.int_tuple import flatten, unflatten

EXTENTS = (1, 2, 3, 4, 5, 6, 8, 12, 16)
POWERS = (2, 4, 8)
STRIDES = (0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 59, 128)


def shape(r: Random, extents: Sequence[int] = EXTENTS, most: int = 3, size: int = 2048) -> IntTuple:
    """An int, or up to ``most`` modes, some of them nested, of at most ``size`` coordinates."""
    while True:
        modes: list[IntTuple] = [
            tuple(r.choices(extents, k=r.randint(1, 3))) if r.random() < 0.25 else r.choice(extents)
            for _ in range(r.randint(1, most))
        ]
        drawn = modes[0] if len(modes) == 1 and r.random() < 0.6 else tuple(modes)
        if algebra.size(drawn) <= size:
            return drawn


def strided(r: Random, strides: Sequence[int] = STRIDES, **how: Any) -> Layout:
    """Any strides: gaps, overlaps and repetitions."""
    drawn = shape(r, **how)
    return Layout(drawn, unflatten(iter(r.choices(strides, k=len(flatten(drawn)))), drawn))


def nested(r: Random, gap: float = 0.0, zero: float = 0.0, **how: Any) -> Layout:
    """Leaves in a random order, each stepping past the ones before; ``gap`` and ``zero``: how often padded or 0."""
    drawn = shape(r, **how)
    extents = flatten(drawn)
    steps = [0] * len(extents)
    place = 1
    for k in r.sample(range(len(extents)), len(extents)):
        if r.random() < zero:
            continue
        place *= r.choice((2, 3, 4)) if r.random() < gap else 1
        steps[k] = place
        place *= extents[k]
    return Layout(drawn, unflatten(iter(steps), drawn))


def swizzle(r: Random) -> Swizzle:
    bits = r.randint(1, 3)
    return Swizzle(bits, r.randint(0, 4), r.choice((1, 1, 1, -1)) * r.randint(bits, 4))


def swizzled(r: Random) -> ComposedLayout:
    return ComposedLayout(swizzle(r), 0, nested(r, extents=POWERS, most=3))


def wide(r: Random, most: int = 2) -> Layout:
    """A layout to cut: no extents of 1."""
    return nested(r, gap=0.2, extents=(2, 3, 4, 6, 8, 12, 16), most=most)


def tile(r: Random) -> Any:
    return r.choice((r.choice((1, 2, 3, 4, 8)), Layout(r.choice((2, 3, 4)), r.choice((1, 2, 4)))))


def tiles(r: Random, layout: Layout, whole: bool = False) -> tuple[Any, ...]:
    """A tiler by mode; ``whole`` leaves no mode uncut."""
    count = r.randint(1, layout.rank)
    return tuple(None if not whole and r.random() < 0.15 else tile(r) for _ in range(count))


def _cut(r: Random, whole: bool) -> tuple[Any, ...]:
    layout = swizzled(r) if r.random() < 0.15 else wide(r)
    inner = layout.layout_b if isinstance(layout, ComposedLayout) else layout
    assert isinstance(inner, Layout)
    return layout, tiles(r, inner, whole) if isinstance(inner.shape, tuple) and r.random() < 0.6 else tile(r)


def _compose(r: Random) -> tuple[Any, ...]:
    kind = r.random()
    if kind < 0.35:
        return strided(r, extents=EXTENTS[1:]), strided(r, (1, 2, 3, 4, 6, 8, 12), most=2)
    if kind < 0.6:
        return nested(r, gap=0.2, zero=0.1), nested(r, gap=0.3, extents=(1, 2, 3, 4), most=2)
    if kind < 0.75:
        layout = nested(r, gap=0.2, extents=EXTENTS[1:])
        return layout, tiles(r, layout) if isinstance(layout.shape, tuple) else tile(r)
    if kind < 0.85:
        # Negative strides: CuTe and we agree while A is a single mode.
        return Layout(r.choice(POWERS), r.choice((-4, -2, -1))), strided(r, (-3, -2, -1, 0, 1, 2, 4), most=2)
    if kind < 0.95:
        return swizzled(r), nested(r, extents=POWERS, most=2)
    return swizzle(r), nested(r, extents=POWERS)


def _swizzle_after(r: Random) -> tuple[Any, ...]:
    if r.random() < 0.5:
        return nested(r, gap=0.3, extents=POWERS, most=2), swizzle(r)
    bits, shift = r.randint(1, 3), r.randint(3, 5)
    return Swizzle(bits, r.randint(0, 3), shift), Swizzle(r.randint(1, 3), r.randint(0, 3), shift)


def _profile(r: Random) -> tuple[Any, ...]:
    layout = strided(r) if r.random() < 0.5 else nested(r)
    if not isinstance(layout.shape, tuple):
        return layout, 1
    return layout, (1,) * r.randint(1, layout.rank)


def _complement(r: Random) -> tuple[Any, ...]:
    layout = nested(r, gap=0.4, zero=0.1) if r.random() < 0.8 else strided(r, most=2)
    cotarget = r.choice((1, 7, 16, 24, 48, 96, 144, 512, (4, 8), (12, 32), (3, (2, 8))))
    return (layout, cotarget) if r.random() < 0.8 else (layout,)


def _product(r: Random) -> tuple[Any, ...]:
    block = nested(r, gap=0.25, extents=(1, 2, 3, 4, 5, 8), most=2, size=64)
    return block, nested(r, extents=(1, 2, 3, 4), most=2, size=16)


def _paired(r: Random) -> tuple[Any, ...]:
    """Blocked and raked products pair modes; CuTe can't pair an int with a tuple of one mode."""
    while True:
        block, tiler = _product(r)
        if block.rank > 1 or tiler.rank > 1 or isinstance(block.shape, tuple) == isinstance(tiler.shape, tuple):
            return block, tiler


def _repeat(r: Random) -> tuple[Any, ...]:
    block, tiler = _product(r)
    if isinstance(block.shape, tuple) and r.random() < 0.3:
        return block, tiles(r, block, whole=True)
    return (block, r.choice((2, 3, 4))) if r.random() < 0.2 else (block, tiler)


def _wider(r: Random) -> tuple[Any, ...]:
    if r.random() < 0.2:
        return (swizzle(r) if r.random() < 0.3 else swizzled(r)), r.choice((2, 4, 8))
    return strided(r, (0, 1, 2, 4, 8, 16, 24, -1, -8), most=2), r.choice((1, 2, 4, 8))


def _narrower(r: Random) -> tuple[Any, ...]:
    if r.random() < 0.2:
        return (swizzle(r) if r.random() < 0.3 else swizzled(r)), r.choice((2, 4, 8))
    return nested(r, gap=0.2, zero=0.2, extents=EXTENTS[1:]), r.choice((1, 2, 3, 4))


def _point(r: Random) -> tuple[Any, ...]:
    layout = swizzled(r) if r.random() < 0.3 else strided(r)
    index = r.randrange(layout.size)
    if not isinstance(layout.shape, tuple) or r.random() < 0.4:
        return layout, index
    coordinate = algebra.idx2crd(index, layout.shape)
    assert isinstance(coordinate, tuple)
    return (layout, coordinate) if r.random() < 0.5 or len(coordinate) == 1 else (layout, *coordinate)


def _path(r: Random) -> tuple[Any, ...]:
    layout = Layout((8, (2, (4, 3)), 5), (1, (r.choice(STRIDES), (2, 3)), r.choice(STRIDES)))
    return layout, *r.choice(((0,), (1,), (1, 0), (1, 1), (1, 1, 0), (2,)))


def _two_shapes(r: Random) -> tuple[Any, ...]:
    a = shape(r, (2, 3, 4), most=2)
    if r.random() < 0.5 and isinstance(a, tuple):
        return a, tuple(r.choice((mode, (1, algebra.size(mode)), (mode, 1))) for mode in a)
    return a, shape(r, (2, 3, 4), most=2)


def _divide_shape(r: Random) -> tuple[Any, ...]:
    return shape(r, (2, 3, 4, 6, 12), most=3), r.choice((1, 2, 3, 4, 6, 8, 12, 24))


def _index(r: Random) -> tuple[Any, ...]:
    drawn = shape(r)
    return r.randrange(algebra.size(drawn)), drawn


def _coordinate(r: Random) -> tuple[Any, ...]:
    layout = strided(r)
    return algebra.idx2crd(r.randrange(layout.size), layout.shape), layout.shape, layout.stride


def _bits(r: Random) -> tuple[Any, ...]:
    old, new = r.choice(((16, 8), (16, 4), (8, 16), (4, 16), (32, 16), (16, 32), (16, 16), (1, 8)))
    draw = _wider if new > old else _narrower
    return draw(r)[0], old, new


def _any(r: Random) -> tuple[Any, ...]:
    return ((nested(r, gap=0.3, zero=0.2) if r.random() < 0.6 else strided(r)),)


def _invertible(r: Random) -> tuple[Any, ...]:
    return (nested(r, gap=0.3 if r.random() < 0.6 else 0, zero=0.1),)


def _open(r: Random) -> tuple[Any, ...]:
    """A layout of several modes and a coordinate that fixes some of them."""
    while True:
        layout = strided(r)
        if isinstance(layout.shape, tuple):
            coordinate = algebra.idx2crd(r.randrange(layout.size), layout.shape)
            return layout, _opened(r, coordinate)


def _opened(r: Random, coordinate: IntTuple) -> Any:
    if r.random() < 0.4:
        return None
    return tuple(_opened(r, mode) for mode in coordinate) if isinstance(coordinate, tuple) else coordinate


def _ordered(r: Random) -> tuple[Any, ...]:
    modes = r.choices(EXTENTS, k=r.randint(2, 4))
    return tuple(modes), tuple(r.sample(range(1, 9), len(modes)))


def _tiled(r: Random) -> tuple[Any, ...]:
    """Blocks of several modes: CuTe can't pair an int with a tuple of one mode."""
    while True:
        block = nested(r, extents=POWERS, most=2) if r.random() < 0.7 else swizzled(r)
        inner = block.layout_b if isinstance(block, ComposedLayout) else block
        if inner.rank > 1:
            break
    modes = [algebra.size(mode) * r.choice((1, 2, 3, 4)) for mode in inner]
    modes += [r.choice((1, 3, 4)) for _ in range(r.randint(0, 1))]
    target = tuple(modes)
    return (block, target, tuple(r.sample(range(1, 9), len(target)))) if r.random() < 0.4 else (block, target)


DRAWS: dict[str, tuple[int, Callable[[Random], tuple[Any, ...]]]] = {
    # operation: (cases, arguments)
    "apply": (40, _point),
    "blocked_product": (35, _paired),
    "coalesce": (80, lambda r: _profile(r) if r.random() < 0.3 else ((swizzled(r),) if r.random() < 0.1 else _any(r))),
    "compact_col_major": (10, lambda r: (shape(r),)),
    "compact_row_major": (10, lambda r: (shape(r),)),
    "compatible": (20, _two_shapes),
    "complement": (70, _complement),
    "composition": (150, lambda r: _compose(r) if r.random() < 0.9 else _swizzle_after(r)),
    "congruent": (20, _two_shapes),
    "cosize": (20, _any),
    "crd2idx": (20, _coordinate),
    "depth": (10, _any),
    "dice": (12, _open),
    "domain_distribute": (12, lambda r: (shape(r), r.choice((2, 4, 6, 12)))),
    "downcast": (30, _narrower),
    "filter": (40, _any),
    "filter_zeros": (15, _any),
    "flat_divide": (15, lambda r: _cut(r, whole=True)),
    "flat_product": (12, _repeat),
    "flatten": (10, _any),
    "get": (10, _path),
    "idx2crd": (20, _index),
    "left_inverse": (40, _invertible),
    "logical_divide": (60, lambda r: _cut(r, whole=False)),
    "logical_product": (35, _repeat),
    "make_fragment_like": (12, _any),
    "make_layout_like": (12, _any),
    "make_ordered_layout": (12, _ordered),
    "product": (5, lambda r: (shape(r),)),
    "product_each": (5, lambda r: (shape(r),)),
    "raked_product": (35, _paired),
    "rank": (10, _any),
    "recast_layout": (20, _bits),
    "right_inverse": (60, _any),
    "shape_div": (20, _divide_shape),
    "size": (10, _any),
    "slice": (20, _open),
    "tile_to_shape": (15, _tiled),
    "tiled_divide": (15, lambda r: _cut(r, whole=True)),
    "tiled_product": (12, _repeat),
    "upcast": (40, _wider),
    "weakly_congruent": (20, _two_shapes),
    "with_shape": (25, lambda r: (nested(r, gap=0.2), shape(r, most=2))),
    "zipped_divide": (25, lambda r: _cut(r, whole=True)),
    "zipped_product": (12, _repeat),
}
