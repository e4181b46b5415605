"""Targets in the natural forms: matrices, quaternions, poses and rotations of other libraries, angles by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import RigidTransform, Rotation

import mechanik as mk
from mechanik import errors
from mechanik.objectives import LinkGoal
from mechanik.spatial import quaternion

P, RPY = np.array([0.3, -0.2, 0.5]), np.array([0.4, -0.7, 1.1])
WXYZ = quaternion.from_rpy(RPY)
R = Rotation.from_euler("xyz", RPY).as_matrix()
X = mk.Pose(P, WXYZ).matrix


def pinocchio_pose() -> Any:
    return pytest.importorskip("pinocchio").SE3(R, P)


POSES = {
    "matrix": lambda: X,
    "nested lists": lambda: X.tolist(),
    "position and wxyz": lambda: np.concatenate([P, WXYZ]),
    "Pose": lambda: mk.Pose(P, WXYZ),
    "Pose with rpy": lambda: mk.Pose(P, rpy=RPY),
    "pinocchio.SE3": pinocchio_pose,
    "scipy RigidTransform": lambda: RigidTransform.from_components(P, Rotation.from_matrix(R)),
}
ROTATIONS = {
    "matrix": lambda: R,
    "quaternion": lambda: WXYZ,
    "negated quaternion": lambda: (-WXYZ).tolist(),
    "scipy Rotation": lambda: Rotation.from_matrix(R),
    "pinocchio quaternion": lambda: pytest.importorskip("pinocchio").SE3(R, P).rotation,
}


def is_close(a: object, b: object) -> bool:
    return bool(np.allclose(a, b, rtol=0.0, atol=1e-12))  # type: ignore[arg-type]


def test_rpy_are_rotations_about_fixed_axes_as_in_urdf_files():
    assert is_close(quaternion.to_matrix(quaternion.from_rpy(RPY)), R)


@pytest.mark.parametrize("form", POSES)
def test_a_pose_goal_takes_its_target_in_every_form_of_a_pose(form):
    target = POSES[form]()
    unplaced_goal = mk.PoseGoal("tool", np.eye(4))
    assert is_close(mk.PoseGoal("tool", target).target, X)
    assert is_close(unplaced_goal.with_target(target).target, X)
    assert is_close(mk.PoseGoal("tool", np.eye(4), at=target).tool, X)


@pytest.mark.parametrize("form", [*POSES, *ROTATIONS])
def test_an_orientation_goal_takes_every_form_of_a_rotation_or_a_pose(form):
    target = {**POSES, **ROTATIONS}[form]()
    unrotated_goal = mk.OrientationGoal("tool", np.eye(3))
    assert is_close(mk.OrientationGoal("tool", target).rotation.target, R)
    assert is_close(unrotated_goal.with_target(target).rotation.target, R)


@pytest.mark.parametrize("form", POSES)
def test_boxes_and_bands_take_their_frame_in_every_form_of_a_pose(form):
    target = POSES[form]()
    box = mk.InBox("tool", (-1, -1, -1), (1, 1, 1))
    band = mk.InBand("tool", "z", lower=0.1)
    assert is_close(mk.InBox("tool", (-1, -1, -1), (1, 1, 1), target).frame, X)
    assert is_close(box.with_target(target).frame, X)
    assert is_close(band.with_target(target).frame, X)


@pytest.mark.parametrize("form", POSES)
def test_solve_takes_its_target_in_every_form_of_a_pose(form):
    arm = mk.gallery.make("ur5")
    target = arm.pose("tool0", arm.q + 0.1)
    wxyz = quaternion.from_matrix(target[:3, :3])
    forms = {
        "matrix": target,
        "nested lists": target.tolist(),
        "position and wxyz": [*target[:3, 3], *wxyz],
        "Pose": mk.Pose(target[:3, 3], wxyz),
        "Pose with rpy": mk.Pose(target[:3, 3], rpy=Rotation.from_matrix(target[:3, :3]).as_euler("xyz")),
        "scipy RigidTransform": RigidTransform.from_matrix(target),
    }
    if form == "pinocchio.SE3":
        forms[form] = pytest.importorskip("pinocchio").SE3(target[:3, :3], target[:3, 3])
    solution = mk.Solver(arm, mk.PoseGoal("tool0", np.eye(4))).solve(forms[form], arm.q)
    assert solution.success
    assert np.abs(arm.pose("tool0", solution.q) - target).max() < 1e-5


def test_parts_of_a_target_can_be_given_by_name():
    goal = mk.PoseGoal("tool", X)
    assert is_close(mk.PoseGoal("tool", position=P, rpy=RPY).target, X)
    assert is_close(mk.PoseGoal("tool", Rotation.from_matrix(R), position=P).target, X)
    assert is_close(mk.PoseGoal("tool", rpy=RPY).target[:3, :3], R)
    assert is_close(mk.OrientationGoal("tool", rpy=RPY).rotation.target, R)
    assert is_close(mk.PoseGoal("tool", np.eye(4)).with_target(position=P, rpy=RPY).target, X)
    assert is_close(mk.OrientationGoal("tool", np.eye(3)).with_target(rpy=RPY).rotation.target, R)
    assert is_close(mk.PositionGoal("tool", (0, 0, 0)).with_target(position=P).position.target, P)
    assert is_close(goal.with_target(position=(1, 2, 3)).target[:3, :3], R)


@pytest.mark.parametrize("target", [Rotation.from_matrix(R), R, WXYZ], ids=["scipy Rotation", "matrix", "quaternion"])
def test_a_rotation_alone_is_no_target_of_a_pose_goal_and_the_message_says_what_to_do(target):
    with pytest.raises(errors.ObjectiveError, match=r"rotation without a position; give position=.*OrientationGoal"):
        mk.PoseGoal("tool", target)
    with pytest.raises(errors.ObjectiveError, match=r"rotation without a position; give position="):
        mk.PoseGoal("tool", X).with_target(target)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"position": P, "wxyz": WXYZ, "rpy": RPY}, "either wxyz or rpy"),
        ({"target": X, "rpy": RPY}, "not both"),
        ({"target": R, "position": P, "rpy": RPY}, "not both"),
        ({}, "needs a target"),
    ],
)
def test_a_pose_goal_needs_exactly_one_target(arguments, words):
    with pytest.raises(errors.ObjectiveError, match=words):
        mk.PoseGoal("tool", **arguments)


def test_other_goals_need_exactly_one_target():
    with pytest.raises(errors.ObjectiveError, match="either a target or rpy"):
        mk.OrientationGoal("tool")
    with pytest.raises(errors.ObjectiveError, match="one new target"):
        mk.PoseGoal("tool", X).with_target()
    with pytest.raises(errors.NotARotation, match="either wxyz or rpy"):
        mk.Pose(P, WXYZ, rpy=RPY)


@pytest.mark.parametrize("target", [[1.0, 2.0], [[1.0, 2.0], [3.0]], "text", {"x": 1.0}, np.zeros((2, 4, 4))])
def test_a_value_of_another_form_is_refused_with_a_message(target):
    goals: list[LinkGoal] = [mk.PoseGoal("tool", X), mk.OrientationGoal("tool", R), mk.PositionGoal("tool", P)]
    for goal in goals:
        with pytest.raises(errors.MechanikError):
            goal.with_target(target)


def test_batches_take_rotations_and_poses_of_scipy_as_rows_or_as_one_object():
    arm = mk.gallery.make("ur5")
    poses = arm.pose("tool0", arm.q + np.linspace(0.0, 0.3, 4)[:, None])
    rotations = Rotation.from_matrix(poses[:, :3, :3])
    solver = mk.Solver(arm, mk.OrientationGoal("tool0", np.eye(3)))
    expected = solver.solve_batch(poses[:, :3, :3], arm.q)
    assert expected.success.all()
    # the arrays of a Rotation have a base that is its own base: the search for the file behind them did not end
    for targets in (rotations, rotations.as_matrix(), list(rotations)):
        assert np.abs(solver.solve_batch(targets, arm.q).q - expected.q).max() < 1e-9
    pose_solver = mk.Solver(arm, mk.PoseGoal("tool0", np.eye(4)))
    for targets in (RigidTransform.from_matrix(poses), [mk.Pose.from_matrix(X) for X in poses]):
        assert pose_solver.solve_batch(targets, arm.q).success.all()
