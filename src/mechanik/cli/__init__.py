"""The command line `mechanik`: inspect, check and convert mechanisms, compute poses, and solve for joint values.

Exit codes: 0 success; 1 failure (not solved, a check failed, the file is not a mechanism, the result cannot be
written); 2 usage error (unknown command, option, joint or file; a folder instead of a file); 130 interrupted; 141 the
reader of a pipe has closed it. Results are printed to stdout, notes and errors to stderr. This package is the top
layer: it may import every other package.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED, EXIT_PIPE_CLOSED = 0, 1, 2, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the command line and return its exit code.

    Args:
        arguments: the arguments without the program name. None: the arguments of this process.

    Returns:
        The exit code: 0, 1, 2, 130 or 141 (see the module docstring).

    Example:
        >>> from mechanik.cli import main
        >>> main(["fk", "gallery:planar_2r", "joint1=0", "joint2=0", "--link", "tool", "--json"])
        {
          "q": [0.0, 0.0],
          "values": {"joint1": 0.0, "joint2": 0.0},
          "links": {"tool": {"position": [1.8, 0.0, 0.0], "wxyz": [1.0, 0.0, 0.0, 0.0]}}
        }
        0
    """
    try:
        if any(importlib.util.find_spec(name) is None for name in ("cyclopts", "rich")):
            sys.stderr.write("mechanik: the command line needs optional packages: pip install 'mechanik[cli]'\n")
            return EXIT_USAGE
        from mechanik.cli.command_line import run  # slow to import: Ctrl-C during the import is handled below

        return run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
