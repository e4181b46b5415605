"""One evaluation of a problem with dense output, for callers that compute their own steps.

The kernel moves x, evaluates the residual and writes residual and Jacobian as dense arrays. The dense Jacobian has no
columns for the slacks of bands: the slacks are set to their best values. Therefore the residual of a row with a band is
its signed distance to the band, weighted, and a row inside its band has a zero Jacobian.
"""

from __future__ import annotations

from .bounded_step import apply_step
from .compiler import kernel, subroutine
from .problem_layout import *
from .problem_views import columns_of_block, jacobian_of_block, rows_of_block
from .residuals import evaluate_residuals
from .stages import fit_slacks, sum_of_squares

MOVE, EVALUATE, DENSIFY = 1, 2, 4
"""Bits of `actions`: move x, evaluate the residual and its block Jacobians, write dense arrays."""


@subroutine
def densify(problem, buffer, end_block, residual_out, J):
    """Write the residual (m,) and its Jacobian (m, n) over all columns except slacks; locked columns are zero."""
    bound_state, n = problem.bound_state, J.shape[1]
    for b in range(end_block):
        block = problem.blocks[b]
        columns, block_jacobian = columns_of_block(problem, block), jacobian_of_block(problem, buffer, block)
        residual = rows_of_block(problem.residual[buffer], block)
        for r in range(block.row_count):
            row = block.first_row + r
            residual_out[row] = residual[r]
            for v in range(n):
                J[row, v] = 0.0
            if problem.slacks[row].x >= 0 and residual[r] == 0.0:
                continue
            for u in range(block.column_count):
                v = columns[u]
                if v < n and bound_state[v] != LOCKED:
                    J[row, v] = block_jacobian[r, u]


@kernel("UniTuple(f8, 2)(i8[::1], f8[::1], i8, f8, i8, i8, i8, f8[::1], f8[:,::1])")
def evaluate_dense(ints, floats, actions, step_factor, buffer, required_block_count, end_block, residual, J):
    """Move x, evaluate the residual and write it with its Jacobian as dense arrays; `actions` selects these actions.

    Unlike in the other kernels, the table `trial` contains the present x of the method, and the table `x` is scratch
    memory. With buffer 1 `trial` itself is moved and evaluated. With buffer 0 the moved x is written to `x` and
    evaluated there; `trial` stays unchanged.

    Args:
        ints, floats: the packed problem (`problem_layout.py`).
        actions: the sum of the bits MOVE, EVALUATE and DENSIFY.
        step_factor: x moves by this factor times the table `step`, which stays unchanged; 0 sets it to zero.
        buffer: buffer (0 or 1) of residual and Jacobian; only buffer 1 is written to `residual` and `J`.
        required_block_count, end_block: number of blocks that count for success, and number of blocks that are
            evaluated.
        residual, J: (m,) and (m, n), written with DENSIFY and buffer 1.

    Returns:
        With DENSIFY, the sum of squares of the required blocks, and 1.0 if each of them is within its tolerances
        (otherwise 0.0). Without DENSIFY, two zeros.
    """
    problem = open_problem(ints, floats)
    trial, step = problem.trial, problem.step
    x = trial if buffer == 1 else problem.x
    if actions & MOVE:
        for v in range(problem.column_count):
            step[v] *= step_factor
        apply_step(problem, trial, x, True)
        if step_factor != 0.0:
            for v in range(problem.column_count):
                step[v] /= step_factor
    if actions & EVALUATE:
        evaluate_residuals(problem, x, buffer, end_block)
    if actions & DENSIFY == 0:
        return 0.0, 0.0
    fit_slacks(problem, x, buffer, 0, end_block)
    cost, is_met = sum_of_squares(problem, buffer, 0, required_block_count)
    if buffer == 1:
        densify(problem, buffer, end_block, residual, J)
    return cost, 1.0 if is_met else 0.0
