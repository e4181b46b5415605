"""Passive spherical joints, whose rotation follows from a weld, are computed after the solve with the same result."""

from __future__ import annotations

import numpy as np
import pytest
from solver_internals import packed_problem

import mechanik as mk
from mechanik.solver.compiled_problem import compile_definition
from mechanik.solver.pipeline import ProblemBackends
from mechanik.spatial import make_pose, rotation


def platform() -> mk.Mechanism:
    return mk.gallery.stewart_platform(ends="joint")


def target(rng: np.random.Generator) -> np.ndarray:
    return make_pose(rotation.exp(0.15 * rng.normal(size=3)), np.array([0.0, 0.0, 0.3]) + 0.02 * rng.normal(size=3))


def with_all_columns(mechanism: mk.Mechanism, goal: mk.Objective) -> mk.Solver:
    """A solver in which all spherical joints have columns."""
    solver = mk.Solver(mechanism, goal)
    compiled = compile_definition(solver.definition, eliminates_sphericals=False)
    solver.pipeline._set_backends(ProblemBackends(compiled))
    return solver


def largest_closure_error(solution: mk.Solution) -> float:
    return max(max(error.position, error.rotation) for error in solution.closure_errors.values())


def passive_count(solver: mk.Solver) -> int:
    return sum(len(subproblem.passive_spherical_v) for subproblem in packed_problem(solver).subproblems)


@pytest.mark.parametrize("seed", range(10))
def test_solution_equals_that_of_a_solver_with_all_columns(seed):
    robot, rng = platform(), np.random.default_rng(seed)
    goal = mk.PoseGoal("platform", robot.pose("platform"))
    eliminating, complete = mk.Solver(robot, goal), with_all_columns(robot, goal)
    assert (passive_count(eliminating), passive_count(complete)) == (6, 0)
    q = robot.q
    for _ in range(5):
        X = target(rng)
        solution, reference = eliminating.solve(X, q), complete.solve(X, q)
        assert solution.success == reference.success
        assert largest_closure_error(solution) < 1e-9
        if solution.success:
            assert np.abs(robot.difference(solution.q, reference.q)).max() < 1e-5
        q = solution.q


def test_passive_quaternion_keeps_the_sign_of_its_start():
    robot = platform()
    solver, q = mk.Solver(robot, mk.PoseGoal("platform", robot.pose("platform"))), -robot.q
    q[robot.space.scalars_q] *= -1  # negated quaternions are the same rotations
    X = make_pose(rotation.about_z(0.1), np.array([0.0, 0.0, 0.31]))
    solution = solver.solve(X, q)
    assert solution.success
    assert np.abs(solution.q - q).max() < 0.3


def test_loops_close_from_a_violated_start():
    robot, rng = platform(), np.random.default_rng(3)
    solver = mk.Solver(robot, mk.PoseGoal("platform", robot.pose("platform")))
    for _ in range(5):
        solution = solver.solve(target(rng), robot.integrate(robot.q, 0.1 * rng.normal(size=robot.nv)))
        assert solution.success
        assert largest_closure_error(solution) < 1e-9


def test_spherical_joint_at_either_end_of_a_weld_is_passive():
    for is_swapped in (False, True):
        builder = mk.Builder("rod")
        builder.free("body_joint", "ground", "body", value=(0.3, 0.1, 1.0, 0.0, 0.0, 0.0))
        builder.spherical("foot", "ground", "rod", at=(0.1, 0.0, 0.0))
        builder.spherical("head", "rod", "end", at=(0.0, 0.0, 0.8), axis=(1, 2, 3), value=(0.3, -0.2, 0.5))
        builder.close("weld", *(("body", "end") if is_swapped else ("end", "body")), "weld")
        rod = builder.build()
        solver = mk.Solver(rod, mk.PositionGoal("body", (0.5, 0.2, 0.9), at=(0.1, 0.2, 0.3)))
        assert passive_count(solver) == 1
        solution = solver.solve((0.6, 0.1, 0.8), rod.q)
        assert solution.success
        assert largest_closure_error(solution) < 1e-9
        rod.apply(solution)
        assert rod.closure("weld").gap().is_closed(1e-9)


def test_spherical_joint_with_a_goal_lock_or_weight_is_not_passive():
    robot = platform()
    pose = mk.PoseGoal("platform", robot.pose("platform"))
    assert passive_count(mk.Solver(robot, [pose, mk.AxisGoal("ball1", (0, 0, 1), (0, 0, 1), level=1)])) == 5
    assert passive_count(mk.Solver(robot, pose, rest=robot.q)) == 0
    assert passive_count(mk.Solver(robot, pose, lock=["leg2_ball"])) == 5
    assert passive_count(mk.Solver(robot, pose, weights={"leg3_ball": 3.0})) == 5
    assert passive_count(mk.Solver(robot, pose, solver="dls")) == 0


def test_lock_in_a_call_holds_a_passive_spherical_joint():
    robot = platform()
    solver = mk.Solver(robot, mk.PoseGoal("platform", robot.pose("platform")))
    X = make_pose(rotation.about_z(0.05), np.array([0.0, 0.0, 0.31]))
    assert solver.solve(X, robot.q).success
    solution = solver.solve(X, robot.q, lock=["leg1_ball"])
    first = robot.kinematics.joint_indices[robot.joint("leg1_ball")].quaternion_q
    assert (solution.q[first : first + 4] == robot.q[first : first + 4]).all()
    assert largest_closure_error(solution) < 1e-9


def test_callbacks_see_aligned_passive_joints():
    robot = platform()
    solver, angle_errors = mk.Solver(robot, mk.PoseGoal("platform", robot.pose("platform"))), []
    X = make_pose(rotation.exp(np.array([0.1, -0.2, 0.15])), np.array([0.02, 0.01, 0.32]))

    def record(iterate: mk.Iterate) -> None:
        moved = platform()
        moved.q = iterate.q
        angle_errors.append(max(closure.gap().angle for closure in moved.closures.values()))

    assert solver.solve(X, robot.q, callback=record).success
    assert len(angle_errors) > 0
    assert max(angle_errors) < 1e-9


def test_spherical_joint_that_carries_the_whole_loop_is_not_passive():
    """It was eliminated once, and the loop had a closure error of 0.1 m."""
    builder = mk.Builder("swinging four-bar")
    builder.spherical("hip", "ground", "body", at=(0, 0, 1))
    builder.revolute("crank", "body", "c")
    builder.revolute("k2", "c", "d", at=(0.5, 0, 0))
    builder.revolute("k3", "d", "e", at=(1, 0, 0))
    builder.revolute("k4", "e", "f", at=(0.6, 0, 0))
    builder.close("closure", "body", "f", "weld", at=(0.9, 0, 0), onto=(0, 0, 0))
    linkage = builder.build()
    solver = mk.Solver(linkage, mk.JointValues({"crank": 0.4}))
    assert passive_count(solver) == 0
    solution = solver.solve(0.7, linkage.q)
    assert solution.success
    assert largest_closure_error(solution) < 1e-9
