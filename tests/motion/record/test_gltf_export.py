"""glTF export: link poses in the parsed file, and closed meshes with outward orientation."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest
from recorded_motions import NAMES, random_motion

import mechanik as mk
from mechanik.motion.record import Motion, to_gltf
from mechanik.motion.record.tessellation import tessellate
from mechanik.spatial import make_pose, quaternion, rotation

SIZES = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}
KINDS = {5126: "<f4", 5125: "<u4"}


class ParsedGlb:
    """A parsed .glb file."""

    def __init__(self, data: bytes) -> None:
        magic, version, size, length, kind = struct.unpack_from("<4sIIII", data)
        assert (magic, version, size, kind) == (b"glTF", 2, len(data), 0x4E4F534A)
        assert length % 4 == 0
        self.top = json.loads(data[20 : 20 + length])
        size, kind = struct.unpack_from("<II", data, 20 + length)
        assert kind == 0x004E4942
        assert size % 4 == 0
        self.binary = data[28 + length :]
        assert len(self.binary) == size == self.top["buffers"][0]["byteLength"]

    def array(self, number: int) -> np.ndarray:
        accessor = self.top["accessors"][number]
        view = self.top["bufferViews"][accessor["bufferView"]]
        kind = KINDS[accessor["componentType"]]
        part = self.binary[view["byteOffset"] : view["byteOffset"] + view["byteLength"]]
        values = np.frombuffer(part, kind).reshape(accessor["count"], SIZES[accessor["type"]])
        assert np.array_equal(values.min(axis=0), np.array(accessor["min"], dtype=kind))
        assert np.array_equal(values.max(axis=0), np.array(accessor["max"], dtype=kind))
        return values

    def poses(self, frames: int) -> dict[str, np.ndarray]:
        """World poses (N, 4, 4) of the nodes below the top one, z up, by name."""
        nodes = self.top["nodes"]
        tracks = {
            (channel["target"]["node"], channel["target"]["path"]): self.array(sampler["output"])
            for animation in self.top.get("animations", [])
            for channel in animation["channels"]
            for sampler in [animation["samplers"][channel["sampler"]]]
        }
        poses: dict[str, np.ndarray] = {}
        for k in nodes[0]["children"]:
            p = tracks.get((k, "translation"), np.tile(nodes[k]["translation"], (frames, 1)))
            xyzw = tracks.get((k, "rotation"), np.tile(nodes[k]["rotation"], (frames, 1)))
            poses[nodes[k]["name"]] = make_pose(quaternion.to_matrix(np.roll(xyzw, 1, axis=-1)), p)
        return poses


@pytest.mark.parametrize("name", NAMES)
def test_node_poses_are_link_poses_at_all_times(name: str):
    motion = random_motion(name, is_even=False)
    file = ParsedGlb(to_gltf(motion))
    node_poses, poses = file.poses(len(motion.times)), motion.poses()
    assert list(node_poses) == list(motion.mechanism.links)
    for k, link in enumerate(node_poses):
        assert np.abs(node_poses[link] - poses[:, k]).max() < 1e-6
    times = file.array(file.top["animations"][0]["samplers"][0]["input"])[:, 0]
    assert times == pytest.approx(motion.times - motion.times[0], abs=1e-6)


def test_z_up_becomes_y_up():
    top = ParsedGlb(to_gltf(random_motion("panda"))).top["nodes"][0]
    R = quaternion.to_matrix(np.roll(top["rotation"], 1))
    assert pytest.approx((0.0, 1.0, 0.0), abs=1e-12) == R @ (0.0, 0.0, 1.0)
    assert pytest.approx((1.0, 0.0, 0.0), abs=1e-12) == R @ (1.0, 0.0, 0.0)


def test_quaternion_signs_are_continuous_between_frames():
    arm = mk.gallery.make("planar_2r")
    angles = np.linspace(0.0, 6 * np.pi, 60)
    file = ParsedGlb(to_gltf(Motion(arm, np.arange(60.0), np.stack([angles, 0 * angles], axis=1))))
    for animation in file.top["animations"]:
        for channel in animation["channels"]:
            if channel["target"]["path"] == "rotation":
                xyzw = file.array(animation["samplers"][channel["sampler"]]["output"])
                assert (xyzw[1:] * xyzw[:-1]).sum(axis=1).min() > 0.0


def test_fixed_links_have_no_channels_and_one_frame_no_animation():
    arm = mk.gallery.make("planar_2r")
    q = np.zeros((5, 2))
    q[:, 1] = np.linspace(0, 1, 5)
    file = ParsedGlb(to_gltf(Motion(arm, np.arange(5.0), q)))
    moving_links = {file.top["nodes"][item["target"]["node"]]["name"] for item in file.top["animations"][0]["channels"]}
    assert moving_links == set(list(arm.links)[2:])
    assert "animations" not in ParsedGlb(to_gltf(Motion(arm, [0.0], q[:1]))).top


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        (mk.Box((0.1, 0.2, 0.3)), 0.006),
        (mk.Sphere(0.2), 4 / 3 * np.pi * 0.008),
        (mk.Cylinder(0.1, 0.5), np.pi * 0.005),
        (mk.Capsule(0.1, 0.4), np.pi * 0.004 + 4 / 3 * np.pi * 0.001),
        (mk.Capsule(0.1, 0.0), 4 / 3 * np.pi * 0.001),
    ],
)
def test_tessellated_shapes_are_closed_oriented_outwards_and_have_their_volume(shape, volume: float):
    body = tessellate(shape)
    assert body is not None
    a, b, c = np.moveaxis(body.points[body.corners], 1, 0)
    mesh_volume = float((np.cross(a, b) * c).sum() / 6)
    # inscribed: never more, and less by the segments that the polygons of circles and meridians cut off
    circle = np.sin(2 * np.pi / 24) / (2 * np.pi / 24)
    assert circle * np.cos(np.pi / 32) ** 2 * volume <= mesh_volume <= volume * (1 + 1e-9)
    # every edge is shared by two triangles that run along it in opposite directions
    vertex_ids = {tuple(np.round(p, 9) + 0.0): k for k, p in enumerate(body.points)}
    edges = {}
    for corners in body.corners:
        ids = [vertex_ids[tuple(np.round(body.points[k], 9) + 0.0)] for k in corners]
        for start, end in zip(ids, ids[1:] + ids[:1], strict=True):
            edges[start, end] = edges.get((start, end), 0) + 1
    assert all(edges.get((end, start)) == count for (start, end), count in edges.items())
    # normals are unit and point to the same side as the triangles
    assert np.linalg.norm(body.normals, axis=1) == pytest.approx(1.0, abs=1e-12)
    faces = np.cross(b - a, c - a)
    assert ((faces[:, None] * body.normals[body.corners]).sum(axis=-1) > 0.0).all()


def test_shapes_without_volume_and_mesh_files_are_not_tessellated():
    for shape in (mk.Box((0, 1, 1)), mk.Sphere(0), mk.Cylinder(0.1, 0), mk.Capsule(0, 1), mk.Mesh("far.stl")):
        assert tessellate(shape) is None


def test_links_are_drawn_as_spheres_if_no_link_has_a_shape():
    b = mk.Builder("bare")
    b.revolute("j", "base", "arm", at=(0.5, 0, 0))
    file = ParsedGlb(to_gltf(Motion(b.build(), [0.0], [[0.0]])))
    assert all("mesh" in node for node in file.top["nodes"][1:])
    drawn = ParsedGlb(to_gltf(random_motion("humanoid")))
    by_name = {node["name"]: node for node in drawn.top["nodes"]}
    assert "mesh" in by_name["pelvis"]
    assert "mesh" not in by_name["world"]


def test_shape_is_at_its_pose_on_the_link():
    b = mk.Builder("one")
    b.revolute("j", "base", "arm")
    arm = b.build()
    X = make_pose(rotation.exp(np.array([0.3, -0.2, 0.5])), np.array([0.1, 0.2, 0.3]))
    box = mk.ShapeInstance(mk.Box((0.2, 0.4, 0.6)), mk.Pose.from_matrix(X), mk.Material("red", (1.0, 0.0, 0.0, 0.5)))
    arm.link("arm").visuals = [box]
    file = ParsedGlb(to_gltf(Motion(arm, [0.0], [[0.0]])))
    node = next(item for item in file.top["nodes"] if item["name"] == "arm")
    primitive = file.top["meshes"][node["mesh"]]["primitives"][0]
    points = file.array(primitive["attributes"]["POSITION"])
    corners = np.abs((points - X[:3, 3]) @ X[:3, :3])
    assert corners == pytest.approx(np.tile([0.1, 0.2, 0.3], (24, 1)), abs=1e-6)
    material = file.top["materials"][primitive["material"]]
    assert material["pbrMetallicRoughness"]["baseColorFactor"] == [1.0, 0.0, 0.0, 0.5]
    assert material["alphaMode"] == "BLEND"


def test_trimesh_reads_the_link_poses():
    trimesh = pytest.importorskip("trimesh")
    motion = random_motion("panda")  # no link is called "world", the name of the root in trimesh
    scene = trimesh.load(io.BytesIO(to_gltf(motion)), file_type="glb")
    assert set(motion.mechanism.links) <= set(scene.graph.nodes)
    X_top, _ = scene.graph[motion.name]
    for k, link in enumerate(motion.mechanism.links):
        X, _ = scene.graph[link]
        assert np.linalg.inv(X_top) @ X == pytest.approx(motion.poses()[0, k], abs=1e-6)
