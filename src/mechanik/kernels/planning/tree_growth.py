"""Bidirectional rapidly exploring random trees (RRT-Connect) from the start and from all goals.

J. J. Kuffner and S. M. LaValle, "RRT-Connect: an efficient approach to single-query path planning", ICRA 2000. The
tree to which fewer nodes were added is extended next (J. Kuffner and S. LaValle, "An efficient approach to path
planning using balanced bidirectional RRT search", 2005). Extensions are long at first, which suffices in open space.
Later the length of the extensions is adapted for each node, similar to L. Jaillet et al., "Adaptive tuning of the
sampling domain for dynamic-domain RRTs", IROS 2005.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import inline, kernel, subroutine
from .motion_check import QUERY, QUERY_SCENE, is_free_motion
from .search_state import (
    SEARCH_DONE,
    SEARCH_FULL,
    SEARCH_PAUSED,
    open_growth,
    random_number,
)

MAX_EXTENSION, MIN_EXTENSION = 4.0, 0.4
"""Longest extension, and the lower bound of the length after failed extensions. Lengths are in scaled units: each
element of q is divided by its scale, `unit`."""
CHECKS_BEFORE_SHRINKING = 1500
"""Number of collision checks after which a failed extension makes the next extensions from its node shorter. All
constants of this module are tuned on a seven-joint arm that reaches into a shelf and through a window, and in a cage of
fifty obstacles."""
EXTENSION_SHRINK_RATIO = 0.9
"""Factor on the extension length of a node after a failed extension."""
SCAN_BLOCK_NODES = 128
"""Number of nodes whose distances are computed together."""
NODES_PER_CHECK = 1500
"""Approximate number of nodes that are compared in the time of one collision check."""


@subroutine
def nearest_node(configurations, count, x, inverse_unit, nearest_q):
    """Return the index and the distance (in scaled units) of the configuration nearest to x among the first `count`.

    The distances are computed in blocks, one element of q after the other, so that the compiler vectorizes the loops.

    Args:
        configurations: (nq, n).
        x: (nq,).
        inverse_unit: (nq,) 1 / unit.
        nearest_q: (nq,) written: the nearest configuration.
    """
    smallest_square, nearest_index = math.inf, 0
    squares = np.empty(SCAN_BLOCK_NODES)
    for first_index in range(0, count, SCAN_BLOCK_NODES):
        block_size = min(SCAN_BLOCK_NODES, count - first_index)
        for i in range(block_size):
            squares[i] = 0.0
        for k in range(x.shape[0]):
            value, scale, row = x[k], inverse_unit[k], configurations[k, first_index : first_index + block_size]
            for i in range(block_size):
                difference = (row[i] - value) * scale
                squares[i] += difference * difference
        for i in range(block_size):
            if squares[i] < smallest_square:
                smallest_square, nearest_index = squares[i], first_index + i
    for k in range(x.shape[0]):
        nearest_q[k] = configurations[k, nearest_index]
    return nearest_index, math.sqrt(smallest_square)


@inline
def interpolate(start, x, share, out):
    """Write start + share (x - start) into `out`, all (nq,); exactly x at a share of 1."""
    for k in range(x.shape[0]):
        out[k] = x[k] if share == 1.0 else start[k] + share * (x[k] - start[k])


@inline
def add_node(side, parent, x, extension, configurations, parents, max_extensions, state):
    """Add a node to tree `side` and return its index."""
    i = state.node_count[side]
    state.node_count[side] += 1
    state.growth_count[side] += 1
    for k in range(x.shape[0]):
        configurations[side, k, i] = x[k]
    parents[side, i], max_extensions[side, i] = parent, extension
    return i


@kernel(
    f"i8({QUERY_SCENE}, f8[::1], f8[::1], f8[::1], f8, i8, i8, f8[:,:,::1], i8[:,::1], f8[:,::1], i8[::1])",
    calls=QUERY,
    allocates=True,
)
def grow_trees(
    query, scene_ints, scene_floats, points, mode, clearance,
    lower, upper, unit, step, seed, budget, configurations, parents, max_extensions, state_ints,
):  # fmt: skip
    """Grow the trees until they are connected, the budget is used up or the arrays are full; the next call continues.

    Args:
        query .. clearance: the collision query and its arguments, see `motion_check.py`.
        lower, upper: (nq,) bounds of the random samples.
        unit: (nq,) scale of each element of q.
        step: largest distance between the collision checks of a motion, in scaled units.
        seed: seed of the random numbers.
        budget: number of collision checks after which the kernel pauses; NODES_PER_CHECK node comparisons count as one.
        configurations: (2, nq, n) nodes of both trees, beginning with the roots.
        parents: (2, n) index of the parent of each node (-1: none).
        max_extensions: (2, n) longest extension from each node, in scaled units; initially infinite for roots;
            shortened by failed extensions.
        state_ints: (GrowthState.size,), updated, see `search_state.py`.

    Returns:
        SEARCH_DONE, SEARCH_PAUSED or SEARCH_FULL.
    """
    scene = (scene_ints, scene_floats, points, mode, clearance)
    state = open_growth(state_ints)
    check_count = np.zeros(1, np.int64)
    work = (np.empty((1, 1)), np.empty((0, 0, 0)), np.zeros(1, np.int64), check_count)
    nq, max_node_count = lower.shape[0], configurations.shape[2]
    q, sample, nearest_q, extension_end = np.empty((1, nq)), np.empty(nq), np.empty(nq), np.empty(nq)
    inverse_unit = 1.0 / unit
    previous_check_count, compared_node_count, result = state.check_count, 0, SEARCH_PAUSED
    while check_count[0] + compared_node_count // NODES_PER_CHECK < budget:
        if max(state.node_count[0], state.node_count[1]) >= max_node_count:
            result = SEARCH_FULL
            break
        shrink_ratio = 1.0 if state.check_count < CHECKS_BEFORE_SHRINKING else EXTENSION_SHRINK_RATIO
        side = 0 if state.growth_count[0] <= state.growth_count[1] else 1
        for k in range(nq):
            sample[k] = lower[k] + random_number(seed, state) * (upper[k] - lower[k])
        nearest_index, distance = nearest_node(
            configurations[side], state.node_count[side], sample, inverse_unit, nearest_q
        )
        compared_node_count += state.node_count[side]
        extension = min(MAX_EXTENSION, max_extensions[side, nearest_index])
        if distance > extension:
            interpolate(nearest_q, sample, extension / distance, sample)
        is_free = is_free_motion(query, scene, nearest_q, sample, unit, step, q, work)
        state.check_count = previous_check_count + check_count[0]
        if not is_free:
            max_extensions[side, nearest_index] = max(MIN_EXTENSION, shrink_ratio * extension)
            continue
        new_index = add_node(side, nearest_index, sample, extension, configurations, parents, max_extensions, state)
        # the connect step: the other tree is extended towards the new node until a collision or a connection
        other_side = 1 - side
        other_index, distance = nearest_node(
            configurations[other_side], state.node_count[other_side], sample, inverse_unit, nearest_q
        )
        compared_node_count += state.node_count[other_side]
        while state.node_count[other_side] < max_node_count:
            extension = min(MAX_EXTENSION, max_extensions[other_side, other_index])
            interpolate(nearest_q, sample, min(1.0, extension / distance) if distance > 0.0 else 1.0, extension_end)
            is_free = is_free_motion(query, scene, nearest_q, extension_end, unit, step, q, work)
            state.check_count = previous_check_count + check_count[0]
            if not is_free:
                max_extensions[other_side, other_index] = max(MIN_EXTENSION, shrink_ratio * extension)
                break
            if distance <= extension:
                state.meeting_node[side], state.meeting_node[other_side] = new_index, other_index
                return SEARCH_DONE
            other_index, distance = (
                add_node(
                    other_side, other_index, extension_end, extension, configurations, parents, max_extensions, state
                ),
                distance - extension,
            )
            nearest_q, extension_end = extension_end, nearest_q
    return result
