"""Cyclic coordinate descent: what no sweep may do, and where each joint ends."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from ccd_cases import KINDS, ball_arm, chordal_error, one_hinge, path_of, random_goal
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import mechanisms, random_turn, seeds
from solver_internals import packed_problem, row_length_units

import mechanik as mk
from mechanik.spatial import from_position_wxyz, quaternion

# ---- laws ---------------------------------------------------------------------------------------


@given(mechanisms, seeds, st.lists(st.sampled_from(KINDS), min_size=1, max_size=3), st.booleans())
@settings(max_examples=80)
def test_no_sweep_raises_the_error_or_leaves_the_limits_or_the_unit_sphere(mechanism, seed, kinds, from_base):
    rng = np.random.default_rng(seed)
    goals = [random_goal(rng, mechanism, kind) for kind in kinds]
    order = "base to tip" if from_base else "tip to base"
    solver = mk.Solver(mechanism, goals, solver="ccd", order=order, max_iterations=8)
    seen, solution = path_of(solver, mechanism.random(rng))
    if (
        len(packed_problem(solver).subproblems) > 1
    ):  # one after the other, each from where the one before was best by its angles
        seen = seen[:1]
    errors = [chordal_error(mechanism, goals, row_length_units(solver), q) for q in seen]
    for before, after in pairwise(errors):
        assert after <= before * (1 + 1e-9) + 1e-12
    for q in [*seen, solution.q]:
        assert mechanism.space.within_limits(q)
        for k in mechanism.space.quaternions_q:
            assert np.linalg.norm(q[k : k + 4]) == pytest.approx(1.0, abs=1e-12)


@given(mechanisms, seeds, st.lists(st.sampled_from(KINDS), min_size=1, max_size=2))
@settings(max_examples=60)
def test_a_joint_that_moves_alone_ends_at_its_optimum(mechanism, seed, kinds):
    rng = np.random.default_rng(seed)
    goals = [random_goal(rng, mechanism, kind) for kind in kinds]
    space = mechanism.space
    if not len(space.scalars_q):
        return
    k = int(rng.choice(space.scalars_q))
    solver = mk.Solver(mechanism, goals, solver="ccd", active=space.q_names[k])
    q0 = mechanism.random(rng)
    q = solver.step(q0=q0).q
    error = chordal_error(mechanism, goals, row_length_units(solver), q)
    reach = math.pi * min(1.0, packed_problem(solver).length_unit)
    low, high = max(space.lower[k], q0[k] - reach), min(space.upper[k], q0[k] + reach)
    for value in np.linspace(low, high, 60):
        q_other = q.copy()
        q_other[k] = value
        assert error <= chordal_error(mechanism, goals, row_length_units(solver), q_other) + 1e-9 * (1 + error)


@given(seeds, st.lists(st.sampled_from(["point", "pose", "hinge", "axis", "orientation"]), min_size=1, max_size=3))
@settings(max_examples=50)
def test_a_spherical_joint_that_moves_alone_ends_at_its_optimum(seed, kinds):
    rng = np.random.default_rng(seed)
    builder = mk.Builder("ball")
    builder.spherical("joint", "base", "arm", at=from_position_wxyz(rng.normal(size=3), random_turn(rng)))
    mechanism = builder.build()
    goals = [random_goal(rng, mechanism, kind) for kind in kinds]
    solver = mk.Solver(mechanism, goals, solver="ccd")
    q = solver.step(q0=mechanism.random(rng)).q
    sizes = row_length_units(solver)
    error = chordal_error(mechanism, goals, sizes, q)
    for near in (0.01, 0.3, 3.0):
        for step in rng.normal(scale=near, size=(30, 3)):
            assert error <= chordal_error(mechanism, goals, sizes, mechanism.integrate(q, step)) + 1e-9 * (1 + error)


# ---- limits -------------------------------------------------------------------------------------


def unit_vector_at(degrees):
    return (math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), 0.0)


@pytest.mark.parametrize(
    ("limits", "start", "target", "end"),
    [
        ((100, 260), 110, -110, 250),  # across 180 degrees, where its angle is not that of atan2
        ((100, 260), 250, 110, 110),
        ((100, 260), 180, 90, 100),  # outside: the nearer end
        ((100, 260), 180, -80, 260),
        ((100, 260), 180, 1, 100),
        ((100, 260), 180, -1, 260),
        ((-180, 180), 170, -170, -170),  # across the limits, and so by the longer arc
        ((-200, 200), 170, -170, 190),  # beyond it, if the limits allow that
        ((-170, 170), 160, -175, -170),  # the better end is the far one
        ((-400, 400), 390, -20, 340),
        ((-400, 395), 390, 50, 50),
        (None, 3000, 3000 + 120, 3120),  # without limits the nearest of all equivalent angles
        (None, -3000, -3000 - 120, -3120),
        ((30, 30), 30, 90, 30),
    ],
)
def test_limits_apply_to_the_joint_angle_and_the_better_limit_is_chosen(limits, start, target, end):
    arm = one_hinge(None if limits is None else np.radians(limits), math.radians(start))
    solution = mk.Solver(arm, mk.PositionGoal("tip", unit_vector_at(target)), solver="ccd").step()
    assert math.degrees(solution.q[0]) == pytest.approx(end, abs=1e-9)
    assert arm.space.within_limits(solution.q)


def test_a_revolute_joint_without_influence_does_not_move():
    """A point on the axis does not move with the joint, whatever the rounding errors."""
    arm = one_hinge(value=0.7)
    assert mk.Solver(arm, mk.PositionGoal("arm", (1, 2, 3)), solver="ccd").step().q[0] == 0.7


@pytest.mark.parametrize(("target", "end"), [(0.3, 0.3), (2.0, 0.5), (-3.0, -0.4)])
def test_a_prismatic_joint_goes_to_the_foot_of_the_perpendicular_or_to_its_limit(target, end):
    builder = mk.Builder("slider")
    builder.prismatic("slider", "base", "sledge", axis=(1, 1, 0), limits=(-0.4, 0.5))
    goal = mk.PositionGoal("sledge", np.array([target, target, 0]) / math.sqrt(2) + [1, -1, 5])
    assert mk.Solver(builder.build(), goal, solver="ccd").step().q[0] == pytest.approx(end, abs=1e-12)


# ---- spherical joints ---------------------------------------------------------------------------


@pytest.mark.parametrize("direction", [(0, 0, -1), (1e-9, 0, -1), (0, 1e-7, -1), (1, 0, 0), (0, 0, 1), (1, 1, -1e-3)])
def test_a_spherical_joint_points_in_any_direction_also_the_opposite_one(direction):
    target = np.array(direction) / np.linalg.norm(direction)
    solution = mk.Solver(ball_arm(), mk.PositionGoal("tip", target), solver="ccd").step()
    assert solution.errors["PositionGoal 0"].position < 1e-7
    assert np.linalg.norm(solution.q) == pytest.approx(1.0, abs=1e-12)


def test_a_spherical_joint_with_one_point_to_reach_does_not_twist():
    arm = ball_arm()
    q = mk.Solver(arm, mk.PositionGoal("tip", (1, 0, 0)), solver="ccd").step(q0=(1, 0, 0, 0)).q
    np.testing.assert_allclose(quaternion.log(q), (0, math.pi / 2, 0), atol=1e-12)


def test_a_chain_of_spherical_joints_reaches_targets_in_reach():
    arm, rng = ball_arm(5), np.random.default_rng(0)
    solver = mk.Solver(arm, mk.PositionGoal("tip", (0, 0, 0), tolerance=1e-6), solver="ccd")
    for target in rng.normal(size=(50, 3)):
        assert solver.solve(target / np.linalg.norm(target) * rng.uniform(0.5, 4.5), q0=arm.random(rng)).success


@given(seeds, st.floats(0.05, 3.0), st.booleans(), st.booleans())
@settings(max_examples=60)
def test_a_spherical_joint_never_leaves_its_swing_limit_and_no_sweep_raises_the_error(seed, angle, swapped, with_plane):
    rng = np.random.default_rng(seed)
    arm = ball_arm(3)
    cones = []
    for k in range(3):
        axis, direction = random_turn(rng)[1:], random_turn(rng)[1:]
        child, parent = f"link{k + 1}", f"link{k}"
        if swapped:
            child, parent, axis, direction = parent, child, direction, axis
        cones.append(mk.InCone(child, axis, direction, angle, relative_to=parent))
    goals = [mk.PositionGoal("tip", rng.normal(scale=2, size=3))]
    if with_plane:
        goals.append(mk.OnPlane("link2", rng.normal(size=3), random_turn(rng)[1:]))
    solver = mk.Solver(arm, [*goals, *cones], solver="ccd", max_iterations=12)
    seen, _ = path_of(solver, arm.random(rng))
    units = row_length_units(solver)[: len(goals)]
    errors = [chordal_error(arm, goals, units, q) for q in seen]
    for before, after in pairwise(errors[1:]):  # the first sweep brings the joints inside their swing limits
        assert after <= before * (1 + 1e-9) + 1e-12
    for q in seen[1:]:
        for cone in cones:
            assert np.abs(cone.residual(arm, q)).max() < 1e-9


def test_swing_limits_are_met_with_the_goal():
    arm, rng = ball_arm(4), np.random.default_rng(2)
    cones = [mk.InCone(f"link{k + 1}", (0, 0, 1), (0, 0, 1), 0.6, relative_to=f"link{k}") for k in range(4)]
    solver = mk.Solver(arm, [mk.PositionGoal("tip", (0, 0, 0), name="tip", tolerance=1e-3), *cones], solver="ccd")
    for _ in range(40):
        q = arm.neutral()
        for k in arm.space.quaternions_q:
            q[k : k + 4] = quaternion.exp(np.append(0.95 * 0.6 * rng.uniform(-1, 1, 2) / math.sqrt(2), 0.0))
        if np.linalg.norm(arm.pose("tip", q)[:3, 3]) > 3.97:  # of 4 m: stretched out it creeps
            continue
        assert solver.solve({"tip": arm.pose("tip", q)[:3, 3]}, q0=arm.neutral()).success
