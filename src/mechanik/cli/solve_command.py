"""`mechanik solve`: find joint values that bring a link to a target, and print solutions as tables or JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import Parameter
from rich.table import Table

from mechanik.cli import EXIT_FAILED, EXIT_OK
from mechanik.cli.file_args import UsageError, atomic_write, open_mechanism, output_path
from mechanik.cli.output import (
    add_row,
    console,
    fits_terminal,
    format_number,
    make_table,
    print_json,
    print_labelled,
    print_note,
    print_out,
    print_table,
)
from mechanik.cli.solve_args import (
    make_solver,
    parse_collision_args,
    parse_goal,
    parse_locked_joints,
    parse_start,
    select_tip_link,
)
from mechanik.formats.json.writer import format_json
from mechanik.model import Mechanism
from mechanik.spatial import to_position_wxyz
from mechanik.spatial.array import Array
from mechanik.validation import format_count

if TYPE_CHECKING:
    from mechanik.collision import Contact
    from mechanik.solver import Solution
    from mechanik.solver.search.solution_set import SolutionSet


def solution_data(link: str, solution: Solution, nearest_pair: Contact | None) -> dict[str, Any]:
    """Return a solution as JSON data, with the pose of the link at q whether or not the target is reached.

    Args:
        nearest_pair: the nearest checked pair of bodies at q; None without collision avoidance.
    """
    (error,) = solution.errors.values()
    return {
        "success": solution.success,
        "status": solution.status.name,
        "message": solution.message,
        "link": link,
        "q": solution.q.tolist(),
        "values": _values_data(solution.mechanism, solution.q),
        "pose": _pose_data(solution.mechanism, link, solution.q),
        "errors": {"position": _none_if_infinite(error.position), "rotation": _none_if_infinite(error.rotation)},
        "at_limit": dict(solution.active_limits),
        "contacts": [_contact_data(contact) for contact in solution.contacts],
        "nearest": None if nearest_pair is None else _contact_data(nearest_pair),
        "iterations": solution.iterations,
        "attempts": solution.attempts,
        "seconds": solution.seconds,
    }


def solution_set_data(mechanism: Mechanism, link: str, solutions: SolutionSet) -> dict[str, Any]:
    """Return a solution set as JSON data, the solution nearest to the start first."""
    return {
        "success": True,
        "link": link,
        "complete": solutions.complete,
        "explanation": solutions.explanation,
        "redundancy": solutions.redundancy,
        "solutions": [
            {"q": q.tolist(), "values": _values_data(mechanism, q), "distance": float(distance)}
            for q, distance in zip(solutions.q, solutions.distance, strict=True)
        ],
    }


def print_solution(
    link: str, solution: Solution, search_message: str = "", nearest_pair: Contact | None = None
) -> None:
    """Print the joint values, status and errors of a solution, and the pose of the link if the target is not reached.

    Args:
        search_message: message of a search for all solutions, if it found no solution.
        nearest_pair: the nearest checked pair of bodies; None without collision avoidance.
    """
    table = _value_table(solution, digits=6)
    print_table(table if fits_terminal(table) else _value_table(solution, digits=4))
    print_out()
    if solution.success:
        print_out(f"solved: {link} reaches its target", style="green")
    else:
        print_labelled(f"not solved ({solution.status.name}):", solution.message, 2, style="red")
        if search_message:
            print_labelled("all solutions:", search_message, 2)
        if solution.status.name != "IN_COLLISION":  # in collision, the link is at its target
            pose = _pose_data(solution.mechanism, link, solution.q)
            position, wxyz = (" ".join(format_number(x) for x in pose[name]) for name in ("position", "wxyz"))
            print_labelled("closest:", f"{link} at {position}, wxyz {wxyz}", 2)
        for contact in solution.contacts[1:]:  # the message contains the deepest contact
            print_labelled("and:", str(contact), 2, style="red")
    print_out(f"error {_format_error(solution)}")
    if nearest_pair is not None and not solution.contacts:
        print_labelled("nearest:", str(nearest_pair), 2)
    effort = f"{format_count(solution.iterations, 'iteration')}, {format_count(solution.attempts, 'attempt')}"
    print_out(f"{effort}, {format_duration(solution.seconds)}")


def print_solution_set(mechanism: Mechanism, solutions: SolutionSet, limit: int | None) -> None:
    """Print a table with one column per solution, in groups that fit into the terminal.

    Args:
        limit: largest number of solutions of the search; None: no limit.
    """
    for first_column, end_column in _column_groups(mechanism, solutions.q):
        print_table(_set_table(mechanism, solutions, first_column, end_column))
        print_out()
    description = "all solutions that exist" if solutions.complete else "all solutions that were found"
    if solutions.redundancy:
        description = f"samples of self-motions with {format_count(solutions.redundancy, 'dof')}"
    if limit is not None and len(solutions) == limit:
        description = "the largest number that --limit allows"
    print_labelled(
        f"{format_count(len(solutions), 'solution')}:", f"{description}, nearest to the start first", 2, style="green"
    )
    print_labelled("found:", solutions.explanation, 2)


def format_duration(seconds: float) -> str:
    """Format a duration in us, ms, s or min."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def angle_mask(mechanism: Mechanism) -> Array:
    """Return a mask (nq,) of the numbers of q that are angles; the four numbers of a quaternion are not angles."""
    space = mechanism.space
    is_angle = np.zeros(space.nq, dtype=bool)
    is_angle[space.scalars_q] = space.rotates[space.scalars_v]
    return is_angle


def _value_table(solution: Solution, digits: int) -> Table:
    mechanism = solution.mechanism
    space, active_limits = mechanism.space, solution.active_limits
    table = make_table(["joint"], ["value"])
    table.add_column("unit", no_wrap=True)
    for name in ("degrees", "lower", "upper"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("at a limit", no_wrap=True)
    scalar_indices = set(space.scalars_q.tolist())  # without the numbers of quaternions
    is_movable = np.ones(space.nq, dtype=bool)
    is_movable[space.scalars_q] = solution.moving_dofs[space.scalars_v]
    entries = zip(space.q_names, solution.q, angle_mask(mechanism), space.lower, space.upper, strict=True)
    for k, (name, value, is_angle, low, high) in enumerate(entries):
        unit = "" if k not in scalar_indices else "rad" if is_angle else "m"
        degrees = format_number(math.degrees(value), digits - 3) if is_angle else ""
        limits = [format_number(low), format_number(high)] if unit else ["", ""]
        cells = [name, format_number(value, digits), unit, degrees, *limits, active_limits.get(name, "")]
        add_row(table, cells, style="yellow" if name in active_limits else "" if is_movable[k] else "dim")
    return table


def _column_groups(mechanism: Mechanism, q: Array) -> list[tuple[int, int]]:
    """Return the ranges (first, end) of the solutions q (N, nq) that fit into the width of the terminal."""
    out = console()
    if not out.is_terminal:
        return [(0, len(q))]
    name_width = max(map(len, (*mechanism.space.q_names, "distance")))
    column_width = 2 + max((len(format_number(x)) for x in q.ravel()), default=1)
    column_count = max((out.width - name_width) // column_width, 1)
    return [(k, min(k + column_count, len(q))) for k in range(0, len(q), column_count)]


def _set_table(mechanism: Mechanism, solutions: SolutionSet, first_column: int, end_column: int) -> Table:
    table = make_table(["joint"], [str(k + 1) for k in range(first_column, end_column)])
    for k, name in enumerate(mechanism.space.q_names):
        add_row(table, [name, *(format_number(x) for x in solutions.q[first_column:end_column, k])])
    add_row(
        table,
        ["distance", *(format_number(float(x)) for x in solutions.distance[first_column:end_column])],
        style="dim",
    )
    return table


def _values_data(mechanism: Mechanism, q: Array) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in mechanism.values(q).items()}


def _pose_data(mechanism: Mechanism, link: str, q: Array) -> dict[str, list[float]]:
    position, wxyz = to_position_wxyz(mechanism.pose(link, q))
    return {"position": position.tolist(), "wxyz": wxyz.tolist()}


def _contact_data(contact: Contact) -> dict[str, Any]:
    return {"a": contact.a, "b": contact.b, "gap": contact.distance}


def _none_if_infinite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _format_error(solution: Solution) -> str:
    """Format the error in m, in rad, or in both, depending on the goal."""
    (goal,), (error,) = solution.objectives, solution.errors.values()
    length_flags = [is_length for relation in goal.relations(solution.mechanism) for is_length in relation.is_length]
    parts = [f"{error.position:.2g} m"] * any(length_flags) + [f"{error.rotation:.2g} rad"] * (not all(length_flags))
    return ", ".join(parts)


OptionValues = Annotated[list[str] | None, Parameter(consume_multiple=True)]
DEFAULT_RESTARTS = 300
"""Default largest number of restarts. It is large, because a target should count as not reachable only after a thorough
search."""


def solve(
    file: str,
    /,
    *,
    link: str | None = None,
    position: OptionValues = None,
    wxyz: OptionValues = None,
    rpy: OptionValues = None,
    degrees: bool = False,
    q0: OptionValues = None,
    tolerance: float = 1e-6,
    angle_tolerance: float = 1e-6,
    lock: OptionValues = None,
    avoid: OptionValues = None,
    obstacle: OptionValues = None,
    clearance: float = 0.0,
    allow: OptionValues = None,
    restarts: int = DEFAULT_RESTARTS,
    nearest: bool = False,
    all: bool = False,
    limit: int | None = None,
    json: bool = False,
    out: str | None = None,
) -> int:
    """Find joint values that bring a link to a position, an orientation, or both.

    The exit code is 0 if the target is reached. Otherwise it is 1, and the closest configuration is shown. With --avoid
    or --obstacle, a configuration in collision does not count as solved.

    For example:

        mechanik solve gallery:ur5 --position 0.4 -0.2 0.5
        mechanik solve robot.urdf --link tool0 --position 0.4 0.2 0.5 --rpy 180 0 90 --degrees
        mechanik solve robot.urdf --position 0.4 0.2 0.5 --wxyz 0 1 0 0 --all --json
        mechanik solve gallery:ur5 --position 0.4 0.2 0.3 --avoid self --obstacle table=box:1,1,0.05@0.6,0,-0.1

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    link
        Link that must reach the target. Not needed if the mechanism has a single tip link.
    position
        Target position of the link origin: x y z in the world frame, in m.
    wxyz
        Target orientation in the world frame: quaternion w x y z.
    rpy
        Target orientation as roll, pitch and yaw about the fixed axes x, y and z, as in URDF.
    degrees
        Angles of --rpy, --q0 and --obstacle are given in degrees.
    q0
        Start configuration: all numbers of q in the order that `mechanik info` shows, or NAME=VALUE for single joints.
        The search starts here, but after a restart the solution can be far away (see --nearest). Default: the
        configuration in FILE.
    tolerance
        Position tolerance in m. Default: 1e-6.
    angle_tolerance
        Angle tolerance in rad. Default: 1e-6.
    lock
        Joints, or dofs such as base.X, that must not move.
    avoid
        `self`: reject solutions in which links collide with each other, by their collision shapes.
    obstacle
        Obstacles to avoid, as NAME=KIND:SIZES@X,Y,Z or NAME=KIND:SIZES@X,Y,Z,ROLL,PITCH,YAW in m and rad. Name,
        position (default: the origin) and rotation are optional. Kinds: box:X,Y,Z, sphere:R, capsule:R,LENGTH and
        cylinder:R,LENGTH (both along z), mesh:FILE, and floor (solid below its plane).
    clearance
        Minimum distance of all checked pairs in m. Default: 0.
    allow
        Pairs of links or obstacles that may touch, for example `hand,table`.
    restarts
        Maximum number of restarts if the first start fails. Default: 300.
    nearest
        Search for all solutions and show the solution nearest to the start.
    all
        Show all solutions, nearest to the start first. For a redundant arm: samples of each self-motion.
    limit
        With --all: largest number of solutions to show.
    json
        Print JSON with full precision.
    out
        Also write the result as JSON to this .json file.
    """
    if limit is not None and (not all or limit < 1):
        raise UsageError("--limit needs --all, and must be at least 1")
    out_path = None if out is None else output_path(out, (".json",))
    mechanism = open_mechanism(file)
    tip_link = select_tip_link(mechanism, link)
    goal = parse_goal(tip_link, position, wxyz, rpy, degrees, tolerance, angle_tolerance)
    given_start = parse_start(mechanism, q0, degrees)
    start = mechanism.q if given_start is None else given_start
    locked_names = parse_locked_joints(mechanism, lock)
    collision_args = parse_collision_args(mechanism, avoid, obstacle, clearance, allow, degrees)
    solver = make_solver(mechanism, goal, locked_names, restarts, collision_args)
    solve_options: dict[str, Any] = {"nearest": True} if nearest else {}
    solutions = solver.solve_all(q0=start, limit=limit) if all else None
    if solutions is not None and len(solutions):
        report = solution_set_data(mechanism, tip_link, solutions)
        if not json:
            print_solution_set(mechanism, solutions, limit)
    else:  # if there is no solution, the closest configuration is shown
        solution = solver.solve(q0=start, **solve_options)
        nearest_pair = collision_args.nearest_pair(solution.q)
        report = solution_data(tip_link, solution, nearest_pair)
        if not json:
            print_solution(tip_link, solution, "" if solutions is None else solutions.explanation, nearest_pair)
    if json:
        print_json(report)
    if out_path is not None:
        with atomic_write(out_path) as temporary_path:
            temporary_path.write_text(format_json(report) + "\n", encoding="utf-8")
        print_note(f"wrote {out}", style="green")
    return EXIT_OK if report["success"] else EXIT_FAILED
