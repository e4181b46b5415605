"""Motion planning: collision-free paths from one configuration to another.

Input: a mechanism, a start, goals and obstacles. Output: a `PlannedPath` that is proven to be collision-free or, where
no proof is possible, checked every 0.01 rad or 5 mm.
"""

from mechanik.motion.plan.planner import PlannedPath, plan

__all__ = ["PlannedPath", "plan"]
