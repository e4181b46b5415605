"""Solvers compared: every method on every class of robot and task, measured and not asserted.

In: mechanisms and names of solvers. Out: a `Comparison` with rows, records, a table and a report. May import everything
below the command line.
"""

from mechanik.comparison.comparing import compare
from mechanik.comparison.results import Comparison
from mechanik.comparison.robots import ROBOTS, Robot
from mechanik.comparison.summary import Row
from mechanik.comparison.tasks import TASKS
from mechanik.comparison.trial import Trial

__all__ = ["ROBOTS", "TASKS", "Comparison", "Robot", "Row", "Trial", "compare"]
