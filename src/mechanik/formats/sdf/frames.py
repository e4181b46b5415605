"""Frames, links and joints of an SDF with their full names, including nested and included models.

A scope is the chain of models around a name, such as "arm::gripper::"; the outermost scope is empty. Poses are relative
to other frames; `SdfFrames` resolves them to the world.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np

from mechanik.errors import FormatError
from mechanik.formats.source import FileResolver, Source
from mechanik.formats.urdf.reader import did_you_mean
from mechanik.formats.urdf.urdf_geometry import MAX_DISTANCE, wxyz_from_rpy
from mechanik.formats.xml_node import XmlNode, parse_xml
from mechanik.spatial import from_position_wxyz, inverse
from mechanik.spatial.array import Array


def split_text(node: XmlNode) -> list[str]:
    return node.text.split()


def child_text(owner: XmlNode, tag: str) -> str | None:
    """Return the text of the child with this tag; None if it is missing or empty."""
    node = owner.first(tag)
    text = "" if node is None else node.text.strip()
    return text or None


def required_child_text(owner: XmlNode, tag: str) -> str:
    text = child_text(owner, tag)
    if text is None:
        raise owner.make_error(f"has no <{tag}>, or an empty one")
    return text


def parse_numbers(node: XmlNode, count: int) -> tuple[float, ...]:
    """Return `count` finite numbers from the text of a node."""
    words = split_text(node)
    if len(words) != count:
        raise node.make_error(f"says {node.text.strip()!r}: {len(words)} numbers where {count} are needed")
    return tuple(_finite(node, word) for word in words)


def child_number(owner: XmlNode, tag: str, default: float) -> float:
    """Return the number in the child with this tag, or `default` if it is missing."""
    node = owner.first(tag)
    return default if node is None or not node.text.strip() else parse_numbers(node, 1)[0]


def child_limit(owner: XmlNode, tag: str, default: float, unlimited: float) -> float:
    """Return a number as `child_number` does; "inf" and values from `unlimited` on become infinite."""
    node = owner.first(tag)
    if node is None or not node.text.strip():
        return default
    word = node.text.strip().lower()
    if word.lstrip("+-") in ("inf", "infinity"):
        return -math.inf if word.startswith("-") else math.inf
    number = parse_numbers(node, 1)[0]
    return math.copysign(math.inf, number) if abs(number) >= unlimited else number


def parse_bool(text: str | None) -> bool:
    return (text or "").strip().lower() in ("1", "true")


def child_pose(owner: XmlNode) -> Array:
    """Return the <pose> of an element, (4, 4), in the frame it is relative to; the identity if there is none."""
    node = owner.first("pose")
    if node is None or not node.text.strip():
        return np.eye(4)
    form = node.attributes.get("rotation_format", "euler_rpy").strip()
    if form == "quat_xyzw":
        x, y, z, qx, qy, qz, qw = parse_numbers(node, 7)
        wxyz = np.array([qw, qx, qy, qz])
        if not 1e-9 < np.linalg.norm(wxyz) < 1e9:
            raise node.make_error(f"says {node.text.strip()!r}, where a quaternion of length 1 is needed")
        wxyz /= np.linalg.norm(wxyz)
    elif form == "euler_rpy":
        x, y, z, *rpy = parse_numbers(node, 6)
        unit = math.pi / 180 if parse_bool(node.attributes.get("degrees")) else 1.0
        wxyz = wxyz_from_rpy(tuple(unit * angle for angle in rpy))
    else:
        raise node.make_error(f"has rotation_format={form!r}; there are 'euler_rpy' and 'quat_xyzw'")
    if max(abs(x), abs(y), abs(z)) > MAX_DISTANCE:
        raise node.make_error(f"says {node.text.strip()!r}: more than {MAX_DISTANCE:g} m away")
    return from_position_wxyz(np.array([x, y, z]), wxyz)


def pose_relative_to(owner: XmlNode) -> str | None:
    """Return the frame that the <pose> of an element names as its reference, or None; older files call it `frame`."""
    node = owner.first("pose")
    if node is None:
        return None
    return (node.attributes.get("relative_to") or node.attributes.get("frame") or "").strip() or None


def _finite(node: XmlNode, word: str) -> float:
    try:
        number = math.nan if "_" in word else float(word)
    except ValueError:
        raise node.make_error(f"says {node.text.strip()!r}: {word!r} is not a number") from None
    if not math.isfinite(number):
        raise node.make_error(f"says {node.text.strip()!r}: {word!r} is not a finite number")
    return number


WORLD = "world"
"""Name of the world frame."""


@dataclass(frozen=True, slots=True)
class FrameKey:
    """Identifies a frame by its kind ("model", "link", "frame", "joint", "world") and its full name."""

    kind: str
    name: str


WORLD_KEY = FrameKey("world", WORLD)


@dataclass(frozen=True, slots=True)
class SdfFramePose:
    """Pose X (4, 4) of a frame in the frame `relative_to`, or in `default` if that is None."""

    node: XmlNode
    scope: str
    relative_to: str | None
    default: tuple[str, str]
    X: Array
    attached_to: tuple[str, str]
    """Scope and name of the frame with which it moves."""
    placement: tuple[str, str] | None = None
    """For a model: scope and name of the frame inside it that gets the pose; None for the model frame itself."""


class SdfFrames:
    """All frames of a file. Poses are those with all joints at zero."""

    def __init__(self) -> None:
        self._places: dict[FrameKey, SdfFramePose] = {}
        self.canonical: dict[str, str] = {}
        """Full name of the canonical link of each model, by the full name of the model."""

    def add(
        self,
        kind: str,
        scope: str,
        name: str,
        node: XmlNode,
        default: tuple[str, str],
        attached_to: tuple[str, str],
        placement: tuple[str, str] | None = None,
    ) -> None:
        """Add the frame of an element, with the pose in its <pose>."""
        said = pose_relative_to(node)
        self._places[FrameKey(kind, scope + name)] = SdfFramePose(
            node, scope, said, default, child_pose(node), attached_to, placement
        )

    def key(self, scope: str, name: str, node: XmlNode) -> FrameKey:
        """Return the frame that `name` means in a scope; an error names `node`, the element that refers to it."""
        if name in (WORLD, "__root__"):
            return WORLD_KEY
        if name == "__model__" or name.endswith("::__model__"):
            key = FrameKey("model", (scope + name).removesuffix("__model__").removesuffix("::"))
            return key if key in self._places else WORLD_KEY
        for kind in ("link", "frame", "joint", "model"):
            if (key := FrameKey(kind, scope + name)) in self._places:
                return key
        known = [one.name.removeprefix(scope) for one in self._places if one.name.startswith(scope)]
        raise node.make_error(f"names {name!r}, and there is no such link or frame{did_you_mean(name, known)}")

    def pose(self, key: FrameKey) -> Array:
        """Return X_world_frame, (4, 4)."""
        return self._climb(key, WORLD_KEY)

    def body(self, key: FrameKey) -> str:
        """Return the full name of the link with which a frame moves, or "world"."""
        way: list[FrameKey] = []
        while key.kind not in ("link", "world"):
            self._refuse_circle(key, way)
            if key.kind == "model" and key.name in self.canonical:
                return self.canonical[key.name]
            place = self._places[key]
            key = self.key(*place.attached_to, place.node)
        return key.name

    def _climb(self, key: FrameKey, top: FrameKey) -> Array:
        X, way = np.eye(4), list[FrameKey]()
        while key not in (top, WORLD_KEY):
            self._refuse_circle(key, way)
            place = self._places[key]
            here = place.X
            if place.placement is not None:
                here = here @ inverse(self._climb(self.key(*place.placement, place.node), key))
            X = here @ X
            if place.relative_to is not None:
                key = self.key(place.scope, place.relative_to, place.node)
            else:
                key = self.key(*place.default, place.node)
        return X

    def _refuse_circle(self, key: FrameKey, way: list[FrameKey]) -> None:
        if key in way:
            names = " -> ".join(one.name for one in [*way[way.index(key) :], key])
            raise self._places[key].node.make_error(f"is placed relative to itself: {names}")
        way.append(key)


MAX_NESTING = 20
"""Levels of nested models; deeper nesting means that a model includes itself."""
MAX_INCLUDED_MODELS = 500
"""Included models in all; small files that include each other twice could otherwise give millions."""

KNOWN_ELEMENTS = {
    "model": "allow_auto_disable enable_wind frame gripper include joint link model plugin pose self_collide static",
    "link": "audio_sink audio_source battery collision enable_wind gravity inertial kinematic light must_be_base_link "
    "particle_emitter plugin pose projector self_collide sensor velocity_decay visual",
    "joint": "axis axis2 child gearbox_ratio gearbox_reference_body parent physics plugin pose screw_thread_pitch "
    "sensor thread_pitch",
}
"""Elements that SDF allows inside these three; the reader warns of others."""


@dataclass(frozen=True, slots=True)
class SdfLink:
    """A <link> and its full name."""

    name: str
    node: XmlNode


@dataclass(frozen=True, slots=True)
class SdfJoint:
    """A <joint>: its full name, its scope, and the names of its parent and child as written."""

    name: str
    scope: str
    node: XmlNode
    type: str
    parent: str
    child: str
    version: float


@dataclass(slots=True)
class SdfContent:
    """All links, joints and frames of a file, in the order of the file.

    Attributes:
        name: name of the model or world.
        root: the root node, which collects the warnings.
        frames: all frames.
        links, joints: by full name.
        static_links: full names of the links of static models.
    """

    name: str
    root: XmlNode
    frames: SdfFrames = field(default_factory=SdfFrames)
    links: dict[str, SdfLink] = field(default_factory=dict[str, SdfLink])
    joints: dict[str, SdfJoint] = field(default_factory=dict[str, SdfJoint])
    static_links: set[str] = field(default_factory=set[str])


def collect_models(opened: Source, files: FileResolver) -> SdfContent:
    """Collect the links, joints and frames of a file: of its single model, or of all models in its world."""
    root = parse_xml(opened, FormatError)
    if root.tag != "sdf":
        raise FormatError(f"{root.where}: the outermost element of an SDF is <sdf>, not <{root.tag}>")
    version = _version(root)
    worlds = root.all("world")
    holder = worlds[0] if worlds else root
    if len(worlds) > 1:
        worlds[1].warn("is a second world; only the first is read")
    models = [*holder.all("model"), *holder.all("include")]
    name = models[0].attributes.get("name", "") if len(models) == 1 else holder.attributes.get("name", "")
    found = SdfContent(name, root)
    if not models:
        raise root.make_error("has no <model>, so there is nothing in it")
    reader = _NestedModelReader(found, files)
    if len(models) == 1 and not (holder.all("joint") or holder.all("frame")):
        reader.model(models[0], "", "", version, 0)
    else:
        reader.inside(holder, "", version, 0)
    if not found.links:
        raise models[0].make_error("has no <link>, so there is nothing in it")
    return found


class _NestedModelReader:
    def __init__(self, found: SdfContent, files: FileResolver) -> None:
        self.found, self.files = found, files
        self.included = 0

    def model(self, node: XmlNode, outer: str, scope: str, version: float, depth: int, still: bool = False) -> None:
        """Add a <model> or an <include>; `outer` is the scope around it, `scope` the scope of its content."""
        if depth > MAX_NESTING:
            raise node.make_error(f"nests models more than {MAX_NESTING} deep; does one include itself?")
        body, inner = node, version
        if node.tag == "include":
            body, inner = self._included(node)
        still = still or parse_bool(child_text(body, "static")) or parse_bool(child_text(node, "static"))
        name = scope.removesuffix("::")
        placement = node.attributes.get("placement_frame") or child_text(node, "placement_frame")
        # a pose in the <include> overrides the pose of the included model
        placed = node if node.first("pose") is not None else body
        placement = placement or (body.attributes.get("placement_frame") if placed is body else None)
        around = (outer, "__model__") if scope else ("", WORLD)
        self.found.frames.add(
            "model", "", name, placed, around, around, None if placement is None else (scope, placement)
        )
        before = set(self.found.links)
        self.inside(body, scope, inner, depth, still)
        main = body.attributes.get("canonical_link")
        own = [link for link in self.found.links if link not in before]
        if main is not None and scope + main not in own:
            near = did_you_mean(main, [link.removeprefix(scope) for link in own])
            raise body.make_error(f"has canonical_link={main!r}, and there is no such link{near}")
        if own:
            self.found.frames.canonical[name] = scope + main if main is not None else own[0]
        if not self.found.name and not scope:
            self.found.name = body.attributes.get("name", "")

    def inside(self, node: XmlNode, scope: str, version: float, depth: int, still: bool = False) -> None:
        """Add the links, joints, frames and models inside a model or a world."""
        _warn_of_unknown(node)
        frames, links, joints = self.found.frames, self.found.links, self.found.joints
        for child in node.children:
            if child.tag not in ("link", "joint", "frame", "model", "include"):
                continue
            name = _name(child)
            if child.tag == "link" and name == WORLD:  # older files define a link for the world
                child.warn("is called 'world', so it is taken for the world itself")
            elif child.tag == "link":
                self._check_new(child, scope + name, links)
                links[scope + name] = SdfLink(scope + name, child)
                frames.add("link", scope, name, child, (scope, "__model__"), (scope, name))
                _warn_of_unknown(child)
                if still:
                    self.found.static_links.add(scope + name)
            elif child.tag == "joint":
                self._check_new(child, scope + name, joints)
                kind, parent, hung = child.require("type").strip(), _end(child, "parent"), _end(child, "child")
                joints[scope + name] = SdfJoint(scope + name, scope, child, kind, parent, hung, version)
                frames.add("joint", scope, name, child, (scope, hung), (scope, hung))
                _warn_of_unknown(child)
            elif child.tag == "frame":
                base = child.attributes.get("attached_to", "").strip() or "__model__"
                frames.add("frame", scope, name, child, (scope, base), (scope, base))
            else:
                self.model(child, scope, f"{scope}{name}::", version, depth + 1, still)

    def _check_new(self, node: XmlNode, name: str, known: dict[str, SdfLink] | dict[str, SdfJoint]) -> None:
        if name in known:
            line = known[name].node.line
            raise FormatError(f"{node.where}: two {node.tag}s are called {name!r}; the other is in line {line}")

    def _included(self, node: XmlNode) -> tuple[XmlNode, float]:
        if parse_bool(node.attributes.get("merge")):
            raise node.make_error("has merge='true', which is not read; include it without, or put its content here")
        uri = required_child_text(node, "uri").rstrip("/")
        self.included += 1
        if self.included > MAX_INCLUDED_MODELS:
            raise node.make_error(
                f"is past {MAX_INCLUDED_MODELS} included models; does one include others again and again?"
            )
        names = [uri] if PurePosixPath(uri).suffix.lower() in (".sdf", ".world") else [f"{uri}/model.sdf", uri]
        source = next((found for name in names if (found := self.files.open(name)) is not None), None)
        if source is None:
            raise node.make_error(f"names {uri!r}, and there is no such model{self.files.search_hint(uri)}")
        root = parse_xml(source, FormatError)
        self.found.root.document.warnings.extend(root.document.warnings)
        root.document.warnings = self.found.root.document.warnings
        models = root.all("model")
        if root.tag != "sdf" or len(models) != 1:
            raise node.make_error(f"names {uri!r}, where one <model> in <sdf> is needed; there are {len(models)}")
        return models[0], _version(root)


def _name(node: XmlNode) -> str:
    if node.tag != "include":
        name = node.require("name").strip()
    else:
        name = child_text(node, "name") or required_child_text(node, "uri").rstrip("/").split("/")[-1].removesuffix(
            ".sdf"
        )
    if "::" in name or name.startswith("__"):
        raise node.make_error(f"is called {name!r}; '::' and a leading '__' are SDF's own")
    return name


def _end(joint: XmlNode, tag: str) -> str:
    node = joint.first(tag)
    if node is None:
        raise joint.make_error(f"has no <{tag}>")
    name = node.text.strip() or node.attributes.get("link", "").strip()
    if not name:
        raise node.make_error("names no link")
    return name


def _version(root: XmlNode) -> float:
    text = root.attributes.get("version", "").strip()
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and (minor or "0").isdecimal()):
        root.warn(f"has version={text!r}; it is read as 1.7")
        return 107.0
    return 100.0 * int(major) + int(minor or 0)


def _warn_of_unknown(node: XmlNode) -> None:
    known = KNOWN_ELEMENTS.get(node.tag, "").split()
    for child in node.children if known else ():
        if child.tag not in known and ":" not in child.tag:
            child.warn(f"is unknown in a <{node.tag}> and left out{did_you_mean(child.tag, known)}")
