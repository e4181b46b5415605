"""The rows of a chain's goal: rotation vectors, axes and cosines, and how they change with shifts and turns of the end.

Whole poses, whole positions and whole rotations need none of the matrices here: their squares are the same along any
axes, and near the target a rotation vector changes as a turn does.
"""

from __future__ import annotations

from .chain_layout import *
from .compiler import helper, part
from .vector import lanes_of, load, root, spread, store, where_less


@helper
def log_factor(trace):
    """angle / (2 sin angle) of a rotation with this trace, and the squared cosine of half its angle."""
    h2 = (trace + 1.0) * 0.25
    h2 = where_less(h2, 1e-12, 1e-12, h2)
    h2 = where_less(1.0, h2, 1.0, h2)
    half = root(h2)
    quarter = root((half + 1.0) * 0.5)
    x = 1.0 - quarter
    f = 0.0005967587407433526 * x + 0.00028752927852061436
    f = f * x + 0.001282418607820801
    f = f * x + 0.0024578394720230785
    f = f * x + 0.005332603610528606
    f = f * x + 0.011543540158612465
    f = f * x + 0.025396855354727597
    f = f * x + 0.05714285603660962
    f = f * x + 0.13333333335421824
    f = f * x + 0.33333333333317994
    f = f * x + 1.0000000000000002
    return 0.5 * f / (half * quarter), h2


@helper
def along(like, ws, first, x, y, z):
    """A matrix (3 x 3, row by row) of the workspace times a vector."""
    L = lanes_of(like)
    m = first * L
    return (
        load(like, ws, m) * x + load(like, ws, m + L) * y + load(like, ws, m + 2 * L) * z,
        load(like, ws, m + 3 * L) * x + load(like, ws, m + 4 * L) * y + load(like, ws, m + 5 * L) * z,
        load(like, ws, m + 6 * L) * x + load(like, ws, m + 7 * L) * y + load(like, ws, m + 8 * L) * z,
    )


@helper
def rotation_vector_rows(e3, e4, e5, factor, h2):
    """How a rotation vector r changes with a turn w: by w + r x w / 2 + c r x (r x w); nine numbers, row by row."""
    t2 = e3 * e3 + e4 * e4 + e5 * e5
    far = (1.0 - factor * h2 * 2.0) / where_less(t2, 1e-4, 1.0, t2)
    c = where_less(t2, 1e-4, 1.0 / 12.0 + t2 * (1.0 / 720.0), far)
    diagonal = 1.0 - c * t2
    return (
        diagonal + c * e3 * e3, c * e3 * e4 - 0.5 * e5, c * e3 * e5 + 0.5 * e4,
        c * e4 * e3 + 0.5 * e5, diagonal + c * e4 * e4, c * e4 * e5 - 0.5 * e3,
        c * e5 * e3 - 0.5 * e4, c * e5 * e4 + 0.5 * e3, diagonal + c * e5 * e5,
    )  # fmt: skip


@helper
def axis_rows(dx, dy, dz, factor):
    """How (x, y) of a direction, stretched so that its length is the angle to z, changes with a turn."""
    s2 = dx * dx + dy * dy
    f = 2.0 * factor
    slope = where_less(s2, 1e-6, -1.0 / 3.0, (f * dz - 1.0) / where_less(s2, 1e-6, 1.0, s2))
    zero = 0.0 * s2
    return (
        slope * dx * dy, f * dz - slope * dx * dx, zero - f * dy,
        slope * dy * dy - f * dz, zero - slope * dx * dy, f * dx,
        zero, zero, zero,
    )  # fmt: skip


@part
def partial_rows(like, C, ws, R, e0, e1, e2, e3, e4, e5, factor, h2):
    """Residuals along the axes of the rows, weighted; what turns shifts and turns into rows goes into the workspace.

    Args:
        R: the end's rotation, nine numbers, column by column.
    Returns:
        The residuals, and the squared cosine of half the angle between axes or frames.
    """
    L = lanes_of(like)
    w, by_turn = ROW_WEIGHTS, C[TURN_WEIGHT]
    P, G = PLACE_AXES * L, TURN_AXES * L
    for r in range(3):
        for k in range(3):
            # the axes are the columns of a matrix: its transpose takes a vector onto them
            store(ws, (PLACE_ROWS + 3 * r + k) * L, C[w + r] * load(like, ws, P + (3 * k + r) * L))
            store(ws, (TURN_ROWS + 3 * r + k) * L, spread(like, 1.0) * load(like, ws, G + (3 * k + r) * L))
    e0, e1, e2 = along(like, ws, PLACE_ROWS, e0, e1, e2)
    if C[TURN_KIND] == VECTOR:
        e3, e4, e5 = along(like, ws, TURN_ROWS, e3, e4, e5)
        M = rotation_vector_rows(e3, e4, e5, factor, h2)
    else:
        bx, by, bz = C[TOOL_AXIS], C[TOOL_AXIS + 1], C[TOOL_AXIS + 2]
        x, y, z = (
            R[0] * bx + R[3] * by + R[6] * bz,
            R[1] * bx + R[4] * by + R[7] * bz,
            R[2] * bx + R[5] * by + R[8] * bz,
        )
        dx, dy, dz = along(like, ws, TURN_ROWS, x, y, z)
        zero = 0.0 * dz
        if C[TURN_KIND] == AXIS:
            factor, h2 = log_factor(1.0 + 2.0 * dz)
            M = axis_rows(dx, dy, dz, factor)
            stretch = -2.0 * by_turn * factor
            e3, e4, e5 = stretch * dx, stretch * dy, zero
        else:
            h2 = zero + 1.0
            M = (dy, zero - dx, zero, zero, zero, zero, zero, zero, zero)
            e3, e4, e5 = -by_turn * dz, zero, zero
    for k in range(3):
        g0 = load(like, ws, G + 3 * k * L)
        g1, g2 = load(like, ws, G + (3 * k + 1) * L), load(like, ws, G + (3 * k + 2) * L)
        store(ws, (TURN_ROWS + k) * L, C[w + 3] * (M[0] * g0 + M[1] * g1 + M[2] * g2))
        store(ws, (TURN_ROWS + 3 + k) * L, C[w + 4] * (M[3] * g0 + M[4] * g1 + M[5] * g2))
        store(ws, (TURN_ROWS + 6 + k) * L, C[w + 5] * (M[6] * g0 + M[7] * g1 + M[8] * g2))
    return e0, e1, e2, C[w + 3] * e3, C[w + 4] * e4, C[w + 5] * e5, h2
