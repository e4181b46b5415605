"""What must not be bumped into, on the command line: `--avoid`, `--obstacle`, and what `info` says of shapes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mechanik as mk
from mechanik.cli import main
from mechanik.spatial import quaternion

THERE = ["--position", "0.4", "0.2", "0.3"]


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
    """A ball of 0.1 m that slides along x, and a block that stands in its way for x above 1.4."""
    robot = mk.Builder("tray")
    robot.link("base", collisions=[mk.ShapeInstance(mk.Box((1, 1, 1)), mk.spatial.Pose((2, 0, 0)))])
    robot.prismatic("slide", "base", "ball", axis="x", limits=(-3, 3))
    robot.prismatic("lift", "ball", "tip", axis="z", limits=(-3, 3))
    robot.link("ball", collisions=[mk.ShapeInstance(mk.Sphere(0.1))])
    robot.link("tip", collisions=[mk.ShapeInstance(mk.Sphere(0.1))])
    made = robot.build()
    made.allowed_collisions = {("base", "ball"): "adjacent", ("ball", "tip"): "adjacent"}
    path = tmp_path_factory.mktemp("tray") / "tray.json"
    mk.save(made, path)
    return path


def test_a_solution_keeps_off_itself_and_obstacles_or_is_none(capsys):
    words = ["--avoid", "self", "--obstacle", "table=box:1,1,0.05@0.6,0,-0.1", "post=capsule:0.05,1@0.3,-0.3,0.5"]
    code, told = data(capsys, "solve", "gallery:ur5", *THERE, *words)
    assert (code, told["status"], told["contacts"]) == (0, "CONVERGED", [])
    obstacles = [
        mk.Obstacle(mk.Box((1, 1, 0.05)), (0.6, 0, -0.1), name="table"),
        mk.Obstacle(mk.Capsule(0.05, 1), (0.3, -0.3, 0.5), name="post"),
    ]
    collider = mk.Collider(mk.gallery.ur5(), ["self", *obstacles])
    assert collider.is_free(told["q"], -1e-9)
    assert told["nearest"]["gap"] == pytest.approx(collider.distance(told["q"]))


def test_a_goal_inside_an_obstacle_exits_1_and_names_the_pair(capsys, tray):
    words = ["solve", tray, "--link", "tip", "--position", "-1", "0", "0.5", "--obstacle", "cup=sphere:0.3@-1,0,0.5"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (1, "")
    assert "not solved (IN_COLLISION):" in out
    assert "'tip' is 400 mm inside 'cup'" in out
    code, told = data(capsys, *words)
    assert (code, told["success"], told["status"]) == (1, False, "IN_COLLISION")
    assert [(one["a"], one["b"]) for one in told["contacts"]] == [("tip", "cup")]
    assert told["contacts"][0]["gap"] == pytest.approx(-0.4)


def test_every_other_pair_is_named_too(capsys, tray):
    words = ["solve", tray, "--link", "tip", "--position", "-1", "0", "0.1", "--obstacle", "cup=sphere:0.3@-1,0,0"]
    code, out, _ = run(capsys, *words)
    assert code == 1
    assert "'ball' is 400 mm inside 'cup' (and 1 other pair)" in out
    assert "and:  'tip' is 300 mm inside 'cup'" in out


def test_itself_is_avoided_only_if_that_is_said(capsys, tray):
    words = ["solve", tray, "--link", "tip", "--position", "2", "0", "0.3"]
    assert data(capsys, *words)[0] == 0
    code, told = data(capsys, *words, "--avoid", "self")
    assert code == 1
    assert [(one["a"], one["b"]) for one in told["contacts"]] == [("tip", "base")]
    assert data(capsys, *words, "--avoid", "self", "--allow", "tip,base")[0] == 0


@pytest.mark.parametrize(("clearance", "code"), [(0.0, 0), (0.19, 0), (0.21, 1)])
def test_the_clearance_is_kept(capsys, tray, clearance, code):
    """The ball ends 0.2 m from the floor."""
    words = ["--position", "0", "0", "0.9", "--obstacle", "floor@0,0,-0.3", "--clearance", clearance]
    found, told = data(capsys, "solve", tray, "--link", "tip", *words)
    assert found == code
    assert told["nearest"] == {"a": "ball", "b": "obstacle1", "gap": pytest.approx(0.2)}


def test_the_smallest_gap_is_shown(capsys, tray):
    code, out, _ = run(
        capsys, "solve", tray, "--link", "tip", "--position", 0, 0, 0.9, "--obstacle", "ground=floor@0,0,-0.3"
    )
    assert code == 0
    assert "nearest:  'ball' is 200 mm from 'ground'" in out


@pytest.mark.parametrize("degrees", [False, True])
def test_an_obstacle_is_turned_by_roll_pitch_and_yaw(capsys, tray, degrees):
    turn = [0.3, -0.5, 0.9]
    said = ",".join(str(x) for x in (np.degrees(turn) if degrees else turn))
    words = ["--position", "0", "0", "0.9", "--obstacle", f"box:0.5,0.1,0.2@-0.6,0.2,0.1,{said}"]
    code, told = data(capsys, "solve", tray, "--link", "tip", *words, *(["--degrees"] if degrees else []))
    wxyz = quaternion.from_euler(turn, order="xyz", axes="fixed")
    box = mk.Obstacle(mk.Box((0.5, 0.1, 0.2)), (-0.6, 0.2, 0.1), wxyz)
    assert code == 0
    assert told["nearest"]["gap"] == pytest.approx(mk.Collider(mk.load(tray), box).distance(told["q"]))


def test_a_mesh_is_an_obstacle(capsys, tray):
    wedge = Path(__file__).parent.parent / "data" / "mjcf" / "meshes" / "wedge.stl"
    words = ["--position", "0", "0", "0.9", "--obstacle", f"rock=mesh:{wedge}@-2,0,0"]
    pytest.importorskip("scipy")
    code, told = data(capsys, "solve", tray, "--link", "tip", *words)
    assert code == 0
    assert told["nearest"]["b"] == "rock"


def test_all_solutions_are_free(capsys):
    words = ["--position", "0.4", "0.2", "0.4", "--wxyz", "0", "1", "0", "0", "--all"]
    _, all_of_them = data(capsys, "solve", "gallery:ur5", *words)
    arm = mk.gallery.ur5()
    elbow = arm.pose("forearm_link", all_of_them["solutions"][0]["q"])[:3, 3]
    said = ",".join(map(str, elbow))
    code, told = data(capsys, "solve", "gallery:ur5", *words, "--obstacle", f"sphere:0.05@{said}")
    assert code == 0
    collider = mk.Collider(arm, mk.Obstacle(mk.Sphere(0.05), elbow))
    assert 0 < len(told["solutions"]) < len(all_of_them["solutions"])
    assert np.all(collider.is_free([one["q"] for one in told["solutions"]], -1e-9))


def test_a_batch_tells_what_bumps(capsys, tray, tmp_path):
    np.save(tmp_path / "targets.npy", np.array([[-1.0, 0, 0.5], [0, 0, 0.9]]))
    words = ["batch", tray, "--link", "tip", "--targets", tmp_path / "targets.npy", "--out", tmp_path / "out.csv"]
    code, out, _ = run(capsys, *words, "--obstacle", "cup=sphere:0.3@-1,0,0.5", "--quiet")
    assert code == 0
    assert "IN_COLLISION" in out
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert ["IN_COLLISION" in line for line in lines[1:]] == [True, False]


MISUSE = [
    (["--avoid", "table"], "--avoid takes self, not 'table'"),
    (["--clearance", "0.1"], "need something to keep off"),
    (["--allow", "a,b"], "need something to keep off"),
    (["--avoid", "self", "--clearance", "nan"], "--clearance is a number of metres"),
    (["--avoid", "self", "--allow", "tip"], "two names with a comma"),
    (["--avoid", "self", "--allow", "tip,bse"], "Did you mean 'base'?"),
    (["--obstacle", "cube:1,1,1"], "'cube' is no shape; there are box:X,Y,Z"),
    (["--obstacle", "box:1,1"], "a box has 3 sizes, box:X,Y,Z"),
    (["--obstacle", "box"], "a number is missing"),
    (["--obstacle", "box:1,1,x"], "'x' is not a number"),
    (["--obstacle", "box:1,1,nan"], "nan is not finite"),
    (["--obstacle", "box:1,1,-1"], "sizes must not be negative"),
    (["--obstacle", "box:1,1,0"], "has no volume"),
    (["--obstacle", "box:1,1,1@0,0"], "behind @ stand X,Y,Z or X,Y,Z,ROLL,PITCH,YAW, not 2"),
    (["--obstacle", "box:1,1,1@"], "a number is missing"),
    (["--obstacle", "floor:1"], "a floor is endless"),
    (["--obstacle", "mesh:none.stl"], "there is no file 'none.stl'"),
    (["--obstacle", "a=sphere:1@9,9,9", "a=sphere:1@9,9,9"], "two obstacles are called 'a'"),
    (["--obstacle", "tip=sphere:1@9,9,9"], "an obstacle and a link are both called 'tip'"),
]


@pytest.mark.parametrize(("words", "message"), MISUSE, ids=lambda x: str(x)[-30:])
def test_wrong_words_exit_2_with_one_line(capsys, tray, words, message):
    code, out, err = run(capsys, "solve", tray, "--link", "tip", "--position", 0, 0, 0.9, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_mechanism_without_shapes_says_so(capsys, tmp_path):
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
def test_info_counts_the_pairs_that_a_collider_has(capsys, name):
    collider = mk.Collider(mk.gallery.make(name))
    _, told = data(capsys, "info", f"gallery:{name}", "--pairs")
    links = mk.gallery.make(name).links.values()
    assert told["collision"]["shapes"] == sum(len(link.collisions) for link in links)
    assert told["collision"]["pairs"] == len(collider.pairs)
    found = {tuple(one["links"]): one["reason"] for one in told["collision"]["excluded_pairs"]}
    assert found == collider.allowed_collisions


def test_info_says_in_a_line_what_can_bump_and_lists_pairs_if_asked(capsys, tray):
    _, out, _ = run(capsys, "info", tray)
    assert "3 collision shapes on 3 links; 1 link pair checked, 2 excluded (2 adjacent)\n" in out
    assert "reason" not in out
    _, out, _ = run(capsys, "info", tray, "--pairs")
    rows = [line.split() for line in out.splitlines()]
    assert ["base", "ball", "adjacent"] in rows
    _, out, _ = run(capsys, "info", "gallery:four_bar")
    assert "--pairs also finds pairs that always touch" in out
