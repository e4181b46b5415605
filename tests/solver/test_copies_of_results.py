"""Solvers, methods and results are values: copies and pickles of them are equal to the original."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import mechanik as mk


def arm_solver():
    arm = mk.gallery.ur5()
    return mk.Solver(arm, mk.PoseGoal("tool0", arm.pose("tool0", [0.1, -1, 1, 0.3, 0.4, 0.5])))


def graph_solver(x=1.2):
    base, tip = mk.Link("base"), mk.Link("tip")
    shoulder, elbow, upper = mk.Joint("shoulder", dof="EZ"), mk.Joint("elbow", dof="EZ"), mk.Link("upper")
    base.add_child(shoulder)
    shoulder.add_child(upper)
    elbow.position = (1, 0, 0)
    upper.add_child(elbow)
    elbow.add_child(tip)
    goal = mk.Goal("goal", position=(x, 0.5, 0))
    goal.set_goal_dof(["X", "Y"])
    goal.make_closure(tip, mk.spatial.translation((1, 0, 0)))
    return mk.Solver([base, goal])


def batch():
    solver = arm_solver()
    targets = solver.mechanism.pose("tool0", solver.mechanism.random(np.random.default_rng(0), 3))
    targets[1] = np.nan  # its errors are NaN
    return solver.solve_batch(targets)


def trajectory():
    return mk.retime(mk.Path(mk.arm_2d([0.5, 0.4]), [[0.0, 0.0], [1.0, 0.5]]), velocity=1.0, acceleration=2.0)


RESULTS = {
    "solver": arm_solver,
    "solver of a graph": graph_solver,
    "solver with all options": lambda: mk.Solver(
        mk.gallery.panda(), mk.PositionGoal("panda_hand_tcp", (0.4, 0.1, 0.5)), solver="dls", gain=0.3,
        active=["panda_joint1", "panda_joint2"], lock="panda_joint2", limits={"panda_joint1": (-1, 1)},
        weights={"panda_joint1": 2.0}, rest=True, restarts=2, divergence_threshold=50.0,
    ),
    "solver with functions": lambda: mk.Solver(mk.arm_2d([1.0, 1.0]), mk.Custom(np_sum, residual_size=1)),
    "solution": lambda: arm_solver().solve(),
    "failed solution": lambda: arm_solver().solve(mk.spatial.translation((9, 9, 9)), q0=np.zeros(6), history=True),
    "solution of a graph": lambda: graph_solver().solve(),
    "solution of a batch": batch,
    "all solutions": lambda: arm_solver().solve_all(),
    "self-motions": lambda: mk.Solver(mk.arm_2d([1.0, 0.8, 0.5]), mk.PositionGoal("tool", (1, 1, 0))).solve_all(),
    "assembly modes": lambda: mk.gallery.four_bar().assembly_modes({"crank_joint": 1.2}),
    "trajectory": trajectory,
    "singularity": lambda: arm_solver().solve().singularity,
    "explanation": lambda: arm_solver().explain(),
    "options": lambda: mk.Options(restarts=3),
    **{name: lambda name=name: mk.Solver(
        mk.gallery.ur5(), mk.PoseGoal("tool0", np.eye(4)), solver=name
    ).method for name in mk.METHODS},
}  # fmt: skip


def np_sum(mechanism, q):
    return np.sum(q) - 1.0


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, through_pickle], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", RESULTS)
def test_a_copy_is_equal_to_the_original(name, duplicate):
    """Sets of solutions, assembly modes, batches and trajectories were equal to nothing."""
    value = RESULTS[name]()
    result = duplicate(value)
    assert type(result) is type(value)
    assert result == value
    assert hash(result) == hash(value)


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_equal_calls_are_equal(name):
    if name != "solver with functions":
        assert RESULTS[name]() == RESULTS[name]()


def test_results_of_other_calls_differ():
    solver = arm_solver()
    assert solver.solve(q0=np.zeros(6)) != solver.solve(mk.spatial.translation((0.4, 0.2, 0.4)), q0=np.zeros(6))
    assert solver.solve_all() != solver.solve_all(limit=2)
    assert graph_solver() != graph_solver(1.3)
    bars = mk.gallery.four_bar()
    assert bars.assembly_modes({"crank_joint": 1.2}) != bars.assembly_modes({"crank_joint": 1.3})


def test_a_copied_solver_gives_the_same_answers():
    solver = arm_solver()
    rng = np.random.default_rng(1)
    copies = [copy.copy(solver), copy.deepcopy(solver), through_pickle(solver)]
    for q0 in solver.mechanism.random(rng, 5):
        target = solver.mechanism.pose("tool0", solver.mechanism.random(rng))
        expected = solver.solve(target, q0)
        for restored in copies:
            solution = restored.solve(target, q0)
            assert solution == expected
            np.testing.assert_array_equal(solution.q, expected.q)


def test_a_copied_solution_can_be_read_without_the_solver():
    solution = through_pickle(RESULTS["failed solution"]())
    expected = RESULTS["failed solution"]()
    assert solution.errors == expected.errors
    assert solution.message == expected.message
    np.testing.assert_array_equal(solution.history, expected.history)
    solutions, expected_set = through_pickle(RESULTS["all solutions"]()), RESULTS["all solutions"]()
    np.testing.assert_array_equal(solutions.errors, expected_set.errors)


def solve_one_and_all(solver):
    return solver.solve(), solver.solve_all(), solver


def test_a_process_pool_returns_every_result():
    solver = arm_solver()
    with ProcessPoolExecutor(1) as pool:
        assert pool.submit(solve_one_and_all, solver).result() == solve_one_and_all(solver)


def test_a_solution_of_a_graph_can_be_read_after_an_edit_of_the_graph():
    """It raised an error: the goal was that of the edited graph."""
    solver = graph_solver(9.0)
    solution = solver.solve()
    assert not solution.success
    errors, message = dict(solution.errors), solution.message
    goal = next(iter(solver.mechanism.goals.values()))
    goal.position = (0.5, 0.2, 0.0)
    solver.mechanism.joint("elbow").set_limits(-0.1, 0.1)
    assert dict(solution.errors) == errors
    assert solution.message == message
    assert through_pickle(solution) == solution
