"""Goals for the centre of mass: at a point, and above a support polygon."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from objective_mechanisms import arm, mixed_mechanism

import mechanik as mk
from mechanik.errors import (
    DoFError,
    NotFinite,
    ObjectiveError,
    ShapeError,
    UnknownName,
)
from mechanik.objectives.centre_of_mass import CentreOfMass


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_the_centre_of_mass_of_two_links_is_the_mean_of_their_middles(shoulder, elbow):
    first = np.array([math.cos(shoulder), math.sin(shoulder), 0])
    second = np.array([math.cos(shoulder + elbow), math.sin(shoulder + elbow), 0])
    centre = (0.5 * first + first + 0.5 * second) / 2
    objective = CentreOfMass((0.1, 0.2, 0.3))
    np.testing.assert_allclose(objective.residual(arm(), [shoulder, elbow]), centre - [0.1, 0.2, 0.3], atol=1e-12)
    flat = CentreOfMass((0.1, 0.2, 0.3), dof=("X", "Y"), links="upper")
    np.testing.assert_allclose(flat.residual(arm(), [shoulder, elbow]), 0.5 * first[:2] - [0.1, 0.2], atol=1e-12)


def test_a_centre_of_mass_can_be_relative_to_a_link():
    objective = CentreOfMass((0, 0, 0), relative_to="upper")
    mechanism = arm()
    np.testing.assert_allclose(objective.residual(mechanism, [0.7, 0.0]), [1.0, 0, 0], atol=1e-12)
    assert not objective.jacobian(mechanism, [0.7, 0.0])[:, 0].any()


SQUARE = [(0, 0), (1, 0), (1, 1), (0, 1)]


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 0.4), st.permutations([*SQUARE, (0.5, 0.5), (0.5, 0), (0, 0)]))
def test_support_residual_is_the_violation_of_the_inset_polygon(shoulder, elbow, margin, points):
    mechanism = arm()
    centre = CentreOfMass((0, 0, 0)).residual(mechanism, [shoulder, elbow])[:2]
    objective = CentreOfMass(support=points, margin=margin)
    residual = objective.residual(mechanism, [shoulder, elbow])
    assert len(residual) == 4
    depth = np.minimum(centre, 1 - centre).min()
    assert np.isclose(-residual.min(), max(margin - depth, 0.0), atol=1e-12)


def test_heights_of_a_support_are_ignored_and_collinear_points_are_a_segment():
    mechanism = arm()
    q = [0.0, 0.0]  # the centre is at (1, 0)
    tilted = CentreOfMass(support=[(0, -1, 0), (2, -1, 1), (1, 1, 5)])
    assert not tilted.residual(mechanism, q).any()
    line = CentreOfMass(support=[(0, 0), (0.5, 0), (0.25, 0)])
    np.testing.assert_allclose(np.sort(line.residual(mechanism, q)), [0, 0.5], atol=1e-12)
    np.testing.assert_allclose(np.sort(line.residual(mechanism, [math.pi / 2, 0])), [0, 1], atol=1e-12)
    point = CentreOfMass(support=[(0.25, 0)])
    np.testing.assert_allclose(point.residual(mechanism, q), [0.75, 0], atol=1e-12)


def test_supports_without_area_and_links_without_mass_are_refused():
    with pytest.raises(ObjectiveError, match="leaves no area"):
        CentreOfMass(support=SQUARE, margin=0.51)
    CentreOfMass(support=SQUARE, margin=0.49)
    with pytest.raises(ObjectiveError, match="without area"):
        CentreOfMass(support=SQUARE[:2], margin=0.1)
    with pytest.raises(ObjectiveError, match="leaves no area"):
        CentreOfMass(support=SQUARE, margin=0.3).with_target([(0, 0), (0.1, 0), (0, 0.1)])
    with pytest.raises(ObjectiveError, match="negative"):
        CentreOfMass(support=SQUARE, margin=-0.1)
    with pytest.raises(ObjectiveError, match="either a target point or a support polygon"):
        CentreOfMass()
    with pytest.raises(ObjectiveError, match="either a target point or a support polygon"):
        CentreOfMass((0, 0, 0), support=SQUARE)
    with pytest.raises(ShapeError, match="points"):
        CentreOfMass(support=[(0, 0, 0, 0)])
    with pytest.raises(ShapeError, match="points"):
        CentreOfMass(support=[])
    with pytest.raises(NotFinite):
        CentreOfMass(support=[(0, math.inf)])
    with pytest.raises(DoFError, match="X Y Z"):
        CentreOfMass((0, 0, 0), dof=("X", "EX"))
    with pytest.raises(ObjectiveError, match="no mass in the mechanism"):
        CentreOfMass((0, 0, 0)).relations(mixed_mechanism())
    with pytest.raises(ObjectiveError, match="links hand"):
        CentreOfMass((0, 0, 0), links=["hand"]).relations(arm())
    with pytest.raises(UnknownName, match="fore"):
        CentreOfMass((0, 0, 0), links=["for"]).relations(arm())


def test_a_solver_notices_a_new_mass():
    """A solver went on with the old masses and reported success, while the errors of its solution had the new ones."""
    mechanism = arm()
    solver = mk.Solver(mechanism, CentreOfMass((0.6, 0.7, 0), dof=("X", "Y")))
    q0 = [0.3, 0.8]
    before = solver.solve(q0=q0)
    mechanism.link("fore").inertial = mk.Inertial(10.0, mk.Pose((0.5, 0, 0)))
    after = solver.solve(q0=q0)
    assert before.success
    assert after.success
    assert max(error.position for error in after.errors.values()) <= 1e-6
    np.testing.assert_array_equal(after.q, mk.Solver(mechanism, solver.objectives).solve(q0=q0).q)
