"""`mechanik reach`: printed figures, written files and usage errors."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from mechanik.cli import main
from mechanik.reach import ReachMap

QUICK = ("--resolution", "0.3", "--orientations", "4")


def run(capsys, *arguments):
    """Exit code, stdout and stderr of one command in this process."""
    code = main(["reach", *(str(argument) for argument in arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_reach_prints_volume_extent_and_orientation_shares(capsys):
    code, out, err = run(capsys, "gallery:planar_3r", *QUICK)
    assert (code, err) == (0, "")
    assert "reach of tool of planar_3r" in out
    assert re.search(r"\d+ voxels of 0\.3 m are reached, \d+ of these voxels at their centre", out)
    assert re.search(r"^area \d+\.?\d* m²$", out, re.MULTILINE)
    assert re.search(r"lowest +-2\.\d+ +-2\.\d+ +0\.0000", out)
    assert "of 4 orientations, 100.0 % are reachable at the best position" in out
    shares = [int(n) for n in re.findall(r"^(?:all|half or more|less than half|none) +(\d+) ", out, re.MULTILINE)]
    assert len(shares) == 4
    assert sum(shares) == int(re.search(r"(\d+) voxels", out)[1])


def test_link_can_be_named_and_defaults_to_the_tip_link(capsys):
    code, out, _ = run(capsys, "gallery:panda", "--link", "panda_link4", "--resolution", "0.3", "--orientations", "0")
    assert code == 0
    assert "reach of panda_link4 of panda" in out
    assert "m³" in out
    assert "no orientations were tested" in out
    code, _, err = run(capsys, "gallery:panda", "--link", "panda_link44")
    assert code == 2
    assert "Did you mean 'panda_link4'" in err


def test_locked_joints_do_not_move(capsys):
    code, out, _ = run(capsys, "gallery:planar_3r", *QUICK, "--lock", "joint1", "joint2", "--json")
    assert code == 0
    low, high = np.array(json.loads(out)["extent"])
    assert (high - low <= 1.0 + 1e-6).all(), "the last link is half a metre long"


def test_json_has_all_voxels_and_figures(capsys):
    code, out, _ = run(capsys, "gallery:planar_3r", *QUICK, "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["link"], report["orientation_kind"], report["orientations"]) == ("tool", "pose", 4)
    assert report["area"] == pytest.approx(np.pi * 2.3**2, rel=0.1)
    assert len(report["cells"]) >= report["count"] * 6
    assert report["best"]["share"] == 1.0


def test_map_and_picture_are_written(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    code, _, err = run(
        capsys, "gallery:scara", *QUICK, "--out", tmp_path / "map.npz", "--picture", tmp_path / "map.png"
    )
    assert code == 0
    assert err.count("wrote") == 2
    assert len(ReachMap.load(tmp_path / "map.npz")) > 10
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.iterdir())) == 2, "no other file remains"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gallery:scara", "--resolution", "0"), "above 0"),
        (("gallery:scara", "--resolution", "nan"), "nan"),
        (("gallery:scara", "--resolution", "1e-5"), "voxels would have"),
        (("gallery:scara", "--orientations", "-3"), "orientations must be 0 or more"),
        (("gallery:scara", "--out", "map.json"), "must end in .npz"),
        (("gallery:scara", "--picture", "map.doc"), "must end in .png, .svg or .pdf"),
        (("gallery:scara", "--out", "no_such_folder/map.npz"), "no folder"),
        (("gallery:humanoid", "--link", "left_hand"), "floats"),
        (("nowhere.urdf",), "nowhere.urdf"),
    ],
)
def test_reach_wrong_use_exits_2_with_one_line(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
