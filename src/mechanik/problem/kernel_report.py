"""Report of the general kernel about a search in one subproblem."""

from __future__ import annotations

import numpy as np

from mechanik.kernels.state_layout import (
    ATTEMPTS_OUT,
    CONVERGED,
    FIRST_STAGE_REPORT,
    ITERATIONS_OUT,
    STAGE_COST,
    STAGE_REPORT_FLOATS,
    STAGE_STATUS,
    START_WAS_CLAMPED,
    STATUS,
    SUCCESS,
)
from mechanik.spatial.array import Array


class KernelReport:
    """View of the report table of a subproblem; `copy` makes it independent of later searches.

    Attributes:
        table: the table, in the layout of `kernels/state_layout.py`.

    Example:
        >>> from mechanik.problem.kernel_report import KernelReport
        >>> report = KernelReport.of_attempt(1, status=0.0, iterations=7)
        >>> report.success, report.iterations, report.attempts
        (True, 7, 1)
    """

    __slots__ = ("table",)

    def __init__(self, table: Array) -> None:
        self.table = table

    @classmethod
    def of_attempt(cls, stage_count: int, *, status: float, iterations: int, attempts: int = 1) -> KernelReport:
        """Return the report of attempts with a common status, which is that of every stage.

        Args:
            stage_count: number of stages of the subproblem.
            status: status code of `kernels/state_layout.py`; CONVERGED means success.
            iterations, attempts: numbers of iterations and of attempts.
        """
        report = cls(np.zeros(FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * stage_count))
        report.set_result(status, iterations, attempts)
        return report

    def __eq__(self, value: object) -> bool:
        return isinstance(value, KernelReport) and np.array_equal(self.table, value.table)

    __hash__ = None  # the kernel writes to the table

    def copy(self) -> KernelReport:
        """Return a copy with a table of its own."""
        return KernelReport(self.table.copy())

    @property
    def success(self) -> bool:
        """Whether every required stage has converged and is within tolerance at the end."""
        return bool(self.table[SUCCESS] == 1.0)

    @property
    def status(self) -> int:
        """Status code of the search, as in `kernels/state_layout.py`."""
        return int(self.table[STATUS])

    @property
    def iterations(self) -> int:
        """Number of iterations of all attempts."""
        return int(self.table[ITERATIONS_OUT])

    @property
    def attempts(self) -> int:
        """Number of attempts."""
        return int(self.table[ATTEMPTS_OUT])

    @property
    def start_was_clamped(self) -> bool:
        """Whether the start was outside the limits."""
        return bool(self.table[START_WAS_CLAMPED])

    def stage_status(self, stage: int) -> int:
        """Return the status code of a stage."""
        return int(self.table[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * stage + STAGE_STATUS])

    def stage_cost(self, stage: int) -> float:
        """Return the remaining cost of a stage: the sum of its squared weighted residuals."""
        return float(self.table[FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * stage + STAGE_COST])

    # ---- changes by drivers in Python ---------------------------------------------------------

    def set_effort(self, iterations: int, attempts: int) -> None:
        """Replace the numbers of iterations and of attempts."""
        self.table[ITERATIONS_OUT], self.table[ATTEMPTS_OUT] = iterations, attempts

    def set_status(self, status: float) -> None:
        """Replace the status code of a search that did not succeed."""
        self.table[STATUS] = status

    def set_converged(self) -> None:
        """Mark the search and all of its stages as a success."""
        self.table[STATUS], self.table[SUCCESS] = CONVERGED, 1.0
        self.table[FIRST_STAGE_REPORT + STAGE_STATUS :: STAGE_REPORT_FLOATS] = CONVERGED

    def set_result(self, status: float, iterations: int, attempts: int = 1, was_clamped: bool = False) -> None:
        """Write the result of attempts that Python made; stages keep neither status nor cost."""
        self.table[:] = 0.0
        self.table[STATUS], self.table[SUCCESS] = status, float(status == CONVERGED)
        self.table[START_WAS_CLAMPED] = float(was_clamped)
        self.set_effort(iterations, attempts)

    def set_stage(self, stage: int, status: float, cost: float) -> None:
        """Write status and cost of a stage."""
        offset = FIRST_STAGE_REPORT + STAGE_REPORT_FLOATS * stage
        self.table[offset + STAGE_STATUS], self.table[offset + STAGE_COST] = status, cost
