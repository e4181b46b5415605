from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from spatial_cases import quaternions, twists, vectors

from mechanik import spatial
from mechanik.errors import NotARotation, NotFinite, ShapeError
from mechanik.spatial import Pose, quaternion, rotation, twist


def _close(a, b, tolerance=1e-14):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def poses() -> SearchStrategy[Pose]:
    return st.builds(Pose, vectors(), quaternions())


# Matrices


@given(twists())
def test_a_pose_times_its_inverse_is_the_identity(t):
    X = twist.exp(t)
    _close(X @ spatial.inverse(X), spatial.identity_pose())
    _close(spatial.inverse(spatial.inverse(X)), X)


@given(twists(), twists(), vectors())
def test_applying_a_product_is_applying_its_factors_in_sequence(s, t, point):
    X_a_b, X_b_c = twist.exp(s), twist.exp(t)
    _close(spatial.apply(X_a_b @ X_b_c, point), spatial.apply(X_a_b, spatial.apply(X_b_c, point)), 4e-14)
    _close(spatial.apply(X_a_b, point), (X_a_b @ [*point, 1.0])[:3])


@given(twists(), vectors(), vectors())
def test_directions_rotate_like_differences_of_points(t, a, b):
    X = twist.exp(t)
    _close(spatial.rotate(X, b - a), spatial.apply(X, b) - spatial.apply(X, a))


@given(vectors(), quaternions())
def test_a_pose_is_composed_and_decomposed(p, q):
    X = spatial.from_position_wxyz(p, q)
    assert np.array_equal(X, spatial.make_pose(quaternion.to_matrix(q), p))
    back_p, back_q = spatial.to_position_wxyz(X)
    assert np.array_equal(back_p, p)
    _close(back_q, quaternion.canonical(q), 2e-15)
    assert spatial.is_pose(X, 4e-15)


def test_positions_and_rotations_are_views():
    X = spatial.translation([1.0, 2.0, 3.0])
    spatial.position_of(X)[0] = 7.0
    spatial.rotation_of(X)[:] = rotation.about_z(1.0)
    assert np.array_equal(X, spatial.make_pose(rotation.about_z(1.0), [7.0, 2.0, 3.0]))


def test_a_converted_position_is_a_copy():
    X = spatial.identity_pose()
    spatial.to_position_wxyz(X)[0][:] = 5.0
    assert np.array_equal(X, np.eye(4))


def test_a_single_pose_transforms_many_points_and_many_poses_one_point_each():
    X = spatial.translation(np.arange(6.0).reshape(2, 3))
    points = np.ones((2, 3))
    assert spatial.apply(X[0], np.ones((5, 3))).tolist() == [[1.0, 2.0, 3.0]] * 5
    assert spatial.apply(X, points).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert spatial.apply(X[:, None], np.ones((5, 3))).shape == (2, 5, 3)


def test_a_pose_has_a_rotation_a_last_row_and_finite_entries():
    good = spatial.translation([1.0, 2.0, 3.0])
    bad_row, bad_rotation, bad_position = good.copy(), good.copy(), good.copy()
    bad_row[3, 0] = 1e-8
    bad_rotation[0, 0] = -1.0
    bad_position[0, 3] = np.nan
    answers = spatial.is_pose(np.stack([good, bad_row, bad_rotation, bad_position]))
    assert answers.tolist() == [True, False, False, False]
    assert spatial.is_pose(bad_row, tolerance=1e-7)


# The door


@given(twists())
def test_validation_returns_valid_poses_unchanged(t):
    X = twist.exp(t)
    assert np.array_equal(spatial.as_pose_matrix(X), X)
    assert np.array_equal(spatial.as_pose_matrix(X.tolist()), X)
    pose = Pose.from_matrix(X)
    assert np.array_equal(spatial.as_pose_matrix(pose), pose.matrix)


def test_validation_accepts_float32_integers_and_batches():
    X = spatial.make_pose(rotation.exp([0.3, 0.2, 0.1]), [1.0, 2.0, 3.0]).astype(np.float32)
    assert spatial.as_pose_matrix(X).dtype == np.float64
    assert spatial.as_pose_matrix(np.eye(4, dtype=int)).dtype == np.float64
    assert spatial.as_pose_matrix(np.zeros((0, 4, 4))).shape == (0, 4, 4)
    with pytest.raises(NotARotation):
        spatial.as_pose_matrix(X, tolerance=1e-12)


@pytest.mark.parametrize(
    "invalid", [np.eye(3), np.zeros(4), 1.0, [[1.0], [1.0, 2.0]], "pose", None, np.zeros((4, 4, 3))]
)
def test_validation_rejects_the_wrong_shape(invalid):
    with pytest.raises(ShapeError, match="the tool"):
        spatial.as_pose_matrix(invalid, "the tool")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_validation_rejects_numbers_that_are_not_finite(value):
    X = np.stack([np.eye(4), np.eye(4)])
    X[1, 0, 3] = value
    with pytest.raises(NotFinite, match="the tool"):
        spatial.as_pose_matrix(X, "the tool")


@pytest.mark.parametrize(
    ("entry", "value", "why"),
    [
        ((3, 1), 0.1, "last row"),
        ((3, 3), 2.0, "last row"),
        ((0, 0), -1.0, "not a rotation"),
        ((0, 0), 1.1, "not a rotation"),
    ],
)
def test_validation_rejects_matrices_that_are_not_rigid_motions_with_the_reason(entry, value, why):
    X = np.eye(4)
    X[entry] = value
    with pytest.raises(NotARotation, match=f"the tool .*{why}"):
        spatial.as_pose_matrix(X, "the tool")
    with pytest.raises(NotARotation, match="pose has"):
        spatial.as_pose_matrix(np.stack([np.eye(4), X]))


# The value


@given(poses(), poses(), poses())
def test_poses_are_a_group(a, b, c):
    assert ((a @ b) @ c).isclose(a @ (b @ c), 1e-13)
    assert (a @ Pose.identity()).isclose(a, 1e-15)
    assert (a @ a.inverse()).isclose(Pose.identity(), 1e-14)
    assert a.inverse().inverse().isclose(a, 1e-14)


@given(poses(), poses(), vectors())
def test_a_pose_agrees_with_its_matrix(a, b, point):
    _close((a @ b).matrix, a.matrix @ b.matrix)
    _close(a.inverse().matrix, spatial.inverse(a.matrix))
    _close(a.apply(point), spatial.apply(a.matrix, point), 0.0)
    assert Pose.from_matrix(a.matrix).isclose(a, 1e-14)
    assert np.array_equal(np.asarray(a), a.matrix)


@given(vectors(), quaternions(), st.sampled_from([-3.0, -1.0, 0.01]))
def test_the_length_and_sign_of_a_quaternion_do_not_matter(p, q, scale):
    pose = Pose(p, scale * q)
    assert np.linalg.norm(pose.wxyz) == pytest.approx(1.0, abs=1e-15)
    assert pose.wxyz[0] >= 0.0
    assert pose.isclose(Pose(p, q), 4e-15)
    assert Pose(p, q) == Pose(p, -q) or abs(q[0]) < 1e-15


@given(poses())
def test_a_pose_made_from_its_own_numbers_is_equal_and_has_the_same_hash(pose):
    for again in (
        Pose(pose.position, pose.wxyz),
        Pose(pose.position.tolist(), pose.wxyz.tolist()),
        pickle.loads(pickle.dumps(pose)),
        copy.deepcopy(pose),
        dataclasses.replace(pose),
    ):
        assert again == pose
        assert hash(again) == hash(pose)
        assert not again.position.flags.writeable
        assert not again.wxyz.flags.writeable


def test_poses_that_differ_in_one_bit_are_not_equal_but_close():
    first, second = Pose([1.0, 0.0, 0.0]), Pose([np.nextafter(1.0, 2.0), 0.0, 0.0])
    assert first != second
    assert first.isclose(second)
    assert not first.isclose(Pose([1.0, 1e-8, 0.0]))
    assert first.isclose(Pose([1.0, 1e-8, 0.0]), 1e-7)
    turned = Pose([1.0, 0.0, 0.0], quaternion.exp([1e-8, 0.0, 0.0]))
    assert not first.isclose(turned)
    assert first.isclose(turned, 1e-7)
    assert first != "pose"
    assert Pose([0.0, 0.0, -0.0]) == Pose.identity()
    assert hash(Pose([0.0, 0.0, -0.0])) == hash(Pose.identity())


def test_a_pose_cannot_be_changed():
    given_position = np.array([1.0, 2.0, 3.0])
    pose = Pose(given_position)
    given_position[0] = 9.0
    assert pose.position.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        pose.position = given_position  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        pose.position[0] = 1.0
    with pytest.raises((AttributeError, TypeError)):
        pose.scale = 2.0  # type: ignore[attr-defined]


def test_the_repr_of_a_pose_is_readable():
    pose = Pose([1.0, 2.5, -0.0], [0.0, 0.0, 0.0, -2.0])
    assert repr(pose) == "Pose(position=[1, 2.5, 0], wxyz=[0, 0, 0, 1])"


def test_a_pose_is_accepted_as_an_array():
    pose = Pose([1.0, 2.0, 3.0])
    assert np.array_equal(pose @ np.eye(4), pose.matrix)
    assert np.array_equal(np.eye(4) @ pose, pose.matrix)
    assert np.asarray(pose, dtype=np.float32).dtype == np.float32
    assert np.stack([pose, pose]).shape == (2, 4, 4)
    with pytest.raises(ValueError, match="copy"):
        pose.__array__(copy=False)
    with pytest.raises(TypeError):
        pose @ "pose"


@pytest.mark.parametrize(
    ("position", "wxyz", "error", "what"),
    [
        ([1.0, 2.0], [1.0, 0.0, 0.0, 0.0], ShapeError, "position"),
        (np.zeros((2, 3)), [1.0, 0.0, 0.0, 0.0], ShapeError, "position"),
        (["a", "b", "c"], [1.0, 0.0, 0.0, 0.0], ShapeError, "position"),
        ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], ShapeError, "wxyz"),
        ([0.0, np.nan, 0.0], [1.0, 0.0, 0.0, 0.0], NotFinite, "position"),
        ([0.0, 0.0, 0.0], [np.inf, 0.0, 0.0, 0.0], NotFinite, "wxyz"),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], NotARotation, "quaternion is zero"),
    ],
)
def test_invalid_poses_are_rejected_with_the_name_of_the_argument(position, wxyz, error, what):
    with pytest.raises(error, match=what):
        Pose(position, wxyz)


def test_a_single_pose_is_not_made_from_a_batch_or_a_reflection():
    with pytest.raises(ShapeError, match="batch"):
        Pose.from_matrix(np.stack([np.eye(4)] * 2))
    with pytest.raises(NotARotation):
        Pose.from_matrix(np.diag([1.0, 1.0, -1.0, 1.0]))
