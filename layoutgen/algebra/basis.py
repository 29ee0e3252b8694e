"""Scaled basis vectors, the strides of coordinate layouts: CuTe's ScaledBasis, E<..> and ArithmeticTuple.

``2@1`` moves 2 along axis 1, so (4,4):(1@0,1@1) maps a coordinate to itself. ``1@0@1`` is an axis inside an axis: axis
0 of axis 1. Source: CUTLASS ``media/docs/cpp/cute/0z_tma_tensors.md``, ``include/cute/numeric/arithmetic_tuple.hpp``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from layoutgen.errors import LayoutError

Path = tuple[int, ...]


class ScaledBasis:
    """An integer vector over axes: ``value`` along the axis at ``path`` (outermost first), or a sum of such.

    It adds to its like and scales by ints, which is all that evaluating, coalescing, composing and dividing ask of a
    stride. It has no order and no divisors, so that whatever asks for them raises LayoutError.

    >>> print(ScaledBasis(2, 1), ScaledBasis(1, 1, 0), 3 * ScaledBasis(2, 1))
    2@1 1@0@1 6@1
    >>> (2 * ScaledBasis(1, 0) + ScaledBasis(5, 1, 1)).coordinate()
    (2, (0, 5))
    """

    __slots__ = ("terms",)

    terms: tuple[tuple[Path, Any], ...]

    def __init__(self, value: Any, *path: int) -> None:
        if not path or any(type(axis) is not int or axis < 0 for axis in path):
            raise LayoutError("a basis vector names an axis by ints from 0 on", got=f"{value}@{path}")
        self.terms = ((path, value),)

    @staticmethod
    def of(terms: Iterable[tuple[Path, Any]]) -> ScaledBasis:
        """The sum of ``value`` along each ``path``, added up where a path repeats.

        Raises:
            LayoutError: one path leads into another's axis, such as @1 and @0@1.
        """
        total: dict[Path, Any] = {}
        for path, value in terms:
            total[path] = total[path] + value if path in total else value
        paths = sorted(total)
        for inner, outer in zip(paths[1:], paths):
            if inner[: len(outer)] == outer:
                raise LayoutError(
                    "a coordinate is a number or a tuple along each axis, not both",
                    got=" and ".join(map(str, (ScaledBasis(1, *outer), ScaledBasis(1, *inner)))),
                )
        vector = ScaledBasis.__new__(ScaledBasis)
        vector.terms = tuple((path, total[path]) for path in paths)
        return vector

    def coordinate(self) -> Any:
        """The vector as a nested tuple, with 0 along the axes that it doesn't name."""
        return _nested(self.terms)

    def __mul__(self, factor: Any) -> ScaledBasis:
        if isinstance(factor, ScaledBasis):
            return self._no_integer("product")
        vector = ScaledBasis.__new__(ScaledBasis)
        vector.terms = tuple((path, value * factor) for path, value in self.terms)
        return vector

    __rmul__ = __mul__

    def __neg__(self) -> ScaledBasis:
        return self * -1

    def __add__(self, other: Any) -> ScaledBasis:
        if isinstance(other, ScaledBasis):
            return ScaledBasis.of((*self.terms, *other.terms))
        return self if other == 0 else self._no_integer("sum")

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        own = tuple(term for term in self.terms if term[1] != 0)
        if isinstance(other, ScaledBasis):
            return own == tuple(term for term in other.terms if term[1] != 0)
        return not own and other == 0

    def __hash__(self) -> int:
        return hash(tuple(term for term in self.terms if term[1] != 0))

    def __str__(self) -> str:
        return "+".join("@".join(map(str, (value, *reversed(path)))) for path, value in self.terms)

    def __repr__(self) -> str:
        return " + ".join(f"ScaledBasis({', '.join(map(repr, (value, *path)))})" for path, value in self.terms)

    def _no_integer(self, *_: object) -> NoReturn:
        raise LayoutError(
            "this operation orders or divides strides, so they are integers",
            got=f"the coordinate stride {self}",
            fix="compose the coordinate layout with the layout of a tensor first, which gives it integer strides",
        )

    __lt__ = __le__ = __gt__ = __ge__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _no_integer
    __abs__ = __index__ = __int__ = __sub__ = __rsub__ = __divmod__ = __rdivmod__ = _no_integer


def single_axis(d: Any) -> tuple[Path, Any]:
    """The one (path, value) of a stride; the path of an integer is ().

    Raises:
        LayoutError: it moves along several axes at once.

    >>> single_axis(ScaledBasis(2, 1, 0)), single_axis(3)
    (((1, 0), 2), ((), 3))
    """
    if not isinstance(d, ScaledBasis):
        return (), d
    if len(d.terms) != 1:
        raise LayoutError("a stride that names a mode moves along one axis", got=d)
    return d.terms[0]


def _nested(terms: Iterable[tuple[Path, Any]]) -> Any:
    axes: dict[int, list[tuple[Path, Any]]] = {}
    for path, value in terms:
        if not path:
            return value
        axes.setdefault(path[0], []).append((path[1:], value))
    return tuple(_nested(axes.get(axis, [((), 0)])) for axis in range(max(axes) + 1))
