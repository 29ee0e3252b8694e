"""IntTuples: an int or a nested tuple of ints, the shapes, strides and coordinates of CuTe.

Two IntTuples are *congruent* if they nest alike. Coordinates and indices correspond colexicographically: the leftmost
mode runs fastest. An index past the end is not wrapped; the last mode takes what is left, as in CuTe C++.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from layoutgen.algebra import runtime
from layoutgen.errors import LayoutError

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"


def to_text(t: IntTuple) -> str:
    """Print as CuTe does: no blanks and no comma after a single mode.

    >>> to_text((8, (2, (4,))))
    '(8,(2,(4)))'
    """
    if isinstance(t, tuple):
        return f"({','.join(map(to_text, t))})"
    return str(t)


def flatten(t: IntTuple) -> tuple[int, ...]:
    """All leaves, left to right.

    >>> flatten((8, (2, (4, 1))))
    (8, 2, 4, 1)
    """
    if not isinstance(t, tuple):
        return (t,)
    leaves: list[int] = []
    for mode in t:
        if isinstance(mode, tuple):
            leaves.extend(flatten(mode))
        else:
            leaves.append(mode)
    return tuple(leaves)


def unflatten(leaves: Iterator[IntTuple], profile: IntTuple) -> IntTuple:
    """The next leaves, nested like ``profile``; takes exactly as many leaves as the profile has.

    >>> unflatten(iter((1, 2, 3)), (0, (0, 0)))
    (1, (2, 3))
    """
    if not isinstance(profile, tuple):
        return next(leaves)
    return tuple([unflatten(leaves, mode) if isinstance(mode, tuple) else next(leaves) for mode in profile])


def prime_factors(number: int) -> list[int]:
    """Prime factors of a positive number in increasing order; none of 1.

    >>> prime_factors(12)
    [2, 2, 3]
    """
    found, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found


def product(t: IntTuple) -> int:
    """The product of all leaves; the number of coordinates of a shape.

    >>> product((8, (2, 4)))
    64
    """
    if not isinstance(t, tuple):
        return t
    result = 1
    for mode in t:
        result *= product(mode)
    return result


def rank(t: IntTuple) -> int:
    """The number of modes; an int has one.

    >>> rank((8, (2, 4))), rank(8)
    (2, 1)
    """
    return len(t) if isinstance(t, tuple) else 1


def depth(t: IntTuple) -> int:
    """How deep the tuples nest; an int has depth 0.

    >>> depth((8, (2, 4))), depth(8)
    (2, 0)
    """
    return 1 + max(map(depth, t), default=0) if isinstance(t, tuple) else 0


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether both nest alike.

    >>> congruent((1, (2, 3)), (4, (5, 6))), congruent((1, 2), 3)
    (True, False)
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(congruent, a, b))
    return not isinstance(a, tuple) and not isinstance(b, tuple)


def weakly_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether ``b`` nests at least as deep as ``a`` does, mode by mode.

    >>> weakly_congruent(1, (3, 4)), weakly_congruent((3, 4), 1)
    (True, False)
    """
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(weakly_congruent, a, b))
    return True


def compatible(a: IntTuple, b: IntTuple) -> bool:
    """Whether every coordinate of shape ``a`` is a coordinate of shape ``b``: same size, and ``b`` refines ``a``.

    >>> compatible(12, (3, 4)), compatible((3, 4), 12)
    (True, False)
    """
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(compatible, a, b))
    return a == product(b)


def compact_col_major(shape: IntTuple, current: int = 1) -> IntTuple:
    """The strides that make ``shape`` contiguous with the leftmost mode fastest, starting at ``current``.

    A mode of extent 1 never moves and gets stride 0, as in CuTe.

    >>> compact_col_major((8, (2, 1), 4))
    (1, (8, 0), 16)
    """
    return unflatten(iter(compact_steps(flatten(shape), current)), shape)


def compact_steps(extents: tuple[int, ...], current: int = 1) -> tuple[int, ...]:
    """compact_col_major of a flat shape.

    >>> compact_steps((8, 1, 4))
    (1, 0, 8)
    """
    steps = []
    for extent in extents:
        if extent == 1:
            steps.append(0)
        else:
            steps.append(current)
            current *= extent
    return tuple(steps)


def compact_row_major(shape: IntTuple, current: int = 1) -> IntTuple:
    """The strides that make ``shape`` contiguous with the rightmost mode fastest, starting at ``current``.

    >>> compact_row_major((8, (2, 1), 4))
    (8, (4, 0), 1)
    """
    steps = compact_steps(flatten(shape)[::-1], current)
    return unflatten(reversed(steps), shape)


def idx2crd(index: IntTuple, shape: IntTuple) -> IntTuple:
    """Index in [0, size(shape)) -> coordinate congruent to ``shape``, colexicographic.

    A coordinate is refined mode by mode. What is past the end stays in the last mode.

    Raises:
        LayoutError: a tuple index has another rank than the shape.

    >>> idx2crd(16, (3, (2, 3))), idx2crd((1, 5), (3, (2, 3))), idx2crd(18, (3, (2, 3)))
    ((1, (1, 2)), (1, (1, 2)), (0, (0, 3)))
    """
    if isinstance(index, tuple):
        return tuple(map(idx2crd, index, _modes_for(index, shape)))
    if not isinstance(shape, tuple):
        return index
    coordinate: list[IntTuple] = []
    for mode in shape[:-1]:
        index, inner = divmod(index, product(mode))
        coordinate.append(idx2crd(inner, mode))
    if shape:
        coordinate.append(idx2crd(index, shape[-1]))
    return tuple(coordinate)


def crd2idx(coordinate: IntTuple, shape: IntTuple, stride: IntTuple | None = None) -> int:
    """Coordinate of ``shape`` -> its inner product with ``stride``; by default the colexicographic index.

    The coordinate may stop nesting earlier than the shape: an int is an index into the mode it meets.

    Raises:
        LayoutError: the coordinate nests where the shape doesn't.

    >>> crd2idx((1, (1, 2)), (3, (2, 3))), crd2idx((1, 5), (3, (2, 3)), (10, (100, 1000)))
    (16, 2110)
    """
    if stride is None:
        # Not compact_col_major: an extent of 1 must keep its place value for coordinates past the end.
        index, place = 0, 1
        refined = idx2crd(coordinate, shape)
        for c, extent in zip(flatten(refined), flatten(shape)):
            index += c * place
            place *= extent
        return index
    if isinstance(coordinate, tuple):
        return sum(map(crd2idx, coordinate, _modes_for(coordinate, shape), _modes_for(coordinate, stride)))
    return evaluate(coordinate, flatten(shape), flatten(stride))


def evaluate(index: int, flat_shape: tuple[int, ...], flat_stride: tuple[int, ...]) -> int:
    """Index -> offset under flat shape and stride; negative indices mirror, f(-i) = -f(i), as C++'s / and % do."""
    if index < 0:
        return -evaluate(-index, flat_shape, flat_stride)
    if not flat_shape:
        return 0
    offset = 0
    for extent, step in zip(flat_shape[:-1], flat_stride[:-1]):
        index, inner = divmod(index, extent)
        offset += inner * step
    return offset + index * flat_stride[-1]


def _modes_for(a: tuple[IntTuple, ...], b: IntTuple) -> tuple[IntTuple, ...]:
    """The modes of ``b``, once it is known to have as many as ``a``."""
    if not isinstance(b, tuple) or len(a) != len(b):
        raise LayoutError(
            "a coordinate and the tuple it points into have equally many modes",
            got=f"{to_text(a)} and {to_text(b)}",
            allowed=f"an int, or {rank(b)} mode(s)",
        )
    return b


def ceil_div(a: IntTuple, b: int) -> IntTuple:
    """Shape ``a`` divided by ``b`` items, rounded up; ``b`` folds across the modes of ``a`` left to right.

    >>> ceil_div(10, 4), ceil_div((3, 4), 2), ceil_div((12, 32), 96)
    (3, (2, 4), (1, 4))
    """
    if not isinstance(a, tuple):
        return runtime.ceil_div(a, b)  # type: ignore[no-any-return]
    result: list[IntTuple] = []
    for mode in a:
        result.append(ceil_div(mode, b))
        b = runtime.ceil_div(b, product(mode))
    return tuple(result)


def shape_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """Shape ``a`` divided by ``b``, where one must divide the other; an int ``b`` folds across the modes of ``a``.

    Raises:
        LayoutError: neither divides the other, or two tuples differ in rank.

    >>> shape_div((6, 10), 3), shape_div((4, 5, 6), 40)
    ((2, 10), (1, 1, 3))
    """
    if isinstance(a, tuple):
        if isinstance(b, tuple):
            return tuple(map(shape_div, a, _modes_for(a, b)))
        result: list[IntTuple] = []
        for mode in a:
            result.append(shape_div(mode, b))
            b = shape_div(b, product(mode))
        return tuple(result)
    divisor = product(b)
    if a % divisor and divisor % a:
        raise LayoutError(
            "dividing shapes needs one to divide the other",
            got=f"{a} by {divisor}",
            allowed=f"a divisor or a multiple of {a}",
        )
    return -(-a // divisor)
