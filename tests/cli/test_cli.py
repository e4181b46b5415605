"""The command line: output and exit code of every command."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mechanik.model as mk
from mechanik import gallery
from mechanik.cli import main
from mechanik.formats import describe, load, save
from mechanik.solver import METHODS

DATA = Path(__file__).parents[1] / "data"
UR5 = str(DATA / "peers" / "ur5.urdf")
BROKEN = (
    '<robot name="b"><link name="a"/><joint name="j" type="fixed"><parent link="a"/><child link="c"/></joint></robot>'
)


def run(capsys, *arguments):
    """Exit code, stdout and stderr of one command in this process."""
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def data(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.fixture
def arm(tmp_path):
    """A file with a revolute joint, a prismatic joint without limits, which `check` warns of, and a goal."""
    builder = mk.Builder("little arm")
    builder.revolute("shoulder", "base", "upper", limits=(-2, 2), value=0.5)
    builder.prismatic("slide", "upper", "tool", axis="x", at=(1, 0, 0))
    builder.goal("there", "tool")
    save(builder.build(), tmp_path / "arm.json")
    return tmp_path / "arm.json"


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "broken.urdf"
    path.write_text(BROKEN)
    return path


# ---- info -----------------------------------------------------------------------------------


def test_info_shows_joints_links_goals_and_mobility(capsys, arm):
    code, out, err = run(capsys, "info", arm)
    assert (code, err) == (0, "")
    assert "little arm" in out
    assert "3 links, 2 joints, 1 goal; nq 2, nv 2; no masses" in out
    assert "mobility 2 (Grübler's count 2)" in out
    assert re.search(r"shoulder +0 +revolute +EZ +z +-2\.0000 +2\.0000 +0\.5000 +rad", out)
    assert re.search(r"slide +1 +prismatic +Z +x +-inf +inf +0\.0000 +m", out)
    assert re.search(r"tool +slide +upper", out)
    assert re.search(r"there +X Y Z EX EY EZ +tool", out)


def test_info_shows_loops_with_their_gap_and_true_mobility(capsys):
    code, out, _ = run(capsys, "info", "gallery:stewart_platform")
    assert code == 0
    assert "mobility 6" in out
    assert len(re.findall(r"leg\d_ball .*EX EY EZ +piston\d +platform", out)) == 6


def test_info_names_inputs_and_passive_joints_of_a_loop(capsys):
    code, out, _ = run(capsys, "info", "gallery:four_bar")
    assert code == 0
    assert "It can be driven by crank_joint; coupler_joint and rocker_joint are passive." in " ".join(out.split())
    structure = data(capsys, "info", "gallery:four_bar")["structure"]
    assert (structure["inputs"], structure["passive_dofs"]) == (["crank_joint"], ["coupler_joint", "rocker_joint"])
    assert structure["redundant_rows"] == [["closing_joint", direction] for direction in ("Z", "EX", "EY")]


def test_explain_names_the_closed_form_and_its_reason(capsys):
    code, out, _ = run(capsys, "explain", "gallery:ur5")
    assert code == 0
    text = " ".join(out.split())
    assert "Axes 2, 3 and 4 are parallel" in text
    assert "it has a closed form: three parallel axes" in text
    code, _, err = run(capsys, "explain", "gallery:ur5", "--link", "tool9")
    assert code == 2
    assert "Did you mean 'tool0'" in err


def test_solvers_lists_every_method_with_its_options_and_its_paper(capsys):
    code, out, _ = run(capsys, "solvers")
    assert code == 0
    assert all(name in out for name in METHODS)
    code, out, _ = run(capsys, "solvers", "sdls")
    assert code == 0
    assert "gamma_max = 0.785" in out
    assert "Buss" in out
    code, _, err = run(capsys, "solvers", "sdlz")
    assert code == 2
    assert "Did you mean 'sdls'" in err


def test_info_as_json_has_the_same_facts(capsys, arm):
    report = data(capsys, "info", arm)
    assert (report["nq"], report["nv"], report["mass"]) == (2, 2, None)
    assert report["mobility"] == {"gruebler": 2, "dof": 2, "redundant_constraints": 0}
    shoulder, slide = report["joints"]
    assert (shoulder["name"], shoulder["lower"], shoulder["values"]) == ("shoulder", [-2.0], [0.5])
    assert (slide["lower"], slide["upper"], slide["parent"], slide["child"]) == ([None], [None], "upper", "tool")
    assert np.allclose(slide["axes"], [[1, 0, 0]])
    assert [link["name"] for link in report["links"]] == ["base", "upper", "tool"]
    assert report["goals"][0]["link"] == "tool"


def test_info_of_a_loop_as_json_has_its_gap(capsys):
    (loop,) = data(capsys, "info", "gallery:four_bar")["loops"]
    assert loop["gap"]["distance"] < 1e-9


def test_info_shows_the_error_of_a_closed_loop_as_zero(capsys):
    assert len(re.findall(r"leg\d_ball +0 +0 ", run(capsys, "info", "gallery:stewart_platform")[1])) == 6


def test_info_shows_the_formula_of_a_mimic_joint_and_no_index_in_q(capsys):
    out = run(capsys, "info", "gallery:panda")[1]
    assert re.search(r"panda_finger_joint1 +7 +prismatic", out)
    assert re.search(r"panda_finger_joint2 +prismatic .* = panda_finger_joint1", out)


def test_info_shows_joint_constraints_and_cones(capsys, tmp_path):
    builder = mk.Builder("bound")
    builder.revolute("left", "body", "left arm")
    builder.prismatic("slide", "body", "cart")
    builder.spherical("neck", "body", "head")
    builder.joint_constraint("cam", {"left": [1.0, 0.5], "slide": -2.0}, 0.3)
    mechanism = builder.build()
    mechanism.joint("neck").set_cone(0.75)
    file = tmp_path / "bound.json"
    save(mechanism, file)
    out = run(capsys, "info", str(file))[1]
    assert "3 joints, 1 joint constraint;" in out
    assert re.search(r"neck +2:6 +spherical, cone 0\.75", out)
    assert re.search(r"cam +-0\.3 +1 left\.EZ \+ 0\.5 left\.EZ\^2 \+ -2 slide\.Z = 0\.3000", out)
    report = data(capsys, "info", str(file))
    assert report["joint_constraints"][0]["joints"] == ["left", "slide"]
    assert report["joint_constraints"][0]["error"] == -0.3
    assert report["joints"][2]["cone"] == {"angle": 0.75, "axes": "z"}
    assert "cam constrains joints" in run(capsys, "explain", str(file))[1]


def test_info_shows_the_quaternion_of_a_spherical_joint_as_a_range_of_q(capsys):
    out = run(capsys, "info", "gallery:stewart_platform")[1]
    assert re.search(r"platform_joint +0 +floating +X .*\n +1 +Y .*\n +2 +Z .*\n +3:7 +EX .*\n +EY .*\n +EZ", out)
    joint = data(capsys, "info", "gallery:stewart_platform")["joints"][0]
    assert (joint["type"], joint["q"]) == ("floating", [0, 1, 2, 3, 4, 5, 6])


def test_info_counts_fixed_joints_and_lists_them_last_with_all(capsys):
    out = run(capsys, "info", "gallery:panda")[1]
    assert "13 links, 12 joints (3 fixed)" in out
    assert not re.search(r"\bfixed *\n", out)
    listed = run(capsys, "info", "gallery:panda", "--all")[1].split("\nlink ")[0]
    assert re.search(r"panda_finger_joint2 .*\npanda_joint8 +fixed\npanda_hand_joint +fixed\n", listed)


def test_warnings_of_the_reader_go_to_stderr(capsys, tmp_path):
    path = tmp_path / "mesh.urdf"
    mesh = '<visual><geometry><mesh filename="gone.stl"/></geometry></visual>'
    path.write_text(f'<robot name="r"><link name="a">{mesh}</link></robot>')
    code, out, err = run(capsys, "info", path)
    assert code == 0
    assert "gone.stl" not in out
    assert "gone.stl" in err


@pytest.mark.parametrize("name", gallery.names())
def test_info_and_check_accept_every_gallery_mechanism(capsys, name):
    assert run(capsys, "info", f"gallery:{name}")[0] == 0
    assert run(capsys, "check", f"gallery:{name}")[0] == 0


def test_standard_input_is_read(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(Path(UR5).read_text()))
    assert run(capsys, "info", "-")[1].startswith("ur5")
    monkeypatch.setattr(sys, "stdin", io.StringIO(" "))
    assert run(capsys, "info", "-")[::2] == (2, "error: standard input is empty\n")


# ---- check ----------------------------------------------------------------------------------


def test_check_of_a_valid_file_prints_passed_and_exits_0(capsys):
    code, out, _ = run(capsys, "check", UR5)
    assert code == 0
    assert out.splitlines()[-1].startswith("passed: 0 errors")


def test_check_fails_on_warnings_only_if_strict(capsys, arm):
    code, out, _ = run(capsys, "check", arm)
    assert code == 0
    assert re.search(r"warning +no-limits +joint 'slide' +has no limits", out)
    assert out.splitlines()[-1] == "no errors: 1 warning, 0 notes"
    code, out, _ = run(capsys, "check", arm, "--strict")
    assert code == 1
    assert "failed: 0 errors" in out


def test_check_of_an_unreadable_file_is_an_error_with_file_and_line(capsys, broken):
    code, out, _ = run(capsys, "check", broken)
    assert code == 1
    assert "broken.urdf, line 1" in out
    assert "'c'" in out


def test_check_as_json_has_the_same_findings(capsys, broken, arm):
    code, out, _ = run(capsys, "check", broken, "--json")
    report = json.loads(out)
    assert (code, report["ok"], report["findings"][0]["severity"]) == (1, False, "error")
    report = data(capsys, "check", arm)
    assert (report["ok"], [finding["code"] for finding in report["findings"]]) == (True, ["no-limits"])


# ---- convert --------------------------------------------------------------------------------


def test_convert_writes_json_that_reads_back_equal(capsys, tmp_path):
    code, out, err = run(capsys, "convert", "gallery:four_bar", tmp_path / "four.json")
    assert (code, err) == (0, "")
    assert "4 links, 3 joints, 1 loop" in out
    assert describe(load(tmp_path / "four.json")) == describe(gallery.four_bar())


def test_convert_names_what_the_format_cannot_hold(capsys, arm, tmp_path):
    code, _, err = run(capsys, "convert", arm, tmp_path / "arm.urdf")
    assert code == 0
    assert re.search(r"note: .* cannot contain goals: there", err)
    assert list(load(tmp_path / "arm.urdf").joints)[:2] == ["shoulder", "slide"]


def test_convert_counts_links_and_joints_and_names_split_joints_and_added_links(capsys, tmp_path):
    builder = mk.Builder("r")
    builder.joint("wrist", "a", "b", ["EX", "EY"], at=(1, 0, 0))
    save(builder.build(), tmp_path / "r.json")
    code, out, err = run(capsys, "convert", tmp_path / "r.json", tmp_path / "r.urdf")
    assert (code, out.partition(": ")[2]) == (0, "3 links, 2 joints\n")
    split, added = err.splitlines()
    assert re.fullmatch(r"note: .* several joints: wrist \(wrist\.EX, wrist\.EY\)", split)
    assert added == "note: 1 link added: wrist.EY"


def test_convert_rejects_outputs_that_are_not_files(capsys, arm, tmp_path):
    (tmp_path / "folder.json").mkdir()
    for out, message in (
        ("-", "is not supported as output"),
        (tmp_path / "folder.json", "is a folder"),
        (tmp_path / "none" / "x.json", "there is no folder"),
        ("a" * 300 + ".json", "too long"),
        ("a\0b.json", "null"),
    ):
        code, shown, err = run(capsys, "convert", arm, out)
        assert (code, shown, err.count("\n")) == (2, "", 1)
        assert message in err
        assert "--force" not in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes there")
def test_convert_does_not_replace_a_pipe(capsys, arm, tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    code, _, err = run(capsys, "convert", arm, tmp_path / "pipe.json", "--force")
    assert code == 2
    assert "not a regular file" in err


def test_convert_replaces_a_file_only_with_force(capsys, arm, tmp_path):
    target = tmp_path / "there.json"
    target.write_text("precious")
    code, _, err = run(capsys, "convert", arm, target)
    assert code == 2
    assert "--force" in err
    assert target.read_text() == "precious"
    assert run(capsys, "convert", arm, target, "--force")[0] == 0
    assert describe(load(target)) == describe(load(arm))


def test_convert_can_add_a_free_base_and_trim(capsys, tmp_path):
    panda = DATA / "peers" / "panda.urdf"
    assert run(capsys, "convert", panda, tmp_path / "a.json", "--base", "free", "--trim")[0] == 0
    converted, whole = load(tmp_path / "a.json"), load(panda)
    assert converted.nv == whole.nv + 6
    assert len(converted.links) <= len(whole.links)


def test_convert_rejects_an_unknown_suffix(capsys, arm, tmp_path):
    code, _, err = run(capsys, "convert", arm, tmp_path / "arm.txt")
    assert code == 2
    assert ".urdf or .json" in err


def test_convert_of_a_broken_file_writes_nothing(capsys, broken, tmp_path):
    assert run(capsys, "convert", broken, tmp_path / "out.json")[0] == 1
    assert not (tmp_path / "out.json").exists()


# ---- fk -------------------------------------------------------------------------------------


def test_fk_prints_the_poses_of_the_mechanism(capsys):
    q = [0.1, -0.2, 0.3, -1.0, 0.5, 1.0]
    report = data(capsys, "fk", UR5, "--q", *q)
    mechanism = load(UR5)
    assert report["q"] == q
    for name, pose in report["links"].items():
        X = mechanism.pose(name, q)
        assert pose["position"] == X[:3, 3].tolist()
        assert np.allclose(mk.Link(wxyz=pose["wxyz"]).matrix[:3, :3], X[:3, :3])


@pytest.mark.parametrize(
    "arguments",
    [
        ["--q", "0.3", "-0.5"],
        ["--q", "0.3,-0.5"],
        ["--q=0.3,-5e-1"],
        ["joint1=0.3", "joint2=-0.5", "--q", "-1,-2"],
        ["joint1=0.3", "joint2=-0.5"],
        ["joint2=-.5", "--q", "0.3", "9"],
        ["--degrees", "--q", f"{np.degrees(0.3)!r}", f"{np.degrees(-0.5)!r}"],
        ["--degrees", f"joint1={float(np.degrees(0.3))!r}", f"joint2={float(np.degrees(-0.5))!r}"],
    ],
    ids=" ".join,
)
def test_fk_accepts_q_names_negative_numbers_and_degrees(capsys, arguments):
    arguments = [re.sub(r"np\.float64\((.*)\)", r"\1", argument) for argument in arguments]
    report = data(capsys, "fk", "gallery:planar_2r", *arguments)
    assert np.allclose(report["q"], [0.3, -0.5], atol=1e-15)


def test_fk_prints_a_table_of_the_selected_links(capsys):
    code, out, err = run(capsys, "fk", "gallery:planar_2r", "--q", "0", "0", "--link", "tool", "--link", "link2")
    assert (code, err) == (0, "")
    header, _, tool, link2 = out.splitlines()
    assert header.split() == ["link", "x", "(m)", "y", "(m)", "z", "(m)", "qw", "qx", "qy", "qz"]
    assert tool.split() == ["tool", "1.800000", *["0.000000"] * 2, "1.000000", *["0.000000"] * 3]
    assert link2.split()[0] == "link2"


def test_fk_sets_joints_with_several_dofs(capsys, tmp_path):
    builder = mk.Builder("ball")
    builder.planar("base", "world", "cart")
    builder.spherical("ball", "cart", "head")
    save(builder.build(), tmp_path / "ball.json")
    report = data(capsys, "fk", tmp_path / "ball.json", "base=1,2,90", "ball=0,0,90", "--degrees")
    assert report["links"]["head"]["position"] == [1.0, 2.0, 0.0]
    assert np.allclose(np.abs(report["links"]["head"]["wxyz"]), [0, 0, 0, 1])
    report = data(capsys, "fk", tmp_path / "ball.json", "base.X=-3", "base.EZ=90", "--degrees")
    assert report["values"]["base"] == [-3.0, 0.0, pytest.approx(np.pi / 2)]


def test_fk_warns_of_violated_limits_and_loops(capsys):
    code, _, err = run(capsys, "fk", "gallery:panda", "panda_joint4=1")
    assert code == 0
    assert "panda_joint4 at 1 rad is outside its limits" in err
    code, _, err = run(capsys, "fk", "gallery:four_bar", "crank_joint=2")
    assert code == 0
    assert "is not closed: gap" in err


WRONG_FK = [
    (["--q", "1"], r"--q takes 2 numbers \(joint1, joint2\), not 1"),
    (["--q", "1", "2", "3"], r"--q takes 2 numbers .*, not 3"),
    (["--q", "1", "x"], r"'x' is not a number"),
    (["--q", "-1,x"], r"'x' is not a number"),
    (["--q", "1", "nan"], r"nan is not finite"),
    (["--q"], r"a number is missing"),
    (["joint3=1"], r"no joint is called 'joint3'"),
    (["joint1=1,2"], r"joint1"),
    (["joint1="], r"a number is missing"),
    (["joint1=a"], r"'a' is not a number"),
    (["joint1=1", "joint1=2"], r"'joint1' is given twice"),
    (["0.5"], r"'0.5' is not NAME=VALUE; give numbers without names with --q"),
    (["--link", "hand"], r"no link is called 'hand'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_FK, ids=lambda x: str(x)[:30])
def test_wrong_values_exit_2_with_one_line(capsys, arguments, message):
    code, out, err = run(capsys, "fk", "gallery:planar_2r", *arguments)
    assert (code, out) == (2, "")
    assert re.search(message, err)
    assert err.count("\n") == 1


# ---- gallery, demo, help --------------------------------------------------------------------


def test_gallery_lists_all_names(capsys):
    assert data(capsys, "gallery") == gallery.names()
    code, out, _ = run(capsys, "gallery")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[2:]] == gallery.names()


@pytest.fixture(scope="module")
def demo_lines():
    """Lines of the demo under a wall clock that does not advance; virtual machines may tick in tens of milliseconds."""
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: 1000.0)
        assert main(["demo"]) == 0
    return out.getvalue().splitlines()


def test_demo_prints_positive_times_with_a_coarse_clock(demo_lines):
    """The demo printed 0 us where the clock is coarse."""
    begin = next(k for k, line in enumerate(demo_lines) if line.startswith("Solves:"))
    panda = next(line for line in demo_lines if line.startswith("panda"))
    assert float(panda.split()[2]) > 0.0
    assert all(float(line.split()[-1].replace(",", "")) > 0.0 for line in demo_lines[begin + 3 : begin + 10])


def test_demo_prints_the_pose_of_each_mechanisms_tool(demo_lines):
    panda = next(line for line in demo_lines if line.startswith("panda"))
    arm = gallery.panda()
    position = arm.pose("panda_hand_tcp")[:3, 3]
    assert [float(x) for x in panda.split()[4:7]] == pytest.approx(position, abs=1e-4)


def test_demo_prints_task_outcome_and_errors(demo_lines):
    begin = next(k for k, line in enumerate(demo_lines) if line.startswith("Solves:"))
    header, rows = demo_lines[begin + 1], demo_lines[begin + 3 : begin + 10]
    assert header.split()[:3] == ["mechanism", "task", "outcome"]
    solved = [line for line in rows if " solved " in line]
    assert {line.split()[0] for line in solved} == {"panda", "four_bar", "stewart_platform", "humanoid"}
    for line in rows:
        position, angle, *gap, _, _ = line[header.index("error (m)") - 1 :].split()
        missed = max(float(position), float(angle)) > 1e-6
        assert missed == ("out of reach" in line) == (line not in solved)
        assert all(float(value) < 1e-9 for value in gap)
        assert bool(gap) == (line.split()[0] in ("four_bar", "stewart_platform"))


def test_the_version_is_printed(capsys):
    from mechanik.version import __version__

    assert run(capsys, "--version")[:2] == (0, f"mechanik {__version__}\n")


@pytest.mark.parametrize("command", ["info", "check", "convert", "fk", "gallery", "demo", "warmup"])
def test_every_command_has_help_with_an_example(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert f"mechanik {command}" in out.split("For example:", 1)[1]


@pytest.mark.parametrize("command", [[], ["info"], ["check"], ["solve"], ["assemble"], ["convert"]])
def test_help_names_every_file_format(capsys, command):
    _, out, _ = run(capsys, *command, "--help")
    assert "URDF, MJCF, SDF or JSON file" in " ".join(re.sub("[│|]", " ", out).split())


def test_without_a_command_help_is_shown(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert "gallery:NAME" in out


MISUSE = [
    (["frobnicate"], "frobnicate"),
    (["info"], "FILE"),
    (["info", UR5, "--jsn"], "--json"),
    (["info", UR5, "more"], "more"),
    (["info", "gallery:pnda"], "Did you mean 'panda'?"),
    (["info", str(DATA / "peers" / "ur6.urdf")], "Did you mean 'ur5.urdf'?"),
    (["check", "nothing.urdf"], "there is no file 'nothing.urdf'"),
    (["info", str(DATA)], "is a folder"),
    (["check", str(DATA)], "is a folder"),
    (["info", "panda"], "gallery:panda"),
    (["info", "~nobody-of-that-name/x.urdf"], "there is no file"),
    (["convert", UR5], "OUT"),
    (["convert", UR5, "x.json", "--base", "flying"], "flying"),
    (["convert", "gallery:panda", "x.json", "--base", "free"], "--base is for URDF and SDF files"),
]


@pytest.mark.parametrize(("arguments", "message"), MISUSE, ids=lambda x: str(x)[-30:])
def test_wrong_use_exits_2_with_one_line(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_invalid_file_exits_1_with_one_line_and_a_traceback_only_on_request(capsys, broken, monkeypatch):
    code, out, err = run(capsys, "info", broken)
    assert (code, out) == (1, "")
    assert re.fullmatch(r"error: broken\.urdf, line 1: .*'c'.*\n", err)
    code, _, traced = run(capsys, "info", broken, "--traceback")
    assert code == 1
    assert traced.startswith("Traceback")
    assert traced.endswith(err)
    monkeypatch.setenv("MECHANIK_TRACEBACK", "1")
    assert run(capsys, "info", broken)[0] == 1
    assert run(capsys, "info", "nothing.urdf")[0] == 2


def test_without_the_extra_the_error_says_how_to_install_it(capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, out, err = run(capsys, "info", UR5)
    assert (code, out) == (2, "")
    assert "pip install 'mechanik[cli]'" in err


def test_an_interrupt_exits_130_quietly(capsys, monkeypatch):
    monkeypatch.setattr("mechanik.cli.command_line.run", _interrupt)
    assert run(capsys, "demo") == (130, "", "")


def test_an_interrupt_while_importing_exits_130_quietly(capsys, monkeypatch):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == "mechanik.cli.command_line":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "mechanik.cli.command_line", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    assert run(capsys, "demo") == (130, "", "")


def _interrupt(_):
    raise KeyboardInterrupt


def test_brackets_in_names_are_not_interpreted_as_markup(capsys, tmp_path):
    builder = mk.Builder("[red]arm[/red]")
    builder.revolute("[bold]j", "a[0]", ":smile:", limits=(-1, 1))
    save(builder.build(), tmp_path / "odd.json")
    out = run(capsys, "info", tmp_path / "odd.json")[1]
    assert all(name in out for name in ("[red]arm[/red]", "[bold]j", "a[0]", ":smile:"))


# ---- as a process ---------------------------------------------------------------------------


def process(*arguments, **options):
    environment = {**os.environ, "COLUMNS": "40", "NO_COLOR": "", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "mechanik", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=environment, check=False, **options
    )


def test_piped_output_has_no_colours_and_complete_numbers():
    finished = process("fk", "gallery:panda")
    assert finished.returncode == 0, finished.stderr
    assert "\x1b" not in finished.stdout
    assert "…" not in finished.stdout
    rows = [line.split() for line in finished.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == list(gallery.panda().links)
    assert all(len(row) == 8 and all(re.fullmatch(r"-?\d\.\d{6}", x) for x in row[1:]) for row in rows)


def test_process_exits_with_the_exit_code_of_the_command():
    assert process("info", "nothing.urdf").returncode == 2
    assert process("check", "gallery:panda").returncode == 0
    finished = process("info", "-", input=BROKEN)
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr.startswith("error: ")


@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another error there")
def test_closed_pipe_prints_no_error():
    command = f"{sys.executable} -m mechanik info gallery:stewart_platform --json | head -1"
    finished = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert finished.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full there")
@pytest.mark.parametrize("to", [">/dev/full", ">&-"])
@pytest.mark.parametrize("options", ["", "--json"])
def test_failed_write_to_stdout_exits_1_with_one_line(to, options):
    command = f"{sys.executable} -m mechanik info gallery:planar_2r {options} {to}"
    finished = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert re.fullmatch(r"error: .*\n", finished.stderr)


def in_terminal(columns, *arguments):
    """Return the output of a command in a terminal of `columns` columns."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "mechanik", *map(str, arguments)]
    command_process = subprocess.Popen(command, stdout=slave, stderr=slave, env={**environment, "TERM": "xterm"})
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # Linux reports a closed slave like this
            break
        if not part:
            break
        shown += part
    command_process.wait()
    os.close(master)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")


needs_terminal = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")


@needs_terminal
@pytest.mark.parametrize("columns", [50, 80, 120])
def test_narrow_terminal_shows_complete_numbers(columns):
    text = in_terminal(columns, "fk", "gallery:panda")
    assert "…" not in text
    numbers = re.findall(r"-?\d\.\d+", text)
    assert len(numbers) == 7 * len(gallery.panda().links)
    assert len({len(x.partition(".")[2]) for x in numbers}) == 1


@needs_terminal
def test_narrow_terminal_wraps_text_between_words_and_keeps_names_whole(tmp_path):
    builder = mk.Builder("long names")
    name = "a_joint_whose_name_fills_most_of_a_line_of_the_terminal"
    builder.joint(name, "left_hand_finger_base_link", "left_hand_finger_tip_link", "EZ", limits=(0.5, 1))
    builder.revolute("j", "left_hand_finger_tip_link", "end", limits=(-200, 200))
    save(builder.build(), tmp_path / "long.json")
    lines = in_terminal(60, "info", tmp_path / "long.json").splitlines()
    assert any(re.match(rf"{name} +0 +revolute .* rad$", line) for line in lines)
    assert any(re.match(rf"left_hand_finger_tip_link +{name} +left_hand_finger_base_link$", line) for line in lines)
    lines = in_terminal(60, "check", tmp_path / "long.json").splitlines()
    assert lines == [
        "warning  degrees  joint 'j'",
        "         has limits of -200 to 200 rad; they seem to be in",
        "         degrees",
        f"note     zero-excluded  joint '{name}'",
        "         cannot be 0, because its limits are 0.5 to 1 rad",
        "no errors: 1 warning, 1 note",
    ]
