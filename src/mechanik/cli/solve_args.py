"""Arguments that several commands share: tip link, goal, start, locked joints and collision avoidance."""

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

if TYPE_CHECKING:
    from mechanik.collision import Collider, Contact, Obstacle
    from mechanik.objectives import Objective
    from mechanik.solver import Solver


SELF_COLLISION = "self"
SHAPE_SIZES = {"box": ("x", "y", "z"), "sphere": ("r",), "capsule": ("r", "length"), "cylinder": ("r", "length")}
OBSTACLE_SYNTAX = "box:X,Y,Z, sphere:R, capsule:R,LENGTH, cylinder:R,LENGTH, mesh:FILE or floor"


@dataclass(frozen=True, slots=True)
class CollisionArgs:
    """Collision avoidance options of the command line.

    Attributes:
        collider: the collision pairs to check; None without collision avoidance.
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
        avoid: `self`, or nothing.
        obstacle: obstacles such as `table=box:1,1,0.05@0.5,0,0.2`.
        clearance: minimum distance, m.
        allow: pairs that may touch, such as `hand,table`.
        degrees: whether the rotations of obstacles are given in degrees.

    Raises:
        UsageError: an option is malformed, or `clearance` or `allow` is given with nothing to avoid.
    """
    for word in avoid or ():
        if word != SELF_COLLISION:
            raise UsageError(f"--avoid takes self, not {word!r}; things in the world are given by --obstacle")
    if not math.isfinite(clearance):
        raise UsageError(f"--clearance is a number of metres, not {clearance}")
    if avoid is None and obstacle is None:
        if clearance or allow is not None:
            raise UsageError("--clearance and --allow need --avoid self or --obstacle")
        return CollisionArgs()
    avoided = [*(avoid or ()), *(_obstacle(word, degrees) for word in obstacle or ())]
    from mechanik.collision import Collider  # slow (kernels): imported after the arguments are checked

    try:
        return CollisionArgs(Collider(mechanism, avoided, allow=_pairs(allow or ())), clearance)
    except StructureError as error:
        if not any(link.collisions for link in mechanism.links.values()):
            raise  # the mechanism lacks shapes: a failure, not a usage error
        raise UsageError(str(error)) from error


def _obstacle(word: str, degrees: bool) -> Obstacle:
    """Parse NAME=KIND:SIZES@X,Y,Z,ROLL,PITCH,YAW; name, position and rotation are optional."""
    from mechanik.collision import Obstacle
    from mechanik.spatial import quaternion

    named_shape, _, place = word.rpartition("@") if "@" in word else (word, "", "0,0,0")
    name, equals, rest = named_shape.partition("=")
    kind, _, sizes = (rest if equals else named_shape).partition(":")
    numbers = parse_numbers(place, f"--obstacle {word}: behind @")
    if len(numbers) not in (3, 6):
        raise UsageError(f"--obstacle {word}: behind @ stand X,Y,Z or X,Y,Z,ROLL,PITCH,YAW, not {len(numbers)} numbers")
    turn = [angle * math.pi / 180 if degrees else angle for angle in numbers[3:]] or [0.0, 0.0, 0.0]
    try:
        wxyz = quaternion.from_euler(turn, order="xyz", axes="fixed")
        return Obstacle(_shape(kind, sizes, word), numbers[:3], wxyz, name=name if equals else "")
    except UsageError:
        raise
    except MechanikError as error:
        raise UsageError(f"--obstacle {word}: {error}") from error


def _shape(kind: str, sizes: str, word: str) -> Shape:
    if kind == "floor":
        if sizes:
            raise UsageError(f"--obstacle {word}: a floor is endless and has no sizes")
        return HalfSpace()
    if kind == "mesh":
        if not Path(sizes).expanduser().is_file():
            raise UsageError(f"--obstacle {word}: there is no file {sizes!r}")
        return Mesh(sizes, path=str(Path(sizes).expanduser()))
    if kind not in SHAPE_SIZES:
        raise UsageError(f"--obstacle {word}: {kind!r} is no shape; there are {OBSTACLE_SYNTAX}")
    size_names = SHAPE_SIZES[kind]
    numbers = parse_numbers(sizes, f"--obstacle {word}: {kind}")
    if len(numbers) != len(size_names):
        raise UsageError(
            f"--obstacle {word}: a {kind} has {len(size_names)} sizes, {kind}:{','.join(size_names).upper()}"
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


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for word in words:
        a, comma, b = word.partition(",")
        if not (a and comma and b):
            raise UsageError(f"--allow takes two names with a comma between them, such as hand,table, not {word!r}")
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
    ends = [
        name for name, link_frame in mechanism.links.items() if _moves(link_frame) and not _carries_anything(link_frame)
    ]
    if len(ends) == 1:
        return ends[0]
    if not ends:
        raise StructureError(f"nothing moves in {mechanism.name or 'the mechanism'}, so there is nothing to solve")
    listed = ", ".join(ends[:8]) + (", ..." if len(ends) > 8 else "")
    raise UsageError(f"there are {len(ends)} tip links: {listed}; choose a link with --link")


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
        link: link that shall reach the goal.
        position: x y z in the world frame, m.
        wxyz: quaternion in the world frame.
        rpy: roll, pitch and yaw about the fixed axes x, y and z; rad, or degrees with `degrees`.
        tolerance, angle_tolerance: m and rad.
    """
    from mechanik.objectives import OrientationGoal, PoseGoal, PositionGoal
    from mechanik.spatial import quaternion

    place = None if position is None else _exactly(3, position, "--position")
    turn: Sequence[float] | Array | None = None if wxyz is None else _exactly(4, wxyz, "--wxyz")
    if rpy is not None:
        if turn is not None:
            raise UsageError("--wxyz and --rpy both set the orientation; give one of them")
        angles = [x * math.pi / 180 if degrees else x for x in _exactly(3, rpy, "--rpy")]
        turn = quaternion.from_euler(angles, order="xyz", axes="fixed")
    try:
        if place is None and turn is None:
            raise UsageError("no target; give --position X Y Z, --wxyz W X Y Z or --rpy R P Y, or both")
        if turn is None:
            return PositionGoal(link, place or (), name=link, tolerance=tolerance, angle_tolerance=angle_tolerance)
        if place is None:
            return OrientationGoal(link, turn, name=link, tolerance=tolerance, angle_tolerance=angle_tolerance)
        return PoseGoal(
            link, position=place, wxyz=turn, name=link, tolerance=tolerance, angle_tolerance=angle_tolerance
        )
    except MechanikError as error:
        raise UsageError(str(error)) from error


def parse_start(mechanism: Mechanism, q0: list[str] | None, degrees: bool) -> Array | None:
    """Parse a start configuration (nq,) from all numbers of q or from NAME=VALUE arguments; None if not given."""
    if q0 is None:
        return None
    named = [word for word in q0 if "=" in word]
    if named and len(named) < len(q0):
        raise UsageError("--q0 takes all numbers of q, or NAME=VALUE for some joints, not both")
    return parse_configuration(mechanism, None if named else q0, named, degrees, "--q0")


def parse_locked_joints(mechanism: Mechanism, lock: list[str] | None) -> list[str] | None:
    """Parse names of joints or dofs, separated by spaces or commas; None if not given."""
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
    collision_args: CollisionArgs,
) -> Solver:
    """Make the solver for a goal.

    Args:
        lock: names of joints or dofs that may not move.
        restarts: maximum number of restarts; None: the default of the solver.
    """
    from mechanik.solver import Solver  # slow (kernels): imported after the arguments are checked

    options: dict[str, Any] = {} if restarts is None else {"restarts": restarts}
    try:
        return Solver(
            mechanism, goal, lock=lock, avoid=collision_args.collider, clearance=collision_args.clearance, **options
        )
    except LimitsError as error:
        raise UsageError(str(error)) from error


def _exactly(count: int, words: list[str], option: str) -> list[float]:
    numbers = parse_numbers(",".join(words), option)
    if len(numbers) != count:
        raise UsageError(f"{option} takes {count} numbers, not {len(numbers)}")
    return numbers


def _moves(link: Link) -> bool:
    frame = link.parent
    while frame is not None:
        if isinstance(frame, Joint) and frame.dof:
            return True
        frame = frame.parent
    return False


def _carries_anything(link: Link) -> bool:
    """Whether the link has a child joint in the kinematic tree."""
    return any(isinstance(child, Joint) and not child.is_closure for child in link.children)
