"""An MJCF that is held in memory, as text for which MuJoCo opens no file and makes nothing out of proportion.

MuJoCo looks for what a model names on the disk as well, runs plugins, and makes pictures, grids and bodies of any size
that a number asks for. So it gets a text of ours: what it includes is put in place, only elements that say how the
model moves and looks are kept, and every mesh is a stand-in under a name of ours. Where each line comes from is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from xml.sax.saxutils import quoteattr

from mechanik.errors import MjcfError
from mechanik.formats.source import FilesAround, Source
from mechanik.formats.urdf_tree import listed
from mechanik.formats.xml_text import Node, parse_xml

MOST_PARTS = 10_000
"""Elements when all replicates are made; the largest models have some thousand."""
MOST_COPIES = 1_000

_BODIES = ("worldbody", "body", "frame", "replicate", "joint", "freejoint", "geom", "site", "inertial")
_BONDS = ("equality", "connect", "weld", "tendon", "fixed", "spatial", "pulley")
_MOTORS = ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion")
_REST = ("mujoco", "compiler", "option", "default", "asset", "material", "mesh", "actuator", "keyframe", "key")
KEPT = frozenset((*_BODIES, *_BONDS, *_MOTORS, *_REST))
"""Elements that MuJoCo gets."""
REFUSED = {
    "composite": "makes bodies by itself",
    "flexcomp": "makes a flexible body by itself",
    "attach": "takes bodies out of another model",
    "plugin": "runs code that is no part of the model",
}
"""Elements without which a model would be another one."""
_SCENE = ("visual", "statistic", "light", "camera", "texture", "layer")
_RUNNING = ("size", "flag", "contact", "exclude", "pair", "sensor", "custom", "extension")
QUIET = frozenset((*_SCENE, *_RUNNING))
"""Elements that are left out without a word, since nothing of a mechanism is in them."""
FOLDERS = ("meshdir", "texturedir", "assetdir")
POINTS = 64
"""The most that a built-in mesh may be divided into, along each direction."""


@dataclass(slots=True)
class Enclosed:
    """The text for MuJoCo.

    Attributes:
        lines: where each line of it comes from, for messages: "arm.xml, line 12".
        meshes: the name of each stand-in, to the uri that it stands for.
        missing: uris that did not come along.
    """

    lines: list[str] = field(default_factory=list[str])
    text: list[str] = field(default_factory=list[str])
    meshes: dict[str, str] = field(default_factory=dict[str, str])
    missing: list[str] = field(default_factory=list[str])
    left_out: dict[str, None] = field(default_factory=dict[str, None])


def enclose(opened: Source, around: FilesAround) -> Enclosed:
    """The text for MuJoCo, and what stands for what in it.

    Raises:
        XmlError, MjcfError: it is no XML, or asks for what is not done for a file from somewhere else.
    """
    root = parse_xml(opened, MjcfError)
    _include(root, around, {opened.member})
    _check_size(root)
    return _Writer(root, around).write()


def _include(root: Node, around: FilesAround, seen: set[str]) -> None:
    """Put the content of included files where they are named; each may come in once, as with MuJoCo."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        children, ahead = list[Node](), node.children[::-1]
        while ahead:
            child = ahead.pop()
            child.parent = node
            if child.tag == "include":
                ahead += _included(child, around, seen).children[::-1]
            else:
                children.append(child)
        node.children = children
        waiting += children


def _included(node: Node, around: FilesAround, seen: set[str]) -> Node:
    uri = node.need("file")
    source = around.open(uri)
    if source is None:
        raise node.fault(f"names {uri!r}, and there is no such file{around.advice(uri)}")
    if source.member in seen:
        raise node.fault(f"includes {uri!r} a second time")
    seen.add(source.member)
    root = parse_xml(source, MjcfError)
    if root.tag not in ("mujoco", "mujocoinclude"):
        raise node.fault(f"names {uri!r}, whose root element is <{root.tag}>")
    return root


def _check_size(root: Node) -> None:
    """Count elements as they will be when replicates are made, from the leaves up."""
    sizes: dict[int, int] = {}
    for node in reversed(list(root.walk())):
        size = 1 + sum(sizes[id(child)] for child in node.children)
        if node.tag == "replicate":
            count = node.number("count")
            if count is None or not 0 < count <= MOST_COPIES:
                raise node.fault(f"has count={node.attributes.get('count')!r}; it is from 1 to {MOST_COPIES}")
            size *= int(count)
        if size > MOST_PARTS:
            raise node.fault(f"stands for more than {MOST_PARTS} elements")
        sizes[id(node)] = size


class _Writer:
    def __init__(self, root: Node, around: FilesAround) -> None:
        self.root, self.around = root, around
        self.result = Enclosed()
        compilers = [node for node in root.walk() if node.tag == "compiler"]
        said = {key: value for node in compilers for key, value in node.attributes.items()}
        self.folder = said.get("meshdir", said.get("assetdir", "")).strip()
        self.strips = said.get("strippath", "false").strip() == "true"

    def write(self) -> Enclosed:
        waiting: list[Node | str] = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                self.result.text.append(node)
                self.result.lines.append("")
                continue
            kept = [child for child in node.children if self._is_kept(child)]
            attributes = "".join(f" {key}={_quoted(value)}" for key, value in self._attributes(node).items())
            self.result.text.append(f"<{node.tag}{attributes}{'>' if kept else '/>'}")
            self.result.lines.append(node.where)
            if kept:
                waiting += [f"</{node.tag}>", *reversed(kept)]
        return self.result

    def _is_kept(self, node: Node) -> bool:
        if node.tag in REFUSED:
            raise node.fault(f"{REFUSED[node.tag]}, which is not done for a file from somewhere else")
        if node.tag in KEPT:
            return not (node.tag == "geom" and self._is_grid(node))
        if node.tag not in QUIET:
            self.result.left_out.setdefault(node.tag)
        return False

    def _is_grid(self, node: Node) -> bool:
        if "hfield" in node.attributes or node.attributes.get("type", "").strip() == "hfield":
            self.result.left_out.setdefault("hfield")
            return True
        return False

    def _attributes(self, node: Node) -> dict[str, str]:
        kept = {key: value for key, value in node.attributes.items() if ":" not in key and not key.startswith("file")}
        if node.tag == "compiler":
            kept = {key: value for key, value in kept.items() if key not in FOLDERS}
        elif node.tag == "material":
            kept = {key: value for key, value in kept.items() if key != "texture"}
        elif node.tag == "mesh" and "file" in node.attributes:
            kept = self._mesh(node, kept)
        elif node.tag == "mesh" and "builtin" in node.attributes:
            _check_built_in(node)
        return kept

    def _mesh(self, node: Node, kept: dict[str, str]) -> dict[str, str]:
        """A stand-in in place of the file; without a name of its own, a mesh is called after its file."""
        file = node.need("file").strip().replace("\\", "/")
        uri = PurePosixPath(file).name if self.strips else file
        if self.folder and not uri.startswith("/"):
            uri = f"{self.folder.rstrip('/')}/{uri}"
        name = f"stand-in-{len(self.result.meshes)}.stl"
        self.result.meshes[name] = uri
        if not self.around.locate(uri)[0]:
            self.result.missing.append(uri)
        kept = {key: value for key, value in kept.items() if key != "content_type"}
        return {"name": PurePosixPath(file).stem, **kept, "file": name}


def _check_built_in(node: Node) -> None:
    words = node.attributes.get("params", "").split()
    numbers = node.numbers("params", len(words)) or ()
    if any(abs(number) > POINTS for number in numbers):
        raise node.fault(f"has params={node.attributes['params']!r}; up to {POINTS} is made")


def _quoted(value: str) -> str:
    return quoteattr(value, {"\n": " ", "\r": " ", "\t": " "})


def left_out_text(tags: Iterable[str]) -> str:
    return f"elements that are not read from a file of somewhere else are left out: {listed([f'<{t}>' for t in tags])}"
