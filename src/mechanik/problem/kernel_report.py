"""Report of the general kernel about a search in one subproblem."""

from __future__ import annotations

import numpy as np

from mechanik.kernels.problem_layout import ProblemTables
from mechanik.kernels.state_layout import CONVERGED, SearchReport, StageReport
from mechanik.kernels.tables import RecordArray
from mechanik.spatial.array import Array

SUCCESS_INDEX = SearchReport.success.offset
"""Index in a report's table of the flag of success, for calls in which the attribute would take too long."""


class KernelReport:
    """View of the report table of a subproblem; `copy` makes it independent of later searches.

    Attributes:
        table: the numbers of the report: a `SearchReport`, then a `StageReport` of each stage.

    Example:
        >>> from mechanik.problem.kernel_report import KernelReport
        >>> report = KernelReport.of_attempt(1, status=0.0, iterations=7)
        >>> report.success, report.iterations, report.attempts
        (True, 7, 1)
    """

    __slots__ = ("_report", "_stages", "table")

    def __init__(self, table: Array) -> None:
        self.table = table
        self._report, self._stages = SearchReport(table), RecordArray(StageReport, table[SearchReport.size :])

    @classmethod
    def of_tables(cls, tables: ProblemTables) -> KernelReport:
        """Return a view of the report in the tables of a problem."""
        first, end = tables.first_entry(ProblemTables.report), tables.first_entry(ProblemTables.best_cost)
        return cls(tables.floats[first:end])

    @classmethod
    def of_attempt(cls, stage_count: int, *, status: float, iterations: int, attempts: int = 1) -> KernelReport:
        """Return the report of attempts with a common status, which is that of every stage.

        Args:
            stage_count: number of stages of the subproblem.
            status: status code of `kernels/state_layout.py`; CONVERGED means success.
            iterations, attempts: numbers of iterations and of attempts.
        """
        report = cls(np.zeros(SearchReport.size + StageReport.size * stage_count))
        report.set_result(status, iterations, attempts)
        return report

    @classmethod
    def of_bytes(cls, table: bytes) -> KernelReport:
        """Return the report whose table has these bytes; copying bytes takes less time than copying arrays."""
        return cls(np.frombuffer(table).copy())

    def __eq__(self, value: object) -> bool:
        return isinstance(value, KernelReport) and np.array_equal(self.table, value.table)

    __hash__ = None  # type: ignore[assignment]  # the kernel writes to the table

    def __reduce__(self) -> tuple[type[KernelReport], tuple[Array]]:
        return KernelReport, (self.table,)

    def copy(self) -> KernelReport:
        """Return a copy with a table of its own."""
        return KernelReport(self.table.copy())

    @property
    def success(self) -> bool:
        """Whether every required stage has converged and is within tolerance at the end."""
        return self._report.success

    @property
    def status(self) -> int:
        """Status code of the search, as in `kernels/state_layout.py`."""
        return int(self._report.status)

    @property
    def iterations(self) -> int:
        """Number of iterations of all attempts."""
        return self._report.iterations

    @property
    def attempts(self) -> int:
        """Number of attempts."""
        return self._report.attempts

    @property
    def start_was_clamped(self) -> bool:
        """Whether the start was outside the limits."""
        return self._report.start_was_clamped

    def stage_status(self, stage: int) -> int:
        """Return the status code of a stage."""
        return int(self._stages[stage].status)

    def stage_cost(self, stage: int) -> float:
        """Return the remaining cost of a stage: the sum of its squared weighted residuals."""
        return float(self._stages[stage].cost)

    # ---- changes by drivers in Python ---------------------------------------------------------

    def set_effort(self, iterations: int, attempts: int) -> None:
        """Replace the numbers of iterations and of attempts."""
        self._report.iterations, self._report.attempts = iterations, attempts

    def add_earlier_search(self, earlier: KernelReport) -> None:
        """Add the effort of the search whose result was the start of this search."""
        self.set_effort(earlier.iterations + self.iterations, earlier.attempts)
        self._report.start_was_clamped = earlier.start_was_clamped

    def set_status(self, status: float) -> None:
        """Replace the status code of a search that did not succeed."""
        self._report.status = status

    def set_converged(self) -> None:
        """Mark the search and all of its stages as a success."""
        self._report.status, self._report.success = CONVERGED, True
        self._stages.column(StageReport.status)[:] = CONVERGED

    def set_result(self, status: float, iterations: int, attempts: int = 1, was_clamped: bool = False) -> None:
        """Write the result of attempts that Python made; stages keep neither status nor cost."""
        self.table[:] = 0.0
        self._report.status, self._report.success = status, status == CONVERGED
        self._report.start_was_clamped = was_clamped
        self.set_effort(iterations, attempts)

    def set_stage(self, stage: int, status: float, cost: float) -> None:
        """Write status and cost of a stage."""
        report = self._stages[stage]
        report.status, report.cost = status, cost
