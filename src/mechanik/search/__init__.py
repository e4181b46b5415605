"""Looking beyond one descent: seed tables of chains, all solutions, annealing, evolution, and closed forms.

In: a problem of `solvers`, or a mechanism. Out: configurations. May import `solvers` and what stands below it. The
methods among them are found by name, as in `Solver(..., solver="annealing")`.
"""

from mechanik.search.closed_form import ClosedForm, closed_form
from mechanik.search.solution_set import SolutionSet

__all__ = ["ClosedForm", "SolutionSet", "closed_form"]
