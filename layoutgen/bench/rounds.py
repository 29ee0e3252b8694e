"""The timed loop: every side once a round, on whatever clock it is given. Knows no GPU."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

Call = Callable[[], object]

WARM_UP_ROUNDS = 3
WARM_UP_SECONDS = 0.5  # an idle GPU needs some tenths of a second of work to reach its clocks


class Timer(Protocol):
    """What measures: a GPU, or a test."""

    def seconds(self) -> float:
        """The wall clock."""
        ...

    def milliseconds(self, call: Call) -> float:
        """How long the device works on one call that finds nothing of its operands in a cache."""
        ...


def warm_up(calls: Mapping[str, Call], timer: Timer, seconds: float = WARM_UP_SECONDS) -> None:
    """Untimed rounds, at least WARM_UP_ROUNDS and so many seconds of them."""
    began, done = timer.seconds(), 0
    while done < WARM_UP_ROUNDS or timer.seconds() - began < seconds:
        for call in calls.values():
            timer.milliseconds(call)
        done += 1


def rounds(calls: Mapping[str, Call], timer: Timer, repeats: int) -> Iterator[dict[str, float]]:
    """name -> milliseconds, once a round: what meets in a round is a pair of samples.

    The order is shuffled for each round, from a fixed seed, so that no side always follows the same other one. Only
    whole rounds are yielded: whoever is interrupted keeps those before.
    """
    shuffle = random.Random(0).shuffle
    order = list(calls)
    for _ in range(repeats):
        shuffle(order)
        yield {name: timer.milliseconds(calls[name]) for name in order}
