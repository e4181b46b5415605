"""Schema of the requests that a page sends to its session: `{"do": "<class name>", "id": 7, ...fields}`.

`message_codec` validates messages with these classes and the ranges in their annotations; `typescript` generates the
types of the page from these classes. While an object is dragged, its poses or values are sent as binary frames instead.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MAX_MAGNITUDE = 1e6
"""Largest accepted magnitude of a `Number`, such as a position (m) or an angle (rad).

Larger values are mistakes of the user. The square of this limit is far below the overflow of float64.
"""

Number = Annotated[float, Meta(ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE)]
NonNegative = Annotated[float, Meta(ge=0.0, le=MAX_MAGNITUDE)]
GoalNumber = Annotated[int, Meta(ge=0, le=1_000_000)]
Index = Annotated[int, Meta(ge=0, le=100_000)]
Level = Annotated[int, Meta(ge=0, le=9)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(min_length=0, max_length=200_000)]
Vector = tuple[Number, Number, Number]
PoseNumbers = tuple[Number, Number, Number, Number, Number, Number, Number]
"""Position (m) and quaternion wxyz."""
Value = Annotated[float, Meta(ge=-1e12, le=1e12)] | bool | Annotated[str, Meta(max_length=1000)]
"""Value of a scene control or a solver option; the control or the option validates it again."""


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
DofName = Literal["X", "Y", "Z", "EX", "EY", "EZ"]
FileKind = Literal["json", "csv", "npz", "bvh", "glb", "html", "mechanism", "urdf"]
EditKind = Literal["dh", "arm_2d", "arm_3d", "json", "urdf"]
CollisionMode = Literal["off", "show", "avoid"]
ObstacleKind = Literal["box", "sphere", "capsule"]


class PageRequest(Struct, frozen=True, kw_only=True, tag=True, tag_field="do", forbid_unknown_fields=True):
    """Base class of all requests.

    Attributes:
        id: number of the request, repeated in the reply; -1: no number.
    """

    id: Annotated[int, Meta(ge=-1, lt=2**53)] = -1


# ---- model ------------------------------------------------------------------------------------


class OpenGallery(PageRequest, frozen=True):
    """Open a mechanism of the gallery."""

    name: Name


class OpenScene(PageRequest, frozen=True):
    """Open a scene."""

    name: Name


class EditModel(PageRequest, frozen=True):
    """Replace the mechanism by the mechanism that a text describes; coordinates with the same name keep their values.

    Attributes:
        kind: kind of the text.
        text: a DH table or an arm list (link lengths and joint axes) as JSON, or the contents of a model file.
    """

    kind: EditKind
    text: Text


class ShowLinks(PageRequest, frozen=True):
    """Show or hide links; the visibility of other links does not change."""

    links: Annotated[list[Name], Meta(min_length=0, max_length=10_000)]
    visible: bool


# ---- joints -----------------------------------------------------------------------------------


class StartJointDrag(PageRequest, frozen=True):
    """Start to drag a dof.

    Until `EndDrag`, binary frames set its value. Loops remain closed, pinned goals keep their poses, and other enabled
    goals move with their links.
    """

    dof: Index


class SetDofValue(PageRequest, frozen=True):
    """Set the value of a dof, m or rad."""

    dof: Index
    value: Number


class SetJointRotation(PageRequest, frozen=True):
    """Set the rotation of a spherical joint.

    Attributes:
        rotation: rotation vector in the frame of the joint, rad.
    """

    dof: Index
    rotation: Vector


class SetLimits(PageRequest, frozen=True):
    """Set the limits of a dof, m or rad; None: no limit."""

    dof: Index
    lower: Number | None
    upper: Number | None


class SetLocked(PageRequest, frozen=True):
    """Lock or unlock a dof."""

    dof: Index
    locked: bool


class SetRest(PageRequest, frozen=True):
    """Set the rest value of a dof, m or rad, a preferred value in the null space of the goals; None: no rest value."""

    dof: Index
    value: Number | None


class GoTo(PageRequest, frozen=True):
    """Move to a named configuration, to "neutral" or to "random".

    Enabled goals that are not pinned move with their links.
    """

    configuration: Name


# ---- goals ------------------------------------------------------------------------------------


class AddGoal(PageRequest, frozen=True):
    """Add a goal for a link.

    Attributes:
        at: point of the link, in the frame of the link, m; for an axis or a cone the direction in that frame.
        pose: pose of the goal in the world; None: a pose that the present configuration meets, if the kind allows it.
        pinned: whether the goal has the highest priority level, 0, and keeps its pose when joints are dragged.
    """

    kind: GoalKind
    link: Name
    at: Vector = (0.0, 0.0, 0.0)
    pose: PoseNumbers | None = None
    pinned: bool = False


class ChangeGoal(PageRequest, frozen=True):
    """Change the settings of a goal; None: the setting is unchanged.

    If `kind`, `link` or `at` is set, the pose of the goal is replaced by one that the present configuration meets, if
    kind and sizes allow it.
    """

    goal: GoalNumber
    kind: GoalKind | None = None
    link: Name | None = None
    at: Vector | None = None
    weight: NonNegative | None = None
    level: Level | None = None
    enabled: bool | None = None
    pinned: bool | None = None
    sizes: Vector | None = None
    """Parameters of the kind: half edges of a box, distance, low and high of a band (m); half angle of a cone (rad);
    viewing axis of the link for a look-at goal; radius of the sphere that stands on the terrain (m)."""
    free: Annotated[list[DofName], Meta(min_length=0, max_length=6)] | None = None
    """Dofs of a pose goal that are not constrained, along and about the axes of the frame of the goal."""


class MoveGoal(PageRequest, frozen=True):
    """Set the pose of a goal; a single undo step.

    A drag uses `StartGoalDrag`, binary frames and `EndDrag` instead.
    """

    goal: GoalNumber
    pose: PoseNumbers


class RemoveGoal(PageRequest, frozen=True):
    """Remove a goal."""

    goal: GoalNumber


class StartGoalDrag(PageRequest, frozen=True):
    """Start to drag a goal; all binary frames until `EndDrag` are a single undo step."""

    goal: GoalNumber


class StartLinkDrag(PageRequest, frozen=True):
    """Start to drag a link by a point, with a temporary goal that lasts until `EndDrag`.

    Binary frames move the goal under the number `LINK_DRAG_GOAL`.

    Attributes:
        at: point of the link, in the frame of the link, m.
    """

    link: Name
    at: Vector


class EndDrag(PageRequest, frozen=True):
    """End the drag.

    Attributes:
        cancel: whether to restore the state before the drag and to add no undo step.
    """

    cancel: bool = False


# ---- solving ----------------------------------------------------------------------------------


class SetSolver(PageRequest, frozen=True):
    """Select a method and its options; omitted options have their default values."""

    solver: Name
    options: Annotated[dict[Name, Value | None], Meta(max_length=200)]


class SetRunning(PageRequest, frozen=True):
    """Run or pause the solver."""

    running: bool


class SingleStep(PageRequest, frozen=True):
    """Run one iteration while the solver is paused."""


class SetCollisions(PageRequest, frozen=True):
    """Set whether collisions are ignored, shown, or shown and avoided.

    Attributes:
        clearance: distance that avoidance keeps, m.
    """

    mode: CollisionMode
    clearance: Annotated[float, Meta(ge=0.0, le=10.0)] = 0.0


class AddObstacle(PageRequest, frozen=True):
    """Add an obstacle; collisions are then shown if they were off.

    Attributes:
        pose: pose in the world; None: a position around the mechanism, far from all bodies.
    """

    kind: ObstacleKind
    pose: PoseNumbers | None = None


class MoveObstacle(PageRequest, frozen=True):
    """Set the pose of an obstacle; a single undo step.

    A drag uses `StartObstacleDrag`, binary frames and `EndDrag` instead.
    """

    obstacle: Name
    pose: PoseNumbers


class ResizeObstacle(PageRequest, frozen=True):
    """Resize a box, sphere, cylinder or capsule.

    Attributes:
        sizes: as in `ShapeInfo`, m.
    """

    obstacle: Name
    sizes: Annotated[list[NonNegative], Meta(min_length=1, max_length=3)]


class RemoveObstacle(PageRequest, frozen=True):
    """Remove an obstacle."""

    obstacle: Name


class StartObstacleDrag(PageRequest, frozen=True):
    """Start to drag an obstacle; all binary frames until `EndDrag` are a single undo step.

    Binary frames identify the obstacle by its index, at the start of the drag, in the `Obstacles` event.
    """

    obstacle: Name


class ShowAlternatives(PageRequest, frozen=True):
    """Search for alternative solutions of the present goals, and draw them.

    Attributes:
        max_count: maximum number of solutions; 0: draw no alternatives.
    """

    max_count: Annotated[int, Meta(ge=0, le=32)]


class Compare(PageRequest, frozen=True):
    """Solve the same goals with several methods at the same time; an empty list ends the comparison."""

    solvers: Annotated[list[Name], Meta(min_length=0, max_length=6)]


# ---- recorder ---------------------------------------------------------------------------------


class RecordMotion(PageRequest, frozen=True):
    """Start or stop a recording."""

    on: bool


class Play(PageRequest, frozen=True):
    """Play or stop the recording; the main solver does not run during playback.

    Attributes:
        speed: seconds of the recording per second of real time.
        looped: whether to start again at the end.
    """

    on: bool
    speed: Annotated[float, Meta(ge=0.05, le=20.0)] = 1.0
    looped: bool = False


class Seek(PageRequest, frozen=True):
    """Show the recording at a time, s."""

    time: NonNegative


class Export(PageRequest, frozen=True):
    """Create a file of the recording or of the present mechanism; a `Download` event follows.

    Attributes:
        kind: file format; "mechanism" and "urdf" save the mechanism, all others the recording.
    """

    kind: FileKind


# ---- scenes, history --------------------------------------------------------------------------


class SetControl(PageRequest, frozen=True):
    """Set a control of the scene.

    Attributes:
        is_dragging: whether the user is still dragging the slider; the first request with False ends the undo step.
    """

    name: Name
    value: Value
    is_dragging: bool = False


class Undo(PageRequest, frozen=True):
    """Undo the last step."""


class Redo(PageRequest, frozen=True):
    """Redo the step that was undone last."""


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
