"""Objectives for regions and directions: box, band, cone, distance, line of sight and terrain.

A region becomes a relation with a band: the residual is zero inside the region.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self, Unpack

import numpy as np

from mechanik.errors import InvalidArgument, LimitsError, ObjectiveError, UnknownName
from mechanik.model import Link, Mechanism
from mechanik.objectives.objective import Objective, ObjectiveOptions, check_link, link_name
from mechanik.objectives.pose_constraints import axes_from_z
from mechanik.objectives.relation import Relation, RelationKind, TargetPart, TargetWrite
from mechanik.objectives.target_spec import NUMBER, POINT, POSE, POSITION_WXYZ, TargetSpec
from mechanik.objectives.terrain import Terrain
from mechanik.spatial import Pose, make_pose, translation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_direction, as_number, as_numbers, as_point, as_point_or_pose, read_only

FRAME = (TargetWrite(TargetPart.A_POSITION), TargetWrite(TargetPart.A_ROTATION))
FRAME_SHAPES = (POSE, POSITION_WXYZ, POINT)
"""Parts of a relation that a frame as target determines, and shapes of such a target; a point has no rotation."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InBox(Objective):
    """Goal: the point `at` of a link is inside a box; 1 residual row, m, for each bounded axis.

    Args:
        link: name of the link, or a `Link`.
        lower, upper: (3,), m, along the axes of the box's frame; infinite where there is no bound.
        frame: frame of the box, as a point or a pose, in the world, or in the link `relative_to`; default:
            identity.
        at: (3,), m, in the link; stored as `point`.
        relative_to: link in whose frame the box is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        LimitsError: the box is empty.
        ObjectiveError: the box has no bound, or the link is relative to itself.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> print(mk.InBox("tool", (0.0, -0.1, -0.1), (0.7, 0.1, 0.1)).error(arm, [0.0, 0.0]))
        0.1 m
    """

    link: str
    lower: Array
    upper: Array
    frame: Array
    point: Array
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        lower: ArrayLike,
        upper: ArrayLike,
        frame: ArrayLike | Pose | None = None,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        Objective.__init__(self, **options)
        name = link_name(link)
        reference = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == reference:
            raise ObjectiveError(
                f"{self._label}: link {name!r} is relative to itself; choose another link for relative_to"
            )
        lower_bounds, upper_bounds = (
            np.array(as_numbers((bound,), 3, f"{field} of {self._label}", allow_infinite=True))
            for bound, field in ((lower, "lower"), (upper, "upper"))
        )
        if (lower_bounds > upper_bounds).any() or (lower_bounds == np.inf).any() or (upper_bounds == -np.inf).any():
            raise LimitsError(
                f"{self._label}: the box from {lower_bounds.tolist()} to {upper_bounds.tolist()} m is empty"
            )
        if not (np.isfinite(lower_bounds) | np.isfinite(upper_bounds)).any():
            raise ObjectiveError(f"{self._label} has no finite bound; give at least one in lower or upper")
        fields = {
            "link": name,
            "lower": read_only(lower_bounds),
            "upper": read_only(upper_bounds),
            "frame": read_only(as_point_or_pose(frame, self._label)),
            "point": as_point(at, f"point of {self._label}"),
            "relative_to": reference,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._label} of link {self.link!r}: {self.lower.tolist()} to {self.upper.tolist()}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else check_link(mechanism, self.relative_to)
        b = check_link(mechanism, self.link)
        rows = np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))
        lower, upper = read_only(self.lower[rows]), read_only(self.upper[rows])
        ends = a, b, self.frame, read_only(translation(self.point))
        return (
            Relation(
                RelationKind.POSE, tuple(rows.tolist()), *ends, lower=lower, upper=upper, weight=self.weight,
                target_writes=FRAME,
            ),
        )  # fmt: skip

    @property
    def target_spec(self) -> TargetSpec:
        """Declaration of the target: the frame, as a pose or a point."""
        return TargetSpec(self.frame, partial(as_point_or_pose, label=self._label), FRAME_SHAPES)

    def with_target(self, target: ArrayLike | Pose) -> Self:
        """Return the same goal with the box at another point (3,), m, or pose.

        Args:
            target: point (3,), pose (4, 4) or `Pose`; m, in the world, or in the link `relative_to`.
        """
        goal = copy(self)
        object.__setattr__(goal, "frame", read_only(self.target_spec.parse(target)))
        return goal


Coordinate = Literal["x", "y", "z", "rx", "ry", "rz"]
COORDINATES = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InBand(Objective):
    """Goal: one coordinate of a frame of a link is inside a band, for example its height; 1 residual row.

    Args:
        link: name of the link, or a `Link`.
        coordinate: "x", "y", "z" (m), or "rx", "ry", "rz", a component of the rotation vector (rad).
        lower, upper: the band, m or rad; at least one of them.
        frame: frame in which the coordinate is measured, as a point or a pose, in the world, or in the link
            `relative_to`; default: identity.
        at: frame in the link whose coordinate is measured, as a point or a pose; default: the frame of the link; stored
            as `tool`.
        relative_to: link in which `frame` is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        UnknownName: there is no such coordinate.
        LimitsError: the band is empty.
        ObjectiveError: there is no bound, or the link is relative to itself.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> print(mk.InBand("tool", "x", upper=0.7).error(arm, [0.0, 0.0]))
        0.1 m
    """

    link: str
    coordinate: Coordinate
    lower: float
    upper: float
    frame: Array
    tool: Array
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        coordinate: Coordinate,
        lower: float | None = None,
        upper: float | None = None,
        frame: ArrayLike | Pose | None = None,
        at: ArrayLike | Pose | None = None,
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        Objective.__init__(self, **options)
        if coordinate not in COORDINATES:
            raise UnknownName("coordinate", coordinate, COORDINATES)
        name = link_name(link)
        reference = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == reference:
            raise ObjectiveError(
                f"{self._label}: link {name!r} is relative to itself; choose another link for relative_to"
            )
        lower_bound = -math.inf if lower is None else as_number(lower, f"lower of {self._label}", allow_infinite=True)
        upper_bound = math.inf if upper is None else as_number(upper, f"upper of {self._label}", allow_infinite=True)
        if lower_bound > upper_bound or lower_bound == math.inf or upper_bound == -math.inf:
            unit = "rad" if coordinate.startswith("r") else "m"
            raise LimitsError(f"{self._label}: the band from {lower_bound:g} to {upper_bound:g} {unit} is empty")
        if math.isinf(lower_bound) and math.isinf(upper_bound):
            raise ObjectiveError(f"{self._label} has no finite bound; give lower or upper")
        fields = {
            "link": name,
            "coordinate": coordinate,
            "lower": lower_bound,
            "upper": upper_bound,
            "frame": read_only(as_point_or_pose(frame, self._label)),
            "tool": read_only(as_point_or_pose(at, self._label)),
            "relative_to": reference,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._label}: {self.lower:g} <= {self.coordinate} of link {self.link!r} <= {self.upper:g}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else check_link(mechanism, self.relative_to)
        ends = a, check_link(mechanism, self.link), self.frame, self.tool
        lower, upper = (read_only(np.array([bound])) for bound in (self.lower, self.upper))
        row = COORDINATES.index(self.coordinate)
        return (
            Relation(
                RelationKind.POSE, (row,), *ends, lower=lower, upper=upper, weight=self.weight, target_writes=FRAME
            ),
        )

    @property
    def target_spec(self) -> TargetSpec:
        """Declaration of the target: the frame, as a pose or a point."""
        return TargetSpec(self.frame, partial(as_point_or_pose, label=self._label), FRAME_SHAPES)

    def with_target(self, target: ArrayLike | Pose) -> Self:
        """Return the same goal with the frame at another point (3,), m, or pose.

        Args:
            target: point (3,), pose (4, 4) or `Pose`; m, in the world, or in the link `relative_to`.
        """
        goal = copy(self)
        object.__setattr__(goal, "frame", read_only(self.target_spec.parse(target)))
        return goal


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InCone(Objective):
    """Goal: the direction `axis` of a link is within `angle` of a direction; 1 residual row, a difference of cosines.

    Args:
        link: name of the link, or a `Link`.
        axis: (3,), of any nonzero length, in the link.
        direction: (3,), of any nonzero length, in the world, or in the link `relative_to`.
        angle: rad, above 0 and below pi; half of the opening angle.
        relative_to: link in whose frame the direction is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        LimitsError: the angle is out of range.
        ObjectiveError: the link is relative to itself.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.InCone("tool", (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), angle=0.5)
        >>> [goal.error(arm, [angle, 0.0]).rotation > 0.0 for angle in (0.0, 1.5)]
        [True, False]
    """

    link: str
    axis: Array
    direction: Array
    angle: float
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        axis: ArrayLike,
        direction: ArrayLike,
        angle: float,
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        Objective.__init__(self, **options)
        name = link_name(link)
        reference = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == reference:
            raise ObjectiveError(
                f"{self._label}: link {name!r} is relative to itself; choose another link for relative_to"
            )
        half_angle = as_number(angle, f"angle of {self._label}")
        if not 0.0 < half_angle < math.pi:
            raise LimitsError(
                f"angle of {self._label} is {half_angle:g} rad; it must be between 0 and pi (for 0 use AxisGoal)"
            )
        fields = {
            "link": name,
            "axis": as_direction(axis, f"axis of {self._label}"),
            "direction": as_direction(direction, f"direction of {self._label}"),
            "angle": half_angle,
            "relative_to": reference,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._label} of link {self.link!r}: within {self.angle:g} rad of {self.direction}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else check_link(mechanism, self.relative_to)
        b = check_link(mechanism, self.link)
        X_a, X_b = (read_only(make_pose(axes_from_z(axis), np.zeros(3))) for axis in (self.direction, self.axis))
        # rounding may make the cosine of an aligned axis larger than 1, so there is no upper bound
        lower, upper = read_only(np.array([math.cos(self.angle)])), read_only(np.array([math.inf]))
        return (
            Relation(
                RelationKind.COSINE, (0,), a, b, X_a, X_b, lower=lower, upper=upper, weight=self.weight,
                target_writes=(TargetWrite(TargetPart.A_DIRECTION),),
            ),
        )  # fmt: skip

    @property
    def target_spec(self) -> TargetSpec:
        """Declaration of the target: the direction."""
        return TargetSpec(self.direction, partial(as_direction, label=f"direction of {self._label}"), (POINT,))

    def with_target(self, target: ArrayLike) -> Self:
        """Return the same goal with another direction (3,).

        Args:
            target: (3,), of any nonzero length, in the world, or in the link `relative_to`.
        """
        goal = copy(self)
        object.__setattr__(goal, "direction", self.target_spec.parse(target))
        return goal


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Distance(Objective):
    """Goal: a point of a link has a given distance from a point of another link or of the world; 1 residual row, m.

    Args:
        link: name of the link, or a `Link`.
        other_link: the other link; None: the world.
        at: (3,), m, the point in the link; stored as `point`.
        other_at: (3,), m, the point in the other link, or in the world; stored as `other_point`.
        equal: distance, m; 0 gives 3 residual rows, since the distance of coincident points has no derivative.
        at_least, at_most: bounds of the distance, m; one or both of them, if `equal` is not given.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        ObjectiveError: neither `equal` nor a bound is given, or `equal` and a bound; a distance is negative; or both
            points are on one link.
        LimitsError: `at_least` is above `at_most`.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> print(mk.Distance("tool", at_most=0.7).error(arm, [0.0, 0.0]))
        0.1 m
    """

    link: str
    other_link: str | None
    point: Array
    other_point: Array
    equal: float | None
    at_least: float | None
    at_most: float | None

    def __init__(
        self,
        link: str | Link,
        other_link: str | Link | None = None,
        *,
        at: ArrayLike = (0.0, 0.0, 0.0),
        other_at: ArrayLike = (0.0, 0.0, 0.0),
        equal: float | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        Objective.__init__(self, **options)
        fields = {
            "link": link_name(link),
            "other_link": None if other_link is None else link_name(other_link, "other_link"),
            "point": as_point(at, f"point of {self._label}"),
            "other_point": as_point(other_at, f"other point of {self._label}"),
            "equal": self._as_distance(equal, "equal"),
            "at_least": self._as_distance(at_least, "at_least"),
            "at_most": self._as_distance(at_most, "at_most"),
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        if self.link == self.other_link:
            raise ObjectiveError(
                f"{self._label}: both points are on link {self.link!r}, so their distance is constant; "
                "choose another link"
            )
        if (self.equal is None) == (self.at_least is None and self.at_most is None):
            raise ObjectiveError(f"{self._label} needs either equal=, or at_least= and at_most= (one or both)")
        self._check_bounds()

    def __repr__(self) -> str:
        bounds = {"=": self.equal, ">=": self.at_least, "<=": self.at_most}
        text = ", ".join(f"{sign} {value:g} m" for sign, value in bounds.items() if value is not None)
        other_body = "the world" if self.other_link is None else repr(self.other_link)
        return f"<{self._label} of {self.link!r} from {other_body} {text}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        b = check_link(mechanism, self.link)
        a = None if self.other_link is None else check_link(mechanism, self.other_link)
        ends = a, b, read_only(translation(self.other_point)), read_only(translation(self.point))
        if self.equal == 0.0:
            return (Relation(RelationKind.POSE, (0, 1, 2), *ends, weight=self.weight),)
        if self.equal is not None:
            lower_bound = upper_bound = self.equal
        else:
            lower_bound = -math.inf if self.at_least is None else self.at_least
            upper_bound = math.inf if self.at_most is None else self.at_most
        lower, upper = (read_only(np.array([bound])) for bound in (lower_bound, upper_bound))
        # a target above 0 changes the finite bounds; with both at_least and at_most there is no target
        finite_bounds = ((TargetPart.LOWER, lower_bound), (TargetPart.UPPER, upper_bound))
        writes = tuple(TargetWrite(part) for part, bound in finite_bounds if math.isfinite(bound))
        return (
            Relation(
                RelationKind.DISTANCE, (0,), *ends, lower=lower, upper=upper, weight=self.weight, target_writes=writes
            ),
        )

    @property
    def target_spec(self) -> TargetSpec | None:
        """Declaration of the target: the distance, or None if there are two bounds."""
        bounds = self._given_bounds
        if len(bounds) > 1:
            return None
        return TargetSpec(np.array(getattr(self, bounds[0])), self._parse_distance, (NUMBER,), float)

    def with_target(self, target: ArrayLike) -> Self:
        """Return the same goal with another distance (m).

        Args:
            target: m, not below zero; it replaces `equal`, `at_least` or `at_most`, whichever the goal has.

        Raises:
            ObjectiveError: the goal has both `at_least` and `at_most`, or the distance is negative.
        """
        bounds = self._given_bounds
        if len(bounds) > 1:
            raise ObjectiveError(
                f"{self._label} has two bounds, and one number cannot replace both; create a new Distance"
            )
        goal = copy(self)
        object.__setattr__(goal, bounds[0], self._as_distance(target, bounds[0]))
        return goal

    @property
    def _given_bounds(self) -> list[str]:
        return [field for field in ("equal", "at_least", "at_most") if getattr(self, field) is not None]

    def _parse_distance(self, target: object) -> Array:
        return np.array(self._as_distance(target, self._given_bounds[0]))

    def _as_distance(self, distance: object, label: str) -> float | None:
        if distance is None:
            return None
        number = as_number(distance, f"{label} of {self._label}")
        if number < 0.0:
            raise ObjectiveError(f"{label} of {self._label} is {number:g} m; it must not be negative")
        return number

    def _check_bounds(self) -> None:
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise LimitsError(
                f"at_least of {self._label} is {self.at_least:g} m, above at_most, which is {self.at_most:g} m"
            )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LookAt(Objective):
    """Goal: the ray from the point `at` of a link along `axis` passes through the target; 2 residual rows, rad.

    Args:
        link: name of the link, or a `Link`.
        target: (3,), m, in the world, or in the link `relative_to`.
        axis: direction of the ray (3,), of any nonzero length, in the link.
        at: (3,), m, start of the ray, in the link; stored as `eye`. The residual is zero if the target is at
            this point.
        relative_to: link in whose frame the target is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        ObjectiveError: the link is relative to itself.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> print(mk.LookAt("tool", (1.8, 1.0, 0.0), axis=(1.0, 0.0, 0.0)).error(arm, [0.0, 0.0]))
        0.785 rad
    """

    link: str
    target: Array
    axis: Array
    eye: Array
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        target: ArrayLike,
        axis: ArrayLike = (0.0, 0.0, 1.0),
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        Objective.__init__(self, **options)
        name = link_name(link)
        reference = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == reference:
            raise ObjectiveError(
                f"{self._label}: link {name!r} is relative to itself; choose another link for relative_to"
            )
        fields = {
            "link": name,
            "target": as_point(target, f"target of {self._label}"),
            "axis": as_direction(axis, f"axis of {self._label}"),
            "eye": as_point(at, f"eye of {self._label}"),
            "relative_to": reference,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._label} of link {self.link!r}: {self.target}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a, X_a = check_link(mechanism, self.link), read_only(make_pose(axes_from_z(self.axis), self.eye))
        b = None if self.relative_to is None else check_link(mechanism, self.relative_to)
        X_b = read_only(translation(self.target))
        return (
            Relation(
                RelationKind.LOOK_AT,
                (0, 1),
                a,
                b,
                X_a,
                X_b,
                weight=self.weight,
                target_writes=(TargetWrite(TargetPart.B_POSITION),),
            ),
        )

    @property
    def target_spec(self) -> TargetSpec:
        """Declaration of the target: a point."""
        return TargetSpec(self.target, partial(as_point, label=f"target of {self._label}"), (POINT,))

    def with_target(self, target: ArrayLike) -> Self:
        """Return the same goal with another target point (3,), m."""
        goal = copy(self)
        object.__setattr__(goal, "target", self.target_spec.parse(target))
        return goal


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OnTerrain(Objective):
    """Goal: a point of a link is on a terrain, or a sphere about the point touches the terrain; 1 residual row, m.

    The residual is the height above the terrain along z; for a sphere, above `terrain.offset_by(radius)`.

    Args:
        link: name of the link, or a `Link`.
        terrain: in the world, or in the link `relative_to`; z is up.
        at: (3,), m, in the link; stored as `point`.
        radius: m, of the sphere about the point, for example a wheel with a round profile; 0: the point itself.
        relative_to: link in whose frame the terrain is given; None: the world.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        InvalidArgument: the terrain is not a `Terrain`.
        ObjectiveError: the radius is negative, or the link is relative to itself.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> ground = mk.Terrain(np.full((3, 3), -0.1), cell=1.0, origin=(-1.0, -1.0))
        >>> print(mk.OnTerrain("tool", ground).error(arm, [0.0, 0.0]))
        0.1 m
    """

    link: str
    terrain: Terrain
    point: Array
    radius: float
    relative_to: str | None

    def __init__(
        self,
        link: str | Link,
        terrain: Terrain,
        at: ArrayLike = (0.0, 0.0, 0.0),
        radius: float = 0.0,
        *,
        relative_to: str | Link | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        Objective.__init__(self, **options)
        name = link_name(link)
        reference = None if relative_to is None else link_name(relative_to, "relative_to")
        if name == reference:
            raise ObjectiveError(
                f"{self._label}: link {name!r} is relative to itself; choose another link for relative_to"
            )
        if not isinstance(terrain, Terrain):
            raise InvalidArgument(f"terrain of {self._label} must be a Terrain, not {terrain!r}")
        sphere_radius = as_number(radius, f"radius of {self._label}")
        if sphere_radius < 0.0:
            raise ObjectiveError(f"radius of {self._label} is {sphere_radius:g} m; it must not be negative")
        fields = {
            "link": name,
            "terrain": terrain,
            "point": as_point(at, f"point of {self._label}"),
            "radius": sphere_radius,
            "relative_to": reference,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        sphere = f", sphere radius {self.radius:g} m" if self.radius else ""
        return f"<{self._label} of link {self.link!r}{sphere}: on {self.terrain!r}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else check_link(mechanism, self.relative_to)
        ends = a, check_link(mechanism, self.link), read_only(np.eye(4)), read_only(translation(self.point))
        terrain = self.terrain.offset_by(self.radius)
        return (Relation(RelationKind.HEIGHT, (0,), *ends, terrain=terrain, weight=self.weight),)
