"""Balls that a weld turns are turned in the end: nobody sees a difference but in the time it takes."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.spatial import make_pose, rotation


def platform() -> mk.Mechanism:
    return mk.gallery.stewart_platform(ends="joint")


def target(rng: np.random.Generator) -> np.ndarray:
    return make_pose(rotation.exp(0.15 * rng.normal(size=3)), np.array([0.0, 0.0, 0.3]) + 0.02 * rng.normal(size=3))


def as_columns(mechanism: mk.Mechanism, goal: mk.Objective) -> mk.Solver:
    """A solver for which all balls are columns."""
    solver = mk.Solver(mechanism, goal)
    solver._may_eliminate_spherical = False
    solver._compile(solver.objectives)
    return solver


def widest(solution: mk.Solution) -> float:
    return max(max(gap.position, gap.rotation) for gap in solution.closure_errors.values())


def read_off(solver: mk.Solver) -> int:
    return sum(len(part.passive_spherical_v) for part in solver._problem.subproblems)


@pytest.mark.parametrize("seed", range(10))
def test_the_answer_is_that_of_all_columns(seed):
    robot, rng = platform(), np.random.default_rng(seed)
    goal = mk.PoseGoal("platform", robot.pose("platform"))
    short, whole = mk.Solver(robot, goal), as_columns(robot, goal)
    assert (read_off(short), read_off(whole)) == (6, 0)
    q = robot.q
    for _ in range(5):
        X = target(rng)
        one, other = short.solve(X, q), whole.solve(X, q)
        assert one.success == other.success
        assert widest(one) < 1e-9
        if one.success:
            assert np.abs(robot.difference(one.q, other.q)).max() < 1e-5
        q = one.q


def test_a_ball_turns_on_from_where_it_was_without_a_jump_of_its_quaternion():
    robot = platform()
    solver, q = mk.Solver(robot, mk.PoseGoal("platform", robot.pose("platform"))), -robot.q
    q[robot.space.scalars_q] *= -1  # all balls by the other quaternion that means the same
    X = make_pose(rotation.about_z(0.1), np.array([0.0, 0.0, 0.31]))
    found = solver.solve(X, q)
    assert found.success
    assert np.abs(found.q - q).max() < 0.3


def test_from_an_open_start_the_loops_are_shut():
    robot, rng = platform(), np.random.default_rng(3)
    solver = mk.Solver(robot, mk.PoseGoal("platform", robot.pose("platform")))
    for _ in range(5):
        found = solver.solve(target(rng), robot.integrate(robot.q, 0.1 * rng.normal(size=robot.nv)))
        assert found.success
        assert widest(found) < 1e-9


def test_a_ball_at_either_end_of_the_weld_is_read_off():
    for turned in (False, True):
        b = mk.Builder("rod")
        b.free("body_joint", "ground", "body", value=(0.3, 0.1, 1.0, 0.0, 0.0, 0.0))
        b.spherical("foot", "ground", "rod", at=(0.1, 0.0, 0.0))
        b.spherical("head", "rod", "end", at=(0.0, 0.0, 0.8), axis=(1, 2, 3), value=(0.3, -0.2, 0.5))
        b.close("weld", *(("body", "end") if turned else ("end", "body")), "weld")
        rod = b.build()
        solver = mk.Solver(rod, mk.PositionGoal("body", (0.5, 0.2, 0.9), at=(0.1, 0.2, 0.3)))
        assert read_off(solver) == 1
        found = solver.solve((0.6, 0.1, 0.8), rod.q)
        assert found.success
        assert widest(found) < 1e-9
        rod.apply(found)
        assert rod.closure("weld").gap().is_closed(1e-9)


def test_what_is_asked_of_the_ball_keeps_it_a_column():
    robot = platform()
    pose = mk.PoseGoal("platform", robot.pose("platform"))
    assert read_off(mk.Solver(robot, [pose, mk.AxisGoal("ball1", (0, 0, 1), (0, 0, 1), level=1)])) == 5
    assert read_off(mk.Solver(robot, pose, rest=robot.q)) == 0
    assert read_off(mk.Solver(robot, pose, lock=["leg2_ball"])) == 5
    assert read_off(mk.Solver(robot, pose, weights={"leg3_ball": 3.0})) == 5
    assert read_off(mk.Solver(robot, pose, solver="dls")) == 0


def test_a_lock_of_a_call_holds_a_ball_that_was_read_off_before():
    robot = platform()
    solver = mk.Solver(robot, mk.PoseGoal("platform", robot.pose("platform")))
    X = make_pose(rotation.about_z(0.05), np.array([0.0, 0.0, 0.31]))
    assert solver.solve(X, robot.q).success
    held = solver.solve(X, robot.q, lock=["leg1_ball"])
    ball = robot.kinematics.joint_indices[robot.joint("leg1_ball")].quaternion_q
    assert (held.q[ball : ball + 4] == robot.q[ball : ball + 4]).all()
    assert widest(held) < 1e-9


def test_who_looks_on_sees_the_balls_turned():
    robot = platform()
    solver, seen = mk.Solver(robot, mk.PoseGoal("platform", robot.pose("platform"))), []
    X = make_pose(rotation.exp(np.array([0.1, -0.2, 0.15])), np.array([0.02, 0.01, 0.32]))

    def look(iterate: mk.Iterate) -> None:
        moved = platform()
        moved.q = iterate.q
        seen.append(max(closure.gap().angle for closure in moved.closures.values()))

    assert solver.solve(X, robot.q, callback=look).success
    assert len(seen) > 0
    assert max(seen) < 1e-9


def test_a_ball_that_carries_the_whole_loop_is_a_column():
    """It was read off once, and the loop stood open by a tenth of a metre."""
    b = mk.Builder("swinging four-bar")
    b.spherical("hip", "ground", "body", at=(0, 0, 1))
    b.revolute("crank", "body", "c")
    b.revolute("k2", "c", "d", at=(0.5, 0, 0))
    b.revolute("k3", "d", "e", at=(1, 0, 0))
    b.revolute("k4", "e", "f", at=(0.6, 0, 0))
    b.close("shut", "body", "f", "weld", at=(0.9, 0, 0), onto=(0, 0, 0))
    linkage = b.build()
    solver = mk.Solver(linkage, mk.JointValues({"crank": 0.4}))
    assert read_off(solver) == 0
    found = solver.solve(0.7, linkage.q)
    assert found.success
    assert widest(found) < 1e-9
