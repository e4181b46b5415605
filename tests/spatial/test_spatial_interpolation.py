from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp
from spatial_cases import PI, directions, quaternions, rotation_vectors, tiny, twists, vectors

from mechanik.errors import UnknownName
from mechanik.spatial import interpolation, inverse, make_pose, quaternion, rotation, twist


def _close(a, b, tolerance=1e-14):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


times = st.floats(0.0, 1.0)


@given(quaternions(), quaternions())
def test_slerp_starts_and_ends_exactly_at_its_ends(a, b):
    assert np.array_equal(interpolation.slerp(a, b, 0.0), a)
    end = interpolation.slerp(a, b, 1.0)
    assert np.array_equal(end, b) or np.array_equal(end, -b)
    assert end @ a >= -1e-15


@given(quaternions(), directions(), st.one_of(st.floats(0.0, 3.14), tiny()), times, st.booleans())
def test_slerp_rotates_in_proportion_to_time_along_the_shortest_rotation(a, axis, angle, t, opposite):
    b = quaternion.multiply(a, quaternion.from_axis_angle(axis, angle))
    between = interpolation.slerp(a, -b if opposite else b, t)
    assert np.linalg.norm(between) == pytest.approx(1.0, abs=1e-14)
    assert quaternion.angle_between(a, between) == pytest.approx(t * angle, abs=1e-14)
    assert quaternion.angle_between(between, b) == pytest.approx((1 - t) * angle, abs=1e-14)


@given(quaternions(), directions(), tiny(), times)
def test_slerp_near_half_turns_stays_on_the_unit_sphere_and_between_its_ends(a, axis, off, t):
    b = quaternion.multiply(a, quaternion.from_axis_angle(axis, PI - off))
    between = interpolation.slerp(a, b, t)
    assert np.linalg.norm(between) == pytest.approx(1.0, abs=1e-14)
    assert quaternion.angle_between(a, between) == pytest.approx(t * (PI - off), abs=1e-14)


@given(quaternions(), rotation_vectors(), times)
def test_slerp_equals_that_of_scipy(a, w, t):
    b = quaternion.multiply(a, quaternion.exp(0.99 * w))
    ends = Rotation.from_quat(np.roll([a, b], -1, axis=-1))
    theirs = Slerp([0.0, 1.0], ends)(t).as_matrix()
    _close(quaternion.to_matrix(interpolation.slerp(a, b, t)), theirs, 1e-13)
    _close(interpolation.rotations(*ends.as_matrix(), t), theirs, 1e-13)


@given(rotation_vectors(), rotation_vectors(), st.floats(-1.0, 2.0))
def test_rotations_have_a_constant_rate_also_beyond_the_ends(v, w, t):
    R0, R1 = rotation.exp(v), rotation.exp(v) @ rotation.exp(0.99 * w)
    _close(interpolation.rotations(R0, R1, t), R0 @ rotation.exp(0.99 * t * w), 1e-13)
    assert np.array_equal(interpolation.rotations(R0, R1, 0.0), R0)
    _close(interpolation.rotations(R0, R1, 1.0), R1)


@pytest.mark.parametrize("path", ["straight", "screw"])
@given(s=twists(), t=twists())
def test_both_paths_start_and_end_at_their_ends(path, s, t):
    X0, X1 = twist.exp(s), twist.exp(t)
    _close(interpolation.poses(X0, X1, 0.0, path=path), X0, 1e-15)
    _close(interpolation.poses(X0, X1, 1.0, path=path), X1, 1e-13)


@given(twists(), twists(), times)
def test_the_straight_path_moves_the_origin_along_the_line(s, t, time):
    X0, X1 = twist.exp(s), twist.exp(t)
    X = interpolation.poses(X0, X1, time)
    _close(X[:3, 3], X0[:3, 3] + time * (X1[:3, 3] - X0[:3, 3]))
    assert np.array_equal(X[:3, :3], interpolation.rotations(X0[:3, :3], X1[:3, :3], time))


@given(twists(), vectors(), rotation_vectors(), times)
def test_the_screw_path_has_a_constant_twist(s, v, w, time):
    X0, t = twist.exp(s), np.concatenate([v, 0.99 * w])
    X = interpolation.poses(X0, X0 @ twist.exp(t), time, path="screw")
    _close(X, X0 @ twist.exp(time * t), 1e-12)


@given(twists(), twists(), twists(), times)
def test_the_screw_path_does_not_depend_on_the_origin_of_the_body(s, t, shift, time):
    X0, X_tool = twist.exp(s), twist.exp(shift)
    X1 = X0 @ twist.exp(0.99 * t)
    moved = interpolation.poses(X0 @ X_tool, X1 @ X_tool, time, path="screw")
    _close(moved @ inverse(X_tool), interpolation.poses(X0, X1, time, path="screw"), 1e-11)


def test_the_two_paths_differ_if_the_rotation_moves_the_origin():
    X0, X1 = np.eye(4), make_pose(rotation.about_z(PI / 2), [1.0, 1.0, 0.0])
    straight = interpolation.poses(X0, X1, 0.5)
    screw = interpolation.poses(X0, X1, 0.5, path="screw")
    _close(straight[:3, 3], [0.5, 0.5, 0.0])
    # A quarter circle about (0, 1).
    _close(screw[:3, 3], [np.sin(PI / 4), 1.0 - np.cos(PI / 4), 0.0])


def test_an_unknown_path_lists_the_known_paths():
    with pytest.raises(UnknownName, match="screw"):
        interpolation.poses(np.eye(4), np.eye(4), 0.5, path="screws")  # type: ignore[arg-type]
