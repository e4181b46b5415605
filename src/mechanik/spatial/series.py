"""Functions of an angle that are smooth at zero, where their closed forms divide zero by zero or lose digits.

The remainders are Taylor series below 1 rad; above 1 rad their closed forms lose at most two of sixteen digits, except
`cotangent_remainder` near its poles. The two ratios need no series. Every public function maps angles t (...), rad,
positive or negative, to (...).
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import numpy as np

from mechanik.spatial.array import Array


def sine_ratio(angle: Array) -> Array:
    """Return sin(t) / t, which is 1 at zero."""
    if angle.ndim == 0:
        return np.sin(angle) / angle if angle else np.ones_like(angle)
    nonzero_angle = np.where(angle == 0.0, 1.0, angle)
    return np.where(angle == 0.0, 1.0, np.sin(nonzero_angle) / nonzero_angle)


def cosine_ratio(angle: Array) -> Array:
    """Return (1 - cos(t)) / t^2, which is 1/2 at zero."""
    # The formula with the half angle has no cancellation, so it needs no series.
    half_ratio = sine_ratio(0.5 * angle)
    return 0.5 * half_ratio * half_ratio


def _alternating_coefficients(n: int) -> tuple[float, ...]:
    """Return the coefficients of 1/n! - x/(n+2)! + x^2/(n+4)! - ..., of which nine terms suffice for |x| <= 1."""
    return tuple((-1) ** k / factorial(2 * k + n) for k in range(9))


_CUBIC_COEFFICIENTS = _alternating_coefficients(3)
_QUARTIC_COEFFICIENTS = _alternating_coefficients(4)
_QUINTIC_COEFFICIENTS = _alternating_coefficients(5)

# Absolute values of the Bernoulli numbers B_2 .. B_24. Each coefficient |B_2k| / (2k)! is about 1/40 of the one before.
_BERNOULLI_NUMBERS = (
    1 / 6, 1 / 30, 1 / 42, 1 / 30, 5 / 66, 691 / 2730,
    7 / 6, 3617 / 510, 43867 / 798, 174611 / 330, 854513 / 138, 236364091 / 2730,
)  # fmt: skip
_COTANGENT_COEFFICIENTS = tuple(number / factorial(2 * k + 2) for k, number in enumerate(_BERNOULLI_NUMBERS))


def cubic_remainder(angle: Array) -> Array:
    """Return (t - sin(t)) / t^3, which is 1/6 at zero."""
    return _series_or_closed_form(angle, _CUBIC_COEFFICIENTS, lambda t: (t - np.sin(t)) / t**3)


def quartic_remainder(angle: Array) -> Array:
    """Return (cos(t) - 1 + t^2/2) / t^4, which is 1/24 at zero."""
    return _series_or_closed_form(angle, _QUARTIC_COEFFICIENTS, lambda t: (np.cos(t) - 1.0 + 0.5 * t * t) / t**4)


def quintic_remainder(angle: Array) -> Array:
    """Return (sin(t) - t + t^3/6) / t^5, which is 1/120 at zero."""
    return _series_or_closed_form(angle, _QUINTIC_COEFFICIENTS, lambda t: (np.sin(t) - t + t**3 / 6.0) / t**5)


def cotangent_remainder(angle: Array) -> Array:
    """Return (1 - (t/2) cot(t/2)) / t^2, which is 1/12 at zero and has poles at nonzero multiples of 2 pi."""
    return _series_or_closed_form(angle, _COTANGENT_COEFFICIENTS, lambda t: (1.0 - 0.5 * t / np.tan(0.5 * t)) / (t * t))


def _series_or_closed_form(
    angle: Array, coefficients: tuple[float, ...], closed_form: Callable[[Array], Array]
) -> Array:
    if angle.ndim == 0:
        return _evaluate_series(angle, coefficients) if abs(angle) < 1.0 else closed_form(angle)
    is_small = np.abs(angle) < 1.0
    # Each formula is evaluated only for angles in its range, which prevents warnings and overflows.
    series = _evaluate_series(np.where(is_small, angle, 0.0), coefficients)
    return np.where(is_small, series, closed_form(np.where(is_small, 1.0, angle)))


def _evaluate_series(angle: Array, coefficients: tuple[float, ...]) -> Array:
    square = angle * angle
    total = square * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total = (total + coefficient) * square
    return total + coefficients[0]
