"""How a thread walks through memory: the split of its addresses into a base and steps that add or xor, proved.

``base(thread) + offset(value)`` holds for every plain layout, and for a swizzled one only where no step touches what
the swizzle reads or changes. Elsewhere a step flips bits instead, or depends on the thread and can't be precomputed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from layoutgen.algebra.int_tuple import IntTuple, flatten, idx2crd, prime_factors, to_text
from layoutgen.algebra.layout import MOST_OFFSETS, Layout
from layoutgen.algebra.swizzle import ComposedLayout
from layoutgen.errors import LayoutError


@dataclass(frozen=True, slots=True)
class Step:
    """What one factor of the value index does to the address: its k-th amount is added or xored; the first is 0.

    >>> print(Step("add", (0, 4, 8)), Step("xor", (0, 9)))
    add 3:4 xor {0,9}
    """

    kind: Literal["add", "xor"]
    amounts: tuple[int, ...]

    @property
    def is_linear(self) -> bool:
        """Whether it adds k times the same."""
        return self.kind == "add" and all(amount == k * self.amounts[1] for k, amount in enumerate(self.amounts))

    def apply(self, address: int, k: int) -> int:
        """The address after step ``k``.

        >>> Step("xor", (0, 9)).apply(8, 1)
        1
        """
        return address + self.amounts[k] if self.kind == "add" else address ^ self.amounts[k]

    def __str__(self) -> str:
        if self.is_linear:
            return f"add {len(self.amounts)}:{self.amounts[1]}"
        return f"{self.kind} {{{','.join(map(str, self.amounts))}}}"


@dataclass(frozen=True, slots=True)
class AddressSplit:
    """A (thread, value) layout as a base for each thread and steps for each value; see split_address.

    Attributes:
        base: thread -> the address of its value 0.
        steps: one for each factor of the value index, the fastest first.

    >>> split = AddressSplit(Layout(4, 4), (Step("xor", (0, 1)), Step("add", (0, 16))))
    >>> print(split, split(3, 3))
    base 4:4, xor {0,1}, add 2:16 29
    """

    base: Layout | ComposedLayout
    steps: tuple[Step, ...]

    @property
    def is_sum(self) -> bool:
        """Whether the address is base(thread) + offset(value): no step xors."""
        return all(step.kind == "add" for step in self.steps)

    def __call__(self, thread: int, value: int) -> int:
        """The address of a thread's value, by the steps."""
        address = self.base(thread)
        for step in self.steps:
            value, k = divmod(value, len(step.amounts))
            address = step.apply(address, k)
        return address

    def __str__(self) -> str:
        return ", ".join([f"base {self.base}", *map(str, self.steps)])


def split_address(layout: Layout | ComposedLayout) -> AddressSplit:
    """Split the addresses of a (thread, value) layout into a base of the thread and steps of the value.

    Domain: (thread, value). Codomain: that of ``layout``.

    Post: R(t, v) == layout(t, v) for every thread and value, proved by evaluating them all. A step adds if that holds
    for all threads and all other steps, else it xors if that does.

    Raises:
        LayoutError: ``layout`` isn't (thread, value), it has more than MOST_OFFSETS elements, or a step neither adds
            nor xors the same for all threads; the message names two threads or values for which it differs.

    >>> print(split_address(Layout.parse("(32,(4,2)):(4,(1,128))")))
    base 32:4, add 4:1, add 2:128
    >>> split = split_address(ComposedLayout.parse("Sw<2,0,2> o 0 o (4,4):(4,1)"))
    >>> print(split, split.is_sum)
    base Sw<2,0,2> o 0 o 4:4, xor {0,1}, xor {0,2} False
    >>> print(split_address(ComposedLayout.parse("Sw<2,2,2> o 0 o (4,(4,2)):(16,(1,64))")))
    base Sw<2,2,2> o 0 o 4:16, add 4:1, add 2:64
    """
    if layout.rank != 2 or layout.size > MOST_OFFSETS:
        raise LayoutError(
            "addresses split into those of (thread, value)",
            got=f"{layout}, {layout.rank} mode(s) of {layout.size} elements",
            allowed=f"two modes of at most {MOST_OFFSETS} elements",
        )
    # By primes, since a step of 4 may add in its first bit and flip in its second.
    factors = [factor for extent in flatten(layout[1].shape) for factor in prime_factors(extent)]
    threads = layout[0].size
    # Axis 0 is the last factor, the axis before the threads' the first: reshaped, the fastest index comes last.
    addresses = layout.offsets().reshape(*reversed(factors), threads)
    steps: list[Step] = []
    for position in range(len(factors)):
        axis = len(factors) - 1 - position
        by_step = np.moveaxis(addresses, axis, 0)
        added, flipped = by_step - by_step[0], by_step ^ by_step[0]
        if (constant := _constant(added)) is not None:
            steps.append(Step("add", constant))
        elif (constant := _constant(flipped)) is not None:
            steps.append(Step("xor", constant))
        else:
            raise _depends(layout, factors, position, added)
    return AddressSplit(layout[0], _merged(steps))


def _constant(changes: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[int, ...] | None:
    """The change of each step, if no other axis matters."""
    flat = changes.reshape(changes.shape[0], -1)
    return tuple(map(int, flat[:, 0])) if bool((flat == flat[:, :1]).all()) else None


def _merged(steps: list[Step]) -> tuple[Step, ...]:
    """Neighbouring linear steps that go on from each other, as one."""
    merged: list[Step] = []
    for step in steps:
        if merged and merged[-1].is_linear and step.is_linear:
            extent, stride = len(merged[-1].amounts), merged[-1].amounts[1]
            if step.amounts[1] == extent * stride:
                merged[-1] = Step("add", tuple(k * stride for k in range(extent * len(step.amounts))))
                continue
        merged.append(step)
    return tuple(merged)


def _depends(
    layout: Layout | ComposedLayout,
    factors: list[int],
    position: int,
    changes: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> LayoutError:
    """Two places at which the same step changes the address differently."""
    flat = changes.reshape(changes.shape[0], -1)
    k, other = (int(found[0]) for found in np.nonzero(flat != flat[:, :1]))
    rest = [*factors[:position], *factors[position + 1 :]]
    place: IntTuple = idx2crd(other, (layout[0].size, *rest))
    thread, *digits = place if isinstance(place, tuple) else (place,)
    values = [*digits[:position], 0, *digits[position:]]
    value, scale = 0, 1
    for digit, factor in zip(values, factors, strict=True):
        value += digit * scale if isinstance(digit, int) else 0
        scale *= factor
    step = k
    for factor in factors[:position]:
        step *= factor
    return LayoutError(
        "a step of the value index adds or xors the same for every thread",
        got=f"from value 0 to {step} of thread 0 {layout} moves by {int(flat[k, 0])}, "
        f"from value {value} to {value + step} of thread {to_text(thread)} by {int(flat[k, other])}",
        fix="let threads and values move along different bits of the offset, or compute each address anew",
    )
