"""Gaps to half-spaces, solid below z = 0 of their frame: how high the lowest point of the other shape is.

Where a whole edge or side is lowest, its middle is the point that is given.
"""

from __future__ import annotations

from ..compiler import helper, part
from .rounding import TIE

DEEP = 1e9
"""Metres: how deep two half-spaces are in each other that no shift would part. Nobody should ask."""


@helper
def above(H, x, y, z):
    """From the point (x, y, z) down to the half-space: the first point is the given one."""
    nx, ny, nz = H[2], H[5], H[8]
    d = nx * (x - H[9]) + ny * (y - H[10]) + nz * (z - H[11])
    return d, -nx, -ny, -nz, x, y, z, x - d * nx, y - d * ny, z - d * nz


@helper
def downward(slope):
    """Which end of a line that rises by `slope` is lower; 0 where it is level."""
    return 0.0 if abs(slope) <= TIE else (-1.0 if slope > 0.0 else 1.0)


@helper
def point_half_space(A, H):
    return above(H, A[9], A[10], A[11])


@helper
def segment_half_space(A, length, H):
    t = length * downward(A[2] * H[2] + A[5] * H[5] + A[8] * H[8])
    return above(H, A[9] + t * A[2], A[10] + t * A[5], A[11] + t * A[8])


@part
def box_half_space(A, h, H):
    t = h[0] * downward(A[0] * H[2] + A[3] * H[5] + A[6] * H[8])
    u = h[1] * downward(A[1] * H[2] + A[4] * H[5] + A[7] * H[8])
    v = h[2] * downward(A[2] * H[2] + A[5] * H[5] + A[8] * H[8])
    return above(
        H,
        A[9] + t * A[0] + u * A[1] + v * A[2],
        A[10] + t * A[3] + u * A[4] + v * A[5],
        A[11] + t * A[6] + u * A[7] + v * A[8],
    )


@part
def half_space_half_space(A, B):
    """Their distance if they face each other, and very deep in each other if not."""
    nx, ny, nz = A[2], A[5], A[8]
    if nx * B[2] + ny * B[5] + nz * B[8] > -1.0 + TIE:
        d = -DEEP
    else:
        d = nx * (B[9] - A[9]) + ny * (B[10] - A[10]) + nz * (B[11] - A[11])
    return d, nx, ny, nz, A[9], A[10], A[11], A[9] + d * nx, A[10] + d * ny, A[11] + d * nz
