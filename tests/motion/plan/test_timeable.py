"""Knots that are so close that the smooth curve through them is free as well."""

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
from mechanik.motion.plan.path_postprocessing import _close, is_spline_free, refine_for_spline
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.motion.retime.joint_spline import fit_joint_spline
from mechanik.motion.retime.trajectory import DEVIATION
from mechanik.spatial.array import Array

DOT = 1e-4
"""m: the radius of what moves."""
BALL = 0.05
"""m: the radius of what stands beside the way; between two looks 5 mm apart it cannot hide."""


@functools.cache
def plotter() -> mk.Mechanism:
    """A dot that two slides take anywhere in a plane: what it does in the world is what q does."""
    robot = mk.Builder("plotter")
    robot.prismatic("x", "base", "bridge", axis="x", limits=(-9.0, 9.0))
    robot.prismatic("y", "bridge", "pen", axis="y", limits=(-9.0, 9.0))
    robot.link("pen", collisions=[mk.ShapeInstance(Sphere(DOT))])
    return robot.build()


@contextmanager
def ground_of(mechanism: mk.Mechanism, collider: Collider | None) -> Generator[PlanningSpace]:
    space = mechanism.space
    with cached_loop_system(mechanism, {}) as loops:
        yield PlanningSpace(
            mechanism, loops, collider, 0.0, space.lower, space.upper, np.ones(space.nv, dtype=np.bool_)
        )


def with_close_knots(q: Array, collider: Collider | None) -> Array:
    with ground_of(plotter(), collider) as ground:
        return refine_for_spline(ground, q, 0.0)


def on_curve(q: Array) -> tuple[Array, float]:
    """Places on the curve that `retime` would lay through knots, and how much it bends at most, 1/m."""
    curve = fit_joint_spline(mk.Path(plotter(), q), DEVIATION)
    places, first, second, _ = curve.at(np.linspace(0.0, curve.length, 3000))
    turning = np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    return places, float((turning / np.linalg.norm(first, axis=1) ** 3).max())


def off(places: Array, q: Array) -> Array:
    """How far places (M, 2) are off the straight ways between knots q, m."""
    found = np.full(len(places), np.inf)
    for a, b in pairwise(q):
        share = np.clip((places - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        found = np.minimum(found, np.linalg.norm(places - a - share[:, None] * (b - a), axis=1))
    return found


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_knots_come_closer_where_the_curve_bulges_into_something_beside_the_ways(seed: int) -> None:
    q = np.cumsum(np.random.default_rng(seed).uniform(-0.5, 0.5, (5, 2)), axis=0)
    assume(np.linalg.norm(np.diff(q, axis=0), axis=1).min() > 0.05)
    places, _ = on_curve(q)
    bulge = off(places, q)
    assume(bulge.max() > 2e-3)
    out = places[int(bulge.argmax())]
    ways = mk.Path(plotter(), q).densify(1e-4).q
    nearest = ways[int(np.linalg.norm(ways - out, axis=1).argmin())]
    middle = nearest + (out - nearest) * ((BALL + DOT) / bulge.max() + 0.5)
    ball = Collider(plotter(), [Obstacle(Sphere(BALL), np.append(middle, 0.0), name="ball")])
    assume(np.all(ball.is_free(ways, 1e-4)))  # another of the ways may lead there
    assert not np.all(ball.is_free(places))
    found = with_close_knots(q, ball)
    assert len(found) > len(q)
    assert np.abs(found[:, None] - q).max(axis=2).min(axis=0).max() == 0.0  # all knots are still there
    assert off(found, q).max() < 1e-12
    # looks are 5 mm apart in x or y: between them it is as far from straight as its bend and that of the ball allow
    now, bend = on_curve(found)
    assert np.min(ball.distance(now)) > -(2 * 0.005**2 / 8) * (bend + 1.0 / BALL)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(3, 8))
def test_the_compiled_curve_is_looked_at_where_numpy_lays_it(seed: int, knots: int) -> None:
    """What is measured at these places, a hair less or more, is where its answer turns."""
    rng, arm = np.random.default_rng(seed), mk.gallery.ur5()
    q = np.cumsum(rng.uniform(-0.4, 0.4, (knots, 6)), axis=0) + arm.q
    balls = [Obstacle(Sphere(0.05), rng.uniform(-0.8, 0.8, 3), name=f"ball {k}") for k in range(4)]
    collider = Collider(arm, balls)
    curve = fit_joint_spline(mk.Path(arm, q), DEVIATION)
    with ground_of(arm, collider) as ground:
        gap = float(np.min(collider.distance(curve.configurations(_close(ground, curve)))))
        assert is_spline_free(ground, q, gap - 1e-9)
        assert not is_spline_free(ground, q, gap + 1e-9)


def test_knots_stay_where_nothing_stands_beside_the_curve() -> None:
    q = np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 0.5]])
    far = Obstacle(Sphere(0.01), (5.0, 0.0, 0.0), name="far")
    assert np.array_equal(with_close_knots(q, None), q)
    assert np.array_equal(with_close_knots(q, Collider(plotter(), [far])), q)
    twice = np.repeat(q, 2, axis=0)
    assert np.array_equal(with_close_knots(twice, Collider(plotter(), [far])), twice)
    still = np.repeat(q[:1], 4, axis=0)
    assert np.array_equal(with_close_knots(still, Collider(plotter(), [far])), still)


def test_paths_are_planned_without_the_packages_that_time_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.interpolate", None)
    ball = Obstacle(Sphere(0.1), (0.25, 0.25, 0.0), name="ball")
    assert len(plan(plotter(), [0.0, 0.0], [0.5, 0.5], avoid=[ball])) > 2
    linkage = mk.gallery.five_bar()
    goal = linkage.assemble({"left_crank_joint": linkage.q[0] + 0.5}).q
    beside = Obstacle(Sphere(0.01), (0.0, 0.0, 5.0), name="beside")
    assert len(plan(linkage, None, goal, avoid=[beside])) > 2
