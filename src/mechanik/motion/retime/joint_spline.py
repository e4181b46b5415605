"""Joint-space splines: C2 cubic curves through the waypoints of a path, close to its straight segments."""

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
"""rad and m: waypoints closer than this are duplicates."""
MAX_CLOSURE_ERROR = 1e-7
"""m and rad, or the unit of a joint constraint: largest error of loops and joint constraints of the spline itself; the
loops of a trajectory are closed by projection."""
MAX_REFINEMENTS = 24
"""Largest number of fits of the spline; waypoints are inserted between two fits."""
MAX_WAYPOINTS = 20_000
"""Largest number of waypoints to which a spline is refined; a path with more waypoints is not refined."""
SEGMENT_FRACTIONS = np.array([0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875])
"""Fractions of each segment at which the spline is compared with the straight segment."""


@dataclass(frozen=True, slots=True, eq=False)
class JointSpline:
    """A cubic spline in joint space.

    Attributes:
        mechanism: the mechanism of the configurations.
        s: (N,) parameters of the waypoints, starting at 0: length along the straight segments, rad and m.
        coefficients: (4, N - 1, nq) coefficients of each cubic, highest power first, as a function of the difference
            from s at the start of the segment.
        deviation: largest deviation of a coordinate from the straight segments, at samples; rad or m, or quaternion
            components.
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

        The first derivative is the velocity of the dofs with s as time; the others are its derivatives by s.
        """
        space = self.mechanism.space
        k = np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, len(self.s) - 2)
        offset = (np.clip(s, 0.0, self.s[-1]) - self.s[k])[:, None]
        c3, c2, c1, c0 = self.coefficients[:, k]
        q = ((c3 * offset + c2) * offset + c1) * offset + c0
        q_derivatives = (3 * c3 * offset + 2 * c2) * offset + c1, 6 * c3 * offset + 2 * c2, 6 * c3
        v_s, v_ss, v_sss = (np.empty((len(s), space.nv)) for _ in range(3))
        for dof_derivative, derivative in zip((v_s, v_ss, v_sss), q_derivatives, strict=True):
            dof_derivative[:, space.scalars_v] = derivative[:, space.scalars_q]
        for first_q, first_v in zip(space.quaternions_q, space.quaternions_v, strict=True):
            quaternion_part, rotation_part = slice(first_q, first_q + 4), slice(first_v, first_v + 3)
            angular_derivatives = _angular_derivatives(
                q[:, quaternion_part], *(derivative[:, quaternion_part] for derivative in q_derivatives)
            )
            v_s[:, rotation_part], v_ss[:, rotation_part], v_sss[:, rotation_part] = angular_derivatives
            q[:, quaternion_part] = quaternion.normalize(q[:, quaternion_part])
        return q, v_s, v_ss, v_sss

    def configurations(self, s: Array) -> Array:
        """Evaluate q (M, nq) at s (M,), without derivatives."""
        k = np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, len(self.s) - 2)
        offset = (np.clip(s, 0.0, self.s[-1]) - self.s[k])[:, None]
        q = (
            (self.coefficients[0, k] * offset + self.coefficients[1, k]) * offset + self.coefficients[2, k]
        ) * offset + self.coefficients[3, k]
        for first_q in self.mechanism.space.quaternions_q:
            q[:, first_q : first_q + 4] = quaternion.normalize(q[:, first_q : first_q + 4])
        return q


def fit_joint_spline(path: Path, deviation: float) -> JointSpline:
    """Fit a spline that deviates from the straight segments of a path by at most `deviation` and keeps loops closed.

    Where the spline would deviate more, or would violate loops or joint constraints, waypoints are inserted, which
    makes corners tighter. After MAX_REFINEMENTS fits, or if more than MAX_WAYPOINTS waypoints would be needed, the last
    spline is returned even if it deviates more or violates the constraints.

    Args:
        deviation: for each coordinate, rad or m; for spherical joints, quaternion components.

    Raises:
        ShapeError: the path has a single waypoint or does not move.
        MissingExtra: SciPy is not installed.
        NotSolved: loops cannot be closed between two waypoints.
    """
    try:
        interpolate: Any = import_module("scipy.interpolate")
    except ImportError:
        raise MissingExtra("a spline through a path", "plan") from None
    mechanism, path = path.mechanism, _distinct_waypoints(path)
    q, s = _continuous_quaternions(mechanism, path.q), path.s
    remaining_fit_count = MAX_REFINEMENTS
    while True:
        arc_lengths = np.append(0.0, np.cumsum(np.linalg.norm(mechanism.difference(q[:-1], q[1:]), axis=1)))
        if len(q) == 2:
            coefficients = _straight_segment(arc_lengths, q)
        else:
            coefficients = np.array(interpolate.CubicSpline(arc_lengths, q, bc_type="natural").c)
        deviations = _deviations(arc_lengths, q, coefficients)
        errors = _constraint_errors(mechanism, arc_lengths, coefficients)
        segment_indices = np.flatnonzero((deviations > deviation) | (errors > MAX_CLOSURE_ERROR))
        remaining_fit_count -= 1
        if not len(segment_indices) or not remaining_fit_count or len(q) + len(segment_indices) > MAX_WAYPOINTS:
            return JointSpline(mechanism, arc_lengths, coefficients, float(deviations.max()))
        s_middle = 0.5 * (s[segment_indices] + s[segment_indices + 1])
        s = np.insert(s, segment_indices + 1, s_middle)
        q = _continuous_quaternions(mechanism, np.insert(q, segment_indices + 1, path.at(s_middle), axis=0))


def _distinct_waypoints(path: Path) -> Path:
    """The path without waypoints that equal their predecessor up to DUPLICATE_DISTANCE."""
    if len(path) < 2:
        raise ShapeError("the path has one waypoint; retiming needs a path with 2 or more waypoints")
    is_distinct = np.linalg.norm(path.mechanism.difference(path.q[:-1], path.q[1:]), axis=1) > DUPLICATE_DISTANCE
    if not is_distinct.any():
        raise ShapeError(
            f"all {len(path)} waypoints of the path are the same configuration; retiming needs a path that moves"
        )
    return path if is_distinct.all() else Path(path.mechanism, path.q[np.append(True, is_distinct)])


def _continuous_quaternions(mechanism: Mechanism, q: Array) -> Array:
    """Copy of q (N, nq) with continuous signs of the quaternions; the negative of a quaternion is the same rotation."""
    q = q.copy()
    for k in mechanism.space.quaternions_q:
        quaternions = q[:, k : k + 4]
        signs = np.where((quaternions[1:] * quaternions[:-1]).sum(axis=1) < 0.0, -1.0, 1.0)
        quaternions[1:] *= np.cumprod(signs)[:, None]
    return q


def _straight_segment(arc_lengths: Array, q: Array) -> Array:
    """Coefficients (4, 1, nq) of the straight segment between two waypoints."""
    coefficients = np.zeros((4, 1, q.shape[1]))
    coefficients[2, 0], coefficients[3, 0] = (q[1] - q[0]) / arc_lengths[1], q[0]
    return coefficients


def _inside_segments(arc_lengths: Array, coefficients: Array) -> Array:
    """Configurations (N - 1, 7, nq) of the spline at SEGMENT_FRACTIONS of each segment."""
    offset = (np.diff(arc_lengths)[:, None] * SEGMENT_FRACTIONS)[..., None]
    c3, c2, c1, c0 = coefficients[:, :, None]
    return ((c3 * offset + c2) * offset + c1) * offset + c0


def _deviations(arc_lengths: Array, q: Array, coefficients: Array) -> Array:
    """Largest deviation (N - 1,) of a coordinate of each cubic from the straight segment between its waypoints.

    The deviation is measured at SEGMENT_FRACTIONS, in rad, m or quaternion components.
    """
    segment = (q[1:] - q[:-1])[:, None]
    offset = _inside_segments(arc_lengths, coefficients) - q[:-1, None]
    share = np.clip((offset * segment).sum(axis=2) / np.maximum((segment * segment).sum(axis=2), 1e-300), 0.0, 1.0)
    return np.abs(offset - share[..., None] * segment).max(axis=(1, 2))


def _constraint_errors(mechanism: Mechanism, arc_lengths: Array, coefficients: Array) -> Array:
    """Largest error (N - 1,) of loops (m or rad) and joint constraints (their unit) in the middle of each segment."""
    q_middle = _inside_segments(arc_lengths, coefficients)[:, len(SEGMENT_FRACTIONS) // 2]
    errors = max_closure_errors(mechanism, q_middle)
    for relation in joint_constraint_relations(mechanism).values():
        constraint_errors = [
            float(np.abs(evaluate_relation(mechanism, relation, q)[0]).max(initial=0.0)) for q in q_middle
        ]
        errors = np.maximum(errors, constraint_errors)
    return errors


def _angular_derivatives(Q: Array, Q1: Array, Q2: Array, Q3: Array) -> tuple[Array, Array, Array]:
    """Angular velocity w in body axes and its first two derivatives, (M, 3) each, from a quaternion curve of any norm.

    With n = |Q|^2 and W = 2 vec(Q* Q'), the angular velocity is w = W / n; its derivatives follow from W = n w.

    Args:
        Q, Q1, Q2, Q3: (M, 4) the quaternion, not normalized, and its first three derivatives.
    """
    conjugate = quaternion.conjugate(Q)
    W = 2 * quaternion.multiply(conjugate, Q1)[:, 1:]
    W1 = 2 * quaternion.multiply(conjugate, Q2)[:, 1:]
    W2 = 2 * (quaternion.multiply(quaternion.conjugate(Q1), Q2) + quaternion.multiply(conjugate, Q3))[:, 1:]
    n, n1, n2 = ((product).sum(axis=1, keepdims=True) for product in (Q * Q, 2 * Q * Q1, 2 * (Q1 * Q1 + Q * Q2)))
    w = W / n
    w1 = (W1 - w * n1) / n
    return w, w1, (W2 - 2 * w1 * n1 - w * n2) / n
