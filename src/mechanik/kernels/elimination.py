"""Rows that must hold are used up: each gives one column as a function of others.

Gauss-Jordan with complete pivoting. First block by block on the columns that only one hard block knows, such as
the joints of one leg, so that the cost grows with the number of legs; then on all columns for the rows that are
left. A row without a pivot says nothing new: over-constrained loops need no rule of their own. What comes out is

    step[dependent] = offset + Z step[independent]

with a sparse row of Z for each dependent column.
"""

from __future__ import annotations

from .compiler import part
from .problem import *

SMALLEST_PIVOT = 1e-7
"""Rows and columns are of the order of one; below this a row counts as zero. Tuned on Bennett and planar loops."""
SMALLEST_OWN_PIVOT = 0.03
"""A row to which the columns of its own block say less than this waits for those of all: a straight leg cannot shorten,
and the body that stands on it can move."""
NONE = -1
FEW = 24
"""Up to so many independent columns are gone through one by one; of more, those that a row knows are listed."""
LATER = 1 << 40
"""Marks columns that the rows left over from all blocks took."""


@part
def eliminate(I, F, stage, buffer, hard, curved, newton):
    """Choose dependent columns, none of them at a bound if that can be.

    Returns the number of independent ones, and how many rows were left over from all blocks. With `curved`, it is kept
    which rows make up those that are left, in `undo`. With `newton`, it is only worked out where the dependent
    ones go when no independent one moves.
    """
    order, dependent, place, independent = I[AT_ORDER], I[AT_DEPENDENT], I[AT_PLACE], I[AT_INDEPENDENT]
    z_count, offset = I[AT_Z_COUNT], I[AT_OFFSET]
    c = I[N_COLUMNS]
    for v in range(c):
        I[dependent + v] = NONE
        F[offset + v] = 0.0
        I[z_count + v] = 0
    if hard == 0:
        for k in range(c):
            v = I[order + k]
            I[place + v] = k
            I[independent + k] = v
        return c, I[ZERO]
    left = I[ZERO]
    for b in range(hard):
        reduce_block(I, F, stage, buffer, b, curved)
        left = keep_what_is_left(I, F, b, left)
    if left > 0:
        reduce_rest(I, F, left)
    n = I[ZERO]
    if newton:
        express_alone(I, F, hard, left)
        return n, left
    for k in range(c):
        v = I[order + k]
        if I[dependent + v] == NONE:
            I[place + v] = n
            I[independent + n] = v
            n += 1
    express(I, F, hard, left, n)
    return n, left


@part
def reduce_block(I, F, stage, buffer, b, curved):
    """Gauss-Jordan on the columns that no other hard block knows."""
    blocks, block_columns, slack, private = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_SLACK], I[AT_PRIVATE]
    ban, dependent, pivot, jacobian = I[AT_BAN], I[AT_DEPENDENT], I[AT_PIVOT], I[AT_JACOBIAN]
    rows, hold, T, rhs = I[AT_ROWS], I[AT_HOLD], I[AT_T], I[AT_RHS]
    block = blocks + BLOCK_INTS * b
    m, width, j, row, column = (
        I[block + ROWS],
        I[block + COLUMNS],
        I[block + FIRST_J],
        I[block + FIRST_ROW],
        I[block + FIRST_COLUMN],
    )
    J, E = jacobian + I[N_JACOBIAN] * buffer, rows + I[N_ROWS] * buffer
    for k in range(m * width):
        F[T + j + k] = F[J + j + k]
    for r in range(m):
        F[rhs + row + r] = F[E + row + r] - F[hold + row + r]
        I[pivot + row + r] = NONE
    undo = I[AT_UNDO] + I[WIDEST] * row if curved else I[ZERO] + NONE
    if curved:
        for k in range(m * m):
            F[undo + k] = 1.0 if k % (m + 1) == 0 else 0.0
    if I[block + HAS_BANDS] == 1:  # a slack that is free takes its row away, and nothing else is bound by it
        for r in range(m):
            u = I[slack + 2 * (row + r) + 1]
            if u >= 0 and I[ban + I[block_columns + column + u]] == 0:
                take(I, F, j, width, m, row, column, r, u, undo)
    # a column that is taken is zero in all rows but its own, so the list stays as it is
    listed, count = I[AT_LISTED], I[ZERO]
    for u in range(width):
        v = I[block_columns + column + u]
        if I[private + I[N_COLUMNS] * stage + v] == 1 and I[ban + v] == 0 and I[dependent + v] == NONE:
            I[listed + count] = u
            count += 1
    for _ in range(m):
        best, at_row, at = SMALLEST_OWN_PIVOT, I[ZERO] + NONE, I[ZERO] + NONE
        for r in range(m):
            if I[pivot + row + r] == NONE:
                start = T + j + r * width
                for k in range(count):
                    size = abs(F[start + I[listed + k]])
                    if size > best:
                        best, at_row, at = size, r, I[listed + k]
        if at_row == NONE:
            break
        take(I, F, j, width, m, row, column, at_row, at, undo)


@part
def take(I, F, j, width, m, row, column, r, u, undo):
    """Solve row r for column u, and put it into the other rows."""
    block_columns, dependent, pivot, T = I[AT_BLOCK_COLUMNS], I[AT_DEPENDENT], I[AT_PIVOT], I[AT_T]
    rhs = I[AT_RHS]
    I[pivot + row + r] = u
    I[dependent + I[block_columns + column + u]] = row + r
    p = j + r * width
    inverse = 1.0 / F[T + p + u]
    for k in range(width):
        F[T + p + k] *= inverse
    F[T + p + u] = 1.0
    F[rhs + row + r] *= inverse
    if undo >= 0:
        for k in range(m):
            F[undo + r * m + k] *= inverse
    for other in range(m):
        o = j + other * width
        f = F[T + o + u]
        if other != r and f != 0.0:
            for k in range(width):
                F[T + o + k] -= f * F[T + p + k]
            F[T + o + u] = 0.0
            F[rhs + row + other] -= f * F[rhs + row + r]
            if undo >= 0:
                for k in range(m):
                    F[undo + other * m + k] -= f * F[undo + r * m + k]


@part
def keep_what_is_left(I, F, b, left):
    """Rows of a block that found no pivot, and are not zero, as rows over all columns."""
    blocks, block_columns, pivot, rest_column = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_PIVOT], I[AT_REST_COLUMN]
    dense, T, rhs = I[AT_DENSE], I[AT_T], I[AT_RHS]
    block = blocks + BLOCK_INTS * b
    m, width, j, row, column = (
        I[block + ROWS],
        I[block + COLUMNS],
        I[block + FIRST_J],
        I[block + FIRST_ROW],
        I[block + FIRST_COLUMN],
    )
    c = I[N_COLUMNS]
    for r in range(m):
        I[I[AT_LEFT_ROW] + row + r] = NONE
        if I[pivot + row + r] != NONE:
            continue
        largest = 0.0
        for u in range(width):
            largest = max(largest, abs(F[T + j + r * width + u]))
        if largest <= SMALLEST_PIVOT:
            continue
        start = left * (c + 1)
        for v in range(c):
            F[dense + start + v] = 0.0
        for u in range(width):
            F[dense + start + I[block_columns + column + u]] = F[T + j + r * width + u]
        F[dense + start + c] = F[rhs + row + r]
        I[rest_column + left] = NONE
        I[I[AT_LEFT_ROW] + row + r] = left
        left += 1
    return left


@part
def reduce_rest(I, F, left):
    """Gauss-Jordan of the rows that are left; columns at a bound are taken only where no others can be."""
    ban, dependent, rest_column, dense = I[AT_BAN], I[AT_DEPENDENT], I[AT_REST_COLUMN], I[AT_DENSE]
    c, D = I[N_COLUMNS], dense
    w = c + 1
    for allow in range(2):
        for _ in range(left):
            best, at_row, at = SMALLEST_PIVOT, I[ZERO] + NONE, I[ZERO] + NONE
            for r in range(left):
                if I[rest_column + r] == NONE:
                    for v in range(c):
                        size = abs(F[D + r * w + v])
                        if size > best and (I[ban + v] == 0 or (allow == 1 and I[ban + v] != 3)):
                            best, at_row, at = size, r, v
            if at_row == NONE:
                break
            I[ban + at] = 0
            I[rest_column + at_row] = at
            I[dependent + at] = LATER + at_row
            inverse = 1.0 / F[D + at_row * w + at]
            for k in range(w):
                F[D + at_row * w + k] *= inverse
            F[D + at_row * w + at] = 1.0
            for r in range(left):
                f = F[D + r * w + at]
                if r != at_row and f != 0.0:
                    for k in range(w):
                        F[D + r * w + k] -= f * F[D + at_row * w + k]
                    F[D + r * w + at] = 0.0


@part
def express_alone(I, F, hard, rest):
    """Where dependent columns go when no independent one moves."""
    blocks, block_columns, dependent, pivot = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_DEPENDENT], I[AT_PIVOT]
    offset, dense, T, rhs = I[AT_OFFSET], I[AT_DENSE], I[AT_T], I[AT_RHS]
    w = I[N_COLUMNS] + 1
    for r in range(rest):
        if I[I[AT_REST_COLUMN] + r] != NONE:
            F[offset + I[I[AT_REST_COLUMN] + r]] = -F[dense + r * w + w - 1]
    for b in range(hard):
        block = blocks + BLOCK_INTS * b
        width, row, column = I[block + COLUMNS], I[block + FIRST_ROW], I[block + FIRST_COLUMN]
        for r in range(I[block + ROWS]):
            if I[pivot + row + r] == NONE:
                continue
            alone = -F[rhs + row + r]
            if rest > 0:
                t = T + I[block + FIRST_J] + r * width
                for u in range(width):
                    v = I[block_columns + column + u]
                    if I[dependent + v] >= LATER:
                        alone -= F[t + u] * F[offset + v]
            F[offset + I[block_columns + column + I[pivot + row + r]]] = alone


@part
def express(I, F, hard, rest, n):
    """The rows of Z, from those of the dense rest and then of the blocks."""
    blocks, block_columns, dependent, place = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_DEPENDENT], I[AT_PLACE]
    independent, local, listed, z_count = I[AT_INDEPENDENT], I[AT_LOCAL], I[AT_LISTED], I[AT_Z_COUNT]
    z_start, z_index, pivot, rest_column = I[AT_Z_START], I[AT_Z_INDEX], I[AT_PIVOT], I[AT_REST_COLUMN]
    offset, dense, Z, T = I[AT_OFFSET], I[AT_DENSE], I[AT_Z], I[AT_T]
    rhs, line = I[AT_RHS], I[AT_LINE]
    c = I[N_COLUMNS]
    used = 0
    for r in range(rest):
        v = I[rest_column + r]
        if v == NONE:
            continue
        F[offset + v] = -F[dense + r * (c + 1) + c]
        I[z_start + v] = used
        if n <= FEW:  # its independent columns, in their order, at the front of the row
            for i in range(n):
                F[line + i] = F[dense + r * (c + 1) + I[independent + i]]
            for i in range(n):
                F[dense + r * (c + 1) + i] = F[line + i]
                if F[line + i] != 0.0:
                    I[z_index + used] = i
                    F[Z + used] = -F[line + i]
                    used += 1
            I[z_count + v] = used - I[z_start + v]
            continue
        for i in range(n):
            t = F[dense + r * (c + 1) + I[independent + i]]
            if t != 0.0:
                I[z_index + used] = i
                F[Z + used] = -t
                used += 1
        I[z_count + v] = used - I[z_start + v]
    for i in range(n):
        I[local + i] = 0
        F[line + i] = 0.0
    for b in range(hard):
        block = blocks + BLOCK_INTS * b
        m, width, j, row, column = (
            I[block + ROWS],
            I[block + COLUMNS],
            I[block + FIRST_J],
            I[block + FIRST_ROW],
            I[block + FIRST_COLUMN],
        )
        for r in range(m):
            if I[pivot + row + r] == NONE:
                continue
            v = I[block_columns + column + I[pivot + row + r]]
            alone, touched = -F[rhs + row + r], I[ZERO]
            if n <= FEW:
                used = express_row(I, F, j + r * width, width, column, v, alone, n, used)
                continue
            for u in range(width):
                t, w = F[T + j + r * width + u], I[block_columns + column + u]
                if t == 0.0 or w == v:
                    continue
                if I[dependent + w] == NONE:
                    touched = add_entry(I, F, I[place + w], -t, touched)
                elif I[dependent + w] >= LATER:  # put in what that column is
                    alone -= t * F[offset + w]
                    for k in range(I[z_start + w], I[z_start + w] + I[z_count + w]):
                        touched = add_entry(I, F, I[z_index + k], -t * F[Z + k], touched)
            F[offset + v] = alone
            I[z_start + v] = used
            for k in range(touched):
                i = I[listed + k]
                I[z_index + used] = i
                F[Z + used] = F[line + i]
                F[line + i] = 0.0
                I[local + i] = 0
                used += 1
            I[z_count + v] = touched


@part
def express_row(I, F, t, width, column, v, alone, n, used):
    """The row of Z of column v where independent columns are few: all of them are gone through."""
    block_columns, dependent, place, line = I[AT_BLOCK_COLUMNS], I[AT_DEPENDENT], I[AT_PLACE], I[AT_LINE]
    for i in range(n):
        F[line + i] = 0.0
    for u in range(width):
        f, w = F[I[AT_T] + t + u], I[block_columns + column + u]
        if f == 0.0 or w == v:
            continue
        if I[dependent + w] == NONE:
            F[line + I[place + w]] -= f
        elif I[dependent + w] >= LATER:  # put in what that column is
            alone -= f * F[I[AT_OFFSET] + w]
            D = I[AT_DENSE] + (I[dependent + w] - LATER) * (I[N_COLUMNS] + 1)
            for i in range(n):
                F[line + i] += f * F[D + i]
    F[I[AT_OFFSET] + v] = alone
    I[I[AT_Z_START] + v] = used
    for i in range(n):
        if F[line + i] != 0.0:
            I[I[AT_Z_INDEX] + used] = i
            F[I[AT_Z] + used] = F[line + i]
            used += 1
    I[I[AT_Z_COUNT] + v] = used - I[I[AT_Z_START] + v]
    return used


@part
def add_entry(I, F, i, value, touched):
    local, listed, line = I[AT_LOCAL], I[AT_LISTED], I[AT_LINE]
    if I[local + i] == 0:
        I[local + i] = 1
        I[listed + touched] = i
        touched += 1
    F[line + i] += value
    return touched
