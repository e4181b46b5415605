"""Mesh files are embedded in glTF at the poses of their links."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from painted_meshes import MTL, OBJ
from test_gltf_export import ParsedGlb

import mechanik as mk
from mechanik.errors import InvalidOperation
from mechanik.motion.record import Motion, gltf_export, to_gltf
from mechanik.motion.record.gltf_export import GREY
from mechanik.spatial import make_pose, rotation

WEDGE = Path(__file__).parents[2] / "data" / "mjcf" / "meshes" / "wedge.stl"
X = make_pose(rotation.exp(np.array([0.3, -0.2, 0.5])), np.array([0.1, 0.2, 0.3]))


def arm_motion(*visuals: mk.ShapeInstance, collisions: tuple[mk.ShapeInstance, ...] = ()) -> Motion:
    b = mk.Builder("one")
    b.revolute("j", "base", "arm")
    arm = b.build()
    arm.link("arm").visuals, arm.link("arm").collisions = list(visuals), list(collisions)
    return Motion(arm, [0.0, 1.0], [[0.0], [1.0]])


def primitives(data: bytes, link: str = "arm") -> list[tuple[np.ndarray, np.ndarray, list[float]]]:
    """Points, corners and colour of each primitive of a link."""
    file = ParsedGlb(data)
    node = next(item for item in file.top["nodes"] if item["name"] == link)
    if "mesh" not in node:
        return []
    return [
        (
            file.array(item["attributes"]["POSITION"]),
            file.array(item["indices"]).reshape(-1, 3),
            file.top["materials"][item["material"]]["pbrMetallicRoughness"]["baseColorFactor"],
        )
        for item in file.top["meshes"][node["mesh"]]["primitives"]
    ]


def volume(points: np.ndarray, corners: np.ndarray) -> float:
    a, b, c = np.moveaxis(points[corners].astype(float), 1, 0)
    return float((np.cross(a, b) * c).sum() / 6)


@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0), (2.0, 0.5, 3.0), (-1.0, 1.0, 1.0)])
def test_mesh_is_at_its_pose_and_scale_oriented_outwards(scale):
    trimesh = pytest.importorskip("trimesh")
    mesh = mk.ShapeInstance(mk.Mesh("package://x/wedge.stl", scale, path=str(WEDGE)), mk.Pose.from_matrix(X))
    ((points, corners, colour),) = primitives(to_gltf(arm_motion(mesh)))
    reference = trimesh.load(str(WEDGE))
    vertices = (points - X[:3, 3]) @ X[:3, :3] / scale
    assert np.unique(vertices.round(5), axis=0) == pytest.approx(
        np.unique(reference.vertices.round(5), axis=0), abs=1e-5
    )
    assert volume(points, corners) == pytest.approx(reference.volume * abs(np.prod(scale)), rel=1e-4)
    assert reference.volume > 0
    assert colour == pytest.approx(GREY)


def test_trimesh_reads_the_mesh_poses():
    trimesh = pytest.importorskip("trimesh")
    mesh = mk.ShapeInstance(mk.Mesh("wedge.stl", path=str(WEDGE)), mk.Pose.from_matrix(X))
    motion = arm_motion(mesh)
    scene = trimesh.load(io.BytesIO(to_gltf(motion)), file_type="glb")
    (scene_mesh,) = (item for item in scene.dump() if len(item.faces) > 0)
    X_top, _ = scene.graph[motion.name]
    expected = trimesh.load(str(WEDGE)).apply_transform(X_top @ motion.poses()[0, 1] @ X)
    assert scene_mesh.bounds == pytest.approx(expected.bounds, abs=1e-5)
    assert scene_mesh.volume == pytest.approx(expected.volume, rel=1e-4)


def test_colours_of_the_model_override_those_of_the_file():
    files = {"m/plate.obj": OBJ.encode(), "m/plate.mtl": MTL.encode()}
    plain = mk.ShapeInstance(mk.Mesh("m/plate.obj"))
    assert [colour for *_, colour in primitives(to_gltf(arm_motion(plain), files.get))] == [[1, 1, 1, 1], [0, 0, 1, 1]]
    coloured = mk.ShapeInstance(mk.Mesh("m/plate.obj"), material=mk.Material("red", (1.0, 0.0, 0.0, 1.0)))
    assert [colour for *_, colour in primitives(to_gltf(arm_motion(coloured), files.get))] == [[1, 0, 0, 1]] * 2


def test_collision_shapes_replace_unreadable_meshes():
    dae, box = mk.ShapeInstance(mk.Mesh("a.dae")), mk.ShapeInstance(mk.Box((1.0, 1.0, 1.0)))
    files = {"a.dae": b"<COLLADA/>", "a.stl": b"this is none"}
    ((points, corners, _),) = primitives(to_gltf(arm_motion(dae, collisions=(box,)), files.get))
    assert volume(points, corners) == pytest.approx(1.0)
    invalid = mk.ShapeInstance(mk.Mesh("a.stl"))
    for broken in (dae, invalid, mk.ShapeInstance(mk.Mesh("gone.stl"))):
        assert len(primitives(to_gltf(arm_motion(broken, box), files.get))) == 1


def test_meshes_with_invalid_scales_are_omitted():
    for scale in ((0.0, 1.0, 1.0), (1e300, 1.0, 1.0), (float("nan"), 1.0, 1.0), (float("inf"), 1.0, 1.0)):
        mesh = mk.ShapeInstance(mk.Mesh("wedge.stl", scale, path=str(WEDGE)))
        box = mk.ShapeInstance(mk.Box((1.0, 1.0, 1.0)))
        assert len(primitives(to_gltf(arm_motion(mesh, box)))) == 1


def test_too_many_triangles_raise(monkeypatch):
    mesh = mk.ShapeInstance(mk.Mesh("wedge.stl", path=str(WEDGE)))
    count = len(primitives(to_gltf(arm_motion(mesh)))[0][1])
    monkeypatch.setattr(gltf_export, "MAX_TRIANGLES", 3 * count - 1)
    to_gltf(arm_motion(mesh, mesh))
    with pytest.raises(InvalidOperation, match="triangles"):
        to_gltf(arm_motion(mesh, mesh, mesh))
