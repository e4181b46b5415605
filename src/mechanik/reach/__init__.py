"""Reachability maps: the voxels that a link can reach, and the share of orientations that it can reach in each voxel.

The input is a mechanism and a link; the output is a `ReachMap`. This package imports `solver` and lower layers.
"""

from mechanik.reach.reach_map import ReachMap
from mechanik.reach.reachability import reachability

__all__ = ["ReachMap", "reachability"]
