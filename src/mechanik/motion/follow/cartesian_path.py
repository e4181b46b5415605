"""Cartesian paths: poses as a function of a parameter t from 0 to 1, as lines, arcs, splines and their sequences."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import index

import numpy as np

from mechanik.errors import InvalidArgument, NotFinite, ShapeError
from mechanik.spatial import Pose, interpolation, make_pose, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.pose import as_pose_matrix
from mechanik.spatial.vector_math import unit
from mechanik.validation import as_number, as_vector

METRES_PER_RADIAN = 0.2
"""m/rad: weight of rotation against translation where t is divided among the segments of a path."""
MAX_JOIN_ERROR = 1e-6
"""m and rad: largest distance and angle from the end of a segment to the start of the next."""
MEASURE_INTERVALS = 64
"""Number of intervals into which a path is divided to measure its size; its length is measured with four times as
many."""


class CartesianPath(ABC):
    """A path of poses: called with t (...) from 0 to 1, it returns poses (..., 4, 4) of a frame, such as X_world_tool.

    `a + b` joins two paths if `b` starts where `a` ends (to 1e-6 m and rad). Subclasses implement `poses`.

    Example:
        >>> a, b, c = mk.Pose((0, 0, 0)), mk.Pose((1, 0, 0)), mk.Pose((1, 1, 0))
        >>> path = mk.Line(a, b) + mk.Line(b, c)
        >>> path(0.75)[:3, 3].tolist()
        [1.0, 0.5, 0.0]
    """

    @abstractmethod
    def poses(self, t: Array) -> Array:
        """Evaluate the path at t (n,), all from 0 to 1: poses (n, 4, 4)."""

    def __call__(self, t: ArrayLike) -> Array:
        parameters = np.asarray(t, dtype=np.float64)
        if not np.isfinite(parameters).all():
            raise NotFinite(f"t of a Cartesian path has an entry that is not finite: {t!r}")
        if parameters.size and not (parameters.min() >= -1e-12 and parameters.max() <= 1.0 + 1e-12):
            raise ShapeError(
                f"t of a Cartesian path must be from 0 to 1, not from {parameters.min()} to {parameters.max()}"
            )
        return self.poses(np.clip(parameters, 0.0, 1.0).reshape(-1)).reshape(*parameters.shape, 4, 4)

    def sample(self, count: int) -> Array:
        """Sample the path at `count` values of t, evenly spaced and with both ends: poses (count, 4, 4).

        Raises:
            ShapeError: `count` is below 2.
        """
        sample_count = index(count)
        if sample_count < 2:
            raise ShapeError(f"the number of samples of a path must be 2 or more, not {sample_count}")
        return self(np.linspace(0.0, 1.0, sample_count))

    def __add__(self, other_path: CartesianPath) -> CartesianPath:
        if not isinstance(other_path, CartesianPath):
            return NotImplemented
        segments = self.segments if isinstance(self, JoinedPath) else (self,)
        return JoinedPath((*segments, *(other_path.segments if isinstance(other_path, JoinedPath) else (other_path,))))

    @property
    def length(self) -> float:
        """Length of the curve of the frame origin, m."""
        return float(_translation_and_rotation(self.sample(4 * MEASURE_INTERVALS + 1))[0].sum())

    @property
    def size(self) -> float:
        """Length of the curve of the frame origin plus METRES_PER_RADIAN times the rotation angle, m.

        In a joined path, t is divided among the segments in proportion to their sizes.
        """
        translation, angle = _translation_and_rotation(self.sample(MEASURE_INTERVALS + 1))
        return float((translation + METRES_PER_RADIAN * angle).sum())

    @staticmethod
    def through(poses: Sequence[Pose | ArrayLike] | ArrayLike) -> CartesianPath:
        """Join the poses by straight lines; see `Spline` for a smooth path.

        Args:
            poses: 2 or more, each a `Pose` or (4, 4).
        """
        X = as_poses(poses)
        return JoinedPath(tuple(Line(a, b) for a, b in itertools.pairwise(X)))


class JoinedPath(CartesianPath):
    """Several paths in sequence; each starts where the previous one ends.

    Attributes:
        segments: the paths, at least one.
        t_bounds: (k + 1,) the t at which each of k segments starts, then 1. Each segment has a part of t that is
            proportional to its size.
    """

    def __init__(self, segments: Sequence[CartesianPath]) -> None:
        self.segments: tuple[CartesianPath, ...] = tuple(segments)
        for segment in self.segments:
            if not isinstance(segment, CartesianPath):
                raise InvalidArgument(f"only Cartesian paths can be joined, not {segment!r}")
        for k, (a, b) in enumerate(zip(self.segments[:-1], self.segments[1:], strict=True)):
            distance, angle = _translation_and_rotation(np.array([a(1.0), b(0.0)]))
            if distance[0] > MAX_JOIN_ERROR or angle[0] > MAX_JOIN_ERROR:
                raise ShapeError(
                    f"segment {k + 1} of a path starts {distance[0]:.3g} m and {angle[0]:.3g} rad away from the end of "
                    "the segment before it; put a Line between them"
                )
        sizes = np.array([segment.size for segment in self.segments])
        if not sizes.sum() > 0.0:
            sizes = np.ones(len(sizes))
        self.t_bounds = np.append(0.0, np.cumsum(sizes) / sizes.sum())

    def poses(self, t: Array) -> Array:
        k = np.clip(np.searchsorted(self.t_bounds, t, side="right") - 1, 0, len(self.segments) - 1)
        span = self.t_bounds[k + 1] - self.t_bounds[k]
        local_t = np.clip((t - self.t_bounds[k]) / np.where(span > 0.0, span, 1.0), 0.0, 1.0)
        X = np.empty((len(t), 4, 4))
        for segment_index, segment in enumerate(self.segments):
            if (is_in_segment := k == segment_index).any():
                X[is_in_segment] = segment.poses(local_t[is_in_segment])
        return X


def as_poses(poses: Sequence[Pose | ArrayLike] | ArrayLike, min_count: int = 2) -> Array:
    """Validate several poses, given as an array or as a list of poses in any form, and return them as (n, 4, 4)."""
    matrices = [as_pose_matrix(pose, f"pose {k}") for k, pose in enumerate(poses)]  # type: ignore[arg-type]
    if len(matrices) < min_count:
        raise ShapeError(f"a path needs {min_count} or more poses, not {len(matrices)}")
    for k, pose in enumerate(matrices):
        if pose.shape != (4, 4):
            raise ShapeError(f"pose {k} of a path must be (4, 4), not of shape {pose.shape}")
    return np.array(matrices)


def as_pose(pose: Pose | ArrayLike, label: str) -> Array:
    """Validate a single pose and return it as (4, 4)."""
    X = as_pose_matrix(pose, label)
    if X.shape != (4, 4):
        raise ShapeError(f"{label} must be one pose, (4, 4), not of shape {X.shape}")
    return X


def _translation_and_rotation(X: Array) -> tuple[Array, Array]:
    """Distances between consecutive poses (n, 4, 4): translation (n - 1,) in m and rotation (n - 1,) in rad."""
    R = X[:, :3, :3]
    rotation_vectors = rotation.log(np.swapaxes(R[:-1], 1, 2) @ R[1:])
    return np.linalg.norm(np.diff(X[:, :3, 3], axis=0), axis=1), np.linalg.norm(rotation_vectors, axis=1)


class Line(CartesianPath):
    """A straight path: the origin moves on a line from `a` to `b`, the frame rotates uniformly about a fixed axis.

    The rotation angle is at most pi.

    Args:
        a, b: start and end, each a `Pose` or (4, 4).

    Example:
        >>> line = mk.Line(mk.Pose((0.3, 0, 0.5)), mk.Pose((0.3, 0.4, 0.5)))
        >>> line(0.5)[:3, 3].tolist()
        [0.3, 0.2, 0.5]
    """

    def __init__(self, a: Pose | ArrayLike, b: Pose | ArrayLike) -> None:
        self.a, self.b = as_pose(a, "start of a line"), as_pose(b, "end of a line")

    def __repr__(self) -> str:
        return f"Line({Pose.from_matrix(self.a)!r}, {Pose.from_matrix(self.b)!r})"

    def poses(self, t: Array) -> Array:
        return interpolation.poses(self.a, self.b, t)


COLLINEAR_RATIO = 1e-9
"""Three points are collinear if the cross product of their differences is below this ratio of the longest distance
squared."""


class Arc(CartesianPath):
    """A circular path: the origin moves on a circle while the frame rotates uniformly from start to end orientation.

    `Arc.about` builds an arc from its centre, axis and angle.

    Args:
        a: start, a `Pose` or (4, 4).
        through: a point (3,) in m on the circle between the ends; or a pose, whose orientation is ignored.
        b: end, a `Pose` or (4, 4).

    Attributes:
        a: (4, 4) start.
        centre: (3,) centre of the circle, m.
        axis: (3,) unit vector of the rotation axis.
        angle: angle of the arc about `axis`, rad.

    Raises:
        ShapeError: the three points are collinear.

    Example:
        >>> arc = mk.Arc(mk.Pose((1, 0, 0)), (0, 1, 0), mk.Pose((-1, 0, 0)))
        >>> round(arc.length, 2)
        3.14
    """

    def __init__(self, a: Pose | ArrayLike, through: Pose | ArrayLike, b: Pose | ArrayLike) -> None:
        X_a, X_b = as_pose(a, "start of an arc"), as_pose(b, "end of an arc")
        is_pose = isinstance(through, Pose) or np.shape(through) == (4, 4)
        p_middle = as_pose(through, "pose inside an arc")[:3, 3] if is_pose else as_vector(through, 3, "through")  # type: ignore[arg-type]
        centre, axis, angle = _circle(X_a[:3, 3], p_middle, X_b[:3, 3])
        self._set_fields(X_a, X_b[:3, :3], centre, axis, angle, rotates_frame=False)

    @classmethod
    def about(
        cls, a: Pose | ArrayLike, centre: ArrayLike, axis: ArrayLike, angle: float, *, rotate_frame: bool = True
    ) -> Arc:
        """Build an arc from its start pose, centre, axis and angle.

        Args:
            a: start, a `Pose` or (4, 4).
            centre: (3,), m.
            axis: (3,), direction of the rotation axis through the centre; any length above 0.
            angle: rad, any size and sign.
            rotate_frame: whether the frame rotates with the arc, as if fixed to a wheel; else it keeps the orientation
                of `a`.
        """
        arc = cls.__new__(cls)
        X = as_pose(a, "start of an arc")
        direction = as_vector(axis, 3, "axis of an arc")
        if not np.any(direction):
            raise ShapeError("the axis of an arc must not be zero")
        arc_angle = as_number(angle, "angle of an arc")
        arc._set_fields(
            X, X[:3, :3], as_vector(centre, 3, "centre of an arc"), unit(direction, "axis"), arc_angle, rotate_frame
        )
        return arc

    def _set_fields(
        self, a: Array, R_end: Array, centre: Array, axis: Array, angle: float, rotates_frame: bool
    ) -> None:
        self.a, self._R_end, self._rotates_frame = a, R_end, rotates_frame
        self.centre, self.axis, self.angle = centre, axis, angle

    def __repr__(self) -> str:
        return f"<arc of {self.angle:.4g} rad about {self.centre.tolist()}>"

    def poses(self, t: Array) -> Array:
        R = rotation.exp(t[:, None] * self.angle * self.axis)
        position = self.centre + R @ (self.a[:3, 3] - self.centre)
        R_frame = R @ self.a[:3, :3] if self._rotates_frame else interpolation.rotations(self.a[:3, :3], self._R_end, t)
        return make_pose(R_frame, position)


def _circle(a: Array, m: Array, b: Array) -> tuple[Array, Array, float]:
    """Centre, axis and angle (0 to 2 pi) of the circular arc from a through m to b, points (3,) in m."""
    u, v = m - a, b - a
    normal = np.cross(u, v)
    normal_length = float(np.linalg.norm(normal))
    longest_side = max(float(np.linalg.norm(side)) for side in (u, v, b - m))
    if not normal_length > COLLINEAR_RATIO * longest_side**2:
        raise ShapeError("the three points of an arc lie on one line, so no circle passes through them; use a Line")
    centre = a + np.cross(normal, (u @ u) * v - (v @ v) * u) / (-2.0 * normal_length**2)
    axis = normal / normal_length
    r_a, r_b = a - centre, b - centre
    angle = float(np.arctan2(axis @ np.cross(r_a, r_b), r_a @ r_b))
    return centre, axis, angle if angle > 0.0 else angle + 2.0 * np.pi


class Spline(CartesianPath):
    """A smooth path through poses: a natural cubic spline in position, a C1 curve in orientation.

    Orientations are interpolated by de Casteljau's construction on rotations. The angular velocity at an inner pose is
    that of the parabola through the pose and its neighbours.

    Args:
        poses: 2 or more, each a `Pose` or (4, 4).
        t: (n,) parameter of each pose, strictly increasing from 0 to 1. By default it is spaced by the distances
            between poses, in which 1 rad of rotation counts as 0.2 m.

    Example:
        >>> spline = mk.Spline([mk.Pose((0, 0, 0)), mk.Pose((1, 1, 0)), mk.Pose((2, 0, 0))])
        >>> spline.t.tolist()
        [0.0, 0.5, 1.0]
    """

    def __init__(self, poses: Sequence[Pose | ArrayLike] | ArrayLike, t: ArrayLike | None = None) -> None:
        self._X = as_poses(poses)
        R = self._X[:, :3, :3]
        rotation_vectors = rotation.log(np.swapaxes(R[:-1], 1, 2) @ R[1:])
        if t is None:
            distances = np.linalg.norm(np.diff(self._X[:, :3, 3], axis=0), axis=1)
            sizes = distances + METRES_PER_RADIAN * np.linalg.norm(rotation_vectors, axis=1)
            if not (sizes > 0.0).all():
                k = int(np.argmin(sizes))
                raise ShapeError(f"pose {k + 1} of a spline is equal to pose {k}; remove it")
            self.t = np.append(0.0, np.cumsum(sizes) / sizes.sum())
            self.t[-1] = 1.0
        else:
            self.t = np.array(t, dtype=np.float64)
            is_valid = self.t.shape == (len(self._X),) and bool((np.diff(self.t) > 0.0).all())
            if not is_valid or self.t[0] != 0.0 or self.t[-1] != 1.0:
                raise ShapeError(f"t of a spline must be ({len(self._X)},) and strictly increasing from 0 to 1")
        h = np.diff(self.t)
        self._position_second_derivatives = _second_derivatives(h, self._X[:, :3, 3])
        omega = _angular_velocities(h, rotation_vectors)
        self._control_after = R[:-1] @ rotation.exp(omega[:-1] * h[:, None] / 3.0)
        self._control_before = R[1:] @ rotation.exp(-omega[1:] * h[:, None] / 3.0)

    def __repr__(self) -> str:
        return f"<spline through {len(self._X)} poses>"

    def poses(self, t: Array) -> Array:
        k = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)
        h = (self.t[k + 1] - self.t[k])[:, None]
        b = ((t - self.t[k]) / h[:, 0])[:, None]
        a = 1.0 - b
        p, M = self._X[:, :3, 3], self._position_second_derivatives
        position = a * p[k] + b * p[k + 1] + h**2 / 6.0 * ((a**3 - a) * M[k] + (b**3 - b) * M[k + 1])
        interpolate, share = interpolation.rotations, b[:, 0]
        R, R_after, R_before = self._X[:, :3, :3], self._control_after[k], self._control_before[k]
        R_01 = interpolate(R[k], R_after, share)
        R_12 = interpolate(R_after, R_before, share)
        R_23 = interpolate(R_before, R[k + 1], share)
        R_012, R_123 = interpolate(R_01, R_12, share), interpolate(R_12, R_23, share)
        return make_pose(interpolate(R_012, R_123, share), position)


def _second_derivatives(h: Array, p: Array) -> Array:
    """Second derivatives (n, 3) of the natural cubic spline through p (n, 3) with steps h (n - 1,).

    The tridiagonal system is solved by the Thomas algorithm.
    """
    M = np.zeros_like(p)
    if len(p) < 3:
        return M
    slopes = np.diff(p, axis=0) / h[:, None]
    right_side = 6.0 * np.diff(slopes, axis=0)
    diagonal = 2.0 * (h[:-1] + h[1:])
    for k in range(1, len(right_side)):
        factor = h[k] / diagonal[k - 1]
        diagonal[k] -= factor * h[k]
        right_side[k] -= factor * right_side[k - 1]
    M[-2] = right_side[-1] / diagonal[-1]
    for k in range(len(right_side) - 2, -1, -1):
        M[k + 1] = (right_side[k] - h[k + 1] * M[k + 2]) / diagonal[k]
    return M


def _angular_velocities(h: Array, rotation_vectors: Array) -> Array:
    """Angular velocity (n, 3) at each pose, with the parameter t as time, in the axes of that pose.

    At an inner pose it is that of the parabola through the pose and its neighbours, at an end that of the segment.

    Args:
        h: (n - 1,) differences of t between consecutive poses.
        rotation_vectors: (n - 1, 3) from each pose to the next; the same in the axes of both poses.
    """
    mean_velocities = rotation_vectors / h[:, None]
    inner_velocities = h[1:, None] * mean_velocities[:-1] + h[:-1, None] * mean_velocities[1:]
    inner_velocities /= (h[1:] + h[:-1])[:, None]
    return np.concatenate([mean_velocities[:1], inner_velocities, mean_velocities[-1:]])
