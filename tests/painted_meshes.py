"""The same plate in each mesh format with references: red for x < 0, green for x > 0, by a texture."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from itertools import cycle, pairwise

import numpy as np

POINTS = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], dtype="<f4")
UVS = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype="<f4")
CORNERS = np.array([0, 1, 2, 0, 2, 3], dtype="<u2")


def png(rows: list[list[tuple[int, int, int]]]) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(np.ravel(row).tolist()) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


RED_GREEN = png([[(255, 0, 0), (0, 255, 0)]])

OBJ = """mtllib plate.mtl
v -1 -1 0
v 1 -1 0
v 1 1 0
v -1 1 0
vt 0 0
vt 1 0
vt 1 1
vt 0 1
usemtl painted
f 1/1 2/2 3/3 4/4
usemtl blue
v 0 0 1
f 1/1 2/2 5/3
"""
MTL = "newmtl painted\nKd 1 1 1\nmap_Kd -s 1 1 1 ../pictures/red green.png\nnewmtl blue\nKd 0 0 1\n"


def dae(picture: str) -> str:
    def source(name: str, values: np.ndarray, letters: str) -> str:
        numbers = " ".join(f"{value:g}" for value in values.ravel())
        params = "".join(f'<param name="{letter}" type="float"/>' for letter in letters)
        count, width = values.shape
        return (
            f'<source id="{name}"><float_array id="{name}-a" count="{values.size}">{numbers}</float_array>'
            f'<technique_common><accessor source="#{name}-a" count="{count}" stride="{width}">{params}</accessor>'
            "</technique_common></source>"
        )

    corners = " ".join(f"{corner} {corner}" for corner in CORNERS)
    return f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_images><image id="i"><init_from>{picture}</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON>
<newparam sid="s"><surface type="2D"><init_from>i</init_from></surface></newparam>
<newparam sid="t"><sampler2D><source>s</source></sampler2D></newparam>
<technique sid="c"><lambert><diffuse><texture texture="t" texcoord="UV"/></diffuse></lambert></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="m" name="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>{source("p", POINTS, "XYZ")}{source("u", UVS, "ST")}
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles material="m" count="2"><input semantic="VERTEX" source="#v" offset="0"/>
<input semantic="TEXCOORD" source="#u" offset="1" set="0"/><p>{corners}</p></triangles></mesh></geometry>
</library_geometries>
<library_visual_scenes><visual_scene id="vs"><node id="n"><instance_geometry url="#g"><bind_material><technique_common>
<instance_material symbol="m" target="#m"><bind_vertex_input semantic="UV" input_semantic="TEXCOORD" input_set="0"/>
</instance_material></technique_common></bind_material></instance_geometry></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#vs"/></scene></COLLADA>"""


BIN = POINTS.tobytes() + (UVS * (1, -1) + (0, 1)).astype("<f4").tobytes() + CORNERS.tobytes()
"""glTF counts pictures from above."""


def gltf(numbers: str, picture: str) -> str:
    views = [(0, 48), (48, 32), (80, 12)]
    kinds = [(5126, 4, "VEC3"), (5126, 4, "VEC2"), (5123, 6, "SCALAR")]
    accessors = [{"bufferView": k, "componentType": c, "count": n, "type": t} for k, (c, n, t) in enumerate(kinds)]
    accessors[0] |= {"min": [-1, -1, 0], "max": [1, 1, 0]}
    primitive = {"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "indices": 2, "material": 0}
    return json.dumps(
        {
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [{"mesh": 0}],
            "meshes": [{"primitives": [primitive]}],
            "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
            "textures": [{"source": 0}],
            "images": [{"uri": picture}],
            "buffers": [{"uri": numbers, "byteLength": len(BIN)}],
            "bufferViews": [{"buffer": 0, "byteOffset": start, "byteLength": size} for start, size in views],
            "accessors": accessors,
        }
    )


LINK = """<link name="{0}"><visual><geometry><mesh filename="package://plates/meshes/{1}"/></geometry></visual>
<collision><geometry><mesh filename="package://plates/meshes/{1}" scale="1 2 1"/></geometry></collision></link>"""
JOINT = """<joint name="{0}-{1}" type="revolute"><parent link="{0}"/><child link="{1}"/><origin xyz="0 {2} 0"/>
<axis xyz="{3}"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>"""
MESHES = {"wavefront": "plate.obj", "collada": "plate.dae", "khronos": "plate.gltf"}
"""Link to the file that it shows."""


def robot(meshes: Mapping[str, str] = MESHES) -> str:
    names = list(meshes)
    links = "".join(LINK.format(name, mesh) for name, mesh in meshes.items())
    axes = cycle(("1 0 0", "0 0 1"))  # not in one plane, which would be looked at from its side
    joints = "".join(JOINT.format(*pair, 2.2, axis) for pair, axis in zip(pairwise(names), axes, strict=False))
    return f'<robot name="plates">{links}{joints}</robot>'


FILES: dict[str, bytes] = {
    "plates/plates.urdf": robot().encode(),
    "plates/meshes/plate.obj": OBJ.encode(),
    "plates/meshes/plate.mtl": MTL.encode(),
    "plates/meshes/plate.dae": dae("../pictures/red green.png").encode(),
    "plates/meshes/plate.gltf": gltf("plate.bin", "../pictures/red%20green.png").encode(),
    "plates/meshes/plate.bin": BIN,
    "plates/pictures/red green.png": RED_GREEN,
}


def packed(files: Mapping[str, bytes] = FILES) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()
