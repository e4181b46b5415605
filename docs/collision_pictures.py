"""Draw the shapes that `fit_shapes` fits to a Panda: python docs/collision_pictures.py.

It needs mechanik[plot,collision] and the package example-robot-data. Meshes are dark; the capsules above and the
spheres below are drawn over them, so that what is visible of them is what exceeds the mesh.
"""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import mechanik as mk
from mechanik.collision.collision_meshes import read_collision_mesh
from mechanik.collision.fit_quality import fit_quality
from mechanik.collision.shape_fitting import fit_shapes
from mechanik.model import Mechanism, Mesh
from mechanik.motion.record.tessellation import tessellate

LIGHT = np.array([0.4, -0.5, 0.77])
MESH, ORANGE, BLUE = (0.25, 0.28, 0.33), (0.95, 0.49, 0.12), (0.25, 0.52, 0.78)
POSE = [0.0, -0.6, 0.0, -2.0, 0.0, 1.8, 0.8, 0.02]


def panda() -> Mechanism:
    path = next(
        Path(str(file.locate())).resolve() for file in files("example-robot-data") or [] if file.name == "panda.urdf"
    )
    share = next(folder for folder in path.parents if folder.name == "example-robot-data")
    return mk.load(path, packages={"example-robot-data": share})


def draw(axes: plt.Axes, parts: list[tuple[np.ndarray, tuple[float, float, float], float]]) -> None:
    """Triangles (T, 3, 3), each with a colour and an opacity, lit from one side; what is seen through comes last."""
    axes.computed_zorder = False
    for layer in sorted({opacity for _, _, opacity in parts}, reverse=True):
        whole, faces = [], []
        for corners, colour, opacity in parts:
            if opacity == layer:
                across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
                sizes = np.linalg.norm(across, axis=1)
                bright = 0.65 + 0.35 * (across[sizes > 0] @ LIGHT) / sizes[sizes > 0]
                faces.append(np.column_stack([np.clip(bright[:, None] * colour, 0, 1), np.full(len(bright), opacity)]))
                whole.append(corners[sizes > 0])
        solid = Poly3DCollection(np.concatenate(whole), facecolors=np.concatenate(faces), edgecolors="none")
        axes.add_collection3d(solid)
    points = np.concatenate(whole).reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, (high - low).max() * 0.42
    axes.set(xlim=middle[0] + half * np.array([-1, 1]), ylim=middle[1] + half * np.array([-1, 1]))
    axes.set_zlim(middle[2] - half, middle[2] + half)
    axes.set_box_aspect((1, 1, 1))
    axes.set_axis_off()


def shapes(mechanism: Mechanism, name: str) -> list[np.ndarray]:
    """Triangles (T, 3, 3) of the collision shapes of a link, in its frame."""
    triangles: list[np.ndarray] = []
    for placed in mechanism.links[name].collisions:
        if isinstance(placed.shape, Mesh):
            body = read_collision_mesh(placed.shape, f"link {name!r}")
            triangles.append(placed.pose.apply(body.points)[body.corners])
        elif (solid := tessellate(placed.shape)) is not None:
            triangles.append(placed.pose.apply(solid.points)[solid.corners])
    return triangles


def main() -> None:
    robot = panda()
    made = {"capsules": (fit_shapes(robot), ORANGE), "spheres": (fit_shapes(robot, "spheres"), BLUE)}
    names = [
        name
        for name, link in robot.links.items()
        if any(isinstance(instance.shape, Mesh) for instance in link.collisions)
    ]
    figure = plt.figure(figsize=(20, 7), dpi=80)
    for row, (kind, (fitted, colour)) in enumerate(made.items()):
        quality = fit_quality(robot, fitted)
        both = ((robot, MESH, 1.0), (fitted, colour, 0.3))
        axes = figure.add_axes((0.0, 0.5 - 0.5 * row, 0.2, 0.47), projection="3d")
        poses = zip(robot.poses(POSE[: robot.nq]), robot.links, strict=True)
        draw(
            axes,
            [
                (corners @ X[:3, :3].T + X[:3, 3], paint, opacity)
                for X, name in poses
                for mechanism, paint, opacity in both
                for corners in shapes(mechanism, name)
            ],
        )
        axes.view_init(14, -70)
        axes.set_title(kind, fontsize=15, y=0.97)
        for k, name in enumerate(names):
            place = (0.2 + 0.8 * k / len(names), 0.52 - 0.5 * row, 0.8 / len(names), 0.4)
            axes = figure.add_axes(place, projection="3d")
            draw(
                axes, [(corners, paint, opacity) for robot_, paint, opacity in both for corners in shapes(robot_, name)]
            )
            axes.view_init(20, -50)
            fit, shape_name = quality[name], kind if quality[name].shape_count > 1 else kind[:-1]
            text = (
                f"{name.removeprefix('panda_')}: {fit.shape_count} {shape_name}\n"
                f"{fit.volume_ratio:.2f} times its hull\nup to {fit.overhang * 1e3:.0f} mm beyond"
            )
            axes.set_title(text, fontsize=9, y=0.98)
    figure.savefig(Path(__file__).parent / "collision" / "fitted_panda.png")


if __name__ == "__main__":
    main()
