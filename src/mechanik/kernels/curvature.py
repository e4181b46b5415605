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
from .elimination import FROM_REMAINING_ROWS, NO_INDEX
from .linear_systems import distance_to_bound
from .problem_layout import *
from .relative_pose import rotate_inverse
from .residuals import rotation_velocity, world_frame

PROBE_STEP = 1e-7
"""Step of the finite differences, in units of a column. A smaller step has larger rounding errors, a larger step larger
errors of the linear approximation."""
MAX_PROBED_COLUMNS = 16
"""Largest number of free columns for which probing saves time: a probe takes about a fifth of the time of a step."""


@subroutine
def add_block_gradient(ints, floats, buffer, b, row_factors, out):
    """Add J' f of one block to the table at `out`, for the row factors f at the offset `row_factors`."""
    block, block_columns = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_COLUMNS]
    width, first_row, first_column = ints[block + COLUMN_COUNT], ints[block + FIRST_ROW], ints[block + FIRST_COLUMN]
    J = ints[AT_JACOBIAN] + ints[N_JACOBIAN] * buffer + ints[block + FIRST_JACOBIAN]
    for r in range(ints[block + ROW_COUNT]):
        factor = floats[row_factors + first_row + r]
        if factor != 0.0:
            for u in range(width):
                floats[out + ints[block_columns + first_column + u]] += factor * floats[J + r * width + u]


@subroutine
def write_lagrangian_gradient(ints, floats, buffer, hard_end, soft_end, out):
    """Write the gradient of half the soft cost plus multipliers times hard residuals, over all columns, to `out`."""
    residual = ints[AT_RESIDUAL] + ints[N_ROWS] * buffer
    for v in range(ints[N_COLUMNS]):
        floats[out + v] = 0.0
    for b in range(soft_end):
        add_block_gradient(ints, floats, buffer, b, residual if b >= hard_end else ints[AT_MULTIPLIER], out)


@subroutine
def find_multipliers(ints, floats, buffer, hard_end, soft_end, remaining_count):
    """Compute the multipliers of the hard rows (`AT_MULTIPLIER`) and the Lagrangian's gradient.

    The multipliers are first computed for the rows after elimination. There, a row with a pivot in its block gives its
    multiplier directly; the multipliers of the remaining rows (`remaining_count`) solve one dense system. The stored
    row operations (`AT_ROW_COMBINATION`) then give the multipliers of the rows before elimination. The gradient goes to
    `AT_LAGRANGIAN_GRADIENT`.
    """
    blocks, block_columns, pivot_row, pivot_column = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_PIVOT_ROW],
        ints[AT_PIVOT_COLUMN],
    )
    remaining_row, multiplier, gradient, tableau, block_multiplier = (
        ints[AT_REMAINING_ROW],
        ints[AT_MULTIPLIER],
        ints[AT_LAGRANGIAN_GRADIENT],
        ints[AT_TABLEAU],
        ints[AT_BLOCK_RESIDUAL],
    )
    system, row_length = ints[AT_DENSE_ROWS], remaining_count + 1
    for b in range(hard_end):
        for r in range(
            ints[blocks + BLOCK_INTS * b + FIRST_ROW],
            ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
        ):
            floats[multiplier + r] = 0.0
    write_lagrangian_gradient(ints, floats, buffer, hard_end, soft_end, gradient)
    for k in range(remaining_count * row_length):
        floats[system + k] = 0.0
    for equation in range(remaining_count):
        v = ints[ints[AT_REMAINING_PIVOT] + equation]
        if v == NO_INDEX:
            floats[system + equation * row_length + equation] = 1.0
        else:
            floats[system + equation * row_length + remaining_count] = -floats[gradient + v]
    for b in range(hard_end):
        block = blocks + BLOCK_INTS * b
        m, width, first_row, first_column = (
            ints[block + ROW_COUNT],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_ROW],
            ints[block + FIRST_COLUMN],
        )
        for r in range(m):
            tableau_row, equation = (
                tableau + ints[block + FIRST_JACOBIAN] + r * width,
                ints[remaining_row + first_row + r],
            )
            if ints[pivot_column + first_row + r] != NO_INDEX:
                floats[multiplier + first_row + r] = -floats[
                    gradient + ints[block_columns + first_column + ints[pivot_column + first_row + r]]
                ]
            elif equation == NO_INDEX or ints[ints[AT_REMAINING_PIVOT] + equation] == NO_INDEX:
                continue
            for u in range(width):
                k = ints[pivot_row + ints[block_columns + first_column + u]] - FROM_REMAINING_ROWS
                if k >= 0:
                    if ints[pivot_column + first_row + r] != NO_INDEX:
                        floats[system + k * row_length + remaining_count] -= (
                            floats[tableau_row + u] * floats[multiplier + first_row + r]
                        )
                    else:
                        floats[system + k * row_length + equation] += floats[tableau_row + u]
    solve_dense(floats, system, remaining_count)
    for b in range(hard_end):
        block = blocks + BLOCK_INTS * b
        m, first_row = ints[block + ROW_COUNT], ints[block + FIRST_ROW]
        for r in range(m):
            equation = ints[remaining_row + first_row + r]
            if ints[pivot_column + first_row + r] == NO_INDEX and equation != NO_INDEX:
                floats[multiplier + first_row + r] = floats[system + equation * row_length + remaining_count]
        for k in range(m):
            floats[block_multiplier + k] = 0.0
            for r in range(m):
                floats[block_multiplier + k] += (
                    floats[ints[AT_ROW_COMBINATION] + ints[MAX_BLOCK_ROWS] * first_row + r * m + k]
                    * floats[multiplier + first_row + r]
                )
        for k in range(m):
            floats[multiplier + first_row + k] = floats[block_multiplier + k]
    write_lagrangian_gradient(ints, floats, buffer, hard_end, soft_end, gradient)


@subroutine
def solve_dense(floats, A, n):
    """Solve a dense system in place by Gauss-Jordan elimination with row pivoting.

    A is the offset of n rows of n + 1 numbers. The last number of each row is the right-hand side, which is replaced by
    the solution.
    """
    row_length = n + 1
    for k in range(n):
        pivot_row = k
        for i in range(k + 1, n):
            if abs(floats[A + i * row_length + k]) > abs(floats[A + pivot_row * row_length + k]):
                pivot_row = i
        if pivot_row != k:
            for column in range(k, row_length):
                floats[A + k * row_length + column], floats[A + pivot_row * row_length + column] = (
                    floats[A + pivot_row * row_length + column],
                    floats[A + k * row_length + column],
                )
        pivot = floats[A + k * row_length + k]
        inverse = 1.0 / pivot if pivot != 0.0 else 0.0
        for column in range(k, row_length):
            floats[A + k * row_length + column] *= inverse
        for i in range(n):
            factor = floats[A + i * row_length + k]
            if i != k and factor != 0.0:
                for column in range(k, row_length):
                    floats[A + i * row_length + column] -= factor * floats[A + k * row_length + column]


@subroutine
def has_all_curvature(ints, n):
    """Return whether the second derivatives are known, and the number of free independent columns.

    They are known if the independent columns are still the same and every free column among them has been sampled.
    """
    is_known, free_count = True, 0
    for i in range(n):
        v = ints[ints[AT_INDEPENDENT_COLUMN] + i]
        is_known &= ints[ints[AT_PREVIOUS_COLUMNS] + i] == v
        if ints[ints[AT_BOUND_STATE] + v] == FREE:
            is_known &= ints[ints[AT_HAS_CURVATURE] + v] != 0
            free_count += 1
    return is_known, free_count


@subroutine
def count_free_columns(ints):
    """Return the number of independent columns that are free."""
    free_count = 0
    for v in range(ints[N_COLUMNS]):
        if ints[ints[AT_PIVOT_ROW] + v] == NO_INDEX and ints[ints[AT_BOUND_STATE] + v] == FREE:
            free_count += 1
    return free_count


@subroutine
def begin_probes(ints, floats, n):
    """Discard the known curvature and store the independent columns that are going to be probed."""
    for v in range(ints[N_COLUMNS]):
        ints[ints[AT_HAS_CURVATURE] + v] = 0
    for k in range(n * n):
        floats[ints[AT_CURVATURE] + k] = 0.0
    for i in range(n):
        ints[ints[AT_PREVIOUS_COLUMNS] + i] = ints[ints[AT_INDEPENDENT_COLUMN] + i]


@subroutine
def write_next_probe(ints, floats, first_index, n):
    """Write a small step along the next free independent column to `AT_STEP`; return its independent index.

    The search starts at the independent index `first_index`. The result is n if there is no further free column.
    """
    step, Z = ints[AT_STEP], ints[AT_NULL_SPACE]
    while first_index < n and ints[ints[AT_BOUND_STATE] + ints[ints[AT_INDEPENDENT_COLUMN] + first_index]] != FREE:
        first_index += 1
    if first_index == n:
        return n
    for v in range(ints[N_COLUMNS]):
        floats[step + v] = 0.0
        if ints[ints[AT_PIVOT_ROW] + v] != NO_INDEX:
            for k in range(
                ints[ints[AT_NULL_SPACE_START] + v],
                ints[ints[AT_NULL_SPACE_START] + v] + ints[ints[AT_NULL_SPACE_COUNT] + v],
            ):
                if ints[ints[AT_NULL_SPACE_INDEX] + k] == first_index:
                    floats[step + v] = PROBE_STEP * floats[Z + k]
    floats[step + ints[ints[AT_INDEPENDENT_COLUMN] + first_index]] = PROBE_STEP
    return first_index


@subroutine
def record_sample(ints, floats, buffer, hard_end, soft_end, i, n):
    """Write column i of W to `AT_CURVATURE`; `buffer` contains the residuals and Jacobians at the probe."""
    gradient, probe_gradient, S, reduced_step = (
        ints[AT_LAGRANGIAN_GRADIENT],
        ints[AT_MODEL_GRADIENT],
        ints[AT_CURVATURE],
        ints[AT_REDUCED_STEP],
    )
    write_lagrangian_gradient(ints, floats, buffer, hard_end, soft_end, probe_gradient)
    for k in range(n):
        v = ints[ints[AT_INDEPENDENT_COLUMN] + k]
        floats[reduced_step + k] = floats[probe_gradient + v] - floats[gradient + v]
    for v in range(ints[N_COLUMNS]):
        if ints[ints[AT_PIVOT_ROW] + v] != NO_INDEX:
            change = floats[probe_gradient + v] - floats[gradient + v]
            for k in range(
                ints[ints[AT_NULL_SPACE_START] + v],
                ints[ints[AT_NULL_SPACE_START] + v] + ints[ints[AT_NULL_SPACE_COUNT] + v],
            ):
                floats[reduced_step + ints[ints[AT_NULL_SPACE_INDEX] + k]] += floats[ints[AT_NULL_SPACE] + k] * change
    for k in range(n):
        floats[S + k * n + i] = floats[reduced_step + k] / PROBE_STEP
    ints[ints[AT_HAS_CURVATURE] + ints[ints[AT_INDEPENDENT_COLUMN] + i]] = 2


@subroutine
def subtract_gauss_newton(ints, floats, n):
    """Replace the samples of W by S = W - A'A; entries without a sample become 0.

    The lower triangle of `AT_H0` contains A'A. Of an entry of W with two samples, the mean is used.
    """
    S, H, has_curvature, independent_column = (
        ints[AT_CURVATURE],
        ints[AT_H0],
        ints[AT_HAS_CURVATURE],
        ints[AT_INDEPENDENT_COLUMN],
    )
    for i in range(n):
        row_is_sampled = ints[has_curvature + ints[independent_column + i]] != 0
        for k in range(i + 1):
            column_is_sampled, entry = ints[has_curvature + ints[independent_column + k]] != 0, 0.0
            if row_is_sampled and column_is_sampled:
                entry = 0.5 * (floats[S + i * n + k] + floats[S + k * n + i]) - floats[H + i * n + k]
            elif row_is_sampled:
                entry = floats[S + k * n + i] - floats[H + i * n + k]
            elif column_is_sampled:
                entry = floats[S + i * n + k] - floats[H + i * n + k]
            floats[S + i * n + k], floats[S + k * n + i] = entry, entry
    for i in range(n):
        if ints[has_curvature + ints[independent_column + i]] == 2:
            ints[has_curvature + ints[independent_column + i]] = 1


@subroutine
def add_curvature(ints, floats, n, has_moved):
    """Update S from new samples or from the last step, and add S to H0.

    If the independent columns have changed since the last step, S is reset to zero.
    """
    S, H, independent_column, previous_columns = (
        ints[AT_CURVATURE],
        ints[AT_H0],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_PREVIOUS_COLUMNS],
    )
    columns_are_same, has_new_samples = True, False
    for i in range(n):
        if ints[previous_columns + i] != ints[independent_column + i]:
            columns_are_same = False
        has_new_samples |= ints[ints[AT_HAS_CURVATURE] + ints[independent_column + i]] == 2
    if not columns_are_same:
        for k in range(n * n):
            floats[S + k] = 0.0
        for v in range(ints[N_COLUMNS]):
            ints[ints[AT_HAS_CURVATURE] + v] = 0
    elif has_new_samples:
        subtract_gauss_newton(ints, floats, n)
    elif has_moved == 1.0:
        update_curvature(ints, floats, n)
    for i in range(n):
        ints[ints[AT_ENVELOPE] + i] = 0
        for k in range(i + 1):
            floats[H + i * n + k] += floats[S + i * n + k]


@subroutine
def update_curvature(ints, floats, n):
    """Update S so that S s = y - A'A s, for the last step s and the change y of the reduced gradient in this step.

    `u` is first y - A'A s, the value that S s should have, then y - A'A s - shrink_factor S s. `AAs` and `Ss` are
    entries of A'A s and S s. `ys`, `ss` and `sSs` are the products y's, s's and s'S s; `target_sSs` is the value that
    s'S s should have; `us` is the product u's with the final u.
    """
    S, H, negative_gradient = ints[AT_CURVATURE], ints[AT_H0], ints[AT_NEGATIVE_GRADIENT]
    previous_negative_gradient, s, y, u = (
        ints[AT_PREVIOUS_NEGATIVE_GRADIENT],
        ints[AT_PREVIOUS_STEP],
        ints[AT_MODEL_GRADIENT],
        ints[AT_REDUCED_STEP],
    )
    ys, target_sSs, sSs = 0.0, 0.0, 0.0
    for i in range(n):
        floats[y + i] = floats[previous_negative_gradient + i] - floats[negative_gradient + i]
        AAs, Ss = 0.0, 0.0
        for k in range(n):
            AAs += (floats[H + i * n + k] if k <= i else floats[H + k * n + i]) * floats[s + k]
            Ss += floats[S + i * n + k] * floats[s + k]
        floats[u + i] = floats[y + i] - AAs
        ys += floats[y + i] * floats[s + i]
        target_sSs += floats[s + i] * floats[u + i]
        sSs += floats[s + i] * Ss
    ss = 0.0
    for i in range(n):
        ss += floats[s + i] * floats[s + i]
    if ys <= 1e-8 * ss:  # not convex along the step: the update divides by y's
        return
    shrink_factor = min(1.0, abs(target_sSs) / abs(sSs)) if sSs != 0.0 else 1.0
    us = 0.0
    for i in range(n):
        Ss = 0.0
        for k in range(n):
            Ss += floats[S + i * n + k] * floats[s + k]
        floats[u + i] -= shrink_factor * Ss
        us += floats[u + i] * floats[s + i]
    for i in range(n):
        for k in range(n):
            floats[S + i * n + k] = (
                shrink_factor * floats[S + i * n + k]
                + (floats[u + i] * floats[y + k] + floats[y + i] * floats[u + k]) / ys
                - us * floats[y + i] * floats[y + k] / (ys * ys)
            )


@subroutine
def store_step(ints, floats, n):
    """Store the step of `AT_REDUCED_STEP`, its independent columns and the negative gradient, to update S later."""
    independent_column, previous_columns = ints[AT_INDEPENDENT_COLUMN], ints[AT_PREVIOUS_COLUMNS]
    for i in range(n):
        ints[previous_columns + i] = ints[independent_column + i]
        floats[ints[AT_PREVIOUS_STEP] + i] = floats[ints[AT_REDUCED_STEP] + i]
        floats[ints[AT_PREVIOUS_NEGATIVE_GRADIENT] + i] = floats[ints[AT_NEGATIVE_GRADIENT] + i]


@subroutine
def reset_curvature(ints, floats):
    """Discard the known curvature: the next `add_curvature` starts from S = 0."""
    for v in range(ints[N_COLUMNS]):
        ints[ints[AT_PREVIOUS_COLUMNS] + v] = -1


JOINT_FLOATS = 12
"""Number of floats of each joint in `AT_CHAIN`: u (6) and v (6)."""


@subroutine
def write_chain_vectors(ints, floats, buffer, b):
    """Write u and v of each joint of a chain to `AT_CHAIN`, for the stored poses and the residuals in `buffer`.

    (ex, ey, ez) and (fx, fy, fz) are the weighted residuals of position and rotation, times their weights: weight² e.
    wx, wy and wz are the squared weights of the position, w is that of the rotation. (x, y, z) and (lx, ly, lz) are the
    axis and the velocity of a joint along the axes C of frame A; (bx, by, bz) and (cx, cy, cz) are cross products.
    """
    block, data = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b
    first_row, mask, poses = ints[block + FIRST_ROW], ints[block + ROW_MASK], ints[AT_POSES]
    weight, residual = ints[AT_WEIGHT] + first_row, ints[AT_RESIDUAL] + ints[N_ROWS] * buffer + first_row
    A = world_frame(ints, floats, ints[block + NODE_A], data + FRAME_A)
    B = world_frame(ints, floats, ints[block + NODE_B], data + FRAME_B)
    C = (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    weight_squares, k = ints[AT_CHAIN_SUMS], 0
    for r in range(6):  # squared weights and weights times residuals; 0 for rows outside the mask
        floats[weight_squares + r], floats[weight_squares + 6 + r] = 0.0, 0.0
        if mask >> r & 1:
            floats[weight_squares + r], floats[weight_squares + 6 + r] = (
                floats[weight + k] * floats[weight + k],
                floats[weight + k] * floats[residual + k],
            )
            k += 1
    wx, wy, wz, w = (
        floats[weight_squares],
        floats[weight_squares + 1],
        floats[weight_squares + 2],
        floats[weight_squares + 3],
    )
    ex, ey, ez, fx, fy, fz = (
        floats[weight_squares + 6],
        floats[weight_squares + 7],
        floats[weight_squares + 8],
        floats[weight_squares + 9],
        floats[weight_squares + 10],
        floats[weight_squares + 11],
    )
    even_factor = 0.0
    if w > 0.0:
        angle2 = (fx * fx + fy * fy + fz * fz) / (w * w)
        if angle2 < 1e-4:
            even_factor = (1.0 / 12.0 + angle2 / 720.0) / w
        else:
            half_angle = 0.5 * math.sqrt(angle2)
            even_factor = (1.0 - half_angle * math.cos(half_angle) / math.sin(half_angle)) / (angle2 * w)
    for t in range(ints[block + TERM_COUNT]):
        term, u = ints[AT_TERMS] + TERM_INTS * (ints[block + FIRST_TERM] + t), ints[AT_CHAIN] + JOINT_FLOATS * t
        X, axis = poses + 12 * ints[term + TERM_NODE], ints[term + TERM_AXIS]
        factor = floats[ints[AT_TERM_FACTOR] + ints[block + FIRST_TERM] + t]
        x, y, z = rotate_inverse(
            C, factor * floats[X + axis], factor * floats[X + 3 + axis], factor * floats[X + 6 + axis]
        )
        lx, ly, lz = x, y, z
        if ints[term + TERM_IS_ROTATION] == 1:
            px, py, pz = rotate_inverse(C, B[9] - floats[X + 9], B[10] - floats[X + 10], B[11] - floats[X + 11])
            lx, ly, lz = rotation_velocity(x, y, z, px, py, pz)
        else:
            x, y, z = 0.0, 0.0, 0.0
        bx, by, bz = rotation_velocity(ex, ey, ez, x, y, z)
        floats[u], floats[u + 1], floats[u + 2] = wx * lx + bx, wy * ly + by, wz * lz + bz
        bx, by, bz = rotation_velocity(fx, fy, fz, x, y, z)
        cx, cy, cz = rotation_velocity(fx, fy, fz, bx, by, bz)
        floats[u + 3], floats[u + 4] = w * x + 0.5 * bx + even_factor * cx, w * y + 0.5 * by + even_factor * cy
        floats[u + 5] = w * z + 0.5 * bz + even_factor * cz
        floats[u + 6], floats[u + 7], floats[u + 8], floats[u + 9], floats[u + 10], floats[u + 11] = lx, ly, lz, x, y, z


@inline
def dot6(floats, a, b):
    """Return the scalar product of the six numbers at the offsets a and b."""
    return (floats[a] * floats[b] + floats[a + 1] * floats[b + 1] + floats[a + 2] * floats[b + 2]) + (
        floats[a + 3] * floats[b + 3] + floats[a + 4] * floats[b + 4] + floats[a + 5] * floats[b + 5]
    )


@inline
def add6(floats, out, vector, factor):
    """Add factor times the six numbers at the offset `vector` to those at `out`."""
    for k in range(6):
        floats[out + k] += factor * floats[vector + k]


@subroutine
def write_chain_product(ints, floats, b, n, step, out):
    """Write (D + Hessian of the chain) s to `out`, where s is the step of the independent columns at `step`.

    D is the table `diagonal`. `u` is the offset of u of a joint, and `u + 6` that of v.
    """
    block, independent_index, block_columns = (
        ints[AT_BLOCKS] + BLOCK_INTS * b,
        ints[AT_INDEPENDENT_INDEX],
        ints[AT_BLOCK_COLUMNS],
    )
    first_column, joint_count, partial_sum = ints[block + FIRST_COLUMN], ints[block + TERM_COUNT], ints[AT_CHAIN_SUMS]
    terms = ints[AT_TERMS] + TERM_INTS * ints[block + FIRST_TERM]
    for i in range(n):
        floats[out + i] = floats[ints[AT_DIAGONAL] + i] * floats[step + i]
    for k in range(6):
        floats[partial_sum + k] = 0.0
    for t in range(joint_count):
        i, u = (
            ints[independent_index + ints[block_columns + first_column + ints[terms + TERM_INTS * t + TERM_COLUMN]]],
            ints[AT_CHAIN] + JOINT_FLOATS * t,
        )
        floats[out + i] += dot6(floats, u + 6, partial_sum)
        add6(floats, partial_sum, u, floats[step + i])
    for k in range(6):
        floats[partial_sum + k] = 0.0
    for t in range(joint_count - 1, -1, -1):
        i, u = (
            ints[independent_index + ints[block_columns + first_column + ints[terms + TERM_INTS * t + TERM_COLUMN]]],
            ints[AT_CHAIN] + JOINT_FLOATS * t,
        )
        add6(floats, partial_sum, u + 6, floats[step + i])
        floats[out + i] += dot6(floats, u, partial_sum)


@subroutine
def write_chain_step(ints, floats, x, b, n):
    """Write the step of the independent columns to `AT_REDUCED_STEP`, by the factors of the chain's Hessian plus D.

    `y` is the offset of the step and `P` that of the matrix P; `u`, `u + 6` and `w` are those of u, v and w of a joint.
    Columns at an active bound move to the bound. A pivot that is not positive counts as infinite, as in `solve_ldlt`:
    its column does not move.
    """
    block, independent_index, block_columns = (
        ints[AT_BLOCKS] + BLOCK_INTS * b,
        ints[AT_INDEPENDENT_INDEX],
        ints[AT_BLOCK_COLUMNS],
    )
    first_column, joint_count, partial_sum, P = (
        ints[block + FIRST_COLUMN],
        ints[block + TERM_COUNT],
        ints[AT_CHAIN_SUMS],
        ints[AT_CHAIN_SUMS] + 6,
    )
    terms, y, inverse_diagonal, hessian_product = (
        ints[AT_TERMS] + TERM_INTS * ints[block + FIRST_TERM],
        ints[AT_REDUCED_STEP],
        ints[AT_INVERSE_DIAGONAL],
        ints[AT_MODEL_GRADIENT],
    )
    for i in range(n):
        floats[y + i] = distance_to_bound(ints, floats, x, ints[ints[AT_INDEPENDENT_COLUMN] + i])
    write_chain_product(ints, floats, b, n, y, hessian_product)
    for i in range(n):
        if ints[ints[AT_BOUND_STATE] + ints[ints[AT_INDEPENDENT_COLUMN] + i]] == FREE:
            floats[y + i] = (floats[ints[AT_DAMPED_NEGATIVE_GRADIENT] + i] - floats[hessian_product + i]) / floats[
                ints[AT_DIAGONAL] + i
            ]
    for k in range(42):
        floats[partial_sum + k] = 0.0
    for t in range(joint_count):
        v = ints[block_columns + first_column + ints[terms + TERM_INTS * t + TERM_COLUMN]]
        i, u, w = ints[independent_index + v], ints[AT_CHAIN] + JOINT_FLOATS * t, ints[AT_CHAIN_W] + 6 * t
        floats[inverse_diagonal + i] = 0.0
        if ints[ints[AT_BOUND_STATE] + v] != FREE:
            continue
        for k in range(6):
            floats[w + k] = floats[u + k] - dot6(floats, P + 6 * k, u + 6)
        pivot = floats[ints[AT_DIAGONAL] + i] + dot6(floats, u + 6, w)
        rhs = (
            floats[ints[AT_DAMPED_NEGATIVE_GRADIENT] + i]
            - floats[hessian_product + i]
            - dot6(floats, u + 6, partial_sum)
        )
        floats[y + i] = 0.0
        if pivot > 1e-300:
            floats[inverse_diagonal + i], floats[y + i] = 1.0 / pivot, rhs / pivot
            add6(floats, partial_sum, w, rhs / pivot)
            for k in range(6):
                add6(floats, P + 6 * k, w, floats[w + k] / pivot)
    for k in range(6):
        floats[partial_sum + k] = 0.0
    for t in range(joint_count - 1, -1, -1):
        i, u = (
            ints[independent_index + ints[block_columns + first_column + ints[terms + TERM_INTS * t + TERM_COLUMN]]],
            ints[AT_CHAIN] + JOINT_FLOATS * t,
        )
        if floats[inverse_diagonal + i] > 0.0:
            floats[y + i] -= floats[inverse_diagonal + i] * dot6(floats, ints[AT_CHAIN_W] + 6 * t, partial_sum)
            add6(floats, partial_sum, u + 6, floats[y + i])
