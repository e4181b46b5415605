"""Processor time as the clock of the benchmarks.

The wall clock of a virtual machine may tick in tens of milliseconds, and a busy machine adds the time of other
processes. The processor clock has neither fault, but reading it is a system call: 0.6 us on a 2-core cloud machine,
which `intervals` subtracts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from time import process_time as clock

import numpy as np

READINGS = 2000
MIN_SECONDS = 1e-9
"""s; below what any call takes, so that ratios stay finite where the processor's clock is coarse too."""


@functools.cache
def clock_overhead() -> float:
    """Seconds that one reading of the clock takes; the median of many."""
    return float(np.median(np.diff([clock() for _ in range(READINGS)])))


def intervals(times: Sequence[float]) -> np.ndarray:
    """Seconds between successive readings of the clock, without the overhead of reading; (n - 1,) for n times."""
    return np.maximum(np.diff(times) - clock_overhead(), MIN_SECONDS)


def seconds_per_call(call: Callable[[], object], seconds: float = 0.02) -> float:
    """Seconds of one call, repeated until all calls together take `seconds` of processor time."""
    count, repeats, start = 0, 1, clock()
    while True:
        for _ in range(repeats):
            call()
        count += repeats
        spent = clock() - start
        if spent >= seconds or count >= 1 << 20:
            return max(spent / count, MIN_SECONDS)
        repeats = count
