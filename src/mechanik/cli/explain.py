"""`mechanik explain`: what the solvers make of a mechanism, in words."""

from __future__ import annotations

from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import say


def explain(file: str, /, *, link: str | None = None) -> None:
    """Say what a mechanism is to the solvers: loops, freedoms, and which chains have a closed form, and why.

    For example:

        mechanik explain gallery:ur5
        mechanik explain robot.urdf --link hand

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    link
        The end of the chain to explain; every end if it is not given.
    """
    say(open_mechanism(file).explain(link))
