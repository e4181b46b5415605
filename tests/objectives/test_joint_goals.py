"""Goals for joint values and rest poses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from objective_mechanisms import arm, mixed_mechanism
from random_mechanisms import mechanisms, random_turn, seeds

import mechanik as mk
from mechanik import Builder
from mechanik.errors import (
    CouplingError,
    DoFError,
    NotARotation,
    NotFinite,
    ObjectiveError,
    ShapeError,
    UnknownName,
)
from mechanik.objectives.joint_goals import JointValues, RestPose, nearest_equivalent_value
from mechanik.spatial import euler, quaternion

REVOLUTION = 2 * math.pi


# ---- joint values -----------------------------------------------------------------------------


@given(mechanisms, seeds)
def test_the_residual_is_zero_at_the_target_values(mechanism, seed):
    q = mechanism.random(np.random.default_rng(seed))
    values = {name: value for name, value in mechanism.values(q).items() if not mechanism.joint(name).couplings}
    if values:
        objective = JointValues(values)
        np.testing.assert_allclose(objective.residual(mechanism, q), 0, atol=1e-7)
        assert objective.error(mechanism, q).position < 1e-12


def test_values_are_given_by_joint_or_by_dof():
    mechanism = mixed_mechanism()
    q = mechanism.neutral()
    objective = JointValues({"slide": 0.5, "float.X": 2.0, "turn": -0.25})
    assert objective.residual(mechanism, q).tolist() == [-0.5, -2.0, 0.25]
    assert objective.error(mechanism, q).position == 2.0
    assert objective.error(mechanism, q).rotation == 0.25


@pytest.mark.parametrize("seed", range(3))
def test_a_spherical_joint_takes_three_angles_or_a_quaternion(seed):
    mechanism, rng = mixed_mechanism(), np.random.default_rng(seed)
    wxyz = random_turn(rng)
    zyx = euler.euler_from_quaternion(wxyz, order="zyx", axes="moving")
    q = mechanism.random(rng)
    residual = JointValues({"hip": wxyz}).residual(mechanism, q)
    np.testing.assert_allclose(JointValues({"hip": zyx[::-1]}).residual(mechanism, q), residual, atol=1e-12)
    pose = JointValues({"float": [1, 2, 3, *wxyz]})
    np.testing.assert_allclose(
        JointValues({"float": [1, 2, 3, *zyx[::-1]]}).residual(mechanism, q), pose.residual(mechanism, q), atol=1e-12
    )
    assert len(residual) == 3
    assert len(pose.residual(mechanism, q)) == 6


def test_the_value_of_a_mimic_joint_becomes_a_target_of_its_leader():
    mechanism = mixed_mechanism()
    (relation,) = JointValues({"gear": 1.3}, weight=3.0).relations(mechanism)
    assert relation.dof_name == "turn"
    np.testing.assert_allclose(relation.target, -0.5)
    assert relation.weight == 6.0
    q = mechanism.configuration({"turn": -0.5})
    np.testing.assert_allclose(mechanism.values(q)["gear"], 1.3)
    # half a turn of the leader is a whole one of the gear
    q = mechanism.configuration({"turn": -0.5 + math.pi})
    assert JointValues({"gear": 1.3}).error(mechanism, q).rotation < 1e-12
    assert JointValues({"gear": 1.3}, angle_mode="exact").error(mechanism, q).rotation > 3


def test_values_of_a_mimic_joint_and_its_leader_must_agree():
    mechanism = mixed_mechanism()
    assert len(JointValues({"gear": 1.3, "turn": -0.5}).relations(mechanism)) == 1
    with pytest.raises(ObjectiveError, match="contradict each other"):
        JointValues({"gear": 1.3, "turn": 0.5}).relations(mechanism)


@pytest.mark.parametrize("ratio", [2.0, -0.5, 0.75, 0.582987])
def test_values_of_a_mimic_joint_and_its_leader_are_met_at_once_after_full_turns(ratio):
    # 0.582987: solved at a turn of the leader where the mimic joint was off by 3.7 rad
    builder = Builder()
    builder.revolute("leader", "base", "a")
    builder.revolute("follower", "a", "b")
    builder.couple("follower", "leader", ratio=ratio, offset=0.1)
    mechanism = builder.build()
    for values in ({"leader": 0.4, "follower": 0.4 * ratio + 0.1}, {"follower": 0.4 * ratio + 0.1, "leader": 0.4}):
        goal = JointValues(values)
        for start in np.linspace(-40.0, 40.0, 23):
            solution = mk.solve(mechanism, goal, q0=[start], restarts=0)
            assert solution.success
            leader = solution.q[0]
            assert abs(math.remainder(leader - 0.4, REVOLUTION)) < 1e-6
            assert abs(math.remainder(ratio * (leader - 0.4), REVOLUTION)) < 1e-5
        if ratio != 0.582987:  # equivalent values are used: some are near each start
            assert np.abs(solution.q - start).max() <= 4 * math.pi + 1e-6


@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(-20, 20), st.floats(0, 20))
def test_the_nearest_angle_is_equivalent_and_inside_the_limits(target, value, lower, width):
    upper = lower + width
    nearest = nearest_equivalent_value(target, value, lower, upper)
    assert abs(math.remainder(nearest - target, REVOLUTION)) < 1e-9
    equivalents = target + REVOLUTION * np.arange(-30, 31)
    allowed = equivalents[(equivalents >= lower) & (equivalents <= upper)]
    if len(allowed):
        assert lower - 1e-9 <= nearest <= upper + 1e-9
        assert abs(nearest - value) <= np.abs(allowed - value).min() + 1e-9
    else:
        assert np.isclose(
            max(lower - nearest, nearest - upper), np.maximum(lower - equivalents, equivalents - upper).min()
        )


def test_full_revolutions_count_only_with_angle_mode_exact():
    mechanism = arm()
    q = np.array([REVOLUTION + 0.1, 0.0])
    near, exact = JointValues({"shoulder": 0.0}), JointValues({"shoulder": 0.0}, angle_mode="exact")
    np.testing.assert_allclose(near.residual(mechanism, q), [0.1])
    np.testing.assert_allclose(exact.residual(mechanism, q), [REVOLUTION + 0.1])
    np.testing.assert_allclose(near.nearest_relations(mechanism, q)[0].target, [REVOLUTION])
    assert near.relations(mechanism)[0].target == [0.0]
    limited = arm(limits=(-7, 6))
    np.testing.assert_allclose(near.nearest_relations(limited, [6.0, 0.0])[0].target, [0.0])
    upper = np.array([7.0, 7.0])
    np.testing.assert_allclose(near.nearest_relations(limited, [6.0, 0.0], upper=upper)[0].target, [REVOLUTION])


def test_a_joint_that_closes_a_loop_can_have_a_target():
    builder = Builder("four-bar")
    builder.revolute("crank", "ground", "crank", value=0.5)
    builder.revolute("knee", "crank", "coupler", at=(1, 0, 0), value=-0.5)
    builder.revolute("rocker", "ground", "rocker", at=(2, 0, 0), value=0.5)
    builder.close("pin", "coupler", "rocker", "pin", at=(2, 0, 0), onto=(1, 0, 0))
    mechanism = builder.build()
    objective = JointValues({"pin": 0.8})
    for crank in (0.5, 0.8, 1.1):  # a parallelogram: the coupler stays level, so the pin turns with the rocker
        q = np.array([crank, -crank, crank])
        np.testing.assert_allclose(objective.residual(mechanism, q), [crank - 0.8], atol=1e-12)
    assert objective.with_target({"pin": 1.1}).error(mechanism, q).rotation < 1e-12


def test_slider_universal_and_spherical_joints_that_close_a_loop_can_have_targets():
    for kind, value in (("slider", 0.25), ("universal", [0.3, -0.4]), ("ball", [0.1, 0.2, 0.3])):
        builder = Builder()
        builder.free("base", "world", "body")
        closure = builder.close("hold", "world", "body", kind, at=(1, 0, 0), axis=(1, 1, 0))
        mechanism = builder.build()
        joint = closure.joint
        joint._values[list(joint.dof)] = value  # where the body has to be for the joint to hold this
        joint._rotation_wxyz = quaternion.from_euler(joint._values[[5, 4, 3]], order="zyx", axes="moving")
        A = quaternion.to_matrix(joint.axes_wxyz)
        R = A @ quaternion.to_matrix(joint._rotation_wxyz) @ A.T
        p = joint.matrix[:3, 3] + A @ joint._values[:3]
        X_end = closure.at.matrix
        R_body = R @ X_end[:3, :3].T
        q = np.concatenate([p - R_body @ X_end[:3, 3], quaternion.from_matrix(R_body)])
        np.testing.assert_allclose(JointValues({"hold": value}).residual(mechanism, q), 0, atol=1e-12)
        residual = JointValues({"hold": np.asarray(value) + 0.1}).residual(mechanism, q)
        assert np.linalg.norm(residual) > 0.09


def test_wrong_joint_values_are_refused_by_name():
    mechanism = mixed_mechanism()
    with pytest.raises(UnknownName, match="Did you mean 'slide'"):
        JointValues({"slid": 0.1}).relations(mechanism)
    with pytest.raises(UnknownName, match="dof of joint"):
        JointValues({"float.W": 0.1}).relations(mechanism)
    with pytest.raises(DoFError, match="fixed"):
        JointValues({"weld": 0.1}).relations(mechanism)
    with pytest.raises(DoFError, match="all three"):
        JointValues({"hip.EX": 0.1}).relations(mechanism)
    with pytest.raises(ShapeError, match="2 values given"):
        JointValues({"slide": [0.1, 0.2]}).relations(mechanism)
    with pytest.raises(ShapeError, match="2 values given"):
        JointValues({"hip": [0.1, 0.2]}).relations(mechanism)
    with pytest.raises(NotARotation, match="norm 2"):
        JointValues({"hip": [2, 0, 0, 0]}).relations(mechanism)
    with pytest.raises(NotFinite, match="'slide'"):
        JointValues({"slide": math.nan})
    with pytest.raises(ShapeError, match="neither"):
        JointValues({"slide": "far"})
    with pytest.raises(ShapeError, match="by name"):
        JointValues([0.1, 0.2])
    with pytest.raises(ShapeError, match="shape"):
        JointValues({"slide": np.eye(2)})
    with pytest.raises(ObjectiveError, match="empty"):
        JointValues({})
    with pytest.raises(ObjectiveError, match="angle_mode"):
        JointValues({"slide": 0.0}, angle_mode="all")


def test_a_mimic_joint_with_ratio_zero_has_no_target():
    builder = Builder()
    builder.revolute("leader", "base", "a")
    builder.revolute("still", "a", "b")
    builder.couple("still", "leader", ratio=0.0, offset=0.5)
    with pytest.raises(CouplingError, match="ratio 0"):
        JointValues({"still": 0.4}).relations(builder.build())


def test_with_target_takes_values_by_name_or_a_single_value():
    objective = JointValues({"slide": 0.5, "turn": 0.2}, level=3)
    changed = objective.with_target({"turn": 0.4})
    assert {name: value.tolist() for name, value in changed.values.items()} == {"slide": [0.5], "turn": [0.4]}
    assert objective.values["turn"] == [0.2]
    assert changed.level == 3
    assert JointValues({"slide": 0.5}).with_target(0.6).values["slide"] == [0.6]
    with pytest.raises(ObjectiveError, match="by name"):
        objective.with_target(0.6)
    with pytest.raises(UnknownName, match="turn"):
        objective.with_target({"turm": 0.6})


# ---- rest poses -------------------------------------------------------------------------------


@given(mechanisms, seeds)
def test_a_rest_pose_is_the_difference_of_configurations(mechanism, seed):
    rng = np.random.default_rng(seed)
    q, rest = mechanism.random(rng), mechanism.random(rng)
    objective = RestPose(rest, angle_mode="exact")
    np.testing.assert_allclose(
        np.sort(objective.residual(mechanism, q)), np.sort(mechanism.difference(rest, q)), atol=1e-9
    )
    assert len(RestPose(rest).residual(mechanism, q)) == mechanism.nv


def test_a_rest_pose_has_the_lowest_level_and_is_not_required():
    objective = RestPose([0.0, 0.0])
    assert (objective.level, objective.required) == (100, False)
    assert (RestPose(level=2, required=True).level, RestPose(required=True).required) == (2, True)


def test_without_q_the_rest_poses_of_the_joints_are_used():
    mechanism = mixed_mechanism()
    q = mechanism.neutral()
    assert RestPose().residual(mechanism, q).size == 0
    mechanism.joint("slide").set_rest_pose(0.5)
    mechanism.joint("turn").set_rest_pose(REVOLUTION - 0.1)
    mechanism.joint("float").set_rest_value("Y", 0.2)
    np.testing.assert_allclose(RestPose().residual(mechanism, q), [-0.5, 0.1, -0.2])
    mechanism.joint("turn").track_turns = True
    np.testing.assert_allclose(RestPose().residual(mechanism, q), [-0.5, 0.1 - REVOLUTION, -0.2])
    mechanism.joint("hip").set_rest_pose(0.3, 0, 0)
    np.testing.assert_allclose(RestPose().residual(mechanism, q)[3:], [-0.3, 0, 0])


def test_angles_of_a_spherical_joint_without_rest_value_keep_their_value():
    mechanism = mixed_mechanism()
    mechanism.joint("hip").set_values(0.1, 0.2, 0.4)
    mechanism.joint("hip").set_rest_value("EX", 0.3)
    q = mechanism.configuration({"hip": [0.3, 0.2, 0.4]})
    np.testing.assert_allclose(RestPose().residual(mechanism, q), 0, atol=1e-12)


def test_a_joint_that_closes_a_loop_can_have_a_rest_pose():
    builder = Builder()
    builder.free("base", "world", "body")
    builder.close("hold", "world", "body", "cylindrical", at=(1, 0, 0))
    mechanism = builder.build()
    mechanism.joint("hold").set_rest_value("Z", 0.25)
    np.testing.assert_allclose(RestPose().residual(mechanism, mechanism.neutral()), [-0.25])
    mechanism.joint("hold").set_rest_value("EZ", 0.5)
    np.testing.assert_allclose(RestPose().residual(mechanism, mechanism.neutral()), [-0.25, -0.5])


def test_weights_by_name_scale_the_relations_and_zero_removes_one():
    mechanism = mixed_mechanism()
    objective = RestPose(
        mechanism.neutral(), weights={"slide": 0.0, "float": 0.5, "float.X": 3.0, "hip": 7.0}, weight=2.0
    )
    weights = {relation.dof_name: relation.weight for relation in objective.relations(mechanism)}
    assert weights == {"turn": 2, "float.X": 6, "float.Y": 1, "float.Z": 1, "float": 1, "hip": 14}
    with pytest.raises(UnknownName):
        RestPose(weights={"slid": 1}).relations(mechanism)
    with pytest.raises(DoFError, match="spherical"):
        RestPose(weights={"hip.EX": 1}).relations(mechanism)
    with pytest.raises(ObjectiveError, match="negative"):
        RestPose(weights={"slide": -1})
    with pytest.raises(ShapeError, match="by name"):
        RestPose(weights=[1, 2])


def test_a_rest_pose_of_the_wrong_size_is_refused():
    with pytest.raises(ShapeError, match="2 numbers"):
        RestPose([0.0]).relations(arm())
    with pytest.raises(NotFinite):
        RestPose([0.0, math.nan])
    with pytest.raises(ShapeError, match="shape"):
        RestPose(np.zeros((2, 2)))
    with pytest.raises(ShapeError, match="numbers"):
        RestPose("up")


def test_a_rest_pose_may_be_given_by_name_and_replaced():
    objective = RestPose({"elbow": 0.5})
    assert objective.residual(arm(), [1.0, 1.0]).tolist() == [0.5]
    assert objective.with_target([0.0, 0.0]).residual(arm(), [1.0, 1.0]).tolist() == [1.0, 1.0]
