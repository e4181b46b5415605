from __future__ import annotations

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanik.spatial import series


def _exact(angle: float, first: int) -> float:
    """1/n! - t^2/(n+2)! + ... in rational arithmetic, which cannot cancel."""
    square = Fraction(angle) ** 2
    total = Fraction(0)
    for k in reversed(range(30)):
        total = total * -square + Fraction(1, factorial(2 * k + first))
    return float(total)


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (series.sine_ratio, 1),
        (series.cosine_ratio, 2),
        (series.cubic_remainder, 3),
        (series.quartic_remainder, 4),
        (series.quintic_remainder, 5),
    ],
)
@settings(max_examples=50)
@given(angle=st.one_of(st.floats(-6.3, 6.3), st.floats(-1e-3, 1e-3), st.floats(0.9, 1.1)))
def test_each_function_has_thirteen_digits_at_every_angle(function, first, angle):
    exact = _exact(angle, first)
    assert abs(function(np.float64(angle)) - exact) <= 1e-13 * max(abs(exact), 1.0 / factorial(first + 2))


@given(st.one_of(st.floats(1e-3, 6.2), st.floats(0.9, 1.1)))
def test_the_cotangent_function_has_twelve_digits(angle):
    # (1 - (t/2) cot(t/2)) / t^2 = (s - c) / (t^2 s), with s = sin(h)/h, c = cos(h), h = t/2.
    half = Fraction(angle) / 2
    s = sum((-half * half) ** k / factorial(2 * k + 1) for k in range(30))
    c = sum((-half * half) ** k / factorial(2 * k) for k in range(30))
    exact = float((s - c) / (4 * half * half * s))
    assert series.cotangent_remainder(np.float64(angle)) == pytest.approx(exact, rel=1e-12)


def test_the_values_at_zero_are_the_limits():
    zero = np.float64(0.0)
    functions = (
        series.sine_ratio,
        series.cosine_ratio,
        series.cubic_remainder,
        series.quartic_remainder,
        series.quintic_remainder,
        series.cotangent_remainder,
    )
    assert [f(zero) for f in functions] == [1.0, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 12]
