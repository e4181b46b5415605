"""One level after the other: the velocity that serves a level best, in what the levels above leave free.

At each level the velocities are base + B y, and y minimises

    |A y - rate|^2 + damping |B y|^2        between the bounds of all columns and of further rows

Then B is cut down to what does not move the rows of the level. The rate takes off what the rows were from zero, at the
level's gain, and follows what the targets did meanwhile.
"""

from __future__ import annotations

import math

from ..compiler import part
from ..problem import *
from .brake import largest_velocity
from .layout import *
from .level_form import answer, cut_down, damping_near, form, left_over
from .quadratic import factor, least_within

LEAST_DAMPING = 1e-9
"""Always, so that what nothing is asked of stands still."""
LEAP = 2.0
"""How many times the largest acceleration a target's motion may have that is followed; what does more has leapt."""
BEND = 1.0
"""How much the rows bend, at most, in units of rows over columns squared: what a step must leave of an error, times
this, damps. Without it an arm that is stretched out towards a goal beyond its reach swings to and fro for ever."""
FEELS = 1e-7
"""Less damping than this is not worth the time."""
CHANGES = 4
"""How often the rows that lie in bands are looked at again."""


@part
def gather_soft(I, F, stage, A, e, past, edge, before, n):
    """Rows of a stage with their derivatives; returns how many, and how many of them lie in bands.

    Args:
        e, past: written: the rows now, and as they were with the last targets.
        edge: (m, 3) written: the band of a row, and whether it is asked for: 1, or 0 as long as it lies inside.
    """
    blocks, columns, slack = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_SLACK]
    rows, jacobian = I[AT_ROWS] + I[N_ROWS], I[AT_JACOBIAN] + I[N_JACOBIAN]
    m, banded = 0, 0
    at = I[AT_STAGES] + STAGE_INTS * stage
    for b in range(I[at + HARD], I[at + SOFT]):
        block = blocks + BLOCK_INTS * b
        row, width, first, j = I[block + FIRST_ROW], I[block + COLUMNS], I[block + FIRST_COLUMN], I[block + FIRST_J]
        for r in range(I[block + ROWS]):
            for v in range(n):
                A[m, v] = 0.0
            for u in range(width):
                v = I[columns + first + u]
                if v < n:
                    A[m, v] = F[jacobian + j + r * width + u]
            e[m] = F[rows + row + r]
            past[m] = e[m] if I[block + KIND] == FUNCTION else before[row + r]
            edge[m, 0], edge[m, 1], edge[m, 2] = 0.0, 0.0, 1.0
            if I[slack + 2 * (row + r)] >= 0:
                k, w = I[columns + first + I[slack + 2 * (row + r) + 1]], F[I[AT_WEIGHT] + row + r]
                edge[m, 0], edge[m, 1] = w * F[I[AT_LOWER] + k], w * F[I[AT_UPPER] + k]
                inside = edge[m, 0] <= e[m] <= edge[m, 1]
                edge[m, 2] = 0.0 if inside else 1.0
                off = 0.0 if inside else (edge[m, 0] if e[m] < edge[m, 0] else edge[m, 1])
                e[m], past[m] = e[m] - off, e[m] - off
                edge[m, 0], edge[m, 1] = edge[m, 0] - off, edge[m, 1] - off
                banded += 1
            m += 1
    return m, banded


@part
def share_of_speed(T, O, B, y, n, d, gain):
    """How much of a velocity that takes off an error at a gain columns can do, and still stop when it is zero.

    To first order each column has to go its velocity over the gain; all slow down as the slowest one must, so the
    direction stays.
    """
    share = 1.0
    for v in range(n):
        if not min(T[VELOCITY, v], T[ACCELERATION, v]) < math.inf:
            continue
        rate = 0.0
        for j in range(d):
            rate += B[v, j] * y[j]
        rate = abs(rate)
        if rate > 1e-12:
            a = T[ACCELERATION, v] * EXACT
            most = min(T[VELOCITY, v] * EXACT, largest_velocity(rate / gain, a, O[DT]))
            share = min(share, most / rate)
    return share


@part
def has_leapt(T, O, B, y, n, d, ahead, stage):
    """1 if the targets' motion, as velocities of columns, is more than the columns can do; which is kept in `ahead`."""
    leapt = 0.0
    for v in range(n):
        rate = 0.0
        for j in range(d):
            rate += B[v, j] * y[j]
        change = abs(rate - ahead[stage, v])
        if abs(rate) > T[VELOCITY, v] or change > LEAP * T[ACCELERATION, v] * O[DT]:
            leapt = 1.0
        ahead[stage, v] = rate
    return leapt


@part
def seen(A, r, rates, n):
    total = 0.0
    for v in range(n):
        total += A[r, v] * rates[v]
    return total


@part
def bound_by(C, low, high, B, more, edges, base, T, n, d, k):
    """All bounds as rows over y."""
    for v in range(n):
        low[v], high[v] = T[LOW, v] - base[v], T[HIGH, v] - base[v]
        for j in range(d):
            C[v, j] = B[v, j]
    for i in range(k):
        at = seen(more, i, base, n)
        low[n + i], high[n + i] = edges[i, 0] - at, edges[i, 1] - at
        for j in range(d):
            total = 0.0
            for v in range(n):
                total += more[i, v] * B[v, j]
            C[n + i, j] = total


@part
def serve_levels(I, F, T, O, W, V, U, gains, before, ahead, again, B, d, is_orthonormal, more, edges, k, base, n):
    """The velocities that serve all levels, into `base`; False if there are none between the bounds.

    Args:
        W, V, U: room to work in.
        again: whether this step was sought before.
        B: (n, n), of which the first d columns are free; used up.
        more, edges: (.., n) and (.., 2): k further rows with bounds of their rates, and room for the rows in bands.
        base: (n,) velocities that there are besides those of B.
    """
    A0, A, H, L, C, edge = W[W_ALL], W[W_A], W[W_H], W[W_L], W[W_C], W[W_EDGE]
    e, past, rate, low, high = V[V_E], V[V_PAST], V[V_RATE], V[V_LOW], V[V_HIGH]
    y, y_goal, y_ahead = V[V_Y], V[V_GOAL], V[V_AHEAD]
    stages = I[N_STAGES]
    nearing = min(1.0 / O[DT], O[NEARING])
    for stage in range(1, max(stages, 2)):
        m, banded = 0, 0
        if stage < stages:
            m, banded = gather_soft(I, F, stage, A0, e, past, edge, before, n)
        gain = 0.0
        if stage < stages:
            first = I[I[AT_BLOCKS] + BLOCK_INTS * I[I[AT_STAGES] + STAGE_INTS * stage + HARD] + FIRST_ROW]
            for r in range(m):
                gain = max(gain, gains[first + r])
        for r in range(m):
            for j in range(d):
                total = 0.0
                if is_orthonormal and stage == 1:
                    total = A0[r, j]
                else:
                    for v in range(n):
                        total += A0[r, v] * B[v, j]
                A[r, j] = total
        damping = damping_near(W, V, A, m, d, O) + LEAST_DAMPING
        bound_by(C, low, high, B, more, edges, base, T, n, d, k)
        leapt = True
        for change in range(CHANGES if banded > 0 else 1):
            form(A, edge, B, m, n, d, damping, is_orthonormal, H)
            if not factor(H, L, d):
                return False
            if O[FOLLOWS] != 0.0 and m > 0:
                for r in range(m):
                    rate[r] = (past[r] - e[r]) / O[DT]
                answer(A, L, rate, edge, m, d, y_ahead)
                if change == 0 and not again:
                    ahead[stage, n] = has_leapt(T, O, B, y_ahead, n, d, ahead, stage)
                leapt = ahead[stage, n] != 0.0
            for r in range(m):
                rate[r] = -gains[first + r] * (e[r] if leapt else past[r])
            answer(A, L, rate, edge, m, d, y_goal)
            left = BEND * left_over(A, rate, edge, m, d, y_goal) / gain if m > 0 else 0.0
            if left > FEELS:
                form(A, edge, B, m, n, d, damping + left, is_orthonormal, H)
                if not factor(H, L, d):
                    return False
                answer(A, L, rate, edge, m, d, y_goal)
            share = share_of_speed(T, O, B, y_goal, n, d, gain) if m > 0 else 1.0
            for r in range(m):
                rate[r] = -seen(A0, r, base, n)
            answer(A, L, rate, edge, m, d, y)
            for j in range(d):
                y[j] += share * y_goal[j]
                if not leapt:
                    y[j] += y_ahead[j]
            if not least_within(W, V, U, L, y, C, low, high, n + k, d):
                if stage == 1:
                    return False
                for j in range(d):
                    y[j] = 0.0
            changed = False
            if banded > 0:
                for r in range(m):
                    if edge[r, 2] == 0.0:
                        will = seen(A0, r, base, n)
                        for j in range(d):
                            will += A[r, j] * y[j]
                        low_rate, high_rate = nearing * (edge[r, 0] - e[r]), nearing * (edge[r, 1] - e[r])
                        if will < low_rate - 1e-12 or will > high_rate + 1e-12:
                            edge[r, 2] = 1.0
                            off = edge[r, 0] if will < low_rate else edge[r, 1]
                            e[r], past[r] = e[r] - off, e[r] - off
                            edge[r, 0], edge[r, 1] = edge[r, 0] - off, edge[r, 1] - off
                            changed = True
            if not changed:
                break
        for v in range(n):
            for j in range(d):
                base[v] += B[v, j] * y[j]
        if stage + 1 < stages and d > 0:
            for r in range(m):
                if edge[r, 0] < edge[r, 1] and k < len(edges):  # what lies in a band may not be driven out further
                    will = seen(A0, r, base, n)
                    for v in range(n):
                        more[k, v] = A0[r, v]
                    edges[k, 0] = min(nearing * (edge[r, 0] - e[r]), will)
                    edges[k, 1] = max(nearing * (edge[r, 1] - e[r]), will)
                    edge[r, 2] = 0.0
                    k += 1
            d = cut_down(W, V, A, B, edge, m, n, d)
    return True
