"""What every method has in common: stopping, callbacks, history, limits, locks, and a verified solution."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import InvalidArgument, InvalidOperation, LimitsError, UnknownName
from mechanik.solver.methods.method_registry import find_method

TOOL = "tool0"
NAMES = sorted(mk.METHODS)
DRAWN = {"annealing", "evolution"}
AT_ONCE = {"closed_form"}
"""Needs no second iteration."""


def with_limits(arm: mk.Mechanism) -> mk.Mechanism:
    for joint in arm.joints.values():
        if joint.dof:
            joint.set_limits(-2.5, 2.5)
    return arm


ARM = with_limits(mk.gallery.ur5())


def reachable(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A pose that can be reached, and a start not far from it."""
    rng = np.random.default_rng(seed)
    q = ARM.space.random(rng)
    return ARM.pose(TOOL, q), ARM.clamp(q + rng.uniform(-0.3, 0.3, len(q)))


def solver_of(name: str, **options) -> mk.Solver:
    """For a pose if the method takes poses, for a point else."""
    try:
        return mk.Solver(ARM, mk.PoseGoal(TOOL, np.eye(4)), solver=name, **options)
    except InvalidOperation:
        return mk.Solver(ARM, mk.PositionGoal(TOOL, (0, 0, 0)), solver=name, **options)


def target_of(ik: mk.Solver, X: np.ndarray) -> np.ndarray:
    return X if isinstance(ik.objectives[0], mk.PoseGoal) else X[:3, 3].copy()


@pytest.mark.parametrize("name", NAMES)
def test_a_method_describes_itself(name):
    kind = find_method(name)
    assert kind.name == name
    assert kind.title
    assert any(character.isdigit() for character in kind.citation), "a citation has a year"
    assert kind.__doc__
    assert "Attributes" in kind.__doc__ or not fields(kind)
    for field in fields(kind):
        assert field.name in kind.__doc__, f"the option {field.name} is not explained"


@pytest.mark.parametrize("name", NAMES)
def test_history_and_callbacks_agree(name):
    ik = solver_of(name)
    X, q0 = reachable(1)
    seen: list[mk.Iterate] = []
    solution = ik.solve(
        target_of(ik, X), q0, history=True, callback=lambda iterate: seen.append(iterate), rng=np.random.default_rng(3)
    )
    assert solution.history is not None
    assert [iterate.error for iterate in seen] == solution.history.tolist()
    assert [iterate.number for iterate in seen] == list(range(1, len(seen) + 1))
    assert len(seen) == solution.iterations
    if solution.success:
        np.testing.assert_array_equal(seen[-1].q, solution.q)
    for iterate in seen:
        assert bool(np.all(ARM.space.within_limits(iterate.q)))


@pytest.mark.parametrize("name", NAMES)
def test_step_is_the_first_iteration_of_solve(name):
    ik = solver_of(name)
    X, q0 = reachable(2)
    seen: list[mk.Iterate] = []
    options = {"perturbation": 0.0} if name == "lm" else {}
    ik.solve(
        target_of(ik, X), q0, callback=lambda iterate: seen.append(iterate), rng=np.random.default_rng(3), **options
    )
    once = ik.step(target_of(ik, X), q0, rng=np.random.default_rng(3))
    assert once.iterations == 1
    np.testing.assert_allclose(once.q, seen[0].q, atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(NAMES) - AT_ONCE))
def test_a_callback_can_stop_every_method(name):
    ik = solver_of(name)
    X, q0 = reachable(4)
    X = X.copy()
    X[:3, 3] = (3.0, 0.0, 0.0)  # out of reach, so that none is done at once
    seen: list[mk.Iterate] = []

    def enough(iterate: mk.Iterate) -> bool:
        seen.append(iterate)
        return len(seen) == 2

    solution = ik.solve(target_of(ik, X), q0, callback=enough)
    assert len(seen) in (2, 3), "the compiled solver shows where it has ended once more"
    assert solution.status is mk.Status.STOPPED
    assert not solution.success


@pytest.mark.parametrize("name", NAMES)
def test_time_and_iteration_limits_hold(name):
    ik = solver_of(name)
    far = np.eye(4)
    far[:3, 3] = (3.0, 0.0, 0.0)
    slow = ik.solve(target_of(ik, far), reachable(5)[1], max_seconds=0.02, max_iterations=10**7, restarts=10**6)
    assert not slow.success
    assert slow.attempts < 10**6, "for there was no time"
    few = ik.solve(target_of(ik, far), reachable(5)[1], max_iterations=3)
    assert few.iterations <= 3
    none = ik.solve(target_of(ik, far), reachable(5)[1], max_iterations=0)
    np.testing.assert_array_equal(none.q, reachable(5)[1])


@pytest.mark.parametrize("name", NAMES)
def test_success_means_that_the_goal_is_met_and_no_limit_is_violated(name):
    ik = solver_of(name)
    solved = 0
    for seed in range(10):
        X, q0 = reachable(seed)
        solution = ik.solve(target_of(ik, X), q0, restarts=5)
        error = ik.objectives[0].with_target(target_of(ik, X)).error(ARM, solution.q)
        met = error.position <= 1e-6 and error.rotation <= 1e-6
        assert solution.success == met, solution
        assert (solution.status is mk.Status.CONVERGED) == solution.success
        assert bool(np.all(ARM.space.within_limits(solution.q)))
        solved += solution.success
    assert solved >= 1, f"{name} solves none of ten problems that start close by"


@pytest.mark.parametrize("name", NAMES)
def test_a_solve_does_not_move_the_mechanism(name):
    before = ARM.q.copy()
    X, q0 = reachable(7)
    ik = solver_of(name)
    q0_before = q0.copy()
    ik.solve(target_of(ik, X), q0)
    np.testing.assert_array_equal(ARM.q, before)
    np.testing.assert_array_equal(q0, q0_before)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_call_gives_the_same_solution(name):
    ik = solver_of(name)
    X, q0 = reachable(8)
    first, second = (ik.solve(target_of(ik, X), q0, rng=np.random.default_rng(5), restarts=2) for _ in range(2))
    np.testing.assert_array_equal(first.q, second.q)
    assert first.iterations == second.iterations


@pytest.mark.parametrize("name", sorted(set(NAMES) - AT_ONCE))
def test_a_locked_joint_does_not_move(name):
    ik = solver_of(name)
    X, q0 = reachable(9)
    solution = ik.solve(target_of(ik, X), q0, lock=["elbow_joint"], restarts=2)
    k = ARM.space.q_names.index("elbow_joint")
    assert solution.q[k] == q0[k]
    assert np.any(solution.q != q0)


@pytest.mark.parametrize("name", NAMES)
def test_limits_of_a_call_hold(name):
    ik = solver_of(name)
    X, q0 = reachable(10)
    k = ARM.space.q_names.index("elbow_joint")
    low, high = q0[k] - 0.01, q0[k] + 0.01
    solution = ik.solve(target_of(ik, X), q0, limits={"elbow_joint": (low, high)})
    assert low <= solution.q[k] <= high


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_is_rejected_with_the_known_options(name):
    with pytest.raises(UnknownName, match="option"):
        solver_of(name, no_such_option=3)
    with pytest.raises(UnknownName, match="option"):
        solver_of(name).solve(None, ARM.q, no_such_option=3)


@pytest.mark.parametrize("name", NAMES)
def test_levels_soft_objectives_and_loops_are_supported_or_rejected(name):
    """A method rejects what it does not support, and names a method that does."""
    X, q0 = reachable(11)
    levels = [mk.PositionGoal(TOOL, X[:3, 3], level=1), mk.OrientationGoal(TOOL, X[:3, :3], level=2)]
    with_rest_pose = [mk.PositionGoal(TOOL, X[:3, 3]), mk.RestPose(q0)]
    hexapod = mk.gallery.stewart_platform()
    loop = [mk.PoseGoal("platform", hexapod.pose("platform"))]
    for mechanism, goals in ((ARM, levels), (ARM, with_rest_pose), (hexapod, loop)):
        try:
            ik = mk.Solver(mechanism, goals, solver=name)
        except InvalidOperation as rejection:
            instead = str(rejection).split("solver='")[1].split("'")[0]
            assert mk.Solver(mechanism, goals, solver=instead).solve() is not None
        else:
            solution = ik.solve(q0=mechanism.q if mechanism is hexapod else q0)
            assert math.isfinite(float(np.sum(solution.q)))


def test_a_method_may_be_given_as_an_object():
    from mechanik.solver.methods.least_squares_methods import DampedLeastSquares

    by_object = mk.Solver(ARM, mk.PoseGoal(TOOL, np.eye(4)), solver=DampedLeastSquares(damping=0.3))
    by_name = mk.Solver(ARM, mk.PoseGoal(TOOL, np.eye(4)), solver="dls", damping=0.3)
    X, q0 = reachable(12)
    np.testing.assert_array_equal(by_object.solve(X, q0).q, by_name.solve(X, q0).q)
    assert by_object.solve(X, q0, damping=0.05).iterations != by_name.solve(X, q0).iterations


def test_an_unknown_method_is_rejected():
    with pytest.raises(UnknownName, match="Did you mean 'sdls'"):
        mk.Solver(ARM, mk.PositionGoal(TOOL, (0, 0, 0)), solver="sdlss")
    with pytest.raises(InvalidArgument, match="solver must be the name"):
        mk.Solver(ARM, mk.PositionGoal(TOOL, (0, 0, 0)), solver=3)  # type: ignore[arg-type]
    with pytest.raises(LimitsError):
        mk.Solver(ARM, mk.PositionGoal(TOOL, (0, 0, 0)), max_iterations=-1)
    with pytest.raises(InvalidArgument, match="callback"):
        mk.Solver(ARM, mk.PositionGoal(TOOL, (0, 0, 0))).solve(callback=3)  # type: ignore[arg-type]


def test_a_graph_can_be_solved_by_any_method():
    """Joints hold their values after `solve`, whatever the method."""
    arm = with_limits(mk.gallery.ur5())
    X, q0 = reachable(13)
    arm.q = q0
    goal = mk.Goal("there", position=X[:3, 3], wxyz=mk.spatial.quaternion.from_matrix(X[:3, :3]))
    goal.make_closure(arm.link(TOOL))
    solution = mk.Solver([*arm.roots, goal], solver="dls").solve(max_iterations=1000)
    assert solution.success
    np.testing.assert_allclose(arm.pose(TOOL), X, atol=1e-5)
