"""Every option of the solver of a graph has its documented effect."""

from __future__ import annotations

import numpy as np
import pytest
from counted_clock import count_clock_readings
from graph_arms import four_bar, hang, planar_arm, point_goal, spatial_arm
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_internals import packed_problem, row_length_units

import mechanik as mk
from mechanik import Status
from mechanik.errors import LimitsError, MechanikError, NotFinite, UnknownName


def distant_reachable_goal(**options):
    """A spatial arm with a distant goal within reach."""
    root, _joints, tip = spatial_arm()
    mechanism = mk.Mechanism(root)
    goal = mk.Goal("want")
    goal.matrix = mechanism.pose("arm_tip", mechanism.q + 0.5)
    goal.make_closure(tip)
    return mk.Solver(root, **options), goal, tip


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_the_iteration_limit_is_never_exceeded(count):
    """The original took one more."""
    solver, _goal, _tip = distant_reachable_goal(max_iterations=count)
    before = solver.mechanism.q
    solution = solver.solve()
    assert solution.iterations <= count
    assert solution.status is Status.TIMEOUT
    assert (np.abs(solution.q - before).max() > 0) == (count > 0)


def test_single_steps_converge_to_the_same_solution_and_no_step_is_worse():
    solver, goal, tip = distant_reachable_goal()
    weights = np.repeat([1.0 / row_length_units(solver)[0], 1.0], 3)
    errors = [np.linalg.norm(weights * solver.residual())]
    for _ in range(60):
        solution = solver.step()
        errors.append(np.linalg.norm(weights * solver.residual()))
        if solution.success:
            break
    assert solution.success
    assert len(errors) > 3
    assert (np.diff(errors) < 0).all()
    np.testing.assert_allclose(tip.world_matrix, goal.world_matrix, atol=1e-5)


@pytest.mark.parametrize("damping", [None, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("svd", [False, True])
def test_fixed_and_adaptive_damping_converge_with_either_linear_solver(damping, svd):
    """In the original, singular values gave NaN, or threw; lengths were divided by the size of the arm there."""
    size = packed_problem(distant_reachable_goal()[0]).length_unit
    solver, goal, tip = distant_reachable_goal(damping=damping, svd=svd, max_iterations=500, position_weight=1 / size)
    solution = solver.solve()
    assert solution.success, solution
    np.testing.assert_allclose(tip.world_matrix, goal.world_matrix, atol=1e-5)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_singular_values_and_cholesky_take_the_same_steps(seed):
    rng = np.random.default_rng(seed)
    root, _joints, tip = spatial_arm()
    point_goal(tip, position=rng.uniform(-1.5, 1.5, 3))
    mechanism = mk.Mechanism(root)
    q0 = mechanism.random(rng)
    # with a given damping there are no second derivatives, by which a few arms come to a nearly singular matrix,
    # and rounding decides
    solvers = [mk.Solver(mechanism, svd=svd, damping=1e-3) for svd in (False, True)]
    ends = [solver.solve(q0=q0, max_iterations=3).q for solver in solvers]
    np.testing.assert_allclose(*ends, atol=1e-7)


@pytest.mark.parametrize("svd", [False, True])
@pytest.mark.parametrize("value", [0.0, np.pi])
def test_straight_and_folded_poses_give_no_nan(svd, value):
    root, _joints, tip = planar_arm(value=value)
    goal = point_goal(tip, position=(0.5, 0.5, 3.0))
    solution = mk.Solver(root, svd=svd).solve()
    assert np.isfinite(solution.q).all()
    assert solution.status is Status.CLOSEST
    np.testing.assert_allclose(tip.world_position[:2], goal.position[:2], atol=1e-4)


def test_the_stall_tolerance_does_not_depend_on_the_unit_of_length():
    """In the original, one threshold counted metres and radians alike."""
    outcomes = []
    for scale in (1e-3, 1.0, 1e3):
        root = mk.Link("root")
        slide, cart = hang(root, "cart", dof=["X", "EZ"])
        _, arm = hang(cart, "arm", at=(scale, 0, 0), values=0.3)
        _, tip = hang(arm, "tip", dof=(), at=(scale, 0, 0))
        slide.set_limits([-scale, -3], [scale, 3])
        point_goal(tip, position=(5 * scale, 3 * scale, 0))
        solution = mk.Solver(root, smallest_step=1e-2).solve()
        outcomes.append((solution.status, solution.iterations, solution.q / (scale, 1, 1)))
    assert outcomes[0][:2] == outcomes[1][:2] == outcomes[2][:2]
    assert outcomes[0][0] is Status.STALLED
    np.testing.assert_allclose(outcomes[0][2], outcomes[1][2], atol=1e-9)
    np.testing.assert_allclose(outcomes[2][2], outcomes[1][2], atol=1e-9)


def test_a_larger_gradient_tolerance_stops_earlier():
    counts = []
    for slope in (1e-2, 1e-8):
        root, _, tip = planar_arm()
        point_goal(tip, position=(3, 9, 0))
        counts.append(mk.Solver(root, smallest_gradient=slope).solve().iterations)
    assert counts[0] < counts[1]


def test_position_errors_of_distant_goals_are_clamped():
    moved = []
    for largest in (np.inf, 0.1):
        root, _, tip = planar_arm()
        goal = point_goal(tip)
        start = tip.world_position
        goal.position = start + np.array([-0.5, -1.0, 0])
        solver = mk.Solver(root, largest_error=largest)
        solver.step()
        moved.append(np.linalg.norm(tip.world_position - start))
        assert solver.solve().success
    assert moved[1] < 0.12 < moved[0]


def test_rotation_errors_of_distant_goals_are_clamped():
    turned = []
    for largest in (np.inf, 0.1):
        root, joints, tip = planar_arm(joints=1, value=0.0)
        goal = mk.Goal("turn", dof=["EX", "EY", "EZ"], wxyz=(np.cos(0.5), 0, 0, np.sin(0.5)))
        goal.make_closure(tip)
        solver = mk.Solver(root, largest_angle_error=largest)
        solver.step()
        turned.append(joints[0].values[0])
        assert solver.solve().success
    assert 0 < turned[1] <= 0.1 < turned[0]


def test_weights_decide_between_a_position_and_a_rotation_in_conflict():
    errors = {}
    for name, options in {
        "position": {"position_weight": 100.0},
        "even": {},
        "rotation": {"rotation_weight": 100.0},
    }.items():
        root, _, tip = planar_arm(joints=2)
        goal = mk.Goal("want", dof=["X", "Y", "EZ"], position=(1.2, 0.9, 0))
        goal.make_closure(tip)
        errors[name] = mk.Solver(root, **options).solve().errors["want"]
    assert errors["position"].position < errors["even"].position < errors["rotation"].position
    assert errors["rotation"].rotation < errors["even"].rotation < errors["position"].rotation


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_rest_factor_moves_that_share_of_the_distance_in_one_solve(share):
    root = mk.Link("root")
    joint, _ = hang(root, "body", dof=["X", "EZ"], values=(1.0, 0.4))
    joint.set_rest_pose(2.0, 0.0)
    mk.Solver(root, rest_factor=share).solve()
    np.testing.assert_allclose(joint.values, (1.0 + share, 0.4 - 0.4 * share), atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_rest_factor_applies_to_spherical_and_loop_closing_joints(share):
    root = mk.Link("root")
    ball, _ = hang(root, "ball", dof=["EX", "EY", "EZ"])
    ball.set_rest_pose(0.0, 0.0, 0.8)
    mk.Solver(root, rest_factor=share).solve()
    np.testing.assert_allclose(ball.values, (0, 0, 0.8 * share), atol=1e-6)

    root, _, _, _, pin = four_bar()
    start = pin.values[0]
    pin.set_rest_pose(start + 0.2)
    mk.Solver(root, rest_factor=share).solve()
    assert pin.values[0] == pytest.approx(start + 0.2 * share, abs=1e-6)


def test_a_straight_arm_leaves_its_pose_only_with_a_perturbation():
    for perturbation, leaves in ((0.0, False), (0.02, True)):
        root, _, tip = planar_arm(value=0.0)
        point_goal(tip, position=(2, 0, 0))
        assert mk.Solver(root, perturbation=perturbation, restarts=0).solve().success is leaves


def test_options_of_one_call_do_not_affect_the_next():
    solver, _goal, _tip = distant_reachable_goal()
    assert solver.solve(max_iterations=1).status is Status.TIMEOUT
    assert solver.solve().success


def test_at_the_time_limit_the_current_configuration_and_the_status_timeout_are_returned(monkeypatch):
    count_clock_readings(monkeypatch)
    root, _, tip = planar_arm()
    point_goal(tip, position=(9, 9, 9))
    solution = mk.Solver(root, restarts=100_000, max_seconds=0.02).solve()
    assert solution.status is Status.TIMEOUT
    assert 1 < solution.attempts < 100_000


BAD = [
    ({"max_iterations": -1}, LimitsError, "max_iterations"),
    ({"max_iterations": 2.5}, LimitsError, "max_iterations"),
    ({"max_seconds": -1}, LimitsError, "max_seconds"),
    ({"max_seconds": float("nan")}, NotFinite, "max_seconds"),
    ({"damping": 0.0}, LimitsError, "damping"),
    ({"damping": "little"}, MechanikError, "damping"),
    ({"rest_factor": 1.5}, LimitsError, "rest_factor"),
    ({"largest_error": 0.0}, LimitsError, "largest_error"),
    ({"position_weight": -1.0}, LimitsError, "position_weight"),
    ({"smallest_step": -1e-3}, LimitsError, "smallest_step"),
    ({"max_iteration": 5}, UnknownName, "Did you mean 'max_iterations'"),
]


@pytest.mark.parametrize(("options", "kind", "message"), BAD, ids=[str(options) for options, _, _ in BAD])
def test_invalid_options_are_rejected_by_name(options, kind, message):
    root, _, tip = planar_arm()
    point_goal(tip)
    with pytest.raises(kind, match=message):
        mk.Solver(root, **options)
    with pytest.raises(kind, match=message):
        mk.Solver(root).solve(**options)
