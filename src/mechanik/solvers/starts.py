"""Where a search begins: configurations spread evenly over the limits."""

from __future__ import annotations

import math

import numpy as np

from mechanik.mechanism.configuration import ConfigurationSpace
from mechanik.spatial.array import Array

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
"""Halton's sequence is even in this many dimensions; further ones are drawn at random, always alike."""


def halton_starts(space: ConfigurationSpace, count: int, first: int = 0) -> Array:
    """Configurations (count, nq) by Halton's sequence: the same each time, and without clusters or holes.

    From number `first` on. A freedom without limits ranges half a turn or one metre either way, as in
    `ConfigurationSpace.random`.
    """
    return from_unit(space, halton_points(space, count, first))


def halton_points(space: ConfigurationSpace, count: int, first: int = 0) -> Array:
    """The same as points (count, scalars + 3 balls) of the unit cube, which do not know limits."""
    numbers = len(space.scalars_q) + 3 * len(space.balls_q)
    unit = np.empty((count, numbers))
    for k in range(min(numbers, len(PRIMES))):
        unit[:, k] = _van_der_corput(first, count, PRIMES[k])
    unit[:, len(PRIMES) :] = np.random.default_rng(first).random((count, max(0, numbers - len(PRIMES))))
    return unit


def random_starts(space: ConfigurationSpace, count: int, rng: np.random.Generator) -> Array:
    """Configurations (count, nq), uniform inside the limits."""
    return space.random(rng, count)


def from_unit(space: ConfigurationSpace, unit: Array) -> Array:
    """Points of the unit cube (n, scalars + 3 balls) as configurations (n, nq); even stays even."""
    reach = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
    lower, upper = space.lower[space.scalars_q], space.upper[space.scalars_q]
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * reach, -reach))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * reach, reach))
    q = np.empty((len(unit), space.nq))
    q[:, space.scalars_q] = low + (high - low) * unit[:, : len(low)]
    for i, k in enumerate(space.balls_q):
        a, b, c = unit[:, len(low) + 3 * i : len(low) + 3 * i + 3].T
        # Shoemake's uniform rotations
        s, t = np.sqrt(1 - a), np.sqrt(a)
        b, c = 2 * math.pi * b, 2 * math.pi * c
        q[:, k : k + 4] = np.stack([t * np.cos(c), s * np.sin(b), s * np.cos(b), t * np.sin(c)], axis=1)
    return q


def _van_der_corput(first: int, count: int, base: int) -> Array:
    """The digits of first + 1, first + 2, ... in a base, mirrored at the point."""
    left = np.arange(first + 1, first + count + 1)
    value, share = np.zeros(count), 1.0 / base
    while left.any():
        value += share * (left % base)
        left, share = left // base, share / base
    return value
