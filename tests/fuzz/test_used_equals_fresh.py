"""A used solver answers like a fresh one, bit by bit; `make histories` compares 20,000 histories."""

from __future__ import annotations

from fuzz_cases import FuzzCase
from fuzz_histories import check_history
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=40)
@given(st.integers(0, 2**31 - 1))
def test_used_solver_gives_same_answers_as_fresh_ones(seed):
    """Mechanisms, objectives, methods and options of all kinds; up to 20 calls from up to 4 threads."""
    faults = check_history(FuzzCase(seed)).faults
    assert not faults, f"run: python tests/fuzz/run_fuzz.py histories --case {seed}\n{faults}"
