"""The fast sine and cosine of the kernels against the math library."""

from __future__ import annotations

import math

import numpy as np
import pytest
from compiled_kernels import compiled
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def sincos():
    import numba

    kernel_sincos = compiled("nodes").sincos  # Python cannot call it directly
    return numba.njit(lambda x: kernel_sincos(x), error_model="numpy")


@given(x=st.floats(-1e7, 1e7))
def test_sine_and_cosine_equal_the_math_library(sincos, x):
    s, c = sincos(x)
    assert s == pytest.approx(math.sin(x), abs=3e-16)
    assert c == pytest.approx(math.cos(x), abs=3e-16)


def test_samples_over_six_turns_are_exact_to_the_last_bits(sincos):
    x = np.linspace(-20, 20, 20001)
    pairs = np.array([sincos(value) for value in x])
    assert np.abs(pairs[:, 0] - np.sin(x)).max() < 3e-16
    assert np.abs(pairs[:, 1] - np.cos(x)).max() < 3e-16


def test_zero_is_exact_and_values_that_are_not_finite_give_nan(sincos):
    assert sincos(0.0) == (0.0, 1.0)
    assert sincos(1e-300)[0] == 1e-300
    for x in (math.nan, math.inf, -math.inf):
        assert all(math.isnan(value) for value in sincos(x))
    assert sincos(1e18) == (math.sin(1e18), math.cos(1e18))
