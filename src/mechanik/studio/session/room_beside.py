"""A free place beside a mechanism, for something that is put there."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from mechanik.collision import Obstacle
from mechanik.spatial.array import Array
from mechanik.studio.messages.checks import Vector
from mechanik.studio.session.model_info import FROM_ASIDE, ball_around, view_from
from mechanik.studio.session.table import Table

AWAY = 0.75
"""Of the radius of the ball around it: within reach of most arms, and off most bodies."""
SIDES = 12
DIGITS = 3
"""Of the numbers of the place: millimetres are enough for what people move on."""


def room_beside(table: Table, q: Array, obstacles: Iterable[Obstacle]) -> Vector:
    """Of some places around the mechanism at q (nq,) the one that is farthest from its bodies and from obstacles; in
    its plane if it moves in one, else at the height of its middle."""
    mechanism, X = table.mechanism, table.anatomy.poses(q)
    centre, radius = ball_around(mechanism, X)
    normal = view_from(mechanism, q)
    across, along = _sides(np.array((0.0, 0.0, 1.0) if normal is FROM_ASIDE else normal))
    angles = np.arange(SIDES) * 2 * math.pi / SIDES
    directions = np.outer(np.cos(angles), across) + np.outer(np.sin(angles), along)
    ring: Array = np.array(centre) + AWAY * radius * directions
    taken = np.array([*_bodies(table, X), *(one.pose.position for one in obstacles)]).reshape(-1, 3)
    gaps = np.linalg.norm(ring[:, None] - taken, axis=2).min(axis=1, initial=math.inf)
    x, y, z = ring[int(np.argmax(gaps))].tolist()
    return round(x, DIGITS), round(y, DIGITS), round(z, DIGITS)


def _sides(normal: Array) -> tuple[Array, Array]:
    """Two unit vectors (3,) across a unit vector, the first along x as far as that goes."""
    first = np.eye(3)[0] if abs(normal[0]) < 0.9 else np.eye(3)[1]
    across: Array = first - normal * (normal @ first)
    across = across / np.linalg.norm(across)
    return across, np.asarray(np.cross(normal, across), dtype=np.float64)


def _bodies(table: Table, X: Array) -> list[Array]:
    """Middles (3,) of links and of their shapes, with links at X (L, 4, 4)."""
    found: list[Array] = []
    for X_link, link in zip(X, table.mechanism.links.values(), strict=True):
        found.append(X_link[:3, 3])
        found += [X_link[:3, :3] @ one.pose.position + X_link[:3, 3] for one in (*link.visuals, *link.collisions)]
    return found
