"""Closed-form equations of the arm families: planar arms, three parallel axes, spherical wrist, S-R-S.

Planar arms (all axes parallel). The first two links and the line between their ends form a triangle with two solutions,
elbow up and elbow down.

Three parallel axes (6R arms whose axes 2, 3 and 4 are parallel, as those of Universal Robots). Rotations about the
parallel axes do not change the coordinate of a point, or of a direction, along their common direction h. A point and
the direction of axis 6 give two equations for angles 1 and 5, linear in the cosines and sines of both; if axes 5 and 6
intersect, one equation does not contain angle 5. Then angle 6 follows, and angles 2, 3 and 4 are those of a planar arm.

Spherical wrist (6R arms whose axes 4, 5 and 6 intersect in a point; axes 1, 2 and 3 are arbitrary). D. L. Pieper, "The
Kinematics of Manipulators under Computer Control", Stanford 1968: the position of that point alone determines the first
three angles, with up to four solutions. For each of these, the wrist has two solutions. A rotation about axis 1
preserves the coordinate of the point along axis 1, and its distance from a point of that axis. These two quantities
give equations from which angles 1 and 2 are eliminated. One equation in the third angle remains: it is linear in its
cosine and sine if axes 1 and 2 intersect or are parallel, a quadratic if axes 2 and 3 intersect or are parallel, and
otherwise a quartic.

S-R-S (7R arms with a spherical shoulder, one elbow axis and a spherical wrist, like a human arm). The distance from
shoulder to wrist determines the angle of the elbow joint. The arm can still rotate about the line from shoulder to
wrist: this rotation is the elbow angle, a parameter. Shoulder, elbow and wrist have two solutions each, so there are
eight for each elbow angle. M. Shimizu, H. Kakuya, W.-K. Yoon, K. Kitagaki, K. Kosuge, "Analytical Inverse Kinematic
Computation for 7-DOF Redundant Manipulators with Joint Limits and Its Application to Redundancy Resolution", IEEE
Transactions on Robotics 24, 2008.

Definition of the elbow angle. Let S be the shoulder, W the wrist, E the point of axis 4 nearest to S, and l the
direction from S to W. The elbow side is the direction perpendicular to l and to axis 4, on the side of E; if axis 4 is
perpendicular to the plane S E W, as in common arms, it points from the line to the elbow. The elbow angle is the
right-handed angle about l from the reference direction to the elbow side. The reference is the component of the
positive direction of axis 1 perpendicular to l: at an elbow angle of 0 the elbow of an upright arm is above the line.
If l is along axis 1 (within 1e-9 rad), the reference is the direction perpendicular to axis 1 nearest to the base's x
axis (to its y axis, if axis 1 is nearer to x than to y and z). If the arm is straight, the elbow side is (axis 4) x l.
"""

from __future__ import annotations

import numpy as np

from mechanik.model import screw_axes as lines
from mechanik.solver.search.trigonometric_equations import (
    DEGENERATE_RATIO,
    SPECIAL_GEOMETRY_TOLERANCE,
    other_leg,
    perpendicular_basis,
    quadratic_sinusoid_roots,
    rotate_about,
    rotation_about,
    rotation_angle_onto,
    sinusoid_roots,
    squared_sinusoid,
    three_axis_angles,
)
from mechanik.spatial import make_pose
from mechanik.spatial.array import Array
from mechanik.spatial.vector_math import cross, dot, length


class TwoLinkSolver:
    """Solver for the angles about two parallel axes that move a point to a position.

    Args:
        h: (3,) unit direction of both axes.
        signs: (2,) 1 or -1: whether each joint rotates about h or -h.
        p1, p2: (3,) points of the axes, m.
        point: (3,) the point, m, with both angles at zero.
        reach: approximate reach, m.
    """

    def __init__(self, h: Array, signs: Array, p1: Array, p2: Array, point: Array, reach: float) -> None:
        self.h, self.signs, self.p1, self.reach = h, signs, p1, reach
        self.first_link, self.second_link = perpendicular_part(h, p2 - p1), perpendicular_part(h, point - p2)

    def angles(self, position: Array, near: Array) -> Array:
        """Return the angles (m, 2, 2), rad, for positions (m, 3), m; coordinates along the axes are ignored.

        Args:
            near: (m, 2) angles, rad, for joints whose angle a singular position leaves free.
        """
        a, b, goal = self.first_link, self.second_link, perpendicular_part(self.h, position - self.p1)
        free_angles = near * self.signs
        A, B = 2 * a @ b, 2 * a @ cross(self.h, b)
        D = dot(goal, goal) - a @ a - b @ b
        ones = np.ones_like(D)
        q2 = sinusoid_roots(A * ones, B * ones, D, free_angles[:, 1], self.reach**2)
        tip = a + rotate_about(self.h, q2, np.broadcast_to(b, (*q2.shape, 3)))
        q1 = rotation_angle_onto(
            self.h, tip, np.broadcast_to(goal[:, None], tip.shape), free_angles[:, None, 0], self.reach
        )
        return np.stack([q1, q2], axis=-1) * self.signs


class Planar2R:
    """Formula of a planar 2R arm for the position of the link's origin; up to two solutions."""

    candidate_count = 2
    constrains_rotation = False

    def __init__(self, directions: Array, points: Array, home: Array, reach: float) -> None:
        h = directions[0]
        self.tip = home[:3, 3]
        self.two_link = TwoLinkSolver(h, np.sign(directions @ h), points[0], points[1], self.tip, reach)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        return self.two_link.angles(T[:, :3, :3] @ self.tip + T[:, :3, 3], near)


class Planar3R:
    """Formula of a planar 3R arm for position and rotation in the plane; up to two solutions."""

    candidate_count = 2
    constrains_rotation = True

    def __init__(self, directions: Array, points: Array, home: Array, reach: float) -> None:
        self.arm = ParallelAxesSolver(directions, points, reach)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        return self.arm.angles(T, near)


class ParallelAxesSolver:
    """Solver for the angles about three parallel axes that give a planar displacement.

    Args:
        directions, points: (3, 3) unit directions and points (m) of the axes.
        reach: approximate reach, m.
    """

    def __init__(self, directions: Array, points: Array, reach: float) -> None:
        self.h = h = directions[0]
        self.signs = np.sign(directions @ h)
        self.third_point = points[2]
        self.two_link = TwoLinkSolver(h, self.signs[:2], points[0], points[1], points[2], reach)
        self.reference_direction = perpendicular_part(h, np.eye(3)[np.argmin(np.abs(h))])

    def angles(self, T: Array, near: Array) -> Array:
        """Return the angles (m, 2, 3), rad, for displacements T (m, 4, 4)."""
        q = np.empty((len(T), 2, 3))
        q[..., :2] = self.two_link.angles(T[:, :3, :3] @ self.third_point + T[:, :3, 3], near[:, :2])
        total_angle = rotation_angle_onto(
            self.h,
            np.broadcast_to(self.reference_direction, (len(T), 3)),
            T[:, :3, :3] @ self.reference_direction,
            near[:, 2],
        )
        q[..., 2] = (total_angle[:, None] - q[..., :2] @ self.signs[:2]) * self.signs[2]
        return q


def perpendicular_part(h: Array, v: Array) -> Array:
    """Return the component of v (..., 3) perpendicular to h (3,)."""
    return v - (v @ h)[..., None] * h


class ThreeParallel:
    """Formula of a 6R arm whose axes 2, 3 and 4 are parallel.

    Args:
        directions, points: (6, 3) unit directions and points (m) of the axes.
        home: (4, 4) pose of the link with all angles at zero; not used.
        reach: approximate reach, m.
    """

    candidate_count = 8
    constrains_rotation = True

    def __init__(self, directions: Array, points: Array, home: Array, reach: float) -> None:
        self.axes = directions
        self.reach = reach
        self.h = h = directions[1]
        h5, h6 = directions[4], directions[5]
        self.p1 = points[0]
        self.p5, self.p6 = p5, p6 = lines.nearest_points_of_lines(points[4], h5, points[5], h6)
        self.planar = ParallelAxesSolver(directions[1:4], points[1:4], reach)
        # coordinates along h of the point p6 and of the direction h6: coefficients of 1, cos q5, sin q5
        point, direction = _projection(h, h5, p6 - p5), _projection(h, h5, h6)
        point[0] += h @ (p5 - self.p1)
        self.coefficients = np.stack([point / reach, direction])
        U, singular_values, V = np.linalg.svd(self.coefficients[:, 1:])
        self.U, self.V, self.singular_values = U, V, singular_values
        self.is_decoupled = bool(singular_values[1] < SPECIAL_GEOMETRY_TOLERANCE)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        """Return candidates (m, 8, 6), rad, for displacements T (m, 4, 4) = X_base_link home^-1.

        If there are fewer solutions, the other candidates are NaN or miss the target.
        """
        h, (h1, *_, h5, h6) = self.h, self.axes
        R = T[:, :3, :3]
        q1, q5 = self._angles_1_and_5(T, near)  # (m, 4) each
        # R1' R = (rotation about h) R5 R6, so R1' R and R5 R6 map the same vector to h
        h_in_link = (
            np.swapaxes(R, -1, -2)[:, None] @ rotate_about(h1, q1, np.broadcast_to(h, (*q1.shape, 3)))[..., None]
        )
        q6 = rotation_angle_onto(
            h6, h_in_link[..., 0], rotate_about(h5, -q5, np.broadcast_to(h, (*q5.shape, 3))), near[:, None, 5]
        )
        # recomputed from angle 6, because an arc cosine has only half of the digits of an angle near zero
        q5 = rotation_angle_onto(h5, rotate_about(h6, q6, h_in_link[..., 0]), np.broadcast_to(h, (*q5.shape, 3)), q5)
        displacement = (
            _inverse_rotation(h1, self.p1, q1)
            @ T[:, None]
            @ _inverse_rotation(h6, self.p6, q6)
            @ _inverse_rotation(h5, self.p5, q5)
        )
        m = len(T)
        near_middle = np.broadcast_to(near[:, None, 1:4], (m, 4, 3)).reshape(-1, 3)
        middle = self.planar.angles(displacement.reshape(-1, 4, 4), near_middle).reshape(m, 4, 2, 3)
        q = np.empty((m, 4, 2, 6))
        q[..., 0], q[..., 4], q[..., 5] = q1[..., None], q5[..., None], q6[..., None]
        q[..., 1:4] = middle
        return q.reshape(m, 8, 6)

    def _angles_1_and_5(self, T: Array, near: Array) -> tuple[Array, Array]:
        h, h1, R = self.h, self.axes[0], T[:, :3, :3]
        point, direction = R @ self.p6 + T[:, :3, 3] - self.p1, R @ self.axes[5]
        # the same coordinates after the inverse rotation about axis 1: coefficients of 1, cos q1, sin q1, (m, 2, 3)
        coefficients = np.stack([_projection(h, -h1, point) / self.reach, _projection(h, -h1, direction)], axis=1)
        coefficients[..., 0] -= self.coefficients[:, 0]
        # U' coefficients = S V (cos q5, sin q5), with S the singular values
        with_q5, without_q5 = self.U[:, 0] @ coefficients / self.singular_values[0], self.U[:, 1] @ coefficients
        if self.is_decoupled:
            q1 = sinusoid_roots(without_q5[:, 1], without_q5[:, 2], -without_q5[:, 0], near[:, 0])
            q1 = np.repeat(q1, 2, axis=1)
            x = _sinusoid_value(with_q5[:, None], q1)
            y = other_leg(np.ones_like(x), x) * (1, -1, 1, -1)
        else:
            # x² + y² = 1 for the parts of (cos q5, sin q5) along the rows of V
            e = squared_sinusoid(without_q5) + self.singular_values[1] ** 2 * squared_sinusoid(with_q5)
            e[:, 0] -= self.singular_values[1] ** 2
            q1 = quadratic_sinusoid_roots(e / np.abs(e).max(axis=-1, keepdims=True))
            x, y_direct = (
                _sinusoid_value(with_q5[:, None], q1),
                _sinusoid_value(without_q5[:, None], q1) / self.singular_values[1],
            )
            # two formulas for y: the first is accurate if y is large, the second if it is small
            y = np.where(
                np.abs(y_direct) > self.singular_values[1],
                np.copysign(other_leg(np.ones_like(x), x), y_direct),
                y_direct,
            )
        return q1, np.arctan2(self.V[0, 1] * x + self.V[1, 1] * y, self.V[0, 0] * x + self.V[1, 0] * y)


def _projection(h: Array, k: Array, v: Array) -> Array:
    """Return h · (v rotated about k by t) as coefficients (..., 3) of 1, cos t, sin t."""
    along = (v @ k) * (k @ h)
    return np.stack([along, v @ h - along, cross(k, v) @ h], axis=-1)


def _inverse_rotation(k: Array, p: Array, t: Array) -> Array:
    """Return the displacements (..., 4, 4) by -t (...), rad, about the axis k through p."""
    R = rotation_about(k, -t)
    return make_pose(R, p - R @ p)


class SphericalWrist:
    """Formula of a 6R arm with a spherical wrist.

    Args:
        directions, points: (6, 3) unit directions and points (m) of the axes.
        home: (4, 4) pose of the link with all angles at zero; not used.
        reach: approximate reach, m.
    """

    candidate_count = 8
    constrains_rotation = True

    def __init__(self, directions: Array, points: Array, home: Array, reach: float) -> None:
        self.h, self.reach = directions, reach
        self.wrist, _ = lines.closest_point_to_lines(points[3:], directions[3:])
        self.positioner = ThreeAxisPositioner(directions[:3], points[:3], self.wrist, reach)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        """Return candidates (m, 8, 6), rad, for displacements T (m, 4, 4) = X_base_link home^-1.

        If there are fewer solutions, the other candidates are NaN or miss the target.
        """
        h = self.h
        wrist = T[:, :3, :3] @ self.wrist + T[:, :3, 3]
        arm_angles = self.positioner.angles(wrist, near[:, :3])  # (m, 4, 3)
        R_base_forearm = (
            rotation_about(h[0], arm_angles[..., 0])
            @ rotation_about(h[1], arm_angles[..., 1])
            @ rotation_about(h[2], arm_angles[..., 2])
        )
        R_forearm_hand = np.swapaxes(R_base_forearm, -1, -2) @ T[:, None, :3, :3]
        wrist_angles = three_axis_angles(
            R_forearm_hand, h[3], h[4], h[5], np.broadcast_to(near[:, None, 3:], arm_angles.shape)
        )
        q = np.empty((len(T), 4, 2, 6))
        q[..., :3], q[..., 3:] = arm_angles[:, :, None], wrist_angles
        return q.reshape(len(T), 8, 6)


class ThreeAxisPositioner:
    """Solver for the angles about three axes that move a point to a position.

    Lengths are divided by the reach. o1, o2 and o3 are points of the axes, d is the vector from o1 to o2, and g the
    vector from o2 to the point rotated about axis 3; v is the component of g perpendicular to axis 2, rotated about
    axis 2. A rotation about axis 1 changes neither the distance from o1 nor the coordinate along the axis. This gives
    two linear equations for v,

        d · v = (|position - o1|² - |d|² - |g|²) / 2 - (d · h2) (h2 · g)
        h1 · v = h1 · (position - o2) - (h1 · h2) (h2 · g)

    The third equation states that the rotation about axis 2 preserves the length of v. |g|² and h2 · g are linear in
    the cosine and sine of the third angle. The left sides have the singular value decomposition U S V; the smaller
    singular value is zero if axes 1 and 2 intersect or are parallel.
    """

    def __init__(self, directions: Array, points: Array, point: Array, reach: float) -> None:
        h1, h2, h3 = self.h = directions
        points, point, self.reach = points / reach, point / reach, reach
        o3 = lines.closest_point_on_line(point, points[2], h3)
        self.o2 = o2 = lines.closest_point_on_line(o3, points[1], h2)
        self.o1 = o1 = lines.closest_point_on_line(o2, points[0], h1)
        self.d = d = o2 - o1
        self.basis = perpendicular_basis(h2)
        U, self.singular_values, self.V = np.linalg.svd(np.stack([d, h1]) @ self.basis.T)
        self.is_decoupled = bool(self.singular_values[1] < SPECIAL_GEOMETRY_TOLERANCE)
        # g = b + cos(q3) r + sin(q3) s; coefficients of 1, cos, sin in its squared length and in its part along axis 2
        self.b, self.r = o3 - o2, point - o3
        self.s = cross(h3, self.r)
        b, r, s = self.b, self.r, self.s
        self.squared = np.array([b @ b + r @ r, 2 * b @ r, 2 * b @ s])
        self.along = np.array([h2 @ b, h2 @ r, h2 @ s])
        # the terms of the right-hand sides that do not depend on the position
        right_sides = np.stack([-self.squared / 2 - (d @ h2) * self.along, -(h1 @ h2) * self.along])
        self.U, self.right_sides = U, U.T @ right_sides

    def angles(self, position: Array, near: Array) -> Array:
        """Return the angles (m, 4, 3), rad, for positions (m, 3), m."""
        h1, h2, _ = self.h
        position = position / self.reach
        from_axis = position - self.o1
        distance_term, height = (dot(from_axis, from_axis) - self.d @ self.d) / 2, (position - self.o2) @ h1
        right_sides = np.repeat(self.right_sides[:, None], len(position), axis=1)  # (2, m, 3)
        right_sides[..., 0] += self.U.T @ np.stack([distance_term, height])
        large_row, small_row = right_sides[0] / self.singular_values[0], right_sides[1]
        q3 = self._angles_3(large_row, small_row, near[:, 2])
        # v along the rows of V
        squared = _sinusoid_value(self.squared, q3) - _sinusoid_value(self.along, q3) ** 2
        x = _sinusoid_value(large_row[:, None], q3)
        y = other_leg(squared, x)
        if self.is_decoupled:
            y = y * (1, -1, 1, -1)
        else:  # the first formula is accurate if y is large, the second if it is small
            y_direct = _sinusoid_value(small_row[:, None], q3) / self.singular_values[1]
            y = np.where(np.abs(y_direct) > self.singular_values[1], np.copysign(y, y_direct), y_direct)
        v = np.stack([x, y], axis=-1) @ self.V @ self.basis
        g = self.b + np.cos(q3)[..., None] * self.r + np.sin(q3)[..., None] * self.s
        q2 = rotation_angle_onto(h2, g, v, near[:, None, 1])
        arm = self.d + rotate_about(h2, q2, g)
        q1 = rotation_angle_onto(h1, arm, np.broadcast_to(from_axis[:, None], arm.shape), near[:, None, 0])
        return np.stack([q1, q2, q3], axis=-1)

    def _angles_3(self, large_row: Array, small_row: Array, free_angle: Array) -> Array:
        """Return the angles (m, 4) of axis 3, rad.

        If there are only two angles, each is returned twice, for two angles of axis 2.
        """
        if self.is_decoupled:
            return np.repeat(sinusoid_roots(small_row[:, 1], small_row[:, 2], -small_row[:, 0], free_angle), 2, axis=1)
        # x² + y² = |g|² - (h2 · g)², times the smaller singular value squared
        squared, along, smaller_squared = self.squared, self.along, self.singular_values[1] ** 2
        e = squared_sinusoid(small_row) + smaller_squared * (squared_sinusoid(large_row) + squared_sinusoid(along))
        e[:, :3] -= smaller_squared * squared
        e /= np.abs(e).max(axis=-1, keepdims=True)
        if abs(squared[1] * along[2] - squared[2] * along[1]) > SPECIAL_GEOMETRY_TOLERANCE:
            return quadratic_sinusoid_roots(e)
        # axes 2 and 3 intersect or are parallel: a quadratic in cos(q3 - middle)
        leading = squared[1:] if squared[1:] @ squared[1:] > along[1:] @ along[1:] else along[1:]
        middle = np.arctan2(leading[1], leading[0])
        c, s = np.cos(middle), np.sin(middle)
        a2 = e[:, 3] * c * c + e[:, 4] * c * s + e[:, 5] * s * s
        a1, a0 = e[:, 1] * c + e[:, 2] * s, e[:, 0]
        root = np.sqrt(np.maximum(a1**2 - 4 * a2 * a0, 0.0))
        stable_root = -(a1 + np.copysign(root, a1)) / 2
        cosines = np.stack(
            [stable_root / a2, np.where(stable_root == 0.0, 0.0, a0 / np.where(stable_root == 0.0, 1.0, stable_root))],
            axis=-1,
        )
        half_angle = np.arccos(np.clip(cosines, -1.0, 1.0))
        return np.concatenate([middle + half_angle, middle - half_angle], axis=-1)


def _sinusoid_value(row: Array, t: Array) -> Array:
    """Return row (..., 3) · (1, cos t, sin t) for t (...)."""
    return row[..., 0] + row[..., 1] * np.cos(t) + row[..., 2] * np.sin(t)


MIN_ELBOW_SINE = 1e-6
"""Sine of the angle between the upper arm and the line from shoulder to wrist below which the arm counts as straight,
or as folded."""


class SRS:
    """Formula of an S-R-S arm for a given elbow angle.

    Args:
        directions, points: (7, 3) unit directions and points (m) of the axes.
        home: (4, 4) pose of the link with all angles at zero; not used.
        reach: approximate reach, m.
    """

    candidate_count = 8
    constrains_rotation = True

    def __init__(self, directions: Array, points: Array, home: Array, reach: float) -> None:
        self.h, self.reach = directions, reach
        self.shoulder, _ = lines.closest_point_to_lines(points[:3], directions[:3])
        self.wrist, _ = lines.closest_point_to_lines(points[4:], directions[4:])
        elbow = lines.closest_point_on_line(self.shoulder, points[3], directions[3])
        self.upper_arm, self.forearm = elbow - self.shoulder, self.wrist - elbow
        axis_1 = directions[0]
        side = perpendicular_part(axis_1, np.eye(3)[1 if np.argmax(np.abs(axis_1)) == 0 else 0])
        self.fallback_reference = side / length(side)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        """Return candidates (m, 8, 7), rad, for displacements T (m, 4, 4) = X_base_link home^-1.

        If there are fewer solutions, the other candidates are NaN or miss the target.

        Args:
            near: (m, 7) angles for joints that are free at a singular pose, rad.
            elbow: (m,) elbow angles, rad; None for zero.
        """
        h, m = self.h, len(T)
        psi = np.zeros(m) if elbow is None else elbow
        R = T[:, :3, :3]
        wrist_vector = R @ self.wrist + T[:, :3, 3] - self.shoulder
        a, b = self.upper_arm, self.forearm
        A, B, D = 2 * a @ b, 2 * a @ cross(h[3], b), dot(wrist_vector, wrist_vector) - a @ a - b @ b
        ones = np.ones(m)
        q4 = sinusoid_roots(A * ones, B * ones, D, near[:, 3], self.reach**2)  # (m, 2)
        R_arm = self._shoulder_rotation(q4, wrist_vector, psi, near)
        shoulder = three_axis_angles(R_arm, h[0], h[1], h[2], np.broadcast_to(near[:, None, :3], (m, 2, 3)))
        R_hand = np.swapaxes(R_arm @ rotation_about(h[3], q4), -1, -2) @ R[:, None]
        wrist = three_axis_angles(R_hand, h[4], h[5], h[6], np.broadcast_to(near[:, None, 4:], (m, 2, 3)))
        q = np.empty((m, 2, 2, 2, 7))  # pose, elbow, shoulder, wrist
        q[..., :3], q[..., 3], q[..., 4:] = shoulder[:, :, :, None], q4[:, :, None, None], wrist[:, :, None]
        return q.reshape(m, 8, 7)

    def elbow_angle(self, q: Array) -> Array:
        """Return the elbow angle (m,), rad, at q (m, 7)."""
        R = self._upper_arm_rotation(q)
        wrist_vector, side = self._wrist_vector_and_side(q[:, 3])
        line = np.einsum("mij,mj->mi", R, wrist_vector / _positive_length(wrist_vector))
        side = np.einsum("mij,mj->mi", R, side)
        reference = self._reference(line)
        return np.arctan2(dot(cross(line, reference), side), dot(reference, side))

    def _shoulder_rotation(self, q4: Array, wrist_vector: Array, psi: Array, near: Array) -> Array:
        """Return the rotation (m, 2, 3, 3) of the upper arm that moves wrist and elbow to their positions."""
        line = wrist_vector / _positive_length(wrist_vector)
        reference = self._reference(line)
        side = np.cos(psi)[:, None] * reference + np.sin(psi)[:, None] * cross(line, reference)
        zero_line, zero_side = self._wrist_vector_and_side(q4)
        zero_line = zero_line / _positive_length(zero_line)
        F = np.stack([line, side, cross(line, side)], axis=-1)[:, None]
        F_zero = np.stack([zero_line, zero_side, cross(zero_line, zero_side)], axis=-1)
        R = F @ np.swapaxes(F_zero, -1, -2)
        # if the wrist is at the shoulder, any rotation is a solution
        is_folded = length(wrist_vector) < DEGENERATE_RATIO * self.reach
        return (
            np.where(is_folded[:, None, None, None], self._upper_arm_rotation(near)[:, None], R)
            if is_folded.any()
            else R
        )

    def _wrist_vector_and_side(self, q4: Array) -> tuple[Array, Array]:
        """Return the vector from shoulder to wrist and the elbow side, (..., 3) each, before the shoulder rotates."""
        k = self.h[3]
        wrist_vector = self.upper_arm + rotate_about(k, q4, np.broadcast_to(self.forearm, (*q4.shape, 3)))
        side = cross(k, wrist_vector)
        threshold = MIN_ELBOW_SINE * float(length(self.upper_arm)) * length(side)
        side = np.where((side @ self.upper_arm < -threshold)[..., None], -side, side)
        return wrist_vector, side / _positive_length(side)

    def _reference(self, line: Array) -> Array:
        """Return the unit vectors (m, 3) perpendicular to `line` (m, 3) at which the elbow angle is zero."""
        axis_1 = self.h[0] - (line @ self.h[0])[:, None] * line
        is_on_axis = length(axis_1) < DEGENERATE_RATIO
        side = self.fallback_reference - (line @ self.fallback_reference)[:, None] * line
        reference = np.where(is_on_axis[:, None], side, axis_1)
        reference = reference / _positive_length(reference)
        # repeated, because the first projection loses digits if the result is short
        reference = reference - dot(reference, line)[:, None] * line
        return reference / _positive_length(reference)

    def _upper_arm_rotation(self, q: Array) -> Array:
        return (
            rotation_about(self.h[0], q[:, 0]) @ rotation_about(self.h[1], q[:, 1]) @ rotation_about(self.h[2], q[:, 2])
        )


def _positive_length(v: Array) -> Array:
    """Return the lengths (..., 1) of vectors (..., 3), at least 1e-300 to avoid division by zero."""
    return np.maximum(length(v)[..., None], 1e-300)
