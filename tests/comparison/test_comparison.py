"""A short comparison: every solver gets the same cases, and every solution is verified."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from comparison_cases import SETTINGS, cached_case

import mechanik as mk
from mechanik.comparison import TASKS, benchmark_runner
from mechanik.comparison.benchmark_cases import start_targets
from mechanik.comparison.benchmark_records import ATTEMPT, BRANCH, CALL, CURVE, TRACK, UNSUPPORTED, partial_path
from mechanik.comparison.benchmark_runner import TimeLimits, run_case
from mechanik.comparison.benchmark_verification import SolutionBranches, affecting_dofs
from mechanik.errors import InvalidArgument, InvalidOperation, LimitsError, StructureError
from mechanik.solver import Solver
from mechanik.solver.methods.least_squares_methods import DampedLeastSquares
from mechanik.solver.target_writer import with_targets

TIME_LIMITS = TimeLimits(budget=0.02, max_attempt_seconds=0.1, patience=5.0, seed=0)
SHORT = {"robots": ["3r_planar", "6r_wrist", "closed_loop"], "solvers": ["lm", "dls", "jacobian_transpose"]}


@pytest.fixture(scope="module")
def short():
    """The short version: 3 solvers, 3 robots, all tasks."""
    return mk.compare(**SHORT, quick=True, targets=5, patience=0.1, progress=False)


def run(case, solver, time_limits=TIME_LIMITS, settings=SETTINGS):
    return run_case(case, solver, settings, time_limits, SolutionBranches(case, settings.branch_target_count))


# ---- the short version ------------------------------------------------------------------------


def test_every_case_has_a_row_with_results(short):
    assert short.is_complete
    assert len(short.rows) == 3 * 3 * len(TASKS)
    for row in short.rows:
        assert row.trials >= 3
        assert row.first_attempt <= row.trials
        assert row.false_claims == 0
        assert row.iteration_seconds is not None


def test_verified_solutions_are_within_tolerances_and_limits(short):
    verified = [record for record in short.records if record.verified]
    assert len(verified) > 100
    for record in verified:
        assert record.position_error <= 1e-4 * (1 + 1e-6)
        assert not record.rotation_error > 1e-3 * (1 + 1e-6)
        assert record.limit_violation <= 1e-9
        assert record.reported_success


def test_first_attempt_within_the_budget_counts_as_success_within_the_budget(short):
    for record in short.records:
        if record.kind in (ATTEMPT, TRACK) and record.verified and record.seconds <= 0.02:
            assert record.in_budget
        if record.in_budget:
            assert record.budget_seconds <= 0.02


def test_default_solver_meets_limits_and_reaches_every_closed_chain_pose(short):
    for row in short.select(solvers="lm"):
        assert row.violations == 0
        assert row.jumps in (None, 0)
    assert short.row("lm", "closed_loop", "pose").first_attempt_share == 1.0
    assert short.row("lm", "6r_wrist", "out_of_reach").optimality == pytest.approx(1.0, abs=0.01)


def test_convergence_curves_are_monotone(short):
    curves = [record for record in short.records if record.kind == CURVE]
    assert len(curves) >= 0.9 * len(short.rows)
    for record in curves:
        assert len(record.curve_errors) == len(record.curve_iterations)
        assert (np.diff(record.curve_iterations) > 0).all()
        assert (np.diff(record.curve_errors) <= 0).all()


def test_call_at_the_target_is_timed_and_makes_no_iteration(short):
    idle = [record for record in short.records if record.kind == CALL]
    assert len(idle) == len(short.rows)
    assert all(record.seconds > 0 for record in idle)
    for task in TASKS:
        case = cached_case("two_hands", task)
        solution = benchmark_runner.make_case_solver(case, "dls").solve(start_targets(case), np.array(case.starts[0]))
        assert solution.success
        assert solution.iterations == 0


def test_wrist_has_several_branches(short):
    row = short.row("lm", "6r_wrist", "pose")
    assert row.branches_known is not None
    assert row.branches_known >= 2
    assert short.row("lm", "3r_planar", "point").branches is None  # 1 redundant dof: infinitely many solutions


def test_comparison_has_text_markdown_and_machine_output(short):
    assert repr(short).startswith("<comparison of 3 solvers, 3 robots, 7 tasks; ")
    assert "6R wrist (Puma 560), near singular" in short.table()
    assert len(short.overview().splitlines()) == 4
    assert "### closed loop (Stewart platform): path" in short.markdown()
    assert short.about["machine"]["processor"]


def test_outcome_of_an_attempt_is_deterministic(short):
    again = mk.compare(
        robots=["3r_planar", "closed_loop"], solvers=SHORT["solvers"], tasks=["pose", "path", "out_of_reach"],
        quick=True, targets=5, progress=False, patience=1.0,
    )  # fmt: skip

    def outcomes(comparison):
        attempts = [record for record in comparison.records if record.kind in (ATTEMPT, TRACK)]
        return {(*record.run_key, record.target): (record.verified, record.iterations) for record in attempts}

    before, after = outcomes(short), outcomes(again)
    shared = before.keys() & after.keys()
    assert len(shared) > 50
    assert {key: before[key] for key in shared} == {key: after[key] for key in shared}


# ---- equal cases for all solvers ----------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_every_solver_gets_the_same_targets_starts_and_tolerances(task, monkeypatch):
    case = cached_case("6r_wrist", task)
    seen = {}
    solve = Solver.solve

    def spy(self, targets, q0, **options):
        tolerances = [(goal.tolerance, goal.angle_tolerance) for goal in self.objectives]
        seen.setdefault(self.method.name, []).append(
            (np.array(targets, dtype=object).tolist(), q0.tolist(), tolerances)
        )
        return solve(self, targets, q0, **options)

    monkeypatch.setattr(Solver, "solve", spy)
    for name in ("lm", "dls"):
        records = run(case, name, replace(TIME_LIMITS, budget=1e-9))
        assert len([t for t in records if t.kind in (ATTEMPT, TRACK)]) == len(case.targets)
    if task == "path":  # each solver continues from its own solutions; only the first call is equal
        seen = {name: calls[:1] for name, calls in seen.items()}
    assert repr(seen["lm"]) == repr(seen["dls"])


# ---- verification -----------------------------------------------------------------------------


@dataclass
class FalseClaims:
    """A solver that returns the start and claims success."""

    method: ClassVar[mk.Method] = DampedLeastSquares()

    def solve(self, targets, q0, **options):
        return FakeSolution(q0)


@dataclass
class FakeSolution:
    q: np.ndarray
    success: bool = True
    iterations: int = 1
    status: mk.Status = mk.Status.CONVERGED
    history: None = None


def test_false_claims_are_not_verified(monkeypatch):
    monkeypatch.setattr(benchmark_runner, "make_case_solver", lambda case, solver: FalseClaims())
    for task in TASKS:
        attempts = [
            record for record in run(cached_case("7r", task), "false_claims") if record.kind in (ATTEMPT, TRACK, BRANCH)
        ]
        assert attempts
        assert all(record.reported_success and not record.verified and not record.in_budget for record in attempts)


def test_solutions_outside_the_limits_are_not_verified(monkeypatch):
    class OutsideLimits(FalseClaims):
        def solve(self, targets, q0, **options):
            return FakeSolution(case.reference_q[0] + 2 * np.pi * (np.arange(7) == 0))

    case = cached_case("7r", "pose")
    monkeypatch.setattr(benchmark_runner, "make_case_solver", lambda case, solver: OutsideLimits())
    first = next(record for record in run(case, "outside_limits") if record.kind == ATTEMPT)
    assert first.position_error < 1e-9
    assert first.limit_violation > 1
    assert not first.verified


def test_solver_that_returns_nan_or_raises_fails_and_the_comparison_continues(monkeypatch):
    class Unreliable(FalseClaims):
        calls = 0

        def solve(self, targets, q0, **options):
            self.calls += 1
            if self.calls > 2 and self.calls % 2:
                raise ZeroDivisionError("not today")
            return FakeSolution(np.full(7, np.nan))

    monkeypatch.setattr(benchmark_runner, "make_case_solver", lambda case, solver: Unreliable())
    for task in ("pose", "path", "out_of_reach"):
        attempts = [record for record in run(cached_case("7r", task), "unreliable") if record.kind in (ATTEMPT, TRACK)]
        assert len(attempts) == len(cached_case("7r", task).targets)
        assert not any(record.verified for record in attempts)
        assert any("not today" in record.note for record in attempts)


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (InvalidOperation("FABRIK cannot close loops"), "does not support this task: FABRIK cannot close loops"),
        (ImportError("no module named 'x'"), "cannot be loaded: no module named 'x'"),
        (ZeroDivisionError("oh"), "fails: ZeroDivisionError: oh"),
    ],
)
def test_refusals_and_failures_are_recorded_with_the_reason(monkeypatch, error, note):
    def refuse(case, solver):
        raise error

    monkeypatch.setattr(benchmark_runner, "make_case_solver", refuse)
    (record,) = run(cached_case("7r", "pose"), "fabrik")
    assert (record.kind, record.note) == (UNSUPPORTED, note)


def test_slow_solver_gets_the_minimum_number_of_targets(monkeypatch):
    records = run(cached_case("7r", "pose"), "dls", replace(TIME_LIMITS, patience=1e-9))
    assert len([record for record in records if record.kind == ATTEMPT]) == benchmark_runner.MIN_TARGET_COUNT


# ---- branches ---------------------------------------------------------------------------------------


def test_branches_differ_by_more_than_full_turns_and_tolerances():
    case = cached_case("6r_wrist", "pose")
    branches, q = SolutionBranches(case, 1), case.reference_q[0]
    full_turn = np.eye(6)[5] * 2 * np.pi
    flipped = q + np.pi * (np.eye(6)[3] + np.eye(6)[5])
    flipped[4] = -q[4]
    assert branches.branch_index(0, q) == 0
    assert branches.branch_index(0, q + 1e-4) == 0
    assert branches.branch_index(0, q + full_turn) == 0
    assert branches.branch_index(0, flipped) == 1
    assert branches.branch_index(0, flipped + 1e-4) == 1


def test_joints_that_do_not_move_the_tip_link_make_no_branches():
    case = cached_case("6r_wrist", "point")  # the tip link is at the centre of the wrist
    branches, q = SolutionBranches(case, 1), case.reference_q[0]
    assert branches.targets == (0,)
    assert branches.branch_index(0, q + np.diag([0, 0, 0, 1, 1, 1]).sum(axis=0)) == 0
    assert branches.branch_index(0, q + 0.2 * np.eye(6)[1]) == 1


def test_solutions_are_isolated_without_redundant_dofs():
    for name, task, isolated in (("6r_wrist", "pose", True), ("7r", "pose", False), ("closed_loop", "pose", True)):
        case = cached_case(name, task)
        goals = with_targets(case.goals, case.targets[0])
        assert affecting_dofs(case.robot, goals, case.reference_q[0])[1] is isolated


# ---- validation of arguments --------------------------------------------------------------------------------------


def test_user_mechanisms_replace_or_extend_the_robots(tmp_path):
    options = {"solvers": "lm", "tasks": "point", "targets": 3, "quick": True, "progress": False}
    mk.save(mk.gallery.scara(), tmp_path / "mine.json")
    comparison = mk.compare([mk.gallery.scara(), tmp_path / "mine.json"], **options)
    assert [row.robot for row in comparison.rows] == ["scara", "scara 2"]
    assert comparison.titles["scara"] == "scara: tool"
    combined = mk.compare(mk.gallery.scara(), robots="3r_planar", link="quill", **options)
    assert [row.robot for row in combined.rows] == ["3r_planar", "scara"]
    assert combined.titles["scara"] == "scara: quill"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"solvers": ["lm", "dsl"]}, mk.UnknownName, "dls"),
        ({"robots": "six"}, mk.UnknownName, "robot"),
        ({"tasks": ["poes"]}, mk.UnknownName, "pose"),
        ({"targets": 0}, LimitsError, "targets"),
        ({"budget": 0.0}, LimitsError, "budget"),
        ({"tolerance": -1.0}, LimitsError, "tolerance"),
        ({"mechanisms": [3]}, InvalidArgument, "3"),
        ({"resume": True}, InvalidArgument, "csv"),
    ],
)
def test_invalid_arguments_raise_before_the_comparison_starts(arguments, error, message):
    with pytest.raises(error, match=message):
        mk.compare(**{"quick": True, "progress": False, **arguments})


# ---- Ctrl-C and resuming ----------------------------------------------------------------------------


def test_interrupted_comparison_keeps_finished_rows_and_can_be_resumed(tmp_path):
    path = tmp_path / "records.csv"
    options = {"robots": "3r_planar", "solvers": ["lm", "dls"], "tasks": ["point", "pose", "path"], "quick": True}
    labels = []

    def progress(done, total, label):
        labels.append(label)
        if done == 3:
            raise KeyboardInterrupt

    stopped = mk.compare(**options, csv=path, progress=progress)
    assert not stopped.is_complete
    assert [(row.task, row.solver) for row in stopped.rows] == [("point", "lm"), ("point", "dls"), ("pose", "lm")]
    assert "interrupted" in repr(stopped)
    assert not path.exists()
    assert partial_path(path).exists()

    labels.clear()
    whole = mk.compare(**options, csv=path, progress=lambda done, total, label: labels.append(label), resume=True)
    assert whole.is_complete
    assert len(whole.rows) == 6
    assert path.exists()
    assert not partial_path(path).exists()
    assert not any("point" in label for label in labels)  # the finished task is not run again
    for solver in options["solvers"]:
        before, after = (comparison.row(solver, "3r_planar", "point") for comparison in (stopped, whole))
        assert (after.trials, after.first_attempt, after.within_budget) == (
            before.trials,
            before.first_attempt,
            before.within_budget,
        )
        assert after.median_seconds == pytest.approx(before.median_seconds, rel=1e-3)
    with pytest.raises(StructureError, match="other settings"):
        mk.compare(**options, csv=path, progress=False, resume=True, seed=1)


def test_progress_function_gets_done_and_total():
    seen = []
    mk.compare(
        robots="3r_planar", solvers=["lm", "dls"], tasks="point", quick=True, progress=lambda *facts: seen.append(facts)
    )
    assert seen[0][:2] == (0, 2)
    assert seen[-1] == (2, 2, "")
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
