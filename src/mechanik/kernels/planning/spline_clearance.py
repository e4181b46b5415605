"""Check whether the cubic spline through the waypoints of a path, along which it is retimed, is free of collisions.

It is the spline of `motion/retime/joint_spline.py`: a natural cubic spline over the length of the straight segments,
with waypoints inserted where it deviates too far from them.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, subroutine
from .motion_check import IN_COLLISION, IS_FREE, QUERY, QUERY_SCENE, TOO_MANY_SAMPLES, is_free_configuration, write_row

SAMPLES_PER_SEGMENT = 7
"""Samples between two waypoints at which the spline is compared with the straight segment."""


@subroutine
def spline_second_derivatives(x, count, h, d, M):
    """Compute the second derivatives M (N, nq) at the waypoints x, zero at the ends, by the Thomas algorithm.

    Args:
        count: number of waypoints.
        h: (N,) written: lengths of the segments.
        d: (N,) work array.
    """
    n = x.shape[1]
    for k in range(count - 1):
        total = 0.0
        for i in range(n):
            total += (x[k + 1, i] - x[k, i]) ** 2
        h[k] = math.sqrt(total)
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
def deviation_from_segment(x, h, M, k, out):
    """Return how far segment k of the spline deviates from the straight segment, in a single number of q."""
    n, largest, length = x.shape[1], 0.0, max(h[k] * h[k], 1e-300)
    for j in range(1, SAMPLES_PER_SEGMENT + 1):
        point_on_spline(x, h, M, k, j / (SAMPLES_PER_SEGMENT + 1.0), out)
        share = 0.0
        for i in range(n):
            share += (out[0, i] - x[k, i]) * (x[k + 1, i] - x[k, i])
        share = min(max(share / length, 0.0), 1.0)
        for i in range(n):
            largest = max(largest, abs(out[0, i] - x[k, i] - share * (x[k + 1, i] - x[k, i])))
    return largest


@kernel(f"i8({QUERY_SCENE}, f8[:,::1], f8[::1], f8, f8, i8, i8, i8[::1])", calls=QUERY)
def spline_is_free(
    query, nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, mode, clearance,
    q, unit, max_deviation, spacing, max_rounds, max_waypoints, check_count,
):  # fmt: skip
    """Check whether the spline through the waypoints q is free of collisions.

    Args:
        query .. clearance: the collision query and its arguments, see `motion_check.py`.
        q: (N, nq) waypoints, N >= 3, neighbours different.
        unit: (nq,) scale of each number of q.
        max_deviation: largest deviation from the straight segments, in a single number of q.
        spacing: approximate distance between collision checks, in units.
        max_rounds: largest number of rounds in which waypoints are inserted.
        max_waypoints: largest number of waypoints.
        check_count: (1,), increased by the number of checks.

    Returns:
        IN_COLLISION, IS_FREE, or TOO_MANY_SAMPLES if there are too many waypoints.
    """
    scene = (nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, mode, clearance)
    work = np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), check_count
    n, count, sample = q.shape[1], q.shape[0], np.empty((1, q.shape[1]))
    x, y = np.empty((2 * count + 64, n)), np.empty((2 * count + 64, n))
    h, d, M = np.empty(x.shape[0]), np.empty(x.shape[0]), np.empty(x.shape)
    for k in range(count):
        write_row(x, k, q[k])
    for _ in range(max_rounds):
        spline_second_derivatives(x, count, h, d, M)
        if 2 * count > max_waypoints:
            return TOO_MANY_SAMPLES
        if x.shape[0] < 2 * count:
            x, y = np.concatenate((x, x)), np.empty((2 * x.shape[0], n))
            h, d, M = np.concatenate((h, h)), np.empty(x.shape[0]), np.concatenate((M, M))
        inserted = 0
        for k in range(count - 1):
            write_row(y, k + inserted, x[k])
            if deviation_from_segment(x, h, M, k, sample) > max_deviation:
                inserted += 1
                for i in range(n):
                    y[k + inserted, i] = 0.5 * (x[k, i] + x[k + 1, i])
        write_row(y, count - 1 + inserted, x[count - 1])
        if inserted == 0:
            break
        x, y = y, x
        count += inserted
    spline_second_derivatives(x, count, h, d, M)
    for k in range(count - 1):
        largest = 0.0
        for i in range(n):
            largest = max(largest, abs(x[k + 1, i] - x[k, i]) / unit[i])
        pieces = max(1, math.ceil(largest / spacing))
        for j in range(pieces):
            point_on_spline(x, h, M, k, j / pieces, sample)
            if not is_free_configuration(query, scene, sample, work):
                return IN_COLLISION
    write_row(sample, 0, x[count - 1])
    return IS_FREE if is_free_configuration(query, scene, sample, work) else IN_COLLISION
