"""Back to where loops are shut, and along them from one configuration towards another.

Newton's method by the shortest steps, u = -J' (J J')^-1 e. Its derivatives serve for several steps, as long as errors
fall fast. What looks at the loops is `look` of `kernels`, which is handed over as a function: compiled into these
kernels it would take as long to compile again.
"""

from __future__ import annotations

import math

import numpy as np

from ..compiler import kernel, part
from ..problem import *

LOOK = ("look:look",)
"""The kernel that evaluates the rows of loops, bound as the first argument."""
MOVE_AND_LOOK, MINE = 7, 1
"""How `look` is asked to move x, evaluate rows and lay them out."""

CLOSED = 1e-10
"""Rows (rad, sizes): loops that stand open by less are shut."""
STEPS = 25
LONGEST = 0.5
"""Rad, sizes: of one step."""
FAST = 0.2
"""While an error falls to less than this share with each step, the derivatives are good enough."""
ROUNDING = 1e-12
"""Rows may say the same twice."""
INSIDE = 1e-9
"""Rad, m: by how much a limit may be passed."""


@part
def factor(D, L):
    """L L' = D D'; False if it cannot be."""
    for i in range(D.shape[0]):
        for j in range(i + 1):
            total = ROUNDING if i == j else 0.0
            for v in range(D.shape[1]):
                total += D[i, v] * D[j, v]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i > j:
                L[i, j] = total / L[j, j]
            elif total > 0.0:
                L[i, i] = math.sqrt(total)
            else:
                return False
    return True


@part
def shortest(D, L, e, u):
    """The shortest u that D takes to e, which is used up; returns its length."""
    m, squares = D.shape[0], 0.0
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
        squares += u[v] * u[v]
    return math.sqrt(squares)


@part
def shut(look, I, F, rows, free, q, E, J, D, L, e, u):
    """Bring x, the table `trial`, from q (nq,) to where all rows are zero; whether it is there."""
    x, step, last, known = I[AT_TRIAL], I[AT_STEP], math.inf, False
    for k in range(I[N_X]):
        F[x + k] = q[k] if k < q.shape[0] else F[I[AT_X] + k]
    for v in range(I[N_COLUMNS]):
        F[step + v] = 0.0
    for _ in range(STEPS):
        look(I, F, MOVE_AND_LOOK, 1.0, MINE, 0, I[N_BLOCKS], E, J)
        error = 0.0
        for i in range(rows.shape[0]):
            e[i] = E[rows[i]]
            if not abs(e[i]) < math.inf:
                return False
            error = max(error, abs(e[i]))
        if error < CLOSED:
            return True
        if not known or not error < FAST * last:
            for i in range(rows.shape[0]):
                for v in range(free.shape[0]):
                    D[i, v] = free[v] * J[rows[i], v]
            if not factor(D, L):
                return False
            known = True
        last, size = error, shortest(D, L, e, u)
        for v in range(free.shape[0]):
            F[step + v] = u[v] * (-1.0 if size < LONGEST else -LONGEST / size)
    return False


@part
def farthest(a, b, unit):
    """How far two configurations are apart in the freedom in which they are most, in units."""
    most = 0.0
    for k in range(a.shape[0]):
        most = max(most, abs(b[k] - a[k]) / unit[k])
    return most


@part
def room(I, rows, free):
    """To work in."""
    n, m = free.shape[0], rows.shape[0]
    all_rows = I[N_ROWS]
    return (
        np.empty(all_rows), np.empty((all_rows, n)), np.empty((m, n)), np.empty((m, m)), np.empty(m), np.empty(n),
    )  # fmt: skip


@kernel("void(i8[::1], f8[::1], i8[::1], f8[::1], i8[::1], f8[:,::1], b1[::1])", calls=LOOK)
def retract(look, I, F, rows, free, numbers, q, done):
    """Move each of q (N, nq) to a place near by where loops are shut; where there is none near, it stays.

    Args:
        look: what looks at the loops.
        I, F: loops that share freedoms, as `problem.py` lays them out.
        rows: which of its rows are to be zero.
        free: (n,) 1 for columns that may move, else 0.
        numbers: which numbers of q belong to it.
        done: (N,) false where nothing is to be done; becomes false where there is no place.
    """
    E, J, D, L, e, u = room(I, rows, free)
    for i in range(q.shape[0]):
        if done[i]:
            done[i] = shut(look, I, F, rows, free, q[i], E, J, D, L, e, u)
            if done[i]:
                for k in numbers:
                    q[i, k] = F[I[AT_TRIAL] + k]


@kernel(
    "i8(i8[::1], f8[::1], i8[::1], f8[::1], i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, f8, f8, "
    "f8[:,::1])",
    calls=LOOK,
)
def walk(look, I, F, rows, free, numbers, a, b, lower, upper, unit, step, stray, creeping, out):
    """Go from a towards b (nq,) along the loops; into out (N, nq), a first. Returns how many were written.

    It ends at b, or where loops lead away from it, where limits are, or where `out` is full.

    Args:
        lower, upper: (nq,) limits.
        unit: (nq,) what counts as 1.
        step: units: how far configurations are apart at most, as long as loops are not shut.
        stray: shutting may make a step so many times longer; else it has gone elsewhere.
        creeping: of a step: what comes less near leads nowhere.
    """
    E, J, D, L, e, u = room(I, rows, free)
    n, q, count = a.shape[0], np.empty(a.shape[0]), 1
    out[0] = a
    left = farthest(a, b, unit)
    while count < out.shape[0]:
        here = out[count - 1]
        if left <= step:
            out[count] = b
            return count + 1
        for k in range(n):
            q[k] = here[k] + (b[k] - here[k]) * (step / left)
        if not shut(look, I, F, rows, free, q, E, J, D, L, e, u):
            return count
        for k in numbers:
            q[k] = F[I[AT_TRIAL] + k]
        for k in range(n):
            if not (lower[k] - INSIDE <= q[k] <= upper[k] + INSIDE):
                return count
        now = farthest(q, b, unit)
        if farthest(here, q, unit) > stray * step or not now < left - creeping * step:
            return count
        out[count], left = q, now
        count += 1
    return count
