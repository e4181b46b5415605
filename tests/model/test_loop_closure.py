"""Closures of joints and goals: connected links, free dofs and gaps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import random_pose, seeds

from mechanik import Builder, DoF, Goal, Joint, Link
from mechanik.errors import (
    CouplingError,
    DoFError,
    InvalidArgument,
    MechanikError,
    ShapeError,
    StructureError,
    UnknownName,
)
from mechanik.model.builder import CLOSURE_FREE_DOF
from mechanik.model.dof import ALL_DOFS, ROTATIONS, joint_values_from_pose
from mechanik.spatial import inverse, make_pose, rotation


def loop(dof=()) -> tuple[Link, Joint, Link]:
    """Two branches below a root; the joint at the end of one is to be closed onto the other."""
    root, left, right = Link("root"), Link("left"), Link("right")
    for link, y in ((left, 1), (right, -1)):
        joint = Joint(f"to_{link.name}", dof="EZ", position=(0, y, 0))
        root.add_child(joint)
        joint.add_child(link)
    closing = Joint("closing", dof=dof, position=(1, 0, 0))
    left.add_child(closing)
    return root, closing, right


# ---- making and undoing --------------------------------------------------------------------


def test_both_sides_of_a_closure_know_it_and_neither_becomes_a_parent():
    _, closing, right = loop()
    closure = closing.make_closure(right)
    assert closing.is_closure
    assert closing.child is right
    assert closing.children == ()
    assert right.closures == (closure,)
    assert right.parent.name == "to_right"


def test_a_closure_can_be_undone_and_made_again():
    root, closing, right = loop()
    closure = closing.make_closure(right)
    closure.undo()
    assert not closing.is_closure
    assert right.closures == ()
    with pytest.raises(StructureError, match="already undone"):
        closure.undo()
    closing.make_closure(root)
    assert closing.child is root


def test_a_joint_may_close_a_loop_onto_an_ancestor():
    root, closing, _ = loop()
    closure = closing.make_closure(root)
    np.testing.assert_allclose(closure.gap().position, (-1, -1, 0), atol=1e-15)


def test_invalid_closures_are_rejected():
    root, closing, right = loop()
    with pytest.raises(InvalidArgument, match="end on a link"):
        closing.make_closure(closing)
    with pytest.raises(InvalidArgument, match="end on a link"):
        closing.make_closure(None)
    with pytest.raises(StructureError, match="is a child of"):
        closing.make_closure(closing.parent)
    with pytest.raises(StructureError, match="has the child"):
        right.parent.make_closure(root)
    closing.make_closure(right)
    with pytest.raises(StructureError, match="already"):
        closing.make_closure(root)
    with pytest.raises(InvalidArgument, match="closes a loop onto"):
        closing.add_child(Link("x"))


# ---- gaps ----------------------------------------------------------------------------------


@given(st.sets(st.sampled_from(ALL_DOFS)), seeds)
def test_a_closure_that_its_joint_can_reach_is_closed_and_gives_the_joint_values(dof, seed):
    """The law of all kinds: move the end by some values of the free directions; nothing stands open, they are read."""
    rng = np.random.default_rng(seed)
    free = sorted(dof)
    values = rng.uniform(-1.4, 1.4, len(free))
    joint, link = Joint("j", dof=free, values=values, **random_pose(rng)), Link("l")
    at = make_pose(rotation.exp(rng.standard_normal(3)), rng.uniform(-1, 1, 3))
    link.matrix = joint.child_world_matrix @ inverse(at)
    closure = joint.make_closure(link, at)
    joint.set_values(np.zeros(len(free)))
    gap = closure.gap()
    assert gap.distance < 1e-13
    assert gap.angle < 1e-7 if len(dof & set(ROTATIONS)) == 2 else gap.angle < 1e-12
    np.testing.assert_allclose(closure.joint_values(), values, atol=1e-7)
    closure.update_joint()
    np.testing.assert_allclose(joint.values, values, atol=1e-7)


@pytest.mark.parametrize("angle", [0.3, 2.9, -3.1, math.pi])
@pytest.mark.parametrize("dof", ROTATIONS)
def test_a_pin_is_closed_at_any_angle(dof, angle):
    joint, link = Joint("j", dof=dof, axis=(1, 2, -2)), Link("l")
    link.matrix = make_pose(rotation.exp(joint.axis * angle), np.zeros(3))
    closure = joint.make_closure(link)
    assert closure.gap().is_closed(1e-12)
    assert math.cos(closure.joint_values()[0] - angle) == pytest.approx(1)


@given(seeds)
def test_the_gap_of_a_weld_is_the_pose_between_its_ends(seed):
    rng = np.random.default_rng(seed)
    joint, link = Joint("j", **random_pose(rng)), Link("l", **random_pose(rng))
    gap = joint.make_closure(link).gap()
    E = inverse(joint.world_matrix) @ link.world_matrix
    np.testing.assert_allclose(gap.position, E[:3, 3], atol=1e-13)
    np.testing.assert_allclose(rotation.exp(gap.rotation), E[:3, :3], atol=1e-12)
    assert gap.distance == pytest.approx(np.linalg.norm(E[:3, 3]))


def test_the_limits_of_a_closing_joint_leave_a_gap():
    joint, link = Joint("j", dof="X", lower=0, upper=1), Link("l", position=(1.5, 0, 0))
    closure = joint.make_closure(link)
    np.testing.assert_allclose(closure.gap().position, (0.5, 0, 0))
    assert closure.joint_values().tolist() == [1]


@pytest.mark.parametrize("kind", CLOSURE_FREE_DOF)
def test_each_kind_of_closure_constrains_its_dofs(kind):
    builder = Builder()
    builder.fixed("f", "root", "a")
    builder.free("body", "root", "b")
    closure = builder.close("c", "a", "b", kind, axis="x")
    assert closure.free_dof == CLOSURE_FREE_DOF[kind]
    assert len(closure.free_dof) + len(closure.constrained_dof) == 6
    body = builder.build().joint("body")
    for dof in ALL_DOFS:
        # with `axis` x, the closure's z is the world's x, and its x lies across
        turned = Joint("twin", dof=dof)
        turned.axes_wxyz = closure.joint.axes_wxyz
        turned.set_values(0.3)
        body.set_values(np.zeros(6))
        body.rotation_wxyz = (1, 0, 0, 0)
        body.child.matrix = turned.motion
        assert closure.gap().is_closed(1e-12) == (dof in closure.free_dof), dof
        body.child.matrix = np.eye(4)


# ---- goals ---------------------------------------------------------------------------------


def test_a_goal_constrains_all_six_directions_by_default():
    goal = Goal("g")
    assert goal.goal_dof == ALL_DOFS
    goal.set_goal_dof(["X", "EZ"])
    assert goal.free_dof == (DoF.Y, DoF.Z, DoF.EX, DoF.EY)
    goal.set_free_dof(["EX", "EY", "EZ"])
    assert goal.goal_dof == (DoF.X, DoF.Y, DoF.Z)
    goal.set_free_dof([])
    assert goal.goal_dof == ALL_DOFS
    with pytest.raises(DoFError, match="order"):
        goal.set_goal_dof(["EZ", "X"])
    with pytest.raises(DoFError, match="'goal' or 'world'"):
        goal.axes = "tool"


def test_a_goal_may_be_on_a_moving_link_and_has_a_single_link():
    root, _, right = loop()
    goal = Goal("g", position=(0, 0, 1))
    right.add_child(goal)
    closure = goal.make_closure(root)
    assert goal.child is root
    assert closure.is_goal
    before = goal.world_position
    right.parent.set_values(1.0)
    assert np.linalg.norm(goal.world_position - before) == 0
    right.position = (1, 0, 0)
    assert np.linalg.norm(goal.world_position - before) > 0.5
    with pytest.raises(StructureError, match="already"):
        goal.make_closure(right)
    closure.undo()
    goal.make_closure(root)


@pytest.mark.parametrize("axes", ["goal", "world"])
def test_the_directions_of_a_goal_are_its_own_or_the_worlds(axes):
    goal = Goal("g", dof=["Z"], axes=axes, wxyz=(math.cos(0.5), 0, math.sin(0.5), 0))
    link = Link("l")
    closure = goal.make_closure(link)
    along = np.array([1.0, 0, 0]) if axes == "world" else goal.world_matrix[:3, 0]
    link.position = 0.7 * along
    assert closure.gap().distance < 1e-15
    link.position = (0, 0, 0.2)
    expected = 0.2 if axes == "world" else 0.2 * math.cos(1.0)
    assert closure.gap().distance == pytest.approx(expected)


def test_rotations_about_a_free_axis_of_a_goal_do_not_count():
    goal = Goal("g", dof=["X", "Y", "Z", "EX", "EY"], wxyz=(0.5, 0.5, 0.5, 0.5))
    link = Link("l", wxyz=(0.5, 0.5, 0.5, 0.5))
    closure = goal.make_closure(link)
    link.matrix = link.matrix @ make_pose(rotation.about_z(1.2), np.zeros(3))
    assert closure.gap().angle < 1e-12
    link.matrix = link.matrix @ make_pose(rotation.about_x(0.2), np.zeros(3))
    assert closure.gap().angle == pytest.approx(0.2)


# ---- the builder ---------------------------------------------------------------------------


def test_a_closure_without_an_end_is_closed_in_the_present_configuration():
    builder = Builder()
    builder.revolute("a", "root", "left", value=0.3)
    builder.revolute("b", "root", "right", at=(1, 2, 0), value=-0.7)
    closure = builder.close("c", "left", "right", "pin", at=(0.5, 0.5, 0))
    assert closure.gap().is_closed(1e-13)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda b: b.revolute("j", "nowhere", "x"), UnknownName, "nowhere"),
        (lambda b: b.revolute("a", "root", "x"), StructureError, "'a'"),
        (lambda b: b.revolute("j", "root", "left"), StructureError, "close"),
        (lambda b: b.revolute("j", "root", "x", axis="w"), DoFError, "axis"),
        (lambda b: b.revolute("j", "root", "x", axis=(0, 0, 0)), DoFError, "zero"),
        (lambda b: b.revolute("j", "root", "x", at=(1, 2)), ShapeError, "a point"),
        (lambda b: b.revolute("j", "root", "x", limits=(1,)), StructureError, "limits"),
        (lambda b: b.revolute("j", "root", "x", limits=("a", "b")), StructureError, "limits"),
        (lambda b: b.joint("j", "root", "x", ["EZ", "X"]), DoFError, "order"),
        (lambda b: b.close("c", "left", "nobody", "pin"), UnknownName, "nobody"),
        (lambda b: b.close("c", "left", "root", "glue"), UnknownName, "weld"),
        (lambda b: b.couple("a", "zz"), UnknownName, "zz"),
        (lambda b: b.goal("g", "lef"), UnknownName, "left"),
        (lambda b: Builder().build(), StructureError, "empty"),
    ],
)
def test_the_builder_rejects_invalid_arguments(call, error, words):
    builder = Builder()
    builder.revolute("a", "root", "left")
    with pytest.raises(error, match=words):
        call(builder)


# ---- what once went wrong ------------------------------------------------------------------


def test_a_gap_is_in_the_axes_of_the_joint_for_all_free_dofs():
    goal = Goal("g", dof=["X", "Y", "Z"])
    link = Link("l", position=(1, 0, 0), wxyz=(math.sqrt(0.5), 0, 0, math.sqrt(0.5)))
    np.testing.assert_allclose(goal.make_closure(link).gap().position, (1, 0, 0), atol=1e-15)
    joint, link = (
        Joint("j", dof=["Z", "EX"]),
        Link("l", position=(0, 1, 5), wxyz=(math.sqrt(0.5), math.sqrt(0.5), 0, 0)),
    )
    np.testing.assert_allclose(joint.make_closure(link).gap().position, (0, 1, 0), atol=1e-15)


def test_limits_beyond_half_a_turn_do_not_open_a_closed_loop():
    builder = Builder()
    builder.revolute("j", "base", "l")
    closure = builder.close("c", "base", "l", "pin")
    closure.joint.set_limits(0, 2 * math.pi)
    mechanism = builder.build()
    mechanism.q = [4.0]
    assert closure.gap().is_closed(1e-12)
    assert closure.joint.values[0] == pytest.approx(4.0)
    joint, link = Joint("three", dof=ROTATIONS, values=(0.1, 2, 0.1)), Link("l")
    link.matrix = joint.child_world_matrix
    closure = joint.make_closure(link)
    joint.set_limits((-1, 1, -1), (1, 3, 1))
    assert closure.gap().is_closed(1e-12)


@pytest.mark.parametrize("free", [("EX", "EY"), ("EY", "EZ"), ("EX", "EZ")])
@pytest.mark.parametrize("middle", [math.pi / 2, math.pi / 2 - 1e-9, math.pi / 2 - 1e-11, -math.pi / 2, 3.0])
def test_two_rotations_are_exact_also_where_euler_angles_are_not(free, middle):
    joint, link = Joint("j", dof=free, values=[0.5 if dof != "EY" else middle for dof in free]), Link("l")
    link.matrix = joint.child_world_matrix
    closure = joint.make_closure(link)
    assert closure.gap().angle < 1e-14


def test_the_gap_of_a_universal_closure_is_small_near_closed_poses():
    link = Link("l")
    link.matrix = make_pose(
        rotation.about_z(1) @ rotation.about_y(math.radians(89)) @ rotation.about_x(0.5), np.zeros(3)
    )
    assert Joint("j", dof=["EX", "EY"]).make_closure(link).gap().angle < 0.02


def test_a_closing_joint_counts_turns_and_a_spherical_one_is_continuous():
    builder = Builder()
    builder.revolute("j", "base", "l")
    pin = builder.close("pin", "base", "l", "pin")
    mechanism = builder.build()
    for angle in np.arange(0, 20, 0.5):
        mechanism.q = [angle]
        assert pin.joint.values[0] == pytest.approx(angle)


def test_the_values_of_a_closing_joint_follow_the_links():
    builder = Builder()
    joint = builder.revolute("j", "base", "l")
    pin = builder.close("pin", "base", "l", "pin").joint
    joint.set_values(0.7)
    assert pin.value("EZ") == pytest.approx(0.7)
    np.testing.assert_allclose(pin.child_world_matrix, builder.build().link("l").world_matrix, atol=1e-15)
    joint.set_values(-0.2)
    assert pin.values[0] == pytest.approx(-0.2)


def test_a_joint_cannot_be_a_child_of_the_link_onto_which_it_closes():
    a, b, joint = Link("a"), Link("b"), Joint("j")
    a.add_child(joint)
    joint.make_closure(b)
    a.remove_child(joint)
    with pytest.raises(InvalidArgument, match="its closure already ends on this link"):
        b.add_child(joint)


def test_closing_joints_cannot_be_coupled():
    builder = Builder()
    builder.revolute("j", "base", "l")
    builder.revolute("k", "l", "m")
    builder.close("c", "m", "base", "pin")
    for first, second in (("j", "c"), ("c", "j")):
        with pytest.raises(CouplingError, match="closes a loop"):
            builder.couple(first, second)
    first, second = Joint("one", dof="X"), Joint("other", dof="X")
    first.mimic(second)
    for joint in (first, second):
        with pytest.raises(StructureError, match="coupled"):
            joint.make_closure(Link("l"))


def test_a_failed_call_of_the_builder_changes_nothing():
    builder = Builder()
    builder.revolute("a", "base", "left")
    for wrong in (
        lambda: builder.revolute("j", "left", "x", at=(1, 2)),
        lambda: builder.revolute("j", "left", "x", axis="q"),
        lambda: builder.revolute("j", "left", "x", limits=5),
        lambda: builder.revolute("j", "left", "x", limits=([1, 2], [3, 4])),
        lambda: builder.revolute("j", "left", "x", at=[[1, 2], [3]]),
        lambda: builder.revolute("j", "left", "x", value=(1, 2)),
        lambda: builder.revolute("j", "left", "left"),
        lambda: builder.close("j", "left", "left", "pin"),
        lambda: builder.close("j", "left", "base", "pin", onto=(1,)),
        lambda: builder.goal("j", "left", at=(1, 2)),
    ):
        with pytest.raises(MechanikError):
            wrong()
    builder.revolute("j", "left", "x")
    assert builder.build().nq == 2


angles = st.floats(-7, 7)
shares = st.floats(0, 1)


@settings(max_examples=300)
@given(st.sampled_from([-1.0, 1.0]), st.tuples(angles, angles), st.tuples(angles, angles), shares, shares)
def test_at_gimbal_lock_joint_values_inside_the_limits_are_found_if_there_are_any(
    sign, x_bounds, z_bounds, x_share, z_share
):
    """Once only the triple of angles with the preferred angle about z was tried."""
    (x_low, x_high), (z_low, z_high) = sorted(x_bounds), sorted(z_bounds)
    lower = np.array([0, 0, 0, x_low, -math.pi, z_low])
    upper = np.array([0, 0, 0, x_high, math.pi, z_high])
    x, z = x_low + x_share * (x_high - x_low), z_low + z_share * (z_high - z_low)
    X = np.eye(4)
    X[:3, :3] = rotation.about_z(z) @ rotation.about_y(sign * math.pi / 2) @ rotation.about_x(x)
    values = joint_values_from_pose(X, ROTATIONS, np.zeros(6), lower, upper)
    ex, ey, ez = values[3:]
    R = rotation.about_z(ez) @ rotation.about_y(ey) @ rotation.about_x(ex)
    assert (values >= lower).all()
    assert (values <= upper).all()
    assert np.abs(R - X[:3, :3]).max() < 1e-9
