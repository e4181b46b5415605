"""Where a mechanism can reach: a map of space.

In: a mechanism and one of its links. Out: a `ReachMap`, to look at, to keep and to ask. May import `ik` and what
stands below it.
"""

from mechanik.reach.reach_map import ReachMap
from mechanik.reach.reachability import reachability

__all__ = ["ReachMap", "reachability"]
