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
MEET = 1e-6
"""m and rad: largest gap between the end of a segment and the start of the next."""
FINE = 64
"""Number of intervals for the numerical measurement of the size of a path."""


class CartesianPath(ABC):
    """A path of poses: called with t (...) from 0 to 1, it returns poses X_world (..., 4, 4).

    Paths whose ends meet (to 1e-6 m and rad) are concatenated with `+`. Subclasses implement `poses`.

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
        wanted = np.asarray(t, dtype=np.float64)
        if not np.isfinite(wanted).all():
            raise NotFinite(f"t of a path of poses has an entry that is not finite: {t!r}")
        if wanted.size and not (wanted.min() >= -1e-12 and wanted.max() <= 1.0 + 1e-12):
            raise ShapeError(
                f"t of a path of poses runs from 0 to 1, and this one from {wanted.min()} to {wanted.max()}"
            )
        return self.poses(np.clip(wanted, 0.0, 1.0).reshape(-1)).reshape(*wanted.shape, 4, 4)

    def sample(self, count: int) -> Array:
        """Sample the path at `count` values of t, evenly spaced and with both ends: poses (count, 4, 4).

        Raises:
            ShapeError: `count` is below 2.
        """
        number = index(count)
        if number < 2:
            raise ShapeError(f"a path is sampled at 2 or more places, not at {number}")
        return self(np.linspace(0.0, 1.0, number))

    def __add__(self, other: CartesianPath) -> CartesianPath:
        if not isinstance(other, CartesianPath):
            return NotImplemented
        mine = self.segments if isinstance(self, JoinedPath) else (self,)
        return JoinedPath((*mine, *(other.segments if isinstance(other, JoinedPath) else (other,))))

    @property
    def length(self) -> float:
        """Length of the path of the origin, m."""
        return float(_ways(self.sample(4 * FINE + 1))[0].sum())

    @property
    def size(self) -> float:
        """Length of the origin's path plus the weighted rotation, m.

        It sets the share of t that a segment gets in a joined path.
        """
        way, turn = _ways(self.sample(FINE + 1))
        return float((way + METRES_PER_RADIAN * turn).sum())

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
        ends: (k + 1,) the t at which each segment starts, then 1; spaced by the sizes of the segments.
    """

    def __init__(self, segments: Sequence[CartesianPath]) -> None:
        self.segments: tuple[CartesianPath, ...] = tuple(segments)
        for one in self.segments:
            if not isinstance(one, CartesianPath):
                raise InvalidArgument(f"only paths of poses can be joined, not {one!r}")
        for k, (a, b) in enumerate(zip(self.segments[:-1], self.segments[1:], strict=True)):
            way, turn = _ways(np.array([a(1.0), b(0.0)]))
            if way[0] > MEET or turn[0] > MEET:
                raise ShapeError(
                    f"piece {k + 1} of a path begins {way[0]:.3g} m and {turn[0]:.3g} rad away from the end of the "
                    "piece before it; put a Line between them"
                )
        sizes = np.array([one.size for one in self.segments])
        if not sizes.sum() > 0.0:
            sizes = np.ones(len(sizes))
        self.ends = np.append(0.0, np.cumsum(sizes) / sizes.sum())

    def poses(self, t: Array) -> Array:
        k = np.clip(np.searchsorted(self.ends, t, side="right") - 1, 0, len(self.segments) - 1)
        span = self.ends[k + 1] - self.ends[k]
        inside = np.clip((t - self.ends[k]) / np.where(span > 0.0, span, 1.0), 0.0, 1.0)
        X = np.empty((len(t), 4, 4))
        for number, piece in enumerate(self.segments):
            if (mine := k == number).any():
                X[mine] = piece.poses(inside[mine])
        return X


def as_poses(poses: Sequence[Pose | ArrayLike] | ArrayLike, min_count: int = 2) -> Array:
    """Validate several poses, given as an array or as a list of poses in any form, and return them as (n, 4, 4)."""
    listed = [as_pose_matrix(one, f"pose {k}") for k, one in enumerate(poses)]  # type: ignore[arg-type]
    if len(listed) < min_count:
        raise ShapeError(f"a path leads through {min_count} or more poses, not {len(listed)}")
    for k, one in enumerate(listed):
        if one.shape != (4, 4):
            raise ShapeError(f"pose {k} of a path is (4, 4), not of shape {one.shape}")
    return np.array(listed)


def as_pose(pose: Pose | ArrayLike, label: str) -> Array:
    """Validate a single pose and return it as (4, 4)."""
    X = as_pose_matrix(pose, label)
    if X.shape != (4, 4):
        raise ShapeError(f"{label} is one pose, (4, 4), not of shape {X.shape}")
    return X


def _ways(X: Array) -> tuple[Array, Array]:
    """Distances between consecutive poses (n, 4, 4): translation (n - 1,) in m and rotation (n - 1,) in rad."""
    R = X[:, :3, :3]
    turns = rotation.log(np.swapaxes(R[:-1], 1, 2) @ R[1:])
    return np.linalg.norm(np.diff(X[:, :3, 3], axis=0), axis=1), np.linalg.norm(turns, axis=1)


class Line(CartesianPath):
    """A straight path: the origin moves on a line from `a` to `b`, the frame rotates uniformly about a fixed axis.

    The rotation takes the shortest direction.

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


STRAIGHT = 1e-9
"""Ratio to the square of the longest distance: three points whose cross product is smaller count as collinear."""


class Arc(CartesianPath):
    """A circular path: the origin moves on a circle while the frame rotates uniformly from start to end orientation.

    Args:
        a, b: start and end, each a `Pose` or (4, 4).
        through: a point (3,) in m on the circle between the ends; or a pose, of which only the position is used.

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
        middle = as_pose(through, "pose inside an arc")[:3, 3] if is_pose else as_vector(through, 3, "through")  # type: ignore[arg-type]
        centre, axis, angle = _circle(X_a[:3, 3], middle, X_b[:3, 3])
        self._set(X_a, X_b[:3, :3], centre, axis, angle, turns=False)

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
            raise ShapeError("the axis of an arc is zero and so has no direction")
        size = as_number(angle, "angle of an arc")
        arc._set(X, X[:3, :3], as_vector(centre, 3, "centre of an arc"), unit(direction, "axis"), size, rotate_frame)
        return arc

    def _set(self, a: Array, R_end: Array, centre: Array, axis: Array, angle: float, turns: bool) -> None:
        self.a, self._R_end, self.centre, self.axis, self.angle, self._turns = a, R_end, centre, axis, angle, turns

    def __repr__(self) -> str:
        return f"<arc of {self.angle:.4g} rad about {self.centre.tolist()}>"

    def poses(self, t: Array) -> Array:
        R = rotation.exp(t[:, None] * self.angle * self.axis)
        place = self.centre + R @ (self.a[:3, 3] - self.centre)
        turned = R @ self.a[:3, :3] if self._turns else interpolation.rotations(self.a[:3, :3], self._R_end, t)
        return make_pose(turned, place)


def _circle(a: Array, m: Array, b: Array) -> tuple[Array, Array, float]:
    """Centre, axis and angle (0 to 2 pi) of the circular arc from a through m to b."""
    u, v = m - a, b - a
    normal = np.cross(u, v)
    size = float(np.linalg.norm(normal))
    longest = max(float(np.linalg.norm(one)) for one in (u, v, b - m))
    if not size > STRAIGHT * longest**2:
        raise ShapeError("the three points of an arc lie on one line, so no circle leads through them; use a Line")
    centre = a + np.cross(normal, (u @ u) * v - (v @ v) * u) / (-2.0 * size**2)
    axis = normal / size
    r, s = a - centre, b - centre
    angle = float(np.arctan2(axis @ np.cross(r, s), r @ s))
    return centre, axis, angle if angle > 0.0 else angle + 2.0 * np.pi


class Spline(CartesianPath):
    """A smooth path through poses: a natural cubic spline in position, a C1 curve in orientation.

    The second derivative of the position is continuous. Orientations are interpolated by de Casteljau's construction on
    rotations; the angular velocity at each pose is that of the parabola through its neighbours.

    Args:
        poses: 2 or more, each a `Pose` or (4, 4).
        t: (n,) parameter of each pose, strictly increasing from 0 to 1; by default spaced by the distances between
            poses.

    Example:
        >>> spline = mk.Spline([mk.Pose((0, 0, 0)), mk.Pose((1, 1, 0)), mk.Pose((2, 0, 0))])
        >>> spline.t.tolist()
        [0.0, 0.5, 1.0]
    """

    def __init__(self, poses: Sequence[Pose | ArrayLike] | ArrayLike, t: ArrayLike | None = None) -> None:
        self._X = as_poses(poses)
        R = self._X[:, :3, :3]
        turns = rotation.log(np.swapaxes(R[:-1], 1, 2) @ R[1:])
        if t is None:
            ways = np.linalg.norm(np.diff(self._X[:, :3, 3], axis=0), axis=1)
            sizes = ways + METRES_PER_RADIAN * np.linalg.norm(turns, axis=1)
            if not (sizes > 0.0).all():
                k = int(np.argmin(sizes))
                raise ShapeError(f"pose {k + 1} of a spline is the same as the one before it; leave one of them out")
            self.t = np.append(0.0, np.cumsum(sizes) / sizes.sum())
            self.t[-1] = 1.0
        else:
            self.t = np.array(t, dtype=np.float64)
            sound = self.t.shape == (len(self._X),) and bool((np.diff(self.t) > 0.0).all())
            if not sound or self.t[0] != 0.0 or self.t[-1] != 1.0:
                raise ShapeError(f"t of a spline is ({len(self._X)},), from 0 to 1, each above the one before it")
        h = np.diff(self.t)
        self._bends = _second_derivatives(h, self._X[:, :3, 3])
        speeds = _speeds(h, turns)
        self._away = R[:-1] @ rotation.exp(speeds[:-1] * h[:, None] / 3.0)
        self._towards = R[1:] @ rotation.exp(-speeds[1:] * h[:, None] / 3.0)

    def __repr__(self) -> str:
        return f"<spline through {len(self._X)} poses>"

    def poses(self, t: Array) -> Array:
        k = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)
        h = (self.t[k + 1] - self.t[k])[:, None]
        b = ((t - self.t[k]) / h[:, 0])[:, None]
        a = 1.0 - b
        p, M = self._X[:, :3, 3], self._bends
        place = a * p[k] + b * p[k + 1] + h**2 / 6.0 * ((a**3 - a) * M[k] + (b**3 - b) * M[k + 1])
        between, share = interpolation.rotations, b[:, 0]
        R, one, two = self._X[:, :3, :3], self._away[k], self._towards[k]
        first, middle, last = between(R[k], one, share), between(one, two, share), between(two, R[k + 1], share)
        return make_pose(between(between(first, middle, share), between(middle, last, share), share), place)


def _second_derivatives(h: Array, p: Array) -> Array:
    """Second derivatives (n, 3) of the natural cubic spline through p (n, 3) with steps h (n - 1,).

    The tridiagonal system is solved by the Thomas algorithm.
    """
    M = np.zeros_like(p)
    if len(p) < 3:
        return M
    slopes = np.diff(p, axis=0) / h[:, None]
    right = 6.0 * np.diff(slopes, axis=0)
    middle = 2.0 * (h[:-1] + h[1:])
    for k in range(1, len(right)):
        share = h[k] / middle[k - 1]
        middle[k] -= share * h[k]
        right[k] -= share * right[k - 1]
    M[-2] = right[-1] / middle[-1]
    for k in range(len(right) - 2, -1, -1):
        M[k + 1] = (right[k] - h[k + 1] * M[k + 2]) / middle[k]
    return M


def _speeds(h: Array, turns: Array) -> Array:
    """Angular velocity (n, 3) at each pose, in its own axes: that of the parabola through its neighbours.

    Args:
        turns: (n - 1, 3) rotation vectors from each pose to the next; they are the same in the axes of both poses.
    """
    each = turns / h[:, None]
    inner = (h[1:, None] * each[:-1] + h[:-1, None] * each[1:]) / (h[1:] + h[:-1])[:, None]
    return np.concatenate([each[:1], inner, each[-1:]])
