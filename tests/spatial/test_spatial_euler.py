from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from spatial_cases import PI, rotation_vectors, tiny, vectors

from mechanik.errors import NotARotation
from mechanik.spatial import quaternion, rotation
from mechanik.spatial.euler import euler_from_matrix, euler_from_quaternion, matrix_from_euler
from mechanik.spatial.quaternion import EULER_AXES, EULER_ORDERS

every_convention = pytest.mark.parametrize(
    ("order", "axes"), [(order, axes) for order in EULER_ORDERS for axes in EULER_AXES], ids=lambda word: word
)


def _close(a, b, tolerance=1e-14):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def _lock(order):
    """A middle angle at gimbal lock, and one far from it."""
    return (0.0, 1.1) if order[0] == order[2] else (PI / 2, 0.4)


@every_convention
@settings(max_examples=25)
@given(angles=vectors(3, 7.0))
def test_the_rotation_equals_that_of_scipy(order, axes, angles):
    theirs = Rotation.from_euler(order.upper() if axes == "moving" else order, angles)
    _close(matrix_from_euler(angles, order=order, axes=axes), theirs.as_matrix())
    ours = quaternion.from_euler(angles, order=order, axes=axes)
    _close(quaternion.to_matrix(ours), theirs.as_matrix())
    assert ours[0] >= 0.0


@every_convention
@settings(max_examples=25)
@given(w=rotation_vectors())
def test_the_angles_give_the_rotation_again_and_are_in_their_ranges(order, axes, w):
    R = rotation.exp(w)
    angles = euler_from_matrix(R, order=order, axes=axes)
    _close(matrix_from_euler(angles, order=order, axes=axes), R, 2e-13)
    low, high = (0.0, PI) if order[0] == order[2] else (-PI / 2, PI / 2)
    assert low - 1e-15 <= angles[1] <= high + 1e-15
    assert np.abs(angles).max() <= PI + 1e-15
    angles = euler_from_quaternion(quaternion.exp(w), order=order, axes=axes)
    _close(matrix_from_euler(angles, order=order, axes=axes), R, 2e-13)


@every_convention
@settings(max_examples=25)
@given(outer=vectors(2, 3.0), middle=st.floats(0.05, 1.45))
def test_away_from_gimbal_lock_the_angles_equal_those_of_scipy(order, axes, outer, middle):
    R = matrix_from_euler([outer[0], middle, outer[1]], order=order, axes=axes)
    theirs = Rotation.from_matrix(R).as_euler(order.upper() if axes == "moving" else order)
    _close(euler_from_matrix(R, order=order, axes=axes), theirs, 1e-12)


@every_convention
@settings(max_examples=25)
@given(outer=vectors(2, 3.0), off=st.one_of(st.just(0.0), tiny()), sign=st.sampled_from([1.0, -1.0]))
def test_near_gimbal_lock_no_accuracy_is_lost(order, axes, outer, off, sign):
    angles = np.array([outer[0], _lock(order)[0] + sign * off, outer[1]])
    R = matrix_from_euler(angles, order=order, axes=axes)
    for near in (None, np.zeros(3), angles):
        result = euler_from_matrix(R, order=order, axes=axes, near=near)
        _close(matrix_from_euler(result, order=order, axes=axes), R, 2e-13)


@every_convention
@settings(max_examples=25)
@given(angles=vectors(3, 20.0))
def test_near_the_given_angles_branch_and_full_turns_stay(order, axes, angles):
    R = matrix_from_euler(angles, order=order, axes=axes)
    locked = abs(np.sin(angles[1])) if order[0] == order[2] else abs(np.cos(angles[1]))
    _close(euler_from_matrix(R, order=order, axes=axes, near=angles), angles, 1e-13 + 1e-14 / max(locked, 1e-13))


@every_convention
@settings(max_examples=15)
@given(angles=vectors(3, 3.0), near=vectors(3, 10.0))
def test_no_equivalent_triple_is_nearer_than_the_result(order, axes, angles, near):
    R = matrix_from_euler(angles, order=order, axes=axes)
    result = euler_from_matrix(R, order=order, axes=axes, near=near)
    _close(matrix_from_euler(result, order=order, axes=axes), R, 2e-13)
    turns = 2 * PI * np.stack(np.meshgrid(*[np.arange(-1, 2)] * 3), -1).reshape(-1, 3)
    middle = -result[1] if order[0] == order[2] else PI - result[1]
    flipped = np.array([result[0] + PI, middle, result[2] + PI])
    rivals = np.concatenate([result + turns, flipped + turns, flipped + 2 * turns])
    locked = abs(np.sin(angles[1])) if order[0] == order[2] else abs(np.cos(angles[1]))
    if locked > 1e-6:
        assert np.linalg.norm(result - near) <= np.linalg.norm(rivals - near, axis=-1).min() + 1e-9


@every_convention
def test_a_motion_through_gimbal_lock_is_followed_without_a_jump(order, axes):
    lock, far = _lock(order)
    # An odd number of steps, symmetric about the lock, so that one of them hits it exactly.
    middles = lock + (far - lock) * np.linspace(1.0, -1.0, 81)
    path = np.stack([np.full(81, 0.7), middles, np.full(81, -1.9)], axis=-1)
    angles = path[0]
    for wanted in path[1:]:
        R = matrix_from_euler(wanted, order=order, axes=axes)
        angles = euler_from_matrix(R, order=order, axes=axes, near=angles)
        _close(angles, wanted, 1e-12)


@every_convention
@given(outer=vectors(2, 3.0), outer_angle=st.floats(-9.0, 9.0))
@settings(max_examples=15)
def test_at_gimbal_lock_the_outermost_rotation_keeps_its_angle(order, axes, outer, outer_angle):
    lock, _ = _lock(order)
    R = matrix_from_euler([outer[0], lock, outer[1]], order=order, axes=axes)
    first = 0 if axes == "moving" else 2
    near = np.array([0.0, lock, 0.0])
    near[first] = outer_angle
    result = euler_from_matrix(R, order=order, axes=axes, near=near)
    assert result[first] == outer_angle
    assert result[1] == pytest.approx(lock, abs=1e-13)
    _close(matrix_from_euler(result, order=order, axes=axes), R, 2e-13)
    assert euler_from_matrix(R, order=order, axes=axes)[first] == 0.0


def test_urdf_roll_pitch_yaw_is_the_fixed_xyz():
    roll, pitch, yaw = 0.1, 0.2, 0.3
    wanted = rotation.about_z(yaw) @ rotation.about_y(pitch) @ rotation.about_x(roll)
    _close(matrix_from_euler([roll, pitch, yaw], order="xyz", axes="fixed"), wanted, 1e-16)
    _close(matrix_from_euler([yaw, pitch, roll], order="zyx", axes="moving"), wanted, 1e-16)


@pytest.mark.parametrize("order", ["xxy", "XYZ", "xy", "", "abc", "xyzx"])
def test_an_unknown_order_lists_the_known_orders(order):
    with pytest.raises(NotARotation, match=r"zyx.*zxz"):
        matrix_from_euler([0.0, 0.0, 0.0], order=order, axes="moving")


@pytest.mark.parametrize("axes", ["intrinsic", "s", "", "Fixed"])
def test_unknown_axes_list_the_known_axes(axes):
    with pytest.raises(ValueError, match=r"moving.*fixed"):
        euler_from_matrix(np.eye(3), order="zyx", axes=axes)


def test_neither_order_nor_axes_has_a_default():
    for function, rotation_value in [
        (matrix_from_euler, np.zeros(3)),
        (quaternion.from_euler, np.zeros(3)),
        (euler_from_matrix, np.eye(3)),
        (euler_from_quaternion, np.eye(4)[0]),
    ]:
        with pytest.raises(TypeError, match="order"):
            function(rotation_value, axes="fixed")
        with pytest.raises(TypeError, match="axes"):
            function(rotation_value, order="zyx")
