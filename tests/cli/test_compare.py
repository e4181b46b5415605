"""`mechanik compare`: printed tables, written files and exit codes."""

from __future__ import annotations

import pytest

from mechanik import comparison
from mechanik.cli import main
from mechanik.comparison import benchmark_runner

SHORT = ["--quick", "--targets", "3", "--robots", "3r_planar", "--tasks", "pose", "point", "--solvers", "lm", "dls"]


def run(capsys, *arguments):
    code = main([str(argument) for argument in ("compare", *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_compare_prints_a_table_and_an_overview_and_writes_files(capsys, tmp_path):
    files = [tmp_path / name for name in ("records.csv", "report.html", "table.md")]
    code, out, err = run(capsys, *SHORT, "--csv", files[0], "--html", files[1], "--markdown", files[2])
    assert code == 0, err
    assert "3R planar, pose" in out
    assert "one attempt" in out
    assert "success within the time budget" in out
    assert "wrote" in err
    assert len(comparison.Comparison.from_csv(files[0]).rows) == 4
    assert files[1].read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "| lm |" in files[2].read_text(encoding="utf-8")


def test_compare_writes_to_the_home_folder(capsys, tmp_path, monkeypatch):
    """Once the whole comparison ran, and then the file ~/table.md could not be written."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    code, _, err = run(capsys, *SHORT, "--csv", "~/records.csv", "--html", "~/report.html", "--markdown", "~/table.md")
    assert code == 0, err
    assert {path.name for path in tmp_path.iterdir()} == {"records.csv", "report.html", "table.md"}


def test_compare_accepts_a_user_file_and_a_link(capsys):
    arguments = ["gallery:scara", "--quick", "--targets", "3", "--tasks", "point", "--solvers", "lm"]
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "scara: tool, point" in out
    code, out, _ = run(capsys, *arguments, "--link", "quill")
    assert code == 0
    assert "scara: quill, point" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_wrong_use_exits_2_before_any_output(capsys, arguments, message):
    code, out, err = run(capsys, "--quick", *arguments)
    assert code == 2
    assert message in err
    assert out == ""


def test_ctrl_c_prints_finished_rows_and_how_to_resume(capsys, tmp_path, monkeypatch):
    run_case = benchmark_runner.run_case

    def interrupt_dls(case, solver, *rest):
        if solver == "dls":
            raise KeyboardInterrupt
        return run_case(case, solver, *rest)

    monkeypatch.setattr(benchmark_runner, "run_case", interrupt_dls)
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


def test_names_may_be_separated_by_commas(capsys):
    _, out, _ = run(capsys, "--quick", "--targets", "3", "--robots=3r_planar", "--tasks=point", "--solvers=lm,dls")
    assert out.count("lm ") == out.count("dls ") == 2


def test_long_table_is_printed_only_with_all(capsys, monkeypatch):
    monkeypatch.setattr("mechanik.cli.solver_commands.MAX_PRINTED_ROWS", 1)
    code, out, err = run(capsys, *SHORT)
    assert code == 0
    assert "one attempt" not in out
    assert "4 rows" in err
    assert "one attempt" in run(capsys, *SHORT, "--all")[1]
