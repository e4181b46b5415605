"""Solving graphs: build links, joints and goals, make a solver of the roots, move a goal, solve: joints move."""

from __future__ import annotations

import numpy as np
import pytest
from graph_arms import four_bar, hang, planar_arm, point_goal, rocker_angle, spatial_arm, wrap_angle
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik import Status
from mechanik.errors import DoFError, NotFinite

# ---- basic use --------------------------------------------------------------------------------


def test_two_joints_and_a_goal_written_by_hand_are_solved():
    base, upper, lower = mk.Link("base"), mk.Link("upper"), mk.Link("lower", position=(0, 1, 0))
    shoulder = mk.Joint("shoulder", dof="EZ", position=(0, 1, 0), values=np.pi / 4)
    elbow = mk.Joint("elbow", dof="EX", position=(0, 1, 0), values=np.pi / 4)
    base.add_child(shoulder)
    shoulder.add_child(upper)
    upper.add_child(elbow)
    elbow.add_child(lower)
    goal = mk.Goal("reach", position=lower.world_position, wxyz=lower.world_wxyz)
    goal.make_closure(lower)
    solver = mk.Solver(base)
    assert solver.solve().success
    assert shoulder.value("EZ") == pytest.approx(np.pi / 4, abs=1e-9)

    shoulder.set_values(0.5)
    elbow.set_values(0.2)
    goal.world_matrix = lower.world_matrix
    shoulder.set_values(0.1)
    elbow.set_values(0.9)
    solution = solver.solve()
    assert solution.success, solution
    assert [*shoulder.values, *elbow.values] == pytest.approx([0.5, 0.2], abs=1e-6)
    np.testing.assert_allclose(lower.world_matrix, goal.world_matrix, atol=1e-6)


def test_the_joints_take_the_values_of_the_solution():
    root, joints, tip = spatial_arm()
    goal = point_goal(tip)
    solver = mk.Solver(root)
    goal.world_position = tip.world_position + np.array([0.2, -0.1, -0.2])
    solution = solver.solve()
    assert solution.success, solution
    np.testing.assert_array_equal(solver.mechanism.q, solution.q)
    for joint in joints:
        assert solution[joint.name] == joint.values[0]
    np.testing.assert_allclose(tip.world_position, goal.world_position, atol=1e-6)


def test_a_solver_of_a_mechanism_does_not_move_its_joints():
    root, _joints, tip = spatial_arm()
    goal = point_goal(tip)
    goal.position = goal.position + np.array([0.1, 0, 0])
    mechanism = mk.Mechanism(root)
    before = mechanism.q
    solution = mk.Solver(mechanism).solve()
    assert solution.success
    np.testing.assert_array_equal(mechanism.q, before)
    mechanism.apply(solution)
    np.testing.assert_allclose(tip.world_position, goal.position, atol=1e-6)


def test_roots_may_be_given_as_a_list_of_any_frames_of_the_trees():
    root, joints, tip = planar_arm()
    goal = point_goal(tip, position=(1, 1.5, 0))
    for roots in ([root], [goal], [tip], (joints[1], goal), [root, goal, tip]):
        for joint in joints:
            joint.set_values(0.3)
        assert mk.Solver(roots).solve().success
        np.testing.assert_allclose(tip.world_position, (1, 1.5, 0), atol=1e-6)


def test_solving_a_solved_graph_again_changes_nothing():
    root, _, tip = spatial_arm()
    goal = point_goal(tip)
    solver = mk.Solver(root)
    goal.position = goal.position + np.array([0.1, 0.1, 0])
    solver.solve()
    before = solver.mechanism.q
    for _ in range(5):
        assert solver.solve().iterations == 0
    np.testing.assert_array_equal(solver.mechanism.q, before)


# ---- statuses and chains ----------------------------------------------------------------------


def test_each_subproblem_has_its_own_status_and_statistics():
    base = mk.Link("base")
    arms = [planar_arm(name, root=base, at=(0, 5.0 * k, 0)) for k, name in enumerate("abc")]
    goals = [point_goal(tip, name=f"goal_{k}") for k, (_, _, tip) in enumerate(arms)]
    solver = mk.Solver(base)
    goals[0].position = (1.0, 1.0, 0)
    goals[1].position = (10.0, 5.0, 0)  # out of reach
    solution = solver.solve(max_iterations=40)
    assert [chain.status for chain in solution.subproblems] == [Status.CONVERGED, Status.CLOSEST, Status.CONVERGED]
    assert [chain.objectives for chain in solution.subproblems] == [(0,), (1,), (2,)]
    assert solution.subproblems[0].joints == tuple(joint.name for joint in arms[0][1])
    near, far, still = solution.subproblems
    assert near.residual == 0
    assert far.residual > 0.1
    assert still.iterations == 0 < near.iterations
    assert solution.status is Status.CLOSEST
    assert not solution.success
    np.testing.assert_allclose(arms[0][2].world_position, (1, 1, 0), atol=1e-6)  # one that fails holds none back
    np.testing.assert_allclose(arms[1][2].world_position, (3, 5, 0), atol=1e-6)


def test_too_few_iterations_give_the_status_timeout():
    root, _, tip = spatial_arm()
    goal = point_goal(tip)
    goal.position = goal.position + np.array([-0.3, 0.3, -0.5])
    solution = mk.Solver(root, max_iterations=1).solve()
    assert solution.status is Status.TIMEOUT
    assert solution.subproblems[0].iterations == 1


def test_a_goal_with_a_nan_is_rejected_and_nothing_moves():
    """The original took a NaN, and called the outcome STALLED."""
    root, _, tip = planar_arm()
    goal = point_goal(tip)
    solver = mk.Solver(root)
    before = solver.mechanism.q
    with pytest.raises(NotFinite, match="reach"):
        goal.position = (np.nan, 0, 0)
    assert solver.solve().success
    np.testing.assert_array_equal(solver.mechanism.q, before)


def test_arms_on_a_fixed_base_are_separate_subproblems():
    """In the original, fixed joints above both arms glued them together."""
    base = mk.Link("base")
    _, mount = hang(base, "mount", dof=(), at=(0, 0, 1))
    _, left, left_tip = planar_arm("left", root=hang(mount, "left_mount", dof=(), at=(0, 1, 0))[1])
    _, right, right_tip = planar_arm("right", root=hang(mount, "right_mount", dof=(), at=(0, -1, 0))[1])
    point_goal(left_tip, "left_goal"), point_goal(right_tip, "right_goal")
    chains = mk.Solver(base).solve().subproblems
    assert [chain.joints for chain in chains] == [tuple(j.name for j in left), tuple(j.name for j in right)]


def test_arms_on_a_rotating_waist_are_one_subproblem_and_reach_both_goals():
    """In the original, chains that overlap were missed."""
    base = mk.Link("base")
    waist, body = hang(base, "waist")
    _, _, left_tip = planar_arm("left", root=body, at=(0, 0.5, 0), joints=2)
    _, _, right_tip = planar_arm("right", root=body, at=(0, -0.5, 0), joints=2)
    # both at once need the waist: each arm alone reaches 2 m from its shoulder
    left, right = point_goal(left_tip, "left_goal"), point_goal(right_tip, "right_goal")
    left.position, right.position = (-0.4, 2.3, 0), (0.5, -2.2, 0)
    solution = mk.Solver(base).solve()
    assert len(solution.subproblems) == 1
    assert solution.success, solution
    assert waist.values[0] != 0.0
    np.testing.assert_allclose(left_tip.world_position, left.position, atol=1e-6)
    np.testing.assert_allclose(right_tip.world_position, right.position, atol=1e-6)


@pytest.mark.parametrize("given", ["first", "second"])
def test_trees_are_found_through_closures_from_either_side(given):
    first, first_joints, first_tip = planar_arm("first")
    second, second_joints, second_tip = planar_arm("second")
    second.position = (3.0, 0, 0)
    pin = mk.Joint("pin", dof="EZ")
    first_tip.add_child(pin)
    pin.make_closure(second_tip)
    goal = point_goal(second_tip, position=(1.5, 1.5, 0))
    solution = mk.Solver(first if given == "first" else second).solve()
    assert solution.success, solution
    (chain,) = solution.subproblems
    assert chain.closures == ("pin",)
    assert set(chain.joints) == {joint.name for joint in first_joints + second_joints}
    for tip in (first_tip, second_tip):
        np.testing.assert_allclose(tip.world_position, goal.position, atol=1e-6)
    assert pin.closure.gap().is_closed(1e-9)


def test_joints_outside_every_chain_follow_their_targets():
    root, _joints, tip = planar_arm()
    goal = point_goal(tip)
    fan, _ = hang(root, "fan", dof=["Z", "EZ"])
    limited, _ = hang(root, "flap", lower=-0.5, upper=0.5)
    solver = mk.Solver(root)
    fan.set_targets(0.4, 1.0)
    limited.set_targets(2.0)
    goal.position = (1, 1, 0)
    solution = solver.solve()
    assert solution.success, solution
    np.testing.assert_allclose(fan.values, (0.4, 1.0), atol=1e-6)
    assert limited.values[0] == pytest.approx(0.5, abs=1e-6)
    assert len(solution.subproblems) == 4  # the arm, both dofs of the fan, the flap


def test_a_joint_without_a_child_link_does_not_disturb_the_solve():
    root, _, tip = planar_arm()
    goal = point_goal(tip, position=(1, 1, 0))
    lonely = mk.Joint("lonely", dof="EZ")
    root.add_child(lonely)
    lonely.set_targets(0.3)
    lonely.set_rest_pose(0.1)
    assert mk.Solver(root).solve().success
    np.testing.assert_allclose(tip.world_position, goal.position, atol=1e-6)


def test_a_target_angle_is_taken_modulo_full_turns_unless_turns_are_tracked():
    root = mk.Link("root")
    near, _ = hang(root, "near", values=6.0)
    exact, _ = hang(root, "exact", values=6.0)
    exact.track_turns = True
    near.set_targets(0.1)
    exact.set_targets(0.1)
    assert mk.Solver(root).solve().success
    assert near.values[0] == pytest.approx(0.1 + 2 * np.pi, abs=1e-9)
    assert exact.values[0] == pytest.approx(0.1, abs=1e-9)


def test_a_goal_on_the_link_of_a_mimic_joint_moves_its_leader():
    root = mk.Link("root")
    leader, first = hang(root, "first", values=0.1)
    follower, second = hang(first, "second", at=(1, 0, 0))
    follower.mimic(leader, ratio=-2.0, offset=0.5)
    _, tip = hang(second, "tip", dof=(), at=(1, 0, 0))
    leader.set_values(0.8)
    wanted = tip.world_position
    leader.set_values(0.5)
    goal = point_goal(tip, position=wanted)
    solution = mk.Solver(root).solve()
    assert solution.success, solution
    assert leader.values[0] == pytest.approx(0.8, abs=1e-6)
    assert follower.values[0] == pytest.approx(-2 * leader.values[0] + 0.5, abs=1e-12)
    assert goal.closure.gap().is_closed(1e-6)


# ---- targets of joints inside loops -----------------------------------------------------------


@pytest.mark.parametrize("track_turns", [False, True])
def test_a_crank_is_driven_through_full_turns_while_its_loop_stays_closed(track_turns):
    """The original raised, or returned CONVERGED and did not move."""
    root, crank, _, rocker, pin = four_bar()
    crank.track_turns = track_turns
    solver = mk.Solver(root)
    for angle in 0.6 + np.linspace(0, 4 * np.pi, 400):
        crank.set_targets(angle if track_turns else wrap_angle(angle))
        solution = solver.solve()
        assert solution.success, solution
        assert crank.values[0] == pytest.approx(angle, abs=1e-6)
        assert pin.closure.gap().is_closed(1e-9)
        assert wrap_angle(rocker.values[0] - rocker_angle(crank.values[0])) == pytest.approx(0, abs=1e-9)


def test_a_target_that_the_loop_forbids_is_approached_as_far_as_possible():
    root, _crank, _, rocker, pin = four_bar()
    rocker.set_targets(0.0)  # it swings, and gets nowhere near
    solution = mk.Solver(root).solve()
    assert solution.status is Status.CLOSEST
    assert pin.closure.gap().is_closed(1e-9)
    lowest = min(abs(wrap_angle(rocker_angle(angle))) for angle in np.linspace(0, 2 * np.pi, 20001))
    assert abs(wrap_angle(rocker.values[0])) == pytest.approx(lowest, abs=1e-6)


def test_the_joint_that_closes_a_loop_can_be_driven_too():
    root, _, _, _, pin = four_bar()
    wanted = pin.values[0] + 0.2
    pin.set_targets(wanted)
    solution = mk.Solver(root).solve()
    assert solution.success, solution
    assert pin.values[0] == pytest.approx(wanted, abs=1e-6)
    assert pin.closure.gap().is_closed(1e-9)


def test_a_single_dof_of_a_joint_can_have_a_target():
    root = mk.Link("root")
    cart, body = hang(root, "cart", dof=["X", "Y", "EZ"])
    _, tip = hang(body, "tip", dof=(), at=(1, 0, 0))
    point_goal(tip, position=(2, 1, 0))
    cart.set_target("Y", 0.3)
    solution = mk.Solver(root).solve()
    assert solution.success, solution
    assert cart.value("Y") == pytest.approx(0.3, abs=1e-6)
    np.testing.assert_allclose(tip.world_position, (2, 1, 0), atol=1e-6)


def test_a_spherical_joint_is_driven_to_its_three_angles():
    root = mk.Link("root")
    ball, _link = hang(root, "ball", dof=["EX", "EY", "EZ"])
    wanted = mk.Joint("copy", dof=["EX", "EY", "EZ"], values=(0.3, -0.4, 1.2)).rotation_wxyz
    ball.set_targets(0.3, -0.4, 1.2)
    assert mk.Solver(root).solve().success
    np.testing.assert_allclose(np.abs(ball.rotation_wxyz @ wanted), 1, atol=1e-12)
    np.testing.assert_allclose(ball.values, (0.3, -0.4, 1.2), atol=1e-6)


def test_a_target_for_a_single_angle_of_a_spherical_joint_is_rejected():
    root = mk.Link("root")
    ball, _ = hang(root, "ball", dof=["EX", "EY", "EZ"])
    ball.set_target("EX", 0.3)
    with pytest.raises(DoFError, match="ball"):
        mk.Solver(root).solve()


def test_a_goal_and_a_target_in_conflict_are_compromised_and_reported():
    root, joints, tip = planar_arm(joints=1)
    point_goal(tip, position=(np.cos(1.0), np.sin(1.0), 0))
    joints[0].set_targets(0.0)
    solution = mk.Solver(root).solve()
    assert solution.status is Status.CLOSEST
    assert 0.1 < joints[0].values[0] < 0.9
    assert {name for pair in solution.conflicts for name in pair} == {"reach", "target of arm1_joint"}
    assert "conflicts with" in solution.message


# ---- rest poses -------------------------------------------------------------------------------


def test_a_rest_pose_is_followed_in_the_null_space_of_the_goal():
    root, joints, tip = planar_arm(joints=4)
    goal = point_goal(tip, position=(2, 1, 0))
    for joint in joints:
        joint.set_rest_pose(0.4)
    solution = mk.Solver(root).solve()
    assert solution.success, solution
    np.testing.assert_allclose(tip.world_position, goal.position, atol=1e-6)
    q = solution.q
    J = mk.Mechanism(root).jacobian("arm_tip", q)[:2]
    free = np.linalg.svd(J)[2][2:]  # no direction of the null space leads nearer
    np.testing.assert_allclose(free @ (q - 0.4), 0, atol=1e-5)


def test_a_rest_pose_is_followed_also_when_the_goal_is_met_already():
    """In the original it did nothing once the goals had converged."""
    root, joints, tip = planar_arm(joints=4)
    point_goal(tip)
    solver = mk.Solver(root)
    assert solver.solve().iterations == 0
    for joint in joints:
        joint.set_rest_pose(-0.2)
    before = solver.mechanism.q
    solution = solver.solve()
    assert solution.success
    assert np.linalg.norm(solution.q + 0.2) < np.linalg.norm(before + 0.2) - 0.01
    np.testing.assert_allclose(tip.world_position, mk.Mechanism(root).pose("arm_tip", before)[:3, 3], atol=1e-6)


def test_a_saved_rest_pose_is_returned_to_when_the_goal_is_removed():
    root, joints, tip = spatial_arm()
    goal = point_goal(tip)
    mk.save_rest_pose(root)
    home = np.array([joint.values[0] for joint in joints])
    solver = mk.Solver(root)
    goal.position = goal.position + np.array([0.3, 0.2, -0.4])
    assert solver.solve().success
    assert np.abs([joint.values[0] for joint in joints] - home).max() > 0.1
    goal.closure.undo()
    assert solver.solve().success
    np.testing.assert_allclose([joint.values[0] for joint in joints], home, atol=1e-6)


def test_a_rest_pose_applies_to_its_dof_also_when_an_earlier_dof_is_locked():
    """In the original, locking a dof shifted the rest values to the wrong dofs."""
    root = mk.Link("root")
    joint, _link = hang(root, "body", dof=["X", "Y", "EX", "EZ"], lower=[-5] * 4, upper=[5] * 4)
    joint.set_rest_pose(1.0, 2.0, 0.3, 0.4)
    mk.Solver(root, lock="body_joint.X").solve()
    np.testing.assert_allclose(joint.values, (0, 2, 0.3, 0.4), atol=1e-9)
    mk.Solver(root, lock=["body_joint.Y", "body_joint.EX"]).solve()
    np.testing.assert_allclose(joint.values, (1, 2, 0.3, 0.4), atol=1e-9)


def test_a_rest_pose_may_cover_only_part_of_the_dofs():
    root = mk.Link("root")
    joint, _ = hang(root, "body", dof=["X", "Y", "EZ"], values=(0.1, 0.2, 0.3))
    joint.set_rest_value("Y", 1.0)
    mk.Solver(root).solve()
    np.testing.assert_allclose(joint.values, (0.1, 1.0, 0.3), atol=1e-9)


def test_a_rest_pose_in_a_loop_is_followed_as_far_as_the_loop_allows():
    root, _crank, _coupler, rocker, pin = four_bar()
    rocker.set_rest_pose(rocker_angle(1.2))
    assert mk.Solver(root).solve().success
    assert wrap_angle(rocker.values[0] - rocker_angle(1.2)) == pytest.approx(0, abs=1e-6)
    assert pin.closure.gap().is_closed(1e-9)


# ---- limits -----------------------------------------------------------------------------------


def test_limits_are_never_left_and_the_closest_pose_inside_them_is_found():
    root, joints, tip = planar_arm(joints=3, value=0.1)
    for joint in joints:
        joint.set_limits(-0.4, 0.4)
    goal = point_goal(tip, position=(0, 3, 0))
    solution = mk.Solver(root).solve()
    assert solution.status is Status.CLOSEST
    np.testing.assert_allclose([joint.values[0] for joint in joints], 0.4, atol=1e-9)
    assert solution.active_limits == {joint.name: "upper" for joint in joints}
    goal.position = (0, -3, 0)  # and away from them again
    assert mk.Solver(root).solve().active_limits == {joint.name: "lower" for joint in joints}


def test_a_joint_that_meets_a_limit_during_the_solve_is_released_when_it_must_move_back():
    """In the original it stayed locked for the rest of the solve."""
    root, joints, tip = planar_arm(joints=3, value=0.0)
    joints[1].set_limits(-2.0, 0.5)
    mechanism = mk.Mechanism(root)
    rng = np.random.default_rng(3)
    for _ in range(50):
        wanted = mechanism.random(rng)
        wanted[[0, 2]] *= 0.5
        goal_at = mechanism.pose("arm_tip", wanted)[:3, 3]
        if not tip.closures:
            goal = point_goal(tip)
            solver = mk.Solver(root, restarts=20)
        goal.position = goal_at
        joints[0].set_values(0.0), joints[1].set_values(0.5), joints[2].set_values(0.0)
        solution = solver.solve()
        assert solution.success, solution
        assert -2.0 <= joints[1].values[0] <= 0.5


def test_with_every_joint_locked_a_solution_is_returned_and_nothing_moves():
    """The original crashed."""
    root, joints, tip = planar_arm()
    goal = point_goal(tip)
    for options in ({"lock": [joint.name for joint in joints]}, {"lock": [*joints]}):
        solver = mk.Solver(root, **options)
        before = solver.mechanism.q
        assert solver.solve().success
        goal.position = goal.position + np.array([0, 0.5, 0])
        solution = solver.solve()
        assert not solution.success
        assert solution.status is Status.CLOSEST
        np.testing.assert_array_equal(solver.mechanism.q, before)
        goal.position = goal.position - np.array([0, 0.5, 0])
    solution = mk.Solver(root).solve(lock=joints)
    assert solution.success


def test_equal_limits_lock_a_joint():
    root, joints, tip = planar_arm()
    for joint in joints:
        joint.set_limits(joint.values[0], joint.values[0])
    goal = point_goal(tip)
    goal.position = goal.position + np.array([0, 0.5, 0])
    solution = mk.Solver(root).solve()
    assert not solution.success
    np.testing.assert_array_equal(solution.q, 0.3)


def test_the_limits_of_a_loop_closing_joint_hold():
    first, _, first_tip = spatial_arm("first")
    second, _, second_tip = spatial_arm("second")
    second.position = (0.5, 0, 0)
    hook = mk.Joint("hook", dof=["EX", "EY"], lower=[-0.3, -0.3], upper=[0.3, 0.3])
    first_tip.add_child(hook)
    hook.make_closure(second_tip)
    goal = point_goal(second_tip)
    solver = mk.Solver(first)
    for shift in (0.0, 0.2, 1.0):
        goal.position = goal.position + np.array([shift, 0, 0])
        solver.solve()
        assert hook.closure.gap().is_closed(1e-9)
        assert np.abs(hook.values).max() <= 0.3 + 1e-9
    hook.set_targets(0.1, -0.2)
    goal.closure.undo()
    assert solver.solve().success
    np.testing.assert_allclose(hook.values, (0.1, -0.2), atol=1e-6)


def test_a_loop_stops_where_its_closing_pin_reaches_its_limit():
    root, crank, _, _, pin = four_bar()
    middle = pin.values[0]
    pin.set_limits(middle - 0.1, middle + 0.1)
    crank.set_targets(3.0)
    solution = mk.Solver(root).solve()
    assert solution.status is Status.CLOSEST
    assert abs(pin.values[0] - middle) == pytest.approx(0.1, abs=1e-9)
    assert pin.closure.gap().is_closed(1e-9)


@pytest.mark.parametrize("lock", ["arm2_joint", "cart_joint.X"])
def test_a_locked_joint_or_dof_does_not_move_and_the_others_do(lock):
    base = mk.Link("base")
    cart, body = hang(base, "cart", dof=["X", "Y", "EZ"])
    _, joints, tip = planar_arm(root=body)
    point_goal(tip, position=(1.0, 2.0, 0))
    assert mk.Solver(base, lock=lock).solve().success
    assert (joints[1].values[0] == 0.3) == (lock == "arm2_joint")
    assert (cart.value("X") == 0.0) == (lock == "cart_joint.X")
    np.testing.assert_allclose(tip.world_position, (1, 2, 0), atol=1e-6)


# ---- out of reach, stretched ------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_an_arm_stretches_towards_a_target_out_of_reach_from_any_start(seed):
    """In the original it DIVERGED away from the closest point."""
    rng = np.random.default_rng(seed)
    root, joints, tip = planar_arm()
    for joint in joints:
        joint.set_values(rng.uniform(-np.pi, np.pi))
    direction = rng.uniform(-np.pi, np.pi)
    point_goal(tip, position=(10 * np.cos(direction), 10 * np.sin(direction), 0))
    solution = mk.Solver(root).solve()
    assert solution.status is Status.CLOSEST, solution
    np.testing.assert_allclose(tip.world_position, (3 * np.cos(direction), 3 * np.sin(direction), 0), atol=1e-6)


def test_an_arm_dragged_out_of_reach_follows_without_jitter():
    root, _joints, tip = planar_arm()
    goal = point_goal(tip, position=(5, 0, 0))
    solver = mk.Solver(root)
    solver.solve()
    step, before, steps = 0.02, solver.mechanism.q, []
    for angle in np.arange(0, 2 * np.pi, step):
        goal.position = (5 * np.cos(angle), 5 * np.sin(angle), 0)
        q = solver.solve().q
        steps.append(q - before)
        before = q
        np.testing.assert_allclose(tip.world_position, 3 / 5 * goal.position, atol=1e-5)
    steps = np.array(steps[1:])
    assert np.abs(steps).max() <= 5 * step
    np.testing.assert_allclose(steps[:, 0], step, atol=1e-3)
    np.testing.assert_allclose(steps[:, 1:], 0, atol=1e-3)


@pytest.mark.parametrize("back", [0.001, 0.5, 1.5])
def test_a_straight_arm_leaves_its_singular_pose_for_a_target_inwards(back):
    """The original was stuck."""
    root, _joints, tip = planar_arm(value=0.0)
    goal = point_goal(tip, position=(3 - back, 0, 0))
    solution = mk.Solver(root).solve()
    assert solution.success, solution
    np.testing.assert_allclose(tip.world_position, goal.position, atol=1e-6)


def test_an_arm_converges_again_after_a_target_out_of_reach():
    root, _, tip = spatial_arm()
    goal = point_goal(tip)
    solver = mk.Solver(root)
    start = goal.position
    for out in [*np.linspace(0, 8, 30), *np.linspace(8, 0, 30)]:
        goal.position = start + np.array([out, 0, 0])
        assert solver.solve().status in (Status.CONVERGED, Status.CLOSEST)
    np.testing.assert_allclose(tip.world_position, start, atol=1e-6)


def test_a_loop_stays_closed_while_its_goal_jumps():
    root, _crank, _, _rocker, pin = four_bar()
    coupler = pin.parent
    goal = point_goal(coupler)
    solver = mk.Solver(root)
    rng = np.random.default_rng(0)
    for _ in range(100):
        goal.position = rng.uniform(-20, 20, 3)
        solution = solver.solve()
        assert solution.status is Status.CLOSEST
        assert pin.closure.gap().is_closed(1e-9)
        assert all(error.position < 1e-9 and error.rotation < 1e-9 for error in solution.closure_errors.values())


FAR = [(0, 0, 1), (2, 0, 0.3), (-1.989, 1.4296, -1.5657), (-0.4006, -0.1546, -0.6434), (1.9804, 1.7958, 0.1402),
       (0.1887, 0.4448, -0.4051), (-0.4491, 1.2569, -0.5914), (-0.3103, 0.1195, -0.657)]  # fmt: skip


@pytest.mark.parametrize("position", FAR, ids=str)
def test_a_closest_pose_stays_closest_when_it_is_solved_again(position):
    """A step that would have taken every column to its bound once passed for one that had nothing to gain."""
    robot = mk.gallery.stewart_platform()
    platform = robot.link("platform")
    goal = mk.Goal("want")
    goal.make_closure(platform)
    solver = mk.Solver(robot.roots)
    goal.position = position
    first = solver.solve()
    assert not first.success, first
    again = solver.solve()
    assert again.subproblems[0].residual > first.subproblems[0].residual * (1 - 1e-6)
    assert all(closure.gap().is_closed(1e-9) for closure in robot.closures.values())


def test_a_graph_without_goals_is_solved_and_does_not_move():
    root, _, _ = planar_arm()
    solver = mk.Solver(root)
    before = solver.mechanism.q
    solution = solver.solve()
    assert solution.success
    assert solution.subproblems == ()
    np.testing.assert_array_equal(solver.mechanism.q, before)
    assert repr(solution)


def test_a_loop_that_is_open_is_closed_by_solving():
    root, crank, _, _rocker, pin = four_bar()
    crank.set_values(1.0)
    assert pin.closure.gap().distance > 0.01
    assert mk.Solver(root).solve().success
    assert pin.closure.gap().is_closed(1e-9)


def test_a_loop_that_cannot_be_closed_has_the_status_open():
    first, _, first_tip = planar_arm("first")
    second, _, second_tip = planar_arm("second")
    second.position = (10.0, 0, 0)
    pin = mk.Joint("pin", dof="EZ")
    first_tip.add_child(pin)
    pin.make_closure(second_tip)
    solution = mk.Solver(first).solve()
    assert not solution.success
    assert solution.status is Status.NOT_CLOSED
    assert "loop" in solution.message
