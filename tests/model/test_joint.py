"""Joints: dofs, values, limits, targets, rest poses, couplings."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_mechanisms import seeds

from mechanik import DoF, Joint, Link, Mechanism, Sphere, find_roots
from mechanik.errors import (
    CouplingError,
    DoFError,
    InvalidArgument,
    LimitsError,
    NotARotation,
    NotFinite,
    ShapeError,
    StructureError,
    UnknownName,
)
from mechanik.model.dof import ALL_DOFS, ROTATIONS
from mechanik.spatial import make_pose, quaternion, rotation

angles = st.floats(-20, 20)


def same(a, b, tolerance=1e-12):
    np.testing.assert_allclose(a, b, atol=tolerance)


# ---- freedoms ------------------------------------------------------------------------------


@given(st.sets(st.sampled_from(ALL_DOFS)), seeds)
def test_the_motion_is_a_translation_then_rotations_about_z_y_x(dof, seed):
    rng = np.random.default_rng(seed)
    joint = Joint("j", dof=sorted(dof))
    values = rng.uniform(-3, 3, len(dof))
    joint.set_values(values)
    x, y, z, a, b, c = (joint.value(d) if d in dof else 0.0 for d in ALL_DOFS)
    expected = make_pose(rotation.about_z(c) @ rotation.about_y(b) @ rotation.about_x(a), np.array([x, y, z]))
    same(joint.motion, expected)
    assert joint.dof_flags == tuple(d in dof for d in ALL_DOFS)


@given(seeds, angles)
def test_an_axis_may_point_anywhere(seed, angle):
    axis = np.random.default_rng(seed).standard_normal(3)
    for dof in ALL_DOFS:
        joint = Joint("j", dof=dof, axis=axis)
        joint.set_values(angle)
        unit = axis / np.linalg.norm(axis)
        same(joint.axis, unit)
        if dof.is_rotation:
            same(joint.motion, make_pose(rotation.exp(unit * angle), np.zeros(3)), 1e-11)
        else:
            same(joint.motion, make_pose(np.eye(3), unit * angle), 1e-11)


@pytest.mark.parametrize(
    ("dof", "words"),
    [
        (["Y", "X"], "after"),
        (["EX", "EX"], "repeated"),
        (["EX", "Z"], "order"),
        (["Q"], "not a degree"),
        ([6], "not a degree"),
        ([-1], "not a degree"),
    ],
)
def test_unsorted_repeated_or_unknown_dofs_are_rejected(dof, words):
    with pytest.raises(DoFError, match=words):
        Joint("j", dof=dof)
    joint = Joint("j", dof="X")
    with pytest.raises(DoFError, match=words):
        joint.set_dof(dof)
    assert joint.dof == (DoF.X,)


def test_replacing_the_dofs_resets_everything():
    joint = Joint("j", dof=["X", "EZ"], lower=[-1, -1], upper=[1, 1], values=[0.5, 0.5])
    joint.set_targets(0.1, 0.2)
    joint.set_rest_pose(0.3, 0.4)
    joint.set_dof(["X"])
    assert joint.values.tolist() == [0]
    assert (joint.lower[0], joint.upper[0]) == (-math.inf, math.inf)
    assert joint.targets == joint.rest_pose == (None,)
    joint.clear_dof()
    assert joint.dof == ()
    assert joint.values.size == 0
    same(joint.motion, np.eye(4))


def test_a_zero_axis_and_an_axis_for_two_dofs_are_rejected():
    with pytest.raises(NotARotation, match="elbow"):
        Joint("elbow", dof="EZ", axis=(0, 0, 0))
    with pytest.raises(DoFError, match="2 dofs"):
        Joint("elbow", dof=["X", "Y"], axis=(1, 0, 0))


# ---- values and limits ---------------------------------------------------------------------


def test_setters_clamp_and_report_it():
    joint = Joint("j", dof=["X", "EZ"], lower=[-1, -2], upper=[1, 2])
    assert joint.set_values(0.5, 1.5) is False
    assert joint.set_values([5, 0]) is True
    assert joint.values.tolist() == [1, 0]
    assert joint.set_value("EZ", -9) is True
    assert joint.value(DoF.EZ) == -2
    assert joint.set_target("X", 3) is True
    assert joint.target("X") == 1
    assert joint.set_rest_value("X", -3) is True
    assert joint.rest_value("X") == -1
    assert joint.rest_pose == (-1, None)


def test_new_limits_clamp_values_targets_and_rest_pose():
    joint = Joint("j", dof="X", values=5.0)
    joint.set_targets(6)
    joint.set_rest_pose(-7)
    assert joint.set_limits(-1, 1) is True
    assert joint.values.tolist() == [1]
    assert joint.targets == (1,)
    assert joint.rest_pose == (-1,)
    assert joint.set_upper(3) is False
    assert joint.limits("X") == (-1, 3)
    assert joint.set_limit("X", lower=2) is True
    assert joint.values.tolist() == [2]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda j: j.set_values(1), ShapeError),
        (lambda j: j.set_values(1, 2, 3), ShapeError),
        (lambda j: j.set_values([[1, 2]]), ShapeError),
        (lambda j: j.set_values("ab"), ShapeError),
        (lambda j: j.set_values(), ShapeError),
        (lambda j: j.set_values(1, math.nan), NotFinite),
        (lambda j: j.set_values(1, math.inf), NotFinite),
        (lambda j: j.set_value("Y", 1), DoFError),
        (lambda j: j.set_value("X", None), ShapeError),
        (lambda j: j.value("EX"), DoFError),
        (lambda j: j.set_limits([0, 0], [1, -1]), LimitsError),
        (lambda j: j.set_limits([0, math.nan], [1, 1]), NotFinite),
        (lambda j: j.set_limits(0, 1), ShapeError),
        (lambda j: j.set_limits([math.inf, 0], [math.inf, 1]), LimitsError),
        (lambda j: j.set_upper(-math.inf, 0), LimitsError),
        (lambda j: j.set_lower(5, 5), LimitsError),
        (lambda j: j.set_upper(-5, -5), LimitsError),
        (lambda j: j.set_limit("EZ", upper=-5), LimitsError),
        (lambda j: j.set_targets(1), ShapeError),
        (lambda j: j.set_target("EY", 1), DoFError),
        (lambda j: j.set_rest_pose(math.nan, 0), NotFinite),
        (lambda j: setattr(j, "rotation_wxyz", (1, 0, 0, 0)), DoFError),
    ],
)
def test_invalid_numbers_are_rejected_by_name_without_change(call, error):
    joint = Joint("elbow", dof=["X", "EZ"], lower=[-1, -2], upper=[1, 2], values=[0.5, 0.25])
    with pytest.raises(error, match="elbow"):
        call(joint)
    assert joint.values.tolist() == [0.5, 0.25]
    assert joint.lower.tolist() == [-1, -2]
    assert joint.upper.tolist() == [1, 2]


# ---- balls ---------------------------------------------------------------------------------


def test_three_unlimited_rotations_are_spherical_until_a_limit_is_set():
    joint = Joint("j", dof=ROTATIONS, values=(0.1, 0.2, 0.3))
    assert joint.has_quaternion
    X = joint.motion
    joint.set_limit("EY", upper=1.5)
    assert not joint.has_quaternion
    same(joint.motion, X)
    joint.set_limit("EY", upper=math.inf)
    assert joint.has_quaternion
    same(joint.motion, X)
    assert not Joint("k", dof=["EX", "EY"]).has_quaternion


@given(seeds)
def test_the_angles_of_a_spherical_joint_are_continuous(seed):
    """Turning on and on about any axis, also through the pole where Euler angles degenerate."""
    rng = np.random.default_rng(seed)
    joint = Joint("j", dof=ROTATIONS, values=rng.uniform(-1, 1, 3))
    axis = rng.standard_normal(3)
    axis /= np.linalg.norm(axis)
    for _ in range(100):
        before = joint.values
        joint.rotation_wxyz = quaternion.multiply(joint.rotation_wxyz, quaternion.exp(0.01 * axis))
        x, y, z = joint.values
        turned = rotation.about_z(z) @ rotation.about_y(y) @ rotation.about_x(x)
        same(turned, quaternion.to_matrix(joint.rotation_wxyz), 1e-9)
        pole = abs(math.cos(before[1]))
        assert np.abs(joint.values - before).max() < 0.02 / max(pole, 1e-9) + 0.02


def test_a_spherical_joint_counts_full_turns():
    joint = Joint("j", dof=ROTATIONS)
    for _ in range(1000):
        joint.rotation_wxyz = quaternion.multiply(joint.rotation_wxyz, quaternion.exp(np.array([0, 0, 0.02])))
    assert joint.value("EZ") == pytest.approx(20, abs=1e-9)


# ---- targets -------------------------------------------------------------------------------


@given(angles, angles)
def test_a_target_is_the_nearest_equivalent_angle(value, target):
    joint = Joint("j", dof="EZ", values=value)
    joint.set_targets(target)
    near = joint.nearest_target("EZ")
    assert abs(near - value) <= math.pi + 1e-9
    assert math.cos(near - target) == pytest.approx(1)
    joint.track_turns = True
    assert joint.nearest_target("EZ") == target


def test_the_nearest_equivalent_target_is_inside_the_limits():
    joint = Joint("j", dof="EZ", lower=-3, upper=3, values=2.9)
    joint.set_targets(-2.9)
    assert joint.nearest_target("EZ") == -2.9
    joint.set_limits(-3, 4)
    assert joint.nearest_target("EZ") == pytest.approx(2 * math.pi - 2.9)


def test_a_prismatic_target_has_no_equivalent_values():
    joint = Joint("j", dof="X", values=10.0)
    joint.set_targets(0.5)
    joint.set_rest_pose(0.25)
    assert joint.nearest_target("X") == 0.5
    assert joint.nearest_rest_value("X") == 0.25
    joint.clear_targets()
    joint.clear_rest_pose()
    assert joint.nearest_target("X") is None
    assert joint.nearest_rest_value("X") is None


def test_a_rest_pose_can_be_saved():
    joint = Joint("j", dof=["X", "EY"], values=[0.5, 1.5])
    joint.save_rest_pose()
    joint.set_values(0, 0)
    assert joint.rest_pose == (0.5, 1.5)


# ---- couplings -----------------------------------------------------------------------------


def three() -> tuple[Joint, Joint, Joint]:
    return Joint("a", dof="EZ"), Joint("b", dof="EZ"), Joint("c", dof="X")


def test_a_mimic_joint_follows_through_a_chain_of_couplings():
    a, b, c = three()
    c.mimic(b, ratio=3, offset=1)
    b.mimic(a, ratio=-2, offset=0.5)
    a.set_values(0.25)
    assert b.values.tolist() == [0.0]
    assert c.values.tolist() == [1.0]
    assert c.couplings[0].resolve() == (a, DoF.EZ, -6.0, 2.5)
    with pytest.raises(CouplingError, match="is coupled to"):
        b.set_values(1)
    with pytest.raises(CouplingError, match="is coupled to"):
        c.set_target("X", 1)


def test_a_leader_stays_inside_the_limits_of_its_mimic_joints():
    a, b, c = three()
    b.mimic(a, ratio=2)
    c.mimic(b, ratio=1)
    c.set_limits(-1, 1)
    assert a.effective_limits("EZ") == (-0.5, 0.5)
    assert a.set_values(3) is True
    assert (a.values[0], b.values[0], c.values[0]) == (0.5, 1, 1)
    c.set_limits(-0.2, 0.2)
    assert a.values[0] == pytest.approx(0.1)


def test_a_mimic_joint_with_a_tiny_ratio_does_not_limit_its_leader():
    """A tiny ratio once sent the leader to infinity."""
    a, b, _ = three()
    b.set_limits(1, 2)
    b.mimic(a, ratio=1e-320, offset=0.5)
    assert a.effective_limits("EZ") == (-math.inf, math.inf)
    assert a.values.tolist() == [0]


def test_contradictory_limits_of_a_mimic_joint_are_ignored():
    a, b, _ = three()
    a.set_limits(-1, 1)
    b.set_limits(5, 6)
    b.mimic(a)
    assert a.effective_limits("EZ") == (-1, 1)


def test_cyclic_repeated_and_spherical_couplings_are_rejected():
    a, b, c = three()
    b.mimic(a)
    c.mimic(b)
    with pytest.raises(CouplingError, match="its own leader"):
        a.mimic(c)
    with pytest.raises(CouplingError, match="its own leader"):
        a.mimic(a)
    with pytest.raises(CouplingError, match="already"):
        b.mimic(c)
    with pytest.raises(CouplingError, match="an angle of a joint with three rotations"):
        a.mimic(Joint("ball", dof=ROTATIONS), leader_dof="EX")
    with pytest.raises(NotFinite, match="ratio"):
        a.mimic(Joint("d", dof="X"), ratio=math.nan)
    with pytest.raises(DoFError, match="2 dofs"):
        a.mimic(Joint("two", dof=["X", "Y"]))
    assert a.couplings == ()


def test_undoing_a_coupling_keeps_the_value_of_the_mimic_joint():
    a, b, _ = three()
    coupling = b.mimic(a, offset=1)
    assert b.values.tolist() == [1]
    coupling.undo()
    a.set_values(0.5)
    assert b.values.tolist() == [1]
    b.set_values(0.25)


def test_joints_coupled_in_both_directions_over_different_dofs_do_not_recurse():
    a, b = Joint("a", dof=["X", "Y"]), Joint("b", dof=["X", "Y"])
    b.mimic(a, dof="X", leader_dof="X")
    a.mimic(b, dof="Y", leader_dof="Y")
    a.set_limit("X", -1, 1)
    b.set_limit("Y", -1, 1)
    a.set_value("X", 4)
    b.set_value("Y", 4)
    assert (b.value("X"), a.value("Y")) == (1, 1)


def test_a_joint_moves_its_child():
    joint, link = Joint("j", dof="EZ", position=(1, 0, 0)), Link("l", position=(1, 0, 0))
    joint.add_child(link)
    joint.set_values(math.pi / 2)
    same(link.world_position, (1, 1, 0))
    same(joint.child_world_matrix[:3, 3], (1, 0, 0))
    assert joint.child is link


# ---- what once went wrong ------------------------------------------------------------------


def test_attributes_that_hide_a_method_cannot_be_set():
    joint = Joint("j", dof="EZ")
    with pytest.raises(AttributeError, match="set_value"):
        joint.value = 0.5
    with pytest.raises(AttributeError, match="bogus"):
        joint.bogus = 3
    joint.values = [0.5]
    assert joint.value("EZ") == 0.5
    for array in (joint.values, joint.lower, joint.upper, joint.rotation_wxyz, joint.axes_wxyz):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_limits_of_a_mimic_joint_that_would_lock_its_leader_are_ignored():
    """The grippers of the PR2: both limited to 0..0.5, one the mirror of the other."""
    a, b, _ = three()
    a.set_limits(0, 0.5)
    b.set_limits(0, 0.5)
    b.mimic(a, ratio=-1)
    assert a.effective_limits("EZ") == (0, 0.5)
    a.set_values(0.3)
    assert b.values.tolist() == [-0.3]


def test_a_coupling_is_undone_once_and_the_mimic_joint_is_clamped():
    a, b, _ = three()
    b.set_limits(0, 1)
    coupling = b.mimic(a, offset=5)
    coupling.undo()
    assert b.values.tolist() == [1]
    with pytest.raises(CouplingError, match="already undone"):
        coupling.undo()
    both = Joint("both", dof=["X", "Y"])
    both.mimic(both, dof="X", leader_dof="Y")
    both.set_dof("X")
    assert both.couplings == ()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: Link("l").remove_child(None), StructureError),
        (lambda: Link("l").detach_child("x"), StructureError),
        (lambda: Joint("j", dof="X").mimic("b"), InvalidArgument),
        (lambda: Joint("j", dof=None), DoFError),
        (lambda: Joint(5), InvalidArgument),
        (lambda: find_roots(None), InvalidArgument),
        (lambda: Sphere("a"), ShapeError),
        (lambda: Mechanism(Link("l")).random(0), InvalidArgument),
        (lambda: Mechanism(Link("l")).random(np.random.default_rng(0), -1), ShapeError),
        (lambda: Mechanism(Link("l")).random(np.random.default_rng(0), 1.5), ShapeError),
    ],
)
def test_other_invalid_calls_are_rejected_with_a_reason(call, error):
    with pytest.raises(error):
        call()


def test_a_huge_quaternion_is_normalized():
    assert Link("l", wxyz=(1e200, 0, 0, 0)).wxyz.tolist() == [1, 0, 0, 0]
    assert DoF("EX") is DoF.EX


def test_an_unknown_name_error_can_be_pickled():
    error = pickle.loads(pickle.dumps(UnknownName("joint", "elbw", ["elbow"])))
    assert str(error) == str(UnknownName("joint", "elbw", ["elbow"]))
