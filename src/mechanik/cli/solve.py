"""`mechanik solve`: joint values that bring a link where it shall be."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from mechanik.cli import FINE, NO
from mechanik.cli.asking import chosen_link, goal_at, locked_joints, make_solver, start_at
from mechanik.cli.avoiding import what_to_avoid
from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import aside, say_json
from mechanik.cli.replacing import file_to_write, replacing
from mechanik.cli.solve_output import as_data, print_set, print_solution, set_as_data
from mechanik.cli.usage import UsageError
from mechanik.formats.json_writer import laid_out

Words = Annotated[list[str] | None, Parameter(consume_multiple=True)]
RESTARTS = 300
"""Further starts, so that a goal is called out of reach only after a thorough search."""


def solve(
    file: str,
    /,
    *,
    link: str | None = None,
    position: Words = None,
    wxyz: Words = None,
    rpy: Words = None,
    degrees: bool = False,
    q0: Words = None,
    tolerance: float = 1e-6,
    angle_tolerance: float = 1e-6,
    lock: Words = None,
    avoid: Words = None,
    obstacle: Words = None,
    clearance: float = 0.0,
    allow: Words = None,
    restarts: int = RESTARTS,
    nearest: bool = False,
    all: bool = False,
    limit: int | None = None,
    json: bool = False,
    out: str | None = None,
) -> int:
    """Find joint values that bring a link to a position, an orientation, or both.

    The exit code is 0 if it is solved, and 1 if not; then the closest that was found is shown. What bumps
    into something that is to be avoided is not solved.

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
        The link to place; not needed where only one is at the end of a chain.
    position
        Where its origin shall be: x y z in m, in the world.
    wxyz
        How it shall be turned: a quaternion w x y z.
    rpy
        The same as roll, pitch and yaw about the fixed axes x, y and z, as in a URDF.
    degrees
        Angles are given in degrees, those of --rpy, of --q0 and of --obstacle.
    q0
        Where to start, and what to stay near: all numbers of q in the order that `mechanik info` shows, or NAME=VALUE
        for some joints. If not given, where the mechanism stands.
    tolerance
        Metres that count as there; 1e-6 if not given.
    angle_tolerance
        Radians that count as there; 1e-6 if not given.
    lock
        Joints that may not move.
    avoid
        `self`: what is found must keep the links off each other, by the shapes they have for collisions.
    obstacle
        Things that must not be bumped into: NAME=KIND:SIZES@X,Y,Z or @X,Y,Z,ROLL,PITCH,YAW, in m and rad, where the
        name and the turn may be missing. There are box:X,Y,Z, sphere:R, capsule:R,LENGTH and cylinder:R,LENGTH (along
        z), mesh:FILE, and floor, which is solid below.
    clearance
        Metres that everything keeps off everything else; 0 if not given.
    allow
        Pairs of links or obstacles that may touch, such as `hand,table`.
    restarts
        How many further starts are tried when the first does not lead there; 300 if not given.
    nearest
        Of all solutions, the one nearest to the start.
    all
        Show all solutions, nearest to the start first; of a redundant arm, some along each motion.
    limit
        With --all: show at most that many.
    json
        Print JSON for programs, with every digit.
    out
        Write that JSON to this file.
    """
    if limit is not None and (not all or limit < 1):
        raise UsageError("--limit goes with --all, and is at least 1")
    target = None if out is None else file_to_write(out, (".json",))
    mechanism = open_mechanism(file)
    end = chosen_link(mechanism, link)
    goal = goal_at(end, position, wxyz, rpy, degrees, tolerance, angle_tolerance)
    given = start_at(mechanism, q0, degrees)
    start = mechanism.q if given is None else given
    locked = locked_joints(mechanism, lock)
    avoiding = what_to_avoid(mechanism, avoid, obstacle, clearance, allow, degrees)
    solver = make_solver(mechanism, goal, locked, restarts, avoiding)
    options: dict[str, Any] = {"nearest": True} if nearest else {}
    found = solver.solve_all(q0=start, limit=limit) if all else None
    if found is not None and len(found):
        told = set_as_data(mechanism, end, found)
        if not json:
            print_set(mechanism, found, limit)
    else:  # where there is none, too, people want to know how close it comes
        solution = solver.solve(q0=start, **options)
        nearest_pair = avoiding.nearest(solution.q)
        told = as_data(end, solution, nearest_pair)
        if not json:
            print_solution(end, solution, "" if found is None else found.why, nearest_pair)
    if json:
        say_json(told)
    if target is not None:
        with replacing(target) as beside:
            beside.write_text(laid_out(told) + "\n", encoding="utf-8")
        aside(f"wrote {out}", style="green")
    return FINE if told["success"] else NO
