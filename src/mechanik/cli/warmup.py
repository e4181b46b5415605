"""`mechanik warmup`: compile now what would be compiled in the background at first use."""

from __future__ import annotations

from mechanik.cli import FINE, INTERRUPTED
from mechanik.cli.kernel_bar import kernel_progress
from mechanik.cli.kernel_table import print_kernels
from mechanik.cli.output import aside, count
from mechanik.tiers import ends_with_process, kernel_states, warm_up


def warmup() -> int:
    """Compile all kernels now, in parallel, so that nothing runs in plain Python later.

    Needed once on a machine, and only where Mechanik was installed from sources: wheels hold compiled kernels. Ctrl-C
    ends the command, but not the compiler: it goes on in the background.

    For example:

        mechanik warmup
        mechanik info --kernels
    """
    try:
        warm_up(kernel_progress())
    except KeyboardInterrupt:
        aside(_what_goes_on())
        return INTERRUPTED
    print_kernels()
    return FINE


def _what_goes_on() -> str:
    compiling = sum(one.state == "compiling" for one in kernel_states())
    if not compiling:
        return "Interrupted: nothing is compiled in the background."
    if ends_with_process():
        return "Interrupted: compiling ends with this command, since the cache folder cannot be written."
    return (
        f"Interrupted: {count(compiling, 'kernel module')} will be compiled in the background all the same; "
        "`mechanik info --kernels` shows how far it is."
    )
