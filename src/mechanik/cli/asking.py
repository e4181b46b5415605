"""What is asked of a link, from the words of the command line: which link, where, how exactly, from which start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mechanik.cli.avoiding import Avoiding
from mechanik.cli.fk import as_numbers, configuration
from mechanik.cli.usage import UsageError
from mechanik.errors import LimitsError, MechanikError, StructureError, UnknownName
from mechanik.mechanism import Joint, Link, Mechanism
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.ik import Solver
    from mechanik.objectives import Objective


def chosen_link(mechanism: Mechanism, link: str | None) -> str:
    """The link that is named, or the only one at the end of a chain that moves."""
    if link is not None:
        mechanism.link(link)
        return link
    ends = [name for name, one in mechanism.links.items() if _moves(one) and not _carries_anything(one)]
    if len(ends) == 1:
        return ends[0]
    if not ends:
        raise StructureError(f"nothing moves in {mechanism.name or 'the mechanism'}, so there is nothing to solve")
    some = ", ".join(ends[:8]) + (", ..." if len(ends) > 8 else "")
    raise UsageError(f"there are {len(ends)} ends: {some}; say by --link which of them is meant, or any other link")


def goal_at(
    link: str,
    position: list[str] | None,
    wxyz: list[str] | None,
    rpy: list[str] | None,
    degrees: bool,
    tolerance: float,
    angle_tolerance: float,
) -> Objective:
    """A point, a pose, or an orientation, by what is given of them."""
    from mechanik.objectives import Orientation, Point, PoseGoal
    from mechanik.spatial.euler import quaternion_from_euler

    place = None if position is None else _exactly(3, position, "--position")
    turn: Sequence[float] | Array | None = None if wxyz is None else _exactly(4, wxyz, "--wxyz")
    if rpy is not None:
        if turn is not None:
            raise UsageError("--wxyz and --rpy both say how the link is turned; give one of them")
        angles = [x * math.pi / 180 if degrees else x for x in _exactly(3, rpy, "--rpy")]
        turn = quaternion_from_euler(angles, order="xyz", axes="fixed")
    try:
        if place is None and turn is None:
            raise UsageError("where to? Give --position X Y Z, --wxyz W X Y Z or --rpy R P Y, or both")
        if turn is None:
            return Point(link, place or (), name=link, tolerance=tolerance, angle_tolerance=angle_tolerance)
        if place is None:
            return Orientation(link, turn, name=link, tolerance=tolerance, angle_tolerance=angle_tolerance)
        return PoseGoal(
            link, position=place, wxyz=turn, name=link, tolerance=tolerance, angle_tolerance=angle_tolerance
        )
    except MechanikError as error:
        raise UsageError(str(error)) from error


def start_at(mechanism: Mechanism, q0: list[str] | None, degrees: bool) -> Array | None:
    """q from all its numbers, or from NAME=VALUE for some joints; None if nothing is said."""
    if q0 is None:
        return None
    named = [word for word in q0 if "=" in word]
    if named and len(named) < len(q0):
        raise UsageError("--q0 takes all numbers of q, or NAME=VALUE for some joints, not both")
    return configuration(mechanism, None if named else q0, named, degrees, "--q0")


def locked_joints(mechanism: Mechanism, lock: list[str] | None) -> list[str] | None:
    """Names with spaces or commas between them, of joints or of single freedoms."""
    if lock is None:
        return None
    names = [name for word in lock for name in word.split(",") if name]
    known = (*mechanism.joints, *mechanism.space.v_names)
    for name in names:
        if name not in known:
            raise UnknownName("joint", name, mechanism.joints)
    return names


def make_solver(
    mechanism: Mechanism,
    goal: Objective,
    lock: list[str] | None,
    restarts: int | None,
    avoiding: Avoiding,
) -> Solver:
    """
    Args:
        restarts: None: what is usual.
    """
    from mechanik.ik import Solver  # loads kernels, which wrong words need not wait for

    options: dict[str, Any] = {} if restarts is None else {"restarts": restarts}
    try:
        return Solver(mechanism, goal, lock=lock, avoid=avoiding.collider, clearance=avoiding.clearance, **options)
    except LimitsError as error:
        raise UsageError(str(error)) from error


def _exactly(count: int, words: list[str], option: str) -> list[float]:
    found = as_numbers(",".join(words), option)
    if len(found) != count:
        raise UsageError(f"{option} takes {count} numbers, not {len(found)}")
    return found


def _moves(link: Link) -> bool:
    frame = link.parent
    while frame is not None:
        if isinstance(frame, Joint) and frame.dof:
            return True
        frame = frame.parent
    return False


def _carries_anything(link: Link) -> bool:
    """Whether a joint that belongs to the tree hangs on it."""
    return any(isinstance(child, Joint) and not child.is_closure for child in link.children)
