"""The door: `Solver`, prepared once and called often, and `solve`, for a single time.

In: a mechanism, what is asked of it, targets and starts. Out: a `Solution` for one target, arrays for many, all
solutions for those who ask for all. What goes in is checked here. May import `batch`, `search`, `solvers` and what
stands below them.
"""

from mechanik.ik.solve_once import solve
from mechanik.ik.solver import Solver

__all__ = ["Solver", "solve"]
