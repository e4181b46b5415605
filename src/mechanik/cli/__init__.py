"""The command `mechanik`: looks at, checks and converts mechanisms, computes poses, and solves for joint values.

Exit codes: 0 fine; 1 the answer is no (a check failed, a file is no mechanism, the result could not be written);
2 wrong use (an unknown command, option, joint or file, a folder for a file); 130 interrupted; 141 the reader
of a pipe has gone. Results go to stdout, all else to stderr. May import everything below it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

FINE, NO, WRONG_USE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code.

    Args:
        arguments: without the program's name; those of this process if they are not given.
    """
    try:
        if any(importlib.util.find_spec(name) is None for name in ("cyclopts", "rich")):
            sys.stderr.write("mechanik: the command line is an optional part: pip install 'mechanik[cli]'\n")
            return WRONG_USE
        from mechanik.cli.run import run  # takes a while, in which people press Ctrl-C

        return run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
