"""`mechanik solve`: printed solutions, written files and exit codes."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import mechanik as mk
from mechanik import gallery, spatial
from mechanik.cli import main
from mechanik.spatial import quaternion

POSITION_ARGUMENTS = ["--position", "0.4", "-0.2", "0.5"]


def run(capsys, *arguments):
    code = main([str(argument) for argument in ("solve", *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def data(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    return code, json.loads(out)


@pytest.mark.parametrize("name", ["ur5", "scara", "planar_3r", "puma560", "iiwa14"])
def test_joint_values_reach_the_target_pose(capsys, name):
    arm = gallery.make(name)
    (end,) = [link for link in arm.links if not arm.links[link].children]
    q = arm.random(np.random.default_rng(5))
    position, wxyz = spatial.to_position_wxyz(arm.pose(end, q))
    code, report = data(capsys, f"gallery:{name}", "--position", *position, "--wxyz", *wxyz)
    assert (code, report["success"], report["status"], report["link"]) == (0, True, "CONVERGED", end)
    assert np.allclose(arm.pose(end, report["q"]), arm.pose(end, q), atol=2e-6)
    assert report["errors"]["position"] < 1e-6
    assert report["errors"]["rotation"] < 1e-6
    assert report["values"] == dict(arm.values(report["q"]))


def test_position_target_leaves_the_orientation_free(capsys):
    code, report = data(capsys, "gallery:ur5", *POSITION_ARGUMENTS)
    assert code == 0
    assert np.allclose(report["pose"]["position"], [0.4, -0.2, 0.5], atol=1e-6)
    assert report["errors"]["rotation"] == 0.0


def test_orientation_target_leaves_the_position_free(capsys):
    code, report = data(capsys, "gallery:ur5", "--wxyz", 0, 1, 0, 0)
    assert code == 0
    assert np.allclose(np.abs(report["pose"]["wxyz"]), [0, 1, 0, 0], atol=1e-6)


def test_roll_pitch_yaw_follow_the_urdf_convention(capsys):
    wxyz = quaternion.from_euler([np.pi, 0.2, -0.5], order="xyz", axes="fixed")
    degrees = np.degrees([np.pi, 0.2, -0.5])
    for arguments in (["--rpy", np.pi, 0.2, -0.5], ["--rpy", *degrees, "--degrees"]):
        _, report = data(capsys, "gallery:ur5", *POSITION_ARGUMENTS, *arguments)
        assert report["success"]
        assert abs(abs(np.dot(report["pose"]["wxyz"], wxyz)) - 1) < 1e-11


@pytest.mark.parametrize(
    "arguments",
    [
        ["--position", "-0.4", "-.2", "5e-1"],
        ["--position=-0.4,-0.2,0.5"],
        ["--position", "-0.4,-0.2,0.5"],
        ["--position", "-4e-1", "-2e-1", "0.5"],
    ],
)
def test_negative_numbers_are_not_read_as_options(capsys, arguments):
    code, report = data(capsys, "gallery:ur5", *arguments)
    assert code == 0
    assert np.allclose(report["pose"]["position"], [-0.4, -0.2, 0.5], atol=1e-6)


def test_solve_prints_names_values_degrees_and_limits(capsys):
    code, out, err = run(capsys, "gallery:scara", "--position", 0.3, 0.2, 0.25)
    assert (code, err) == (0, "")
    scara = gallery.make("scara")
    rows = {line.split()[0]: line for line in out.splitlines() if line.split()[:1] and line.split()[0] in scara.joints}
    assert list(rows) == list(scara.values())
    shoulder, quill = rows["shoulder"].split(), rows["quill"].split()
    assert shoulder[2] == "rad"
    assert abs(np.degrees(float(shoulder[1])) - float(shoulder[3])) < 1e-3
    assert quill[2:] == ["m", "0.0000", "0.2100"]  # no degrees, no limit reached
    assert "solved:" in out
    assert re.search(r"error \S+ m\n", out)
    assert re.search(r"\d+ iterations?, \d+ attempts?, ", out)


def test_unreachable_target_exits_1_with_the_reason_and_the_closest_pose(capsys):
    code, out, err = run(capsys, "gallery:planar_2r", "--position", 5, 0, 0)
    assert (code, err) == (1, "")
    assert "not solved (CLOSEST)" in out
    assert "out of reach: " in out
    arm = gallery.make("planar_2r")
    reach = np.linalg.norm(arm.pose("tool", [0.0, 0.0])[:3, 3])
    assert re.search(rf"closest:  tool at {reach:.4f} ", out)
    assert f"error {5 - reach:.2g} m" in out
    code, report = data(capsys, "gallery:planar_2r", "--position", 5, 0, 0)
    assert (code, report["success"], report["status"]) == (1, False, "CLOSEST")
    assert np.allclose(report["pose"]["position"], [reach, 0, 0], atol=1e-4)


def test_joint_at_its_limit_is_marked(capsys, tmp_path):
    builder = mk.Builder("short")
    builder.prismatic("slide", "base", "tool", axis="x", limits=(0.0, 0.5))
    mk.save(builder.build(), tmp_path / "short.json")
    code, out, _ = run(capsys, tmp_path / "short.json", "--position", 2, 0, 0)
    assert code == 1
    assert re.search(r"slide +0\.500000 +m +0\.0000 +0\.5000 +upper", out)


def test_solve_starts_at_q0_and_locked_joints_do_not_move(capsys):
    q0 = [-0.3, -1.0, 1.2, -0.4, 0.3, 0.2]
    for arguments in (["--q0", *q0], ["--q0", *np.degrees(q0), "--degrees"]):
        _, report = data(
            capsys, "gallery:ur5", *POSITION_ARGUMENTS, *arguments, "--lock", "wrist_3_joint", "wrist_2_joint"
        )
        assert report["success"]
        assert np.allclose(report["q"][4:], q0[4:], atol=1e-12)
    _, report = data(
        capsys, "gallery:ur5", *POSITION_ARGUMENTS, "--q0", "wrist_3_joint=-0.7", "--lock", "wrist_3_joint"
    )
    assert report["values"]["wrist_3_joint"] == -0.7


def test_larger_tolerance_makes_the_solve_succeed(capsys):
    _, report = data(capsys, "gallery:planar_2r", "--position", 5, 0, 0, "--tolerance", 10)
    assert report["success"]


def test_file_and_stdout_have_the_same_json(capsys, tmp_path):
    path = tmp_path / "solution.json"
    path.write_text("old")
    code, out, err = run(capsys, "gallery:ur5", *POSITION_ARGUMENTS, "--out", path, "--json")
    assert code == 0
    assert json.loads(path.read_text()) == json.loads(out)
    assert f"wrote {path}" in " ".join(err.split())
    assert [file.name for file in tmp_path.iterdir()] == ["solution.json"]


# ---- all solutions ----------------------------------------------------------------------------

POSE_ARGUMENTS = ["--position", "0.4", "0.2", "0.4", "--wxyz", "0", "1", "0", "0"]


def test_all_solutions_reach_the_target_differ_and_are_sorted_by_distance(capsys):
    arm = gallery.make("ur5")
    code, report = data(capsys, "gallery:ur5", *POSE_ARGUMENTS, "--all")
    assert (code, report["complete"], report["redundancy"], len(report["solutions"])) == (0, True, 0, 8)
    q = np.array([solution["q"] for solution in report["solutions"]])
    X = spatial.from_position_wxyz(np.array([0.4, 0.2, 0.4]), np.array([0.0, 1.0, 0.0, 0.0]))
    assert np.abs(arm.pose("tool0", q) - X).max() < 1e-6
    assert len(np.unique(q.round(4), axis=0)) == 8
    distances = [solution["distance"] for solution in report["solutions"]]
    assert distances == sorted(distances)
    assert np.allclose(distances, np.linalg.norm(q - arm.q, axis=1))


def test_all_solutions_are_printed_side_by_side(capsys):
    code, out, _ = run(capsys, "gallery:ur5", *POSE_ARGUMENTS, "--all")
    assert code == 0
    assert re.search(r"^joint +1 +2 +3 +4 +5 +6 +7 +8$", out, re.MULTILINE)
    assert "8 solutions:  all solutions that exist, nearest to the start first" in out
    code, out, _ = run(capsys, "gallery:ur5", *POSE_ARGUMENTS, "--all", "--limit", 3)
    assert "3 solutions:  the largest number that --limit allows" in out


def test_closest_pose_is_printed_if_there_is_no_solution(capsys):
    code, out, _ = run(capsys, "gallery:planar_2r", "--position", 5, 0, 0, "--all")
    assert code == 1
    assert "not solved (CLOSEST)" in out
    assert "all solutions:" in out
    assert "closest:" in out


def test_nearest_solution_is_the_first_of_all_solutions(capsys):
    start = ["--q0", *gallery.make("ur5").random(np.random.default_rng(2))]
    _, all_solutions = data(capsys, "gallery:ur5", *POSE_ARGUMENTS, *start, "--all")
    code, report = data(capsys, "gallery:ur5", *POSE_ARGUMENTS, *start, "--nearest")
    assert code == 0
    assert np.allclose(report["q"], all_solutions["solutions"][0]["q"], atol=1e-5)


MISUSE = [
    (["gallery:ur5"], "no target; give --position"),
    (["gallery:ur5", "--position", "0.4", "0.2"], "--position takes 3 numbers, not 2"),
    (["gallery:ur5", "--position", "0.4", "0.2", "x"], "'x' is not a number"),
    (["gallery:ur5", "--position", "0.4", "0.2", "nan"], "not finite"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--wxyz", "1", "1", "0", "0"], "must have the norm 1"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--wxyz", "1", "0", "0", "0", "--rpy", "0", "0", "0"], "give one of them"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--link", "tol0"], "Did you mean 'tool0'"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--lock", "elbow"], "Did you mean 'elbow_joint'"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--q0", "1", "2"], "--q0 takes 6 numbers"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--q0", "1", "elbow_joint=2"], "not both"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--tolerance", "0"], "must be above zero"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--restarts", "-1"], "restarts must be"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--limit", "3"], "--limit needs --all"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--out", "solution.txt"], "must end in .json"),
    (["gallery:ur5", *POSITION_ARGUMENTS, "--out", "no/such/solution.json"], "there is no folder"),
    (["gallery:panda", *POSITION_ARGUMENTS], "panda_hand_tcp, panda_leftfinger"),
    (["nothing.urdf", *POSITION_ARGUMENTS], "there is no file 'nothing.urdf'"),
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


def test_solution_of_a_closed_chain_is_closed(capsys):
    platform = gallery.make("stewart_platform")
    position = platform.pose("platform")[:3, 3] + (0.01, -0.02, 0.01)
    code, report = data(capsys, "gallery:stewart_platform", "--link", "platform", "--position", *position)
    assert code == 0
    platform.q = report["q"]
    assert all(closure.gap().is_closed(1e-8) for closure in platform.closures.values())
