"""Frames, links and joints of an SDF with their full names, including nested and included models.

A scope is the part of a full name before the name itself: the names of the enclosing models, such as "arm::gripper::".
The outermost scope is empty, and so is the scope inside the only model of a file. Poses in a file are relative to other
frames; `SdfFrames` computes the poses in the world.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np

from mechanik.errors import FormatError
from mechanik.formats.source import FileResolver, Source
from mechanik.formats.urdf.reader import did_you_mean
from mechanik.formats.urdf.urdf_geometry import MAX_DISTANCE
from mechanik.formats.xml_node import XmlNode, parse_xml
from mechanik.spatial import from_position_wxyz, inverse, quaternion
from mechanik.spatial.array import Array
from mechanik.validation import format_count


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
        raise node.make_error(f"is {node.text.strip()!r}: {format_count(len(words), 'number')} instead of {count}")
    return tuple(_parse_finite(node, word) for word in words)


def child_number(owner: XmlNode, tag: str, default: float) -> float:
    """Return the number in the child with this tag, or `default` if it is missing or empty."""
    node = owner.first(tag)
    return default if node is None or not node.text.strip() else parse_numbers(node, 1)[0]


def child_limit(owner: XmlNode, tag: str, default: float, unlimited: float) -> float:
    """Return a number as `child_number` does; "inf" and magnitudes of at least `unlimited` become infinite."""
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
    """Return the <pose> of an element, (4, 4), in its reference frame; the identity if there is no <pose>."""
    node = owner.first("pose")
    if node is None or not node.text.strip():
        return np.eye(4)
    rotation_format = node.attributes.get("rotation_format", "euler_rpy").strip()
    if rotation_format == "quat_xyzw":
        x, y, z, qx, qy, qz, qw = parse_numbers(node, 7)
        wxyz = np.array([qw, qx, qy, qz])
        if not 1e-9 < np.linalg.norm(wxyz) < 1e9:
            raise node.make_error(f"is {node.text.strip()!r}; the norm of a quaternion must be 1e-9 to 1e9")
        wxyz /= np.linalg.norm(wxyz)
    elif rotation_format == "euler_rpy":
        x, y, z, *rpy = parse_numbers(node, 6)
        radians_per_unit = math.pi / 180 if parse_bool(node.attributes.get("degrees")) else 1.0
        wxyz = quaternion.from_rpy([radians_per_unit * angle for angle in rpy])
    else:
        raise node.make_error(f"has rotation_format={rotation_format!r}; it must be 'euler_rpy' or 'quat_xyzw'")
    if max(abs(x), abs(y), abs(z)) > MAX_DISTANCE:
        raise node.make_error(f"is {node.text.strip()!r}; the limit of a position is {MAX_DISTANCE:g} m")
    return from_position_wxyz(np.array([x, y, z]), wxyz)


def pose_relative_to(owner: XmlNode) -> str | None:
    """Return the name of the reference frame in the <pose> of an element, or None.

    The attribute is `relative_to`, in older files `frame`.
    """
    node = owner.first("pose")
    if node is None:
        return None
    return (node.attributes.get("relative_to") or node.attributes.get("frame") or "").strip() or None


def _parse_finite(node: XmlNode, word: str) -> float:
    try:
        number = float(word.replace("_", "?"))  # Python accepts 1_000, XML formats do not
    except ValueError:
        raise node.make_error(f"is {node.text.strip()!r}: {word!r} is not a number") from None
    if not math.isfinite(number):
        raise node.make_error(f"is {node.text.strip()!r}: {word!r} is not a finite number")
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
    """Pose X_reference_frame (4, 4) of a frame, as written in the file.

    Attributes:
        node: the element that has the pose.
        scope: scope in which `relative_to` is searched.
        relative_to: name of the reference frame; None for the default.
        default_reference: scope and name of the reference frame if `relative_to` is None.
        X_reference_frame: the pose, (4, 4).
        attached_to: scope and name of the frame to which this frame is fixed. For a model, this is the frame around it,
            which is used only if the model has no link.
        placement: for a model, scope and name of the frame inside it to which the pose applies; None for the model
            frame.
    """

    node: XmlNode
    scope: str
    relative_to: str | None
    default_reference: tuple[str, str]
    X_reference_frame: Array
    attached_to: tuple[str, str]
    placement: tuple[str, str] | None = None


class SdfFrames:
    """All frames of a file; their poses are those at joint values of zero."""

    def __init__(self) -> None:
        self._poses: dict[FrameKey, SdfFramePose] = {}
        self.canonical_links: dict[str, str] = {}
        """Full name of the canonical link of each model, by the full name of the model."""

    def add(
        self,
        kind: str,
        scope: str,
        name: str,
        node: XmlNode,
        default_reference: tuple[str, str],
        attached_to: tuple[str, str],
        placement: tuple[str, str] | None = None,
    ) -> None:
        """Add the frame of an element, with the pose in its <pose>."""
        relative_to = pose_relative_to(node)
        self._poses[FrameKey(kind, scope + name)] = SdfFramePose(
            node, scope, relative_to, default_reference, child_pose(node), attached_to, placement
        )

    def key(self, scope: str, name: str, node: XmlNode) -> FrameKey:
        """Return the key of the frame that `name` means in a scope.

        Args:
            scope: the scope of the element that names the frame.
            name: name of the frame.
            node: the element that names the frame, for the error message.
        """
        if name in (WORLD, "__root__"):
            return WORLD_KEY
        if name == "__model__" or name.endswith("::__model__"):
            key = FrameKey("model", (scope + name).removesuffix("__model__").removesuffix("::"))
            return key if key in self._poses else WORLD_KEY
        for kind in ("link", "frame", "joint", "model"):
            if (key := FrameKey(kind, scope + name)) in self._poses:
                return key
        known_names = [key.name.removeprefix(scope) for key in self._poses if key.name.startswith(scope)]
        raise node.make_error(f"names {name!r}; there is no such link or frame{did_you_mean(name, known_names)}")

    def pose(self, key: FrameKey) -> Array:
        """Return X_world_frame, (4, 4)."""
        return self._pose_in(key, WORLD_KEY)

    def link_of(self, key: FrameKey) -> str:
        """Return the full name of the link to which a frame is fixed, or "world"."""
        visited_keys: list[FrameKey] = []
        while key.kind not in ("link", "world"):
            self._check_acyclic(
                key, visited_keys, "is attached to itself: {names}; attach one of these frames to a link"
            )
            if key.kind == "model" and key.name in self.canonical_links:
                return self.canonical_links[key.name]
            entry = self._poses[key]
            key = self.key(*entry.attached_to, entry.node)
        return key.name

    def _pose_in(self, key: FrameKey, ancestor: FrameKey) -> Array:
        """Return the pose (4, 4) of a frame in the frame `ancestor`; in the world if `ancestor` is not above it."""
        X_key_frame, visited_keys = np.eye(4), list[FrameKey]()
        while key not in (ancestor, WORLD_KEY):
            self._check_acyclic(
                key,
                visited_keys,
                "has a pose relative to itself: {names}; change relative_to or attached_to of one of these frames",
            )
            entry = self._poses[key]
            X_reference_frame = entry.X_reference_frame
            if entry.placement is not None:
                X_reference_frame = X_reference_frame @ inverse(
                    self._pose_in(self.key(*entry.placement, entry.node), key)
                )
            X_key_frame = X_reference_frame @ X_key_frame
            if entry.relative_to is not None:
                key = self.key(entry.scope, entry.relative_to, entry.node)
            else:
                key = self.key(*entry.default_reference, entry.node)
        return X_key_frame

    def _check_acyclic(self, key: FrameKey, visited_keys: list[FrameKey], message: str) -> None:
        """Add a frame to those visited; raise `message`, with the cycle as {names}, if it was visited before."""
        if key in visited_keys:
            names = " -> ".join(frame.name for frame in [*visited_keys[visited_keys.index(key) :], key])
            raise self._poses[key].node.make_error(message.format(names=names))
        visited_keys.append(key)


MAX_NESTING = 20
"""Levels of nested models; deeper nesting probably means that a model includes itself."""
MAX_INCLUDED_MODELS = 500
"""Total number of included models; small files that include each other twice could otherwise give millions."""

KNOWN_ELEMENTS = {
    "model": "allow_auto_disable enable_wind frame gripper include joint link model plugin pose self_collide static",
    "link": "audio_sink audio_source battery collision enable_wind gravity inertial kinematic light must_be_base_link "
    "particle_emitter plugin pose projector self_collide sensor velocity_decay visual",
    "joint": "axis axis2 child gearbox_ratio gearbox_reference_body parent physics plugin pose screw_thread_pitch "
    "sensor thread_pitch",
}
"""Elements that SDF allows inside these three elements; the reader warns about others without a namespace."""


@dataclass(frozen=True, slots=True)
class SdfLink:
    """A <link> and its full name."""

    name: str
    node: XmlNode


@dataclass(frozen=True, slots=True)
class SdfJoint:
    """A <joint>: its full name, its scope, and the names of its parent and child as written in the file.

    `version` is 100 * major + minor version of SDF, such as 107 for 1.7.
    """

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
        name: name of the only model or of the world; may be empty.
        root: the root node; warnings are added to its document.
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


def collect_models(sdf_source: Source, files: FileResolver) -> SdfContent:
    """Collect the links, joints and frames of all models in the first <world>, or in <sdf> if there is no world."""
    root = parse_xml(sdf_source, FormatError)
    if root.tag != "sdf":
        raise FormatError(f"{root.location}: the root element is <{root.tag}>; an SDF has <sdf>")
    version = _read_version(root)
    worlds = root.all("world")
    container = worlds[0] if worlds else root
    if len(worlds) > 1:
        worlds[1].warn("is a second world; it is ignored")
    models = [*container.all("model"), *container.all("include")]
    name = models[0].attributes.get("name", "") if len(models) == 1 else container.attributes.get("name", "")
    content = SdfContent(name, root)
    if not models:
        raise root.make_error("has no <model>")
    reader = _NestedModelReader(content, files)
    if len(models) == 1 and not (container.all("joint") or container.all("frame")):
        reader.read_model(models[0], "", "", version, 0)
    else:
        reader.read_children(container, "", version, 0)
    if not content.links:
        raise models[0].make_error("has no <link>")
    return content


class _NestedModelReader:
    """Reads a model and the models inside it into `content`."""

    def __init__(self, content: SdfContent, files: FileResolver) -> None:
        self.content, self.files = content, files
        self.included_count = 0

    def read_model(
        self, node: XmlNode, outer_scope: str, scope: str, version: float, depth: int, is_static: bool = False
    ) -> None:
        """Add a <model> or an <include>.

        Args:
            node: the element.
            outer_scope: the scope that contains the model.
            scope: the scope of the content of the model.
            version: version of SDF, see `SdfJoint`.
            depth: nesting level of the model.
            is_static: whether a model around this model is static.
        """
        if depth > MAX_NESTING:
            raise node.make_error(f"nests models deeper than the limit of {MAX_NESTING}; does a model include itself?")
        model_node, inner_version = node, version
        if node.tag == "include":
            model_node, inner_version = self._open_included(node)
        is_static = is_static or parse_bool(child_text(model_node, "static")) or parse_bool(child_text(node, "static"))
        name = scope.removesuffix("::")
        placement = node.attributes.get("placement_frame") or child_text(node, "placement_frame")
        # a pose in the <include> overrides the pose of the included model
        pose_owner = node if node.first("pose") is not None else model_node
        placement = placement or (model_node.attributes.get("placement_frame") if pose_owner is model_node else None)
        outer_frame = (outer_scope, "__model__") if scope else ("", WORLD)
        self.content.frames.add(
            "model",
            outer_scope,
            name.removeprefix(outer_scope),
            pose_owner,
            outer_frame,
            outer_frame,
            None if placement is None else (scope, placement),
        )
        earlier_links = set(self.content.links)
        self.read_children(model_node, scope, inner_version, depth, is_static)
        canonical_link = model_node.attributes.get("canonical_link")
        model_links = [link for link in self.content.links if link not in earlier_links]
        if canonical_link is not None and scope + canonical_link not in model_links:
            hint = did_you_mean(canonical_link, [link.removeprefix(scope) for link in model_links])
            raise model_node.make_error(f"has canonical_link={canonical_link!r}; there is no such link{hint}")
        if model_links:
            self.content.frames.canonical_links[name] = (
                scope + canonical_link if canonical_link is not None else model_links[0]
            )
        if not self.content.name and not scope:
            self.content.name = model_node.attributes.get("name", "")

    def read_children(self, node: XmlNode, scope: str, version: float, depth: int, is_static: bool = False) -> None:
        """Add the links, joints, frames and models inside a model or a world."""
        _warn_about_unknown_elements(node)
        frames, links, joints = self.content.frames, self.content.links, self.content.joints
        for element in node.children:
            if element.tag not in ("link", "joint", "frame", "model", "include"):
                continue
            name = _read_name(element)
            if element.tag == "link" and name == WORLD:  # older files define a link for the world
                element.warn("has the name 'world' and is read as the world itself")
            elif element.tag == "link":
                self._check_unique(element, scope + name, links)
                links[scope + name] = SdfLink(scope + name, element)
                frames.add("link", scope, name, element, (scope, "__model__"), (scope, name))
                _warn_about_unknown_elements(element)
                if is_static:
                    self.content.static_links.add(scope + name)
            elif element.tag == "joint":
                self._check_unique(element, scope + name, joints)
                joint_type = element.require("type").strip()
                parent_name, child_name = _read_joint_end(element, "parent"), _read_joint_end(element, "child")
                joints[scope + name] = SdfJoint(
                    scope + name, scope, element, joint_type, parent_name, child_name, version
                )
                frames.add("joint", scope, name, element, (scope, child_name), (scope, child_name))
                _warn_about_unknown_elements(element)
            elif element.tag == "frame":
                attached_to = element.attributes.get("attached_to", "").strip() or "__model__"
                frames.add("frame", scope, name, element, (scope, attached_to), (scope, attached_to))
            else:
                self.read_model(element, scope, f"{scope}{name}::", version, depth + 1, is_static)

    def _check_unique(self, node: XmlNode, name: str, existing_parts: dict[str, SdfLink] | dict[str, SdfJoint]) -> None:
        if name in existing_parts:
            line = existing_parts[name].node.line
            raise FormatError(f"{node.location}: the {node.tag} in line {line} is also called {name!r}")

    def _open_included(self, node: XmlNode) -> tuple[XmlNode, float]:
        if parse_bool(node.attributes.get("merge")):
            raise node.make_error(
                "has merge='true', which is not supported; remove it, or copy the content of the model here"
            )
        uri = required_child_text(node, "uri").rstrip("/")
        self.included_count += 1
        if self.included_count > MAX_INCLUDED_MODELS:
            raise node.make_error(
                f"exceeds the limit of {MAX_INCLUDED_MODELS} included models; does a model include itself?"
            )
        names = [uri] if PurePosixPath(uri).suffix.lower() in (".sdf", ".world") else [f"{uri}/model.sdf", uri]
        source = next((source for name in names if (source := self.files.open(name)) is not None), None)
        if source is None:
            raise node.make_error(f"names {uri!r}; there is no such model{self.files.search_hint(uri)}")
        root = parse_xml(source, FormatError)
        self.content.root.document.warnings.extend(root.document.warnings)
        root.document.warnings = self.content.root.document.warnings
        models = root.all("model")
        if root.tag != "sdf" or len(models) != 1:
            raise node.make_error(
                f"names {uri!r}, which has {len(models)} <model> in <{root.tag}>; one <model> in <sdf> is required"
            )
        return models[0], _read_version(root)


def _read_name(node: XmlNode) -> str:
    if node.tag != "include":
        name = node.require("name").strip()
    else:
        name = child_text(node, "name") or required_child_text(node, "uri").rstrip("/").split("/")[-1].removesuffix(
            ".sdf"
        )
    if "::" in name or name.startswith("__"):
        raise node.make_error(f"has the name {name!r}; '::' and a leading '__' are reserved")
    return name


def _read_joint_end(joint: XmlNode, tag: str) -> str:
    node = joint.first(tag)
    if node is None:
        raise joint.make_error(f"has no <{tag}>")
    name = node.text.strip() or node.attributes.get("link", "").strip()
    if not name:
        raise node.make_error("names no link")
    return name


def _read_version(root: XmlNode) -> float:
    text = root.attributes.get("version", "").strip()
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and (minor or "0").isdecimal()):
        root.warn(f"has version={text!r}; it is read as 1.7")
        return 107.0
    return 100.0 * int(major) + int(minor or 0)


def _warn_about_unknown_elements(node: XmlNode) -> None:
    known_tags = KNOWN_ELEMENTS.get(node.tag, "").split()
    for child in node.children if known_tags else ():
        if child.tag not in known_tags and ":" not in child.tag:
            child.warn(f"is unknown in a <{node.tag}> and ignored{did_you_mean(child.tag, known_tags)}")
