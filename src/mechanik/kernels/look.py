"""One look at a problem, for methods whose loop is written in Python: move x, evaluate the rows, lay them out densely.

Slacks of bands are no columns here. They are given the values that serve best, so a row in a band is how far it
lies outside, and one that lies inside has no derivative.
"""

from __future__ import annotations

from .bounded_step import advance
from .compiler import kernel, part
from .problem import *
from .rows import evaluate
from .stages import fit_slacks, sum_of_squares

MOVE, EVALUATE, GATHER = 1, 2, 4
"""What is to be done, as bits."""


@part
def lay_out(I, F, buffer, end, E, J):
    """Rows (m,) and their Jacobian (m, n) over the columns that are no slacks; columns that are locked are zero."""
    blocks, block_columns, slack, ban = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_SLACK], I[AT_BAN]
    rows, jacobian = I[AT_ROWS] + I[N_ROWS] * buffer, I[AT_JACOBIAN] + I[N_JACOBIAN] * buffer
    n = J.shape[1]
    for b in range(end):
        block = blocks + BLOCK_INTS * b
        row, width, first, j = I[block + FIRST_ROW], I[block + COLUMNS], I[block + FIRST_COLUMN], I[block + FIRST_J]
        for r in range(row, row + I[block + ROWS]):
            E[r] = F[rows + r]
            for v in range(n):
                J[r, v] = 0.0
            if I[slack + 2 * r] >= 0 and E[r] == 0.0:
                continue
            for u in range(width):
                v = I[block_columns + first + u]
                if v < n and I[ban + v] != LOCKED:
                    J[r, v] = F[jacobian + j + (r - row) * width + u]


@kernel("UniTuple(f8, 2)(i8[::1], f8[::1], i8, f8, i8, i8, i8, f8[::1], f8[:,::1])")
def look(I, F, doing, share, buffer, required, end, E, J):
    """Returns the sum of squares of the required rows, and 1.0 if each of their blocks is within its tolerances.

    The method's own x is the table `trial`. With buffer 1 it is moved and looked at; with buffer 0 the place that it
    would be moved to is looked at, in the table `x`, and the method's own stays.

    Args:
        share: how much of `step` to go.
        required, end: how many blocks count, and how many are evaluated.
        E, J: (m,) and (m, n), written if they are to be gathered.
    """
    trial, step = I[AT_TRIAL], I[AT_STEP]
    x = trial if buffer == 1 else I[AT_X]
    if doing & MOVE:
        for v in range(I[N_COLUMNS]):
            F[step + v] *= share
        advance(I, F, trial, x, True)
        if share != 0.0:
            for v in range(I[N_COLUMNS]):
                F[step + v] /= share
    if doing & EVALUATE:
        evaluate(I, F, x, buffer, end)
    if doing & GATHER == 0:
        return 0.0, 0.0
    fit_slacks(I, F, x, buffer, 0, end)
    cost, met = sum_of_squares(I, F, buffer, 0, required)
    if buffer == 1:
        lay_out(I, F, buffer, end, E, J)
    return cost, 1.0 if met else 0.0
