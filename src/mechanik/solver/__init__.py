"""Inverse kinematics solvers: `Solver`, compiled once and called often, and `solve` for a single call.

A call takes targets and a start configuration and returns a `Solution`; `Solver.solve_batch` returns arrays and
`Solver.solve_all` searches for every solution. The sub-packages are `methods` (the iterations), `search` (all
solutions) and `batch` (many targets). This package imports `problem` and the layers below it.
"""

from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method
from mechanik.solver.methods.method_registry import METHODS
from mechanik.solver.monitor import Iterate
from mechanik.solver.options import Options
from mechanik.solver.solution import Solution, Status, SubproblemReport
from mechanik.solver.solver import Solver, solve

__all__ = [
    "METHODS",
    "Iterate",
    "LeastSquaresProblem",
    "Method",
    "Options",
    "Solution",
    "Solver",
    "Status",
    "SubproblemReport",
    "solve",
]
