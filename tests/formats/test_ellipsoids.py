"""Ellipsoids of MJCF and SDF become convex hulls that contain them and are slightly larger."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.errors import FormatError, ShapeError
from mechanik.formats.ellipsoid_hull import MAX_EXCESS, ellipsoid_shape
from mechanik.model.shapes import ConvexMesh, Sphere

radii = st.floats(1e-3, 10.0)


def sdf(radii: str) -> str:
    return (
        '<sdf version="1.9"><model name="m"><link name="stone"><collision name="c"><pose>1 0 0 0 0 0</pose><geometry>'
        f"<ellipsoid><radii>{radii}</radii></ellipsoid></geometry></collision></link></model></sdf>"
    )


@settings(max_examples=50, deadline=None)
@given(st.tuples(radii, radii, radii).filter(lambda size: len(set(size)) > 1))
def test_hull_contains_the_ellipsoid_and_is_slightly_larger(size: tuple[float, float, float]) -> None:
    """Support functions are compared: they determine a convex body."""
    scipy = pytest.importorskip("scipy.spatial")
    hull = ellipsoid_shape(size)
    assert isinstance(hull, ConvexMesh)
    round_points = hull.points / size  # where the ellipsoid is the ball of radius 1
    faces = scipy.ConvexHull(round_points).equations
    assert (-faces[:, 3]).min() >= 1.0 - 1e-9
    assert np.linalg.norm(round_points, axis=1).max() <= 1.0 + MAX_EXCESS
    assert len(hull.points) == len(np.unique(hull.points, axis=0)) == 252


def test_ellipsoid_with_equal_radii_is_a_sphere() -> None:
    assert ellipsoid_shape((0.3, 0.3, 0.3)) == Sphere(0.3)


def test_ellipsoid_radii_are_read_from_sdf() -> None:
    (placed,) = mk.load(sdf("0.1 0.2 0.3")).links["stone"].collisions
    np.testing.assert_allclose(placed.shape.points.max(axis=0), [0.1, 0.2, 0.3], rtol=MAX_EXCESS)
    assert placed.pose.position.tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("radii", "message"),
    [
        ("0.1 0.2 0", "no volume"),
        ("1 1 1e-12", "no volume"),
        ("0.1 0.2 -1", "it must be between 0"),
        ("0.1 0.2", "2 numbers instead of 3"),
        ("0.1 0.2 nan", "not a finite number"),
    ],
)
def test_ellipsoid_without_volume_raises_an_error(radii: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        mk.load(sdf(radii))


def test_ellipsoid_with_a_negligible_radius_raises_an_error() -> None:
    with pytest.raises(ShapeError, match="no volume"):
        ellipsoid_shape((1.0, 1.0, 1e-12))


@pytest.mark.mujoco
def test_distances_match_mujoco_up_to_the_excess_of_the_hull() -> None:
    """Such a geom was ignored without a message."""
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><option><flag nativeccd="enable"/></option><worldbody>
        <geom name="stone" type="ellipsoid" size="0.3 0.1 0.2" pos="0.1 0 0.2" euler="20 30 40"/>
        <body name="ball"><freejoint/><geom name="ball" size="0.05"/></body></worldbody></mujoco>"""
    robot, model = mk.load(text), mujoco.MjModel.from_xml_string(text)
    assert not robot.warnings
    data, collider, rng = mujoco.MjData(model), mk.Collider(robot, "self"), np.random.default_rng(0)
    assert collider.pairs == (("ball", "world"),)
    for at in rng.normal(size=(100, 3)):
        data.qpos[:3] = (0.1, 0.0, 0.2) + 0.6 * at / np.linalg.norm(at)
        mujoco.mj_forward(model, data)
        exact = mujoco.mj_geomDistance(model, data, 0, 1, 9.0, np.zeros(6))
        gap = collider.distance(data.qpos)
        assert exact - 0.3 * MAX_EXCESS - 1e-6 <= gap <= exact + 1e-6
