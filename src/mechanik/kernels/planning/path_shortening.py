"""Shorten a path: skip waypoints, then try shortcuts between random points of the path, then skip waypoints again.

A shortcut is a straight motion that is free of collisions and replaces a longer part of the path. Lengths are
Euclidean norms in scaled units: each element of q is divided by its scale, `unit`.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, subroutine
from .motion_check import QUERY, QUERY_SCENE, is_free_configuration, is_free_motion, write_row
from .search_state import (
    SEARCH_DONE,
    SEARCH_PAUSED,
    SHORTENED,
    TRY_SHORTCUTS,
    open_shortening,
    random_number,
)

MAX_LENGTH_RATIO = 0.97
"""Largest length of a shortcut, as a share of the path that it replaces; longer shortcuts are not checked. At 0.999,
paths are 1 % shorter, but 50 % more checks are needed."""
SAME_CONFIGURATION_DISTANCE = 1e-9
"""Distance, in scaled units, below which two configurations count as the same."""


@subroutine
def segment_length(a, b, unit):
    """Return the length of the straight segment from a to b, in scaled units."""
    length_square = 0.0
    for k in range(a.shape[0]):
        difference = (b[k] - a[k]) / unit[k]
        length_square += difference * difference
    return math.sqrt(length_square)


@subroutine
def skip_waypoints(query, scene, x, count, unit, step, q, work):
    """Remove waypoints of x (n, nq) that a free straight motion can skip; return the number of remaining waypoints.

    From each waypoint, a far waypoint that a free motion reaches is searched by halving the number of skipped
    waypoints.
    """
    remaining_count, k = 1, 0
    while k < count - 1:
        candidate = count - 1
        while candidate > k + 1 and not is_free_motion(
            query, scene, x[remaining_count - 1], x[candidate], unit, step, q, work
        ):
            candidate = k + (candidate - k) // 2
        write_row(x, remaining_count, x[candidate])
        remaining_count += 1
        k = candidate
    return remaining_count


@subroutine
def segment_at(x, count, unit, length, q):
    """Write the configuration at a length along the path (scaled units) into q; return the index of its segment."""
    k, remaining_length = 0, length
    current_length = segment_length(x[0], x[1], unit)
    while remaining_length > current_length and k < count - 2:
        remaining_length -= current_length
        k += 1
        current_length = segment_length(x[k], x[k + 1], unit)
    share = min(1.0, remaining_length / current_length) if current_length > 0.0 else 0.0
    for i in range(q.shape[0]):
        q[i] = x[k, i] + share * (x[k + 1, i] - x[k, i])
    return k


@subroutine
def replace_waypoints(x, count, i, j, a, b, unit):
    """Replace the waypoints i + 1 to j by a and b; return the new number of waypoints.

    If a equals waypoint i, or b equals waypoint j + 1, it is not inserted.
    """
    insert_index, next_index = i + 1, j + 1
    is_a_new = segment_length(x[i], a, unit) > SAME_CONFIGURATION_DISTANCE
    is_b_new = segment_length(b, x[next_index], unit) > SAME_CONFIGURATION_DISTANCE
    shift = insert_index + int(is_a_new) + int(is_b_new) - next_index
    if shift > 0:
        for k in range(count - 1, next_index - 1, -1):
            write_row(x, k + shift, x[k])
    else:
        for k in range(next_index, count):
            write_row(x, k + shift, x[k])
    if is_a_new:
        write_row(x, insert_index, a)
        insert_index += 1
    if is_b_new:
        write_row(x, insert_index, b)
    return count + shift


@kernel(f"i8({QUERY_SCENE}, f8[::1], f8, i8, i8, i8, i8, f8[:,::1], i8[::1])", calls=QUERY, allocates=True)
def shorten_path(
    query, scene_ints, scene_floats, points, mode, clearance,
    unit, step, seed, max_shortcuts, max_failures, budget, x, state_ints,
):  # fmt: skip
    """Shorten a path, or pause when the budget is used up; the next call continues.

    Args:
        query .. clearance: the collision query and its arguments, see `motion_check.py`.
        unit: (nq,) scale of each element of q.
        step: largest distance between the collision checks of a motion, in scaled units.
        seed: seed of the random numbers.
        max_shortcuts: largest number of shortcuts that are tried.
        max_failures: number of consecutive failed shortcuts after which the search ends.
        budget: number of collision checks after which the kernel pauses.
        x: (n, nq) waypoints, with space for one more waypoint per tried shortcut; updated.
        state_ints: (ShorteningState.size,), updated, see `search_state.py`.

    Returns:
        SEARCH_DONE or SEARCH_PAUSED.
    """
    scene = (scene_ints, scene_floats, points, mode, clearance)
    state = open_shortening(state_ints)
    check_count = np.zeros(1, np.int64)
    work = (np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), check_count)
    nq, previous_check_count = unit.shape[0], state.check_count
    q, a, b = np.empty((1, nq)), np.empty(nq), np.empty(nq)
    while state.phase < SHORTENED and check_count[0] < budget:
        if state.phase != TRY_SHORTCUTS:
            state.waypoint_count = skip_waypoints(query, scene, x, state.waypoint_count, unit, step, q, work)
            state.phase += 1
            continue
        count = state.waypoint_count
        if count < 3 or state.shortcut_count >= max_shortcuts or state.failure_count >= max_failures:
            state.phase += 1
            continue
        path_length = 0.0
        for k in range(count - 1):
            path_length += segment_length(x[k], x[k + 1], unit)
        start_length, end_length = path_length * random_number(seed, state), path_length * random_number(seed, state)
        start_length, end_length = min(start_length, end_length), max(start_length, end_length)
        i, j = segment_at(x, count, unit, start_length, a), segment_at(x, count, unit, end_length, b)
        state.shortcut_count += 1
        state.failure_count += 1
        if i == j or segment_length(a, b, unit) > MAX_LENGTH_RATIO * (end_length - start_length):
            continue
        write_row(q, 0, a)
        if is_free_configuration(query, scene, q, work) and is_free_motion(query, scene, a, b, unit, step, q, work):
            state.waypoint_count = replace_waypoints(x, count, i, j, a, b, unit)
            state.failure_count = 0
    state.check_count = previous_check_count + check_count[0]
    return SEARCH_DONE if state.phase == SHORTENED else SEARCH_PAUSED
