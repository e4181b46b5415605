"""State of the path search kernels between two calls, their return values, and their random numbers.

Each search has its own sequence of random numbers, so its result does not depend on other threads.
"""

from __future__ import annotations

import numpy as np

from ..chain_restarts import splitmix64
from ..compiler import inline

# integers of the state. Tree growth: number of nodes of each tree; number of nodes added to each tree, without its
# roots; the nodes at which the trees are connected
NODE_COUNT, GROWTH_COUNT, MEETING_NODE = 0, 2, 4
# path shortening: number of waypoints; tried shortcuts; failed shortcuts since the last success; the phase (0 and 2:
# skip waypoints, 1: try shortcuts, 3: done)
WAYPOINT_COUNT, SHORTCUTS_TRIED, SHORTCUTS_FAILED, SHORTENING_PHASE = 0, 1, 2, 3
# both: number of collision checks; number of random numbers drawn
CHECK_COUNT, RANDOM_COUNT, SEARCH_STATE_INTS = 6, 7, 8

SEARCH_DONE, SEARCH_PAUSED, SEARCH_FULL = 0, 1, 2
"""Return values: finished (the trees are connected, or the path is shortened); the budget is used up; the arrays of the
trees are full."""


@inline
def random_number(seed, state):
    """Return the next random number in [0, 1) of the sequence that `seed` defines."""
    state[RANDOM_COUNT] += 1
    x = splitmix64(splitmix64(np.uint64(seed) + np.uint64(state[RANDOM_COUNT]) * np.uint64(0x9E3779B97F4A7C15)))
    return np.float64(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)
