"""Results in folders: plain files that can be resumed and are never overwritten."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings

import numpy as np
import pytest
from batch_backends import solve_batch, solve_in_lanes
from counted_clock import count_clock_readings
from fake_chain import FakeChain
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.errors import BatchMismatch, CannotSave, FileMissing, FormatError, InvalidArgument, NotSolved
from mechanik.solver.batch import BatchResult, Interrupted
from mechanik.solver.batch.batch_result import format_percent
from mechanik.solver.solution import Status

NAMES = ("q", "status", "errors", "iterations")
ARM = mk.gallery.planar_3r()
TIP = "tool"
GOAL = mk.PositionGoal(TIP, (0.5, 0.5, 0.0))
SOLVER = mk.Solver(ARM, GOAL, restarts=20)
POINTS = ARM.pose(TIP, ARM.random(np.random.default_rng(3), 40))[:, :3, 3].copy()
POINTS[7] = np.nan
POINTS[[5, 30]] *= 10
START = np.array([0.1, 0.2, 0.3])
WHOLE = solve_batch(SOLVER, POINTS, START)


def assert_same(result, whole) -> None:
    for name in NAMES:
        assert np.array_equal(getattr(result, name), getattr(whole, name), equal_nan=True), name


def stop_at(row):
    def report(done, total):
        if done >= row:
            raise KeyboardInterrupt

    return report


def test_a_result_in_a_folder_equals_the_result_in_memory(tmp_path, monkeypatch):
    count_clock_readings(monkeypatch)
    result = solve_batch(SOLVER, POINTS, START, out=tmp_path / "new" / "out")
    assert_same(result, WHOLE)
    assert isinstance(result.q.base, np.memmap) or isinstance(result.q, np.memmap)
    assert_same(BatchResult.open(tmp_path / "new" / "out"), WHOLE)
    assert result.seconds > 0
    assert result.joints == ARM.space.q_names
    for name, dtype in zip(NAMES, ("f8", "i1", "f8", "i4"), strict=True):
        plain = np.load(tmp_path / "new" / "out" / f"{name}.npy")
        assert plain.dtype == dtype
        assert np.array_equal(plain, getattr(WHOLE, name), equal_nan=True)


def test_a_saved_result_is_loaded_unchanged(tmp_path):
    assert_same(WHOLE.save(tmp_path / "out"), WHOLE)
    opened = BatchResult.open(tmp_path / "out")
    assert_same(opened, WHOLE)
    assert opened.summary() == WHOLE.summary()
    assert_same(opened.save(tmp_path / "copy"), WHOLE)
    with pytest.raises(CannotSave, match="already contains the result of a batch"):
        WHOLE.save(tmp_path / "out")


def test_arrays_are_read_only(tmp_path):
    for result in (WHOLE, WHOLE.save(tmp_path / "out")):
        for name in NAMES:
            with pytest.raises(ValueError, match="read-only"):
                getattr(result, name)[0] = 0


@settings(max_examples=20)
@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 3))
def test_a_batch_in_a_folder_resumes_where_it_was_stopped(row, chunk, threads):
    engine = FakeChain()
    with pytest.MonkeyPatch.context() as patch:
        folder = tempfile.mkdtemp()
        patch.setattr("mechanik.solver.batch.batch_run.COMMIT_INTERVAL_S", 0.0)
        patch.setattr("os.fsync", lambda file: None)  # no power is lost here, and disks are slow
        try:
            with pytest.raises(Interrupted) as stopped:
                lanes(engine, POINTS, out=folder, progress=stop_at(row), chunk=chunk, threads=threads)
            done = stopped.value.result.done
            assert row <= done or done == 40
            assert engine.rows <= 40
            if done < 40:
                assert f"{done} of 40 rows are finished" in str(stopped.value)
            result = lanes(engine, POINTS, out=stopped.value.result, chunk=chunk + 1)
            assert_same(result, lanes(FakeChain(), POINTS))
            assert engine.rows == 39  # the bad row is not solved, and no other row is solved twice
            assert_same(lanes(engine, POINTS, out=folder), result)
            assert engine.rows == 39
        finally:
            shutil.rmtree(folder)


def lanes(engine, points, **how):
    return solve_in_lanes(SOLVER, points, START, engine, **how)


def test_a_batch_in_memory_resumes_where_it_was_stopped():
    with pytest.raises(Interrupted, match=r"8 of 40 rows are finished and are in `result`") as stopped:
        solve_batch(SOLVER, POINTS, START, progress=stop_at(8), chunk=4, threads=1)
    half = stopped.value.result
    assert half.done == 8
    assert not half.is_finished
    assert half.counts[Status.PENDING] == 32
    assert "32 not solved yet" in repr(half)
    assert "8 of 40 rows" in half.summary()
    assert isinstance(stopped.value, KeyboardInterrupt)
    assert_same(solve_batch(SOLVER, POINTS, START, out=half), WHOLE)


def test_an_unfinished_result_can_be_saved_and_resumed(tmp_path):
    with pytest.raises(Interrupted) as stopped:
        solve_batch(SOLVER, POINTS, START, progress=stop_at(8), chunk=4)
    stopped.value.result.save(tmp_path / "half")
    assert_same(solve_batch(SOLVER, POINTS, START, out=tmp_path / "half"), WHOLE)


@pytest.mark.parametrize(
    ("make_arguments", "message"),
    [
        (lambda: (SOLVER, POINTS[:39], START), "for 40 targets, but this batch has 39"),
        (lambda: (SOLVER, POINTS + 1e-12, START), "other targets"),
        (lambda: (SOLVER, POINTS, START + 1e-12), "other starts"),
        (lambda: (SOLVER, POINTS, None), "other starts"),
        (lambda: (mk.Solver(ARM, GOAL, restarts=1), POINTS, START), "other options"),
        (lambda: (mk.Solver(ARM, mk.PositionGoal(TIP, (0, 0, 0), tolerance=1e-3)), POINTS, START), "other goals"),
        (lambda: (mk.Solver(ARM, mk.PositionGoal(TIP, (0, 0, 0), (0.1, 0, 0))), POINTS, START), "other goals"),
        (lambda: (mk.Solver(ARM, GOAL, limits={"joint2": (-1, 1)}), POINTS, START), "other options"),
        (lambda: (mk.Solver(longer(), GOAL), POINTS, START), "other mechanism"),
        (lambda: (mk.Solver(mk.gallery.ur5(), mk.PositionGoal("tool0", (0, 0, 0))), POINTS, None), "3 numbers in q"),
    ],
)
def test_the_result_of_another_problem_is_rejected_and_unchanged(make_arguments, message, tmp_path):
    saved = WHOLE.save(tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for out in (tmp_path / "out", saved, WHOLE):
        with pytest.raises(BatchMismatch, match=message):
            solve_batch(*make_arguments(), out=out)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def longer() -> mk.Mechanism:
    return mk.gallery.planar_3r(lengths=(1.0, 1.0, 1.1))


def test_a_target_that_the_batch_replaces_does_not_change_the_problem(tmp_path):
    solve_batch(SOLVER, POINTS, START, out=tmp_path / "out")
    result = solve_batch(
        mk.Solver(ARM, mk.PositionGoal(TIP, (0.1, 0.2, 0.0)), restarts=20), POINTS, START, out=tmp_path / "out"
    )
    assert_same(result, WHOLE)


def test_another_generator_is_rejected_and_none_resumes_the_saved_one(tmp_path):
    first = solve_batch(SOLVER, POINTS, START, out=tmp_path / "out", rng=np.random.default_rng(1))
    with pytest.raises(BatchMismatch, match="started with another rng"):
        solve_batch(SOLVER, POINTS, START, out=tmp_path / "out", rng=np.random.default_rng(2))
    assert solve_batch(SOLVER, POINTS, START, out=tmp_path / "out").seed == first.seed
    solve_batch(SOLVER, POINTS, START, out=tmp_path / "out", rng=np.random.default_rng(1))


def test_a_folder_that_is_not_a_batch_is_never_written_to(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CannotSave, match=r"contains other files \(notes.txt\)"):
        solve_batch(SOLVER, POINTS, START, out=tmp_path)
    with pytest.raises(CannotSave, match="is a file"):
        solve_batch(SOLVER, POINTS, START, out=tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(InvalidArgument, match="out must be a folder"):
        solve_batch(SOLVER, POINTS, START, out=3)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "about.json").write_text('{"format": "something else"}')
    with pytest.raises(FormatError, match="format is 'something else'"):
        solve_batch(SOLVER, POINTS, START, out=tmp_path / "data")


def test_a_broken_folder_is_named_in_the_error(tmp_path):
    with pytest.raises(FileMissing, match=r"about\.json is missing"):
        BatchResult.open(tmp_path / "nowhere")
    WHOLE.save(tmp_path / "out")
    np.save(tmp_path / "out" / "q.npy", np.zeros((40, 2)))
    with pytest.raises(FormatError, match=r"q.npy is float64 \(40, 2\)"):
        BatchResult.open(tmp_path / "out")
    (tmp_path / "out" / "q.npy").unlink()
    with pytest.raises(FileMissing, match=r"q\.npy is missing"):
        BatchResult.open(tmp_path / "out")
    (tmp_path / "out" / "about.json").write_text("{")
    with pytest.raises(FormatError, match="not JSON"):
        BatchResult.open(tmp_path / "out")


@pytest.mark.parametrize("last", ["about.json.part", "about.json", "errors.npy", "status.npy.part"])
def test_a_folder_that_was_interrupted_during_creation_is_completed(last, tmp_path):
    order = ["about.json.part", "about.json", "q.npy", "errors.npy", "iterations.npy", "status.npy.part"]
    done = tmp_path / "done"
    solve_batch(SOLVER, POINTS, START, out=done)
    half = tmp_path / "half"
    half.mkdir()
    for name in order[: order.index(last) + 1]:
        if not (name == "about.json.part" and last != name):
            (half / name).write_bytes(
                (done / name.removesuffix(".part")).read_bytes()[: None if name == "about.json" else 99]
            )
    assert_same(solve_batch(SOLVER, POINTS, START, out=half), WHOLE)


def test_a_result_prints_its_summary():
    assert WHOLE.counts == {Status.CONVERGED: 37, Status.CLOSEST: 2, Status.BAD_TARGET: 1}
    assert WHOLE.rows_with(Status.CLOSEST).tolist() == [5, 30]
    first, *lines = WHOLE.summary().splitlines()
    assert first.startswith("37 of 40 rows solved (92.5 %) in ")
    assert lines[2] == f"   1 BAD_TARGET {Status.BAD_TARGET.value}"
    assert repr(WHOLE) == "<batch of 40 rows: 37 solved>"
    with pytest.raises(NotSolved, match=r"3 of 40 rows are not solved: row 5 \(CLOSEST\), 7 \(BAD_TARGET\), 30"):
        WHOLE.require()
    fine = solve_batch(SOLVER, POINTS[:5], START)
    assert fine.require() is fine
    assert json.loads(WHOLE._metadata.to_json())["rows"] == 40


def test_percentages_are_never_rounded_to_all_or_none():
    assert format_percent(9_999_999, 10_000_000) == "over 99.99"
    assert [format_percent(*counts) for counts in ((7, 7), (0, 3), (37, 40), (1, 3))] == ["100", "0", "92.5", "33.33"]


def test_no_warnings_are_raised():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve_batch(SOLVER, np.full((3, 3), np.inf), START)
