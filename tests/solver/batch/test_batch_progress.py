"""Those who look on: a line that says how far a batch is, or a function of theirs."""

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
def test_a_function_is_told_of_every_step_to_the_last(threads):
    told: list[tuple[int, int]] = []
    solve(None, X, threads=threads, chunk=30, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 100)
    assert told[-1] == (100, 100)
    assert told == sorted(told)
    assert len(told) == 5


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_that_function_stops_the_batch_with_what_is_done_kept(threads, tmp_path):
    def fails(done, total):
        if done >= 60:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        solve(tmp_path / "out", X, threads=threads, chunk=30, progress=fails)
    assert f"finished rows are in {tmp_path / 'out'}; repeat the call to resume" in raised.value.__notes__[0]
    found = solve(tmp_path / "out", X)
    assert found.is_finished


@pytest.fixture
def counted_seconds(monkeypatch):
    """A clock that goes on by a millisecond at each look: real ones may tick in tens of them."""
    looks = itertools.count()
    monkeypatch.setattr(module.time, "monotonic", lambda: 1e-3 * next(looks))


@pytest.mark.usefixtures("counted_seconds")
def test_a_line_on_a_terminal_is_written_over_itself(monkeypatch):
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
def test_elsewhere_there_is_a_line_now_and_then_and_one_at_the_end():
    stream = io.StringIO()
    line = BatchProgressLine(stream)
    for done in range(0, 1001, 10):
        line(done, 1000)
    assert stream.getvalue().startswith("1,000 of 1,000 rows, 100 %, ")
    assert stream.getvalue().count("\n") == 1


def test_true_is_that_line(capsys):
    solve(None, X, progress=True)
    assert "100 of 100 rows, 100 %" in capsys.readouterr().err


def test_time_is_told_in_hours_minutes_and_seconds():
    assert [format_duration(seconds) for seconds in (0.4, 61, 3600, 7325.6)] == ["0:00", "1:01", "1:00:00", "2:02:06"]
