"""Cartesian paths: lines, arcs, splines and their sequences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanik.errors import MechanikError, NotFinite, ShapeError
from mechanik.motion.follow import Arc, CartesianPath, Line, Spline
from mechanik.spatial import Pose, is_pose, make_pose, rotation

SEEDS = st.integers(0, 2**32 - 1)
FEW_EXAMPLES = settings(max_examples=25, deadline=None)


def random_poses(seed: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rotation_vectors = rng.uniform(0.1, 2.5, (count, 1)) * _unit(rng.standard_normal((count, 3)))
    return make_pose(rotation.exp(rotation_vectors), rng.uniform(-1, 1, (count, 3)))


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def paths(seed: int) -> list[CartesianPath]:
    X = random_poses(seed, 4)
    return [
        Line(X[0], X[1]),
        Arc(X[0], X[1], X[2]),
        Arc.about(X[0], X[1][:3, 3], X[2][:3, 3], -5.0),
        Spline(X),
        Line(X[0], X[1]) + Line(X[1], X[2]) + Arc(X[2], X[0], X[3]),
        CartesianPath.through(X),
    ]


@FEW_EXAMPLES
@given(SEEDS)
def test_every_path_consists_of_poses_without_a_jump(seed):
    for path in paths(seed):
        X = path.sample(2001)
        assert is_pose(X, 1e-12).all()
        assert np.linalg.norm(np.diff(X[:, :3, 3], axis=0), axis=1).max() < 20 / 2000 * max(1.0, path.length)
        assert np.linalg.norm(rotation.log(np.swapaxes(X[:-1, :3, :3], 1, 2) @ X[1:, :3, :3]), axis=1).max() < 0.1


@FEW_EXAMPLES
@given(SEEDS)
def test_paths_start_and_end_at_their_end_poses(seed):
    X = random_poses(seed, 4)
    for path, end in ((Line(X[0], X[1]), 1), (Arc(X[0], X[1], X[2]), 2), (Spline(X), 3), (CartesianPath.through(X), 3)):
        np.testing.assert_allclose(path(0.0), X[0], atol=1e-9)
        np.testing.assert_allclose(path(1.0), X[end], atol=1e-9)


@FEW_EXAMPLES
@given(SEEDS)
def test_line_translates_and_rotates_uniformly(seed):
    X = Line(*random_poses(seed, 2)).sample(50)
    steps = np.diff(X[:, :3, 3], axis=0)
    rotation_vectors = rotation.log(np.swapaxes(X[:-1, :3, :3], 1, 2) @ X[1:, :3, :3])
    np.testing.assert_allclose(steps, np.tile(steps[0], (49, 1)), atol=1e-12)
    np.testing.assert_allclose(rotation_vectors, np.tile(rotation_vectors[0], (49, 1)), atol=1e-10)


@FEW_EXAMPLES
@given(SEEDS)
def test_arc_has_constant_radius_and_passes_its_inner_point(seed):
    a, m, b = random_poses(seed, 3)
    arc = Arc(a, m[:3, 3], b)
    radii = np.linalg.norm(arc.sample(200)[:, :3, 3] - arc.centre, axis=1)
    np.testing.assert_allclose(radii, radii[0], rtol=1e-9)
    r, s = a[:3, 3] - arc.centre, m[:3, 3] - arc.centre
    angle = np.arctan2(arc.axis @ np.cross(r, s), r @ s) % (2 * np.pi)
    np.testing.assert_allclose(arc(angle / arc.angle)[:3, 3], m[:3, 3], atol=1e-8 * max(1.0, radii[0]))


def test_arc_about_an_axis_rotates_its_frame_if_requested():
    start = Pose((1.0, 0.0, 0.0))
    X_end = Arc.about(start, (0, 0, 0), (0, 0, 2), np.pi / 2)(1.0)
    np.testing.assert_allclose(X_end, make_pose(rotation.exp([0, 0, np.pi / 2]), [0, 1, 0]), atol=1e-15)
    np.testing.assert_allclose(
        Arc.about(start, (0, 0, 0), (0, 0, 1), np.pi / 2, rotate_frame=False)(1.0)[:3, :3], np.eye(3)
    )


@FEW_EXAMPLES
@given(SEEDS)
def test_spline_is_C2_in_position_and_C1_in_orientation(seed):
    X = random_poses(seed, 5)
    spline, h = Spline(X), 1e-4
    for k, t in enumerate(spline.t[1:-1], 1):
        np.testing.assert_allclose(spline(t), X[k], atol=1e-9)
        p = spline(t + h * np.arange(-2, 3))[:, :3, 3]
        before, after = (p[0] - 2 * p[1] + p[2]) / h**2, (p[2] - 2 * p[3] + p[4]) / h**2
        # the error of a second difference is h times the third derivative
        third = np.abs(np.diff(spline._position_second_derivatives, axis=0) / np.diff(spline.t)[:, None]).max()
        assert np.abs(before - after).max() < 2.5 * h * third + 1e-6
        R = spline(np.array([t - h, t, t + h]))[:, :3, :3]
        left, right = rotation.log(R[0].T @ R[1]) / h, rotation.log(R[1].T @ R[2]) / h
        assert np.linalg.norm(left - right) < 5e-2 * (1 + np.linalg.norm(left)) ** 2


def test_joined_paths_share_t_by_their_size():
    long, short = Line(Pose(), Pose((3, 0, 0))), Line(Pose((3, 0, 0)), Pose((3, 1, 0)))
    both = long + short
    np.testing.assert_allclose(both(0.75)[:3, 3], [3, 0, 0], atol=1e-12)
    assert both.length == pytest.approx(4.0, rel=1e-9)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Line(Pose(), np.full((4, 4), np.nan)), "not finite"),
        (lambda: Line(Pose(), np.zeros((2, 2))), "4, 4"),
        (lambda: Arc(Pose(), (1, 0, 0), Pose((2, 0, 0))), "one line"),
        (lambda: Arc(Pose(), (0, 0, 0), Pose((2, 0, 0))), "one line"),
        (lambda: Arc.about(Pose(), (0, 0, 0), (0, 0, 0), 1.0), "zero"),
        (lambda: Spline([Pose()]), "2 or more"),
        (lambda: Spline([Pose(), Pose()]), "is equal to pose 0; remove it"),
        (lambda: Spline([Pose(), Pose((1, 0, 0))], [0.0, 0.5]), "from 0 to 1"),
        (lambda: CartesianPath.through([]), "2 or more"),
        (lambda: Line(Pose(), Pose((1, 0, 0))) + Line(Pose(), Pose((1, 0, 0))), "put a Line between"),
        (lambda: Line(Pose(), Pose((1, 0, 0)))(1.5), "from 0 to 1"),
        (lambda: Line(Pose(), Pose((1, 0, 0))).sample(1), "2 or more"),
    ],
)
def test_invalid_cartesian_paths_raise(build, message):
    with pytest.raises(MechanikError, match=message):
        build()


def test_invalid_parameters_raise_NotFinite_and_ShapeError():
    with pytest.raises(NotFinite):
        Line(Pose(), Pose((1, 0, 0)))(np.nan)
    with pytest.raises(ShapeError):
        Line(Pose(), Pose((1, 0, 0)))(-0.1)
