"""Shorten a path: skip waypoints, then try random shortcuts between two points of it, then skip waypoints again."""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, subroutine
from .motion_check import QUERY, QUERY_SCENE, is_free_configuration, is_free_motion, write_row
from .search_state import (
    CHECK_COUNT,
    SEARCH_DONE,
    SEARCH_PAUSED,
    SHORTCUTS_FAILED,
    SHORTCUTS_TRIED,
    SHORTENING_STAGE,
    WAYPOINT_COUNT,
    random_number,
)

MAX_LENGTH_RATIO = 0.97
"""Largest length of a shortcut, as a share of the path that it replaces; a longer one is not worth the checks. At 0.999
paths are 1 % shorter, for half as many checks again."""
SAME_CONFIGURATION_DISTANCE = 1e-9
"""Configurations that are nearer than this, in units, are the same."""


@subroutine
def segment_length(a, b, unit):
    total = 0.0
    for k in range(a.shape[0]):
        difference = (b[k] - a[k]) / unit[k]
        total += difference * difference
    return math.sqrt(total)


@subroutine
def skip_waypoints(query, scene, x, count, unit, step, q, work):
    """Remove waypoints of x (n, nq) that a free straight motion can skip; return how many remain.

    From each waypoint the farthest reachable one is searched by halving the number of skipped waypoints.
    """
    remaining, k = 1, 0
    while k < count - 1:
        candidate = count - 1
        while candidate > k + 1 and not is_free_motion(
            query, scene, x[remaining - 1], x[candidate], unit, step, q, work
        ):
            candidate = k + (candidate - k) // 2
        write_row(x, remaining, x[candidate])
        remaining += 1
        k = candidate
    return remaining


@subroutine
def segment_at(x, count, unit, length, a):
    """Write the configuration at length `length` of the path into a, and return the index of its segment."""
    k, rest = 0, length
    size = segment_length(x[0], x[1], unit)
    while rest > size and k < count - 2:
        rest -= size
        k += 1
        size = segment_length(x[k], x[k + 1], unit)
    share = min(1.0, rest / size) if size > 0.0 else 0.0
    for i in range(a.shape[0]):
        a[i] = x[k, i] + share * (x[k + 1, i] - x[k, i])
    return k


@subroutine
def replace_waypoints(x, count, i, j, a, b, unit):
    """Replace the waypoints i + 1 to j by a and b, without duplicates of neighbours; return the new number."""
    first, last = i + 1, j + 1
    keeps_a = segment_length(x[i], a, unit) > SAME_CONFIGURATION_DISTANCE
    keeps_b = segment_length(b, x[last], unit) > SAME_CONFIGURATION_DISTANCE
    shift = first + int(keeps_a) + int(keeps_b) - last
    if shift > 0:
        for k in range(count - 1, last - 1, -1):
            write_row(x, k + shift, x[k])
    else:
        for k in range(last, count):
            write_row(x, k + shift, x[k])
    if keeps_a:
        write_row(x, first, a)
        first += 1
    if keeps_b:
        write_row(x, first, b)
    return count + shift


@kernel(f"i8({QUERY_SCENE}, f8[::1], f8, i8, i8, i8, i8, f8[:,::1], i8[::1])", calls=QUERY)
def shorten_path(
    query, nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, mode, clearance,
    unit, step, seed, max_shortcuts, max_failures, budget, x, state,
):  # fmt: skip
    """Shorten a path until nothing helps, or pause when the budget is spent; the next call continues.

    Args:
        query .. clearance: the collision query and its arguments, see `motion_check.py`.
        unit: (nq,) scale of each number of q.
        step: distance between the collision checks of a motion, in units.
        seed: of the random numbers.
        max_shortcuts: largest number of shortcuts that are tried.
        max_failures: number of failed shortcuts in a row after which the search ends.
        budget: number of collision checks after which the kernel pauses.
        x: (n, nq) waypoints, with space for as many more as shortcuts are tried.
        state: (SEARCH_STATE_INTS,), see `search_state.py`.

    Returns:
        SEARCH_DONE or SEARCH_PAUSED.
    """
    scene = (nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, mode, clearance)
    check_count = np.zeros(1, np.int64)
    work = (np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), check_count)
    nq, earlier_checks = unit.shape[0], state[CHECK_COUNT]
    q, a, b = np.empty((1, nq)), np.empty(nq), np.empty(nq)
    while state[SHORTENING_STAGE] < 3 and check_count[0] < budget:
        if state[SHORTENING_STAGE] != 1:
            state[WAYPOINT_COUNT] = skip_waypoints(query, scene, x, state[WAYPOINT_COUNT], unit, step, q, work)
            state[SHORTENING_STAGE] += 1
            continue
        count = state[WAYPOINT_COUNT]
        if count < 3 or state[SHORTCUTS_TRIED] >= max_shortcuts or state[SHORTCUTS_FAILED] >= max_failures:
            state[SHORTENING_STAGE] += 1
            continue
        total = 0.0
        for k in range(count - 1):
            total += segment_length(x[k], x[k + 1], unit)
        low, high = total * random_number(seed, state), total * random_number(seed, state)
        low, high = min(low, high), max(low, high)
        i, j = segment_at(x, count, unit, low, a), segment_at(x, count, unit, high, b)
        state[SHORTCUTS_TRIED] += 1
        state[SHORTCUTS_FAILED] += 1
        if i == j or segment_length(a, b, unit) > MAX_LENGTH_RATIO * (high - low):
            continue
        write_row(q, 0, a)
        if is_free_configuration(query, scene, q, work) and is_free_motion(query, scene, a, b, unit, step, q, work):
            state[WAYPOINT_COUNT] = replace_waypoints(x, count, i, j, a, b, unit)
            state[SHORTCUTS_FAILED] = 0
    state[CHECK_COUNT] = earlier_checks + check_count[0]
    return SEARCH_DONE if state[SHORTENING_STAGE] == 3 else SEARCH_PAUSED
