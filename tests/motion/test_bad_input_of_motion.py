"""Invalid input of planning, retiming and tracking raises clear errors."""

from __future__ import annotations

import math
import struct
import sys
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

import mechanik as mk
from mechanik.collision.collision_meshes import convex_shapes
from mechanik.errors import (
    FormatError,
    InvalidArgument,
    MechanikError,
    MissingExtra,
    NotFinite,
    ShapeError,
    StructureError,
    UnknownName,
)
from mechanik.model import Mechanism, ShapeInstance
from mechanik.motion.rate_limits import require_rate_limits

for package in ("ruckig", "trimesh"):
    pytest.importorskip(package)

FLANGE = "panda_link8"
MIMIC = """<robot name="gripper">
<link name="base"/><link name="one"/><link name="two"/>
<joint name="lead" type="prismatic"><parent link="base"/><child link="one"/><axis xyz="1 0 0"/>
  <limit lower="0" upper="1" effort="1" velocity="1"/></joint>
<joint name="follow" type="prismatic"><parent link="base"/><child link="two"/><axis xyz="1 0 0"/>
  <limit lower="0" upper="2" effort="1" velocity="0.5"/><mimic joint="lead" multiplier="2"/></joint>
</robot>"""


@pytest.fixture(name="arm")
def _arm() -> Mechanism:
    return mk.gallery.panda()


def short_path(arm: Mechanism, by: float = 0.3) -> mk.Path:
    return mk.Path(arm, [arm.q, arm.q + np.eye(8)[0] * by, arm.q + np.eye(8)[1] * by])


# ---- plan -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("planner", ["PRM", None, 3])
def test_unknown_planner_raises_even_if_start_equals_goal(arm: Mechanism, planner: Any) -> None:
    """The planner was once checked only if the straight segment was blocked; None gave a TypeError."""
    with pytest.raises(UnknownName, match="auto, rrt_connect"):
        mk.plan(arm, arm.q, arm.q, planner=planner)


@pytest.mark.parametrize("options", [{"clearance": 0.1}, {"allow": [("a", "b")]}, {"forbid": [("a", "b")]}])
def test_collision_options_without_avoid_raise(arm: Mechanism, options: Any) -> None:
    """These options were once ignored."""
    with pytest.raises(InvalidArgument, match="need avoid"):
        mk.plan(arm, arm.q, arm.q, avoid=None, **options)
    if "clearance" in options:
        with pytest.raises(InvalidArgument, match="need avoid"):
            mk.Tracker(arm, mk.RestPose(), **options)


def test_links_without_shapes_raise_with_an_alternative() -> None:
    arm = mk.arm_2d([1, 1])
    with pytest.raises(StructureError, match=r"no link of 'arm_2d' has a collision shape, .*plan with avoid=None"):
        mk.plan(arm, [0, 0], [1, 1])
    assert mk.plan(arm, [0, 0], [1, 1], avoid=None).planner == "straight"


@pytest.mark.parametrize("goal", [{"panda_joint1": 0.1}, "home", mk.Pose((0.4, 0, 0.5)), None])
def test_invalid_goal_raises_with_alternatives(arm: Mechanism, goal: Any) -> None:
    with pytest.raises(
        InvalidArgument, match=r"mechanism.configuration\(.*configurations\[name\].*PoseGoal\(link, pose\)"
    ):
        mk.plan(arm, arm.q, goal)


@pytest.mark.parametrize("clearance", [math.nan, math.inf, "wide"])
def test_clearance_must_be_a_finite_number(arm: Mechanism, clearance: Any) -> None:
    for call in (
        lambda: mk.plan(arm, arm.q, arm.q, clearance=clearance),
        lambda: mk.Tracker(arm, mk.RestPose(), avoid="self", clearance=clearance),
    ):
        with pytest.raises((NotFinite, ShapeError), match="clearance"):
            call()


@pytest.mark.parametrize("clearance", [math.nan, "wide"])
def test_clearance_of_a_collision_query_is_a_number(arm: Mechanism, clearance: Any) -> None:
    collider = mk.Collider(arm)
    for query in (collider.is_free, collider.contacts):
        with pytest.raises((NotFinite, ShapeError), match="clearance"):
            query(arm.q, clearance)


def test_negative_clearance_allows_penetration(arm: Mechanism) -> None:
    ball = mk.Obstacle(mk.Sphere(0.05), arm.pose(FLANGE)[:3, 3], name="ball")
    around = mk.Collider(arm, [ball])
    depth = -float(around.distance(arm.q))
    assert depth > 0.01
    assert mk.plan(arm, arm.q, arm.q, avoid=around, clearance=-depth - 0.001).min_distance == pytest.approx(-depth)
    with pytest.raises(MechanikError, match="inside 'ball'"):
        mk.plan(arm, arm.q, arm.q, avoid=around, clearance=-depth + 0.001)


def test_dofs_that_the_goal_does_not_need_stay(arm: Mechanism) -> None:
    """The fingers once moved, because goals were searched from random starts and tree planners move all dofs."""
    wall = mk.Obstacle(mk.Box((0.5, 0.02, 0.5)), (0.6, 0.0, 0.25), name="wall")
    around = mk.Collider(arm, ["self", wall])
    X = arm.pose("panda_hand")
    X[:3, 3] = 0.5, -0.3, 0.3
    start = mk.solve(arm, mk.PoseGoal("panda_hand", X), avoid=around).require()
    X[1, 3] = 0.3
    path = mk.plan(arm, start, mk.PoseGoal("panda_hand", X), avoid=around, max_seconds=60)
    assert path.planner == "rrt_connect"
    np.testing.assert_array_equal(path.q[:, 7], start.q[7])
    np.testing.assert_allclose(arm.pose("panda_hand", path.q[-1])[:3, 3], X[:3, 3], atol=1e-5)
    assert float(np.min(around.distance(path.densify(0.01).q))) >= 0.0


# ---- retime ---------------------------------------------------------------------------------------


def test_limit_of_a_mimic_joint_bounds_its_leader() -> None:
    """A trajectory once applied the limit of a mimic joint to its leader without the ratio."""
    robot = mk.load(MIMIC)
    path = mk.Path(robot, [[0.0], [1.0]])
    for rates, rate in ((None, 0.25), ({"follow": 1.0}, 0.5), (1.0, 0.5), ([1.0], 1.0)):
        assert require_rate_limits(robot, rates, "velocity", np.ones(1)) == pytest.approx([rate])
        assert mk.Tracker(robot, mk.RestPose(), velocity=rates).velocity == pytest.approx([rate])
        assert 0.99 * rate < mk.retime(path, rates, 100.0).v.max() <= rate


def test_file_limits_of_a_closing_joint_are_ignored() -> None:
    robot = mk.gallery.four_bar()
    names = [*robot.space.v_names, *robot.closures]
    robot.extras["limits"] = {name: {"velocity": 2.0} for name in names}
    assert require_rate_limits(robot, None, "velocity", np.ones(robot.nv)) == pytest.approx(2.0)


def test_invalid_times_raise(arm: Mechanism) -> None:
    timed = mk.retime(short_path(arm), 1.0, 4.0)
    for call in (timed.at, timed.state, timed.jerk):
        for invalid in (math.nan, [0.0, math.inf]):
            with pytest.raises(NotFinite, match="times"):
                call(invalid)
        with pytest.raises(ShapeError, match="times"):
            call("now")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="at most 10,000,000"):
        timed.resample(1e-12)


def test_long_trajectory_has_a_bounded_number_of_samples(arm: Mechanism) -> None:
    """It once allocated 455 GiB."""
    slow = mk.retime(short_path(arm), 1e-7, 1e-7)
    assert slow.duration > 1e6
    assert len(slow) <= 100_001
    assert len(mk.retime(short_path(arm), 1.0, 4.0, samples=np.int64(7))) == 7  # type: ignore[arg-type]


# ---- shapes and meshes ----------------------------------------------------------------------------


def stl_mesh(path: FilePath, triangles: Any) -> mk.Mesh:
    packed = [struct.pack("<12fH", 0, 0, 0, *np.ravel(triangle), 0) for triangle in triangles]
    path.write_bytes(bytes(80) + struct.pack("<I", len(packed)) + b"".join(packed))
    return mk.Mesh(path.name, path=str(path))


def cube_triangles() -> Any:
    corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=np.float64)
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
    faces += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
    return corners[np.array(faces)]


def test_mesh_with_a_hole_has_the_same_distance_as_a_closed_one(tmp_path: FilePath, arm: Mechanism) -> None:
    def gap(mesh: mk.Mesh, how: Any) -> float:
        return float(mk.Collider(arm, [mk.Obstacle(mesh, (1, 0, 0))], meshes=how).distance(arm.q))

    whole, holed = (
        stl_mesh(tmp_path / "whole.stl", cube_triangles()),
        stl_mesh(tmp_path / "holed.stl", cube_triangles()[:-1]),
    )
    assert gap(holed, "exact") == pytest.approx(gap(whole, "exact"), abs=1e-9)
    for mesh in (whole, holed):
        assert gap(mesh, "fitted") <= gap(mesh, "exact") + 1e-9


@pytest.mark.parametrize("how", ["exact", "fitted", "auto"])
def test_flat_mesh_raises_with_its_file(tmp_path: FilePath, arm: Mechanism, how: Any) -> None:
    with pytest.raises(FormatError, match=r"'wing'.*'flat.stl' is flat and has no volume.*thin box"):
        mk.Collider(arm, [mk.Obstacle(stl_mesh(tmp_path / "flat.stl", cube_triangles()[:2]), name="wing")], meshes=how)


def test_height_field_without_thickness_raises() -> None:
    with pytest.raises(ShapeError, match=r"obstacle 'ground'.*bottom below its heights"):
        mk.Obstacle(mk.HeightField(np.zeros((3, 3)), (1, 1), 0.0), name="ground")


def test_fit_shapes_needs_a_mechanism() -> None:
    with pytest.raises(InvalidArgument, match="needs a Mechanism"):
        mk.fit_shapes("panda")  # type: ignore[arg-type]


# ---- missing packages ------------------------------------------------------------------------


def hide_package(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for name in [package, *(module for module in sys.modules if module.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)


def test_missing_package_names_the_extra_to_install(
    arm: Mechanism, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {
        "ruckig": lambda: mk.retime(mk.Path(arm, short_path(arm).q[:2]), 1.0, 1.0, 10.0),
        "scipy": lambda: mk.retime(short_path(arm), 1.0, 1.0),
    }
    for package, call in calls.items():
        with monkeypatch.context() as patch:
            hide_package(patch, package)
            with pytest.raises(MissingExtra, match=r"pip install 'mechanik\[plan\]'"):
                call()


def test_mesh_that_needs_trimesh_is_named_if_it_is_missing(
    tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A log message once announced fitted capsules, and the error did not name the file."""
    (tmp_path / "hand.ply").write_text("ply\n")
    instance = ShapeInstance(mk.Mesh("hand.ply", path=str(tmp_path / "hand.ply")))
    hide_package(monkeypatch, "trimesh")
    with pytest.raises(
        MissingExtra, match=r"link 'hand': the mesh 'hand.ply': reading files of type '.ply'.*mechanik\[collision\]"
    ):
        convex_shapes(instance, "link 'hand'", "auto")
    assert not caplog.messages
