"""The table of kernels: what runs each module."""

from __future__ import annotations

from mechanik.cli.output import aside, row, say, show, table
from mechanik.tiers import kernel_states
from mechanik.tiers.cache import cache_folder

UNITS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (0.0, "s"))


def print_kernels() -> None:
    """Tier, state and age of each module of kernels."""
    states = kernel_states()
    made = table(["kernels", "tier", "state", "age"], [])
    for one in states:
        row(made, [one.module, str(one.tier), one.state, "" if one.age is None else _text_of(one.age)])
    show(made)
    ready = sum(one.state == "ready" for one in states)
    say(f"{ready} of {len(states)} modules ready; compiled kernels are kept in {cache_folder()}")
    for one in states:
        if one.reason:
            aside(f"{one.module} cannot be compiled: {one.reason.strip().splitlines()[-1]}")


def _text_of(seconds: float) -> str:
    size, unit = next((size, unit) for size, unit in UNITS if seconds >= size)
    return f"{seconds / size:.0f} {unit}" if size else f"{seconds:.0f} {unit}"
