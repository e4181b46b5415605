"""Goals with some of their six directions, in goal or world axes, fixed or attached to a moving link."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from graph_arms import hang, planar_arm, point_goal, spatial_arm

import mechanik as mk
from mechanik.errors import DoFError
from mechanik.model.dof import ALL_DOFS, DoF
from mechanik.spatial import euler, quaternion

SUBSETS = [dofs for size in range(1, 7) for dofs in combinations(ALL_DOFS, size)]
TURN = quaternion.normalize(np.array([0.8, 0.3, -0.4, 0.2]))


def goal_errors(goal: mk.Goal, link: mk.Link) -> dict[DoF, float]:
    """The error of the link in each direction of the goal, from the definition T(x, y, z) Rz Ry Rx.

    With world axes, both are expressed there: the same motion, rotated from both sides.
    """
    G, L = goal.world_matrix, link.world_matrix
    A = np.eye(3) if goal.axes == "world" else G[:3, :3]
    p, R = A.T @ (L[:3, 3] - G[:3, 3]), A.T @ L[:3, :3] @ G[:3, :3].T @ A
    z, y, x = euler.euler_from_matrix(R, order="zyx", axes="moving")
    # the other triple of angles of the same rotation
    flipped = [x - np.copysign(np.pi, x), np.copysign(np.pi, y) - y, z - np.copysign(np.pi, z)]
    wanted = [dof for dof in goal.goal_dof if dof.is_rotation]
    angles = min(([x, y, z], flipped), key=lambda dofs: sum(abs(dofs[dof.axis_index]) for dof in wanted))
    values = [*p, *angles]
    return {dof: float(values[dof]) for dof in goal.goal_dof}


@pytest.mark.parametrize("axes", ["goal", "world"])
@pytest.mark.parametrize("dof", SUBSETS, ids=lambda dof: "-".join(direction.name for direction in dof))
def test_a_goal_takes_any_subset_of_directions_in_goal_or_world_axes(dof, axes):
    """In the original, rotations count all three or not at all, and positions along the world's axes only."""
    root, joints, tip = spatial_arm()
    mechanism = mk.Mechanism(root)
    mechanism.q = mechanism.q + np.array([0.3, -0.4, 0.5, 0.3, -0.6, 0.4, -0.3])
    goal = mk.Goal("want", dof=dof, axes=axes)
    goal.world_matrix = tip.world_matrix  # rotated against the world's axes, and within reach
    for joint in joints:
        joint.set_values(joint.values[0] - 0.25)
    goal.make_closure(tip)
    solver = mk.Solver(root)
    assert solver.residual().shape == (len(dof),)
    assert np.linalg.matrix_rank(solver.jacobian()) == len(dof)
    solution = solver.solve()
    assert solution.success, solution
    assert all(abs(error) < 2e-6 for error in goal_errors(goal, tip).values()), goal_errors(goal, tip)


def test_directions_may_be_named_as_constrained_or_as_free():
    wanted, free = mk.Goal(), mk.Goal()
    assert wanted.goal_dof == ALL_DOFS
    wanted.set_goal_dof(["X", "Z", "EY"])
    free.set_free_dof(["Y", "EX", "EZ"])
    assert wanted.goal_dof == free.goal_dof == (DoF.X, DoF.Z, DoF.EY)
    assert wanted.free_dof == free.free_dof
    free.set_free_dof([])
    assert free.goal_dof == ALL_DOFS
    with pytest.raises(DoFError):
        wanted.set_goal_dof(["Z", "X"])


def test_a_goal_for_the_height_leaves_the_other_two_directions_free():
    root, _, tip = spatial_arm()
    goal = mk.Goal("height", dof="Z", axes="world", position=(0.3, 0.2, 0.9), wxyz=TURN)
    goal.make_closure(tip)
    assert mk.Solver(root).solve().success
    assert tip.world_position[2] == pytest.approx(0.9, abs=1e-6)
    goal.axes = "goal"  # the same number, along a rotated axis
    solver = mk.Solver(root)
    assert solver.solve().success
    assert (tip.world_position - goal.position) @ goal.world_matrix[:3, 2] == pytest.approx(0, abs=1e-6)


def test_a_goal_without_any_direction_constrains_nothing():
    root, _, tip = planar_arm()
    goal = mk.Goal("idle", dof=())
    goal.make_closure(tip)
    solution = mk.Solver(root).solve()
    assert solution.success
    assert solution.objectives == ()


def test_a_goal_may_apply_to_another_point_of_the_link_than_its_origin():
    root, _, tip = planar_arm()
    goal = mk.Goal("want", dof=["X", "Y"], position=(1.0, 1.5, 0))
    at = np.eye(4)
    at[:3, 3] = (0.2, 0.1, 0)
    goal.make_closure(tip, at)
    assert mk.Solver(root).solve().success
    point = tip.world_matrix @ (0.2, 0.1, 0, 1)
    np.testing.assert_allclose(point[:2], (1.0, 1.5), atol=1e-6)


@pytest.mark.parametrize("axes", ["goal", "world"])
def test_a_goal_attached_to_a_moving_link_is_tracked(axes):
    base = mk.Link("base")
    _, _joints, tip = planar_arm(root=base)
    hinge, panel = hang(base, "door", at=(2.5, -1.0, 0), values=1.2)
    goal = mk.Goal("handle", dof=["X", "Y", "Z"], position=(1.0, 0, 0), axes=axes)
    panel.add_child(goal)
    goal.make_closure(tip)
    solver = mk.Solver(base, lock="door_joint")
    for angle in np.linspace(1.2, 2.0, 9):
        hinge.set_values(angle)
        solution = solver.solve()
        assert solution.success, solution
        np.testing.assert_allclose(tip.world_position, goal.world_position, atol=1e-6)
        np.testing.assert_allclose(goal.world_position, (2.5 + np.cos(angle), -1 + np.sin(angle), 0), atol=1e-12)


def test_a_goal_attached_to_a_moving_link_moves_both_chains():
    base = mk.Link("base")
    _, left, left_tip = planar_arm("left", root=base, at=(-1.8, 0, 0), joints=2)
    _, right, right_tip = planar_arm("right", root=base, at=(1.8, 0, 0), joints=2)
    goal = mk.Goal("meet", dof=["X", "Y", "Z"])
    left_tip.add_child(goal)
    goal.make_closure(right_tip)
    right[0].set_values(2.5)
    before = [joint.values[0] for joint in left + right]
    solution = mk.Solver(base).solve()
    assert solution.success, solution
    np.testing.assert_allclose(left_tip.world_position, right_tip.world_position, atol=1e-6)
    moved = [joint.values[0] != old for joint, old in zip(left + right, before, strict=True)]
    assert all(moved)


def test_a_joint_above_both_the_goal_and_the_link_does_not_move():
    base = mk.Link("base")
    turntable, plate = hang(base, "turntable")
    _, _joints, tip = planar_arm(root=plate)
    goal = mk.Goal("mark", dof=["X", "Y", "Z"], position=(1.0, 1.5, 0))
    plate.add_child(goal)
    goal.make_closure(tip)
    (chain,) = mk.Solver(base).solve().subproblems
    assert "turntable_joint" not in chain.joints
    assert turntable.values[0] == 0.0
    assert goal.closure.gap().is_closed(1e-6)


def test_a_joint_above_both_moves_where_directions_are_world_axes():
    base = mk.Link("base")
    turntable, plate = hang(base, "turntable", values=0.4)
    _slide, cart = hang(plate, "cart", dof="X", lower=-0.1, upper=0.1)
    goal = mk.Goal("level", dof="Y", axes="world", position=(1.0, 0, 0))
    plate.add_child(goal)
    goal.make_closure(cart)
    solution = mk.Solver(base).solve()  # the cart is 1 m from the goal: they are level only along x
    assert solution.success, solution
    assert cart.world_position[1] == pytest.approx(goal.world_position[1], abs=1e-6)
    assert np.sin(turntable.values[0]) == pytest.approx(0, abs=1e-5)


def test_several_goals_on_one_link_are_met_together():
    root, _, tip = spatial_arm()
    position, level = point_goal(tip), mk.Goal("level", dof=["EX", "EY"])
    level.make_closure(tip)
    position.position = (0.5, 0.2, 0.9)
    solution = mk.Solver(root, restarts=20).solve()
    assert solution.success, solution
    np.testing.assert_allclose(tip.world_position, position.position, atol=1e-6)
    np.testing.assert_allclose(tip.world_matrix[:3, 2], (0, 0, 1), atol=2e-6)
    assert {*solution.errors} == {"reach", "level"}


def test_goals_that_cannot_both_be_met_share_the_error_and_are_named():
    root, _, tip = planar_arm()
    point_goal(tip, "lower", (1.0, 1.0, 0)), point_goal(tip, "upper", (1.0, 2.0, 0))
    solution = mk.Solver(root).solve()
    assert not solution.success
    np.testing.assert_allclose(tip.world_position, (1.0, 1.5, 0), atol=1e-5)
    assert set(solution.unmet) == {"lower", "upper"}
    assert {*solution.conflicts[0]} == {"lower", "upper"}
