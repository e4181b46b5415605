"""What a page may ask of its session. Each class is a message `{"do": "<name of the class>", "id": 7, ...fields}`.

These classes are the schema: `read.py` checks messages by them, `typescript.py` writes the page's types from them.
What is dragged at the rate of the screen goes as binary frames instead (`frames.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from mechanik.studio.messages.checks import (
    Between,
    Count,
    Index,
    Level,
    Name,
    Number,
    PoseNumbers,
    Positive,
    Size,
    Text,
    Value,
    Vector,
)

GoalKind = Literal[
    "point",
    "pose",
    "orientation",
    "axis",
    "hinge",
    "surface",
    "on_line",
    "on_plane",
    "look_at",
    "distance",
    "in_box",
    "in_cone",
    "in_band",
    "centre_of_mass",
    "on_terrain",
]
Direction = Literal["X", "Y", "Z", "EX", "EY", "EZ"]
FileKind = Literal["json", "csv", "npz", "bvh", "glb", "html", "mechanism", "urdf"]
EditKind = Literal["dh", "arm_2d", "arm_3d", "json", "urdf"]
CollisionMode = Literal["off", "show", "avoid"]
ObstacleKind = Literal["box", "sphere", "capsule"]


@dataclass(frozen=True, slots=True)
class Request:
    """What all have in common."""


# ---- the model --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenGallery(Request):
    """Put a mechanism of the gallery on the table."""

    name: Name


@dataclass(frozen=True, slots=True)
class OpenScene(Request):
    """Start one of the demonstrations."""

    name: Name


@dataclass(frozen=True, slots=True)
class EditModel(Request):
    """Make the mechanism from text: DH rows or an arm's list as JSON, or a whole file; values are kept by name."""

    kind: EditKind
    text: Text


@dataclass(frozen=True, slots=True)
class ShowLinks(Request):
    """Which links are drawn; those that are not named stay as they are."""

    links: Annotated[list[Name], Size(0, 10_000)]
    visible: bool


# ---- joints -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GrabFreedom(Request):
    """A joint is taken by hand: until it is released its freedom is where the hand holds it (binary frames), loops and
    pins are kept, and goals that are not pinned ride on their links."""

    freedom: Index


@dataclass(frozen=True, slots=True)
class SetFreedom(Request):
    """A joint's value by number; m or rad."""

    freedom: Index
    value: Number


@dataclass(frozen=True, slots=True)
class SetTurn(Request):
    """A ball's turn by numbers: a rotation vector in the joint's frame, rad."""

    freedom: Index
    turn: Vector


@dataclass(frozen=True, slots=True)
class SetLimits(Request):
    """None: no limit on that side."""

    freedom: Index
    lower: Number | None
    upper: Number | None


@dataclass(frozen=True, slots=True)
class SetLocked(Request):
    freedom: Index
    locked: bool


@dataclass(frozen=True, slots=True)
class SetRest(Request):
    """Where the freedom goes as far as nothing else is asked. None: anywhere."""

    freedom: Index
    value: Number | None


@dataclass(frozen=True, slots=True)
class GoTo(Request):
    """A named configuration of the mechanism, or "neutral", or "random"; goals that are not pinned ride along."""

    configuration: Name


# ---- goals ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddGoal(Request):
    """Want something of a link.

    at: the point of the link, in its frame. pose: of the goal in the world; None: where that point of the link is now.
    pinned: above all other goals (level 0), and not moved along when joints are moved by hand.
    """

    kind: GoalKind
    link: Name
    at: Vector = (0.0, 0.0, 0.0)
    pose: PoseNumbers | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class ChangeGoal(Request):
    """None: stays as it is."""

    goal: Count
    kind: GoalKind | None = None
    link: Name | None = None
    at: Vector | None = None
    weight: Positive | None = None
    level: Level | None = None
    enabled: bool | None = None
    pinned: bool | None = None
    sizes: Vector | None = None
    """What the kind measures besides its pose: half edges of a box, (distance), (half angle), (low, high) of a band."""
    free: Annotated[list[Direction], Size(0, 6)] | None = None
    """Directions of a pose, in the goal's frame, that are not asked for."""


@dataclass(frozen=True, slots=True)
class MoveGoal(Request):
    """By numbers; one step of undo. Dragging is GrabGoal, binary frames, Release."""

    goal: Count
    pose: PoseNumbers


@dataclass(frozen=True, slots=True)
class RemoveGoal(Request):
    goal: Count


@dataclass(frozen=True, slots=True)
class GrabGoal(Request):
    """A goal is taken by hand: all its binary frames until Release are one step of undo."""

    goal: Count


@dataclass(frozen=True, slots=True)
class PullLink(Request):
    """A link is pulled at a point: a goal that lasts until Release. Binary frames move it under the number `PULL`."""

    link: Name
    at: Vector


@dataclass(frozen=True, slots=True)
class Release(Request):
    """The hand lets go of whatever it holds. puts_back: all is as before it was taken, and there is nothing to undo."""

    puts_back: bool = False


# ---- solving ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetSolver(Request):
    """Another method or other options; options that are not named are the method's usual ones."""

    solver: Name
    options: dict[Name, Value | None]


@dataclass(frozen=True, slots=True)
class SetRunning(Request):
    """Run or pause."""

    running: bool


@dataclass(frozen=True, slots=True)
class OneStep(Request):
    """One iteration, while paused."""


@dataclass(frozen=True, slots=True)
class SetCollisions(Request):
    """Whether what bumps is shown, or avoided as well; clearance: how far links keep off then, m."""

    mode: CollisionMode
    clearance: Annotated[float, Between(0.0, 10.0)] = 0.0


@dataclass(frozen=True, slots=True)
class AddObstacle(Request):
    """Something to bump into. pose: in the world; None: beside the mechanism, where there is room."""

    kind: ObstacleKind
    pose: PoseNumbers | None = None


@dataclass(frozen=True, slots=True)
class MoveObstacle(Request):
    """By numbers; one step of undo. Dragging is GrabObstacle, binary frames, Release."""

    obstacle: Name
    pose: PoseNumbers


@dataclass(frozen=True, slots=True)
class ResizeObstacle(Request):
    """Of a box, sphere, cylinder or capsule. sizes: as `ShapeInfo` has them, m."""

    obstacle: Name
    sizes: Annotated[list[Positive], Size(1, 3)]


@dataclass(frozen=True, slots=True)
class RemoveObstacle(Request):
    obstacle: Name


@dataclass(frozen=True, slots=True)
class GrabObstacle(Request):
    """An obstacle is taken by hand: all its binary frames until Release are one step of undo. They call it by its place
    among the `Obstacles` that were told last."""

    obstacle: Name


@dataclass(frozen=True, slots=True)
class ShowGhosts(Request):
    """Draw other solutions of the present goals, at most so many; 0: none."""

    most: Annotated[int, Between(0, 32)]


@dataclass(frozen=True, slots=True)
class Compare(Request):
    """Let several methods follow the same goals side by side; an empty list ends it."""

    solvers: Annotated[list[Name], Size(0, 6)]


# ---- the recorder -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordMotion(Request):
    """Start a new recording, or end it."""

    on: bool


@dataclass(frozen=True, slots=True)
class Play(Request):
    """Play what was recorded; while it plays, nothing is solved."""

    on: bool
    speed: Annotated[float, Between(0.05, 20.0)] = 1.0
    looped: bool = False


@dataclass(frozen=True, slots=True)
class Seek(Request):
    """Show the recording at a time, s."""

    time: Positive


@dataclass(frozen=True, slots=True)
class Export(Request):
    """Make a file of the recording (or of the mechanism as it stands: "mechanism", "urdf"); a `Download` follows."""

    kind: FileKind


# ---- scenes, history --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetControl(Request):
    """A slider, switch, choice, text or button of the scene.

    is_held: a hand has not let go of the slider yet; all until one comes that is not held is one step of undo.
    """

    name: Name
    value: Value
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class Undo(Request): ...


@dataclass(frozen=True, slots=True)
class Redo(Request): ...


REQUESTS: dict[str, type[Request]] = {
    kind.__name__: kind
    for kind in (
        OpenGallery, OpenScene, EditModel, ShowLinks,
        GrabFreedom, SetFreedom, SetTurn, SetLimits, SetLocked, SetRest, GoTo,
        AddGoal, ChangeGoal, MoveGoal, RemoveGoal, GrabGoal, PullLink, Release,
        SetSolver, SetRunning, OneStep, SetCollisions, ShowGhosts, Compare,
        AddObstacle, MoveObstacle, ResizeObstacle, RemoveObstacle, GrabObstacle,
        RecordMotion, Play, Seek, Export,
        SetControl, Undo, Redo,
    )
}  # fmt: skip
