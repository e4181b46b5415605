"""The table of kernels: what runs each module."""

from __future__ import annotations

from typing import Any

from mechanik.cli.output import aside, row, say, show, table
from mechanik.tiers import kernel_states
from mechanik.tiers.availability import last_line
from mechanik.tiers.cache import cache_folder

UNITS = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"))


def print_kernels() -> None:
    """Tier, state and age of each module of kernels."""
    states = kernel_states()
    made = table(["kernels", "tier", "state", "age"], [])
    for one in states:
        row(made, [one.module, str(one.tier), one.state, "" if one.age is None else _text_of(one.age)])
    show(made)
    ready = sum(one.state == "ready" for one in states)
    folder = cache_folder()
    kept = "" if folder is None else f"; compiled kernels are kept in {folder}"
    say(f"{ready} of {len(states)} modules ready{kept}")
    for one in states:
        if one.state == "failed" and one.reason:
            aside(f"{one.module} cannot be compiled: {last_line(one.reason)}")
    for state, effect in (("not compiled", "answers are slower"), ("missing", "nothing can be solved")):
        for reason in dict.fromkeys(one.reason for one in states if one.state == state and one.reason):
            aside(f"{effect}: {reason}")


def kernel_data() -> dict[str, Any]:
    """The same for programs; ages in seconds."""
    folder = cache_folder()
    modules = [
        {"module": one.module, "tier": str(one.tier), "state": one.state, "age": one.age, "reason": one.reason}
        for one in kernel_states()
    ]
    return {"cache": None if folder is None else str(folder), "modules": modules}


def _text_of(seconds: float) -> str:
    size, unit = next((one for one in UNITS if seconds >= one[0]), UNITS[-1])
    return f"{seconds / size:.0f} {unit}"
