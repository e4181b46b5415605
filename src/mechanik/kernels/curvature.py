"""Second derivatives of the cost that Gauss-Newton omits: by finite differences, by secant updates, and of chains.

If a goal is out of reach, its residual e stays large, and with it the part of the second derivatives that J'J does not
contain; Gauss-Newton steps then converge slowly. There are three sources for this part.

Finite differences (probes). With the Lagrange multipliers of the hard residuals h at x, the reduced Hessian W over the
columns z_k of the null space basis is

    W_ik = z_i' (gradient of |e|^2 / 2 + multiplier' h, at x + step z_k, minus that at x) / step

This takes one evaluation of all residuals for each free column, for every kind of residual.

Secant updates. A matrix S approximates the omitted part from the change of the reduced gradient between steps, by the
update of Dennis, Gay and Welsch (NL2SOL, ACM TOMS 7, 1981). The reduced gradient includes closures and held levels, so
S contains their curvature too. S is used only where progress is slow.

Chains. Along an arm, joint i moves the axis and the lever of every later joint j. Therefore the entry (i, j), i before
j, of the Hessian of |e|^2 / 2 is a product u_i · v_j of six numbers each:

    v_j = (lever of j, axis of j)                                       lever: velocity of the goal's point by joint j
    u_i = (w² lever_i + w² e × axis_i,  w² T axis_i + w²/2 e × axis_i)     for position and rotation, each with its e

where T = 1 + c [e]×² is the even part of the derivative of a rotation vector by a rotation (the odd part, together with
the rotation of later axes, gives the factor 1/2). Such a matrix plus any diagonal has factors L D L' of the same form:

    d_i = D_i + v_i · w_i,   w_i = u_i - P_i v_i,   P_i+1 = P_i + w_i w_i' / d_i,   L_ji = v_j · w_i / d_i

(Vandebril, Van Barel and Mastronardi, Matrix Computations and Semiseparable Matrices, 2008). The cost is linear in the
length of the chain instead of cubic. A long arm that cannot reach its goal converges in tens of such steps; without
second derivatives it takes thousands.
"""

from __future__ import annotations

import math

from .compiler import inline, subroutine
from .elimination import FROM_REMAINING_ROWS, NO_COLUMN
from .linear_systems import distance_to_bound
from .problem_layout import *
from .relative_pose import rotate_inverse
from .residuals import rotation_velocity, world_frame

PROBE_STEP = 1e-7
"""Step of the finite differences, in units of a column."""
MAX_PROBED_COLUMNS = 16
"""Largest number of free columns for which probes save time: a probe takes about a fifth of the time of a step."""


@subroutine
def add_block_gradient(ints, floats, buffer, b, factors, out):
    """Add J' times the row values at the offset `factors` to `out`, for one block."""
    block, block_columns = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_COLUMNS]
    width, row, column = ints[block + COLUMN_COUNT], ints[block + FIRST_ROW], ints[block + FIRST_COLUMN]
    J = ints[AT_JACOBIAN] + ints[N_JACOBIAN] * buffer + ints[block + FIRST_JACOBIAN]
    for r in range(ints[block + ROW_COUNT]):
        e = floats[factors + row + r]
        if e != 0.0:
            for u in range(width):
                floats[out + ints[block_columns + column + u]] += e * floats[J + r * width + u]


@subroutine
def lagrangian_gradient(ints, floats, buffer, hard, soft, out):
    """Write the gradient of half the soft cost plus multipliers times hard residuals, over all columns, to `out`."""
    E = ints[AT_RESIDUAL] + ints[N_ROWS] * buffer
    for v in range(ints[N_COLUMNS]):
        floats[out + v] = 0.0
    for b in range(soft):
        add_block_gradient(ints, floats, buffer, b, E if b >= hard else ints[AT_MULTIPLIER], out)


@subroutine
def find_multipliers(ints, floats, buffer, hard, soft, remaining_rows):
    """Compute the multipliers of the hard rows (`AT_MULTIPLIER`) and the gradient (`AT_LAGRANGIAN_GRADIENT`).

    Elimination has stored its row operations (`AT_ROW_COMBINATION`), so the multipliers of rows with a pivot in their
    block follow one by one. Those of the `remaining_rows` remaining rows of all blocks come from one dense system.
    """
    blocks, block_columns, dependent, pivot = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_DEPENDENT_INDEX],
        ints[AT_PIVOT],
    )
    unpivoted_row, multiplier, gradient, T, e = (
        ints[AT_UNPIVOTED_ROW],
        ints[AT_MULTIPLIER],
        ints[AT_LAGRANGIAN_GRADIENT],
        ints[AT_TABLEAU],
        ints[AT_BLOCK_RESIDUAL],
    )
    A, w = ints[AT_DENSE_ROWS], remaining_rows + 1
    for b in range(hard):
        for r in range(
            ints[blocks + BLOCK_INTS * b + FIRST_ROW],
            ints[blocks + BLOCK_INTS * b + FIRST_ROW] + ints[blocks + BLOCK_INTS * b + ROW_COUNT],
        ):
            floats[multiplier + r] = 0.0
    lagrangian_gradient(ints, floats, buffer, hard, soft, gradient)
    for k in range(remaining_rows * w):
        floats[A + k] = 0.0
    for l in range(remaining_rows):
        v = ints[ints[AT_REST_COLUMN] + l]
        if v == NO_COLUMN:
            floats[A + l * w + l] = 1.0
        else:
            floats[A + l * w + remaining_rows] = -floats[gradient + v]
    for b in range(hard):
        block = blocks + BLOCK_INTS * b
        m, width, row, column = (
            ints[block + ROW_COUNT],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_ROW],
            ints[block + FIRST_COLUMN],
        )
        for r in range(m):
            t, l = T + ints[block + FIRST_JACOBIAN] + r * width, ints[unpivoted_row + row + r]
            if ints[pivot + row + r] != NO_COLUMN:
                floats[multiplier + row + r] = -floats[gradient + ints[block_columns + column + ints[pivot + row + r]]]
            elif l == NO_COLUMN or ints[ints[AT_REST_COLUMN] + l] == NO_COLUMN:
                continue
            for u in range(width):
                k = ints[dependent + ints[block_columns + column + u]] - FROM_REMAINING_ROWS
                if k >= 0:
                    if ints[pivot + row + r] != NO_COLUMN:
                        floats[A + k * w + remaining_rows] -= floats[t + u] * floats[multiplier + row + r]
                    else:
                        floats[A + k * w + l] += floats[t + u]
    solve_dense(floats, A, remaining_rows)
    for b in range(hard):
        block = blocks + BLOCK_INTS * b
        m, row = ints[block + ROW_COUNT], ints[block + FIRST_ROW]
        for r in range(m):
            l = ints[unpivoted_row + row + r]
            if ints[pivot + row + r] == NO_COLUMN and l != NO_COLUMN:
                floats[multiplier + row + r] = floats[A + l * w + remaining_rows]
        for k in range(m):
            floats[e + k] = 0.0
            for r in range(m):
                floats[e + k] += (
                    floats[ints[AT_ROW_COMBINATION] + ints[MAX_BLOCK_ROWS] * row + r * m + k]
                    * floats[multiplier + row + r]
                )
        for k in range(m):
            floats[multiplier + row + k] = floats[e + k]
    lagrangian_gradient(ints, floats, buffer, hard, soft, gradient)


@subroutine
def solve_dense(floats, A, n):
    """Solve a dense system in place by Gauss-Jordan with row pivoting; A holds n rows of n + 1 numbers.

    The last number of each row is the right-hand side, which becomes the solution.
    """
    w = n + 1
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(floats[A + i * w + k]) > abs(floats[A + best * w + k]):
                best = i
        if best != k:
            for c in range(k, w):
                floats[A + k * w + c], floats[A + best * w + c] = floats[A + best * w + c], floats[A + k * w + c]
        p = floats[A + k * w + k]
        inverse = 1.0 / p if p != 0.0 else 0.0
        for c in range(k, w):
            floats[A + k * w + c] *= inverse
        for i in range(n):
            f = floats[A + i * w + k]
            if i != k and f != 0.0:
                for c in range(k, w):
                    floats[A + i * w + c] -= f * floats[A + k * w + c]


@subroutine
def has_all_curvature(ints, n):
    """Return whether the second derivatives of every free column are known, and the number of free columns."""
    is_known, free = True, 0
    for i in range(n):
        v = ints[ints[AT_INDEPENDENT_COLUMN] + i]
        is_known &= ints[ints[AT_PREVIOUS_COLUMNS] + i] == v
        if ints[ints[AT_BOUND_STATE] + v] == FREE:
            is_known &= ints[ints[AT_HAS_CURVATURE] + v] != 0
            free += 1
    return is_known, free


@subroutine
def count_free_columns(ints):
    """Return the number of independent columns that are free."""
    free = 0
    for v in range(ints[N_COLUMNS]):
        if ints[ints[AT_DEPENDENT_INDEX] + v] == NO_COLUMN and ints[ints[AT_BOUND_STATE] + v] == FREE:
            free += 1
    return free


@subroutine
def begin_probes(ints, floats, n):
    for v in range(ints[N_COLUMNS]):
        ints[ints[AT_HAS_CURVATURE] + v] = 0
    for k in range(n * n):
        floats[ints[AT_CURVATURE] + k] = 0.0
    for i in range(n):
        ints[ints[AT_PREVIOUS_COLUMNS] + i] = ints[ints[AT_INDEPENDENT_COLUMN] + i]


@subroutine
def next_probe(ints, floats, i, n):
    """Write a small step along the next free column from index i on to `AT_STEP`; return its index, or n if none."""
    step, Z = ints[AT_STEP], ints[AT_NULL_SPACE]
    while i < n and ints[ints[AT_BOUND_STATE] + ints[ints[AT_INDEPENDENT_COLUMN] + i]] != FREE:
        i += 1
    if i == n:
        return n
    for v in range(ints[N_COLUMNS]):
        floats[step + v] = 0.0
        if ints[ints[AT_DEPENDENT_INDEX] + v] != NO_COLUMN:
            for k in range(
                ints[ints[AT_NULL_SPACE_START] + v],
                ints[ints[AT_NULL_SPACE_START] + v] + ints[ints[AT_NULL_SPACE_COUNT] + v],
            ):
                if ints[ints[AT_NULL_SPACE_INDEX] + k] == i:
                    floats[step + v] = PROBE_STEP * floats[Z + k]
    floats[step + ints[ints[AT_INDEPENDENT_COLUMN] + i]] = PROBE_STEP
    return i


@subroutine
def record_sample(ints, floats, buffer, hard, soft, i, n):
    """Write column i of W to `AT_CURVATURE`, from the residuals at the probe, which are in `buffer`."""
    gradient, probe_gradient, S, reduced_step = (
        ints[AT_LAGRANGIAN_GRADIENT],
        ints[AT_MODEL_GRADIENT],
        ints[AT_CURVATURE],
        ints[AT_REDUCED_STEP],
    )
    lagrangian_gradient(ints, floats, buffer, hard, soft, probe_gradient)
    for k in range(n):
        v = ints[ints[AT_INDEPENDENT_COLUMN] + k]
        floats[reduced_step + k] = floats[probe_gradient + v] - floats[gradient + v]
    for v in range(ints[N_COLUMNS]):
        if ints[ints[AT_DEPENDENT_INDEX] + v] != NO_COLUMN:
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
def assemble_hessian(ints, floats, n):
    """Replace W by S = W - A'A where W is sampled; the lower triangle of `AT_H0` holds A'A."""
    S, H, has_curvature, independent = (
        ints[AT_CURVATURE],
        ints[AT_H0],
        ints[AT_HAS_CURVATURE],
        ints[AT_INDEPENDENT_COLUMN],
    )
    for i in range(n):
        is_sampled = ints[has_curvature + ints[independent + i]] != 0
        for k in range(i + 1):
            is_sampled_too, s = ints[has_curvature + ints[independent + k]] != 0, 0.0
            if is_sampled and is_sampled_too:
                s = 0.5 * (floats[S + i * n + k] + floats[S + k * n + i]) - floats[H + i * n + k]
            elif is_sampled:
                s = floats[S + k * n + i] - floats[H + i * n + k]
            elif is_sampled_too:
                s = floats[S + i * n + k] - floats[H + i * n + k]
            floats[S + i * n + k], floats[S + k * n + i] = s, s
    for i in range(n):
        if ints[has_curvature + ints[independent + i]] == 2:
            ints[has_curvature + ints[independent + i]] = 1


@subroutine
def add_curvature(ints, floats, n, has_moved):
    """Update S from the new samples or from the last step, if its independent columns were the same; add S to H0."""
    S, H, independent, previous_columns = (
        ints[AT_CURVATURE],
        ints[AT_H0],
        ints[AT_INDEPENDENT_COLUMN],
        ints[AT_PREVIOUS_COLUMNS],
    )
    is_same, is_new = True, False
    for i in range(n):
        if ints[previous_columns + i] != ints[independent + i]:
            is_same = False
        is_new |= ints[ints[AT_HAS_CURVATURE] + ints[independent + i]] == 2
    if not is_same:
        for k in range(n * n):
            floats[S + k] = 0.0
        for v in range(ints[N_COLUMNS]):
            ints[ints[AT_HAS_CURVATURE] + v] = 0
    elif is_new:
        assemble_hessian(ints, floats, n)
    elif has_moved == 1.0:
        update_curvature(ints, floats, n)
    for i in range(n):
        ints[ints[AT_ENVELOPE] + i] = 0
        for k in range(i + 1):
            floats[H + i * n + k] += floats[S + i * n + k]


@subroutine
def update_curvature(ints, floats, n):
    """Update S so that S s = y - A'A s, for the last step s and the change y of the gradient over it."""
    S, H, gradient = ints[AT_CURVATURE], ints[AT_H0], ints[AT_GRADIENT]
    previous_gradient, s, y, u = (
        ints[AT_PREVIOUS_GRADIENT],
        ints[AT_PREVIOUS_STEP],
        ints[AT_MODEL_GRADIENT],
        ints[AT_REDUCED_STEP],
    )
    ys, su, sSs = 0.0, 0.0, 0.0
    for i in range(n):
        floats[y + i] = floats[previous_gradient + i] - floats[gradient + i]  # `gradient` holds the negative gradient
        As, Ss = 0.0, 0.0
        for k in range(n):
            As += (floats[H + i * n + k] if k <= i else floats[H + k * n + i]) * floats[s + k]
            Ss += floats[S + i * n + k] * floats[s + k]
        floats[u + i] = floats[y + i] - As
        ys += floats[y + i] * floats[s + i]
        su += floats[s + i] * floats[u + i]
        sSs += floats[s + i] * Ss
    size = 0.0
    for i in range(n):
        size += floats[s + i] * floats[s + i]
    if ys <= 1e-8 * size:  # not convex along the step: the update divides by y's
        return
    shrink = min(1.0, abs(su) / abs(sSs)) if sSs != 0.0 else 1.0
    remainder = 0.0
    for i in range(n):
        Ss = 0.0
        for k in range(n):
            Ss += floats[S + i * n + k] * floats[s + k]
        floats[u + i] -= shrink * Ss
        remainder += floats[u + i] * floats[s + i]
    for i in range(n):
        for k in range(n):
            floats[S + i * n + k] = (
                shrink * floats[S + i * n + k]
                + (floats[u + i] * floats[y + k] + floats[y + i] * floats[u + k]) / ys
                - remainder * floats[y + i] * floats[y + k] / (ys * ys)
            )


@subroutine
def store_step(ints, floats, n):
    """Store the step in `AT_REDUCED_STEP`, its columns and its gradient for the next update of S."""
    independent, previous_columns = ints[AT_INDEPENDENT_COLUMN], ints[AT_PREVIOUS_COLUMNS]
    for i in range(n):
        ints[previous_columns + i] = ints[independent + i]
        floats[ints[AT_PREVIOUS_STEP] + i] = floats[ints[AT_REDUCED_STEP] + i]
        floats[ints[AT_PREVIOUS_GRADIENT] + i] = floats[ints[AT_GRADIENT] + i]


@subroutine
def reset_curvature(ints, floats):
    """Discard the known curvature: the next `add_curvature` starts from S = 0."""
    for v in range(ints[N_COLUMNS]):
        ints[ints[AT_PREVIOUS_COLUMNS] + v] = -1


JOINT_FLOATS = 12
"""Number of floats of each joint in `AT_CHAIN`: u and v."""


@subroutine
def chain_curvature_vectors(ints, floats, buffer, b):
    """Write u and v of each joint of a chain to `AT_CHAIN`, for the current poses and the residuals in `buffer`."""
    block, data = ints[AT_BLOCKS] + BLOCK_INTS * b, ints[AT_BLOCK_DATA] + BLOCK_FLOATS * b
    row, mask, poses = ints[block + FIRST_ROW], ints[block + ROW_MASK], ints[AT_POSES]
    weight, E = ints[AT_WEIGHT] + row, ints[AT_RESIDUAL] + ints[N_ROWS] * buffer + row
    A = world_frame(ints, floats, ints[block + NODE_A], data + FRAME_A)
    B = world_frame(ints, floats, ints[block + NODE_B], data + FRAME_B)
    C = (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    at, k = ints[AT_SUMS], 0
    for r in range(6):  # squared weights and weights times residuals; 0 for rows outside the mask
        floats[at + r], floats[at + 6 + r] = 0.0, 0.0
        if mask >> r & 1:
            floats[at + r], floats[at + 6 + r] = (
                floats[weight + k] * floats[weight + k],
                floats[weight + k] * floats[E + k],
            )
            k += 1
    wx, wy, wz, w = floats[at], floats[at + 1], floats[at + 2], floats[at + 3]
    ex, ey, ez, fx, fy, fz = (
        floats[at + 6],
        floats[at + 7],
        floats[at + 8],
        floats[at + 9],
        floats[at + 10],
        floats[at + 11],
    )
    even = 0.0
    if w > 0.0:
        angle2 = (fx * fx + fy * fy + fz * fz) / (w * w)
        if angle2 < 1e-4:
            even = (1.0 / 12.0 + angle2 / 720.0) / w
        else:
            half = 0.5 * math.sqrt(angle2)
            even = (1.0 - half * math.cos(half) / math.sin(half)) / (angle2 * w)
    for t in range(ints[block + TERM_COUNT]):
        term, u = ints[AT_TERMS] + TERM_INTS * (ints[block + FIRST_TERM] + t), ints[AT_CHAIN] + JOINT_FLOATS * t
        X, axis = poses + 12 * ints[term + TERM_NODE], ints[term + TERM_AXIS]
        factor = floats[ints[AT_TERM_FACTOR] + ints[block + FIRST_TERM] + t]
        x, y, z = rotate_inverse(
            C, factor * floats[X + axis], factor * floats[X + 3 + axis], factor * floats[X + 6 + axis]
        )
        lx, ly, lz = x, y, z
        if ints[term + TERM_IS_ROTATION] == 1:
            l, m, n = rotate_inverse(C, B[9] - floats[X + 9], B[10] - floats[X + 10], B[11] - floats[X + 11])
            lx, ly, lz = rotation_velocity(x, y, z, l, m, n)
        else:
            x, y, z = 0.0, 0.0, 0.0
        bx, by, bz = rotation_velocity(ex, ey, ez, x, y, z)
        floats[u], floats[u + 1], floats[u + 2] = wx * lx + bx, wy * ly + by, wz * lz + bz
        bx, by, bz = rotation_velocity(fx, fy, fz, x, y, z)
        cx, cy, cz = rotation_velocity(fx, fy, fz, bx, by, bz)
        floats[u + 3], floats[u + 4] = w * x + 0.5 * bx + even * cx, w * y + 0.5 * by + even * cy
        floats[u + 5] = w * z + 0.5 * bz + even * cz
        floats[u + 6], floats[u + 7], floats[u + 8], floats[u + 9], floats[u + 10], floats[u + 11] = lx, ly, lz, x, y, z


@inline
def dot6(floats, a, b):
    return (floats[a] * floats[b] + floats[a + 1] * floats[b + 1] + floats[a + 2] * floats[b + 2]) + (
        floats[a + 3] * floats[b + 3] + floats[a + 4] * floats[b + 4] + floats[a + 5] * floats[b + 5]
    )


@inline
def add6(floats, a, b, s):
    for k in range(6):
        floats[a + k] += s * floats[b + k]


@subroutine
def chain_product(ints, floats, b, n, s, out):
    """Write (D + Hessian of the chain) s over the independent columns to out; s and out are offsets in floats."""
    block, independent_index, columns = (
        ints[AT_BLOCKS] + BLOCK_INTS * b,
        ints[AT_INDEPENDENT_INDEX],
        ints[AT_BLOCK_COLUMNS],
    )
    first, count, sums = ints[block + FIRST_COLUMN], ints[block + TERM_COUNT], ints[AT_SUMS]
    terms = ints[AT_TERMS] + TERM_INTS * ints[block + FIRST_TERM]
    for i in range(n):
        floats[out + i] = floats[ints[AT_DIAGONAL] + i] * floats[s + i]
    for k in range(6):
        floats[sums + k] = 0.0
    for t in range(count):
        i, u = (
            ints[independent_index + ints[columns + first + ints[terms + TERM_INTS * t + TERM_COLUMN]]],
            ints[AT_CHAIN] + JOINT_FLOATS * t,
        )
        floats[out + i] += dot6(floats, u + 6, sums)
        add6(floats, sums, u, floats[s + i])
    for k in range(6):
        floats[sums + k] = 0.0
    for t in range(count - 1, -1, -1):
        i, u = (
            ints[independent_index + ints[columns + first + ints[terms + TERM_INTS * t + TERM_COLUMN]]],
            ints[AT_CHAIN] + JOINT_FLOATS * t,
        )
        add6(floats, sums, u + 6, floats[s + i])
        floats[out + i] += dot6(floats, u, sums)


@subroutine
def chain_conjugate_step(ints, floats, x, b, n):
    """Write the step of the independent columns to `AT_REDUCED_STEP`, by the L D L' factors of the chain's Hessian.

    Columns at an active bound go to the bound. A pivot that is not positive counts as infinite, as in `solve_ldlt`: its
    column does not move.
    """
    block, independent_index, columns = (
        ints[AT_BLOCKS] + BLOCK_INTS * b,
        ints[AT_INDEPENDENT_INDEX],
        ints[AT_BLOCK_COLUMNS],
    )
    first, count, sums, P = ints[block + FIRST_COLUMN], ints[block + TERM_COUNT], ints[AT_SUMS], ints[AT_SUMS] + 6
    terms, y, compliance, model_gradient = (
        ints[AT_TERMS] + TERM_INTS * ints[block + FIRST_TERM],
        ints[AT_REDUCED_STEP],
        ints[AT_COMPLIANCE],
        ints[AT_MODEL_GRADIENT],
    )
    for i in range(n):
        floats[y + i] = distance_to_bound(ints, floats, x, ints[ints[AT_INDEPENDENT_COLUMN] + i])
    chain_product(ints, floats, b, n, y, model_gradient)
    for i in range(n):
        if ints[ints[AT_BOUND_STATE] + ints[ints[AT_INDEPENDENT_COLUMN] + i]] == FREE:
            floats[y + i] = (floats[ints[AT_DAMPED_GRADIENT] + i] - floats[model_gradient + i]) / floats[
                ints[AT_DIAGONAL] + i
            ]
    for k in range(42):
        floats[sums + k] = 0.0
    for t in range(count):
        v = ints[columns + first + ints[terms + TERM_INTS * t + TERM_COLUMN]]
        i, u, w = ints[independent_index + v], ints[AT_CHAIN] + JOINT_FLOATS * t, ints[AT_CHAIN_W] + 6 * t
        floats[compliance + i] = 0.0
        if ints[ints[AT_BOUND_STATE] + v] != FREE:
            continue
        for k in range(6):
            floats[w + k] = floats[u + k] - dot6(floats, P + 6 * k, u + 6)
        d = floats[ints[AT_DIAGONAL] + i] + dot6(floats, u + 6, w)
        z = floats[ints[AT_DAMPED_GRADIENT] + i] - floats[model_gradient + i] - dot6(floats, u + 6, sums)
        floats[y + i] = 0.0
        if d > 1e-300:
            floats[compliance + i], floats[y + i] = 1.0 / d, z / d
            add6(floats, sums, w, z / d)
            for k in range(6):
                add6(floats, P + 6 * k, w, floats[w + k] / d)
    for k in range(6):
        floats[sums + k] = 0.0
    for t in range(count - 1, -1, -1):
        i, u = (
            ints[independent_index + ints[columns + first + ints[terms + TERM_INTS * t + TERM_COLUMN]]],
            ints[AT_CHAIN] + JOINT_FLOATS * t,
        )
        if floats[compliance + i] > 0.0:
            floats[y + i] -= floats[compliance + i] * dot6(floats, ints[AT_CHAIN_W] + 6 * t, sums)
            add6(floats, sums, u + 6, floats[y + i])
