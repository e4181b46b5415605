"""Lines, arcs and splines of poses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanik.errors import MechanikError, NotFinite, ShapeError
from mechanik.motion.follow import Arc, CartesianPath, Line, Spline
from mechanik.spatial import Pose, is_pose, make_pose, rotation

SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=25, deadline=None)


def some_poses(seed: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    turns = rng.uniform(0.1, 2.5, (count, 1)) * _unit(rng.standard_normal((count, 3)))
    return make_pose(rotation.exp(turns), rng.uniform(-1, 1, (count, 3)))


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def paths(seed: int) -> list[CartesianPath]:
    X = some_poses(seed, 4)
    return [
        Line(X[0], X[1]),
        Arc(X[0], X[1], X[2]),
        Arc.about(X[0], X[1][:3, 3], X[2][:3, 3], -5.0),
        Spline(X),
        Line(X[0], X[1]) + Line(X[1], X[2]) + Arc(X[2], X[0], X[3]),
        CartesianPath.through(X),
    ]


@FEW
@given(SEEDS)
def test_every_path_is_one_of_poses_and_has_no_jump(seed):
    for path in paths(seed):
        X = path.sample(2001)
        assert is_pose(X, 1e-12).all()
        assert np.linalg.norm(np.diff(X[:, :3, 3], axis=0), axis=1).max() < 20 / 2000 * max(1.0, path.length)
        assert np.linalg.norm(rotation.log(np.swapaxes(X[:-1, :3, :3], 1, 2) @ X[1:, :3, :3]), axis=1).max() < 0.1


@FEW
@given(SEEDS)
def test_paths_begin_and_end_where_they_should(seed):
    X = some_poses(seed, 4)
    for path, end in ((Line(X[0], X[1]), 1), (Arc(X[0], X[1], X[2]), 2), (Spline(X), 3), (CartesianPath.through(X), 3)):
        np.testing.assert_allclose(path(0.0), X[0], atol=1e-9)
        np.testing.assert_allclose(path(1.0), X[end], atol=1e-9)


@FEW
@given(SEEDS)
def test_a_line_goes_and_turns_evenly(seed):
    X = Line(*some_poses(seed, 2)).sample(50)
    ways = np.diff(X[:, :3, 3], axis=0)
    turns = rotation.log(np.swapaxes(X[:-1, :3, :3], 1, 2) @ X[1:, :3, :3])
    np.testing.assert_allclose(ways, np.tile(ways[0], (49, 1)), atol=1e-12)
    np.testing.assert_allclose(turns, np.tile(turns[0], (49, 1)), atol=1e-10)


@FEW
@given(SEEDS)
def test_an_arc_keeps_its_distance_and_comes_by_the_point_inside(seed):
    a, m, b = some_poses(seed, 3)
    arc = Arc(a, m[:3, 3], b)
    away = np.linalg.norm(arc.sample(200)[:, :3, 3] - arc.centre, axis=1)
    np.testing.assert_allclose(away, away[0], rtol=1e-9)
    r, s = a[:3, 3] - arc.centre, m[:3, 3] - arc.centre
    angle = np.arctan2(arc.axis @ np.cross(r, s), r @ s) % (2 * np.pi)
    np.testing.assert_allclose(arc(angle / arc.angle)[:3, 3], m[:3, 3], atol=1e-8 * max(1.0, away[0]))


def test_an_arc_about_an_axis_turns_its_frame_with_it_or_not():
    start = Pose((1.0, 0.0, 0.0))
    turned = Arc.about(start, (0, 0, 0), (0, 0, 2), np.pi / 2)(1.0)
    np.testing.assert_allclose(turned, make_pose(rotation.exp([0, 0, np.pi / 2]), [0, 1, 0]), atol=1e-15)
    np.testing.assert_allclose(
        Arc.about(start, (0, 0, 0), (0, 0, 1), np.pi / 2, rotate_frame=False)(1.0)[:3, :3], np.eye(3)
    )


@FEW
@given(SEEDS)
def test_a_spline_bends_without_a_jump_and_turns_without_a_jump_of_speed(seed):
    X = some_poses(seed, 5)
    spline, h = Spline(X), 1e-4
    for k, t in enumerate(spline.t[1:-1], 1):
        np.testing.assert_allclose(spline(t), X[k], atol=1e-9)
        p = spline(t + h * np.arange(-2, 3))[:, :3, 3]
        before, after = (p[0] - 2 * p[1] + p[2]) / h**2, (p[2] - 2 * p[3] + p[4]) / h**2
        # a second difference is off by h times the third derivative
        third = np.abs(np.diff(spline._bends, axis=0) / np.diff(spline.t)[:, None]).max()
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
    ("make_it", "words"),
    [
        (lambda: Line(Pose(), np.full((4, 4), np.nan)), "not finite"),
        (lambda: Line(Pose(), np.zeros((2, 2))), "4, 4"),
        (lambda: Arc(Pose(), (1, 0, 0), Pose((2, 0, 0))), "one line"),
        (lambda: Arc(Pose(), (0, 0, 0), Pose((2, 0, 0))), "one line"),
        (lambda: Arc.about(Pose(), (0, 0, 0), (0, 0, 0), 1.0), "zero"),
        (lambda: Spline([Pose()]), "2 or more"),
        (lambda: Spline([Pose(), Pose()]), "leave one of them out"),
        (lambda: Spline([Pose(), Pose((1, 0, 0))], [0.0, 0.5]), "from 0 to 1"),
        (lambda: CartesianPath.through([]), "2 or more"),
        (lambda: Line(Pose(), Pose((1, 0, 0))) + Line(Pose(), Pose((1, 0, 0))), "put a Line between"),
        (lambda: Line(Pose(), Pose((1, 0, 0)))(1.5), "from 0 to 1"),
        (lambda: Line(Pose(), Pose((1, 0, 0))).sample(1), "2 or more"),
    ],
)
def test_what_is_no_path_of_poses_is_refused(make_it, words):
    with pytest.raises(MechanikError, match=words):
        make_it()


def test_errors_are_of_the_usual_kinds():
    with pytest.raises(NotFinite):
        Line(Pose(), Pose((1, 0, 0)))(np.nan)
    with pytest.raises(ShapeError):
        Line(Pose(), Pose((1, 0, 0)))(-0.1)
