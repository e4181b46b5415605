"""Full turns: of the angles that mean the same, the one inside the limits that is nearest to where the joint is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.spatial.array import Array

TURN = 2 * np.pi
ROUNDING = 1e-10
"""Angles outside a limit by no more than this (rad) are put on it."""


def unwound(angles: Array, near: Array, lower: Array, upper: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Angles (k, n) by full turns as near to `near` (n,) as the limits (n,) let them.

    Returns:
        (k, n), and (k,) whether all of them lie inside; where none does, the nearest regardless of limits is given.
    """
    turns = np.round((near - angles) / TURN)
    fewest, most = np.ceil((lower - ROUNDING - angles) / TURN), np.floor((upper + ROUNDING - angles) / TURN)
    inside = fewest <= most
    turns = np.where(inside, np.minimum(np.maximum(turns, fewest), most), turns)
    found = angles + TURN * turns
    return np.where(inside, np.clip(found, lower, upper), found), np.asarray(inside.all(axis=-1))
