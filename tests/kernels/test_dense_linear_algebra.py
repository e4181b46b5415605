"""Cholesky solve and singular value decomposition of the method kernels, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_kernels import compiled
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def dense():
    """Both subroutines behind compiled wrappers, since Python cannot call subroutines."""
    import numba

    singular_values, solve_positive_definite = (
        compiled("methods.least_squares_steps").singular_values,
        compiled("methods.least_squares_steps").solve_positive_definite,
    )
    functions = (
        numba.njit(lambda A, b: solve_positive_definite(A, b)),
        numba.njit(lambda A, U, s, V: singular_values(A, U, s, V)),
    )

    class Dense:
        solve, svd = (staticmethod(function) for function in functions)

    return Dense


sizes, seeds = st.integers(1, 14), st.integers(0, 2**32 - 1)


def decompose(dense, A):
    m, n = A.shape
    k = min(m, n)
    A_before, U, s, V = A.copy(), np.full((k, m), np.nan), np.full(k, np.nan), np.full((k, n), np.nan)
    dense.svd(A, U, s, V)
    assert np.array_equal(A, A_before, equal_nan=True)
    return U, s, V


def check_decomposition(dense, A):
    U, s, V = decompose(dense, A)
    size = max(np.abs(A).max(initial=0.0), 1e-300) * max(A.shape)
    assert np.abs((U.T * s) @ V - A).max(initial=0.0) < 1e-14 * size
    assert np.abs(s - np.linalg.svd(A, compute_uv=False)).max() < 1e-14 * size
    assert np.all(np.diff(s) <= 0)
    assert np.all(s >= 0)
    for vectors in (U[s > 0], V[s > 0]):
        assert np.abs(vectors @ vectors.T - np.eye(len(vectors))).max(initial=0.0) < 1e-13
    return s


@given(m=sizes, n=sizes, seed=seeds)
def test_singular_values_and_vectors_reproduce_the_matrix(dense, m, n, seed):
    check_decomposition(dense, np.random.default_rng(seed).standard_normal((m, n)))


@given(m=sizes, n=sizes, rank=st.integers(0, 14), seed=seeds)
def test_rank_deficient_matrices_have_zero_singular_values(dense, m, n, rank, seed):
    rng, rank = np.random.default_rng(seed), min(m, n, rank)
    A = np.linalg.qr(rng.standard_normal((m, m)))[0][:, :rank] @ np.linalg.qr(rng.standard_normal((n, n)))[0][:rank]
    s = check_decomposition(dense, A)
    assert s[:rank] == pytest.approx(np.ones(rank))
    assert np.all(s[rank:] < 1e-14)


@given(m=sizes, n=sizes, seed=seeds, power=st.integers(-200, 200))
def test_zero_rows_zero_columns_and_any_scale_are_decomposed(dense, m, n, seed, power):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) * 10.0**power
    A[rng.random(m) < 0.4] = 0.0
    A[:, rng.random(n) < 0.4] = 0.0
    check_decomposition(dense, A)


def test_zero_column_is_exactly_zero_in_vectors_with_nonzero_singular_value(dense):
    rng = np.random.default_rng(0)
    for m, n in ((6, 7), (12, 5)):
        A = rng.standard_normal((m, n))
        A[:, 3] = 0.0
        _, s, V = decompose(dense, A)
        assert np.all(V[s > 0, 3] == 0.0)


def test_zero_matrix_has_zero_singular_values(dense):
    for shape in ((3, 5), (5, 3), (1, 1)):
        assert np.array_equal(decompose(dense, np.zeros(shape))[1], np.zeros(min(shape)))


def test_small_singular_values_of_scaled_rows_have_full_relative_accuracy(dense):
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    scales = 10.0 ** -np.arange(0.0, 12.0, 2.0)
    s = decompose(dense, scales[:, None] * Q)[1]
    assert s == pytest.approx(scales, rel=1e-13)


def test_nan_does_not_loop_forever(dense):
    A = np.ones((4, 5))
    A[2, 2] = np.nan
    decompose(dense, A)  # returns


@given(n=sizes, seed=seeds)
def test_positive_definite_systems_are_solved(dense, n, seed):
    rng = np.random.default_rng(seed)
    B, b = rng.standard_normal((n, n)), rng.standard_normal(n)
    A = B @ B.T + np.eye(n)
    x = b.copy()
    assert dense.solve(np.tril(A), x)  # the upper triangle is not read
    assert A @ x == pytest.approx(b, abs=1e-11)


def test_matrices_that_are_not_positive_definite_are_reported(dense):
    for A in (np.zeros((2, 2)), np.diag([1.0, -1.0]), np.array([[1.0, 2.0], [2.0, 1.0]]), np.full((2, 2), np.nan)):
        assert not dense.solve(A.copy(), np.ones(2))
