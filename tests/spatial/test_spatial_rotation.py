from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from spatial_cases import PI, directions, rotation_vectors, tiny, turns, vectors

from mechanik.errors import NotARotation
from mechanik.spatial import rotation

I3 = np.eye(3)


def _close(a, b, tolerance=1e-14):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@given(vectors(), vectors())
def test_hat_is_the_cross_product_and_vee_its_inverse(v, u):
    _close(rotation.hat(v) @ u, np.cross(v, u))
    assert np.array_equal(rotation.vee(rotation.hat(v)), v)


@given(rotation_vectors())
def test_log_inverts_exp_to_the_last_digits_for_the_smallest_rotations(w):
    back, angle = rotation.log(rotation.exp(w)), np.linalg.norm(w)
    if angle > PI - 1e-14 and back @ w < 0.0:  # w and -w are the same half turn
        back = -back
    assert np.linalg.norm(back - w) <= 1e-14 * angle


@given(rotation_vectors(), rotation_vectors())
def test_exp_inverts_log(v, w):
    R = rotation.exp(v) @ rotation.exp(w)
    _close(rotation.exp(rotation.log(R)), R)


@given(rotation_vectors())
def test_the_log_is_never_longer_than_pi(w):
    assert np.linalg.norm(rotation.log(rotation.exp(2.5 * w))) <= PI + 1e-15


@given(directions())
def test_a_half_turn_has_the_same_axis_for_both_signs(axis):
    forth, back = rotation.log(rotation.exp(PI * axis)), rotation.log(rotation.exp(-PI * axis))
    _close(forth, back, 1e-14)
    assert forth[np.abs(forth) > PI * 3e-8][0] > 0.0


@given(rotation_vectors())
def test_exp_equals_that_of_scipy(w):
    _close(rotation.exp(w), Rotation.from_rotvec(w).as_matrix())


@given(rotation_vectors(), st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
def test_rotations_about_an_axis_add_up(w, s, t):
    _close(rotation.exp(s * w) @ rotation.exp(t * w), rotation.exp((s + t) * w))


@given(rotation_vectors())
def test_exp_is_a_rotation_whose_inverse_is_exp_of_the_negative(w):
    R = rotation.exp(w)
    assert rotation.is_rotation(R, 2e-15)
    _close(rotation.exp(-w), R.T, 0.0)
    _close(R @ w, w)


@given(rotation_vectors(), vectors())
def test_rotating_the_axis_conjugates_the_rotation(w, v):
    R = rotation.exp(v)
    _close(rotation.exp(R @ w), R @ rotation.exp(w) @ R.T)


@given(rotation_vectors(), directions())
def test_the_jacobians_are_the_derivatives_of_exp(w, direction):
    h = 1e-5
    after, before = rotation.exp(w + h * direction), rotation.exp(w - h * direction)
    left = rotation.log(after @ before.T) / (2 * h)
    right = rotation.log(before.T @ after) / (2 * h)
    # after and before are 2h apart, and so the midpoint is off by the order of h^2.
    _close(rotation.left_jacobian(w) @ direction, left, 1e-9)
    _close(rotation.right_jacobian(w) @ direction, right, 1e-9)


@given(rotation_vectors(), directions(), st.floats(1e-9, 1e-7))
def test_left_and_right_jacobians_describe_the_same_step(w, direction, h):
    stepped = rotation.exp(w + h * direction)
    _close(stepped, rotation.exp(rotation.left_jacobian(w) @ direction * h) @ rotation.exp(w), 1e-13)
    _close(stepped, rotation.exp(w) @ rotation.exp(rotation.right_jacobian(w) @ direction * h), 1e-13)


@given(rotation_vectors())
def test_the_jacobians_fit_exp_in_closed_form(w):
    J = rotation.left_jacobian(w)
    _close(rotation.hat(w) @ J, rotation.exp(w) - I3)
    _close(J, rotation.exp(w) @ rotation.right_jacobian(w))
    _close(J, rotation.right_jacobian(-w), 0.0)
    _close(J @ w, w)


@given(rotation_vectors(), st.floats(0.0, 1.7))
def test_the_inverse_jacobians_are_inverses_up_to_near_two_pi(w, scale):
    w = scale * w
    _close(rotation.left_jacobian(w) @ rotation.left_jacobian_inverse(w), I3, 1e-13)
    _close(rotation.right_jacobian(w) @ rotation.right_jacobian_inverse(w), I3, 1e-13)


@given(directions(), st.floats(-10.0, 10.0), st.sampled_from([1e-200, 0.1, 1.0, 1e200]))
def test_the_length_of_an_axis_does_not_matter(axis, angle, scale):
    _close(rotation.from_axis_angle(scale * axis, angle), rotation.exp(axis * angle))


@given(directions(), turns())
def test_axis_and_angle_are_recovered(axis, angle):
    found_axis, found_angle = rotation.to_axis_angle(rotation.from_axis_angle(axis, angle))
    assert found_angle == pytest.approx(angle, rel=1e-14, abs=0.0)
    assert np.linalg.norm(found_axis) == pytest.approx(1.0, abs=1e-15)
    if angle > PI - 1e-14 and found_axis @ axis < 0.0:
        found_axis = -found_axis
    if angle > 0.0:
        _close(found_axis, axis)


def test_the_identity_has_the_axis_x():
    axis, angle = rotation.to_axis_angle(I3)
    assert axis.tolist() == [1.0, 0.0, 0.0]
    assert angle == 0.0


@pytest.mark.parametrize("axis", [[0.0, 0.0, 0.0], [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
def test_a_zero_axis_is_rejected(axis):
    with pytest.raises(NotARotation, match="axis"):
        rotation.from_axis_angle(axis, 1.0)


@given(st.floats(-10.0, 10.0))
def test_elementary_rotations_rotate_about_the_axes(angle):
    for turn, axis in zip((rotation.about_x, rotation.about_y, rotation.about_z), I3, strict=True):
        _close(turn(angle), rotation.from_axis_angle(axis, angle), 2e-15)
        assert np.array_equal(turn(angle) @ axis, axis)


def test_elementary_rotations_by_zero_are_the_identity_without_negative_zeros():
    for turn in (rotation.about_x, rotation.about_y, rotation.about_z):
        assert turn(0.0).tobytes() == I3.tobytes()


def _check_smallest(a, b, R):
    _close(R @ a, b, 2e-15)
    assert rotation.is_rotation(R, 4e-15)
    w = rotation.log(R)
    angle = 2.0 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))
    assert np.linalg.norm(w) == pytest.approx(angle, abs=2e-14)


@given(directions(), directions())
def test_between_is_the_smallest_rotation_of_a_direction_onto_another(a, b):
    R = rotation.between(3.0 * a, 0.2 * b)
    _check_smallest(a, b, R)
    assert abs(rotation.log(R) @ a) < 1e-7
    assert abs(rotation.log(R) @ b) < 1e-7


@given(directions(), directions(), st.one_of(st.just(0.0), tiny(-20)))
def test_between_is_accurate_for_equal_and_opposite_directions(a, aside, off):
    if np.linalg.norm(np.cross(a, aside)) < 0.1:
        return
    for target in (a, -a):
        b = target + off * aside
        b /= np.linalg.norm(b)
        _check_smallest(a, b, rotation.between(a, b))


def test_between_a_direction_and_its_opposite_is_a_half_turn():
    for a in I3:
        R = rotation.between(a, -a)
        assert np.array_equal(R @ a, -a)
        assert np.trace(R) == -1.0
    assert np.array_equal(rotation.between(I3, I3), np.broadcast_to(I3, (3, 3, 3)))


def test_between_rejects_a_zero_vector():
    with pytest.raises(NotARotation, match="vector b"):
        rotation.between([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])


@given(rotation_vectors())
def test_nearest_keeps_rotations_and_removes_a_scale(w):
    R = rotation.exp(w)
    _close(rotation.nearest(R), R)
    _close(rotation.nearest(3.0 * R), R)


@given(vectors(9), rotation_vectors())
def test_no_rotation_is_closer_than_the_nearest(entries, w):
    M = entries.reshape(3, 3)
    R = rotation.nearest(M)
    assert rotation.is_rotation(R)
    assert np.linalg.norm(M - R) <= np.linalg.norm(M - rotation.exp(w)) + 1e-12
    assert np.linalg.norm(M - R) <= np.linalg.norm(M - R @ rotation.exp(1e-3 * w)) + 1e-12


def test_reflections_scalings_and_nan_are_not_rotations():
    mirror, stretched = np.diag([1.0, 1.0, -1.0]), I3 * (1 + 1e-8)
    answers = rotation.is_rotation(np.stack([I3, mirror, stretched, I3 + np.nan, I3 + np.inf, 0 * I3]))
    assert answers.tolist() == [True, False, False, False, False, False]
    assert rotation.is_rotation(stretched, tolerance=1e-7)
