"""The comparison itself, in a short version: everybody gets the same, and nobody is believed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from comparison_exercises import SIZES, exercise

import mechanik as mk
from mechanik.comparison import TASKS
from mechanik.comparison import benchmark_runner as cells
from mechanik.comparison.benchmark_cases import start_targets
from mechanik.comparison.benchmark_records import ATTEMPT, BRANCH, CALL, CURVE, REFUSED, TRACK, partial_path
from mechanik.comparison.benchmark_runner import TimeLimits, run_case
from mechanik.comparison.benchmark_verification import SolutionBranches, moving_dofs
from mechanik.errors import InvalidArgument, InvalidOperation, LimitsError, StructureError
from mechanik.solver import Solver
from mechanik.solver.target_writer import with_targets

PACE = TimeLimits(budget=0.02, max_attempt_seconds=0.1, patience=5.0, seed=0)
SHORT = {"robots": ["3r_planar", "6r_wrist", "closed_loop"], "solvers": ["lm", "dls", "jacobian_transpose"]}


@pytest.fixture(scope="module")
def short():
    """The short version: 3 solvers, 3 robots, all tasks."""
    return mk.compare(**SHORT, quick=True, targets=5, patience=0.1, progress=False)


def run(one, solver, pace=PACE, sizes=SIZES):
    return run_case(one, solver, sizes, pace, SolutionBranches(one, sizes.branch_targets))


# ---- the short version ------------------------------------------------------------------------


def test_every_cell_has_a_row_and_every_row_tells_something(short):
    assert short.is_complete
    assert len(short.rows) == 3 * 3 * len(TASKS)
    for row in short.rows:
        assert row.trials >= 3
        assert row.first_attempt <= row.trials
        assert row.false_claims == 0
        assert row.iteration_seconds is not None


def test_a_verified_answer_is_within_tolerances_and_limits(short):
    verified = [one for one in short.trials if one.verified]
    assert len(verified) > 100
    for one in verified:
        assert one.position <= 1e-4 * (1 + 1e-6)
        assert not one.rotation > 1e-3 * (1 + 1e-6)
        assert one.violation <= 1e-9
        assert one.claimed


def test_success_in_one_attempt_that_took_no_longer_than_the_budget_is_success_in_the_budget(short):
    for one in short.trials:
        if one.kind in (ATTEMPT, TRACK) and one.verified and one.seconds <= 0.02:
            assert one.in_budget
        if one.in_budget:
            assert one.budget_seconds <= 0.02


def test_the_default_solver_does_what_it_says(short):
    for row in short.select(solvers="lm"):
        assert row.violations == 0
        assert row.jumps in (None, 0)
    assert short.row("lm", "closed_loop", "pose").first_attempt_share == 1.0
    assert short.row("lm", "6r_wrist", "out_of_reach").optimality == pytest.approx(1.0, abs=0.01)


def test_there_are_curves_that_fall(short):
    curves = [one for one in short.trials if one.kind == CURVE]
    assert len(curves) >= 0.9 * len(short.rows)
    for one in curves:
        assert len(one.curve) == len(one.curve_at)
        assert (np.diff(one.curve_at) > 0).all()
        assert (np.diff(one.curve) <= 0).all()


def test_an_idle_call_is_timed_and_makes_no_iteration(short):
    idle = [one for one in short.trials if one.kind == CALL]
    assert len(idle) == len(short.rows)
    assert all(one.seconds > 0 for one in idle)
    for task in TASKS:
        one = exercise("two_hands", task)
        solution = cells.make_case_solver(one, "dls").solve(start_targets(one), np.array(one.starts[0]))
        assert solution.success
        assert solution.iterations == 0


def test_a_wrist_has_several_branches(short):
    row = short.row("lm", "6r_wrist", "pose")
    assert row.branches_known is not None
    assert row.branches_known >= 2
    assert short.row("lm", "3r_planar", "point").branches is None  # one freedom is left over: infinitely many


def test_it_can_be_read_in_many_ways(short):
    assert repr(short).startswith("<comparison of 3 solvers, 3 robots, 7 tasks; ")
    assert "6R wrist (Puma 560), near singular" in short.table()
    assert len(short.overview().splitlines()) == 4
    assert "### closed loop (Stewart platform): path" in short.markdown()
    assert short.about["machine"]["processor"]


def test_the_outcome_of_one_attempt_is_the_same_each_time(short):
    again = mk.compare(
        robots=["3r_planar", "closed_loop"], solvers=SHORT["solvers"], tasks=["pose", "path", "out_of_reach"],
        quick=True, targets=5, progress=False, patience=1.0,
    )  # fmt: skip

    def outcomes(comparison):
        tried = [one for one in comparison.trials if one.kind in (ATTEMPT, TRACK)]
        return {(*one.case_key, one.target): (one.verified, one.iterations) for one in tried}

    before, after = outcomes(short), outcomes(again)
    shared = before.keys() & after.keys()
    assert len(shared) > 50
    assert {key: before[key] for key in shared} == {key: after[key] for key in shared}


# ---- everybody gets the same ----------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_every_solver_gets_the_same_targets_starts_and_tolerances(task, monkeypatch):
    one = exercise("6r_wrist", task)
    seen = {}
    solve = Solver.solve

    def spy(self, targets, q0, **options):
        asked = [(goal.tolerance, goal.angle_tolerance) for goal in self.objectives]
        seen.setdefault(self.method.name, []).append((np.array(targets, dtype=object).tolist(), q0.tolist(), asked))
        return solve(self, targets, q0, **options)

    monkeypatch.setattr(Solver, "solve", spy)
    for name in ("lm", "dls"):
        trials = run(one, name, replace(PACE, budget=1e-9))
        assert len([t for t in trials if t.kind in (ATTEMPT, TRACK)]) == len(one.targets)
    if task == "path":  # each goes on from its own answers; but they begin alike
        seen = {name: calls[:1] for name, calls in seen.items()}
    assert repr(seen["lm"]) == repr(seen["dls"])


# ---- nobody is believed -----------------------------------------------------------------------------


@dataclass
class Liar:
    """A solver that says it has succeeded, wherever it is."""

    method: object = None

    def solve(self, targets, q0, **options):
        return Answer(q0)


@dataclass
class Answer:
    q: np.ndarray
    success: bool = True
    iterations: int = 1
    status: mk.Status = mk.Status.CONVERGED
    history: None = None


def test_a_solver_that_lies_is_found_out(monkeypatch):
    monkeypatch.setattr(cells, "make_case_solver", lambda exercise, solver: Liar())
    for task in TASKS:
        tried = [one for one in run(exercise("7r", task), "liar") if one.kind in (ATTEMPT, TRACK, BRANCH)]
        assert tried
        assert all(one.claimed and not one.verified and not one.in_budget for one in tried)


def test_answers_outside_the_limits_are_found_out(monkeypatch):
    class Careless(Liar):
        def solve(self, targets, q0, **options):
            return Answer(one.reference_q[0] + 2 * np.pi * (np.arange(7) == 0))

    one = exercise("7r", "pose")
    monkeypatch.setattr(cells, "make_case_solver", lambda exercise, solver: Careless())
    first = next(trial for trial in run(one, "careless") if trial.kind == ATTEMPT)
    assert first.position < 1e-9
    assert first.violation > 1
    assert not first.verified


def test_a_solver_that_returns_rubbish_or_raises_on_the_way_fails_and_the_rest_goes_on(monkeypatch):
    class Moody(Liar):
        calls = 0

        def solve(self, targets, q0, **options):
            self.calls += 1
            if self.calls > 2 and self.calls % 2:
                raise ZeroDivisionError("in a bad mood")
            return Answer(np.full(7, np.nan))

    monkeypatch.setattr(cells, "make_case_solver", lambda exercise, solver: Moody())
    for task in ("pose", "path", "out_of_reach"):
        tried = [one for one in run(exercise("7r", task), "moody") if one.kind in (ATTEMPT, TRACK)]
        assert len(tried) == len(exercise("7r", task).targets)
        assert not any(one.verified for one in tried)
        assert any("in a bad mood" in one.note for one in tried)


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (InvalidOperation("FABRIK cannot shut loops"), "refuses: FABRIK cannot shut loops"),
        (ImportError("no module named 'x'"), "cannot be loaded: no module named 'x'"),
        (ZeroDivisionError("oh"), "fails: ZeroDivisionError: oh"),
    ],
)
def test_what_a_solver_will_not_or_cannot_do_is_said_and_nothing_is_skipped_in_silence(monkeypatch, error, note):
    def refuse(exercise, solver):
        raise error

    monkeypatch.setattr(cells, "make_case_solver", refuse)
    (trial,) = run(exercise("7r", "pose"), "someone")
    assert (trial.kind, trial.note) == (REFUSED, note)


def test_a_slow_solver_gets_fewer_targets_but_some(monkeypatch):
    trials = run(exercise("7r", "pose"), "dls", replace(PACE, patience=1e-9))
    assert len([one for one in trials if one.kind == ATTEMPT]) == cells.MIN_TARGETS


# ---- branches ---------------------------------------------------------------------------------------


def test_answers_are_told_apart_but_not_by_full_turns_or_tolerances():
    one = exercise("6r_wrist", "pose")
    branches, q = SolutionBranches(one, 1), one.reference_q[0]
    turn = np.eye(6)[5] * 2 * np.pi
    flipped = q + np.pi * (np.eye(6)[3] + np.eye(6)[5])
    flipped[4] = -q[4]
    assert branches.branch_index(0, q) == 0
    assert branches.branch_index(0, q + 1e-4) == 0
    assert branches.branch_index(0, q + turn) == 0
    assert branches.branch_index(0, flipped) == 1
    assert branches.branch_index(0, flipped + 1e-4) == 1


def test_joints_that_do_not_move_the_end_make_no_branches():
    one = exercise("6r_wrist", "point")  # the end is the middle of the wrist
    branches, q = SolutionBranches(one, 1), one.reference_q[0]
    assert branches.targets == (0,)
    assert branches.branch_index(0, q + np.diag([0, 0, 0, 1, 1, 1]).sum(axis=0)) == 0
    assert branches.branch_index(0, q + 0.2 * np.eye(6)[1]) == 1


def test_answers_are_isolated_where_nothing_is_left_over():
    for name, task, isolated in (("6r_wrist", "pose", True), ("7r", "pose", False), ("closed_loop", "pose", True)):
        one = exercise(name, task)
        goals = with_targets(one.goals, one.targets[0])
        assert moving_dofs(one.robot, goals, one.reference_q[0])[1] is isolated


# ---- the door ---------------------------------------------------------------------------------------


def test_a_mechanism_of_ones_own_stands_in_for_the_robots_or_beside_them(tmp_path):
    some = {"solvers": "lm", "tasks": "point", "targets": 3, "quick": True, "progress": False}
    mk.save(mk.gallery.scara(), tmp_path / "mine.json")
    found = mk.compare([mk.gallery.scara(), tmp_path / "mine.json"], **some)
    assert [row.robot for row in found.rows] == ["scara", "scara 2"]
    assert found.titles["scara"] == "scara: tool"
    beside = mk.compare(mk.gallery.scara(), robots="3r_planar", link="quill", **some)
    assert [row.robot for row in beside.rows] == ["3r_planar", "scara"]
    assert beside.titles["scara"] == "scara: quill"


@pytest.mark.parametrize(
    ("given", "error", "says"),
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
def test_what_cannot_be_meant_is_refused_at_once(given, error, says):
    with pytest.raises(error, match=says):
        mk.compare(**{"quick": True, "progress": False, **given})


# ---- Ctrl-C, and going on -----------------------------------------------------------------------------


def test_ctrl_c_keeps_what_is_done_and_it_can_be_gone_on_with(tmp_path):
    path = tmp_path / "records.csv"
    asked = {"robots": "3r_planar", "solvers": ["lm", "dls"], "tasks": ["point", "pose", "path"], "quick": True}
    labels = []

    def progress(done, total, label):
        labels.append(label)
        if done == 3:
            raise KeyboardInterrupt

    stopped = mk.compare(**asked, csv=path, progress=progress)
    assert not stopped.is_complete
    assert [(row.task, row.solver) for row in stopped.rows] == [("point", "lm"), ("point", "dls"), ("pose", "lm")]
    assert "interrupted" in repr(stopped)
    assert not path.exists()
    assert partial_path(path).exists()

    labels.clear()
    whole = mk.compare(**asked, csv=path, progress=lambda done, total, label: labels.append(label), resume=True)
    assert whole.is_complete
    assert len(whole.rows) == 6
    assert path.exists()
    assert not partial_path(path).exists()
    assert not any("point" in label for label in labels)  # which all had done, and the rest is done anew
    for solver in asked["solvers"]:
        before, after = (one.row(solver, "3r_planar", "point") for one in (stopped, whole))
        assert (after.trials, after.first_attempt, after.within_budget) == (
            before.trials,
            before.first_attempt,
            before.within_budget,
        )
        assert after.median_seconds == pytest.approx(before.median_seconds, rel=1e-3)
    with pytest.raises(StructureError, match="other settings"):
        mk.compare(**asked, csv=path, progress=False, resume=True, seed=1)


def test_a_function_sees_how_far_it_is():
    seen = []
    mk.compare(
        robots="3r_planar", solvers=["lm", "dls"], tasks="point", quick=True, progress=lambda *facts: seen.append(facts)
    )
    assert seen[0][:2] == (0, 2)
    assert seen[-1] == (2, 2, "")
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
