"""The small equations that closed forms are made of, for many poses at once.

Turning a vector about a fixed axis k by an angle t gives a constant, a cosine and a sine part; so all equations in
one angle are A cos t + B sin t = D, or have also products of the two. To take arms apart into such equations is
Paden's and Kahan's way: B. Paden, "Kinematics and Control of Robot Manipulators", Berkeley 1986.

Where the data leaves an angle free (a vector on the axis that it is turned about), the angle `free` is taken. Where
there is no solution the nearest thing to one is returned: whoever asks has to check.
"""

from __future__ import annotations

import numpy as np

from mechanik.spatial.array import Array
from mechanik.spatial.vector import cross, dot, length

NOTHING = 1e-9
"""Sizes below this share of what they would usually be leave an angle free."""
ROUNDING = 1e-15
"""Of a cosine."""
SPECIAL = 1e-8
"""Lines this near to meeting, or to parallel (share of the reach, rad), are taken for it; beyond, the general way is
the more exact.
"""


def square(v: Array) -> Array:
    """(v0 + v1 cos t + v2 sin t)² as the factors that `circle_and_conic` takes: v (..., 3) to (..., 6)."""
    v0, v1, v2 = v[..., 0], v[..., 1], v[..., 2]
    return np.stack([v0 * v0, 2 * v0 * v1, 2 * v0 * v2, v1 * v1, 2 * v1 * v2, v2 * v2], axis=-1)


def turned(k: Array, t: Array, v: Array) -> Array:
    """v (..., 3) turned by t (...) about the unit axis k (3,)."""
    along = (v @ k)[..., None] * k
    return along + np.cos(t)[..., None] * (v - along) + np.sin(t)[..., None] * cross(k, v)


def turn_matrix(k: Array, t: Array) -> Array:
    """The rotations (..., 3, 3) by t (...) about the unit axis k (3,)."""
    hat = np.array([[0.0, -k[2], k[1]], [k[2], 0.0, -k[0]], [-k[1], k[0], 0.0]])
    c, s = np.cos(t)[..., None, None], np.sin(t)[..., None, None]
    return s * hat + c * (np.eye(3) - np.outer(k, k)) + np.outer(k, k)


def turn_onto(k: Array, v: Array, w: Array, free: Array, scale: float = 1.0) -> Array:
    """The angle (...) by which v (..., 3), turned about k (3,), comes nearest to w (..., 3).

    Args:
        scale: how long v and w usually are across k.
    """
    # by cross products, since what lies across the axis may be tiny beside what lies along it
    v, w = cross(k, v), cross(k, w)
    sine, cosine = cross(v, w) @ k, dot(v, w)
    nothing = np.hypot(sine, cosine) < (NOTHING * scale) ** 2
    return np.where(nothing, free, np.arctan2(sine, cosine))


def angle_between(v: Array, w: Array) -> Array:
    """(...) rad, 0 to pi, of vectors (..., 3)."""
    return np.arctan2(length(cross(v, w)), dot(v, w))


def both_angles(A: Array, B: Array, D: Array, free: Array, scale: float = 1.0) -> Array:
    """The two t with A cos t + B sin t = D, (..., 2).

    Args:
        scale: how large A and B usually are.
    """
    amplitude = np.hypot(A, B)
    nothing = amplitude < NOTHING * scale
    middle = np.arctan2(B, A)
    cosine = np.clip(D / np.where(nothing, 1.0, amplitude), -1.0, 1.0)
    # rounding alone would part a double root by some 1e-8, and what follows would not see the singularity
    half = np.arccos(np.where(1.0 - np.abs(cosine) < ROUNDING, np.sign(cosine), cosine))
    pair = np.stack([middle + half, middle - half], axis=-1)
    return np.where(nothing[..., None], free[..., None], pair)


def three_turns(R: Array, a: Array, b: Array, c: Array, near: Array) -> Array:
    """The angles (..., 2, 3) about the axes a, b and c (3,), one carried by the other, that come to R (..., 3, 3).

    Where a and c fall onto one line, the first angle is that of `near` (..., 3).
    """
    hand = R @ c  # where the last axis points
    # a, b and c are the corners of a triangle on the unit sphere, of which the sides are known, and the angle at b is
    # asked: by the sines of half sums, which keep their digits in flat triangles
    ab, bc, ca = angle_between(a, b), angle_between(b, c), angle_between(a, hand)
    flat = np.sin((ca + bc - ab) / 2) * np.sin((ca + ab - bc) / 2)
    wide = np.sin((ab + bc + ca) / 2) * np.sin((ab + bc - ca) / 2)
    at_b = 2 * np.arctan2(np.sqrt(np.maximum(flat, 0.0)), np.sqrt(np.maximum(wide, 0.0)))
    middle = np.arctan2(cross(b, c) @ a, a @ c - (a @ b) * (b @ c))  # where c, turned about b, is nearest to a
    q_b = middle + np.stack([at_b, -at_b], axis=-1)
    hand = hand[..., None, :]
    q_a = turn_onto(a, turned(b, q_b, np.broadcast_to(c, (*q_b.shape, 3))), hand, near[..., None, 0])
    across = across_basis(c)[0]
    last = turned(b, -q_b, turned(a, -q_a, (R @ across)[..., None, :]))
    q_c = turn_onto(c, np.broadcast_to(across, last.shape), last, near[..., None, 2])
    return np.stack([q_a, q_b, q_c], axis=-1)


def other_leg(hypotenuse_squared: Array, leg: Array) -> Array:
    """The other leg of a right triangle; zero where it is nothing but rounding, as in `both_angles`."""
    squared = hypotenuse_squared - leg * leg
    return np.sqrt(np.where(squared < ROUNDING, 0.0, squared))


def circle_and_conic(e: Array) -> Array:
    """The up to four t, (..., 4), NaN for those that do not exist, with e (..., 6) the factors in

    e0 + e1 cos t + e2 sin t + e3 cos² t + e4 cos t sin t + e5 sin² t = 0.
    """
    # by the tangent of half the angle, counted from where its infinity is farthest from being a root
    shifts = np.arange(8) * (np.pi / 4)
    c, s = -np.cos(shifts), -np.sin(shifts)
    worth = np.abs(e @ np.stack([np.ones(8), c, s, c * c, c * s, s * s]))
    shift = shifts[np.argmax(worth, axis=-1)]
    c, s = np.cos(shift), np.sin(shift)
    e0, (e1, e2, e3, e4, e5) = e[..., 0], (e[..., k] for k in range(1, 6))
    f1, f2 = e1 * c + e2 * s, e2 * c - e1 * s
    f3 = e3 * c * c + e4 * c * s + e5 * s * s
    f5 = e3 * s * s - e4 * c * s + e5 * c * c
    f4 = 2 * (e5 - e3) * c * s + e4 * (c * c - s * s)
    factors = np.stack([e0 - f1 + f3, 2 * (f2 - f4), 2 * (e0 - f3 + 2 * f5), 2 * (f2 + f4), e0 + f1 + f3], axis=-1)
    companion = np.zeros((*e.shape[:-1], 4, 4))
    lead = factors[..., :1]
    dead = np.abs(lead[..., 0]) < 1e-300  # every t solves it, or none does
    companion[..., 0, :] = -factors[..., 1:] / np.where(dead[..., None], 1.0, lead)
    companion[..., 1:, :3] = np.eye(3)
    x = np.linalg.eigvals(companion)
    aside = 2 * x.imag / (1.0 + x.real**2)
    t = np.where((np.abs(aside) < 1e-3) & ~dead[..., None], shift[..., None] + 2 * np.arctan(x.real), np.nan)
    return _refined(e, t, np.sign(aside))


def _refined(e: Array, t: Array, side: Array) -> Array:
    """Roots t (..., 4) of the trigonometric polynomial e (..., 6), after Newton's method.

    Args:
        side: not zero for a root and its conjugate. They may be two real ones that rounding has joined: then the
            parabola about the extremum between them knows where they are. If it has no root, the extremum is the
            nearest thing to one.
    """
    for _ in range(2):
        value, slope, bend = _derivatives(e, t)
        newton = np.divide(value, slope, out=np.zeros_like(t), where=(slope != 0.0) & (side == 0.0))
        extremum = np.divide(slope, bend, out=np.zeros_like(t), where=(bend != 0.0) & (side != 0.0))
        new = t - np.clip(newton + extremum, -1e-2, 1e-2)
        better = (side != 0.0) | (np.abs(_derivatives(e, new)[0]) < np.abs(value))
        t = np.where(better, new, t)
    value, _, bend = _derivatives(e, t)
    squared = np.divide(-2 * value, bend, out=np.zeros_like(t), where=(bend != 0.0) & (side != 0.0))
    return t + side * np.sqrt(np.maximum(squared, 0.0))


def _derivatives(e: Array, t: Array) -> tuple[Array, Array, Array]:
    """Value, slope and second derivative at t (..., k)."""
    e0, e1, e2, e3, e4, e5 = (e[..., None, k] for k in range(6))
    c, s = np.cos(t), np.sin(t)
    value = e0 + c * (e1 + e3 * c + e4 * s) + s * (e2 + e5 * s)
    slope = -e1 * s + e2 * c + 2 * (e5 - e3) * c * s + e4 * (c * c - s * s)
    bend = -e1 * c - e2 * s + 2 * (e5 - e3) * (c * c - s * s) - 4 * e4 * c * s
    return value, slope, bend


def across_basis(k: Array) -> Array:
    """Two unit vectors (2, 3) at right angles to k and to each other."""
    v = cross(k, np.eye(3)[np.argmin(np.abs(k))])
    v = v / np.sqrt(v @ v)
    return np.stack([v, cross(k, v)])
