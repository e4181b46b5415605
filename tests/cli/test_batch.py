"""`mechanik batch`: files it reads and writes, resuming after Ctrl-C, and exit codes."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanik import gallery, spatial
from mechanik.cli import main
from mechanik.cli.batch_files import POSE_COLUMNS, POSITION_COLUMNS, joint_column_names, read_csv
from mechanik.cli.output import ProgressBar
from mechanik.errors import MechanikError

UR5 = gallery.make("ur5")
HEADER = ["x", "y", "z", "qw", "qx", "qy", "qz"]
TIMEOUT = 300.0
"""s, for a process to start or to end; the first process on a machine compiles the kernels."""
needs_pyarrow = pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")


def run(capsys, *arguments):
    code = main([str(argument) for argument in ("batch", *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def solve_batch(capsys, folder, *arguments, out="result.npz", mechanism="gallery:ur5"):
    """Run a batch and return the arrays that it writes."""
    code, _, err = run(capsys, mechanism, *arguments, "--out", folder / out)
    assert code == 0, err
    assert not (folder / f"{out}.part").exists()
    with np.load(folder / out) as result:
        return dict(result)


@pytest.fixture(scope="module")
def poses():
    """(30, 7) position and wxyz of reachable poses of a UR5."""
    X = UR5.pose("tool0", UR5.random(np.random.default_rng(4), 30))
    return np.hstack(spatial.to_position_wxyz(X))


@pytest.fixture
def targets(tmp_path, poses):
    np.save(tmp_path / "targets.npy", poses)
    return tmp_path / "targets.npy"


def write_csv(path, rows, header=None, mark=","):
    lines = [mark.join(header)] if header else []
    path.write_text("\n".join([*lines, *(mark.join(map(repr, row)) for row in rows.tolist()), ""]))
    return path


# ---- input files ------------------------------------------------------------------------------


def test_every_row_reaches_its_target(capsys, tmp_path, targets, poses):
    result = solve_batch(capsys, tmp_path, "--targets", targets)
    assert result["success"].all()
    X = spatial.from_position_wxyz(poses[:, :3], poses[:, 3:])
    assert np.abs(UR5.pose("tool0", result["q"]) - X).max() < 3e-6
    assert result["position_error"].max() < 1e-6
    assert result["rotation_error"].max() < 1e-6
    assert list(result["joints"]) == list(UR5.space.q_names)
    assert (result["statuses"][result["status"]] == "CONVERGED").all()
    assert result["iterations"].min() >= 0


def target_files(poses):
    yield "npy", lambda path: np.save(path, poses)
    yield "npy", lambda path: np.save(path, spatial.from_position_wxyz(poses[:, :3], poses[:, 3:]))
    yield "npy", lambda path: np.save(path, np.asfortranarray(poses))
    yield "npz", lambda path: np.savez(path, poses)
    yield "npz", lambda path: np.savez(path, extra=np.zeros(3), targets=poses)
    yield "csv", lambda path: write_csv(path, poses)
    yield "csv", lambda path: write_csv(path, poses, HEADER)
    yield "csv", lambda path: write_csv(path, poses, ["X", " Y", "Z", "QW", "qx ", '"qy"', "qz"])
    yield "csv", lambda path: write_csv(path, poses[:, ::-1], HEADER[::-1])
    yield "csv", lambda path: write_csv(path, np.hstack([poses[:, :2], poses]), ["time", "note", *HEADER])
    yield "csv", lambda path: write_csv(path, poses, HEADER, mark=";")
    yield "tsv", lambda path: write_csv(path, poses, HEADER, mark="\t")
    yield "txt", lambda path: write_csv(path, poses, mark="  ")
    yield "csv", lambda path: np.savetxt(path, poses, "%.17g", delimiter=",", header=",".join(HEADER))
    yield "txt", lambda path: np.savetxt(path, poses, "%.17g", header="poses of a UR5")
    yield "csv", lambda path: path.write_bytes(b"\xef\xbb\xbf" + windows_text(path, poses))


def windows_text(path, poses):
    return write_csv(path, poses, HEADER).read_bytes().replace(b"\n", b"\r\n")


@pytest.mark.parametrize("which", range(16))
def test_solutions_do_not_depend_on_the_file_format_of_the_targets(capsys, tmp_path, targets, poses, which):
    expected = solve_batch(capsys, tmp_path, "--targets", targets)
    suffix, write = list(target_files(poses))[which]
    write(tmp_path / f"other.{suffix}")
    result = solve_batch(capsys, tmp_path, "--targets", tmp_path / f"other.{suffix}", out="other_result.npz")
    # a pose as a matrix differs from its quaternion in the last bits
    assert np.abs(result["q"] - expected["q"]).max() < (1e-6 if which == 1 else 1e-300)
    assert (result["status"] == expected["status"]).all()


@needs_pyarrow
def test_parquet_is_read_and_written(capsys, tmp_path, targets, poses):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: poses[:, k] for k, name in reversed(list(enumerate(HEADER)))}
    pq.write_table(pa.table({"note": ["a"] * len(poses), **columns}), tmp_path / "targets.parquet")
    expected = solve_batch(capsys, tmp_path, "--targets", targets)
    arguments = ["gallery:ur5", "--targets", tmp_path / "targets.parquet", "--out", tmp_path / "result.parquet"]
    assert run(capsys, *arguments)[0] == 0
    read = pq.read_table(tmp_path / "result.parquet")
    assert read.column_names == [*UR5.space.q_names, "success", "status", *error_columns()]
    assert all((read[name].to_numpy() == expected["q"][:, k]).all() for k, name in enumerate(UR5.space.q_names))
    assert set(read["status"].to_pylist()) == {"CONVERGED"}
    assert set(read["success"].to_pylist()) == {True}


@needs_pyarrow
def test_nulls_in_parquet_are_bad_targets_and_text_columns_are_an_error(capsys, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, out = tmp_path / "targets.parquet", tmp_path / "result.csv"
    pq.write_table(pa.table({"x": [0.4, None], "y": [0.1, 0.1], "z": [1, 0]}), path)
    code, _, err = run(capsys, "gallery:ur5", "--targets", path, "--out", out)
    assert code == 0
    assert "no usable target in row 1 " in err
    pq.write_table(pa.table({"x": ["a"], "y": [0.1], "z": [0.2]}), path)
    code, _, err = run(capsys, "gallery:ur5", "--targets", path, "--out", out)
    assert code == 1
    assert "column 'x' contains string" in err
    path.write_text("x,y,z")
    code, _, err = run(capsys, "gallery:ur5", "--targets", path, "--out", out)
    assert code == 1
    assert "cannot be read as Parquet" in err


def error_columns():
    return ["position_error", "rotation_error", "iterations"]


@pytest.mark.parametrize("option", ["targets", "out"])
def test_without_pyarrow_the_error_names_the_package_to_install(capsys, tmp_path, targets, monkeypatch, option):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else find_spec(name))
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    source, out = (tmp_path / "t.parquet", "r.csv") if option == "targets" else (targets, "r.parquet")
    code, printed, err = run(capsys, "gallery:ur5", "--targets", source, "--out", tmp_path / out)
    assert (code, printed) == (1, "")
    assert "pip install 'mechanik[parquet]'" in err
    assert not list(tmp_path.glob("r.*"))


def test_targets_with_positions_only_leave_the_orientation_free(capsys, tmp_path, poses):
    np.save(tmp_path / "p.npy", poses[:, :3].astype(np.float32))
    result = solve_batch(capsys, tmp_path, "--targets", tmp_path / "p.npy")
    assert result["success"].all()
    assert np.abs(UR5.pose("tool0", result["q"])[:, :3, 3] - poses[:, :3]).max() < 2e-6
    assert (result["rotation_error"] == 0).all()


def test_bad_rows_are_named_and_do_not_change_other_rows(capsys, tmp_path, targets, poses):
    expected = solve_batch(capsys, tmp_path, "--targets", targets)
    bad = poses.copy()
    bad[3, 1], bad[7, 3:], bad[11, :3] = np.nan, 0.0, 50.0
    np.save(tmp_path / "bad.npy", bad)
    code, out, err = run(capsys, "gallery:ur5", "--targets", tmp_path / "bad.npy", "--out", tmp_path / "r.npz")
    assert code == 0
    assert "no usable target in 2 rows: 3, 7 (row indices start at 0)" in err
    assert re.search(r"BAD_TARGET +2 +6\.67 %", out)
    assert re.search(r"CONVERGED +27 ", out)
    result = np.load(tmp_path / "r.npz")
    others = np.setdiff1d(np.arange(30), [3, 7, 11])
    assert (result["q"][others] == expected["q"][others]).all()
    assert result["statuses"][result["status"][[3, 7]]].tolist() == ["BAD_TARGET"] * 2
    assert not result["success"][[3, 7, 11]].any()
    assert result["position_error"][11] > 40


def test_empty_cells_and_nan_are_bad_targets(capsys, tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("x,y,z\n0.4,0.1,0.2\n\n0.4,,0.2\n0.4,nan,0.1\n0.3,0.3,0.3\n")
    result = solve_batch(capsys, tmp_path, "--targets", path)
    assert result["success"].tolist() == [True, False, False, True]


def test_reading_and_writing_in_blocks_gives_the_same_table(capsys, tmp_path, poses, monkeypatch):
    path = write_csv(tmp_path / "t.csv", poses, HEADER)
    expected = solve_batch(capsys, tmp_path, "--targets", path)
    monkeypatch.setattr("mechanik.cli.batch_files.CSV_BLOCK_LINES", 7)
    monkeypatch.setattr("mechanik.cli.batch_files.RESULT_BLOCK_ROWS", 7)
    solve_batch(capsys, tmp_path, "--targets", path, out="short.npz")
    assert run(capsys, "gallery:ur5", "--targets", path, "--out", tmp_path / "short.csv")[0] == 0
    with open(tmp_path / "short.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert (np.array([[float(row[name]) for name in UR5.space.q_names] for row in rows]) == expected["q"]).all()
    assert (np.load(tmp_path / "short.npz")["q"] == expected["q"]).all()


@given(
    rows=st.lists(st.tuples(*[st.floats()] * 3), min_size=1, max_size=20),
    order=st.permutations(["x", "y", "z", "note", "n"]),
    mark=st.sampled_from([",", ";", "\t"]),
    has_gap=st.booleans(),
    block=st.integers(1, 9),
)
def test_csv_numbers_are_read_back_bit_for_bit(tmp_path_factory, rows, order, mark, has_gap, block):
    path = tmp_path_factory.mktemp("text") / "t.csv"
    table = [dict(zip("xyz", map(repr, row), strict=True), note=f'"a{mark}b"', n="") for row in rows]
    lines = [mark.join(order), *(mark.join(row[name] for name in order) for row in table)]
    if has_gap:  # the fast reader cannot read empty cells
        lines.append(mark.join("" if name == "y" else "1" for name in order))
    path.write_text("\n\n".join(lines), encoding="utf-8")
    read = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mechanik.cli.batch_files.CSV_BLOCK_LINES", block)
        assert read_csv(path, (POSE_COLUMNS, POSITION_COLUMNS), read.append) == 3
    expected = np.array([*rows, (1.0, np.nan, 1.0)] if has_gap else rows)
    assert np.array_equal(np.vstack(read), expected, equal_nan=True)


def test_empty_target_file_gives_a_result_without_rows(capsys, tmp_path):
    (tmp_path / "t.csv").write_text("x,y,z\n")
    for name in ("r.csv", "r.npz"):
        code, out, _ = run(capsys, "gallery:ur5", "--targets", tmp_path / "t.csv", "--out", tmp_path / name)
        assert code == 0
        assert "0 targets" in out
    assert (tmp_path / "r.csv").read_text().startswith("shoulder_pan_joint,")
    assert np.load(tmp_path / "r.npz")["q"].shape == (0, 6)


# ---- starts ----------------------------------------------------------------------------------


def test_starts_can_be_a_previous_result_or_columns_named_after_joints(capsys, tmp_path, targets):
    before = solve_batch(capsys, tmp_path, "--targets", targets)
    after = solve_batch(capsys, tmp_path, "--targets", targets, "--q0", tmp_path / "result.npz", out="after.npz")
    assert np.abs(after["q"] - before["q"]).max() < 1e-4  # the start is a solution already
    assert run(capsys, "gallery:ur5", "--targets", targets, "--out", tmp_path / "r.csv")[0] == 0
    again = solve_batch(capsys, tmp_path, "--targets", targets, "--q0", tmp_path / "r.csv", out="again.npz")
    assert (again["q"] == after["q"]).all()


def test_single_start_applies_to_all_rows_and_locked_joints_keep_its_values(capsys, tmp_path, poses):
    np.save(tmp_path / "p.npy", poses[:, :3])
    np.save(tmp_path / "q0.npy", [0.1, -1.0, 1.0, 0.2, 0.3, 0.7])
    arguments = ["--targets", tmp_path / "p.npy", "--q0", tmp_path / "q0.npy", "--lock", "wrist_3_joint"]
    assert (solve_batch(capsys, tmp_path, *arguments)["q"][:, 5] == 0.7).all()


# ---- resuming --------------------------------------------------------------------------------


class InterruptingBar(ProgressBar):
    """A progress bar that raises KeyboardInterrupt when `stops_at` rows are done."""

    stops_at = 10

    def __call__(self, done, total=None):
        if total is not None and total > done >= self.stops_at:
            raise KeyboardInterrupt
        super().__call__(done, total)


def test_resumed_batch_gives_the_same_result_as_an_uninterrupted_one(capsys, tmp_path, monkeypatch):
    X = UR5.pose("tool0", UR5.random(np.random.default_rng(4), 5000))
    np.save(tmp_path / "t.npy", X)
    expected = solve_batch(capsys, tmp_path, "--targets", tmp_path / "t.npy", out="usual.npz")
    arguments = ["gallery:ur5", "--targets", tmp_path / "t.npy", "--out", tmp_path / "r.npz", "--threads", 1]
    (tmp_path / "r.npz").write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr("mechanik.cli.batch_command.ProgressBar", InterruptingBar)
        code, out, err = run(capsys, *arguments)
    assert (code, out) == (130, "")
    done = int(re.search(r"([\d,]+) of 5,000 targets are processed", err)[1].replace(",", ""))
    assert 10 <= done < 5000
    assert "--resume to continue" in err
    assert (tmp_path / "r.npz").read_text() == "old"
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "contains an unfinished batch: add --resume to continue it" in err
    code, _, err = run(capsys, *arguments, "--resume", "--tolerance", "1e-5")
    assert code == 2
    assert "different tolerance" in err
    code, _, err = run(capsys, "gallery:puma560", *arguments[1:], "--resume", "--link", "tool")
    assert code == 2
    assert run(capsys, *arguments, "--resume")[0] == 0
    result = np.load(tmp_path / "r.npz")
    assert all((result[name] == expected[name]).all() for name in expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.npz", "t.npy", "usual.npz"]


def test_batch_is_not_resumed_with_different_targets(capsys, tmp_path, targets, poses, monkeypatch):
    arguments = ["gallery:ur5", "--targets", targets, "--out", tmp_path / "r.npz"]
    with monkeypatch.context() as patch:
        patch.setattr("mechanik.cli.batch_command.write_result", _interrupt)  # all rows are solved, none is written
        assert run(capsys, *arguments)[0] == 130
    moved = poses.copy()
    moved[:, 0] += 1e-3
    np.save(targets, moved)
    code, _, err = run(capsys, *arguments, "--resume")
    assert code == 2
    assert "different targets" in err
    np.save(targets, poses)
    assert run(capsys, *arguments, "--resume")[0] == 0


def _interrupt(*_):
    raise KeyboardInterrupt


def test_interrupt_before_the_first_solution_leaves_no_files(capsys, tmp_path, targets, monkeypatch):
    monkeypatch.setattr("mechanik.cli.batch_command.read_targets", _interrupt)
    code, _, err = run(capsys, "gallery:ur5", "--targets", targets, "--out", tmp_path / "r.npz")
    assert (code, err) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == [targets]


def test_folder_that_is_no_unfinished_batch_is_not_changed(capsys, tmp_path, targets):
    (tmp_path / "r.npz.part").mkdir()
    (tmp_path / "r.npz.part" / "diary.txt").write_text("mine")
    code, _, err = run(capsys, "gallery:ur5", "--targets", targets, "--out", tmp_path / "r.npz", "--resume")
    assert code == 2
    assert "exists and is not an unfinished batch" in err
    assert (tmp_path / "r.npz.part" / "diary.txt").read_text() == "mine"


def test_failed_write_leaves_the_old_file_and_the_solved_rows(capsys, tmp_path, targets, monkeypatch):
    def fail_disk_full(*_, **__):
        raise OSError(28, "No space left on device")

    (tmp_path / "r.npz").write_text("old")
    arguments = ["gallery:ur5", "--targets", targets, "--out", tmp_path / "r.npz"]
    with monkeypatch.context() as patch:
        patch.setattr("mechanik.cli.batch_files._write_npz", fail_disk_full)
        code, _, err = run(capsys, *arguments)
    assert code == 1
    assert "No space left on device" in err
    assert "--resume to continue" in err
    assert (tmp_path / "r.npz").read_text() == "old"
    assert run(capsys, *arguments, "--resume")[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for other processes there")
def test_interrupted_process_exits_130_and_stores_the_solved_rows(tmp_path):
    body = gallery.make("humanoid")
    p = body.pose("left_hand", body.random(np.random.default_rng(0), 200_000))[:, :3, 3]
    np.save(tmp_path / "t.npy", p)
    # the parent process may ignore SIGINT
    restore_sigint = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{restore_sigint}; import sys; from mechanik.cli import main; sys.exit(main())"
    arguments = ["batch", "gallery:humanoid", "--link", "left_hand", "--targets", "t.npy", "--out", "r.npz"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, env=_environment(), stderr=subprocess.PIPE, text=True
    )
    status = tmp_path / "r.npz.part" / "result" / "status.npy"
    deadline = time.monotonic() + TIMEOUT
    while not (status.exists() and (np.load(status, mmap_mode="r") == 0).any()):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "nothing was solved"
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=TIMEOUT)[1]
    assert process.returncode == 130, err
    done = int(re.search(r"([\d,]+) of 200,000 targets are processed", err)[1].replace(",", ""))
    assert done == (np.load(status) != 9).sum() > 0
    assert "Traceback" not in err
    assert json.loads((tmp_path / "r.npz.part" / "request.json").read_text())["link"] == "left_hand"


def _environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_joint_named_like_a_result_column_gets_a_column_of_its_own():
    assert joint_column_names(["elbow", "success"]) == ["elbow", "joint success"]


def test_help_has_examples(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "mechanik batch" in out.split("For example:", 1)[1]


# ---- usage errors -----------------------------------------------------------------------------

BROKEN = '<robot name="b"><link name="a"/><joint name="j" type="fixed"><parent link="a"/></joint></robot>'
FILES = {
    "empty.csv": "",
    "blank.csv": "\n  \n",
    "wrong.csv": "a,b\n1,2\n",
    "half.csv": "x,y,z,qw,qx\n1,2,3,1,0\n",
    "twice.csv": "x,y,z,x\n1,2,3,1\n",
    "text.csv": "x,y,z\n.4,.1,.2\n.4,abc,.2\n",
    "short.csv": "x,y,z\n.4,.1,.2\n\n.4,.1\n",
    "four.csv": "1,2,3,4\n",
    "longer.csv": "1,2,3\n1,2,3,4\n",
    "comma.csv": "x;y;z\n0,4;0,2;0,5\n",
    "latin.csv": "x,y,z,größe\n",
    "no.npy": "x,y,z",
    "empty.npy": "",
    "no.npz": "x",
    "t.json": "[]",
    "broken.urdf": BROKEN,
}
CONTENT = [
    ("empty.csv", "empty.csv is empty"),
    ("blank.csv", "blank.csv is empty"),
    ("wrong.csv", "line 1: the columns are a, b; needed are x, y, z or x, y, z, qw, qx, qy, qz"),
    ("half.csv", "qy, qz"),
    ("twice.csv", "2 columns are called 'x'"),
    ("text.csv", "line 3: 'abc' is not a number"),
    ("short.csv", "line 4: 3 columns needed, but there are 2"),
    ("four.csv", "line 1: a row must have 3 or 7 numbers, but this row has 4"),
    ("longer.csv", "line 2: 3 columns needed, but there are 4"),
    ("comma.csv", "line 2: '0,4' is not a number; use a decimal point instead of a comma"),
    ("latin.csv", "save it as CSV in UTF-8"),
    ("no.npy", "no.npy"),
    ("empty.npy", "empty.npy is empty"),
    ("no.npz", "no.npz"),
    ("words.npy", "numbers are needed"),
    ("shape.npy", "(N, 4, 4)"),
    ("single.npy", "(N, 4, 4)"),
    ("two.npz", "contains a, b, but no array 'targets'"),
]


@pytest.fixture
def faulty_files(tmp_path, monkeypatch, poses):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    np.save("t.npy", poses)
    np.save("words.npy", np.array(["a"]))
    np.save("shape.npy", np.zeros((5, 6)))
    np.save("single.npy", np.eye(4))
    np.savez("two.npz", a=poses, b=poses)
    np.save("q5.npy", np.zeros((5, 6)))


@pytest.mark.parametrize(("name", "message"), CONTENT, ids=lambda x: x[:12])
@pytest.mark.usefixtures("faulty_files")
def test_files_without_targets_exit_1_with_one_line_and_leave_no_files(capsys, tmp_path, name, message):
    code, out, err = run(capsys, "gallery:ur5", "--targets", name, "--out", "r.npz")
    assert (code, out) == (1, "")
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("r.npz*"))


MISUSE = [
    (["--targets", "-", "--out", "r.npz"], "standard input is not supported"),
    (["--targets", "nothing.npy", "--out", "r.npz"], "there is no file 'nothing.npy' with targets"),
    (["--targets", ".", "--out", "r.npz"], "is a folder"),
    (["--targets", "t.json", "--out", "r.npz"], "must end in .npy"),
    (["--targets", "t.npy", "--out", "r.txt"], "must end in .npz, .csv or .parquet"),
    (["--targets", "t.npy", "--out", "no/r.npz"], "there is no folder"),
    (["--targets", "t.npy", "--out", "."], "is a folder"),
    (["--targets", "t.npy"], "--out"),
    (["--out", "r.npz"], "--targets"),
    (["--targets", "two.npz", "--out", "two.npz"], "is an input file"),
    (["--targets", "t.npy", "--out", "r.npz", "--threads", "0"], "--threads must be at least 1"),
    (["--targets", "t.npy", "--out", "r.npz", "--tolerance", "-1"], "must be above zero"),
    (["--targets", "t.npy", "--out", "r.npz", "--link", "tol0"], "Did you mean 'tool0'"),
    (["--targets", "t.npy", "--out", "r.npz", "--lock", "elbow"], "Did you mean 'elbow_joint'"),
]


@pytest.mark.parametrize(("arguments", "message"), MISUSE, ids=lambda x: str(x)[-30:])
@pytest.mark.usefixtures("faulty_files")
def test_wrong_use_exits_2_with_one_line(capsys, tmp_path, arguments, message):
    code, out, err = run(capsys, "gallery:ur5", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("r.npz*"))


@pytest.mark.usefixtures("faulty_files")
def test_starts_of_wrong_shape_and_an_invalid_mechanism_exit_1(capsys):
    code, _, err = run(capsys, "gallery:ur5", "--targets", "t.npy", "--out", "r.npz", "--q0", "q5.npy")
    assert code == 1
    assert "(30, 6)" in err
    assert "(5, 6)" in err
    code, _, err = run(capsys, "broken.urdf", "--targets", "t.npy", "--out", "r.npz")
    assert code == 1
    assert err.startswith("error: broken.urdf")


def test_internal_error_says_how_to_resume(capsys, tmp_path, targets, monkeypatch):
    def fail(*_):
        raise MechanikError("something is wrong")

    monkeypatch.setattr("mechanik.cli.batch_command.write_result", fail)
    code, _, err = run(capsys, "gallery:ur5", "--targets", targets, "--out", tmp_path / "r.npz")
    assert code == 1
    assert "something is wrong" in err
    assert "--resume to continue" in err
