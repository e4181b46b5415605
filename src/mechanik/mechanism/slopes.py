"""How steep the terms of a law are where its freedoms can be: what its errors are measured by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanik.spatial.array import Array

LEAST_REACH = 1e-6
"""m or rad; where limits hold a freedom closer to zero, its powers are measured as if it had this much."""
LEAST_BALANCE = 1e-3
"""m or rad; the same where it is held by what the other terms can come to, which is known less well."""


def slopes(terms: Sequence[tuple[Array, tuple[float, float]]], constant: float) -> list[float]:
    """How much a unit of each freedom changes a law, about, where the freedom can be.

    A factor of a high power says little by itself: 1e9 times the fifth power of a lift of up to 0.02 m is as much as
    160 times the lift. So the factor of power n counts times reach^(n - 1). A freedom reaches as far as its limits let
    it, or as far as the other terms can balance it, and at most 1 (m or rad).

    Args:
        terms: for each freedom the factors of its powers 1 to n, and its limits.
        constant: what all terms add up to.
    """
    reaches = [min(max(abs(lower), abs(upper), LEAST_REACH), 1.0) for _, (lower, upper) in terms]
    most = [float(_sizes(factors, reach).sum()) * reach for (factors, _), reach in zip(terms, reaches, strict=True)]
    found: list[float] = []
    for k, (factors, _) in enumerate(terms):
        reach, balance = reaches[k], abs(constant) + sum(most[:k]) + sum(most[k + 1 :])
        if len(terms) > 1:
            some = np.flatnonzero(factors)
            held = float(((balance / np.abs(factors[some])) ** (1.0 / (some + 1.0))).min())
            reach = min(reach, max(held, LEAST_BALANCE))
        found.append(float(_sizes(factors, reach).max()))
    return found


def sum_of_powers(some: Array | None, more: Array) -> Array:
    """Factors of powers 1 to n added up, as many as there are in one or the other."""
    before = np.zeros(0) if some is None else some
    total = np.zeros(max(len(before), len(more)))
    total[: len(before)] += before
    total[: len(more)] += more
    return total


def _sizes(factors: Array, reach: float) -> Array:
    """What each power changes for a unit of the freedom, at its reach."""
    return np.abs(factors) * np.power(reach, np.arange(len(factors), dtype=np.float64))
