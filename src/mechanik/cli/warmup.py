"""`mechanik warmup`: compile now what would be compiled at first use."""

from __future__ import annotations

from mechanik import kernels
from mechanik.cli.output import number, row, say, show, table
from mechanik.solvers.methods import warm_up_methods


def warmup(*, methods: bool = False) -> None:
    """Compile the kernels, once on this machine, so that nothing waits for it later.

    For example:

        mechanik warmup --methods

    Parameters
    ----------
    methods
        Those of every solver too, not of the default one alone.
    """
    seconds = warm_up_methods() if methods else kernels.warm_up()
    made = table(["kernels"], ["seconds"])
    for name, taken in seconds.items():
        row(made, [name, number(max(0.0, taken), 2)])
    show(made)
    say(f"kept in {kernels.cache_folder()}")
