"""Looking beyond one descent: annealing, evolution, and closed forms.

In: a problem of `solvers`, or a mechanism. Out: configurations. May import `solvers` and what stands below it. The
methods among them are found by name, as in `Solver(..., solver="annealing")`.
"""

from mechanik.search.closed_form import ClosedForm, closed_form

__all__ = ["ClosedForm", "closed_form"]
