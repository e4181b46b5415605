"""Residuals and Jacobians in Klampt's definition, compared with data from Klampt."""

from __future__ import annotations

import klampt_data
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_link_goals import GENERAL, NAMED, body_configuration, random_link_goal, random_pose_matrix, two_bodies
from random_mechanisms import random_mechanism, seeds

from mechanik.errors import ObjectiveError
from mechanik.objectives.objective import jacobian, residual
from mechanik.objectives.pose_constraints import PerpendicularAxes
from mechanik.objectives.pose_goals import LinkGoal

BODIES = two_bodies()
KINDS = NAMED + tuple(kind for kind in GENERAL if not kind.endswith("square"))
CASES = klampt_data.cases("residual_jacobian.json")


def test_there_are_372_cases_of_18_types_on_four_robots() -> None:
    assert len(CASES) == 372
    assert len({case["type"] for case in CASES}) == 18
    assert len({case["robot"] for case in CASES}) == 4


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_residual_and_jacobian_equal_those_of_klampt(case: dict) -> None:
    mechanism = klampt_data.robot(case["robot"])
    q = klampt_data.configuration(mechanism, case["q"])
    objectives = [klampt_data.link_goal(goal) for goal in case["objectives"]]
    values = residual(objectives, mechanism, q, definition="klampt")
    J = jacobian(objectives, mechanism, q, definition="klampt")
    assert values.shape == (len(case["residual"]),)
    assert np.abs(values - case["residual"]).max() < 1e-9
    columns = klampt_data.steps(mechanism, case["q"], case["active_dofs"])
    assert np.abs(J @ columns - case["jacobian"]).max() < 1e-6


@given(kind=st.sampled_from(KINDS), seed=seeds, joints=st.integers(1, 12), relative=st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_jacobian_is_the_derivative_of_the_residual(kind: str, seed: int, joints: int, relative: bool) -> None:
    """Also between two links, and for constraints that Klampt itself does not have there."""
    mechanism = random_mechanism(seed, joints)
    rng = np.random.default_rng(seed)
    b, a = rng.permutation(list(mechanism.links))[:2]
    objective = random_link_goal(kind, seed, str(b), str(a) if relative else None)
    q = mechanism.random(rng)
    J = objective.jacobian(mechanism, q, definition="klampt")
    assume(objective.error(mechanism, q).rotation < 3.0)  # near half a revolution the rotation vector jumps
    h = 1e-6
    for k, step in enumerate(h * np.eye(mechanism.nv)):
        ahead, behind = (objective.residual(mechanism, mechanism.integrate(q, s * step), "klampt") for s in (1, -1))
        assert np.abs((ahead - behind) / (2 * h) - J[:, k]).max() < 1e-6 * (1 + np.abs(J[:, k]).max() + joints)


@given(kind=st.sampled_from(KINDS), seed=seeds, relative=st.booleans())
@settings(max_examples=80, deadline=None)
def test_both_definitions_are_zero_at_the_same_poses(kind: str, seed: int, relative: bool) -> None:
    rng = np.random.default_rng(seed)
    objective = random_link_goal(kind, seed, relative_to="anchor" if relative else None)
    anchor = random_pose_matrix(rng)
    q = body_configuration(BODIES, (anchor if relative else np.eye(4)) @ objective.sample(rng), anchor)
    klampt_residual = objective.residual(BODIES, q, definition="klampt")
    assert len(klampt_residual) == len(objective.residual(BODIES, q))
    assert np.abs(klampt_residual).max() < 1e-9


def test_perpendicular_axes_have_no_klampt_residual() -> None:
    goal = LinkGoal("body", rotation=PerpendicularAxes((0, 0, 1), (1, 0, 0)))
    with pytest.raises(ObjectiveError, match="Klampt has no PerpendicularAxes"):
        goal.residual(BODIES, BODIES.neutral(), definition="klampt")
