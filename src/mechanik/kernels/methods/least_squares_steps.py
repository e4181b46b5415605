"""Steps of least-squares methods: damped, selectively damped, Newton and null-space steps, and columns held at limits.

The steps reduce |e + J step|^2, with the residual e (m,) and its Jacobian J (m, n). An effector is a group of
consecutive rows whose errors are limited together: the lengths or the angles of a goal. The dense linear algebra
(Cholesky, singular values) is written for the small sizes of these matrices. In the steps, v is the index of a column
and r that of a row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechanik.spatial.array import Array

from ..compiler import kernel, subroutine
from ..problem_layout import open_problem

MAX_JACOBI_SWEEPS = 40
"""Limit on Jacobi sweeps. Six to eight suffice for Jacobians of mechanisms; ill-conditioned matrices need more."""
ORTHOGONAL_COSINE = 1e-15
"""Cosine below which two vectors count as orthogonal."""
ZERO_SINGULAR_RATIO = 1e-15
"""Ratio to the Frobenius norm of the matrix below which a singular value is a rounding error and counts as zero."""


@subroutine
def solve_positive_definite(A, b):
    """Solve A x = b by Cholesky for a symmetric positive definite A, and write x into b.

    Only the lower triangle of A is read; it is overwritten. Returns False if A is not positive definite.
    """
    n = b.shape[0]
    for j in range(n):
        for k in range(j):
            b[j] -= A[j, k] * b[k]
            for i in range(j, n):
                A[i, j] -= A[i, k] * A[j, k]
        if not A[j, j] > 0.0:
            return False
        pivot = math.sqrt(A[j, j])
        for i in range(j, n):
            A[i, j] /= pivot
        b[j] /= pivot
    for j in range(n - 1, -1, -1):
        for i in range(j + 1, n):
            b[j] -= A[i, j] * b[i]
        b[j] /= A[j, j]
    return True


@subroutine
def singular_values(A, U, s, V):
    """Compute the singular value decomposition A = sum of s_i u_i v_i' by one-sided Jacobi rotations (Hestenes 1958).

    Small singular values are at least as accurate as with bidiagonalization. Those below ZERO_SINGULAR_RATIO times the
    norm of A are set to zero.

    Args:
        A: (m, n), of any shape and rank; not changed.
        U: (k, m), written: its rows are u_i; k is the smaller of m and n.
        s: (k,), written: the singular values, sorted from the largest to the smallest.
        V: (k, n), written: its rows are v_i. Where s_i is zero, u_i (if m > n) or v_i (else) is zero too.
    """
    m, n = A.shape
    largest_entry = 0.0
    for i in range(m):
        for j in range(n):
            largest_entry = max(largest_entry, abs(A[i, j]))
    scale = (
        1.0 / largest_entry if largest_entry > 0.0 else 0.0
    )  # scaled, so that squares neither overflow nor underflow
    if m <= n:
        for i in range(m):
            for j in range(n):
                V[i, j] = A[i, j] * scale
        orthogonalize_rows(V, U, s)
    else:
        for j in range(n):
            for i in range(m):
                U[j, i] = A[i, j] * scale
        orthogonalize_rows(U, V, s)
    for i in range(s.shape[0]):
        s[i] *= largest_entry


@subroutine
def orthogonalize_rows(W, R, s):
    """Rotate the rows of W (k, l) until they are orthogonal; write their lengths to s and their directions to W.

    R (k, k) becomes the orthogonal matrix with R W_before = diag(s) W_after. The rows of W and R are sorted by s,
    largest first.
    """
    k, length = W.shape
    total_square = 0.0
    for i in range(k):
        for j in range(k):
            R[i, j] = 1.0 if i == j else 0.0
        for j in range(length):
            total_square += W[i, j] * W[i, j]
    zero_square = ZERO_SINGULAR_RATIO * ZERO_SINGULAR_RATIO * total_square
    for _ in range(MAX_JACOBI_SWEEPS):
        has_rotated = False
        for p in range(k - 1):
            for q in range(p + 1, k):
                p_square, q_square, p_dot_q = 0.0, 0.0, 0.0
                for j in range(length):
                    p_square += W[p, j] * W[p, j]
                    q_square += W[q, j] * W[q, j]
                    p_dot_q += W[p, j] * W[q, j]
                if min(p_square, q_square) <= zero_square or abs(p_dot_q) <= ORTHOGONAL_COSINE * math.sqrt(
                    p_square * q_square
                ):
                    continue
                has_rotated = True
                t = (q_square - p_square) / (2.0 * p_dot_q)
                t = math.copysign(1.0, t) / (abs(t) + math.sqrt(t * t + 1.0))
                c = 1.0 / math.sqrt(t * t + 1.0)
                rotate_rows(W, p, q, c, t * c)
                rotate_rows(R, p, q, c, t * c)
        if not has_rotated:
            break
    for i in range(k):
        square = 0.0
        for j in range(length):
            square += W[i, j] * W[i, j]
        s[i] = math.sqrt(square) if square > zero_square else 0.0
        inverse_length = 1.0 / s[i] if s[i] > 0.0 else 0.0
        for j in range(length):
            W[i, j] *= inverse_length
    for i in range(k):
        largest_index = i
        for j in range(i + 1, k):
            if s[j] > s[largest_index]:
                largest_index = j
        if largest_index != i:
            s[i], s[largest_index] = s[largest_index], s[i]
            for j in range(length):
                W[i, j], W[largest_index, j] = W[largest_index, j], W[i, j]
            for j in range(k):
                R[i, j], R[largest_index, j] = R[largest_index, j], R[i, j]


@subroutine
def rotate_rows(W, p, q, c, s):
    """Rotate the rows p and q of W in their plane, by the angle with cosine c and sine s."""
    for j in range(W.shape[1]):
        a, b = W[p, j], W[q, j]
        W[p, j], W[q, j] = c * a - s * b, s * a + c * b


IndexTable = np.ndarray[Any, np.dtype[np.int64]]
COLUMN_FREE, COLUMN_HELD, COLUMN_RELEASED, COLUMN_LOCKED_AT_LIMIT = range(4)
"""States of a column: free; held at its limit; released from its limit; held again until the end of this step."""
MIN_SLOPE_RATIO = 1e-12
"""A slope below this ratio of its upper bound |e| |column of J| counts as zero."""
MIN_SINGULAR_VALUE = 1e-10
"""Smaller singular values are skipped by selective damping, as in the program of Buss and Kim."""
RANK_TOLERANCE = 1e-9
"""Singular values below this ratio of the largest, and their vectors, are rounding errors; `newton_step` skips them."""


@kernel("void(f8[::1], f8[:,::1], i8[:,::1], f8[::1], f8[::1], f8[:,::1])")
def clip_errors(residual: Array, jacobian: Array, effectors: IndexTable, max_norm: Array, e: Array, J: Array) -> None:
    """Copy the residual to e and the Jacobian to J, and shorten residuals of effectors that exceed `max_norm`.

    Args:
        residual, jacobian: (m,) and (m, n).
        effectors: (k, 2), first row and end row (exclusive) of each effector.
        max_norm: (k,), largest norm of each effector's residual; (0,): nothing is shortened.
        e, J: (m,) and (m, n), written.
    """
    m, n = jacobian.shape
    for r in range(m):
        e[r] = residual[r]
        for v in range(n):
            J[r, v] = jacobian[r, v]
    for k in range(len(max_norm)):
        first_row, end_row = effectors[k, 0], effectors[k, 1]
        square = 0.0
        for r in range(first_row, end_row):
            square += e[r] * e[r]
        if square > max_norm[k] * max_norm[k]:
            factor = max_norm[k] / math.sqrt(square)
            for r in range(first_row, end_row):
                e[r] *= factor


@kernel("b1(i8[::1], f8[::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], i8[::1], f8[:,::1], f8[:,::1])")
def update_active_limits(
    ints: IndexTable,
    floats: Array,
    jacobian: Array,
    soft_jacobian: Array,
    e: Array,
    y: Array,
    column_state: IndexTable,
    J: Array,
    soft_J: Array,
) -> bool:
    """Hold the columns at a limit that the step moves outwards; if there are none, release held columns.

    The entries of held columns become zero in J and soft_J. A held column is released, once at most, if a motion away
    from the limit decreases the linear model of the goals.

    Args:
        ints, floats: the packed problem, with the step in its table `step`.
        jacobian, soft_jacobian: Jacobians of the goals and of the soft objectives, with all columns.
        e: (m,), residual of the goals.
        y: (m,), work array.
        column_state: (n,), COLUMN_FREE, COLUMN_HELD, COLUMN_RELEASED or COLUMN_LOCKED_AT_LIMIT, updated.
        J, soft_J: the Jacobians in which held columns are zero, updated.

    Returns:
        Whether the active set has changed, so that the step has to be solved again.
    """
    problem = open_problem(ints, floats)
    m, n = J.shape
    has_changed, has_held_columns = False, False
    for v in range(n):
        x_index, step = problem.column_x[v], problem.step[v]
        has_held_columns |= column_state[v] == COLUMN_HELD
        if x_index < 0 or step == 0.0:
            continue
        x = problem.trial[x_index]
        if (step < 0.0 and x <= problem.lower[v]) or (step > 0.0 and x >= problem.upper[v]):
            has_changed = True
            column_state[v] = COLUMN_HELD if column_state[v] == COLUMN_FREE else COLUMN_LOCKED_AT_LIMIT
            for r in range(m):
                J[r, v] = 0.0
            for r in range(soft_J.shape[0]):
                soft_J[r, v] = 0.0
    if has_changed or not has_held_columns:
        return has_changed
    residual_square = 0.0
    for r in range(m):
        residual_square += e[r] * e[r]
        y[r] = e[r]
        for v in range(n):
            y[r] += J[r, v] * problem.step[v]
    for v in range(n):
        if column_state[v] != COLUMN_HELD:
            continue
        slope, column_square = 0.0, 0.0
        for r in range(m):
            slope += jacobian[r, v] * y[r]
            column_square += jacobian[r, v] * jacobian[r, v]
        x, min_slope = problem.trial[problem.column_x[v]], MIN_SLOPE_RATIO * math.sqrt(residual_square * column_square)
        if (slope < -min_slope and x <= problem.lower[v]) or (slope > min_slope and x >= problem.upper[v]):
            has_changed = True
            column_state[v] = COLUMN_RELEASED
            for r in range(m):
                J[r, v] = jacobian[r, v]
            for r in range(soft_J.shape[0]):
                soft_J[r, v] = soft_jacobian[r, v]
    return has_changed


@kernel("void(f8[::1], f8[:,::1], f8, f8, f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def spectral_step(
    e: Array, J: Array, damping: float, rank_tolerance: float, U: Array, s: Array, V: Array, step: Array
) -> None:
    """Write step = - sum of s_i / (s_i^2 + damping^2) (u_i . e) v_i over all s_i > rank_tolerance s_0.

    The singular value decomposition of J is written to U, s and V, see `singular_values`.
    """
    singular_values(J, U, s, V)
    for v in range(len(step)):
        step[v] = 0.0
    for i in range(len(s)):
        if s[i] > rank_tolerance * s[0]:
            dot = 0.0
            for r in range(len(e)):
                dot += U[i, r] * e[r]
            dot *= s[i] / (s[i] * s[i] + damping * damping)
            for v in range(len(step)):
                step[v] -= dot * V[i, v]


@kernel("void(f8[:,::1], f8[::1], f8, f8, f8[::1], f8[::1])")
def add_null_space_step(
    V: Array, s: Array, rank_tolerance: float, gain: float, secondary_step: Array, step: Array
) -> None:
    """Add gain (I - sum of v_i v_i') secondary_step to the step.

    The sum is over all s_i > rank_tolerance s_0, so only the part in the null space of J is added. `secondary_step` is
    overwritten.
    """
    for i in range(len(s)):
        if s[i] > rank_tolerance * s[0]:
            dot = 0.0
            for v in range(len(step)):
                dot += V[i, v] * secondary_step[v]
            for v in range(len(step)):
                secondary_step[v] -= dot * V[i, v]
    for v in range(len(step)):
        step[v] += gain * secondary_step[v]


@kernel("b1(f8[::1], f8[:,::1], f8, f8[:,::1], f8[::1], f8[::1])")
def damped_step(e: Array, J: Array, squared_damping: float, A: Array, y: Array, step: Array) -> bool:
    """Write the damped least-squares step -J' (J J' + squared_damping I)^-1 e.

    The equal form -(J'J + squared_damping I)^-1 J'e is used if its matrix is smaller.

    A (k, k) and y (k,) are work arrays; k is the smaller of m and n. Returns False if the matrix is not positive
    definite because the damping is lost in rounding.
    """
    m, n = J.shape
    if m <= n:
        for i in range(m):
            y[i] = e[i]
            for j in range(i + 1):
                dot = 0.0
                for v in range(n):
                    dot += J[i, v] * J[j, v]
                A[i, j] = dot
            A[i, i] += squared_damping
        is_solved = solve_positive_definite(A, y)
        for v in range(n):
            step[v] = 0.0
        for i in range(m):
            for v in range(n):
                step[v] -= J[i, v] * y[i]
        return is_solved
    for v in range(n):
        y[v] = 0.0
        for u in range(v + 1):
            A[v, u] = 0.0
    for i in range(m):
        for v in range(n):
            y[v] += J[i, v] * e[i]
            for u in range(v + 1):
                A[v, u] += J[i, v] * J[i, u]
    for v in range(n):
        A[v, v] += squared_damping
    is_solved = solve_positive_definite(A, y)
    for v in range(n):
        step[v] = -y[v]
    return is_solved


@kernel("void(f8[::1], f8[:,::1], i8[:,::1], f8, f8[:,::1], f8[::1], f8[:,::1], f8[::1], f8[::1])")
def selective_step(
    e: Array, J: Array, effectors: IndexTable, gamma_max: float, U: Array, s: Array, V: Array, rho: Array, step: Array
) -> None:
    """Write the selectively damped least-squares step of Buss and Kim (2005).

    N, M, alpha, gamma and rho are the symbols of the paper.

    Args:
        e, J: residual (m,) and Jacobian (m, n).
        effectors: (k, 2), first row and end row (exclusive) of each effector.
        gamma_max: largest change of a column by one singular vector, in units of the columns; the sum of the changes by
            all singular vectors may be larger.
        U, s, V: written: the singular value decomposition of J, see `singular_values`.
        rho: (n,), written: sum over the effectors of the distance that each moves for a unit of the column.
        step: (n,), written.
    """
    m, n = J.shape
    singular_values(J, U, s, V)
    for v in range(n):
        step[v] = 0.0
        rho[v] = 0.0
        for k in range(len(effectors)):
            square = 0.0
            for r in range(effectors[k, 0], effectors[k, 1]):
                square += J[r, v] * J[r, v]
            rho[v] += math.sqrt(square)
    for i in range(len(s)):
        if s[i] <= MIN_SINGULAR_VALUE:
            continue
        alpha, N, M = 0.0, 0.0, 0.0
        for r in range(m):
            alpha += U[i, r] * e[r]
        for k in range(len(effectors)):  # N: sum of the distances that the effectors should move
            square = 0.0
            for r in range(effectors[k, 0], effectors[k, 1]):
                square += U[i, r] * U[i, r]
            N += math.sqrt(square)
        largest_component = 0.0
        for v in range(n):  # M: sum of the distances that the joints move the effectors
            M += abs(V[i, v]) * rho[v]
            largest_component = max(largest_component, abs(V[i, v]))
        M /= s[i]
        gamma = gamma_max * min(1.0, N / M)
        factor = -alpha / s[i]
        largest_change = abs(factor) * largest_component
        if largest_change > gamma:
            factor *= gamma / largest_change
        for v in range(n):
            step[v] += factor * V[i, v]


@kernel("f8(f8[::1], f8[:,::1], f8, f8[:,::1], f8[::1], f8[:,::1], f8[::1])")
def newton_step(e: Array, J: Array, damping: float, U: Array, s: Array, V: Array, step: Array) -> float:
    """Write step = - sum of (u_i . e) / (s_i + damping) v_i; return the slope of |e|^2 / 2 along the step.

    Singular values below RANK_TOLERANCE times the largest are skipped. The singular value decomposition of J is written
    to U, s and V, see `singular_values`.
    """
    singular_values(J, U, s, V)
    for v in range(len(step)):
        step[v] = 0.0
    slope = 0.0
    for i in range(len(s)):
        if s[i] > RANK_TOLERANCE * s[0]:
            dot = 0.0
            for r in range(len(e)):
                dot += U[i, r] * e[r]
            slope -= dot * dot * s[i] / (s[i] + damping)
            for v in range(len(step)):
                step[v] -= dot / (s[i] + damping) * V[i, v]
    return slope
