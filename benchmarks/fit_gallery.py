"""Print the collision capsules of the gallery arms as lines of `src/mechanik/gallery/arm_capsules.py`.

They are fitted to the meshes of the robots in the package `example-robot-data`, and rounded outwards. From the root of
the project: `python benchmarks/fit_gallery.py`.
"""

from __future__ import annotations

import math
from importlib.metadata import files
from pathlib import Path

import numpy as np

import mechanik as mk
from mechanik.collision.shape_fitting import fit_shapes
from mechanik.model import Capsule, Mechanism, ShapeInstance, Sphere

ROBOTS = {"PANDA": "panda.urdf", "UR5": "ur5_robot.urdf", "UR10": "ur10_robot.urdf"}
COUNT = 4
"""Capsules a mesh, at most; one more than by default, since wrists come close to forearms."""
STEP = 1e-4
"""m; ends are rounded to it, and radii up to it, by so much more as the ends may have moved."""


def find(name: str) -> Path:
    file = next(file for file in files("example-robot-data") or [] if file.name == name)
    return Path(str(file.locate())).resolve()


def read(name: str) -> Mechanism:
    path = find(name)
    share = next(folder for folder in path.parents if folder.name == "example-robot-data")
    return mk.load(path, packages={"example-robot-data": share, "ur_description": share / "robots/ur_description"})


def rounded(instance: ShapeInstance) -> str:
    shape = instance.shape
    assert isinstance(shape, Capsule | Sphere)
    half = 0.5 * shape.length if isinstance(shape, Capsule) else 0.0
    ends = instance.pose.apply([[0.0, 0.0, -half], [0.0, 0.0, half]])
    near = np.round(ends / STEP) * STEP
    moved = float(np.linalg.norm(near - ends, axis=1).max())
    radius = math.ceil((shape.radius + moved) / STEP) * STEP
    a, b = (", ".join(f"{x + 0.0:.4f}" for x in end) for end in near)
    return f"(({a}), ({b}), {radius:.4f})"


def main() -> None:
    for name, file in ROBOTS.items():
        print(f"{name}: dict[str, list[Bone]] = {{")
        for link, body in fit_shapes(read(file), count=COUNT).links.items():
            lines = [rounded(instance) for instance in body.collisions if isinstance(instance.shape, Capsule | Sphere)]
            if lines:  # boxes, of which fingers are made, stay as they are
                print(f'    "{link}": [\n        ' + ",\n        ".join(lines) + ",\n    ],")
        print("}")


if __name__ == "__main__":
    main()
