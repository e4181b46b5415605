"""Planar linkages from points and bars: bars that share a point are pinned at this point, and pins close the loops.

A bar is rigid and may have any number of points. A point that three bars share has two pins. `intersect_circles`
computes a point from its distances to two other points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.construction import (
    BLUE,
    DARK,
    GREEN,
    GREY,
    MIN_LENGTH,
    ORANGE,
    RED,
    WHITE,
    capsule,
    hub,
    set_home,
)
from mechanik.model import Builder, Material, Mechanism, ShapeInstance
from mechanik.spatial import inverse, make_pose, rotation
from mechanik.spatial.array import Array

PlanarPoint = tuple[float, float]
"""(x, y); m."""


def polar_point(start: PlanarPoint, length: float, angle: float) -> PlanarPoint:
    """Return the point at a distance (m) from `start`, in the direction of an angle from x (rad)."""
    return start[0] + length * math.cos(angle), start[1] + length * math.sin(angle)


def direction_angle(start: PlanarPoint, end: PlanarPoint) -> float:
    """Return the angle from x to the direction from `start` to `end`; rad."""
    return math.atan2(end[1] - start[1], end[0] - start[0])


def intersect_circles(
    gallery_name: str, a: PlanarPoint, radius_a: float, b: PlanarPoint, radius_b: float
) -> PlanarPoint:
    """Return the intersection of two circles that is on the left of the line from `a` to `b`.

    Args:
        gallery_name: name of the mechanism, for the error message.
        a, b: centres; m.
        radius_a, radius_b: radii; m.

    Raises:
        StructureError: the circles do not intersect, or have the same centre.
    """
    dx, dy = b[0] - a[0], b[1] - a[1]
    distance = math.hypot(dx, dy)
    axial_distance = (distance**2 + radius_a**2 - radius_b**2) / (2 * distance) if distance > 0 else math.inf
    if not abs(axial_distance) <= radius_a:
        raise StructureError(
            f"{gallery_name} cannot be assembled: links of {radius_a:g} and {radius_b:g} m cannot "
            f"connect points at a distance of {distance:g} m; change its dimensions"
        )
    lateral_distance = math.sqrt(radius_a**2 - axial_distance**2)
    return a[0] + (axial_distance * dx - lateral_distance * dy) / distance, a[1] + (
        axial_distance * dy + lateral_distance * dx
    ) / distance


def wrap_angle(angle: float) -> float:
    """Return the equivalent angle from -pi to pi; rad."""
    return math.remainder(angle, 2 * math.pi)


Bars = Mapping[str, Sequence[str]]
"""Names of the points of each bar, by the name of the bar."""
MATERIALS = (RED, ORANGE, BLUE, GREEN, WHITE, DARK)
"""Materials of the moving bars, repeated in this order."""
X_WORLD_UPRIGHT_PLANE = make_pose(rotation.about_x(np.pi / 2), np.zeros(3))
"""Pose of an upright linkage: y of its plane points along the world's z."""


def build_pinned_linkage(
    name: str,
    points: Mapping[str, PlanarPoint],
    bars: Bars,
    fixed_bar: str = "ground",
    tools: Mapping[str, tuple[str, str, float]] | None = None,
    is_upright: bool = False,
) -> Mechanism:
    """Build a planar linkage from bars that are pinned at shared points: a tree from the fixed bar, and closures.

    Bars are added one by one: the next is the first remaining bar in `bars` that shares a point with an added bar. Its
    joint `<bar>_joint` is at the first of its points that an added bar has. The x axis of the bar points from this
    point to the first of its other points, so the value of a joint on the fixed bar is the angle of the moved bar from
    x of the plane. At each of its other points that an added bar has, the pin `<bar>_<point>` closes a loop. The frame
    of the fixed bar is that of the plane.

    Args:
        name: name of the mechanism.
        points: position of each point in the plane; m.
        bars: the points of each bar.
        fixed_bar: the bar that is fixed to the world.
        tools: further links, without shapes, by name: for each the bar to which it is fixed, the point at its origin,
            and the angle of its x axis in the plane, rad.
        is_upright: whether y of the plane points up, along the world's z; otherwise z of the plane points up.
    """
    radius = 0.012 * float(np.ptp(list(points.values()), axis=0).max())
    linkage, bar_poses = Builder(name), {fixed_bar: np.eye(4)}
    linkage.link(
        fixed_bar,
        visuals=_bar_shapes(points, bars[fixed_bar], np.eye(4), radius, GREY, -2 * radius),
        at=X_WORLD_UPRIGHT_PLANE if is_upright else None,
    )
    bar_of_point = dict.fromkeys(bars[fixed_bar], fixed_bar)
    remaining_bars = [bar for bar in bars if bar != fixed_bar]
    while remaining_bars:
        bar = next(bar for bar in remaining_bars if any(point in bar_of_point for point in bars[bar]))
        remaining_bars.remove(bar)
        pivot = next(point for point in bars[bar] if point in bar_of_point)
        other_points = [point for point in bars[bar] if point != pivot]
        parent, angle = bar_of_point[pivot], direction_angle(points[pivot], points[other_points[0]])
        bar_poses[bar] = make_pose(rotation.about_z(angle), (*points[pivot], 0.0))
        joint_angle = wrap_angle(angle - _rotation_angle(bar_poses[parent]))
        linkage.revolute(f"{bar}_joint", parent, bar, at=_to_frame(bar_poses[parent], points[pivot]), value=joint_angle)
        material = MATERIALS[(len(bar_poses) - 2) % len(MATERIALS)]
        linkage.link(bar, visuals=_bar_shapes(points, [pivot, *other_points], bar_poses[bar], radius, material, 0.0))
        for point in other_points:
            if point in bar_of_point:
                added_bar = bar_of_point[point]
                at, onto = (_to_frame(bar_poses[link], points[point]) for link in (bar, added_bar))
                linkage.close(f"{bar}_{point}", bar, added_bar, "pin", at=at, onto=onto)
            else:
                bar_of_point[point] = bar
    for tool, (bar, point, angle) in (tools or {}).items():
        X_bar_tool = inverse(bar_poses[bar]) @ make_pose(rotation.about_z(angle), (*points[point], 0.0))
        linkage.fixed(f"{tool}_joint", bar, tool, at=X_bar_tool)
    return set_home(linkage.build())


def _to_frame(X_plane_bar: Array, point: PlanarPoint) -> Array:
    """Return a point (3,) of the plane in the frame of a bar; m."""
    return X_plane_bar[:3, :3].T @ (np.array([*point, 0.0]) - X_plane_bar[:3, 3])


def _rotation_angle(X_plane_bar: Array) -> float:
    return float(np.arctan2(X_plane_bar[1, 0], X_plane_bar[0, 0]))


def _bar_shapes(
    points: Mapping[str, PlanarPoint],
    point_names: Sequence[str],
    X_plane_bar: Array,
    radius: float,
    material: Material,
    z: float,
) -> list[ShapeInstance]:
    """Return capsules from point to point, and a pin at the first point.

    If the points are not collinear, a capsule from the last to the first point closes the polygon. The height of the
    shapes above the plane is `z`, m.
    """
    offset = np.array([0.0, 0.0, z])
    corners = [_to_frame(X_plane_bar, points[point]) + offset for point in point_names]
    shapes = [hub(corners[0], (0.0, 0.0, 1.0), 0.7 * radius, 5 * radius, DARK)]
    if len(corners) > 2 and np.linalg.matrix_rank(np.diff(corners, axis=0), tol=MIN_LENGTH) > 1:
        corners.append(corners[0])
    return shapes + [capsule(a, b, radius, material) for a, b in pairwise(corners)]
