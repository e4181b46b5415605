"""The meshes of links as triangles and as shapes to bump with, and what is said of broken ones."""

from __future__ import annotations

import builtins
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechanik.collision import Collider, Obstacle
from mechanik.collision import collision_meshes as room
from mechanik.collision.collision_meshes import convex_shapes, read_collision_mesh
from mechanik.errors import MeshError, MissingExtra
from mechanik.model import Box, Builder, Capsule, Mesh, ShapeInstance, Sphere
from mechanik.model.shapes import ConvexMesh
from mechanik.spatial import Pose

scipy = pytest.importorskip("scipy")

CUBE_OBJ = """v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\nv 0.5 0.5 0.5
f 4 3 2 1\nf 5 6 7 8\nusemtl red\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n"""


@pytest.fixture(autouse=True)
def _forget() -> None:
    """What was said once is said again."""
    room._bodies.clear()
    for kept in (room._hull, room._say_fitted, room._say_open):
        kept.cache_clear()


def mesh(path: Path, text: str | bytes = CUBE_OBJ, scale: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> Mesh:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Mesh(f"package://robot/{path.name}", scale, str(path))


def test_other_shapes_stand_for_themselves() -> None:
    placed = ShapeInstance(Sphere(1.0), Pose((1, 2, 3)))
    assert convex_shapes(placed, "link 'arm'", "fitted") == [placed]


def test_a_mesh_is_the_hull_of_its_outer_points_where_it_was_placed(tmp_path: Path) -> None:
    placed = ShapeInstance(mesh(tmp_path / "cube.obj", scale=(1, 2, -3)), Pose((1, 2, 3)), name="cube")
    (made,) = convex_shapes(placed, "link 'arm'", "exact")
    assert isinstance(made.shape, ConvexMesh)
    assert len(made.shape.points) == 8  # the point that no triangle has is gone, as are those inside
    np.testing.assert_allclose(made.shape.points.max(axis=0), [1, 2, 0])
    np.testing.assert_allclose(made.shape.points.min(axis=0), [0, 0, -3])
    assert (made.pose, made.name) == (placed.pose, "cube")


def test_fitted_capsules_stand_where_the_mesh_was_placed(tmp_path: Path) -> None:
    placed = ShapeInstance(mesh(tmp_path / "cube.obj"), Pose((1, 2, 3), (1, 0, 0, 1)))
    made = convex_shapes(placed, "link 'arm'", "fitted")
    assert all(isinstance(one.shape, Capsule | Sphere) for one in made)
    middle = np.mean([one.pose.position for one in made], axis=0)
    np.testing.assert_allclose(middle, placed.pose.apply([0.5, 0.5, 0.5]), atol=0.25)


def test_a_mesh_of_two_colours_is_closed_and_one_without_a_lid_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_collision_mesh(mesh(tmp_path / "cube.obj"), "link 'arm'").is_closed
    with caplog.at_level(logging.INFO, "mechanik"):
        for _ in range(2):
            body = read_collision_mesh(mesh(tmp_path / "open.obj", CUBE_OBJ.replace("f 5 6 7 8\n", "")), "link 'arm'")
    assert not body.is_closed
    (said,) = caplog.messages
    assert "link 'arm'" in said
    assert "open.obj' is not closed" in said
    (made,) = convex_shapes(ShapeInstance(mesh(tmp_path / "open.obj")), "link 'arm'", "exact")
    assert isinstance(made.shape, ConvexMesh)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("flat.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n", "flat and holds no volume"),
        ("none.obj", "v 0 0 0\n", "no triangles"),
        ("bad.obj", "v 0 0 zero\n", "line 1"),
        ("short.stl", bytes(80) + b"\5\0\0\0" + bytes(60), "cut off"),
        ("nan.obj", CUBE_OBJ.replace("v 1", "v nan"), r"line 10: triangle 1 .* \(nan, 1, 0\).*repair and export the mesh"),
        ("lfs.stl", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", "git lfs pull"),
        ("strange.xyz1", "?", "cannot be read|write it as STL"),
        ("broken.glb", b"glTF\2\0\0\0", "cannot be read"),
    ],
    ids=lambda one: one[:10] if isinstance(one, str) else "bytes",
)
@pytest.mark.parametrize("how", ["exact", "fitted", "auto"])
def test_broken_meshes_are_said_with_link_and_file(
    tmp_path: Path, name: str, text: str | bytes, said: str, how: Any
) -> None:
    pytest.importorskip("trimesh")
    with pytest.raises(MeshError, match=said) as found:
        convex_shapes(ShapeInstance(mesh(tmp_path / name, text)), "link 'arm'", how)
    assert f"link 'arm': the mesh 'package://robot/{name}'" in str(found.value)


def test_meshes_that_are_not_there_are_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match=r"link 'arm': the mesh 'package://x/y.stl' has no file.*packages=.*path="):
        convex_shapes(ShapeInstance(Mesh("package://x/y.stl")), "link 'arm'")
    with pytest.raises(MeshError, match="No such file"):
        convex_shapes(ShapeInstance(Mesh("y.stl", path=str(tmp_path / "y.stl"))), "link 'arm'")
    with pytest.raises(MeshError, match=r"cannot be read|directory"):
        convex_shapes(ShapeInstance(Mesh("y.stl", path=str(tmp_path))), "link 'arm'")
    with pytest.raises(MeshError, match="leaves nothing"):
        convex_shapes(ShapeInstance(mesh(tmp_path / "cube.obj", scale=(1, 0, 1))), "link 'arm'")


def test_a_file_that_has_changed_is_read_anew(tmp_path: Path) -> None:
    """A file that was written twice within one tick of the clock was served from the cache."""
    one = mesh(tmp_path / "cube.obj")
    os.utime(tmp_path / "cube.obj", ns=(1, 1))
    assert read_collision_mesh(one, "link 'arm'").points.max() == 1
    mesh(tmp_path / "cube.obj", CUBE_OBJ.replace("v 1 1 1", "v 2 2 2"))
    os.utime(tmp_path / "cube.obj", ns=(1, 1))
    assert read_collision_mesh(one, "link 'arm'").points.max() == 2


def test_numbers_beside_a_gltf_that_have_changed_are_read_anew(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    one = Mesh("box.gltf", path=str(tmp_path / "box.gltf"))
    for size in (1.0, 2.0):
        for name, data in trimesh.creation.box((size, size, size)).export(file_type="gltf").items():
            (tmp_path / ("box.gltf" if name == "model.gltf" else name)).write_bytes(data)
            os.utime(tmp_path / ("box.gltf" if name == "model.gltf" else name), ns=(1, 1))
        assert np.ptp(read_collision_mesh(one, "link 'arm'").points) == pytest.approx(size)


def test_files_with_the_same_content_share_a_body(tmp_path: Path) -> None:
    one, other = (read_collision_mesh(mesh(tmp_path / name), "link 'arm'") for name in ("a.obj", "b.obj"))
    assert one is other
    assert read_collision_mesh(mesh(tmp_path / "a.obj", scale=(2, 2, 2)), "link 'arm'").points.max() == 2


def test_without_the_extra_auto_takes_fitted_shapes_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.split(".")[0] in ("scipy", "trimesh", "coal"):
            raise ImportError(name)
        return real(name, *rest)

    placed = ShapeInstance(mesh(tmp_path / "cube.obj"))
    monkeypatch.setattr(builtins, "__import__", refuse)
    with caplog.at_level(logging.WARNING, "mechanik"):
        for _ in range(2):
            made = convex_shapes(placed, "link 'arm'", "auto")
    assert all(isinstance(one.shape, Capsule | Sphere) for one in made)
    (said,) = caplog.messages
    assert "fitted capsules" in said
    assert "mechanik[collision]" in said
    with pytest.raises(MissingExtra, match=r"mechanik\[collision\]"):
        convex_shapes(placed, "link 'arm'", "exact")


@pytest.mark.parametrize("how", ["exact", "fitted"])
def test_a_collider_takes_the_meshes_of_links_and_of_obstacles(tmp_path: Path, how: Any) -> None:
    cube = mesh(tmp_path / "cube.obj")
    robot = Builder("robot")
    robot.prismatic("slide", "base", "arm", axis="x", limits=(-9, 9))
    robot.link("arm", collisions=[ShapeInstance(cube)])
    obstacles = [Obstacle(cube, (3, 0, 0), name="cube"), Obstacle(Box((1, 1, 1)), (-3, 0.5, 0.5), name="box")]
    collider = Collider(robot.build(), obstacles, meshes=how)
    if how == "exact":
        assert collider.distance([0.5]) == pytest.approx(1.5)
        assert collider.distance([-1.0]) == pytest.approx(1.5)
    assert collider.distance([0.5]) <= 1.5 + 1e-9
    assert not collider.is_free([2.5])
    assert collider.contacts([2.5])[0].b == "cube"


def stl(*triangles: object) -> bytes:
    facets = np.zeros(len(triangles), np.dtype([("normal", "<f4", 3), ("at", "<f4", (3, 3)), ("rest", "<u2")]))
    facets["at"] = np.array(triangles, dtype=np.float64)
    return bytes(80) + len(facets).to_bytes(4, "little") + facets.tobytes()


TETRAHEDRON = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)[
    [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e30])
@pytest.mark.parametrize("how", ["exact", "fitted"])
def test_one_corner_that_is_nowhere_is_said_with_its_triangle(tmp_path: Path, value: float, how: Any) -> None:
    """The triangle was dropped, and what was left of the mesh taken for the whole."""
    broken = TETRAHEDRON.copy()
    broken[2, 1, 0] = value
    placed = ShapeInstance(mesh(tmp_path / "tip.stl", stl(*TETRAHEDRON)))
    assert len(convex_shapes(placed, "link 'arm'", "exact")[0].shape.points) == 4
    for name, data in (("tip.stl", stl(*broken)), ("tip.off", off(broken))):
        pytest.importorskip("trimesh")
        with pytest.raises(MeshError, match=rf"link 'arm': the mesh '\S+/{name}': {name}: triangle 3 has a vertex at"):
            convex_shapes(ShapeInstance(mesh(tmp_path / name, data)), "link 'arm'", how)


def off(triangles: np.ndarray) -> str:
    points = "".join(f"{x} {y} {z}\n" for x, y, z in triangles.reshape(-1, 3))
    faces = "".join(f"3 {3 * k} {3 * k + 1} {3 * k + 2}\n" for k in range(len(triangles)))
    return f"OFF\n{3 * len(triangles)} {len(triangles)} 0\n{points}{faces}"


def test_other_formats_share_the_points_that_stand_twice(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    body = read_collision_mesh(mesh(tmp_path / "tip.off", off(TETRAHEDRON)), "link 'arm'")
    assert (body.points.shape, body.is_closed) == ((4, 3), True)


def test_the_triangle_is_numbered_among_those_of_all_faces_and_colours(tmp_path: Path) -> None:
    text = CUBE_OBJ.replace("v 0 1 1", "v 0 1 1e999")  # the eighth point, last of the second face: its second triangle
    with pytest.raises(MeshError, match=r"round.obj, line 11: triangle 4 has a vertex at \(0, 1, inf\)"):
        read_collision_mesh(mesh(tmp_path / "round.obj", text), "link 'arm'")
    unused = CUBE_OBJ.replace("v 0.5 0.5 0.5", "v nan nan nan")
    assert read_collision_mesh(mesh(tmp_path / "unused.obj", unused), "link 'arm'").is_closed


@pytest.mark.parametrize("how", ["exact", "fitted", "auto"])
def test_what_is_wrong_with_the_mesh_of_an_obstacle_names_the_obstacle(tmp_path: Path, how: Any) -> None:
    """It was said of a link."""
    robot = Builder("robot")
    robot.prismatic("slide", "base", "arm", axis="x", limits=(-9, 9))
    robot.link("arm", collisions=[ShapeInstance(Sphere(0.1))])
    flat = mesh(tmp_path / "flat.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n")
    for cup, named in ((Obstacle(flat, name="cup"), "obstacle 'cup'"), (Obstacle(flat), "obstacle 'obstacle1'")):
        with pytest.raises(MeshError, match=rf"^{named}: the mesh 'package://robot/flat.obj' is flat"):
            Collider(robot.build(), [cup], meshes=how)
    with pytest.raises(MeshError, match=r"^obstacle 'cup': the mesh 'cup.stl' has no file.*Mesh\(uri, path=...\)"):
        Collider(robot.build(), [Obstacle(Mesh("cup.stl"), name="cup")], meshes=how)
