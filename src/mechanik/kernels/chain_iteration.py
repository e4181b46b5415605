"""One iteration of Levenberg and Marquardt's method for a serial chain, in one lane or in eight.

The trial of each lane is looked at. Where it is better than what was accepted it takes its place, else the damping
grows. From what is accepted comes the next trial: a damped step in which joints that stand at a limit and are pushed
outwards take no part, cut off at the limits. Lanes have nothing to do with each other: every choice is made lane by
lane.

`ws` and `wr` are two names of one workspace. With one name the compiler would turn "keep what is stored there" into
masked stores, which are slow on some processors.
"""

from __future__ import annotations

from .chain_layout import *
from .chain_rows import along, log_factor, partial_rows
from .compiler import helper, part
from .six_by_six import solve_six
from .trigonometry import near_sincos
from .vector import lanes_of, load, spread, store, where_less

GROWTH, GIVES_UP, LEAST_DAMPING = 4.0, 1e3, 1e-12
WINDOW, ENOUGH = 3.0, 0.7
"""An attempt is given up when its cost after three iterations is above this share of what it was.

Tuned, like the growth of the damping, on random targets of a Panda and a UR5.
"""
NEARLY_THERE, PATIENT = 1e-6, 0.97
"""Beside a singular pose the last bit of the way is slow: below this cost an attempt may take longer."""
HALF_TURN2 = 9.869604401089358
NEARLY_HALF_TURN = 1e-9


@helper
def place_chain(like, C, ws):
    """The end of the chain at the trial.

    Each column's screw (its moment about the base, and its axis) goes into the workspace.
    """
    L = lanes_of(like)
    one, zero = spread(like, 1.0), spread(like, 0.0)
    xx, xy, xz, yx, yy, yz, zx, zy, zz = one, zero, zero, zero, one, zero, zero, zero, one
    px, py, pz = zero, zero, zero
    for j in range(int(C[N_NODES])):
        o = MODEL_HEAD + NODE * j
        b = (LANE_HEAD + COLUMN_SLOTS * int(C[o + COLUMN])) * L
        ratio, slides = C[o + RATIO], C[o + SLIDES]
        x = load(like, ws, b + TRIAL * L) * ratio
        if slides == 0.0:
            s, c = near_sincos(C[o + OFFSET] + x)
            d = spread(like, C[o + SHIFT + 2])
            mx, my, mz = py * zz - pz * zy, pz * zx - px * zz, px * zy - py * zx
            ax, ay, az = zx, zy, zz
        else:
            s, c = spread(like, C[o + SIN_OFFSET]), spread(like, C[o + COS_OFFSET])
            d = C[o + SHIFT + 2] + slides * x
            mx, my, mz = slides * zx, slides * zy, slides * zz
            ax, ay, az = zero, zero, zero
        if ratio != 1.0:
            mx, my, mz, ax, ay, az = mx * ratio, my * ratio, mz * ratio, ax * ratio, ay * ratio, az * ratio
        if C[o + IS_NEW] == 0.0:
            mx, my, mz = mx + load(like, ws, b), my + load(like, ws, b + L), mz + load(like, ws, b + 2 * L)
            ax, ay = ax + load(like, ws, b + 3 * L), ay + load(like, ws, b + 4 * L)
            az = az + load(like, ws, b + 5 * L)
        store(ws, b, mx)
        store(ws, b + L, my)
        store(ws, b + 2 * L, mz)
        store(ws, b + 3 * L, ax)
        store(ws, b + 4 * L, ay)
        store(ws, b + 5 * L, az)
        tx, ty, ca, sa = C[o + SHIFT], C[o + SHIFT + 1], C[o + COS_ALPHA], C[o + SIN_ALPHA]
        u, v = xx * c + yx * s, yx * c - xx * s
        px = px + u * tx + v * ty + zx * d
        xx, yx, zx = u, v * ca + zx * sa, zx * ca - v * sa
        u, v = xy * c + yy * s, yy * c - xy * s
        py = py + u * tx + v * ty + zy * d
        xy, yy, zy = u, v * ca + zy * sa, zy * ca - v * sa
        u, v = xz * c + yz * s, yz * c - xz * s
        pz = pz + u * tx + v * ty + zz * d
        xz, yz, zz = u, v * ca + zz * sa, zz * ca - v * sa
    return xx, xy, xz, yx, yy, yz, zx, zy, zz, px, py, pz


@part
def iterate(like, C, ws, wr):
    """Look at the trial of every lane, and make the next."""
    L = lanes_of(like)
    n = int(C[N_COLUMNS])
    one, zero = spread(like, 1.0), spread(like, 0.0)
    is_partial = C[IS_PARTIAL] != 0.0
    by_place, by_turn = C[PLACE_WEIGHT], C[TURN_WEIGHT]
    xx, xy, xz, yx, yy, yz, zx, zy, zz, px, py, pz = place_chain(like, C, ws)
    # ---- the residual: from here to the target
    t0, t1, t2 = load(like, ws, 0), load(like, ws, L), load(like, ws, 2 * L)
    t3, t4, t5 = load(like, ws, 3 * L), load(like, ws, 4 * L), load(like, ws, 5 * L)
    t6, t7, t8 = load(like, ws, 6 * L), load(like, ws, 7 * L), load(like, ws, 8 * L)
    factor, h2 = log_factor(xx * t0 + xy * t3 + xz * t6 + yx * t1 + yy * t4 + yz * t7 + zx * t2 + zy * t5 + zz * t8)
    f = factor * by_turn
    e3 = f * (xy * t6 - xz * t3 + yy * t7 - yz * t4 + zy * t8 - zz * t5)
    e4 = f * (xz * t0 - xx * t6 + yz * t1 - yx * t7 + zz * t2 - zx * t8)
    e5 = f * (xx * t3 - xy * t0 + yx * t4 - yy * t1 + zx * t5 - zy * t2)
    e0 = (load(like, ws, TARGET_PLACE * L) - px) * by_place
    e1 = (load(like, ws, (TARGET_PLACE + 1) * L) - py) * by_place
    e2 = (load(like, ws, (TARGET_PLACE + 2) * L) - pz) * by_place
    if is_partial:
        R = (xx, xy, xz, yx, yy, yz, zx, zy, zz)
        e0, e1, e2, e3, e4, e5, h2 = partial_rows(like, C, ws, R, e0, e1, e2, e3, e4, e5, factor, h2)
    p2 = e0 * e0 + e1 * e1 + e2 * e2
    r2 = e3 * e3 + e4 * e4 + e5 * e5
    # a turn by half a circle has no direction and must not pass for none
    r2 = where_less(h2, NEARLY_HALF_TURN, HALF_TURN2 * by_turn * by_turn, r2)
    # ---- better than what was accepted?
    new = p2 + r2
    old = load(like, ws, COST * L)
    cost = where_less(new, old, new, old)
    p2 = where_less(new, old, p2, load(like, wr, METRES * L))
    r2 = where_less(new, old, r2, load(like, wr, RADIANS * L))
    mu = load(like, wr, MU * L)
    mu = where_less(new, old, mu, mu * GROWTH)
    store(ws, COST * L, cost)
    store(ws, METRES * L, p2)
    store(ws, RADIANS * L, r2)
    store(ws, MU * L, mu)
    # ---- is this attempt over?
    iteration = load(like, ws, ITERATION * L) + 1.0
    check, reference = load(like, wr, CHECK * L), load(like, wr, REFERENCE * L)
    over = where_less(p2, C[METRES2], where_less(r2, C[RADIANS2], one, zero), zero)
    enough = where_less(cost, NEARLY_THERE, PATIENT, ENOUGH) * reference
    over = where_less(iteration, check, over, where_less(enough, cost, one, over))
    over = where_less(iteration, C[MAX_ITERATIONS], over, one)
    store(ws, ITERATION * L, iteration)
    store(ws, REFERENCE * L, where_less(iteration, check, reference, cost))
    store(ws, CHECK * L, where_less(iteration, check, check, check + WINDOW))
    store(ws, IS_OVER * L, where_less(GIVES_UP, mu, one, over))
    e0 = where_less(new, old, e0, load(like, wr, RESIDUAL * L))
    e1 = where_less(new, old, e1, load(like, wr, (RESIDUAL + 1) * L))
    e2 = where_less(new, old, e2, load(like, wr, (RESIDUAL + 2) * L))
    e3 = where_less(new, old, e3, load(like, wr, (RESIDUAL + 3) * L))
    e4 = where_less(new, old, e4, load(like, wr, (RESIDUAL + 4) * L))
    e5 = where_less(new, old, e5, load(like, wr, (RESIDUAL + 5) * L))
    store(ws, RESIDUAL * L, e0)
    store(ws, (RESIDUAL + 1) * L, e1)
    store(ws, (RESIDUAL + 2) * L, e2)
    store(ws, (RESIDUAL + 3) * L, e3)
    store(ws, (RESIDUAL + 4) * L, e4)
    store(ws, (RESIDUAL + 5) * L, e5)
    # ---- the Jacobian of what is accepted, which joints are free, and the normal matrix in two passes, which fit the
    # registers
    columns = MODEL_HEAD + NODE * int(C[N_NODES])
    damping = mu * cost + LEAST_DAMPING
    a00, a11, a22, a33 = damping, damping, damping, damping
    a10, a20, a21, a30, a31, a32 = zero, zero, zero, zero, zero, zero
    for j in range(n):
        o = columns + COLUMN_FLOATS * j
        b = (LANE_HEAD + COLUMN_SLOTS * j) * L
        lower, upper = C[o + LOWER], C[o + UPPER]
        ax, ay, az = load(like, ws, b + 3 * L), load(like, ws, b + 4 * L), load(like, ws, b + 5 * L)
        j0 = (load(like, ws, b) + ay * pz - az * py) * by_place
        j1 = (load(like, ws, b + L) + az * px - ax * pz) * by_place
        j2 = (load(like, ws, b + 2 * L) + ax * py - ay * px) * by_place
        j3, j4, j5 = ax * by_turn, ay * by_turn, az * by_turn
        if is_partial:
            j0, j1, j2 = along(like, ws, PLACE_ROWS, j0, j1, j2)
            j3, j4, j5 = along(like, ws, TURN_ROWS, j3, j4, j5)
        j0 = where_less(new, old, j0, load(like, wr, b + 6 * L))
        j1 = where_less(new, old, j1, load(like, wr, b + 7 * L))
        j2 = where_less(new, old, j2, load(like, wr, b + 8 * L))
        j3 = where_less(new, old, j3, load(like, wr, b + 9 * L))
        j4 = where_less(new, old, j4, load(like, wr, b + 10 * L))
        j5 = where_less(new, old, j5, load(like, wr, b + 11 * L))
        store(ws, b + 6 * L, j0)
        store(ws, b + 7 * L, j1)
        store(ws, b + 8 * L, j2)
        store(ws, b + 9 * L, j3)
        store(ws, b + 10 * L, j4)
        store(ws, b + 11 * L, j5)
        x = where_less(new, old, load(like, ws, b + TRIAL * L), load(like, wr, b + ACCEPTED * L))
        store(ws, b + ACCEPTED * L, x)
        slope = (
            j0 * load(like, ws, RESIDUAL * L) + j1 * load(like, ws, (RESIDUAL + 1) * L)
            + j2 * load(like, ws, (RESIDUAL + 2) * L) + j3 * load(like, ws, (RESIDUAL + 3) * L)
            + j4 * load(like, ws, (RESIDUAL + 4) * L) + j5 * load(like, ws, (RESIDUAL + 5) * L)
        )  # fmt: skip
        room = where_less(slope, zero, x - lower, upper - x)
        free = where_less(zero, room, one, zero)
        store(ws, b + IS_FREE * L, free)
        v = free * j0
        a00, a10, a20, a30 = a00 + v * j0, a10 + v * j1, a20 + v * j2, a30 + v * j3
        v = free * j1
        a11, a21, a31 = a11 + v * j1, a21 + v * j2, a31 + v * j3
        v = free * j2
        a22, a32 = a22 + v * j2, a32 + v * j3
        a33 = a33 + free * j3 * j3
    a44, a55 = damping, damping
    a40, a41, a42, a43, a50, a51, a52, a53, a54 = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for j in range(n):
        b = (LANE_HEAD + COLUMN_SLOTS * j) * L
        free = load(like, ws, b + IS_FREE * L)
        j4, j5 = load(like, ws, b + 10 * L), load(like, ws, b + 11 * L)
        v, w = free * j4, free * j5
        a44, a54, a55 = a44 + v * j4, a54 + w * j4, a55 + w * j5
        x = load(like, ws, b + 6 * L)
        a40, a50 = a40 + v * x, a50 + w * x
        x = load(like, ws, b + 7 * L)
        a41, a51 = a41 + v * x, a51 + w * x
        x = load(like, ws, b + 8 * L)
        a42, a52 = a42 + v * x, a52 + w * x
        x = load(like, ws, b + 9 * L)
        a43, a53 = a43 + v * x, a53 + w * x
    y0, y1, y2, y3, y4, y5 = solve_six(
        a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
        load(like, ws, RESIDUAL * L), load(like, ws, (RESIDUAL + 1) * L), load(like, ws, (RESIDUAL + 2) * L),
        load(like, ws, (RESIDUAL + 3) * L), load(like, ws, (RESIDUAL + 4) * L), load(like, ws, (RESIDUAL + 5) * L),
    )  # fmt: skip
    # ---- the next trial, inside the limits; a joint that is held has no room, and stays
    for j in range(n):
        o = columns + COLUMN_FLOATS * j
        b = (LANE_HEAD + COLUMN_SLOTS * j) * L
        d = load(like, ws, b + 6 * L) * y0 + load(like, ws, b + 7 * L) * y1 + load(like, ws, b + 8 * L) * y2
        d = d + load(like, ws, b + 9 * L) * y3 + load(like, ws, b + 10 * L) * y4 + load(like, ws, b + 11 * L) * y5
        x = load(like, ws, b + ACCEPTED * L) + d * load(like, ws, b + IS_FREE * L)
        if C[o + IS_HELD] == 0.0:
            x = where_less(C[o + LOWER], x, x, C[o + LOWER])
            x = where_less(x, C[o + UPPER], x, C[o + UPPER])
        store(ws, b + TRIAL * L, x)
