"""`mechanik compare`: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import pytest

from mechanik import comparison
from mechanik.cli import main
from mechanik.comparison import benchmark_runner as comparing

SHORT = ["--quick", "--targets", "3", "--robots", "3r_planar", "--tasks", "pose", "point", "--solvers", "lm", "dls"]


def run(capsys, *arguments):
    code = main([str(argument) for argument in ("compare", *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_it_prints_a_table_and_an_overview_and_writes_files(capsys, tmp_path):
    files = [tmp_path / name for name in ("records.csv", "report.html", "table.md")]
    code, out, err = run(capsys, *SHORT, "--csv", files[0], "--html", files[1], "--markdown", files[2])
    assert code == 0, err
    assert "3R planar, pose" in out
    assert "one attempt" in out
    assert "success in the time budget" in out
    assert "wrote" in err
    assert len(comparison.Comparison.from_csv(files[0]).rows) == 4
    assert files[1].read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "| lm |" in files[2].read_text(encoding="utf-8")


def test_a_file_of_ones_own_is_compared_on_and_its_link_can_be_named(capsys):
    some = ["gallery:scara", "--quick", "--targets", "3", "--tasks", "point", "--solvers", "lm"]
    code, out, _ = run(capsys, *some)
    assert code == 0
    assert "scara: tool, point" in out
    code, out, _ = run(capsys, *some, "--link", "quill")
    assert code == 0
    assert "scara: quill, point" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--solvers", "ml"], "lm"),
        (["--robots", "r7"], "7r"),
        (["--tasks", "pos"], "pose"),
        (["--html", "no/such/folder/report.html"], "no folder"),
        (["--csv", "."], "is a folder"),
        (["gallery:scara", "--link", "tol"], "tool"),
        (["no_such_file.urdf"], "no_such_file.urdf"),
        (["--targets", "many"], "targets"),
    ],
)
def test_wrong_use_is_said_at_once(capsys, arguments, says):
    code, out, err = run(capsys, "--quick", *arguments)
    assert code == 2
    assert says in err
    assert out == ""


def test_ctrl_c_shows_what_is_done_and_says_how_to_go_on(capsys, tmp_path, monkeypatch):
    cell = comparing.run_case

    def once(exercise, solver, *rest):
        if solver == "dls":
            raise KeyboardInterrupt
        return cell(exercise, solver, *rest)

    monkeypatch.setattr(comparing, "run_case", once)
    path = tmp_path / "records.csv"
    code, out, err = run(capsys, *SHORT, "--csv", path)
    assert code == 130
    assert "lm" in out
    assert "--resume" in err
    monkeypatch.undo()
    code, out, err = run(capsys, *SHORT, "--csv", path, "--resume")
    assert code == 0
    assert "dls" in out
    assert path.exists()


def test_names_may_have_commas_between_them(capsys):
    _, out, _ = run(capsys, "--quick", "--targets", "3", "--robots=3r_planar", "--tasks=point", "--solvers=lm,dls")
    assert out.count("lm ") == out.count("dls ") == 2


def test_a_long_table_is_left_to_files_unless_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("mechanik.cli.solver_commands.MAX_PRINTED_ROWS", 1)
    code, out, err = run(capsys, *SHORT)
    assert code == 0
    assert "one attempt" not in out
    assert "4 rows" in err
    assert "one attempt" in run(capsys, *SHORT, "--all")[1]
