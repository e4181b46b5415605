"""Draw the picture of the gallery: python docs/gallery_picture.py (needs mechanik[plot])."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import mechanik as mk

SHOWN = (
    *("panda", "humanoid", "stewart_platform", "delta_robot", "walker"),
    *("rover", "excavator", "biped", "gripper", "two_arms"),
    *("jansen_leg", "peaucellier", "four_bar", "bennett", "planar_3rrr"),
)
FLAT = {"four_bar", "peaucellier", "planar_3rrr"}
FROM_THE_SIDE = {"jansen_leg", "excavator"}
LIGHT = np.array([0.4, -0.5, 0.77])
AROUND = 24


def outline(shape: mk.Box | mk.Sphere | mk.Cylinder | mk.Capsule) -> list[tuple[float, float]]:
    """The profile (radius, height) that makes a round shape when turned about z."""
    match shape:
        case mk.Cylinder(radius, length):
            return [(0, -length / 2), (radius, -length / 2), (radius, length / 2), (0, length / 2)]
        case mk.Sphere(radius):
            half = 0.0
        case mk.Capsule(radius, length):
            half = length / 2
    bow = np.linspace(-np.pi / 2, np.pi / 2, 13)
    return [(radius * np.cos(a), radius * np.sin(a) + (half if a > 0 else -half)) for a in bow]


def faces(shape: mk.Box | mk.Sphere | mk.Cylinder | mk.Capsule) -> list[np.ndarray]:
    """Polygons (4, 3) around the shape, in its own frame."""
    if isinstance(shape, mk.Box):
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(shape.size) / 2
        sides = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
        return [corners[side] for side in sides]
    profile, turn = outline(shape), np.linspace(0, 2 * np.pi, AROUND + 1)
    rings = [np.stack([r * np.cos(turn), r * np.sin(turn), np.full_like(turn, z)], axis=1) for r, z in profile]
    return [
        np.array([low[k], low[k + 1], high[k + 1], high[k]]) for low, high in pairwise(rings) for k in range(AROUND)
    ]


def draw(axes: plt.Axes, mechanism: mk.Mechanism) -> None:
    polygons, colours = [], []
    for link in mechanism.links.values():
        for visual in link.visuals:
            X = link.world_matrix @ visual.pose.matrix
            colour = np.array(visual.material.rgba[:3] if visual.material and visual.material.rgba else (0.6,) * 3)
            for face in faces(visual.shape):
                corners = face @ X[:3, :3].T + X[:3, 3]
                normal = np.cross(corners[2] - corners[0], corners[3] - corners[1])
                size = np.linalg.norm(normal)
                polygons.append(corners)
                colours.append(colour * (0.72 + 0.28 * abs(normal @ LIGHT) / size if size > 0 else 0.8))
    axes.add_collection3d(Poly3DCollection(polygons, facecolors=colours, edgecolors=colours, linewidths=0.2))
    points = np.concatenate(polygons)
    low, high = points.min(axis=0), points.max(axis=0)
    middle, reach = (low + high) / 2, (high - low).max() / 2 * 0.86
    axes.set(**{f"{a}lim": (middle[i] - reach, middle[i] + reach) for i, a in enumerate("xyz")})
    axes.set_box_aspect((1, 1, 1))
    axes.set_axis_off()


def main() -> None:
    figure = plt.figure(figsize=(13, 8.4))
    for i, name in enumerate(SHOWN):
        axes = figure.add_subplot(3, 5, i + 1, projection="3d")
        draw(axes, mk.gallery.make(name))
        axes.view_init(
            elev=75 if name in FLAT else 18, azim=-90 if name in FLAT else -75 if name in FROM_THE_SIDE else -50
        )
        axes.set_title(name.replace("_", " "), y=-0.02, fontsize=11, color="0.35")
    figure.subplots_adjust(left=0, right=1, bottom=0.02, top=1, wspace=0, hspace=0)
    figure.savefig(Path(__file__).with_name("gallery.png"), dpi=100, facecolor="white")


if __name__ == "__main__":
    main()
