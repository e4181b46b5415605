"""Second derivatives of the cost: by finite differences, by secant updates, or exactly for chains.

If a goal is out of reach, its residual e stays large. Then the part of the second derivatives that J'J does not contain
is large too, and Gauss-Newton, which omits this part, converges slowly. This module computes it in three ways.

Finite differences (probes). With the Lagrange multipliers of the hard residuals h at x, the reduced Hessian W over the
columns z_k of the null space basis (1, Z) (`elimination.py`) is

    W_ik = z_i' (g(x + step z_k) - g(x)) / step

where g is the gradient of |e|^2 / 2 + multiplier' h. This works for every kind of residual and takes one evaluation of
all residuals for each free column. The omitted part is S = W - A'A, where A is the Jacobian of e over the independent
columns (`damped_least_squares.py`).

Secant updates. An approximation of S is updated from the change of the reduced gradient between steps, by the formula
of Dennis, Gay and Welsch (NL2SOL, ACM TOMS 7, 1981). The reduced gradient includes closures and held levels, so S
contains their curvature too. S is used only if progress is slow.

Chains. Let axis_j be the axis of a joint j of an arm, and velocity_j the velocity of the goal's point if the joint
moves. Joint i changes both for every later joint j. Therefore the entry (i, j) of the whole Hessian of |e|^2 / 2, with
j = i or j after i, is a scalar product u_i · v_j of six numbers each:

    v_j = (velocity_j, axis_j)
    u_i = (weight² (velocity_i + e × axis_i),  weight² (T axis_i + e × axis_i / 2))

The first three numbers are for the position, the last three for the rotation; each part has its own weight and its own
unweighted residual e. T = 1 + c [e]×² is the even part of the derivative of a rotation vector by a rotation, with
c = (1 - |e|/2 cot(|e|/2)) / |e|². The odd part, together with the rotation of later axes, gives the factor 1/2. Such a
matrix plus any diagonal D has factors L diag(d) L' of the same form:

    d_i = D_i + v_i · w_i,   w_i = u_i - P_i v_i,   P_i+1 = P_i + w_i w_i' / d_i,   L_ji = v_j · w_i / d_i

with P = 0 for the first joint (Vandebril, Van Barel and Mastronardi, Matrix Computations and Semiseparable Matrices,
2008). The time is linear in the length of the chain instead of cubic. A long arm that cannot reach its goal converges
in tens of these steps; without second derivatives it takes thousands.

Indices such as `b` and `v` are explained in `problem_layout.py`.
"""

from __future__ import annotations

import math

from .compiler import inline, subroutine
from .elimination import FROM_REMAINING_ROWS, NO_INDEX, block_row_combination
from .linear_systems import distance_to_bound
from .problem_layout import *
from .problem_views import (
    columns_of_block,
    jacobian_of_block,
    null_space_row,
    rows_of_block,
    square_matrix,
    tableau_of_block,
)
from .relative_pose import rotate_inverse
from .residuals import rotation_velocity, world_frame
from .tables import matrix_at

PROBE_STEP = 1e-7
"""Step of the finite differences, in units of a column. A smaller step has larger rounding errors, a larger step larger
errors of the linear approximation."""
MAX_PROBED_COLUMNS = 16
"""Largest number of free columns for which probing saves time: a probe takes about a fifth of the time of a step."""


@subroutine
def add_block_gradient(problem, buffer, b, row_factors, out):
    """Add J' f of one block to `out`, (columns,), for the factors f of all rows, `row_factors`."""
    block = problem.blocks[b]
    columns, factors = columns_of_block(problem, block), rows_of_block(row_factors, block)
    J = jacobian_of_block(problem, buffer, block)
    for r in range(block.row_count):
        row, factor = J[r], factors[r]
        if factor != 0.0:
            for u in range(block.column_count):
                out[columns[u]] += factor * row[u]


@subroutine
def write_lagrangian_gradient(problem, buffer, hard_end, soft_end, out):
    """Write the gradient of half the soft cost plus multipliers times hard residuals, over all columns, to `out`."""
    residual = problem.residual[buffer]
    for v in range(problem.column_count):
        out[v] = 0.0
    for b in range(soft_end):
        add_block_gradient(problem, buffer, b, residual if b >= hard_end else problem.multiplier, out)


@subroutine
def find_multipliers(problem, buffer, hard_end, soft_end, remaining_count):
    """Compute the multipliers of the hard rows (`multiplier`) and the Lagrangian's gradient.

    The multipliers are first computed for the rows after elimination. There, a row with a pivot in its block gives its
    multiplier directly; the multipliers of the remaining rows (`remaining_count`) solve one dense system. The stored
    row operations (`row_combination`) then give the multipliers of the rows before elimination. The gradient goes to
    `lagrangian_gradient`.
    """
    blocks, pivot_row, gradient, all_multipliers, remaining_pivot = (
        problem.blocks,
        problem.pivot_row,
        problem.lagrangian_gradient,
        problem.multiplier,
        problem.remaining_pivot,
    )
    system, right_side = matrix_at(problem.dense_rows, 0, remaining_count, remaining_count + 1), remaining_count
    for b in range(hard_end):
        multiplier = rows_of_block(all_multipliers, blocks[b])
        for r in range(blocks[b].row_count):
            multiplier[r] = 0.0
    write_lagrangian_gradient(problem, buffer, hard_end, soft_end, gradient)
    for equation in range(remaining_count):
        for k in range(remaining_count + 1):
            system[equation, k] = 0.0
    for equation in range(remaining_count):
        v = remaining_pivot[equation]
        if v == NO_INDEX:
            system[equation, equation] = 1.0
        else:
            system[equation, right_side] = -gradient[v]
    for b in range(hard_end):
        block = blocks[b]
        tableau, columns = tableau_of_block(problem, block), columns_of_block(problem, block)
        multiplier, pivot_column, remaining_row = (
            rows_of_block(all_multipliers, block),
            rows_of_block(problem.pivot_column, block),
            rows_of_block(problem.remaining_row, block),
        )
        for r in range(block.row_count):
            equation, has_pivot = remaining_row[r], pivot_column[r] != NO_INDEX
            if has_pivot:
                multiplier[r] = -gradient[columns[pivot_column[r]]]
            elif equation == NO_INDEX or remaining_pivot[equation] == NO_INDEX:
                continue
            for u in range(block.column_count):
                k = pivot_row[columns[u]] - FROM_REMAINING_ROWS
                if k >= 0:
                    if has_pivot:
                        system[k, right_side] -= tableau[r, u] * multiplier[r]
                    else:
                        system[k, equation] += tableau[r, u]
    solve_dense(system)
    for b in range(hard_end):
        block = blocks[b]
        m, row_combination, new_multiplier = (
            block.row_count,
            block_row_combination(problem, block),
            problem.block_residual,
        )
        multiplier, pivot_column, remaining_row = (
            rows_of_block(all_multipliers, block),
            rows_of_block(problem.pivot_column, block),
            rows_of_block(problem.remaining_row, block),
        )
        for r in range(m):
            if pivot_column[r] == NO_INDEX and remaining_row[r] != NO_INDEX:
                multiplier[r] = system[remaining_row[r], right_side]
        for k in range(m):
            new_multiplier[k] = 0.0
            for r in range(m):
                new_multiplier[k] += row_combination[r, k] * multiplier[r]
        for k in range(m):
            multiplier[k] = new_multiplier[k]
    write_lagrangian_gradient(problem, buffer, hard_end, soft_end, gradient)


@subroutine
def solve_dense(A):
    """Solve a dense system (n, n + 1) in place by Gauss-Jordan elimination with row pivoting.

    The last column is the right-hand side, which is replaced by the solution.
    """
    n, row_length = A.shape
    for k in range(n):
        largest = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[largest, k]):
                largest = i
        if largest != k:
            for column in range(k, row_length):
                A[k, column], A[largest, column] = A[largest, column], A[k, column]
        pivot, pivot_row = A[k, k], A[k]
        inverse = 1.0 / pivot if pivot != 0.0 else 0.0
        for column in range(k, row_length):
            pivot_row[column] *= inverse
        for i in range(n):
            row, factor = A[i], A[i, k]
            if i != k and factor != 0.0:
                for column in range(k, row_length):
                    row[column] -= factor * pivot_row[column]


@subroutine
def has_all_curvature(problem, n):
    """Return whether the second derivatives are known, and the number of free independent columns.

    They are known if the independent columns are still the same and every free column among them has been sampled.
    """
    is_known, free_count = True, 0
    for i in range(n):
        v = problem.independent_column[i]
        is_known &= problem.previous_columns[i] == v
        if problem.bound_state[v] == FREE:
            is_known &= problem.has_curvature[v] != 0
            free_count += 1
    return is_known, free_count


@subroutine
def count_free_columns(problem):
    """Return the number of independent columns that are free."""
    free_count = 0
    for v in range(problem.column_count):
        if problem.pivot_row[v] == NO_INDEX and problem.bound_state[v] == FREE:
            free_count += 1
    return free_count


@subroutine
def begin_probes(problem, buffer, hard_end, soft_end, remaining_count, n):
    """Compute the Lagrangian's gradient at x, discard the known curvature and store the columns that will be probed."""
    find_multipliers(problem, buffer, hard_end, soft_end, remaining_count)
    for v in range(problem.column_count):
        problem.has_curvature[v] = 0
    S = square_matrix(problem.curvature, n)
    for i in range(n):
        problem.previous_columns[i] = problem.independent_column[i]
        for k in range(n):
            S[i, k] = 0.0


@subroutine
def write_next_probe(problem, first_index, n):
    """Write a small step along the next free independent column to `step`; return its independent index.

    The search starts at the independent index `first_index`. The result is n if there is no further free column.
    """
    step = problem.step
    while first_index < n and problem.bound_state[problem.independent_column[first_index]] != FREE:
        first_index += 1
    if first_index == n:
        return n
    for v in range(problem.column_count):
        step[v] = 0.0
        if problem.pivot_row[v] != NO_INDEX:
            indices, entries = null_space_row(problem, v)
            for k in range(len(entries)):
                if indices[k] == first_index:
                    step[v] = PROBE_STEP * entries[k]
    step[problem.independent_column[first_index]] = PROBE_STEP
    return first_index


@subroutine
def record_probe(problem, buffer, hard_end, soft_end, i, n):
    """Write column i of W to `curvature`; `buffer` contains the residuals and Jacobians at the probe."""
    gradient, probe_gradient, S, reduced_step = (
        problem.lagrangian_gradient,
        problem.model_gradient,
        square_matrix(problem.curvature, n),
        problem.reduced_step,
    )
    write_lagrangian_gradient(problem, buffer, hard_end, soft_end, probe_gradient)
    for k in range(n):
        v = problem.independent_column[k]
        reduced_step[k] = probe_gradient[v] - gradient[v]
    for v in range(problem.column_count):
        if problem.pivot_row[v] != NO_INDEX:
            change = probe_gradient[v] - gradient[v]
            indices, entries = null_space_row(problem, v)
            for k in range(len(entries)):
                reduced_step[indices[k]] += entries[k] * change
    for k in range(n):
        S[k, i] = reduced_step[k] / PROBE_STEP
    problem.has_curvature[problem.independent_column[i]] = 2


@subroutine
def subtract_gauss_newton(problem, n):
    """Replace the samples of W by S = W - A'A; entries without a sample become 0.

    The lower triangle of `H0` contains A'A. Of an entry of W with two samples, the mean is used.
    """
    S, H0, has_curvature, independent_column = (
        square_matrix(problem.curvature, n),
        square_matrix(problem.H0, n),
        problem.has_curvature,
        problem.independent_column,
    )
    for i in range(n):
        row_is_sampled = has_curvature[independent_column[i]] != 0
        for k in range(i + 1):
            column_is_sampled, entry = has_curvature[independent_column[k]] != 0, 0.0
            if row_is_sampled and column_is_sampled:
                entry = 0.5 * (S[i, k] + S[k, i]) - H0[i, k]
            elif row_is_sampled:
                entry = S[k, i] - H0[i, k]
            elif column_is_sampled:
                entry = S[i, k] - H0[i, k]
            S[i, k], S[k, i] = entry, entry
    for i in range(n):
        if has_curvature[independent_column[i]] == 2:
            has_curvature[independent_column[i]] = 1


@subroutine
def add_curvature(problem, n, has_moved):
    """Update S from new samples or from the last step, and add S to H0.

    If the independent columns have changed since the last step, S is reset to zero.
    """
    S, H0, independent_column, previous_columns = (
        square_matrix(problem.curvature, n),
        square_matrix(problem.H0, n),
        problem.independent_column,
        problem.previous_columns,
    )
    columns_are_same, has_new_samples = True, False
    for i in range(n):
        if previous_columns[i] != independent_column[i]:
            columns_are_same = False
        has_new_samples |= problem.has_curvature[independent_column[i]] == 2
    if not columns_are_same:
        for i in range(n):
            for k in range(n):
                S[i, k] = 0.0
        for v in range(problem.column_count):
            problem.has_curvature[v] = 0
    elif has_new_samples:
        subtract_gauss_newton(problem, n)
    elif has_moved:
        update_curvature(problem, n)
    for i in range(n):
        problem.envelope[i] = 0
        for k in range(i + 1):
            H0[i, k] += S[i, k]


@subroutine
def update_curvature(problem, n):
    """Update S so that S s = y - A'A s, for the last step s and the change y of the reduced gradient in this step.

    `u` is first y - A'A s, the value that S s should have, then y - A'A s - shrink_factor S s. `AAs` and `Ss` are
    entries of A'A s and S s. `ys`, `ss` and `sSs` are the products y's, s's and s'S s; `target_sSs` is the value that
    s'S s should have; `us` is the product u's with the final u.
    """
    S, H0, negative_gradient = (
        square_matrix(problem.curvature, n),
        square_matrix(problem.H0, n),
        problem.negative_gradient,
    )
    previous_negative_gradient, s, y, u = (
        problem.previous_negative_gradient,
        problem.previous_step,
        problem.model_gradient,
        problem.reduced_step,
    )
    ys, target_sSs, sSs = 0.0, 0.0, 0.0
    for i in range(n):
        y[i] = previous_negative_gradient[i] - negative_gradient[i]
        AAs, Ss = 0.0, 0.0
        for k in range(n):
            AAs += (H0[i, k] if k <= i else H0[k, i]) * s[k]
            Ss += S[i, k] * s[k]
        u[i] = y[i] - AAs
        ys += y[i] * s[i]
        target_sSs += s[i] * u[i]
        sSs += s[i] * Ss
    ss = 0.0
    for i in range(n):
        ss += s[i] * s[i]
    if ys <= 1e-8 * ss:  # not convex along the step: the update divides by y's
        return
    shrink_factor = min(1.0, abs(target_sSs) / abs(sSs)) if sSs != 0.0 else 1.0
    us = 0.0
    for i in range(n):
        Ss = 0.0
        for k in range(n):
            Ss += S[i, k] * s[k]
        u[i] -= shrink_factor * Ss
        us += u[i] * s[i]
    for i in range(n):
        for k in range(n):
            S[i, k] = shrink_factor * S[i, k] + (u[i] * y[k] + y[i] * u[k]) / ys - us * y[i] * y[k] / (ys * ys)


@subroutine
def store_step(problem, n):
    """Store the step of `reduced_step`, its independent columns and the negative gradient, to update S later."""
    independent_column, previous_columns = problem.independent_column, problem.previous_columns
    for i in range(n):
        previous_columns[i] = independent_column[i]
        problem.previous_step[i] = problem.reduced_step[i]
        problem.previous_negative_gradient[i] = problem.negative_gradient[i]


@subroutine
def reset_curvature(problem):
    """Discard the known curvature: the next `add_curvature` starts from S = 0."""
    for v in range(problem.column_count):
        problem.previous_columns[v] = -1


@subroutine
def write_chain_vectors(problem, buffer, b):
    """Write u and v of each joint of a chain to `chain`, for the stored poses and the residuals in `buffer`.

    (ex, ey, ez) and (fx, fy, fz) are the weighted residuals of position and rotation, times their weights: weight² e.
    wx, wy and wz are the squared weights of the position, w is that of the rotation. (x, y, z) and (lx, ly, lz) are the
    axis and the velocity of a joint along the axes C of frame A; (bx, by, bz) and (cx, cy, cz) are cross products.
    """
    block, data = problem.blocks[b], problem.block_data[b]
    mask, poses = block.row_mask, problem.poses
    weight, residual = rows_of_block(problem.weight, block), rows_of_block(problem.residual[buffer], block)
    A = world_frame(problem, block.node_a, data.frame_a)
    B = world_frame(problem, block.node_b, data.frame_b)
    C = (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    weight_squares, weighted_residual, row = problem.chain_matrix[0], problem.chain_matrix[1], 0
    for r in range(6):  # 0 for rows outside the mask
        weight_squares[r], weighted_residual[r] = 0.0, 0.0
        if mask >> r & 1:
            weight_squares[r], weighted_residual[r] = weight[row] * weight[row], weight[row] * residual[row]
            row += 1
    wx, wy, wz, w = weight_squares[0], weight_squares[1], weight_squares[2], weight_squares[3]
    ex, ey, ez = weighted_residual[0], weighted_residual[1], weighted_residual[2]
    fx, fy, fz = weighted_residual[3], weighted_residual[4], weighted_residual[5]
    even_factor = 0.0
    if w > 0.0:
        angle2 = (fx * fx + fy * fy + fz * fz) / (w * w)
        if angle2 < 1e-4:
            even_factor = (1.0 / 12.0 + angle2 / 720.0) / w
        else:
            half_angle = 0.5 * math.sqrt(angle2)
            even_factor = (1.0 - half_angle * math.cos(half_angle) / math.sin(half_angle)) / (angle2 * w)
    for t in range(block.term_count):
        term, u, v = problem.terms[block.first_term + t], problem.chain[t].u, problem.chain[t].v
        X, axis = poses[term.node], term.axis
        factor = problem.term_factor[block.first_term + t]
        x, y, z = rotate_inverse(C, factor * X[axis], factor * X[3 + axis], factor * X[6 + axis])
        lx, ly, lz = x, y, z
        if term.is_rotation:
            px, py, pz = rotate_inverse(C, B[9] - X[9], B[10] - X[10], B[11] - X[11])
            lx, ly, lz = rotation_velocity(x, y, z, px, py, pz)
        else:
            x, y, z = 0.0, 0.0, 0.0
        bx, by, bz = rotation_velocity(ex, ey, ez, x, y, z)
        u[0], u[1], u[2] = wx * lx + bx, wy * ly + by, wz * lz + bz
        bx, by, bz = rotation_velocity(fx, fy, fz, x, y, z)
        cx, cy, cz = rotation_velocity(fx, fy, fz, bx, by, bz)
        u[3], u[4] = w * x + 0.5 * bx + even_factor * cx, w * y + 0.5 * by + even_factor * cy
        u[5] = w * z + 0.5 * bz + even_factor * cz
        v[0], v[1], v[2], v[3], v[4], v[5] = lx, ly, lz, x, y, z


@inline
def dot6(a, b):
    """Return the scalar product of two vectors of six numbers."""
    return (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) + (a[3] * b[3] + a[4] * b[4] + a[5] * b[5])


@inline
def add6(out, vector, factor):
    """Add factor times a vector of six numbers to `out`."""
    for k in range(6):
        out[k] += factor * vector[k]


@inline
def chain_index(problem, block, t):
    """Return the independent index of the column of joint t of a chain."""
    return problem.independent_index[columns_of_block(problem, block)[problem.terms[block.first_term + t].column]]


@subroutine
def write_chain_product(problem, b, n, step, out):
    """Write (D + Hessian of the chain) s to `out`, where s is `step`, the step of the independent columns.

    D is the table `diagonal`.
    """
    block, partial_sum = problem.blocks[b], problem.chain_sum
    joint_count = block.term_count
    for i in range(n):
        out[i] = problem.diagonal[i] * step[i]
    for k in range(6):
        partial_sum[k] = 0.0
    for t in range(joint_count):
        i, joint = chain_index(problem, block, t), problem.chain[t]
        out[i] += dot6(joint.v, partial_sum)
        add6(partial_sum, joint.u, step[i])
    for k in range(6):
        partial_sum[k] = 0.0
    for t in range(joint_count - 1, -1, -1):
        i, joint = chain_index(problem, block, t), problem.chain[t]
        add6(partial_sum, joint.v, step[i])
        out[i] += dot6(joint.u, partial_sum)


@subroutine
def write_chain_step(problem, x, b, n):
    """Write the step of the independent columns to `reduced_step`, by the factors of the chain's Hessian plus D.

    `y` is the step. Columns at an active bound move to the bound. A pivot that is not positive counts as infinite, as
    in `solve_ldlt`: its column does not move.
    """
    block, bound_state, independent_column = problem.blocks[b], problem.bound_state, problem.independent_column
    joint_count = block.term_count
    partial_sum, P = problem.chain_sum, problem.chain_matrix
    y, inverse_diagonal, hessian_product = problem.reduced_step, problem.inverse_diagonal, problem.model_gradient
    for i in range(n):
        y[i] = distance_to_bound(problem, x, independent_column[i])
    write_chain_product(problem, b, n, y, hessian_product)
    for i in range(n):
        if bound_state[independent_column[i]] == FREE:
            y[i] = (problem.damped_negative_gradient[i] - hessian_product[i]) / problem.diagonal[i]
    for k in range(6):
        partial_sum[k] = 0.0
        for i in range(6):
            P[k, i] = 0.0
    for t in range(joint_count):
        i, joint = chain_index(problem, block, t), problem.chain[t]
        u, v, w = joint.u, joint.v, joint.w
        inverse_diagonal[i] = 0.0
        if bound_state[independent_column[i]] != FREE:
            continue
        for k in range(6):
            w[k] = u[k] - dot6(P[k], v)
        pivot = problem.diagonal[i] + dot6(v, w)
        rhs = problem.damped_negative_gradient[i] - hessian_product[i] - dot6(v, partial_sum)
        y[i] = 0.0
        if pivot > 1e-300:
            inverse_diagonal[i], y[i] = 1.0 / pivot, rhs / pivot
            add6(partial_sum, w, rhs / pivot)
            for k in range(6):
                add6(P[k], w, w[k] / pivot)
    for k in range(6):
        partial_sum[k] = 0.0
    for t in range(joint_count - 1, -1, -1):
        i, joint = chain_index(problem, block, t), problem.chain[t]
        if inverse_diagonal[i] > 0.0:
            y[i] -= inverse_diagonal[i] * dot6(joint.w, partial_sum)
            add6(partial_sum, joint.v, y[i])
