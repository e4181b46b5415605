"""7R arms built like a human one: a spherical shoulder, one elbow axis, a spherical wrist (S-R-S).

The distance from shoulder to wrist gives the angle of the elbow's axis; then the arm may still swivel about the line
between them. The angle of that swivel is a parameter here: the elbow angle. Each of shoulder, elbow and wrist has two
ways, so there are eight solutions for each elbow angle. M. Shimizu, H. Kakuya, W.-K. Yoon, K. Kitagaki, K. Kosuge,
"Analytical Inverse Kinematic Computation for 7-DOF Redundant Manipulators with Joint Limits and Its Application to
Redundancy Resolution", IEEE Transactions on Robotics 24, 2008.

The elbow angle. Let S be the shoulder, W the wrist, E the point of axis 4 nearest to S, and l the direction from S to
W. The elbow's side is the direction at right angles to l and to axis 4, on the side of E; where axis 4 stands across
the plane S E W, as it does in the usual arms, it points from the line to the elbow. The elbow angle is the
angle, right-handed about l, from the reference direction to the elbow's side. The reference is what is left of the
direction of axis 1 (of joint 1, as it counts positive) at right angles to l: so at 0 the elbow is above the line for
an arm that stands upright. Where l lies on axis 1, within 1e-9 rad, the reference is the direction across axis 1 that
is nearest to the base's x axis (to its y axis, where axis 1 is nearer to x than to y and z). Where the arm is
straight, axis 4 itself decides: the elbow's side is (axis 4) x l.
"""

from __future__ import annotations

import numpy as np

from mechanik.mechanism import lines
from mechanik.search.planar_arms import across
from mechanik.search.subproblems import NOTHING, both_angles, three_turns, turn_matrix, turned
from mechanik.spatial.array import Array
from mechanik.spatial.vector import cross, dot, length

STRAIGHT = 1e-6
"""The sine of the elbow below which the arm counts as straight, or as folded."""


class SRS:
    """All solutions of such an arm for a given elbow angle.

    Args:
        directions, points: (7, 3) of the axes.
        size: about the reach.
    """

    branches = 8
    counts_rotation = True

    def __init__(self, directions: Array, points: Array, home: Array, size: float) -> None:
        self.h, self.size = directions, size
        self.shoulder, _ = lines.meeting_point(points[:3], directions[:3])
        self.wrist, _ = lines.meeting_point(points[4:], directions[4:])
        elbow = lines.foot(self.shoulder, points[3], directions[3])
        self.upper, self.fore = elbow - self.shoulder, self.wrist - elbow
        up = directions[0]
        aside = across(up, np.eye(3)[1 if np.argmax(np.abs(up)) == 0 else 0])
        self.aside = aside / length(aside)

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        """(m, 8, 7) for displacements T (m, 4, 4) = X_base_link home^-1 and elbow angles (m,)."""
        h, m = self.h, len(T)
        psi = np.zeros(m) if elbow is None else elbow
        R = T[:, :3, :3]
        reach = R @ self.wrist + T[:, :3, 3] - self.shoulder
        a, b = self.upper, self.fore
        A, B, D = 2 * a @ b, 2 * a @ cross(h[3], b), dot(reach, reach) - a @ a - b @ b
        one = np.ones(m)
        q4 = both_angles(A * one, B * one, D, near[:, 3], self.size**2)  # (m, 2)
        R_arm = self._shoulder_turn(q4, reach, psi, near)
        shoulder = three_turns(R_arm, h[0], h[1], h[2], np.broadcast_to(near[:, None, :3], (m, 2, 3)))
        R_hand = np.swapaxes(R_arm @ turn_matrix(h[3], q4), -1, -2) @ R[:, None]
        wrist = three_turns(R_hand, h[4], h[5], h[6], np.broadcast_to(near[:, None, 4:], (m, 2, 3)))
        q = np.empty((m, 2, 2, 2, 7))  # pose, elbow, shoulder, wrist
        q[..., :3], q[..., 3], q[..., 4:] = shoulder[:, :, :, None], q4[:, :, None, None], wrist[:, :, None]
        return q.reshape(m, 8, 7)

    def elbow_angle(self, q: Array) -> Array:
        """(m,) at q (m, 7)."""
        R = self._turns(q)
        reach, side = self._reach_and_side(q[:, 3])
        line = np.einsum("mij,mj->mi", R, reach / _length(reach))
        side = np.einsum("mij,mj->mi", R, side)
        reference = self._reference(line)
        return np.arctan2(dot(cross(line, reference), side), dot(reference, side))

    def _shoulder_turn(self, q4: Array, reach: Array, psi: Array, near: Array) -> Array:
        """The turn of the upper arm (m, 2, 3, 3): shoulder to wrist onto the goal, the elbow to its side."""
        line = reach / _length(reach)
        reference = self._reference(line)
        side = np.cos(psi)[:, None] * reference + np.sin(psi)[:, None] * cross(line, reference)
        before, before_side = self._reach_and_side(q4)
        before = before / _length(before)
        F = np.stack([line, side, cross(line, side)], axis=-1)[:, None]
        F_before = np.stack([before, before_side, cross(before, before_side)], axis=-1)
        R = F @ np.swapaxes(F_before, -1, -2)
        folded = length(reach) < NOTHING * self.size  # hand in the shoulder: any turn will do
        return np.where(folded[:, None, None, None], self._turns(near)[:, None], R) if folded.any() else R

    def _reach_and_side(self, q4: Array) -> tuple[Array, Array]:
        """Shoulder to wrist, and the elbow's side, (..., 3) each, before the shoulder turns."""
        k = self.h[3]
        reach = self.upper + turned(k, q4, np.broadcast_to(self.fore, (*q4.shape, 3)))
        side = cross(k, reach)
        straight = STRAIGHT * float(length(self.upper)) * length(side)
        side = np.where((side @ self.upper < -straight)[..., None], -side, side)
        return reach, side / _length(side)

    def _reference(self, line: Array) -> Array:
        """(m, 3) unit vectors across line (m, 3) from which the elbow angle is counted."""
        up = self.h[0] - (line @ self.h[0])[:, None] * line
        along = length(up) < NOTHING
        aside = self.aside - (line @ self.aside)[:, None] * line
        reference = np.where(along[:, None], aside, up)
        reference = reference / _length(reference)
        reference = reference - dot(reference, line)[:, None] * line  # again, for what little there was has few digits
        return reference / _length(reference)

    def _turns(self, q: Array) -> Array:
        return turn_matrix(self.h[0], q[:, 0]) @ turn_matrix(self.h[1], q[:, 1]) @ turn_matrix(self.h[2], q[:, 2])


def _length(v: Array) -> Array:
    """(..., 1), never zero."""
    return np.maximum(length(v)[..., None], 1e-300)
