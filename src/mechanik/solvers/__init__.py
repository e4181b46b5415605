"""Solvers: from a mechanism and what is wanted of it to a `Solution`.

In: a mechanism, objectives, where to start. Out: a configuration, whether it is one, and why. A solver never moves the
mechanism behind the caller's back. May import `program` and what stands below it.
"""

from mechanik.solvers.method import Method
from mechanik.solvers.methods import METHODS
from mechanik.solvers.options import Options
from mechanik.solvers.problem import Problem
from mechanik.solvers.solution import Solution
from mechanik.solvers.status import ChainReport, Status
from mechanik.solvers.watch import Iterate

__all__ = ["METHODS", "ChainReport", "Iterate", "Method", "Options", "Problem", "Solution", "Status"]
