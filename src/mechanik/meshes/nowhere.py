"""Corners of triangles that are no place: not finite, or farther away than anything is."""

from __future__ import annotations

import numpy as np

from mechanik.errors import FormatError
from mechanik.spatial.array import Array

FARTHEST = 1e6
"""m, or whatever the file counts in: triangles that reach farther are nowhere, as are those that are not finite."""


def is_somewhere(place: tuple[float, float, float]) -> bool:
    return all(abs(number) <= FARTHEST for number in place)  # nothing that is not a number is less than anything


def nowhere(where: str, triangle: int, corner: tuple[float, float, float]) -> FormatError:
    """
    Args:
        where: the file's name, and the line if it has lines.
        triangle: its number in the file, from 1.
    """
    x, y, z = corner
    return FormatError(
        f"{where}: triangle {triangle} has a corner at ({x:g}, {y:g}, {z:g}); places are finite and within "
        f"{FARTHEST:g}: mend the mesh and write it anew, or put other shapes in its place"
    )


def refuse_nowhere(name: str, triangles: Array) -> None:
    """Raise for the first of the triangles (T, 3, 3) that has a corner which is no place."""
    bad = np.argwhere(~(np.abs(triangles) <= FARTHEST).all(axis=2))
    if len(bad):
        number, corner = bad[0].tolist()
        x, y, z = triangles[number, corner].tolist()
        raise nowhere(name, number + 1, (x, y, z))
