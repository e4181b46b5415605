"""What must not be bumped into, from the words of the command line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mechanik.cli.fk import as_numbers
from mechanik.cli.usage import UsageError
from mechanik.errors import DuplicateName, MechanikError, WrongKind
from mechanik.mechanism import Box, Capsule, Cylinder, HalfSpace, Mechanism, Mesh, Sphere
from mechanik.mechanism.shapes import Shape
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.collision import Clash, Collider, Obstacle

SELF = "self"
SIZES = {"box": ("x", "y", "z"), "sphere": ("r",), "capsule": ("r", "length"), "cylinder": ("r", "length")}
KINDS = "box:X,Y,Z, sphere:R, capsule:R,LENGTH, cylinder:R,LENGTH, mesh:FILE or floor"


@dataclass(frozen=True, slots=True)
class Avoiding:
    """
    Attributes:
        collider: None if nothing is to be avoided.
        clearance: m.
    """

    collider: Collider | None = None
    clearance: float = 0.0

    def nearest(self, q: Array) -> Clash | None:
        """The two bodies that are nearest to each other at q (nq,), if any are watched."""
        pairs = () if self.collider is None else self.collider.nearest(q)
        return pairs[0] if pairs else None


def what_to_avoid(
    mechanism: Mechanism,
    avoid: list[str] | None,
    obstacle: list[str] | None,
    clearance: float,
    allow: list[str] | None,
    degrees: bool = False,
) -> Avoiding:
    """
    Args:
        avoid: `self`, or nothing.
        obstacle: as `table=box:1,1,0.05@0.5,0,0.2`.
        allow: pairs such as `hand,table`.
        degrees: whether obstacles are turned by degrees.
    """
    for word in avoid or ():
        if word != SELF:
            raise UsageError(f"--avoid takes self, not {word!r}; things in the world are given by --obstacle")
    if not math.isfinite(clearance):
        raise UsageError(f"--clearance is a number of metres, not {clearance}")
    if avoid is None and obstacle is None:
        if clearance or allow is not None:
            raise UsageError("--clearance and --allow need something to keep off: --avoid self, or --obstacle")
        return Avoiding()
    things = [*(avoid or ()), *(_obstacle(word, degrees) for word in obstacle or ())]
    from mechanik.collision import Collider  # loads kernels, which wrong words need not wait for

    try:
        return Avoiding(Collider(mechanism, things, allow=_pairs(allow or ())), clearance)
    except (DuplicateName, WrongKind) as error:
        raise UsageError(str(error)) from error


def _obstacle(word: str, degrees: bool) -> Obstacle:
    """From NAME=KIND:SIZES@X,Y,Z,ROLL,PITCH,YAW, of which the name, the place and the turn may be missing."""
    from mechanik.collision import Obstacle
    from mechanik.spatial.euler import quaternion_from_euler

    what, _, place = word.rpartition("@") if "@" in word else (word, "", "0,0,0")
    name, equals, rest = what.partition("=")
    kind, _, sizes = (rest if equals else what).partition(":")
    numbers = as_numbers(place, f"--obstacle {word}: behind @")
    if len(numbers) not in (3, 6):
        raise UsageError(f"--obstacle {word}: behind @ stand X,Y,Z or X,Y,Z,ROLL,PITCH,YAW, not {len(numbers)} numbers")
    turn = [angle * math.pi / 180 if degrees else angle for angle in numbers[3:]] or [0.0, 0.0, 0.0]
    try:
        wxyz = quaternion_from_euler(turn, order="xyz", axes="fixed")
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
    if kind not in SIZES:
        raise UsageError(f"--obstacle {word}: {kind!r} is no shape; there are {KINDS}")
    wanted = SIZES[kind]
    numbers = as_numbers(sizes, f"--obstacle {word}: {kind}")
    if len(numbers) != len(wanted):
        raise UsageError(f"--obstacle {word}: a {kind} has {len(wanted)} sizes, {kind}:{','.join(wanted).upper()}")
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
    found: list[tuple[str, str]] = []
    for word in words:
        a, comma, b = word.partition(",")
        if not (a and comma and b):
            raise UsageError(f"--allow takes two names with a comma between them, such as hand,table, not {word!r}")
        found.append((a, b))
    return found
