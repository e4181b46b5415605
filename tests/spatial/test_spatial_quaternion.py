from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from spatial_cases import PI, directions, quaternions, rotation_vectors, tiny, turns, vectors

from mechanik.errors import NotARotation
from mechanik.spatial import quaternion, rotation


def _close(a, b, tolerance=1e-14):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def _scipy(q):
    return Rotation.from_quat(np.roll(q, -1))


@given(quaternions(), quaternions(), quaternions())
def test_unit_quaternions_are_a_group(a, b, c):
    multiply = quaternion.multiply
    _close(multiply(multiply(a, b), c), multiply(a, multiply(b, c)))
    assert np.array_equal(multiply(a, quaternion.identity()), a)
    assert np.array_equal(multiply(quaternion.identity(), a), a)
    _close(multiply(a, quaternion.conjugate(a)), quaternion.identity())


@given(quaternions(), quaternions())
def test_the_product_of_quaternions_is_the_product_of_matrices(a, b):
    product = quaternion.to_matrix(quaternion.multiply(a, b))
    _close(product, quaternion.to_matrix(a) @ quaternion.to_matrix(b))
    _close(product, (_scipy(a) * _scipy(b)).as_matrix())


@given(quaternions(), vectors())
def test_rotating_a_vector_is_multiplying_by_the_matrix(q, v):
    _close(quaternion.rotate(q, v), quaternion.to_matrix(q) @ v)
    _close(quaternion.rotate(q, v), _scipy(q).apply(v))


@given(quaternions(), st.sampled_from([1e-3, 1.0, 700.0]))
def test_the_matrix_does_not_depend_on_sign_or_length(q, scale):
    R = quaternion.to_matrix(scale * q)
    assert rotation.is_rotation(R, 4e-15)
    _close(R, quaternion.to_matrix(-q), 4e-15)


@given(quaternions())
def test_a_quaternion_from_its_matrix_has_a_positive_w(q):
    back = quaternion.from_matrix(quaternion.to_matrix(q))
    assert back[0] >= 0.0
    _close(back * np.sign(back @ q), q, 2e-15)
    assert np.linalg.norm(back) == pytest.approx(1.0, abs=4e-16)


@pytest.mark.parametrize("largest", range(4))
@given(small=vectors(3, 0.9))
def test_every_branch_of_the_matrix_conversion_is_right(largest, small):
    q = np.insert(small, largest, 1.0)
    q /= np.linalg.norm(q)
    back = quaternion.from_matrix(quaternion.to_matrix(q))
    _close(back, q if q[0] > 0 else -q, 2e-15) if abs(q[0]) > 1e-14 else _close(abs(back @ q), 1.0)


@given(quaternions())
def test_the_canonical_quaternion_is_the_same_for_both_signs(q):
    positive, negative = quaternion.canonical(q), quaternion.canonical(-q)
    _close(positive, negative, 2e-15)
    assert positive[0] >= 0.0
    assert abs(abs(positive @ q) - 1.0) < 1e-14
    assert np.array_equal(quaternion.canonical(positive), positive)


def test_a_half_turn_is_canonical_with_its_first_component_positive():
    assert quaternion.canonical([0.0, 0.0, -0.6, 0.8]).tolist() == [0.0, 0.0, 0.6, -0.8]
    # Rounding in w, of either sign, must not decide about the axis.
    noisy = quaternion.canonical([[1e-17, -1.0, 0.0, 0.0], [-1e-17, -1.0, 0.0, 0.0], [-1e-17, 1.0, 0.0, 0.0]])
    assert (noisy[:, 0] >= 0.0).all()
    assert (noisy[:, 1] == 1.0).all()


@given(rotation_vectors())
def test_log_inverts_exp_and_exp_is_the_matrix_exponential(w):
    q, angle = quaternion.exp(w), np.linalg.norm(w)
    _close(quaternion.to_matrix(q), rotation.exp(w), 4e-15)
    back = quaternion.log(q)
    if angle > PI - 1e-14 and back @ w < 0.0:
        back = -back
    assert np.linalg.norm(back - w) <= 1e-14 * angle


@given(quaternions())
def test_log_is_the_shortest_rotation(q):
    w = quaternion.log(q)
    assert np.linalg.norm(w) <= PI + 1e-15
    _close(quaternion.log(-q), w)
    _close(quaternion.to_matrix(quaternion.exp(w)), quaternion.to_matrix(q))
    if abs(q[0]) > 1e-12:
        _close(w, _scipy(q).as_rotvec(), 1e-13)


@given(quaternions(), st.sampled_from([1e-200, 0.3, 1e200]))
def test_normalizing_keeps_the_direction_and_is_idempotent(q, scale):
    once = quaternion.normalize(scale * q)
    _close(once, q, 1e-15)
    assert np.array_equal(quaternion.normalize(once), once)


def test_a_zero_quaternion_is_rejected():
    with pytest.raises(NotARotation, match="quaternion is zero"):
        quaternion.normalize([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])


@given(directions(), turns(), st.sampled_from([1e-200, 1.0, 7.0]))
def test_axis_and_angle_are_recovered(axis, angle, scale):
    q = quaternion.from_axis_angle(scale * axis, angle)
    _close(quaternion.to_matrix(q), rotation.from_axis_angle(axis, angle), 4e-15)
    found_axis, found_angle = quaternion.to_axis_angle(q)
    assert found_angle == pytest.approx(angle, rel=1e-14, abs=0.0)
    if angle > PI - 1e-14 and found_axis @ axis < 0.0:
        found_axis = -found_axis
    if angle > 0.0:
        _close(found_axis, axis)


def test_a_zero_axis_is_rejected():
    with pytest.raises(NotARotation, match="axis"):
        quaternion.from_axis_angle([0.0, 0.0, 0.0], 1.0)


@given(quaternions(), directions(), st.one_of(turns(), tiny(-15)))
def test_the_angle_between_quaternions_is_that_of_their_relative_rotation(q, axis, angle):
    turned = quaternion.multiply(q, quaternion.from_axis_angle(axis, angle))
    assert quaternion.angle_between(q, turned) == pytest.approx(angle, abs=2e-15)
    assert quaternion.angle_between(turned, -q) == pytest.approx(angle, abs=2e-15)


@given(directions(), tiny(-150))
def test_small_angles_to_the_identity_are_exact_to_the_last_digits(axis, angle):
    actual = quaternion.angle_between(quaternion.identity(), quaternion.from_axis_angle(axis, angle))
    assert actual == pytest.approx(angle, rel=1e-14, abs=0.0)
