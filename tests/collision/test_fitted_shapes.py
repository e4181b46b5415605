"""Capsules and balls around meshes: they cover all of them, and are not much larger."""

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
    as_placed_shape,
    cover_triangles,
    cut_triangles,
    fit_shapes,
    sample_surface,
    small_capsule,
    smallest_sphere,
    triangle_areas,
)
from mechanik.errors import MeshError, ObjectiveError, UnknownName
from mechanik.model import Box, Builder, Capsule, Mechanism, Mesh, ShapeInstance, Sphere
from mechanik.model.shapes import ConvexMesh
from mechanik.motion.record.tessellation import TriangleMesh, tessellate
from mechanik.spatial import Pose

pytest.importorskip("scipy")

LAW = settings(max_examples=30, deadline=None)
ROUNDING = 1e-9
"""m, for things of about 1 m."""


def corners_of(body: TriangleMesh | None) -> np.ndarray:
    assert body is not None
    return body.points[body.corners]


BAR = corners_of(tessellate(Box((0.2, 0.3, 1.0))))
ELBOW = np.concatenate([BAR, BAR @ [[0, 0, 1], [0, 1, 0], [-1, 0, 0]] + (0.4, 0, 0.4)])
"""Two bars at right angles, which no one convex body fits well."""


def clouds(least: int = 1) -> st.SearchStrategy[np.ndarray]:
    """Points, some of them on a line, in a plane or all in one place."""

    def made(seed: int, count: int, flat: int, doubled: bool) -> np.ndarray:
        points = np.random.default_rng(seed).normal(size=(count, 3)) * ([1.0] * (3 - flat) + [0.0] * flat)
        return np.repeat(points, 2, axis=0) if doubled else points

    return st.builds(made, st.integers(0, 10**6), st.integers(least, 40), st.integers(0, 3), st.booleans())


# ---- one shape --------------------------------------------------------------------------------


@LAW
@given(clouds())
def test_the_smallest_ball_holds_all_points_and_no_smaller_one_does(points: np.ndarray) -> None:
    ball = smallest_sphere(points)
    assert ball.signed_distance(points).max() <= 0
    # its centre is in the hull of the points that it touches: no way leads nearer to all of them
    touching = points[ball.signed_distance(points) > -1e-6 * max(ball.radius, 1e-3)] - ball.a
    for way in [*np.random.default_rng(0).normal(size=(50, 3)), *touching]:
        assert (touching @ way).min() <= 1e-6 * max(ball.radius, 1e-3) * np.linalg.norm(way)


@LAW
@given(clouds())
def test_a_small_capsule_holds_all_points_and_is_no_larger_than_the_ball(points: np.ndarray) -> None:
    capsule = small_capsule(points)
    assert capsule.signed_distance(points).max() <= ROUNDING
    assert capsule.volume <= smallest_sphere(points).volume * (1 + 1e-9)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.01, 1), st.floats(0.5, 20), st.integers(0, 10**6))
def test_a_capsule_that_is_no_ball_is_found_again_from_points_on_it(radius: float, slim: float, seed: int) -> None:
    rng, length = np.random.default_rng(seed), slim * radius
    way, at = rng.normal(size=3), rng.normal(size=3)
    way /= np.linalg.norm(way)
    out = rng.normal(size=(300, 3))
    out /= np.linalg.norm(out, axis=1)[:, None]
    points = at + length * np.where(out @ way > 0, 0.5, -0.5)[:, None] * way + radius * out
    true = np.pi * radius**2 * (length + 4 / 3 * radius)
    assert small_capsule(points).volume <= 1.001 * true


# ---- cutting ----------------------------------------------------------------------------------


@LAW
@given(st.integers(0, 10**6), st.integers(1, 30), st.booleans())
def test_a_cut_keeps_all_of_the_surface_each_on_its_side(seed: int, count: int, through_corner: bool) -> None:
    rng = np.random.default_rng(seed)
    some = rng.normal(size=(count, 3, 3))
    normal = rng.normal(size=3)
    level = float(some[0, 0] @ normal) if through_corner else float(rng.normal())
    below, above = cut_triangles(some, normal, level)
    assert (below @ normal).max(initial=level) <= level + 1e-12
    assert (above @ normal).min(initial=level) >= level - 1e-12
    assert triangle_areas(below).sum() + triangle_areas(above).sum() == pytest.approx(
        triangle_areas(some).sum(), rel=1e-12
    )


# ---- covers -----------------------------------------------------------------------------------


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 30), st.sampled_from(["capsules", "spheres"]), st.integers(1, 4))
def test_every_point_of_the_surface_is_in_one_of_the_shapes(seed: int, count: int, kind: str, most: int) -> None:
    rng = np.random.default_rng(seed)
    surface = corners_of(tessellate(ConvexMesh(rng.normal(size=(count, 3)) * rng.uniform(0.1, 2, 3))))
    found = cover_triangles(surface, kind, most)  # type: ignore[arg-type]
    assert 1 <= len(found) <= most
    points = np.concatenate([surface.reshape(-1, 3), sample_surface(surface, 2000)])
    assert union_distance(found, points).max() <= ROUNDING


@pytest.mark.parametrize("kind", ["capsules", "spheres"])
def test_what_a_closed_mesh_holds_is_covered_too(kind: str) -> None:
    found = cover_triangles(ELBOW, kind, 3)  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    inside = rng.uniform((-0.1, -0.15, -0.5), (0.1, 0.15, 0.5), (2000, 3))
    assert union_distance(found, inside).max() <= ROUNDING


def test_more_capsules_fit_an_elbow_better_and_a_bar_needs_few() -> None:
    places = np.random.default_rng(0).uniform(-1, 1.5, (20000, 3))

    def volume(count: int) -> int:
        return np.count_nonzero(union_distance(cover_triangles(ELBOW, "capsules", count), places) <= 0)

    assert volume(2) < 0.75 * volume(1)
    long = corners_of(tessellate(Capsule(0.1, 2.0)))
    assert len(cover_triangles(long, "capsules", 3)) == 1


def test_a_shape_made_of_a_round_one_is_the_same_set() -> None:
    rng = np.random.default_rng(0)
    for points in (rng.normal(size=(20, 3)), rng.normal(size=(1, 3)) + np.eye(3)[[0, 0]]):
        one = small_capsule(points)
        placed = as_placed_shape(one)
        robot = Builder()
        robot.link("a", collisions=[placed])
        robot.revolute("j", "a", "b")
        (back,) = capsules_of(robot.build().links["a"])
        places = rng.normal(size=(100, 3)) * 3
        np.testing.assert_allclose(back.signed_distance(places), one.signed_distance(places), atol=1e-12)


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
    for name in ("arm", "hand"):  # the hand had nothing to bump with but what it looks like
        assert all(isinstance(one.shape, Capsule | Sphere) for one in fitted.links[name].collisions)
        quality = fit_quality(robot, fitted)[name]
        assert quality.uncovered_distance <= 1e-7
        assert quality.shapes == len(fitted.links[name].collisions)
    one = fit_shapes(robot, links=["arm"])
    assert one.links["hand"].collisions == ()
    balls = fit_shapes(robot, "spheres", count=5).links["arm"].collisions
    assert [type(placed.shape) for placed in balls] == [Sphere] * 5


def test_quality_of_a_ball_around_a_box_is_as_computed_by_hand(tmp_path: Path) -> None:
    robot = robot_with(write_stl(tmp_path / "cube.stl", corners_of(tessellate(Box((2, 2, 2))))))
    found = fit_quality(robot, fit_shapes(robot, "spheres", count=1))["arm"]
    radius = np.sqrt(0.75)  # the mesh is scaled to a cube of 1 m
    assert found.hull_volume == pytest.approx(1.0)
    assert found.ratio == pytest.approx(4 / 3 * np.pi * radius**3, rel=0.02)
    assert found.overhang == pytest.approx(radius - 0.5, abs=0.01)
    assert abs(found.uncovered_distance) < 1e-7
    assert str(found).startswith("1 shape, 2.7")


def test_wrong_names_kinds_and_counts_are_said(tmp_path: Path) -> None:
    robot = robot_with(write_stl(tmp_path / "elbow.stl", ELBOW))
    with pytest.raises(UnknownName, match="'arm'"):
        fit_shapes(robot, links=["armm"])
    with pytest.raises(ObjectiveError, match="capsules and spheres"):
        fit_shapes(robot, "boxes")  # type: ignore[arg-type]
    for count in (0, -1, 1.5, True):
        with pytest.raises(ObjectiveError, match="count"):
            fit_shapes(robot, count=count)  # type: ignore[arg-type]
    with pytest.raises(MeshError, match=r"link 'arm': the mesh 'gone.stl'"):
        fit_shapes(robot_with(tmp_path / "gone.stl"))
    assert fit_shapes(robot, links=[]).links["arm"].collisions == robot.links["arm"].collisions


# ---- other people's robots --------------------------------------------------------------------


def robot_data(name: str) -> Mechanism:
    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        listed = []
    path = next((Path(str(one.locate())).resolve() for one in listed if one.name == name), None)
    if path is None:
        pytest.skip("the package example-robot-data is not installed")
    share = next(folder for folder in path.parents if folder.name == "example-robot-data")
    return mk.load(path, packages={"example-robot-data": share})


@pytest.mark.robot_data
@pytest.mark.parametrize(
    ("file", "arm"),
    [("panda.urdf", "panda"), ("ur5_robot.urdf", "ur5"), ("ur10_robot.urdf", "ur10")],
)
def test_the_capsules_of_the_gallery_cover_the_makers_meshes(file: str, arm: str) -> None:
    robot, mine = robot_data(file), mk.gallery.make(arm)
    quality = fit_quality(_with_links_of(robot, mine), mine)
    assert len(quality) >= 7
    for name, fit in quality.items():
        assert fit.uncovered_distance <= 0, name


def _with_links_of(robot: Mechanism, other: Mechanism) -> Mechanism:
    """The robot, bare where the other has no such link."""
    for name, link in robot.links.items():
        if name not in other.links or not other.links[name].collisions:
            link.collisions = link.visuals = ()
    return robot


@pytest.mark.robot_data
def test_links_of_a_panda_fit_in_three_capsules_of_at_most_one_and_a_half_times_their_hulls() -> None:
    robot = robot_data("panda.urdf")
    links = ["panda_link6", "panda_hand"]
    quality = fit_quality(robot, fit_shapes(robot, links=links))
    for name in links:
        assert quality[name].shapes <= 3
        assert quality[name].ratio < 1.5, name
