"""The judge: what it says is what the graph says, and nothing gets past it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
from comparison_exercises import SIZES, exercise

from mechanik.comparison.benchmark_robots import ROBOTS
from mechanik.comparison.benchmark_verification import verify_solution
from mechanik.model import JointConstraint
from mechanik.spatial import rotation


def graph_errors(one, number, q):
    """Distance and angle of the worst end, from frames alone."""
    moved = copy.deepcopy(one.robot.mechanism)
    moved.q = q
    X = np.array([moved.link(end).world_matrix for end in one.robot.tip_links])
    wanted = one.target_poses[number]
    off = np.linalg.norm(X[:, :3, 3] - wanted[:, :3, 3], axis=-1)
    trace = np.trace(np.swapaxes(X[:, :3, :3], 1, 2) @ wanted[:, :3, :3], axis1=1, axis2=2)
    along = np.eye(3)[2] if one.direction is None else one.direction
    cosines = np.sum((X[:, :3, :3] @ along) * (wanted[:, :3, :3] @ along), axis=-1)
    cosine = (trace - 1) / 2 if one.uses_rotation else cosines
    return off.max(), np.arccos(np.clip(cosine, -1, 1)).max()


@pytest.mark.parametrize("task", ["point", "direction", "pose"])
@pytest.mark.parametrize("name", ROBOTS)
def test_errors_are_those_of_the_graph(name, task):
    one = exercise(name, task)
    for number, q in enumerate(one.starts[:3]):
        verdict = verify_solution(one, SIZES, number, q)
        off, angle = graph_errors(one, number, q)
        assert verdict.position == pytest.approx(off, abs=1e-9)
        if task == "point":
            assert math.isnan(verdict.rotation)
        else:
            assert verdict.rotation == pytest.approx(angle, abs=1e-6)
        assert verdict.constraints_met


@pytest.mark.parametrize("task", ["point", "direction", "pose", "tight_limits", "near_singular", "path"])
@pytest.mark.parametrize("name", ROBOTS)
def test_what_a_target_was_made_from_is_an_answer_and_the_answer_to_another_is_none(name, task):
    one = exercise(name, task)
    assert all(verify_solution(one, SIZES, k, q).success for k, q in enumerate(one.reference_q))
    assert np.linalg.norm(one.target_poses[0] - one.target_poses[-1]) > 1e-2
    assert not verify_solution(one, SIZES, 0, one.reference_q[-1]).success


def test_a_turn_just_beyond_the_tolerance_is_no_success_and_just_inside_is_one():
    one = exercise("7r", "pose")
    for angle, inside in ((0.99e-3, True), (1.01e-3, False)):
        wanted = one.target_poses.copy()
        wanted[0, 0, :3, :3] = wanted[0, 0, :3, :3] @ rotation.about_x(angle)
        verdict = verify_solution(replace(one, target_poses=wanted), SIZES, 0, one.reference_q[0])
        assert verdict.rotation == pytest.approx(angle, rel=1e-6)
        assert verdict.success is inside


def test_a_point_just_beyond_the_tolerance_is_no_success_and_just_inside_is_one():
    one = exercise("7r", "point")
    for off, inside in ((0.99e-4, True), (1.01e-4, False)):
        wanted = one.target_poses.copy()
        wanted[0, 0, 2, 3] += off
        assert verify_solution(replace(one, target_poses=wanted), SIZES, 0, one.reference_q[0]).success is inside


def test_a_joint_beyond_its_limit_is_no_success_wherever_the_end_is():
    one = exercise("7r", "pose")
    upper = one.upper.copy()
    upper[3] = one.reference_q[0][3] - 1e-6
    verdict = verify_solution(replace(one, upper=upper), SIZES, 0, one.reference_q[0])
    assert verdict.limit_violation == pytest.approx(1e-6, rel=1e-3)
    assert not verdict.constraints_met
    assert not verdict.success


def test_an_open_loop_is_no_success_wherever_the_end_is():
    one = exercise("closed_loop", "pose")
    q = one.reference_q[0].copy()
    slide = one.robot.mechanism.space.q_names.index("leg1_slide")
    q[slide] += 1e-3
    verdict = verify_solution(one, SIZES, 0, q)
    assert verdict.position < 1e-9
    assert verdict.closure_error == pytest.approx(1e-3, rel=1e-3)
    assert not verdict.success


def test_a_broken_law_is_no_success_wherever_the_end_is():
    one = exercise("7r", "pose")
    mechanism = copy.deepcopy(one.robot.mechanism)
    first, second = [joint for joint in mechanism.joints.values() if joint.dof][:2]
    q, names = one.reference_q[0], mechanism.space.q_names
    a, b = (q[names.index(mechanism.name_of(joint))] for joint in (first, second))
    bound = replace(one, robot=replace(one.robot, mechanism=mechanism))
    for off, holds in ((0.0, True), (1e-2, False)):
        law = JointConstraint({first: 2.0, second: -1.0}, 2.0 * a - b + off)
        verdict = verify_solution(bound, SIZES, 0, q)
        assert verdict.closure_error == pytest.approx(off / 2, abs=1e-12)
        assert verdict.success is verdict.constraints_met is holds
        law.undo()


def test_what_is_not_finite_is_lost():
    one = exercise("7r", "pose")
    q = one.reference_q[0].copy()
    q[2] = np.nan
    verdict = verify_solution(one, SIZES, 0, q)
    assert not verdict.success
    assert verdict.position == np.inf


def test_the_farther_of_two_hands_counts():
    one = exercise("two_hands", "point")
    wanted = one.target_poses.copy()
    wanted[0, 1, 0, 3] += 0.3
    verdict = verify_solution(replace(one, target_poses=wanted), SIZES, 0, one.reference_q[0])
    assert verdict.position == pytest.approx(0.3, abs=1e-9)
    assert not verdict.success
