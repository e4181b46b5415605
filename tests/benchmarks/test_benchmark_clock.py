"""The clock of the benchmarks, also where it is coarse: no time is 0, so that every ratio can be printed."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import processor_clock
from processor_clock import MIN_SECONDS, clock_overhead, intervals, seconds_per_call


def test_overhead_of_reading_the_clock_is_subtracted():
    cost = clock_overhead()
    assert 0.0 <= cost < 1e-3
    assert intervals([1.0, 1.5, 2.5]) == pytest.approx([0.5 - cost, 1.0 - cost])


def test_no_interval_is_zero_or_negative():
    assert (intervals([1.0, 1.0, 0.9, 1.0]) >= MIN_SECONDS).all()
    assert intervals([1.0]).shape == (0,)


@pytest.mark.parametrize("tick", [1e-9, 4e-3, 0.016])
def test_call_is_repeated_until_its_time_is_measurable(monkeypatch, tick):
    """With a coarse clock the number of targets of a round was a division by zero."""
    spent = 0.0

    def call():
        nonlocal spent
        spent += 2e-5

    monkeypatch.setattr(processor_clock, "clock", lambda: spent // tick * tick)
    assert seconds_per_call(call) == pytest.approx(2e-5, rel=0.5)


def test_measurement_ends_with_a_clock_that_does_not_advance(monkeypatch):
    monkeypatch.setattr(processor_clock, "clock", lambda: 3.0)
    assert seconds_per_call(lambda: None) == MIN_SECONDS
    assert np.isfinite(1.0 / seconds_per_call(lambda: None))
