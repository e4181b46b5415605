"""Replace the corners of a path by parabolic arcs that are free of collisions.

Each arc is tangent to both segments of its corner. The largest free arc of a few sizes is used; a corner without a free
arc stays.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, subroutine
from .motion_check import QUERY, QUERY_SCENE, is_free_configuration, write_row
from .path_shortening import SAME_CONFIGURATION_DISTANCE, segment_length

CORNER_SHARES = (0.5, 0.35, 0.2, 0.1, 0.05)
"""Shares of the shorter adjacent segment that an arc replaces, tried in this order; the first free arc is used."""
ARC_SPACING = 0.06
"""Approximate distance between the waypoints of an arc, in scaled units: q is divided by its scale, `unit`."""
MIN_ARC_PIECES = 4
"""Smallest number of pieces of an arc."""
MIN_CORNER_ANGLE = 1e-3
"""Smallest change of direction (rad) that counts as a corner."""


@subroutine
def point_on_arc(previous_waypoint, corner, following_waypoint, previous_share, following_share, t, q):
    """Write the point of an arc at the parameter t (0 to 1) into q (1, nq).

    Args:
        previous_waypoint, corner, following_waypoint: (nq,) consecutive waypoints.
        previous_share, following_share: shares of the two adjacent segments that the arc replaces.
    """
    previous_weight, following_weight = (1.0 - t) ** 2 * previous_share, t * t * following_share
    for k in range(corner.shape[0]):
        q[0, k] = (
            corner[k]
            + previous_weight * (previous_waypoint[k] - corner[k])
            + following_weight * (following_waypoint[k] - corner[k])
        )


@subroutine
def count_arc_pieces(previous_waypoint, corner, following_waypoint, previous_share, following_share, unit):
    """Return the number of straight pieces by which an arc is approximated."""
    largest_motion = 0.0
    for k in range(corner.shape[0]):
        largest_motion = max(
            largest_motion,
            abs(
                previous_share * (previous_waypoint[k] - corner[k])
                - following_share * (following_waypoint[k] - corner[k])
            )
            / unit[k],
        )
    return max(MIN_ARC_PIECES, math.ceil(largest_motion / ARC_SPACING))


@subroutine
def is_corner(previous_waypoint, corner, following_waypoint, previous_length, following_length, unit):
    """Return whether the direction changes at `corner`, given the lengths of both adjacent segments in scaled units."""
    change_square = 0.0
    for k in range(corner.shape[0]):
        change = (
            (previous_waypoint[k] - corner[k]) / previous_length
            + (following_waypoint[k] - corner[k]) / following_length
        ) / unit[k]
        change_square += change * change
    return math.sqrt(change_square) >= MIN_CORNER_ANGLE


@kernel(f"i8({QUERY_SCENE}, f8[::1], f8, f8[:,::1], f8[:,::1], i8[::1])", calls=QUERY, allocates=True)
def round_corners(
    query, scene_ints, scene_floats, points, mode, clearance,
    unit, step, x, out, check_count,
):  # fmt: skip
    """Write the waypoints of a path with arcs at its corners into `out`, and return their number.

    Args:
        query .. clearance: the collision query and its arguments, see `motion_check.py`.
        unit: (nq,) scale of each element of q.
        step: distance between collision checks on an arc, in scaled units; approximate, since the number of checks
            depends on the chord of the arc.
        x: (n, nq) waypoints of the path.
        out: (m, nq) written; it needs space for a waypoint every ARC_SPACING and for MIN_ARC_PIECES + 1 at each corner.
        check_count: (1,), increased by the number of collision checks.
    """
    scene = (scene_ints, scene_floats, points, mode, clearance)
    work = (np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), check_count)
    q = np.empty((1, unit.shape[0]))
    samples_per_piece = max(1, math.ceil(ARC_SPACING / step - 1e-9))
    write_row(out, 0, x[0])
    count, last_waypoint = 1, x.shape[0] - 1
    for k in range(1, last_waypoint):
        previous_length, following_length = segment_length(x[k], x[k - 1], unit), segment_length(x[k], x[k + 1], unit)
        free_length, piece_count = 0.0, 0
        if is_corner(x[k - 1], x[k], x[k + 1], previous_length, following_length, unit):
            for share in CORNER_SHARES:
                replaced_length = share * min(previous_length, following_length)
                piece_count = count_arc_pieces(
                    x[k - 1],
                    x[k],
                    x[k + 1],
                    replaced_length / previous_length,
                    replaced_length / following_length,
                    unit,
                )
                free_length = replaced_length
                # sampled from the middle outwards: the middle deviates most from the path, so a collision is found
                # early; the samples include all waypoints of the arc
                sample_count = piece_count * samples_per_piece
                for i in range(sample_count + 1):
                    offset = (i + 1) // 2
                    t = (sample_count // 2 + (offset if i % 2 else -offset)) / sample_count
                    point_on_arc(
                        x[k - 1],
                        x[k],
                        x[k + 1],
                        replaced_length / previous_length,
                        replaced_length / following_length,
                        t,
                        q,
                    )
                    if not is_free_configuration(query, scene, q, work):
                        free_length = 0.0
                        break
                if free_length > 0.0:
                    break
        if free_length == 0.0:
            write_row(out, count, x[k])
            count += 1
            continue
        for i in range(piece_count + 1):
            point_on_arc(
                x[k - 1],
                x[k],
                x[k + 1],
                free_length / previous_length,
                free_length / following_length,
                i / piece_count,
                q,
            )
            if segment_length(out[count - 1], q[0], unit) > SAME_CONFIGURATION_DISTANCE:
                write_row(out, count, q[0])
                count += 1
    if count > 1 and segment_length(out[count - 1], x[last_waypoint], unit) <= SAME_CONFIGURATION_DISTANCE:
        count -= 1
    write_row(out, count, x[last_waypoint])
    return count + 1
