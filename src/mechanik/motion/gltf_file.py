"""A motion as binary glTF: a node a link with its simple shapes, and one animation.

glTF has y up, so all links hang on one node that is turned; their own poses are those of the world, z up. Links that do
not move have no channels. Numbers are single floats, as the format wants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechanik.mechanism import Link
from mechanik.mechanism.shapes import Sphere
from mechanik.motion.glb import CORNERS, VERTICES, Glb
from mechanik.motion.motion import Motion, continuous
from mechanik.motion.solids import Triangles, triangles
from mechanik.spatial import quaternion

Z_TO_Y = [-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]
"""xyzw, as glTF writes quaternions: turns z up into y up."""
Colour = tuple[float, float, float, float]
GREY: Colour = (0.7, 0.72, 0.75, 1.0)
DOT = 0.02
"""Of the mechanism's extent: radius of the balls that stand for links where none has a shape."""
STILL = 1e-9


def to_gltf(motion: Motion) -> bytes:
    """A .glb file. Shapes are boxes, balls, cylinders and capsules; meshes of files are left out."""
    glb, mechanism = Glb(), motion.mechanism
    poses = motion.poses()
    p_world = poses[..., :3, 3]
    wxyz = continuous(quaternion.from_matrix(poses[..., :3, :3]))
    extent = float(np.ptp(p_world.reshape(-1, 3), axis=0).max(initial=0.0)) or 1.0
    top = {"name": motion.name, "rotation": Z_TO_Y, "children": list(range(1, len(mechanism.links) + 1))}
    glb.add("nodes", top)
    bodies = [_bodies(link) for link in mechanism.links.values()]
    dot = triangles(Sphere(DOT * extent))
    if dot is not None and not any(bodies):
        bodies = [[(dot, GREY)] for _ in bodies]
    materials: dict[Colour, int] = {}
    times = glb.array(motion.times - motion.times[0])
    channels: list[dict[str, Any]] = []
    samplers: list[dict[str, Any]] = []
    for k, name in enumerate(mechanism.links):
        tracks = {"translation": p_world[:, k], "rotation": np.roll(wxyz[:, k], -1, axis=-1)}
        node: dict[str, Any] = {"name": name, **{path: track[0].tolist() for path, track in tracks.items()}}
        if bodies[k]:
            primitives = [_primitive(glb, body, colour, materials) for body, colour in bodies[k]]
            node["mesh"] = glb.add("meshes", {"name": name, "primitives": primitives})
        number = glb.add("nodes", node)
        for path, track in tracks.items():
            if np.abs(track - track[0]).max() <= STILL:
                continue
            channels.append({"sampler": len(samplers), "target": {"node": number, "path": path}})
            samplers.append({"input": times, "output": glb.array(track), "interpolation": "LINEAR"})
    if channels:
        glb.add("animations", {"name": motion.name, "channels": channels, "samplers": samplers})
    return glb.file()


def _bodies(link: Link) -> list[tuple[Triangles, Colour]]:
    """What can be drawn of a link, in its own frame."""
    found: list[tuple[Triangles, Colour]] = []
    for placed in link.visuals:
        body, X = triangles(placed.shape), placed.pose.matrix
        if body is not None:
            colour = GREY if placed.material is None or placed.material.rgba is None else placed.material.rgba
            R, p = X[:3, :3], X[:3, 3]
            found.append((Triangles(body.points @ R.T + p, body.normals @ R.T, body.corners), colour))
    return found


def _primitive(glb: Glb, body: Triangles, colour: Colour, materials: dict[Colour, int]) -> dict[str, Any]:
    if colour not in materials:
        rgba = [min(max(float(part), 0.0), 1.0) for part in colour]
        surface = {"baseColorFactor": rgba, "metallicFactor": 0.1, "roughnessFactor": 0.7}
        look: dict[str, Any] = {"pbrMetallicRoughness": surface}
        materials[colour] = glb.add("materials", look | ({"alphaMode": "BLEND"} if rgba[3] < 1.0 else {}))
    return {
        "attributes": {"POSITION": glb.array(body.points, VERTICES), "NORMAL": glb.array(body.normals, VERTICES)},
        "indices": glb.array(body.corners.reshape(-1), CORNERS),
        "material": materials[colour],
    }
