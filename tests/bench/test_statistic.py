"""The statistics on samples whose answers are known, and the refusal of ratios."""

from __future__ import annotations

import doctest
import random
import statistics

import numpy as np
import pytest
from scipy.stats import binom

from layoutgen.bench import FEWEST, Ratio, compare, interval, median, quantile, statistic


def test_the_examples() -> None:
    assert doctest.testmod(statistic).failed == 0


@pytest.mark.parametrize("count", [1, 2, 5, 30, 31])
def test_quantiles_are_numpys(count: int) -> None:
    values = random.Random(count).sample(range(1000), count)
    for part in (0.0, 0.25, 0.5, 0.9, 1.0):
        assert quantile(values, part) == pytest.approx(np.quantile(values, part), rel=1e-12)
    assert median(values) == statistics.median(values)


@pytest.mark.parametrize("count", range(1, 120))
def test_the_interval_is_the_tightest_that_holds_the_median_with_95_per_cent(count: int) -> None:
    found = interval(list(range(count)))
    # Of `count` values, k .. count - 1 - k hold the median unless at most k lie on one side of it.
    coverage = [1 - 2 * binom.cdf(k, count, 0.5) for k in range((count + 1) // 2)]
    enough = [k for k, part in enumerate(coverage) if part >= 0.95]
    assert (count >= FEWEST) is bool(enough)
    assert found == ((enough[-1], count - 1 - enough[-1]) if enough else None)


def test_the_interval_covers_the_median_of_skewed_samples_as_often_as_it_says() -> None:
    draw = random.Random(7)
    covered = 0
    for _ in range(2000):
        low, high = interval([draw.expovariate(1.0) for _ in range(30)]) or (0, 0)
        covered += low <= 0.6931 <= high
    assert 0.94 <= covered / 2000 <= 0.975


def test_a_ratio_is_refused_unless_its_interval_lies_on_one_side_of_1() -> None:
    noise = [1 + 0.05 * (-1) ** i * (i % 7) / 6 for i in range(30)]
    same = compare([2.0] * 30, [2.0 * each for each in noise])
    assert same is not None and same.ratio is None and same.low < 1 < same.high
    assert "within the spread" in str(same)
    ahead = compare([2.0] * 30, [2.2 * each for each in noise])
    assert (
        ahead is not None and ahead.ratio == pytest.approx(1.1, rel=0.01) and 1 < ahead.low < ahead.ratio < ahead.high
    )
    behind = compare([2.2 * each for each in noise], [2.0] * 30)
    assert behind is not None and behind.ratio == pytest.approx(1 / 1.1, rel=0.01) and behind.high < 1
    # An interval that ends at 1 holds it: equal times are no difference.
    assert compare([1.0] * 30, [1.0] * 30) == Ratio(None, 1.0, 1.0)
    assert compare([1.0] * 30, [1.0] * 12 + [1.1] * 18) == Ratio(None, 1.0, 1.1)


def test_pairs_count_not_the_pool() -> None:
    """A clock that drifts by half moves both sides of a round alike: the ratio stays sharp."""
    drift = [1 + i / 60 for i in range(30)]
    found = compare(drift, [1.02 * each for each in drift])
    assert found is not None and found.ratio == pytest.approx(1.02) and found.high - found.low < 1e-9


def test_an_outlier_does_not_widen_it_and_few_rounds_have_none() -> None:
    found = compare([1.0] * 30, [1.1] * 29 + [50.0])
    assert found == Ratio(pytest.approx(1.1), pytest.approx(1.1), pytest.approx(1.1))
    assert compare([1.0] * 5, [2.0] * 5) is None
    assert compare([1.0] * 6, [2.0] * 6) is not None
