"""Meshes of files are in the glTF, where their links carry them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from painted_meshes import MTL, OBJ
from test_gltf_export import Parsed

import mechanik as mk
from mechanik.errors import InvalidOperation
from mechanik.motion.record import Motion, to_gltf
from mechanik.motion.record import gltf_export as gltf_bodies
from mechanik.motion.record.gltf_export import GREY
from mechanik.spatial import make_pose, rotation

WEDGE = Path(__file__).parents[2] / "data" / "mjcf" / "meshes" / "wedge.stl"
X = make_pose(rotation.exp(np.array([0.3, -0.2, 0.5])), np.array([0.1, 0.2, 0.3]))


def one_arm(*visuals: mk.ShapeInstance, collisions: tuple[mk.ShapeInstance, ...] = ()) -> Motion:
    b = mk.Builder("one")
    b.revolute("j", "base", "arm")
    arm = b.build()
    arm.link("arm").visuals, arm.link("arm").collisions = list(visuals), list(collisions)
    return Motion(arm, [0.0, 1.0], [[0.0], [1.0]])


def primitives(data: bytes, link: str = "arm") -> list[tuple[np.ndarray, np.ndarray, list[float]]]:
    """Points, corners and colour of each."""
    file = Parsed(data)
    node = next(one for one in file.top["nodes"] if one["name"] == link)
    if "mesh" not in node:
        return []
    return [
        (
            file.array(one["attributes"]["POSITION"]),
            file.array(one["indices"]).reshape(-1, 3),
            file.top["materials"][one["material"]]["pbrMetallicRoughness"]["baseColorFactor"],
        )
        for one in file.top["meshes"][node["mesh"]]["primitives"]
    ]


def volume(points: np.ndarray, corners: np.ndarray) -> float:
    a, b, c = np.moveaxis(points[corners].astype(float), 1, 0)
    return float((np.cross(a, b) * c).sum() / 6)


@pytest.mark.parametrize("scale", [(1.0, 1.0, 1.0), (2.0, 0.5, 3.0), (-1.0, 1.0, 1.0)])
def test_a_mesh_stands_where_its_link_carries_it_at_its_scale_and_right_way_out(scale):
    trimesh = pytest.importorskip("trimesh")
    mesh = mk.ShapeInstance(mk.Mesh("package://x/wedge.stl", scale, path=str(WEDGE)), mk.Pose.from_matrix(X))
    ((points, corners, colour),) = primitives(to_gltf(one_arm(mesh)))
    other = trimesh.load(str(WEDGE))
    back = (points - X[:3, 3]) @ X[:3, :3] / scale
    assert np.unique(back.round(5), axis=0) == pytest.approx(np.unique(other.vertices.round(5), axis=0), abs=1e-5)
    assert volume(points, corners) == pytest.approx(other.volume * abs(np.prod(scale)), rel=1e-4)
    assert other.volume > 0
    assert colour == pytest.approx(GREY)


def test_another_program_sees_the_meshes_where_the_links_are():
    trimesh = pytest.importorskip("trimesh")
    mesh = mk.ShapeInstance(mk.Mesh("wedge.stl", path=str(WEDGE)), mk.Pose.from_matrix(X))
    motion = one_arm(mesh)
    scene = trimesh.load(io.BytesIO(to_gltf(motion)), file_type="glb")
    (seen,) = (one for one in scene.dump() if len(one.faces) > 0)
    X_top, _ = scene.graph[motion.name]
    alone = trimesh.load(str(WEDGE)).apply_transform(X_top @ motion.poses()[0, 1] @ X)
    assert seen.bounds == pytest.approx(alone.bounds, abs=1e-5)
    assert seen.volume == pytest.approx(alone.volume, rel=1e-4)


def test_colours_are_those_of_the_model_then_of_the_file():
    files = {"m/plate.obj": OBJ.encode(), "m/plate.mtl": MTL.encode()}
    plain = mk.ShapeInstance(mk.Mesh("m/plate.obj"))
    assert [colour for *_, colour in primitives(to_gltf(one_arm(plain), files.get))] == [[1, 1, 1, 1], [0, 0, 1, 1]]
    said = mk.ShapeInstance(mk.Mesh("m/plate.obj"), material=mk.Material("red", (1.0, 0.0, 0.0, 1.0)))
    assert [colour for *_, colour in primitives(to_gltf(one_arm(said), files.get))] == [[1, 0, 0, 1]] * 2


def test_what_a_link_bumps_with_stands_for_meshes_that_are_not_read():
    dae, box = mk.ShapeInstance(mk.Mesh("a.dae")), mk.ShapeInstance(mk.Box((1.0, 1.0, 1.0)))
    files = {"a.dae": b"<COLLADA/>", "a.stl": b"this is none"}
    ((points, corners, _),) = primitives(to_gltf(one_arm(dae, collisions=(box,)), files.get))
    assert volume(points, corners) == pytest.approx(1.0)
    wrong = mk.ShapeInstance(mk.Mesh("a.stl"))
    for broken in (dae, wrong, mk.ShapeInstance(mk.Mesh("gone.stl"))):
        assert len(primitives(to_gltf(one_arm(broken, box), files.get))) == 1


def test_scales_that_leave_nothing_finite_leave_the_mesh_out():
    for scale in ((0.0, 1.0, 1.0), (1e300, 1.0, 1.0), (float("nan"), 1.0, 1.0), (float("inf"), 1.0, 1.0)):
        mesh = mk.ShapeInstance(mk.Mesh("wedge.stl", scale, path=str(WEDGE)))
        box = mk.ShapeInstance(mk.Box((1.0, 1.0, 1.0)))
        assert len(primitives(to_gltf(one_arm(mesh, box)))) == 1


def test_more_triangles_than_programs_bear_are_refused(monkeypatch):
    mesh = mk.ShapeInstance(mk.Mesh("wedge.stl", path=str(WEDGE)))
    count = len(primitives(to_gltf(one_arm(mesh)))[0][1])
    monkeypatch.setattr(gltf_bodies, "MOST_TRIANGLES", 3 * count - 1)
    to_gltf(one_arm(mesh, mesh))
    with pytest.raises(InvalidOperation, match="triangles"):
        to_gltf(one_arm(mesh, mesh, mesh))
