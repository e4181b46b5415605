"""Clocks for elapsed time and for the cost of a call, robust against coarse wall clocks.

The wall clock of a virtual machine may advance in steps of tens of milliseconds, and it may jump back when a thread
moves to another core. Processor time does not jump; it advances in steps of 16 ms on Windows and in small steps
elsewhere.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

MIN_MEASURED_SECONDS = 0.05
"""Processor time for which a call is repeated, s: 3 steps of the coarsest processor clock in use, 16 ms on Windows.

With a larger value the measurement is more accurate and takes longer.
"""


thread_clock: Callable[[], float] = time.perf_counter if sys.platform == "win32" else time.thread_time
"""Clock for single short calls: the processor time of the thread, s.

On Windows it is the wall clock, because processor time advances there in steps of 16 ms and the wall clock in small
steps.
"""


def seconds_since(start: float) -> float:
    """Return the wall time since `start`, s, never negative; `start` is a value of `time.perf_counter`."""
    return max(0.0, time.perf_counter() - start)


def seconds_per_call(
    call: Callable[[], object], min_seconds: float = MIN_MEASURED_SECONDS, max_calls: int = 1 << 20
) -> float:
    """Measure the processor time of a call, s, as the mean over repeated calls.

    Args:
        call: the function.
        min_seconds: smallest total processor time of the repeated calls, s.
        max_calls: largest number of calls; it has priority over `min_seconds`.

    Returns:
        Processor time per call, s; 0 if all calls together take no measurable time.
    """
    total_call_count, next_call_count, start = 0, 1, time.process_time()
    while True:
        for _ in range(next_call_count):
            call()
        total_call_count += next_call_count
        elapsed = time.process_time() - start
        if elapsed >= min_seconds or total_call_count >= max_calls:
            return max(0.0, elapsed) / total_call_count
        # estimate of the calls that are still needed; limited to the number of calls so far
        missing_call_count = total_call_count * (min_seconds / elapsed - 1.0) if elapsed > 0.0 else total_call_count
        next_call_count = max(1, min(total_call_count, int(missing_call_count) + 1, max_calls - total_call_count))
