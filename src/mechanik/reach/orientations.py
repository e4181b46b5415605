"""Orientations that are spread evenly over all there are."""

from __future__ import annotations

import math

import numpy as np

from mechanik.spatial import quaternion, rotation
from mechanik.spatial.array import Array

GOLDEN = math.pi * (3.0 - math.sqrt(5.0))


def even_directions(count: int) -> Array:
    """Unit vectors (count, 3) by Fibonacci's spiral: each has about the same share of the sphere to itself."""
    z = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    around, width = GOLDEN * np.arange(count), np.sqrt(1.0 - z * z)
    return np.stack([width * np.cos(around), width * np.sin(around), z], axis=1)


def even_orientations(count: int) -> Array:
    """Quaternions wxyz (n, 4), n near `count`: every direction of `even_directions` for z, with even turns about it.

    Turns and directions are as far apart from each other; all turns about one direction follow each other. 60 are 10
    directions with 6 turns each.
    """
    turns = max(1, round((math.pi * count) ** (1.0 / 3.0)))
    directions = even_directions(max(1, round(count / turns)))
    start = GOLDEN * np.arange(len(directions))[:, None]  # so that neighbours do not all turn alike
    about_z = rotation.turn_z(start + 2.0 * math.pi / turns * np.arange(turns))
    return quaternion.from_matrix(pointing(directions)[:, None] @ about_z).reshape(-1, 4)


def even_turns(axis: Array, R: Array, count: int) -> Array:
    """R (3, 3) turned about an axis of the world (3,), in even steps: wxyz (count, 4)."""
    angles = 2.0 * math.pi / count * np.arange(count)
    return quaternion.from_matrix(rotation.from_axis_angle(axis, angles) @ R)


def pointing(directions: Array) -> Array:
    """A rotation (n, 3, 3) for each direction (n, 3) that turns z onto it."""
    return rotation.between(np.array([0.0, 0.0, 1.0]), directions)
