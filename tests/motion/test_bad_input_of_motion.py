"""Planning, timing and tracking, given what cannot be meant: what is wrong is said, and nothing is left half done."""

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
    InvalidArgument,
    MechanikError,
    MeshError,
    MissingExtra,
    NotFinite,
    ShapeError,
    StructureError,
    UnknownName,
)
from mechanik.model import Mechanism, ShapeInstance
from mechanik.motion.rate_limits import require_rate_limits

for package in ("ompl", "ruckig", "trimesh"):
    pytest.importorskip(package)

HAND = "panda_link8"
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


def away(arm: Mechanism, by: float = 0.3) -> mk.Path:
    return mk.Path(arm, [arm.q, arm.q + np.eye(8)[0] * by, arm.q + np.eye(8)[1] * by])


# ---- plan -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("planner", ["PRM", None, 3])
def test_a_planner_that_is_not_there_is_refused_although_there_is_no_way_to_go(arm: Mechanism, planner: Any) -> None:
    """It was looked at only where the straight way was shut; None gave a TypeError."""
    with pytest.raises(UnknownName, match="auto, rrt_connect, RRTConnect"):
        mk.plan(arm, arm.q, arm.q, planner=planner)


@pytest.mark.parametrize("given", [{"clearance": 0.1}, {"allow": [("a", "b")]}, {"forbid": [("a", "b")]}])
def test_to_keep_off_nothing_by_so_much_is_refused(arm: Mechanism, given: Any) -> None:
    """Both were passed over."""
    with pytest.raises(InvalidArgument, match="give avoid="):
        mk.plan(arm, arm.q, arm.q, avoid=None, **given)
    if "clearance" in given:
        with pytest.raises(InvalidArgument, match="give avoid="):
            mk.Tracker(arm, mk.RestPose(), **given)


def test_links_without_shapes_are_said_with_a_way_out() -> None:
    arm = mk.arm_2d([1, 1])
    with pytest.raises(StructureError, match=r"no link of 'arm_2d' has a shape .*plan with avoid=None"):
        mk.plan(arm, [0, 0], [1, 1])
    assert mk.plan(arm, [0, 0], [1, 1], avoid=None).planner == "straight"


@pytest.mark.parametrize("goal", [{"panda_joint1": 0.1}, "home", mk.Pose((0.4, 0, 0.5)), None])
def test_what_is_no_goal_is_refused_with_what_would_be(arm: Mechanism, goal: Any) -> None:
    with pytest.raises(
        InvalidArgument, match=r"mechanism.configuration\(.*configurations\[name\].*PoseGoal\(link, pose\)"
    ):
        mk.plan(arm, arm.q, goal)


@pytest.mark.parametrize("clearance", [math.nan, math.inf, "wide"])
def test_a_clearance_is_a_number(arm: Mechanism, clearance: Any) -> None:
    for ask in (
        lambda: mk.plan(arm, arm.q, arm.q, clearance=clearance),
        lambda: mk.Tracker(arm, mk.RestPose(), avoid="self", clearance=clearance),
    ):
        with pytest.raises((NotFinite, ShapeError), match="clearance"):
            ask()


@pytest.mark.parametrize("clearance", [math.nan, "wide"])
def test_clearance_of_a_collision_query_is_a_number(arm: Mechanism, clearance: Any) -> None:
    collider = mk.Collider(arm)
    for query in (collider.is_free, collider.contacts):
        with pytest.raises((NotFinite, ShapeError), match="clearance"):
            query(arm.q, clearance)


def test_below_zero_a_clearance_is_how_deep_things_may_be_in_each_other(arm: Mechanism) -> None:
    ball = mk.Obstacle(mk.Sphere(0.05), arm.pose(HAND)[:3, 3], name="ball")
    around = mk.Collider(arm, [ball])
    depth = -float(around.distance(arm.q))
    assert depth > 0.01
    assert mk.plan(arm, arm.q, arm.q, avoid=around, clearance=-depth - 0.001).gap == pytest.approx(-depth)
    with pytest.raises(MechanikError, match="inside 'ball'"):
        mk.plan(arm, arm.q, arm.q, avoid=around, clearance=-depth + 0.001)


def test_what_a_goal_does_not_ask_for_stays_where_it_is(arm: Mechanism) -> None:
    """The fingers went to anywhere, as goals were searched from random configurations, and trees stirred them."""
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


def test_a_follower_binds_its_leader_by_its_ratio_in_a_trajectory_and_in_a_tracker() -> None:
    """A trajectory took the limit of a follower for that of its leader, as if both moved alike."""
    robot = mk.load(MIMIC)
    path = mk.Path(robot, [[0.0], [1.0]])
    for given, rate in ((None, 0.25), ({"follow": 1.0}, 0.5), (1.0, 0.5), ([1.0], 1.0)):
        assert require_rate_limits(robot, given, "velocity", np.ones(1)) == pytest.approx([rate])
        assert mk.Tracker(robot, mk.RestPose(), velocity=given).velocity == pytest.approx([rate])
        assert 0.99 * rate < mk.retime(path, given, 100.0).v.max() <= rate


def test_limits_that_a_file_has_for_the_joint_that_closes_a_loop_do_no_harm() -> None:
    robot = mk.gallery.four_bar()
    names = [*robot.space.v_names, *robot.closures]
    robot.extras["limits"] = {name: {"velocity": 2.0} for name in names}
    assert require_rate_limits(robot, None, "velocity", np.ones(robot.nv)) == pytest.approx(2.0)


def test_times_that_are_none_are_refused(arm: Mechanism) -> None:
    timed = mk.retime(away(arm), 1.0, 4.0)
    for ask in (timed.at, timed.state, timed.jerk):
        for wrong in (math.nan, [0.0, math.inf]):
            with pytest.raises(NotFinite, match="times"):
                ask(wrong)
        with pytest.raises(ShapeError, match="times"):
            ask("now")  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="at most 10,000,000"):
        timed.resample(1e-12)


def test_years_are_not_sampled_every_hundredth_of_a_second(arm: Mechanism) -> None:
    """It asked for 455 GiB."""
    slow = mk.retime(away(arm), 1e-7, 1e-7)
    assert slow.duration > 1e6
    assert len(slow) <= 100_001
    assert len(mk.retime(away(arm), 1.0, 4.0, samples=np.int64(7))) == 7  # type: ignore[arg-type]


# ---- shapes and meshes ----------------------------------------------------------------------------


def stl(path: FilePath, triangles: Any) -> mk.Mesh:
    packed = [struct.pack("<12fH", 0, 0, 0, *np.ravel(one), 0) for one in triangles]
    path.write_bytes(bytes(80) + struct.pack("<I", len(packed)) + b"".join(packed))
    return mk.Mesh(path.name, path=str(path))


def cube() -> Any:
    corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=np.float64)
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
    faces += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
    return corners[np.array(faces)]


def test_a_mesh_with_a_hole_bumps_as_one_without_and_fitted_shapes_no_later(tmp_path: FilePath, arm: Mechanism) -> None:
    def gap(mesh: mk.Mesh, how: Any) -> float:
        return float(mk.Collider(arm, [mk.Obstacle(mesh, (1, 0, 0))], meshes=how).distance(arm.q))

    whole, holed = stl(tmp_path / "whole.stl", cube()), stl(tmp_path / "holed.stl", cube()[:-1])
    assert gap(holed, "exact") == pytest.approx(gap(whole, "exact"), abs=1e-9)
    for mesh in (whole, holed):
        assert gap(mesh, "fitted") <= gap(mesh, "exact") + 1e-9


@pytest.mark.parametrize("how", ["exact", "fitted", "auto"])
def test_a_flat_mesh_is_refused_with_its_file(tmp_path: FilePath, arm: Mechanism, how: Any) -> None:
    with pytest.raises(MeshError, match=r"'wing'.*'flat.stl' is flat and has no volume.*thin box"):
        mk.Collider(arm, [mk.Obstacle(stl(tmp_path / "flat.stl", cube()[:2]), name="wing")], meshes=how)


def test_a_ground_as_low_as_its_bottom_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"obstacle 'ground'.*bottom below its heights"):
        mk.Obstacle(mk.HeightField(np.zeros((3, 3)), (1, 1), 0.0), name="ground")


def test_shapes_are_fitted_to_a_mechanism() -> None:
    with pytest.raises(InvalidArgument, match="needs a Mechanism"):
        mk.fit_shapes("panda")  # type: ignore[arg-type]


# ---- what is not installed ------------------------------------------------------------------------


def without(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for name in [package, *(one for one in sys.modules if one.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)


def test_without_its_package_each_says_what_to_install(
    arm: Mechanism, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = mk.Obstacle(mk.Box((0.5, 0.02, 0.9)), (0.6, 0.0, 0.4), name="wall")
    ways = {
        "ompl": lambda: mk.plan(
            arm, arm.q - np.eye(8)[0], arm.q + np.eye(8)[0], avoid=["self", wall], planner="RRTConnect"
        ),
        "ruckig": lambda: mk.retime(mk.Path(arm, away(arm).q[:2]), 1.0, 1.0, 10.0),
        "scipy": lambda: mk.retime(away(arm), 1.0, 1.0),
    }
    for package, ask in ways.items():
        with monkeypatch.context() as patch:
            without(patch, package)
            with pytest.raises(MissingExtra, match=r"pip install 'mechanik\[plan\]'"):
                ask()


def test_a_mesh_that_needs_trimesh_is_named_where_it_is_missing(
    tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was said that fitted capsules are taken, and then which file cannot be read was not."""
    (tmp_path / "hand.ply").write_text("ply\n")
    placed = ShapeInstance(mk.Mesh("hand.ply", path=str(tmp_path / "hand.ply")))
    without(monkeypatch, "trimesh")
    with pytest.raises(
        MissingExtra, match=r"link 'hand': the mesh 'hand.ply': reading files of type '.ply'.*mechanik\[collision\]"
    ):
        convex_shapes(placed, "link 'hand'", "auto")
    assert not caplog.messages
