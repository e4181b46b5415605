"""Axes along which the residual of a link goal is measured."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mechanik.objectives.pose_constraints import axes_from_z
from mechanik.spatial import rotation

NUMBERS = st.floats(-1, 1) | st.sampled_from([0.0, 1e-8, -1e-12])


@given(NUMBERS, NUMBERS, st.sampled_from([1.0, -1.0, 0.0, 0.3, -0.7, -1e-9]))
def test_axes_from_z_is_the_smallest_rotation_of_z_onto_a_direction(x, y, z):
    direction = np.array([x, y, z])
    if np.linalg.norm(direction) < 1e-6:
        return
    direction /= np.linalg.norm(direction)
    R = axes_from_z(direction)
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(R[:, 2], direction, atol=1e-15)
    np.testing.assert_allclose(R, rotation.between((0, 0, 1), direction), atol=1e-14)
