"""The <heightmap> of an SDF: ground whose heights are the pixels of a picture."""

from __future__ import annotations

import numpy as np

from mechanik.errors import FormatError, Refused
from mechanik.formats.png_heights import read_png
from mechanik.formats.sdf_values import numbers_of, text_in
from mechanik.formats.source import FilesAround
from mechanik.formats.urdf_shapes import FARTHEST
from mechanik.formats.xml_text import Node
from mechanik.mechanism.shapes import HeightField
from mechanik.spatial import make
from mechanik.spatial.array import Array


def read_heightmap(node: Node, files: FilesAround) -> HeightField | None:
    """As Gazebo has it: black is at 0 and the brightest pixel at the third size, the first row is that of largest y.

    What cannot be read is left out, with a warning.
    """
    uri, said = text_in(node, "uri"), node.first("size")
    x, y, z = (1.0, 1.0, 1.0) if said is None else numbers_of(said, 3)
    if not (min(x, y) > 0.0 and z >= 0.0 and max(x, y, z) <= FARTHEST):
        raise (said or node).fault(f"says {x:g} {y:g} {z:g}; a size is above 0 along x and y, and up to {FARTHEST:g} m")
    data = None if uri is None else files.content(uri)
    if uri is None or data is None:
        names = "names no file" if uri is None else f"names {uri!r}, and there is no such file{files.advice(uri)}"
        node.warn(f"{names}; the ground is left out")
        return None
    try:
        grey = read_png(data)
    except (FormatError, Refused) as error:
        node.warn(f"names {uri!r}, which {error}; the ground is left out (heights are read from PNG)")
        return None
    if min(grey.shape) < 2:
        node.warn(f"names {uri!r}, which has one row or column of pixels; the ground is left out")
        return None
    return HeightField(np.flipud(grey) * (z / (grey.max() or 1.0)), (x, y))


def heightmap_place(owner: Node) -> Array:
    """By how much the <heightmap> in a <visual> or <collision> is shifted, (4, 4)."""
    node = next(one for one in owner.walk() if one.tag == "heightmap")
    said = node.first("pos")
    return np.eye(4) if said is None else make(np.eye(3), np.array(numbers_of(said, 3)))
