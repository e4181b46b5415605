"""The Jacobian transpose: the steps of the papers, limits, and rejected problems."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_descent import compare_iterates, is_blocked, step_bounds
from numpy_steps import cases, compare_steps, iterates
from scipy.spatial.transform import Rotation

import mechanik as mk

CASES = cases()
IDS = [case.name for case in CASES]


@pytest.mark.parametrize("relaxation", [1.0, 0.9])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_iterate_is_the_optimal_step_from_its_predecessor(case, relaxation):
    def step(plain, q):
        e, J = plain.residual_and_jacobian(q)
        J = np.where(is_blocked(J.T @ e, *step_bounds(plain, q)), 0.0, J)
        pulled = J @ J.T @ e
        return -relaxation * (e @ pulled) / (pulled @ pulled) * (J.T @ e)

    assert compare_steps(case, "jacobian_transpose", step, relaxation=relaxation) > 0


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_each_iterate_is_the_fixed_step_from_its_predecessor(case):
    def iterates_from(plain, q):
        while True:
            step = np.zeros(plain.mechanism.nv)
            for goal in case.goals:
                step -= 0.02 * goal.weight**2 * goal.jacobian(plain.mechanism, q).T @ goal.residual(plain.mechanism, q)
            q = plain.mechanism.clamp(plain.mechanism.integrate(q, step))
            yield q

    assert compare_iterates(case, "jacobian_transpose", iterates_from, step=0.02) > 0


def modified_dh(rows, q):
    """The frames (n, 4, 4) of joints with modified DH rows (d, a, alpha, theta), written out: Rx Tx Rz Tz."""
    X, frames = np.eye(4), []
    for (d, a, alpha, theta), angle in zip(rows, q, strict=True):
        ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta + angle), np.sin(theta + angle)
        X = X @ np.array(
            [[ct, -st, 0, a], [st * ca, ct * ca, -sa, -d * sa], [st * sa, ct * sa, ca, d * ca], [0, 0, 0, 1]]
        )
        frames.append(X)
    return np.array(frames)


DH_ROWS = np.array(
    [[5, 0, -90, 0], [0, 2, 90, 125], [0, 15, 0, -35], [15, 2, 90, 0], [0, 0, -90, 90], [2, 0, -90, 0]], dtype=float
)
"""d, a (here in cm), alpha and theta of the six-joint arm of the well-known demonstration program."""


@pytest.mark.parametrize("unit", [1.0, 0.01])
@pytest.mark.parametrize("is_pose", [False, True])
def test_the_fixed_step_is_the_update_of_the_original_method(unit, is_pose):
    """Its residual had lengths relative to the size of the arm. Now: q + alpha J'e, columns of J (z x (p - p_i), z)."""
    rows = DH_ROWS * [unit, unit, np.pi / 180, np.pi / 180]
    arm = mk.from_dh(rows, convention="modified", columns="d a alpha theta", degrees=False)
    tool, rng, alpha = list(arm.links)[-1], np.random.default_rng(1), 0.05 if unit < 1 else 1e-4
    for _ in range(5):
        q = rng.uniform(-2, 2, 6)
        target = modified_dh(rows, q + rng.uniform(-0.4, 0.4, 6))[-1]
        goal = mk.PoseGoal(tool, target) if is_pose else mk.PositionGoal(tool, target[:3, 3])
        solver, seen = mk.Solver(arm, goal, solver="jacobian_transpose", step=alpha), []
        solver.solve(q0=q, max_iterations=20, callback=lambda iterate, seen=seen: seen.append(iterate.q))
        assert len(seen) == 20
        for q_solver in seen:
            frames = modified_dh(rows, q)
            z, p, p_tool = frames[:, :3, 2], frames[:, :3, 3], frames[-1, :3, 3]
            e, J = target[:3, 3] - p_tool, np.cross(z, p_tool - p).T
            if is_pose:
                e = np.concatenate([e, Rotation.from_matrix(target[:3, :3] @ frames[-1, :3, :3].T).as_rotvec()])
                J = np.concatenate([J, z.T])
            q = q + alpha * J.T @ e
            np.testing.assert_allclose(q_solver, q, rtol=0, atol=1e-12)


def test_the_fixed_step_has_the_unit_of_each_joint():
    """A revolute and a prismatic joint in polar coordinates: J = [[-r s, c], [r c, s]]."""
    builder = mk.Builder("polar arm")
    builder.revolute("angle", "base", "beam", axis="z")
    builder.prismatic("radius", "beam", "slide", axis="x")
    builder.fixed("end", "slide", "tip", at=(2, 0, 0))
    target, q, seen = np.array([1.0, 2.5]), np.array([0.2, 1.0]), []
    solver = mk.Solver(builder.build(), mk.PositionGoal("tip", [*target, 0]), solver="jacobian_transpose", step=0.05)
    solver.solve(q0=q, max_iterations=10, callback=lambda iterate: seen.append(iterate.q))
    for q_solver in seen:
        c, s, r = np.cos(q[0]), np.sin(q[0]), q[1] + 2
        q = q + 0.05 * np.array([[-r * s, c], [r * c, s]]).T @ (target - r * np.array([c, s]))
        np.testing.assert_allclose(q_solver, q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_iterate_leaves_the_limits(case):
    solver = mk.Solver(case.mechanism, case.goals, solver="jacobian_transpose")
    assert all(case.mechanism.space.within_limits(q) for q in iterates(solver, case.q0, 30))


def test_a_joint_pushed_against_its_limit_does_not_change_the_step_of_the_others():
    arm = mk.gallery.planar_3r()
    goal = mk.PositionGoal(list(arm.links)[-1], (0.3, 0.6, 0.0))
    first = next(iter(arm.joints))
    value = 0.2
    q0 = np.array([value, 0.5, 0.5])
    at_limit = mk.Solver(arm, goal, solver="jacobian_transpose", limits={first: (-3.0, value)}).step(q0=q0).q
    locked = mk.Solver(arm, goal, solver="jacobian_transpose", lock=first).step(q0=q0).q
    free = mk.Solver(arm, goal, solver="jacobian_transpose").step(q0=q0).q
    assert free[0] > value  # it would go over
    np.testing.assert_allclose(at_limit, locked, atol=1e-12)


def test_a_loop_is_closed_when_the_goal_is_met():
    bars = mk.gallery.four_bar()
    q0 = bars.clamp(bars.integrate(bars.q, np.full(bars.nv, 0.1)))
    solution = mk.Solver(bars, solver="jacobian_transpose").solve(None, q0)
    assert solution.success


def test_the_same_call_gives_the_same_solution():
    case = CASES[0]
    solver = mk.Solver(case.mechanism, case.goals, solver="jacobian_transpose")
    assert np.array_equal(solver.solve(q0=case.q0).q, solver.solve(q0=case.q0).q)


def test_soft_objectives_and_levels_are_rejected():
    arm = mk.gallery.ur5()
    goal = mk.PositionGoal("tool0", (0.3, 0.2, 0.5))
    with pytest.raises(mk.errors.InvalidOperation, match="Jacobian transpose does not support soft objectives"):
        mk.Solver(arm, goal, solver="jacobian_transpose", rest=arm.q)
    with pytest.raises(mk.errors.InvalidOperation, match="Jacobian transpose does not support priority levels"):
        mk.Solver(arm, [goal, mk.PositionGoal("wrist_3_link", (0, 0, 1), level=2)], solver="jacobian_transpose")


@pytest.mark.parametrize(
    "options", [{"step": 0.0}, {"step": -0.1}, {"step": "best"}, {"relaxation": 0.0}, {"relaxation": 2.0}], ids=str
)
def test_an_invalid_option_is_rejected_by_name(options):
    with pytest.raises(mk.errors.LimitsError, match=next(iter(options))):
        mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.3, 0.2, 0.5)), solver="jacobian_transpose", **options)
