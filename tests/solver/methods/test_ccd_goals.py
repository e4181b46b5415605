"""Cyclic coordinate descent: supported goals, rejected problems, and options."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ccd_cases import ball_arm, one_hinge, path_of

import mechanik as mk
from mechanik.errors import InvalidArgument, InvalidOperation, LimitsError, UnknownName

# ---- supported goals ----------------------------------------------------------------------------


def two_hands():
    builder = mk.Builder("two hands")
    builder.revolute("waist", "base", "torso", axis="z", limits=(-2, 2))
    for side, y in (("left", 0.2), ("right", -0.2)):
        above = "torso"
        for k, axis in enumerate("yxyzy"):
            builder.revolute(
                f"{side}{k}", above, f"{side}_link{k}", at=(0, y if k == 0 else 0, 0.4 if k == 0 else 0.25), axis=axis
            )
            above = f"{side}_link{k}"
        builder.fixed(f"{side}_wrist", above, f"{side}_hand", at=(0, 0, 0.1))
    return builder.build()


def test_two_arms_of_one_body_reach_two_targets():
    body, rng = two_hands(), np.random.default_rng(0)
    hands = ("left_hand", "right_hand")
    solver = mk.Solver(
        body, [mk.PositionGoal(hand, (0, 0, 0), tolerance=1e-5) for hand in hands], solver="ccd", restarts=10
    )
    for q in body.random(rng, 30):
        assert solver.solve([body.pose(hand, q)[:3, 3] for hand in hands], q0=body.neutral()).success


def test_one_hand_reaches_a_pose_relative_to_the_other():
    body, rng = two_hands(), np.random.default_rng(1)
    goal = mk.PoseGoal("left_hand", np.eye(4), relative_to="right_hand", tolerance=1e-5, angle_tolerance=1e-5)
    solver = mk.Solver(body, goal, solver="ccd", restarts=20)
    for q in body.random(rng, 10):
        X = np.linalg.inv(body.pose("right_hand", q)) @ body.pose("left_hand", q)
        assert solver.solve(X, q0=body.random(rng)).success


def test_coupled_joints_move_together():
    builder = mk.Builder("finger")
    for k in range(3):
        builder.revolute(f"joint{k}", f"link{k}", f"link{k + 1}", at=(0 if k == 0 else 0.3, 0, 0), axis="z")
    builder.couple("joint2", "joint1", ratio=0.7)
    builder.fixed("end", "link3", "tip", at=(0.2, 0, 0))
    finger, rng = builder.build(), np.random.default_rng(0)
    solver = mk.Solver(finger, mk.PositionGoal("tip", (0, 0, 0)), solver="ccd", limits={"joint1": (0, 1.8)}, restarts=5)
    for q in rng.uniform((-3, 0.5), (3, 1.75), (20, 2)):  # not straight: there it creeps
        solution = solver.solve(finger.pose("tip", q)[:3, 3], q0=finger.neutral())
        assert solution.success
        assert 0 <= solution["joint1"] <= 1.8


def test_locked_joints_stay():
    body = two_hands()
    q0 = np.full(body.nq, 0.3)
    goal = mk.PositionGoal(
        "left_hand", body.pose("left_hand", body.configuration({"left0": 0.8, "left1": -0.4}, q0))[:3, 3]
    )
    solution = mk.Solver(body, goal, solver="ccd", lock=["waist", "left2"]).solve(q0=q0)
    assert solution["waist"] == solution["left2"] == 0.3
    assert solution.success


def test_unsupported_problems_are_rejected_with_a_method_that_supports_them():
    arm = mk.gallery.ur5()
    point = mk.PositionGoal("tool0", (0.4, 0.2, 0.3))
    for goals in (
        [point, mk.JointValues({"elbow_joint": 0.0})],
        [point, mk.InCone("tool0", (0, 0, 1), (0, 0, 1), 0.5)],
        [point, mk.RestPose(np.zeros(6), level=2)],
        [point, mk.AxisGoal("tool0", (0, 0, 1), level=2)],
        [mk.LookAt("tool0", (1, 0, 0))],
        [mk.Distance("tool0", equal=0.5)],
        [mk.InBox("tool0", (0, 0, 0), (1, 1, 1))],
        [mk.Custom(lambda mechanism, q: q[:1], residual_size=1)],
    ):
        with pytest.raises(InvalidOperation, match=r"cyclic coordinate descent .* solver='lm'"):
            mk.Solver(arm, goals, solver="ccd")
    with pytest.raises(InvalidOperation, match="does not support closed loops"):
        mk.Solver(mk.gallery.four_bar(), solver="ccd")
    twice = [mk.InCone("link1", axis, axis, 0.5, relative_to="link0") for axis in ((0, 0, 1), (1, 0, 0))]
    with pytest.raises(InvalidOperation, match="one cone"):
        mk.Solver(ball_arm(), twice, solver="ccd")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"order": "sideways"}, InvalidArgument),
        ({"blend": 0.0}, LimitsError),
        ({"blend": 1.5}, LimitsError),
        ({"largest_turn": -1.0}, LimitsError),
        ({"largest_turn": "fast"}, LimitsError),
        ({"direction_joints": -1}, LimitsError),
        ({"direction_joints": True}, LimitsError),
        ({"direction_joints": "wrist_3_joint"}, InvalidArgument),
        ({"direction_joints": ["wrist_4_joint"]}, UnknownName),
    ],
)
def test_invalid_options_are_rejected(options, error):
    with pytest.raises(error):
        mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0.4, 0.2, 0.3)), solver="ccd", **options)


# ---- options ------------------------------------------------------------------------------------


def test_no_joint_exceeds_the_largest_motion_of_a_sweep():
    arm, rng = mk.gallery.zalo5(), np.random.default_rng(0)
    solver = mk.Solver(arm, mk.PositionGoal("effector", (0.3, 0.2, 0.3)), solver="ccd", largest_turn=0.1)
    seen, solution = path_of(solver, arm.random(rng))
    assert np.abs(np.diff(seen, axis=0)).max() == pytest.approx(0.1, abs=1e-12)
    assert solution.success


def test_a_blended_sweep_takes_a_share_of_the_full_motion():
    arm = one_hinge(value=0.2)
    solver = mk.Solver(arm, mk.PositionGoal("tip", (math.cos(1.2), math.sin(1.2), 0)), solver="ccd", blend=0.25)
    assert solver.step().q[0] == pytest.approx(0.45, abs=1e-12)


def test_joints_for_the_direction_are_given_by_name_or_number():
    arm, q0 = mk.gallery.zalo5(), np.array([0.2, 0.3, 0.4, 0.5, 0.6])
    goal = mk.HingeGoal("effector", (0.3, 0.2, 0.4), (0, 0, -1), local_axis=(1, 0, 0))
    counted = mk.Solver(arm, goal, solver="ccd", direction_joints=2).step(q0=q0).q
    named = mk.Solver(arm, goal, solver="ccd", direction_joints=["fourth_joint", "fifth_joint"]).step(q0=q0).q
    whole = mk.Solver(arm, goal, solver="ccd").step(q0=q0).q
    np.testing.assert_array_equal(counted, named)
    assert np.abs(counted - whole).max() > 0.01


def test_the_goal_of_larger_weight_is_nearer_where_both_cannot_be_met():
    arm = mk.arm_2d([1.0, 0.8])
    goal = mk.HingeGoal("tool", (0.5, 0.9, 0), (0, 1, 0), local_axis=(1, 0, 0))
    errors = [
        mk.Solver(arm, goal, solver="ccd", rotation_weight=weight).solve(q0=(0.3, 0.4)).errors["HingeGoal 0"]
        for weight in (0.01, 1.0, 100.0)
    ]
    assert errors[0].position < errors[1].position < errors[2].position
    assert errors[0].rotation > errors[1].rotation > errors[2].rotation


def test_a_swing_limit_that_ccd_does_not_support_is_named_in_the_message():
    builder = mk.Builder("arm")
    builder.spherical("shoulder", "base", "upper").set_cone(0.5)
    builder.revolute("elbow", "upper", "lower", at=(1, 0, 0))
    with pytest.raises(InvalidOperation, match=r"does not support .*swing limits; use solver='lm'"):
        mk.solve(builder.build(), mk.PositionGoal("lower", (1, 0, 0)), solver="ccd")
