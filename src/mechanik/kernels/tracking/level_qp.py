"""Quadratic programs of the tracking kernel.

A level minimises a convex quadratic form between bounds: the squared error of its residual rates plus damping. The
solver is the dual method of Goldfarb and Idnani (1983). It starts at the unconstrained minimum and adds violated bounds
to the active set. So it needs no feasible point to start from, and it detects infeasible bounds, which occur where
loops contradict limits.

The letters of the code: y (d,) is the unknown, H = L L' the Hessian, C (k, d) the normals of the bounds, lower <= C y
<= upper. A level adds B y to the velocities of all n columns, with the basis B (n, d); v is the index of a column. A
(m, d) is the Jacobian of a level's m rows with respect to y; r is the index of a row. `tracking` are the tables of
`tracking_layout.py`, which also explains rates and bands.
"""

from __future__ import annotations

import math

from ..compiler import subroutine

DEPENDENT_BOUND_RATIO = 1e-13
"""A bound depends linearly on the active bounds if the squared part of its normal in their null space is below this
ratio of its squared normal, in the metric of the inverse Hessian."""


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
    """Solve L L' x = b in place, for the leading d rows and columns."""
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
    """Write the inverse of L' to J, upper triangular."""
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
def add_bound(J, R, w, d, active_count):
    """Add a bound to the active set; return False if its normal depends linearly on those of the active bounds.

    Givens rotations of the columns of J make w = J' normal zero after index `active_count`; w becomes the new column of
    R.
    """
    for j in range(d - 1, active_count, -1):
        length = math.hypot(w[j - 1], w[j])
        if w[j] == 0.0 or length == 0.0:
            continue
        cosine, sine = w[j - 1] / length, w[j] / length
        w[j - 1], w[j] = length, 0.0
        for k in range(d):
            x, y = J[k, j - 1], J[k, j]
            J[k, j - 1], J[k, j] = cosine * x + sine * y, cosine * y - sine * x
    for k in range(active_count + 1):
        R[k, active_count] = w[k]
    return abs(w[active_count]) > 0.0


@subroutine
def drop_bound(J, R, u, active_bounds, d, active_count, dropped_index):
    """Remove the bound with the index `dropped_index` from the active set; Givens rotations make R triangular again.

    Args:
        u: multipliers of the active bounds, followed by that of the bound that is being added.
        active_bounds: indices of the active bounds.
    """
    for i in range(dropped_index, active_count - 1):
        active_bounds[i], u[i] = active_bounds[i + 1], u[i + 1]
        for k in range(active_count):
            R[k, i] = R[k, i + 1]
    u[active_count - 1], u[active_count] = u[active_count], 0.0
    for k in range(active_count):
        R[k, active_count - 1] = 0.0
    active_count -= 1
    for j in range(dropped_index, active_count):
        length = math.hypot(R[j, j], R[j + 1, j])
        if R[j + 1, j] == 0.0 or length == 0.0:
            continue
        cosine, sine = R[j, j] / length, R[j + 1, j] / length
        for k in range(j, active_count):
            x, y = R[j, k], R[j + 1, k]
            R[j, k], R[j + 1, k] = cosine * x + sine * y, cosine * y - sine * x
        for k in range(d):
            x, y = J[k, j], J[k, j + 1]
            J[k, j], J[k, j + 1] = cosine * x + sine * y, cosine * y - sine * x


@subroutine
def most_violated_bound(C, lower, upper, y, k, d, active_bounds, active_count):
    """Return the slack (negative), the index (-1: none) and the side (1 lower, -1 upper) of the most violated bound.

    Active bounds, and violations within rounding, are ignored. The slack is 0 if there is no such bound.
    """
    lowest_slack, violated_index, violated_side = 0.0, -1, 1
    for i in range(k):
        value = 0.0
        for j in range(d):
            value += C[i, j] * y[j]
        lower_slack, upper_slack = value - lower[i], upper[i] - value
        side, slack = (1, lower_slack) if lower_slack < upper_slack else (-1, upper_slack)
        if slack < lowest_slack and slack < -1e-12 * (1.0 + abs(value)):
            is_active = False
            for c in range(active_count):
                if active_bounds[c] == i:
                    is_active = True
            if not is_active:
                lowest_slack, violated_index, violated_side = slack, i, side
    return lowest_slack, violated_index, violated_side


@subroutine
def minimize_within_bounds(tracking, L, y, C, lower, upper, k, d):
    """Move y from the unconstrained minimum of a quadratic form to its minimum subject to lower <= C y <= upper.

    The letters are those of Goldfarb and Idnani: J and R factor the normals of the active bounds, u are the
    multipliers, z is the primal step direction, r the step of the multipliers; w = J' normal.

    Args:
        L: Cholesky factor of the form.
        y: the unconstrained minimum; overwritten by the solution.
        C, lower, upper: normals (k, d) and values (k,) of the bounds.

    Returns:
        False if the bounds are infeasible or the largest number of iterations is exceeded; then y is not valid.
    """
    active_bounds, active_count = tracking.active_bound, 0
    _, violated_index, _ = most_violated_bound(C, lower, upper, y, k, d, active_bounds, active_count)
    if violated_index < 0:
        return True
    J, R = tracking.qp_J, tracking.qp_R
    invert_transposed(L, J, d)
    u, r = tracking.multiplier, tracking.multiplier_step
    w, z = tracking.rotated_normal, tracking.direction
    for _ in range(10 * (k + d)):
        slack, violated_index, side = most_violated_bound(C, lower, upper, y, k, d, active_bounds, active_count)
        if violated_index < 0:
            return True
        u[active_count] = 0.0
        while True:
            normal_square, free_square = 0.0, 0.0
            for j in range(d):
                total = 0.0
                for i in range(d):
                    total += J[i, j] * side * C[violated_index, i]
                w[j] = total
                normal_square += total * total
            for i in range(d):
                total = 0.0
                for j in range(active_count, d):
                    total += J[i, j] * w[j]
                z[i] = total
            for j in range(active_count, d):
                free_square += w[j] * w[j]
            for i in range(active_count - 1, -1, -1):
                total = w[i]
                for j in range(i + 1, active_count):
                    total -= R[i, j] * r[j]
                r[i] = total / R[i, i]
            dual_step, dropped_index = math.inf, -1
            for j in range(active_count):
                if r[j] > 0.0 and u[j] < dual_step * r[j]:
                    dual_step, dropped_index = u[j] / r[j], j
            primal_step = -slack / free_square if free_square > DEPENDENT_BOUND_RATIO * normal_square else math.inf
            step_length = min(dual_step, primal_step)
            if not step_length < math.inf:
                return False
            for j in range(active_count):
                u[j] -= step_length * r[j]
            u[active_count] += step_length
            if primal_step < math.inf:
                for i in range(d):
                    y[i] += step_length * z[i]
            if primal_step <= dual_step:
                active_bounds[active_count] = violated_index
                if not add_bound(J, R, w, d, active_count):
                    return False
                active_count += 1
                break
            if primal_step < math.inf:
                slack += step_length * free_square
            drop_bound(J, R, u, active_bounds, d, active_count, dropped_index)
            active_count -= 1
    return False


RANK_RATIO = 1e-8
"""Ratio of norms. A row counts as linearly dependent if its part orthogonal to the previous pivot rows is smaller than
this share of the level's largest row. A larger ratio leaves more dofs to the lower levels near singularities, a smaller
ratio lets rounding errors constrain them."""


@subroutine
def singularity_damping(tracking, A, m, d):
    """Return the squared damping of a level: zero far from singularities, `singularity_damping` squared at one.

    The squared distance from a singularity is measured by 1 / trace(G^-1) for the Gram matrix G of A. This is the
    harmonic mean of the squared singular values of A divided by their number. It is smooth and never larger than the
    smallest squared singular value.
    """
    rank_bound = min(m, d)
    if rank_bound == 0:
        return 0.0
    options, G, L = tracking.options, tracking.gram, tracking.gram_factor
    for i in range(rank_bound):
        for j in range(i + 1):
            total = 1e-12 if i == j else 0.0
            if m <= d:
                for c in range(d):
                    total += A[i, c] * A[j, c]
            else:
                for r in range(m):
                    total += A[r, i] * A[r, j]
            G[i, j] = total
    if not factor_cholesky(G, L, rank_bound):
        return options.singularity_damping * options.singularity_damping
    inverse_trace, column = 0.0, tracking.scratch
    for c in range(rank_bound):  # the squared columns of L^-1 sum up to the trace of G^-1
        for i in range(c, rank_bound):
            total = 1.0 if i == c else 0.0
            for j in range(c, i):
                total -= L[i, j] * column[j]
            column[i] = total / L[i, i]
            inverse_trace += column[i] * column[i]
    closeness = 1.0 - 1.0 / (inverse_trace * options.singularity_distance * options.singularity_distance)
    return (options.singularity_damping * closeness) ** 2 if closeness > 0.0 else 0.0


@subroutine
def level_hessian(A, is_active, B, m, n, d, damping, is_orthonormal, H):
    """Write the lower triangle of H = A'A + damping B'B, where A'A sums over the active rows."""
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
                if is_active[r] != 0:
                    total += A[r, i] * A[r, j]
            H[i, j] = total


@subroutine
def unconstrained_minimum(A, L, desired_rates, is_active, m, d, y):
    """Write into y the unconstrained minimum of |A y - desired_rates|^2 + damping |B y|^2 over the active rows.

    Args:
        L: Cholesky factor of the Hessian that `level_hessian` writes.
    """
    for j in range(d):
        y[j] = 0.0
    for r in range(m):
        if is_active[r] != 0 and desired_rates[r] != 0.0:
            for j in range(d):
                y[j] += A[r, j] * desired_rates[r]
    solve_cholesky(L, y, d)


@subroutine
def remaining_rate(A, desired_rates, is_active, m, d, y):
    """Return the norm of `desired_rates` - A y over the active rows: the part of the rates that y does not achieve."""
    square = 0.0
    for r in range(m):
        if is_active[r] != 0:
            total = desired_rates[r]
            for j in range(d):
                total -= A[r, j] * y[j]
            square += total * total
    return math.sqrt(square)


@subroutine
def reduce_basis(tracking, A, B, is_active, m, n, d):
    """Reduce B to the velocities that do not change the active rows of a level; return the new number of its columns.

    Householder reflections transform B. Then only its first columns change the rows, and these columns are removed.
    """
    rows, reflector = tracking.reflected_rows, tracking.scratch
    largest_square = 0.0
    for r in range(m):
        row_square = 0.0
        for j in range(d):
            rows[r, j] = A[r, j] if is_active[r] != 0 else 0.0
            row_square += rows[r, j] * rows[r, j]
        largest_square = max(largest_square, row_square)
    rank = 0
    while rank < min(m, d):
        pivot_row, largest_remaining = -1, RANK_RATIO * RANK_RATIO * largest_square
        for r in range(m):
            total = 0.0
            for j in range(rank, d):
                total += rows[r, j] * rows[r, j]
            if total > largest_remaining:
                pivot_row, largest_remaining = r, total
        if pivot_row < 0:
            break
        # the reflection that maps the remaining part of the pivot row onto one axis
        norm = math.sqrt(largest_remaining)
        leading_entry = rows[pivot_row, rank] + math.copysign(norm, rows[pivot_row, rank])
        reflector_square = (
            largest_remaining - rows[pivot_row, rank] * rows[pivot_row, rank] + leading_entry * leading_entry
        )
        reflector[rank] = leading_entry
        for j in range(rank + 1, d):
            reflector[j] = rows[pivot_row, j]
        for r in range(m):
            reflect_row(rows, r, reflector, rank, d, reflector_square)
        for v in range(n):
            reflect_row(B, v, reflector, rank, d, reflector_square)
        for j in range(rank, d):
            rows[pivot_row, j] = 0.0
        rank += 1
    for v in range(n):
        for j in range(d - rank):
            B[v, j] = B[v, j + rank]
    return d - rank


@subroutine
def reflect_row(matrix, r, reflector, first, d, reflector_square):
    """Apply a Householder reflection to the entries first .. d - 1 of row r."""
    factor = 0.0
    for j in range(first, d):
        factor += matrix[r, j] * reflector[j]
    factor *= 2.0 / reflector_square
    for j in range(first, d):
        matrix[r, j] -= factor * reflector[j]
