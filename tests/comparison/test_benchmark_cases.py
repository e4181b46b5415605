"""Benchmark cases: reachable and unreachable targets as the task says, and the same for every solver."""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import pytest
from comparison_cases import SETTINGS, cached_case, cached_robot

import mechanik as mk
from mechanik.comparison.benchmark_cases import (
    SINGULAR_THRESHOLD,
    TASKS,
    TIGHT_LIMIT_SHARE,
    _singular_values,
    make_case,
    make_case_solver,
    max_joint_step,
    robot_reach,
)
from mechanik.comparison.benchmark_robots import ROBOTS

REACHABLE = [task for task in TASKS if task != "out_of_reach"]


def graph_poses(case, q):
    """Poses of the tip links from the frames of the model graph, without the kernels."""
    moved = copy.deepcopy(case.robot.mechanism)
    moved.q = q
    gaps = [closure.gap() for closure in moved.closures.values()]
    assert all(gap.distance < 1e-8 for gap in gaps)
    return np.array([moved.link(end).world_matrix for end in case.robot.tip_links])


@pytest.mark.parametrize("task", REACHABLE)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_target_is_reached_by_its_reference_configuration_within_limits(name, task):
    case = cached_case(name, task)
    assert len(case.targets) == len(case.target_poses) == len(case.reference_q) == len(case.starts)
    assert (case.reference_q >= case.lower - 1e-12).all()
    assert (case.reference_q <= case.upper + 1e-12).all()
    for q, target_pose in zip(case.reference_q[:3], case.target_poses, strict=False):
        assert np.allclose(graph_poses(case, q), target_pose, atol=1e-9)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_start_is_within_limits_with_closed_loops(name, task):
    case = cached_case(name, task)
    for q in (*case.starts[:3], *case.restarts[:2]):
        assert (q >= case.lower - 1e-12).all()
        assert (q <= case.upper + 1e-12).all()
        graph_poses(case, q)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["7r", "two_hands", "closed_loop"])
def test_reference_configurations_meet_the_goals(name, task):
    case = cached_case(name, task)
    if not case.is_reachable:
        return
    solver = make_case_solver(case, "lm")
    for q, target in zip(case.reference_q[:3], case.targets, strict=False):
        solution = solver.solve(target, np.array(q))
        assert solution.success
        assert solution.iterations == 0


@pytest.mark.parametrize("name", ROBOTS)
def test_case_depends_only_on_the_seed(name):
    case, again, other_case = (
        cached_case(name, "pose"),
        make_case(cached_robot(name), "pose", 0, SETTINGS),
        cached_case(name, "pose", 1),
    )
    assert np.array_equal(case.target_poses, again.target_poses)
    assert np.array_equal(case.starts, again.starts)
    assert np.array_equal(case.restarts, again.restarts)
    assert not np.allclose(case.target_poses, other_case.target_poses)


@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "closed_loop"])
def test_unreachable_points_are_farther_than_the_total_length(name):
    case = cached_case(name, "out_of_reach")
    distances = np.linalg.norm(case.target_poses[..., :3, 3], axis=-1)
    lengths = robot_reach(case.robot)
    samples = case.robot.mechanism.random(np.random.default_rng(5), 200)
    assert (
        np.linalg.norm(case.robot.mechanism.poses(samples, case.robot.tip_links)[..., :3, 3], axis=-1).max() <= lengths
    )
    assert (distances > lengths).all()


def test_unreachable_points_of_a_closed_chain_are_not_reached_by_restarts():
    case = cached_case("closed_loop", "out_of_reach")
    solver = make_case_solver(case, "lm")
    for target in case.targets:
        assert not any(solver.solve(target, np.array(q)).success for q in case.restarts[:6])


@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "closed_loop"])
def test_near_singular_targets_have_much_smaller_singular_values(name):
    typical, near = cached_case(name, "pose").reference_q, cached_case(name, "near_singular").reference_q
    rank = int(np.median(np.sum(_singular_values(cached_robot(name), typical) > 1e-6, axis=1)))
    before = np.median(_singular_values(cached_robot(name), typical)[:, rank - 1])
    after = _singular_values(cached_robot(name), near)[:, rank - 1]
    assert after.max() < 0.1 * before
    assert np.median(after) <= (
        SINGULAR_THRESHOLD if cached_robot(name).mechanism.nv <= 10 else 10 * SINGULAR_THRESHOLD
    )
    X = cached_case(name, "near_singular").target_poses[:, 0, :3]
    separation = np.linalg.norm(X[:, None] - X[None], axis=(-2, -1)) + np.eye(len(X))
    assert separation.min() > 0.01  # not the same pose repeated


@pytest.mark.parametrize("name", [name for name in ROBOTS if name != "closed_loop"])
def test_tight_limits_shrink_the_range_and_the_solver_respects_them(name):
    case = cached_case(name, "tight_limits")
    space = case.robot.mechanism.space
    assert np.allclose(case.upper - case.lower, TIGHT_LIMIT_SHARE * (space.upper - space.lower))
    assert (case.lower >= space.lower).all()
    assert (case.upper <= space.upper).all()
    solution = make_case_solver(case, "lm").solve(case.targets[0], np.array(case.starts[0]))
    assert (solution.q >= case.lower - 1e-9).all()
    assert (solution.q <= case.upper + 1e-9).all()


@pytest.mark.parametrize("name", ROBOTS)
def test_paths_begin_at_their_start_and_have_small_steps(name):
    case = cached_case(name, "path")
    assert len(set(case.path_index)) >= 2
    for number, typical in enumerate(case.reference_step):
        rows = [k for k, index in enumerate(case.path_index) if index == number]
        path = [case.starts[rows[0]], *case.reference_q[rows]]
        assert max(max_joint_step(case.robot, a, b) for a, b in pairwise(path)) == pytest.approx(typical)
        assert 0 < typical < 0.15


def test_unknown_task_raises_with_a_suggestion():
    with pytest.raises(mk.UnknownName, match="near_singular"):
        make_case(cached_robot("7r"), "near_singlar", 0, SETTINGS)
