"""Objectives for the position and rotation of a link, relative to the world or to another link.

`LinkGoal` combines a position constraint and a rotation constraint (`pose_constraints.py`), as Klampt's IK objectives
do. The other classes are its common cases. `from_points` makes a goal from points and their target points.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal, Self, Unpack

import numpy as np

from mechanik.errors import DoFError, InvalidArgument, NotFinite, ObjectiveError, ShapeError
from mechanik.model.dof import ALL_DOFS, ROTATIONS, TRANSLATIONS, DoF, DoFLike, as_dofs
from mechanik.model.frame import Link
from mechanik.objectives.objective import Objective, ObjectiveOptions, ResidualDefinition, check_link, link_name
from mechanik.objectives.pose_constraints import (
    PERPENDICULAR_PAIRS,
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PerpendicularAxes,
    PlaneConstraint,
    PointConstraint,
    PositionConstraint,
    RotationConstraint,
    partial_pose_relations,
    pose_constraint_relations,
    random_point_in_ball,
    random_rotation,
)
from mechanik.objectives.relation import Relation
from mechanik.objectives.target_spec import POINT, POSE, POSITION_WXYZ, ROTATION, WXYZ, TargetSpec
from mechanik.spatial import Pose, make_pose, quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import (
    as_direction,
    as_number,
    as_point,
    as_quaternion,
    as_rng,
    as_rotation_matrix,
    as_single_pose,
    as_vector,
    shape_of,
)

if TYPE_CHECKING:
    from mechanik.model.mechanism import Mechanism


class LinkGoalOptions(ObjectiveOptions, total=False):
    """Keyword arguments of goals with a position and a rotation; `LinkGoal` describes them."""

    position_weight: float
    rotation_weight: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinkGoal(Objective):
    """Constraint on the position of a point of a link, on the rotation of the link, or on both.

    `PositionGoal`, `PoseGoal`, `HingeGoal`, `SurfaceGoal`, `OnLine`, `OnPlane`, `AxisGoal` and `OrientationGoal` are
    the common cases.

    Args:
        link: name of the link, or a `Link`; the name is stored.
        position: `PointConstraint` (3 rows), `LineConstraint` (2), `PlaneConstraint` (1), or None: the position is
            free.
        rotation: `FixedRotation` (3 rows), `AlignedAxes` (2), `PerpendicularAxes` (1), or None: the rotation is free.
        relative_to: link in whose frame the targets are given; None: the world.
        position_weight, rotation_weight: factors of the residuals in m and in rad, besides `weight`, above zero.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        ObjectiveError: neither position nor rotation is given, a weight is not above zero, or the link is relative to
            itself.
        InvalidArgument: an argument has the wrong type.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> on_line = mk.objectives.LineConstraint((0.0, 0.1, 0.0), (1.0, 0.0, 0.0))
        >>> print(mk.LinkGoal("tool", on_line).error(arm, [0.0, 0.0]))
        0.1 m
    """

    link: str
    position: PositionConstraint | None
    rotation: RotationConstraint | None
    relative_to: str | None
    position_weight: float
    rotation_weight: float

    def __init__(
        self,
        link: str | Link,
        position: PositionConstraint | None = None,
        rotation: RotationConstraint | None = None,
        *,
        relative_to: str | Link | None = None,
        position_weight: float = 1.0,
        rotation_weight: float = 1.0,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        Objective.__init__(self, **options)
        name = link_name(link)
        reference = None if relative_to is None else link_name(relative_to, "relative_to")
        if position is not None and not isinstance(position, PointConstraint | LineConstraint | PlaneConstraint):
            raise InvalidArgument(
                f"position of {self._label} must be a PointConstraint, LineConstraint or PlaneConstraint, "
                f"not {position!r}"
            )
        if rotation is not None and not isinstance(rotation, FixedRotation | AlignedAxes | PerpendicularAxes):
            raise InvalidArgument(
                f"rotation of {self._label} must be a FixedRotation, AlignedAxes or PerpendicularAxes, not {rotation!r}"
            )
        if position is None and rotation is None:
            raise ObjectiveError(f"{self._label} of link {name!r} has no constraint; give a position or a rotation")
        if name == reference:
            raise ObjectiveError(
                f"{self._label}: link {name!r} is relative to itself; choose another link for relative_to"
            )
        for field, value in (
            ("link", name),
            ("position", position),
            ("rotation", rotation),
            ("relative_to", reference),
            ("position_weight", self._as_weight("position_weight", position_weight)),
            ("rotation_weight", self._as_weight("rotation_weight", rotation_weight)),
        ):
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        reference = f" relative to {self.relative_to!r}" if self.relative_to is not None else ""
        return f"<{type(self).__name__}{name} of link {self.link!r}{reference}: {self._summary()}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a, b = self._ends(mechanism)
        position, rotation = self._effective_constraints()
        return self._weighted(pose_constraint_relations(position, rotation, a=a, b=b, weight=self.weight))

    def with_target(
        self,
        target: ArrayLike | Pose | None = None,
        *,
        position: ArrayLike | None = None,
        wxyz: ArrayLike | None = None,
        rpy: ArrayLike | None = None,
    ) -> Self:
        """Return the same goal with another target.

        Args:
            target: a point (3,), if the position is constrained: directions and rotation stay. A pose, if the rotation
                is a `FixedRotation`: it replaces position and rotation. Without a position constraint, a rotation
                for `FixedRotation`, a direction (3,) for the other constraints. Poses and rotations may have the forms
                that `PoseGoal` and `OrientationGoal` take.
            position, wxyz, rpy: instead of `target`, as for `PoseGoal`.

        Raises:
            ObjectiveError, ShapeError: the target does not fit the constraints.
        """
        named = named_target(f"target of {self._label}", position, wxyz, rpy)
        if (target is None) == (named is None):
            raise ObjectiveError(f"{self._label} needs one new target: give target, or position, wxyz or rpy by name")
        given = named if target is None else target
        numbers = self.target_spec.parse(given)
        own_position, own_rotation = self.position, self.rotation
        if own_position is None:
            assert own_rotation is not None
            return self._copy_with(rotation=type(own_rotation)(numbers, own_rotation.local))
        if not isinstance(own_rotation, FixedRotation):
            return self._copy_with(position=own_position.with_target(numbers))
        if shape_of(given) != POINT:
            own_rotation = FixedRotation(numbers[:3, :3], own_rotation.local)
        return self._copy_with(position=own_position.with_target(numbers[:3, 3]), rotation=own_rotation)

    @property
    def target_spec(self) -> TargetSpec:
        """Declaration of the target: a pose, a point, a rotation, or the direction of an axis."""
        position, rotation = self.position, self.rotation
        if isinstance(rotation, FixedRotation):
            if position is None:
                return TargetSpec(rotation.target, self._parse_target, (ROTATION, WXYZ, POSE, POSITION_WXYZ))
            X = make_pose(rotation.target, position.target)
            return TargetSpec(X, self._parse_target, (POSE, POSITION_WXYZ, POINT))
        constraint = rotation if position is None else position
        assert constraint is not None
        return TargetSpec(constraint.target, self._parse_target, (POINT,))

    def _parse_target(self, target: ArrayLike | Pose) -> Array:
        """Return a target as an array: a pose (4, 4), a point or direction (3,), or a rotation (3, 3)."""
        label, shape = f"target of {self._label}", shape_of(target)
        position, rotation = self.position, self.rotation
        if position is None:
            if isinstance(rotation, FixedRotation):
                return as_rotation_matrix(target, label)
            if shape == POINT:
                return as_direction(target, label)  # type: ignore[arg-type]
        elif not isinstance(rotation, FixedRotation):
            if shape == POINT:
                return as_point(target, label)  # type: ignore[arg-type]
        elif shape == POINT:
            return make_pose(rotation.target, as_point(target, label))  # type: ignore[arg-type]
        elif shape in (POSE, POSITION_WXYZ):
            return as_single_pose(target, label)
        elif shape in (ROTATION, WXYZ):
            raise ObjectiveError(
                f"{label} must be a pose, or a point, not a rotation without a position; "
                "give position=... with rpy=... or wxyz=..."
            )
        expected = "a direction" if position is None else "a point"
        expected = f"a pose, or {expected}" if isinstance(rotation, FixedRotation) else expected
        raise ObjectiveError(f"{label} must be {expected}, not an array of shape {shape}")

    # ---- transforms and poses that meet the goal --------------------------------------------

    def transform(self, X: ArrayLike | Pose) -> Self:
        """Return the goal with targets moved by X (4, 4).

        The error of the new goal with the link at X @ X_world_link equals the error of the original goal with the link
        at X_world_link. With `relative_to`, X and both poses are in the frame of the link `relative_to`.
        """
        X_matrix = as_single_pose(X, "transform")
        position, rotation = self.position, self.rotation
        return self._copy_with(
            position=None if position is None else position.transform(X_matrix),
            rotation=None if rotation is None else rotation.transform(X_matrix),
        )

    def transform_local(self, X: ArrayLike | Pose) -> Self:
        """Return the goal with its points, axes and rotations in the link moved by X (4, 4), given in the link's frame.

        The error of the new goal with the link at X_world_link @ inverse(X) equals the error of the original goal with
        the link at X_world_link.
        """
        X_matrix = as_single_pose(X, "local transform")
        position, rotation = self.position, self.rotation
        return self._copy_with(
            position=None if position is None else position.transform_local(X_matrix),
            rotation=None if rotation is None else rotation.transform_local(X_matrix),
        )

    def match_destination(self, X: ArrayLike | Pose) -> Self:
        """Return the goal with its targets changed such that a link at X (4, 4) meets it.

        Target points, axes and rotations are taken from X; the directions of lines and planes stay.

        Args:
            X: pose of the link in the world, or in the link `relative_to`.
        """
        X_matrix = as_single_pose(X, "pose to match")
        position, rotation = self.position, self.rotation
        return self._copy_with(
            position=None
            if position is None
            else position.with_target(X_matrix[:3, :3] @ position.local + X_matrix[:3, 3]),
            rotation=None if rotation is None else rotation.match(X_matrix[:3, :3]),
        )

    def closest_match(self, X: ArrayLike | Pose) -> Array:
        """Return the pose (4, 4) of the link that meets the goal and is closest to X (4, 4).

        First the rotation from X is made as small as possible, then the translation. Both poses are in the world, or in
        the link `relative_to`.

        Raises:
            ObjectiveError: a `PoseGoal` is relative to a link and constrains dofs along the axes of the world.
        """
        X_matrix = as_single_pose(X, "pose to start from")
        position, rotation = self._effective_constraints()
        R, p = X_matrix[:3, :3], X_matrix[:3, 3]
        if rotation is not None:
            R = rotation.nearest(R)
        if position is not None:
            p = position.nearest(R @ position.local + p) - R @ position.local
        return make_pose(R, p)

    def sample(self, rng: np.random.Generator, radius: float = 1.0) -> Array:
        """Return a random pose (4, 4) of the link that meets the goal, in the world or in the link `relative_to`.

        Args:
            rng: a NumPy generator.
            radius: m; largest distance of the link's point from its target along free directions. Without a position
                constraint, largest distance of the link from the origin.

        Raises:
            ObjectiveError: the radius is negative, or the goal is invalid as in `closest_match`.
            InvalidArgument: `rng` is not a NumPy generator.
        """
        rng, radius = as_rng(rng), as_number(radius, "radius")
        if radius < 0.0:
            raise ObjectiveError(f"radius is {radius:g} m; it must not be negative")
        position, rotation = self._effective_constraints()
        R = random_rotation(rng) if rotation is None else rotation.sample(rng)
        if position is None:
            return make_pose(R, random_point_in_ball(rng, radius))
        return make_pose(R, position.sample(rng, radius) - R @ position.local)

    # ---- private ----------------------------------------------------------------------------

    def _as_weight(self, name: str, value: float) -> float:
        weight = as_number(value, f"{name} of {self._label}")
        if weight <= 0.0:
            raise ObjectiveError(f"{name} of {self._label} must be above zero, not {weight:g}")
        return weight

    def _weighted(self, relations: tuple[Relation, ...]) -> tuple[Relation, ...]:
        """Return relations with the weights of positions and of rotations."""
        if self.position_weight == self.rotation_weight == 1.0:
            return relations
        weights = {"position_weight": self.position_weight, "rotation_weight": self.rotation_weight}
        return tuple(replace(relation, **weights) for relation in relations)

    def _summary(self) -> str:
        """Return the names of the constraints, for `repr`."""
        return ", ".join(
            type(constraint).__name__ for constraint in (self.position, self.rotation) if constraint is not None
        )

    def _effective_constraints(self) -> tuple[PositionConstraint | None, RotationConstraint | None]:
        """Return the position and the rotation constraint of the goal; `PoseGoal` derives them from its dofs."""
        return self.position, self.rotation

    def _ends(self, mechanism: Mechanism) -> tuple[str | None, str]:
        """Return the names of the target's link (None: the world) and of the goal's link.

        Raises:
            UnknownName: the mechanism has no link of this name.
        """
        link = check_link(mechanism, self.link)
        return None if self.relative_to is None else check_link(mechanism, self.relative_to), link

    def _residual_and_jacobian(
        self, mechanism: Mechanism, q: ArrayLike, definition: ResidualDefinition
    ) -> tuple[Array, Array]:
        if definition == "klampt":
            from mechanik.objectives.pose_constraints import klampt_residual

            return klampt_residual(mechanism, q, *self._ends(mechanism), *self._effective_constraints())
        return Objective._residual_and_jacobian(self, mechanism, q, definition)

    def _copy_with(self, **changes: object) -> Self:
        """Return a copy with changed fields.

        `dataclasses.replace` calls the constructor, whose arguments are not the fields in most subclasses.
        """
        copy = object.__new__(type(self))
        for field in fields(self):
            object.__setattr__(copy, field.name, changes.get(field.name, getattr(self, field.name)))
        return copy


class PositionGoal(LinkGoal):
    """Goal: the point `at` of a link is at `target`; 3 residual rows, m.

    Args:
        link: name of the link, or a `Link`.
        target: (3,), m, in the world, or in the link `relative_to`.
        at: (3,), m, in the link.
        relative_to: link in whose frame the target is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        ShapeError, NotFinite: a point has the wrong shape or is not finite.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> solution = mk.solve(arm, mk.PositionGoal("tool", (0.5, 0.3, 0.0)))
        >>> arm.pose("tool", solution.q)[:2, 3].round(3).tolist()
        [0.5, 0.3]
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        super().__init__(link, PointConstraint(target, at), relative_to=relative_to, **options)


class OrientationGoal(LinkGoal):
    """Goal: a link has the rotation `target`, at any position; 3 residual rows, rad.

    Args:
        link: name of the link, or a `Link`.
        target: a quaternion wxyz (4,), a rotation (3, 3), a `Rotation` of scipy, or a pose, whose position is ignored;
            in the world, or in the link `relative_to`.
        at: rotation of a tool in the link, in the same forms; default: the link's own axes.
        rpy: instead of `target`, roll, pitch and yaw (3,), rad: rotations about the fixed axes x, y and z, in this
            order.
        relative_to: link in whose frame the target is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        NotARotation: `target` or `at` is not a rotation.
        ObjectiveError: not exactly one of `target` and `rpy` is given.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.OrientationGoal("tool", (1.0, 0.0, 0.0, 0.0))
        >>> print(goal.error(arm, [0.3, -0.1]))
        0.2 rad
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike | Pose | None = None,
        at: ArrayLike | Pose = (1.0, 0.0, 0.0, 0.0),
        *,
        rpy: ArrayLike | None = None,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        if (target is None) == (rpy is None):
            raise ObjectiveError("an OrientationGoal needs either a target or rpy=...")
        rotation = target if rpy is None else named_target("an OrientationGoal", rpy=rpy)
        assert rotation is not None
        super().__init__(link, rotation=FixedRotation(rotation, at), relative_to=relative_to, **options)


class AxisGoal(LinkGoal):
    """Goal: the direction `local` of a link points along `target`, at any position; 2 residual rows, rad.

    Args:
        link: name of the link, or a `Link`.
        target: direction (3,), of any nonzero length, in the world, or in the link `relative_to`.
        local: direction (3,), of any nonzero length, in the link; default: its z.
        relative_to: link in whose frame the target is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        NotARotation: a direction is zero.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.AxisGoal("tool", (1.0, 0.0, 0.0), local=(1.0, 0.0, 0.0))
        >>> print(goal.error(arm, [0.3, -0.1]))
        0.2 rad
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        local: ArrayLike = (0.0, 0.0, 1.0),
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        super().__init__(link, rotation=AlignedAxes(target, local), relative_to=relative_to, **options)


class HingeGoal(LinkGoal):
    """Goal: the point `at` of a link is at `target`, and the link's `local_axis` points along `axis`; 5 residual rows.

    Args:
        link: name of the link, or a `Link`.
        target: (3,), m, in the world, or in the link `relative_to`.
        axis: direction (3,), of any nonzero length, in the frame of the target.
        at: (3,), m, in the link.
        local_axis: direction (3,), of any nonzero length, in the link; default: its z.
        relative_to: link in whose frame the targets are given; None: the world.
        **options: `position_weight`, `rotation_weight`, `weight`, `level`, `tolerance` and the other fields of
            `LinkGoal`.

    Raises:
        NotARotation: an axis is zero.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.HingeGoal("tool", (0.8, 0.1, 0.0), axis=(0.0, 0.0, 1.0))
        >>> print(goal.error(arm, [0.0, 0.0]))
        0.1 m
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        axis: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        local_axis: ArrayLike = (0.0, 0.0, 1.0),
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[LinkGoalOptions],
    ) -> None:
        super().__init__(
            link, PointConstraint(target, at), AlignedAxes(axis, local_axis), relative_to=relative_to, **options
        )


class SurfaceGoal(LinkGoal):
    """Goal: the point `at` of a link lies in a plane, and the link's `local_normal` points along `normal`.

    The link is free to slide in the plane and to rotate about the normal. There are 3 residual rows.

    Args:
        link: name of the link, or a `Link`.
        target: (3,), m, a point of the plane, in the world, or in the link `relative_to`.
        normal: direction (3,), of any nonzero length, in the frame of the target.
        at: (3,), m, in the link.
        local_normal: direction (3,), of any nonzero length, in the link; default: its z.
        relative_to: link in whose frame the targets are given; None: the world.
        **options: `position_weight`, `rotation_weight`, `weight`, `level`, `tolerance` and the other fields of
            `LinkGoal`.

    Raises:
        NotARotation: a normal is zero.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.SurfaceGoal("tool", (0.0, 0.0, 0.2), normal=(0.0, 0.0, 1.0))
        >>> print(goal.error(arm, [0.4, 0.5]))
        0.2 m
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        normal: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        local_normal: ArrayLike = (0.0, 0.0, 1.0),
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[LinkGoalOptions],
    ) -> None:
        super().__init__(
            link,
            PlaneConstraint(target, normal, at),
            AlignedAxes(normal, local_normal),
            relative_to=relative_to,
            **options,
        )


class OnLine(LinkGoal):
    """Goal: the point `at` of a link lies on the line through `target` along `direction`; 2 residual rows, m.

    Args:
        link: name of the link, or a `Link`.
        target: (3,), m, a point of the line, in the world, or in the link `relative_to`.
        direction: (3,), of any nonzero length, in the frame of the target.
        at: (3,), m, in the link.
        relative_to: link in whose frame the line is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        NotARotation: the direction is zero.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.OnLine("tool", (0.0, 0.1, 0.0), direction=(1.0, 0.0, 0.0))
        >>> print(goal.error(arm, [0.0, 0.0]))
        0.1 m
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        direction: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        super().__init__(link, LineConstraint(target, direction, at), relative_to=relative_to, **options)


class OnPlane(LinkGoal):
    """Goal: the point `at` of a link lies in the plane through `target` with `normal`; 1 residual row, m.

    Args:
        link: name of the link, or a `Link`.
        target: (3,), m, a point of the plane, in the world, or in the link `relative_to`.
        normal: (3,), of any nonzero length, in the frame of the target.
        at: (3,), m, in the link.
        relative_to: link in whose frame the plane is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        NotARotation: the normal is zero.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.OnPlane("tool", (0.7, 0.0, 0.0), normal=(1.0, 0.0, 0.0))
        >>> print(goal.error(arm, [0.0, 0.0]))
        0.1 m
    """

    __slots__ = ()

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        normal: ArrayLike,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        super().__init__(link, PlaneConstraint(target, normal, at), relative_to=relative_to, **options)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PoseGoal(LinkGoal):
    """Goal: the frame `at` of a link is at the pose `target`; up to 6 residual rows, m and rad.

    Args:
        link: name of the link, or a `Link`.
        target: a pose, in the world, or in the link `relative_to`: (4, 4), position and quaternion wxyz (7,), a `Pose`,
            an `SE3` of Pinocchio; or a rotation, if `position` is given.
        position: instead of `target`, a point (3,), m; default: the origin.
        wxyz, rpy: with `position`, a quaternion (4,); or roll, pitch and yaw (3,), rad, which are rotations about the
            fixed axes x, y and z, in this order. Default: no rotation.
        at: X_link_tool: a `Pose`, (4, 4), or a point (3,); default: the frame of the link.
        dof: constrained dofs, one or more of X Y Z EX EY EZ. The other dofs are free: the link may move relative
            to the target as by a joint with these free dofs, whose motion is T(x, y, z) Rz Ry Rx.
        axes: whether these dofs are along the axes of the target ("goal") or of the world ("world").
        relative_to: link in whose frame the target is given; None: the world.
        **options: `position_weight`, `rotation_weight`, `weight`, `level`, `tolerance` and the other fields of
            `LinkGoal`.

    Raises:
        ObjectiveError: no target is given, it is given in two forms, or it is a rotation without a position.
        DoFError: no dof is constrained, or `dof` or `axes` is invalid.
        NotARotation: `target`, `wxyz` or `at` does not have a valid rotation.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.PoseGoal("tool", position=(0.8, 0.1, 0.0), dof="X Y EZ".split())
        >>> print(goal.error(arm, [0.0, 0.0]))
        0.1 m
    """

    dof: tuple[DoF, ...]
    axes: Literal["goal", "world"]

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike | Pose | None = None,
        *,
        position: ArrayLike | None = None,
        wxyz: ArrayLike | None = None,
        rpy: ArrayLike | None = None,
        at: ArrayLike | Pose | None = None,
        dof: Iterable[DoFLike] | DoFLike = ALL_DOFS,
        axes: Literal["goal", "world"] = "goal",
        relative_to: str | Link | None = None,
        **options: Unpack[LinkGoalOptions],
    ) -> None:
        X_target = _target_pose(target, named_target("a PoseGoal", position, wxyz, rpy))
        X_tool = _tool_pose(at)
        position_constraint = PointConstraint(X_target[:3, 3], X_tool[:3, 3])
        rotation_constraint = FixedRotation(X_target[:3, :3], X_tool[:3, :3])
        LinkGoal.__init__(self, link, position_constraint, rotation_constraint, relative_to=relative_to, **options)
        dofs = as_dofs(dof)
        if not dofs:
            raise DoFError(f"dof of {self._label} is empty; give one or more of X Y Z EX EY EZ")
        if axes not in ("goal", "world"):
            raise DoFError(f"axes of {self._label} must be 'goal' or 'world', not {axes!r}")
        object.__setattr__(self, "dof", dofs)
        object.__setattr__(self, "axes", axes)

    @property
    def target(self) -> Array:
        """Target pose (4, 4), in the world, or in the link `relative_to`."""
        position, rotation = self._full_constraints()
        return make_pose(rotation.target, position.target)

    @property
    def tool(self) -> Array:
        """Pose of the tool in the link, X_link_tool (4, 4)."""
        position, rotation = self._full_constraints()
        return make_pose(rotation.local, position.local)

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        if self.dof == ALL_DOFS:
            return LinkGoal.relations(self, mechanism)
        a, b = self._ends(mechanism)
        frames = {"X_a": self.target, "X_b": self.tool}
        return self._weighted(partial_pose_relations(self.dof, a=a, b=b, **frames, axes=self.axes, weight=self.weight))

    def transform(self, X: ArrayLike | Pose) -> Self:
        """Return the goal with its target moved by X (4, 4), as `LinkGoal.transform` does.

        Raises:
            ObjectiveError: X rotates, and the goal constrains some dofs along the axes of the world.
        """
        X_matrix = as_single_pose(X, "transform")
        if self._needs_world_axes() and np.abs(X_matrix[:3, :3] - np.eye(3)).max() > 1e-12:
            raise ObjectiveError(
                f"{self._label} constrains dofs along the axes of the world, which do not rotate with its target; "
                "use axes='goal', or a transform without rotation"
            )
        return super(PoseGoal, self).transform(X_matrix)

    def _summary(self) -> str:
        return " ".join(dof.name for dof in self.dof) + (" in world axes" if self.axes == "world" else "")

    def _full_constraints(self) -> tuple[PointConstraint, FixedRotation]:
        """Return the constraints on all six dofs, also if `dof` names only some of them."""
        position, rotation = self.position, self.rotation
        assert isinstance(position, PointConstraint)
        assert isinstance(rotation, FixedRotation)
        return position, rotation

    def _needs_world_axes(self) -> bool:
        """Return whether the dofs are in world axes and would differ in goal axes.

        Three translations or rotations, or none, are the same in both.
        """
        translations, rotations = ([dof for dof in group if dof in self.dof] for group in (TRANSLATIONS, ROTATIONS))
        return self.axes == "world" and (len(translations) in (1, 2) or len(rotations) in (1, 2))

    def _effective_constraints(self) -> tuple[PositionConstraint | None, RotationConstraint | None]:
        position, rotation = self._full_constraints()
        uses_world_axes = self._needs_world_axes()
        if uses_world_axes and self.relative_to is not None:
            raise ObjectiveError(
                f"{self._label} constrains dofs along the axes of the world, but is relative to link "
                f"{self.relative_to!r}, which may rotate: no constant pose relative to that link meets the goal; "
                "use axes='goal'"
            )
        # columns: the x, y and z axes of the dofs, at the target and in the link
        target_axes = np.eye(3) if uses_world_axes else rotation.target
        link_axes = rotation.link_rotation.T @ target_axes
        translations = [dof.axis_index for dof in TRANSLATIONS if dof in self.dof]
        free_translations = [k for k in range(3) if k not in translations]
        partial_position: PositionConstraint | None = None
        match len(translations):
            case 3:
                partial_position = position
            case 2:
                partial_position = LineConstraint(position.target, target_axes[:, free_translations[0]], position.local)
            case 1:
                partial_position = PlaneConstraint(position.target, target_axes[:, translations[0]], position.local)
            case _:
                pass
        rotations = [dof for dof in ROTATIONS if dof in self.dof]
        match len(rotations):
            case 3:
                return partial_position, rotation
            case 2:
                free_axis = next(dof.axis_index for dof in ROTATIONS if dof not in rotations)
                return partial_position, AlignedAxes(target_axes[:, free_axis], link_axes[:, free_axis])
            case 1:
                axis_b, axis_a = PERPENDICULAR_PAIRS[rotations[0]]
                return partial_position, PerpendicularAxes(target_axes[:, axis_a], link_axes[:, axis_b])
            case _:
                return partial_position, None


def named_target(
    owner: str, position: ArrayLike | None = None, wxyz: ArrayLike | None = None, rpy: ArrayLike | None = None
) -> Array | None:
    """Return a target that is given by name: a pose (4, 4), a point (3,) or a rotation (3, 3); None without any part.

    Args:
        owner: the objective with its article, for messages.
        position, wxyz, rpy: the parts, as for `PoseGoal`.

    Raises:
        ObjectiveError: both `wxyz` and `rpy` are given.
    """
    if wxyz is not None and rpy is not None:
        raise ObjectiveError(f"{owner} has one rotation: give either wxyz or rpy, not both")
    if rpy is not None:
        wxyz = quaternion.from_rpy(as_vector(rpy, 3, f"rpy of {owner}"))
    point = None if position is None else as_point(position, f"position of {owner}")
    if wxyz is None:
        return point
    R = as_rotation_matrix(as_quaternion(wxyz, f"wxyz of {owner}"), f"wxyz of {owner}")
    return R if point is None else make_pose(R, point)


def _target_pose(target: ArrayLike | Pose | None, named: Array | None) -> Array:
    """Return the target pose (4, 4) of a `PoseGoal` from its target and the parts given by name."""
    if target is None:
        if named is None:
            raise ObjectiveError("a PoseGoal needs a target: a pose (4, 4), or position=... with wxyz=... or rpy=...")
        if named.shape == (4, 4):
            return named
        return make_pose(np.eye(3), named) if named.shape == (3,) else make_pose(named, np.zeros(3))
    is_rotation = shape_of(target) in ((3, 3), (4,))
    if named is not None and not (is_rotation and named.shape == (3,)):
        raise ObjectiveError("a PoseGoal needs either target, or position with wxyz or rpy, not both")
    if not is_rotation:
        return as_single_pose(target, "target of a PoseGoal")
    if named is None:
        raise ObjectiveError(
            "target of a PoseGoal is a rotation without a position; give position=..., too, or use OrientationGoal"
        )
    return make_pose(as_rotation_matrix(target, "target of a PoseGoal"), named)


def _tool_pose(at: ArrayLike | Pose | None) -> Array:
    if at is None:
        return np.eye(4)
    if shape_of(at) == (3,):
        return make_pose(np.eye(3), as_point(at, "tool of a PoseGoal"))
    return as_single_pose(at, "tool of a PoseGoal")


COINCIDENT_RATIO = 1e-12
"""Points closer to each other than this ratio of the largest coordinate differ by rounding only; also the ratio below
which a correlation of two lists of points is rounding only."""


def from_points(
    link: str | Link,
    local_points: ArrayLike,
    target_points: ArrayLike,
    *,
    collinear: float = 1e-6,
    relative_to: str | Link | None = None,
    **options: Unpack[ObjectiveOptions],
) -> PositionGoal | HingeGoal | PoseGoal:
    """Make the goal that moves points of a link onto target points, in the sense of least squares.

    One point, coincident points, and lists for which all rotations are equally good give a `PositionGoal`; collinear
    points give a `HingeGoal` about their line; other points give a `PoseGoal`. If only a reflection could match the
    points, the best rotation is used instead.

    Args:
        link: name of the link, or a `Link`.
        local_points: (n, 3), m, in the link; or one point (3,).
        target_points: (n, 3), m, in the world, or in the link `relative_to`; in the same order.
        collinear: ratio of width to length below which points count as collinear. Rounding gives collinear points a
            ratio of about 1e-8; measured points need a larger value.
        relative_to: link in whose frame the target points are given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        ShapeError: the lists have different lengths or wrong shapes.
        NotFinite: a coordinate is not finite.
        ObjectiveError: there are no points.

    Example:
        >>> local = [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0)]
        >>> target = [(0.5, 0.3, 0.0), (0.5, 0.4, 0.0), (0.4, 0.3, 0.0)]
        >>> goal = mk.from_points("tool", local, target)
        >>> type(goal).__name__, goal.error(mk.arm_2d([0.5, 0.3]), [0.0, np.pi / 2]).position < 1e-9
        ('PoseGoal', True)
    """
    max_width_ratio = as_number(collinear, "collinear")
    local, target = _as_points(local_points, "local points"), _as_points(target_points, "target points")
    if len(local) != len(target):
        raise ShapeError(f"{len(local)} local points but {len(target)} target points are given; the counts must agree")
    if not len(local):
        raise ObjectiveError("no points are given; give at least one")
    p_local, p_target = local.mean(axis=0), target.mean(axis=0)
    centred_local, centred_target = local - p_local, target - p_target
    if _are_coincident(local, centred_local) or _are_coincident(target, centred_target):
        return PositionGoal(link, p_target, p_local, relative_to=relative_to, **options)

    # The rotation R that maximises the sum of target . R local; Kabsch 1976, and Umeyama 1991 for reflections.
    # Points are scaled before they are multiplied, so that tiny or huge coordinates lose no digits.
    U, singular_values, Vt = np.linalg.svd(
        (centred_target / np.abs(centred_target).max()).T @ (centred_local / np.abs(centred_local).max())
    )
    if singular_values[0] <= COINCIDENT_RATIO:  # the two lists are uncorrelated, so no rotation is better than another
        return PositionGoal(link, p_target, p_local, relative_to=relative_to, **options)
    if singular_values[1] <= max_width_ratio**2 * singular_values[0]:
        return HingeGoal(link, p_target, U[:, 0], p_local, Vt[0], relative_to=relative_to, **options)
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(U) * np.linalg.det(Vt))])
    return PoseGoal(link, make_pose((U * signs) @ Vt, p_target), at=p_local, relative_to=relative_to, **options)


def _are_coincident(points: Array, centred_points: Array) -> bool:
    return bool(np.abs(centred_points).max() <= COINCIDENT_RATIO * np.abs(points).max())


def _as_points(points: ArrayLike, label: str) -> Array:
    """Return points as a finite array (n, 3); a single point (3,) becomes (1, 3)."""
    try:
        array = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{label} must be numbers of shape (n, 3), not {points!r}") from None
    if array.size == 0:
        return np.zeros((0, 3))
    if array.shape == (3,):
        array = array[None]
    if array.ndim != 2 or array.shape[1] != 3:
        raise ShapeError(f"{label} must have shape (n, 3), not {array.shape}")
    if not np.isfinite(array).all():
        raise NotFinite(f"{label} have an entry that is not finite")
    return array
