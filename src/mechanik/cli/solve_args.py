"""Arguments that several commands share: tip link, goal, start, locked joints and collision avoidance.

`make_solver` makes the solver from these arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechanik.cli.file_args import UsageError
from mechanik.cli.fk_command import parse_configuration, parse_numbers
from mechanik.errors import LimitsError, MechanikError, StructureError, UnknownName
from mechanik.model import Box, Capsule, Cylinder, HalfSpace, Joint, Link, Mechanism, Mesh, Sphere
from mechanik.model.shapes import Shape
from mechanik.spatial.array import Array
from mechanik.validation import format_count

if TYPE_CHECKING:
    from mechanik.collision import Collider, Contact, Obstacle
    from mechanik.objectives import Objective
    from mechanik.solver import Solver

SELF_COLLISION = "self"
"""Value of --avoid for collisions between links."""
SHAPE_SIZES = {"box": ("x", "y", "z"), "sphere": ("r",), "capsule": ("r", "length"), "cylinder": ("r", "length")}
"""Names of the sizes (m) of each shape; r is the radius."""
OBSTACLE_SYNTAX = "box:X,Y,Z, sphere:R, capsule:R,LENGTH, cylinder:R,LENGTH, mesh:FILE or floor"


@dataclass(frozen=True, slots=True)
class CollisionArgs:
    """Collision avoidance options of the command line.

    Attributes:
        collider: the collider with the pairs to check; None without collision avoidance.
        clearance: minimum distance, m.
    """

    collider: Collider | None = None
    clearance: float = 0.0

    def nearest_pair(self, q: Array) -> Contact | None:
        """Return the nearest checked pair of bodies at q (nq,); None if no pair is checked."""
        pairs = () if self.collider is None else self.collider.nearest_pairs(q)
        return pairs[0] if pairs else None


def parse_collision_args(
    mechanism: Mechanism,
    avoid: list[str] | None,
    obstacle: list[str] | None,
    clearance: float,
    allow: list[str] | None,
    degrees: bool = False,
) -> CollisionArgs:
    """Parse the collision avoidance options.

    Args:
        avoid: `self`, or None.
        obstacle: obstacles such as `table=box:1,1,0.05@0.5,0,0.2`.
        clearance: minimum distance, m.
        allow: pairs that may touch, such as `hand,table`.
        degrees: whether the rotations of obstacles are given in degrees.

    Raises:
        UsageError: an option is malformed, or `clearance` or `allow` is given with nothing to avoid.
        UnknownName: there is no link or obstacle of a name in `allow`.
        StructureError: no link has a collision shape.
    """
    for argument in avoid or ():
        if argument != SELF_COLLISION:
            raise UsageError(f"--avoid takes self, not {argument!r}; use --obstacle for obstacles in the world")
    if not math.isfinite(clearance):
        raise UsageError(f"--clearance must be a finite number of metres, not {clearance}")
    if avoid is None and obstacle is None:
        if clearance or allow is not None:
            raise UsageError("--clearance and --allow need --avoid self or --obstacle")
        return CollisionArgs()
    collision_partners = [*(avoid or ()), *(_parse_obstacle(argument, degrees) for argument in obstacle or ())]
    from mechanik.collision import Collider

    try:
        return CollisionArgs(Collider(mechanism, collision_partners, allow=_parse_pairs(allow or ())), clearance)
    except StructureError as error:
        if not any(link.collisions for link in mechanism.links.values()):
            raise  # the mechanism has no shapes: a failure, not a usage error
        raise UsageError(str(error)) from error


def _parse_obstacle(argument: str, degrees: bool) -> Obstacle:
    """Parse NAME=KIND:SIZES@X,Y,Z,ROLL,PITCH,YAW; name, position and rotation are optional."""
    from mechanik.collision import Obstacle
    from mechanik.spatial import quaternion

    named_shape, _, pose_text = argument.rpartition("@") if "@" in argument else (argument, "", "0,0,0")
    name, equals, shape_text = named_shape.partition("=")
    kind, _, sizes = (shape_text if equals else named_shape).partition(":")
    numbers = parse_numbers(pose_text, f"--obstacle {argument}: after @")
    if len(numbers) not in (3, 6):
        raise UsageError(
            f"--obstacle {argument}: give X,Y,Z or X,Y,Z,ROLL,PITCH,YAW after @, "
            f"not {format_count(len(numbers), 'number')}"
        )
    rpy = [angle * math.pi / 180 if degrees else angle for angle in numbers[3:]] or [0.0, 0.0, 0.0]
    try:
        wxyz = quaternion.from_euler(rpy, order="xyz", axes="fixed")
        return Obstacle(_parse_shape(kind, sizes, argument), numbers[:3], wxyz, name=name if equals else "")
    except UsageError:
        raise
    except MechanikError as error:
        raise UsageError(f"--obstacle {argument}: {error}") from error


def _parse_shape(kind: str, sizes: str, argument: str) -> Shape:
    """Make the shape of an obstacle.

    Args:
        kind: kind of the shape, such as `box`.
        sizes: sizes in m with commas between them, or the file of a mesh.
        argument: the whole argument, for messages.
    """
    if kind == "floor":
        if sizes:
            raise UsageError(f"--obstacle {argument}: a floor is infinite and has no sizes")
        return HalfSpace()
    if kind == "mesh":
        if not Path(sizes).expanduser().is_file():
            raise UsageError(f"--obstacle {argument}: there is no file {sizes!r}")
        return Mesh(sizes, path=str(Path(sizes).expanduser()))
    if kind not in SHAPE_SIZES:
        raise UsageError(f"--obstacle {argument}: {kind!r} is not a shape; use {OBSTACLE_SYNTAX}")
    size_names = SHAPE_SIZES[kind]
    numbers = parse_numbers(sizes, f"--obstacle {argument}: {kind}")
    if len(numbers) != len(size_names):
        raise UsageError(
            f"--obstacle {argument}: a {kind} needs {format_count(len(size_names), 'size')} in m, "
            f"{kind}:{','.join(size_names).upper()}, not {len(numbers)}"
        )
    match kind, numbers:
        case "box", [x, y, z]:
            return Box((x, y, z))
        case "capsule", [radius, length]:
            return Capsule(radius, length)
        case "cylinder", [radius, length]:
            return Cylinder(radius, length)
        case _:
            return Sphere(numbers[0])


def _parse_pairs(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Parse pairs of names such as `hand,table`."""
    pairs: list[tuple[str, str]] = []
    for argument in arguments:
        a, comma, b = argument.partition(",")
        if not (a and comma and b):
            raise UsageError(f"--allow takes two names with a comma between them, such as hand,table, not {argument!r}")
        pairs.append((a, b))
    return pairs


def select_tip_link(mechanism: Mechanism, link: str | None) -> str:
    """Return the named link, or the only tip link of the mechanism.

    Raises:
        UnknownName: there is no such link.
        UsageError: no link is named and there are several tip links.
        StructureError: no link is named and no link moves.
    """
    if link is not None:
        mechanism.link(link)
        return link
    tip_links = [
        name
        for name, link_frame in mechanism.links.items()
        if _is_movable(link_frame) and not _has_child_joint(link_frame)
    ]
    if len(tip_links) == 1:
        return tip_links[0]
    if not tip_links:
        raise StructureError(f"no link of {mechanism.name or 'the mechanism'} can move, so there is nothing to solve")
    tip_list = ", ".join(tip_links[:8]) + (", ..." if len(tip_links) > 8 else "")
    raise UsageError(f"there are {len(tip_links)} tip links: {tip_list}; choose a link with --link")


def parse_goal(
    link: str,
    position: list[str] | None,
    wxyz: list[str] | None,
    rpy: list[str] | None,
    degrees: bool,
    tolerance: float,
    angle_tolerance: float,
) -> Objective:
    """Make a position, orientation or pose goal from command line arguments.

    Args:
        link: name of the link that must reach the goal.
        position: x y z in the world frame, m.
        wxyz: quaternion in the world frame.
        rpy: roll, pitch and yaw about the fixed axes x, y and z.
        degrees: whether `rpy` is given in degrees instead of rad.
        tolerance, angle_tolerance: m and rad.
    """
    from mechanik.objectives import OrientationGoal, PoseGoal, PositionGoal
    from mechanik.spatial import quaternion

    target_position = None if position is None else _parse_exactly(3, position, "--position")
    target_wxyz: Sequence[float] | Array | None = None if wxyz is None else _parse_exactly(4, wxyz, "--wxyz")
    if rpy is not None:
        if target_wxyz is not None:
            raise UsageError("--wxyz and --rpy both set the orientation; give one of them")
        angles = [angle * math.pi / 180 if degrees else angle for angle in _parse_exactly(3, rpy, "--rpy")]
        target_wxyz = quaternion.from_euler(angles, order="xyz", axes="fixed")
    try:
        if target_position is None and target_wxyz is None:
            raise UsageError(
                "no target; give --position X Y Z, an orientation (--wxyz W X Y Z or --rpy R P Y), or both"
            )
        if target_wxyz is None:
            return PositionGoal(
                link, target_position or (), name=link, tolerance=tolerance, angle_tolerance=angle_tolerance
            )
        if target_position is None:
            return OrientationGoal(link, target_wxyz, name=link, tolerance=tolerance, angle_tolerance=angle_tolerance)
        return PoseGoal(
            link,
            position=target_position,
            wxyz=target_wxyz,
            name=link,
            tolerance=tolerance,
            angle_tolerance=angle_tolerance,
        )
    except MechanikError as error:
        raise UsageError(str(error)) from error


def parse_start(mechanism: Mechanism, q0: list[str] | None, degrees: bool) -> Array | None:
    """Parse a start configuration (nq,) from all numbers of q or from NAME=VALUE arguments; None if not given."""
    if q0 is None:
        return None
    assignments = [argument for argument in q0 if "=" in argument]
    if assignments and len(assignments) < len(q0):
        raise UsageError("--q0 takes either all numbers of q or NAME=VALUE for single joints, not both")
    return parse_configuration(mechanism, None if assignments else q0, assignments, degrees, "--q0")


def parse_locked_joints(mechanism: Mechanism, lock: list[str] | None) -> list[str] | None:
    """Parse names of joints or dofs, separated by spaces or commas; None if not given."""
    if lock is None:
        return None
    names = [name for argument in lock for name in argument.split(",") if name]
    known_names = (*mechanism.joints, *mechanism.space.v_names)
    for name in names:
        if name not in known_names:
            raise UnknownName("joint", name, mechanism.joints)
    return names


def make_solver(
    mechanism: Mechanism,
    goal: Objective,
    lock: list[str] | None,
    restarts: int | None,
    collision_args: CollisionArgs,
) -> Solver:
    """Make the solver for a goal.

    Args:
        lock: names of joints or dofs that must not move.
        restarts: maximum number of restarts; None: the default of the solver.
    """
    from mechanik.solver import Solver

    options: dict[str, Any] = {} if restarts is None else {"restarts": restarts}
    try:
        return Solver(
            mechanism, goal, lock=lock, avoid=collision_args.collider, clearance=collision_args.clearance, **options
        )
    except LimitsError as error:
        raise UsageError(str(error)) from error


def _parse_exactly(count: int, arguments: list[str], option: str) -> list[float]:
    """Parse exactly `count` numbers; `option` names the option in messages."""
    numbers = parse_numbers(",".join(arguments), option)
    if len(numbers) != count:
        raise UsageError(f"{option} takes {count} numbers, not {len(numbers)}")
    return numbers


def _is_movable(link: Link) -> bool:
    """Whether a joint with dofs is between the link and the root."""
    frame = link.parent
    while frame is not None:
        if isinstance(frame, Joint) and frame.dof:
            return True
        frame = frame.parent
    return False


def _has_child_joint(link: Link) -> bool:
    """Whether the link has a child joint in the kinematic tree."""
    return any(isinstance(child, Joint) and not child.is_closure for child in link.children)
