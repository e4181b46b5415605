"""`mechanik demo`: tool poses of some mechanisms, solves of some problems, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from mechanik.cli.output import fits, number, row, say, show, table
from mechanik.mechanism import Mechanism, mobility
from mechanik.spatial import to_position_wxyz
from mechanik.stopwatch import seconds_per_call
from mechanik.tiers import Tier, kernel_states

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
    "humanoid": "left_hand",
}
"""Mechanisms of the gallery with the link that people care for."""
FACTS = ("mechanism", "dof", "loops", "us/pose", "tool")
POSE = ("x (m)", "y (m)", "z (m)", "qw", "qx", "qy", "qz")
ASKED = ("mechanism", "asked", "outcome")
FOUND = ("off (m)", "off (rad)", "gap", "iterations", "us/solve")


def demo() -> None:
    """Load mechanisms of the gallery, print where their tools are, and solve for where they should be.

    For example:

        mechanik demo
    """
    _poses()
    say()
    _solves()
    say()
    _say_what_ran()
    say("more: mechanik gallery, mechanik info gallery:panda, mechanik fk gallery:planar_2r --help")


def _say_what_ran() -> None:
    """That times are not those of compiled kernels, if they are not."""
    used = kernel_states(only_used=True)
    if all(one.tier != Tier.PLAIN for one in used):
        return
    if any(one.state == "compiling" for one in used):
        say("These times are of plain Python: kernels are being compiled in the background. Run it again in a minute.")
    elif all(one.state == "ready" for one in used):
        say("These times are of plain Python, as MECHANIK_KERNELS asks for.")
    else:
        say("These times are of plain Python: kernels are not compiled (mechanik info --kernels says why).")


def _poses() -> None:
    from mechanik import gallery

    facts: list[list[str]] = []
    poses: list[list[str]] = []
    for name, tool in SHOWN.items():
        mechanism = gallery.make(name)
        loops = str(len(mechanism.closures)) if mechanism.closures else ""
        facts.append([name, str(mobility(mechanism).dof), loops, number(_microseconds(mechanism, tool), 1), tool])
        position, wxyz = to_position_wxyz(mechanism.pose(tool))
        poses.append([number(x) for x in (*position, *wxyz)])
    say(f"Where tools are: {len(SHOWN)} mechanisms of the gallery, each in its home configuration", style="bold")
    _show(FACTS, POSE, [fact + pose for fact, pose in zip(facts, poses, strict=True)], right=(1, 2, 3))


def _solves() -> None:
    from mechanik.cli.demo_tasks import carry_out, tasks

    outcomes = [carry_out(task) for task in tasks()]
    say(f"How to get there: {len(outcomes)} problems, some of them out of reach", style="bold")
    rows: list[list[str]] = []
    for one in outcomes:
        verdict = "solved" if one.solution.success else one.solution.status.name.lower()
        errors = [f"{error:.2g}" for error in (one.position, one.angle)]
        gap = "" if one.gap is None else f"{one.gap:.1g}"
        spent = [str(one.solution.iterations), number(one.seconds * 1e6, 0)]
        rows.append([one.task.mechanism, one.task.asked, verdict, *errors, gap, *spent])
    _show(ASKED, FOUND, rows)
    say("off: the objective that is farthest off; gap: the loop that is; closest: as near as it comes")
    last = outcomes[-1].solution
    if not last.success:
        held = [f"{name} {error.position:.1g}" for name, error in last.errors.items() if error.position]
        say(f"what the {outcomes[-1].task.mechanism} that cannot reach is off by (m): {', '.join(held)}")


def _show(names: Sequence[str], numbers: Sequence[str], rows: list[list[str]], right: Sequence[int] = ()) -> None:
    """One table, or two below each other where it is wider than the window."""
    whole = _filled(names, numbers, rows, right)
    if fits(whole):
        show(whole)
        return
    width = len(names)
    show(_filled(names, (), [cells[:width] for cells in rows], right))
    say()
    show(_filled(names[:1], numbers, [[cells[0], *cells[width:]] for cells in rows]))


def _filled(names: Sequence[str], numbers: Sequence[str], rows: list[list[str]], right: Sequence[int] = ()) -> Table:
    made = table(names, numbers)
    for k in right:
        made.columns[k].justify = "right"
    for cells in rows:
        row(made, cells)
    return made


def _microseconds(mechanism: Mechanism, tool: str) -> float:
    q = mechanism.q
    mechanism.pose(tool, q)  # which compiles
    return 1e6 * seconds_per_call(lambda: mechanism.pose(tool, q))
