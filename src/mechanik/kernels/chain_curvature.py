"""The second derivatives of a chain, all of them, at a cost that grows with its length and not with its cube.

Along an arm, joint i moves all that lies beyond it: the axis and the lever of every later joint j. So of the matrix of
second derivatives of |e|^2 / 2, the entry of i and j, i before j, is a product u_i · v_j of six numbers each:

    v_j = (lever of j, axis of j)                                       lever: how the goal's point moves with j
    u_i = (w² lever_i + w² e × axis_i,  w² T axis_i + w²/2 e × axis_i)     for place and turn, each with its own e

where T = 1 + c [e]×² is the even part of how a rotation vector changes with a turn (the odd part, and that later
axes turn along, make the half). Such a matrix, with any diagonal added, has factors L D L' of the same shape:

    d_i = D_i + v_i · w_i,   w_i = u_i - P_i v_i,   P_i+1 = P_i + w_i w_i' / d_i,   L_ji = v_j · w_i / d_i

Vandebril, Van Barel and Mastronardi, Matrix Computations and Semiseparable Matrices, 2008. A long arm that cannot reach
its goal is at rest after tens of such steps, where without second derivatives it takes thousands.
"""

from __future__ import annotations

import math

from .compiler import helper, part
from .problem import *
from .relative_pose import under
from .rows import frame, swung
from .wide import way_to_bound

LINK = 12
"""Floats that are kept of each joint: u and v."""


@part
def bend_chain(I, F, buffer, b):
    """u and v of each joint, at the x to which the poses and the rows in `buffer` belong."""
    block, data = I[AT_BLOCKS] + BLOCK_INTS * b, I[AT_DATA] + BLOCK_FLOATS * b
    row, mask, poses = I[block + FIRST_ROW], I[block + MASK], I[AT_POSES]
    weight, E = I[AT_WEIGHT] + row, I[AT_ROWS] + I[N_ROWS] * buffer + row
    A = frame(I, F, I[block + NODE_A], data + FRAME_A)
    B = frame(I, F, I[block + NODE_B], data + FRAME_B)
    C = (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    at, k = I[AT_SUMS], 0
    for r in range(6):  # squares of weights, and weights times what the rows say; 0 for rows that are not there
        F[at + r], F[at + 6 + r] = 0.0, 0.0
        if mask >> r & 1:
            F[at + r], F[at + 6 + r] = F[weight + k] * F[weight + k], F[weight + k] * F[E + k]
            k += 1
    wx, wy, wz, w = F[at], F[at + 1], F[at + 2], F[at + 3]
    ex, ey, ez, fx, fy, fz = F[at + 6], F[at + 7], F[at + 8], F[at + 9], F[at + 10], F[at + 11]
    even = 0.0
    if w > 0.0:
        angle2 = (fx * fx + fy * fy + fz * fz) / (w * w)
        if angle2 < 1e-4:
            even = (1.0 / 12.0 + angle2 / 720.0) / w
        else:
            half = 0.5 * math.sqrt(angle2)
            even = (1.0 - half * math.cos(half) / math.sin(half)) / (angle2 * w)
    for t in range(I[block + TERMS]):
        term, u = I[AT_TERMS] + TERM_INTS * (I[block + FIRST_TERM] + t), I[AT_CHAIN] + LINK * t
        X, axis = poses + 12 * I[term + T_NODE], I[term + T_AXIS]
        factor = F[I[AT_TERM_FACTOR] + I[block + FIRST_TERM] + t]
        x, y, z = under(C, factor * F[X + axis], factor * F[X + 3 + axis], factor * F[X + 6 + axis])
        lx, ly, lz = x, y, z
        if I[term + T_TURNS] == 1:
            l, m, n = under(C, B[9] - F[X + 9], B[10] - F[X + 10], B[11] - F[X + 11])
            lx, ly, lz = swung(x, y, z, l, m, n)
        else:
            x, y, z = 0.0, 0.0, 0.0
        bx, by, bz = swung(ex, ey, ez, x, y, z)
        F[u], F[u + 1], F[u + 2] = wx * lx + bx, wy * ly + by, wz * lz + bz
        bx, by, bz = swung(fx, fy, fz, x, y, z)
        cx, cy, cz = swung(fx, fy, fz, bx, by, bz)
        F[u + 3], F[u + 4] = w * x + 0.5 * bx + even * cx, w * y + 0.5 * by + even * cy
        F[u + 5] = w * z + 0.5 * bz + even * cz
        F[u + 6], F[u + 7], F[u + 8], F[u + 9], F[u + 10], F[u + 11] = lx, ly, lz, x, y, z


@helper
def dot6(F, a, b):
    return (F[a] * F[b] + F[a + 1] * F[b + 1] + F[a + 2] * F[b + 2]) + (
        F[a + 3] * F[b + 3] + F[a + 4] * F[b + 4] + F[a + 5] * F[b + 5]
    )


@helper
def add6(F, a, b, s):
    for k in range(6):
        F[a + k] += s * F[b + k]


@part
def chain_times(I, F, b, n, s, out):
    """out = (D + second derivatives) s, over the independent columns; s and out are places in F."""
    block, place, columns = I[AT_BLOCKS] + BLOCK_INTS * b, I[AT_PLACE], I[AT_BLOCK_COLUMNS]
    first, count, sums = I[block + FIRST_COLUMN], I[block + TERMS], I[AT_SUMS]
    terms = I[AT_TERMS] + TERM_INTS * I[block + FIRST_TERM]
    for i in range(n):
        F[out + i] = F[I[AT_DIAGONAL] + i] * F[s + i]
    for k in range(6):
        F[sums + k] = 0.0
    for t in range(count):
        i, u = I[place + I[columns + first + I[terms + TERM_INTS * t + T_COLUMN]]], I[AT_CHAIN] + LINK * t
        F[out + i] += dot6(F, u + 6, sums)
        add6(F, sums, u, F[s + i])
    for k in range(6):
        F[sums + k] = 0.0
    for t in range(count - 1, -1, -1):
        i, u = I[place + I[columns + first + I[terms + TERM_INTS * t + T_COLUMN]]], I[AT_CHAIN] + LINK * t
        add6(F, sums, u + 6, F[s + i])
        F[out + i] += dot6(F, u, sums)


@part
def solve_chain(I, F, x, b, n):
    """The independent columns' step into `line`; banned ones go to their bound.

    A pivot that is not positive counts as infinite, as in Cholesky's method: its column stays.
    """
    block, place, columns = I[AT_BLOCKS] + BLOCK_INTS * b, I[AT_PLACE], I[AT_BLOCK_COLUMNS]
    first, count, sums, P = I[block + FIRST_COLUMN], I[block + TERMS], I[AT_SUMS], I[AT_SUMS] + 6
    terms, y, give, full = I[AT_TERMS] + TERM_INTS * I[block + FIRST_TERM], I[AT_LINE], I[AT_GIVE], I[AT_FULL]
    for i in range(n):
        F[y + i] = way_to_bound(I, F, x, I[I[AT_INDEPENDENT] + i])
    chain_times(I, F, b, n, y, full)
    for i in range(n):
        if I[I[AT_BAN] + I[I[AT_INDEPENDENT] + i]] == FREE:
            F[y + i] = (F[I[AT_PULL] + i] - F[full + i]) / F[I[AT_DIAGONAL] + i]
    for k in range(42):
        F[sums + k] = 0.0
    for t in range(count):
        v = I[columns + first + I[terms + TERM_INTS * t + T_COLUMN]]
        i, u, kept = I[place + v], I[AT_CHAIN] + LINK * t, I[AT_CHAIN_W] + 6 * t
        F[give + i] = 0.0
        if I[I[AT_BAN] + v] != FREE:
            continue
        for k in range(6):
            F[kept + k] = F[u + k] - dot6(F, P + 6 * k, u + 6)
        d = F[I[AT_DIAGONAL] + i] + dot6(F, u + 6, kept)
        z = F[I[AT_PULL] + i] - F[full + i] - dot6(F, u + 6, sums)
        F[y + i] = 0.0
        if d > 1e-300:
            F[give + i], F[y + i] = 1.0 / d, z / d
            add6(F, sums, kept, z / d)
            for k in range(6):
                add6(F, P + 6 * k, kept, F[kept + k] / d)
    for k in range(6):
        F[sums + k] = 0.0
    for t in range(count - 1, -1, -1):
        i, u = I[place + I[columns + first + I[terms + TERM_INTS * t + T_COLUMN]]], I[AT_CHAIN] + LINK * t
        if F[give + i] > 0.0:
            F[y + i] -= F[give + i] * dot6(F, I[AT_CHAIN_W] + 6 * t, sums)
            add6(F, sums, u + 6, F[y + i])
