"""States of the path search kernels between two calls, their return values, and their random numbers.

Each search has its own sequence of random numbers, so its result does not depend on other threads.
"""

from __future__ import annotations

import numpy as np

from ..chain_restarts import splitmix64
from ..compiler import inline
from ..tables import Record, integer, integers, record_opener


class GrowthState(Record):
    """State of the growth of two trees, integers.

    Attributes:
        node_count: number of nodes of each tree.
        growth_count: number of nodes added to each tree, without its roots.
        meeting_node: the nodes at which the trees are connected.
        check_count: number of collision checks.
        random_count: number of random numbers drawn.
    """

    node_count = integers(2)
    growth_count = integers(2)
    meeting_node = integers(2)
    check_count = integer()
    random_count = integer()


SKIP_WAYPOINTS, TRY_SHORTCUTS, SKIP_WAYPOINTS_AGAIN, SHORTENED = range(4)
"""Phases of path shortening."""


class ShorteningState(Record):
    """State of the shortening of a path, integers.

    Attributes:
        waypoint_count: number of waypoints.
        shortcut_count: number of tried shortcuts.
        failure_count: number of failed shortcuts since the last success.
        phase: SKIP_WAYPOINTS to SHORTENED.
        check_count: number of collision checks.
        random_count: number of random numbers drawn.
    """

    waypoint_count = integer()
    shortcut_count = integer()
    failure_count = integer()
    phase = integer()
    check_count = integer()
    random_count = integer()


open_growth = record_opener(GrowthState)
open_shortening = record_opener(ShorteningState)

SEARCH_DONE, SEARCH_PAUSED, SEARCH_FULL = 0, 1, 2
"""Return values: finished (the trees are connected, or the path is shortened); the budget is used up; the arrays of the
trees are full."""


@inline
def random_number(seed, state):
    """Return the next random number in [0, 1) of the sequence that `seed` defines; `state` counts them."""
    state.random_count += 1
    x = splitmix64(splitmix64(np.uint64(seed) + np.uint64(state.random_count) * np.uint64(0x9E3779B97F4A7C15)))
    return np.float64(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)
