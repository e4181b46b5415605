"""A path as a C2 curve: a cubic spline through its waypoints that stays close to the straight segments."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.errors import MissingExtra, ShapeError
from mechanik.model import Mechanism
from mechanik.motion.follow import Path
from mechanik.motion.follow.joint_path import max_closure_errors
from mechanik.objectives.constraint_relations import joint_constraint_relations
from mechanik.objectives.relation import evaluate_relation
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array

DUPLICATE_DISTANCE = 1e-9
"""rad and m: closer waypoints are the same."""
OPEN = 1e-7
"""m and rad: largest loop closure error on the spline, before loops are closed again."""
MAX_REFINEMENTS = 24
"""Largest number of rounds in which waypoints are inserted."""
MAX_WAYPOINTS = 20_000
"""Largest number of waypoints of the refined spline."""
INSIDE = np.array([0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875])
"""Fractions of each segment at which the spline is compared with the straight segment."""


@dataclass(frozen=True, slots=True, eq=False)
class JointSpline:
    """A cubic spline in joint space.

    Attributes:
        mechanism: the mechanism of the configurations.
        s: (N,) parameters of the waypoints from 0: length along the straight segments, rad and m.
        coefficients: (4, N - 1, nq) of each cubic, highest power first, in s minus the s of the waypoint before.
        deviation: largest deviation from the straight segments, rad or m.
    """

    mechanism: Mechanism
    s: Array
    coefficients: Array
    deviation: float

    @property
    def length(self) -> float:
        """Largest s: length of the straight segments, rad and m."""
        return float(self.s[-1])

    def at(self, s: Array) -> tuple[Array, Array, Array, Array]:
        """Evaluate q (M, nq) at s (M,) and its first three derivatives by s, (M, nv) each.

        The first derivative is a dof velocity by s, the others are its derivatives.
        """
        space = self.mechanism.space
        k = np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, len(self.s) - 2)
        x = (np.clip(s, 0.0, self.s[-1]) - self.s[k])[:, None]
        c3, c2, c1, c0 = self.coefficients[:, k]
        q = ((c3 * x + c2) * x + c1) * x + c0
        by_q = (3 * c3 * x + 2 * c2) * x + c1, 6 * c3 * x + 2 * c2, 6 * c3
        first, second, third = (np.empty((len(s), space.nv)) for _ in range(3))
        for rate, of_q in zip((first, second, third), by_q, strict=True):
            rate[:, space.scalars_v] = of_q[:, space.scalars_q]
        for at_q, at_v in zip(space.quaternions_q, space.quaternions_v, strict=True):
            four, three = slice(at_q, at_q + 4), slice(at_v, at_v + 3)
            first[:, three], second[:, three], third[:, three] = _turning(q[:, four], *(one[:, four] for one in by_q))
            q[:, four] = quaternion.normalize(q[:, four])
        return q, first, second, third

    def configurations(self, s: Array) -> Array:
        """q (M, nq) at s (M,), without derivatives."""
        k = np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, len(self.s) - 2)
        x = (np.clip(s, 0.0, self.s[-1]) - self.s[k])[:, None]
        q = (
            (self.coefficients[0, k] * x + self.coefficients[1, k]) * x + self.coefficients[2, k]
        ) * x + self.coefficients[3, k]
        for at_q in self.mechanism.space.quaternions_q:
            q[:, at_q : at_q + 4] = quaternion.normalize(q[:, at_q : at_q + 4])
        return q


def fit_joint_spline(path: Path, deviation: float) -> JointSpline:
    """Fit a spline that deviates from the straight segments of a path by at most `deviation` and keeps loops closed.

    Where it would deviate more, waypoints are inserted, which makes corners tighter.

    Args:
        deviation: rad or m.

    Raises:
        ShapeError: the path does not move.
        MissingExtra: SciPy is not installed.
    """
    try:
        interpolate: Any = import_module("scipy.interpolate")
    except ImportError:
        raise MissingExtra("a smooth curve through a path", "plan") from None
    mechanism, path = path.mechanism, _distinct(path)
    q, s = _turned_alike(mechanism, path.q), path.s
    left = MAX_REFINEMENTS
    while True:
        far = np.append(0.0, np.cumsum(np.linalg.norm(mechanism.difference(q[:-1], q[1:]), axis=1)))
        pieces = _line(far, q) if len(q) == 2 else np.array(interpolate.CubicSpline(far, q, bc_type="natural").c)
        away, gap = _away(far, q, pieces), _gaps(mechanism, far, pieces)
        split = np.flatnonzero((away > deviation) | (gap > OPEN))
        left -= 1
        if not len(split) or not left or len(q) + len(split) > MAX_WAYPOINTS:
            return JointSpline(mechanism, far, pieces, float(away.max()))
        middle = 0.5 * (s[split] + s[split + 1])
        s = np.insert(s, split + 1, middle)
        q = _turned_alike(mechanism, np.insert(q, split + 1, path.at(middle), axis=0))


def _distinct(path: Path) -> Path:
    """The path without waypoints that equal their predecessor."""
    if len(path) < 2:
        raise ShapeError("the path has one knot: there is no way to go, and nothing to time")
    moved = np.linalg.norm(path.mechanism.difference(path.q[:-1], path.q[1:]), axis=1) > DUPLICATE_DISTANCE
    if not moved.any():
        raise ShapeError(f"all {len(path)} knots of the path are the same configuration: there is nothing to time")
    return path if moved.all() else Path(path.mechanism, path.q[np.append(True, moved)])


def _turned_alike(mechanism: Mechanism, q: Array) -> Array:
    """Copy of q (N, nq) with continuous signs of the quaternions: q and -q are the same rotation."""
    q = q.copy()
    for k in mechanism.space.quaternions_q:
        four = q[:, k : k + 4]
        signs = np.where((four[1:] * four[:-1]).sum(axis=1) < 0.0, -1.0, 1.0)
        four[1:] *= np.cumprod(signs)[:, None]
    return q


def _line(far: Array, q: Array) -> Array:
    """Coefficients (4, 1, nq) of the straight segment between two waypoints."""
    pieces = np.zeros((4, 1, q.shape[1]))
    pieces[2, 0], pieces[3, 0] = (q[1] - q[0]) / far[1], q[0]
    return pieces


def _between(far: Array, pieces: Array) -> Array:
    """Configurations (N - 1, 7, nq) inside each segment."""
    x = (np.diff(far)[:, None] * INSIDE)[..., None]
    c3, c2, c1, c0 = pieces[:, :, None]
    return ((c3 * x + c2) * x + c1) * x + c0


def _away(far: Array, q: Array, pieces: Array) -> Array:
    """Deviation (N - 1,) of each cubic from the straight segment between its waypoints, rad or m."""
    way = (q[1:] - q[:-1])[:, None]
    gone = _between(far, pieces) - q[:-1, None]
    share = np.clip((gone * way).sum(axis=2) / np.maximum((way * way).sum(axis=2), 1e-300), 0.0, 1.0)
    return np.abs(gone - share[..., None] * way).max(axis=(1, 2))


def _gaps(mechanism: Mechanism, far: Array, pieces: Array) -> Array:
    """Largest error (N - 1,) of loops and joint constraints in the middle of each segment, m or rad."""
    middles = _between(far, pieces)[:, len(INSIDE) // 2]
    gaps = max_closure_errors(mechanism, middles)
    for law in joint_constraint_relations(mechanism).values():
        off = [float(np.abs(evaluate_relation(mechanism, law, q)[0]).max(initial=0.0)) for q in middles]
        gaps = np.maximum(gaps, off)
    return gaps


def _turning(Q: Array, Q1: Array, Q2: Array, Q3: Array) -> tuple[Array, Array, Array]:
    """Angular velocity in body axes and its first two derivatives, (M, 3) each, from a quaternion curve of any norm.

    Args:
        Q, Q1, Q2, Q3: (M, 4) the quaternion, not normalized, and its first three derivatives.
    """
    back = quaternion.conjugate(Q)
    W = 2 * quaternion.multiply(back, Q1)[:, 1:]
    W1 = 2 * quaternion.multiply(back, Q2)[:, 1:]
    W2 = 2 * (quaternion.multiply(quaternion.conjugate(Q1), Q2) + quaternion.multiply(back, Q3))[:, 1:]
    n, n1, n2 = ((one).sum(axis=1, keepdims=True) for one in (Q * Q, 2 * Q * Q1, 2 * (Q1 * Q1 + Q * Q2)))
    w = W / n
    w1 = (W1 - w * n1) / n
    return w, w1, (W2 - 2 * w1 * n1 - w * n2) / n
