"""Verification of solutions: its errors equal those of the model graph, and no wrong solution passes."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
from comparison_cases import SETTINGS, cached_case

from mechanik.comparison.benchmark_robots import ROBOTS
from mechanik.comparison.benchmark_verification import verify_solution
from mechanik.model import JointConstraint
from mechanik.spatial import rotation


def graph_errors(case, number, q):
    """Return the largest position and angle error of the tip links, from the frames of the model graph."""
    moved = copy.deepcopy(case.robot.mechanism)
    moved.q = q
    X = np.array([moved.link(end).world_matrix for end in case.robot.tip_links])
    target_poses = case.target_poses[number]
    error = np.linalg.norm(X[:, :3, 3] - target_poses[:, :3, 3], axis=-1)
    trace = np.trace(np.swapaxes(X[:, :3, :3], 1, 2) @ target_poses[:, :3, :3], axis1=1, axis2=2)
    direction = np.eye(3)[2] if case.direction is None else case.direction
    cosines = np.sum((X[:, :3, :3] @ direction) * (target_poses[:, :3, :3] @ direction), axis=-1)
    cosine = (trace - 1) / 2 if case.uses_rotation else cosines
    return error.max(), np.arccos(np.clip(cosine, -1, 1)).max()


@pytest.mark.parametrize("task", ["point", "direction", "pose"])
@pytest.mark.parametrize("name", ROBOTS)
def test_errors_equal_those_of_the_model_graph(name, task):
    case = cached_case(name, task)
    for number, q in enumerate(case.starts[:3]):
        verdict = verify_solution(case, SETTINGS, number, q)
        error, angle = graph_errors(case, number, q)
        assert verdict.position_error == pytest.approx(error, abs=1e-9)
        if task == "point":
            assert math.isnan(verdict.rotation_error)
        else:
            assert verdict.rotation_error == pytest.approx(angle, abs=1e-6)
        assert verdict.are_constraints_met


@pytest.mark.parametrize("task", ["point", "direction", "pose", "tight_limits", "near_singular", "path"])
@pytest.mark.parametrize("name", ROBOTS)
def test_reference_configuration_solves_its_own_target_only(name, task):
    case = cached_case(name, task)
    assert all(verify_solution(case, SETTINGS, k, q).success for k, q in enumerate(case.reference_q))
    assert np.linalg.norm(case.target_poses[0] - case.target_poses[-1]) > 1e-2
    assert not verify_solution(case, SETTINGS, 0, case.reference_q[-1]).success


def test_rotation_error_is_a_success_only_within_the_tolerance():
    case = cached_case("7r", "pose")
    for angle, inside in ((0.99e-3, True), (1.01e-3, False)):
        target_poses = case.target_poses.copy()
        target_poses[0, 0, :3, :3] = target_poses[0, 0, :3, :3] @ rotation.about_x(angle)
        verdict = verify_solution(replace(case, target_poses=target_poses), SETTINGS, 0, case.reference_q[0])
        assert verdict.rotation_error == pytest.approx(angle, rel=1e-6)
        assert verdict.success is inside


def test_position_error_is_a_success_only_within_the_tolerance():
    case = cached_case("7r", "point")
    for error, inside in ((0.99e-4, True), (1.01e-4, False)):
        target_poses = case.target_poses.copy()
        target_poses[0, 0, 2, 3] += error
        assert (
            verify_solution(replace(case, target_poses=target_poses), SETTINGS, 0, case.reference_q[0]).success
            is inside
        )


def test_joint_outside_its_limit_is_no_success():
    case = cached_case("7r", "pose")
    upper = case.upper.copy()
    upper[3] = case.reference_q[0][3] - 1e-6
    verdict = verify_solution(replace(case, upper=upper), SETTINGS, 0, case.reference_q[0])
    assert verdict.limit_violation == pytest.approx(1e-6, rel=1e-3)
    assert not verdict.are_constraints_met
    assert not verdict.success


def test_violated_closure_is_no_success():
    case = cached_case("closed_loop", "pose")
    q = case.reference_q[0].copy()
    slide = case.robot.mechanism.space.q_names.index("leg1_slide")
    q[slide] += 1e-3
    verdict = verify_solution(case, SETTINGS, 0, q)
    assert verdict.position_error < 1e-9
    assert verdict.closure_error == pytest.approx(1e-3, rel=1e-3)
    assert not verdict.success


def test_violated_joint_constraint_is_no_success():
    case = cached_case("7r", "pose")
    mechanism = copy.deepcopy(case.robot.mechanism)
    first, second = [joint for joint in mechanism.joints.values() if joint.dof][:2]
    q, names = case.reference_q[0], mechanism.space.q_names
    a, b = (q[names.index(mechanism.name_of(joint))] for joint in (first, second))
    bound = replace(case, robot=replace(case.robot, mechanism=mechanism))
    for error, holds in ((0.0, True), (1e-2, False)):
        constraint = JointConstraint({first: 2.0, second: -1.0}, 2.0 * a - b + error)
        verdict = verify_solution(bound, SETTINGS, 0, q)
        assert verdict.closure_error == pytest.approx(error / 2, abs=1e-12)
        assert verdict.success is verdict.are_constraints_met is holds
        constraint.undo()


def test_configuration_with_nan_is_no_success():
    case = cached_case("7r", "pose")
    q = case.reference_q[0].copy()
    q[2] = np.nan
    verdict = verify_solution(case, SETTINGS, 0, q)
    assert not verdict.success
    assert verdict.position_error == np.inf


def test_larger_error_of_two_tip_links_counts():
    case = cached_case("two_hands", "point")
    target_poses = case.target_poses.copy()
    target_poses[0, 1, 0, 3] += 0.3
    verdict = verify_solution(replace(case, target_poses=target_poses), SETTINGS, 0, case.reference_q[0])
    assert verdict.position_error == pytest.approx(0.3, abs=1e-9)
    assert not verdict.success
