"""Quadratic programs of the tracking kernel, and the layout of its tables, options and work arrays.

A level minimises a convex quadratic form, the error of its residual rates plus damping, between bounds, by the dual
method of Goldfarb and Idnani (1983). It starts at the unconstrained minimum and adds violated bounds to the active
set. So it needs no feasible start and detects infeasible bounds, which occur where loops and limits meet.
"""

from __future__ import annotations

import math

from ..compiler import subroutine

# rows of `column_table`, in units of the column, per second for rates
(
    MAX_VELOCITY,
    MAX_ACCELERATION,
    RATE,
    CURVATURE_RATE,
    RATE_MIN,
    RATE_MAX,
    RATE_MIN_WITHOUT_ACCELERATION,
    RATE_MAX_WITHOUT_ACCELERATION,
    VALUE_MIN,
    VALUE_MAX,
    START_RATE,
    IS_COUPLED,
) = range(12)
"""Largest velocity and acceleration (infinite if unlimited); the present velocity; for a dependent column, the part of
its velocity that the linear step does not contain, from the last step; the bounds of the next velocity, first with
and then without the acceleration limits; the limits of the value; the velocity before the step; 1 if loops or joint
constraints couple the column to others, else 0."""
COLUMN_TABLE_ROWS = 12

# elements of `options`
(
    TIME_STEP,
    LIMIT_APPROACH_RATE,
    SINGULARITY_DAMPING,
    SINGULARITY_DISTANCE,
    FOLLOWS_TARGET_VELOCITY,
    HARD_RESIDUAL_TOLERANCE,
    IS_TOO_NEAR,
) = range(7)
"""The time step (s); for coupled columns, the largest velocity towards a limit as a share of the remaining distance
(1/s); the damping at a singularity, and the distance from a singularity below which damping starts, in units of
residual over columns; whether the velocity of moving targets is followed; the tolerance of the hard residual;
whether a pair is too near, so that limits come first and separation second."""
OPTION_COUNT = 7

# result of a step
STEP_MOVED, STEP_BRAKED, STEP_STOPPED = range(3)
"""The step is within all limits; no velocity is within all limits, because of loops or of bounds on several columns, so
the acceleration limits are exceeded; the mechanism stops, because no such velocity exists either."""

# the active bound of a column's velocity; negative for the lower bound
NOT_LIMITED, BY_ACCELERATION, BY_VELOCITY, BY_POSITION = range(4)

WANTED_RATE, MIN_RATE = 2, 3
"""Further columns of `edges`, after the two bounds of a rate: the desired rate, and the smallest allowed rate where the
desired rate is not feasible."""

LIMIT_SHARE = 1.0 - 1e-9
"""Share of the limits that is used, so that rounding does not exceed them."""
COUPLED_LIMIT_SHARE = 1.0 - 1e-6
"""The same for coupled columns, whose velocity is known only after the loops are closed."""

# work arrays `matrices`, `vectors` and `indices` (integers); all of a kind have the size of the largest, so that each
# kind is one array
(
    MATRIX_HARD,
    MATRIX_ROW_OPERATIONS,
    MATRIX_BASIS,
    MATRIX_FREE_BASIS,
    MATRIX_ALL,
    MATRIX_LEVEL,
    MATRIX_HESSIAN,
    MATRIX_FACTOR,
    MATRIX_BOUNDS,
    MATRIX_QP_J,
    MATRIX_QP_R,
    MATRIX_GRAM,
    MATRIX_GRAM_FACTOR,
    MATRIX_ROWS,
    MATRIX_BANDS,
) = range(15)
(VECTOR_RATES, VECTOR_STRAIGHT, VECTOR_CURVED, VECTOR_RESIDUAL, VECTOR_CHANGE, VECTOR_ERROR, VECTOR_PAST_ERROR,
 VECTOR_RATE, VECTOR_LOW, VECTOR_HIGH, VECTOR_Y, VECTOR_GOAL, VECTOR_TARGET_RATE, VECTOR_MULTIPLIER, VECTOR_RATIO,
 VECTOR_ROTATED, VECTOR_DIRECTION, VECTOR_LINE, VECTOR_PIVOT_SIZE, VECTOR_SEPARATION) = range(20)  # fmt: skip
(INDEX_ROW, INDEX_COLUMN, INDEX_PIVOT, INDEX_PIVOT_COLUMN, INDEX_HELD, INDEX_LIMITED, INDEX_LACKING) = range(7)
MATRIX_COUNT, VECTOR_COUNT, INDEX_COUNT = 15, 20, 7


DEPENDENT_BOUND_RATIO = 1e-13
"""Share of a bound's squared normal below which it depends linearly on the active bounds."""


@subroutine
def factor_cholesky(H, L, d):
    """Factor H = L L' for the leading d rows and columns; return False if H is not positive definite."""
    for i in range(d):
        for j in range(i + 1):
            total = H[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                L[i, i] = math.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    return True


@subroutine
def solve_cholesky(L, b, d):
    """Solve L L' x = b in place."""
    for i in range(d):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]
    for i in range(d - 1, -1, -1):
        for k in range(i + 1, d):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]


@subroutine
def invert_transposed(L, J, d):
    """Write J = L^-T, upper triangular."""
    for c in range(d):
        for i in range(d):
            J[c, i] = 0.0
        J[c, c] = 1.0 / L[c, c]
        for i in range(c + 1, d):
            total = 0.0
            for k in range(c, i):
                total -= L[i, k] * J[c, k]
            J[c, i] = total / L[i, i]


@subroutine
def add_bound(J, R, w, d, count):
    """Add a bound to the active set; return False if its normal depends on those of the active bounds.

    Givens rotations of J make w = J' normal zero below index `count`; w becomes the new column of R.
    """
    for j in range(d - 1, count, -1):
        h = math.hypot(w[j - 1], w[j])
        if w[j] == 0.0 or h == 0.0:
            continue
        c, s = w[j - 1] / h, w[j] / h
        w[j - 1], w[j] = h, 0.0
        for k in range(d):
            a, b = J[k, j - 1], J[k, j]
            J[k, j - 1], J[k, j] = c * a + s * b, c * b - s * a
    for k in range(count + 1):
        R[k, count] = w[k]
    return abs(w[count]) > 0.0


@subroutine
def drop_bound(J, R, u, active, d, count, dropped):
    """Remove bound number `dropped` from the active set and make R triangular again."""
    for c in range(dropped, count - 1):
        active[c], u[c] = active[c + 1], u[c + 1]
        for k in range(count):
            R[k, c] = R[k, c + 1]
    u[count - 1], u[count] = u[count], 0.0
    for k in range(count):
        R[k, count - 1] = 0.0
    count -= 1
    for j in range(dropped, count):
        h = math.hypot(R[j, j], R[j + 1, j])
        if R[j + 1, j] == 0.0 or h == 0.0:
            continue
        c, s = R[j, j] / h, R[j + 1, j] / h
        for k in range(j, count):
            a, b = R[j, k], R[j + 1, k]
            R[j, k], R[j + 1, k] = c * a + s * b, c * b - s * a
        for k in range(d):
            a, b = J[k, j], J[k, j + 1]
            J[k, j], J[k, j + 1] = c * a + s * b, c * b - s * a


@subroutine
def most_violated(C, low, high, y, k, d, active, count):
    """Return the most violated bound: its violation (negative), its index (-1: none) and its side (1 lower, -1 upper).

    Violations within rounding do not count.
    """
    largest, index, index_side = 0.0, -1, 1
    for i in range(k):
        value = 0.0
        for j in range(d):
            value += C[i, j] * y[j]
        above_low, below_high = value - low[i], high[i] - value
        side, slack = (1, above_low) if above_low < below_high else (-1, below_high)
        if slack < largest and slack < -1e-12 * (1.0 + abs(value)):
            is_active = False
            for c in range(count):
                if active[c] == i:
                    is_active = True
            if not is_active:
                largest, index, index_side = slack, i, side
    return largest, index, index_side


@subroutine
def minimize_within_bounds(matrices, vectors, indices, L, y, C, low, high, k, d):
    """Move y from the unconstrained minimum of a quadratic form to its minimum subject to low <= C y <= high.

    Args:
        matrices, vectors, indices: work arrays.
        L: Cholesky factor of the form.
        y: the unconstrained minimum; overwritten by the solution.
        k, d: number of bounds, and length of y.

    Returns:
        False if the bounds are infeasible; then y is not valid.
    """
    active, count = indices[INDEX_HELD], 0
    _, p, _ = most_violated(C, low, high, y, k, d, active, count)
    if p < 0:
        return True
    J, R = matrices[MATRIX_QP_J], matrices[MATRIX_QP_R]
    invert_transposed(L, J, d)
    u, r, w, z = vectors[VECTOR_MULTIPLIER], vectors[VECTOR_RATIO], vectors[VECTOR_ROTATED], vectors[VECTOR_DIRECTION]
    for _ in range(10 * (k + d)):
        slack, p, side = most_violated(C, low, high, y, k, d, active, count)
        if p < 0:
            return True
        u[count] = 0.0
        while True:
            normal_square, free_square = 0.0, 0.0
            for j in range(d):
                total = 0.0
                for i in range(d):
                    total += J[i, j] * side * C[p, i]
                w[j] = total
                normal_square += total * total
            for i in range(d):
                total = 0.0
                for j in range(count, d):
                    total += J[i, j] * w[j]
                z[i] = total
            for j in range(count, d):
                free_square += w[j] * w[j]
            for i in range(count - 1, -1, -1):
                total = w[i]
                for j in range(i + 1, count):
                    total -= R[i, j] * r[j]
                r[i] = total / R[i, i]
            dual, dropped = math.inf, -1
            for j in range(count):
                if r[j] > 0.0 and u[j] < dual * r[j]:
                    dual, dropped = u[j] / r[j], j
            primal = -slack / free_square if free_square > DEPENDENT_BOUND_RATIO * normal_square else math.inf
            t = min(dual, primal)
            if not t < math.inf:
                return False
            for j in range(count):
                u[j] -= t * r[j]
            u[count] += t
            if primal < math.inf:
                for i in range(d):
                    y[i] += t * z[i]
            if primal <= dual:
                active[count] = p
                if not add_bound(J, R, w, d, count):
                    return False
                count += 1
                break
            if primal < math.inf:
                slack += t * free_square
            drop_bound(J, R, u, active, d, count, dropped)
            count -= 1
    return False


RANK_RATIO = 1e-8
"""Share of the norm of a level's largest row below which a remaining row counts as linearly dependent."""


@subroutine
def singularity_damping(matrices, vectors, A, m, d, options):
    """Return the squared damping of a level: zero far from singularities, SINGULARITY_DAMPING squared at one.

    The distance from a singularity is measured by the harmonic mean of the squared singular values over their
    number. It is smooth and never larger than the smallest of them.
    """
    k = min(m, d)
    if k == 0:
        return 0.0
    G, L = matrices[MATRIX_GRAM], matrices[MATRIX_GRAM_FACTOR]
    for i in range(k):
        for j in range(i + 1):
            total = 1e-12 if i == j else 0.0
            if m <= d:
                for c in range(d):
                    total += A[i, c] * A[j, c]
            else:
                for r in range(m):
                    total += A[r, i] * A[r, j]
            G[i, j] = total
    if not factor_cholesky(G, L, k):
        return options[SINGULARITY_DAMPING] * options[SINGULARITY_DAMPING]
    inverse_trace, column = 0.0, vectors[VECTOR_LINE]
    for c in range(k):  # the squared columns of L^-1 sum up to the trace of G^-1
        for i in range(c, k):
            total = 1.0 if i == c else 0.0
            for j in range(c, i):
                total -= L[i, j] * column[j]
            column[i] = total / L[i, i]
            inverse_trace += column[i] * column[i]
    closeness = 1.0 - 1.0 / (inverse_trace * options[SINGULARITY_DISTANCE] * options[SINGULARITY_DISTANCE])
    return (options[SINGULARITY_DAMPING] * closeness) ** 2 if closeness > 0.0 else 0.0


@subroutine
def level_hessian(A, band, B, m, n, d, damping, is_orthonormal, H):
    """Write H = A'A + damping B'B, over the active rows."""
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            if not is_orthonormal:
                for v in range(n):
                    total += B[v, i] * B[v, j]
            elif i == j:
                total = 1.0
            total *= damping
            for r in range(m):
                if band[r, 2] != 0.0:
                    total += A[r, i] * A[r, j]
            H[i, j] = total


@subroutine
def unbounded_minimum(A, L, rate, band, m, d, y):
    """Write the unconstrained minimum for the residual rates `rate` into y."""
    for j in range(d):
        y[j] = 0.0
    for r in range(m):
        if band[r, 2] != 0.0 and rate[r] != 0.0:
            for j in range(d):
                y[j] += A[r, j] * rate[r]
    solve_cholesky(L, y, d)


@subroutine
def remaining_rate(A, rate, band, m, d, y):
    """Return the norm of the part of `rate` that y does not achieve, over the active rows."""
    square = 0.0
    for r in range(m):
        if band[r, 2] != 0.0:
            total = rate[r]
            for j in range(d):
                total -= A[r, j] * y[j]
            square += total * total
    return math.sqrt(square)


@subroutine
def reduce_basis(matrices, vectors, A, B, band, m, n, d):
    """Reduce B to the columns that do not move the active rows of a level, and return their number.

    Householder reflections rotate B so that its first columns move the rows; these are removed.
    """
    X, u = matrices[MATRIX_ROWS], vectors[VECTOR_LINE]
    largest = 0.0
    for r in range(m):
        size = 0.0
        for j in range(d):
            X[r, j] = A[r, j] * band[r, 2]
            size += X[r, j] * X[r, j]
        largest = max(largest, size)
    rank = 0
    while rank < min(m, d):
        p, best = -1, RANK_RATIO * RANK_RATIO * largest
        for r in range(m):
            total = 0.0
            for j in range(rank, d):
                total += X[r, j] * X[r, j]
            if total > best:
                p, best = r, total
        if p < 0:
            break
        # the reflection that maps the rest of row p onto one axis
        size = math.sqrt(best)
        head = X[p, rank] + math.copysign(size, X[p, rank])
        square = best - X[p, rank] * X[p, rank] + head * head
        u[rank] = head
        for j in range(rank + 1, d):
            u[j] = X[p, j]
        for r in range(m):
            reflect_row(X, r, u, rank, d, square)
        for v in range(n):
            reflect_row(B, v, u, rank, d, square)
        for j in range(rank, d):
            X[p, j] = 0.0
        rank += 1
    for v in range(n):
        for j in range(d - rank):
            B[v, j] = B[v, j + rank]
    return d - rank


@subroutine
def reflect_row(matrices, r, u, first, d, square):
    total = 0.0
    for j in range(first, d):
        total += matrices[r, j] * u[j]
    total *= 2.0 / square
    for j in range(first, d):
        matrices[r, j] -= total * u[j]
