"""What is asked: reachable where it should be, out of reach where it should not, and the same for everybody."""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import pytest
from comparison_exercises import SIZES, exercise, robot

import mechanik as mk
from mechanik.comparison.benchmark_cases import (
    SINGULAR_VALUE,
    TASKS,
    TIGHT_LIMIT_SHARE,
    _values,
    make_case,
    make_case_solver,
    max_joint_step,
    robot_reach,
)
from mechanik.comparison.benchmark_robots import ROBOTS

REACHABLE = [task for task in TASKS if task != "out_of_reach"]


def poses_by_the_graph(one, q):
    """Where the ends are, frame by frame, without the kernels."""
    moved = copy.deepcopy(one.robot.mechanism)
    moved.q = q
    gaps = [closure.gap() for closure in moved.closures.values()]
    assert all(gap.distance < 1e-8 for gap in gaps)
    return np.array([moved.link(end).world_matrix for end in one.robot.tip_links])


@pytest.mark.parametrize("task", REACHABLE)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_target_is_where_the_ends_are_in_a_configuration_inside_the_limits(name, task):
    one = exercise(name, task)
    assert len(one.targets) == len(one.target_poses) == len(one.reference_q) == len(one.starts)
    assert (one.reference_q >= one.lower - 1e-12).all()
    assert (one.reference_q <= one.upper + 1e-12).all()
    for q, wanted in zip(one.reference_q[:3], one.target_poses, strict=False):
        assert np.allclose(poses_by_the_graph(one, q), wanted, atol=1e-9)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_start_is_inside_the_limits_with_its_loops_shut(name, task):
    one = exercise(name, task)
    for q in (*one.starts[:3], *one.restarts[:2]):
        assert (q >= one.lower - 1e-12).all()
        assert (q <= one.upper + 1e-12).all()
        poses_by_the_graph(one, q)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["7r", "two_hands", "closed_loop"])
def test_the_goals_ask_for_what_is_wanted(name, task):
    one = exercise(name, task)
    if not one.is_reachable:
        return
    solver = make_case_solver(one, "lm")
    for q, target in zip(one.reference_q[:3], one.targets, strict=False):
        solution = solver.solve(target, np.array(q))
        assert solution.success
        assert solution.iterations == 0


@pytest.mark.parametrize("name", ROBOTS)
def test_an_exercise_is_the_same_each_time_and_another_with_another_seed(name):
    one, again, other = exercise(name, "pose"), make_case(robot(name), "pose", 0, SIZES), exercise(name, "pose", 1)
    assert np.array_equal(one.target_poses, again.target_poses)
    assert np.array_equal(one.starts, again.starts)
    assert np.array_equal(one.restarts, again.restarts)
    assert not np.allclose(one.target_poses, other.target_poses)


@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "closed_loop"])
def test_points_out_of_reach_are_farther_than_all_lengths_together(name):
    one = exercise(name, "out_of_reach")
    away = np.linalg.norm(one.target_poses[..., :3, 3], axis=-1)
    lengths = robot_reach(one.robot)
    some = one.robot.mechanism.random(np.random.default_rng(5), 200)
    assert np.linalg.norm(one.robot.mechanism.poses(some, one.robot.tip_links)[..., :3, 3], axis=-1).max() <= lengths
    assert (away > lengths).all()


def test_points_out_of_reach_of_a_loop_are_not_reached_by_a_search():
    one = exercise("closed_loop", "out_of_reach")
    solver = make_case_solver(one, "lm")
    for target in one.targets:
        assert not any(solver.solve(target, np.array(q)).success for q in one.restarts[:6])


@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "closed_loop"])
def test_near_singular_targets_are_far_nearer_to_it_than_usual_ones(name):
    usual, near = exercise(name, "pose").reference_q, exercise(name, "near_singular").reference_q
    rank = int(np.median(np.sum(_values(robot(name), usual) > 1e-6, axis=1)))
    before = np.median(_values(robot(name), usual)[:, rank - 1])
    after = _values(robot(name), near)[:, rank - 1]
    assert after.max() < 0.1 * before
    assert np.median(after) <= (SINGULAR_VALUE if robot(name).mechanism.nv <= 10 else 10 * SINGULAR_VALUE)
    X = exercise(name, "near_singular").target_poses[:, 0, :3]
    apart = np.linalg.norm(X[:, None] - X[None], axis=(-2, -1)) + np.eye(len(X))
    assert apart.min() > 0.01  # not one pose again and again


@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "closed_loop"])
def test_tight_limits_leave_less_than_a_third_and_the_solver_knows_them(name):
    one = exercise(name, "tight_limits")
    space = one.robot.mechanism.space
    assert np.allclose(one.upper - one.lower, TIGHT_LIMIT_SHARE * (space.upper - space.lower))
    assert (one.lower >= space.lower).all()
    assert (one.upper <= space.upper).all()
    solution = make_case_solver(one, "lm").solve(one.targets[0], np.array(one.starts[0]))
    assert (solution.q >= one.lower - 1e-9).all()
    assert (solution.q <= one.upper + 1e-9).all()


@pytest.mark.parametrize("name", ROBOTS)
def test_paths_begin_where_they_start_and_go_in_small_steps(name):
    one = exercise(name, "path")
    assert len(set(one.path_index)) >= 2
    for number, usual in enumerate(one.reference_step):
        at = [k for k, path in enumerate(one.path_index) if path == number]
        way = [one.starts[at[0]], *one.reference_q[at]]
        assert max(max_joint_step(one.robot, a, b) for a, b in pairwise(way)) == pytest.approx(usual)
        assert 0 < usual < 0.15


def test_a_task_that_does_not_exist_is_named():
    with pytest.raises(mk.UnknownName, match="near_singular"):
        make_case(robot("7r"), "near_singlar", 0, SIZES)
