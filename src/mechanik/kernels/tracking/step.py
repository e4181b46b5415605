"""One step in time: rows, bounds, velocities, and the configuration that they lead to with all loops shut."""

from __future__ import annotations

import math

from ..bounded_step import advance
from ..compiler import kernel, part
from ..problem import *
from ..rows import evaluate
from .brake import bound_rates, held_by
from .freedom import eliminate_hard, free_basis, gather_hard, read_hard, shutting
from .layout import *
from .levels import bound_by, serve_levels
from .opening import part_near
from .quadratic import factor, least_within, solve_factored

LOOKS = 8
"""How often loops are shut again; two or three times do at 1 kHz."""
PASSES = 3
"""How often velocities are sought anew, knowing how loops bend."""
ROOM = 1e-7
"""How far the velocity of a column that follows may be over its bound, which NEARLY keeps away from its limit."""


@part
def bound_bands(I, F, O, more, edges, k, n):
    """Hard rows that lie in bands, such as cones and limits of joints that close loops, as bounds of their rates."""
    blocks, columns, slack = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_SLACK]
    rows, jacobian = I[AT_ROWS] + I[N_ROWS], I[AT_JACOBIAN] + I[N_JACOBIAN]
    nearing = min(1.0 / O[DT], O[NEARING])
    for b in range(I[I[AT_STAGES] + SOFT]):
        block = blocks + BLOCK_INTS * b
        row, width, first, j = I[block + FIRST_ROW], I[block + COLUMNS], I[block + FIRST_COLUMN], I[block + FIRST_J]
        for r in range(I[block + ROWS]):
            if I[slack + 2 * (row + r)] < 0:
                continue
            for v in range(n):
                more[k, v] = 0.0
            for u in range(width):
                v = I[columns + first + u]
                if v < n:
                    more[k, v] = F[jacobian + j + r * width + u]
            band, w = I[columns + first + I[slack + 2 * (row + r) + 1]], F[I[AT_WEIGHT] + row + r]
            edges[k, 0] = nearing * (w * F[I[AT_LOWER] + band] - F[rows + row + r])
            edges[k, 1] = nearing * (w * F[I[AT_UPPER] + band] - F[rows + row + r])
            k += 1
    return k


@part
def brake(T, O, W, V, U, B, d, more, edges, k, base, n):
    """Velocities as near to the last ones as limits of position and velocity allow; those of acceleration give way."""
    H, L, C, y, low, high = W[W_H], W[W_L], W[W_C], V[V_Y], V[V_LOW], V[V_HIGH]
    for v in range(n):
        T[LOW, v], T[HIGH, v], base[v] = T[LOW_HARD, v], T[HIGH_HARD, v], 0.0
    for i in range(k):
        edges[i, 0], edges[i, 1] = min(edges[i, 0], 0.0), max(edges[i, 1], 0.0)
    bound_by(C, low, high, B, more, edges, base, T, n, d, k)
    slower = max(0.0, 1.0 - O[DT] * O[NEARING]) if O[NEARING] < math.inf else 1.0
    for i in range(d):
        y[i] = 0.0
        for j in range(i + 1):
            H[i, j] = 0.0
    for v in range(n):
        a = T[ACCELERATION, v] * O[DT]
        weight = 1.0 / (a * a) if a < math.inf else 1e-6
        for i in range(d):
            y[i] += B[v, i] * weight * slower * T[RATE, v]
            for j in range(i + 1):
                H[i, j] += B[v, i] * weight * B[v, j]
    if not factor(H, L, d):
        return False
    solve_factored(L, y, d)
    if not least_within(W, V, U, L, y, C, low, high, n + k, d):
        return False
    for v in range(n):
        for j in range(d):
            base[v] += B[v, j] * y[j]
    return True


@part
def within(T, O, rates, taken, n):
    """Whether no column is over its bounds, but for rounding."""
    for v in range(n):
        rounding = 1e-12 * (1.0 + abs(rates[v]))
        over, under = rates[v] - T[HIGH, v] - rounding, T[LOW, v] - rates[v] - rounding
        if taken[v] >= 0:
            room = min(T[ACCELERATION, v] * O[DT], T[VELOCITY, v])
            over, under = over - ROOM * min(room, abs(T[HIGH, v])), under - ROOM * min(room, abs(T[LOW, v]))
        if not max(over, under) <= 0.0:
            return False
    return True


@part
def is_gentle(T, O, n):
    """Whether velocities that were only to brake have kept accelerations within their limits after all."""
    most = 0.0
    for v in range(n):
        most = max(most, abs(T[RATE, v] - T[START, v]) / T[ACCELERATION, v])
    return most <= O[DT]


@part
def settle(I, F, T, O, x, out, rates, bent, n, done):
    """x is where the step has led, or where it was if it came to nothing."""
    for v in range(n):
        if done == STOPPED:
            rates[v], bent[v] = 0.0, 0.0
        T[RATE, v], T[CURVE, v] = rates[v], bent[v]
    if done != STOPPED:
        for i in range(I[N_X]):
            F[x + i] = F[out + i]
    for v in range(n):
        at = I[I[AT_COLUMN_X] + v]
        if at >= 0:  # by rounding; loops do not feel it
            F[x + at] = min(max(F[x + at], T[LOWER, v]), T[UPPER, v])


@part
def lead(I, F, O, x, out, rates, n):
    """out = x, moved by velocities for one step of time."""
    step = I[AT_STEP]
    for v in range(I[N_COLUMNS]):
        F[step + v] = rates[v] * O[DT] if v < n else 0.0
    advance(I, F, x, out, False)


@part
def shut(I, F, O, W, V, U, m, count, x, out, rates, n):
    """Let the dependent columns shut what a step opens; returns how far rows are from zero in the end."""
    change, e, off = V[V_CHANGE], V[V_OFF], math.inf
    for _ in range(LOOKS):
        lead(I, F, O, x, out, rates, n)
        if m == 0:
            return 0.0
        evaluate(I, F, out, I[ZERO], I[I[AT_STAGES] + SOFT])
        last, off = off, read_hard(I, F, I[ZERO], e)
        if off < O[SHUT] or not off < 0.5 * last:
            break
        for v in range(n):
            change[v] = 0.0
        shutting(W[W_M], W[W_K], n, count, U[U_ROW], U[U_COLUMN], e, change)
        for v in range(n):
            rates[v] += change[v] / O[DT]
    return off


@kernel(
    "i8(i8[::1], f8[::1], f8[:,::1], f8[::1], f8[:,:,::1], f8[:,::1], i8[:,::1], f8[::1], f8[::1], f8[:,::1],"
    "f8[:,::1], f8[:,::1], i8, i8[::1], b1)"
)
def step(I, F, T, O, W, V, U, gains, before, ahead, more, edges, given, active, looks):
    """Move x, the table `trial`, by one step of time; returns what it came to.

    Args:
        T, O: the columns and the options, as `layout.py` has them.
        W, V, U: room to work in.
        gains: (rows,) 1/s.
        before: (rows,) what the rows were with the last targets; written.
        ahead: (stages, columns + 1) the targets' last motion, and whether it was a leap; written.
        more, edges: (.., columns), (.., 4) further rows with bounds of their rates, of which `given` are there, and
            room for those in bands. Of those that are there the lower bound is worked out here, from the rates that
            are wanted. If `given` is negative nothing moves: rows are looked at.
        active: (columns,) written: what holds each column back.
        looks: whether rows have to be evaluated first, since targets are new.
    """
    n, x, out, done = T.shape[1], I[AT_TRIAL], I[AT_X], STOPPED
    if looks and given >= 0:
        evaluate(I, F, x, 1, I[N_BLOCKS])
    if given >= 0:
        k = bound_bands(I, F, O, more, edges, given, n)
        bound_rates(I, F, T, O, x, n, k > 0)
        row_of, column_of, taken = U[U_ROW], U[U_COLUMN], U[U_TAKEN]
        M, B, free = W[W_M], W[W_B], W[W_FREE]
        m = gather_hard(I, F, M, n)
        count = eliminate_hard(V, U, M, W[W_K], m, n, T, row_of, column_of, taken)
        d = free_basis(M, n, count, row_of, column_of, taken, free)
        rates, straight, bent = V[V_RATES], V[V_STRAIGHT], V[V_BENT]
        for v in range(n):
            T[START, v] = T[RATE, v]
            bent[v] = T[CURVE, v] if taken[v] >= 0 else 0.0
        for attempt in range(2 * PASSES):
            braking, found = attempt >= PASSES, False
            for v in range(n):
                rates[v] = 0.0 if braking else bent[v]
                for j in range(d):
                    B[v, j] = free[v, j]
            if braking:
                found = brake(T, O, W, V, U, B, d, more, edges, k, rates, n)
            else:
                for again in range(2 if given > 0 else 1):
                    opened = part_near(T, O, W, V, U, B, d, count == 0, more, edges, given, k, rates, n, again == 1)
                    if again == 1 and not opened:
                        break
                    found = serve_levels(
                        I, F, T, O, W, V, U, gains, before, ahead, attempt + again > 0, B, d, count == 0, more, edges,
                        k, rates, n
                    )  # fmt: skip
                    if found or opened:
                        break
                    for v in range(n):
                        rates[v] = bent[v]
                        for j in range(d):
                            B[v, j] = free[v, j]
                if not found and opened:  # by rounding: bounds that leave no room
                    found = True
                    for v in range(n):
                        rates[v] = V[V_OPENED, v]
            if not found:
                continue
            for v in range(n):
                straight[v] = rates[v] - (0.0 if braking else bent[v])
                if count == 0:
                    rates[v] = min(max(rates[v], T[LOW, v]), T[HIGH, v])
            off = shut(I, F, O, W, V, U, m, count, x, out, rates, n)
            for v in range(n):
                bent[v] = rates[v] - straight[v] if taken[v] >= 0 else 0.0
            if off < max(1e3 * O[SHUT], 1e-9) and within(T, O, rates, taken, n):
                done = BRAKED if braking else MOVED
                break
        settle(I, F, T, O, x, out, rates, bent, n, done)
        held_by(T, O, n, active)
        if done == BRAKED and is_gentle(T, O, n):
            done = MOVED
    evaluate(I, F, x, 1, I[N_BLOCKS])
    for r in range(I[N_ROWS]):
        before[r] = F[I[AT_ROWS] + I[N_ROWS] + r]
    return done
