"""Global search for solutions: seed tables, all solutions of a target, self-motions, closed forms, collision-free ones.

The input is a compiled problem or a mechanism, the output configurations. This package imports `solver.methods` and
lower layers. The closed form is also a method, as in `Solver(..., solver="closed_form")`.
"""

from mechanik.solver.search.closed_form import ClosedForm, closed_form
from mechanik.solver.search.solution_set import SolutionSet

__all__ = ["ClosedForm", "SolutionSet", "closed_form"]
