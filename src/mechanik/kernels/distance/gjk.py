"""The distance of two convex cores that are apart, by the algorithm of Gilbert, Johnson and Keerthi (1988).

The cores are apart by the distance of the origin from A - B. A simplex in A - B walks there: its nearest point v says
in which direction to look for the next corner, and once no corner is nearer along v, v is the answer.
"""

from __future__ import annotations

import math

from ..compiler import part
from .simplex import INSIDE, nearest_part
from .support import farthest_difference

STEPS = 200
ROUNDING = 2e-16
"""What a corner must be nearer to count, as a share of the largest difference met."""
IDLE = 8
"""Steps in a row that may bring v no nearer: those that only turn it."""
TOUCHING = 1e-13
"""What is too near to have a direction, likewise."""


@part
def walk(a, U, b, V, T, W, beyond, x, y, z):
    """The shortest way between two cores.

    Args:
        a, U, b, V, T: the cores, their points, and the pose of B in A.
        W: (4, 7), to work in; holds the last simplex, see `simplex.py`, with weights of 0 after its end.
        beyond: cores that are farther than this are told so soon, by any v longer than it.
        x, y, z: the way from A to B, roughly.
    Returns:
        The difference v of the nearest points, A less B; the nearest point of A; all in A. The size of what was met; 0
        if they touch or are in each other: then the rest says nothing.
    """
    wx, wy, wz, ax, ay, az = farthest_difference(a, U, b, V, T, x, y, z)
    W[0, 0], W[0, 1], W[0, 2], W[0, 3], W[0, 4], W[0, 5], W[0, 6] = wx, wy, wz, ax, ay, az, 1.0
    n, vx, vy, vz, idle = 1, wx, wy, wz, 0
    near = vx * vx + vy * vy + vz * vz
    size = math.sqrt(near)
    for _ in range(STEPS):
        if near <= (TOUCHING * size) ** 2:
            break
        wx, wy, wz, ax, ay, az = farthest_difference(a, U, b, V, T, -vx, -vy, -vz)
        size = max(size, math.sqrt(wx * wx + wy * wy + wz * wz))
        d = math.sqrt(near)
        if (vx - wx) * vx + (vy - wy) * vy + (vz - wz) * vz <= ROUNDING * size * d:
            break
        if wx * vx + wy * vy + wz * vz > beyond * d:
            break
        known = False
        for k in range(n):
            known = known or (W[k, 0] == wx and W[k, 1] == wy and W[k, 2] == wz)
        if known:
            break
        W[n, 0], W[n, 1], W[n, 2], W[n, 3], W[n, 4], W[n, 5] = wx, wy, wz, ax, ay, az
        left, x, y, z = nearest_part(W, n + 1, near)
        if left == INSIDE:
            return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        before, near = near, x * x + y * y + z * z
        n, vx, vy, vz = left, x, y, z
        idle = 0 if near < before else idle + 1
        if idle > IDLE:
            break
    if near <= (TOUCHING * size) ** 2:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    ax, ay, az = 0.0, 0.0, 0.0
    for k in range(n, 4):
        W[k, 6] = 0.0
    for k in range(n):
        ax, ay, az = ax + W[k, 6] * W[k, 3], ay + W[k, 6] * W[k, 4], az + W[k, 6] * W[k, 5]
    return vx, vy, vz, ax, ay, az, size
