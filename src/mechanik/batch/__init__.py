"""Many targets at once: in lanes where there is one chain, on the general kernel in threads for all else.

In: arrays of targets and starts, and a way to solve some of them. Out: arrays (`BatchResult`), in memory or in files.
May import `search` and what stands below it; it is `ik` that hands it a solver.
"""

from mechanik.batch.engine import Engine
from mechanik.batch.general import General
from mechanik.batch.guarded_lanes import GuardedLanes, Resorting
from mechanik.batch.interrupted import Interrupted
from mechanik.batch.lanes import Lanes, takes_lanes
from mechanik.batch.progress import Progress
from mechanik.batch.result import BatchResult
from mechanik.batch.run import Asked, run_batch

__all__ = [
    "Asked",
    "BatchResult",
    "Engine",
    "General",
    "GuardedLanes",
    "Interrupted",
    "Lanes",
    "Progress",
    "Resorting",
    "run_batch",
    "takes_lanes",
]
