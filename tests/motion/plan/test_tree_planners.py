"""RRT-Connect in the kernel: paths are free, exact at their ends, and depend only on the seed."""

from __future__ import annotations

import functools
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
from mechanik.errors import PlanningError
from mechanik.model.shapes import Box, Sphere
from mechanik.motion.plan import plan, tree_planners
from mechanik.motion.plan.path_postprocessing import round_corners, round_corners_in_kernel, shortcut_in_kernel
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.motion.plan.tree_planners import plan_rrt_connect
from mechanik.spatial.array import Array

SEEDS = st.integers(0, 2**32 - 1)
DENSE_STEP = 0.004
"""rad, and half of it in m: distance of the checks in these tests; the search uses 0.06."""


@functools.cache
def ball_scene() -> Collider:
    """An arm on a rail (planning unit 0.5 m) among 24 balls; a quarter of the straight segments is free."""
    centres = np.random.default_rng(5).uniform((-0.9, -0.9, 0.3), (0.9, 0.9, 1.3), (24, 3))
    return Collider(mk.gallery.rail_arm(), ["self", *(Obstacle(Sphere(0.06), centre) for centre in centres)])


def wheel(spoke: float = 0.5) -> mk.Mechanism:
    """A spoke on a joint without limits, lifted by a prismatic joint; a mimic spoke rotates back half as far."""
    robot = mk.Builder("wheel")
    robot.prismatic("lift", "base", "hub", limits=(0.0, 0.5))
    leader = robot.revolute("turn", "hub", "spoke")
    mimic = robot.revolute("back", "hub", "other", at=(0.0, 0.0, -0.2))
    mimic.mimic(leader, ratio=-0.5)
    shape = mk.ShapeInstance(Box((spoke, 0.04, 0.04)), mk.Pose((0.5 * spoke, 0.0, 0.0)))
    robot.link("spoke", collisions=[shape])
    robot.link("other", collisions=[shape])
    return robot.build()


def free_configurations(collider: Collider, seed: int, count: int) -> Array:
    q = collider.mechanism.space.random(np.random.default_rng(seed), 100 * count)
    q = q[np.asarray(collider.is_free(q, 0.002))][:count]
    assume(len(q) == count)
    return q


@contextmanager
def make_planning_space(collider: Collider, locked: int | None = None) -> Generator[PlanningSpace]:
    mechanism = collider.mechanism
    with cached_loop_system(mechanism, {}) as loops:
        yield PlanningSpace(
            mechanism, loops, collider, 0.0, mechanism.space.lower, mechanism.space.upper,
            np.arange(mechanism.nv) != locked,
        )  # fmt: skip


def rrt_path(space: PlanningSpace, q: Array, seed: int) -> Array:
    waypoints = plan_rrt_connect(space, q[0], q[1:], time.perf_counter() + 20.0, np.random.default_rng(seed))
    assert waypoints is not None
    return waypoints


def path_length(space: PlanningSpace, q: Array) -> float:
    return float(np.linalg.norm(space.scaled_difference(q[:-1], q[1:]), axis=1).sum())


# ---- invariants --------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(SEEDS)
def test_segments_of_an_rrt_path_are_free_and_its_ends_exact(seed: int) -> None:
    q = free_configurations(ball_scene(), seed, 4)
    with make_planning_space(ball_scene()) as space:
        waypoints = rrt_path(space, q, seed)
        assert np.array_equal(waypoints[0], q[0])
        assert any(np.array_equal(waypoints[-1], goal) for goal in q[1:])
        # the trees check segments from opposite ends: the configurations are the same but for rounding
        assert all(space.is_segment_free(a, b) for a, b in pairwise(waypoints))
        assert (waypoints >= space.lower).all()
        assert (waypoints <= space.upper).all()


@settings(max_examples=12)
@given(SEEDS)
def test_planned_path_is_free_at_denser_checks(seed: int) -> None:
    q = free_configurations(ball_scene(), seed, 2)
    path = plan(ball_scene().mechanism, q[0], q[1], avoid=ball_scene(), planner="rrt_connect", max_seconds=60.0)
    assert path.planner == "rrt_connect"
    assert np.array_equal(path.q[[0, -1]], q)
    assert np.asarray(ball_scene().is_free(path.densify(DENSE_STEP).q)).all()


@settings(max_examples=8)
@given(SEEDS, st.integers(0, 6))
def test_locked_dof_stays_exactly_the_same(seed: int, locked: int) -> None:
    q = free_configurations(ball_scene(), seed, 2)
    q[1, locked] = q[0, locked]
    assume(ball_scene().is_free(q[1], 0.002))
    with make_planning_space(ball_scene(), locked) as space:
        waypoints = plan_rrt_connect(space, q[0], q[1:], time.perf_counter() + 1.0, np.random.default_rng(seed))
        assume(waypoints is not None)  # there may be none
        assert waypoints is not None
        short = round_corners_in_kernel(
            space, shortcut_in_kernel(space, waypoints, np.random.default_rng(seed), np.inf)
        )
    assert (waypoints[:, locked] == q[0, locked]).all()
    assert (short[:, locked] == q[0, locked]).all()


@settings(max_examples=6)
@given(SEEDS, st.integers(1, 300))
def test_result_does_not_depend_on_the_check_budget(seed: int, budget: int) -> None:
    q = free_configurations(ball_scene(), seed, 2)
    with make_planning_space(ball_scene()) as space, pytest.MonkeyPatch.context() as patch:
        whole = rrt_path(space, q, seed)
        patch.setattr(tree_planners, "FIRST_CHECK_BUDGET", budget)
        patch.setattr(tree_planners, "KERNEL_SECONDS", 1e-4)
        assert np.array_equal(whole, rrt_path(space, q, seed))


@settings(max_examples=8)
@given(SEEDS)
@example(2800)  # a waypoint of an arc with an odd number of samples was not checked
def test_postprocessing_in_kernel_does_not_lengthen_a_path_and_retains_its_ends(seed: int) -> None:
    q = free_configurations(ball_scene(), seed, 2)
    with make_planning_space(ball_scene()) as space:
        waypoints = rrt_path(space, q, seed)
        short = shortcut_in_kernel(space, waypoints, np.random.default_rng(seed), np.inf)
        rounded = round_corners_in_kernel(space, short)
        for before, after in ((waypoints, short), (short, rounded)):
            assert np.array_equal(after[[0, -1]], q)
            assert path_length(space, after) <= path_length(space, before) + 1e-12
            assert space.are_free(after).all()
            assert (np.linalg.norm(space.scaled_difference(after[:-1], after[1:]), axis=1) > 0.0).all()


@settings(max_examples=10)
@given(SEEDS, st.integers(3, 6))
def test_rounded_corners_of_the_kernel_agree_with_python(seed: int, count: int) -> None:
    """Far from obstacles the largest arcs are free: their waypoints are those of `round_corners`."""
    arm = mk.gallery.rail_arm()
    q = arm.space.random(np.random.default_rng(seed), count)
    with make_planning_space(Collider(arm, [Obstacle(Sphere(0.1), (50.0, 0.0, 0.0))])) as space:
        by_kernel, in_python = round_corners_in_kernel(space, q), round_corners(space, q, np.inf)
        assert len(shortcut_in_kernel(space, q, np.random.default_rng(seed), np.inf)) == 2
    assert by_kernel.shape == in_python.shape
    assert by_kernel == pytest.approx(in_python, abs=1e-12)


# ---- comparison with OMPL -----------------------------------------------------------------------------


def test_rrt_connect_solves_what_ompl_solves() -> None:
    pytest.importorskip("ompl")
    from ompl_planner import plan_with_ompl

    for seed in range(6):
        q = ball_scene().mechanism.space.random(np.random.default_rng(seed), 200)
        q = q[np.asarray(ball_scene().is_free(q, 0.002))][:2]
        with make_planning_space(ball_scene()) as space:
            theirs = plan_with_ompl(space, q[0], q[1:], "RRTConnect", np.inf, np.random.default_rng(seed))
            assert theirs is not None
            for waypoints in (theirs, rrt_path(space, q, seed)):
                assert np.array_equal(waypoints[[0, -1]], q)
                assert all(space.is_segment_free(a, b) for a, b in pairwise(waypoints))


# ---- around obstacles -----------------------------------------------------------------------------


def test_joint_without_limits_rotates_the_other_direction_around_a_wall() -> None:
    """The wall is as high as the lift: the short rotation is blocked, the long one is free."""
    wall = Obstacle(Box((0.05, 0.05, 2.0)), (0.4, 0.0, 0.0), name="wall")
    collider = Collider(wheel(), [wall], allow=[("other", "wall")])
    start, goal = np.array([0.1, -2.0]), np.array([0.1, 2.0])
    with pytest.raises(PlanningError, match="RRT-Connect found no path"):
        plan(collider.mechanism, start, goal, avoid=collider, max_seconds=0.2)
    path = plan(collider.mechanism, start, [goal, goal - (0.0, 2.0 * np.pi)], avoid=collider)
    assert path.q[-1] == pytest.approx((0.1, 2.0 - 2.0 * np.pi))


def test_angle_is_unwrapped_for_an_objective_but_not_for_a_configuration() -> None:
    machine = wheel()
    start, far = np.array([0.1, 3.0]), np.array([0.1, -3.0])
    aim = mk.PoseGoal("spoke", machine.pose("spoke", far))
    assert plan(machine, start, aim, avoid=None).q[-1] == pytest.approx((0.1, 2.0 * np.pi - 3.0), abs=1e-4)
    assert np.array_equal(plan(machine, start, far, avoid=None).q[-1], far)


def test_collision_of_a_mimic_joint_is_avoided() -> None:
    """The mimic spoke, half as fast and backward, is blocked; the path uses the lift."""
    bar = Obstacle(Box((0.3, 0.05, 0.05)), (0.35, 0.0, -0.2), name="bar")
    collider = Collider(wheel(), [bar])
    start, goal = np.array([0.0, -1.5]), np.array([0.0, 1.5])
    assert not mk.Path(collider.mechanism, [start, goal]).is_free(collider)
    path = plan(collider.mechanism, start, goal, avoid=collider)
    assert path.planner == "rrt_connect"
    assert path.q[:, 0].max() > 0.05
    assert np.asarray(collider.is_free(path.densify(DENSE_STEP).q)).all()


def test_far_goal_is_reached_if_nearer_goals_are_unreachable() -> None:
    """Three goals are behind a wall, and the fourth is far away on this side."""
    wall = Obstacle(Box((0.05, 0.05, 2.0)), (0.4, 0.0, 0.0), name="wall")
    collider = Collider(wheel(), [wall], allow=[("other", "wall")])
    unreachable = [np.array([0.1, angle]) for angle in (0.4, 0.5, 0.6)]
    path = plan(
        collider.mechanism, (0.1, -0.4), [*unreachable, (0.4, -3.0)], avoid=collider, planner="rrt_connect",
        limits={"turn": (-3.1, 3.1)},
    )  # fmt: skip
    assert np.array_equal(path.q[-1], (0.4, -3.0))
    assert path.goal == 3


@pytest.mark.parametrize("planner", ["auto", "rrt_connect"])
def test_start_equal_to_the_goal_gives_a_path_of_length_zero(planner: str) -> None:
    q = np.array([0.1, 1.0])
    path = plan(wheel(), q, q, avoid=["self"], planner=planner)
    assert np.array_equal(path.q[[0, -1]], [q, q])
    assert path.length == 0.0


def test_concurrent_plans_equal_sequential_plans() -> None:
    q = ball_scene().mechanism.space.random(np.random.default_rng(1), 400)
    q = q[np.asarray(ball_scene().is_free(q, 0.002))][:8]

    def planned(k: int) -> Array:
        return plan(ball_scene().mechanism, q[k], q[k + 1], avoid=ball_scene(), max_seconds=60.0).q

    alone = [planned(k) for k in range(7)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(planned, range(7)))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_certifiable_path_is_preferred_to_one_that_nearly_touches() -> None:
    """A path that passed by some micrometres, too close for a proof, was once returned."""
    arm, start, goal = mk.gallery.planar_2r(), np.array([-1.0, 0.0]), np.array([1.0, 0.0])
    between = 1.0 / 34  # rad: in the middle between two of the 34 checks on the straight segment
    collider = Collider(arm, [Obstacle(Sphere(1e-3), (100.0, 0.0, 0.0), name="ball")])
    ball_distance = 100.0 - float(collider.distance(np.zeros(2))) + 3e-6
    collider.move("ball", mk.Pose((ball_distance * np.cos(between), ball_distance * np.sin(between), 0.0)))
    assert float(collider.distance(np.array([between, 0.0]))) == pytest.approx(3e-6, abs=1e-9)
    path = plan(arm, start, goal, avoid=collider)
    assert path.is_certain
    assert float(np.min(collider.distance(path.at(np.linspace(0.0, 1.0, 2001))))) > 1e-5
