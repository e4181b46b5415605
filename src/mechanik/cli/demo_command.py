"""`mechanik demo`: tool poses and solves of gallery mechanisms, with their times."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from mechanik.cli.output import add_row, fits_terminal, format_number, make_table, print_out, print_table
from mechanik.model import Mechanism, mobility
from mechanik.processor_clock import seconds_per_call
from mechanik.spatial import to_position_wxyz
from mechanik.tiers import Tier, kernel_states

TOOL_LINKS = {
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
"""Tool link of each gallery mechanism in the demo."""
MECHANISM_COLUMNS = ("mechanism", "dof", "loops", "us/pose", "tool")
POSE_COLUMNS = ("x (m)", "y (m)", "z (m)", "qw", "qx", "qy", "qz")
TASK_COLUMNS = ("mechanism", "task", "outcome")
RESULT_COLUMNS = ("error (m)", "error (rad)", "closure error", "iterations", "us/solve")


def demo() -> None:
    """Print tool poses of gallery mechanisms, solve example tasks, and time both.

    For example:

        mechanik demo
    """
    _poses()
    print_out()
    _solves()
    print_out()
    _print_tier_note()
    print_out("more: mechanik gallery, mechanik info gallery:panda, mechanik fk gallery:planar_2r --help")


def _print_tier_note() -> None:
    """Print a note if the times are those of plain Python and not of compiled kernels."""
    states = kernel_states(only_used=True)
    if all(kernel.tier != Tier.PLAIN for kernel in states):
        return
    if any(kernel.state == "compiling" for kernel in states):
        print_out(
            "These times are of plain Python: kernels are being compiled in the background. Run it again in a minute."
        )
    elif all(kernel.state == "ready" for kernel in states):
        print_out("These times are of plain Python, because MECHANIK_KERNELS selects it.")
    else:
        print_out(
            "These times are of plain Python: kernels are not compiled (`mechanik info --kernels` shows the reason)."
        )


def _poses() -> None:
    from mechanik import gallery

    facts: list[list[str]] = []
    poses: list[list[str]] = []
    for name, tool in TOOL_LINKS.items():
        mechanism = gallery.make(name)
        loops = str(len(mechanism.closures)) if mechanism.closures else ""
        facts.append(
            [name, str(mobility(mechanism).dof), loops, format_number(_microseconds(mechanism, tool), 1), tool]
        )
        position, wxyz = to_position_wxyz(mechanism.pose(tool))
        poses.append([format_number(x) for x in (*position, *wxyz)])
    print_out(f"Tool poses: {len(TOOL_LINKS)} mechanisms of the gallery, each in its home configuration", style="bold")
    _show(
        MECHANISM_COLUMNS, POSE_COLUMNS, [fact + pose for fact, pose in zip(facts, poses, strict=True)], right=(1, 2, 3)
    )


def _solves() -> None:
    from mechanik.cli.demo_tasks import make_demo_tasks, run_demo_task

    outcomes = [run_demo_task(task) for task in make_demo_tasks()]
    print_out(f"Solves: {len(outcomes)} tasks, three of them out of reach", style="bold")
    rows: list[list[str]] = []
    for outcome in outcomes:
        verdict = "solved" if outcome.solution.success else outcome.solution.status.name.lower()
        errors = [f"{error:.2g}" for error in (outcome.position, outcome.angle)]
        gap = "" if outcome.closure_error is None else f"{outcome.closure_error:.1g}"
        spent = [str(outcome.solution.iterations), format_number(outcome.seconds * 1e6, 0)]
        rows.append([outcome.task.mechanism, outcome.task.description, verdict, *errors, gap, *spent])
    _show(TASK_COLUMNS, RESULT_COLUMNS, rows)
    print_out(
        "error: largest of any objective; closure error: largest of any loop; closest: the closest configuration found"
    )
    last = outcomes[-1].solution
    if not last.success:
        error_texts = [f"{name} {error.position:.1g}" for name, error in last.errors.items() if error.position]
        print_out(
            f"position errors of the {outcomes[-1].task.mechanism} with the hand out of reach (m): "
            f"{', '.join(error_texts)}"
        )


def _show(names: Sequence[str], numbers: Sequence[str], rows: list[list[str]], right: Sequence[int] = ()) -> None:
    """Print one table, or two below each other if it is wider than the terminal."""
    whole = _filled(names, numbers, rows, right)
    if fits_terminal(whole):
        print_table(whole)
        return
    width = len(names)
    print_table(_filled(names, (), [cells[:width] for cells in rows], right))
    print_out()
    print_table(_filled(names[:1], numbers, [[cells[0], *cells[width:]] for cells in rows]))


def _filled(names: Sequence[str], numbers: Sequence[str], rows: list[list[str]], right: Sequence[int] = ()) -> Table:
    table = make_table(names, numbers)
    for k in right:
        table.columns[k].justify = "right"
    for cells in rows:
        add_row(table, cells)
    return table


def _microseconds(mechanism: Mechanism, tool: str) -> float:
    q = mechanism.q
    mechanism.pose(tool, q)  # load the kernels before timing
    return 1e6 * seconds_per_call(lambda: mechanism.pose(tool, q))
