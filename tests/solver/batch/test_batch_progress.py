"""Progress of a batch: a printed line, or a function of the caller."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from interruptible_batch import solve

from mechanik.solver.batch import batch_run as module
from mechanik.solver.batch.batch_run import BatchProgressLine, format_duration

X = np.tile(np.eye(4), (100, 1, 1))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("threads", [1, 2])
def test_a_progress_function_is_called_for_every_step_to_the_last(threads):
    calls: list[tuple[int, int]] = []
    solve(None, X, threads=threads, chunk=30, progress=lambda done, total: calls.append((done, total)))
    assert calls[0] == (0, 100)
    assert calls[-1] == (100, 100)
    assert calls == sorted(calls)
    assert len(calls) == 5


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_the_progress_function_stops_the_batch_and_keeps_finished_rows(threads, tmp_path):
    def fails(done, total):
        if done >= 60:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        solve(tmp_path / "out", X, threads=threads, chunk=30, progress=fails)
    assert f"finished rows are in {tmp_path / 'out'}; repeat the call to resume" in raised.value.__notes__[0]
    result = solve(tmp_path / "out", X)
    assert result.is_finished


@pytest.fixture
def counted_seconds(monkeypatch):
    """A clock that advances by a millisecond at each reading: real clocks may tick in tens of milliseconds."""
    readings = itertools.count()
    monkeypatch.setattr(module.time, "monotonic", lambda: 1e-3 * next(readings))


@pytest.mark.usefixtures("counted_seconds")
def test_a_terminal_shows_one_line_that_is_overwritten(monkeypatch):
    monkeypatch.setattr(module, "TERMINAL_INTERVAL_S", 0.0)
    stream = Terminal()
    line = BatchProgressLine(stream)
    for done in (0, 500, 1000):
        line(done, 1000)
    texts = stream.getvalue().split("\r")[1:]
    assert [text.split(",")[0] for text in texts] == ["0 of 1", "500 of 1", "1"]
    assert "50 %" in texts[1]
    assert "left" in texts[1]
    assert "1,000 of 1,000 rows, 100 %" in texts[2]
    assert texts[2].endswith("\n")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.usefixtures("counted_seconds")
def test_without_a_terminal_lines_are_printed_at_intervals_and_at_the_end():
    stream = io.StringIO()
    line = BatchProgressLine(stream)
    for done in range(0, 1001, 10):
        line(done, 1000)
    assert stream.getvalue().startswith("1,000 of 1,000 rows, 100 %, ")
    assert stream.getvalue().count("\n") == 1


def test_progress_true_prints_that_line(capsys):
    solve(None, X, progress=True)
    assert "100 of 100 rows, 100 %" in capsys.readouterr().err


def test_durations_are_printed_in_hours_minutes_and_seconds():
    assert [format_duration(seconds) for seconds in (0.4, 61, 3600, 7325.6)] == ["0:00", "1:01", "1:00:00", "2:02:06"]
