"""Draw example paths around obstacles into docs/motion: python docs/motion_pictures.py (needs mechanik[plot,plan]).

It runs examples as they stand, and draws what they leave behind: the obstacles of `collider`, and the mechanism of
`path` at some points, the first pale and the last in full colour.
"""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import mechanik as mk
from mechanik.motion.record.tessellation import tessellate
from mechanik.spatial.array import Array

HERE = Path(__file__).parent
LIGHT = np.array([0.4, -0.5, 0.77])
STONE, ORANGE, LINE = (0.55, 0.58, 0.63), (0.95, 0.49, 0.12), (0.80, 0.1, 0.1)
SCENES = {
    # example, points along the path, link and point whose curve is drawn, view (up, around), middle, half width
    "window": (
        "19_through_a_window",
        (0.0, 0.5, 1.0),
        "panda_hand_tcp",
        (0, 0, 0),
        (22, -140),
        (0.3, -0.1, 0.5),
        0.55,
    ),
    "two_arms": ("20_two_arms_one_box", (0.0, 0.5, 1.0), "box", (0, 0, 0), (24, -60), (0.0, 0.0, 0.4), 0.6),
    "rover": ("22_rover_past_a_rock", (0.2, 0.5, 0.8), "body", (0, 0, 0), (40, -70), (0.0, 0.7, 0.3), 3.4),
    "table": ("23_reaching_around_a_table", (0.0, 0.5, 1.0), "right_hand", (0, 0, -0.18), (8, -70), (0.3, 0, 0.8), 0.8),
}


def field(shape: mk.HeightField) -> Array:
    """Triangles (T, 3, 3) of the upper side, in its frame."""
    rows, columns = shape.heights.shape
    x, y = np.meshgrid(np.linspace(-0.5, 0.5, columns) * shape.size[0], np.linspace(-0.5, 0.5, rows) * shape.size[1])
    p = np.stack([x, y, shape.heights], axis=-1)
    a, b, c, d = (corner.reshape(-1, 3) for corner in (p[:-1, :-1], p[:-1, 1:], p[1:, 1:], p[1:, :-1]))
    return np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])


def solid(shape: mk.Box | mk.HeightField) -> Array | None:
    """Triangles (T, 3, 3) of a shape in its frame, small ones, so that they can be sorted by depth."""
    if isinstance(shape, mk.HeightField):
        return field(shape)
    mesh = tessellate(shape)
    if mesh is None:
        return None
    corners = mesh.points[mesh.corners]
    while np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max() > 0.25:
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
        corners = np.concatenate(
            [np.stack(triangle, axis=1) for triangle in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
        )
    return corners


def painted(corners: Array, X: Array, colour: Array, toward: Array) -> tuple[Array, Array]:
    """Triangles where they stand in the world, those that face the viewer, and their colours (T, 3)."""
    placed = corners @ X[:3, :3].T + X[:3, 3]
    across = np.cross(placed[:, 1] - placed[:, 0], placed[:, 2] - placed[:, 0])
    seen = across @ toward > 0.0
    bright = 0.65 + 0.35 * (across[seen] @ LIGHT) / np.linalg.norm(across[seen], axis=1)
    return placed[seen], np.clip(bright[:, None] * colour, 0, 1)


def draw(name: str) -> None:
    example, places, link, point, view, middle, half = SCENES[name]
    with contextlib.redirect_stdout(io.StringIO()):
        left = runpy.run_path(str(HERE.parent / "examples" / f"{example}.py"))
    path, collider = left["path"], left["collider"]
    up, around = np.radians(view)
    toward = np.array([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])
    parts = []
    for obstacle in collider.obstacles:
        if not isinstance(obstacle.shape, mk.HalfSpace) and (corners := solid(obstacle.shape)) is not None:
            parts.append(painted(corners, obstacle.pose.matrix, np.array(STONE), toward))
    for k, s in enumerate(places):
        pale = 0.75 * (1 - k / (len(places) - 1))
        poses = path.mechanism.poses(path.at([s, places[-1]]))
        for X, X_last, body in zip(*poses, path.mechanism.links.values(), strict=True):
            if s != places[-1] and np.allclose(X, X_last):
                continue
            for visual in body.visuals:
                if (corners := solid(visual.shape)) is not None:
                    rgba = visual.material.rgba if visual.material and visual.material.rgba else (*ORANGE, 1.0)
                    colour = (1 - pale) * np.array(rgba[:3]) + pale * 0.96
                    parts.append(painted(corners, X @ visual.pose.matrix, colour, toward))
    figure = plt.figure(figsize=(5, 4), dpi=110)
    axes = figure.add_axes((-0.15, -0.2, 1.3, 1.4), projection="3d")
    colours = np.concatenate([b for _, b in parts])
    solids = Poly3DCollection(np.concatenate([a for a, _ in parts]), facecolors=colours, edgecolors=colours, lw=0.3)
    axes.add_collection3d(solids)
    curve = mk.spatial.apply(path.mechanism.pose(link, path.at(np.linspace(path.s[0], path.s[-1], 200))), point)
    axes.plot(*curve.T, color=LINE, linewidth=2, zorder=10)
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))
    axes.set_zlim(middle[2] - half, middle[2] + half)
    axes.set_box_aspect((1, 1, 1))
    axes.view_init(*view)
    axes.set_proj_type("ortho")
    axes.set_axis_off()
    axes.computed_zorder = False
    (HERE / "motion").mkdir(exist_ok=True)
    figure.savefig(HERE / "motion" / f"{name}.png")
    plt.close(figure)


def main() -> None:
    for name in SCENES:
        draw(name)


if __name__ == "__main__":
    main()
