"""`mechanik assemble`: arguments, output and exit codes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import mechanik as mk
from mechanik.cli.command_line import run


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    run(["assemble", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_command_sets_the_input_and_closes_the_loops(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assemble", "gallery:four_bar", "--drive", "crank_joint=1.2"]) == 0
    out = capsys.readouterr().out
    assert "assembled: 1 of 1 input reached, 1 loop closed" in " ".join(out.split())
    report = data(capsys, "gallery:four_bar", "--drive", "crank_joint=1.2")
    assert report["success"]
    assert report["q"][0] == 1.2  # type: ignore[index]


def test_command_takes_degrees(capsys: pytest.CaptureFixture[str]) -> None:
    report = data(capsys, "gallery:four_bar", "--drive", "crank_joint=90", "--degrees")
    assert report["q"][0] == pytest.approx(math.pi / 2)  # type: ignore[index]


def test_command_reports_the_dead_point_for_an_unreachable_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assemble", "gallery:four_bar", "--drive", "rocker_joint=3.1"]) == 1
    assert "dead point" in capsys.readouterr().out
    report = data(capsys, "gallery:four_bar", "--drive", "rocker_joint=3.1")
    assert report["status"] == "CLOSEST"
    assert report["singular"] == ["dead point"]
    assert report["singularities"][-1]["kind"] == "dead point"  # type: ignore[index]


def test_command_prints_all_assembly_modes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assemble", "gallery:four_bar", "--drive", "crank_joint=1.2", "--all"]) == 0
    assert "2 assembly modes" in capsys.readouterr().out
    report = data(capsys, "gallery:four_bar", "--drive", "crank_joint=1.2", "--all")
    assert len(report["modes"]) == 2  # type: ignore[arg-type]
    assert run(["assemble", "gallery:four_bar", "--drive", "rocker_joint=3.1", "--all"]) == 1


def test_command_without_inputs_closes_the_loops(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assemble", "gallery:four_bar", "--q0", "0.6", "0.3", "2.0"]) == 0
    assert "1 loop closed" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "words",
    [
        ["--drive", "crank_joint"],
        ["--drive", "crank_joint=far"],
        ["--drive", "crank_joint=1", "crank_joint=2"],
        ["--drive", "crnk_joint=1"],
        ["--drive", "crank_joint=1,2"],
        ["--drive", "crank_joint=nan"],
        ["--limit", "2"],
    ],
)
def test_invalid_arguments_are_usage_errors(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["assemble", "gallery:four_bar", *words]) == 2
    assert capsys.readouterr().err.startswith("error: ")


# ---- saving -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "urdf"])
def test_command_saves_the_assembled_configuration(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"shut.{ending}"
    words = ["assemble", "gallery:four_bar", "--drive", "crank_joint=1.2", "--out", str(out)]
    assert run(words) == 0
    assert f"wrote {out}" in capsys.readouterr().out.replace("\n", "")
    saved = mk.load(out)
    assert saved.values()["crank_joint"] == 1.2
    assert all(np.abs(closure.gap().position).max() < 1e-12 for closure in saved.closures.values())
    assert run(words) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*words, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == str(out)


def test_failed_assembly_is_not_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "kept.json"
    mk.save(mk.gallery.four_bar(), out)
    before = out.read_bytes()
    assert run(["assemble", "gallery:four_bar", "--drive", "rocker_joint=3.1", "--out", str(out), "--force"]) == 1
    assert "not written" in capsys.readouterr().err
    assert out.read_bytes() == before
    for words in (["--out", str(tmp_path / "shut.txt")], ["--out", str(tmp_path / "new.json"), "--all"]):
        assert run(["assemble", "gallery:four_bar", *words]) == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kept.json"]
