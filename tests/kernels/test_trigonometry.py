"""Our own sine and cosine."""

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

    inside = compiled("nodes").sincos  # kernels call it, and Python cannot
    return numba.njit(lambda x: inside(x), error_model="numpy")


@given(x=st.floats(-1e7, 1e7))
def test_sine_and_cosine_are_those_of_the_library(sincos, x):
    s, c = sincos(x)
    assert s == pytest.approx(math.sin(x), abs=3e-16)
    assert c == pytest.approx(math.cos(x), abs=3e-16)


def test_dense_samples_of_some_turns_are_exact_to_the_last_bits(sincos):
    x = np.linspace(-20, 20, 20001)
    pairs = np.array([sincos(one) for one in x])
    assert np.abs(pairs[:, 0] - np.sin(x)).max() < 3e-16
    assert np.abs(pairs[:, 1] - np.cos(x)).max() < 3e-16


def test_zero_is_exact_and_what_is_not_finite_stays_so(sincos):
    assert sincos(0.0) == (0.0, 1.0)
    assert sincos(1e-300)[0] == 1e-300
    for x in (math.nan, math.inf, -math.inf):
        assert all(math.isnan(one) for one in sincos(x))
    assert sincos(1e18) == (math.sin(1e18), math.cos(1e18))
