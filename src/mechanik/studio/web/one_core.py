"""Keeps Node and Chromium on one core where the cores of a machine disagree about the time.

On some virtual machines the monotonic clock runs backwards when a process changes its core. Node then aborts
(`now >= timer_base`), and the network service of Chromium crashes. On one core both run. As a script, this starts a
command on one core where that is needed, and as it is elsewhere: python one_core.py npm run dev

It imports nothing but the standard library, so that the build of the page and the tests can use it alike.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

PINNED = (
    "The clock of this machine runs backwards between its cores, which Node and Chromium do not survive: "
    "they run on one core here, and take longer."
)
VISITS, LEAST_ROUNDS = 80, 3
"""Changes of core, and rounds over all of them at least. On a busy machine a change may take longer than the clock
runs back, so few do not suffice; 80 took 1 to 40 ms on 2 cores."""


def clock_runs_backwards() -> bool:
    """Whether the monotonic clock shows an earlier time after a change of core; False where this cannot be tested.

    The calling thread visits all cores that it may run on, in both orders, and returns to where it was allowed to run.
    """
    if sys.platform != "linux":  # others let no process choose its cores, or keep the clock in step themselves
        return False
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return False
    latest = time.monotonic_ns()
    try:
        for _ in range(max(LEAST_ROUNDS, VISITS // (2 * len(cores)))):
            for core in (*cores, *reversed(cores)):
                os.sched_setaffinity(0, {core})
                now = time.monotonic_ns()
                if now < latest:
                    return True
                latest = now
    except OSError:  # a core that was taken away, or a sandbox that does not allow it
        return False
    finally:
        _allow(cores)
    return False


def pin_to_one_core(say: Callable[[str], None]) -> bool:
    """Keep the calling thread, and all that it starts from now on, on one core if the clock runs backwards.

    Args:
        say: called with a sentence if so; not again for a thread that is on one core.
    Returns:
        Whether it was necessary.
    """
    if sys.platform != "linux" or not clock_runs_backwards():
        return False
    cores = sorted(os.sched_getaffinity(0))
    _allow([cores[os.getpid() % len(cores)]])  # several workers at once spread over the cores
    say(PINNED)
    return True


def _allow(cores: list[int]) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)


def say_on_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> int:
    """Run the command in the arguments; its exit code."""
    if len(sys.argv) < 2:
        say_on_stderr("usage: python one_core.py COMMAND [ARGUMENT ...]")
        return 2
    command = [shutil.which(sys.argv[1]) or sys.argv[1], *sys.argv[2:]]
    try:
        if pin_to_one_core(say_on_stderr):
            os.execvp(command[0], command)
        return subprocess.run(command, check=False).returncode
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        say_on_stderr(f"{command[0]} does not start: {error}")
        return 127


if __name__ == "__main__":
    sys.exit(main())
