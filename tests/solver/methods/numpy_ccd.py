"""Cyclic coordinate descent in plain NumPy, from the papers: axes from Jacobians, spherical joints by Kabsch's SVD.

A hinge follows Wang and Chen (1991), equations 12 to 18: with the vectors P_c from the joint to what moves and P_d to
where it should be, the rotation angle is the atan2 of k3 and k2 - k1. Lines and planes need the roots of a polynomial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechanik.spatial import quaternion, rotation


@dataclass(frozen=True)
class FrameGoal:
    """A link's frame `at` (4, 4) shall be at `target` (4, 4), in the parts that are named.

    Attributes:
        position: axes of the target along which positions count.
        axes: columns of the frame that count, each against the same column of the target.
        weights: of lengths (1 / m) and of directions, both to be squared.
    """

    link: str
    at: np.ndarray
    target: np.ndarray
    position: tuple[int, ...]
    axes: tuple[int, ...]
    weights: tuple[float, float]


def sweep(mechanism, frame_goals, q, order, *, largest=math.inf, size=1.0):
    """One sweep; `order` lists dofs: ("turn" or "slide", index in q, index in v), or ("ball", ...)."""
    space = mechanism.space
    for kind, k, v in order:
        if kind == "ball":
            rotation_vector = best_rotation(mechanism, frame_goals, q, v, largest)
            q = q.copy()
            q[k : k + 4] = quaternion.normalize(quaternion.multiply(q[k : k + 4], quaternion.exp(rotation_vector)))
            continue
        low, high = space.lower[k] - q[k], space.upper[k] - q[k]
        if kind == "turn":
            low, high = max(low, -largest), min(high, largest)
            move = best_angle(mechanism, frame_goals, q, v, low, high)
        else:
            low, high = max(low, -largest * size), min(high, largest * size)
            move = best_shift(mechanism, frame_goals, q, v, low, high)
        q = q.copy()
        q[k] = min(max(q[k] + move, space.lower[k]), space.upper[k])
    return q


def frame_motion(mechanism, goal, q, v):
    """Pose of a goal's frame, and the velocities (linear, angular) that a unit of v gives it."""
    X = mechanism.pose(goal.link, q) @ goal.at
    J = mechanism.jacobian(goal.link, q, goal.at[:3, 3])
    return X, J[:3, v], J[3:, v]


def best_angle(mechanism, frame_goals, q, v, low, high):
    k1 = k2 = k3 = 0.0
    squares = np.zeros(5, dtype=complex)  # of e^(-2it) ... e^(2it)
    exact = True
    for goal in frame_goals:
        X, linear, z = frame_motion(mechanism, goal, q, v)
        if np.linalg.norm(z) < 0.5:
            continue
        foot = X[:3, 3] - np.cross(linear, z)  # of the perpendicular from the frame's origin to the axis
        pairs = [(1.0, X[:3, j], goal.target[:3, j]) for j in goal.axes]
        share = goal.weights[1] ** 2 * (0.5 if len(goal.axes) == 3 else 1.0)
        moving, wanted = X[:3, 3] - foot, goal.target[:3, 3] - foot
        pairs = [(share, *pair[1:]) for pair in pairs]
        if len(goal.position) == 3:
            pairs.append((goal.weights[0] ** 2, moving, wanted))
        elif goal.position:
            exact = False
            for j in goal.position:
                n = goal.target[:3, j]
                still = n @ z * (z @ moving) - n @ wanted
                u, w = n @ moving - n @ z * (z @ moving), n @ np.cross(z, moving)
                row = np.array([u + 1j * w, 2 * still, u - 1j * w]) / 2
                squares += goal.weights[0] ** 2 * np.convolve(row, row)
        for weight, P_c, P_d in pairs:
            k1 += weight * (P_d @ z) * (P_c @ z)
            k2 += weight * (P_d @ P_c)
            k3 += weight * z @ np.cross(P_c, P_d)
    if exact:
        if math.hypot(k2 - k1, k3) < 1e-13:
            return 0.0
        angles = [math.atan2(k3, k2 - k1)]
    else:
        squares[1] -= (k2 - k1) + 1j * k3
        squares[3] -= (k2 - k1) - 1j * k3
        # the derivative is a polynomial in e^(it)
        angles = np.angle(np.roots((np.array([-2, -1, 0, 1, 2]) * squares)[::-1]))

    def cost(t):
        value = -2 * ((k2 - k1) * math.cos(t) + k3 * math.sin(t)) if exact else 0.0
        return value if exact else float((squares @ np.exp(1j * t * np.arange(-2, 3))).real)

    candidates = [t + turn for t in angles for turn in (-2 * math.pi, 0, 2 * math.pi) if low <= t + turn <= high]
    if exact and candidates:
        return min(candidates, key=abs)
    ends = [end for end in (low, high) if math.isfinite(end) and abs(end) < 7]
    best = min(map(cost, [*candidates, *ends]))
    return min((t for t in [*candidates, *ends] if cost(t) <= best + 1e-12), key=abs)


def best_shift(mechanism, frame_goals, q, v, low, high):
    rows, rhs = [0.0], [0.0]
    for goal in frame_goals:
        X, d, _ = frame_motion(mechanism, goal, q, v)
        for j in goal.position:
            rows.append(goal.weights[0] * goal.target[:3, j] @ d)
            rhs.append(-goal.weights[0] * goal.target[:3, j] @ (X[:3, 3] - goal.target[:3, 3]))
    best = np.linalg.lstsq(np.array(rows)[:, None], np.array(rhs), rcond=None)[0][0]
    return min(max(best, low), high)


def best_rotation(mechanism, frame_goals, q, v, largest):
    """The rotation vector, about the axes of the spherical joint."""
    vectors, axes = [], None
    for goal in frame_goals:
        J = mechanism.jacobian(goal.link, q, goal.at[:3, 3])
        if np.linalg.norm(J[3:, v]) < 0.5:
            continue
        X = mechanism.pose(goal.link, q) @ goal.at
        axes = J[3:, v : v + 3]
        # v_i = a_i x (p - c) for all three axes: c from least squares
        centre = (
            X[:3, 3]
            - np.linalg.lstsq(
                np.concatenate([rotation.hat(axes[:, i]) for i in range(3)]), J[:3, v : v + 3].T.ravel(), rcond=None
            )[0]
        )
        if goal.position:
            vectors.append((goal.weights[0] ** 2, X[:3, 3] - centre, goal.target[:3, 3] - centre))
        share = goal.weights[1] ** 2 * (0.5 if len(goal.axes) == 3 else 1.0)
        vectors += [(share, X[:3, j], goal.target[:3, j]) for j in goal.axes]
    if axes is None:
        return np.zeros(3)
    if len(vectors) == 1:
        R = rotation.between(*(vector / np.linalg.norm(vector) for vector in vectors[0][1:]))
    else:
        U, _, Vt = np.linalg.svd(sum(weight * np.outer(t, u) for weight, u, t in vectors))
        R = U @ np.diag([1, 1, np.linalg.det(U @ Vt)]) @ Vt
    rotation_vector = axes.T @ rotation.log(R)
    angle = np.linalg.norm(rotation_vector)
    return rotation_vector if angle <= largest else rotation_vector * largest / angle
