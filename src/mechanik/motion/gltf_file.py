"""A motion as binary glTF: a node a link with what it looks like, and one animation.

glTF has y up, so all links hang on one node that is turned; their own poses are those of the world, z up. Links that do
not move have no channels. Numbers are single floats, as the format wants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechanik.mechanism.shapes import Sphere
from mechanik.motion.glb import CORNERS, VERTICES, Glb
from mechanik.motion.gltf_bodies import GREY, Colour, Find, GltfBodies, GltfBody, find_on_disk
from mechanik.motion.motion import Motion, continuous
from mechanik.motion.solids import triangles
from mechanik.spatial import quaternion

Z_TO_Y = [-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]
"""xyzw, as glTF writes quaternions: turns z up into y up."""
DOT = 0.02
"""Of the mechanism's extent: radius of the balls that stand for links where none has a shape."""
STILL = 1e-9


def to_gltf(motion: Motion, find: Find = find_on_disk) -> bytes:
    """A .glb file. Meshes are put in if they are STL or OBJ, these with the colours of their materials; in place of
    others, what the link bumps with, or nothing.

    Args:
        find: the bytes under the path or uri of a mesh, and of what lies beside it (`meshes.beside_mesh`).
    Raises:
        Refused: the meshes have too many triangles.
    """
    glb, mechanism = Glb(), motion.mechanism
    poses = motion.poses()
    p_world = poses[..., :3, 3]
    wxyz = continuous(quaternion.from_matrix(poses[..., :3, :3]))
    extent = float(np.ptp(p_world.reshape(-1, 3), axis=0).max(initial=0.0)) or 1.0
    top = {"name": motion.name, "rotation": Z_TO_Y, "children": list(range(1, len(mechanism.links) + 1))}
    glb.add("nodes", top)
    drawn = GltfBodies(find)
    bodies = [drawn.of(link) for link in mechanism.links.values()]
    dot = triangles(Sphere(DOT * extent))
    if dot is not None and not any(bodies):
        bodies = [[GltfBody(dot.points, dot.normals, dot.corners, GREY)] for _ in bodies]
    materials: dict[Colour, int] = {}
    times = glb.array(motion.times - motion.times[0])
    channels: list[dict[str, Any]] = []
    samplers: list[dict[str, Any]] = []
    for k, name in enumerate(mechanism.links):
        tracks = {"translation": p_world[:, k], "rotation": np.roll(wxyz[:, k], -1, axis=-1)}
        node: dict[str, Any] = {"name": name, **{path: track[0].tolist() for path, track in tracks.items()}}
        if bodies[k]:
            primitives = [_primitive(glb, body, materials) for body in bodies[k]]
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


def _primitive(glb: Glb, body: GltfBody, materials: dict[Colour, int]) -> dict[str, Any]:
    colour = body.colour
    if colour not in materials:
        rgba = [min(max(float(part), 0.0), 1.0) for part in colour]
        surface = {"baseColorFactor": rgba, "metallicFactor": 0.1, "roughnessFactor": 0.7}
        look: dict[str, Any] = {"pbrMetallicRoughness": surface}
        materials[colour] = glb.add("materials", look | ({"alphaMode": "BLEND"} if rgba[3] < 1.0 else {}))
    attributes = {"POSITION": glb.array(body.points, VERTICES)}
    if body.normals is not None:
        attributes["NORMAL"] = glb.array(body.normals, VERTICES)
    return {
        "attributes": attributes,
        "indices": glb.array(body.corners.reshape(-1), CORNERS),
        "material": materials[colour],
    }
