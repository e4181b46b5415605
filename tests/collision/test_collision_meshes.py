"""Collision meshes as triangles and as convex shapes, and messages about broken ones."""

from __future__ import annotations

import builtins
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechanik.collision import Collider, Obstacle, collision_meshes
from mechanik.collision.collision_meshes import convex_shapes, read_collision_mesh
from mechanik.errors import FormatError, MissingExtra
from mechanik.model import Box, Builder, Capsule, Mesh, ShapeInstance, Sphere
from mechanik.model.shapes import ConvexMesh
from mechanik.spatial import Pose

scipy = pytest.importorskip("scipy")

CUBE_OBJ = """v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\nv 0.5 0.5 0.5
f 4 3 2 1\nf 5 6 7 8\nusemtl red\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n"""


@pytest.fixture(autouse=True)
def _forget() -> None:
    """Clear the caches, so that messages that are logged once appear again."""
    collision_meshes._mesh_cache.clear()
    for cached in (collision_meshes._mesh_hull_points, collision_meshes._warn_fitted, collision_meshes._log_open_mesh):
        cached.cache_clear()


def mesh(path: Path, text: str | bytes = CUBE_OBJ, scale: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> Mesh:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Mesh(f"package://robot/{path.name}", scale, str(path))


def test_shapes_other_than_meshes_are_unchanged() -> None:
    instance = ShapeInstance(Sphere(1.0), Pose((1, 2, 3)))
    assert convex_shapes(instance, "link 'arm'", "fitted") == [instance]


def test_a_mesh_becomes_its_convex_hull_at_the_same_pose(tmp_path: Path) -> None:
    instance = ShapeInstance(mesh(tmp_path / "cube.obj", scale=(1, 2, -3)), Pose((1, 2, 3)), name="cube")
    (hull,) = convex_shapes(instance, "link 'arm'", "exact")
    assert isinstance(hull.shape, ConvexMesh)
    assert len(hull.shape.points) == 8  # without points inside, and without the point that no triangle uses
    np.testing.assert_allclose(hull.shape.points.max(axis=0), [1, 2, 0])
    np.testing.assert_allclose(hull.shape.points.min(axis=0), [0, 0, -3])
    assert (hull.pose, hull.name) == (instance.pose, "cube")


def test_fitted_capsules_are_at_the_pose_of_the_mesh(tmp_path: Path) -> None:
    instance = ShapeInstance(mesh(tmp_path / "cube.obj"), Pose((1, 2, 3), (1, 0, 0, 1)))
    capsules = convex_shapes(instance, "link 'arm'", "fitted")
    assert all(isinstance(capsule.shape, Capsule | Sphere) for capsule in capsules)
    middle = np.mean([capsule.pose.position for capsule in capsules], axis=0)
    np.testing.assert_allclose(middle, instance.pose.apply([0.5, 0.5, 0.5]), atol=0.25)


def test_a_mesh_of_two_colours_is_closed_and_one_with_a_missing_face_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_collision_mesh(mesh(tmp_path / "cube.obj"), "link 'arm'").is_closed
    with caplog.at_level(logging.INFO, "mechanik"):
        for _ in range(2):
            body = read_collision_mesh(mesh(tmp_path / "open.obj", CUBE_OBJ.replace("f 5 6 7 8\n", "")), "link 'arm'")
    assert not body.is_closed
    (message,) = caplog.messages
    assert "link 'arm'" in message
    assert "open.obj' is not closed" in message
    (hull,) = convex_shapes(ShapeInstance(mesh(tmp_path / "open.obj")), "link 'arm'", "exact")
    assert isinstance(hull.shape, ConvexMesh)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("flat.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n", "flat and has no volume"),
        ("none.obj", "v 0 0 0\n", "no triangles"),
        ("bad.obj", "v 0 0 zero\n", "line 1"),
        ("short.stl", bytes(80) + b"\5\0\0\0" + bytes(60), "truncated"),
        (
            "nan.obj",
            CUBE_OBJ.replace("v 1", "v nan"),
            r"line 10: triangle 1 .* \(nan, 1, 0\).*repair and export the mesh",
        ),
        ("lfs.stl", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", "git lfs pull"),
        ("strange.xyz1", "?", "cannot be read|convert it to STL"),
        ("broken.glb", b"glTF\2\0\0\0", "cannot be read"),
    ],
    ids=lambda value: value[:10] if isinstance(value, str) else "bytes",
)
@pytest.mark.parametrize("meshes", ["exact", "fitted", "auto"])
def test_broken_meshes_are_reported_with_link_and_file(
    tmp_path: Path, name: str, text: str | bytes, message: str, meshes: Any
) -> None:
    pytest.importorskip("trimesh")
    with pytest.raises(FormatError, match=message) as caught:
        convex_shapes(ShapeInstance(mesh(tmp_path / name, text)), "link 'arm'", meshes)
    assert f"link 'arm': the mesh 'package://robot/{name}'" in str(caught.value)


def test_missing_meshes_are_reported_with_advice(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"link 'arm': the mesh 'package://x/y.stl' has no file.*packages=.*path="):
        convex_shapes(ShapeInstance(Mesh("package://x/y.stl")), "link 'arm'")
    with pytest.raises(FormatError, match="No such file"):
        convex_shapes(ShapeInstance(Mesh("y.stl", path=str(tmp_path / "y.stl"))), "link 'arm'")
    with pytest.raises(FormatError, match=r"cannot be read|directory"):
        convex_shapes(ShapeInstance(Mesh("y.stl", path=str(tmp_path))), "link 'arm'")
    with pytest.raises(FormatError, match=r"has the scale .* not zero"):
        convex_shapes(ShapeInstance(mesh(tmp_path / "cube.obj", scale=(1, 0, 1))), "link 'arm'")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """A file that was written twice within one clock tick was served from the cache."""
    cube = mesh(tmp_path / "cube.obj")
    os.utime(tmp_path / "cube.obj", ns=(1, 1))
    assert read_collision_mesh(cube, "link 'arm'").points.max() == 1
    mesh(tmp_path / "cube.obj", CUBE_OBJ.replace("v 1 1 1", "v 2 2 2"))
    os.utime(tmp_path / "cube.obj", ns=(1, 1))
    assert read_collision_mesh(cube, "link 'arm'").points.max() == 2


def test_a_changed_binary_file_of_a_gltf_is_read_again(tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    box = Mesh("box.gltf", path=str(tmp_path / "box.gltf"))
    for size in (1.0, 2.0):
        for name, data in trimesh.creation.box((size, size, size)).export(file_type="gltf").items():
            (tmp_path / ("box.gltf" if name == "model.gltf" else name)).write_bytes(data)
            os.utime(tmp_path / ("box.gltf" if name == "model.gltf" else name), ns=(1, 1))
        assert np.ptp(read_collision_mesh(box, "link 'arm'").points) == pytest.approx(size)


def test_files_with_the_same_content_share_one_mesh(tmp_path: Path) -> None:
    mesh_a, mesh_b = (read_collision_mesh(mesh(tmp_path / name), "link 'arm'") for name in ("a.obj", "b.obj"))
    assert mesh_a is mesh_b
    assert read_collision_mesh(mesh(tmp_path / "a.obj", scale=(2, 2, 2)), "link 'arm'").points.max() == 2


def test_without_the_extra_auto_uses_fitted_shapes_and_warns_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.split(".")[0] in ("scipy", "trimesh", "coal"):
            raise ImportError(name)
        return real(name, *rest)

    instance = ShapeInstance(mesh(tmp_path / "cube.obj"))
    monkeypatch.setattr(builtins, "__import__", refuse)
    with caplog.at_level(logging.WARNING, "mechanik"):
        for _ in range(2):
            capsules = convex_shapes(instance, "link 'arm'", "auto")
    assert all(isinstance(capsule.shape, Capsule | Sphere) for capsule in capsules)
    (message,) = caplog.messages
    assert "fitted capsules" in message
    assert "mechanik[collision]" in message
    with pytest.raises(MissingExtra, match=r"mechanik\[collision\]"):
        convex_shapes(instance, "link 'arm'", "exact")


@pytest.mark.parametrize("meshes", ["exact", "fitted"])
def test_a_collider_checks_meshes_of_links_and_of_obstacles(tmp_path: Path, meshes: Any) -> None:
    cube = mesh(tmp_path / "cube.obj")
    robot = Builder("robot")
    robot.prismatic("slide", "base", "arm", axis="x", limits=(-9, 9))
    robot.link("arm", collisions=[ShapeInstance(cube)])
    obstacles = [Obstacle(cube, (3, 0, 0), name="cube"), Obstacle(Box((1, 1, 1)), (-3, 0.5, 0.5), name="box")]
    collider = Collider(robot.build(), obstacles, meshes=meshes)
    if meshes == "exact":
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
@pytest.mark.parametrize("meshes", ["exact", "fitted"])
def test_a_vertex_that_is_not_finite_is_reported_with_its_triangle(tmp_path: Path, value: float, meshes: Any) -> None:
    """The triangle was dropped, and the rest was used as the mesh."""
    broken = TETRAHEDRON.copy()
    broken[2, 1, 0] = value
    instance = ShapeInstance(mesh(tmp_path / "tip.stl", stl(*TETRAHEDRON)))
    assert len(convex_shapes(instance, "link 'arm'", "exact")[0].shape.points) == 4
    for name, data in (("tip.stl", stl(*broken)), ("tip.off", off(broken))):
        pytest.importorskip("trimesh")
        with pytest.raises(
            FormatError, match=rf"link 'arm': the mesh '\S+/{name}': {name}: triangle 3 has a vertex at"
        ):
            convex_shapes(ShapeInstance(mesh(tmp_path / name, data)), "link 'arm'", meshes)


def off(triangles: np.ndarray) -> str:
    points = "".join(f"{x} {y} {z}\n" for x, y, z in triangles.reshape(-1, 3))
    faces = "".join(f"3 {3 * k} {3 * k + 1} {3 * k + 2}\n" for k in range(len(triangles)))
    return f"OFF\n{3 * len(triangles)} {len(triangles)} 0\n{points}{faces}"


def test_duplicate_points_of_other_formats_are_merged(tmp_path: Path) -> None:
    pytest.importorskip("trimesh")
    body = read_collision_mesh(mesh(tmp_path / "tip.off", off(TETRAHEDRON)), "link 'arm'")
    assert (body.points.shape, body.is_closed) == ((4, 3), True)


def test_the_reported_triangle_is_numbered_over_all_faces_and_colours(tmp_path: Path) -> None:
    text = CUBE_OBJ.replace("v 0 1 1", "v 0 1 1e999")  # the eighth point, last of the second face: its second triangle
    with pytest.raises(FormatError, match=r"round.obj, line 11: triangle 4 has a vertex at \(0, 1, inf\)"):
        read_collision_mesh(mesh(tmp_path / "round.obj", text), "link 'arm'")
    unused = CUBE_OBJ.replace("v 0.5 0.5 0.5", "v nan nan nan")
    assert read_collision_mesh(mesh(tmp_path / "unused.obj", unused), "link 'arm'").is_closed


@pytest.mark.parametrize("meshes", ["exact", "fitted", "auto"])
def test_a_wrong_mesh_of_an_obstacle_is_reported_with_the_obstacle(tmp_path: Path, meshes: Any) -> None:
    """The message named a link."""
    robot = Builder("robot")
    robot.prismatic("slide", "base", "arm", axis="x", limits=(-9, 9))
    robot.link("arm", collisions=[ShapeInstance(Sphere(0.1))])
    flat = mesh(tmp_path / "flat.obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n")
    for cup, label in ((Obstacle(flat, name="cup"), "obstacle 'cup'"), (Obstacle(flat), "obstacle 'obstacle1'")):
        with pytest.raises(FormatError, match=rf"^{label}: the mesh 'package://robot/flat.obj' is flat"):
            Collider(robot.build(), [cup], meshes=meshes)
    with pytest.raises(FormatError, match=r"^obstacle 'cup': the mesh 'cup.stl' has no file.*Mesh\(uri, path=...\)"):
        Collider(robot.build(), [Obstacle(Mesh("cup.stl"), name="cup")], meshes=meshes)


def test_a_collider_with_other_replacements_of_meshes_finds_its_own_allowed_collisions(tmp_path: Path) -> None:
    """Once pairs that always collide as capsules were skipped by a later collider with convex hulls."""
    plate = mesh(tmp_path / "plate.obj", scale=(1.0, 1.0, 0.02))

    def parallel_plates() -> Any:
        builder = Builder("plates")
        builder.revolute("lower joint", "base", "lower")
        builder.revolute("middle joint", "lower", "middle")
        builder.revolute("upper joint", "middle", "upper")
        mechanism = builder.build()
        for name, height in (("lower", 0.0), ("upper", 0.1)):
            mechanism.link(name).collisions = (ShapeInstance(plate, Pose((-0.5, -0.5, height))),)
        return mechanism

    mechanism = parallel_plates()
    assert Collider(mechanism, meshes="fitted").pairs == ()
    assert Collider(mechanism, meshes="exact").pairs == Collider(parallel_plates(), meshes="exact").pairs
    assert Collider(mechanism, meshes="exact").pairs == (("lower", "upper"),)
