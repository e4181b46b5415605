"""Words about failures: "out of reach" only where no configuration can meet the objective."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import FAMILIES, make_family

import mechanik as mk
from mechanik.errors import NotSolved


@settings(max_examples=60)
@given(st.floats(0.1, 1.0), st.floats(0.1, 1.0), st.floats(0.0, 2.5), st.floats(-math.pi, math.pi))
def test_the_reach_of_a_planar_arm_is_an_annulus(first: float, second: float, radius: float, angle: float) -> None:
    arm = mk.arm_2d([first, second])
    target = (radius * math.cos(angle), radius * math.sin(angle), 0.0)
    goal = mk.PositionGoal("tool", target, name="reach")
    solution = mk.Solver(arm, goal, restarts=0, max_iterations=0).solve(q0=np.array([0.3, -0.4]))
    excess = max(radius - first - second, abs(first - second) - radius)
    if abs(excess) < 1e-5:
        return
    assert set(solution.out_of_reach) == ({"reach"} if excess > 0 and not solution.success else set())
    if solution.out_of_reach:
        assert f"{excess:.3g} m too {'far' if radius > first + second else 'near'}" in solution.message
        assert solution.message.startswith("out of reach: reach (")
    elif not solution.success:
        assert solution.message.startswith("not reached from this start")


@settings(max_examples=30)
@given(st.sampled_from(FAMILIES), st.integers(0, 200))
def test_what_a_configuration_meets_is_never_called_out_of_reach(kind: str, seed: int) -> None:
    family = make_family(kind, seed)
    mechanism, rng = family.solver.mechanism, np.random.default_rng(seed)
    q = mechanism.q if family.is_closed else mechanism.random(rng)
    q0 = mechanism.q if family.is_closed else mechanism.random(rng)
    can_move = family.solver.solve(q0=q0, max_iterations=0).moving_dofs
    q = mechanism.integrate(q0, np.where(can_move, mechanism.difference(q0, q), 0.0))
    targets = [goal.target(q) for goal in family.goals]
    solution = family.solver.solve(targets[0] if len(targets) == 1 else targets, q0, max_iterations=0)
    reference = [objective.error(mechanism, q) for objective in solution.objectives]
    for name, objective, error in zip(solution.names, solution.objectives, reference, strict=True):
        if error.position <= objective.tolerance and error.rotation <= objective.angle_tolerance:
            assert name not in solution.out_of_reach


@pytest.mark.parametrize("ends", ["closure", "joint"])
def test_the_legs_of_a_platform_bound_its_reach(ends) -> None:
    """In the kinematic tree the platform floats freely."""
    platform = mk.gallery.stewart_platform(ends=ends)
    solution = mk.solve(platform, mk.PositionGoal("platform", (0.0, 0.0, 5.0), name="up"), restarts=0)
    assert list(solution.out_of_reach) == ["up"]
    assert not mk.solve(platform, mk.PositionGoal("platform", (0.0, 0.0, 0.32)), restarts=0).out_of_reach


def test_a_locked_joint_counts_as_rigid() -> None:
    arm = mk.arm_2d([1.0, 1.0])
    goal = mk.PositionGoal("tool", (1.9, 0.0, 0.0), name="reach")
    assert mk.solve(arm, goal, q0=[0.1, 0.2]).success
    locked = mk.Solver(arm, goal).solve(q0=[0.1, 2.0], lock="joint2")
    length = math.hypot(1.0 + math.cos(2.0), math.sin(2.0))
    assert f"{1.9 - length:.3g} m too far" in locked.out_of_reach["reach"]


def test_values_outside_the_limits_are_out_of_reach() -> None:
    arm = mk.gallery.panda()
    solution = mk.solve(arm, mk.JointValues({"panda_joint2": 3.0}, angle_mode="exact", name="bend"))
    assert "outside the limits -1.763 to 1.763 of panda_joint2" in solution.out_of_reach["bend"]
    limited = mk.Solver(arm, mk.JointValues({"panda_joint1": 1.0}, name="turn")).solve(
        limits={"panda_joint1": (-0.5, 0.5)}
    )
    assert list(limited.out_of_reach) == ["turn"]


def test_another_start_is_proposed_only_where_it_may_help() -> None:
    arm = mk.arm_2d([1.0, 1.0], limits=(-1.0, 1.0))
    solver = mk.Solver(arm, mk.PositionGoal("tool", (0, 0, 0)), restarts=0)
    with pytest.raises(NotSolved, match="out of reach") as failure:
        solver.solve((2.5, 0.0, 0.0), q0=np.array([0.1, 0.2])).require()
    assert "another start" not in str(failure.value)
    with pytest.raises(NotSolved, match="another start may reach the target"):
        solver.solve((-1.5, 0.0, 0.0), q0=np.array([0.1, 0.2])).require()


@pytest.mark.parametrize("avoid", [None, ["self"]])
def test_a_search_cut_short_succeeds_only_with_what_feasible_accepts(avoid) -> None:
    """A search that ended at a solution of two levels before it knew reported a success without asking."""
    arm, rng = mk.gallery.ur5(), np.random.default_rng(0)
    goals = [mk.PositionGoal("tool0", (0, 0, 0), level=0), mk.OrientationGoal("tool0", np.eye(3), level=1)]
    solver = mk.Solver(arm, goals) if avoid is None else mk.Solver(arm, goals, avoid=avoid)
    rejected = 0
    for k in range(300):
        q = arm.random(rng)
        X = arm.pose("tool0", q)
        q0 = arm.clamp(q + rng.normal(scale=10.0 ** rng.uniform(-3, -1), size=arm.nq))
        targets = [X[:3, 3], X[:3, :3]]
        solution = solver.solve(targets, q0, feasible=lambda q: q[0] > 0.0, max_iterations=1 + k % 4, restarts=0)
        assert not solution.success or solution.q[0] > 0.0
        rejected += "rejects" in solution.message
    assert rejected
