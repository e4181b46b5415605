"""Replace the corners of a path by parabolic arcs, as large as they are free of collisions.

Each arc is tangent to both segments of its corner.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, subroutine
from .motion_check import QUERY, QUERY_SCENE, is_free_configuration, write_row
from .path_shortening import SAME_CONFIGURATION_DISTANCE, segment_length
from .search_state import CHECK_COUNT

CORNER_SHARES = (0.5, 0.35, 0.2, 0.1, 0.05)
"""Shares of the shorter adjacent segment that an arc may take, tried in this order; the first free arc is used."""
ARC_SPACING = 0.06
"""Distance between the waypoints of an arc, in units of `unit`."""
MIN_ARC_PIECES = 4
"""Smallest number of pieces of an arc."""
MIN_CORNER_ANGLE = 1e-3
"""Rad: a smaller change of direction is not a corner."""


@subroutine
def point_on_arc(previous, corner, following, previous_share, following_share, t, q):
    """Write the point of the parabola at t (0 to 1) into q (1, nq).

    Args:
        previous_share, following_share: shares of the two adjacent segments that the arc replaces.
    """
    previous_weight, following_weight = (1.0 - t) ** 2 * previous_share, t * t * following_share
    for k in range(corner.shape[0]):
        q[0, k] = (
            corner[k] + previous_weight * (previous[k] - corner[k]) + following_weight * (following[k] - corner[k])
        )


@subroutine
def count_arc_pieces(previous, corner, following, previous_share, following_share, unit):
    largest = 0.0
    for k in range(corner.shape[0]):
        largest = max(
            largest,
            abs(previous_share * (previous[k] - corner[k]) - following_share * (following[k] - corner[k])) / unit[k],
        )
    return max(MIN_ARC_PIECES, math.ceil(largest / ARC_SPACING))


@subroutine
def is_corner(previous, corner, following, a, b, unit):
    total = 0.0
    for k in range(corner.shape[0]):
        change = ((previous[k] - corner[k]) / a + (following[k] - corner[k]) / b) / unit[k]
        total += change * change
    return math.sqrt(total) >= MIN_CORNER_ANGLE


@kernel(f"i8({QUERY_SCENE}, f8[::1], f8, f8[:,::1], f8[:,::1], i8[::1])", calls=QUERY)
def round_corners(
    query, nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, mode, clearance,
    unit, step, x, out, state,
):  # fmt: skip
    """Write the waypoints x (n, nq) with arcs at the corners into `out`, and return their number.

    Args:
        query .. clearance: the collision query and its arguments, see `motion_check.py`.
        unit: (nq,) scale of each number of q.
        step: largest distance between collision checks on an arc, in units.
        out: (m, nq), with space for a waypoint every ARC_SPACING and for MIN_ARC_PIECES + 1 at each corner.
        state: (SEARCH_STATE_INTS,), of which CHECK_COUNT is increased.
    """
    scene = (nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, mode, clearance)
    check_count = np.zeros(1, np.int64)
    work = (np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), check_count)
    q = np.empty((1, unit.shape[0]))
    samples_per_piece = max(1, math.ceil(ARC_SPACING / step - 1e-9))
    write_row(out, 0, x[0])
    count, last = 1, x.shape[0] - 1
    for k in range(1, last):
        a, b = segment_length(x[k], x[k - 1], unit), segment_length(x[k], x[k + 1], unit)
        free_reach, pieces = 0.0, 0
        if is_corner(x[k - 1], x[k], x[k + 1], a, b, unit):
            for share in CORNER_SHARES:
                reach = share * min(a, b)
                pieces = count_arc_pieces(x[k - 1], x[k], x[k + 1], reach / a, reach / b, unit)
                free_reach = reach
                # from the middle outwards: the middle deviates most from the path, so a collision is found early;
                # the samples include all waypoints of the arc
                samples = pieces * samples_per_piece
                for i in range(samples + 1):
                    half = (i + 1) // 2
                    t = (samples // 2 + (half if i % 2 else -half)) / samples
                    point_on_arc(x[k - 1], x[k], x[k + 1], reach / a, reach / b, t, q)
                    if not is_free_configuration(query, scene, q, work):
                        free_reach = 0.0
                        break
                if free_reach > 0.0:
                    break
        if free_reach == 0.0:
            write_row(out, count, x[k])
            count += 1
            continue
        for i in range(pieces + 1):
            point_on_arc(x[k - 1], x[k], x[k + 1], free_reach / a, free_reach / b, i / pieces, q)
            if segment_length(out[count - 1], q[0], unit) > SAME_CONFIGURATION_DISTANCE:
                write_row(out, count, q[0])
                count += 1
    if count > 1 and segment_length(out[count - 1], x[last], unit) <= SAME_CONFIGURATION_DISTANCE:
        count -= 1
    write_row(out, count, x[last])
    state[CHECK_COUNT] += check_count[0]
    return count + 1
