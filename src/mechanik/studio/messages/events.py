"""What a session tells its pages: messages `{"is": "<name of the class>", ...fields}`. The schema, as in `requests.py`.

Where the links are at each moment comes as binary frames (`frames.py`), in the order in which `Model` and `Goals` name
links, freedoms, closures and goals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mechanik.studio.messages.checks import PoseNumbers, Value, Vector
from mechanik.studio.messages.requests import CollisionMode, Direction, GoalKind


@dataclass(frozen=True, slots=True)
class Event:
    """What all have in common."""


@dataclass(frozen=True, slots=True)
class OptionInfo:
    """An option of a method. kind "number" may be whole; `default` None: what is usual."""

    name: str
    kind: Literal["number", "whole", "switch", "choice", "text"]
    default: Value | None
    choices: list[str]
    about: str


@dataclass(frozen=True, slots=True)
class MethodInfo:
    name: str
    title: str
    options: list[OptionInfo]


@dataclass(frozen=True, slots=True)
class GalleryEntry:
    """Of the start page. kind: what a click opens. picture: address of an image on this server.
    group: headline under which it stands, such as "Scenes", "Arms", "Loops"; empty: that of its kind."""

    kind: Literal["gallery", "scene"]
    name: str
    title: str
    about: str
    picture: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Welcome(Event):
    """The first message. session: the key with which this page uploads and downloads. return_key: by which it gets the
    server's cookie again if the browser has lost it."""

    version: str
    session: str
    return_key: str
    entries: list[GalleryEntry]
    methods: list[MethodInfo]
    largest_upload: int
    """Bytes."""
    is_shared: bool
    """Whether others see and move the same mechanism (`mk.Studio` in a program)."""


# ---- the model --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShapeInfo:
    """A body of a link. sizes: edges of a box; (radius, length) of a cylinder or capsule along z; (radius) of a ball;
    the scale of a mesh. mesh: its address on this server and the file's ending, if it was found. beside: addresses of
    the files that the mesh names, such as pictures, by the names that it has for them."""

    kind: Literal["box", "sphere", "cylinder", "capsule", "mesh"]
    sizes: list[float]
    pose: PoseNumbers
    rgba: tuple[float, float, float, float] | None
    mesh: str | None
    ending: str
    beside: dict[str, str]


@dataclass(frozen=True, slots=True)
class LinkInfo:
    """parent: number of the joint that carries it, -1 for a root."""

    name: str
    parent: int
    visuals: list[ShapeInfo]
    collisions: list[ShapeInfo]
    visible: bool


@dataclass(frozen=True, slots=True)
class FreedomInfo:
    """One number of a joint, or all three of a ball.

    name: `elbow`, or `base.X` where its joint has several. axis: in the joint's frame; freedoms of a joint move one
    after the other in the order in which they are listed: X, Y, Z, then EZ, EY, EX. A ball is one freedom of kind
    "ball" with three values (its turn as a rotation vector), which sliders show as EX, EY, EZ for reading only.
    value: where its first number stands among the values of a state frame.
    leader: number of the freedom that it follows, or -1.
    """

    name: str
    joint: int
    kind: Literal["slide", "turn", "ball"]
    axis: Vector
    value: int
    lower: float | None
    upper: float | None
    rest: float | None
    locked: bool
    leader: int


@dataclass(frozen=True, slots=True)
class JointInfo:
    """pose: of the joint's frame on its parent link. child: -1 if it carries none (it closes a loop)."""

    name: str
    kind: str
    parent: int
    child: int
    pose: PoseNumbers
    freedoms: list[int]


@dataclass(frozen=True, slots=True)
class ClosureInfo:
    """A loop: the frame `pose_a` on link a meets `pose_b` on link b. kind: pin, slider, ball, universal, weld..."""

    name: str
    kind: str
    link_a: int
    pose_a: PoseNumbers
    link_b: int
    pose_b: PoseNumbers


@dataclass(frozen=True, slots=True)
class Model(Event):
    """Another mechanism, or the same with another structure. Frames with another revision are not for it.

    centre, radius: of a ball around it, for the camera, m. is_planar: all moves in one plane, seen along `view_from`.
    source: the text that `EditModel` takes, if it came from such, with its kind. configurations: for `GoTo`.
    weighs: whether any link has a mass.
    """

    revision: int
    name: str
    title: str
    links: list[LinkInfo]
    joints: list[JointInfo]
    freedoms: list[FreedomInfo]
    closures: list[ClosureInfo]
    configurations: list[str]
    about: list[str]
    """Sentences: mobility, loops, what a reader found odd."""
    centre: Vector
    radius: float
    view_from: Vector
    weighs: bool
    source_kind: Literal["", "dh", "arm_2d", "arm_3d", "json", "urdf"]
    source: str
    resets_view: bool


@dataclass(frozen=True, slots=True)
class Freedoms(Event):
    """Limits, locks and rests have changed; the structure has not."""

    freedoms: list[FreedomInfo]


@dataclass(frozen=True, slots=True)
class Shown(Event):
    """Which links are drawn, one entry a link."""

    visible: list[bool]


# ---- goals and solving ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GoalInfo:
    """number: what requests call it; it never names another. What `pose` means depends on the kind: where a point shall
    be; the z axis through it as a line, hinge or normal; what is looked at; the middle of a box."""

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
    free: list[Direction]
    is_pull: bool


@dataclass(frozen=True, slots=True)
class Goals(Event):
    """All of them, in the order of the state frames that carry the same `order`."""

    order: int
    goals: list[GoalInfo]


@dataclass(frozen=True, slots=True)
class Solving(Event):
    """How it is solved now."""

    running: bool
    solver: str
    options: dict[str, Value | None]
    said: str = ""
    """What the method takes otherwise than it is meant, such as levels that it does not know; empty if nothing."""


@dataclass(frozen=True, slots=True)
class Words(Event):
    """The state in sentences, sent when it changes and not more often than ten times a second."""

    status: str
    text: str
    read_out: list[str]
    """Lines that the scene wants on the screen, such as DH rows with their angles."""


@dataclass(frozen=True, slots=True)
class Ghosts(Event):
    """Other solutions: link poses (position, wxyz) of each, all in a row."""

    poses: list[list[float]]
    text: str


@dataclass(frozen=True, slots=True)
class CompareRow:
    solver: str
    title: str
    layer: int
    status: str
    error: float
    iterations: int
    microseconds: float
    """Median of the last solves."""
    solved: float
    """Share of the goals since it began that were reached, 0 to 1."""
    refusal: str
    """Why this method cannot do this; empty if it can."""
    said: str = ""
    """What it takes otherwise than it is meant; empty if nothing."""


@dataclass(frozen=True, slots=True)
class Comparison(Event):
    """One row a method; layer: of its state frames. Empty: no comparison."""

    rows: list[CompareRow]


@dataclass(frozen=True, slots=True)
class Kernels(Event):
    """How the kernels that solves use are run, sent when it changes.

    state: "ready"; "compiling": some run in plain Python, slower, until they are compiled; "not compiled": some run in
    plain Python and will not be compiled. ready, count: modules of kernels that are ready, of those that are used.
    remedy: what to do about those that are not compiled; empty if nothing.
    """

    state: Literal["ready", "compiling", "not compiled"]
    ready: int
    count: int
    remedy: str


# ---- collisions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObstacleInfo:
    """Something that stands in the world. pose: of its frame there, which a hand moves; that of its shape is there too,
    and differs where what is drawn is a part of it, as of a half-space. kind: what it truly is."""

    name: str
    kind: Literal["box", "sphere", "cylinder", "capsule", "half-space", "height field", "mesh"]
    pose: PoseNumbers
    shape: ShapeInfo


@dataclass(frozen=True, slots=True)
class Obstacles(Event):
    """All of them."""

    obstacles: list[ObstacleInfo]


@dataclass(frozen=True, slots=True)
class ObstacleMoved(Event):
    """One of them stands elsewhere; nothing else of it has changed, nor of the others."""

    obstacle: ObstacleInfo


@dataclass(frozen=True, slots=True)
class Collisions(Event):
    """What is done about collisions now; clearance: m."""

    mode: CollisionMode
    clearance: float


@dataclass(frozen=True, slots=True)
class Clashes(Event):
    """What bumps into something, sent when it is another set; none while nothing is looked for.

    revision: of the `Model` whose links these are. links: their numbers. obstacles: their names.
    why: why nothing can be looked for, in words; empty if something can.
    """

    revision: int
    links: list[int]
    obstacles: list[str]
    why: str


# ---- scenes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControlInfo:
    """Something of a scene that people can set. group: headline under which it stands."""

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


@dataclass(frozen=True, slots=True)
class CurveInfo:
    """A line in the world, such as a coupler curve: points in a row (x, y, z each)."""

    name: str
    points: list[float]
    rgba: tuple[float, float, float, float]
    closed: bool


@dataclass(frozen=True, slots=True)
class TerrainInfo:
    """A height field: rows of y, columns of x; the first is at `origin`, cells are `cell` apart, m."""

    columns: int
    rows: int
    cell: float
    origin: tuple[float, float]
    heights: list[float]


@dataclass(frozen=True, slots=True)
class Scene(Event):
    """The demonstration that runs; empty name: none. shows_collisions: whether colliders are drawn from the start."""

    name: str
    title: str
    about: str
    controls: list[ControlInfo]
    curves: list[CurveInfo]
    terrain: TerrainInfo | None
    shows_collisions: bool


@dataclass(frozen=True, slots=True)
class Controls(Event):
    """The values of all controls of the scene, by name, after one has changed others."""

    values: dict[str, Value]


# ---- the recorder, history, answers -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recording(Event):
    """time: where it stands, s; frames: how many there are."""

    state: Literal["empty", "recording", "ready", "playing"]
    frames: int
    duration: float
    time: float


@dataclass(frozen=True, slots=True)
class Download(Event):
    """A file is ready at this address of the server, for a while."""

    address: str
    name: str


@dataclass(frozen=True, slots=True)
class History(Event):
    """What undo and redo would do, in words; empty: nothing."""

    undo: str
    redo: str


@dataclass(frozen=True, slots=True)
class Done(Event):
    """The request of that id was carried out."""

    id: int


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """It was not, and why; nothing has changed. id -1: a binary frame, or the connection as such."""

    id: int
    message: str


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """A word for the person."""

    kind: Literal["info", "warning"]
    text: str


EVENTS: tuple[type[Event], ...] = (
    Welcome, Model, Freedoms, Shown, Goals, Solving, Words, Ghosts, Comparison, Kernels, Obstacles, ObstacleMoved,
    Collisions, Clashes, Scene, Controls, Recording, Download, History, Done, Refused, Notice,
)  # fmt: skip
