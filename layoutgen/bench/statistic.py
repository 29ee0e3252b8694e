"""What timed samples say: medians, spreads, and whether one side is faster than another.

Sides are timed in rounds, each side once a round, so their samples come in pairs that met the same clocks and the same
temperature. A round gives one ratio of speeds; what is reported is the median of the rounds' ratios with a confidence
interval of that median, and only if the interval lies on one side of 1.

The interval is of order statistics: of n sorted ratios, the k-th smallest and the k-th largest hold the median between
them with a probability that follows from the binomial distribution alone. It assumes no normal distribution, which
run times don't have, it needs no random numbers, and an outlier can't widen it. Sources: Gibbons and Chakraborti,
"Nonparametric Statistical Inference", section 5.2 (the interval); Hoefler and Belli, "Scientific Benchmarking of
Parallel Computing Systems", SC 2015, rules 5 to 8 (why medians with such intervals).

It speaks of the run that was measured. What differs between runs (addresses, another card, a warmer room) is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

CONFIDENCE = 0.95
FEWEST = 6  # rounds; of five, even the smallest and the largest hold the median with less confidence than that


@dataclass(frozen=True, slots=True)
class Ratio:
    """How fast one side is, as a multiple of another's speed; above 1 it is ahead.

    ratio: the median of the rounds' ratios, or None where low .. high holds 1: then the two don't differ by more than
    the measurement's spread. low, high: the confidence interval.
    """

    ratio: float | None
    low: float
    high: float

    def __str__(self) -> str:
        if self.ratio is None:
            return f"within the spread ({self.low:.3f} .. {self.high:.3f})"
        return f"{self.ratio:.3f} ({self.low:.3f} .. {self.high:.3f})"


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which `part` (0 .. 1) of the values lie, between neighbours on a straight line; 0.5: the median.

    It is type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50, 1996,
    which numpy and R take too.

    >>> quantile([4.0, 1.0, 2.0, 3.0], 0.5), quantile([7.0], 0.25)
    (2.5, 7.0)
    """
    ordered = sorted(values)
    below, rest = divmod(part * (len(ordered) - 1), 1)
    first = ordered[int(below)]
    return first + rest * (ordered[int(below) + 1] - first) if rest else first


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


@cache
def _trimmed(count: int, confidence: float) -> int | None:
    """How many order statistics lie outside the interval at either end; None if all together are too few."""
    outside, tail = None, 0.0
    for k in range(count // 2):
        tail += comb(count, k) / 2.0**count
        if 2 * tail > 1 - confidence:
            break
        outside = k
    return outside


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The tightest symmetric pair of order statistics that holds the median with at least this confidence.

    None for too few values: fewer than FEWEST at 95%.

    >>> interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), interval([1.0, 2.0, 3.0, 4.0, 5.0])
    ((1.0, 6.0), None)
    """
    outside = _trimmed(len(values), confidence)
    if outside is None:
        return None
    ordered = sorted(values)
    return ordered[outside], ordered[-1 - outside]


def compare(mine: Sequence[float], theirs: Sequence[float]) -> Ratio | None:
    """Times of two sides in the same rounds -> how fast mine is beside theirs; None for fewer than FEWEST rounds.

    >>> compare([1.0] * 6, [2.0] * 6)
    Ratio(ratio=2.0, low=2.0, high=2.0)
    """
    ratios = [other / own for own, other in zip(mine, theirs, strict=True)]
    between = interval(ratios)
    if between is None:
        return None
    low, high = between
    return Ratio(median(ratios) if low > 1 or high < 1 else None, low, high)
