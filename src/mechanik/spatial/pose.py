"""Poses as 4x4 matrices, (..., 4, 4), and `Pose`, an immutable value for a single pose.

X_a_b is the pose of frame b in frame a: it maps coordinates in b to coordinates in a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.errors import NotARotation, NotFinite, ShapeError
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.rotation import is_rotation
from mechanik.spatial.vector_math import rotate_vector


def identity() -> Array:
    """Return the identity pose, (4, 4).

    Example:
        >>> mk.spatial.identity_pose().shape
        (4, 4)
    """
    return np.eye(4)


def make_pose(R: ArrayLike, p: ArrayLike) -> Array:
    """Combine rotations and positions to poses.

    Args:
        R: (..., 3, 3).
        p: (..., 3).

    Returns:
        (..., 4, 4).

    Example:
        >>> mk.spatial.make_pose(np.eye(3), [1, 2, 3])[:3, 3]
        array([1., 2., 3.])
    """
    M, p = np.asarray(R, dtype=np.float64), np.asarray(p, dtype=np.float64)
    batch_shape = M.shape[:-2]
    if batch_shape != p.shape[:-1]:
        batch_shape = np.broadcast_shapes(batch_shape, p.shape[:-1])
    out = np.zeros((*batch_shape, 4, 4))
    out[..., :3, :3] = M
    out[..., :3, 3] = p
    out[..., 3, 3] = 1.0
    return out


def translation(p: ArrayLike) -> Array:
    """Return the poses at positions `p`, (..., 3), without rotation.

    Returns:
        (..., 4, 4).

    Example:
        >>> mk.spatial.translation([1, 2, 3])[0]
        array([1., 0., 0., 1.])
    """
    p = np.asarray(p, dtype=np.float64)
    out = np.zeros((*p.shape[:-1], 4, 4))
    out[...] = np.eye(4)
    out[..., :3, 3] = p
    return out


def from_position_wxyz(p: ArrayLike, wxyz: ArrayLike) -> Array:
    """Convert positions and quaternions to poses.

    Args:
        p: (..., 3).
        wxyz: (..., 4), of any norm except zero.

    Returns:
        (..., 4, 4).

    Example:
        >>> mk.spatial.from_position_wxyz([1, 0, 0], [0, 0, 0, 2])[0]
        array([-1.,  0.,  0.,  1.])
    """
    return make_pose(quaternion.to_matrix(wxyz), p)


def to_position_wxyz(X: ArrayLike) -> tuple[Array, Array]:
    """Convert poses to positions and canonical unit quaternions.

    Args:
        X: (..., 4, 4).

    Returns:
        Positions (..., 3) and quaternions (..., 4).

    Example:
        >>> p, wxyz = mk.spatial.to_position_wxyz(np.eye(4))
        >>> wxyz
        array([1., 0., 0., 0.])
    """
    M = np.asarray(X, dtype=np.float64)
    return M[..., :3, 3].copy(), quaternion.from_matrix(M[..., :3, :3])


def position_of(X: Array) -> Array:
    """Return the positions of poses, (..., 3), as a view into `X`.

    Example:
        >>> mk.spatial.position_of(mk.spatial.translation([1, 2, 3]))
        array([1., 2., 3.])
    """
    return X[..., :3, 3]


def rotation_of(X: Array) -> Array:
    """Return the rotations of poses, (..., 3, 3), as a view into `X`.

    Example:
        >>> mk.spatial.rotation_of(np.eye(4)).shape
        (3, 3)
    """
    return X[..., :3, :3]


def inverse(X: ArrayLike) -> Array:
    """Invert poses: return X_b_a for X_a_b.

    Args:
        X: (..., 4, 4).

    Returns:
        (..., 4, 4).

    Example:
        >>> mk.spatial.inverse(mk.spatial.translation([1, 2, 3]))[:3, 3]
        array([-1., -2., -3.])
    """
    M = np.asarray(X, dtype=np.float64)
    Rt = np.swapaxes(M[..., :3, :3], -1, -2)
    return make_pose(Rt, -rotate_vector(Rt, M[..., :3, 3]))


def apply(X: ArrayLike, points: ArrayLike) -> Array:
    """Transform points from frame b of X_a_b to frame a.

    Batch axes broadcast: a single pose transforms n points, (n, 3); m poses transform m points, (m, 3), one point for
    each pose. To transform n points by each of m poses, add an axis: X[:, None].

    Args:
        X: (..., 4, 4).
        points: (..., 3), in b.

    Returns:
        (..., 3), in a.

    Example:
        >>> mk.spatial.apply(mk.spatial.translation([1, 0, 0]), [0, 0, 2])
        array([1., 0., 2.])
    """
    M = np.asarray(X, dtype=np.float64)
    return rotate_vector(M[..., :3, :3], np.asarray(points, dtype=np.float64)) + M[..., :3, 3]


def rotate(X: ArrayLike, vectors: ArrayLike) -> Array:
    """Rotate vectors from frame b of X_a_b to frame a; the position is ignored.

    Args:
        X: (..., 4, 4).
        vectors: (..., 3), in b.

    Returns:
        (..., 3), in a.

    Example:
        >>> mk.spatial.rotate(mk.spatial.translation([1, 0, 0]), [0, 0, 2])
        array([0., 0., 2.])
    """
    M = np.asarray(X, dtype=np.float64)
    return rotate_vector(M[..., :3, :3], np.asarray(vectors, dtype=np.float64))


def is_pose(X: ArrayLike, tolerance: float = 1e-9) -> npt.NDArray[np.bool_]:
    """Return whether matrices are poses: finite, with a rotation and the last row 0, 0, 0, 1.

    Args:
        X: (..., 4, 4).
        tolerance: largest error of an entry of R^T R and of the last row.

    Returns:
        (...), bool.

    Example:
        >>> bool(mk.spatial.is_pose(2 * np.eye(4)))
        False
    """
    M = np.asarray(X, dtype=np.float64)
    is_last_row_valid = np.abs(M[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(axis=-1) <= tolerance
    return is_rotation(M[..., :3, :3], tolerance) & is_last_row_valid & np.isfinite(M).all(axis=(-1, -2))


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Pose:
    """A pose as an immutable value: position and orientation, validated and normalized, with read-only arrays.

    The quaternion is stored with w >= 0 (q and -q are the same rotation), so equal orientations compare equal.

    Args:
        position: (3,), in the unit of the caller.
        wxyz: quaternion (4,), of any norm except zero; default: no rotation.
        rpy: roll, pitch and yaw (3,), rad, instead of `wxyz`: rotations about the fixed axes x, y and z, in this order.

    Attributes:
        position: (3,), in the reference frame.
        wxyz: canonical unit quaternion (4,).

    Raises:
        ShapeError: an array has the wrong shape.
        NotFinite: a number is not finite.
        NotARotation: the quaternion is zero, or both `wxyz` and `rpy` are given.

    Example:
        >>> pose = mk.Pose((1, 0, 0), wxyz=(0, 0, 0, 1))
        >>> pose @ pose
        Pose(position=[0, 0, 0], wxyz=[1, 0, 0, 0])
    """

    position: Array
    wxyz: Array

    def __init__(
        self, position: ArrayLike = (0.0, 0.0, 0.0), wxyz: ArrayLike | None = None, *, rpy: ArrayLike | None = None
    ) -> None:
        p = _as_finite_array(position, (3,), "position of a pose")
        if rpy is None:
            q = _as_finite_array((1.0, 0.0, 0.0, 0.0) if wxyz is None else wxyz, (4,), "wxyz of a pose")
        elif wxyz is not None:
            raise NotARotation("a pose has one rotation: give either wxyz or rpy, not both")
        else:
            q = quaternion.from_rpy(_as_finite_array(rpy, (3,), "rpy of a pose"))
        q = quaternion.canonical(quaternion.normalize(q))
        # Adding zero copies the arrays and converts -0 to 0.
        p, q = p + 0.0, q + 0.0
        p.flags.writeable = q.flags.writeable = False
        object.__setattr__(self, "position", p)
        object.__setattr__(self, "wxyz", q)

    @staticmethod
    def identity() -> Pose:
        """Return the identity pose."""
        return Pose()

    @staticmethod
    def from_matrix(X: ArrayLike) -> Pose:
        """Convert a pose matrix, (4, 4); raises `ShapeError` for a batch, and the errors of `as_pose_matrix`.

        Args:
            X: (4, 4), rotation and position in the reference frame.
        """
        M = as_pose_matrix(X)
        if M.ndim != 2:
            raise ShapeError(f"a Pose is a single pose of shape (4, 4), not a batch of shape {M.shape}")
        return Pose(*to_position_wxyz(M))

    @property
    def matrix(self) -> Array:
        """The pose matrix, (4, 4)."""
        return from_position_wxyz(self.position, self.wxyz)

    def inverse(self) -> Pose:
        """Return the inverse pose: X_b_a for X_a_b."""
        wxyz = quaternion.conjugate(self.wxyz)
        return Pose(-quaternion.rotate(wxyz, self.position), wxyz)

    def apply(self, points: ArrayLike) -> Array:
        """Transform points (..., 3) from this pose's frame to the reference frame."""
        return apply(self.matrix, points)

    def isclose(self, other_pose: Pose, tolerance: float = 1e-9) -> bool:
        """Return whether positions (in their unit) and orientations (rad) differ by at most `tolerance`.

        Args:
            other_pose: the pose to compare with, in the same reference frame.
            tolerance: largest distance, and largest angle in rad.
        """
        distance = np.linalg.norm(self.position - other_pose.position)
        return bool(distance <= tolerance and quaternion.angle_between(self.wxyz, other_pose.wxyz) <= tolerance)

    def __matmul__(self, other_pose: Pose) -> Pose:
        if not isinstance(other_pose, Pose):
            return NotImplemented
        position = self.position + quaternion.rotate(self.wxyz, other_pose.position)
        return Pose(position, quaternion.multiply(self.wxyz, other_pose.wxyz))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[np.generic]:
        if copy is False:
            raise ValueError("a Pose computes its matrix on each call, so copy=False is not possible")
        return np.asarray(self.matrix, dtype=dtype)

    def __eq__(self, other_pose: object) -> bool:
        if not isinstance(other_pose, Pose):
            return NotImplemented
        return self._components() == other_pose._components()

    def __hash__(self) -> int:
        return hash(self._components())

    def __repr__(self) -> str:
        p, q = (", ".join(f"{x:.6g}" for x in array.tolist()) for array in (self.position, self.wxyz))
        return f"Pose(position=[{p}], wxyz=[{q}])"

    def __reduce__(self) -> tuple[type[Pose], tuple[Array, Array]]:
        # Unpickling calls the constructor, since a pickled array loses its read-only flag.
        return Pose, (self.position, self.wxyz)

    def _components(self) -> tuple[float, ...]:
        return (*self.position.tolist(), *self.wxyz.tolist())


def as_pose_matrix(pose: Pose | ArrayLike, what: str = "pose", *, tolerance: float = 1e-6) -> Array:
    """Validate poses and return them as matrices.

    Args:
        pose: a `Pose`, or (..., 4, 4).
        what: subject of error messages.
        tolerance: largest error of an entry of R^T R and of the last row; the default accepts matrices that were
            converted from float32.

    Returns:
        (..., 4, 4), float64.

    Raises:
        ShapeError: the argument is not an array of shape (..., 4, 4).
        NotFinite: a number is not finite.
        NotARotation: the rotation or the last row is invalid.

    Example:
        >>> mk.spatial.as_pose_matrix(mk.Pose((1, 2, 3)))[:3, 3]
        array([1., 2., 3.])
    """
    if isinstance(pose, Pose):
        return pose.matrix
    X = _as_float_array(pose, what)
    if X.shape[-2:] != (4, 4):
        raise ShapeError(f"{what} must have the shape (..., 4, 4), not {X.shape}")
    if not np.isfinite(X).all():
        raise NotFinite(f"{what} has an entry that is not finite")
    if not (np.abs(X[..., 3, :] - (0.0, 0.0, 0.0, 1.0)) <= tolerance).all():
        raise NotARotation(f"{what} has a last row other than 0, 0, 0, 1")
    if not is_rotation(X[..., :3, :3], tolerance).all():
        raise NotARotation(
            f"{what} has a 3x3 part that is not a rotation: it scales, shears or reflects. "
            "mechanik.spatial.rotation.nearest returns the closest rotation"
        )
    return X


def _as_finite_array(numbers: ArrayLike, shape: tuple[int, ...], label: str) -> Array:
    array = _as_float_array(numbers, label)
    if array.shape != shape:
        raise ShapeError(f"{label} must have the shape {shape}, not {array.shape}")
    if not np.isfinite(array).all():
        raise NotFinite(f"{label} has an entry that is not finite: {array.tolist()}")
    return array


def _as_float_array(values: ArrayLike, label: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{label} is not an array of numbers: {error}") from error
