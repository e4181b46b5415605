"""Along loops: shutting them, walking, and trees of our own that find paths on which they stay shut."""

from __future__ import annotations

import functools
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
def ground_of(name: str, collider: Collider | None = None, free: Flags | None = None) -> Generator[PlanningSpace]:
    one = mechanism(name)
    free = np.ones(one.nv, dtype=np.bool_) if free is None else free
    with cached_loop_system(one, {}) as loops:
        yield PlanningSpace(one, loops, collider, 0.0, one.space.lower, one.space.upper, free)


@functools.cache
def around_a_pillar() -> tuple[Array, Array, Collider]:
    arms = mechanism("two_arms")
    ends = list[Array]()
    for side in (-0.25, 0.25):
        X = arms.pose("box")
        X[1, 3] += side
        ends.append(mk.solve(arms, mk.PoseGoal("box", X)).require().q)
    return ends[0], ends[1], Collider(arms, ["self", Obstacle(Box((0.06, 0.06, 1.2)), name="pillar")])


# ---- laws --------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(SEEDS, NAMES, st.floats(0.001, 0.08))
def test_shutting_loops_shuts_them_moves_little_and_leaves_what_is_locked(seed: int, name: str, size: float) -> None:
    one, rng = mechanism(name), np.random.default_rng(seed)
    free = np.ones(one.nv, dtype=np.bool_)
    free[rng.choice(one.space.scalars_v)] = False  # a ball turns as a whole, or not at all
    v = size * rng.normal(size=(6, one.nv))
    q = one.space.integrate(np.tile(one.q, (6, 1)), v)
    with ground_of(name, free=free) as ground:
        there, done = ground.project_all(q)
        again, _ = ground.project_all(there)
        alone = [ground.project(single) for single in q]
    assert (max_closure_errors(one, there[done]) < 1e-9).all()
    assert np.abs(there[done] - again[done]).max(initial=0.0) < 1e-14  # what is shut stays; balls are normalised
    moved = one.space.difference(q[done], there[done])
    assert np.abs(moved[:, ~free]).max(initial=0.0) == 0.0
    for k, single in enumerate(alone):
        assert (single is not None) == done[k]
        assert single is None or np.array_equal(single, there[k])


def by_newton(ground: PlanningSpace, q: Array) -> Array:
    """What the kernel does, in NumPy: derivatives serve on while each step leaves less than a fifth."""
    assert ground.loops.groups is not None
    (part,) = ground.loops.groups
    problem, last, inverse = part.problem, 0.0, np.zeros((0, 0))
    problem.set_configuration(q)
    while (error := float(np.abs(e := problem.residual[part.rows].copy()).max())) >= 1e-10:
        if not error < 0.2 * last:
            J = problem.jacobian[part.rows]
            inverse = J.T @ np.linalg.inv(J @ J.T + 1e-12 * np.eye(len(J)))
        u, last = inverse @ e, error
        problem.step[:] = -u * min(1.0, 0.5 / float(np.linalg.norm(u)))
        problem.advance()
    return problem.q


@settings(max_examples=12)
@given(SEEDS, st.sampled_from(("two_arms", "five_bar", "stewart_platform")), st.floats(0.001, 0.05))
def test_loops_are_shut_where_numpy_shuts_them(seed: int, name: str, size: float) -> None:
    one, rng = mechanism(name), np.random.default_rng(seed)
    q = one.space.integrate(np.tile(one.q, (3, 1)), size * rng.normal(size=(3, one.nv)))
    with ground_of(name) as ground:
        there, done = ground.project_all(q)
        plain = np.array([by_newton(ground, single) for single in q])
        by_rows = [ground._retract._by_rows(single) for single in q]
    assert done.all()
    assert np.abs(one.space.difference(plain, there)).max() < 1e-9
    # with new derivatives in each step it ends elsewhere, by no more than the square of how far it was off
    for single, new in zip(by_rows, there, strict=True):
        assert single is not None
        assert max_closure_errors(one, single[None])[0] < 1e-9
        assert np.abs(one.space.difference(single, new)).max() < 10.0 * float(np.abs(q - one.q).max()) ** 2


@settings(max_examples=15)
@given(SEEDS, st.sampled_from(("two_arms", "five_bar")), st.floats(0.01, 0.1))
def test_a_walk_goes_nearer_with_each_step_and_keeps_loops_shut(seed: int, name: str, step: float) -> None:
    one, rng = mechanism(name), np.random.default_rng(seed)
    target = one.space.integrate(one.q, 0.6 * rng.normal(size=one.nv))
    start = np.array(one.q)
    with ground_of(name) as ground:
        assert ground._retract.can_steer
        way = ground.steer(start, target, step)
        ground._retract.can_steer = False
        plain = ground.steer(start, target, step)
    ends_there = np.array_equal(way[-1], target)
    way, plain = (some[:-1] if ends_there else some for some in (way, plain))
    assert np.array_equal(way[0], start)
    assert (max_closure_errors(one, way) < 1e-9).all()
    left = np.abs((way - target) / ground.unit).max(axis=1)
    assert (np.diff(left) < 0.0).all()
    assert (np.abs(np.diff(way, axis=0) / ground.unit).max(axis=1, initial=0.0) <= MAX_STEP_RATIO * step + 1e-12).all()
    assert (way >= one.space.lower - 1e-9).all()
    assert (way <= one.space.upper + 1e-9).all()
    assert way.shape == plain.shape
    assert np.abs(way - plain).max() < 1e-6


@settings(max_examples=3)
@given(SEEDS)
def test_trees_along_loops_lead_from_the_start_to_a_goal_shut_and_free(seed: int) -> None:
    start, goal, collider = around_a_pillar()
    with ground_of("two_arms", collider) as ground:
        goals = np.array([goal, mechanism("two_arms").q]) if collider.is_free(mechanism("two_arms").q) else goal[None]
        found = plan_constrained_rrt(ground, start, goals, np.inf, np.random.default_rng(seed))
        again = plan_constrained_rrt(ground, start, goals, np.inf, np.random.default_rng(seed))
    assert found is not None
    assert again is not None
    assert np.array_equal(found, again)
    assert np.array_equal(found[0], start)
    assert any(np.array_equal(found[-1], one) for one in goals)
    assert (max_closure_errors(mechanism("two_arms"), found) < 1e-9).all()
    assert np.all(collider.is_free(found))
    assert np.abs(np.diff(found, axis=0) / ground.unit).max() <= MAX_STEP_RATIO * ground.step + 1e-12


# ---- cases -------------------------------------------------------------------------------------


def test_the_same_problem_is_solved_by_the_projected_space_of_ompl() -> None:
    pytest.importorskip("ompl")
    start, goal, collider = around_a_pillar()
    arms = mechanism("two_arms")
    for planner in ("rrt_connect", "RRTConnect"):
        path = plan(arms, start, goal, avoid=collider, planner=planner, max_seconds=120.0)
        assert path.planner == planner
        between = path.at(np.linspace(0.0, 1.0, 201))
        assert (max_closure_errors(arms, between) < 1e-6).all()
        assert np.min(collider.distance(between)) >= 0.0


def test_trees_along_loops_give_up_in_time() -> None:
    start, goal, collider = around_a_pillar()
    with ground_of("two_arms", collider) as ground:
        assert plan_constrained_rrt(ground, start, goal[None], 0.0, np.random.default_rng(0)) is None


def test_what_is_not_finite_is_nowhere_near_a_shut_loop() -> None:
    with ground_of("two_arms") as ground:
        assert ground.project(np.full(mechanism("two_arms").nq, np.nan)) is None
