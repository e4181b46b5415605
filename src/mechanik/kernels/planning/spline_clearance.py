"""Check whether the cubic spline through the waypoints of a path, which retiming follows, is free of collisions.

The spline is that of `motion/retime/joint_spline.py`: a natural cubic spline whose parameter is the length along
the straight segments, with waypoints inserted where it deviates too far from them. With the second derivatives M and
the length h of a segment from x0 to x1, the point of the spline at the share b of the segment, with a = 1 - b, is

    a x0 + b x1 + h^2 / 6 ((a^3 - a) M0 + (b^3 - b) M1)
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, subroutine
from .motion_check import (
    IN_COLLISION,
    IS_FREE,
    QUERY,
    QUERY_SCENE,
    TOO_MANY_WAYPOINTS,
    is_free_configuration,
    write_row,
)

SAMPLES_PER_SEGMENT = 7
"""Samples between two waypoints at which the spline is compared with the straight segment."""


@subroutine
def spline_second_derivatives(x, count, h, d, M):
    """Compute the second derivatives at the waypoints, zero at the ends, by the Thomas algorithm.

    Args:
        x: (N, nq) waypoints.
        count: number of waypoints in use.
        h: (N,) written: lengths of the segments.
        d: (N,) work array for the diagonal of the tridiagonal matrix.
        M: (N, nq) written: the second derivatives.
    """
    n = x.shape[1]
    for k in range(count - 1):
        length_square = 0.0
        for i in range(n):
            length_square += (x[k + 1, i] - x[k, i]) ** 2
        h[k] = math.sqrt(length_square)
    for i in range(n):
        M[0, i], M[count - 1, i] = 0.0, 0.0
    for k in range(1, count - 1):
        factor = h[k - 1] / d[k - 1] if k > 1 else 0.0
        d[k] = 2.0 * (h[k - 1] + h[k]) - factor * h[k - 1]
        for i in range(n):
            right_side = 6.0 * ((x[k + 1, i] - x[k, i]) / h[k] - (x[k, i] - x[k - 1, i]) / h[k - 1])
            M[k, i] = right_side - factor * M[k - 1, i]
    for k in range(count - 2, 0, -1):
        for i in range(n):
            M[k, i] = (M[k, i] - h[k] * M[k + 1, i]) / d[k]


@subroutine
def point_on_spline(x, h, M, k, share, out):
    """Write the point of segment k at `share` (0 to 1) of its length into out (1, nq)."""
    a, b = 1.0 - share, share
    curvature_factor = h[k] * h[k] / 6.0
    for i in range(x.shape[1]):
        out[0, i] = (
            a * x[k, i]
            + b * x[k + 1, i]
            + curvature_factor * ((a * a * a - a) * M[k, i] + (b * b * b - b) * M[k + 1, i])
        )


@subroutine
def deviation_from_segment(x, h, M, k, sample):
    """Return the largest deviation of segment k of the spline from the straight segment, in any element of q.

    `sample` (1, nq) is a work array.
    """
    n, largest_deviation, length_square = x.shape[1], 0.0, max(h[k] * h[k], 1e-300)
    for j in range(1, SAMPLES_PER_SEGMENT + 1):
        point_on_spline(x, h, M, k, j / (SAMPLES_PER_SEGMENT + 1.0), sample)
        share = 0.0
        for i in range(n):
            share += (sample[0, i] - x[k, i]) * (x[k + 1, i] - x[k, i])
        share = min(max(share / length_square, 0.0), 1.0)
        for i in range(n):
            largest_deviation = max(largest_deviation, abs(sample[0, i] - x[k, i] - share * (x[k + 1, i] - x[k, i])))
    return largest_deviation


@kernel(f"i8({QUERY_SCENE}, f8[:,::1], f8[::1], f8, f8, i8, i8, i8[::1])", calls=QUERY, allocates=True)
def spline_is_free(
    query, scene_ints, scene_floats, points, mode, clearance,
    q, unit, max_deviation, spacing, max_rounds, max_waypoints, check_count,
):  # fmt: skip
    """Check whether the spline through the waypoints q is free of collisions.

    Args:
        query .. clearance: the collision query and its arguments, see `motion_check.py`.
        q: (N, nq) waypoints, N >= 3; consecutive waypoints must differ.
        unit: (nq,) scale of each element of q.
        max_deviation: largest deviation from the straight segments, in any element of q; rad or m.
        spacing: approximate distance between collision checks, in scaled units.
        max_rounds: largest number of rounds in which waypoints are inserted.
        max_waypoints: largest number of waypoints; a round may double their number.
        check_count: (1,), increased by the number of checks.

    Returns:
        IN_COLLISION, IS_FREE, or TOO_MANY_WAYPOINTS if twice the number of waypoints exceeds `max_waypoints`.
    """
    scene = (scene_ints, scene_floats, points, mode, clearance)
    work = np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), check_count
    n, count, sample = q.shape[1], q.shape[0], np.empty((1, q.shape[1]))
    x, refined_x = np.empty((2 * count + 64, n)), np.empty((2 * count + 64, n))
    h, d, M = np.empty(x.shape[0]), np.empty(x.shape[0]), np.empty(x.shape)
    for k in range(count):
        write_row(x, k, q[k])
    for _ in range(max_rounds):
        spline_second_derivatives(x, count, h, d, M)
        if 2 * count > max_waypoints:
            return TOO_MANY_WAYPOINTS
        if x.shape[0] < 2 * count:
            x, refined_x = np.concatenate((x, x)), np.empty((2 * x.shape[0], n))
            h, d, M = np.concatenate((h, h)), np.empty(x.shape[0]), np.concatenate((M, M))
        inserted_count = 0
        for k in range(count - 1):
            write_row(refined_x, k + inserted_count, x[k])
            if deviation_from_segment(x, h, M, k, sample) > max_deviation:
                inserted_count += 1
                for i in range(n):
                    refined_x[k + inserted_count, i] = 0.5 * (x[k, i] + x[k + 1, i])
        write_row(refined_x, count - 1 + inserted_count, x[count - 1])
        if inserted_count == 0:
            break
        x, refined_x = refined_x, x
        count += inserted_count
    spline_second_derivatives(x, count, h, d, M)
    for k in range(count - 1):
        largest_motion = 0.0
        for i in range(n):
            largest_motion = max(largest_motion, abs(x[k + 1, i] - x[k, i]) / unit[i])
        piece_count = max(1, math.ceil(largest_motion / spacing))
        for j in range(piece_count):
            point_on_spline(x, h, M, k, j / piece_count, sample)
            if not is_free_configuration(query, scene, sample, work):
                return IN_COLLISION
    write_row(sample, 0, x[count - 1])
    return IS_FREE if is_free_configuration(query, scene, sample, work) else IN_COLLISION
