"""Constraints on the position and rotation of a link, and their translation into relations.

A position constraint (point, line, plane) has a point `local` (m, in the link) and a point `target` (m, in the world,
or in the link that the goal is relative to). A rotation constraint fixes the rotation, aligns an axis, or makes two
axes perpendicular.

Relations: frame A is at the target, frame B at the constrained frame of the link. The direction of a constraint is z of
A, or x of A if z is an aligned axis perpendicular to the direction. Frames that coincide still coincide after both are
rotated by the same rotation about their own axes. So A can have the axes that the position constraint needs, if B is
rotated by the same rotation. Therefore most goals need only one relation.

Partial poses: the free dofs move like those of a joint, B = A T(x, y, z) Rz Ry Rx, with zeros for the constrained dofs.
Three constrained rotations give the rotation rows of a pose. Two constrained rotations align one axis of A with the
same axis of B. One constrained rotation makes an axis of A perpendicular to an axis of B:

| free rotations | rotation of B | perpendicular axes |
|---|---|---|
| EX EY | Ry Rx | y of A and x of B |
| EY EZ | Rz Ry | z of A and y of B |
| EX EZ | Rz Rx | z of A and x of B |

Klampt's residuals (`klampt_residual`), determined by comparison with Klampt 0.10:

| constraint | residual |
|---|---|
| PointConstraint | point of the link minus target, along the axes of the world (m) |
| LineConstraint | the same difference along y and z, after the smallest rotation that maps x to the direction (m) |
| PlaneConstraint | the same difference along the direction (m) |
| FixedRotation | rotation vector from the target to the link, along the axes of the world (rad) |
| AlignedAxes | 1 - cosine of the angle + abs(y or z) of the link's axis, y and z as for LineConstraint |

A residual row of `AlignedAxes` has a kink where its y or z is zero; there its derivative is that for positive values.
Klampt has no `PerpendicularAxes`. Between two links Klampt supports `PointConstraint` and `FixedRotation` only. Here
the other constraints of the table are possible too; they move with the link of the target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from mechanik.errors import DoFError, ObjectiveError
from mechanik.model.dof import ROTATIONS, DoF, DoFLike, as_dofs
from mechanik.model.kinematics import Z_TO_AXIS
from mechanik.model.mechanism import Mechanism
from mechanik.objectives.relation import Relation, RelationKind, TargetPart, TargetWrite
from mechanik.spatial import Pose, apply, make_pose, quaternion, rotate, rotation, translation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector_math import cross, length, unit
from mechanik.validation import as_direction, as_point, as_rotation_matrix, read_only
from mechanik.value_object import ValueObject

LINK_ORIGIN = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class PointConstraint(ValueObject):
    """Position constraint: the point `local` of the link is at `target`.

    Args:
        target: (3,), m, in the world, or in the link that the goal is relative to.
        local: (3,), m, in the link.

    Example:
        >>> constraint = mk.objectives.PointConstraint((0.5, 0.3, 0.0))
        >>> constraint.nearest(np.zeros(3)).tolist()
        [0.5, 0.3, 0.0]
    """

    target: Array
    local: Array

    ROWS: ClassVar[tuple[int, ...]] = (0, 1, 2)
    """Constrained coordinates, in a frame at `target` whose z is the direction of the constraint, if it has one."""

    def __init__(self, target: ArrayLike, local: ArrayLike = LINK_ORIGIN) -> None:
        object.__setattr__(self, "target", as_point(target, "target point"))
        object.__setattr__(self, "local", as_point(local, "point of the link"))

    def transform(self, X: Array) -> PointConstraint:
        """Return the constraint with its target moved by X (4, 4)."""
        return PointConstraint(apply(X, self.target), self.local)

    def transform_local(self, X: Array) -> PointConstraint:
        """Return the constraint with its point in the link moved by X (4, 4), given in the link's frame."""
        return PointConstraint(self.target, apply(X, self.local))

    def with_target(self, target: ArrayLike) -> PointConstraint:
        """Return the constraint with another target point (3,), m."""
        return PointConstraint(target, self.local)

    def nearest(self, point: Array) -> Array:
        """Return the allowed point nearest to `point` (3,), m."""
        return self.target

    def sample(self, rng: np.random.Generator, radius: float) -> Array:
        """Return a random allowed point, at most `radius` (m) from the target.

        Args:
            rng: source of random numbers; not used, since the target is the only allowed point.
            radius: m; not used.
        """
        return self.target


@dataclass(frozen=True, slots=True, eq=False)
class _DirectedConstraint(ValueObject):
    """Position constraint with a direction at its target."""

    target: Array
    direction: Array
    local: Array

    ROWS: ClassVar[tuple[int, ...]]

    def __init__(self, target: ArrayLike, direction: ArrayLike, local: ArrayLike = LINK_ORIGIN) -> None:
        object.__setattr__(self, "target", as_point(target, "target point"))
        object.__setattr__(self, "direction", as_direction(direction, f"direction of a {type(self).__name__}"))
        object.__setattr__(self, "local", as_point(local, "point of the link"))

    def transform(self, X: Array) -> Self:
        """Return the constraint with target and direction moved by X (4, 4)."""
        return replace(self, target=apply(X, self.target), direction=rotate(X, self.direction))

    def transform_local(self, X: Array) -> Self:
        """Return the constraint with its point in the link moved by X (4, 4), given in the link's frame."""
        return replace(self, local=apply(X, self.local))

    def with_target(self, target: ArrayLike) -> Self:
        """Return the constraint through another target point (3,), m, with the same direction."""
        return replace(self, target=target)

    def _component_along(self, point: Array) -> Array:
        """Return the part, parallel to `direction`, of the vector from the target to `point`."""
        return float(self.direction @ (point - self.target)) * self.direction


class LineConstraint(_DirectedConstraint):
    """Position constraint: the point `local` of the link lies on the line through `target` along `direction`.

    Args:
        target: (3,), m, in the world, or in the link that the goal is relative to.
        direction: (3,), of any nonzero length, in the frame of the target.
        local: (3,), m, in the link.

    Example:
        >>> constraint = mk.objectives.LineConstraint((0.0, 0.1, 0.0), (2.0, 0.0, 0.0))
        >>> constraint.nearest(np.array([0.5, 0.3, 0.2])).tolist()
        [0.5, 0.1, 0.0]
    """

    __slots__ = ()
    ROWS = (0, 1)

    def nearest(self, point: Array) -> Array:
        """Return the point (3,) on the line that is nearest to `point` (3,); both m, in the frame of the target."""
        return self.target + self._component_along(point)

    def sample(self, rng: np.random.Generator, radius: float) -> Array:
        """Return a random point (3,), m, on the line, in the frame of the target.

        Args:
            rng: source of random numbers.
            radius: m, largest distance from the target; the distribution is uniform along the line.
        """
        return self.target + rng.uniform(-radius, radius) * self.direction


class PlaneConstraint(_DirectedConstraint):
    """Position constraint: the point `local` of the link lies in the plane through `target` with normal `direction`.

    Args:
        target: (3,), m, in the world, or in the link that the goal is relative to.
        direction: (3,), of any nonzero length, in the frame of the target.
        local: (3,), m, in the link.

    Example:
        >>> constraint = mk.objectives.PlaneConstraint((0.0, 0.0, 0.1), (0.0, 0.0, 1.0))
        >>> constraint.nearest(np.array([0.5, 0.3, 0.0])).tolist()
        [0.5, 0.3, 0.1]
    """

    __slots__ = ()
    ROWS = (2,)

    def nearest(self, point: Array) -> Array:
        """Return the point (3,) in the plane that is nearest to `point` (3,); both m, in the frame of the target."""
        return point - self._component_along(point)

    def sample(self, rng: np.random.Generator, radius: float) -> Array:
        """Return a random point (3,), m, in the plane, in the frame of the target.

        Args:
            rng: source of random numbers.
            radius: m, largest distance from the target; the point is the projection of a uniform point in a ball.
        """
        return self.nearest(self.target + random_point_in_ball(rng, radius))


PositionConstraint = PointConstraint | LineConstraint | PlaneConstraint


def random_point_in_ball(rng: np.random.Generator, radius: float) -> Array:
    """Return a point (3,), uniform in the ball of `radius` (m) about the origin."""
    direction = rng.standard_normal(3)
    return radius * rng.random() ** (1 / 3) * direction / np.linalg.norm(direction)


@dataclass(frozen=True, slots=True, eq=False)
class FixedRotation(ValueObject):
    """Rotation constraint: R_link local = target, all (3, 3).

    Args:
        target, local: rotation (3, 3), quaternion wxyz (4,) or pose; `target` in the world or in the link that the goal
            is relative to, `local` in the link.

    Example:
        >>> constraint = mk.objectives.FixedRotation((0.0, 0.0, 0.0, 1.0))
        >>> constraint.link_rotation.round(3).diagonal().tolist()
        [-1.0, -1.0, 1.0]
    """

    target: Array
    local: Array

    def __init__(self, target: ArrayLike | Pose, local: ArrayLike | Pose = (1.0, 0.0, 0.0, 0.0)) -> None:
        object.__setattr__(self, "target", as_rotation_matrix(target, "target rotation"))
        object.__setattr__(self, "local", as_rotation_matrix(local, "rotation in the link"))

    @property
    def link_rotation(self) -> Array:
        """Rotation (3, 3) of the link that meets the constraint."""
        return self.target @ self.local.T

    def transform(self, X: Array) -> FixedRotation:
        """Return the constraint with its target moved by X (4, 4)."""
        return FixedRotation(X[:3, :3] @ self.target, self.local)

    def transform_local(self, X: Array) -> FixedRotation:
        """Return the constraint with `local` moved by X (4, 4), given in the link's frame."""
        return FixedRotation(self.target, X[:3, :3] @ self.local)

    def match(self, R: Array) -> FixedRotation:
        """Return the constraint with its target changed such that a link with rotation R (3, 3) meets it."""
        return FixedRotation(R @ self.local, self.local)

    def nearest(self, R: Array) -> Array:
        """Return the allowed rotation (3, 3) nearest to R (3, 3)."""
        return self.link_rotation

    def sample(self, rng: np.random.Generator) -> Array:
        """Return a random allowed rotation (3, 3).

        Args:
            rng: source of random numbers; not used, since only one rotation is allowed.
        """
        return self.link_rotation


@dataclass(frozen=True, slots=True, eq=False)
class AlignedAxes(ValueObject):
    """Rotation constraint: the direction `local` of the link points along `target`; rotation about it is free.

    Args:
        target: (3,), of any nonzero length, in the world or in the link that the goal is relative to.
        local: (3,), of any nonzero length, in the link; default: its z.

    Example:
        >>> constraint = mk.objectives.AlignedAxes((1.0, 0.0, 0.0))
        >>> (constraint.nearest(np.eye(3)) @ constraint.local).round(3).tolist()
        [1.0, 0.0, 0.0]
    """

    target: Array
    local: Array

    def __init__(self, target: ArrayLike, local: ArrayLike = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "target", as_direction(target, "target axis"))
        object.__setattr__(self, "local", as_direction(local, "axis of the link"))

    def transform(self, X: Array) -> AlignedAxes:
        """Return the constraint with its target axis rotated by X (4, 4)."""
        return AlignedAxes(rotate(X, self.target), self.local)

    def transform_local(self, X: Array) -> AlignedAxes:
        """Return the constraint with its axis in the link rotated by X (4, 4), given in the link's frame."""
        return AlignedAxes(self.target, rotate(X, self.local))

    def match(self, R: Array) -> AlignedAxes:
        """Return the constraint with its target axis changed such that a link with rotation R (3, 3) meets it."""
        return AlignedAxes(R @ self.local, self.local)

    def nearest(self, R: Array) -> Array:
        """Return the rotation (3, 3) of a link with aligned axes that is nearest to R (3, 3)."""
        return rotation.between(R @ self.local, self.target) @ R

    def sample(self, rng: np.random.Generator) -> Array:
        """Return a random rotation (3, 3) of a link with aligned axes.

        Args:
            rng: source of random numbers; the angle about the target axis is uniform over a full revolution.
        """
        rotation_about_target = rotation.from_axis_angle(self.target, rng.uniform(-np.pi, np.pi))
        return rotation_about_target @ rotation.between(self.local, self.target)


@dataclass(frozen=True, slots=True, eq=False)
class PerpendicularAxes(ValueObject):
    """Rotation constraint: the direction `local` of the link is perpendicular to `target`.

    A `PoseGoal` with one constrained rotation is equivalent to such a constraint.

    Args:
        target: (3,), of any nonzero length, in the world or in the link that the goal is relative to.
        local: (3,), of any nonzero length, in the link.

    Example:
        >>> constraint = mk.objectives.PerpendicularAxes((0.0, 0.0, 1.0), (0.0, 1.0, 1.0))
        >>> R = constraint.nearest(np.eye(3))
        >>> abs(constraint.target @ R @ constraint.local).round(9)
        np.float64(0.0)
    """

    target: Array
    local: Array

    def __init__(self, target: ArrayLike, local: ArrayLike) -> None:
        object.__setattr__(self, "target", as_direction(target, "target axis"))
        object.__setattr__(self, "local", as_direction(local, "axis of the link"))

    def transform(self, X: Array) -> PerpendicularAxes:
        """Return the constraint with its target axis rotated by X (4, 4)."""
        return PerpendicularAxes(rotate(X, self.target), self.local)

    def transform_local(self, X: Array) -> PerpendicularAxes:
        """Return the constraint with its axis in the link rotated by X (4, 4), given in the link's frame."""
        return PerpendicularAxes(self.target, rotate(X, self.local))

    def match(self, R: Array) -> PerpendicularAxes:
        """Return the constraint with its target axis changed such that a link with rotation R (3, 3) meets it.

        The target axis rotates as little as possible.
        """
        axis = R @ self.local
        return PerpendicularAxes(_perpendicular_to(self.target, axis), self.local)

    def nearest(self, R: Array) -> Array:
        """Return the rotation (3, 3) of a link with perpendicular axes that is nearest to R (3, 3)."""
        axis = R @ self.local
        return rotation.between(axis, _perpendicular_to(axis, self.target)) @ R

    def sample(self, rng: np.random.Generator) -> Array:
        """Return a random rotation (3, 3) of a link with perpendicular axes.

        Args:
            rng: source of random numbers; a uniform rotation is drawn and moved to the nearest allowed one.
        """
        return self.nearest(random_rotation(rng))


RotationConstraint = FixedRotation | AlignedAxes | PerpendicularAxes


def random_rotation(rng: np.random.Generator) -> Array:
    """Return a rotation (3, 3), uniform over all rotations."""
    return quaternion.to_matrix(quaternion.normalize(rng.standard_normal(4)))


def _perpendicular_to(vector: Array, axis: Array) -> Array:
    """Return the unit vector perpendicular to `axis` that is nearest to the direction `vector`."""
    projection = vector - (vector @ axis) * axis
    if length(projection) < 1e-9:  # all perpendicular directions are equally near
        projection = cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    projection = unit(projection, "a perpendicular direction")
    # the projection is repeated, since the first one loses digits
    return unit(projection - (projection @ axis) * axis, "a perpendicular direction")


DIRECTION_TOLERANCE = 1e-14
"""Sine below which two directions count as parallel, and cosine below which they count as perpendicular.

It is above rounding errors and too small to move a point noticeably."""

X_AXIS = np.array([1.0, 0.0, 0.0])
Z_AXIS = np.array([0.0, 0.0, 1.0])
FRAME_ORIGIN = np.zeros(3)


def pose_constraint_relations(
    position: PositionConstraint | None,
    orientation: RotationConstraint | None,
    *,
    a: str | None,
    b: str,
    weight: float,
) -> tuple[Relation, ...]:
    """Translate a position and a rotation constraint into relations, with as few relations as possible.

    Args:
        a: link to which the targets are fixed; None is the world.
        b: link with the points, axes and rotations `local`.
        weight: factor of the residual inside the solver.
    """

    def make_relation(
        kind: RelationKind,
        rows: tuple[int, ...],
        frame_a: tuple[Array, Array],
        frame_b: tuple[Array, Array],
        target_writes: tuple[TargetWrite, ...],
    ) -> Relation:
        """Make a relation between frames A and B, each given by its axes (3, 3) and its origin (3,)."""
        X_a, X_b = read_only(make_pose(*frame_a)), read_only(make_pose(*frame_b))
        return Relation(kind, rows, a, b, X_a, X_b, weight=weight, target_writes=target_writes)

    p_a, p_b = (FRAME_ORIGIN, FRAME_ORIGIN) if position is None else (position.target, position.local)
    rows = () if position is None else position.ROWS
    # the target of a goal with a position and an axis is a point, and the axis stays
    position_writes = () if position is None else (TargetWrite(TargetPart.A_POSITION),)
    axis_writes = (TargetWrite(TargetPart.A_DIRECTION),) if position is None else ()
    match orientation:
        case None:
            axes_a = np.eye(3) if position is None else _constraint_axes(position)
            return (make_relation(RelationKind.POSE, rows, (axes_a, p_a), (np.eye(3), p_b), position_writes),)
        case FixedRotation():
            axes_a, axes_b = orientation.target, orientation.local
            rotation_write = TargetWrite(TargetPart.A_ROTATION)
            if position is not None and not isinstance(position, PointConstraint):
                axes_a = _constraint_axes(position)
                axes_b = orientation.link_rotation.T @ axes_a
                rotation_write = TargetWrite(TargetPart.B_INVERSE_ROTATION, left=orientation.local, right=axes_a)
            target_writes = (*position_writes, rotation_write)
            return (make_relation(RelationKind.POSE, (*rows, 3, 4, 5), (axes_a, p_a), (axes_b, p_b), target_writes),)
        case AlignedAxes():
            axes_a, axes_b = axes_from_z(orientation.target), axes_from_z(orientation.local)
            if position is not None and not isinstance(position, PointConstraint):
                common_axes = _common_axes(orientation.target, position)
                if common_axes is None:
                    position_relations = pose_constraint_relations(position, None, a=a, b=b, weight=weight)
                    axis_frames = (axes_a, FRAME_ORIGIN), (axes_b, FRAME_ORIGIN)
                    return (*position_relations, make_relation(RelationKind.AXIS, (3, 4), *axis_frames, axis_writes))
                axes_a, rows = common_axes
            target_writes = (*position_writes, *axis_writes)
            return (make_relation(RelationKind.AXIS, (*rows, 3, 4), (axes_a, p_a), (axes_b, p_b), target_writes),)
        case PerpendicularAxes():
            cosine_relation = make_relation(
                RelationKind.COSINE,
                (0,),
                (axes_from_z(orientation.target), FRAME_ORIGIN),
                (axes_from_z(orientation.local), FRAME_ORIGIN),
                axis_writes,
            )
            if position is None:
                return (cosine_relation,)
            return (*pose_constraint_relations(position, None, a=a, b=b, weight=weight), cosine_relation)


def axes_from_z(z: Array, x: Array | None = None) -> Array:
    """Return axes (3, 3) with z along the unit vector `z`, and x along the perpendicular unit vector `x`, if given."""
    if x is None:
        return _axes_from_unit_z(*z.tolist())
    return np.stack([x, np.cross(z, x), z], axis=1)


def _axes_from_unit_z(x: float, y: float, z: float) -> Array:
    """Return the smallest rotation (3, 3) that maps z to the unit vector (x, y, z), as `rotation.between` does.

    This code for a single vector takes a tenth of the time of `rotation.between`.
    """
    scale = 1.0 / (1.0 + abs(z))
    xx, xy, yy = x * x * scale, x * y * scale, y * y * scale
    if z >= 0.0:
        return np.array([[1.0 - xx, -xy, x], [-xy, 1.0 - yy, y], [-x, -y, z]])
    sine_squared = x * x + y * y
    if sine_squared < 1e-20:
        return rotation.between(Z_AXIS, np.array([x, y, z]))
    # obtuse angle: the rotation to the opposite vector, then half a revolution about an axis in the xy plane
    a, b, c = 2.0 * y * y / sine_squared - 1.0, -2.0 * x * y / sine_squared, 2.0 * x * x / sine_squared - 1.0
    return np.array(
        [
            [a * (1.0 - xx) - b * xy, b * (1.0 - yy) - a * xy, -a * x - b * y],
            [b * (1.0 - xx) - c * xy, c * (1.0 - yy) - b * xy, -b * x - c * y],
            [-x, -y, z],
        ]
    )


def _constraint_axes(position: PositionConstraint) -> Array:
    return np.eye(3) if isinstance(position, PointConstraint) else axes_from_z(position.direction)


def _common_axes(axis: Array, position: PositionConstraint) -> tuple[Array, tuple[int, ...]] | None:
    """Return axes in which an aligned axis and a position constraint need one relation, or None if there are none.

    Returns:
        Axes (3, 3) with z along `axis`, and the indices of the axes along which the position is constrained.
    """
    if isinstance(position, PointConstraint):
        return axes_from_z(axis), position.ROWS
    if np.linalg.norm(np.cross(axis, position.direction)) < DIRECTION_TOLERANCE:
        return axes_from_z(axis), position.ROWS
    if abs(axis @ position.direction) < DIRECTION_TOLERANCE:
        # the direction becomes x, so rows along z become rows along x
        return axes_from_z(axis, position.direction), (0,) if position.ROWS == (2,) else (1, 2)
    return None


PERPENDICULAR_PAIRS = {DoF.EZ: (0, 1), DoF.EX: (1, 2), DoF.EY: (0, 2)}
"""For a single constrained rotation: an axis of B (0, 1, 2), and the axis of A to which this axis is perpendicular."""


def partial_pose_relations(
    constrained_dofs: Iterable[DoFLike],
    *,
    a: str | None,
    X_a: Array,
    b: str | None,
    X_b: Array,
    axes: Literal["goal", "world"] = "goal",
    weight: float = 1.0,
) -> tuple[Relation, ...]:
    """Return the relations whose residuals are zero where frame B is at frame A in the constrained dofs.

    Args:
        constrained_dofs: dofs among X Y Z EX EY EZ; if there are none, there is no relation.
        a, X_a: link to which the target is fixed (None: the world), and the target frame A in this link, (4, 4).
        b, X_b: link that should reach the target, and the frame B in this link, (4, 4).
        axes: whether the dofs are along the axes of A ("goal") or of the world ("world").
        weight: factor of the residual inside the solver.

    Raises:
        DoFError: `axes` is unknown, or the dofs are invalid.
    """
    if axes not in ("goal", "world"):
        raise DoFError(f"axes must be 'goal' or 'world', not {axes!r}")
    dofs = as_dofs(constrained_dofs)
    R_tool: Array | None = None
    if axes == "world" and a is None:
        # a target in the world does not move: A gets the axes of the world, and B is rotated by the inverse rotation
        R_tool = X_b[:3, :3]
        X_a, X_b, axes = translation(X_a[:3, 3]), X_b @ make_pose(X_a[:3, :3].T, np.zeros(3)), "goal"
    translations = [dof.axis_index for dof in dofs if not dof.is_rotation]
    rotations = [dof for dof in dofs if dof.is_rotation]
    # three translations or rotations, or none, are the same along any axes
    has_world_translations, has_world_rotations = (
        axes == "world" and 0 < len(group) < 3 for group in (translations, rotations)
    )

    def writes_of_pose(k_a: int, k_b: int) -> tuple[TargetWrite, ...]:
        """Return the parts that a target pose determines, with axis k_a of A and axis k_b of B permuted to z."""
        position_write = TargetWrite(TargetPart.A_POSITION)
        if R_tool is not None:
            R_right = Z_TO_AXIS[k_b][:3, :3]
            return position_write, TargetWrite(TargetPart.B_INVERSE_ROTATION, left=R_tool, right=R_right)
        return position_write, TargetWrite(TargetPart.A_ROTATION, right=None if k_a == 2 else Z_TO_AXIS[k_a][:3, :3])

    def make_relation(
        k: int, kind: RelationKind, translations: list[int], rotation_rows: list[int], has_world_axes: bool
    ) -> Relation:
        """Make a relation with the axes of A or of the world, permuted so that axis k becomes z."""
        rows = tuple(sorted((i - k - 1) % 3 for i in translations) + rotation_rows)
        k_frame = 2 if has_world_axes else k
        C = read_only(Z_TO_AXIS[k][:3, :3].copy()) if has_world_axes else None
        frames = read_only(X_a @ Z_TO_AXIS[k_frame]), read_only(X_b @ Z_TO_AXIS[k_frame])
        writes = writes_of_pose(k_frame, k_frame)
        return Relation(kind, rows, a, b, *frames, world_axes=C, weight=weight, target_writes=writes)

    if len(rotations) == 1 and not has_world_rotations:
        axis_b, axis_a = PERPENDICULAR_PAIRS[rotations[0]]
        frames = read_only(X_a @ Z_TO_AXIS[axis_a]), read_only(X_b @ Z_TO_AXIS[axis_b])
        writes = writes_of_pose(axis_a, axis_b)
        cosine_relation = Relation(RelationKind.COSINE, (0,), a, b, *frames, weight=weight, target_writes=writes)
        return (
            *([make_relation(2, RelationKind.POSE, translations, [], has_world_translations)] if translations else []),
            cosine_relation,
        )

    if len(rotations) == 3:
        k, kind, rotation_rows = 2, RelationKind.POSE, [3, 4, 5]
    elif len(rotations) == 2:
        k, kind, rotation_rows = (
            next(dof for dof in ROTATIONS if dof not in rotations).axis_index,
            RelationKind.AXIS,
            [3, 4],
        )
    elif rotations:
        # in world axes a COSINE row can only compare an axis with its own rotated image; instead, one component of the
        # tilt of axis k must be zero
        k, axis_a = PERPENDICULAR_PAIRS[rotations[0]]
        kind, rotation_rows = RelationKind.AXIS, [3 + (axis_a - k - 1) % 3]
    else:
        k, kind, rotation_rows = 2, RelationKind.POSE, []
    if translations and rotation_rows and has_world_translations != has_world_rotations:
        return make_relation(2, RelationKind.POSE, translations, [], has_world_translations), make_relation(
            k, kind, [], rotation_rows, has_world_rotations
        )
    return (
        (make_relation(k, kind, translations, rotation_rows, has_world_translations or has_world_rotations),)
        if dofs
        else ()
    )


def klampt_residual(
    mechanism: Mechanism,
    q: ArrayLike,
    a: str | None,
    b: str,
    position: PositionConstraint | None,
    orientation: RotationConstraint | None,
) -> tuple[Array, Array]:
    """Return Klampt's residual (m,) and Jacobian (m, nv) at q (nq,).

    Args:
        a: link to which the targets are fixed; None is the world.
        b: link with the points, axes and rotations `local`.

    Raises:
        ObjectiveError: Klampt has no such rotation constraint.
    """
    configuration = mechanism._single_q(q)
    blocks = [(np.zeros(0), np.zeros((0, mechanism.nv)))]
    if position is not None:
        blocks.append(_klampt_position(mechanism, configuration, a, b, position))
    if orientation is not None:
        blocks.append(_klampt_rotation(mechanism, configuration, a, b, orientation))
    return np.concatenate([residual for residual, _ in blocks]), np.concatenate([J for _, J in blocks])


def _klampt_position(
    mechanism: Mechanism, q: Array, a: str | None, b: str, constraint: PositionConstraint
) -> tuple[Array, Array]:
    R_a, p_a, J_a, J_angular_a = _point_motion(mechanism, q, a, constraint.target)
    _, p_b, J_b, _ = _point_motion(mechanism, q, b, constraint.local)
    difference = p_b - p_a
    if isinstance(constraint, PointConstraint):
        return difference, J_b - J_a
    axes = constraint.direction[None] if isinstance(constraint, PlaneConstraint) else _side_axes(constraint.direction)
    axes_world = axes @ R_a.T
    return axes_world @ difference, axes_world @ (J_b - J_a) + np.cross(axes_world, difference) @ J_angular_a


def _klampt_rotation(
    mechanism: Mechanism, q: Array, a: str | None, b: str, constraint: RotationConstraint
) -> tuple[Array, Array]:
    R_a, _, _, J_angular_a = _point_motion(mechanism, q, a, FRAME_ORIGIN)
    R_b, _, _, J_angular_b = _point_motion(mechanism, q, b, FRAME_ORIGIN)
    if isinstance(constraint, FixedRotation):
        rotation_error = R_b @ constraint.link_rotation.T @ R_a.T
        rotation_vector = rotation.log(rotation_error)
        J_relative = J_angular_b - rotation_error @ J_angular_a
        return rotation_vector, rotation.left_jacobian_inverse(rotation_vector) @ J_relative
    if isinstance(constraint, AlignedAxes):
        axis_world = R_b @ constraint.local
        axis = R_a.T @ axis_world
        axis_jacobian = R_a.T @ np.cross(J_angular_b - J_angular_a, axis_world[:, None], axis=0)
        side_axes = _side_axes(constraint.target)
        components = side_axes @ axis
        signs = np.where(components < 0.0, -1.0, 1.0)
        return 1.0 - constraint.target @ axis + np.abs(components), (
            signs[:, None] * side_axes - constraint.target
        ) @ axis_jacobian
    raise ObjectiveError("Klampt has no PerpendicularAxes constraint; use definition='mechanik'")


def _point_motion(mechanism: Mechanism, q: Array, link: str | None, point: Array) -> tuple[Array, Array, Array, Array]:
    """Return the rotation of a link (None: the world), its `point` in the world, and linear and angular Jacobian."""
    if link is None:
        no_motion = np.zeros((3, mechanism.nv))
        return np.eye(3), point, no_motion, no_motion
    X, J = mechanism.pose(link, q), mechanism.jacobian(link, q, point)
    return X[:3, :3], X[:3, :3] @ point + X[:3, 3], J[:3], J[3:]


def _side_axes(direction: Array) -> Array:
    """Return y and z, rotated by the smallest rotation that maps x to the direction, as rows (2, 3)."""
    return rotation.between(X_AXIS, direction)[:, 1:].T
