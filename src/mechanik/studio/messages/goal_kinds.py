"""Table of the goal kinds: title, description and requirements of each kind, and how pages edit and draw it.

Pages receive this table in the event `Welcome` and build menus, input fields and markers from it. A new kind needs an
entry in this table, a name in `GoalKind`, and in the session an objective (`make_objective` in `solve_spec.py`) and an
error (`goal_error` in `frame_packer.py`).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from mechanik.studio.messages.requests import GoalKind

GoalSymbol = Literal[
    "cross", "axes", "rings", "arrow", "hinge", "disc", "line", "plane", "eye", "sphere", "box", "cone", "band",
    "mass", "foot",
]  # fmt: skip
"""Marker of a goal in the view."""


class GoalSizeInfo(Struct, frozen=True):
    """A parameter of a goal kind, such as a distance; its value is an entry of `GoalInfo.sizes`.

    Attributes:
        default: value in a new goal: a length as a multiple of `Model.radius`, an angle in rad.
    """

    name: str
    quantity: Literal["length", "angle"]
    default: float


class GoalKindInfo(Struct, frozen=True):
    """Description of a goal kind.

    Attributes:
        title: name in menus.
        label: name in undo steps, such as "add line goal".
        about: description, one line.
        symbol: marker in the view.
        at: meaning of `GoalInfo.at`: a point (m) or a direction in the frame of the link, or unused.
        uses_rotation: whether the goal depends on the rotation of its target pose.
        has_free_directions: whether the user can choose dofs that are not constrained (`GoalInfo.free`).
        sizes: parameters that pages show, in the order of `GoalInfo.sizes`.
        link_line: when a line from the point of the link to the goal is drawn: while the goal is not reached, always,
            or never. "plumb" draws a vertical line from the goal to z = 0 instead.
        needs: requirement of the kind: links with mass, a terrain in the scene, or nothing.
    """

    kind: GoalKind
    title: str
    label: str
    about: str
    symbol: GoalSymbol
    at: Literal["point", "direction", "unused"] = "point"
    uses_rotation: bool = True
    has_free_directions: bool = False
    sizes: tuple[GoalSizeInfo, ...] = ()
    link_line: Literal["unreached", "always", "plumb", "none"] = "unreached"
    needs: Literal["", "mass", "terrain"] = ""


GOAL_KINDS: tuple[GoalKindInfo, ...] = (
    GoalKindInfo(
        "point", "Point", "point", "Move this point of the link to the target", "cross", uses_rotation=False
    ),
    GoalKindInfo(
        "pose", "Pose", "pose", "Position and orientation: all six coordinates", "axes", has_free_directions=True
    ),
    GoalKindInfo(
        "orientation",
        "Orientation",
        "orientation",
        "Orientation of the link; its position is free",
        "rings",
        link_line="none",
    ),
    GoalKindInfo(
        "axis",
        "Direction",
        "direction",
        "Align an axis of the link with the axis of the goal",
        "arrow",
        at="direction",
        link_line="none",
    ),
    GoalKindInfo("hinge", "Hinge", "hinge", "Position and axis; rotation about the axis is free", "hinge"),
    GoalKindInfo(
        "surface", "Surface", "surface", "The point is on the plane and the link lies flat on it", "disc"
    ),
    GoalKindInfo("on_line", "On a line", "line", "Keep the point on a line", "line"),
    GoalKindInfo("on_plane", "On a plane", "plane", "Keep the point on a plane", "plane"),
    GoalKindInfo(
        "look_at",
        "Look at",
        "look-at",
        "Point an axis of the link at a target position",
        "eye",
        uses_rotation=False,
        link_line="always",
    ),
    GoalKindInfo(
        "distance",
        "Distance",
        "distance",
        "Keep the point at a distance from a target position",
        "sphere",
        uses_rotation=False,
        sizes=(GoalSizeInfo("distance", "length", 0.25),),
    ),
    GoalKindInfo(
        "in_box",
        "In a box",
        "box",
        "Keep the point inside a box",
        "box",
        sizes=tuple(GoalSizeInfo(f"half {axis}", "length", 0.1) for axis in "xyz"),
    ),
    GoalKindInfo(
        "in_cone",
        "In a cone",
        "cone",
        "Keep the axis of the link inside a cone",
        "cone",
        at="direction",
        sizes=(GoalSizeInfo("half angle", "angle", 0.35),),
        link_line="none",
    ),
    GoalKindInfo(
        "in_band",
        "In a band",
        "band",
        "Keep the point between two parallel planes",
        "band",
        sizes=(GoalSizeInfo("low", "length", -0.1), GoalSizeInfo("high", "length", 0.1)),
    ),
    GoalKindInfo(
        "centre_of_mass",
        "Centre of mass",
        "centre-of-mass",
        "Move the centre of mass of all links to the target",
        "mass",
        at="unused",
        uses_rotation=False,
        link_line="plumb",
        needs="mass",
    ),
    GoalKindInfo(
        "on_terrain",
        "On the terrain",
        "terrain",
        "Keep the point on the terrain of the scene",
        "foot",
        uses_rotation=False,
        needs="terrain",
    ),
)  # fmt: skip

GOAL_KINDS_BY_NAME: dict[GoalKind, GoalKindInfo] = {info.kind: info for info in GOAL_KINDS}
