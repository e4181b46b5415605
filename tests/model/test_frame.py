"""Frames: poses in the parent and in the world, and the editing of trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from random_mechanisms import mechanisms, random_pose, seeds

from mechanik import Frame, Goal, Joint, Link
from mechanik.errors import (
    InvalidArgument,
    NotARotation,
    NotFinite,
    ShapeError,
    StructureError,
)
from mechanik.spatial import from_position_wxyz, quaternion


def branch(seed: int) -> tuple[Link, Joint, Link]:
    """A turned link, a joint that stands at a value other than zero, a link."""
    rng = np.random.default_rng(seed)
    root, joint, link = Link("root", **random_pose(rng)), Joint("joint", dof="EZ", **random_pose(rng)), Link("link")
    root.add_child(joint)
    joint.add_child(link)
    joint.set_values(rng.uniform(-2, 2))
    return root, joint, link


def same(a, b):
    np.testing.assert_allclose(a, b, atol=1e-13)


# ---- poses ---------------------------------------------------------------------------------


def test_a_new_frame_is_at_the_origin():
    frame = Frame("f")
    same(frame.matrix, np.eye(4))
    same(frame.world_matrix, np.eye(4))
    assert frame.parent is None
    assert frame.children == ()
    assert frame.root is frame


@given(seeds)
def test_world_poses_that_are_set_are_read_back(seed):
    rng = np.random.default_rng(seed)
    _, _, link = branch(seed)
    wanted = random_pose(rng)
    link.world_position, link.world_wxyz = wanted["position"], wanted["wxyz"]
    same(link.world_position, wanted["position"])
    assert quaternion.angle_between(link.world_wxyz, wanted["wxyz"]) < 1e-12
    again = from_position_wxyz(p=wanted["position"], wxyz=wanted["wxyz"])
    link.matrix = np.eye(4)
    link.world_matrix = again
    same(link.world_matrix, again)


@given(seeds)
def test_the_world_rotation_is_the_product_of_the_rotations_above(seed):
    root, joint, link = branch(seed)
    link.wxyz = (0.5, 0.5, -0.5, 0.5)
    product = quaternion.multiply(quaternion.multiply(root.wxyz, joint.wxyz), joint.rotation_wxyz)
    assert quaternion.angle_between(link.world_wxyz, quaternion.multiply(product, link.wxyz)) < 1e-12


def test_the_smallest_displacement_is_not_ignored():
    frame, child = Link("f"), Joint("c")
    frame.add_child(child)
    _ = child.world_matrix
    frame.position = (1e-9, 0, 0)
    assert child.world_position[0] == 1e-9
    frame.wxyz = quaternion.exp(np.array([0, 0, 1e-9]))
    assert child.world_matrix[1, 0] == pytest.approx(1e-9, rel=1e-6)


def test_moving_a_frame_moves_all_frames_below():
    root, _, link = branch(3)
    before = link.world_matrix
    away = np.array([1, 2, 3])
    root.position = root.position + away
    same(link.world_matrix[:3, 3], before[:3, 3] + away)


def test_arrays_that_are_read_are_read_only():
    frame = Frame("f")
    for array in (frame.position, frame.wxyz, frame.matrix, frame.world_matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_quaternions_are_normalized_and_unit_quaternions_unchanged():
    frame = Frame("f", wxyz=(2, 0, 0, 0))
    same(frame.wxyz, (1, 0, 0, 0))
    odd = quaternion.normalize(np.array([0.1, 0.7, -0.3, 0.2]))
    frame.wxyz = odd
    np.testing.assert_array_equal(frame.wxyz, odd)
    rounded_unit = (0.665735025497158, -0.5041193187868266, -0.4586283940543203, 0.3038430259514931)
    frame.wxyz = rounded_unit
    np.testing.assert_array_equal(frame.wxyz, rounded_unit)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("position", (1, 2), ShapeError),
        ("position", (1, 2, np.nan), NotFinite),
        ("position", "abc", ShapeError),
        ("wxyz", (1, 0, 0), ShapeError),
        ("wxyz", (0, 0, 0, 0), NotARotation),
        ("wxyz", (np.inf, 0, 0, 0), NotFinite),
        ("matrix", np.eye(3), ShapeError),
        ("matrix", 2 * np.eye(4), NotARotation),
        ("matrix", np.full((4, 4), np.nan), NotFinite),
        ("world_matrix", np.diag([1, 1, -1, 1]), NotARotation),
        ("world_position", (1,), ShapeError),
    ],
)
def test_invalid_poses_are_rejected_with_the_name_of_the_frame(name, value, error):
    frame = Frame("gripper")
    with pytest.raises(error, match="gripper"):
        setattr(frame, name, value)
    same(frame.matrix, np.eye(4))


# ---- trees ---------------------------------------------------------------------------------


def test_add_child_keeps_the_local_pose_and_attach_child_the_world_pose():
    root, _, link = branch(1)
    slide, extra = Joint("other", dof="X", position=(1, 0, 0)), Link("extra", position=(0, 1, 0))
    link.add_child(slide)
    same(slide.matrix[:3, 3], (1, 0, 0))
    X_world = extra.world_matrix
    slide.set_values(0.7)
    slide.attach_child(extra)
    same(extra.world_matrix, X_world)
    assert extra.parent is slide
    assert root.root is extra.root


@given(seeds)
def test_detaching_keeps_the_world_pose_also_below_a_moved_joint(seed):
    root, joint, link = branch(seed)
    X_world = link.world_matrix
    joint.detach_child(link)
    same(link.world_matrix, X_world)
    joint.attach_child(link)
    same(link.world_matrix, X_world)
    X_joint, X_link = joint.world_matrix, link.world_matrix
    root.detach_child(joint)
    same(joint.world_matrix, X_joint)
    same(link.world_matrix, X_link)


def test_attaching_removes_the_frame_from_its_parent():
    root, joint, _ = branch(2)
    new_parent = Link("other")
    X_world = joint.world_matrix
    new_parent.attach_child(joint)
    assert root.children == ()
    assert joint.parent is new_parent
    same(joint.world_matrix, X_world)


def test_a_removed_child_can_be_replaced():
    _, joint, link = branch(4)
    joint.remove_child(link)
    assert link.parent is None
    assert joint.child is None
    joint.add_child(Link("new"))
    assert joint.child.name == "new"


def test_invalid_edits_are_rejected_without_change():
    root, joint, link = branch(5)
    below = Joint("below")
    link.add_child(below)
    wrong = [
        (StructureError, lambda: Link("x").add_child(joint), "already has the parent"),
        (StructureError, lambda: root.add_child(root), "own child"),
        (InvalidArgument, lambda: root.add_child(link), "joints and goals"),
        (InvalidArgument, lambda: joint.add_child(below), "is a link"),
        (InvalidArgument, lambda: joint.add_child(Link("second")), "already"),
        (InvalidArgument, lambda: root.add_child(Frame("plain")), "joints and goals"),
        (InvalidArgument, lambda: Goal("g").add_child(Link("x")), "has no children"),
        (InvalidArgument, lambda: root.add_child("joint"), "str"),
        (StructureError, lambda: root.remove_child(below), "not a child"),
        (StructureError, lambda: root.detach_child(below), "not a child"),
    ]
    for error, edit, words in wrong:
        with pytest.raises(error, match=words) as caught:
            edit()
        assert isinstance(caught.value, StructureError)
    assert [f.name for f in root.traverse()] == ["root", "joint", "link", "below"]


def test_an_ancestor_cannot_become_a_child():
    top, middle, low = Frame("top"), Frame("middle"), Frame("low")
    top.add_child(middle)
    middle.add_child(low)
    with pytest.raises(StructureError, match="ancestor"):
        low.add_child(top)
    with pytest.raises(StructureError, match="ancestor"):
        low.attach_child(middle)


def test_traversal_is_breadth_first_downwards_and_nearest_first_upwards():
    top = Frame("top")
    for a in "ab":
        child = Frame(a)
        top.add_child(child)
        for i in "12":
            child.add_child(Frame(a + i))
    names = [f.name for f in top.traverse()]
    assert names == ["top", "a", "b", "a1", "a2", "b1", "b2"]
    seen = []
    for frame in top.traverse():
        seen.append(frame.name)
        if frame.name == "b":
            break
    assert seen == ["top", "a", "b"]
    b2 = top.find("b2")
    assert [f.name for f in b2.traverse_parents()] == ["b", "top"]
    assert top.find("nobody") is None
    assert top.find(lambda f: f.name.endswith("1")).name == "a1"


@settings(max_examples=30, deadline=None)
@given(mechanisms, seeds)
def test_world_poses_are_the_same_after_any_order_of_reading_and_moving(mechanism, seed):
    """Lazy updates must not be seen: reading some frames between moves changes nothing."""
    rng = np.random.default_rng(seed)
    frames = [*mechanism.links.values(), *mechanism.joints.values()]
    for _ in range(20):
        frame = frames[rng.integers(len(frames))]
        if rng.random() < 0.5:
            frame.position = rng.uniform(-1, 1, 3)
        else:
            _ = frame.world_matrix
    for frame in frames:
        expected = frame.matrix
        for above in frame.traverse_parents():
            expected = above.matrix @ (above.motion if isinstance(above, Joint) else np.eye(4)) @ expected
        same(frame.world_matrix, expected)
