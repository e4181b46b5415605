"""Objective for the centre of mass: at a point, or above a convex support polygon.

Each edge of a support polygon becomes a relation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Self, Unpack

import numpy as np

from mechanik.errors import DoFError, NotFinite, ObjectiveError, ShapeError
from mechanik.model import DoF, Link, Mechanism
from mechanik.model.dof import TRANSLATIONS, DoFLike, as_dofs
from mechanik.objectives.objective import Objective, ObjectiveOptions, check_link, link_name
from mechanik.objectives.relation import Relation, RelationKind, TargetPart, TargetWrite
from mechanik.objectives.target_spec import POINT, TargetSpec
from mechanik.spatial import make_pose, translation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, as_point, read_only

COLLINEAR_RATIO = 1e-9
"""Two points coincide if their distance is at most this share of the polygon's size; three points are on a line if
twice the area of their triangle is at most this share of the size squared."""


@dataclass(frozen=True, slots=True, eq=False)
class PolygonEdge:
    """Edge of a polygon, with the band in which direction . (p - start) must lie for a point p, in the xy plane.

    Attributes:
        start: (3,), m, a point of the edge, at z = 0.
        direction: (2,), unit vector: the inward normal; for a polygon without area, along or across its line segment.
        band: m, lower and upper bound; None: the value must be zero.
    """

    start: Array
    direction: Array
    band: tuple[float, float] | None


def as_polygon(points: ArrayLike, label: str) -> Array:
    """Return the corners (n, 2) of the convex hull of points (m, 2) or (m, 3), counter-clockwise; z is ignored.

    There are two corners if all points are on a line, and one if they coincide.

    Args:
        label: label of the polygon, for messages.

    Raises:
        ShapeError: the points have the wrong shape.
        NotFinite: a coordinate is not finite.
    """
    try:
        array = np.array(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{label} must be points (n, 2) or (n, 3), not {points!r}") from None
    if array.ndim != 2 or array.shape[1] not in (2, 3) or not len(array):
        raise ShapeError(f"{label} must be points (n, 2) or (n, 3), not an array of shape {array.shape}")
    if not np.isfinite(array).all():
        raise NotFinite(f"{label} has a point that is not finite")
    return read_only(_convex_hull(array[:, :2]))


def inset_edges(corners: Array, margin: float, label: str) -> tuple[PolygonEdge, ...]:
    """Return the edges of a convex polygon (n, 2), with bands that keep at least `margin` (m) from each edge.

    Args:
        label: label of the objective, for messages.

    Raises:
        ObjectiveError: the margin is negative, leaves no point, or is positive for a polygon without area.
    """
    if margin < 0.0:
        raise ObjectiveError(f"margin of {label} is {margin:g} m; it must not be negative")
    if len(corners) < 3:
        if margin > 0.0:
            raise ObjectiveError(
                f"{label}: a support polygon without area needs margin 0, not {margin:g} m; add points or set margin 0"
            )
        return _segment_edges(corners[0], corners[-1])
    edges: list[PolygonEdge] = []
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        x, y = (end - start) / np.linalg.norm(end - start)
        edges.append(PolygonEdge(np.array([*start, 0.0]), np.array([-y, x]), (margin, math.inf)))
    remaining_corners = corners
    for edge in edges:
        remaining_corners = _clip(remaining_corners, edge)
    if not len(remaining_corners):
        raise ObjectiveError(f"{label}: a margin of {margin:g} m leaves no area inside the polygon; reduce the margin")
    return tuple(edges)


def _segment_edges(start: Array, end: Array) -> tuple[PolygonEdge, ...]:
    """Return edges that keep a point on the line segment from `start` to `end`, or at `start` if both are equal."""
    length = float(np.linalg.norm(end - start))
    direction = (end - start) / length if length > 0.0 else np.array([1.0, 0.0])
    p = np.array([*start, 0.0])
    band = (0.0, length) if length > 0.0 else None
    return PolygonEdge(p, direction, band), PolygonEdge(p, np.array([-direction[1], direction[0]]), None)


def _convex_hull(points: Array) -> Array:
    """Return the corners (k, 2) of the convex hull of points (n, 2), without points on an edge.

    The method is Andrew's monotone chain.
    """
    scale = float(np.abs(points - points[0]).max())
    sorted_points = points[np.lexsort((points[:, 1], points[:, 0]))]

    def half_hull(points_in_order: Array) -> list[Array]:
        corners: list[Array] = []
        for point in points_in_order:
            while (
                len(corners) > 1
                and _doubled_signed_area(corners[-2], corners[-1], point) <= COLLINEAR_RATIO * scale * scale
            ):
                corners.pop()
            if not corners or np.abs(point - corners[-1]).max() > COLLINEAR_RATIO * scale:
                corners.append(point)
        return corners

    lower_hull, upper_hull = half_hull(sorted_points), half_hull(sorted_points[::-1])
    if len(lower_hull) < 2:
        return np.array(lower_hull)
    return np.array(lower_hull[:-1] + upper_hull[:-1])


def _doubled_signed_area(a: Array, b: Array, c: Array) -> float:
    """Twice the signed area of a triangle; positive if a, b, c are counter-clockwise."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _clip(corners: Array, edge: PolygonEdge) -> Array:
    """Clip a convex polygon (n, 2) to the points above the lower bound of the band of an edge."""
    assert edge.band is not None
    depths = (corners - edge.start[:2]) @ edge.direction - edge.band[0]
    clipped_corners: list[Array] = []
    for k, (corner, depth) in enumerate(zip(corners, depths.tolist(), strict=True)):
        next_index = (k + 1) % len(corners)
        if depth >= 0.0:
            clipped_corners.append(corner)
        if depth * depths[next_index] < 0.0:
            clipped_corners.append(corner + depth / (depth - depths[next_index]) * (corners[next_index] - corner))
    return np.array(clipped_corners).reshape(-1, 2)


LinkMass = tuple[str, float, Array]
"""Name of a link, its mass (kg), and its centre of mass (3,) in the link (m)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CentreOfMass(Objective):
    """Goal: the common centre of mass of links is at a point, or above a support polygon.

    Args:
        target: (3,), m, in the world, or in the link `relative_to`.
        support: instead of a target, points (n, 2) or (n, 3), m, in the same frame. The centre of mass, projected along
            z of this frame, must be inside the convex hull of the points; its height is free.
        margin: m, smallest allowed distance of the projected centre of mass from the edges of the hull.
        relative_to: link in whose frame target and support are given; None: the world.
        links: links whose masses count, by name or as `Link`; None: all links with a mass.
        dof: constrained coordinates of the target, one or more of X Y Z; not used with `support`.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        ObjectiveError: neither target nor support is given, or both; or the margin is negative or too large.
            Raised by `relations`: no link has a mass.
        DoFError: `dof` is empty or contains a rotation.
        ShapeError, NotFinite: an array has the wrong shape or is not finite.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> arm.link("tool").inertial = mk.Inertial(2.0)
        >>> square = [(0.0, -0.25), (0.5, -0.25), (0.5, 0.25), (0.0, 0.25)]
        >>> print(mk.CentreOfMass(support=square).error(arm, [0.0, 0.0]))
        0.3 m
    """

    target: Array | None
    support: Array | None
    margin: float
    relative_to: str | None
    links: tuple[str, ...] | None
    dof: tuple[DoF, ...]

    def __init__(
        self,
        target: ArrayLike | None = None,
        *,
        support: ArrayLike | None = None,
        margin: float = 0.0,
        relative_to: str | Link | None = None,
        links: Iterable[str | Link] | str | Link | None = None,
        dof: Iterable[DoFLike] | DoFLike = TRANSLATIONS,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        Objective.__init__(self, **options)
        if (target is None) == (support is None):
            raise ObjectiveError(f"{self._label} needs either a target point or a support polygon")
        dofs = as_dofs(dof)
        if not dofs or dofs[-1].is_rotation:
            raise DoFError(f"dof of {self._label} must be one or more of X Y Z, since a centre of mass has no rotation")
        link_list = [links] if isinstance(links, str | Link) else links
        fields = {
            "target": None if target is None else as_point(target, f"target of {self._label}"),
            "support": None if support is None else as_polygon(support, f"polygon of {self._label}"),
            "margin": as_number(margin, f"margin of {self._label}"),
            "relative_to": None if relative_to is None else link_name(relative_to, "relative_to"),
            "links": None if link_list is None else tuple(link_name(link) for link in link_list),
            "dof": dofs,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        if self.support is not None:
            inset_edges(self.support, self.margin, self._label)

    def __repr__(self) -> str:
        description = f"over {len(self.support)} corners" if self.support is not None else f"at {self.target}"
        return f"<{self._label} {description}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        a = None if self.relative_to is None else check_link(mechanism, self.relative_to)
        masses = self._masses(mechanism)

        def make_relation(rows: Sequence[int], X_a: Array, band: tuple[float, float] | None) -> Relation:
            lower, upper = (None, None) if band is None else (read_only(np.array([bound])) for bound in band)
            X_a = read_only(X_a)
            return Relation(
                RelationKind.CENTRE_OF_MASS,
                tuple(rows),
                a,
                X_a=X_a,
                masses=masses,
                lower=lower,
                upper=upper,
                weight=self.weight,
                target_writes=None if self.target is None else (TargetWrite(TargetPart.A_POSITION),),
            )

        if self.target is not None:
            return (make_relation(self.dof, translation(self.target), None),)
        assert self.support is not None

        return tuple(
            make_relation((0,), make_pose(_edge_axes(edge.direction), edge.start), edge.band)
            for edge in inset_edges(self.support, self.margin, self._label)
        )

    @property
    def target_spec(self) -> TargetSpec:
        """Declaration of the target: a point; or a polygon, which has no fixed shape."""
        if self.support is None:
            return TargetSpec(self.target, partial(as_point, label=f"target of {self._label}"), (POINT,))
        return TargetSpec(None, self._parse_polygon)

    def with_target(self, target: ArrayLike) -> Self:
        """Return the same goal with another target point (3,), or another support polygon if the goal has a polygon."""
        goal = copy(self)
        object.__setattr__(goal, "target" if self.support is None else "support", self.target_spec.parse(target))
        return goal

    def _parse_polygon(self, target: ArrayLike) -> Array:
        polygon = as_polygon(target, f"polygon of {self._label}")
        inset_edges(polygon, self.margin, self._label)
        return polygon

    def _masses(self, mechanism: Mechanism) -> tuple[LinkMass, ...]:
        names = mechanism.links if self.links is None else [check_link(mechanism, name) for name in self.links]
        masses: list[LinkMass] = []
        for name in names:
            inertial = mechanism.link(name).inertial
            if inertial is not None and inertial.mass > 0.0:
                masses.append((name, inertial.mass, inertial.pose.position))
        if not masses:
            source = f"the mechanism {mechanism.name!r}" if self.links is None else f"the links {', '.join(self.links)}"
            raise ObjectiveError(f"{self._label}: no mass in {source}; give links an `inertial`")
        return tuple(masses)


def _edge_axes(direction: Array) -> Array:
    """Return axes (3, 3) with x along `direction` (2,) and unchanged z."""
    x, y = direction.tolist()
    return np.array([[x, -y, 0.0], [y, x, 0.0], [0.0, 0.0, 1.0]])
