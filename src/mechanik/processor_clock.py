"""Clocks for elapsed time and for the cost of a call, robust against coarse wall clocks.

The wall clock of a virtual machine may tick in tens of milliseconds, and it may go backwards when a thread changes its
core. Processor time has neither problem.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

MIN_MEASURED_SECONDS = 0.05
"""Processor time, s, over which a call is repeated: 3 ticks of the coarsest processor clock in use, 16 ms on Windows.

A larger value is more accurate and takes longer.
"""


def thread_clock() -> float:
    """Return the processor time of the thread, s, a clock for single short calls.

    On Windows it is the wall clock, since processor time ticks in 16 ms there and the wall clock does not.
    """
    return time.perf_counter() if sys.platform == "win32" else time.thread_time()


def seconds_since(start: float) -> float:
    """Return the wall time since `start` (s, of `time.perf_counter`), never negative."""
    return max(0.0, time.perf_counter() - start)


def seconds_per_call(
    call: Callable[[], object], min_seconds: float = MIN_MEASURED_SECONDS, max_calls: int = 1 << 20
) -> float:
    """Measure the processor time of a call, s, as the mean over repeated calls.

    Args:
        call: the function.
        min_seconds: s of processor time until which the call is repeated.
        max_calls: largest number of calls.

    Returns:
        s; 0 only if `max_calls` calls take no measurable time.
    """
    count, calls, start = 0, 1, time.process_time()
    while True:
        for _ in range(calls):
            call()
        count += calls
        elapsed = time.process_time() - start
        if elapsed >= min_seconds or count >= max_calls:
            return max(0.0, elapsed) / count
        # the estimated number of missing calls; at most a doubling of the calls so far
        missing = count * (min_seconds / elapsed - 1.0) if elapsed > 0.0 else count
        calls = max(1, min(count, int(missing) + 1, max_calls - count))
