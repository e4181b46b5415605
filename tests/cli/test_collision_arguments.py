"""Collision options of the command line: `--avoid`, `--obstacle`, `--clearance`, and the shapes that `info` lists."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mechanik as mk
from mechanik.cli import main
from mechanik.spatial import quaternion

POSITION_ARGUMENTS = ["--position", "0.4", "0.2", "0.3"]


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def data(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    return code, json.loads(out)


@pytest.fixture(scope="module")
def tray(tmp_path_factory):
    """File of a sphere of radius 0.1 m that slides along x, and of a block that it hits for x above 1.4 m."""
    robot = mk.Builder("tray")
    robot.link("base", collisions=[mk.ShapeInstance(mk.Box((1, 1, 1)), mk.spatial.Pose((2, 0, 0)))])
    robot.prismatic("slide", "base", "ball", axis="x", limits=(-3, 3))
    robot.prismatic("lift", "ball", "tip", axis="z", limits=(-3, 3))
    robot.link("ball", collisions=[mk.ShapeInstance(mk.Sphere(0.1))])
    robot.link("tip", collisions=[mk.ShapeInstance(mk.Sphere(0.1))])
    mechanism = robot.build()
    mechanism.allowed_collisions = {("base", "ball"): "adjacent", ("ball", "tip"): "adjacent"}
    path = tmp_path_factory.mktemp("tray") / "tray.json"
    mk.save(mechanism, path)
    return path


def test_solution_is_free_of_self_and_obstacle_collisions(capsys):
    arguments = ["--avoid", "self", "--obstacle", "table=box:1,1,0.05@0.6,0,-0.1", "post=capsule:0.05,1@0.3,-0.3,0.5"]
    code, report = data(capsys, "solve", "gallery:ur5", *POSITION_ARGUMENTS, *arguments)
    assert (code, report["status"], report["contacts"]) == (0, "CONVERGED", [])
    obstacles = [
        mk.Obstacle(mk.Box((1, 1, 0.05)), (0.6, 0, -0.1), name="table"),
        mk.Obstacle(mk.Capsule(0.05, 1), (0.3, -0.3, 0.5), name="post"),
    ]
    collider = mk.Collider(mk.gallery.ur5(), ["self", *obstacles])
    assert collider.is_free(report["q"], -1e-9)
    assert report["nearest"]["gap"] == pytest.approx(collider.distance(report["q"]))


def test_goal_inside_an_obstacle_exits_1_and_names_the_pair(capsys, tray):
    target = ["--link", "tip", "--position", "-1", "0", "0.5"]
    arguments = ["solve", tray, *target, "--obstacle", "cup=sphere:0.3@-1,0,0.5"]
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (1, "")
    assert "not solved (IN_COLLISION):" in out
    assert "'tip' is 400 mm inside 'cup'" in out
    code, report = data(capsys, *arguments)
    assert (code, report["success"], report["status"]) == (1, False, "IN_COLLISION")
    assert [(contact["a"], contact["b"]) for contact in report["contacts"]] == [("tip", "cup")]
    assert report["contacts"][0]["gap"] == pytest.approx(-0.4)


def test_all_colliding_pairs_are_named(capsys, tray):
    arguments = ["solve", tray, "--link", "tip", "--position", "-1", "0", "0.1", "--obstacle", "cup=sphere:0.3@-1,0,0"]
    code, out, _ = run(capsys, *arguments)
    assert code == 1
    assert "'ball' is 400 mm inside 'cup' (and 1 other pair)" in out
    assert "and:  'tip' is 300 mm inside 'cup'" in out


def test_self_collisions_are_avoided_only_with_avoid_self(capsys, tray):
    arguments = ["solve", tray, "--link", "tip", "--position", "2", "0", "0.3"]
    assert data(capsys, *arguments)[0] == 0
    code, report = data(capsys, *arguments, "--avoid", "self")
    assert code == 1
    assert [(contact["a"], contact["b"]) for contact in report["contacts"]] == [("tip", "base")]
    assert data(capsys, *arguments, "--avoid", "self", "--allow", "tip,base")[0] == 0


@pytest.mark.parametrize(("clearance", "code"), [(0.0, 0), (0.19, 0), (0.21, 1)])
def test_solution_respects_the_clearance(capsys, tray, clearance, code):
    """In the solution, the sphere is 0.2 m above the floor."""
    arguments = ["--position", "0", "0", "0.9", "--obstacle", "floor@0,0,-0.3", "--clearance", clearance]
    exit_code, report = data(capsys, "solve", tray, "--link", "tip", *arguments)
    assert exit_code == code
    assert report["nearest"] == {"a": "ball", "b": "obstacle1", "gap": pytest.approx(0.2)}


def test_smallest_distance_is_printed(capsys, tray):
    code, out, _ = run(
        capsys, "solve", tray, "--link", "tip", "--position", 0, 0, 0.9, "--obstacle", "ground=floor@0,0,-0.3"
    )
    assert code == 0
    assert "nearest:  'ball' is 200 mm from 'ground'" in out


@pytest.mark.parametrize("degrees", [False, True])
def test_obstacle_orientation_is_roll_pitch_yaw(capsys, tray, degrees):
    rpy = [0.3, -0.5, 0.9]
    angles = ",".join(str(x) for x in (np.degrees(rpy) if degrees else rpy))
    arguments = ["--position", "0", "0", "0.9", "--obstacle", f"box:0.5,0.1,0.2@-0.6,0.2,0.1,{angles}"]
    code, report = data(capsys, "solve", tray, "--link", "tip", *arguments, *(["--degrees"] if degrees else []))
    wxyz = quaternion.from_euler(rpy, order="xyz", axes="fixed")
    box = mk.Obstacle(mk.Box((0.5, 0.1, 0.2)), (-0.6, 0.2, 0.1), wxyz)
    assert code == 0
    assert report["nearest"]["gap"] == pytest.approx(mk.Collider(mk.load(tray), box).distance(report["q"]))


def test_mesh_can_be_an_obstacle(capsys, tray):
    wedge = Path(__file__).parent.parent / "data" / "mjcf" / "meshes" / "wedge.stl"
    arguments = ["--position", "0", "0", "0.9", "--obstacle", f"rock=mesh:{wedge}@-2,0,0"]
    pytest.importorskip("scipy")
    code, report = data(capsys, "solve", tray, "--link", "tip", *arguments)
    assert code == 0
    assert report["nearest"]["b"] == "rock"


def test_all_solutions_are_free_of_collisions(capsys):
    arguments = ["--position", "0.4", "0.2", "0.4", "--wxyz", "0", "1", "0", "0", "--all"]
    _, unconstrained = data(capsys, "solve", "gallery:ur5", *arguments)
    arm = mk.gallery.ur5()
    elbow = arm.pose("forearm_link", unconstrained["solutions"][0]["q"])[:3, 3]
    centre = ",".join(map(str, elbow))
    code, report = data(capsys, "solve", "gallery:ur5", *arguments, "--obstacle", f"sphere:0.05@{centre}")
    assert code == 0
    collider = mk.Collider(arm, mk.Obstacle(mk.Sphere(0.05), elbow))
    assert 0 < len(report["solutions"]) < len(unconstrained["solutions"])
    assert np.all(collider.is_free([solution["q"] for solution in report["solutions"]], -1e-9))


def test_batch_reports_rows_in_collision(capsys, tray, tmp_path):
    np.save(tmp_path / "targets.npy", np.array([[-1.0, 0, 0.5], [0, 0, 0.9]]))
    arguments = ["batch", tray, "--link", "tip", "--targets", tmp_path / "targets.npy", "--out", tmp_path / "out.csv"]
    code, out, _ = run(capsys, *arguments, "--obstacle", "cup=sphere:0.3@-1,0,0.5", "--quiet")
    assert code == 0
    assert "IN_COLLISION" in out
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert ["IN_COLLISION" in line for line in lines[1:]] == [True, False]


MISUSE = [
    (["--avoid", "table"], "--avoid takes self, not 'table'"),
    (["--clearance", "0.1"], "need --avoid self or --obstacle"),
    (["--allow", "a,b"], "need --avoid self or --obstacle"),
    (["--avoid", "self", "--clearance", "nan"], "--clearance must be a finite number of metres"),
    (["--avoid", "self", "--allow", "tip"], "two names with a comma"),
    (["--avoid", "self", "--allow", "tip,bse"], "Did you mean 'base'?"),
    (["--obstacle", "cube:1,1,1"], "'cube' is not a shape; use box:X,Y,Z"),
    (["--obstacle", "box:1,1"], "a box needs 3 sizes in m, box:X,Y,Z, not 2"),
    (["--obstacle", "box"], "a number is missing"),
    (["--obstacle", "box:1,1,x"], "'x' is not a number"),
    (["--obstacle", "box:1,1,nan"], "nan is not finite"),
    (["--obstacle", "box:1,1,-1"], "sizes must not be negative"),
    (["--obstacle", "box:1,1,0"], "has no volume"),
    (["--obstacle", "box:1,1,1@0,0"], "give X,Y,Z or X,Y,Z,ROLL,PITCH,YAW after @, not 2"),
    (["--obstacle", "box:1,1,1@"], "a number is missing"),
    (["--obstacle", "floor:1"], "a floor is infinite"),
    (["--obstacle", "mesh:none.stl"], "there is no file 'none.stl'"),
    (["--obstacle", "a=sphere:1@9,9,9", "a=sphere:1@9,9,9"], "two obstacles are called 'a'"),
    (["--obstacle", "tip=sphere:1@9,9,9"], "an obstacle and a link are both called 'tip'"),
]


@pytest.mark.parametrize(("arguments", "message"), MISUSE, ids=lambda x: str(x)[-30:])
def test_wrong_arguments_exit_2_with_one_line(capsys, tray, arguments, message):
    code, out, err = run(capsys, "solve", tray, "--link", "tip", "--position", 0, 0, 0.9, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_mechanism_without_collision_shapes_exits_1_and_says_so(capsys, tmp_path):
    robot = mk.Builder("bare")
    robot.prismatic("slide", "base", "tip", axis="x", limits=(-3, 3))
    mk.save(robot.build(), tmp_path / "bare.json")
    code, _, err = run(capsys, "solve", tmp_path / "bare.json", "--position", 1, 0, 0, "--avoid", "self")
    assert code == 1
    assert "no link of 'bare' has a collision shape" in err
    _, out, _ = run(capsys, "info", tmp_path / "bare.json")
    assert "no collision shapes" in out


# ---- info -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ur5", "panda", "humanoid", "four_bar"])
def test_info_counts_the_pairs_of_the_collider(capsys, name):
    collider = mk.Collider(mk.gallery.make(name))
    _, report = data(capsys, "info", f"gallery:{name}", "--pairs")
    links = mk.gallery.make(name).links.values()
    assert report["collision"]["shapes"] == sum(len(link.collisions) for link in links)
    assert report["collision"]["checked_pairs"] == len(collider.pairs)
    excluded = {tuple(pair["links"]): pair["reason"] for pair in report["collision"]["excluded_pairs"]}
    assert excluded == collider.allowed_collisions


def test_info_summarises_collision_pairs_and_lists_them_with_pairs(capsys, tray):
    _, out, _ = run(capsys, "info", tray)
    assert "3 collision shapes on 3 links; 1 link pair checked, 2 excluded (2 adjacent)\n" in out
    assert "reason" not in out
    _, out, _ = run(capsys, "info", tray, "--pairs")
    rows = [line.split() for line in out.splitlines()]
    assert ["base", "ball", "adjacent"] in rows
    _, out, _ = run(capsys, "info", "gallery:four_bar")
    assert "--pairs also finds pairs that always collide" in out
