"""Elapsed time and the cost of a call, on machines whose wall clock is coarse or runs backwards.

The wall clock of a virtual machine may tick in tens of milliseconds, and its cores may disagree about the time, so that
the clock runs backwards when a thread changes its core. Processor time has neither fault.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

ENOUGH_SECONDS = 0.05
"""Processor time over which a call is repeated: 3 ticks of the coarsest processor clock that is in use, 16 ms on
Windows."""


def fine_time() -> float:
    """A clock for single short calls, s: the processor time of the thread, whatever the wall clock is like.

    On Windows, where processor time ticks in 16 ms and the wall clock does not, it is the wall clock.
    """
    return time.perf_counter() if sys.platform == "win32" else time.thread_time()


def seconds_since(begun: float) -> float:
    """Wall time since `begun` (s, by `time.perf_counter`), never negative."""
    return max(0.0, time.perf_counter() - begun)


def seconds_per_call(call: Callable[[], object], enough: float = ENOUGH_SECONDS, most_calls: int = 1 << 20) -> float:
    """Processor time of one call, s, as the mean over repeated calls; 0 only if `most_calls` take no time.

    Args:
        enough: s of processor time, until which the call is repeated.
        most_calls: after which the call is not repeated again.
    """
    count, calls, begun = 0, 1, time.process_time()
    while True:
        for _ in range(calls):
            call()
        count += calls
        spent = time.process_time() - begun
        if spent >= enough or count >= most_calls:
            return max(0.0, spent) / count
        # as many again as are missing by what is known, and at most twice as many as there were
        missing = count * (enough / spent - 1.0) if spent > 0.0 else count
        calls = max(1, min(count, int(missing) + 1, most_calls - count))
