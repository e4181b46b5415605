"""A mesh file as triangles: STL and OBJ, for who has to write them elsewhere. Bytes may come from anybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.errors import FormatError
from mechanik.meshes.beside_mesh import BesideMeshes, ending_of
from mechanik.meshes.nowhere import FARTHEST, refuse_nowhere
from mechanik.meshes.obj_text import read_mtl, read_obj
from mechanik.meshes.stl_triangles import read_stl
from mechanik.spatial.array import Array

READ = ("stl", "obj")
"""Endings of files that can be read."""

POINTER = b"version https://git-lfs.github.com/"

Colour = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Triangles of one colour.

    Attributes:
        points: (V, 3), in the file's frame and unit; none stands twice.
        corners: (T, 3), numbers of points, T > 0; counter-clockwise as seen from outside.
        rgba: what the file says, each 0 to 1; None if it says nothing.
    """

    points: Array
    corners: npt.NDArray[np.uint32]
    rgba: Colour | None = None


def read_surfaces(
    uri: str,
    data: bytes,
    find: Callable[[str], bytes | None] = lambda name: None,
    most: int = 2_000_000,
    whole: bool = False,
) -> list[Surface]:
    """
    Args:
        uri: how the file is called; its ending says the format.
        find: the bytes of a file beside it, for the materials of an .obj; see `BesideMeshes`.
        most: triangles.
        whole: whether a triangle that is nowhere is an error, as it leaves a hole; else it is dropped. See `FARTHEST`.
    Returns:
        One surface a colour; none if there is nothing in it.
    Raises:
        FormatError: it is of another format, or broken; or `whole` is asked for, and a triangle is nowhere.
        Refused: it is too large, or has more than `most` triangles.
    """
    ending, name = ending_of(uri), uri.replace("\\", "/").split("/")[-1][:80]
    if data.startswith(POINTER):
        raise FormatError(f"{name}: this is a pointer of Git LFS in place of the file; fetch that with `git lfs pull`")
    if ending == "stl":
        parts: dict[str, Array] = {"": read_stl(name, data, most)}
        if whole:
            refuse_nowhere(name, parts[""])
        colours: dict[str, Colour] = {}
    elif ending == "obj":
        parts = read_obj(name, data, most, whole)
        beside = BesideMeshes(find).of(uri, data)
        colours = {}
        for said, place in beside.items():
            if ending_of(said) == "mtl":
                colours |= read_mtl(find(place) or b"")
    else:
        raise FormatError(f"{name}: meshes that end with '{ending}' are not read; {' and '.join(READ)} are")
    found = [_surface(corners, colours.get(material)) for material, corners in parts.items()]
    return [surface for surface in found if surface is not None]


def _surface(triangles: Array, rgba: Colour | None) -> Surface | None:
    """Of (T, 3, 3) places of corners; None if no triangle is left."""
    good = (np.abs(triangles) <= FARTHEST).all(axis=(1, 2))  # nothing that is not a number is less than anything
    places = triangles[good].reshape(-1, 3) + 0.0  # no minus zeros
    if len(places) == 0:
        return None
    # places as one value each, which is far quicker to sort than rows
    rows = np.ascontiguousarray(places).view(np.dtype((np.void, 24))).reshape(-1)
    _, first, corners = np.unique(rows, return_index=True, return_inverse=True)
    numbered = corners.reshape(-1, 3).astype(np.uint32)
    a, b, c = numbered.T
    flat = (a == b) | (b == c) | (c == a)
    return None if flat.all() else Surface(places[first], numbered[~flat], rgba)
