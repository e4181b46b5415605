"""An SDF file as flat lists of links and joints with their full names, nested and included models among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mechanik.errors import SdfError
from mechanik.formats.sdf_frames import WORLD, Frames
from mechanik.formats.sdf_values import is_true, needed_text, text_in
from mechanik.formats.source import FilesAround, Source
from mechanik.formats.urdf_tree import nearest_name
from mechanik.formats.xml_text import Node, parse_xml

DEEPEST = 20
"""Models inside models; what nests deeper includes itself."""
MOST_INCLUDED = 500
"""Models; a few small files that include each other twice would otherwise make millions."""

KNOWN = {
    "model": "allow_auto_disable enable_wind frame gripper include joint link model plugin pose self_collide static",
    "link": "audio_sink audio_source battery collision enable_wind gravity inertial kinematic light must_be_base_link "
    "particle_emitter plugin pose projector self_collide sensor velocity_decay visual",
    "joint": "axis axis2 child gearbox_ratio gearbox_reference_body parent physics plugin pose screw_thread_pitch "
    "sensor thread_pitch",
}
"""The elements that SDF has inside these three; others are warned of."""


@dataclass(frozen=True, slots=True)
class LinkSpec:
    name: str
    node: Node


@dataclass(frozen=True, slots=True)
class JointSpec:
    """A <joint>: its full name, the scope in which it stands, and its ends as they are written."""

    name: str
    scope: str
    node: Node
    type: str
    parent: str
    child: str
    version: float


@dataclass(slots=True)
class Collected:
    """What was found, in the order of the file.

    Attributes:
        still: full names of links that belong to static models.
    """

    name: str
    root: Node
    frames: Frames = field(default_factory=Frames)
    links: dict[str, LinkSpec] = field(default_factory=dict[str, LinkSpec])
    joints: dict[str, JointSpec] = field(default_factory=dict[str, JointSpec])
    still: set[str] = field(default_factory=set[str])


def collect(opened: Source, files: FilesAround) -> Collected:
    """The models of a file: the one that it has, or all that its world holds."""
    root = parse_xml(opened, SdfError)
    if root.tag != "sdf":
        raise SdfError(f"{root.where}: the outermost element of an SDF is <sdf>, not <{root.tag}>")
    version = _version(root)
    worlds = root.all("world")
    holder = worlds[0] if worlds else root
    if len(worlds) > 1:
        worlds[1].warn("is a second world; only the first is read")
    models = [*holder.all("model"), *holder.all("include")]
    name = models[0].attributes.get("name", "") if len(models) == 1 else holder.attributes.get("name", "")
    found = Collected(name, root)
    if not models:
        raise root.fault("has no <model>, so there is nothing in it")
    reader = _Reader(found, files)
    if len(models) == 1 and not (holder.all("joint") or holder.all("frame")):
        reader.model(models[0], "", "", version, 0)
    else:
        reader.inside(holder, "", version, 0)
    if not found.links:
        raise models[0].fault("has no <link>, so there is nothing in it")
    return found


class _Reader:
    def __init__(self, found: Collected, files: FilesAround) -> None:
        self.found, self.files = found, files
        self.included = 0

    def model(self, node: Node, outer: str, scope: str, version: float, depth: int, still: bool = False) -> None:
        """Take in a <model> or an <include>; `outer` is the scope around it, `scope` that of what is in it."""
        if depth > DEEPEST:
            raise node.fault(f"nests models more than {DEEPEST} deep; does one include itself?")
        body, inner = node, version
        if node.tag == "include":
            body, inner = self._included(node)
        still = still or is_true(text_in(body, "static")) or is_true(text_in(node, "static"))
        name = scope.removesuffix("::")
        placement = node.attributes.get("placement_frame") or text_in(node, "placement_frame")
        # what is included is placed by who includes it, if that says where, otherwise by itself
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
            near = nearest_name(main, [link.removeprefix(scope) for link in own])
            raise body.fault(f"has canonical_link={main!r}, and there is no such link{near}")
        if own:
            self.found.frames.canonical[name] = scope + main if main is not None else own[0]
        if not self.found.name and not scope:
            self.found.name = body.attributes.get("name", "")

    def inside(self, node: Node, scope: str, version: float, depth: int, still: bool = False) -> None:
        """The links, joints, frames and models that stand in a model or a world."""
        _warn_of_unknown(node)
        frames, links, joints = self.found.frames, self.found.links, self.found.joints
        for child in node.children:
            if child.tag not in ("link", "joint", "frame", "model", "include"):
                continue
            name = _name(child)
            if child.tag == "link" and name == WORLD:  # as files had it before the word meant the world by itself
                child.warn("is called 'world', so it is taken for the world itself")
            elif child.tag == "link":
                self._check_new(child, scope + name, links)
                links[scope + name] = LinkSpec(scope + name, child)
                frames.add("link", scope, name, child, (scope, "__model__"), (scope, name))
                _warn_of_unknown(child)
                if still:
                    self.found.still.add(scope + name)
            elif child.tag == "joint":
                self._check_new(child, scope + name, joints)
                kind, parent, hung = child.need("type").strip(), _end(child, "parent"), _end(child, "child")
                joints[scope + name] = JointSpec(scope + name, scope, child, kind, parent, hung, version)
                frames.add("joint", scope, name, child, (scope, hung), (scope, hung))
                _warn_of_unknown(child)
            elif child.tag == "frame":
                base = child.attributes.get("attached_to", "").strip() or "__model__"
                frames.add("frame", scope, name, child, (scope, base), (scope, base))
            else:
                self.model(child, scope, f"{scope}{name}::", version, depth + 1, still)

    def _check_new(self, node: Node, name: str, known: dict[str, LinkSpec] | dict[str, JointSpec]) -> None:
        if name in known:
            line = known[name].node.line
            raise SdfError(f"{node.where}: two {node.tag}s are called {name!r}; the other is in line {line}")

    def _included(self, node: Node) -> tuple[Node, float]:
        if is_true(node.attributes.get("merge")):
            raise node.fault("has merge='true', which is not read; include it without, or put its content here")
        uri = needed_text(node, "uri").rstrip("/")
        self.included += 1
        if self.included > MOST_INCLUDED:
            raise node.fault(f"is past {MOST_INCLUDED} included models; does one include others again and again?")
        names = [uri] if PurePosixPath(uri).suffix.lower() in (".sdf", ".world") else [f"{uri}/model.sdf", uri]
        source = next((found for name in names if (found := self.files.open(name)) is not None), None)
        if source is None:
            raise node.fault(f"names {uri!r}, and there is no such model{self.files.advice(uri)}")
        root = parse_xml(source, SdfError)
        self.found.root.document.warnings.extend(root.document.warnings)
        root.document.warnings = self.found.root.document.warnings
        models = root.all("model")
        if root.tag != "sdf" or len(models) != 1:
            raise node.fault(f"names {uri!r}, where one <model> in <sdf> is needed; there are {len(models)}")
        return models[0], _version(root)


def _name(node: Node) -> str:
    if node.tag != "include":
        name = node.need("name").strip()
    else:
        name = text_in(node, "name") or needed_text(node, "uri").rstrip("/").split("/")[-1].removesuffix(".sdf")
    if "::" in name or name.startswith("__"):
        raise node.fault(f"is called {name!r}; '::' and a leading '__' are SDF's own")
    return name


def _end(joint: Node, tag: str) -> str:
    node = joint.first(tag)
    if node is None:
        raise joint.fault(f"has no <{tag}>")
    name = node.text.strip() or node.attributes.get("link", "").strip()
    if not name:
        raise node.fault("names no link")
    return name


def _version(root: Node) -> float:
    text = root.attributes.get("version", "").strip()
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and (minor or "0").isdecimal()):
        root.warn(f"has version={text!r}; it is read as 1.7")
        return 107.0
    return 100.0 * int(major) + int(minor or 0)


def _warn_of_unknown(node: Node) -> None:
    known = KNOWN.get(node.tag, "").split()
    for child in node.children if known else ():
        if child.tag not in known and ":" not in child.tag:
            child.warn(f"is unknown in a <{node.tag}> and left out{nearest_name(child.tag, known)}")
