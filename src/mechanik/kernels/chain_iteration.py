"""One Levenberg-Marquardt iteration for a serial chain, in a single lane or in eight lanes.

Each lane evaluates its trial. If the cost of the trial is below that of the accepted x, the trial is accepted;
otherwise the damping increases. The next trial is a damped step from the accepted x, clamped to the limits. A joint at
a limit does not take part in the step if the descent direction points outside. Lanes are independent: every decision is
made for each lane.

The step is J' y with (J J' + damping) y = e, for the free joints, where e is the weighted residual (6,) from the tip to
the target, and J is the Jacobian of -e. The cost is |e|^2. For a whole pose, position or rotation, J is the weighted
Jacobian of the tip along the axes of the base, since the cost is the same along any axes. The derivative of the
rotation vector is approximated by the identity, its value at the target. Partial goals (single rows, axes, cosines) use
the row maps of `partial_residual`.

`work` and `work_alias` are two names of the same workspace. With a single name the compiler would replace "keep the
stored value if the trial is rejected" by masked stores, which are slow on some processors. Offsets of slots are
multiplied by the number of lanes, `lanes` (`chain_layout.py`).
"""

from __future__ import annotations

from .chain_layout import *
from .compiler import inline, subroutine
from .nodes import bounded_sincos
from .vector import broadcast, eight_doubles, lanes_of, load, root, store, where_less


@inline
def rotation_log_factor(trace):
    """Return angle / (2 sin angle) of a rotation with this trace, and the squared cosine of half its angle.

    The polynomial approximates (angle / 4) / sin(angle / 4) as a function of x = 1 - cos(angle / 4). Its terms are
    summed in pairs, since the steps of Horner's method would have to wait for one another. The squared cosine is at
    least 1e-12, so that the result is finite for a rotation by pi.
    """
    half_cosine2 = (trace + 1.0) * 0.25
    half_cosine2 = where_less(half_cosine2, 1e-12, 1e-12, half_cosine2)
    half_cosine2 = where_less(1.0, half_cosine2, 1.0, half_cosine2)
    half_cosine = root(half_cosine2)
    quarter_cosine = root((half_cosine + 1.0) * 0.5)
    x = 1.0 - quarter_cosine
    x2 = x * x
    x4 = x2 * x2
    terms_0_to_3 = (0.33333333333317994 * x + 1.0000000000000002) + (0.05714285603660962 * x + 0.13333333335421824) * x2
    terms_4_to_7 = (0.011543540158612465 * x + 0.025396855354727597) + (
        0.0024578394720230785 * x + 0.005332603610528606
    ) * x2
    terms_8_to_10 = (0.00028752927852061436 * x + 0.001282418607820801) + 0.0005967587407433526 * x2
    series = terms_0_to_3 + terms_4_to_7 * x4 + terms_8_to_10 * (x4 * x4)
    return 0.5 * series / (half_cosine * quarter_cosine), half_cosine2


@inline
def multiply_by_slot_matrix(like, work, first_slot, x, y, z):
    """Return M (x, y, z) for a 3 x 3 matrix M of the workspace, stored row by row from `first_slot` on."""
    lanes = lanes_of(like)
    matrix = first_slot * lanes
    return (
        load(like, work, matrix) * x + load(like, work, matrix + lanes) * y + load(like, work, matrix + 2 * lanes) * z,
        load(like, work, matrix + 3 * lanes) * x
        + load(like, work, matrix + 4 * lanes) * y
        + load(like, work, matrix + 5 * lanes) * z,
        load(like, work, matrix + 6 * lanes) * x
        + load(like, work, matrix + 7 * lanes) * y
        + load(like, work, matrix + 8 * lanes) * z,
    )


@inline
def rotation_vector_jacobian(e3, e4, e5, factor, half_cosine2):
    """Return the Jacobian, row by row, of minus the rotation vector r = (e3, e4, e5) for a rotation w of the tip.

    r is the rotation from the tip to the target. The rotation w changes -r by w + r x w / 2 + c r x (r x w), where c is
    `even_factor`. `factor` and `half_cosine2` are results of `rotation_log_factor`.
    """
    angle2 = e3 * e3 + e4 * e4 + e5 * e5
    closed_form = (1.0 - factor * half_cosine2 * 2.0) / where_less(angle2, 1e-4, 1.0, angle2)
    even_factor = where_less(angle2, 1e-4, 1.0 / 12.0 + angle2 * (1.0 / 720.0), closed_form)
    diagonal = 1.0 - even_factor * angle2
    return (
        diagonal + even_factor * e3 * e3, even_factor * e3 * e4 - 0.5 * e5, even_factor * e3 * e5 + 0.5 * e4,
        even_factor * e4 * e3 + 0.5 * e5, diagonal + even_factor * e4 * e4, even_factor * e4 * e5 - 0.5 * e3,
        even_factor * e5 * e3 - 0.5 * e4, even_factor * e5 * e4 + 0.5 * e3, diagonal + even_factor * e5 * e5,
    )  # fmt: skip


@inline
def axis_jacobian(dx, dy, dz, factor):
    """Return the Jacobian, row by row, of the scaled components (dx, dy) of a unit vector d for a rotation of d.

    The components are scaled so that their length is the angle from z to d. `factor` is angle / (2 sin angle).
    """
    sine2 = dx * dx + dy * dy
    angle_over_sine = 2.0 * factor
    factor_slope = where_less(
        sine2, 1e-6, -1.0 / 3.0, (angle_over_sine * dz - 1.0) / where_less(sine2, 1e-6, 1.0, sine2)
    )
    zero = 0.0 * sine2
    return (
        factor_slope * dx * dy, angle_over_sine * dz - factor_slope * dx * dx, zero - angle_over_sine * dy,
        factor_slope * dy * dy - angle_over_sine * dz, zero - factor_slope * dx * dy, angle_over_sine * dx,
        zero, zero, zero,
    )  # fmt: skip


@subroutine
def partial_residual(like, model, work, R, e0, e1, e2, e3, e4, e5, factor, half_cosine2):
    """Return the weighted residuals along the axes of the rows, and write the row maps to the workspace.

    The row maps are the matrices by which the weighted linear and angular velocities of the tip are multiplied to give
    the derivatives of minus the residuals.

    Args:
        R: rotation of the last link in the frame of the base, nine numbers, column by column.
        e0, e1, e2, e3, e4, e5: weighted position and rotation vector from the tip to the target, in the frame of the
            base.
        factor, half_cosine2: results of `rotation_log_factor`.

    Returns:
        The residuals, and the squared cosine of half the angle between axes or frames; 1 for a cosine residual.
    """
    lanes = lanes_of(like)
    row_weights, rotation_weight = ROW_WEIGHTS, model[ROTATION_WEIGHT]
    position_axes, rotation_axes = POSITION_AXES * lanes, ROTATION_AXES * lanes
    for r in range(3):
        for k in range(3):
            # the axes are the columns of a matrix: its transpose projects a vector onto them
            store(
                work,
                (POSITION_ROW_MAP + 3 * r + k) * lanes,
                model[row_weights + r] * load(like, work, position_axes + (3 * k + r) * lanes),
            )
            store(
                work,
                (ROTATION_ROW_MAP + 3 * r + k) * lanes,
                broadcast(like, 1.0) * load(like, work, rotation_axes + (3 * k + r) * lanes),
            )
    e0, e1, e2 = multiply_by_slot_matrix(like, work, POSITION_ROW_MAP, e0, e1, e2)
    if model[ROTATION_KIND] == ROTATION_VECTOR:
        e3, e4, e5 = multiply_by_slot_matrix(like, work, ROTATION_ROW_MAP, e3, e4, e5)
        inverse_weight = 1.0 / rotation_weight if rotation_weight != 0.0 else 0.0
        angular_jacobian = rotation_vector_jacobian(
            e3 * inverse_weight, e4 * inverse_weight, e5 * inverse_weight, factor, half_cosine2
        )
    else:
        bx, by, bz = model[TOOL_AXIS], model[TOOL_AXIS + 1], model[TOOL_AXIS + 2]
        x, y, z = (
            R[0] * bx + R[3] * by + R[6] * bz,
            R[1] * bx + R[4] * by + R[7] * bz,
            R[2] * bx + R[5] * by + R[8] * bz,
        )
        dx, dy, dz = multiply_by_slot_matrix(like, work, ROTATION_ROW_MAP, x, y, z)
        zero = 0.0 * dz
        if model[ROTATION_KIND] == AXIS:
            factor, half_cosine2 = rotation_log_factor(1.0 + 2.0 * dz)
            angular_jacobian = axis_jacobian(dx, dy, dz, factor)
            scale = -2.0 * rotation_weight * factor
            e3, e4, e5 = scale * dx, scale * dy, zero
        else:
            half_cosine2 = zero + 1.0
            angular_jacobian = (dy, zero - dx, zero, zero, zero, zero, zero, zero, zero)
            e3, e4, e5 = -rotation_weight * dz, zero, zero
    for k in range(3):
        axis_0 = load(like, work, rotation_axes + 3 * k * lanes)
        axis_1, axis_2 = (
            load(like, work, rotation_axes + (3 * k + 1) * lanes),
            load(like, work, rotation_axes + (3 * k + 2) * lanes),
        )
        store(
            work,
            (ROTATION_ROW_MAP + k) * lanes,
            model[row_weights + 3]
            * (angular_jacobian[0] * axis_0 + angular_jacobian[1] * axis_1 + angular_jacobian[2] * axis_2),
        )
        store(
            work,
            (ROTATION_ROW_MAP + 3 + k) * lanes,
            model[row_weights + 4]
            * (angular_jacobian[3] * axis_0 + angular_jacobian[4] * axis_1 + angular_jacobian[5] * axis_2),
        )
        store(
            work,
            (ROTATION_ROW_MAP + 6 + k) * lanes,
            model[row_weights + 5]
            * (angular_jacobian[6] * axis_0 + angular_jacobian[7] * axis_1 + angular_jacobian[8] * axis_2),
        )
    return (
        e0,
        e1,
        e2,
        model[row_weights + 3] * e3,
        model[row_weights + 4] * e4,
        model[row_weights + 5] * e5,
        half_cosine2,
    )


@inline
def solve_ldlt6(
    a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
    y0, y1, y2, y3, y4, y5,
):  # fmt: skip
    """Return the solution of A x = y for a symmetric positive definite 6 x 6 matrix A, given by its lower triangle.

    The method is LDL' without pivoting, which damped normal equations do not need. It is written without loops so that
    all numbers stay in registers. The numbers are floats or vectors. d0 to d4 are inverse pivots, f is the factor of a
    row operation.
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


DAMPING_GROWTH, MAX_DAMPING_RATIO, MIN_DAMPING = 4.0, 1e3, 1e-12
"""Factor on the damping ratio (damping / cost) after a rejected trial; the damping ratio above which an attempt ends;
the constant that is added to the damping.

A larger DAMPING_GROWTH needs fewer rejected trials, but later steps are shorter, since the ratio does not decrease
within an attempt. A larger MAX_DAMPING_RATIO spends more iterations on attempts that rarely succeed."""
CHECK_INTERVAL, MAX_COST_RATIO = 3.0, 0.7
"""Every CHECK_INTERVAL iterations, an attempt ends if its cost is above MAX_COST_RATIO times that at the last check.

A smaller ratio abandons slow attempts earlier, but also attempts that would succeed. Both numbers and DAMPING_GROWTH
are tuned on random targets of a Panda and a UR5."""
NEAR_COST, NEAR_MAX_COST_RATIO = 1e-6, 0.97
"""Below the cost NEAR_COST, NEAR_MAX_COST_RATIO replaces MAX_COST_RATIO: near a singular pose the last iterations
converge slowly."""
PI_SQUARED = 9.869604401089358
"""Squared rotation error of a rotation by pi, rad^2."""
NEAR_PI_TOLERANCE = 1e-9
"""Squared cosine of half the angle below which a rotation counts as a rotation by pi."""


@inline
def write_sines_and_cosines(model, work, trigonometry):
    """Write angle, sine and cosine of every joint at the trial of a single lane, eight joints at a time.

    The offset `trigonometry` is that of `JOINT_ANGLES` and of the other arrays.
    """
    like, joint_count = eight_doubles(0.0), int(model[N_JOINTS])
    angles, sines, cosines = trigonometry + JOINT_ANGLES, trigonometry + JOINT_SINES, trigonometry + JOINT_COSINES
    for j in range(joint_count):
        joint = MODEL_HEAD + JOINT_FLOATS * j
        x = work[LANE_HEAD + COLUMN_SLOTS * int(model[joint + JOINT_COLUMN]) + TRIAL]
        work[angles + j] = model[joint + JOINT_OFFSET] + x * model[joint + JOINT_RATIO]
    for j in range(0, joint_count, lanes_of(like)):
        sine, cosine = bounded_sincos(load(like, work, angles + j))
        store(work, sines + j, sine)
        store(work, cosines + j, cosine)


@inline
def chain_forward_kinematics(like, model, work):
    """Return the rotation of the last link, column by column, and the position of the tip (scaled), at the trial.

    Both are in the frame of the base. The screw of each column is written to the workspace: its moment (mx, my, mz),
    which is the velocity at the origin of the base, and its axis (ax, ay, az), which is the angular velocity. (xx, xy,
    xz), (yx, yy, yz) and (zx, zy, zz) are the axes of the present frame and (px, py, pz) is its origin; u and v are
    components of its x and y axes after the joint's rotation.
    """
    lanes = lanes_of(like)
    ones, zeros = broadcast(like, 1.0), broadcast(like, 0.0)
    xx, xy, xz, yx, yy, yz, zx, zy, zz = ones, zeros, zeros, zeros, ones, zeros, zeros, zeros, ones
    px, py, pz = zeros, zeros, zeros
    trigonometry = work.shape[0] - (TRIGONOMETRY_FLOATS + REPORT_FLOATS)
    if lanes == 1:
        write_sines_and_cosines(model, work, trigonometry)
    for j in range(int(model[N_JOINTS])):
        joint = MODEL_HEAD + JOINT_FLOATS * j
        slot = (LANE_HEAD + COLUMN_SLOTS * int(model[joint + JOINT_COLUMN])) * lanes
        ratio, slide_scale = model[joint + JOINT_RATIO], model[joint + SLIDE_SCALE]
        x = load(like, work, slot + TRIAL * lanes) * ratio
        if slide_scale == 0.0:
            if lanes == 1:
                sine = load(like, work, trigonometry + JOINT_SINES + j)
                cosine = load(like, work, trigonometry + JOINT_COSINES + j)
            else:
                sine, cosine = bounded_sincos(model[joint + JOINT_OFFSET] + x)
            slide = broadcast(like, model[joint + LINK_TRANSLATION + 2])
            mx, my, mz = py * zz - pz * zy, pz * zx - px * zz, px * zy - py * zx
            ax, ay, az = zx, zy, zz
        else:
            sine, cosine = (
                broadcast(like, model[joint + SIN_OFFSET]),
                broadcast(like, model[joint + COS_OFFSET]),
            )
            slide = model[joint + LINK_TRANSLATION + 2] + slide_scale * x
            mx, my, mz = slide_scale * zx, slide_scale * zy, slide_scale * zz
            ax, ay, az = zeros, zeros, zeros
        if ratio != 1.0:
            mx, my, mz, ax, ay, az = mx * ratio, my * ratio, mz * ratio, ax * ratio, ay * ratio, az * ratio
        if model[joint + IS_FIRST_OF_COLUMN] == 0.0:
            mx, my, mz = (
                mx + load(like, work, slot),
                my + load(like, work, slot + lanes),
                mz + load(like, work, slot + 2 * lanes),
            )
            ax, ay = ax + load(like, work, slot + 3 * lanes), ay + load(like, work, slot + 4 * lanes)
            az = az + load(like, work, slot + 5 * lanes)
        store(work, slot, mx)
        store(work, slot + lanes, my)
        store(work, slot + 2 * lanes, mz)
        store(work, slot + 3 * lanes, ax)
        store(work, slot + 4 * lanes, ay)
        store(work, slot + 5 * lanes, az)
        tx, ty, cos_alpha, sin_alpha = (
            model[joint + LINK_TRANSLATION],
            model[joint + LINK_TRANSLATION + 1],
            model[joint + COS_ALPHA],
            model[joint + SIN_ALPHA],
        )
        u, v = xx * cosine + yx * sine, yx * cosine - xx * sine
        px = px + u * tx + v * ty + zx * slide
        xx, yx, zx = u, v * cos_alpha + zx * sin_alpha, zx * cos_alpha - v * sin_alpha
        u, v = xy * cosine + yy * sine, yy * cosine - xy * sine
        py = py + u * tx + v * ty + zy * slide
        xy, yy, zy = u, v * cos_alpha + zy * sin_alpha, zy * cos_alpha - v * sin_alpha
        u, v = xz * cosine + yz * sine, yz * cosine - xz * sine
        pz = pz + u * tx + v * ty + zz * slide
        xz, yz, zz = u, v * cos_alpha + zz * sin_alpha, zz * cos_alpha - v * sin_alpha
    return xx, xy, xz, yx, yy, yz, zx, zy, zz, px, py, pz


@subroutine
def iterate(like, model, work, work_alias):
    """Evaluate the trial of every lane, accept or reject it, and compute the next trial.

    t0 to t8 are the rotation of the last link at the target (without that of the tool), row by row. e0 to e5 are the
    residual, j0 to j5 a column of J, a00 to a55 the matrix J J' + damping, y0 to y5 its solution. New numbers are
    selected where new_cost < old_cost, stored numbers elsewhere.
    """
    lanes = lanes_of(like)
    column_count = int(model[N_COLUMNS])
    ones, zeros = broadcast(like, 1.0), broadcast(like, 0.0)
    is_partial = model[IS_PARTIAL] != 0.0
    position_weight, rotation_weight = model[POSITION_WEIGHT], model[ROTATION_WEIGHT]
    xx, xy, xz, yx, yy, yz, zx, zy, zz, px, py, pz = chain_forward_kinematics(like, model, work)
    # ---- residual: from the tip to the target
    t0, t1, t2 = load(like, work, 0), load(like, work, lanes), load(like, work, 2 * lanes)
    t3, t4, t5 = (
        load(like, work, 3 * lanes),
        load(like, work, 4 * lanes),
        load(like, work, 5 * lanes),
    )
    t6, t7, t8 = (
        load(like, work, 6 * lanes),
        load(like, work, 7 * lanes),
        load(like, work, 8 * lanes),
    )
    factor, half_cosine2 = rotation_log_factor(
        xx * t0 + xy * t3 + xz * t6 + yx * t1 + yy * t4 + yz * t7 + zx * t2 + zy * t5 + zz * t8
    )
    log_factor = factor * rotation_weight
    e3 = log_factor * (xy * t6 - xz * t3 + yy * t7 - yz * t4 + zy * t8 - zz * t5)
    e4 = log_factor * (xz * t0 - xx * t6 + yz * t1 - yx * t7 + zz * t2 - zx * t8)
    e5 = log_factor * (xx * t3 - xy * t0 + yx * t4 - yy * t1 + zx * t5 - zy * t2)
    e0 = (load(like, work, TARGET_POSITION * lanes) - px) * position_weight
    e1 = (load(like, work, (TARGET_POSITION + 1) * lanes) - py) * position_weight
    e2 = (load(like, work, (TARGET_POSITION + 2) * lanes) - pz) * position_weight
    if is_partial:
        R = (xx, xy, xz, yx, yy, yz, zx, zy, zz)
        e0, e1, e2, e3, e4, e5, half_cosine2 = partial_residual(
            like, model, work, R, e0, e1, e2, e3, e4, e5, factor, half_cosine2
        )
    position_error2 = e0 * e0 + e1 * e1 + e2 * e2
    rotation_error2 = e3 * e3 + e4 * e4 + e5 * e5
    # the residual of rotation is zero at a rotation by pi too, which is no solution
    rotation_error2 = where_less(
        half_cosine2, NEAR_PI_TOLERANCE, PI_SQUARED * rotation_weight * rotation_weight, rotation_error2
    )
    # ---- accept or reject
    new_cost = position_error2 + rotation_error2
    old_cost = load(like, work, COST * lanes)
    cost = where_less(new_cost, old_cost, new_cost, old_cost)
    position_error2 = where_less(new_cost, old_cost, position_error2, load(like, work_alias, POSITION_ERROR * lanes))
    rotation_error2 = where_less(new_cost, old_cost, rotation_error2, load(like, work_alias, ROTATION_ERROR * lanes))
    damping_ratio = load(like, work_alias, DAMPING_RATIO * lanes)
    damping_ratio = where_less(new_cost, old_cost, damping_ratio, damping_ratio * DAMPING_GROWTH)
    store(work, COST * lanes, cost)
    store(work, POSITION_ERROR * lanes, position_error2)
    store(work, ROTATION_ERROR * lanes, rotation_error2)
    store(work, DAMPING_RATIO * lanes, damping_ratio)
    # ---- end of the attempt
    iteration = load(like, work, ITERATION * lanes) + 1.0
    next_check, reference_cost = (
        load(like, work_alias, NEXT_CHECK * lanes),
        load(like, work_alias, REFERENCE_COST * lanes),
    )
    is_finished = where_less(
        position_error2,
        model[POSITION_TOLERANCE2],
        where_less(rotation_error2, model[ROTATION_TOLERANCE2], ones, zeros),
        zeros,
    )
    max_cost = where_less(cost, NEAR_COST, NEAR_MAX_COST_RATIO, MAX_COST_RATIO) * reference_cost
    is_finished = where_less(iteration, next_check, is_finished, where_less(max_cost, cost, ones, is_finished))
    is_finished = where_less(iteration, model[MAX_ITERATIONS], is_finished, ones)
    store(work, ITERATION * lanes, iteration)
    store(work, REFERENCE_COST * lanes, where_less(iteration, next_check, reference_cost, cost))
    store(work, NEXT_CHECK * lanes, where_less(iteration, next_check, next_check, next_check + CHECK_INTERVAL))
    store(work, IS_FINISHED * lanes, where_less(MAX_DAMPING_RATIO, damping_ratio, ones, is_finished))
    if lanes == 1 and work[IS_FINISHED] != 0.0:  # other lanes would need the next trial
        for j in range(column_count):
            slot = (LANE_HEAD + COLUMN_SLOTS * j) * lanes
            x, accepted_x = load(like, work, slot + TRIAL * lanes), load(like, work_alias, slot + ACCEPTED * lanes)
            store(work, slot + ACCEPTED * lanes, where_less(new_cost, old_cost, x, accepted_x))
        return
    e0 = where_less(new_cost, old_cost, e0, load(like, work_alias, RESIDUAL * lanes))
    e1 = where_less(new_cost, old_cost, e1, load(like, work_alias, (RESIDUAL + 1) * lanes))
    e2 = where_less(new_cost, old_cost, e2, load(like, work_alias, (RESIDUAL + 2) * lanes))
    e3 = where_less(new_cost, old_cost, e3, load(like, work_alias, (RESIDUAL + 3) * lanes))
    e4 = where_less(new_cost, old_cost, e4, load(like, work_alias, (RESIDUAL + 4) * lanes))
    e5 = where_less(new_cost, old_cost, e5, load(like, work_alias, (RESIDUAL + 5) * lanes))
    store(work, RESIDUAL * lanes, e0)
    store(work, (RESIDUAL + 1) * lanes, e1)
    store(work, (RESIDUAL + 2) * lanes, e2)
    store(work, (RESIDUAL + 3) * lanes, e3)
    store(work, (RESIDUAL + 4) * lanes, e4)
    store(work, (RESIDUAL + 5) * lanes, e5)
    # ---- Jacobian at the accepted x, active limits, and the matrix J J' + damping, in two passes: the numbers of each
    # pass fit into the registers
    columns_start = MODEL_HEAD + JOINT_FLOATS * int(model[N_JOINTS])
    damping = damping_ratio * cost + MIN_DAMPING
    a00, a11, a22, a33 = damping, damping, damping, damping
    a10, a20, a21, a30, a31, a32 = zeros, zeros, zeros, zeros, zeros, zeros
    for j in range(column_count):
        column = columns_start + COLUMN_FLOATS * j
        slot = (LANE_HEAD + COLUMN_SLOTS * j) * lanes
        lower, upper = model[column + X_MIN], model[column + X_MAX]
        ax, ay, az = (
            load(like, work, slot + 3 * lanes),
            load(like, work, slot + 4 * lanes),
            load(like, work, slot + 5 * lanes),
        )
        j0 = (load(like, work, slot) + ay * pz - az * py) * position_weight
        j1 = (load(like, work, slot + lanes) + az * px - ax * pz) * position_weight
        j2 = (load(like, work, slot + 2 * lanes) + ax * py - ay * px) * position_weight
        j3, j4, j5 = ax * rotation_weight, ay * rotation_weight, az * rotation_weight
        if is_partial:
            j0, j1, j2 = multiply_by_slot_matrix(like, work, POSITION_ROW_MAP, j0, j1, j2)
            j3, j4, j5 = multiply_by_slot_matrix(like, work, ROTATION_ROW_MAP, j3, j4, j5)
        j0 = where_less(new_cost, old_cost, j0, load(like, work_alias, slot + 6 * lanes))
        j1 = where_less(new_cost, old_cost, j1, load(like, work_alias, slot + 7 * lanes))
        j2 = where_less(new_cost, old_cost, j2, load(like, work_alias, slot + 8 * lanes))
        j3 = where_less(new_cost, old_cost, j3, load(like, work_alias, slot + 9 * lanes))
        j4 = where_less(new_cost, old_cost, j4, load(like, work_alias, slot + 10 * lanes))
        j5 = where_less(new_cost, old_cost, j5, load(like, work_alias, slot + 11 * lanes))
        store(work, slot + 6 * lanes, j0)
        store(work, slot + 7 * lanes, j1)
        store(work, slot + 8 * lanes, j2)
        store(work, slot + 9 * lanes, j3)
        store(work, slot + 10 * lanes, j4)
        store(work, slot + 11 * lanes, j5)
        x = where_less(
            new_cost,
            old_cost,
            load(like, work, slot + TRIAL * lanes),
            load(like, work_alias, slot + ACCEPTED * lanes),
        )
        store(work, slot + ACCEPTED * lanes, x)
        descent = (
            j0 * load(like, work, RESIDUAL * lanes)
            + j1 * load(like, work, (RESIDUAL + 1) * lanes)
            + j2 * load(like, work, (RESIDUAL + 2) * lanes)
            + j3 * load(like, work, (RESIDUAL + 3) * lanes)
            + j4 * load(like, work, (RESIDUAL + 4) * lanes)
            + j5 * load(like, work, (RESIDUAL + 5) * lanes)
        )
        margin = where_less(descent, zeros, x - lower, upper - x)
        is_free = where_less(zeros, margin, ones, zeros)
        store(work, slot + IS_FREE * lanes, is_free)
        free_entry = is_free * j0
        a00, a10, a20, a30 = a00 + free_entry * j0, a10 + free_entry * j1, a20 + free_entry * j2, a30 + free_entry * j3
        free_entry = is_free * j1
        a11, a21, a31 = a11 + free_entry * j1, a21 + free_entry * j2, a31 + free_entry * j3
        free_entry = is_free * j2
        a22, a32 = a22 + free_entry * j2, a32 + free_entry * j3
        a33 = a33 + is_free * j3 * j3
    a44, a55 = damping, damping
    a40, a41, a42, a43, a50, a51, a52, a53, a54 = zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros, zeros
    for j in range(column_count):
        slot = (LANE_HEAD + COLUMN_SLOTS * j) * lanes
        is_free = load(like, work, slot + IS_FREE * lanes)
        j4, j5 = load(like, work, slot + 10 * lanes), load(like, work, slot + 11 * lanes)
        free_entry_4, free_entry_5 = is_free * j4, is_free * j5
        a44, a54, a55 = a44 + free_entry_4 * j4, a54 + free_entry_5 * j4, a55 + free_entry_5 * j5
        entry = load(like, work, slot + 6 * lanes)
        a40, a50 = a40 + free_entry_4 * entry, a50 + free_entry_5 * entry
        entry = load(like, work, slot + 7 * lanes)
        a41, a51 = a41 + free_entry_4 * entry, a51 + free_entry_5 * entry
        entry = load(like, work, slot + 8 * lanes)
        a42, a52 = a42 + free_entry_4 * entry, a52 + free_entry_5 * entry
        entry = load(like, work, slot + 9 * lanes)
        a43, a53 = a43 + free_entry_4 * entry, a53 + free_entry_5 * entry
    y0, y1, y2, y3, y4, y5 = solve_ldlt6(
        a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
        load(like, work, RESIDUAL * lanes), load(like, work, (RESIDUAL + 1) * lanes),
        load(like, work, (RESIDUAL + 2) * lanes), load(like, work, (RESIDUAL + 3) * lanes),
        load(like, work, (RESIDUAL + 4) * lanes), load(like, work, (RESIDUAL + 5) * lanes),
    )  # fmt: skip
    # ---- next trial, clamped to the limits; a locked joint has an empty range, so it is never free and does not move
    for j in range(column_count):
        column = columns_start + COLUMN_FLOATS * j
        slot = (LANE_HEAD + COLUMN_SLOTS * j) * lanes
        step = (
            load(like, work, slot + 6 * lanes) * y0
            + load(like, work, slot + 7 * lanes) * y1
            + load(like, work, slot + 8 * lanes) * y2
        )
        step = (
            step
            + load(like, work, slot + 9 * lanes) * y3
            + load(like, work, slot + 10 * lanes) * y4
            + load(like, work, slot + 11 * lanes) * y5
        )
        x = load(like, work, slot + ACCEPTED * lanes) + step * load(like, work, slot + IS_FREE * lanes)
        if model[column + IS_LOCKED] == 0.0:
            x = where_less(model[column + X_MIN], x, x, model[column + X_MIN])
            x = where_less(x, model[column + X_MAX], x, model[column + X_MAX])
        store(work, slot + TRIAL * lanes, x)
