"""Run Node and Chromium on one core on machines whose cores have different clocks.

On some virtual machines the monotonic clock runs backwards when a process moves to another core. Node then aborts
(`now >= timer_base`), and the network service of Chromium crashes. On one core both programs work. As a script, this
file runs a command on one core if this machine needs it, and on all cores otherwise:

    python one_core.py npm run dev

Only the standard library is imported, so that the build of the page and the tests can use this file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

PINNED_MESSAGE = (
    "The clock of this machine runs backwards between its cores, which crashes Node and Chromium: "
    "both run on one core and take longer."
)
CORE_SELECTIONS, MIN_ROUNDS = 80, 3
"""How often a test of the clock selects a core, and minimum number of rounds over all cores and back.

With more than 13 cores, the minimum number of rounds needs more selections. On a busy machine a change of core may take
longer than the difference of the clocks, so the test needs many changes. 80 selections took 1 to 40 ms on 2 cores.
"""


def clock_runs_backwards() -> bool:
    """Return whether the monotonic clock shows an earlier time after a change of core; False if this cannot be tested.

    The calling thread runs on each of its allowed cores, in both orders. Its allowed cores are the same afterwards.
    """
    if sys.platform != "linux":  # other systems synchronize the clocks, or a process cannot choose its cores
        return False
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return False
    latest_ns = time.monotonic_ns()
    try:
        for _ in range(max(MIN_ROUNDS, CORE_SELECTIONS // (2 * len(cores)))):
            for core in (*cores, *reversed(cores)):
                os.sched_setaffinity(0, {core})
                now_ns = time.monotonic_ns()
                if now_ns < latest_ns:
                    return True
                latest_ns = now_ns
    except OSError:  # a core was removed, or a sandbox does not allow the call
        return False
    finally:
        _set_allowed_cores(cores)
    return False


def pin_to_one_core(report: Callable[[str], None]) -> bool:
    """Restrict the calling thread, and all processes that it starts later, to one core if the clock runs backwards.

    Args:
        report: called with a message when the thread is restricted; not called if the thread has only one core.

    Returns:
        Whether the thread was restricted.
    """
    if sys.platform != "linux" or not clock_runs_backwards():
        return False
    cores = sorted(os.sched_getaffinity(0))
    _set_allowed_cores([cores[os.getpid() % len(cores)]])  # spreads parallel test workers over the cores
    report(PINNED_MESSAGE)
    return True


def _set_allowed_cores(cores: list[int]) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)


def print_to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> int:
    """Run the command in the arguments and return its exit code."""
    if len(sys.argv) < 2:
        print_to_stderr("usage: python one_core.py COMMAND [ARGUMENT ...]")
        return 2
    command = [shutil.which(sys.argv[1]) or sys.argv[1], *sys.argv[2:]]
    try:
        if pin_to_one_core(print_to_stderr):
            os.execvp(command[0], command)
        return subprocess.run(command, check=False).returncode
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print_to_stderr(f"{command[0]} cannot be started: {error}")
        return 127


if __name__ == "__main__":
    sys.exit(main())
