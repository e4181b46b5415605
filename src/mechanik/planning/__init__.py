"""Paths around obstacles, from one configuration to another.

In: a mechanism, a start, goals and what to keep off. Out: a `Path`, checked densely. May import `timing` and what
stands below it; OMPL is imported when it is needed.
"""

from mechanik.planning.plan import plan
from mechanik.planning.planned_path import PlannedPath

__all__ = ["PlannedPath", "plan"]
