"""The way between two cylinders that are apart.

If it leaves the side of one of them, it is on the way from the axis of that one to the other (`off_cylinder.py`). If it
leaves a flat end, it is along the axis, from the farthest point of the other. Else it goes from rim to rim, which is
found by Newton's method in the one angle on the first rim.
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from .off_cylinder import nearest_on_segment
from .rounding import clamp

STEPS = 30
PROVEN = 4e-15
"""The bounds from both sides may differ by this share of the size."""
LEVEL = 1e-15
"""Sine of an angle below which axes are parallel."""
LAST = 1e-8
"""Radians: a shorter step of Newton's method is the last."""
NO_PROOF = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0)
TOUCHING = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@part
def way_to_cylinder(radius, half, r, h, T):
    """The way from a cylinder A to another one at T, r and h its sizes, and its end, in the frame of A.

    Returns:
        ex, ey, ez, x, y, z, size: the size is 0 if they touch, and below 0 if there is no proof.
    """
    size = radius + half + r + h + abs(T[9]) + abs(T[10]) + abs(T[11])
    I = inverse(T)
    x, y, up, down = 0.0, 0.0, 0.0, 0.0
    for k in range(4):  # to the side of the second, of the first; from an end of the first, of the second
        is_turned = k == 1 or k == 3
        p, q, u, v, X = (r, h, radius, half, I) if is_turned else (radius, half, r, h, T)
        if k < 2:
            found, ex, ey, ez, bx, by, bz = to_axis(p, q, u, v, X, size)
            if k == 0:
                x, y, up = bx - ex, by - ey, ez
            down = ez
        else:
            found, ex, ey, ez, bx, by, bz = to_end(p, q, u, v, X, down if is_turned else up)
        if found < 0.0:
            return TOUCHING
        if found > 0.0:
            if is_turned:
                ex, ey, ez = turned(T, -ex, -ey, -ez)
                bx, by, bz = turned(T, bx, by, bz)
                bx, by, bz = bx + T[9] + ex, by + T[10] + ey, bz + T[11] + ez
            return ex, ey, ez, bx, by, bz, size
    return from_rim(radius, half, r, h, T, I, x, y, up, size)


@helper
def turned(T, x, y, z):
    return T[0] * x + T[1] * y + T[2] * z, T[3] * x + T[4] * y + T[5] * z, T[6] * x + T[7] * y + T[8] * z


@helper
def inverse(T):
    x, y, z = T[9], T[10], T[11]
    return (
        T[0], T[3], T[6], T[1], T[4], T[7], T[2], T[5], T[8],
        -(T[0] * x + T[3] * y + T[6] * z), -(T[1] * x + T[4] * y + T[7] * z), -(T[2] * x + T[5] * y + T[8] * z),
    )  # fmt: skip


@part
def to_axis(radius, half, r, h, T, size):
    """The way from a cylinder to the side of another: 1 and the way and its end; -1 if they touch; 0 if it does not
    lead to the side, and the way to the end of the axis."""
    ux, uy, uz = 2.0 * h * T[2], 2.0 * h * T[5], 2.0 * h * T[8]
    x, y, z = T[9] - 0.5 * ux, T[10] - 0.5 * uy, T[11] - 0.5 * uz
    t, ex, ey, ez = nearest_on_segment(radius, half, x, y, z, ux, uy, uz)
    x, y, z = x + t * ux, y + t * uy, z + t * uz
    d = math.sqrt(ex * ex + ey * ey + ez * ez)
    is_side = 0.0 < t < 1.0
    if d <= (r if is_side else 0.0):
        return -1.0, ex, ey, ez, x, y, z
    if not is_side or not abs(ex * ux + ey * uy + ez * uz) <= PROVEN * size * d:
        return 0.0, ex, ey, ez, x, y, z
    k = r / d
    x, y, z = x - k * ex, y - k * ey, z - k * ez
    k = 1.0 - k
    return 1.0, k * ex, k * ey, k * ez, x, y, z


@part
def to_end(radius, half, r, h, T, up):
    """The way along z from the flat end of a cylinder to another: 1 and the way and its end; 0 if there is none.

    Args:
        up: above zero for the upper end.
    """
    s = math.copysign(1.0, up)
    along = math.copysign(h, -s * T[8])
    x, y, z = T[9] + along * T[2], T[10] + along * T[5], T[11] + along * T[8]
    across = math.sqrt(T[2] * T[2] + T[5] * T[5])
    if across > LEVEL:  # down its flat end
        k = s * r * T[8] / across
        x, y, z = x + k * T[2], y + k * T[5], z - s * r * across
    else:  # towards the axis
        far = math.sqrt(x * x + y * y)
        k = r / far if far > r else 1.0
        x, y = x - k * x, y - k * y
    d = s * z - half
    is_above = d > 0.0 and x * x + y * y <= radius * radius
    return (1.0 if is_above else 0.0), 0.0, 0.0, s * d, x, y, z


@part
def from_rim(radius, half, r, h, T, I, x, y, up, size):
    """The way from the rim of a cylinder to another, as `way_to_cylinder`.

    Args:
        T, I: the pose of the other one, and the pose seen from there.
        x, y: where on the rim to begin; up: above zero for the upper rim.
    """
    across = math.sqrt(x * x + y * y)
    c, s = (x / across, y / across) if across > 0.0 else (1.0, 0.0)
    high = math.copysign(half, up)
    mx, my, mz = I[9] + high * T[6], I[10] + high * T[7], I[11] + high * T[8]
    cx, cy, cz, sx, sy, sz = radius * T[0], radius * T[1], radius * T[2], radius * T[3], radius * T[4], radius * T[5]
    x, y, z, fx, fy, fz, step, least, at_c, at_s = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.inf, c, s
    for n in range(STEPS):
        c, s = at_c - step * at_s, at_s + step * at_c
        k = 1.0 / math.sqrt(c * c + s * s)
        c, s = k * c, k * s
        x, y, z = mx + c * cx + s * sx, my + c * cy + s * sy, mz + c * cz + s * sz
        across = math.sqrt(x * x + y * y)
        share = 1.0 - r / across if across > r else 0.0
        fx, fy, fz = share * x, share * y, z - clamp(z, h)
        near = fx * fx + fy * fy + fz * fz
        if n > 0 and abs(step) < LAST:
            break
        if near > least:
            step *= 0.25
            continue
        least, at_c, at_s = near, c, s
        ux, uy, uz = c * sx - s * cx, c * sy - s * cy, c * sz - s * cz
        slope = ux * fx + uy * fy + uz * fz
        bend = uz * uz if fz != 0.0 else 0.0
        if share > 0.0:
            out = (x * ux + y * uy) / across
            bend += out * out + share * (ux * ux + uy * uy - out * out)
        inward = (x - mx) * fx + (y - my) * fy + (z - mz) * fz
        if bend > inward:
            bend -= inward
        if bend <= 0.0:
            break
        step = min(max(-slope / bend, -1.0), 1.0)
    d = math.sqrt(fx * fx + fy * fy + fz * fz)
    gx, gy, gz = turned(T, fx, fy, fz)
    least = fx * I[9] + fy * I[10] + fz * I[11] - radius * math.sqrt(gx * gx + gy * gy) - half * abs(gz)
    least -= r * math.sqrt(fx * fx + fy * fy) + h * abs(fz)
    if d <= 0.0:
        return TOUCHING
    if not d * d - least <= PROVEN * size * d:
        return NO_PROOF
    qx, qy, qz = turned(T, x - fx, y - fy, z - fz)
    return -gx, -gy, -gz, qx + T[9], qy + T[10], qz + T[11], size
