"""The clock of the benchmarks, also where it is coarse: no time is 0, so that every ratio can be printed."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import processor_clock
from processor_clock import LEAST, cost_of_look, intervals, seconds_per_call


def test_what_a_look_at_the_clock_takes_is_taken_off():
    cost = cost_of_look()
    assert 0.0 <= cost < 1e-3
    assert intervals([1.0, 1.5, 2.5]) == pytest.approx([0.5 - cost, 1.0 - cost])


def test_no_interval_is_zero_or_negative():
    assert (intervals([1.0, 1.0, 0.9, 1.0]) >= LEAST).all()
    assert intervals([1.0]).shape == (0,)


@pytest.mark.parametrize("tick", [1e-9, 4e-3, 0.016])
def test_a_call_is_repeated_until_its_time_is_known(monkeypatch, tick):
    """With a coarse clock the number of targets of a round was a division by zero."""
    spent = 0.0

    def call():
        nonlocal spent
        spent += 2e-5

    monkeypatch.setattr(processor_clock, "clock", lambda: spent // tick * tick)
    assert seconds_per_call(call) == pytest.approx(2e-5, rel=0.5)


def test_a_clock_that_stands_still_ends_it_all_the_same(monkeypatch):
    monkeypatch.setattr(processor_clock, "clock", lambda: 3.0)
    assert seconds_per_call(lambda: None) == LEAST
    assert np.isfinite(1.0 / seconds_per_call(lambda: None))
