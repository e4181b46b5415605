"""Processor time as the clock of the benchmarks.

The wall clock of a virtual machine may tick in tens of milliseconds, and a busy machine adds to it what others do. The
clock of the processor has neither fault, but a look at it is a call of the system: 0.6 us on a 2-core cloud machine,
which `intervals` takes off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from time import process_time as clock

import numpy as np

LOOKS = 2000
LEAST = 1e-9
"""s; below what any call takes, so that ratios stay finite where the processor's clock is coarse too."""


@functools.cache
def cost_of_look() -> float:
    """Seconds that one look at the clock takes; the median of many."""
    return float(np.median(np.diff([clock() for _ in range(LOOKS)])))


def intervals(times: Sequence[float]) -> np.ndarray:
    """Seconds between successive looks at the clock, without what the looks take; (n - 1,) for n times."""
    return np.maximum(np.diff(times) - cost_of_look(), LEAST)


def seconds_per_call(call: Callable[[], object], seconds: float = 0.02) -> float:
    """Seconds of one call, repeated until all calls together take `seconds` of processor time."""
    count, repeats, begun = 0, 1, clock()
    while True:
        for _ in range(repeats):
            call()
        count += repeats
        spent = clock() - begun
        if spent >= seconds or count >= 1 << 20:
            return max(spent / count, LEAST)
        repeats = count
