"""`mechanik demo`: tool poses of some mechanisms, and how long one takes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.table import Table

from mechanik.cli.output import fits, number, row, say, show, table
from mechanik.mechanism import Mechanism, mobility
from mechanik.spatial import to_position_wxyz

SHOWN = {
    "planar_2r": "tool",
    "scara": "tool",
    "puma560": "tool",
    "ur5": "tool0",
    "panda": "panda_hand_tcp",
    "iiwa14": "iiwa_link_ee",
    "four_bar": "coupler",
    "delta_robot": "platform",
    "stewart_platform": "platform",
}
"""Mechanisms of the gallery with the link that people care for."""
FACTS = ("mechanism", "dof", "loops", "us/pose", "tool")
POSE = ("x (m)", "y (m)", "z (m)", "qw", "qx", "qy", "qz")
CALLS = 2000


def demo() -> None:
    """Load mechanisms of the gallery and print where their tools are.

    For example:

        mechanik demo
    """
    from mechanik import gallery

    facts: list[list[str]] = []
    poses: list[list[str]] = []
    for name, tool in SHOWN.items():
        mechanism = gallery.make(name)
        loops = str(len(mechanism.closures)) if mechanism.closures else ""
        facts.append([name, str(mobility(mechanism).dof), loops, number(_microseconds(mechanism, tool), 1), tool])
        position, wxyz = to_position_wxyz(mechanism.pose(tool))
        poses.append([number(x) for x in (*position, *wxyz)])
    say(f"{len(SHOWN)} mechanisms of the gallery, each in its home configuration")
    whole = _filled(FACTS, POSE, [fact + pose for fact, pose in zip(facts, poses, strict=True)])
    if fits(whole):
        show(whole)
    else:  # side by side is wider than the window: one below the other
        show(_filled(FACTS, (), facts))
        say()
        show(_filled(("mechanism",), POSE, [[fact[0], *pose] for fact, pose in zip(facts, poses, strict=True)]))
    say("more: mechanik gallery, mechanik info gallery:panda, mechanik fk gallery:planar_2r --help")


def _filled(names: Sequence[str], numbers: Sequence[str], rows: list[list[str]]) -> Table:
    made = table(names, numbers)
    for column in made.columns[1:4]:
        column.justify = "right"
    for cells in rows:
        row(made, cells)
    return made


def _microseconds(mechanism: Mechanism, tool: str) -> float:
    q = mechanism.q
    mechanism.pose(tool, q)
    start = time.perf_counter()
    for _ in range(CALLS):
        mechanism.pose(tool, q)
    return (time.perf_counter() - start) / CALLS * 1e6
