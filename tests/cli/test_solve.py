"""`mechanik solve`: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import mechanik as mk
from mechanik import gallery, spatial
from mechanik.cli import main
from mechanik.spatial import quaternion

THERE = ["--position", "0.4", "-0.2", "0.5"]


def run(capsys, *arguments):
    code = main([str(argument) for argument in ("solve", *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def data(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    return code, json.loads(out)


@pytest.mark.parametrize("name", ["ur5", "scara", "planar_3r", "puma560", "iiwa14"])
def test_the_values_put_the_link_where_it_shall_be(capsys, name):
    arm = gallery.make(name)
    (end,) = [link for link in arm.links if not arm.links[link].children]
    q = arm.random(np.random.default_rng(5))
    position, wxyz = spatial.to_position_wxyz(arm.pose(end, q))
    code, told = data(capsys, f"gallery:{name}", "--position", *position, "--wxyz", *wxyz)
    assert (code, told["success"], told["status"], told["link"]) == (0, True, "CONVERGED", end)
    assert np.allclose(arm.pose(end, told["q"]), arm.pose(end, q), atol=2e-6)
    assert told["errors"]["position"] < 1e-6
    assert told["errors"]["rotation"] < 1e-6
    assert told["values"] == dict(arm.values(told["q"]))


def test_a_position_alone_leaves_the_orientation_free(capsys):
    code, told = data(capsys, "gallery:ur5", *THERE)
    assert code == 0
    assert np.allclose(told["pose"]["position"], [0.4, -0.2, 0.5], atol=1e-6)
    assert told["errors"]["rotation"] == 0.0


def test_an_orientation_alone_leaves_the_position_free(capsys):
    code, told = data(capsys, "gallery:ur5", "--wxyz", 0, 1, 0, 0)
    assert code == 0
    assert np.allclose(np.abs(told["pose"]["wxyz"]), [0, 1, 0, 0], atol=1e-6)


def test_roll_pitch_and_yaw_are_those_of_a_urdf(capsys):
    wxyz = quaternion.from_euler([np.pi, 0.2, -0.5], order="xyz", axes="fixed")
    degrees = np.degrees([np.pi, 0.2, -0.5])
    for words in (["--rpy", np.pi, 0.2, -0.5], ["--rpy", *degrees, "--degrees"]):
        _, told = data(capsys, "gallery:ur5", *THERE, *words)
        assert told["success"]
        assert abs(abs(np.dot(told["pose"]["wxyz"], wxyz)) - 1) < 1e-11


@pytest.mark.parametrize(
    "words",
    [
        ["--position", "-0.4", "-.2", "5e-1"],
        ["--position=-0.4,-0.2,0.5"],
        ["--position", "-0.4,-0.2,0.5"],
        ["--position", "-4e-1", "-2e-1", "0.5"],
    ],
)
def test_negative_numbers_are_numbers(capsys, words):
    code, told = data(capsys, "gallery:ur5", *words)
    assert code == 0
    assert np.allclose(told["pose"]["position"], [-0.4, -0.2, 0.5], atol=1e-6)


def test_it_prints_names_values_degrees_and_limits(capsys):
    code, out, err = run(capsys, "gallery:scara", "--position", 0.3, 0.2, 0.25)
    assert (code, err) == (0, "")
    scara = gallery.make("scara")
    rows = {line.split()[0]: line for line in out.splitlines() if line.split()[:1] and line.split()[0] in scara.joints}
    assert list(rows) == list(scara.values())
    turns, slides = rows["shoulder"].split(), rows["quill"].split()
    assert turns[2] == "rad"
    assert abs(np.degrees(float(turns[1])) - float(turns[3])) < 1e-3
    assert slides[2:] == ["m", "0.0000", "0.2100"]  # no degrees, no limit reached
    assert "solved:" in out
    assert re.search(r"error \S+ m\n", out)
    assert re.search(r"\d+ iterations?, \d+ attempts?, ", out)


def test_out_of_reach_exits_1_with_the_reason_and_the_closest(capsys):
    code, out, err = run(capsys, "gallery:planar_2r", "--position", 5, 0, 0)
    assert (code, err) == (1, "")
    assert "not solved (CLOSEST)" in out
    assert "not reached from" in out
    arm = gallery.make("planar_2r")
    reach = np.linalg.norm(arm.pose("tool", [0.0, 0.0])[:3, 3])
    assert re.search(rf"closest:  tool at {reach:.4f} ", out)
    assert f"error {5 - reach:.2g} m" in out
    code, told = data(capsys, "gallery:planar_2r", "--position", 5, 0, 0)
    assert (code, told["success"], told["status"]) == (1, False, "CLOSEST")
    assert np.allclose(told["pose"]["position"], [reach, 0, 0], atol=1e-4)


def test_a_joint_at_its_limit_is_marked(capsys, tmp_path):
    builder = mk.Builder("short")
    builder.prismatic("slide", "base", "tool", axis="x", limits=(0.0, 0.5))
    mk.save(builder.build(), tmp_path / "short.json")
    code, out, _ = run(capsys, tmp_path / "short.json", "--position", 2, 0, 0)
    assert code == 1
    assert re.search(r"slide +0\.500000 +m +0\.0000 +0\.5000 +upper", out)


def test_it_starts_where_it_is_told_and_locked_joints_stay(capsys):
    q0 = [-0.3, -1.0, 1.2, -0.4, 0.3, 0.2]
    for words in (["--q0", *q0], ["--q0", *np.degrees(q0), "--degrees"]):
        _, told = data(capsys, "gallery:ur5", *THERE, *words, "--lock", "wrist_3_joint", "wrist_2_joint")
        assert told["success"]
        assert np.allclose(told["q"][4:], q0[4:], atol=1e-12)
    _, told = data(capsys, "gallery:ur5", *THERE, "--q0", "wrist_3_joint=-0.7", "--lock", "wrist_3_joint")
    assert told["values"]["wrist_3_joint"] == -0.7


def test_a_wider_tolerance_is_enough(capsys):
    _, told = data(capsys, "gallery:planar_2r", "--position", 5, 0, 0, "--tolerance", 10)
    assert told["success"]


def test_the_same_json_goes_to_a_file(capsys, tmp_path):
    path = tmp_path / "answer.json"
    path.write_text("old")
    code, out, err = run(capsys, "gallery:ur5", *THERE, "--out", path, "--json")
    assert code == 0
    assert json.loads(path.read_text()) == json.loads(out)
    assert f"wrote {path}" in " ".join(err.split())
    assert [one.name for one in tmp_path.iterdir()] == ["answer.json"]


# ---- all of them -----------------------------------------------------------------------------

DOWN = ["--position", "0.4", "0.2", "0.4", "--wxyz", "0", "1", "0", "0"]


def test_all_solutions_are_solutions_and_differ_and_the_nearest_comes_first(capsys):
    arm = gallery.make("ur5")
    code, told = data(capsys, "gallery:ur5", *DOWN, "--all")
    assert (code, told["complete"], told["redundant"], len(told["solutions"])) == (0, True, 0, 8)
    q = np.array([one["q"] for one in told["solutions"]])
    X = spatial.from_position_wxyz(np.array([0.4, 0.2, 0.4]), np.array([0.0, 1.0, 0.0, 0.0]))
    assert np.abs(arm.pose("tool0", q) - X).max() < 1e-6
    assert len(np.unique(q.round(4), axis=0)) == 8
    distances = [one["distance"] for one in told["solutions"]]
    assert distances == sorted(distances)
    assert np.allclose(distances, np.linalg.norm(q - arm.q, axis=1))


def test_all_solutions_are_printed_side_by_side(capsys):
    code, out, _ = run(capsys, "gallery:ur5", *DOWN, "--all")
    assert code == 0
    assert re.search(r"^joint +1 +2 +3 +4 +5 +6 +7 +8$", out, re.MULTILINE)
    assert "8 solutions:  all solutions that exist, nearest to the start first" in out
    code, out, _ = run(capsys, "gallery:ur5", *DOWN, "--all", "--limit", 3)
    assert "3 solutions:  as many as --limit allows" in out


def test_where_there_are_none_the_closest_is_shown(capsys):
    code, out, _ = run(capsys, "gallery:planar_2r", "--position", 5, 0, 0, "--all")
    assert code == 1
    assert "not solved (CLOSEST)" in out
    assert "all solutions:" in out
    assert "closest:" in out


def test_the_nearest_is_the_first_of_all(capsys):
    start = ["--q0", *gallery.make("ur5").random(np.random.default_rng(2))]
    _, every = data(capsys, "gallery:ur5", *DOWN, *start, "--all")
    code, told = data(capsys, "gallery:ur5", *DOWN, *start, "--nearest")
    assert code == 0
    assert np.allclose(told["q"], every["solutions"][0]["q"], atol=1e-5)


MISUSE = [
    (["gallery:ur5"], "where to?"),
    (["gallery:ur5", "--position", "0.4", "0.2"], "--position takes 3 numbers, not 2"),
    (["gallery:ur5", "--position", "0.4", "0.2", "x"], "'x' is not a number"),
    (["gallery:ur5", "--position", "0.4", "0.2", "nan"], "not finite"),
    (["gallery:ur5", *THERE, "--wxyz", "1", "1", "0", "0"], "must have length 1"),
    (["gallery:ur5", *THERE, "--wxyz", "1", "0", "0", "0", "--rpy", "0", "0", "0"], "give one of them"),
    (["gallery:ur5", *THERE, "--link", "tol0"], "Did you mean 'tool0'"),
    (["gallery:ur5", *THERE, "--lock", "elbow"], "Did you mean 'elbow_joint'"),
    (["gallery:ur5", *THERE, "--q0", "1", "2"], "--q0 takes 6 numbers"),
    (["gallery:ur5", *THERE, "--q0", "1", "elbow_joint=2"], "not both"),
    (["gallery:ur5", *THERE, "--tolerance", "0"], "must be above zero"),
    (["gallery:ur5", *THERE, "--restarts", "-1"], "restarts must be"),
    (["gallery:ur5", *THERE, "--limit", "3"], "--limit goes with --all"),
    (["gallery:ur5", *THERE, "--out", "answer.txt"], "must end in .json"),
    (["gallery:ur5", *THERE, "--out", "no/such/answer.json"], "there is no folder"),
    (["gallery:panda", *THERE], "panda_hand_tcp, panda_leftfinger"),
    (["nothing.urdf", *THERE], "there is no file 'nothing.urdf'"),
]


@pytest.mark.parametrize(("arguments", "message"), MISUSE, ids=lambda x: str(x)[-30:])
def test_wrong_use_exits_2_with_one_line(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_help_has_examples(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "mechanik solve" in out.split("For example:", 1)[1]


def test_a_loop_stays_shut(capsys):
    platform = gallery.make("stewart_platform")
    position = platform.pose("platform")[:3, 3] + (0.01, -0.02, 0.01)
    code, told = data(capsys, "gallery:stewart_platform", "--link", "platform", "--position", *position)
    assert code == 0
    platform.q = told["q"]
    assert all(closure.gap().is_closed(1e-8) for closure in platform.closures.values())
