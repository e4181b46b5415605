"""Planar linkages from points and bars: bars that share a point are pinned there, and loops are closed by pins.

A bar is rigid, however many points it holds. A point that three bars share has two pins. Points follow from distances
by circle intersection.
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
    return start[0] + length * math.cos(angle), start[1] + length * math.sin(angle)


def direction_angle(start: PlanarPoint, end: PlanarPoint) -> float:
    """Return the angle from x to the direction from `start` to `end`; rad."""
    return math.atan2(end[1] - start[1], end[0] - start[0])


def intersect_circles(gallery_name: str, a: PlanarPoint, reach_a: float, b: PlanarPoint, reach_b: float) -> PlanarPoint:
    """Return the intersection of two circles that is on the left of the line from `a` to `b`.

    Args:
        gallery_name: name of the mechanism, for the error message.
        a, b: centres; m.
        reach_a, reach_b: radii; m.

    Raises:
        StructureError: the circles do not intersect.
    """
    x, y = b[0] - a[0], b[1] - a[1]
    distance = math.hypot(x, y)
    along = (distance**2 + reach_a**2 - reach_b**2) / (2 * distance) if distance > 0 else math.inf
    if not abs(along) <= reach_a:
        raise StructureError(
            f"{gallery_name} cannot be assembled: links of {reach_a:g} and {reach_b:g} do not meet "
            f"over a gap of {distance:g}"
        )
    height = math.sqrt(reach_a**2 - along**2)
    return a[0] + (along * x - height * y) / distance, a[1] + (along * y + height * x) / distance


def wrap_angle(angle: float) -> float:
    """Return the equivalent angle between -pi and pi."""
    return math.remainder(angle, 2 * math.pi)


Bars = Mapping[str, Sequence[str]]
"""Names of the points that each bar holds, by the name of the bar."""
COLOURS = (RED, ORANGE, BLUE, GREEN, WHITE, DARK)
"""Colours of the moving bars, repeated in this order."""
UPRIGHT_POSE = make_pose(rotation.about_x(np.pi / 2), np.zeros(3))
"""Rotates the plane of the linkage so that its y axis points along the world's z."""


def build_pinned_linkage(
    name: str,
    points: Mapping[str, PlanarPoint],
    bars: Bars,
    fixed_bar: str = "ground",
    tools: Mapping[str, tuple[str, str, float]] | None = None,
    upright: bool = False,
) -> Mechanism:
    """Build a planar linkage from bars that are pinned at shared points: a tree from the fixed bar, and closures.

    A bar is added, in the given order, as soon as it shares a point with an earlier bar. Its joint `<bar>_joint` is at
    the first of its points that an earlier bar holds, and its x axis points from there to its next point. So the value
    of a joint on the fixed bar is the angle of the bar that it moves. Each further point that an earlier bar holds
    closes a loop with a pin, `<bar>_<point>`. The frame of the fixed bar is that of the plane.

    Args:
        name: name of the mechanism.
        points: position of each point in the plane; m.
        bars: the points that each bar holds.
        fixed_bar: the bar that is fixed to the world.
        tools: links without shapes, by name: the bar to which each is fixed, its point, and the angle of its x axis in
            the plane; rad.
        upright: whether y of the plane points up, along the world's z; otherwise z of the plane does.
    """
    r = 0.012 * float(np.ptp(list(points.values()), axis=0).max())
    linkage, frames = Builder(name), {fixed_bar: np.eye(4)}
    linkage.link(
        fixed_bar,
        visuals=_body(points, bars[fixed_bar], np.eye(4), r, GREY, -2 * r),
        at=UPRIGHT_POSE if upright else None,
    )
    holders = dict.fromkeys(bars[fixed_bar], fixed_bar)
    pending = [bar for bar in bars if bar != fixed_bar]
    while pending:
        bar = next(bar for bar in pending if any(point in holders for point in bars[bar]))
        pending.remove(bar)
        pivot = next(point for point in bars[bar] if point in holders)
        others = [point for point in bars[bar] if point != pivot]
        parent, angle = holders[pivot], direction_angle(points[pivot], points[others[0]])
        frames[bar] = make_pose(rotation.about_z(angle), (*points[pivot], 0.0))
        joint_angle = wrap_angle(angle - _angle(frames[parent]))
        linkage.revolute(f"{bar}_joint", parent, bar, at=_in_frame(frames[parent], points[pivot]), value=joint_angle)
        material = COLOURS[(len(frames) - 2) % len(COLOURS)]
        linkage.link(bar, visuals=_body(points, [pivot, *others], frames[bar], r, material, 0.0))
        for point in others:
            if point in holders:
                holder = holders[point]
                at, onto = (_in_frame(frames[link], points[point]) for link in (bar, holder))
                linkage.close(f"{bar}_{point}", bar, holder, "pin", at=at, onto=onto)
            else:
                holders[point] = bar
    for tool, (bar, point, angle) in (tools or {}).items():
        X_bar_tool = inverse(frames[bar]) @ make_pose(rotation.about_z(angle), (*points[point], 0.0))
        linkage.fixed(f"{tool}_joint", bar, tool, at=X_bar_tool)
    return set_home(linkage.build())


def _in_frame(frame: Array, point: PlanarPoint) -> Array:
    return frame[:3, :3].T @ (np.array([*point, 0.0]) - frame[:3, 3])


def _angle(frame: Array) -> float:
    return float(np.arctan2(frame[1, 0], frame[0, 0]))


def _body(
    points: Mapping[str, PlanarPoint], names: Sequence[str], frame: Array, radius: float, material: Material, z: float
) -> list[ShapeInstance]:
    """Return capsules from point to point, closed to a polygon if they enclose an area, and a pin through the first."""
    offset = np.array([0.0, 0.0, z])
    corners = [_in_frame(frame, points[point]) + offset for point in names]
    shapes = [hub(corners[0], (0.0, 0.0, 1.0), 0.7 * radius, 5 * radius, DARK)]
    if len(corners) > 2 and np.linalg.matrix_rank(np.diff(corners, axis=0), tol=MIN_LENGTH) > 1:
        corners.append(corners[0])
    return shapes + [capsule(a, b, radius, material) for a, b in pairwise(corners)]
