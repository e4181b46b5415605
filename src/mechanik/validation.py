"""Validation of user input: numbers, vectors, poses, rotations, axes, limits, sizes and random generators.

The argument `label` is the subject of error messages. For `as_point_or_pose`, `as_axes_wxyz` and `as_limits` it is the
name of the joint, link or goal, and the message adds which of its properties is invalid. Two helpers format counts and
make arrays read-only.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from mechanik.errors import DoFError, InvalidArgument, NotARotation, NotFinite, ShapeError, StructureError
from mechanik.spatial import Pose, as_pose_matrix, from_position_wxyz, quaternion, rotation, translation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.rotation import is_rotation
from mechanik.spatial.vector_math import unit


def as_vector(values: ArrayLike, size: int, label: str) -> Array:
    """Convert to a finite float64 vector of length `size`, as a copy.

    Raises:
        ShapeError: the argument does not consist of `size` numbers.
        NotFinite: a number is not finite.
    """
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{label} must have {size} numbers, not {values!r}") from None
    if vector.shape != (size,):
        raise ShapeError(f"{label} must have {size} numbers, not an array of shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise NotFinite(f"{label} is {vector.tolist()}; every number must be finite")
    return vector


def as_number(value: object, label: str, allow_infinite: bool = False) -> float:
    """Convert to a float; infinities are allowed only with `allow_infinite`.

    Raises:
        ShapeError: the argument is not a number.
        NotFinite: the number is NaN, or infinite without `allow_infinite`.
    """
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ShapeError(f"{label} must be a number, not {value!r}") from None
    if math.isnan(number) or (math.isinf(number) and not allow_infinite):
        raise NotFinite(f"{label} is {number}; it must be {'a number' if allow_infinite else 'finite'}")
    return number


def as_numbers(values: tuple[ArrayLike, ...], size: int, label: str, allow_infinite: bool = False) -> list[float]:
    """Convert variadic arguments, either numbers or one array, to a list of `size` floats.

    Raises:
        ShapeError: the arguments are not `size` numbers.
        NotFinite: a number is NaN, or infinite without `allow_infinite`.
    """
    try:
        vector = np.array(values[0] if len(values) == 1 else values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{label} must be numbers, not {values!r}") from None
    if vector.ndim > 1 or vector.size != size:
        raise ShapeError(f"{label}: {format_count(vector.size, 'value')} given, {size} needed")
    return [as_number(value, label, allow_infinite) for value in vector.reshape(-1)]


def read_only(array: Array) -> Array:
    """Make an array read-only, in place, and return it."""
    array.flags.writeable = False
    return array


def format_count(count: int, noun: str) -> str:
    """Format a count with its noun: 1 link, 2 links."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


AxisLike = Literal["x", "y", "z", "-x", "-y", "-z"] | ArrayLike


def as_point_or_pose(point_or_pose: ArrayLike | Pose | None, label: str) -> Array:
    """Convert a point (3,), or a pose in a form of `as_single_pose`, to a pose matrix (4, 4); None is the identity.

    Raises:
        ShapeError: the argument is neither a point nor a pose.
        NotFinite: a number is not finite.
        NotARotation: the rotation of the pose is invalid.
    """
    if point_or_pose is None:
        return np.eye(4)
    shape = shape_of(point_or_pose)
    if shape == (3,):
        return translation(as_vector(point_or_pose, 3, f"position of {label!r}"))
    if shape not in ((4, 4), (7,)):
        raise ShapeError(
            f"position of {label!r} must be a point (3,) or a pose, (4, 4) or (7,) as position and wxyz, "
            f"not {point_or_pose!r}"
        )
    return np.array(as_single_pose(point_or_pose, f"pose of {label!r}"))


def as_axes_wxyz(axis: AxisLike, label: str) -> Array:
    """Return `axes_wxyz` of a joint about one axis: the quaternion (4,) that rotates z onto this axis.

    The axis is given as a vector (3,) or by name.

    Raises:
        DoFError: the name is unknown, or the vector is zero.
        ShapeError: the vector does not consist of three numbers.
        NotFinite: a number is not finite.
    """
    if isinstance(axis, str):
        sign, letter = (-1.0, axis[1:]) if axis.startswith("-") else (1.0, axis)
        if letter not in ("x", "y", "z"):
            raise DoFError(f"axis of {label!r} must be x, y, z, -x, -y, -z or a vector, not {axis!r}")
        direction = sign * np.eye(3)["xyz".index(letter)]
    else:
        direction = as_vector(axis, 3, f"axis of {label!r}")
        if np.linalg.norm(direction) < 1e-12:
            raise DoFError(f"axis of {label!r} is zero; it must be a vector of any length except zero")
    return quaternion.from_matrix(rotation.between(np.array([0.0, 0.0, 1.0]), direction))


def as_limits(limits: Any, size: int, label: str) -> list[Array]:
    """Convert (lower, upper), each a number for all dofs or an array with one for each dof, to two arrays (size,).

    Raises:
        StructureError: the argument is not a pair, or a bound is neither a number nor `size` numbers.
    """
    if not hasattr(limits, "__len__") or isinstance(limits, str) or len(limits) != 2:
        raise StructureError(f"limits of {label!r} must be (lower, upper), not {limits!r}")
    try:
        return [np.broadcast_to(np.asarray(bound, dtype=np.float64), size) for bound in limits]
    except (TypeError, ValueError):
        raise StructureError(
            f"limits of {label!r} must be two numbers, or two lists of {format_count(size, 'number')}, not {limits!r}"
        ) from None


QUATERNION_TOLERANCE = 1e-3
"""Largest deviation of the norm of a quaternion from 1. Rounding in text files causes a smaller deviation; most wrong
arguments have a larger one."""


def as_point(point: ArrayLike, label: str) -> Array:
    """Return a finite read-only point (3,); raises the exceptions of `as_vector`."""
    return read_only(as_vector(point, 3, label))


def as_direction(direction: ArrayLike, label: str) -> Array:
    """Return a read-only unit vector (3,) along a vector of any length except zero.

    Raises:
        ShapeError: the vector does not consist of three numbers.
        NotFinite: a number is not finite.
        NotARotation: the vector is zero.
    """
    vector = as_vector(direction, 3, label)
    # a unit vector is not changed, so that saving and loading gives the same numbers
    return read_only(vector if abs(vector @ vector - 1.0) < 2e-15 else unit(vector, label))


def as_quaternion(wxyz: ArrayLike, label: str) -> Array:
    """Return a read-only unit quaternion wxyz (4,).

    Raises:
        ShapeError: the argument does not consist of four numbers.
        NotFinite: a number is not finite.
        NotARotation: the norm differs from 1 by more than `QUATERNION_TOLERANCE`.
    """
    values = as_vector(wxyz, 4, label)
    norm = float(np.linalg.norm(values))
    if abs(norm - 1.0) > QUATERNION_TOLERANCE:
        raise NotARotation(f"{label} has the norm {norm:.4g}; a quaternion (w, x, y, z) must have the norm 1")
    return read_only(quaternion.normalize(values))


def matrix_of(value: Any) -> Any:
    """Return the matrix of a pose or rotation object; other values are returned unchanged.

    The objects are a `Pose`, and those of other libraries, which are not imported: `Rotation` and `RigidTransform` of
    scipy (and others with `as_matrix()`), and `SE3` of Pinocchio (`homogeneous`).
    """
    if isinstance(value, np.ndarray | list | tuple):
        return value  # type: ignore[return-value]
    if isinstance(value, Pose):
        return value.matrix
    as_matrix = getattr(value, "as_matrix", None)
    return as_matrix() if callable(as_matrix) else getattr(value, "homogeneous", value)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array-like value, or of the matrix of a pose or rotation object; () for other values."""
    try:
        return np.shape(matrix_of(value))
    except ValueError:  # lists of different lengths
        return ()


ROTATION_FORMS = "a rotation (3, 3), a quaternion wxyz (4,), a rotation object, or a pose"
"""Forms of a rotation, for messages."""


def as_rotation_matrix(rotation: ArrayLike | Pose, label: str) -> Array:
    """Return a read-only rotation matrix (3, 3).

    Args:
        rotation: (3, 3), a quaternion wxyz (4,), an object as for `matrix_of`, or a pose in a form of `as_single_pose`,
            whose position is ignored.
        label: subject of error messages.

    Raises:
        ShapeError: the argument has another form.
        NotFinite: a number is not finite.
        NotARotation: the matrix or the quaternion is not a rotation.
    """
    if isinstance(rotation, Pose):
        return read_only(quaternion.to_matrix(rotation.wxyz))
    try:
        R = np.array(matrix_of(rotation), dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{label} must be {ROTATION_FORMS}, not {rotation!r}") from None
    if R.shape == (4,):
        return read_only(quaternion.to_matrix(as_quaternion(R, label)))
    if R.shape in ((4, 4), (7,)):
        return read_only(as_single_pose(R, label)[:3, :3].copy())
    if R.shape != (3, 3):
        raise ShapeError(f"{label} must be {ROTATION_FORMS}, not an array of shape {R.shape}")
    if not np.isfinite(R).all():
        raise NotFinite(f"{label} has an entry that is not finite")
    if not is_rotation(R, 1e-6):
        raise NotARotation(
            f"{label} is not a rotation: its columns must be perpendicular unit vectors of a right-handed frame"
        )
    return read_only(R)


def as_single_pose(pose: ArrayLike | Pose, label: str) -> Array:
    """Return a read-only pose (4, 4).

    Args:
        pose: (4, 4), position and quaternion wxyz (7,), or an object as for `matrix_of`.
        label: subject of error messages.

    Raises:
        ShapeError: the argument is not one pose.
        NotFinite: a number is not finite.
        NotARotation: the rotation or the last row is invalid.
    """
    if isinstance(pose, Pose):
        return read_only(pose.matrix)
    values = matrix_of(pose)
    shape = shape_of(values)
    if shape == (7,):
        numbers = as_vector(values, 7, label)
        return read_only(from_position_wxyz(numbers[:3], as_quaternion(numbers[3:], f"quaternion of {label}")))
    if shape == (3, 3):
        raise ShapeError(f"{label} is a rotation without a position; give a pose, as in mk.Pose(position, rpy=...)")
    X = np.array(as_pose_matrix(values, label))
    if X.ndim != 2:
        raise ShapeError(f"{label} must be one pose of shape (4, 4), not a batch of shape {X.shape}")
    return read_only(X)


def as_rng(rng: np.random.Generator) -> np.random.Generator:
    """Return `rng`; raises `InvalidArgument` if it is not a NumPy generator, such as an integer seed or None."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidArgument(f"rng must be a generator, such as numpy.random.default_rng(0), not {rng!r}")
    return rng


def check_sizes(label: object, *sizes: float) -> None:
    """Raise `ShapeError` or `NotFinite` unless all sizes (m) are finite numbers of zero or more."""
    if not all(isinstance(size, int | float | np.integer | np.floating) for size in sizes):
        raise ShapeError(f"{label}: sizes must be numbers")
    if not all(np.isfinite(size) for size in sizes):
        raise NotFinite(f"{label}: sizes must be finite")
    if any(size < 0 for size in sizes):
        raise ShapeError(f"{label}: sizes must not be negative")


def as_finite_array(label: str, values: ArrayLike) -> Array:
    """Return a finite read-only copy; -0 becomes 0, so that equal arrays have equal bytes and hashes.

    Args:
        label: subject of error messages.
        values: numbers, of any shape.

    Raises:
        ShapeError: the argument is not an array of numbers.
        NotFinite: a number is not finite.
    """
    try:
        array = np.array(values, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        raise ShapeError(f"{label} must be an array of numbers, with rows of equal length") from None
    if not np.isfinite(array).all():
        raise NotFinite(f"{label} must be finite")
    array.setflags(write=False)
    return array


def check_positive_numbers(label: str, **numbers: float) -> None:
    """Raise `StructureError` unless each number is positive and finite; its keyword is its name in the message."""
    for name, number in numbers.items():
        if not isinstance(number, int | float):
            raise StructureError(f"{label}: {name} must be a number, not {number!r}")
        if not (math.isfinite(number) and number > 0):
            raise StructureError(f"{label}: {name} must be positive and finite, not {number}")


def check_planar_point(label: str, name: str, point: tuple[float, float]) -> None:
    """Raise `StructureError` unless the point, named `name` in the message, consists of two finite numbers, m."""
    try:
        x, y = point
        is_finite = math.isfinite(x) and math.isfinite(y)
    except (TypeError, ValueError):
        is_finite = False
    if not is_finite:
        raise StructureError(f"{label}: {name} must be (x, y), two finite numbers (m), not {point!r}")


def check_finite_angles(label: str, **angles: float) -> None:
    """Raise `StructureError` unless each angle is a finite number, rad; its keyword is its name in the message."""
    for name, angle in angles.items():
        if not isinstance(angle, int | float):
            raise StructureError(f"{label}: {name} must be a number, not {angle!r}")
        if not math.isfinite(angle):
            raise StructureError(f"{label}: {name} must be finite, not {angle} rad")


def check_flags(options: object, *names: str) -> None:
    """Raise `InvalidArgument` if one of the named attributes of `options` is not True or False."""
    for name in names:
        value = getattr(options, name)
        if not isinstance(value, bool):
            raise InvalidArgument(f"{name} must be True or False, not {value!r}")
