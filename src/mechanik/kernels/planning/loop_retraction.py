"""Retract configurations onto the manifold of closed loops, and move along that manifold towards a goal.

Newton's method with minimum-norm steps -u, u = D' (D D')^-1 e, closes the loops. A factored Jacobian is used for
several steps while the residual decreases fast. The kernel `evaluate_dense` evaluates the loops. It is passed as a
function, because compiling it again as a part of these kernels would take long.

The letters of the code: E and J are the residual and the Jacobian of the problem; e is the part of E that must be zero,
and D the same rows of J, with zero columns for locked dofs; L is the Cholesky factor of D D'; -u is a Newton step.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, subroutine
from ..problem_layout import *

EVALUATE = ("dense_evaluation:evaluate_dense",)
"""The kernel that evaluates the residual of the loops, bound as the first argument."""
MOVE_EVALUATE_DENSIFY, TRIAL_BUFFER = 7, 1
"""Arguments of `evaluate_dense`: its actions (move x, evaluate the residual, write dense arrays), and the buffer."""

CLOSED_RESIDUAL = 1e-10
"""Largest residual (rad, or length units of the mechanism) of a closed loop."""
MAX_NEWTON_STEPS = 25
"""Largest number of Newton steps of a retraction."""
MAX_NEWTON_STEP = 0.5
"""Largest norm of a Newton step, in units of the columns (rad, or length units of the mechanism)."""
FAST_CONVERGENCE_RATIO = 0.2
"""The Jacobian is reused while each step reduces the residual below this share of the previous residual."""
REGULARIZATION = 1e-12
"""Term on the diagonal of D D', needed because closure rows may be linearly dependent."""
LIMIT_TOLERANCE = 1e-9
"""Largest violation (rad or m) of a joint limit."""


@subroutine
def factor_gram(D, L):
    """Factor D D' + REGULARIZATION I = L L'; return False if the matrix is not positive definite."""
    for i in range(D.shape[0]):
        for j in range(i + 1):
            remainder = REGULARIZATION if i == j else 0.0
            for v in range(D.shape[1]):
                remainder += D[i, v] * D[j, v]
            for k in range(j):
                remainder -= L[i, k] * L[j, k]
            if i > j:
                L[i, j] = remainder / L[j, j]
            elif remainder > 0.0:
                L[i, i] = math.sqrt(remainder)
            else:
                return False
    return True


@subroutine
def minimum_norm_step(D, L, e, u):
    """Write the minimum-norm solution u of D u = e and return its norm; e is overwritten."""
    m, square = D.shape[0], 0.0
    for i in range(m):
        for k in range(i):
            e[i] -= L[i, k] * e[k]
        e[i] /= L[i, i]
    for i in range(m - 1, -1, -1):
        for k in range(i + 1, m):
            e[i] -= L[k, i] * e[k]
        e[i] /= L[i, i]
    for v in range(D.shape[1]):
        u[v] = 0.0
        for i in range(m):
            u[v] += D[i, v] * e[i]
        square += u[v] * u[v]
    return math.sqrt(square)


@subroutine
def close_loops(evaluate, problem, rows, can_move, q, E, J, D, L, e, u):
    """Write a configuration with closed loops near q (nq,) to the table `trial`; return whether this succeeded."""
    trial, problem_step, previous_residual, has_factor = problem.trial, problem.step, math.inf, False
    for k in range(problem.x_count):
        trial[k] = q[k] if k < q.shape[0] else problem.x[k]
    for v in range(problem.column_count):
        problem_step[v] = 0.0
    for _ in range(MAX_NEWTON_STEPS):
        evaluate(problem.ints, problem.floats, MOVE_EVALUATE_DENSIFY, 1.0, TRIAL_BUFFER, 0, problem.block_count, E, J)
        largest_residual = 0.0
        for i in range(rows.shape[0]):
            e[i] = E[rows[i]]
            if not abs(e[i]) < math.inf:
                return False
            largest_residual = max(largest_residual, abs(e[i]))
        if largest_residual < CLOSED_RESIDUAL:
            return True
        if not has_factor or not largest_residual < FAST_CONVERGENCE_RATIO * previous_residual:
            for i in range(rows.shape[0]):
                for v in range(can_move.shape[0]):
                    D[i, v] = can_move[v] * J[rows[i], v]
            if not factor_gram(D, L):
                return False
            has_factor = True
        previous_residual, norm = largest_residual, minimum_norm_step(D, L, e, u)
        for v in range(can_move.shape[0]):
            problem_step[v] = u[v] * (-1.0 if norm < MAX_NEWTON_STEP else -MAX_NEWTON_STEP / norm)
    return False


@subroutine
def largest_difference(a, b, unit):
    """Return the largest difference of two configurations in any element of q, in multiples of `unit`."""
    largest_ratio = 0.0
    for k in range(a.shape[0]):
        largest_ratio = max(largest_ratio, abs(b[k] - a[k]) / unit[k])
    return largest_ratio


@subroutine
def allocate_work(problem, rows, can_move):
    """Allocate the work arrays E, J, D, L, e, u of `close_loops`."""
    n, m = can_move.shape[0], rows.shape[0]
    row_count = problem.row_count
    return (
        np.empty(row_count), np.empty((row_count, n)), np.empty((m, n)), np.empty((m, m)), np.empty(m), np.empty(n),
    )  # fmt: skip


@kernel("void(i8[::1], f8[::1], i8[::1], f8[::1], i8[::1], f8[:,::1], b1[::1])", calls=EVALUATE, allocates=True)
def retract(evaluate, ints, floats, rows, can_move, q_indices, q, is_closed):
    """Move each row of q to a nearby configuration with closed loops; rows without a solution do not change.

    Args:
        evaluate: the kernel `evaluate_dense`.
        ints, floats: a problem of loops that share dofs, in the layout of `problem_layout.py`.
        rows: indices of the residual rows that must be zero.
        can_move: (n,) 1.0 for columns that may move, else 0.0.
        q_indices: indices of the elements of q that belong to the problem.
        q: (N, nq) configurations, updated.
        is_closed: (N,) true for the rows to retract; set to false where no solution is found.
    """
    problem = open_problem(ints, floats)
    E, J, D, L, e, u = allocate_work(problem, rows, can_move)
    for i in range(q.shape[0]):
        if is_closed[i]:
            is_closed[i] = close_loops(evaluate, problem, rows, can_move, q[i], E, J, D, L, e, u)
            if is_closed[i]:
                for k in q_indices:
                    q[i, k] = problem.trial[k]


@kernel(
    "i8(i8[::1], f8[::1], i8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, f8, f8, "
    "f8[:,::1])",
    calls=EVALUATE,
    allocates=True,
)
def move_with_closed_loops(
    evaluate, ints, floats, rows, can_move, q_indices, a, b, lower, upper, unit, step, max_stretch, min_progress, out
):
    """Move from a towards b with closed loops in small steps, and return the number of configurations.

    The motion ends at b, at a joint limit, if the loops cannot be closed, if a step is too long or makes too little
    progress towards b, or if `out` is full.

    Args:
        evaluate, ints, floats, rows, can_move, q_indices: as in `retract`.
        a, b: (nq,) start and goal, with closed loops.
        lower, upper: (nq,) joint limits, rad or m.
        unit: (nq,) scale of each element of q.
        step: largest distance between configurations before the loops are closed, in scaled units.
        max_stretch: largest length of a step after the loops are closed, as a multiple of `step`; a longer step has
            reached another branch.
        min_progress: smallest progress towards b per step, as a share of `step`.
        out: (N, nq) written: the configurations, of which the first is a.
    """
    problem = open_problem(ints, floats)
    E, J, D, L, e, u = allocate_work(problem, rows, can_move)
    n, q, count = a.shape[0], np.empty(a.shape[0]), 1
    out[0] = a
    distance = largest_difference(a, b, unit)
    while count < out.shape[0]:
        previous_q = out[count - 1]
        if distance <= step:
            out[count] = b
            return count + 1
        for k in range(n):
            q[k] = previous_q[k] + (b[k] - previous_q[k]) * (step / distance)
        if not close_loops(evaluate, problem, rows, can_move, q, E, J, D, L, e, u):
            return count
        for k in q_indices:
            q[k] = problem.trial[k]
        for k in range(n):
            if not (lower[k] - LIMIT_TOLERANCE <= q[k] <= upper[k] + LIMIT_TOLERANCE):
                return count
        next_distance = largest_difference(q, b, unit)
        if (
            largest_difference(previous_q, q, unit) > max_stretch * step
            or not next_distance < distance - min_progress * step
        ):
            return count
        out[count], distance = q, next_distance
        count += 1
    return count
