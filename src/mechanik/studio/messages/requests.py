"""Schema of the requests that a page sends to its session: `{"do": "<class name>", "id": 7, ...fields}`.

`message_codec` validates messages by these classes and by the ranges in their annotations; `typescript` generates the
types of the page from them. Drags at display rate are sent as binary frames instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Range of a finite number, `low` to `high`."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LengthRange:
    """Range of the length of a text or list."""

    low: int
    high: int


MAX_MAGNITUDE = 1e6
"""Largest accepted position or angle, m or rad.

Larger values are mistakes. The square of this limit is far from overflow.
"""

Number = Annotated[float, NumberRange(-MAX_MAGNITUDE, MAX_MAGNITUDE)]
NonNegative = Annotated[float, NumberRange(0.0, MAX_MAGNITUDE)]
Share = Annotated[float, NumberRange(0.0, 1.0)]
Count = Annotated[int, NumberRange(0, 1_000_000)]
Index = Annotated[int, NumberRange(0, 100_000)]
Level = Annotated[int, NumberRange(0, 9)]
Name = Annotated[str, LengthRange(1, 200)]
Text = Annotated[str, LengthRange(0, 200_000)]
Vector = tuple[Number, Number, Number]
PoseNumbers = tuple[Number, Number, Number, Number, Number, Number, Number]
"""Position (m) and quaternion wxyz."""
Value = float | bool | str
"""Value of a scene control or a solver option; its user validates it again."""


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
class PageRequest:
    """Base class of all requests."""


# ---- model ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenGallery(PageRequest):
    """Open a mechanism of the gallery."""

    name: Name


@dataclass(frozen=True, slots=True)
class OpenScene(PageRequest):
    """Open a scene."""

    name: Name


@dataclass(frozen=True, slots=True)
class EditModel(PageRequest):
    """Replace the mechanism by the one that a text describes; joint values are transferred by name.

    Attributes:
        kind: what the text is.
        text: a DH table or an arm list as JSON, or a whole file.
    """

    kind: EditKind
    text: Text


@dataclass(frozen=True, slots=True)
class ShowLinks(PageRequest):
    """Show or hide links; the visibility of other links does not change."""

    links: Annotated[list[Name], LengthRange(0, 10_000)]
    visible: bool


# ---- joints -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartJointDrag(PageRequest):
    """Start to drag a dof.

    Until `EndDrag`, binary frames set its value. Loops stay closed, pins hold, and goals that are not pinned move with
    their links.
    """

    dof: Index


@dataclass(frozen=True, slots=True)
class SetDofValue(PageRequest):
    """Set the value of a dof, m or rad."""

    dof: Index
    value: Number


@dataclass(frozen=True, slots=True)
class SetJointRotation(PageRequest):
    """Set the rotation of a spherical joint.

    Attributes:
        rotation: rotation vector in the frame of the joint, rad.
    """

    dof: Index
    rotation: Vector


@dataclass(frozen=True, slots=True)
class SetLimits(PageRequest):
    """Set the limits of a dof, m or rad; None: no limit."""

    dof: Index
    lower: Number | None
    upper: Number | None


@dataclass(frozen=True, slots=True)
class SetLocked(PageRequest):
    """Lock or unlock a dof."""

    dof: Index
    locked: bool


@dataclass(frozen=True, slots=True)
class SetRest(PageRequest):
    """Set the rest value of a dof, m or rad, which it takes as far as the goals leave it free; None: no rest value."""

    dof: Index
    value: Number | None


@dataclass(frozen=True, slots=True)
class GoTo(PageRequest):
    """Move to a named configuration, to "neutral" or to "random"; goals that are not pinned move with their links."""

    configuration: Name


# ---- goals ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddGoal(PageRequest):
    """Add a goal for a link.

    Attributes:
        at: point of the link, in the frame of the link, m.
        pose: target in the world; None: the present pose of that point.
        pinned: whether it has priority over all other goals (level 0) and stays in place when joints are dragged.
    """

    kind: GoalKind
    link: Name
    at: Vector = (0.0, 0.0, 0.0)
    pose: PoseNumbers | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class ChangeGoal(PageRequest):
    """Change settings of a goal; None: unchanged."""

    goal: Count
    kind: GoalKind | None = None
    link: Name | None = None
    at: Vector | None = None
    weight: NonNegative | None = None
    level: Level | None = None
    enabled: bool | None = None
    pinned: bool | None = None
    sizes: Vector | None = None
    """Parameters of the kind: half edges of a box, distance, low and high of a band (m); half angle of a cone (rad)."""
    free: Annotated[list[Direction], LengthRange(0, 6)] | None = None
    """Directions of a pose, in the frame of the goal, that are not constrained."""


@dataclass(frozen=True, slots=True)
class MoveGoal(PageRequest):
    """Set the pose of a goal; a single undo step.

    A drag uses `StartGoalDrag`, binary frames and `EndDrag` instead.
    """

    goal: Count
    pose: PoseNumbers


@dataclass(frozen=True, slots=True)
class RemoveGoal(PageRequest):
    """Remove a goal."""

    goal: Count


@dataclass(frozen=True, slots=True)
class StartGoalDrag(PageRequest):
    """Start to drag a goal; all binary frames until `EndDrag` are a single undo step."""

    goal: Count


@dataclass(frozen=True, slots=True)
class StartLinkDrag(PageRequest):
    """Start to drag a link by a point, with a temporary goal that lasts until `EndDrag`.

    Binary frames move the goal under the number `LINK_DRAG_GOAL`.

    Attributes:
        at: point of the link, in the frame of the link, m.
    """

    link: Name
    at: Vector


@dataclass(frozen=True, slots=True)
class EndDrag(PageRequest):
    """End the drag.

    Attributes:
        cancel: whether to restore the state before the drag, without an undo step.
    """

    cancel: bool = False


# ---- solving ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetSolver(PageRequest):
    """Select a method and its options; options that are not named have their default values."""

    solver: Name
    options: dict[Name, Value | None]


@dataclass(frozen=True, slots=True)
class SetRunning(PageRequest):
    """Run or pause the solver."""

    running: bool


@dataclass(frozen=True, slots=True)
class SingleStep(PageRequest):
    """Run one iteration while the solver is paused."""


@dataclass(frozen=True, slots=True)
class SetCollisions(PageRequest):
    """Set whether collisions are ignored, shown, or shown and avoided.

    Attributes:
        clearance: distance that avoidance keeps, m.
    """

    mode: CollisionMode
    clearance: Annotated[float, NumberRange(0.0, 10.0)] = 0.0


@dataclass(frozen=True, slots=True)
class AddObstacle(PageRequest):
    """Add an obstacle.

    Attributes:
        pose: in the world; None: a free position beside the mechanism.
    """

    kind: ObstacleKind
    pose: PoseNumbers | None = None


@dataclass(frozen=True, slots=True)
class MoveObstacle(PageRequest):
    """Set the pose of an obstacle; a single undo step.

    A drag uses `StartObstacleDrag`, binary frames and `EndDrag` instead.
    """

    obstacle: Name
    pose: PoseNumbers


@dataclass(frozen=True, slots=True)
class ResizeObstacle(PageRequest):
    """Resize a box, sphere, cylinder or capsule.

    Attributes:
        sizes: as in `ShapeInfo`, m.
    """

    obstacle: Name
    sizes: Annotated[list[NonNegative], LengthRange(1, 3)]


@dataclass(frozen=True, slots=True)
class RemoveObstacle(PageRequest):
    """Remove an obstacle."""

    obstacle: Name


@dataclass(frozen=True, slots=True)
class StartObstacleDrag(PageRequest):
    """Start to drag an obstacle; all binary frames until `EndDrag` are a single undo step.

    Binary frames identify it by its index in the last `Obstacles` event.
    """

    obstacle: Name


@dataclass(frozen=True, slots=True)
class ShowAlternatives(PageRequest):
    """Search and draw alternative solutions of the present goals.

    Attributes:
        max_count: maximum number; 0: none.
    """

    max_count: Annotated[int, NumberRange(0, 32)]


@dataclass(frozen=True, slots=True)
class Compare(PageRequest):
    """Let several methods track the same goals side by side; an empty list ends the comparison."""

    solvers: Annotated[list[Name], LengthRange(0, 6)]


# ---- recorder ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordMotion(PageRequest):
    """Start or stop a recording."""

    on: bool


@dataclass(frozen=True, slots=True)
class Play(PageRequest):
    """Play or stop the recording; nothing is solved during playback."""

    on: bool
    speed: Annotated[float, NumberRange(0.05, 20.0)] = 1.0
    looped: bool = False


@dataclass(frozen=True, slots=True)
class Seek(PageRequest):
    """Show the recording at a time, s."""

    time: NonNegative


@dataclass(frozen=True, slots=True)
class Export(PageRequest):
    """Create a file of the recording, or of the mechanism as it is now; a `Download` event follows.

    Attributes:
        kind: "mechanism" and "urdf" are files of the mechanism, all others of the recording.
    """

    kind: FileKind


# ---- scenes, history --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetControl(PageRequest):
    """Set a control of the scene.

    Attributes:
        is_dragging: whether the user still drags the slider; the undo step ends with the first request without it.
    """

    name: Name
    value: Value
    is_dragging: bool = False


@dataclass(frozen=True, slots=True)
class Undo(PageRequest): ...


@dataclass(frozen=True, slots=True)
class Redo(PageRequest): ...


REQUESTS: dict[str, type[PageRequest]] = {
    kind.__name__: kind
    for kind in (
        OpenGallery, OpenScene, EditModel, ShowLinks,
        StartJointDrag, SetDofValue, SetJointRotation, SetLimits, SetLocked, SetRest, GoTo,
        AddGoal, ChangeGoal, MoveGoal, RemoveGoal, StartGoalDrag, StartLinkDrag, EndDrag,
        SetSolver, SetRunning, SingleStep, SetCollisions, ShowAlternatives, Compare,
        AddObstacle, MoveObstacle, ResizeObstacle, RemoveObstacle, StartObstacleDrag,
        RecordMotion, Play, Seek, Export,
        SetControl, Undo, Redo,
    )
}  # fmt: skip
