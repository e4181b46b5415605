"""Trees of our own: what they find is free, exact at its ends, and depends on the seed alone."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.closure.loop_system import cached_loop_system
from mechanik.collision import Collider, Obstacle
from mechanik.errors import MissingExtra, PlanningError
from mechanik.model.shapes import Box, Sphere
from mechanik.motion.plan import plan
from mechanik.motion.plan import tree_planners as two_trees
from mechanik.motion.plan.path_postprocessing import blend_corners, blend_corners_in_kernel, shortcut_in_kernel
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.motion.plan.tree_planners import plan_rrt_connect, plan_with_ompl
from mechanik.spatial.array import Array

SEEDS = st.integers(0, 2**32 - 1)
DENSE = 0.004
"""Rad, or half as many m: how close planned paths are looked at here; while they are searched for it is 0.06."""


@functools.cache
def balls() -> Collider:
    """An arm on a rail, whose unit is half a metre, among 24 balls; a quarter of straight ways is free."""
    places = np.random.default_rng(5).uniform((-0.9, -0.9, 0.3), (0.9, 0.9, 1.3), (24, 3))
    return Collider(mk.gallery.rail_arm(), ["self", *(Obstacle(Sphere(0.06), place) for place in places)])


def wheel(spoke: float = 0.5) -> mk.Mechanism:
    """A spoke on an axle without limits, which a slide lifts; a second spoke turns back half as far."""
    robot = mk.Builder("wheel")
    robot.prismatic("lift", "base", "hub", limits=(0.0, 0.5))
    turn = robot.revolute("turn", "hub", "spoke")
    back = robot.revolute("back", "hub", "other", at=(0.0, 0.0, -0.2))
    back.mimic(turn, ratio=-0.5)
    shape = mk.ShapeInstance(Box((spoke, 0.04, 0.04)), mk.Pose((0.5 * spoke, 0.0, 0.0)))
    robot.link("spoke", collisions=[shape])
    robot.link("other", collisions=[shape])
    return robot.build()


def free_places(collider: Collider, seed: int, count: int) -> Array:
    q = collider.mechanism.space.random(np.random.default_rng(seed), 100 * count)
    q = q[np.asarray(collider.is_free(q, 0.002))][:count]
    assume(len(q) == count)
    return q


@contextmanager
def ground_of(collider: Collider, locked: int | None = None) -> Generator[PlanningSpace]:
    mechanism = collider.mechanism
    with cached_loop_system(mechanism, {}) as loops:
        yield PlanningSpace(
            mechanism, loops, collider, 0.0, mechanism.space.lower, mechanism.space.upper,
            np.arange(mechanism.nv) != locked,
        )  # fmt: skip


def found_by_trees(ground: PlanningSpace, q: Array, seed: int) -> Array:
    way = plan_rrt_connect(ground, q[0], q[1:], time.perf_counter() + 20.0, np.random.default_rng(seed))
    assert way is not None
    return way


def length(ground: PlanningSpace, q: Array) -> float:
    return float(np.linalg.norm(ground.scaled_difference(q[:-1], q[1:]), axis=1).sum())


# ---- laws --------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(SEEDS)
def test_each_motion_of_a_way_is_free_where_it_is_looked_at_and_its_ends_are_exact(seed: int) -> None:
    q = free_places(balls(), seed, 4)
    with ground_of(balls()) as ground:
        way = found_by_trees(ground, q, seed)
        assert np.array_equal(way[0], q[0])
        assert any(np.array_equal(way[-1], goal) for goal in q[1:])
        # one tree looks from the near end and the other from the far one: the places are the same but for rounding
        assert all(ground.is_segment_free(a, b) for a, b in pairwise(way))
        assert (way >= ground.lower).all()
        assert (way <= ground.upper).all()


@settings(max_examples=12)
@given(SEEDS)
def test_a_planned_path_is_free_at_looks_that_are_much_denser(seed: int) -> None:
    q = free_places(balls(), seed, 2)
    path = plan(balls().mechanism, q[0], q[1], avoid=balls(), planner="rrt_connect", max_seconds=60.0)
    assert path.planner == "rrt_connect"
    assert np.array_equal(path.q[[0, -1]], q)
    assert np.asarray(balls().is_free(path.densify(DENSE).q)).all()


@settings(max_examples=8)
@given(SEEDS, st.integers(0, 6))
def test_a_locked_freedom_stays_to_the_bit(seed: int, locked: int) -> None:
    q = free_places(balls(), seed, 2)
    q[1, locked] = q[0, locked]
    assume(balls().is_free(q[1], 0.002))
    with ground_of(balls(), locked) as ground:
        way = plan_rrt_connect(ground, q[0], q[1:], time.perf_counter() + 1.0, np.random.default_rng(seed))
        assume(way is not None)  # there may be none
        assert way is not None
        short = blend_corners_in_kernel(ground, shortcut_in_kernel(ground, way, np.random.default_rng(seed), np.inf))
    assert (way[:, locked] == q[0, locked]).all()
    assert (short[:, locked] == q[0, locked]).all()


@settings(max_examples=6)
@given(SEEDS, st.integers(1, 300))
def test_how_often_the_kernel_comes_back_changes_nothing(seed: int, budget: int) -> None:
    q = free_places(balls(), seed, 2)
    with ground_of(balls()) as ground, pytest.MonkeyPatch.context() as patch:
        whole = found_by_trees(ground, q, seed)
        patch.setattr(two_trees, "BUDGET", budget)
        patch.setattr(two_trees, "PAUSE", 1e-4)
        assert np.array_equal(whole, found_by_trees(ground, q, seed))


@settings(max_examples=8)
@given(SEEDS)
@example(2800)  # a waypoint of an arc with an odd number of samples was not checked
def test_a_way_becomes_no_longer_by_shortcuts_and_round_corners_and_keeps_its_ends(seed: int) -> None:
    q = free_places(balls(), seed, 2)
    with ground_of(balls()) as ground:
        way = found_by_trees(ground, q, seed)
        short = shortcut_in_kernel(ground, way, np.random.default_rng(seed), np.inf)
        soft = blend_corners_in_kernel(ground, short)
        for before, after in ((way, short), (short, soft)):
            assert np.array_equal(after[[0, -1]], q)
            assert length(ground, after) <= length(ground, before) + 1e-12
            assert ground.are_free(after).all()
            assert (np.linalg.norm(ground.scaled_difference(after[:-1], after[1:]), axis=1) > 0.0).all()


@settings(max_examples=10)
@given(SEEDS, st.integers(3, 6))
def test_corners_become_as_round_as_by_the_readable_way(seed: int, knots: int) -> None:
    """Far from everything, so that the largest arcs are free: their knots are those of `blend_corners`."""
    arm = mk.gallery.rail_arm()
    q = arm.space.random(np.random.default_rng(seed), knots)
    with ground_of(Collider(arm, [Obstacle(Sphere(0.1), (50.0, 0.0, 0.0))])) as ground:
        one, other = blend_corners_in_kernel(ground, q), blend_corners(ground, q, np.inf)
        assert len(shortcut_in_kernel(ground, q, np.random.default_rng(seed), np.inf)) == 2
    assert one.shape == other.shape
    assert one == pytest.approx(other, abs=1e-12)


# ---- beside OMPL's -----------------------------------------------------------------------------


def test_what_trees_of_ompl_find_ours_find_too() -> None:
    pytest.importorskip("ompl")
    for seed in range(6):
        q = balls().mechanism.space.random(np.random.default_rng(seed), 200)
        q = q[np.asarray(balls().is_free(q, 0.002))][:2]
        with ground_of(balls()) as ground:
            theirs = plan_with_ompl(ground, q[0], q[1:], "RRTConnect", np.inf, np.random.default_rng(seed))
            assert theirs is not None
            for way in (theirs, found_by_trees(ground, q, seed)):
                assert np.array_equal(way[[0, -1]], q)
                assert all(ground.is_segment_free(a, b) for a, b in pairwise(way))


def test_without_ompl_an_arm_is_planned_for_and_others_are_told_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ompl", None)
    for name in ("base", "geometric", "util"):
        monkeypatch.setitem(sys.modules, f"ompl.{name}", None)
    q = np.array([[0.0, -2.0], [0.0, 2.0]])
    bar = Obstacle(Box((0.05, 0.05, 0.05)), (0.4, 0.0, 0.0))
    assert plan(wheel(), *q, avoid=[bar]).planner == "rrt_connect"
    with pytest.raises(MissingExtra, match="plan"):
        plan(wheel(), *q, avoid=[bar], planner="RRT")


# ---- around things -----------------------------------------------------------------------------


def test_a_joint_without_limits_turns_the_other_way_where_one_is_shut() -> None:
    """A wall as high as the lift goes: the short way is shut, and the long one is found, with the follower free."""
    wall = Obstacle(Box((0.05, 0.05, 2.0)), (0.4, 0.0, 0.0), name="wall")
    collider = Collider(wheel(), [wall], allow=[("other", "wall")])
    start, goal = np.array([0.1, -2.0]), np.array([0.1, 2.0])
    with pytest.raises(PlanningError, match="by rrt_connect"):
        plan(collider.mechanism, start, goal, avoid=collider, max_seconds=0.2)
    path = plan(collider.mechanism, start, [goal, goal - (0.0, 2.0 * np.pi)], avoid=collider)
    assert path.q[-1] == pytest.approx((0.1, 2.0 - 2.0 * np.pi))


def test_a_joint_goes_the_short_way_round_to_an_objective_and_all_turns_to_a_configuration() -> None:
    machine = wheel()
    start, far = np.array([0.1, 3.0]), np.array([0.1, -3.0])
    aim = mk.PoseGoal("spoke", machine.pose("spoke", far))
    assert plan(machine, start, aim, avoid=None).q[-1] == pytest.approx((0.1, 2.0 * np.pi - 3.0), abs=1e-4)
    assert np.array_equal(plan(machine, start, far, avoid=None).q[-1], far)


def test_a_follower_bumps_as_well() -> None:
    """What is shut for the second spoke, half as fast and backward, is gone around over the lift."""
    bar = Obstacle(Box((0.3, 0.05, 0.05)), (0.35, 0.0, -0.2), name="bar")
    collider = Collider(wheel(), [bar])
    start, goal = np.array([0.0, -1.5]), np.array([0.0, 1.5])
    assert not mk.Path(collider.mechanism, [start, goal]).is_free(collider)
    path = plan(collider.mechanism, start, goal, avoid=collider)
    assert path.planner == "rrt_connect"
    assert path.q[:, 0].max() > 0.05
    assert np.asarray(collider.is_free(path.densify(DENSE).q)).all()


def test_the_nearest_goals_do_not_hide_those_that_can_be_reached() -> None:
    """Three goals are behind a wall, and the fourth is far away on this side."""
    wall = Obstacle(Box((0.05, 0.05, 2.0)), (0.4, 0.0, 0.0), name="wall")
    collider = Collider(wheel(), [wall], allow=[("other", "wall")])
    shut = [np.array([0.1, angle]) for angle in (0.4, 0.5, 0.6)]
    path = plan(
        collider.mechanism, (0.1, -0.4), [*shut, (0.4, -3.0)], avoid=collider, planner="rrt_connect",
        limits={"turn": (-3.1, 3.1)},
    )  # fmt: skip
    assert np.array_equal(path.q[-1], (0.4, -3.0))
    assert path.goal == 3


@pytest.mark.parametrize("planner", ["auto", "rrt_connect"])
def test_a_start_that_is_the_goal_is_a_path(planner: str) -> None:
    q = np.array([0.1, 1.0])
    path = plan(wheel(), q, q, avoid=["self"], planner=planner)
    assert np.array_equal(path.q[[0, -1]], [q, q])
    assert path.length == 0.0


def test_threads_do_not_mix() -> None:
    q = balls().mechanism.space.random(np.random.default_rng(1), 400)
    q = q[np.asarray(balls().is_free(q, 0.002))][:8]

    def planned(k: int) -> Array:
        return plan(balls().mechanism, q[k], q[k + 1], avoid=balls(), max_seconds=60.0).q

    alone = [planned(k) for k in range(7)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(planned, range(7)))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_a_way_that_nearly_touches_is_not_taken_where_one_with_room_can_be_proven() -> None:
    """One that passed by some micrometres, where nothing can be proven any more, was taken; and it could bump."""
    arm, start, goal = mk.gallery.planar_2r(), np.array([-1.0, 0.0]), np.array([1.0, 0.0])
    between = 1.0 / 34  # rad: in the middle between two looks, of which there are 34 on the straight way
    collider = Collider(arm, [Obstacle(Sphere(1e-3), (100.0, 0.0, 0.0), name="ball")])
    away = 100.0 - float(collider.distance(np.zeros(2))) + 3e-6
    collider.move("ball", mk.Pose((away * np.cos(between), away * np.sin(between), 0.0)))
    assert float(collider.distance(np.array([between, 0.0]))) == pytest.approx(3e-6, abs=1e-9)
    path = plan(arm, start, goal, avoid=collider)
    assert path.is_certain
    assert float(np.min(collider.distance(path.at(np.linspace(0.0, 1.0, 2001))))) > 1e-5
