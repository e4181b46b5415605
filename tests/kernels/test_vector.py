"""Vectors of eight lanes: every lane computes what a float computes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

numba = pytest.importorskip("numba")

from compiled_kernels import compiled  # noqa: E402

bounded_sincos, vector = compiled("nodes").bounded_sincos, compiled("vector")
LANES, eight_doubles, eight_floats, lanes_of = vector.LANES, vector.eight_doubles, vector.eight_floats, vector.lanes_of
load, root, broadcast, store = vector.load, vector.root, vector.broadcast, vector.store
where_less, widen = vector.where_less, vector.widen

NUMBERS = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=LANES, max_size=LANES)


@numba.njit
def arithmetic(a, b, out):
    like = eight_doubles(0.0)
    x, y = load(like, a, 0), load(like, b, 0)
    store(out, 0, x + y)
    store(out, 8, x - y)
    store(out, 16, x * y)
    store(out, 24, x / y)
    store(out, 32, 2.5 * x - 1)
    store(out, 40, where_less(x, y, x, y))
    store(out, 48, root(x))
    z = broadcast(like, 3.0)
    z += x
    z -= y
    z *= 2.0
    store(out, 56, z)
    return lanes_of(like) + 100 * lanes_of(1.0)


@given(NUMBERS, NUMBERS)
def test_every_lane_computes_like_a_float(a, b):
    a, b, out = np.array(a), np.array(b), np.empty(64)
    assert arithmetic(a, b, out) == LANES + 100
    with np.errstate(all="ignore"):
        expected = [a + b, a - b, a * b, a / b, 2.5 * a - 1, np.where(a < b, a, b), np.sqrt(a), ((3.0 + a) - b) * 2.0]
    for lane, expected_lane in zip(out.reshape(8, 8), expected, strict=True):
        np.testing.assert_array_equal(lane, expected_lane)


@numba.njit
def sincos_lanes(a, out):
    s, c = bounded_sincos(load(eight_doubles(0.0), a, 0))
    store(out, 0, s)
    store(out, 8, c)


@given(st.lists(st.floats(-1e5, 1e5), min_size=LANES, max_size=LANES))
def test_sine_and_cosine_of_lanes_equal_numpy(a):
    a, out = np.array(a), np.empty(16)
    sincos_lanes(a, out)
    np.testing.assert_allclose(out, [*np.sin(a), *np.cos(a)], atol=5e-16)


@numba.njit
def widened(a, out):
    x = load(eight_floats(0.0), a, 0)
    store(out, 0, widen(x * 0.5))


def test_floats_of_32_bits_widen_without_loss():
    a, out = np.linspace(-3, 7, LANES).astype(np.float32), np.empty(LANES)
    widened(a, out)
    np.testing.assert_array_equal(out, a.astype(np.float64) * 0.5)
