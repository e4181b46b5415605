from __future__ import annotations

from math import factorial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from spatial_cases import PI, rotation_vectors, twists, vectors

from mechanik.spatial import inverse, rotation, twist

I6 = np.eye(6)


def _close(a, b, tolerance=1e-13):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@given(vectors(6))
def test_vee_inverts_hat(t):
    assert np.array_equal(twist.vee(twist.hat(t)), t)


@given(twists())
def test_exp_is_the_matrix_exponential(t):
    _close(twist.exp(t), expm(twist.hat(t)))


@given(twists())
def test_log_inverts_exp(t):
    if np.linalg.norm(t[3:]) > PI - 1e-14:  # the same pose has the twist of the turn the other way
        _close(twist.exp(twist.log(twist.exp(t))), twist.exp(t))
    else:
        _close(twist.log(twist.exp(t)), t)


@given(vectors(), rotation_vectors(), st.floats(-12.0, -3.0).map(lambda e: 10.0**e))
def test_small_twists_are_recovered_to_the_last_digits(v, w, scale):
    t = scale * np.concatenate([v, w])
    _close(twist.log(twist.exp(t)), t, 1e-14 * scale)


@given(twists(), twists())
def test_exp_inverts_log(s, t):
    X = twist.exp(s) @ twist.exp(t)
    _close(twist.exp(twist.log(X)), X)


@given(twists(), st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))
def test_motions_along_a_screw_add_up(t, a, b):
    _close(twist.exp(a * t) @ twist.exp(b * t), twist.exp((a + b) * t))
    _close(twist.exp(-t), inverse(twist.exp(t)))


@given(twists(), twists())
def test_the_adjoint_is_conjugation(s, t):
    X = twist.exp(s)
    _close(twist.adjoint(X) @ t, twist.vee(X @ twist.hat(t) @ inverse(X)))
    _close(twist.exp(twist.adjoint(X) @ t), X @ twist.exp(t) @ inverse(X))


@given(twists(), twists())
def test_the_adjoint_respects_products_and_inverses(s, t):
    X, Y = twist.exp(s), twist.exp(t)
    _close(twist.adjoint(X @ Y), twist.adjoint(X) @ twist.adjoint(Y))
    _close(twist.adjoint(X) @ twist.adjoint(inverse(X)), I6)


@given(twists(), twists())
def test_the_little_adjoint_is_the_bracket_and_the_derivative_of_the_adjoint(s, t):
    bracket = twist.hat(s) @ twist.hat(t) - twist.hat(t) @ twist.hat(s)
    _close(twist.little_adjoint(s) @ t, twist.vee(bracket))
    _close(twist.adjoint(twist.exp(s)), expm(twist.little_adjoint(s)), 1e-12)


@given(twists())
def test_the_left_jacobian_is_its_series(t):
    ad = twist.little_adjoint(t)
    total, power = np.zeros((6, 6)), I6
    for n in range(60):
        total, power = total + power / factorial(n + 1), power @ ad
    _close(twist.left_jacobian(t), total)


@given(twists())
def test_the_jacobians_fit_the_adjoint_in_closed_form(t):
    Ad, J = twist.adjoint(twist.exp(t)), twist.left_jacobian(t)
    _close(twist.little_adjoint(t) @ J, Ad - I6)
    _close(J, Ad @ twist.right_jacobian(t))
    _close(J, twist.right_jacobian(-t), 0.0)
    _close(J @ t, t)


@given(twists(), vectors(6, 1.0))
def test_the_jacobians_are_the_derivatives_of_exp(t, direction):
    h = 1e-5
    after, before = twist.exp(t + h * direction), twist.exp(t - h * direction)
    _close(twist.left_jacobian(t) @ direction, twist.log(after @ inverse(before)) / (2 * h), 1e-8)
    _close(twist.right_jacobian(t) @ direction, twist.log(inverse(before) @ after) / (2 * h), 1e-8)


@given(twists(), vectors(6, 1.0), st.floats(1e-9, 1e-7))
def test_left_and_right_jacobians_describe_the_same_step(t, direction, h):
    stepped, X = twist.exp(t + h * direction), twist.exp(t)
    _close(stepped, twist.exp(twist.left_jacobian(t) @ direction * h) @ X, 1e-12)
    _close(stepped, X @ twist.exp(twist.right_jacobian(t) @ direction * h), 1e-12)


@given(twists(), st.floats(0.0, 1.5))
def test_the_inverse_jacobians_are_inverses(t, scale):
    t = scale * t
    _close(twist.left_jacobian(t) @ twist.left_jacobian_inverse(t), I6, 1e-12)
    _close(twist.right_jacobian(t) @ twist.right_jacobian_inverse(t), I6, 1e-12)


@given(vectors())
def test_a_twist_without_rotation_is_a_translation(v):
    X = twist.exp(np.concatenate([v, np.zeros(3)]))
    assert np.array_equal(X[:3, 3], v)
    assert np.array_equal(X[:3, :3], np.eye(3))


@given(rotation_vectors())
def test_a_pure_rotation_has_the_jacobian_of_rotations(w):
    J = twist.left_jacobian(np.concatenate([np.zeros(3), w]))
    assert np.array_equal(J[3:, 3:], rotation.left_jacobian(w))
    assert not J[:3, 3:].any()
