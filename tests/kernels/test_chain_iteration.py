"""Derivatives of the residuals of the chain kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechanik.kernels import chain_iteration
from mechanik.kernels.chain_layout import (
    IS_PARTIAL,
    MODEL_HEAD,
    POSITION_WEIGHT,
    ROTATION_AXES,
    ROTATION_ROW_MAP,
    ROTATION_WEIGHT,
    ROW_WEIGHTS,
    workspace_size,
)
from mechanik.spatial import rotation


@pytest.mark.parametrize("weight", [1.0, 3.0, 0.2])
def test_row_map_of_a_partial_rotation_is_the_derivative_of_its_residual(weight):
    """Once a rotation weight other than 1 scaled a term of the derivative twice."""
    model = np.zeros(MODEL_HEAD)
    model[[POSITION_WEIGHT, IS_PARTIAL]] = 1.0
    model[ROW_WEIGHTS : ROW_WEIGHTS + 6] = 1.0
    model[ROTATION_WEIGHT] = weight
    R_target = rotation.exp(np.array([-0.4, 0.6, 0.1]))
    work = np.zeros(workspace_size(1, 1))
    work[ROTATION_AXES : ROTATION_AXES + 9] = R_target.ravel()

    def evaluate(R):
        e = weight * rotation.log(R_target @ R.T)
        log_factor = chain_iteration.rotation_log_factor(float(np.trace(R_target @ R.T)))
        residual = chain_iteration.partial_residual(
            0.0, model, work, tuple(R.T.ravel()), 0.0, 0.0, 0.0, *e.tolist(), *log_factor
        )
        row_map = work[ROTATION_ROW_MAP : ROTATION_ROW_MAP + 9].reshape(3, 3)
        return np.array(residual[3:6]), weight * row_map

    R = rotation.exp(np.array([0.3, -0.2, 0.5]))
    h = 1e-6
    columns = [
        (evaluate(rotation.exp(h * axis) @ R)[0] - evaluate(rotation.exp(-h * axis) @ R)[0]) / (2 * h)
        for axis in np.eye(3)
    ]
    np.testing.assert_allclose(evaluate(R)[1], -np.array(columns).T, atol=1e-8)


@pytest.mark.parametrize("angle", [1e-3, 0.1, 1.0, 2.0, 3.0, 3.1415])
def test_factor_of_the_rotation_vector_is_that_of_the_closed_form(angle):
    factor, half_cosine2 = chain_iteration.rotation_log_factor(1.0 + 2.0 * math.cos(angle))
    assert half_cosine2 == pytest.approx(math.cos(angle / 2) ** 2, rel=1e-7)
    # the trace determines the angle only up to the rounding of 1 + cos(angle)
    assert factor == pytest.approx(angle / (2.0 * math.sin(angle)), rel=1e-14 + 1e-16 / half_cosine2)
