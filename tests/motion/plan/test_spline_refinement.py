"""Waypoints are inserted until the spline through them is collision-free."""

from __future__ import annotations

import functools
import sys
from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.closure.loop_system import cached_loop_system
from mechanik.collision import Collider, Obstacle
from mechanik.model.shapes import Sphere
from mechanik.motion.plan import plan
from mechanik.motion.plan.path_postprocessing import _dense_parameters, is_spline_free, refine_for_spline
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.motion.retime.joint_spline import fit_joint_spline
from mechanik.motion.retime.trajectory import DEVIATION
from mechanik.spatial.array import Array

PEN_RADIUS = 1e-4
"""m: radius of the moving shape."""
BALL_RADIUS = 0.05
"""m: radius of the obstacle; checks 5 mm apart cannot miss it."""


@functools.cache
def plotter() -> mk.Mechanism:
    """A small sphere on two prismatic joints: its position is q."""
    robot = mk.Builder("plotter")
    robot.prismatic("x", "base", "bridge", axis="x", limits=(-9.0, 9.0))
    robot.prismatic("y", "bridge", "pen", axis="y", limits=(-9.0, 9.0))
    robot.link("pen", collisions=[mk.ShapeInstance(Sphere(PEN_RADIUS))])
    return robot.build()


@contextmanager
def make_planning_space(mechanism: mk.Mechanism, collider: Collider | None) -> Generator[PlanningSpace]:
    space = mechanism.space
    with cached_loop_system(mechanism, {}) as loops:
        yield PlanningSpace(
            mechanism, loops, collider, 0.0, space.lower, space.upper, np.ones(space.nv, dtype=np.bool_)
        )


def refined_waypoints(q: Array, collider: Collider | None) -> Array:
    with make_planning_space(plotter(), collider) as space:
        return refine_for_spline(space, q, 0.0)


def spline_points(q: Array) -> tuple[Array, float]:
    """Points on the spline that `retime` fits through the waypoints, and its largest curvature, 1/m."""
    curve = fit_joint_spline(mk.Path(plotter(), q), DEVIATION)
    points, first, second, _ = curve.at(np.linspace(0.0, curve.length, 3000))
    curvature_area = np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    return points, float((curvature_area / np.linalg.norm(first, axis=1) ** 3).max())


def distance_to_polyline(points: Array, q: Array) -> Array:
    """Distance (m) of points (M, 2) from the straight segments between the waypoints q."""
    distances = np.full(len(points), np.inf)
    for a, b in pairwise(q):
        share = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        distances = np.minimum(distances, np.linalg.norm(points - a - share[:, None] * (b - a), axis=1))
    return distances


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_waypoints_are_inserted_where_the_spline_would_collide(seed: int) -> None:
    q = np.cumsum(np.random.default_rng(seed).uniform(-0.5, 0.5, (5, 2)), axis=0)
    assume(np.linalg.norm(np.diff(q, axis=0), axis=1).min() > 0.05)
    points, _ = spline_points(q)
    bulge = distance_to_polyline(points, q)
    assume(bulge.max() > 2e-3)
    bulge_point = points[int(bulge.argmax())]
    path_points = mk.Path(plotter(), q).densify(1e-4).q
    nearest = path_points[int(np.linalg.norm(path_points - bulge_point, axis=1).argmin())]
    middle = nearest + (bulge_point - nearest) * ((BALL_RADIUS + PEN_RADIUS) / bulge.max() + 0.5)
    ball = Collider(plotter(), [Obstacle(Sphere(BALL_RADIUS), np.append(middle, 0.0), name="ball")])
    assume(np.all(ball.is_free(path_points, 1e-4)))  # another segment may lead there
    assert not np.all(ball.is_free(points))
    refined = refined_waypoints(q, ball)
    assert len(refined) > len(q)
    assert np.abs(refined[:, None] - q).max(axis=2).min(axis=0).max() == 0.0  # all waypoints are still there
    assert distance_to_polyline(refined, q).max() < 1e-12
    # checks are 5 mm apart in x or y: the curvatures bound the penetration between them
    points_after, curvature = spline_points(refined)
    assert np.min(ball.distance(points_after)) > -(2 * 0.005**2 / 8) * (curvature + 1.0 / BALL_RADIUS)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(3, 8))
def test_kernel_checks_the_same_spline_points_as_numpy(seed: int, count: int) -> None:
    """The result changes at the smallest distance that NumPy measures at the same points."""
    rng, arm = np.random.default_rng(seed), mk.gallery.ur5()
    q = np.cumsum(rng.uniform(-0.4, 0.4, (count, 6)), axis=0) + arm.q
    balls = [Obstacle(Sphere(0.05), rng.uniform(-0.8, 0.8, 3), name=f"ball {k}") for k in range(4)]
    collider = Collider(arm, balls)
    curve = fit_joint_spline(mk.Path(arm, q), DEVIATION)
    with make_planning_space(arm, collider) as space:
        min_distance = float(np.min(collider.distance(curve.configurations(_dense_parameters(space, curve)))))
        assert is_spline_free(space, q, min_distance - 1e-9)
        assert not is_spline_free(space, q, min_distance + 1e-9)


def test_waypoints_are_unchanged_if_the_spline_is_free() -> None:
    q = np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 0.5]])
    far = Obstacle(Sphere(0.01), (5.0, 0.0, 0.0), name="far")
    assert np.array_equal(refined_waypoints(q, None), q)
    assert np.array_equal(refined_waypoints(q, Collider(plotter(), [far])), q)
    twice = np.repeat(q, 2, axis=0)
    assert np.array_equal(refined_waypoints(twice, Collider(plotter(), [far])), twice)
    still = np.repeat(q[:1], 4, axis=0)
    assert np.array_equal(refined_waypoints(still, Collider(plotter(), [far])), still)


def test_planning_works_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.interpolate", None)
    ball = Obstacle(Sphere(0.1), (0.25, 0.25, 0.0), name="ball")
    assert len(plan(plotter(), [0.0, 0.0], [0.5, 0.5], avoid=[ball])) > 2
    linkage = mk.gallery.five_bar()
    goal = linkage.assemble({"left_crank_joint": linkage.q[0] + 0.5}).q
    beside = Obstacle(Sphere(0.01), (0.0, 0.0, 5.0), name="beside")
    assert len(plan(linkage, None, goal, avoid=[beside])) > 2
