"""Objectives beyond placing a link: joint values, rest poses, masses, looks, distances, bands, and functions."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_mechanisms import mechanisms, random_turn, seeds

from mechanik import Builder, Inertial, Pose
from mechanik.errors import (
    CouplingError,
    DoFError,
    InvalidArgument,
    LimitsError,
    MechanikError,
    NotARotation,
    NotFinite,
    ObjectiveError,
    ShapeError,
    UnknownName,
)
from mechanik.objectives.centre_of_mass import CentreOfMass
from mechanik.objectives.function_objectives import Custom, Manipulability
from mechanik.objectives.joint_goals import JointValues, RestPose, nearest_equivalent_value
from mechanik.objectives.region_goals import Distance, InBand, InBox, InCone, LookAt, OnTerrain
from mechanik.objectives.relation import RelationKind
from mechanik.objectives.terrain import Terrain
from mechanik.spatial import euler, quaternion

TURN = 2 * math.pi


def arm(**options):
    """Two links of 1 m in the plane, each with 1 kg in its middle."""
    builder = Builder("arm")
    builder.revolute("shoulder", "base", "upper", **options)
    builder.revolute("elbow", "upper", "fore", at=(1, 0, 0))
    builder.fixed("wrist", "fore", "hand", at=(1, 0, 0))
    for link in ("upper", "fore"):
        builder.link(link, inertial=Inertial(1.0, Pose((0.5, 0, 0))))
    return builder.build()


def mixed():
    """One of each: a slide, a turn, one that follows it, a floating body, a ball."""
    builder = Builder("mixed")
    builder.prismatic("slide", "base", "cart", limits=(-1, 1))
    builder.revolute("turn", "cart", "disc", limits=(-10, 10))
    builder.revolute("gear", "disc", "wheel", at=(1, 0, 0))
    builder.couple("gear", "turn", ratio=-2.0, offset=0.3)
    builder.free("float", "base", "body")
    builder.spherical("hip", "body", "leg")
    builder.fixed("weld", "leg", "foot")
    return builder.build()


# ---- joint values -----------------------------------------------------------------------------


@given(mechanisms, seeds)
def test_at_the_values_that_are_wanted_nothing_is_left(mechanism, seed):
    q = mechanism.random(np.random.default_rng(seed))
    values = {name: value for name, value in mechanism.values(q).items() if not mechanism.joint(name).couplings}
    if values:
        wish = JointValues(values)
        np.testing.assert_allclose(wish.residual(mechanism, q), 0, atol=1e-7)
        assert wish.error(mechanism, q).position < 1e-12


def test_values_are_wanted_by_joint_or_by_freedom():
    mechanism = mixed()
    q = mechanism.neutral()
    wish = JointValues({"slide": 0.5, "float.X": 2.0, "turn": -0.25})
    assert wish.residual(mechanism, q).tolist() == [-0.5, -2.0, 0.25]
    assert wish.error(mechanism, q).position == 2.0
    assert wish.error(mechanism, q).rotation == 0.25


@pytest.mark.parametrize("seed", range(3))
def test_a_ball_takes_its_angles_or_a_quaternion(seed):
    mechanism, rng = mixed(), np.random.default_rng(seed)
    wxyz = random_turn(rng)
    zyx = euler.euler_from_quaternion(wxyz, order="zyx", axes="moving")
    q = mechanism.random(rng)
    one = JointValues({"hip": wxyz}).residual(mechanism, q)
    np.testing.assert_allclose(JointValues({"hip": zyx[::-1]}).residual(mechanism, q), one, atol=1e-12)
    whole = JointValues({"float": [1, 2, 3, *wxyz]})
    np.testing.assert_allclose(
        JointValues({"float": [1, 2, 3, *zyx[::-1]]}).residual(mechanism, q), whole.residual(mechanism, q), atol=1e-12
    )
    assert len(one) == 3
    assert len(whole.residual(mechanism, q)) == 6


def test_what_a_follower_should_do_is_asked_of_its_leader():
    mechanism = mixed()
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


def test_names_that_mean_the_same_must_agree():
    mechanism = mixed()
    assert len(JointValues({"gear": 1.3, "turn": -0.5}).relations(mechanism)) == 1
    with pytest.raises(ObjectiveError, match="contradict each other"):
        JointValues({"gear": 1.3, "turn": 0.5}).relations(mechanism)


@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(-20, 20), st.floats(0, 20))
def test_the_nearest_angle_looks_the_same_and_lies_inside_the_limits(target, value, lower, width):
    upper = lower + width
    found = nearest_equivalent_value(target, value, lower, upper)
    assert abs(math.remainder(found - target, TURN)) < 1e-9
    others = target + TURN * np.arange(-30, 31)
    inside = others[(others >= lower) & (others <= upper)]
    if len(inside):
        assert lower - 1e-9 <= found <= upper + 1e-9
        assert abs(found - value) <= np.abs(inside - value).min() + 1e-9
    else:
        assert np.isclose(max(lower - found, found - upper), np.maximum(lower - others, others - upper).min())


def test_full_turns_count_only_where_that_is_asked():
    mechanism = arm()
    q = np.array([TURN + 0.1, 0.0])
    near, exact = JointValues({"shoulder": 0.0}), JointValues({"shoulder": 0.0}, angle_mode="exact")
    np.testing.assert_allclose(near.residual(mechanism, q), [0.1])
    np.testing.assert_allclose(exact.residual(mechanism, q), [TURN + 0.1])
    np.testing.assert_allclose(near.nearest_relations(mechanism, q)[0].target, [TURN])
    assert near.relations(mechanism)[0].target == [0.0]
    limited = arm(limits=(-7, 6))
    np.testing.assert_allclose(near.nearest_relations(limited, [6.0, 0.0])[0].target, [0.0])
    upper = np.array([7.0, 7.0])
    np.testing.assert_allclose(near.nearest_relations(limited, [6.0, 0.0], upper=upper)[0].target, [TURN])


def test_a_joint_that_closes_a_loop_can_be_driven_too():
    builder = Builder("four-bar")
    builder.revolute("crank", "ground", "crank", value=0.5)
    builder.revolute("knee", "crank", "coupler", at=(1, 0, 0), value=-0.5)
    builder.revolute("rocker", "ground", "rocker", at=(2, 0, 0), value=0.5)
    builder.close("pin", "coupler", "rocker", "pin", at=(2, 0, 0), onto=(1, 0, 0))
    mechanism = builder.build()
    wish = JointValues({"pin": 0.8})
    for crank in (0.5, 0.8, 1.1):  # a parallelogram: the coupler stays level, so the pin turns with the rocker
        q = np.array([crank, -crank, crank])
        np.testing.assert_allclose(wish.residual(mechanism, q), [crank - 0.8], atol=1e-12)
    assert wish.with_target({"pin": 1.1}).error(mechanism, q).rotation < 1e-12


def test_a_slider_and_a_universal_joint_that_close_a_loop_can_be_driven():
    for kind, value in (("slider", 0.25), ("universal", [0.3, -0.4]), ("ball", [0.1, 0.2, 0.3])):
        builder = Builder()
        builder.free("base", "world", "body")
        closure = builder.close("hold", "world", "body", kind, at=(1, 0, 0), axis=(1, 1, 0))
        mechanism = builder.build()
        joint = closure.joint
        joint._values[list(joint.dof)] = value  # where the body has to be for the joint to hold this
        joint._turn = euler.quaternion_from_euler(joint._values[[5, 4, 3]], order="zyx", axes="moving")
        A = quaternion.to_matrix(joint.axes_wxyz)
        R = A @ quaternion.to_matrix(joint._turn) @ A.T
        p = joint.matrix[:3, 3] + A @ joint._values[:3]
        at = closure.at.matrix
        R_body = R @ at[:3, :3].T
        q = np.concatenate([p - R_body @ at[:3, 3], quaternion.from_matrix(R_body)])
        np.testing.assert_allclose(JointValues({"hold": value}).residual(mechanism, q), 0, atol=1e-12)
        away = JointValues({"hold": np.asarray(value) + 0.1}).residual(mechanism, q)
        assert np.linalg.norm(away) > 0.09


def test_what_cannot_be_asked_of_a_joint_is_refused_by_name():
    mechanism = mixed()
    with pytest.raises(UnknownName, match="Did you mean 'slide'"):
        JointValues({"slid": 0.1}).relations(mechanism)
    with pytest.raises(UnknownName, match="freedom of joint"):
        JointValues({"float.W": 0.1}).relations(mechanism)
    with pytest.raises(DoFError, match="fixed"):
        JointValues({"weld": 0.1}).relations(mechanism)
    with pytest.raises(DoFError, match="all three"):
        JointValues({"hip.EX": 0.1}).relations(mechanism)
    with pytest.raises(ShapeError, match="2 given"):
        JointValues({"slide": [0.1, 0.2]}).relations(mechanism)
    with pytest.raises(ShapeError, match="2 given"):
        JointValues({"hip": [0.1, 0.2]}).relations(mechanism)
    with pytest.raises(NotARotation, match="length 2"):
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


def test_a_follower_that_stands_still_cannot_be_asked():
    builder = Builder()
    builder.revolute("leader", "base", "a")
    builder.revolute("still", "a", "b")
    builder.couple("still", "leader", ratio=0.0, offset=0.5)
    with pytest.raises(CouplingError, match="ratio 0"):
        JointValues({"still": 0.4}).relations(builder.build())


def test_other_values_are_wanted_by_name_or_bare():
    wish = JointValues({"slide": 0.5, "turn": 0.2}, level=3)
    other = wish.with_target({"turn": 0.4})
    assert {name: value.tolist() for name, value in other.values.items()} == {"slide": [0.5], "turn": [0.4]}
    assert wish.values["turn"] == [0.2]
    assert other.level == 3
    assert JointValues({"slide": 0.5}).with_target(0.6).values["slide"] == [0.6]
    with pytest.raises(ObjectiveError, match="by name"):
        wish.with_target(0.6)
    with pytest.raises(UnknownName, match="turn"):
        wish.with_target({"turm": 0.6})


# ---- rest poses -------------------------------------------------------------------------------


@given(mechanisms, seeds)
def test_a_rest_pose_is_the_difference_of_configurations(mechanism, seed):
    rng = np.random.default_rng(seed)
    q, rest = mechanism.random(rng), mechanism.random(rng)
    wish = RestPose(rest, angle_mode="exact")
    np.testing.assert_allclose(np.sort(wish.residual(mechanism, q)), np.sort(mechanism.difference(rest, q)), atol=1e-9)
    assert len(RestPose(rest).residual(mechanism, q)) == mechanism.nv


def test_a_rest_pose_comes_last_and_is_no_condition():
    wish = RestPose([0.0, 0.0])
    assert (wish.level, wish.required) == (100, False)
    assert (RestPose(level=2, required=True).level, RestPose(required=True).required) == (2, True)


def test_without_q_the_joints_say_where_they_rest():
    mechanism = mixed()
    q = mechanism.neutral()
    assert RestPose().residual(mechanism, q).size == 0
    mechanism.joint("slide").set_rest_pose(0.5)
    mechanism.joint("turn").set_rest_pose(TURN - 0.1)
    mechanism.joint("float").set_rest_value("Y", 0.2)
    np.testing.assert_allclose(RestPose().residual(mechanism, q), [-0.5, 0.1, -0.2])
    mechanism.joint("turn").track_turns = True
    np.testing.assert_allclose(RestPose().residual(mechanism, q), [-0.5, 0.1 - TURN, -0.2])
    mechanism.joint("hip").set_rest_pose(0.3, 0, 0)
    np.testing.assert_allclose(RestPose().residual(mechanism, q)[3:], [-0.3, 0, 0])


def test_of_a_ball_the_angles_that_do_not_matter_count_as_they_are():
    mechanism = mixed()
    mechanism.joint("hip").set_values(0.1, 0.2, 0.4)
    mechanism.joint("hip").set_rest_value("EX", 0.3)
    q = mechanism.configuration({"hip": [0.3, 0.2, 0.4]})
    np.testing.assert_allclose(RestPose().residual(mechanism, q), 0, atol=1e-12)


def test_a_joint_that_closes_a_loop_rests_too():
    builder = Builder()
    builder.free("base", "world", "body")
    builder.close("hold", "world", "body", "cylindrical", at=(1, 0, 0))
    mechanism = builder.build()
    mechanism.joint("hold").set_rest_value("Z", 0.25)
    np.testing.assert_allclose(RestPose().residual(mechanism, mechanism.neutral()), [-0.25])
    mechanism.joint("hold").set_rest_value("EZ", 0.5)
    np.testing.assert_allclose(RestPose().residual(mechanism, mechanism.neutral()), [-0.25, -0.5])


def test_weights_by_name_reach_the_rows_and_zero_leaves_one_out():
    mechanism = mixed()
    wish = RestPose(mechanism.neutral(), weights={"slide": 0.0, "float": 0.5, "float.X": 3.0, "hip": 7.0}, weight=2.0)
    weights = {relation.dof_name: relation.weight for relation in wish.relations(mechanism)}
    assert weights == {"turn": 2, "float.X": 6, "float.Y": 1, "float.Z": 1, "float": 1, "hip": 14}
    with pytest.raises(UnknownName):
        RestPose(weights={"slid": 1}).relations(mechanism)
    with pytest.raises(DoFError, match="spherical"):
        RestPose(weights={"hip.EX": 1}).relations(mechanism)
    with pytest.raises(ObjectiveError, match="negative"):
        RestPose(weights={"slide": -1})
    with pytest.raises(ShapeError, match="by name"):
        RestPose(weights=[1, 2])


def test_a_rest_pose_of_another_mechanism_is_refused():
    with pytest.raises(ShapeError, match="2 numbers"):
        RestPose([0.0]).relations(arm())
    with pytest.raises(NotFinite):
        RestPose([0.0, math.nan])
    with pytest.raises(ShapeError, match="shape"):
        RestPose(np.zeros((2, 2)))
    with pytest.raises(ShapeError, match="numbers"):
        RestPose("up")


def test_a_rest_pose_may_name_some_joints_and_be_moved():
    wish = RestPose({"elbow": 0.5})
    assert wish.residual(arm(), [1.0, 1.0]).tolist() == [0.5]
    assert wish.with_target([0.0, 0.0]).residual(arm(), [1.0, 1.0]).tolist() == [1.0, 1.0]


# ---- centre of mass ---------------------------------------------------------------------------


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_the_centre_of_mass_of_two_links_is_the_mean_of_their_middles(shoulder, elbow):
    first = np.array([math.cos(shoulder), math.sin(shoulder), 0])
    second = np.array([math.cos(shoulder + elbow), math.sin(shoulder + elbow), 0])
    centre = (0.5 * first + first + 0.5 * second) / 2
    wish = CentreOfMass((0.1, 0.2, 0.3))
    np.testing.assert_allclose(wish.residual(arm(), [shoulder, elbow]), centre - [0.1, 0.2, 0.3], atol=1e-12)
    flat = CentreOfMass((0.1, 0.2, 0.3), dof=("X", "Y"), links="upper")
    np.testing.assert_allclose(flat.residual(arm(), [shoulder, elbow]), 0.5 * first[:2] - [0.1, 0.2], atol=1e-12)


def test_a_centre_of_mass_can_be_seen_from_a_link():
    wish = CentreOfMass((0, 0, 0), relative_to="upper")
    mechanism = arm()
    np.testing.assert_allclose(wish.residual(mechanism, [0.7, 0.0]), [1.0, 0, 0], atol=1e-12)
    assert not wish.jacobian(mechanism, [0.7, 0.0])[:, 0].any()


SQUARE = [(0, 0), (1, 0), (1, 1), (0, 1)]


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 0.4), st.permutations([*SQUARE, (0.5, 0.5), (0.5, 0), (0, 0)]))
def test_over_a_polygon_is_inside_all_its_sides(shoulder, elbow, margin, points):
    mechanism = arm()
    centre = CentreOfMass((0, 0, 0)).residual(mechanism, [shoulder, elbow])[:2]
    wish = CentreOfMass(support=points, margin=margin)
    rows = wish.residual(mechanism, [shoulder, elbow])
    assert len(rows) == 4
    depth = np.minimum(centre, 1 - centre).min()
    assert np.isclose(-rows.min(), max(margin - depth, 0.0), atol=1e-12)


def test_heights_of_a_support_do_not_count_and_a_thin_one_is_a_line():
    mechanism = arm()
    q = [0.0, 0.0]  # the centre is at (1, 0)
    tilted = CentreOfMass(support=[(0, -1, 0), (2, -1, 1), (1, 1, 5)])
    assert not tilted.residual(mechanism, q).any()
    line = CentreOfMass(support=[(0, 0), (0.5, 0), (0.25, 0)])
    np.testing.assert_allclose(np.sort(line.residual(mechanism, q)), [0, 0.5], atol=1e-12)
    np.testing.assert_allclose(np.sort(line.residual(mechanism, [math.pi / 2, 0])), [0, 1], atol=1e-12)
    point = CentreOfMass(support=[(0.25, 0)])
    np.testing.assert_allclose(point.residual(mechanism, q), [0.75, 0], atol=1e-12)


def test_a_support_that_leaves_no_room_and_masses_that_are_none_are_refused():
    with pytest.raises(ObjectiveError, match="leaves no area"):
        CentreOfMass(support=SQUARE, margin=0.51)
    CentreOfMass(support=SQUARE, margin=0.49)
    with pytest.raises(ObjectiveError, match="without area"):
        CentreOfMass(support=SQUARE[:2], margin=0.1)
    with pytest.raises(ObjectiveError, match="leaves no area"):
        CentreOfMass(support=SQUARE, margin=0.3).with_target([(0, 0), (0.1, 0), (0, 0.1)])
    with pytest.raises(ObjectiveError, match="negative"):
        CentreOfMass(support=SQUARE, margin=-0.1)
    with pytest.raises(ObjectiveError, match="either a target point or a support polygon"):
        CentreOfMass()
    with pytest.raises(ObjectiveError, match="either a target point or a support polygon"):
        CentreOfMass((0, 0, 0), support=SQUARE)
    with pytest.raises(ShapeError, match="points"):
        CentreOfMass(support=[(0, 0, 0, 0)])
    with pytest.raises(ShapeError, match="points"):
        CentreOfMass(support=[])
    with pytest.raises(NotFinite):
        CentreOfMass(support=[(0, math.inf)])
    with pytest.raises(DoFError, match="X Y Z"):
        CentreOfMass((0, 0, 0), dof=("X", "EX"))
    with pytest.raises(ObjectiveError, match="no mass in the mechanism"):
        CentreOfMass((0, 0, 0)).relations(mixed())
    with pytest.raises(ObjectiveError, match="links hand"):
        CentreOfMass((0, 0, 0), links=["hand"]).relations(arm())
    with pytest.raises(UnknownName, match="fore"):
        CentreOfMass((0, 0, 0), links=["for"]).relations(arm())


# ---- looking, distances -----------------------------------------------------------------------


def test_looking_leaves_the_angle_to_the_target():
    mechanism = arm()
    eyes = LookAt("hand", (2, 1, 0), axis=(5, 0, 0))
    np.testing.assert_allclose(np.linalg.norm(eyes.residual(mechanism, [0.0, 0.0])), math.pi / 2)
    assert eyes.with_target((3, 0, 0)).error(mechanism, [0.0, 0.0]).rotation < 1e-12
    beside = LookAt("hand", (3, 1, 0), axis=(1, 0, 0), at=(0, 1, 0))
    assert beside.error(mechanism, [0.0, 0.0]).rotation < 1e-12
    assert not LookAt("hand", (2, 0, 0)).residual(mechanism, [0.0, 0.0]).any()
    back = LookAt("hand", (0, 0, 0), axis=(-1, 0, 0), relative_to="base")
    assert back.error(mechanism, [0.7, 0.0]).rotation < 1e-12
    with pytest.raises(NotARotation, match="zero"):
        LookAt("hand", (0, 0, 0), axis=(0, 0, 0))
    with pytest.raises(ObjectiveError, match="relative to itself"):
        LookAt("hand", (0, 0, 0), relative_to="hand")


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_a_distance_is_equal_at_least_or_at_most(shoulder, elbow):
    mechanism, q = arm(), [shoulder, elbow]
    reach = 2 * abs(math.cos(elbow / 2))  # from the shoulder to the hand, by the law of cosines
    np.testing.assert_allclose(Distance("hand", "base", equal=1.5).residual(mechanism, q), [reach - 1.5], atol=1e-7)
    np.testing.assert_allclose(Distance("hand", at_least=1.5).residual(mechanism, q), [min(reach - 1.5, 0)], atol=1e-7)
    np.testing.assert_allclose(Distance("hand", at_most=0.5).residual(mechanism, q), [max(reach - 0.5, 0)], atol=1e-7)
    both = Distance("hand", at_least=0.5, at_most=1.5)
    np.testing.assert_allclose(both.residual(mechanism, q), [reach - np.clip(reach, 0.5, 1.5)], atol=1e-7)


def test_points_that_should_meet_have_three_rows():
    wish = Distance("hand", equal=0.0, other_at=(2, 0, 0))
    assert wish.residual(arm(), [0.0, 0.0]).tolist() == [0, 0, 0]
    assert len(wish.with_target(0.5).residual(arm(), [0.0, 0.0])) == 1


def test_distances_that_cannot_be_are_refused():
    with pytest.raises(ObjectiveError, match="negative"):
        Distance("hand", equal=-1)
    with pytest.raises(ObjectiveError, match="either equal="):
        Distance("hand")
    with pytest.raises(ObjectiveError, match="either equal="):
        Distance("hand", equal=1, at_most=2)
    with pytest.raises(LimitsError, match="at_least of Distance is 2 m"):
        Distance("hand", at_least=2, at_most=1)
    with pytest.raises(ObjectiveError, match="distance is constant"):
        Distance("hand", "hand", equal=1)
    with pytest.raises(ObjectiveError, match="two bounds"):
        Distance("hand", at_least=1, at_most=2).with_target(3)
    with pytest.raises(NotFinite):
        Distance("hand", equal=math.nan)
    with pytest.raises(UnknownName):
        Distance("hand", "bas", equal=1).relations(arm())


# ---- bands ------------------------------------------------------------------------------------


def test_in_a_box_is_between_its_bounds():
    mechanism = arm()
    box = InBox("hand", (-1, -1, -math.inf), (1, 0.5, math.inf))
    assert box.residual(mechanism, [0.0, 0.0]).tolist() == [1, 0]
    np.testing.assert_allclose(box.residual(mechanism, [math.pi / 2, 0]), [0, 1.5], atol=1e-12)
    assert box.with_target((2, 0, 0)).residual(mechanism, [0.0, 0.0]).tolist() == [0, 0]
    turned = Pose(wxyz=quaternion.exp([0, 0, math.pi / 2]))
    np.testing.assert_allclose(box.with_target(turned).residual(mechanism, [0.0, 0.0]), [0, -1], atol=1e-12)
    carried = InBox("hand", (0, 0, 0), (1, 1, 1), relative_to="upper")
    np.testing.assert_allclose(carried.residual(mechanism, [1.0, 0.0]), [1, 0, 0], atol=1e-12)


def test_boxes_and_bands_that_hold_nothing_are_refused():
    with pytest.raises(LimitsError, match="box .* is empty"):
        InBox("hand", (0, 0, 0), (1, -1, 1))
    with pytest.raises(ObjectiveError, match="no finite bound"):
        InBox("hand", [-math.inf] * 3, [math.inf] * 3)
    with pytest.raises(NotFinite):
        InBox("hand", (0, 0, math.nan), (1, 1, 1))
    with pytest.raises(ShapeError):
        InBox("hand", (0, 0), (1, 1, 1))
    with pytest.raises(LimitsError, match="band .* is empty"):
        InBand("hand", "z", 1, 0)
    with pytest.raises(ObjectiveError, match="lower or upper"):
        InBand("hand", "z")
    with pytest.raises(UnknownName, match="coordinate"):
        InBand("hand", "height", 0)
    with pytest.raises(ObjectiveError, match="itself"):
        InBand("hand", "z", 0, relative_to="hand")


def test_in_a_band_one_coordinate_is_between_two_values():
    mechanism = arm()
    assert InBand("hand", "x", upper=1.5).residual(mechanism, [0.0, 0.0]).tolist() == [0.5]
    assert InBand("hand", "x", lower=1.5).residual(mechanism, [0.0, 0.0]).tolist() == [0]
    np.testing.assert_allclose(InBand("hand", "rz", -0.1, 0.1).residual(mechanism, [0.2, 0.3]), [0.4])
    assert InBand("hand", "rz", -0.1, 0.1).error(mechanism, [0.2, 0.3]).position == 0
    assert InBand("hand", "x", upper=1.5, at=(0.5, 0, 0)).with_target((1, 0, 0)).residual(
        mechanism, [0.0, 0.0]
    ).tolist() == [0]


@given(st.floats(-3, 3), st.floats(0.1, 3))
def test_in_a_cone_is_within_its_angle(shoulder, angle):
    cone = InCone("hand", (2, 0, 0), (0, 3, 0), angle)
    missing = min(math.cos(math.pi / 2 - shoulder) - math.cos(angle), 0)
    np.testing.assert_allclose(cone.residual(arm(), [shoulder, 0.0]), [missing], atol=1e-12)
    assert not cone.with_target((math.cos(shoulder), math.sin(shoulder), 0)).residual(arm(), [shoulder, 0.0]).any()


@pytest.mark.parametrize("angle", [0, -1, math.pi, 4])
def test_cones_without_an_opening_are_refused(angle):
    with pytest.raises(LimitsError, match="between"):
        InCone("hand", (1, 0, 0), (1, 0, 0), angle)


# ---- manipulability ---------------------------------------------------------------------------


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_the_measure_of_two_links_is_the_area_that_they_span(shoulder, elbow):
    wish = Manipulability("hand", ("X", "Y"), reference=0.5)
    w = abs(math.sin(elbow))
    np.testing.assert_allclose(wish.measure(arm(), [shoulder, elbow]), w, atol=1e-12)
    np.testing.assert_allclose(wish.residual(arm(), [shoulder, elbow]), [0.5 / (w + 0.5)], atol=1e-12)
    slope = -0.5 / (w + 0.5) ** 2 * math.cos(elbow) * math.copysign(1.0, elbow)
    if abs(elbow) > 1e-6:
        np.testing.assert_allclose(wish.jacobian(arm(), [shoulder, elbow]), [[0, slope]], atol=1e-9)


def test_a_singular_pose_has_a_way_out():
    J = Manipulability("hand", ("X", "Y")).jacobian(arm(), [0.3, 0.0])
    assert abs(J[0, 1]) > 0.1
    assert abs(J[0, 0]) < 1e-9


def test_the_usual_measure_is_found_and_does_not_change_from_call_to_call():
    wish = Manipulability("hand", ("X", "Y"))
    assert (wish.level, wish.required) == (50, False)
    rows = [wish.residual(arm(), [0.3, 0.8]) for _ in range(2)]
    assert rows[0] == rows[1]
    assert 0.2 < rows[0] < 0.8


def test_motions_that_count_may_be_chosen():
    mechanism = mixed()
    only = Manipulability("leg", ("EX", "EY", "EZ"), joints="hip")
    np.testing.assert_allclose(only.measure(mechanism, mechanism.neutral()), 1.0)
    both = Manipulability("leg", ("EX", "EY", "EZ"), joints=["hip", "float.EX", "float.EY", "float.EZ"])
    np.testing.assert_allclose(both.measure(mechanism, mechanism.neutral()), math.sqrt(8))


def test_speeds_that_cannot_be_had_are_refused():
    with pytest.raises(ObjectiveError, match="2 dofs cannot give 6 independent velocities"):
        Manipulability("hand").relations(arm())
    with pytest.raises(ObjectiveError, match="singular everywhere"):
        Manipulability("hand", ("X", "Z")).relations(arm())
    with pytest.raises(ObjectiveError, match="above zero"):
        Manipulability("hand", reference=0)
    with pytest.raises(DoFError, match="dof of Manipulability is empty"):
        Manipulability("hand", ())
    with pytest.raises(UnknownName):
        Manipulability("hand", "X", joints="elbw").relations(arm())


# ---- functions of the user --------------------------------------------------------------------


def height(mechanism, q):
    return mechanism.pose("hand", q)[1, 3]


def position(mechanism, q):
    return mechanism.pose("hand", q)[:3, 3]


def speed(mechanism, q):
    return mechanism.jacobian("hand", q)[:3]


def test_a_function_is_an_objective_with_and_without_a_jacobian():
    mechanism, q = arm(), np.array([0.3, 0.4])
    exact, found = Custom(position, speed), Custom(position)
    np.testing.assert_allclose(exact.residual(mechanism, q), position(mechanism, q))
    np.testing.assert_array_equal(exact.jacobian(mechanism, q), speed(mechanism, q))
    np.testing.assert_allclose(found.jacobian(mechanism, q), speed(mechanism, q), atol=1e-9)
    np.testing.assert_allclose(Custom(height).jacobian(mechanism, q), speed(mechanism, q)[1:2], atol=1e-9)
    banded = Custom(height, residual_size=1, lower=0, upper=0.5)
    np.testing.assert_allclose(banded.residual(mechanism, q), [max(height(mechanism, q) - 0.5, 0)])


def test_what_a_function_does_to_q_is_its_own_affair():
    def wild(mechanism, q):
        q[:] = 0
        return q.sum()

    q = np.array([0.3, 0.4])
    assert Custom(wild).residual(arm(), q) == [0]
    assert q.tolist() == [0.3, 0.4]


def test_a_function_that_fails_says_so_and_why():
    def broken(mechanism, q):
        raise ZeroDivisionError("no such place")

    with pytest.raises(ObjectiveError, match=r"Custom 'mine': its function failed at q = .*no such place") as caught:
        Custom(broken, name="mine").residual(arm(), [0.3, 0.4])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(ObjectiveError, match="its jacobian failed"):
        Custom(height, broken).residual(arm(), [0.3, 0.4])


@pytest.mark.parametrize(
    ("function", "jacobian", "says"),
    [
        (lambda m, q: math.nan, None, "nan"),
        (lambda m, q: [1.0, math.inf], None, "inf"),
        (lambda m, q: "far", None, "not numeric"),
        (lambda m, q: None, None, "nan"),
        (lambda m, q: np.eye(2), None, r"shape \(2, 2\)"),
        (lambda m, q: np.zeros(1 + int(q[0] > 0)), None, r"\(2,\), not \(1,\)"),
        (height, lambda m, q: [1.0, 2.0], r"not \(1, 2\)"),
        (height, lambda m, q: [[1.0, math.nan]], "nan"),
    ],
)
def test_a_function_that_returns_nonsense_is_refused(function, jacobian, says):
    with pytest.raises(ObjectiveError, match=says):
        Custom(function, jacobian).residual(arm(), [0.3, 0.4])


def test_custom_objectives_are_checked_when_they_are_made():
    with pytest.raises(InvalidArgument, match="functions"):
        Custom(3)
    with pytest.raises(InvalidArgument, match="functions"):
        Custom(height, 3)
    with pytest.raises(ObjectiveError, match="whole number"):
        Custom(height, residual_size=1.5)
    with pytest.raises(ObjectiveError, match="at least 1"):
        Custom(height, residual_size=0)
    with pytest.raises(ObjectiveError, match="above zero"):
        Custom(height, step=0)
    with pytest.raises(ObjectiveError, match="does not have the size"):
        Custom(height, lower=[0, 1]).relations(arm())
    with pytest.raises(LimitsError, match="above upper"):
        Custom(height, lower=1, upper=0).relations(arm())
    with pytest.raises(ObjectiveError, match="must be a number or"):
        Custom(height, lower=math.nan)
    with pytest.raises(ObjectiveError, match="no target"):
        Custom(height).with_target((0, 0, 0))


# ---- all of them ------------------------------------------------------------------------------

WISHES = [
    (JointValues({"elbow": 0.3}), 0.5),
    (RestPose([0.1, 0.2]), [0.3, 0.4]),
    (CentreOfMass((0.1, 0.2, 0.3)), (0, 0, 0)),
    (CentreOfMass(support=SQUARE, margin=0.1), [(0, 0), (3, 0), (0, 3)]),
    (LookAt("hand", (3, 2, 1), (1, 0, 0)), (0, 0, 0)),
    (Distance("hand", equal=1.0), 0.7),
    (InBox("hand", (0, 0, 0), (1, 1, 1)), (1, 1, 1)),
    (InCone("hand", (1, 0, 0), (0, 1, 0), 0.3), (1, 0, 0)),
    (InBand("hand", "y", 0.2), (0, 1, 0)),
    (Manipulability("hand", ("X", "Y")), None),
    (OnTerrain("hand", Terrain([[0.0, 1.0], [2.0, 3.0]], 0.5), (0.1, 0, 0), radius=0.2), None),
    (Custom(position), None),
]


@pytest.mark.parametrize(("wish", "target"), WISHES, ids=lambda one: type(one).__name__)
def test_an_objective_survives_the_way_to_another_process(wish, target):
    again = pickle.loads(pickle.dumps(wish))
    q = [0.3, 0.4]
    np.testing.assert_array_equal(again.residual(arm(), q), wish.residual(arm(), q))
    assert (again.level, again.weight, repr(again)) == (wish.level, wish.weight, repr(wish))


@pytest.mark.parametrize(("wish", "target"), WISHES, ids=lambda one: type(one).__name__)
def test_an_objective_at_another_target_keeps_all_else_and_is_no_other(wish, target):
    if target is None:
        with pytest.raises(ObjectiveError, match="no target"):
            wish.with_target((0, 0, 0))
        return
    before = wish.residual(arm(), [0.3, 0.4])
    other = type(wish).with_target(wish, target)
    assert type(other) is type(wish)
    assert (other.level, other.weight, other.tolerance) == (wish.level, wish.weight, wish.tolerance)
    assert not np.array_equal(other.residual(arm(), [0.3, 0.4]), before)
    np.testing.assert_array_equal(wish.residual(arm(), [0.3, 0.4]), before)


@pytest.mark.parametrize(("wish", "target"), WISHES, ids=lambda one: type(one).__name__)
def test_an_objective_is_closed_once_made(wish, target):
    with pytest.raises(FrozenInstanceError):
        wish.weight = 2.0
    for field in wish.__dataclass_fields__:
        value = getattr(wish, field)
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable
    for relation in wish.relations(arm()):
        arrays = [relation.lower, relation.upper]
        match relation.kind:
            case RelationKind.JOINT_VALUE | RelationKind.SPHERICAL_JOINT:
                arrays.append(relation.target)
            case RelationKind.CENTRE_OF_MASS:
                arrays.append(relation.X_a)
            case RelationKind.FUNCTION:
                pass
            case _:
                arrays += [relation.X_a, relation.X_b]
        assert all(array is None or not array.flags.writeable for array in arrays)


@pytest.mark.parametrize(
    "make",
    [
        lambda **wish: JointValues({"elbow": 0.3}, **wish),
        lambda **wish: CentreOfMass((0, 0, 0), **wish),
        lambda **wish: LookAt("hand", (0, 0, 0), **wish),
        lambda **wish: Distance("hand", equal=1, **wish),
        lambda **wish: InBox("hand", (0, 0, 0), (1, 1, 1), **wish),
        lambda **wish: InCone("hand", (1, 0, 0), (1, 0, 0), 1, **wish),
        lambda **wish: InBand("hand", "x", 0, **wish),
        lambda **wish: Manipulability("hand", "X", **wish),
        lambda **wish: OnTerrain("hand", Terrain(np.zeros((2, 2)), 1.0), **wish),
        lambda **wish: Custom(height, **wish),
        lambda **wish: RestPose({"elbow": 0.3}, **wish),
    ],
)
def test_every_objective_takes_weight_level_and_tolerances(make):
    wish = make(weight=2.5, level=4, tolerance=1e-3, angle_tolerance=1e-2, required=False, name="mine")
    assert (wish.weight, wish.level, wish.tolerance, wish.angle_tolerance) == (2.5, 4, 1e-3, 1e-2)
    assert (wish.required, wish.name) == (False, "mine")
    assert {relation.weight for relation in wish.relations(arm())} == {2.5}
    assert "mine" in repr(wish)
    with pytest.raises(MechanikError):
        make(weight=-1)
    with pytest.raises(TypeError):
        make(wieght=1)


@pytest.mark.parametrize(
    "wish",
    [
        LookAt("hnd", (0, 0, 0)),
        Distance("hnd", equal=1),
        InBox("hnd", (0, 0, 0), (1, 1, 1)),
        InCone("hnd", (1, 0, 0), (1, 0, 0), 1),
        InBand("hnd", "x", 0),
        Manipulability("hnd", "X"),
        OnTerrain("hnd", Terrain(np.zeros((2, 2)), 1.0)),
        CentreOfMass((0, 0, 0), relative_to="hnd"),
    ],
    ids=lambda wish: type(wish).__name__,
)
def test_links_that_do_not_exist_are_refused_with_the_nearest_name(wish):
    with pytest.raises(UnknownName, match="Did you mean 'hand'"):
        wish.relations(arm())
