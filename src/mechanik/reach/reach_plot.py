"""Display of reachability maps: colours of shares, compact JSON data for viewers, and a matplotlib figure.

The share of a voxel is the fraction of the orientations that the link can reach in it. The JSON data:

    {"mechanik_reach": 1, "mechanism": "panda", "link": "panda_hand_tcp", "orientation_kind": "pose",
     "orientations": 60, "resolution": 0.05, "origin": [x, y, z], "shape": [nx, ny, nz], "count": k, "volume": m3,
     "cells": "...", "shares": "..."}

`cells` and `shares` are base64: 3 k little-endian unsigned integers of 16 bits, x y z x y z ..., and k unsigned
integers of 8 bits. The centre of a voxel is origin + (cell + 0.5) * resolution, m in the world frame; its share is the
integer divided by 255. In a browser: `new Uint16Array(Uint8Array.from(atob(map.cells), c => c.charCodeAt(0)).buffer)`.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mechanik.errors import MissingExtra
from mechanik.reach.reach_map import VERSION
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_vector

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mechanik.reach.reach_map import ReachMap


COLOUR_STOPS = ((94, 60, 153), (58, 98, 176), (38, 142, 166), (64, 176, 124), (158, 205, 74), (250, 222, 60))
"""RGB colours from share 0 to 1; the lightness increases throughout, for greyscale prints and colour-blind readers."""


def colours(shares: Array) -> npt.NDArray[np.uint8]:
    """Return RGB colours (..., 3), 0 to 255, of shares (...), 0 to 1."""
    positions = np.linspace(0.0, 1.0, len(COLOUR_STOPS))
    channels = [np.interp(shares, positions, [colour[k] for colour in COLOUR_STOPS]) for k in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def reach_map_json(map: ReachMap) -> dict[str, Any]:
    """Return a map as plain data in the format of the module docstring."""
    return {
        "mechanik_reach": VERSION,
        "mechanism": map.mechanism,
        "link": map.link,
        "orientation_kind": map.orientation_kind,
        "orientations": len(map.wxyz),
        "resolution": map.resolution,
        "origin": map.origin.tolist(),
        "shape": list(map.shape),
        "count": len(map),
        "volume": map.volume,
        "cells": b64encode(map.cells.astype("<u2").tobytes()).decode(),
        "shares": b64encode((255 * map.shares).round().astype(np.uint8).tobytes()).decode(),
    }


DARK, GREY = "#1c2430", "#5b6675"
PLANES = ((0, 1, 2), (0, 2, 1), (1, 2, 0))
"""Horizontal axis, vertical axis and normal of each section: views from +z (above), from -y, and from +x."""
LIGHT = np.array([0.35, -0.6, 0.72])
"""Direction towards the light, for the shading of faces."""
FACES = tuple((axis, side) for axis in range(3) for side in (-1, 1))
"""Axis and side of the six faces of a voxel."""


def plot_reach_map(map: ReachMap, at: ArrayLike | None = None) -> Figure:
    """Plot a map; see `ReachMap.plot`."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("plotting a reachability map", "plot") from None
    point = map.centres[map.best] if at is None else as_vector(at, 3, "point of the sections")
    # Any, because most argument types are unknown in matplotlib's stubs
    figure: Any = Figure(figsize=(7.2, 6.4) if map.is_flat else (11.0, 9.6), layout="constrained", facecolor="white")
    figure.suptitle(_title(map), color=DARK, fontsize=13)
    if map.is_flat:
        axes = [figure.add_subplot()]
        _draw_section(axes[0], map, point, PLANES[(2, 1, 0).index(_flat_axis(map))])
    else:
        axes = [figure.add_subplot(2, 2, k) for k in (1, 2, 3)]
        for section_axes, plane in zip(axes, PLANES, strict=True):
            _draw_section(section_axes, map, point, plane)
        axes.append(figure.add_subplot(2, 2, 4, projection="3d", computed_zorder=False))
        _draw_cutaway(axes[-1], map, point)
    if len(map.wxyz):
        _draw_colour_bar(figure, axes, map)
    return figure


def _title(map: ReachMap) -> str:
    name = f"{map.mechanism}: " if map.mechanism else ""
    return f"{name}reach of {map.link}, {map.size_text} in voxels of {map.resolution:g} m"


def _flat_axis(map: ReachMap) -> int:
    """Return the last axis along which the map has one layer."""
    return max(k for k in range(3) if map.shape[k] == 1)


def _draw_section(axes: Any, map: ReachMap, point: Array, plane: tuple[int, int, int]) -> None:
    horizontal, vertical, normal = plane
    axis_names = "xyz"
    shares = map.section(axis_names[normal], float(point[normal]))  # type: ignore[arg-type]
    image = np.full((*shares.shape, 4), 0, dtype=np.uint8)
    image[..., :3], image[..., 3] = colours(np.nan_to_num(shares)), np.where(np.isnan(shares), 0, 255)
    min_corner, max_corner = map.origin, map.origin + np.array(map.shape) * map.resolution
    axes.imshow(
        image.transpose(1, 0, 2),
        origin="lower",
        extent=(min_corner[horizontal], max_corner[horizontal], min_corner[vertical], max_corner[vertical]),
        interpolation="nearest",
    )
    margin = 0.04 * float((max_corner - min_corner).max())
    axes.set(
        xlim=(min_corner[horizontal] - margin, max_corner[horizontal] + margin),
        ylim=(min_corner[vertical] - margin, max_corner[vertical] + margin),
    )
    if not map.is_flat:
        for draw_line, value in ((axes.axvline, point[horizontal]), (axes.axhline, point[vertical])):
            draw_line(value, color=DARK, linewidth=0.7, alpha=0.45, linestyle=(0, (4, 3)))
    axes.plot(0.0, 0.0, marker="+", color=DARK, markersize=9, markeredgewidth=1.4)  # the world origin
    axes.set_xlabel(f"{axis_names[horizontal]} (m)", color=GREY)
    axes.set_ylabel(f"{axis_names[vertical]} (m)", color=GREY)
    axes.set_title(f"{axis_names[normal]} = {float(point[normal]):.3g} m", color=DARK, fontsize=10)
    axes.tick_params(colors=GREY, labelsize=8)
    axes.set_aspect("equal")
    for spine in axes.spines.values():
        spine.set_color("#d9dee5")


def _draw_cutaway(axes: Any, map: ReachMap, point: Array) -> None:
    """Draw the voxels as cubes, without the quadrant between `point` (3,), m, and the viewer."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    centres = map.centres
    shown_rows = np.flatnonzero(~((centres[:, 0] > point[0]) & (centres[:, 1] < point[1])))
    is_filled = np.zeros(tuple(n + 2 for n in map.shape), dtype=np.bool_)
    is_filled[tuple((map.cells[shown_rows] + 1).T)] = True
    rgb = colours(map.shares) / 255
    polygons: list[Array] = []
    face_colours: list[Array] = []
    for axis, side in FACES:
        if (axis, side) in ((0, -1), (1, 1), (2, -1)):  # not visible from the point of view
            continue
        normal = np.zeros(3, dtype=np.int64)
        normal[axis] = side
        exposed_rows = shown_rows[~is_filled[tuple((map.cells[shown_rows] + 1 + normal).T)]]
        polygons.append(centres[exposed_rows][:, None] + map.resolution / 2 * _corners(axis, side))
        face_colours.append(rgb[exposed_rows] * (0.70 + 0.30 * max(0.0, float(LIGHT @ normal))))
    corners, colours_by_face = np.concatenate(polygons), np.concatenate(face_colours)
    order = np.argsort(
        corners.mean(axis=1) @ np.array([1.0, -1.0, 0.8])
    )  # draw from back to front (painter's algorithm)
    faces = Poly3DCollection(
        list(corners[order]), facecolors=colours_by_face[order], edgecolors=colours_by_face[order], linewidths=0.2
    )
    axes.add_collection3d(faces)
    min_corner, max_corner = map.origin, map.origin + np.array(map.shape) * map.resolution
    axes.set(
        xlim=(min_corner[0], max_corner[0]), ylim=(min_corner[1], max_corner[1]), zlim=(min_corner[2], max_corner[2])
    )
    axes.set_box_aspect(tuple((max_corner - min_corner).tolist()), zoom=0.95)
    axes.view_init(elev=26, azim=-45)
    axes.set_title("cutaway view", color=DARK, fontsize=10)
    for name in "xyz":
        getattr(axes, f"set_{name}label")(f"{name} (m)", color=GREY)
    axes.tick_params(colors=GREY, labelsize=7)


def _corners(axis: int, side: int) -> Array:
    """Return the corners (4, 3) of a face of the cube from -1 to 1."""
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return np.insert(square, axis, float(side), axis=1)


def _draw_colour_bar(figure: Any, axes: list[Any], map: ReachMap) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap

    colour_map: Any = ListedColormap(colours(np.linspace(0.0, 1.0, 256)) / 255)
    label = "orientations" if map.orientation_kind == "pose" else "directions of z"
    bar: Any = figure.colorbar(ScalarMappable(cmap=colour_map), ax=axes, shrink=0.6, aspect=30, pad=0.04)
    bar.set_label(f"share of {len(map.wxyz)} {label}", color=GREY)
    bar.ax.tick_params(colors=GREY, labelsize=8)
    bar.outline.set_visible(False)
