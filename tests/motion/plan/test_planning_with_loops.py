"""Planning with closed loops: projection, steering, and RRT-Connect with closed loops."""

from __future__ import annotations

import functools
import time
from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.closure.loop_system import cached_loop_system
from mechanik.collision import Collider, Obstacle
from mechanik.model.shapes import Box
from mechanik.motion.follow.joint_path import max_closure_errors
from mechanik.motion.plan import plan
from mechanik.motion.plan.planning_space import MAX_STEP_RATIO, Flags, PlanningSpace
from mechanik.motion.plan.tree_planners import plan_constrained_rrt
from mechanik.spatial.array import Array

SEEDS = st.integers(0, 2**32 - 1)
NAMES = st.sampled_from(("two_arms", "five_bar", "stewart_platform", "excavator"))


@functools.cache
def mechanism(name: str) -> mk.Mechanism:
    return getattr(mk.gallery, name)()


@contextmanager
def make_planning_space(
    name: str, collider: Collider | None = None, free: Flags | None = None
) -> Generator[PlanningSpace]:
    robot = mechanism(name)
    free = np.ones(robot.nv, dtype=np.bool_) if free is None else free
    with cached_loop_system(robot, {}) as loops:
        yield PlanningSpace(robot, loops, collider, 0.0, robot.space.lower, robot.space.upper, free)


@functools.cache
def pillar_problem() -> tuple[Array, Array, Collider]:
    arms = mechanism("two_arms")
    ends = list[Array]()
    for side in (-0.25, 0.25):
        X = arms.pose("box")
        X[1, 3] += side
        ends.append(mk.solve(arms, mk.PoseGoal("box", X)).require().q)
    return ends[0], ends[1], Collider(arms, ["self", Obstacle(Box((0.06, 0.06, 1.2)), name="pillar")])


# ---- invariants --------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(SEEDS, NAMES, st.floats(0.001, 0.08))
def test_projection_closes_loops_and_does_not_move_locked_dofs(seed: int, name: str, size: float) -> None:
    robot, rng = mechanism(name), np.random.default_rng(seed)
    free = np.ones(robot.nv, dtype=np.bool_)
    free[rng.choice(robot.space.scalars_v)] = False  # spherical joints are locked as a whole
    v = size * rng.normal(size=(6, robot.nv))
    q = robot.space.integrate(np.tile(robot.q, (6, 1)), v)
    with make_planning_space(name, free=free) as space:
        projected, is_valid = space.project_all(q)
        again, _ = space.project_all(projected)
        alone = [space.project(row) for row in q]
    assert (max_closure_errors(robot, projected[is_valid]) < 1e-9).all()
    assert (
        np.abs(projected[is_valid] - again[is_valid]).max(initial=0.0) < 1e-14
    )  # closed loops stay; quaternions are normalized
    moved = robot.space.difference(q[is_valid], projected[is_valid])
    assert np.abs(moved[:, ~free]).max(initial=0.0) == 0.0
    for k, row in enumerate(alone):
        assert (row is not None) == is_valid[k]
        assert row is None or np.array_equal(row, projected[k])


def newton_reference(space: PlanningSpace, q: Array) -> Array:
    """The kernel's method in NumPy: a Jacobian is reused while each step leaves less than a fifth of the error."""
    assert space.loops.groups is not None
    (group,) = space.loops.groups
    problem, last, inverse = group.problem, 0.0, np.zeros((0, 0))
    problem.set_configuration(q)
    while (error := float(np.abs(e := problem.residual[group.rows].copy()).max())) >= 1e-10:
        if not error < 0.2 * last:
            J = problem.jacobian[group.rows]
            inverse = J.T @ np.linalg.inv(J @ J.T + 1e-12 * np.eye(len(J)))
        u, last = inverse @ e, error
        problem.step[:] = -u * min(1.0, 0.5 / float(np.linalg.norm(u)))
        problem.advance()
    return problem.q


@settings(max_examples=12)
@given(SEEDS, st.sampled_from(("two_arms", "five_bar", "stewart_platform")), st.floats(0.001, 0.05))
def test_kernel_projection_agrees_with_numpy(seed: int, name: str, size: float) -> None:
    robot, rng = mechanism(name), np.random.default_rng(seed)
    q = robot.space.integrate(np.tile(robot.q, (3, 1)), size * rng.normal(size=(3, robot.nv)))
    with make_planning_space(name) as space:
        projected, is_valid = space.project_all(q)
        plain = np.array([newton_reference(space, row) for row in q])
        in_python = [space._retraction._project_in_python(row) for row in q]
    assert is_valid.all()
    assert np.abs(robot.space.difference(plain, projected)).max() < 1e-9
    # with a new Jacobian in each step the result differs by no more than the squared initial error
    for row, new in zip(in_python, projected, strict=True):
        assert row is not None
        assert max_closure_errors(robot, row[None])[0] < 1e-9
        assert np.abs(robot.space.difference(row, new)).max() < 10.0 * float(np.abs(q - robot.q).max()) ** 2


@settings(max_examples=15)
@given(SEEDS, st.sampled_from(("two_arms", "five_bar")), st.floats(0.01, 0.1))
def test_each_steering_step_approaches_the_target_with_closed_loops(seed: int, name: str, step: float) -> None:
    robot, rng = mechanism(name), np.random.default_rng(seed)
    target = robot.space.integrate(robot.q, 0.6 * rng.normal(size=robot.nv))
    start = np.array(robot.q)
    with make_planning_space(name) as space:
        assert space._retraction.can_steer
        steered = space.steer(start, target, step)
        space._retraction.can_steer = False
        plain = space.steer(start, target, step)
    is_reached = np.array_equal(steered[-1], target)
    steered, plain = (path[:-1] if is_reached else path for path in (steered, plain))
    assert np.array_equal(steered[0], start)
    assert (max_closure_errors(robot, steered) < 1e-9).all()
    distances = np.abs((steered - target) / space.unit).max(axis=1)
    assert (np.diff(distances) < 0.0).all()
    assert (
        np.abs(np.diff(steered, axis=0) / space.unit).max(axis=1, initial=0.0) <= MAX_STEP_RATIO * step + 1e-12
    ).all()
    assert (steered >= robot.space.lower - 1e-9).all()
    assert (steered <= robot.space.upper + 1e-9).all()
    assert steered.shape == plain.shape
    assert np.abs(steered - plain).max() < 1e-6


@settings(max_examples=3)
@given(SEEDS)
def test_constrained_rrt_finds_a_free_path_with_closed_loops(seed: int) -> None:
    start, goal, collider = pillar_problem()
    with make_planning_space("two_arms", collider) as space:
        goals = np.array([goal, mechanism("two_arms").q]) if collider.is_free(mechanism("two_arms").q) else goal[None]
        path = plan_constrained_rrt(space, start, goals, np.inf, np.random.default_rng(seed))
        again = plan_constrained_rrt(space, start, goals, np.inf, np.random.default_rng(seed))
    assert path is not None
    assert again is not None
    assert np.array_equal(path, again)
    assert np.array_equal(path[0], start)
    assert any(np.array_equal(path[-1], end) for end in goals)
    assert (max_closure_errors(mechanism("two_arms"), path) < 1e-9).all()
    assert np.all(collider.is_free(path))
    assert np.abs(np.diff(path, axis=0) / space.unit).max() <= MAX_STEP_RATIO * space.step + 1e-12


# ---- cases -------------------------------------------------------------------------------------


def test_projected_space_of_ompl_solves_the_same_problem() -> None:
    pytest.importorskip("ompl")
    from ompl_planner import plan_with_ompl

    start, goal, collider = pillar_problem()
    arms = mechanism("two_arms")
    path = plan(arms, start, goal, avoid=collider, planner="rrt_connect", max_seconds=120.0)
    assert path.planner == "rrt_connect"
    between = path.at(np.linspace(0.0, 1.0, 201))
    with make_planning_space("two_arms", collider) as space:
        deadline = time.perf_counter() + 120.0
        theirs = plan_with_ompl(space, start, goal[None], "RRTConnect", deadline, np.random.default_rng(0))
    assert theirs is not None
    for q in (between, theirs):
        assert (max_closure_errors(arms, q) < 1e-6).all()
        assert np.min(collider.distance(q)) >= 0.0


def test_constrained_rrt_stops_at_the_deadline() -> None:
    start, goal, collider = pillar_problem()
    with make_planning_space("two_arms", collider) as space:
        assert plan_constrained_rrt(space, start, goal[None], 0.0, np.random.default_rng(0)) is None


def test_projection_of_a_configuration_that_is_not_finite_fails() -> None:
    with make_planning_space("two_arms") as space:
        assert space.project(np.full(mechanism("two_arms").nq, np.nan)) is None
