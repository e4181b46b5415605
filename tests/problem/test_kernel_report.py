"""Reports of searches in a subproblem: views of one table, by name."""

from __future__ import annotations

import pickle

from mechanik.kernels.state_layout import CONVERGED, STALLED
from mechanik.problem.kernel_report import KernelReport


def test_an_earlier_search_adds_its_effort_and_its_clamped_start():
    earlier, report = (KernelReport.of_attempt(2, status=STALLED, iterations=5, attempts=k) for k in (3, 1))
    earlier.set_result(STALLED, 5, 3, was_clamped=True)
    report.set_result(CONVERGED, 2)
    report.add_earlier_search(earlier)
    assert (report.iterations, report.attempts, report.start_was_clamped, report.success) == (7, 3, True, True)


def test_copies_and_pickled_reports_are_equal_and_independent():
    report = KernelReport.of_attempt(2, status=STALLED, iterations=5)
    report.set_stage(1, STALLED, 0.25)
    for copy in (report.copy(), pickle.loads(pickle.dumps(report))):
        assert copy == report
        copy.set_converged()
        assert [copy.stage_status(k) for k in range(2)] == [CONVERGED, CONVERGED]
        assert copy.success
        assert (report.status, report.stage_status(1), report.stage_cost(1)) == (STALLED, STALLED, 0.25)
