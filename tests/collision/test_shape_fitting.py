"""Capsules and spheres fitted to meshes: they cover them, and are not much larger."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.collision.fit_quality import capsules_of, fit_quality, union_distance
from mechanik.collision.shape_fitting import (
    as_shape_instance,
    cover_triangles,
    cut_triangles,
    fit_shapes,
    sample_surface,
    small_capsule,
    smallest_sphere,
    triangle_areas,
)
from mechanik.errors import FormatError, ObjectiveError, UnknownName
from mechanik.model import Box, Builder, Capsule, Mechanism, Mesh, ShapeInstance, Sphere
from mechanik.model.shapes import ConvexMesh
from mechanik.motion.record.tessellation import TriangleMesh, tessellate
from mechanik.spatial import Pose

pytest.importorskip("scipy")

EXAMPLES = settings(max_examples=30, deadline=None)
ROUNDING = 1e-9
"""m, for sizes of about 1 m."""


def triangles_of(body: TriangleMesh | None) -> np.ndarray:
    assert body is not None
    return body.points[body.corners]


BAR = triangles_of(tessellate(Box((0.2, 0.3, 1.0))))
ELBOW = np.concatenate([BAR, BAR @ [[0, 0, 1], [0, 1, 0], [-1, 0, 0]] + (0.4, 0, 0.4)])
"""Two bars at right angles, which no single convex body fits well."""


def clouds(min_count: int = 1) -> st.SearchStrategy[np.ndarray]:
    """Points in space, in a plane, on a line, or all coincident."""

    def make_points(seed: int, count: int, flat: int, doubled: bool) -> np.ndarray:
        points = np.random.default_rng(seed).normal(size=(count, 3)) * ([1.0] * (3 - flat) + [0.0] * flat)
        return np.repeat(points, 2, axis=0) if doubled else points

    return st.builds(make_points, st.integers(0, 10**6), st.integers(min_count, 40), st.integers(0, 3), st.booleans())


# ---- single shapes ----------------------------------------------------------------------------


@EXAMPLES
@given(clouds())
def test_the_smallest_sphere_contains_all_points_and_is_minimal(points: np.ndarray) -> None:
    sphere = smallest_sphere(points)
    assert sphere.signed_distance(points).max() <= 0
    # the centre is in the hull of the points on the surface: no direction leads closer to all of them
    touching = points[sphere.signed_distance(points) > -1e-6 * max(sphere.radius, 1e-3)] - sphere.a
    for direction in [*np.random.default_rng(0).normal(size=(50, 3)), *touching]:
        assert (touching @ direction).min() <= 1e-6 * max(sphere.radius, 1e-3) * np.linalg.norm(direction)


@EXAMPLES
@given(clouds())
def test_a_small_capsule_contains_all_points_and_is_not_larger_than_the_sphere(points: np.ndarray) -> None:
    capsule = small_capsule(points)
    assert capsule.signed_distance(points).max() <= ROUNDING
    assert capsule.volume <= smallest_sphere(points).volume * (1 + 1e-9)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.01, 1), st.floats(0.5, 20), st.integers(0, 10**6))
def test_a_capsule_is_recovered_from_points_on_its_surface(radius: float, length_ratio: float, seed: int) -> None:
    rng, length = np.random.default_rng(seed), length_ratio * radius
    axis, centre = rng.normal(size=3), rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    normals = rng.normal(size=(300, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    points = centre + length * np.where(normals @ axis > 0, 0.5, -0.5)[:, None] * axis + radius * normals
    true_volume = np.pi * radius**2 * (length + 4 / 3 * radius)
    assert small_capsule(points).volume <= 1.001 * true_volume


# ---- cutting ----------------------------------------------------------------------------------


@EXAMPLES
@given(st.integers(0, 10**6), st.integers(1, 30), st.booleans())
def test_a_cut_keeps_the_area_and_puts_each_part_on_its_side(seed: int, count: int, through_corner: bool) -> None:
    rng = np.random.default_rng(seed)
    triangles = rng.normal(size=(count, 3, 3))
    normal = rng.normal(size=3)
    level = float(triangles[0, 0] @ normal) if through_corner else float(rng.normal())
    below, above = cut_triangles(triangles, normal, level)
    assert (below @ normal).max(initial=level) <= level + 1e-12
    assert (above @ normal).min(initial=level) >= level - 1e-12
    assert triangle_areas(below).sum() + triangle_areas(above).sum() == pytest.approx(
        triangle_areas(triangles).sum(), rel=1e-12
    )


# ---- covers -----------------------------------------------------------------------------------


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 30), st.sampled_from(["capsules", "spheres"]), st.integers(1, 4))
def test_every_point_of_the_surface_is_covered(seed: int, count: int, kind: str, max_count: int) -> None:
    rng = np.random.default_rng(seed)
    surface = triangles_of(tessellate(ConvexMesh(rng.normal(size=(count, 3)) * rng.uniform(0.1, 2, 3))))
    capsules = cover_triangles(surface, kind, max_count)  # type: ignore[arg-type]
    assert 1 <= len(capsules) <= max_count
    points = np.concatenate([surface.reshape(-1, 3), sample_surface(surface, 2000)])
    assert union_distance(capsules, points).max() <= ROUNDING


@pytest.mark.parametrize("kind", ["capsules", "spheres"])
def test_the_interior_of_a_closed_mesh_is_covered(kind: str) -> None:
    capsules = cover_triangles(ELBOW, kind, 3)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    inside = rng.uniform((-0.1, -0.15, -0.5), (0.1, 0.15, 0.5), (2000, 3))
    assert union_distance(capsules, inside).max() <= ROUNDING


def test_more_capsules_fit_an_elbow_better_and_a_bar_needs_one() -> None:
    samples = np.random.default_rng(0).uniform(-1, 1.5, (20000, 3))

    def volume(count: int) -> int:
        return np.count_nonzero(union_distance(cover_triangles(ELBOW, "capsules", count), samples) <= 0)

    assert volume(2) < 0.75 * volume(1)
    long = triangles_of(tessellate(Capsule(0.1, 2.0)))
    assert len(cover_triangles(long, "capsules", 3)) == 1


def test_a_shape_instance_of_a_capsule_is_the_same_set() -> None:
    rng = np.random.default_rng(0)
    for points in (rng.normal(size=(20, 3)), rng.normal(size=(1, 3)) + np.eye(3)[[0, 0]]):
        capsule = small_capsule(points)
        instance = as_shape_instance(capsule)
        robot = Builder()
        robot.link("a", collisions=[instance])
        robot.revolute("j", "a", "b")
        (restored,) = capsules_of(robot.build().links["a"])
        samples = rng.normal(size=(100, 3)) * 3
        np.testing.assert_allclose(restored.signed_distance(samples), capsule.signed_distance(samples), atol=1e-12)


# ---- mechanisms -------------------------------------------------------------------------------


def write_stl(path: Path, corners: np.ndarray) -> Path:
    facets = np.zeros(len(corners), dtype=[("normal", "<f4", 3), ("at", "<f4", (3, 3)), ("rest", "<u2")])
    facets["at"] = corners
    path.write_bytes(bytes(80) + len(corners).to_bytes(4, "little") + facets.tobytes())
    return path


def robot_with(path: Path) -> Mechanism:
    mesh = ShapeInstance(Mesh(path.name, (0.5, 0.5, 0.5), str(path)), Pose((1, 2, 3), (1, 1, 0, 0)))
    robot = Builder("robot")
    robot.link("base", collisions=[ShapeInstance(Box((1, 1, 1)))])
    robot.revolute("j", "base", "arm", at=(0, 0, 1))
    robot.link("arm", collisions=[mesh])
    robot.revolute("k", "arm", "hand", at=(0, 0, 1))
    robot.link("hand", visuals=[mesh], collisions=())
    return robot.build()


def test_meshes_become_capsules_in_a_copy_and_other_shapes_stay(tmp_path: Path) -> None:
    robot = robot_with(write_stl(tmp_path / "elbow.stl", ELBOW))
    fitted = fit_shapes(robot)
    assert isinstance(robot.links["arm"].collisions[0].shape, Mesh)
    assert robot.links["hand"].collisions == ()
    assert fitted.links["base"].collisions == robot.links["base"].collisions
    for name in ("arm", "hand"):  # the hand has visual meshes only
        assert all(isinstance(instance.shape, Capsule | Sphere) for instance in fitted.links[name].collisions)
        quality = fit_quality(robot, fitted)[name]
        assert quality.uncovered_distance <= 1e-7
        assert quality.shape_count == len(fitted.links[name].collisions)
    instance = fit_shapes(robot, links=["arm"])
    assert instance.links["hand"].collisions == ()
    spheres = fit_shapes(robot, "spheres", count=5).links["arm"].collisions
    assert [type(instance.shape) for instance in spheres] == [Sphere] * 5


def test_quality_of_a_sphere_around_a_cube_has_its_closed_form(tmp_path: Path) -> None:
    robot = robot_with(write_stl(tmp_path / "cube.stl", triangles_of(tessellate(Box((2, 2, 2))))))
    quality = fit_quality(robot, fit_shapes(robot, "spheres", count=1))["arm"]
    radius = np.sqrt(0.75)  # the mesh is scaled to a cube of 1 m
    assert quality.hull_volume == pytest.approx(1.0)
    assert quality.volume_ratio == pytest.approx(4 / 3 * np.pi * radius**3, rel=0.02)
    assert quality.overhang == pytest.approx(radius - 0.5, abs=0.01)
    assert abs(quality.uncovered_distance) < 1e-7
    assert str(quality).startswith("1 shape, 2.7")


def test_wrong_arguments_of_fit_shapes_are_refused(tmp_path: Path) -> None:
    robot = robot_with(write_stl(tmp_path / "elbow.stl", ELBOW))
    with pytest.raises(UnknownName, match="'arm'"):
        fit_shapes(robot, links=["armm"])
    with pytest.raises(ObjectiveError, match="'capsules' or 'spheres'"):
        fit_shapes(robot, "boxes")  # type: ignore[arg-type]
    for count in (0, -1, 1.5, True):
        with pytest.raises(ObjectiveError, match="count"):
            fit_shapes(robot, count=count)  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=r"link 'arm': the mesh 'gone.stl'"):
        fit_shapes(robot_with(tmp_path / "gone.stl"))
    assert fit_shapes(robot, links=[]).links["arm"].collisions == robot.links["arm"].collisions


# ---- models of manufacturers ------------------------------------------------------------------


def robot_data(name: str) -> Mechanism:
    try:
        package_files = files("example-robot-data") or []
    except PackageNotFoundError:
        package_files = []
    path = next((Path(str(entry.locate())).resolve() for entry in package_files if entry.name == name), None)
    if path is None:
        pytest.skip("the package example-robot-data is not installed")
    share = next(folder for folder in path.parents if folder.name == "example-robot-data")
    return mk.load(path, packages={"example-robot-data": share})


@pytest.mark.robot_data
@pytest.mark.parametrize(
    ("file", "arm"),
    [("panda.urdf", "panda"), ("ur5_robot.urdf", "ur5"), ("ur10_robot.urdf", "ur10")],
)
def test_the_capsules_of_the_gallery_cover_the_meshes_of_the_manufacturers(file: str, arm: str) -> None:
    robot, gallery_arm = robot_data(file), mk.gallery.make(arm)
    quality = fit_quality(_only_links_of(robot, gallery_arm), gallery_arm)
    assert len(quality) >= 7
    for name, link_quality in quality.items():
        assert link_quality.uncovered_distance <= 0, name


def _only_links_of(robot: Mechanism, gallery_arm: Mechanism) -> Mechanism:
    """Return the robot without shapes on links that the gallery arm does not have."""
    for name, link in robot.links.items():
        if name not in gallery_arm.links or not gallery_arm.links[name].collisions:
            link.collisions = link.visuals = ()
    return robot


@pytest.mark.robot_data
def test_three_capsules_cover_links_of_a_panda_with_at_most_one_and_a_half_hull_volumes() -> None:
    robot = robot_data("panda.urdf")
    links = ["panda_link6", "panda_hand"]
    quality = fit_quality(robot, fit_shapes(robot, links=links))
    for name in links:
        assert quality[name].shape_count <= 3
        assert quality[name].volume_ratio < 1.5, name
