"""Bidirectional rapidly exploring random trees (RRT-Connect) from the start and from all goals.

J. J. Kuffner and S. M. LaValle, "RRT-Connect: an efficient approach to single-query path planning", ICRA 2000. The
tree with fewer grown nodes grows next (J. Kuffner and S. LaValle, "An efficient approach to path planning using
balanced bidirectional RRT search", 2005). Extensions are long at first, which is enough in open space. Later each
node adapts the length of its extensions, similar to L. Jaillet et al., "Adaptive tuning of the sampling domain for
dynamic-domain RRTs", IROS 2005.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, kernel, subroutine
from .motion_check import QUERY, QUERY_SCENE, is_free_motion
from .search_state import (
    CHECK_COUNT,
    GROWTH_COUNT,
    MEETING_NODE,
    NODE_COUNT,
    SEARCH_DONE,
    SEARCH_FULL,
    SEARCH_PAUSED,
    random_number,
)

MAX_EXTENSION, MIN_EXTENSION = 4.0, 0.4
"""Longest extension, and the shortest to which failures reduce it, in units."""
CHECKS_BEFORE_SHRINKING = 1500
"""Number of collision checks before extensions start to shrink. All constants here are tuned on a seven-joint arm that
reaches into a shelf and through a window, and in a cage of fifty obstacles."""
EXTENSION_SHRINK_RATIO = 0.9
"""Factor on the extension length of a node after a failed extension."""
SCAN_BLOCK = 128
NODES_PER_CHECK = 1500
"""Approximate number of nodes that are compared in the time of one collision check."""


@subroutine
def nearest_node(configurations, count, x, inverse_unit, nearest):
    """Return which of the first `count` configurations (nq, n) is nearest to x (nq,), and its distance in units.

    The distances are computed in blocks, one number of q after the other, so that the compiler vectorizes the loops.

    Args:
        inverse_unit: (nq,) 1 / unit.
        nearest: (nq,) written: the nearest configuration.
    """
    best, nearest_index = math.inf, 0
    squares = np.empty(SCAN_BLOCK)
    for first in range(0, count, SCAN_BLOCK):
        size = min(SCAN_BLOCK, count - first)
        for i in range(size):
            squares[i] = 0.0
        for k in range(x.shape[0]):
            value, scale, row = x[k], inverse_unit[k], configurations[k, first : first + size]
            for i in range(size):
                difference = (row[i] - value) * scale
                squares[i] += difference * difference
        for i in range(size):
            if squares[i] < best:
                best, nearest_index = squares[i], first + i
    for k in range(x.shape[0]):
        nearest[k] = configurations[k, nearest_index]
    return nearest_index, math.sqrt(best)


@inline
def interpolate(start, x, share, out):
    """Write start + share (x - start) into `out`, all (nq,); exactly x at a share of 1."""
    for k in range(x.shape[0]):
        out[k] = x[k] if share == 1.0 else start[k] + share * (x[k] - start[k])


@inline
def add_node(side, parent, x, reach, configurations, parents, reaches, state):
    """Add a node to tree `side` and return its index."""
    i = state[NODE_COUNT + side]
    state[NODE_COUNT + side] += 1
    state[GROWTH_COUNT + side] += 1
    for k in range(x.shape[0]):
        configurations[side, k, i] = x[k]
    parents[side, i], reaches[side, i] = parent, reach
    return i


@kernel(
    f"i8({QUERY_SCENE}, f8[::1], f8[::1], f8[::1], f8, i8, i8, f8[:,:,::1], i8[:,::1], f8[:,::1], i8[::1])", calls=QUERY
)
def grow_trees(
    query, nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, mode, clearance,
    lower, upper, unit, step, seed, budget, configurations, parents, reaches, state,
):  # fmt: skip
    """Grow the trees until they meet, or pause when the budget is spent; the next call continues the same search.

    Args:
        query .. clearance: the collision query and its arguments, see `motion_check.py`.
        lower, upper: (nq,) bounds of the random samples.
        unit: (nq,) scale of each number of q.
        step: distance between the collision checks of a motion, in units.
        seed: of the random numbers.
        budget: number of collision checks after which the kernel pauses; node comparisons count too.
        configurations: (2, nq, n) nodes of both trees, the roots included.
        parents: (2, n) index of the parent of each node (-1: none).
        reaches: (2, n) longest extension from each node, in units; infinite for roots.
        state: (SEARCH_STATE_INTS,), see `search_state.py`.

    Returns:
        SEARCH_DONE, SEARCH_PAUSED or SEARCH_FULL.
    """
    scene = (nodes, shapes, points, bodies, tree, is_checked, counts, pair_lists, partners, mode, clearance)
    check_count = np.zeros(1, np.int64)
    work = (np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), check_count)
    nq, max_nodes = lower.shape[0], configurations.shape[2]
    q, x, nearest, extended = np.empty((1, nq)), np.empty(nq), np.empty(nq), np.empty(nq)
    inverse_unit = 1.0 / unit
    earlier_checks, compared_nodes, result = state[CHECK_COUNT], 0, SEARCH_PAUSED
    while check_count[0] + compared_nodes // NODES_PER_CHECK < budget:
        if max(state[NODE_COUNT], state[NODE_COUNT + 1]) >= max_nodes:
            result = SEARCH_FULL
            break
        shrink = 1.0 if state[CHECK_COUNT] < CHECKS_BEFORE_SHRINKING else EXTENSION_SHRINK_RATIO
        side = 0 if state[GROWTH_COUNT] <= state[GROWTH_COUNT + 1] else 1
        for k in range(nq):
            x[k] = lower[k] + random_number(seed, state) * (upper[k] - lower[k])
        a, distance = nearest_node(configurations[side], state[NODE_COUNT + side], x, inverse_unit, nearest)
        compared_nodes += state[NODE_COUNT + side]
        reach = min(MAX_EXTENSION, reaches[side, a])
        if distance > reach:
            interpolate(nearest, x, reach / distance, x)
        is_free = is_free_motion(query, scene, nearest, x, unit, step, q, work)
        state[CHECK_COUNT] = earlier_checks + check_count[0]
        if not is_free:
            reaches[side, a] = max(MIN_EXTENSION, shrink * reach)
            continue
        i = add_node(side, a, x, reach, configurations, parents, reaches, state)
        # the connect step: the other tree extends towards x until it collides
        other_side = 1 - side
        b, distance = nearest_node(configurations[other_side], state[NODE_COUNT + other_side], x, inverse_unit, nearest)
        compared_nodes += state[NODE_COUNT + other_side]
        while state[NODE_COUNT + other_side] < max_nodes:
            reach = min(MAX_EXTENSION, reaches[other_side, b])
            interpolate(nearest, x, min(1.0, reach / distance) if distance > 0.0 else 1.0, extended)
            is_free = is_free_motion(query, scene, nearest, extended, unit, step, q, work)
            state[CHECK_COUNT] = earlier_checks + check_count[0]
            if not is_free:
                reaches[other_side, b] = max(MIN_EXTENSION, shrink * reach)
                break
            if distance <= reach:
                state[MEETING_NODE + side], state[MEETING_NODE + other_side] = i, b
                return SEARCH_DONE
            b, distance = (
                add_node(other_side, b, extended, reach, configurations, parents, reaches, state),
                distance - reach,
            )
            nearest, extended = extended, nearest
    return result
