"""One Levenberg-Marquardt iteration for a serial chain, in a single lane or in eight lanes.

Each lane evaluates its trial. A trial that is better than the accepted x replaces it; else the damping grows. The next
trial is a damped step from the accepted x, clamped to the limits; joints at a limit that are pushed outwards take no
part. Lanes are independent: every choice is made lane by lane.

Residuals of whole poses, positions and rotations need no row maps: their squares are the same along any axes, and near
the target a rotation vector changes as the rotation does. Partial goals (single rows, axes, cosines) use
`partial_residual`.

`work` and `work_alias` are two names of the same workspace. With a single name the compiler would turn a conditional
"keep the stored value" into masked stores, which are slow on some processors.
"""

from __future__ import annotations

from .chain_layout import *
from .compiler import inline, subroutine
from .nodes import bounded_sincos
from .vector import lanes_of, load, root, spread, store, where_less


@inline
def rotation_log_factor(trace):
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


@inline
def rotate_by_slot(scalar_type, work, first, x, y, z):
    """Multiply a 3 x 3 matrix of the workspace, stored row by row from slot `first`, with a vector."""
    lanes = lanes_of(scalar_type)
    m = first * lanes
    return (
        load(scalar_type, work, m) * x
        + load(scalar_type, work, m + lanes) * y
        + load(scalar_type, work, m + 2 * lanes) * z,
        load(scalar_type, work, m + 3 * lanes) * x
        + load(scalar_type, work, m + 4 * lanes) * y
        + load(scalar_type, work, m + 5 * lanes) * z,
        load(scalar_type, work, m + 6 * lanes) * x
        + load(scalar_type, work, m + 7 * lanes) * y
        + load(scalar_type, work, m + 8 * lanes) * z,
    )


@inline
def rotation_vector_jacobian(e3, e4, e5, factor, h2):
    """Jacobian, row by row, of a rotation vector r under a rotation w: w + r x w / 2 + c r x (r x w)."""
    t2 = e3 * e3 + e4 * e4 + e5 * e5
    closed_form = (1.0 - factor * h2 * 2.0) / where_less(t2, 1e-4, 1.0, t2)
    c = where_less(t2, 1e-4, 1.0 / 12.0 + t2 * (1.0 / 720.0), closed_form)
    diagonal = 1.0 - c * t2
    return (
        diagonal + c * e3 * e3, c * e3 * e4 - 0.5 * e5, c * e3 * e5 + 0.5 * e4,
        c * e4 * e3 + 0.5 * e5, diagonal + c * e4 * e4, c * e4 * e5 - 0.5 * e3,
        c * e5 * e3 - 0.5 * e4, c * e5 * e4 + 0.5 * e3, diagonal + c * e5 * e5,
    )  # fmt: skip


@inline
def axis_jacobian(dx, dy, dz, factor):
    """Jacobian, row by row, of (x, y) of a direction scaled to its angle from z, under a rotation."""
    s2 = dx * dx + dy * dy
    f = 2.0 * factor
    derivative = where_less(s2, 1e-6, -1.0 / 3.0, (f * dz - 1.0) / where_less(s2, 1e-6, 1.0, s2))
    zero = 0.0 * s2
    return (
        derivative * dx * dy, f * dz - derivative * dx * dx, zero - f * dy,
        derivative * dy * dy - f * dz, zero - derivative * dx * dy, f * dx,
        zero, zero, zero,
    )  # fmt: skip


@subroutine
def partial_residual(scalar_type, model, work, R, e0, e1, e2, e3, e4, e5, factor, h2):
    """Weighted residuals along the axes of the rows; the maps from motions to residuals go into the workspace.

    Args:
        R: rotation of the tip, nine numbers, column by column.
        e0, e1, e2, e3, e4, e5: errors of position and rotation in the frame of the base.
        factor, h2: of `rotation_log_factor`.

    Returns:
        The residuals, and the squared cosine of half the angle between axes or frames.
    """
    lanes = lanes_of(scalar_type)
    w, rotation_weight = ROW_WEIGHTS, model[ROTATION_WEIGHT]
    P, G = POSITION_AXES * lanes, ROTATION_AXES * lanes
    for r in range(3):
        for k in range(3):
            # the axes are the columns of a matrix: its transpose projects a vector onto them
            store(
                work,
                (POSITION_ROW_MAP + 3 * r + k) * lanes,
                model[w + r] * load(scalar_type, work, P + (3 * k + r) * lanes),
            )
            store(
                work,
                (ROTATION_ROW_MAP + 3 * r + k) * lanes,
                spread(scalar_type, 1.0) * load(scalar_type, work, G + (3 * k + r) * lanes),
            )
    e0, e1, e2 = rotate_by_slot(scalar_type, work, POSITION_ROW_MAP, e0, e1, e2)
    if model[ROTATION_KIND] == ROTATION_VECTOR:
        e3, e4, e5 = rotate_by_slot(scalar_type, work, ROTATION_ROW_MAP, e3, e4, e5)
        M = rotation_vector_jacobian(e3, e4, e5, factor, h2)
    else:
        bx, by, bz = model[TOOL_AXIS], model[TOOL_AXIS + 1], model[TOOL_AXIS + 2]
        x, y, z = (
            R[0] * bx + R[3] * by + R[6] * bz,
            R[1] * bx + R[4] * by + R[7] * bz,
            R[2] * bx + R[5] * by + R[8] * bz,
        )
        dx, dy, dz = rotate_by_slot(scalar_type, work, ROTATION_ROW_MAP, x, y, z)
        zero = 0.0 * dz
        if model[ROTATION_KIND] == AXIS:
            factor, h2 = rotation_log_factor(1.0 + 2.0 * dz)
            M = axis_jacobian(dx, dy, dz, factor)
            scale = -2.0 * rotation_weight * factor
            e3, e4, e5 = scale * dx, scale * dy, zero
        else:
            h2 = zero + 1.0
            M = (dy, zero - dx, zero, zero, zero, zero, zero, zero, zero)
            e3, e4, e5 = -rotation_weight * dz, zero, zero
    for k in range(3):
        g0 = load(scalar_type, work, G + 3 * k * lanes)
        g1, g2 = load(scalar_type, work, G + (3 * k + 1) * lanes), load(scalar_type, work, G + (3 * k + 2) * lanes)
        store(work, (ROTATION_ROW_MAP + k) * lanes, model[w + 3] * (M[0] * g0 + M[1] * g1 + M[2] * g2))
        store(work, (ROTATION_ROW_MAP + 3 + k) * lanes, model[w + 4] * (M[3] * g0 + M[4] * g1 + M[5] * g2))
        store(work, (ROTATION_ROW_MAP + 6 + k) * lanes, model[w + 5] * (M[6] * g0 + M[7] * g1 + M[8] * g2))
    return e0, e1, e2, model[w + 3] * e3, model[w + 4] * e4, model[w + 5] * e5, h2


@inline
def solve_ldlt6(
    a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
    y0, y1, y2, y3, y4, y5,
):  # fmt: skip
    """Solve A y = y for the lower triangle of a symmetric positive definite 6 x 6 matrix A.

    LDL' without pivoting, which damped normal equations do not need; written out so that all numbers stay in registers.
    The numbers are floats or vectors.
    """
    d0 = 1.0 / a00
    f = a10 * d0
    a11, a21, a31, a41, a51, y1 = a11 - f * a10, a21 - f * a20, a31 - f * a30, a41 - f * a40, a51 - f * a50, y1 - f * y0
    f = a20 * d0
    a22, a32, a42, a52, y2 = a22 - f * a20, a32 - f * a30, a42 - f * a40, a52 - f * a50, y2 - f * y0
    f = a30 * d0
    a33, a43, a53, y3 = a33 - f * a30, a43 - f * a40, a53 - f * a50, y3 - f * y0
    f = a40 * d0
    a44, a54, y4 = a44 - f * a40, a54 - f * a50, y4 - f * y0
    f = a50 * d0
    a55, y5 = a55 - f * a50, y5 - f * y0
    d1 = 1.0 / a11
    f = a21 * d1
    a22, a32, a42, a52, y2 = a22 - f * a21, a32 - f * a31, a42 - f * a41, a52 - f * a51, y2 - f * y1
    f = a31 * d1
    a33, a43, a53, y3 = a33 - f * a31, a43 - f * a41, a53 - f * a51, y3 - f * y1
    f = a41 * d1
    a44, a54, y4 = a44 - f * a41, a54 - f * a51, y4 - f * y1
    f = a51 * d1
    a55, y5 = a55 - f * a51, y5 - f * y1
    d2 = 1.0 / a22
    f = a32 * d2
    a33, a43, a53, y3 = a33 - f * a32, a43 - f * a42, a53 - f * a52, y3 - f * y2
    f = a42 * d2
    a44, a54, y4 = a44 - f * a42, a54 - f * a52, y4 - f * y2
    f = a52 * d2
    a55, y5 = a55 - f * a52, y5 - f * y2
    d3 = 1.0 / a33
    f = a43 * d3
    a44, a54, y4 = a44 - f * a43, a54 - f * a53, y4 - f * y3
    f = a53 * d3
    a55, y5 = a55 - f * a53, y5 - f * y3
    d4 = 1.0 / a44
    f = a54 * d4
    a55, y5 = a55 - f * a54, y5 - f * y4
    y5 = y5 / a55
    y4 = (y4 - a54 * y5) * d4
    y3 = (y3 - a43 * y4 - a53 * y5) * d3
    y2 = (y2 - a32 * y3 - a42 * y4 - a52 * y5) * d2
    y1 = (y1 - a21 * y2 - a31 * y3 - a41 * y4 - a51 * y5) * d1
    y0 = (y0 - a10 * y1 - a20 * y2 - a30 * y3 - a40 * y4 - a50 * y5) * d0
    return y0, y1, y2, y3, y4, y5


DAMPING_GROWTH, MAX_DAMPING, MIN_DAMPING = 4.0, 1e3, 1e-12
"""Factor on the damping after a rejected trial, the damping at which an attempt ends, and the damping added to each
step."""
CHECK_INTERVAL, MAX_COST_RATIO = 3.0, 0.7
"""An attempt ends when its cost is above this ratio of its cost three iterations before.

Tuned, like the growth of the damping, on random targets of a Panda and a UR5."""
NEAR_COST, NEAR_MAX_COST_RATIO = 1e-6, 0.97
"""Below this cost the larger ratio holds: near a singular pose the last iterations converge slowly."""
PI_SQUARED = 9.869604401089358
NEAR_PI_TOLERANCE = 1e-9
"""Squared cosine of half the angle below which a rotation counts as half a turn."""


@inline
def chain_forward_kinematics(scalar_type, model, work):
    """Rotation, column by column, and position of the tip at the trial, in the frame of the base.

    The screw of each column (its moment about the base, and its axis) goes into the workspace.
    """
    lanes = lanes_of(scalar_type)
    ones, zeros = spread(scalar_type, 1.0), spread(scalar_type, 0.0)
    xx, xy, xz, yx, yy, yz, zx, zy, zz = ones, zeros, zeros, zeros, ones, zeros, zeros, zeros, ones
    px, py, pz = zeros, zeros, zeros
    for j in range(int(model[N_NODES])):
        o = MODEL_HEAD + JOINT_FLOATS * j
        b = (LANE_HEAD + COLUMN_SLOTS * int(model[o + JOINT_COLUMN])) * lanes
        ratio, slide_scale = model[o + JOINT_RATIO], model[o + SLIDE_SCALE]
        x = load(scalar_type, work, b + TRIAL * lanes) * ratio
        if slide_scale == 0.0:
            s, c = bounded_sincos(model[o + JOINT_OFFSET] + x)
            d = spread(scalar_type, model[o + LINK_TRANSLATION + 2])
            mx, my, mz = py * zz - pz * zy, pz * zx - px * zz, px * zy - py * zx
            ax, ay, az = zx, zy, zz
        else:
            s, c = spread(scalar_type, model[o + SIN_OFFSET]), spread(scalar_type, model[o + COS_OFFSET])
            d = model[o + LINK_TRANSLATION + 2] + slide_scale * x
            mx, my, mz = slide_scale * zx, slide_scale * zy, slide_scale * zz
            ax, ay, az = zeros, zeros, zeros
        if ratio != 1.0:
            mx, my, mz, ax, ay, az = mx * ratio, my * ratio, mz * ratio, ax * ratio, ay * ratio, az * ratio
        if model[o + IS_FIRST_OF_COLUMN] == 0.0:
            mx, my, mz = (
                mx + load(scalar_type, work, b),
                my + load(scalar_type, work, b + lanes),
                mz + load(scalar_type, work, b + 2 * lanes),
            )
            ax, ay = ax + load(scalar_type, work, b + 3 * lanes), ay + load(scalar_type, work, b + 4 * lanes)
            az = az + load(scalar_type, work, b + 5 * lanes)
        store(work, b, mx)
        store(work, b + lanes, my)
        store(work, b + 2 * lanes, mz)
        store(work, b + 3 * lanes, ax)
        store(work, b + 4 * lanes, ay)
        store(work, b + 5 * lanes, az)
        tx, ty, ca, sa = (
            model[o + LINK_TRANSLATION],
            model[o + LINK_TRANSLATION + 1],
            model[o + COS_ALPHA],
            model[o + SIN_ALPHA],
        )
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


@subroutine
def iterate(scalar_type, model, work, work_alias):
    """Evaluate the trial of every lane, accept or reject it, and make the next trial."""
    lanes = lanes_of(scalar_type)
    n = int(model[N_COLUMNS])
    ones, zeros = spread(scalar_type, 1.0), spread(scalar_type, 0.0)
    is_partial = model[IS_PARTIAL] != 0.0
    position_weight, rotation_weight = model[POSITION_WEIGHT], model[ROTATION_WEIGHT]
    xx, xy, xz, yx, yy, yz, zx, zy, zz, px, py, pz = chain_forward_kinematics(scalar_type, model, work)
    # ---- residual: from the tip to the target
    t0, t1, t2 = load(scalar_type, work, 0), load(scalar_type, work, lanes), load(scalar_type, work, 2 * lanes)
    t3, t4, t5 = (
        load(scalar_type, work, 3 * lanes),
        load(scalar_type, work, 4 * lanes),
        load(scalar_type, work, 5 * lanes),
    )
    t6, t7, t8 = (
        load(scalar_type, work, 6 * lanes),
        load(scalar_type, work, 7 * lanes),
        load(scalar_type, work, 8 * lanes),
    )
    factor, h2 = rotation_log_factor(
        xx * t0 + xy * t3 + xz * t6 + yx * t1 + yy * t4 + yz * t7 + zx * t2 + zy * t5 + zz * t8
    )
    f = factor * rotation_weight
    e3 = f * (xy * t6 - xz * t3 + yy * t7 - yz * t4 + zy * t8 - zz * t5)
    e4 = f * (xz * t0 - xx * t6 + yz * t1 - yx * t7 + zz * t2 - zx * t8)
    e5 = f * (xx * t3 - xy * t0 + yx * t4 - yy * t1 + zx * t5 - zy * t2)
    e0 = (load(scalar_type, work, TARGET_POSITION * lanes) - px) * position_weight
    e1 = (load(scalar_type, work, (TARGET_POSITION + 1) * lanes) - py) * position_weight
    e2 = (load(scalar_type, work, (TARGET_POSITION + 2) * lanes) - pz) * position_weight
    if is_partial:
        R = (xx, xy, xz, yx, yy, yz, zx, zy, zz)
        e0, e1, e2, e3, e4, e5, h2 = partial_residual(scalar_type, model, work, R, e0, e1, e2, e3, e4, e5, factor, h2)
    p2 = e0 * e0 + e1 * e1 + e2 * e2
    r2 = e3 * e3 + e4 * e4 + e5 * e5
    # the error vanishes at a rotation by pi, which must not pass for a solution
    r2 = where_less(h2, NEAR_PI_TOLERANCE, PI_SQUARED * rotation_weight * rotation_weight, r2)
    # ---- accept or reject
    new_cost = p2 + r2
    old_cost = load(scalar_type, work, COST * lanes)
    cost = where_less(new_cost, old_cost, new_cost, old_cost)
    p2 = where_less(new_cost, old_cost, p2, load(scalar_type, work_alias, POSITION_ERROR * lanes))
    r2 = where_less(new_cost, old_cost, r2, load(scalar_type, work_alias, ROTATION_ERROR * lanes))
    mu = load(scalar_type, work_alias, MU * lanes)
    mu = where_less(new_cost, old_cost, mu, mu * DAMPING_GROWTH)
    store(work, COST * lanes, cost)
    store(work, POSITION_ERROR * lanes, p2)
    store(work, ROTATION_ERROR * lanes, r2)
    store(work, MU * lanes, mu)
    # ---- end of the attempt
    iteration = load(scalar_type, work, ITERATION * lanes) + 1.0
    next_check, reference_cost = (
        load(scalar_type, work_alias, NEXT_CHECK * lanes),
        load(scalar_type, work_alias, REFERENCE_COST * lanes),
    )
    is_finished = where_less(
        p2, model[POSITION_TOLERANCE2], where_less(r2, model[ROTATION_TOLERANCE2], ones, zeros), zeros
    )
    max_cost = where_less(cost, NEAR_COST, NEAR_MAX_COST_RATIO, MAX_COST_RATIO) * reference_cost
    is_finished = where_less(iteration, next_check, is_finished, where_less(max_cost, cost, ones, is_finished))
    is_finished = where_less(iteration, model[MAX_ITERATIONS], is_finished, ones)
    store(work, ITERATION * lanes, iteration)
    store(work, REFERENCE_COST * lanes, where_less(iteration, next_check, reference_cost, cost))
    store(work, NEXT_CHECK * lanes, where_less(iteration, next_check, next_check, next_check + CHECK_INTERVAL))
    store(work, IS_FINISHED * lanes, where_less(MAX_DAMPING, mu, ones, is_finished))
    e0 = where_less(new_cost, old_cost, e0, load(scalar_type, work_alias, RESIDUAL * lanes))
    e1 = where_less(new_cost, old_cost, e1, load(scalar_type, work_alias, (RESIDUAL + 1) * lanes))
    e2 = where_less(new_cost, old_cost, e2, load(scalar_type, work_alias, (RESIDUAL + 2) * lanes))
    e3 = where_less(new_cost, old_cost, e3, load(scalar_type, work_alias, (RESIDUAL + 3) * lanes))
    e4 = where_less(new_cost, old_cost, e4, load(scalar_type, work_alias, (RESIDUAL + 4) * lanes))
    e5 = where_less(new_cost, old_cost, e5, load(scalar_type, work_alias, (RESIDUAL + 5) * lanes))
    store(work, RESIDUAL * lanes, e0)
    store(work, (RESIDUAL + 1) * lanes, e1)
    store(work, (RESIDUAL + 2) * lanes, e2)
    store(work, (RESIDUAL + 3) * lanes, e3)
    store(work, (RESIDUAL + 4) * lanes, e4)
    store(work, (RESIDUAL + 5) * lanes, e5)
    # ---- Jacobian at the accepted x, active limits, and the normal matrix in two passes, each of which fits the
    # registers
    columns = MODEL_HEAD + JOINT_FLOATS * int(model[N_NODES])
    damping = mu * cost + MIN_DAMPING
    a00, a11, a22, a33 = damping, damping, damping, damping
    a10, a20, a21, a30, a31, a32 = zeros, zeros, zeros, zeros, zeros, zeros
    for j in range(n):
        o = columns + COLUMN_FLOATS * j
        b = (LANE_HEAD + COLUMN_SLOTS * j) * lanes
        lower, upper = model[o + X_MIN], model[o + X_MAX]
        ax, ay, az = (
            load(scalar_type, work, b + 3 * lanes),
            load(scalar_type, work, b + 4 * lanes),
            load(scalar_type, work, b + 5 * lanes),
        )
        j0 = (load(scalar_type, work, b) + ay * pz - az * py) * position_weight
        j1 = (load(scalar_type, work, b + lanes) + az * px - ax * pz) * position_weight
        j2 = (load(scalar_type, work, b + 2 * lanes) + ax * py - ay * px) * position_weight
        j3, j4, j5 = ax * rotation_weight, ay * rotation_weight, az * rotation_weight
        if is_partial:
            j0, j1, j2 = rotate_by_slot(scalar_type, work, POSITION_ROW_MAP, j0, j1, j2)
            j3, j4, j5 = rotate_by_slot(scalar_type, work, ROTATION_ROW_MAP, j3, j4, j5)
        j0 = where_less(new_cost, old_cost, j0, load(scalar_type, work_alias, b + 6 * lanes))
        j1 = where_less(new_cost, old_cost, j1, load(scalar_type, work_alias, b + 7 * lanes))
        j2 = where_less(new_cost, old_cost, j2, load(scalar_type, work_alias, b + 8 * lanes))
        j3 = where_less(new_cost, old_cost, j3, load(scalar_type, work_alias, b + 9 * lanes))
        j4 = where_less(new_cost, old_cost, j4, load(scalar_type, work_alias, b + 10 * lanes))
        j5 = where_less(new_cost, old_cost, j5, load(scalar_type, work_alias, b + 11 * lanes))
        store(work, b + 6 * lanes, j0)
        store(work, b + 7 * lanes, j1)
        store(work, b + 8 * lanes, j2)
        store(work, b + 9 * lanes, j3)
        store(work, b + 10 * lanes, j4)
        store(work, b + 11 * lanes, j5)
        x = where_less(
            new_cost,
            old_cost,
            load(scalar_type, work, b + TRIAL * lanes),
            load(scalar_type, work_alias, b + ACCEPTED * lanes),
        )
        store(work, b + ACCEPTED * lanes, x)
        descent = (
            j0 * load(scalar_type, work, RESIDUAL * lanes)
            + j1 * load(scalar_type, work, (RESIDUAL + 1) * lanes)
            + j2 * load(scalar_type, work, (RESIDUAL + 2) * lanes)
            + j3 * load(scalar_type, work, (RESIDUAL + 3) * lanes)
            + j4 * load(scalar_type, work, (RESIDUAL + 4) * lanes)
            + j5 * load(scalar_type, work, (RESIDUAL + 5) * lanes)
        )
        margin = where_less(descent, zeros, x - lower, upper - x)
        is_free = where_less(zeros, margin, ones, zeros)
        store(work, b + IS_FREE * lanes, is_free)
        v = is_free * j0
        a00, a10, a20, a30 = a00 + v * j0, a10 + v * j1, a20 + v * j2, a30 + v * j3
        v = is_free * j1
        a11, a21, a31 = a11 + v * j1, a21 + v * j2, a31 + v * j3
        v = is_free * j2
        a22, a32 = a22 + v * j2, a32 + v * j3
        a33 = a33 + is_free * j3 * j3
    a44, a55 = damping, damping
    a40, a41, a42, a43, a50, a51, a52, a53, a54 = zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros
    for j in range(n):
        b = (LANE_HEAD + COLUMN_SLOTS * j) * lanes
        is_free = load(scalar_type, work, b + IS_FREE * lanes)
        j4, j5 = load(scalar_type, work, b + 10 * lanes), load(scalar_type, work, b + 11 * lanes)
        v, w = is_free * j4, is_free * j5
        a44, a54, a55 = a44 + v * j4, a54 + w * j4, a55 + w * j5
        x = load(scalar_type, work, b + 6 * lanes)
        a40, a50 = a40 + v * x, a50 + w * x
        x = load(scalar_type, work, b + 7 * lanes)
        a41, a51 = a41 + v * x, a51 + w * x
        x = load(scalar_type, work, b + 8 * lanes)
        a42, a52 = a42 + v * x, a52 + w * x
        x = load(scalar_type, work, b + 9 * lanes)
        a43, a53 = a43 + v * x, a53 + w * x
    y0, y1, y2, y3, y4, y5 = solve_ldlt6(
        a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
        load(scalar_type, work, RESIDUAL * lanes), load(scalar_type, work, (RESIDUAL + 1) * lanes),
        load(scalar_type, work, (RESIDUAL + 2) * lanes), load(scalar_type, work, (RESIDUAL + 3) * lanes),
        load(scalar_type, work, (RESIDUAL + 4) * lanes), load(scalar_type, work, (RESIDUAL + 5) * lanes),
    )  # fmt: skip
    # ---- next trial, inside the limits; a locked joint has an empty range, is never free, and stays
    for j in range(n):
        o = columns + COLUMN_FLOATS * j
        b = (LANE_HEAD + COLUMN_SLOTS * j) * lanes
        d = (
            load(scalar_type, work, b + 6 * lanes) * y0
            + load(scalar_type, work, b + 7 * lanes) * y1
            + load(scalar_type, work, b + 8 * lanes) * y2
        )
        d = (
            d
            + load(scalar_type, work, b + 9 * lanes) * y3
            + load(scalar_type, work, b + 10 * lanes) * y4
            + load(scalar_type, work, b + 11 * lanes) * y5
        )
        x = load(scalar_type, work, b + ACCEPTED * lanes) + d * load(scalar_type, work, b + IS_FREE * lanes)
        if model[o + IS_LOCKED] == 0.0:
            x = where_less(model[o + X_MIN], x, x, model[o + X_MIN])
            x = where_less(x, model[o + X_MAX], x, model[o + X_MAX])
        store(work, b + TRIAL * lanes, x)
