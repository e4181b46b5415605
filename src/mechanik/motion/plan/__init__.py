"""Motion planning: collision-free paths from one configuration to another.

Input: a mechanism, a start, goals and obstacles. Output: a `PlannedPath` that is checked densely. OMPL is imported only
when a planner of OMPL is chosen.
"""

from mechanik.motion.plan.planner import PlannedPath, plan

__all__ = ["PlannedPath", "plan"]
