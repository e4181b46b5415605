from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from spatial_cases import directions, vectors

from mechanik.errors import NotARotation
from mechanik.spatial.vector_math import cross, has_positive_determinant, length, unit


@given(vectors(), vectors())
def test_the_cross_product_equals_that_of_numpy(a, b):
    assert np.array_equal(cross(a, b), np.cross(a, b))


@given(directions())
def test_unit_vectors_are_accurate_at_any_scale(v):
    for scale in (1e-300, 1e-160, 1.0, 1e160, 1e300):
        np.testing.assert_allclose(unit(v * scale, "v"), v, rtol=0, atol=1e-15)
    assert length(unit(v, "v")) == pytest.approx(1.0, abs=4e-16)


def test_a_zero_vector_in_a_batch_is_named():
    with pytest.raises(NotARotation, match="the axle is zero"):
        unit(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), "the axle")


def test_determinants_of_singular_matrices_are_not_positive_and_give_no_warning():
    """Where all of a row but one entry is nearly zero, a pivot was zero, and NumPy warned of a division by zero."""
    singular = np.array([[1e-301, 7e-301, -0.2], [1.0, 7.0, 0.0], [2.0, 14.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        is_positive = has_positive_determinant(np.array([np.eye(3), -np.eye(3), np.zeros((3, 3)), singular]))
    assert is_positive.tolist() == [True, False, False, False]
