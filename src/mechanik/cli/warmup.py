"""`mechanik warmup`: compile now what would be compiled in the background at first use."""

from __future__ import annotations

from mechanik.cli.kernel_table import print_kernels
from mechanik.tiers import warm_up


def warmup() -> None:
    """Compile all kernels now, in parallel, so that nothing runs in plain Python later.

    Needed once on a machine, and only where Mechanik was installed from sources: wheels hold compiled kernels.

    For example:

        mechanik warmup
    """
    warm_up()
    print_kernels()
