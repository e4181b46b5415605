"""`mechanik demo`: compute tool poses of gallery mechanisms, solve example tasks, and time both."""

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
MECHANISM_COLUMNS = ("mechanism", "dofs", "loops", "us/pose", "tool link")
POSE_COLUMNS = ("x (m)", "y (m)", "z (m)", "qw", "qx", "qy", "qz")
TASK_COLUMNS = ("mechanism", "task", "outcome")
RESULT_COLUMNS = ("error (m)", "error (rad)", "closure error", "iterations", "us/solve")


def demo() -> None:
    """Print tool poses of gallery mechanisms, solve example tasks, and time both.

    For example:

        mechanik demo
    """
    _print_poses()
    print_out()
    _print_solves()
    print_out()
    _print_tier_note()
    print_out("more: mechanik gallery, mechanik info gallery:panda, mechanik fk gallery:planar_2r --help")


def _print_tier_note() -> None:
    """Print a note if a kernel runs in plain Python instead of machine code."""
    states = kernel_states(only_used=True)
    if all(kernel.tier != Tier.PLAIN for kernel in states):
        return
    if any(kernel.state == "compiling" for kernel in states):
        print_out(
            "These times include plain Python: kernels are being compiled in the background. Run the demo again in a "
            "minute."
        )
    elif all(kernel.state == "ready" for kernel in states):
        print_out("These times are of plain Python, because MECHANIK_KERNELS selects plain Python.")
    else:
        print_out(
            "These times include plain Python: not all kernels are compiled (`mechanik info --kernels` shows the "
            "reason)."
        )


def _print_poses() -> None:
    """Print a table of mechanisms with the pose of the tool and the time of its computation."""
    from mechanik import gallery

    description_rows: list[list[str]] = []
    pose_rows: list[list[str]] = []
    for name, tool_link in TOOL_LINKS.items():
        mechanism = gallery.make(name)
        loop_text = str(len(mechanism.closures)) if mechanism.closures else ""
        description_rows.append(
            [
                name,
                str(mobility(mechanism).dof),
                loop_text,
                format_number(_pose_microseconds(mechanism, tool_link), 1),
                tool_link,
            ]
        )
        position, wxyz = to_position_wxyz(mechanism.pose(tool_link))
        pose_rows.append([format_number(value) for value in (*position, *wxyz)])
    print_out(f"Tool poses: {len(TOOL_LINKS)} mechanisms of the gallery, each in its home configuration", style="bold")
    _print_in_terminal_width(
        MECHANISM_COLUMNS,
        POSE_COLUMNS,
        [description + pose_cells for description, pose_cells in zip(description_rows, pose_rows, strict=True)],
        right_aligned=(1, 2, 3),
    )


def _print_solves() -> None:
    """Solve the demo tasks and print a table of their results."""
    from mechanik.cli.demo_tasks import make_demo_tasks, run_demo_task

    results = [run_demo_task(task) for task in make_demo_tasks()]
    print_out(f"Solves: {len(results)} tasks, 3 of the targets are out of reach", style="bold")
    rows: list[list[str]] = []
    for result in results:
        outcome = "solved" if result.solution.success else result.solution.status.name.lower()
        errors = [f"{error:.2g}" for error in (result.position_error, result.rotation_error)]
        closure_error_text = "" if result.closure_error is None else f"{result.closure_error:.1g}"
        effort = [str(result.solution.iterations), format_number(result.seconds * 1e6, 0)]
        rows.append([result.task.gallery_name, result.task.description, outcome, *errors, closure_error_text, *effort])
    _print_in_terminal_width(TASK_COLUMNS, RESULT_COLUMNS, rows)
    print_out(
        "error: largest error of all objectives; closure error: largest error of all loops, m or rad; closest or "
        "stalled: not solved, the errors are those of the best configuration that was found"
    )
    last_solution = results[-1].solution
    if not last_solution.success:
        error_texts = [f"{name} {error.position:.1g}" for name, error in last_solution.errors.items() if error.position]
        print_out(
            f"position errors of the {results[-1].task.gallery_name} with the hand out of reach (m): "
            f"{', '.join(error_texts)}"
        )


def _print_in_terminal_width(
    text_columns: Sequence[str], number_columns: Sequence[str], rows: list[list[str]], right_aligned: Sequence[int] = ()
) -> None:
    """Print one table, or two tables below each other if one table is wider than the terminal.

    Args:
        text_columns: titles of the text columns.
        number_columns: titles of the number columns.
        rows: cells of all columns.
        right_aligned: indices of text columns to align right.
    """
    table = _make_filled_table(text_columns, number_columns, rows, right_aligned)
    if fits_terminal(table):
        print_table(table)
        return
    text_column_count = len(text_columns)
    print_table(_make_filled_table(text_columns, (), [cells[:text_column_count] for cells in rows], right_aligned))
    print_out()
    print_table(
        _make_filled_table(text_columns[:1], number_columns, [[cells[0], *cells[text_column_count:]] for cells in rows])
    )


def _make_filled_table(
    text_columns: Sequence[str], number_columns: Sequence[str], rows: list[list[str]], right_aligned: Sequence[int] = ()
) -> Table:
    """Make a table with rows; the arguments are as for `_print_in_terminal_width`."""
    table = make_table(text_columns, number_columns)
    for k in right_aligned:
        table.columns[k].justify = "right"
    for cells in rows:
        add_row(table, cells)
    return table


def _pose_microseconds(mechanism: Mechanism, link: str) -> float:
    """Return the processor time of one pose of a link, in microseconds."""
    q = mechanism.q
    mechanism.pose(link, q)  # load the kernels before timing
    return 1e6 * seconds_per_call(lambda: mechanism.pose(link, q))
