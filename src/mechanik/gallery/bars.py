"""Planar linkages from points and bars: which points each bar holds says where the pins are.

A bar is rigid, however many points it holds. Where two bars share a point there is a pin; where three do, two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from mechanik.gallery.bones import BLUE, DARK, GREEN, GREY, ORANGE, POINT, RED, WHITE, bone, hub
from mechanik.gallery.circles import Point, half_turn, heading
from mechanik.gallery.home import stand
from mechanik.mechanism import Builder, Material, Mechanism, PlacedShape
from mechanik.spatial import inverse, make, rotation
from mechanik.spatial.array import Array

Bars = Mapping[str, Sequence[str]]
COLOURS = (RED, ORANGE, BLUE, GREEN, WHITE, DARK)
UPRIGHT = make(rotation.turn_x(np.pi / 2), np.zeros(3))
"""Turns the plane of the linkage so that its y points up, along the world's z."""


def pin_together(
    name: str,
    points: Mapping[str, Point],
    bars: Bars,
    held: str = "ground",
    tools: Mapping[str, tuple[str, str, float]] | None = None,
    upright: bool = False,
) -> Mechanism:
    """Bars pinned where they share points, in a tree from the one that is held still, and the loops closed.

    Bars come in the order given, each once one that it shares a point with is there. It turns about the first of its
    points that is held already, in `<bar>_joint`, and its x axis points from there to its next point, so that
    the value of a joint on the held bar is the angle of the bar that it carries. A further point that is held
    already closes a loop with a pin, `<bar>_<point>`. The held bar's frame is that of the plane.

    Args:
        points: where each stands in the plane; m.
        bars: the points that each bar holds.
        tools: links without a body, by name: the bar that each is fixed to, the point where, and the angle of its x
            axis in the plane; rad.
        upright: whether y points up, instead of z.
    """
    r = 0.012 * float(np.ptp(list(points.values()), axis=0).max())
    linkage, frames = Builder(name), {held: np.eye(4)}
    linkage.link(held, visuals=_body(points, bars[held], np.eye(4), r, GREY, -2 * r), at=UPRIGHT if upright else None)
    holders = dict.fromkeys(bars[held], held)
    waiting = [bar for bar in bars if bar != held]
    while waiting:
        bar = next(bar for bar in waiting if any(point in holders for point in bars[bar]))
        waiting.remove(bar)
        pivot = next(point for point in bars[bar] if point in holders)
        others = [point for point in bars[bar] if point != pivot]
        parent, angle = holders[pivot], heading(points[pivot], points[others[0]])
        frames[bar] = make(rotation.turn_z(angle), (*points[pivot], 0.0))
        turn = half_turn(angle - _angle(frames[parent]))
        linkage.revolute(f"{bar}_joint", parent, bar, at=_seen_from(frames[parent], points[pivot]), value=turn)
        material = COLOURS[(len(frames) - 2) % len(COLOURS)]
        linkage.link(bar, visuals=_body(points, [pivot, *others], frames[bar], r, material, 0.0))
        for point in others:
            if point in holders:
                holder = holders[point]
                at, onto = (_seen_from(frames[link], points[point]) for link in (bar, holder))
                linkage.close(f"{bar}_{point}", bar, holder, "pin", at=at, onto=onto)
            else:
                holders[point] = bar
    for tool, (bar, point, angle) in (tools or {}).items():
        place = inverse(frames[bar]) @ make(rotation.turn_z(angle), (*points[point], 0.0))
        linkage.fixed(f"{tool}_joint", bar, tool, at=place)
    return stand(linkage.build())


def _seen_from(frame: Array, point: Point) -> Array:
    return frame[:3, :3].T @ (np.array([*point, 0.0]) - frame[:3, 3])


def _angle(frame: Array) -> float:
    return float(np.arctan2(frame[1, 0], frame[0, 0]))


def _body(
    points: Mapping[str, Point], held: Sequence[str], frame: Array, radius: float, material: Material, z: float
) -> list[PlacedShape]:
    """Bones from point to point, back to the first if they enclose an area, and a pin through the first."""
    aside = np.array([0.0, 0.0, z])
    corners = [_seen_from(frame, points[point]) + aside for point in held]
    shapes = [hub(corners[0], (0.0, 0.0, 1.0), 0.7 * radius, 5 * radius, DARK)]
    if len(corners) > 2 and np.linalg.matrix_rank(np.diff(corners, axis=0), tol=POINT) > 1:
        corners.append(corners[0])
    return shapes + [bone(a, b, radius, material) for a, b in pairwise(corners)]
