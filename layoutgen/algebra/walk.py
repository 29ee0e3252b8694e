"""How composition works: B's leaves as walks through A, whose coalesced modes are the digits of a mixed-radix number.

A leaf n:d of B visits the indices 0, d, .. (n-1)d. While no digit overflows, A of these is linear; so a leaf splits
into runs, each as long as its digits allow. Runs add up to A of the sum exactly if no digit overflows in the sum;
since neighbouring modes of A don't merge, an overflow shows in some value.
"""

from __future__ import annotations

from layoutgen.algebra.int_tuple import IntTuple, unflatten
from layoutgen.algebra.layout import Layout, trusted
from layoutgen.algebra.simplify import merged
from layoutgen.errors import LayoutError

Modes = tuple[list[int], list[int]]
Run = tuple[int, list[int]]  # its length, and the digits of one step


def open_ended(a: Layout) -> Modes:
    """Extents and strides of A's coalesced modes, at least one, of which the last goes on past its end."""
    flat_shape = a.flat_shape
    if flat_shape and flat_shape[-1] == 1:
        # An extent of 1 there still shapes what follows.
        flat_shape = (*flat_shape[:-1], 2)
    extents, strides = merged(flat_shape, a.flat_stride)
    return (extents, strides) if extents else ([1], [0])


def walk(a: Layout, modes: Modes, shape: IntTuple, flat_shape: tuple[int, ...], flat_stride: tuple[int, ...]) -> Layout:
    """A o B, from ``open_ended(a)`` and B's parts; LayoutError as for ``composition``."""
    extents, strides = modes
    last = len(extents) - 1
    if not last:
        # A is linear, past its end too.
        step = strides[0]
        return trusted(shape, flat_shape, tuple([d and d * step for d in flat_stride]))
    forward = [0] * last  # how far B's leaves together move along each mode of A but the last
    hard: _Hard | None = None
    stride: list[int] = []
    split: dict[int, Modes] = {}
    for n, d in zip(flat_shape, flat_stride):
        step, mode = d, 0
        while mode < last and step >= extents[mode] and not step % extents[mode]:
            step //= extents[mode]
            mode += 1
        if mode == last:
            stride.append(step * strides[last])
        elif d == 0:
            stride.append(0)
        elif n == 1:
            stride.append(_unused(a, modes, trusted(shape, flat_shape, flat_stride), d))
        elif step > 0 and type(n) is int and n * step <= extents[mode]:
            # Most leaves stay inside one mode.
            stride.append(step * strides[mode])
            forward[mode] += (n - 1) * step
        else:
            hard = hard or _Hard(a, modes, trusted(shape, flat_shape, flat_stride), forward)
            lengths, steps = hard.leaf(n, d)
            if len(lengths) > 1:
                split[len(stride)] = lengths, steps
            stride.append(steps[0])
    if hard:
        hard.check()
    for mode, reached in enumerate(forward):
        if reached >= extents[mode]:
            raise carry(a, trusted(shape, flat_shape, flat_stride), modes, mode, reached)
    if not split:
        return trusted(shape, flat_shape, tuple(stride))
    return _with_split_leaves(shape, flat_shape, stride, split)


def _unused(a: Layout, modes: Modes, b: Layout, d: int) -> int:
    """The stride of a mode of one element: CuTe's, which divides d by all but A's last mode and rounds up."""
    extents, strides = modes
    step = abs(d)
    for extent in extents[:-1]:
        if step >= extent and step % extent and b.size == 1 and abs(d) < a.size:
            raise _refused(a, modes, b, 1, d, "moves nowhere, and its stride, inside A, divides no mode of it")
        step = -(-step // extent)
    return (step if d >= 0 else -step) * strides[-1]


def _with_split_leaves(
    shape: IntTuple, flat_shape: tuple[int, ...], stride: list[int], split: dict[int, Modes]
) -> Layout:
    """The layout of ``shape`` in which some leaves are several modes."""
    leaves: list[IntTuple] = list(flat_shape)
    lengths: list[int] = []
    steps: list[int] = []
    for leaf, (n, d) in enumerate(zip(flat_shape, stride)):
        own = split.get(leaf)
        if own is None:
            lengths.append(n)
            steps.append(d)
        else:
            leaves[leaf] = tuple(own[0])
            lengths += own[0]
            steps += own[1]
    return trusted(unflatten(iter(leaves), shape), tuple(lengths), tuple(steps))


class _Hard:
    """The leaves that cross modes of A, or walk backward, or have run-time extents."""

    __slots__ = ("a", "alone", "b", "backward", "forward", "modes")

    def __init__(self, a: Layout, modes: Modes, b: Layout, forward: list[int]) -> None:
        self.a, self.modes, self.b, self.forward = a, modes, b, forward
        self.backward = [0] * len(forward)
        self.alone: list[int] = []  # modes that a run of run-time length moves along

    def leaf(self, n: int, d: int) -> Modes:
        """Extents and strides of i -> A(i * d), 0 <= i < n."""
        sign, reach = (1, self.forward) if d > 0 else (-1, self.backward)
        strides = self.modes[1]
        runs = self._runs(n, abs(d))
        for length, digits in runs:
            for mode, digit in enumerate(digits[:-1]):
                if digit and type(length) is int:
                    reach[mode] += (length - 1) * digit
                elif digit:
                    self.alone.append(mode)
        return [length for length, _ in runs], [
            sign * sum([digit * s for digit, s in zip(digits, strides) if digit]) for _, digits in runs
        ]

    def _runs(self, n: int, d: int) -> list[Run]:
        """The leaf as runs along which no digit overflows, the first the fastest."""
        whole = n, d
        runs: list[Run] = []
        while True:
            digits = []
            rest = d
            for extent in self.modes[0][:-1]:
                rest, digit = divmod(rest, extent)
                digits.append(digit)
            longest = [-(-extent // digit) for extent, digit in zip(self.modes[0], digits) if digit]
            digits.append(rest)
            if not longest or n <= min(longest):
                return [*runs, (n, digits)]
            length = min(longest)
            if n % length:
                crossing = f"crosses a mode of A after {length} of {n} steps of {d}"
                raise _refused(self.a, self.modes, self.b, *whole, crossing)
            if any(length * digit > extent for extent, digit in zip(self.modes[0], digits[:-1])):
                # The next run would begin inside a mode; CuTe goes on as if at its start, and is wrong.
                crossing = f"steps over the end of a mode of A at step {length} of {d}"
                raise _refused(self.a, self.modes, self.b, *whole, crossing)
            runs.append((length, digits))
            n //= length
            d *= length

    def check(self) -> None:
        """Raise where leaves together could leave a mode backward, borrow from one, or fill one an unknown number of
        times; what ``forward`` reaches is the caller's to check.
        """
        for mode, reached in enumerate(self.backward):
            if reached >= self.modes[0][mode]:
                raise carry(self.a, self.b, self.modes, mode, reached)
            if self.alone.count(mode) + (reached > 0) + (self.forward[mode] > 0) > 1 and mode in self.alone:
                raise LayoutError(
                    "composition: where the extent of B's mode is known at run time alone, no other moves along the "
                    "same mode of A",
                    got=f"{self.a} o {self.b}, several along {mode_text(self.modes, mode)}",
                )
        moving = [(n, d) for n, d in zip(self.b.flat_shape, self.b.flat_stride) if n != 1 and d != 0]
        if not any(d < 0 for _, d in moving) or not any(d > 0 for _, d in moving):
            return
        walked = {
            mode for n, d in moving for _, digits in self._runs(n, abs(d)) for mode, digit in enumerate(digits) if digit
        }
        if len(walked) > 1:
            raise LayoutError(
                "composition: positive and negative strides of B walk along one and the same mode of A, "
                "else they borrow between modes",
                got=f"{self.a} o {self.b} walks along "
                + ", ".join(mode_text(self.modes, mode) for mode in sorted(walked)),
                fix="give B strides of one sign",
            )


def _refused(a: Layout, modes: Modes, b: Layout, n: int, d: int, what: str) -> LayoutError:
    return LayoutError(
        "composition: a mode of B walks through A one mode at a time",
        got=f"{a} o {b}: mode {n}:{d} of B {what}",
        allowed="strides and extents that divide the modes of A or are multiples of them: "
        + ", ".join(mode_text(modes, mode) for mode in range(len(modes[0]))),
        fix="choose a tile that divides this mode of A, or compose mode by mode with a tuple",
    )


def carry(a: Layout, b: Layout, modes: Modes, mode: int, reached: int) -> LayoutError:
    """The error for modes of B that together leave a mode of A."""
    return LayoutError(
        "composition: the modes of B together stay inside every mode of A that they walk along",
        got=f"{a} o {b} reaches coordinate {reached} in mode {mode_text(modes, mode)} of A, "
        "and would carry into the next",
        allowed=f"at most coordinate {modes[0][mode] - 1} there",
        fix="give B smaller extents, or strides that split A's modes evenly",
    )


def mode_text(modes: Modes, mode: int) -> str:
    """A coalesced mode of A, as printed."""
    return f"{modes[0][mode]}:{modes[1][mode]}"
