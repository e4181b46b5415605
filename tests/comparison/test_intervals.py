"""Confidence intervals of shares."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from mechanik.comparison.comparison_result import wilson_interval

COUNTS = [(k, n) for n in (1, 2, 3, 7, 20, 61, 500) for k in sorted({0, 1, n // 3, n // 2, n - 1, n})]


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_interval_equals_that_of_scipy(k, n):
    scipy_interval = binomtest(k, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(k, n) == pytest.approx((scipy_interval.low, scipy_interval.high), abs=1e-9)


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_interval_contains_the_share_and_is_symmetric_in_successes_and_failures(k, n):
    low, high = wilson_interval(k, n)
    assert 0.0 <= low <= k / n <= high <= 1.0
    assert low < high
    assert wilson_interval(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_interval_narrows_with_trials_and_is_zero_to_one_without():
    widths = [high - low for low, high in (wilson_interval(n // 2, n) for n in (2, 10, 100, 1000))]
    assert widths == sorted(widths, reverse=True)
    assert wilson_interval(0, 0) == (0.0, 1.0)
