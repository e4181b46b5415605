"""The report of a solution: status, reasons, history, time, restarts, subproblems."""

from __future__ import annotations

import math
import pickle
import time

import numpy as np
import pytest
from counted_clock import count_clock_readings

import mechanik as mk
from mechanik.errors import MechanikError, NotSolved, UnknownName


def arm(**options):
    return mk.arm_2d([1.0, 0.8, 0.5], **options)


def two_arms():
    """Two arms of two links on one base that share nothing."""
    builder = mk.Builder("two arms")
    for side, y in (("left", 1.0), ("right", -1.0)):
        builder.revolute(f"{side}_shoulder", "base", f"{side}_upper", at=(0, y, 0))
        builder.revolute(f"{side}_elbow", f"{side}_upper", f"{side}_fore", at=(1, 0, 0), value=0.7)
        builder.fixed(f"{side}_wrist", f"{side}_fore", f"{side}_hand", at=(1, 0, 0))
    return builder.build()


REACHED, FAR = mk.PositionGoal("tool", (1.0, 1.2, 0), name="here"), mk.PositionGoal("tool", (9.0, 0, 0), name="far")
BENT = np.array([0.4, 0.7, 0.6])


# ---- report -------------------------------------------------------------------------------------


def test_a_solution_prints_as_one_line_with_its_status():
    solved = mk.Solver(arm(), REACHED).solve(q0=BENT)
    missed = mk.Solver(arm(), FAR).solve(q0=BENT)
    for solution in (solved, missed):
        assert "\n" not in str(solution)
        assert len(str(solution)) < 400
    assert "solved" in str(solved)
    assert "not solved" in str(missed)
    assert "CLOSEST" in str(missed)
    assert "far" in str(missed)  # which objective
    assert "6.7 m" in str(missed)  # by how much


def test_require_gives_the_solution_or_an_error_that_carries_it():
    solver = mk.Solver(arm(), REACHED)
    solution = solver.solve(q0=BENT)
    assert solution.require() is solution
    with pytest.raises(NotSolved, match="far") as caught:
        mk.Solver(arm(), FAR).solve(q0=BENT).require()
    assert caught.value.solution.status is mk.Status.CLOSEST
    assert isinstance(caught.value, MechanikError)


def test_values_are_read_by_joint_and_an_unknown_joint_is_rejected_with_the_nearest_name():
    solution = mk.Solver(arm(), REACHED).solve(q0=BENT)
    assert [solution[f"joint{k}"] for k in (1, 2, 3)] == solution.q.tolist()
    assert solution.values["joint2"] == solution.q[1]
    with pytest.raises(UnknownName, match="joint3"):
        solution["joint33"]


def test_values_of_mimic_and_loop_closing_joints_are_read():
    mechanism = mk.gallery.four_bar()
    before = mechanism.q
    solution = mk.Solver(mechanism, mk.JointValues({"crank_joint": 1.0})).solve(q0=before)
    here = solution["closing_joint"]
    np.testing.assert_array_equal(mechanism.q, before)  # reading moves nothing
    mechanism.apply(solution)
    assert mechanism.closure("closing_joint").joint_values()[0] == pytest.approx(here, abs=1e-9)


def test_the_mechanism_moves_only_by_apply():
    mechanism = arm()
    mechanism.q = BENT
    solution = mk.solve(mechanism, REACHED)
    np.testing.assert_array_equal(mechanism.q, BENT)
    mechanism.apply(solution)
    np.testing.assert_array_equal(mechanism.q, solution.q)


def test_errors_unmet_goals_limits_and_conflicts_are_named():
    mechanism = arm(limits=(-1.0, 1.0))
    left, right = (
        mk.PositionGoal("tool", (1.5, 0.5, 0), name="left"),
        mk.PositionGoal("tool", (1.5, -0.5, 0), name="right"),
    )
    solution = mk.Solver(arm(), [left, right]).solve(q0=BENT)
    assert set(solution.unmet) == {"left", "right"}
    assert solution.errors["left"].position == pytest.approx(0.5, abs=1e-5)
    assert [set(pair) for pair in solution.conflicts] == [{"left", "right"}]
    assert "conflicts with" in solution.message
    far = mk.Solver(mechanism, mk.PositionGoal("tool", (-2, 0.5, 0), name="behind")).solve(q0=BENT)
    assert far.active_limits
    assert set(far.active_limits.values()) <= {"lower", "upper"}
    assert all(name in far.message for name in far.active_limits)
    assert not mk.Solver(mechanism, mk.PositionGoal("tool", (2.0, 0.5, 0))).solve(q0=BENT).conflicts


def test_objectives_without_a_name_are_labelled_by_number_and_kind():
    solution = mk.Solver(arm(), [mk.PositionGoal("tool", (1, 1, 0)), mk.AxisGoal("tool", (0, 0, 1), level=2)]).solve(
        q0=BENT
    )
    assert list(solution.errors) == ["PositionGoal 0", "AxisGoal 1"]


def test_two_objectives_of_one_name_are_distinguished_or_rejected():
    """Else the errors of one would hide those of the other."""
    goals = [mk.PositionGoal("tool", (9, 0, 0), name="same"), mk.PositionGoal("tool", (1, 1, 0), name="same", level=2)]
    try:
        solution = mk.Solver(arm(), goals).solve(q0=BENT)
    except MechanikError:
        return
    assert len(solution.errors) == 2
    assert "not solved" in str(solution)


def test_the_condition_is_infinite_at_a_singular_pose():
    mechanism = arm()
    point = mk.PoseGoal("tool", np.eye(4), dof=("X", "Y"))
    stretched = mk.Solver(mechanism, point).solve(q0=np.zeros(3), max_iterations=0)
    assert stretched.condition > 1e12
    bent = mk.Solver(mechanism, point).solve(q0=BENT, max_iterations=0)
    J = point.jacobian(mechanism, BENT)
    sizes = np.linalg.svd(J, compute_uv=False)
    assert bent.condition == pytest.approx(sizes[0] / sizes[-1])


def test_reported_errors_are_those_of_the_new_targets():
    solver = mk.Solver(arm(), REACHED)
    for target in (np.array([9.0, 0, 0]), [9.0, 0, 0]):
        solution = solver.solve(target, BENT)
        assert solution.errors["here"].position == pytest.approx(6.7, abs=1e-5)
        assert solution.unmet == ("here",)
    assert solver.solve(q0=BENT).success  # and the target of the solver is still its own


# ---- iterations, history, time ------------------------------------------------------------------


def test_the_iteration_limit_is_never_exceeded():
    """The original solver made one more."""
    mechanism = mk.gallery.panda()
    link = list(mechanism.links)[-1]
    far = mk.PoseGoal(link, mechanism.pose(link, mechanism.random(np.random.default_rng(1))))
    for max_iterations in (0, 1, 2, 5):
        solution = mk.Solver(mechanism, far, max_iterations=max_iterations).solve(q0=mechanism.neutral())
        assert solution.iterations <= max_iterations
        assert solution.success or solution.status is mk.Status.TIMEOUT
    start = mk.Solver(mechanism, far, max_iterations=0).solve(q0=mechanism.neutral())
    np.testing.assert_array_equal(start.q, mechanism.neutral())


def test_the_history_falls_and_ends_with_the_last_error():
    solver = mk.Solver(arm(), FAR, perturbation=0.0, restarts=0)  # a perturbation raises the error before it is undone
    solution = solver.solve(q0=BENT, history=True)
    assert len(solution.history) >= 3
    assert np.all(np.diff(solution.history) <= 1e-12 * solution.history[:-1])
    assert solution.history[-1] == pytest.approx(solution.subproblems[0].residual, rel=1e-6)
    plain = solver.solve(q0=BENT)
    assert plain.history is None
    np.testing.assert_allclose(plain.q, solution.q, atol=1e-9)  # recording the history changes nothing


def test_the_time_limit_holds_and_the_best_configuration_is_returned(monkeypatch):
    """A hard problem that would take seconds: a pose out of reach with thousands of restarts."""
    mechanism = mk.gallery.panda()
    far = np.eye(4)
    far[:3, 3] = (2.0, 0, 0)
    solver = mk.Solver(mechanism, mk.PoseGoal(list(mechanism.links)[-1], far), restarts=100_000)
    count_clock_readings(monkeypatch)
    ends = []
    for allowed in (0.02, 0.08):
        solution = solver.solve(q0=mechanism.neutral(), max_seconds=allowed)
        assert not solution.success
        assert 1 < solution.attempts < 100_000
        assert mechanism.space.within_limits(solution.q)
        assert allowed <= solution.seconds <= allowed + 0.015, "and a few looks on the way out"
        ends.append(solution)
    assert ends[1].attempts > 2 * ends[0].attempts, "what there is of it is used"


def test_a_time_limit_of_zero_still_returns_a_solution():
    mechanism = arm()
    solution = mk.Solver(mechanism, REACHED).solve(q0=BENT, max_seconds=0.0)
    assert np.isfinite(solution.q).all()
    assert solution.success or solution.status is mk.Status.TIMEOUT


def test_a_slow_function_is_not_called_long_after_the_time_limit():
    calls = []

    def slow(mechanism, q):
        calls.append(time.sleep(0.001))
        return np.sin(q) - 2.0

    solution = mk.Solver(arm(), mk.Custom(slow, residual_size=3)).solve(q0=BENT, max_seconds=0.05)
    assert not solution.success
    assert len(calls) < 400


def test_seconds_are_the_elapsed_time(monkeypatch):
    count_clock_readings(monkeypatch)
    solver = mk.Solver(arm(), REACHED)
    start = time.perf_counter()
    solution = solver.solve(q0=BENT)
    assert 0.0 < solution.seconds < time.perf_counter() - start


# ---- restarts -----------------------------------------------------------------------------------


def hard_problem(restarts=0):
    """A target that is not reached from q0, nor by this number of restarts, the first of them from the seed table."""
    mechanism = mk.gallery.panda()
    link, rng = list(mechanism.links)[-1], np.random.default_rng(5)
    solver = mk.Solver(mechanism, mk.PoseGoal(link, np.eye(4)), restarts=restarts)
    while True:
        q0, q1 = mechanism.random(rng, 2)
        if not solver.solve(mechanism.pose(link, q1), q0).success:
            return mechanism, mk.PoseGoal(link, mechanism.pose(link, q1)), q0


def test_restarts_solve_what_a_single_attempt_does_not():
    mechanism, goal, q0 = hard_problem()
    assert not mk.Solver(mechanism, goal, restarts=0).solve(q0=q0).success
    solution = mk.solve(mechanism, goal, q0=q0, restarts=300)
    assert solution.success
    assert solution.attempts > 1


def test_restarts_are_reproducible_with_and_without_a_generator():
    mechanism, goal, q0 = hard_problem(80)
    solver = mk.Solver(mechanism, goal, restarts=300)
    for draw in (lambda seed: np.random.default_rng(seed), lambda seed: None):
        first, second = (solver.solve(q0=q0, rng=draw(3)) for _ in range(2))
        np.testing.assert_array_equal(first.q, second.q)
        assert first.attempts == second.attempts
    configurations = {solver.solve(q0=q0, rng=np.random.default_rng(seed)).q.tobytes() for seed in range(5)}
    assert len(configurations) > 1  # another seed gives another solution


def test_with_restarts_the_best_of_all_is_returned_when_none_succeeds():
    mechanism = arm(limits=(-1.5, 1.5))
    solver = mk.Solver(mechanism, mk.PositionGoal("tool", (-2.0, 0.1, 0)))
    rng = np.random.default_rng(0)
    for _ in range(10):
        q0 = mechanism.random(rng)
        alone, many = solver.solve(q0=q0), solver.solve(q0=q0, restarts=30)
        assert many.errors["PositionGoal 0"].position <= alone.errors["PositionGoal 0"].position + 1e-9
        assert many.status is mk.Status.CLOSEST


def test_restarts_move_only_unlocked_joints():
    mechanism, goal, q0 = hard_problem()
    locked = mechanism.space.q_names[0]
    solution = mk.Solver(mechanism, goal, lock=locked, restarts=30).solve(q0=q0)
    assert solution.q[0] == q0[0]
    assert mk.Solver(mechanism, goal, restarts=30).solve(q0=q0, lock=locked).q[0] == q0[0]


# ---- subproblems --------------------------------------------------------------------------------


def test_independent_arms_are_separate_subproblems_with_their_own_status():
    mechanism = two_arms()
    near, far = (
        mk.PositionGoal("left_hand", (1, 2, 0), name="near"),
        mk.PositionGoal("right_hand", (9, -1, 0), name="far"),
    )
    solution = mk.Solver(mechanism, [near, far]).solve(q0=mechanism.q)
    assert len(solution.subproblems) == 2
    left, right = solution.subproblems
    assert left.objectives == (0,)
    assert right.objectives == (1,)
    assert set(left.joints) == {"left_shoulder", "left_elbow"}
    assert left.status is mk.Status.CONVERGED
    assert right.status is mk.Status.CLOSEST
    assert left.residual == 0.0
    assert right.residual > 0
    assert left.iterations + right.iterations == solution.iterations
    assert solution.status is mk.Status.CLOSEST
    assert not solution.success
    assert solution.unmet == ("far",)
    # as if the other were not there
    alone = mk.Solver(mechanism, near, restarts=0).solve(q0=mechanism.q)
    np.testing.assert_array_equal(solution.q[:2], alone.q[:2])


def test_arms_that_hold_the_same_object_are_one_subproblem():
    mechanism = two_arms()
    goals = [
        mk.PositionGoal("left_hand", (1, 1.5, 0)),
        mk.PositionGoal("right_hand", (0, 0, 0), relative_to="left_hand"),
    ]
    assert len(mk.Solver(mechanism, goals).solve(q0=mechanism.q).subproblems) == 1
    assert len(mk.Solver(mechanism, goals[0]).solve(q0=mechanism.q).subproblems) == 1


def test_a_subproblem_without_goals_does_not_move():
    mechanism = two_arms()
    solution = mk.Solver(mechanism, mk.PositionGoal("left_hand", (1, 2, 0))).solve(q0=mechanism.q)
    np.testing.assert_array_equal(solution.q[2:], mechanism.q[2:])


def test_a_loop_without_goals_is_a_subproblem_of_its_own():
    builder = mk.Builder("loop and arm")
    builder.revolute("a", "ground", "A", value=0.6)
    builder.revolute("b", "A", "B", at=(0.5, 0, 0))
    builder.revolute("c", "ground", "C", at=(2, 0, 0), value=2.0)
    builder.close("pin", "B", "C", "pin", at=(1.8, 0, 0), onto=(1.2, 0, 0))
    builder.revolute("arm", "ground", "hand", at=(0, 5, 0))
    mechanism = builder.build()
    solution = mk.Solver(mechanism, mk.JointValues({"arm": 1.0})).solve(q0=mechanism.q)
    assert solution.success
    assert len(solution.subproblems) == 2
    assert sorted(chain.closures for chain in solution.subproblems) == [(), ("pin",)]
    assert solution.closure_errors["pin"].position < 1e-9


# ---- others -------------------------------------------------------------------------------------


def test_options_can_be_given_to_the_solver_or_to_the_call():
    mechanism, goal, q0 = arm(), FAR, BENT
    for options in (
        {"max_iterations": 2},
        {"svd": True},
        {"damping": 0.1},
        {"perturbation": 0.0},
        {"smallest_step": 1e-3},
    ):
        by_solver = mk.Solver(mechanism, goal, **options).solve(q0=q0)
        by_call = mk.Solver(mechanism, goal).solve(q0=q0, **options)
        np.testing.assert_array_equal(by_solver.q, by_call.q)


def test_the_svd_converges_to_the_same_solution():
    mechanism, rng = mk.gallery.ur5(), np.random.default_rng(0)
    goal = mk.PoseGoal("tool0", np.eye(4))
    plain, svd = mk.Solver(mechanism, goal, restarts=0), mk.Solver(mechanism, goal, svd=True)
    same = 0
    for _ in range(50):
        q0 = mechanism.random(rng)
        target = mechanism.pose("tool0", mechanism.clamp(q0 + rng.uniform(-0.4, 0.4, 6)))
        by_cholesky, by_svd = plain.solve(target, q0), svd.solve(target, q0)
        assert by_cholesky.success == by_svd.success
        same += np.abs(by_cholesky.q - by_svd.q).max() < 1e-5
    assert same >= 48


def test_a_fixed_damping_converges():
    mechanism = arm()
    for damping in (1e-6, 1e-2, 1.0):
        solution = mk.Solver(mechanism, REACHED, damping=damping, max_iterations=2000).solve(q0=BENT)
        assert solution.success, (damping, solution)


def test_clamped_errors_give_shorter_steps():
    mechanism = arm()
    free = mk.Solver(mechanism, FAR, max_iterations=3).solve(q0=BENT)
    held = mk.Solver(mechanism, FAR, max_iterations=3, largest_error=0.05).solve(q0=BENT)
    assert 0 < np.linalg.norm(held.q - BENT) < np.linalg.norm(free.q - BENT)
    end = mk.Solver(mechanism, REACHED, largest_error=0.05, max_iterations=500).solve(q0=BENT)
    assert end.success


def test_a_solver_can_be_shared_by_many_threads():
    from concurrent.futures import ThreadPoolExecutor

    mechanism, rng = mk.gallery.ur5(), np.random.default_rng(0)
    solver = mk.Solver(mechanism, mk.PositionGoal("tool0", (0, 0, 0)))
    starts = mechanism.random(rng, 200)
    targets = [mechanism.pose("tool0", q)[:3, 3].copy() for q in mechanism.random(rng, 200)]
    alone = [solver.solve(target, q).q for target, q in zip(targets, starts, strict=True)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda k: solver.solve(targets[k], starts[k]).q, range(200)))
    np.testing.assert_array_equal(alone, together)


def test_a_solver_follows_edits_of_its_mechanism():
    mechanism = arm()
    solver = mk.Solver(mechanism, REACHED)
    assert solver.solve(q0=BENT).success
    mechanism.joint("joint1").set_limits([0.3], [0.5])
    limited = solver.solve(q0=BENT)
    assert 0.3 <= limited["joint1"] <= 0.5
    short = solver.solve(np.array([1.0, 1.2, 0.0]), BENT)
    assert 0.3 <= short["joint1"] <= 0.5


def test_a_solution_is_unchanged_by_later_solves():
    solver = mk.Solver(arm(), REACHED)
    first = solver.solve(np.array([1.0, 1.2, 0.0]), BENT)
    q, errors = first.q.copy(), str(first.errors)
    solver.solve(np.array([9.0, 0.0, 0.0]), BENT)
    np.testing.assert_array_equal(first.q, q)
    assert str(first.errors) == errors
    assert first.success


def test_the_start_and_the_target_are_not_modified():
    solver = mk.Solver(arm(), REACHED)
    q0, target = BENT.copy(), np.array([1.0, 1.2, 0.0])
    solution = solver.solve(target, q0)
    np.testing.assert_array_equal(q0, BENT)
    target[:] = 99.0
    assert solution.errors["here"].position < 1e-6


def test_a_status_prints_its_name_and_an_error_can_be_pickled():
    assert repr(mk.Status.CLOSEST) == "CLOSEST"
    error = NotSolved("not solved", None)
    assert str(pickle.loads(pickle.dumps(error))) == "not solved"


def test_residual_and_jacobian_of_a_solver_are_those_of_its_objectives():
    mechanism = arm()
    solver = mk.Solver(mechanism, [REACHED, mk.AxisGoal("tool", (0, 1, 1))])
    residual, J = solver.residual(BENT), solver.jacobian(BENT)
    assert residual.shape == (5,)
    assert J.shape == (5, 3)
    for k, step in enumerate(np.eye(3) * 1e-6):
        np.testing.assert_allclose(
            (solver.residual(BENT + step) - solver.residual(BENT - step)) / 2e-6, J[:, k], atol=1e-8
        )
    assert math.isclose(np.linalg.norm(residual[:3]), REACHED.error(mechanism, BENT).position)


def test_objectives_have_unique_names_also_if_one_is_called_like_another_with_its_index():
    arm = mk.gallery.planar_2r()
    goals = [mk.PositionGoal("tool", (0.5, 0.2, 0), name=name) for name in ("a", "a", "a 0")]
    solution = mk.solve(arm, goals)
    assert len(set(solution.names)) == len(solution.errors) == 3
    assert repr(solution)


def test_conflicts_are_listed_in_the_order_of_the_objectives():
    arm = mk.gallery.planar_2r()
    targets = {"first": (1, 0, 0), "second": (-1, 0, 0), "third": (0, 1, 0), "fourth": (0, -1, 0)}
    solution = mk.solve(arm, [mk.PositionGoal("tool", target, name=name) for name, target in targets.items()])
    unmet_names = [name for name, _ in solution.conflicts]
    assert len(set(unmet_names)) >= 2
    assert unmet_names == sorted(unmet_names, key=list(targets).index)
