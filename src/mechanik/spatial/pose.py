"""Rigid poses as 4x4 matrices, (..., 4, 4), and `Pose`, one of them as a value.

X_a_b is the pose of frame b in frame a: it takes coordinates in b to coordinates in a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.errors import NotARotation, NotFinite, ShapeError
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.rotation import is_rotation
from mechanik.spatial.vector import turned


def identity() -> Array:
    return np.eye(4)


def make(R: ArrayLike, p: ArrayLike) -> Array:
    """Rotation (..., 3, 3) and position (..., 3) to (..., 4, 4)."""
    M, p = np.asarray(R, dtype=np.float64), np.asarray(p, dtype=np.float64)
    batch = M.shape[:-2]
    if batch != p.shape[:-1]:
        batch = np.broadcast_shapes(batch, p.shape[:-1])
    out = np.zeros((*batch, 4, 4))
    out[..., :3, :3] = M
    out[..., :3, 3] = p
    out[..., 3, 3] = 1.0
    return out


def translation(p: ArrayLike) -> Array:
    """The pose at `p`, (..., 3), that is not turned."""
    p = np.asarray(p, dtype=np.float64)
    out = np.zeros((*p.shape[:-1], 4, 4))
    out[...] = np.eye(4)
    out[..., :3, 3] = p
    return out


def from_position_wxyz(p: ArrayLike, wxyz: ArrayLike) -> Array:
    """Position (..., 3) and quaternion (..., 4), of any length but zero, to (..., 4, 4)."""
    return make(quaternion.to_matrix(wxyz), p)


def to_position_wxyz(X: ArrayLike) -> tuple[Array, Array]:
    """Position (..., 3) and canonical unit quaternion (..., 4)."""
    M = np.asarray(X, dtype=np.float64)
    return M[..., :3, 3].copy(), quaternion.from_matrix(M[..., :3, :3])


def position_of(X: Array) -> Array:
    """(..., 3), a view into `X`."""
    return X[..., :3, 3]


def rotation_of(X: Array) -> Array:
    """(..., 3, 3), a view into `X`."""
    return X[..., :3, :3]


def inverse(X: ArrayLike) -> Array:
    """X_b_a from X_a_b."""
    M = np.asarray(X, dtype=np.float64)
    Rt = np.swapaxes(M[..., :3, :3], -1, -2)
    return make(Rt, -turned(Rt, M[..., :3, 3]))


def apply(X: ArrayLike, points: ArrayLike) -> Array:
    """The points (..., 3) in frame b of X_a_b, as points in a.

    Batch axes broadcast: one pose takes (n, 3) points; m poses take (m, 3), one each, and need
    a new axis, X[:, None], to take n points each.
    """
    M = np.asarray(X, dtype=np.float64)
    return turned(M[..., :3, :3], np.asarray(points, dtype=np.float64)) + M[..., :3, 3]


def rotate(X: ArrayLike, vectors: ArrayLike) -> Array:
    """As `apply`, for directions, which have no position."""
    M = np.asarray(X, dtype=np.float64)
    return turned(M[..., :3, :3], np.asarray(vectors, dtype=np.float64))


def is_pose(X: ArrayLike, tolerance: float = 1e-9) -> npt.NDArray[np.bool_]:
    """Whether the entries are finite, the rotation is one and the last row is 0, 0, 0, 1; (...)."""
    M = np.asarray(X, dtype=np.float64)
    row = np.abs(M[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(axis=-1) <= tolerance
    return is_rotation(M[..., :3, :3], tolerance) & row & np.isfinite(M).all(axis=(-1, -2))


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Pose:
    """A position (3,) and an orientation wxyz (4,), checked, normalised and read-only.

    Of the quaternions q and -q the one with w >= 0 is kept, so equal orientations compare equal.
    """

    position: Array
    wxyz: Array

    def __init__(self, position: ArrayLike = (0.0, 0.0, 0.0), wxyz: ArrayLike = (1.0, 0.0, 0.0, 0.0)) -> None:
        p = _checked(position, (3,), "position of a pose")
        q = quaternion.canonical(quaternion.normalize(_checked(wxyz, (4,), "wxyz of a pose")))
        # Adding zero copies, and makes the -0 of a changed sign 0.
        p, q = p + 0.0, q + 0.0
        p.flags.writeable = q.flags.writeable = False
        object.__setattr__(self, "position", p)
        object.__setattr__(self, "wxyz", q)

    @staticmethod
    def identity() -> Pose:
        return Pose()

    @staticmethod
    def from_matrix(X: ArrayLike) -> Pose:
        """From one pose matrix, (4, 4)."""
        M = as_pose_matrix(X)
        if M.ndim != 2:
            raise ShapeError(f"a Pose is one pose, shaped (4, 4), and this is a batch, shaped {M.shape}")
        return Pose(*to_position_wxyz(M))

    @property
    def matrix(self) -> Array:
        """(4, 4)."""
        return from_position_wxyz(self.position, self.wxyz)

    def inverse(self) -> Pose:
        wxyz = quaternion.conjugate(self.wxyz)
        return Pose(-quaternion.rotate(wxyz, self.position), wxyz)

    def apply(self, points: ArrayLike) -> Array:
        """The points (..., 3) in this pose's frame, as points in the frame that it is given in."""
        return apply(self.matrix, points)

    def isclose(self, other: Pose, tolerance: float = 1e-9) -> bool:
        """Whether positions differ by at most `tolerance` in length, and orientations in radians."""
        away = np.linalg.norm(self.position - other.position)
        return bool(away <= tolerance and quaternion.angle_between(self.wxyz, other.wxyz) <= tolerance)

    def __matmul__(self, other: Pose) -> Pose:
        if not isinstance(other, Pose):
            return NotImplemented
        position = self.position + quaternion.rotate(self.wxyz, other.position)
        return Pose(position, quaternion.multiply(self.wxyz, other.wxyz))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[np.generic]:
        if copy is False:
            raise ValueError("a Pose makes its matrix when asked, so there is none to share without a copy")
        return np.asarray(self.matrix, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pose):
            return NotImplemented
        return self._numbers() == other._numbers()

    def __hash__(self) -> int:
        return hash(self._numbers())

    def __repr__(self) -> str:
        p, q = (", ".join(f"{x:.6g}" for x in part.tolist()) for part in (self.position, self.wxyz))
        return f"Pose(position=[{p}], wxyz=[{q}])"

    def __reduce__(self) -> tuple[type[Pose], tuple[Array, Array]]:
        # Through the constructor, as a pickled array forgets that it was read-only.
        return Pose, (self.position, self.wxyz)

    def _numbers(self) -> tuple[float, ...]:
        return (*self.position.tolist(), *self.wxyz.tolist())


def as_pose_matrix(thing: Pose | ArrayLike, what: str = "pose", *, tolerance: float = 1e-6) -> Array:
    """The door for poses: (..., 4, 4) float64 from a `Pose` or an array-like, or an error naming `what`.

    Args:
        tolerance: how far off a rotation may be; by default a matrix that was once float32 passes.
    """
    if isinstance(thing, Pose):
        return thing.matrix
    X = _numeric(thing, what)
    if X.shape[-2:] != (4, 4):
        raise ShapeError(f"{what} has to be shaped (..., 4, 4), not {X.shape}")
    if not np.isfinite(X).all():
        raise NotFinite(f"{what} has an entry that is not finite")
    if not (np.abs(X[..., 3, :] - (0.0, 0.0, 0.0, 1.0)) <= tolerance).all():
        raise NotARotation(f"{what} has a last row other than 0, 0, 0, 1")
    if not is_rotation(X[..., :3, :3], tolerance).all():
        raise NotARotation(
            f"{what} has a 3x3 part that is no rotation, as it stretches or mirrors; "
            "mechanik.spatial.rotation.nearest gives the rotation closest to it"
        )
    return X


def _checked(numbers: ArrayLike, shape: tuple[int, ...], what: str) -> Array:
    array = _numeric(numbers, what)
    if array.shape != shape:
        raise ShapeError(f"{what} has to be shaped {shape}, not {array.shape}")
    if not np.isfinite(array).all():
        raise NotFinite(f"{what} has an entry that is not finite: {array.tolist()}")
    return array


def _numeric(thing: ArrayLike, what: str) -> Array:
    try:
        return np.asarray(thing, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{what} is not an array of numbers: {error}") from error
