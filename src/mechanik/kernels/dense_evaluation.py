"""One evaluation of a problem with dense output, for methods whose loop is written in Python.

The kernel moves x, evaluates the residual and writes residual and Jacobian as dense arrays. Slacks of bands are no
columns here: they take their best values. So the residual of a row with a band is its distance to the band, and a row
inside its band has a zero Jacobian.
"""

from __future__ import annotations

from .bounded_step import apply_step
from .compiler import kernel, subroutine
from .problem_layout import *
from .residuals import evaluate_residuals
from .stages import fit_slacks, sum_of_squares

MOVE, EVALUATE, DENSIFY = 1, 2, 4
"""Bits of `actions`: move x, evaluate the residual, write dense arrays."""


@subroutine
def densify(ints, floats, buffer, end, E, J):
    """Write the residual (m,) and its Jacobian (m, n) over all columns but slacks; locked columns are zero."""
    blocks, block_columns, slack, bound_state = (
        ints[AT_BLOCKS],
        ints[AT_BLOCK_COLUMNS],
        ints[AT_SLACK],
        ints[AT_BOUND_STATE],
    )
    residual, jacobian = ints[AT_RESIDUAL] + ints[N_ROWS] * buffer, ints[AT_JACOBIAN] + ints[N_JACOBIAN] * buffer
    n = J.shape[1]
    for b in range(end):
        block = blocks + BLOCK_INTS * b
        row, width, first, j = (
            ints[block + FIRST_ROW],
            ints[block + COLUMN_COUNT],
            ints[block + FIRST_COLUMN],
            ints[block + FIRST_JACOBIAN],
        )
        for r in range(row, row + ints[block + ROW_COUNT]):
            E[r] = floats[residual + r]
            for v in range(n):
                J[r, v] = 0.0
            if ints[slack + 2 * r] >= 0 and E[r] == 0.0:
                continue
            for u in range(width):
                v = ints[block_columns + first + u]
                if v < n and ints[bound_state + v] != LOCKED:
                    J[r, v] = floats[jacobian + j + (r - row) * width + u]


@kernel("UniTuple(f8, 2)(i8[::1], f8[::1], i8, f8, i8, i8, i8, f8[::1], f8[:,::1])")
def evaluate_dense(ints, floats, actions, factor, buffer, required_blocks, end, E, J):
    """Move x, evaluate the residual and write it with its Jacobian as dense arrays, as the bits of `actions` say.

    The method's own x is the table `trial`. With buffer 1 it is moved and evaluated. With buffer 0 the moved x goes
    into the table `x` and is evaluated there; `trial` stays.

    Args:
        ints, floats: the packed problem (`problem_layout.py`).
        actions: MOVE, EVALUATE and DENSIFY, as bits.
        factor: factor of `step`.
        buffer: 0 or 1, of residual and Jacobian; only buffer 1 is written to E and J.
        required_blocks, end: number of blocks that count, and number of blocks that are evaluated.
        E, J: (m,) and (m, n), written with DENSIFY.

    Returns:
        The sum of squares of the required blocks, and 1.0 if each of them is within its tolerances (else 0.0).
    """
    trial, step = ints[AT_TRIAL], ints[AT_STEP]
    x = trial if buffer == 1 else ints[AT_X]
    if actions & MOVE:
        for v in range(ints[N_COLUMNS]):
            floats[step + v] *= factor
        apply_step(ints, floats, trial, x, True)
        if factor != 0.0:
            for v in range(ints[N_COLUMNS]):
                floats[step + v] /= factor
    if actions & EVALUATE:
        evaluate_residuals(ints, floats, x, buffer, end)
    if actions & DENSIFY == 0:
        return 0.0, 0.0
    fit_slacks(ints, floats, x, buffer, 0, end)
    cost, is_met = sum_of_squares(ints, floats, buffer, 0, required_blocks)
    if buffer == 1:
        densify(ints, floats, buffer, end, E, J)
    return cost, 1.0 if is_met else 0.0
