"""Manipulability, and objectives from Python functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from objective_mechanisms import arm, mixed_mechanism

from mechanik.errors import (
    DoFError,
    InvalidArgument,
    LimitsError,
    ObjectiveError,
    UnknownName,
)
from mechanik.objectives.function_objectives import Custom, Manipulability

# ---- manipulability ---------------------------------------------------------------------------


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_the_manipulability_of_two_links_is_the_area_they_span(shoulder, elbow):
    objective = Manipulability("hand", ("X", "Y"), reference=0.5)
    w = abs(math.sin(elbow))
    np.testing.assert_allclose(objective.measure(arm(), [shoulder, elbow]), w, atol=1e-12)
    np.testing.assert_allclose(objective.residual(arm(), [shoulder, elbow]), [0.5 / (w + 0.5)], atol=1e-12)
    slope = -0.5 / (w + 0.5) ** 2 * math.cos(elbow) * math.copysign(1.0, elbow)
    if abs(elbow) > 1e-6:
        np.testing.assert_allclose(objective.jacobian(arm(), [shoulder, elbow]), [[0, slope]], atol=1e-9)


def test_manipulability_has_a_nonzero_derivative_at_a_singular_configuration():
    J = Manipulability("hand", ("X", "Y")).jacobian(arm(), [0.3, 0.0])
    assert abs(J[0, 1]) > 0.1
    assert abs(J[0, 0]) < 1e-9


def test_the_default_reference_is_repeatable():
    objective = Manipulability("hand", ("X", "Y"))
    assert (objective.level, objective.required) == (50, False)
    residuals = [objective.residual(arm(), [0.3, 0.8]) for _ in range(2)]
    assert residuals[0] == residuals[1]
    assert 0.2 < residuals[0] < 0.8


def test_manipulability_may_be_restricted_to_joints():
    mechanism = mixed_mechanism()
    only = Manipulability("leg", ("EX", "EY", "EZ"), joints="hip")
    np.testing.assert_allclose(only.measure(mechanism, mechanism.neutral()), 1.0)
    both = Manipulability("leg", ("EX", "EY", "EZ"), joints=["hip", "float.EX", "float.EY", "float.EZ"])
    np.testing.assert_allclose(both.measure(mechanism, mechanism.neutral()), math.sqrt(8))


def test_impossible_velocities_of_manipulability_are_refused():
    with pytest.raises(ObjectiveError, match="2 dofs cannot produce 6 independent components"):
        Manipulability("hand").relations(arm())
    with pytest.raises(ObjectiveError, match="singular at most random configurations"):
        Manipulability("hand", ("X", "Z")).relations(arm())
    with pytest.raises(ObjectiveError, match="above zero"):
        Manipulability("hand", reference=0)
    with pytest.raises(DoFError, match="dof of Manipulability is empty"):
        Manipulability("hand", ())
    with pytest.raises(UnknownName):
        Manipulability("hand", "X", joints="elbw").relations(arm())


# ---- custom functions -------------------------------------------------------------------------


def height(mechanism, q):
    return mechanism.pose("hand", q)[1, 3]


def position(mechanism, q):
    return mechanism.pose("hand", q)[:3, 3]


def speed(mechanism, q):
    return mechanism.jacobian("hand", q)[:3]


def test_a_function_is_an_objective_with_and_without_a_jacobian():
    mechanism, q = arm(), np.array([0.3, 0.4])
    exact, by_differences = Custom(position, speed), Custom(position)
    np.testing.assert_allclose(exact.residual(mechanism, q), position(mechanism, q))
    np.testing.assert_array_equal(exact.jacobian(mechanism, q), speed(mechanism, q))
    np.testing.assert_allclose(by_differences.jacobian(mechanism, q), speed(mechanism, q), atol=1e-9)
    np.testing.assert_allclose(Custom(height).jacobian(mechanism, q), speed(mechanism, q)[1:2], atol=1e-9)
    banded = Custom(height, residual_size=1, lower=0, upper=0.5)
    np.testing.assert_allclose(banded.residual(mechanism, q), [max(height(mechanism, q) - 0.5, 0)])


def test_a_custom_function_may_modify_its_argument():
    def wild(mechanism, q):
        q[:] = 0
        return q.sum()

    q = np.array([0.3, 0.4])
    assert Custom(wild).residual(arm(), q) == [0]
    assert q.tolist() == [0.3, 0.4]


def test_an_exception_in_a_custom_function_is_reported_with_its_cause():
    def broken(mechanism, q):
        raise ZeroDivisionError("no such place")

    with pytest.raises(ObjectiveError, match=r"Custom 'mine': its function failed at q = .*no such place") as caught:
        Custom(broken, name="mine").residual(arm(), [0.3, 0.4])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(ObjectiveError, match="its jacobian failed"):
        Custom(height, broken).residual(arm(), [0.3, 0.4])


@pytest.mark.parametrize(
    ("function", "jacobian", "message"),
    [
        (lambda m, q: math.nan, None, "nan"),
        (lambda m, q: [1.0, math.inf], None, "inf"),
        (lambda m, q: "far", None, "not numeric"),
        (lambda m, q: None, None, "nan"),
        (lambda m, q: np.eye(2), None, r"shape \(2, 2\)"),
        (lambda m, q: np.zeros(1 + int(q[0] > 0)), None, r"\(2,\), not \(1,\)"),
        (height, lambda m, q: [1.0, 2.0], r"not \(1, 2\)"),
        (height, lambda m, q: [[1.0, math.nan]], "nan"),
    ],
)
def test_wrong_values_of_a_custom_function_are_refused(function, jacobian, message):
    with pytest.raises(ObjectiveError, match=message):
        Custom(function, jacobian).residual(arm(), [0.3, 0.4])


def test_arguments_of_custom_are_checked_at_construction():
    with pytest.raises(InvalidArgument, match="functions"):
        Custom(3)
    with pytest.raises(InvalidArgument, match="functions"):
        Custom(height, 3)
    with pytest.raises(ObjectiveError, match="must be an integer"):
        Custom(height, residual_size=1.5)
    with pytest.raises(ObjectiveError, match="at least 1"):
        Custom(height, residual_size=0)
    with pytest.raises(ObjectiveError, match="above zero"):
        Custom(height, step=0)
    with pytest.raises(ObjectiveError, match="one entry for each residual row"):
        Custom(height, lower=[0, 1]).relations(arm())
    with pytest.raises(LimitsError, match="above upper"):
        Custom(height, lower=1, upper=0).relations(arm())
    with pytest.raises(ObjectiveError, match="must be a number or"):
        Custom(height, lower=math.nan)
    with pytest.raises(ObjectiveError, match="no target"):
        Custom(height).with_target((0, 0, 0))
