"""Every function of `spatial` gives the same results for a batch as for single calls."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from mechanik import spatial
from mechanik.spatial import euler, interpolation, pose, quaternion, rotation, twist

RNG = np.random.default_rng(7)
BATCH = (4, 5)


def _vectors(size=3):
    v = RNG.normal(size=(*BATCH, size))
    # Both sides of every switch between formulas are in one batch.
    v[0] *= 1e-9
    v[1, 0] = 0.0
    v[2, 0, -3:] = [0.0, np.pi, 0.0]
    return v


def _directions():
    v = RNG.normal(size=(*BATCH, 3))
    v[0] *= 1e-9
    return v


W, V, T = _vectors(), _vectors(), _vectors(6)
Q, R, X = quaternion.exp(W), rotation.exp(W), twist.exp(T)
P, S = quaternion.exp(V), rotation.exp(V)
Y = twist.exp(_vectors(6))
A, B = _directions(), _directions()
B[1], B[2] = -A[1], A[2]
ANGLE, TIME = RNG.normal(size=BATCH), RNG.uniform(size=BATCH)
LOCKED = euler.matrix_from_euler(W * [1.0, 0.0, 1.0] + [0.0, np.pi / 2, 0.0], order="zyx", axes="moving")
LOCKED[0] = R[0]
ZYX = {"order": "zyx", "axes": "moving"}
XYX = {"order": "xyx", "axes": "fixed"}

# name: the function and its arguments, each with the number of axes that are not batch axes.
CASES = {
    "rotation.hat": (rotation.hat, (W, 1)),
    "rotation.vee": (rotation.vee, (rotation.hat(W), 2)),
    "rotation.exp": (rotation.exp, (W, 1)),
    "rotation.log": (rotation.log, (R, 2)),
    "rotation.left_jacobian": (rotation.left_jacobian, (W, 1)),
    "rotation.right_jacobian": (rotation.right_jacobian, (W, 1)),
    "rotation.left_jacobian_inverse": (rotation.left_jacobian_inverse, (W, 1)),
    "rotation.right_jacobian_inverse": (rotation.right_jacobian_inverse, (W, 1)),
    "rotation.from_axis_angle": (rotation.from_axis_angle, (A, 1), (ANGLE, 0)),
    "rotation.axis": (lambda R: rotation.to_axis_angle(R)[0], (R, 2)),
    "rotation.angle": (lambda R: rotation.to_axis_angle(R)[1], (R, 2)),
    "rotation.between": (rotation.between, (A, 1), (B, 1)),
    "rotation.about_x": (rotation.about_x, (ANGLE, 0)),
    "rotation.about_y": (rotation.about_y, (ANGLE, 0)),
    "rotation.about_z": (rotation.about_z, (ANGLE, 0)),
    "rotation.nearest": (rotation.nearest, (RNG.normal(size=(*BATCH, 3, 3)), 2)),
    "rotation.is_rotation": (rotation.is_rotation, (R + (ANGLE > 0)[..., None, None], 2)),
    "quaternion.multiply": (quaternion.multiply, (Q, 1), (P, 1)),
    "quaternion.conjugate": (quaternion.conjugate, (Q, 1)),
    "quaternion.normalize": (quaternion.normalize, (Q * (1 + ANGLE[..., None] ** 2), 1)),
    "quaternion.canonical": (quaternion.canonical, (Q * np.sign(ANGLE)[..., None], 1)),
    "quaternion.rotate": (quaternion.rotate, (Q, 1), (V, 1)),
    "quaternion.from_matrix": (quaternion.from_matrix, (R, 2)),
    "quaternion.to_matrix": (quaternion.to_matrix, (Q, 1)),
    "quaternion.exp": (quaternion.exp, (W, 1)),
    "quaternion.log": (quaternion.log, (Q, 1)),
    "quaternion.from_axis_angle": (quaternion.from_axis_angle, (A, 1), (ANGLE, 0)),
    "quaternion.axis": (lambda q: quaternion.to_axis_angle(q)[0], (Q, 1)),
    "quaternion.angle": (lambda q: quaternion.to_axis_angle(q)[1], (Q, 1)),
    "quaternion.angle_between": (quaternion.angle_between, (Q, 1), (P, 1)),
    "euler.matrix_from_euler": (partial(euler.matrix_from_euler, **ZYX), (W, 1)),
    "quaternion.from_euler": (partial(quaternion.from_euler, **XYX), (W, 1)),
    "quaternion.from_rpy": (quaternion.from_rpy, (W, 1)),
    "euler.euler_from_matrix": (partial(euler.euler_from_matrix, **ZYX), (LOCKED, 2)),
    "euler.euler_from_matrix_proper": (partial(euler.euler_from_matrix, **XYX), (R, 2)),
    "euler.near": (lambda R, near: euler.euler_from_matrix(R, **ZYX, near=near), (LOCKED, 2), (9 * V, 1)),
    "euler.euler_from_quaternion": (partial(euler.euler_from_quaternion, **ZYX), (Q, 1)),
    "twist.hat": (twist.hat, (T, 1)),
    "twist.vee": (twist.vee, (twist.hat(T), 2)),
    "twist.exp": (twist.exp, (T, 1)),
    "twist.log": (twist.log, (X, 2)),
    "twist.adjoint": (twist.adjoint, (X, 2)),
    "twist.little_adjoint": (twist.little_adjoint, (T, 1)),
    "twist.left_jacobian": (twist.left_jacobian, (T, 1)),
    "twist.right_jacobian": (twist.right_jacobian, (T, 1)),
    "twist.left_jacobian_inverse": (twist.left_jacobian_inverse, (T, 1)),
    "twist.right_jacobian_inverse": (twist.right_jacobian_inverse, (T, 1)),
    "pose.make_pose": (pose.make_pose, (R, 2), (V, 1)),
    "pose.from_position_wxyz": (pose.from_position_wxyz, (V, 1), (Q, 1)),
    "pose.position": (lambda X: pose.to_position_wxyz(X)[0], (X, 2)),
    "pose.wxyz": (lambda X: pose.to_position_wxyz(X)[1], (X, 2)),
    "pose.translation": (pose.translation, (V, 1)),
    "pose.inverse": (pose.inverse, (X, 2)),
    "pose.apply": (pose.apply, (X, 2), (V, 1)),
    "pose.rotate": (pose.rotate, (X, 2), (V, 1)),
    "pose.position_of": (pose.position_of, (X, 2)),
    "pose.rotation_of": (pose.rotation_of, (X, 2)),
    "pose.is_pose": (pose.is_pose, (X + (ANGLE > 0)[..., None, None], 2)),
    "pose.as_pose_matrix": (pose.as_pose_matrix, (X, 2)),
    "interpolation.slerp": (interpolation.slerp, (Q, 1), (P, 1), (TIME, 0)),
    "interpolation.rotations": (interpolation.rotations, (R, 2), (S, 2), (TIME, 0)),
    "interpolation.straight": (interpolation.poses, (X, 2), (Y, 2), (TIME, 0)),
    "interpolation.screw": (partial(interpolation.poses, path="screw"), (X, 2), (Y, 2), (TIME, 0)),
}

every_function = pytest.mark.parametrize("name", CASES)


@every_function
def test_a_batch_gives_the_same_results_as_single_calls(name):
    function, *arguments = CASES[name]
    whole = function(*(a for a, _ in arguments))
    for index in np.ndindex(*BATCH):
        single = function(*(a[index] for a, _ in arguments))
        np.testing.assert_allclose(whole[index], single, rtol=1e-13, atol=1e-14)
        assert np.shape(whole[index]) == np.shape(single)


# A list has no views to give.
@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith("_of")])
def test_lists_are_accepted_as_arrays(name):
    function, *arguments = CASES[name]
    lists = function(*(a[3, 3].tolist() for a, _ in arguments))
    assert np.array_equal(lists, function(*(a[3, 3] for a, _ in arguments)))


@pytest.mark.parametrize("name", [name for name, (_, *arguments) in CASES.items() if len(arguments) > 1])
def test_batch_axes_broadcast(name):
    function, *arguments = CASES[name]
    # The first argument keeps the first batch axis, the others the second.
    column = [a[:, :1] if n == 0 else a[:1, :] for n, (a, _) in enumerate(arguments)]
    full = [np.broadcast_to(a, BATCH + a.shape[2:]) for a in column]
    np.testing.assert_allclose(function(*column), function(*full), rtol=1e-13, atol=1e-14)
    for n in range(len(arguments)):
        mixed = [a[3, 3] if m == n else a for m, (a, _) in enumerate(arguments)]
        spread = [np.broadcast_to(a, BATCH + a.shape[a.ndim - k :]) for a, (_, k) in zip(mixed, arguments, strict=True)]
        np.testing.assert_allclose(function(*mixed), function(*spread), rtol=1e-13, atol=1e-14)


@every_function
def test_an_empty_batch_gives_an_empty_batch(name):
    function, *arguments = CASES[name]
    shape = np.shape(function(*(a[3, 3] for a, _ in arguments)))
    for empty in (0, (0, 2)):
        batch = (empty,) if isinstance(empty, int) else empty
        nothing = function(*(np.zeros((*batch, *a.shape[2:])) for a, _ in arguments))
        assert nothing.shape == (*batch, *shape)


@every_function
def test_arguments_are_not_changed(name):
    function, *arguments = CASES[name]
    copies = [a.copy() for a, _ in arguments]
    for a, _ in arguments:
        a.flags.writeable = False
    try:
        function(*(a for a, _ in arguments))
        function(*(a[3, 3] for a, _ in arguments))
    finally:
        for a, _ in arguments:
            a.flags.writeable = True
    assert all(np.array_equal(a, before) for (a, _), before in zip(arguments, copies, strict=True))


@pytest.mark.filterwarnings("error")
@every_function
def test_valid_input_raises_no_warning(name):
    function, *arguments = CASES[name]
    function(*(a for a, _ in arguments))
    for index in np.ndindex(*BATCH):
        function(*(a[index] for a, _ in arguments))


def test_every_public_function_is_tested_here():
    tried = {name.split(".")[1] for name in CASES} | {
        "identity",
        "to_axis_angle",
        "axis_and_angle",
        "to_position_wxyz",
        "poses",
    }
    for module in (rotation, quaternion, twist, euler, pose, interpolation):
        for name, member in vars(module).items():
            if callable(member) and getattr(member, "__module__", "") == module.__name__ and not name.startswith("_"):
                assert name in tried or name == "Pose", f"{module.__name__}.{name} has no case"


def test_every_exported_name_exists():
    assert all(hasattr(spatial, name) for name in spatial.__all__)


def test_importing_needs_only_numpy():
    script = "import sys, mechanik.spatial; print([m for m in ('scipy', 'jax', 'mujoco') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
