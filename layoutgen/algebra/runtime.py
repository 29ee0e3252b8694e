"""Integers that are known when a kernel runs, with a divisor that is known now: the ``?{div=16}`` of the CuTe DSL.

Operations decide what follows from the divisor and raise LayoutError for the rest, so that a layout of run-time extents
is right for every value that they may have.
"""

from __future__ import annotations

from collections import Counter
from itertools import count
from math import inf
from typing import Any, NoReturn

from layoutgen.errors import LayoutError

_fresh = count(1)


class RuntimeInt:
    """A positive integer ``divisor`` * u * v * ..., whose unknowns u, v, .. are any integers from 1 on.

    Two are equal if divisor and unknowns are; without a name the unknown is one of its own.

    >>> m = RuntimeInt(16, "m")
    >>> print(m, 4 * m, m // 8, m % 8, m > 15, m == RuntimeInt(16, "m"), m == RuntimeInt(16))
    ?{div=16} ?{div=64} ?{div=2} 0 True True False
    >>> m % 32
    Traceback (most recent call last):
    layoutgen.errors.LayoutError: what depends on a run-time extent follows from its known divisor
      got: ?{div=16} % 32
      fix: give the extent a larger divisor, or a static value
    """

    __slots__ = ("divisor", "unknowns")

    divisor: int
    unknowns: tuple[str, ...]

    def __init__(self, divisor: int = 1, *names: str) -> None:
        if type(divisor) is not int or divisor < 1:
            raise LayoutError("the divisor of a run-time extent is a positive int", got=divisor)
        self.divisor = divisor
        self.unknowns = tuple(sorted(names)) or (f"?{next(_fresh)}",)

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            return _integer(self.divisor * other, self.unknowns)
        if isinstance(other, RuntimeInt):
            return _integer(self.divisor * other.divisor, self.unknowns + other.unknowns)
        return NotImplemented

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __abs__(self) -> Any:
        return _integer(abs(self.divisor), self.unknowns)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, RuntimeInt) and other.unknowns == self.unknowns:
            return _integer(self.divisor + other.divisor, self.unknowns)
        return self if other == 0 else self._undecided("+", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return _divmod(self, other)

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return _divmod(other, self)

    def __mod__(self, other: Any) -> Any:
        return _divmod(self, other, "%")[1]

    def __rmod__(self, other: Any) -> Any:
        return _divmod(other, self, "%")[1]

    def __floordiv__(self, other: Any) -> Any:
        return _divmod(self, other)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        return _divmod(other, self)[0]

    def __lt__(self, other: Any) -> bool:
        return _less(self, other)

    def __gt__(self, other: Any) -> bool:
        return _less(other, self)

    def __le__(self, other: Any) -> bool:
        return self == other or not _less(other, self)

    def __ge__(self, other: Any) -> bool:
        return self == other or not _less(self, other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuntimeInt) and self.divisor == other.divisor and self.unknowns == other.unknowns

    def __hash__(self) -> int:
        return hash((self.divisor, self.unknowns))

    def __str__(self) -> str:
        return "?" if self.divisor == 1 else f"?{{div={self.divisor}}}"

    def __repr__(self) -> str:
        return f"RuntimeInt({', '.join(map(repr, (self.divisor, *self.unknowns)))})"

    def _undecided(self, operator: str = "as an int", other: Any = "") -> NoReturn:
        raise _undecided(self, operator, other)

    def __index__(self) -> int:
        self._undecided()

    __int__ = __index__


def _integer(factor: int, unknowns: tuple[str, ...]) -> Any:
    """factor * unknowns, a plain int if nothing is unknown; negative ones are strides and steps between results."""
    if factor == 0 or not unknowns:
        return factor
    result = RuntimeInt.__new__(RuntimeInt)
    result.divisor, result.unknowns = factor, tuple(sorted(unknowns))
    return result


def _reduced(a: Any, b: Any) -> tuple[int, Counter[str], int, Counter[str]]:
    """Factor and unknowns of both, without the unknowns they share."""
    own = Counter(a.unknowns if isinstance(a, RuntimeInt) else ())
    others = Counter(b.unknowns if isinstance(b, RuntimeInt) else ())
    factors = (x.divisor if isinstance(x, RuntimeInt) else x for x in (a, b))
    return next(factors), own - others, next(factors), others - own


def _divmod(a: Any, b: Any, operator: str = "//") -> tuple[Any, Any]:
    factor, own, divisor, others = _reduced(a, b)
    if not others and divisor and factor % divisor == 0:
        return _integer(factor // divisor, tuple(own.elements())), 0
    if factor >= 0 and _range(factor, own)[1] < _range(divisor, others)[0]:
        return 0, a
    raise _undecided(a, operator, b)


def _less(a: Any, b: Any) -> bool:
    """Whether a < b for all values of the unknowns, or for none."""
    factor, own, bound, others = _reduced(a, b)
    (low, high), (low_b, high_b) = _range(factor, own), _range(bound, others)
    if high < low_b:
        return True
    if low >= high_b:
        return False
    raise _undecided(a, "<", b)


def _range(factor: int, unknowns: Counter[str]) -> tuple[float, float]:
    """The least and the greatest value of factor * unknowns, exact unless infinite."""
    if not unknowns:
        return factor, factor
    return (factor, inf) if factor > 0 else (-inf, factor)


def ceil_div(a: Any, b: Any) -> Any:
    """a / b rounded up; where the divisor doesn't decide it, an unknown named after the quotient."""
    if type(a) is int and type(b) is int:
        return -(-a // b)
    factor, own, divisor, others = _reduced(a, b)
    if not others and factor % divisor == 0:
        return _integer(factor // divisor, tuple(own.elements()))
    if not own and 0 < factor <= divisor:
        return 1
    return RuntimeInt(1, f"ceil({a!r}/{b!r})")


def _undecided(a: Any, operator: str, b: Any) -> LayoutError:
    return LayoutError(
        "what depends on a run-time extent follows from its known divisor",
        got=f"{a} {operator} {b}".strip(),
        fix="give the extent a larger divisor, or a static value",
    )
