"""The rows of a problem and their Jacobian: residuals of goals and closures at a given x."""

from __future__ import annotations

import math

from .compiler import helper, part
from .ground import over_ground
from .laws import add_up
from .layout import PARENT, ROW
from .poses import WORLD, composed, moved
from .problem import *
from .relative_pose import IDENTITY, by_kind, times, times_transposed, under, under_matrix


@part
def place_nodes(I, F, x):
    """Poses of all nodes in the world."""
    nodes, poses, q = I[AT_NODES], I[AT_POSES], F[x:]
    for i in range(I[N_NODES]):
        node = F[nodes + ROW * i : nodes + ROW * i + ROW]
        parent = int(node[PARENT])
        X = moved(read_pose_at(F, poses + 12 * parent) if parent >= 0 else WORLD, node, q, False)
        for k in range(12):
            F[poses + 12 * i + k] = X[k]


@helper
def read_pose_at(F, k):
    return (
        F[k], F[k + 1], F[k + 2], F[k + 3], F[k + 4], F[k + 5], F[k + 6], F[k + 7], F[k + 8], F[k + 9], F[k + 10],
        F[k + 11],
    )  # fmt: skip


@helper
def read_rotation(F, k):
    return F[k], F[k + 1], F[k + 2], F[k + 3], F[k + 4], F[k + 5], F[k + 6], F[k + 7], F[k + 8]


@helper
def frame(I, F, node, fixed):
    """A frame that is fixed to a node (-1: to the world), in the world."""
    if node < 0:
        return read_pose_at(F, fixed)
    return composed(read_pose_at(F, I[AT_POSES] + 12 * node), read_pose_at(F, fixed))


@helper
def write_rows(F, to, weight, mask, a, b, c, d, e, f):
    """Those of the six that the mask names, weighted."""
    k = 0
    if mask & 1:
        F[to + k] = F[weight + k] * a
        k += 1
    if mask & 2:
        F[to + k] = F[weight + k] * b
        k += 1
    if mask & 4:
        F[to + k] = F[weight + k] * c
        k += 1
    if mask & 8:
        F[to + k] = F[weight + k] * d
        k += 1
    if mask & 16:
        F[to + k] = F[weight + k] * e
        k += 1
    if mask & 32:
        F[to + k] = F[weight + k] * f


@helper
def add_column(F, to, width, weight, mask, factor, a, b, c, d, e, f):
    """Add to one column of a block, as `write_rows`."""
    k = 0
    if mask & 1:
        F[to + k * width] += factor * F[weight + k] * a
        k += 1
    if mask & 2:
        F[to + k * width] += factor * F[weight + k] * b
        k += 1
    if mask & 4:
        F[to + k * width] += factor * F[weight + k] * c
        k += 1
    if mask & 8:
        F[to + k * width] += factor * F[weight + k] * d
        k += 1
    if mask & 16:
        F[to + k * width] += factor * F[weight + k] * e
        k += 1
    if mask & 32:
        F[to + k * width] += factor * F[weight + k] * f


@helper
def swung(u, v, w, l, m, n):
    """The shift of a point at (l, m, n) with a turn about (u, v, w)."""
    return v * n - w * m, w * l - u * n, u * m - v * l


@part
def relate(I, F, b, E, J):
    """Rows and Jacobian of a block between two frames.

    They are taken along the axes of A: then a motion of A is the opposite motion of B, and what moves both is absent.
    Or along axes C that stay in the world, whatever A does: then what moves both counts too.
    """
    block, data = I[AT_BLOCKS] + BLOCK_INTS * b, I[AT_DATA] + BLOCK_FLOATS * b
    terms, term_factor, poses = I[AT_TERMS], I[AT_TERM_FACTOR], I[AT_POSES]
    kind, mask, width, in_world = I[block + KIND], I[block + MASK], I[block + COLUMNS], I[block + IN_WORLD] == 1
    row, j = I[block + FIRST_ROW], J + I[block + FIRST_J]
    weight = I[AT_WEIGHT] + row
    A = frame(I, F, I[block + NODE_A], data + FRAME_A)
    B = frame(I, F, I[block + NODE_B], data + FRAME_B)
    C = read_rotation(F, data + AXES_C) if in_world else (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    x, y, z = under(C, B[9] - A[9], B[10] - A[10], B[11] - A[11])
    Q = IDENTITY
    if in_world:
        Q = times_transposed(under_matrix(C, B), under_matrix(C, A))
    elif mask > 7:
        Q = under_matrix(C, B)
    r0, r1, r2, r3, r4, r5, by_shift, by_turn = by_kind(kind, x, y, z, Q)
    if kind == HEIGHT:
        height, slope_x, slope_y = over_ground(F, I[AT_NUMBERS] + I[block + FIRST_NUMBER], x, y)
        r0, by_shift = z - height, (-slope_x, -slope_y, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    write_rows(F, E + row, weight, mask, r0, r1, r2, r3, r4, r5)
    for k in range(I[block + FIRST_TERM], I[block + FIRST_TERM] + I[block + TERMS]):
        term = terms + TERM_INTS * k
        X, axis, side, turns = poses + 12 * I[term + T_NODE], I[term + T_AXIS], I[term + T_SIDE], I[term + T_TURNS] == 1
        factor = F[term_factor + k]
        u, v, w = under(C, F[X + axis], F[X + 3 + axis], F[X + 6 + axis])
        sx, sy, sz = u, v, w
        if turns:
            l, m, n = under(C, B[9] - F[X + 9], B[10] - F[X + 10], B[11] - F[X + 11])
            tx, ty, tz = swung(u, v, w, l, m, n)
        else:
            tx, ty, tz = u, v, w
            sx, sy, sz = 0.0, 0.0, 0.0
        if not in_world:
            if side == MOVES_A:
                factor = -factor
        elif side != MOVES_B:
            if side == MOVES_A:
                tx, ty, tz, sx, sy, sz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if turns:
                l, m, n = under(C, A[9] - F[X + 9], A[10] - F[X + 10], A[11] - F[X + 11])
                ax, ay, az = swung(u, v, w, l, m, n)
                qx, qy, qz = times(Q, u, v, w)
                sx, sy, sz = sx - qx, sy - qy, sz - qz
            else:
                ax, ay, az = u, v, w
            tx, ty, tz = tx - ax, ty - ay, tz - az
        if kind > COSINE:
            tx, ty, tz = times(by_shift, tx, ty, tz)
        sx, sy, sz = times(by_turn, sx, sy, sz)
        add_column(F, j + I[term + T_COLUMN], width, weight, mask, factor, tx, ty, tz, sx, sy, sz)


@part
def weigh(I, F, b, E, J):
    """Rows of a centre of mass, seen from A. A node moves all masses below it."""
    blocks, terms, nodes, data = I[AT_BLOCKS], I[AT_TERMS], I[AT_NODES], I[AT_DATA]
    term_factor, masses, weight, poses = I[AT_TERM_FACTOR], I[AT_MASSES], I[AT_WEIGHT], I[AT_POSES]
    moments = I[AT_MOMENTS]
    block, data = blocks + BLOCK_INTS * b, data + BLOCK_FLOATS * b
    mask, row, width, j = I[block + MASK], I[block + FIRST_ROW], I[block + COLUMNS], I[block + FIRST_J]
    A = frame(I, F, I[block + NODE_A], data + FRAME_A)
    R = (A[0], A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8])
    for i in range(I[N_NODES]):
        for k in range(4):
            F[moments + 4 * i + k] = 0.0
    cx, cy, cz = 0.0, 0.0, 0.0
    for k in range(I[block + FIRST_MASS], I[block + FIRST_MASS] + I[block + MASSES]):
        at = masses + MASS_FLOATS * k
        node, share, px, py, pz = int(F[at]), F[at + 1], F[at + 2], F[at + 3], F[at + 4]
        if node >= 0:
            X = poses + 12 * node
            px, py, pz = (
                F[X + 9] + F[X] * px + F[X + 1] * py + F[X + 2] * pz,
                F[X + 10] + F[X + 3] * px + F[X + 4] * py + F[X + 5] * pz,
                F[X + 11] + F[X + 6] * px + F[X + 7] * py + F[X + 8] * pz,
            )
            F[moments + 4 * node] += share
            F[moments + 4 * node + 1] += share * px
            F[moments + 4 * node + 2] += share * py
            F[moments + 4 * node + 3] += share * pz
        cx, cy, cz = cx + share * px, cy + share * py, cz + share * pz
    for i in range(I[N_NODES] - 1, -1, -1):
        parent = int(F[nodes + ROW * i + PARENT])
        if parent >= 0:
            for k in range(4):
                F[moments + 4 * parent + k] += F[moments + 4 * i + k]
    x, y, z = under(R, cx - A[9], cy - A[10], cz - A[11])
    write_rows(F, E + row, weight + row, mask, x, y, z, 0.0, 0.0, 0.0)
    for k in range(I[block + FIRST_TERM], I[block + FIRST_TERM] + I[block + TERMS]):
        term = terms + TERM_INTS * k
        X, axis = poses + 12 * I[term + T_NODE], I[term + T_AXIS]
        mass, lx, ly, lz = read_moment(F, moments + 4 * I[term + T_NODE])
        lx, ly, lz = lx - mass * F[X + 9], ly - mass * F[X + 10], lz - mass * F[X + 11]
        if I[term + T_SIDE] & MOVES_A:  # carried along, so what is left is the opposite motion of the rest
            mass, lx, ly, lz = mass - 1.0, lx - (cx - F[X + 9]), ly - (cy - F[X + 10]), lz - (cz - F[X + 11])
        u, v, w = F[X + axis], F[X + 3 + axis], F[X + 6 + axis]
        if I[term + T_TURNS] == 1:
            tx, ty, tz = under(R, v * lz - w * ly, w * lx - u * lz, u * ly - v * lx)
        else:
            tx, ty, tz = under(R, mass * u, mass * v, mass * w)
        add_column(
            F, J + j + I[term + T_COLUMN], width, weight + row, mask, F[term_factor + k], tx, ty, tz, 0.0, 0.0, 0.0
        )


@helper
def read_moment(F, at):
    return F[at], F[at + 1], F[at + 2], F[at + 3]


@part
def ball_turn(I, F, b, x, E, J):
    """Rows of a ball joint: the rotation vector that leads from its target to where it is, along its own axes."""
    blocks, data, weight = I[AT_BLOCKS], I[AT_DATA], I[AT_WEIGHT]
    block, data = blocks + BLOCK_INTS * b, data + BLOCK_FLOATS * b
    mask, row, width, j, k = (
        I[block + MASK],
        I[block + FIRST_ROW],
        I[block + COLUMNS],
        I[block + FIRST_J],
        I[block + X_INDEX],
    )
    a, p, q, r = F[data], -F[data + 1], -F[data + 2], -F[data + 3]
    w, u, v, s = F[x + k], F[x + k + 1], F[x + k + 2], F[x + k + 3]
    cw, cx = a * w - p * u - q * v - r * s, a * u + p * w + q * s - r * v
    cy, cz = a * v - p * s + q * w + r * u, a * s + p * v - q * u + r * w
    if cw < 0.0:
        cw, cx, cy, cz = -cw, -cx, -cy, -cz
    n2 = cx * cx + cy * cy + cz * cz
    n = math.sqrt(n2)
    if n2 < 1e-4:  # series, exact to rounding, where the closed forms are not
        f = 2.0 + n2 * (1.0 / 3.0 + n2 * (3.0 / 20.0 + n2 * 15.0 / 168.0))
        a2 = n2 * f * f
        g = 1.0 / 12.0 + a2 * (1.0 / 720.0 + a2 / 30240.0)
    else:
        angle = 2.0 * math.atan2(n, cw)
        f = angle / n
        g = (1.0 - 0.5 * angle * cw / n) / (angle * angle)
    ex, ey, ez = f * cx, f * cy, f * cz
    write_rows(F, E + row, weight + row, mask, ex, ey, ez, 0.0, 0.0, 0.0)
    # a step turns the ball about its own axes, so the right Jacobian, inverted, is what counts
    xx, yy, zz = ex * ex, ey * ey, ez * ez
    rate = (
        1.0 - g * (yy + zz), g * ex * ey - 0.5 * ez, g * ex * ez + 0.5 * ey,
        g * ex * ey + 0.5 * ez, 1.0 - g * (xx + zz), g * ey * ez - 0.5 * ex,
        g * ex * ez - 0.5 * ey, g * ey * ez + 0.5 * ex, 1.0 - g * (xx + yy),
    )  # fmt: skip
    own = I[block + OWN_COLUMN]
    for k in range(3 if own >= 0 else 0):
        add_column(F, J + j + own + k, width, weight + row, mask, 1.0, rate[k], rate[3 + k], rate[6 + k], 0.0, 0.0, 0.0)


@part
def evaluate(I, F, x, buffer, end):
    """Rows of the blocks below `end`, and their Jacobian, into one of the two buffers."""
    blocks, block_columns, slack, data = I[AT_BLOCKS], I[AT_BLOCK_COLUMNS], I[AT_SLACK], I[AT_DATA]
    weight, scale, jacobian, rows = I[AT_WEIGHT], I[AT_SCALE], I[AT_JACOBIAN], I[AT_ROWS]
    place_nodes(I, F, x)
    E, J = rows + I[N_ROWS] * buffer, jacobian + I[N_JACOBIAN] * buffer
    for b in range(end):
        block = blocks + BLOCK_INTS * b
        kind, row, m, width, j = (
            I[block + KIND],
            I[block + FIRST_ROW],
            I[block + ROWS],
            I[block + COLUMNS],
            I[block + FIRST_J],
        )
        if kind != FUNCTION:
            for k in range(m * width):
                F[J + j + k] = 0.0
        if kind == VALUE:
            F[E + row] = F[weight + row] * (F[x + I[block + X_INDEX]] - F[data + BLOCK_FLOATS * b])
            if I[block + OWN_COLUMN] >= 0:
                F[J + j + I[block + OWN_COLUMN]] = (
                    F[weight + row] * F[scale + I[block_columns + I[block + FIRST_COLUMN] + I[block + OWN_COLUMN]]]
                )
        elif kind == TURN:
            ball_turn(I, F, b, x, E, J)
        elif kind == MASS:
            weigh(I, F, b, E, J)
        elif kind == LAW:
            add_up(I, F, b, x, E, J)
        elif kind == FUNCTION:
            pass
        else:
            relate(I, F, b, E, J)
        if I[block + HAS_BANDS] == 1 and kind != FUNCTION:
            for r in range(row, row + m):
                if I[slack + 2 * r] >= 0:
                    F[E + r] -= F[weight + r] * F[x + I[slack + 2 * r]]
                    F[J + j + (r - row) * width + I[slack + 2 * r + 1]] = -1.0
