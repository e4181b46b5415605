"""Schema of the messages that pages receive: `{"is": "<class name>", ...fields}`.

The present state of the mechanism and its goals is sent as binary state frames instead (see `message_codec`), in the
order of links, dofs, closures and goals in the events `Model` and `Goals`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from mechanik.studio.messages.goal_kinds import GoalKindInfo
from mechanik.studio.messages.requests import CollisionMode, DofName, GoalKind, PoseNumbers, Value, Vector


class Event(Struct, frozen=True, tag=True, tag_field="is"):
    """Base class of all events."""


class OptionInfo(Struct, frozen=True):
    """An option of a solver method.

    Attributes:
        kind: type of the value; the value of a "number" may be an integer.
        default: default value; None: infinite, chosen by the method, or not known to the server.
        choices: allowed values of kind "choice".
        about: description.
    """

    name: str
    kind: Literal["number", "integer", "switch", "choice", "text"]
    default: Value | None
    choices: list[str]
    about: str


class MethodInfo(Struct, frozen=True):
    """A solver method and its options."""

    name: str
    title: str
    options: list[OptionInfo]


class StartPageEntry(Struct, frozen=True):
    """An entry of the start page: a mechanism of the gallery or a scene.

    Attributes:
        kind: what a click opens.
        about: description.
        picture: URL path of an image on this server; empty: no image.
        group: heading above the entry, such as "Scenes", "Arms" or "Loops"; empty: the default heading of `kind`.
    """

    kind: Literal["gallery", "scene"]
    name: str
    title: str
    about: str
    picture: str
    group: str = ""


class Welcome(Event, frozen=True):
    """The first message to a page.

    Attributes:
        session: key of the session, with which this page reconnects, uploads and downloads.
        return_key: key with which this page gets the cookie of the server again if the browser has lost it.
    """

    version: str
    session: str
    return_key: str
    entries: list[StartPageEntry]
    methods: list[MethodInfo]
    goal_kinds: list[GoalKindInfo]
    largest_upload: int
    """Maximum size of an upload, bytes."""
    is_shared: bool
    """Whether other pages and a program (`mk.Studio`) share this session."""


# ---- model ------------------------------------------------------------------------------------


class ShapeInfo(Struct, frozen=True):
    """A visual or collision shape of a link, or the shape of an obstacle.

    Attributes:
        sizes: edges of a box, radius of a sphere, radius and length of a cylinder or capsule, m; scale factors of a
            mesh. The length is along z, and that of a capsule does not include its caps.
        pose: pose in the frame of the link, or in the world for an obstacle.
        mesh: URL path of the mesh file on this server; None if the file was not found, and for other shapes.
        extension: file name extension of the mesh; empty for other shapes.
        dependencies: URL paths of the files that the mesh refers to, such as textures, by their names in the mesh file.
    """

    kind: Literal["box", "sphere", "cylinder", "capsule", "mesh"]
    sizes: list[float]
    pose: PoseNumbers
    rgba: tuple[float, float, float, float] | None
    mesh: str | None
    extension: str
    dependencies: dict[str, str]


class LinkInfo(Struct, frozen=True):
    """A link.

    Attributes:
        parent: index of the joint whose child is the link; -1 for a root.
    """

    name: str
    parent: int
    visuals: list[ShapeInfo]
    collisions: list[ShapeInfo]
    visible: bool


class DofInfo(Struct, frozen=True):
    """A dof of a joint, or all three rotations of a spherical joint.

    The dofs of a joint act in the order of the list: X, Y, Z, then EZ, EY, EX. The rotations of a spherical joint are
    one entry of kind "spherical" with three values, the rotation vector in rad. The page shows them as sliders EX, EY,
    EZ, which are read-only if the joint closes a loop.

    Attributes:
        name: `elbow` if the joint has one entry; else `base.X`, and `base.rotation` for its spherical entry.
        joint: index of the joint.
        axis: unit vector in the frame of the joint; for a spherical joint the axis of EZ.
        value: index of the first value of the dof in the values of a state frame.
        lower, upper: limits, m or rad; None: no limit.
        rest: rest value, m or rad; None: no rest value.
        mimics: index of the dof that this dof follows as a mimic; -1: the dof is independent.
    """

    name: str
    joint: int
    kind: Literal["translation", "rotation", "spherical"]
    axis: Vector
    value: int
    lower: float | None
    upper: float | None
    rest: float | None
    locked: bool
    mimics: int


class JointInfo(Struct, frozen=True):
    """A joint.

    Attributes:
        parent, child: indices of links; `parent` is -1 for the world, `child` is -1 if the joint closes a loop or has
            no child link.
        pose: pose of the joint in the frame of the parent link.
        dofs: indices of the dofs of the joint.
    """

    name: str
    kind: str
    parent: int
    child: int
    pose: PoseNumbers
    dofs: list[int]


class ClosureInfo(Struct, frozen=True):
    """A loop closure: the frame `pose_a` of link a coincides with the frame `pose_b` of link b, except for free dofs.

    Attributes:
        kind: kind of the closing joint: revolute, prismatic, spherical, universal, fixed and others.
        link_a, link_b: indices of links; `link_a` is -1 for the world.
    """

    name: str
    kind: str
    link_a: int
    pose_a: PoseNumbers
    link_b: int
    pose_b: PoseNumbers


class Model(Event, frozen=True):
    """The open mechanism, sent when a mechanism is opened or replaced, and to each new page.

    State frames with another revision belong to another model, and pages ignore them.

    Attributes:
        configurations: names of the configurations of the mechanism, for `GoTo`.
        centre, radius: bounding sphere in the world, for the camera, m.
        view_from: direction from the mechanism to the camera, in the world; for a planar mechanism it is normal to the
            plane of motion.
        has_mass: whether any link has mass.
        source_kind, source: kind and text for `EditModel`; empty if the model was not made from text.
        resets_view: whether the camera moves so that everything is visible.
    """

    revision: int
    name: str
    title: str
    links: list[LinkInfo]
    joints: list[JointInfo]
    dofs: list[DofInfo]
    closures: list[ClosureInfo]
    configurations: list[str]
    about: list[str]
    """Sentences about mobility and loops, then warnings of the file reader."""
    centre: Vector
    radius: float
    view_from: Vector
    has_mass: bool
    source_kind: Literal["", "dh", "arm_2d", "arm_3d", "json", "urdf"]
    source: str
    resets_view: bool


class DofsChanged(Event, frozen=True):
    """All dofs after a change of limits, locks or rest values; the structure is unchanged."""

    dofs: list[DofInfo]


class VisibilityChanged(Event, frozen=True):
    """Visibility of each link, in the order of `Model.links`."""

    visible: list[bool]


# ---- goals and solving ------------------------------------------------------------------------


class GoalInfo(Struct, frozen=True):
    """A goal.

    Attributes:
        number: identifier in requests; never reused, except `message_codec.LINK_DRAG_GOAL`, which all link drags use.
        link: index of the link.
        at: point of the link, in the frame of the link, m; for an axis or a cone the direction in that frame.
        pose: pose of the goal in the world. Its origin is the target of the point or of the centre of mass, the point
            to look at, or the centre of a box or sphere. Its z axis is the direction of an axis, line, hinge or cone,
            or the normal of a plane, surface or band.
        level: priority level; 0 for a pinned goal.
        sizes: see `ChangeGoal.sizes`.
        free: see `ChangeGoal.free`.
        is_link_drag: whether this is the temporary goal of a link drag.
    """

    number: int
    name: str
    kind: GoalKind
    link: int
    at: Vector
    pose: PoseNumbers
    weight: float
    level: int
    enabled: bool
    pinned: bool
    sizes: Vector
    free: list[DofName]
    is_link_drag: bool


class Goals(Event, frozen=True):
    """All goals, in the order of the goals in state frames with the same `order`."""

    order: int
    goals: list[GoalInfo]


class Solving(Event, frozen=True):
    """The solver settings."""

    running: bool
    solver: str
    options: dict[str, Value | None]
    message: str = ""
    """Which settings the method does not support, such as priority levels; empty: it supports all."""


class StatusText(Event, frozen=True):
    """Status of the solver as text, sent after a change, at a limited rate.

    Attributes:
        status: name of the status in `message_codec.STATUSES`.
    """

    status: str
    text: str
    readouts: list[str]
    """Lines of text that the scene displays, such as DH rows with their angles."""


class Alternatives(Event, frozen=True):
    """Alternative solutions; `poses` has the flattened link poses (position in m, wxyz) of each solution."""

    poses: list[list[float]]
    text: str


class CompareRow(Struct, frozen=True):
    """Result of one compared method.

    Attributes:
        solver: name of the method.
        layer: layer of its state frames, see `StateHeader.layer`.
        status: name of the status in `message_codec.STATUSES`; empty if there is none.
        error: largest error of a required objective or a loop closure, m or rad.
        iterations: iterations of the last tick, see `StateHeader`.
    """

    solver: str
    title: str
    layer: int
    status: str
    error: float
    iterations: int
    microseconds: float
    """Median processor time of the last ticks, µs."""
    solved: float
    """Share of successful solves among the finished solves since the start of the comparison, 0 to 1."""
    refusal: str
    """Error message if the method cannot solve this problem; empty if it can."""
    message: str = ""
    """Which settings the method does not support; empty: it supports all."""


class ComparisonChanged(Event, frozen=True):
    """One row for each compared method; without rows there is no comparison."""

    rows: list[CompareRow]


class Kernels(Event, frozen=True):
    """Compilation state of the kernels in use, sent when it changes.

    Attributes:
        state: "ready": no kernel waits for its machine code; "compiling": some kernels run slowly in plain Python until
            they are compiled; "not compiled": some kernels have no machine code and will not be compiled.
        ready: number of kernel modules that are ready.
        count: number of kernel modules in use.
        remedy: what the user can do about modules that are not compiled; empty if there is nothing to do.
    """

    state: Literal["ready", "compiling", "not compiled"]
    ready: int
    count: int
    remedy: str


# ---- collisions -------------------------------------------------------------------------------


class ObstacleInfo(Struct, frozen=True):
    """An obstacle in the world.

    Attributes:
        kind: kind of the obstacle; `shape.kind` may differ from it.
        pose: frame of the obstacle in the world, which a drag moves.
        shape: drawn shape, with its own pose in the world. Its pose differs from `pose` if only a part of the obstacle
            can be drawn, as for a half-space.
    """

    name: str
    kind: Literal["box", "sphere", "cylinder", "capsule", "half-space", "height field", "mesh"]
    pose: PoseNumbers
    shape: ShapeInfo


class Obstacles(Event, frozen=True):
    """All obstacles."""

    obstacles: list[ObstacleInfo]


class ObstacleMoved(Event, frozen=True):
    """New pose of one obstacle; nothing else has changed."""

    obstacle: ObstacleInfo


class Collisions(Event, frozen=True):
    """The collision settings.

    Attributes:
        clearance: minimum distance that avoidance keeps, m.
    """

    mode: CollisionMode
    clearance: float


class ContactsChanged(Event, frozen=True):
    """Links and obstacles in collision, sent after a change; empty if collisions are not checked.

    Attributes:
        revision: revision of the `Model` to which the link indices refer.
        links: indices of links.
        obstacles: names of obstacles.
        reason: why collisions cannot be checked; empty if they can.
    """

    revision: int
    links: list[int]
    obstacles: list[str]
    reason: str


# ---- scenes -----------------------------------------------------------------------------------


class ControlInfo(Struct, frozen=True):
    """A control of a scene.

    Attributes:
        low, high, step: range and resolution of a slider or number, in the unit that the title names.
        choices: allowed values of kind "choice".
        group: heading above the control.
        about: description.
    """

    name: str
    title: str
    kind: Literal["slider", "switch", "choice", "button", "text", "number"]
    value: Value
    low: float
    high: float
    step: float
    choices: list[str]
    group: str
    about: str


class CurveInfo(Struct, frozen=True):
    """A polyline in the world, such as a coupler curve.

    Attributes:
        points: x, y, z of each point, flattened, m.
    """

    name: str
    points: list[float]
    rgba: tuple[float, float, float, float]
    closed: bool


class TerrainInfo(Struct, frozen=True):
    """The terrain of a scene: heights on a grid.

    Attributes:
        columns, rows: number of samples along x and y.
        cell: distance between neighbouring samples, m.
        origin: x and y of the first sample, m.
        heights: heights of the samples, row by row, m.
    """

    columns: int
    rows: int
    cell: float
    origin: tuple[float, float]
    heights: list[float]


class Scene(Event, frozen=True):
    """The open scene, the curves and the terrain; an empty name means that no scene is open.

    Attributes:
        curves, terrain: drawn in the world, also if no scene is open.
        shows_collisions: whether collision shapes are drawn when the scene opens.
    """

    name: str
    title: str
    about: str
    controls: list[ControlInfo]
    curves: list[CurveInfo]
    terrain: TerrainInfo | None
    shows_collisions: bool


class Controls(Event, frozen=True):
    """Values of all controls of the scene, by name, sent after a change."""

    values: dict[str, Value]


# ---- recorder, history, replies ---------------------------------------------------------------


class Recording(Event, frozen=True):
    """State of the motion recorder.

    Attributes:
        frames: number of recorded states.
        duration: duration of the recording, s.
        time: present playback time, s.
    """

    state: Literal["empty", "recording", "ready", "playing"]
    frames: int
    duration: float
    time: float


class Download(Event, frozen=True):
    """A file that the page can download from the URL path `address` until newer files replace it."""

    address: str
    name: str


class History(Event, frozen=True):
    """Labels of the next undo step and the next redo step; empty: there is no step."""

    undo: str
    redo: str


class RequestDone(Event, frozen=True):
    """The request with this id was carried out."""

    id: int


class RequestRefused(Event, frozen=True):
    """The request with this id was rejected; it has changed nothing, but it may have ended a drag or playback.

    Attributes:
        id: -1 if the message does not refer to a request with an id, but to a binary frame or the whole connection.
        message: the reason.
    """

    id: int
    message: str


class Notice(Event, frozen=True):
    """A message for the user."""

    kind: Literal["info", "warning"]
    text: str


EVENTS: tuple[type[Event], ...] = (
    Welcome, Model, DofsChanged, VisibilityChanged, Goals, Solving, StatusText, Alternatives, ComparisonChanged,
    Kernels, Obstacles, ObstacleMoved, Collisions, ContactsChanged, Scene, Controls, Recording, Download, History,
    RequestDone, RequestRefused, Notice,
)  # fmt: skip
